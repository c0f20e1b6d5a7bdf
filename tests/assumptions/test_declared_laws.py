"""What learners say of themselves: the truthful pass, and each lie is named. False alarm 1e-9 a check, seeded."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from overclaim import Claim, Pair, check_learner, falsify
from overclaim.audit.assumptions.declared_laws import WithoutProbabilities, check_stated
from overclaim.audit.play.transcripts import play
from overclaim.audit.verdicts.verdict import Verdict
from overclaim.learners import BatchedLaplace, Exp3, LearnerError, MiniBatch
from overclaim.learners.catalogue.entries import entries
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.view import RELEASE

EXP3 = Exp3(arms=2, eta=0.5, gamma=0.1)
PAIR = Pair([[1.0, 1.0]] * 8, [[0.0, 0.0]] + [[1.0, 1.0]] * 7)
CONTRASTS = [[1.0, 0.0], [0.0, 1.0]]


@dataclass(frozen=True)
class LastLoss:
    """Play arm 1 iff the last loss was above 1/2, and say that each arm is as likely: the leak is total."""

    arms: int = 2
    feedback: str = "bandit"

    def start(self, runs, draws):
        return {"loss": np.zeros(runs)}

    def act(self, state, draws):
        return (state["loss"] > 0.5).astype(np.intp)

    def probabilities(self, state):
        return np.full((2, state["loss"].size), 0.5)

    def update(self, state, actions, feedback, draws):
        state["loss"] = feedback


@dataclass(frozen=True)
class CoinFirst(LastLoss):
    """The same, but the first arm is drawn, and half of all losses are high: on average over the runs all is well."""

    def start(self, runs, draws):
        return {"loss": draws.uniform(runs)}


def test_a_lie_about_the_next_arm_is_refused():
    message = r"LastLoss plays otherwise .* in round 1 arm 0 has probability 0.5 by what it says, but a share of 1 of"
    for check in (check_learner, lambda learner: falsify(learner, Claim(epsilon=1.0), rounds=6, runs=30_000)):
        with pytest.raises(LearnerError, match=message):
            check(LastLoss())


def test_a_lie_that_averages_out_is_refused():
    fair = Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    message = r"in round 2 arm . has .* 0.5 by what it says, but a share of [01] of .* played the round before, at a"
    with pytest.raises(LearnerError, match=message):
        check_stated(CoinFirst(), fair, 0)


@dataclass(frozen=True, kw_only=True)
class Louder(Exp3):
    """EXP3 that says the probabilities of another exploration."""

    said: float

    def probabilities(self, state):
        return replace(EXP3, gamma=self.said).probabilities(state)


@pytest.mark.parametrize("said", [0.0, 0.6])
def test_small_lies_are_seen_over_all_rounds(said):
    """Neither a round nor the average over the runs tells."""
    learner = Louder(arms=2, eta=0.5, gamma=0.3, said=said)
    pair = Pair([[1.0, 1.0]] * 32, [[0.0, 0.0]] + [[1.0, 1.0]] * 31)
    with pytest.raises(LearnerError, match=r"in rounds? .* where it was called"):
        check_stated(learner, pair, 0, rows=CONTRASTS)


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (lambda p: p[:1], r"have shape \(arms, runs\)"),
        (lambda p: 2 * p, "sum to 1 over the arms, got 2"),
        (lambda p: np.stack([1.5 + 0 * p[0], -0.5 + 0 * p[0]]), "be at least 0, got -0.5 in round 1"),
    ],
)
def test_what_is_no_law_is_refused(law, told):
    class Bad(LastLoss):
        def probabilities(self, state):
            return law(super().probabilities(state))

    with pytest.raises(LearnerError, match=told):
        check_stated(Bad(), PAIR, 0)


class Memo(Exp3):
    """EXP3 whose act learns from a loss that it draws itself: what it says is true, but no replay can know it."""

    def act(self, state, draws):
        arms = super().act(state, draws)
        self.update(state, arms, draws.uniform(arms.size), draws)
        return arms


def test_a_state_that_no_replay_knows_is_refused():
    with pytest.raises(LearnerError, match=r"depends on more than the arms and feedback .* \(round 2\)"):
        check_stated(Memo(arms=2, eta=0.5, gamma=0.1), PAIR, 0)


def test_an_arm_that_is_not_held_is_refused():
    class Hasty(LastLoss):
        batch = 4

    with pytest.raises(LearnerError, match=r"batch = 4, .* but in round 2 .* played another arm than in round 1"):
        check_stated(Hasty(), PAIR, 0)


@dataclass(frozen=True, kw_only=True)
class Quieter(BatchedLaplace):
    """Says a law of noise that is not its own: what is added, and what is said of it, is called in turn."""

    said: object
    off: float = 0.0

    def update(self, state, actions, feedback, draws):
        BatchedLaplace(self.inner, epsilon=self.epsilon, batch=self.batch).update(state, actions, feedback, draws)

    @property
    def noise(self):
        return self.said

    def release(self, state):
        return super().release(state)

    def release_means(self, actions, releases, feedback):
        return super().release_means(actions, releases, feedback) + self.off


@pytest.mark.parametrize(
    ("said", "off"), [(Laplace(1.2), 0.0), (Gaussian(2**0.5), 0.0), (Laplace(1.0), 0.2)], ids=["scale", "law", "mean"]
)
def test_a_release_that_is_not_its_mean_plus_noise_is_refused(said, off):
    learner = Quieter(EXP3, epsilon=1.0, batch=1, said=said, off=off)
    with pytest.raises(LearnerError, match="does not release its release_means plus its noise: among"):
        falsify(learner, Claim(epsilon=1.0, surface="release"), pair=PAIR, runs=1000)
    check_stated(learner, PAIR, 0)  # who sees actions only does not rely on it


def test_the_truthful_pass():
    """60 checks: a false alarm has probability 6e-8."""
    for seed in range(20):
        check_stated(EXP3, PAIR, seed, rows=CONTRASTS)
        check_stated(MiniBatch(EXP3, batch=3), PAIR, seed, rows=CONTRASTS)
        check_stated(Quieter(EXP3, epsilon=1.0, batch=1, said=Laplace(1.0)), PAIR, seed, view=RELEASE)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", list(entries()))
def test_the_catalogue_plays_what_it_says(name):
    entry = entries()[name]
    learner = entry.build(entry.setting(rounds=24, calibration="corrected"))
    result = check_learner(learner, rounds=24, seed=1)
    silent = name.startswith(("agarwal-singh/reduction-exp2-", "agarwal-singh/reduction-scrible"))
    assert ("abilities" in result.checked) is not silent
    assert "fresh state" in result.checked


@dataclass(frozen=True)
class NoisyWhenTold(LastLoss):
    """Adds noise to positive losses only, from some round on: what it says of its arms is true given its state."""

    after: int = 0

    def start(self, runs, draws):
        return {"total": np.zeros(runs), "round": 0}

    def probabilities(self, state):
        first = 1 / (1 + np.exp(-state["total"]))
        return np.stack([first, 1 - first])

    def act(self, state, draws):
        return (draws.uniform(state["total"].size) > self.probabilities(state)[0]).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        state["round"] += 1
        state["total"] -= np.asarray(feedback)
        if (np.asarray(feedback) > 0).any() and state["round"] > self.after:
            state["total"] += Laplace(1.0).sample(actions.shape, draws)


@pytest.mark.parametrize("after", [0, 3, 40])
def test_a_learner_that_draws_now_and_then_is_audited_without_its_probabilities(after):
    """Probes of zeros alone saw no draw, and exact attacks then ended in "draws noise of its own": exit 2."""
    rounds = after + 5
    worlds = Pair([[1.0, 1.0]] * rounds, [[0.0, 0.0]] + [[1.0, 1.0]] * (rounds - 1))
    result = falsify(NoisyWhenTold(after=after), Claim(epsilon=3.0), pair=worlds, runs=1000)
    assert "likelihood ratio" not in result.attack
    # One that never draws keeps its exact attack.
    quiet = falsify(NoisyWhenTold(after=10**6), Claim(epsilon=3.0), pair=worlds, runs=1000)
    assert "likelihood ratio" in quiet.attack


def test_what_the_hidden_probabilities_leave_is_the_same_learner():
    learner = NoisyWhenTold()
    kept = pickle.loads(pickle.dumps(WithoutProbabilities(learner)))
    assert (kept.arms, kept.feedback, hasattr(kept, "probabilities")) == (2, "bandit", False)
    played = [play(one, PAIR, Draws(3), 50).actions for one in (learner, kept)]
    np.testing.assert_array_equal(*played)


class Anew:
    """Releases every loss with Laplace noise, drawn as a way says."""

    feedback, arms, noise = "full", 2, Laplace(2.0)

    def __init__(self, way="anew"):
        self.way = way

    def start(self, runs, draws):
        return {"sum": np.zeros((2, runs)), "once": self.noise.sample((2, runs), draws), "last": None, "t": 0}

    def act(self, state, draws):
        return state["sum"].argmin(axis=0)

    def update(self, state, actions, feedback, draws):
        fresh = self.noise.sample(state["sum"].shape, draws)
        state["t"] += 1
        told = {
            "anew": fresh,
            "one for both arms": np.repeat(fresh[:1], 2, axis=0),
            "one for all rounds": state["once"],
            "the other way round": state["once"] * (-1) ** state["t"],
            "of one size": np.sign(fresh) * np.abs(state["once"]),
            "missing": np.where(draws.uniform(fresh.shape) < 0.01, 0.0, fresh),
            "half of it": fresh / 2,
        }[self.way]
        state["last"] = feedback + told
        state["sum"] += state["last"]

    def release(self, state):
        return state["last"].copy()

    def release_means(self, actions, releases, feedback):
        return np.stack([np.broadcast_to(f, r.shape) for f, r in zip(feedback, releases, strict=False)])


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("one for both arms", "does not draw its noise anew: that of"),
        ("one for all rounds", "does not draw its noise anew: that of"),
        ("the other way round", "does not draw its noise anew: that of"),
        ("of one size", "does not draw its noise anew: that of"),
        ("missing", "of 24,576 of its release_means without noise"),
    ],
)
def test_noise_that_is_not_drawn_anew_is_refused(way, told):
    """Every number had the stated law, so the likelihood ratio of independent ones was the attack: all survived."""
    claim = Claim(epsilon=1.0, surface="release")
    with pytest.raises(LearnerError, match=told):
        falsify(Anew(way), claim, rounds=4, runs=2000)
    assert falsify(Anew(), claim, rounds=4, runs=2000).verdict is Verdict.SURVIVED


def test_noise_of_another_scale_is_not_said_to_go_together():
    """All of it is smaller than is stated, in every round, and so are the products of any two."""
    with pytest.raises(LearnerError, match=r"of number \d has another law than"):
        falsify(Anew("half of it"), Claim(epsilon=1.0, surface="release"), rounds=4, runs=2000)
