"""The ladder probe: its exact law inside the conversion, and how much it leaks."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.laws.exact import epsilon_from_laws
from overclaim.audit.laws.sequences import index_of
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners.conversions.batched import BatchedLaplace
from overclaim.learners.probes.ladder import Ladder
from overclaim.learners.probes.threshold import Threshold
from overclaim.mechanisms.draws import Draws


def rung_law(thresholds, loss, scale):
    """The law of the rung on which loss + Laplace(scale) stands."""
    below = stats.laplace.cdf([-math.inf, *thresholds, math.inf], loc=loss, scale=scale)
    above = stats.laplace.sf([-math.inf, *thresholds, math.inf], loc=loss, scale=scale)
    return np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))


def law(thresholds, world, scale):
    """The law of all sequences of arms: each arm depends on the last one's loss only."""
    arms, rounds = len(thresholds) + 1, len(world)
    probabilities = []
    for sequence in itertools.product(range(arms), repeat=rounds):
        steps = [rung_law(thresholds, world[t][sequence[t]], scale)[sequence[t + 1]] for t in range(rounds - 1)]
        probabilities.append(math.prod(steps) if sequence[0] == 0 else 0.0)
    return np.array(probabilities)


THRESHOLDS = (0.0, 0.5, 1.0)
WORLDS = ([[1.0] * 4, [0.2, 0.9, 0.4, 0.0], [1.0] * 4], [[0.0] * 4, [0.2, 0.9, 0.4, 0.0], [1.0] * 4])


def test_plays_have_the_exact_law():
    """Chi-square over all reachable sequences: seed 0, 200,000 runs, false alarm 1e-6."""
    learner = BatchedLaplace(inner=Ladder(thresholds=THRESHOLDS), epsilon=1.0, batch=1)
    seen = play(learner, Pair(*WORLDS), Draws(0), 200_000)
    for world, labels in zip(WORLDS, (seen.left, ~seen.left), strict=True):
        expected = law(THRESHOLDS, world, 1.0)
        counts = np.bincount(index_of(seen.actions[:, labels], 4, 1), minlength=64)
        assert not counts[expected == 0].any()
        reached = expected > 0
        assert stats.chisquare(counts[reached], expected[reached] * counts.sum()).pvalue > 1e-6


@pytest.mark.parametrize(("thresholds", "decisive"), [((1.0,), False), ((0.0, 1.0), True), (THRESHOLDS, True)])
def test_leaks_epsilon_exactly_and_at_both_ends(thresholds, decisive):
    p, q = (law(thresholds, [[loss] * 4, [0.0] * 4], 0.5) for loss in (1.0, 0.0))
    assert epsilon_from_laws(p, q) == pytest.approx(2.0)
    ratios = np.log(p[p > 0] / q[p > 0])
    assert ratios.max() == pytest.approx(2.0)
    assert (ratios.min() == pytest.approx(-2.0)) == decisive


def test_two_rungs_are_the_threshold_probe():
    draws, fed = Draws(0), np.array([0.2, 0.5, 0.7, -3.0])
    for t in range(3):
        arms = []
        for learner in (Ladder(thresholds=(0.5,)), Threshold(arms=2, threshold=0.5)):
            state = learner.start(4, draws)
            learner.update(state, np.zeros(4, dtype=np.intp), fed + t, draws)
            arms.append(learner.act(state, draws).tolist())
            assert (learner.probabilities(state).argmax(axis=0) == arms[-1]).all()
        assert arms[0] == arms[1]


def test_thresholds_must_increase():
    with pytest.raises(ValueError, match=r"thresholds must increase, got \(1.0, 1.0\)"):
        Ladder(thresholds=(1.0, 1.0))
