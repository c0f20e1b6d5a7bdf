"""Counts of the arms from the differing round on: what they hold, where they apply, and a learner that they catch."""

import numpy as np
import pytest

from overclaim import Claim, falsify
from overclaim.audit.attacks.counts import CELLS, NextArms
from overclaim.audit.attacks.learner_attacks import applicable
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import Transcripts, play
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.catalogue.entries import lookup
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.view import ACTIONS, VIEWS


def pair(rounds, arms, t0=0):
    left = np.ones((rounds, arms))
    right = left.copy()
    right[t0] = 0
    return Pair(left, right)


def ftpl(rounds, arms):
    entry = lookup("asi-raman-talwar/batched-ftpl")
    return entry.build(entry.setting(rounds=rounds, arms=arms), batch=1)


def bandit(arms, batch=1):
    return BatchedLaplace(inner=Exp3(arms=arms, eta=0.5, gamma=0.1), epsilon=1.0, batch=batch)


@pytest.mark.parametrize("alike", [True, False])
def test_the_table_holds_the_log_ratio_of_counts(alike):
    learner, worlds = bandit(8), pair(20, 8, t0=4)
    train = play(learner, worlds, Draws(1), 2000)
    attack = NextArms(learner, worlds, train, alike=alike, many=3)
    a, b, c = train.actions[4:7].astype(int)
    for run in (0, 7, 1999):
        if alike:
            same = ((a == b) == (a[run] == b[run])) & ((a == c) == (a[run] == c[run]))
            same &= (b == c) == (b[run] == c[run])
        else:
            same = (a == a[run]) & (b == b[run]) & (c == c[run])
        ratio = np.log((same & train.left).sum() + 0.5) - np.log((same & ~train.left).sum() + 0.5)
        assert attack.score(train)[run] == pytest.approx(ratio, abs=1e-6)
    assert attack.cells <= CELLS


def test_it_reads_batches_and_nothing_before_the_differing_round():
    learner, worlds = bandit(8, batch=2), pair(40, 8, t0=21)
    train = play(learner, worlds, Draws(1), 500)
    attack = NextArms(learner, worlds, train, alike=False, many=2)
    other = train.actions.copy()
    other[:20], other[21], other[24:] = 0, 0, 0  # rounds 21 and 22 are one batch, 23 and 24 the next
    np.testing.assert_array_equal(attack.score(Transcripts(other, train.left)), attack.score(train))
    other[22] = 1 - (train.actions[22] > 0)
    assert (attack.score(Transcripts(other, train.left)) != attack.score(train)).any()


def test_it_is_tried_where_arms_are_too_many_to_count():
    assert NextArms in applicable(ftpl(64, 8), pair(64, 8), ACTIONS)
    for learner, worlds, surface in (
        (ftpl(64, 8), pair(64, 8, t0=63), "actions"),
        (ftpl(64, 8), pair(64, 8), "release"),
        (ftpl(4, 3), pair(4, 3), "actions"),
    ):
        assert NextArms not in applicable(learner, worlds, VIEWS[surface])


def test_arms_that_differ_are_counted_as_they_are():
    """Only arm 0 tells: 4,000 runs in which the next arm is 0 twice as often in one world."""
    rng, left = np.random.default_rng(0), np.arange(4000) % 2 == 0
    actions = rng.integers(0, 8, (20, 4000)).astype(np.int8)
    actions[1] = np.where(rng.random(4000) < np.where(left, 0.5, 0.1), 0, rng.integers(1, 8, 4000))
    actions[0] = rng.integers(1, 8, 4000)  # never the same as a telling one, so that equal arms tell nothing of it
    attack = NextArms.fit(bandit(8), pair(20, 8), Transcripts(actions, left))
    assert not attack.alike
    scores = attack.score(Transcripts(actions, left))
    assert scores[actions[1] == 0].mean() > 1


def test_a_learner_without_a_law_is_caught_over_long_horizons():
    """20,000 runs, seed fixed: 0 was certified before, by any of the attacks on all 16 rounds."""
    result = falsify(ftpl(16, 8), Claim(epsilon=1.0), pair=pair(16, 8), runs=20_000, seed=1)
    assert result.attack == NextArms.name
    assert result.epsilon_lower > 0.25
