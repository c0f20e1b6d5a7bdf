"""The attack on a private bandit's responses: what it reads off the actions, and that it beats what was there."""

import numpy as np
import pytest

from overclaim.audit.attacks.learner_attacks import Trained, applicable
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners.leaders.bandit_responses import ResponseScore
from overclaim.learners.leaders.private_bandit import PrivateBandit
from overclaim.learners.problems.domains import L2Ball
from overclaim.learners.problems.losses import Linear
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.view import VIEWS

T, RUNS = 7, 20_000
LEARNER = PrivateBandit(oracle=L2Ball(1), rounds=T, noise=Laplace(2.5))
REST = [Linear(slope=(0.0,), offset=0.0)] * (T - 1)
PAIR = Pair([Linear(slope=(1.0,), offset=-1.0), *REST], [Linear(slope=(-1.0,), offset=1.0), *REST])


class Watched(PrivateBandit):
    """Keeps the responses that it played around."""

    def act(self, state, draws):
        object.__setattr__(self, "seen", [*getattr(self, "seen", []), state.oco.x.copy()])
        return super().act(state, draws)


def test_the_responses_are_read_off_the_actions():
    watched = Watched(oracle=L2Ball(1), rounds=T, noise=Laplace(2.5))
    played = play(watched, PAIR, Draws(3), 500)
    attack = ResponseScore(watched, PAIR)
    for batch in range(3):
        np.testing.assert_allclose(attack.response(played.actions, batch), watched.seen[3 * batch], atol=1e-9)


def separation(scores, played):
    """The largest ln of the rates of an upper tail in the two worlds that at least a tenth of the left runs meet."""
    left, right = np.sort(scores[played.left])[::-1], scores[~played.left]
    return max(
        np.log(np.mean(scores[played.left] >= t) / max(np.mean(right >= t), 1e-9))
        for t in np.unique(left[len(left) // 10 :])
    )


def test_the_score_shows_what_the_noise_leaves():
    """The event of its largest scores: 0.185 + 0.179 of the left runs, 0.064 + 0.066 of the right ones, ln 2.8 = 1.03.

    20,000 runs: the standard error of the logarithm is 0.03; less than 0.85 has probability below 1e-6. A regression
    on actions cannot turn with the sign of the first direction.
    """
    played = play(LEARNER, PAIR, Draws(1, Stage.PILOT), RUNS)
    train = play(LEARNER, PAIR, Draws(1, Stage.TRAIN), RUNS)
    assert separation(ResponseScore(LEARNER, PAIR)(played.actions), played) > 0.85
    assert separation(Trained.fit(LEARNER, PAIR, train).score(played), played) < 0.75


@pytest.mark.parametrize(
    ("surface", "t0", "applies"), [("actions", 0, True), ("release", 0, False), ("actions", 3, False)]
)
def test_where_it_applies(surface, t0, applies):
    losses = [Linear(slope=(0.0,), offset=0.0)] * T
    left, right = list(losses), list(losses)
    left[t0], right[t0] = Linear(slope=(1.0,), offset=0.0), Linear(slope=(-1.0,), offset=0.0)
    names = [attack.name for attack in applicable(LEARNER, Pair(left, right), VIEWS[surface])]
    assert ("responses along the changed gradient" in names) == applies
