"""The laws behind the benchmarks' column "attainable": against exact epsilons, and what audits certify."""

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.pipeline.falsify import falsify_mechanism
from overclaim.benchmarks.power import attainable, laws
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.one_shot.zoo import zoo


@pytest.mark.parametrize(
    ("name", "left", "right", "epsilon"),
    [
        ("laplace", [0], [1], 1.0),
        ("laplace-half-scale", [0], [1], 2.0),
        ("svt6", [1] * 5 + [0] * 5, [0] * 5 + [1] * 5, 4.031),
        ("svt4", [1] * 10, [2] * 5 + [0] * 5, 1.742),
        ("noisy-max-1", [1] * 5, [0] + [2] * 4, 0.980),
        ("noisy-max-3", [1] * 5, [2] * 5, 2.500),
    ],
)
def test_the_largest_log_ratio_is_the_exact_epsilon(name, left, right, epsilon):
    """Exact values by another quadrature, to the digits that they were given with."""
    table = laws.law(zoo()[f"mechanisms/{name}"].build(1.0), (left, right))
    np.testing.assert_allclose(table.sum(axis=1), 1)
    seen = table.min(axis=0) > 1e-9
    ratio = np.log(table[0, seen] / table[1, seen])
    assert np.abs(ratio).max() == pytest.approx(epsilon, abs=6e-4)


@pytest.mark.few("noisy-max-1", rest="nightly")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("laplace", marks=pytest.mark.slow),
        "noisy-max-1",
        "svt5",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("truncated-geometric", "noisy-max-2", "svt1", "svt4")
        ),
    ],
)
def test_no_audit_certifies_much_more_than_is_attainable(name):
    """A certificate five standard deviations beyond has probability 3e-7; one of the exact law would be as wrong."""
    specimen = zoo()[f"mechanisms/{name}"]
    mechanism = specimen.build(1.0)
    best, spread = attainable.attainable(mechanism, specimen.pairs, runs=20_000, alpha=0.05)
    result = falsify_mechanism(mechanism, Claim(epsilon=1.0), pairs=specimen.pairs, runs=20_000, confidence=0.95)
    assert result.epsilon_lower <= best + 5 * spread


def test_where_half_a_wrong_guess_is_expected_the_bound_is_a_mean():
    """Half a guess rounds to none, which promises 0.35 more than the mean over the counts' chance."""

    def bound(right, wrong, runs):
        return np.log(right + 1.0) - np.log(wrong + 1.0)

    right, wrong = np.array([40.0, 40_000.0]), np.array([0.5, 10_000.0])
    counts = np.arange(200)
    chances = [stats.poisson.pmf(counts, one[0])[:, None] for one in (right, wrong)]
    mean = float((bound(counts[:, None], counts, 0) * chances[0] * chances[1].T).sum())
    few, many = attainable.expected(bound, right, wrong, np.full(2, 10**6))
    assert few == pytest.approx(mean, abs=0.06)
    assert bound(40, 0, 0) > mean + 0.3
    assert many == bound(40_000, 10_000, 0)


@pytest.mark.parametrize(("right", "wrong"), [(150.0, 2.7), (40.0, 0.4), (5000.0, 700.0)])
def test_the_mean_and_deviation_over_chance_are_those_of_drawn_counts(right, wrong):
    """40,000 draws: six of their standard errors, and the share by which a few points stand for all large counts."""

    def bound(right, wrong, runs):
        return np.log(right + 1.0) - np.log(wrong + 1.0)

    runs, draws = 100_000, 40_000
    rng = np.random.default_rng(0)
    seen = bound(rng.binomial(runs, right / runs, draws), rng.binomial(runs, wrong / runs, draws), runs)
    event = attainable.LikelyEvent(0.0, bound, (right, runs), (wrong, runs), runs)
    mean, deviation = event.over_chance()
    assert mean == pytest.approx(seen.mean(), abs=6 * seen.std() / draws**0.5 + 1e-4)
    assert deviation == pytest.approx(seen.std(), rel=0.03)


@pytest.mark.slow(reason="the law of 200,000 runs")
def test_a_perfect_attack_on_a_rare_event_varies():
    """Three wrong guesses are expected of the best event of svt6: the bound's deviation is a twelfth of it."""
    specimen = zoo()["mechanisms/svt6"]
    best, deviation = attainable.attainable(specimen.build(1.0), specimen.pairs[-1:], runs=200_000, alpha=0.05)
    assert best == pytest.approx(3.467, abs=2e-3)
    assert deviation == pytest.approx(0.273, abs=2e-3)
