"""Rounding: equals stay equal, whatever their last bits. Bisection: each end keeps its side."""

import math

import numpy as np
import pytest

from overclaim.audit.attacks.learner_attacks import SequenceRatio
from overclaim.audit.attacks.outputs.regressions import LinearOdds
from overclaim.audit.play.pairs import Pair
from overclaim.audit.statistics.event_choice import Certification, Odds, PilotScores, choose
from overclaim.audit.statistics.event_rule import choose_from_laws
from overclaim.audit.statistics.sequential import choose_growing_event
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.mechanisms.numerics import best, bisect, least, rounded, significant


def jitter(values, rng):
    """Move every number by up to two units in the last place, as other processors do."""
    return values * (1 + rng.integers(-2, 3, np.shape(values)) * 2.0**-52)


def test_short_decimals_and_what_is_no_number_stay():
    whole = np.random.default_rng(0).integers(-(10**12), 10**12, 100_000) / 1e9
    np.testing.assert_array_equal(rounded(whole), whole)
    odd = [np.nan, np.inf, -np.inf, 0.0, -(2.0**60)]
    np.testing.assert_array_equal(rounded(odd), odd)
    np.testing.assert_array_equal(significant(odd, 20), odd)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 40.0, 1e4, 1e9])
def test_last_bits_are_gone(scale):
    """50,000 numbers that short fractions make, each moved 4 times: none is split, though each may be a tie."""
    rng = np.random.default_rng(1)
    fractions = rng.integers(-999, 1000, 50_000) / 2.0 ** rng.integers(0, 10, 50_000)
    values = fractions * scale
    for _ in range(4):
        np.testing.assert_array_equal(rounded(jitter(values, rng)), rounded(values))


def test_rounding_is_near_and_keeps_the_order():
    values = np.sort(np.random.default_rng(2).normal(size=10_000) * np.geomspace(1e-6, 1e6, 10_000))
    short = rounded(values)
    assert np.all(np.diff(short) >= 0)
    assert np.all(np.abs(short - values) <= np.maximum(1e-9, 2e-13 * np.abs(values)))


def test_the_best_is_the_first_of_equals():
    assert best([0.3, 0.1 + 0.2, 0.3 - 1e-16]) == 0
    assert best([np.nan, -np.inf, 1.0, 1.0 + 1e-12]) == 2
    assert best([[0.0, 1.0], [1.0 + 1e-6, 1.0]]) == 2


def sharp(rounds, t0):
    worlds = np.ones((2, rounds, 2))
    worlds[1, t0] = 0.0
    return SequenceRatio(BatchedLaplace(Exp3(arms=2, eta=2.0, gamma=0.02), epsilon=1.0, batch=1), Pair(*worlds))


@pytest.mark.parametrize("t0", [0, 3])
def test_an_event_does_not_hang_on_the_last_bits_of_a_law(t0):
    """What differs last reaches no action: the variances that decide the share are 0, or 0 but for the last bits."""
    rng = np.random.default_rng(3)
    scores, p, q = sharp(4, t0).laws
    game = {"delta": 0.0, "alpha": 1e-4, "runs": 200_000}
    wanted = choose_from_laws(scores, p, q, **game)
    growing = choose_growing_event(scores, p / 2, q / 2, epsilon=0.5, delta=0.0, seen=None)
    for _ in range(40):
        moved = [jitter(law, rng) for law in (p, q)]
        assert choose_from_laws(scores, *moved, **game) == wanted
        halves = [law / 2 for law in moved]
        assert choose_growing_event(scores, *halves, epsilon=0.5, delta=0.0, seen=None) == growing


def test_an_event_of_a_pilot_does_not_hang_on_the_last_bits_of_its_fit(monkeypatch):
    """The smoothing solves linear systems, whose last bits are the BLAS kernel's."""
    from overclaim.audit.statistics.odds import walks

    rng = np.random.default_rng(4)
    left = rng.random(4000) < 0.5
    scores = rounded(rng.normal(size=4000) + left)
    certification = Certification(0.0, 1e-4, 100_000)
    expected = choose(PilotScores(scores, left, Odds.ESTIMATED), certification)
    walk, logs = walks._walk, np.log
    monkeypatch.setattr(walks, "_walk", lambda *a: tuple(jitter(walked, rng) for walked in walk(*a)))
    monkeypatch.setattr(np, "log", lambda x: jitter(logs(x), rng))
    for _ in range(10):
        assert choose(PilotScores(scores, left, Odds.ESTIMATED), certification) == expected


def test_a_regression_does_not_hang_on_the_last_bits_of_its_sums():
    """What training finds is rounded: 20 fits of moved features score alike; an odd one out of 1e4 fits would not."""
    rng = np.random.default_rng(5)
    left = rng.random(5000) < 0.5
    matrix = np.round(rng.normal(size=(5000, 6)) + 0.3 * left[:, None], 3)
    matrix[:, 5] = 0.1  # constant but for its last bits, which may not be taken for a signal
    wanted = LinearOdds.fit(matrix, left)
    scores = wanted(5000, lambda i: matrix[:, i])
    assert scores[left].mean() > 0.2 > scores[~left].mean()
    for _ in range(20):
        moved = LinearOdds.fit(jitter(matrix, rng), left)
        np.testing.assert_array_equal(moved.weights, wanted.weights)
        np.testing.assert_array_equal(moved(5000, lambda i: matrix[:, i]), scores)


@pytest.mark.parametrize("edge", [0.1, 0.5, 0.999])
def test_each_end_is_on_its_own_side(edge):
    low, high = bisect(lambda x: x <= edge, 0.0, 1.0, steps=12)
    assert low <= edge < high
    assert high - low == 2.0**-12
    low, high = bisect(lambda x: x <= edge, 0.0, 1.0)
    assert (low, high) == (edge, math.nextafter(edge, 1))


@pytest.mark.parametrize(("edge", "length"), [(3.25, 1.0), (4.0, 1.0), (4.01, 2.0), (300.0, 512.0)])
def test_the_least_is_looked_for_in_the_smallest_power_of_two(edge, length):
    asked = []

    def holds(x):
        asked.append(x)
        return x >= edge

    found = least(holds, 3.0, steps=10)
    assert holds(found)
    assert found - length / 2**10 < edge
    assert max(x for x in asked if x < math.inf) == 3.0 + length


def test_what_holds_nowhere_has_no_least():
    assert least(lambda x: False, 1.0) == math.inf
