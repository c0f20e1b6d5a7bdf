"""Intervals by betting: coverage against nominal, length against the normal interval, and refusals.

The intervals are exact whatever the stakes are; these tests would see a slip in the wealth, the cells or the pilot.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from overclaim.audit.statistics.bounds import betting
from overclaim.audit.statistics.bounds.betting import anytime_mean_interval, mean_interval, mean_intervals

LAWS = {
    "coin": (lambda rng, n: rng.random(n) < 0.5, 0.5),
    "rare": (lambda rng, n: rng.random(n) < 0.03, 0.03),
    "two points": (lambda rng, n: np.where(rng.random(n) < 0.1, 1.0, 0.45), 0.505),
    "skewed": (lambda rng, n: rng.beta(0.3, 3.0, n), 0.3 / 3.3),
    "nearly deterministic": (lambda rng, n: np.where(rng.random(n) < 0.002, 0.0, 0.7), 0.998 * 0.7),
}


def empirical_bernstein(x, low, high, alpha):
    """The simple twin: Maurer & Pontil 2009, Theorem 4, both sides."""
    log = math.log(4 / alpha)
    width = math.sqrt(2 * x.var(ddof=1) * log / x.size) + (high - low) * 7 * log / (3 * (x.size - 1))
    return x.mean() - width, x.mean() + width


def normal_width(x, alpha):
    return 2 * stats.norm.isf(alpha / 2) * x.std(ddof=1) / math.sqrt(x.size)


def misses(interval, law, *, times, n, alpha):
    draw, mean = LAWS[law]
    rng, missed = np.random.default_rng(0), 0
    for _ in range(times):
        low, high = interval(draw(rng, n).astype(float), 0.0, 1.0, alpha=alpha)
        missed += not low <= mean <= high
    return missed


@pytest.mark.few(2, rest="nightly")
@pytest.mark.slow(reason="200 intervals")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("interval", [mean_interval, anytime_mean_interval])
def test_coverage(interval, law):
    """200 samples of 120 at 90 %; the chance of a false alarm is at most 1e-6 for each test."""
    assert misses(interval, law, times=200, n=120, alpha=0.1) <= stats.binom.isf(1e-6, 200, 0.1)


#: Lower limits with error 0.01 in 16 samples: more misses than 4 have a chance of 1e-6.
TIMES, ERROR, MOST = 16, 0.01, int(stats.binom.isf(1e-6, 16, 0.01))


def lower_limit(x):
    return betting._lower_limits(x[:, None], np.array([ERROR]))[0]


def lower_misses(draw, mean, n):
    rng = np.random.default_rng(0)
    return sum(lower_limit(draw(rng, n).astype(float)) > mean for _ in range(TIMES))


def test_a_cell_counts_by_its_worse_end(monkeypatch):
    """A planted fault, wide cells and their better ends: fair coins show it."""
    draw, mean = LAWS["coin"]
    monkeypatch.setattr(betting, "_CELL", 6.0)
    assert lower_misses(draw, mean, 120) <= MOST
    right, width = betting._refuted, 6 * 0.5 / math.sqrt(108)
    monkeypatch.setattr(
        betting, "_refuted", lambda blocks, at, means, alpha: right(blocks, at, np.maximum(means - width, 1e-9), alpha)
    )
    assert lower_misses(draw, mean, 120) > MOST


def test_what_was_not_seen_below_the_floor_counts(monkeypatch):
    """If 7 in 10,000 are 0, half of the samples of 1000 have none: no limit of error 0.01 may then exceed the mean."""
    x, mean = 0.6995 + 0.001 * np.random.default_rng(0).random(1000), 0.9993 * 0.7
    monkeypatch.setattr(betting, "_MIN_PILOT", 100)  # a floor that is near enough to tell
    assert lower_limit(x) <= mean
    limit = betting._limit
    monkeypatch.setattr(
        betting,
        "_limit",
        lambda cells, about, alpha, rests, shares, floor: limit(
            cells, about, alpha, rests, np.ones_like(shares), floor
        ),
    )
    assert lower_limit(x) > mean


def test_a_surprise_below_the_floor_is_bet_on_without_it():
    """The limits of a sample with five observations far below all others: between those with and without a floor."""
    x = 0.69 + 0.02 * np.random.default_rng(0).random(2000)
    usual = lower_limit(x)
    x[100::450] = 0.0
    assert lower_limit(x) < x.mean() < usual


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("draw", "n", "most"),
    [
        (lambda rng, n: rng.random(n) < 0.5, 5000, 1.1),
        (lambda rng, n: np.clip(rng.normal(0.5, 0.1, n), 0, 1), 5000, 1.1),  # a range of 10 sd
        (lambda rng, n: np.clip(rng.normal(0.5, 0.02, n), 0, 1), 5000, 1.12),  # of 50 sd, by a floor
    ],
)
def test_length_beside_the_normal_interval(draw, n, most):
    """Means of two samples, seeded; no chance beyond the seed. `benchmarks/validity/intervals.py` has more of them."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(2):
        x = draw(rng, n).astype(float)
        low, high = mean_interval(x, 0.0, 1.0, alpha=0.01)
        ratios.append((high - low) / normal_width(x, 0.01))
        below, above = empirical_bernstein(x, 0.0, 1.0, 0.01)
        assert high - low < above - below
    assert np.mean(ratios) <= most


@settings(max_examples=30)
@given(
    st.lists(st.floats(-3, 5), min_size=2, max_size=60),
    st.sampled_from([0.5, 0.1, 1e-3, 1e-9]),
    st.sampled_from([mean_interval, anytime_mean_interval]),
)
def test_limits_are_in_range_and_around_something(values, alpha, interval):
    low, high = interval(values, -3.0, 5.0, alpha=alpha)
    assert -3 <= low < high <= 5
    wide = interval(values, -3.0, 5.0, alpha=alpha / 100)
    assert wide[1] - wide[0] >= (high - low) * 0.5


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.floats(-100, 100), st.floats(0.01, 100))
def test_units_do_not_matter(seed, shift, scale):
    x = np.random.default_rng(seed).random(200)
    low, high = mean_interval(x, 0.0, 1.0, alpha=0.05)
    moved = mean_interval(np.clip(shift + scale * x, shift, shift + scale), shift, shift + scale, alpha=0.05)
    np.testing.assert_allclose(moved, (shift + scale * low, shift + scale * high), rtol=1e-6, atol=1e-6 * scale)


def test_several_samples_have_the_limits_that_each_has_alone():
    """Samples of all kinds at once: with and without a floor, with a surprise below it, at errors of their own."""
    rng = np.random.default_rng(0)
    narrow = 0.6 + 0.02 * rng.random(200)
    surprise = narrow.copy()
    surprise[150] = 0.0
    samples = [(x, 0.0, 1.0) for x in (narrow, surprise, rng.random(200), (rng.random(200) < 0.03).astype(float))]
    alphas = [0.01, 0.1, 0.05, 0.01]
    together = mean_intervals(samples, alpha=alphas)
    alone = [mean_interval(*sample, alpha=alpha) for sample, alpha in zip(samples, alphas, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    assert mean_intervals([], alpha=0.1) == []
    with pytest.raises(ValueError, match="samples must have one size"):
        mean_intervals([(narrow, 0, 1), (narrow[:50], 0, 1)], alpha=0.1)


@pytest.mark.parametrize("alpha", [0.01, 1e-4])
def test_how_many_cells_are_asked_about_at_once_changes_nothing(monkeypatch, alpha):
    """Nor does it when hypotheses that are refuted are set aside; the limits are the same to the last bit."""
    rng = np.random.default_rng(24)
    samples = [(rng.normal(50, spread, 300).clip(0, 300), 0.0, 300.0) for spread in (0.1, 1, 5, 50)]
    limits = mean_intervals(samples, alpha=alpha)
    monkeypatch.setattr(betting, "_STANDING", 0.0)
    monkeypatch.setattr(betting, "_MAX_AT_ONCE", betting._GROUP)
    assert mean_intervals(samples, alpha=alpha) == limits


def test_looking_later_never_takes_back_what_was_refuted():
    x = (np.random.default_rng(1).random(2000) < 0.3).astype(float)
    limits = [anytime_mean_interval(x[:n], 0.0, 1.0, alpha=0.05) for n in (50, 200, 800, 2000)]
    assert all(a[0] <= b[0] + 1e-9 and b[1] <= a[1] + 1e-9 for a, b in itertools.pairwise(limits))


@pytest.mark.parametrize("interval", [mean_interval, anytime_mean_interval])
@pytest.mark.parametrize(
    ("values", "low", "high", "alpha", "words"),
    [
        ([0.5, 2.0], 0.0, 1.0, 0.05, "values must lie in"),
        ([0.5, math.nan], 0.0, 1.0, 0.05, "values must lie in"),
        ([0.5], 0.0, 1.0, 0.05, "at least 2"),
        ([0.5, 0.5], 1.0, 1.0, 0.05, "low must be below high"),
        ([0.5, 0.5], 0.0, math.inf, 0.05, "both finite"),
        ([0.5, 0.5], 0.0, 1.0, 1.0, "alpha must be in"),
    ],
)
def test_refusals(interval, values, low, high, alpha, words):
    with pytest.raises(ValueError, match=words):
        interval(values, low, high, alpha=alpha)
