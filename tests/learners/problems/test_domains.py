"""Domains: each minimiser against random feasible points, and a user's own domain in the library's learner."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from overclaim.learners.leaders.ftrl import Ftrl
from overclaim.learners.problems.domains import Ball, Cube, EntropySimplex, Simplex
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Laplace

RUNS = 20


def feasible(domain, rng):
    """Random points, (dim, RUNS), some inside and some on the boundary."""
    if isinstance(domain, Simplex):
        return rng.dirichlet(np.full(domain.dim, 0.5), RUNS).T
    x = rng.normal(size=(domain.dim, RUNS))
    size = np.abs(x).max(axis=0) if isinstance(domain, Cube) else np.sqrt((x * x).sum(axis=0))
    return x / size * np.minimum(rng.uniform(0, 2, RUNS), 1.0)


def regulariser(domain, x):
    if isinstance(domain, Simplex):
        return np.where(x > 0, x * np.log(np.maximum(x, 1e-300)), 0.0).sum(axis=0)
    return (x * x).sum(axis=0)


def inside(domain, x):
    if isinstance(domain, Simplex):
        return (x >= 0).all() and np.allclose(x.sum(axis=0), 1)
    size = np.abs(x).max(axis=0) if isinstance(domain, Cube) else np.sqrt((x * x).sum(axis=0))
    return (size <= 1 + 1e-12).all()


DOMAINS = st.sampled_from([EntropySimplex, Ball, Cube])


@given(kind=DOMAINS, dim=st.integers(1, 5), seed=st.integers(0, 10**6), size=st.floats(0, 8))
def test_prox_beats_every_feasible_point(kind, dim, seed, size):
    rng = np.random.default_rng(seed)
    domain = kind(dim)
    linear = size * rng.normal(size=(dim, RUNS))
    kept = linear.copy()
    x = domain.prox(linear)
    assert (linear == kept).all()  # the argument is not touched
    assert inside(domain, x)

    def value(x):
        return (linear * x).sum(axis=0) + regulariser(domain, x)

    for other in (feasible(domain, rng), x + 1e-4 * (feasible(domain, rng) - x)):
        assert (value(x) <= value(other) + 1e-9).all()


@given(kind=st.sampled_from([Simplex, Ball, Cube]), dim=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_minimise_beats_every_feasible_point(kind, dim, seed):
    rng = np.random.default_rng(seed)
    domain = kind(dim)
    linear = rng.normal(size=(dim, RUNS))
    x = domain.minimise(linear)
    if x.ndim == 1:
        assert x.dtype == np.intp
        x = np.eye(dim)[:, x]
    assert inside(domain, x)
    assert ((linear * x).sum(axis=0) <= (linear * feasible(domain, rng)).sum(axis=0) + 1e-12).all()


def test_minimise_of_nothing_is_still_a_vertex():
    zero = np.zeros((2, 3))
    assert Simplex(2).minimise(zero).tolist() == [0, 0, 0]
    assert Ball(2).minimise(zero).T.tolist() == [[1, 0]] * 3
    assert Cube(2).minimise(zero).T.tolist() == [[1, 1]] * 3


@given(kind=DOMAINS, dim=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_inside_the_domain_invert_undoes_prox(kind, dim, seed):
    linear = 0.5 * np.random.default_rng(seed).uniform(-1, 1, (dim, RUNS))
    back = kind(dim).invert(kind(dim).prox(linear))
    expected = linear - linear[0] if kind is EntropySimplex else linear
    np.testing.assert_allclose(back, expected, atol=1e-12)


@pytest.mark.parametrize("gap", [700.0, 720.0, 5000.0])
def test_experts_that_have_vanished_invert_to_numbers(gap):
    """At epsilon 0.05 some do: an infinite sum, or none, made their runs tell nothing, with warnings."""
    domain = EntropySimplex(3)
    back = domain.invert(domain.prox(np.array([[0.0, gap], [gap, gap], [gap, 0.0]])))
    seen = min(gap, -np.log(np.finfo(float).tiny))
    np.testing.assert_allclose(back, [[0, 0], [seen, 0], [seen, -seen]], rtol=1e-12)


def test_experts_whose_weights_lack_digits_have_vanished():
    """NumPy's exponential takes twenty times as long for these."""
    x = EntropySimplex(3).prox(np.array([[0.0, 0.0, 1.0], [706.0, 707.5, 0.5], [720.0, 1.0, 800.0]]))
    assert (x == 0).tolist() == [[False] * 3, [False, True, False], [True, False, True]]
    np.testing.assert_allclose(x[1, 0], np.exp(-706.0), rtol=1e-12)
    np.testing.assert_allclose(x.sum(axis=0), 1.0, rtol=1e-15)


@dataclass(frozen=True)
class Box:
    """A user's domain: [0, 1]^N with R(x) = sum x^4, whose prox step has no need of being ours."""

    dim: int

    def prox(self, linear):
        return np.clip(np.cbrt(-linear / 4), 0.0, 1.0)


def test_a_domain_of_ones_own_plays():
    learner = Ftrl(domain=Box(2), rounds=4, eta=0.5, noise=Laplace(1.0))
    draws = Draws(0)
    state = learner.start(5, draws)
    for _ in range(3):
        x = learner.act(state, draws)
        assert ((x >= 0) & (x <= 1)).all()
        learner.update(state, x, np.array([[1.0], [-1.0]]), draws)
    quiet = Ftrl(domain=Box(2), rounds=4, eta=0.5, noise=Laplace(0.0))
    state = quiet.start(1, draws)
    quiet.update(state, quiet.act(state, draws), np.array([[1.0], [-1.0]]), draws)
    got = quiet.act(state, draws)[:, 0]
    twin = optimize.minimize(
        lambda x: 0.5 * (x[0] - x[1]) + (x**4).sum(), [0.5, 0.5], bounds=[(0, 1)] * 2, tol=1e-14
    ).x
    np.testing.assert_allclose(got, twin, atol=1e-4)
    with pytest.raises(AttributeError):
        learner.invert(np.zeros((1, 2, 1)))


@pytest.mark.parametrize("kind", [Simplex, EntropySimplex, Ball, Cube])
def test_a_dimension_of_nothing_is_named(kind):
    with pytest.raises(ValueError, match="must be an integer of at least 1, got 0"):
        kind(0)
