"""The zoo of one-shot mechanisms: their laws against slow twins and definitions, and the exact discrete Laplace."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from overclaim.mechanisms.discrete import DiscreteLaplace, bernoulli_exp, discrete_laplace
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.one_shot.randomised_response import OneTimeRappor, Rappor, murmur3
from overclaim.mechanisms.one_shot.sparse_vector import (
    NO_ANSWER,
    STOPPED,
    NumericalSparseVector,
    SparseVector1,
    SparseVector2,
    SparseVector3ReleasesValue,
)
from overclaim.mechanisms.one_shot.zoo import zoo
from overclaim.mechanisms.specimen import patterns

FALSE_ALARM = 1e-6
RUNS = 40_000


def same_law(observed, law):
    """Chi-square test of counts against probabilities, at the false-alarm probability of this file."""
    kept = law * observed.sum() >= 10
    rest = np.array([observed[~kept].sum()]), np.array([law[~kept].sum()])
    counts, expected = np.append(observed[kept], rest[0]), np.append(law[kept], rest[1]) * observed.sum()
    full = expected > 0
    statistic = np.sum((counts[full] - expected[full]) ** 2 / expected[full])
    return stats.chi2.sf(statistic, max(1, full.sum() - 1)) > FALSE_ALARM


@pytest.mark.parametrize("name", zoo())
def test_outputs_have_the_runs_last_and_follow_their_draws(name):
    specimen = zoo()[name]
    mechanism = specimen.build()
    for left, right in specimen.pairs:
        for data in (left, right):
            outputs = mechanism(data, Draws(0), 16)
            assert outputs.shape[-1] == 16
            assert outputs.ndim in (1, 2)
            np.testing.assert_array_equal(outputs, mechanism(data, Draws(0), 16))
    assert specimen.claimed() > 0
    assert specimen.expected == ("falsified" if specimen.fault else "survived")


@pytest.mark.parametrize("name", zoo())
def test_broken_twins_carry_their_fault(name):
    specimen = zoo()[name]
    source = type(specimen.build()).__doc__
    broken = "Broken" in source or name.endswith("prefix-sum-all")
    assert broken == bool(specimen.fault)


def test_patterns_are_those_of_the_published_experiments():
    assert patterns(1, differ="one") == (([1], [0]), ([1], [2]))
    every = patterns(5, differ="all")
    assert len(every) == 8
    assert ([1, 1, 0, 0, 0], [0, 0, 1, 1, 1]) in every
    assert all(max(abs(a - b) for a, b in zip(*pair, strict=True)) == 1 for pair in every)


def test_laplace_without_noise_is_the_answer():
    """At a huge epsilon the noise vanishes: a deterministic oracle."""
    huge = zoo()["mechanisms/noisy-max-1"].build(1e12)
    assert set(huge([0, 2, 1, 0, 0], Draws(1), 50).tolist()) == {1}
    sums = zoo()["mechanisms/prefix-sum"].build(1e12)([1, 2, 3], Draws(1), 5)
    np.testing.assert_allclose(sums, np.repeat([[1.0], [3.0], [6.0]], 5, axis=1), atol=1e-9)


@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_truncated_geometric_law(count, epsilon):
    """The published cumulative function is a distribution, and neighbours are within the stated epsilon: exact."""
    mechanism = zoo()["mechanisms/truncated-geometric"].build(epsilon)
    laws = []
    for c in (count, max(0, count - 1)):
        cumulative, d = mechanism.cumulative(c)
        masses = np.diff([0, *cumulative])
        assert np.all(masses > 0)
        assert cumulative[-1] == d
        laws.append(masses / d)
    assert np.max(np.abs(np.log(laws[0] / laws[1]))) <= mechanism.claimed + 1e-12
    observed = np.bincount(mechanism([count], Draws(3), RUNS), minlength=6)
    assert same_law(observed, laws[0])


def slow_sparse_vector(data, rng, epsilon, limit, threshold, redraw, query_scale, threshold_scale):
    noisy_threshold = threshold + rng.laplace(scale=threshold_scale)
    answers, above = [], 0
    for query in data:
        if above >= limit:
            answers.append(-1)
        elif query + rng.laplace(scale=query_scale) >= noisy_threshold:
            answers.append(1)
            above += 1
            if redraw:
                noisy_threshold = threshold + rng.laplace(scale=threshold_scale)
        else:
            answers.append(0)
    return tuple(answers)


@pytest.mark.parametrize(
    ("kind", "redraw", "query_scale", "threshold_scale"),
    [(SparseVector1, False, 8.0, 2.0), (SparseVector2, True, 8.0, 4.0)],
)
def test_sparse_vector_against_its_slow_twin(kind, redraw, query_scale, threshold_scale):
    """4000 runs of the slow twin; chi-square of two samples, false-alarm probability 1e-6."""
    data, rng = [2, 0, 1, 2], np.random.default_rng(0)
    fast = kind(1.0, limit=2)(data, Draws(5), 4000)
    slow = [slow_sparse_vector(data, rng, 1.0, 2, 1.0, redraw, query_scale, threshold_scale) for _ in range(4000)]
    outcomes = sorted({*map(tuple, fast.T.tolist()), *slow})
    table = np.array([[list(map(tuple, fast.T.tolist())).count(o), slow.count(o)] for o in outcomes])
    table = table[table.sum(axis=1) >= 20]
    assert stats.chi2_contingency(table.T).pvalue > FALSE_ALARM


@pytest.mark.parametrize("kind", [SparseVector3ReleasesValue, NumericalSparseVector])
def test_numbers_are_released_only_above_and_at_most_limit_times(kind):
    answers = kind(1.0, limit=1)([1] * 6, Draws(2), 500)
    numbers = np.isfinite(answers)
    assert np.all(numbers.sum(axis=0) <= 1)
    assert np.all(np.isneginf(answers) == (np.cumsum(numbers, axis=0) - numbers >= 1))


def test_murmur3_known_values():
    """Published test vectors, seed 0 and 1, as signed integers."""
    assert [murmur3("hello", 0), murmur3("", 1), murmur3("foo", 0)] == [613153351, 1364076727, -156908512]


@pytest.mark.parametrize("mechanism", [Rappor(), OneTimeRappor()])
def test_rappor_rates(mechanism):
    """40,000 runs; each bit's rate within 6 sd. The claim covers any two values."""
    bits, (low, high) = mechanism.filter(7), mechanism.rates()
    observed = mechanism([7], Draws(0), RUNS).mean(axis=1)
    assert np.all(np.abs(observed - np.where(bits, high, low)) < 6 * 0.5 / math.sqrt(RUNS))
    worst = 2 * mechanism.hashes * math.log(high / low)
    assert mechanism.claimed >= worst - 1e-12


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (5, 7)])
def test_bernoulli_exp(numerator, denominator):
    """40,000 draws; within 6 sd."""
    drawn = bernoulli_exp(np.full(RUNS, numerator), denominator, np.random.default_rng(1))
    assert abs(drawn.mean() - math.exp(-numerator / denominator)) <= 6 * 0.5 / math.sqrt(RUNS)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 2), Fraction(7, 3)])
def test_discrete_laplace_law(scale):
    """40,000 draws against the law exp(-|x| / scale); false-alarm probability 1e-6."""
    noise = discrete_laplace(scale, RUNS, np.random.default_rng(2))
    values = np.arange(-60, 61)
    law = np.exp(-np.abs(values) / float(scale))
    observed = np.array([(noise == v).sum() for v in values])
    assert observed.sum() == RUNS
    assert same_law(observed, law / law.sum())


def test_discrete_laplace_refuses_what_is_no_integer():
    with pytest.raises(ValueError, match="needs integers"):
        DiscreteLaplace()([0.5], Draws(0), 3)
    with pytest.raises(ValueError, match="needs integers"):
        zoo()["mechanisms/tree-sums-discrete"].build()([1, 0.5], Draws(0), 3)
    with pytest.raises(ValueError, match="positive"):
        discrete_laplace(Fraction(0), 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="epsilon must be positive"):
        DiscreteLaplace(0.0)([1], Draws(0), 3)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("svt1", {"limit": 0}, "limit must be an integer in 1..10000, got 0"),
        ("svt2", {"limit": -3}, "limit must be an integer in 1..10000, got -3"),
        ("numerical-svt", {"limit": True}, "limit must be an integer in 1..10000, got True"),
        ("svt34-parallel", {"limit": 2.0}, "limit must be an integer in 1..10000, got 2.0"),
        ("svt6", {"threshold": math.nan}, "threshold must be a finite number, got nan"),
        ("svt34-parallel", {"threshold": "abc"}, "threshold must be a finite number, got 'abc'"),
        ("svt1", {"threshold": 10**400}, "threshold must be a finite number, got 1000"),
        ("rappor", {"hashes": 0}, "hashes must be an integer in 1..10000, got 0"),
        ("rappor", {"f": 1e-17, "p": 0.0, "q": 1.0}, "leave a released bit in doubt, got 1e-17, 0.0 and 1.0"),
        ("discrete-gaussian", {"rho": 1e-4}, "rho must be so large that sigma is at most 32, got 0.0001"),
        ("discrete-gaussian-sigma-for-variance", {"rho": 0.01}, "sigma is at most 32, got 0.01"),
        ("one-time-rappor", {"size": 10**9}, "size must be an integer in 1..10000, got 1000000000"),
        ("one-time-rappor", {"f": 0}, r"f must be in \(0, 1\], got 0"),
        ("rappor", {"f": 1.5}, r"f must be in \(0, 1\], got 1.5"),
        ("rappor", {"p": 0.6}, "p and q must be rates with 0 <= p < q <= 1, got 0.6 and 0.55"),
        ("rappor", {"q": None}, "p and q must be rates with 0 <= p < q <= 1, got 0.45 and None"),
        ("laplace", {"epsilon": "abc"}, "epsilon must be positive and finite, got 'abc'"),
        ("prefix-sum", {"epsilon": math.inf}, "epsilon must be positive and finite, got inf"),
        ("noisy-max-1", {"epsilon": 1e-310}, "epsilon must be at least 1e-140, got 1e-310"),
        ("laplace", {"epsilon": 1e141}, r"epsilon must be at most 1e\+140, got 1e\+141"),
        ("tree-sums-discrete", {"epsilon": 1e-9}, "epsilon must be at least 1e-06, got 1e-09"),
        ("truncated-geometric", {"epsilon": 1e-6}, "epsilon is too small for 64-bit integers, got 1e-06"),
        ("discrete-laplace", {"epsilon": math.inf}, "epsilon must be positive and finite, got inf"),
        ("discrete-laplace", {"epsilon": 1e-9}, "epsilon must be at least 1e-06, got 1e-09"),
        ("discrete-laplace", {"epsilon": 1e9}, "epsilon must be at most 2000, got 1000000000.0"),
    ],
)
def test_a_parameter_outside_its_range_is_refused_when_the_mechanism_is_made(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        zoo()[f"mechanisms/{name}"].build(**parameters)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("svt1", {"epsilon": 1e-140, "limit": 10_000}),
        ("laplace", {"epsilon": 1e140}),
        ("rappor", {"f": 1, "p": 0, "q": 1, "hashes": 40}),
        ("discrete-laplace", {"epsilon": 1e-6}),
        ("discrete-laplace", {"epsilon": 1999.9999999}),
        ("truncated-geometric", {"epsilon": 0.001}),
    ],
)
def test_a_parameter_at_the_end_of_its_range_is_taken(name, parameters):
    specimen = zoo()[f"mechanisms/{name}"]
    assert np.shape(specimen.build(**parameters)(specimen.pairs[0][0], Draws(0), 8))[-1] == 8


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_answers_that_are_not_released_are_marked(limit):
    """Below the threshold, or after the limit: the numbers that are released keep all their bits."""
    above = np.random.default_rng(limit).random((6, 500)) < 0.4
    numbers = np.where(above, -0.0, 1.0)
    mechanism = SparseVector1(1.0, limit=limit)
    before = np.cumsum(above, axis=0) - above
    np.testing.assert_array_equal(mechanism.stopped(above), before >= limit)
    released = mechanism.released(numbers, above)
    kept = above & (before < limit)
    assert released[kept].tobytes() == numbers[kept].tobytes()
    np.testing.assert_array_equal(released[~kept], np.where(before >= limit, STOPPED, NO_ANSWER)[~kept])
