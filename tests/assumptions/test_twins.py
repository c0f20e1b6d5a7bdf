"""Twins: learners whose law another implementation must have."""

from dataclasses import replace

import numpy as np
import pytest

from overclaim.audit.assumptions.blocks import homogeneity_p_value
from overclaim.audit.assumptions.conformance import check_learner
from overclaim.learners import Exp3, Ftrl, LearnerError
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.learners.scalar import as_learner
from overclaim.mechanisms.noise import Laplace
from overclaim.tests.support.exp3_twin import Exp3Twin


@pytest.mark.parametrize("arms", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_exp3_has_the_law_of_its_twin(arms):
    learner = Exp3(arms=arms, eta=0.5, gamma=0.1)
    assert "twin" in check_learner(learner, arms=arms, twin=Exp3Twin, twin_runs=6000).checked


@pytest.mark.parametrize("slip", ["no mixing", pytest.param("no weighting", marks=pytest.mark.slow)])
def test_a_twin_with_a_slip_is_told_apart(slip):
    def twin(arms, rounds):
        return as_learner(Exp3Twin, arms=arms, rounds=rounds, slip=slip)

    with pytest.raises(LearnerError, match="Exp3 and its twin Exp3Twin play by different laws"):
        check_learner(Exp3(arms=2, eta=0.5, gamma=0.3), twin=twin, twin_runs=8000)


def test_points_are_compared_with_a_twin_too():
    sound = Ftrl(domain=EntropySimplex(3), rounds=64, eta=0.5, noise=Laplace(2.0))
    check_learner(sound, twin=sound)
    with pytest.raises(LearnerError, match="different laws"):
        check_learner(sound, twin=replace(sound, noise=Laplace(0.5)))


@pytest.mark.slow(reason="400 comparisons")
def test_the_comparison_of_laws_keeps_its_error():
    """400 comparisons of equal laws at 5%: more than 44 rejections have probability 1e-6."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(400):
        left, right = (rng.geometric(0.4, (2, 1500)) for _ in range(2))
        rejected += homogeneity_p_value(left, right) < 0.05
    assert rejected <= 44
