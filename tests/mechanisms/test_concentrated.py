"""Mechanisms that claim rho or (epsilon, delta): their laws, and that each broken twin is caught and no sound one."""

import math

import numpy as np
import pytest
from scipy import stats

from overclaim import Claim, falsify_mechanism
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.measures.gaussian_dp import gaussian_delta
from overclaim.mechanisms.measures.renyi import ZCDP
from overclaim.mechanisms.one_shot.concentrated import (
    AnalyticGaussian,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    SquareRootSums,
    TreeSumsGaussian,
)
from overclaim.mechanisms.one_shot.zoo import zoo

NAMES = [name for name, specimen in zoo().items() if hasattr(specimen.build(), "measure")]
BROKEN = [name for name in NAMES if zoo()[name].fault]


def test_there_are_five_with_a_broken_twin_each():
    assert len(NAMES) == 10
    assert len(BROKEN) == 5


@pytest.mark.few("mechanisms/gaussian-twice-rho", "mechanisms/analytic-gaussian-sigma-for-variance")
@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_twin_is_falsified_in_its_own_measure(name):
    specimen = zoo()[name]
    mechanism = specimen.build()
    result = falsify_mechanism(mechanism, Claim(measure=mechanism.measure), pairs=specimen.pairs, runs=12_000)
    assert result.verdict.value == "FALSIFIED", str(result)


@pytest.mark.parametrize(
    "name", ["mechanisms/gaussian", pytest.param("mechanisms/square-root-sums", marks=pytest.mark.slow)]
)
def test_a_sound_one_survives(name):
    """At 99.9999 %: a false alarm has probability 1e-6 at most."""
    specimen = zoo()[name]
    mechanism, how = specimen.build(), {"runs": 12_000, "confidence": 1 - 1e-6}
    assert (
        falsify_mechanism(mechanism, Claim(measure=mechanism.measure), pairs=specimen.pairs, **how).lower
        <= mechanism.rho
    )


@pytest.mark.parametrize("make", [TreeSumsGaussian, SquareRootSums])
def test_the_divergence_of_noisy_prefix_sums_is_at_most_rho_and_nearly_so(make):
    """The noise is normal with a covariance that is estimated here: (A d)' C^-1 (A d) / 2 is the divergence."""
    horizon, rho = 8, 0.5
    noise = make(rho)([0.0] * horizon, Draws(1), 200_000)
    covariance = np.cov(noise)
    costs = []
    for t in range(horizon):
        moved = 2.0 * (np.arange(horizon) >= t)  # replacing 1 by -1 in round t
        costs.append(float(moved @ np.linalg.solve(covariance, moved)) / 2)
    assert max(costs) == pytest.approx(rho, rel=0.02)
    assert min(costs) > 0


def test_the_square_root_is_a_root_of_the_matrix_of_prefix_sums():
    first = SquareRootSums.coefficients(9)
    at = np.subtract.outer(np.arange(9), np.arange(9))
    root = np.where(at >= 0, first[np.maximum(at, 0)], 0.0)
    np.testing.assert_allclose(root @ root, np.tri(9), atol=1e-12)
    assert first[2] == math.comb(4, 2) / 4**2


def test_the_analytic_gaussian_is_exactly_its_claim():
    mechanism = AnalyticGaussian(0.7, 0.02)
    assert mechanism.measure == ApproxDP(0.7, 0.02)
    assert gaussian_delta(1 / mechanism.sigma, 0.7) == pytest.approx(0.02)
    assert mechanism.exact.mu == pytest.approx(1 / mechanism.sigma)


@pytest.mark.slow(reason="many draws")
def test_discrete_noise_has_its_law():
    """20,000 draws, chi-squared at 1e-6."""
    mechanism = DiscreteGaussianMechanism(0.5)
    drawn = np.bincount(np.abs(mechanism([0], Draws(0), 20_000)).clip(max=4), minlength=5)
    law = np.exp(-(np.arange(-40, 41) ** 2) / 2)
    law = np.bincount(np.abs(np.arange(-40, 41)).clip(max=4), weights=law / law.sum())
    assert stats.chisquare(drawn, law * 20_000).pvalue > 1e-6


def test_parameters_are_checked_by_name():
    for make in (GaussianMechanism, TreeSumsGaussian):
        with pytest.raises(ValueError, match="rho must be positive and finite, got 0"):
            make(0.0)
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\), got 2.0"):
        AnalyticGaussian(1.0, 2.0)
    assert GaussianMechanism(0.3).measure == ZCDP(0.3)
