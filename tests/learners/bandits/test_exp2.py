"""EXP2 over a finite set of points: against the pseudocode, EXP3, and the theory of designs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overclaim.learners.bandits.exp2 import Exp2, hypercube, optimal_design, signed_axes
from overclaim.learners.bandits.exp2_hypercube import HypercubeExp2
from overclaim.learners.bandits.exp3 import Exp3
from overclaim.learners.conversions.reduction import BanditReduction
from overclaim.mechanisms.draws import Draws
from overclaim.tests.support.plain_play import played


def slow_exp2(points, eta, gamma, mu, losses, draws):
    """Algorithm 5 for one run, with the pseudo-inverse."""
    count = points.shape[1]
    q, actions = np.full(count, 1 / count), []
    for loss in losses:
        p = (1 - gamma) * q + gamma * mu
        u, i = draws.uniform(1)[0], 0
        while i < count - 1 and u >= p[i]:
            u, i = u - p[i], i + 1
        s = points[:, i]
        P = sum(p[j] * np.outer(points[:, j], points[:, j]) for j in range(count))
        estimate = np.linalg.pinv(P) @ np.outer(s, s) @ loss
        q = np.array([q[j] * math.exp(-eta * points[:, j] @ estimate) for j in range(count)])
        q = q / q.sum()
        actions.append(s)
    return np.array(actions)


@pytest.mark.parametrize("points", [signed_axes(2), hypercube(3), np.random.default_rng(1).normal(size=(2, 5))])
def test_exp2_plays_as_the_pseudocode(points):
    losses = np.random.default_rng(2).uniform(-1, 1, (30, len(points)))
    learner = Exp2(actions=points, eta=0.3, gamma=0.1)
    got = played(learner, losses, Draws(7))[:, :, 0]
    twin = slow_exp2(points, 0.3, 0.1, learner.design, losses, Draws(7))
    np.testing.assert_allclose(got, twin, atol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
def test_over_a_hypercube_the_weights_factorise(dim):
    """The same vertices from the same draws, by the law and the estimates of all 2^N points."""
    runs, draws, twin_draws = 2000, Draws(11), Draws(11)
    whole, product = (kind(actions=hypercube(dim), eta=0.2, gamma=0.1) for kind in (Exp2, HypercubeExp2))
    slow, fast = whole.start(runs, draws), product.start(runs, twin_draws)
    fed = np.random.default_rng(12).laplace(size=(12, runs), scale=3)
    for y in fed:
        actions = whole.act(slow, draws)
        np.testing.assert_array_equal(product.act(fast, twin_draws), actions)
        np.testing.assert_allclose(product.distribution(fast), whole.distribution(slow), atol=1e-11)
        estimates = whole.estimate(slow, actions, y)
        np.testing.assert_allclose(product.estimate(fast, actions, y), estimates, rtol=1e-8, atol=1e-9)
        whole.update(slow, actions, y, draws)
        product.update(fast, actions, y, twin_draws)
    assert whole.distribution(slow).max() > 2 / 2**dim - 0.1  # they did learn


def test_a_hypercube_is_asked_for():
    with pytest.raises(ValueError, match="vertices of a hypercube"):
        HypercubeExp2(actions=signed_axes(2), eta=0.1, gamma=0.1)
    with pytest.raises(ValueError, match="uniform"):
        HypercubeExp2(actions=hypercube(1), eta=0.1, gamma=0.1, exploration=[0.75, 0.25])
    for dim in (40, 70):  # an array of 320 TiB, or of more dimensions than NumPy has
        with pytest.raises(ValueError, match=f"must have at most 20 dimensions, got {dim}"):
            hypercube(dim)


def test_exp2_over_unit_vectors_is_exp3():
    """Their laws agree after every round of the same play; they draw from them in ways of their own."""
    rounds, runs = 40, 200
    generator = np.random.default_rng(3)
    losses, arms = generator.uniform(-1, 1, (rounds, 3)), generator.integers(3, size=(rounds, runs))
    one, two = Exp2(actions=np.eye(3), eta=0.4, gamma=0.1), Exp3(arms=3, eta=0.4, gamma=0.1)
    first, second = one.start(runs, Draws(8)), two.start(runs, Draws(8))
    for loss, arm in zip(losses, arms, strict=True):
        np.testing.assert_allclose(one.distribution(first), two.probabilities(second), rtol=1e-9)
        one.update(first, np.eye(3)[:, arm], loss[arm], Draws(8))
        two.update(second, arm, loss[arm], Draws(8))
    assert two.probabilities(second).std() > 0.1  # they did learn


@given(seed=st.integers(0, 10**6), dim=st.integers(1, 3), extra=st.integers(0, 4))
def test_exp2_estimates_are_unbiased(seed, dim, extra):
    rng = np.random.default_rng(seed)
    points = np.concatenate([np.eye(dim), rng.normal(size=(dim, extra))], axis=1)
    learner = Exp2(actions=points, eta=0.3, gamma=0.2)
    state = np.repeat(rng.normal(size=(points.shape[1], 1)), points.shape[1], axis=1)
    loss = rng.normal(size=dim)
    p = learner.distribution(state)
    assert (p >= 0.2 * learner.design[:, None] - 1e-15).all()
    np.testing.assert_allclose(p.sum(axis=0), 1)
    mean = (learner.estimate(state, points, loss @ points) * p[:, 0]).sum(axis=1)
    np.testing.assert_allclose(mean, loss, atol=1e-8)


@given(seed=st.integers(0, 10**6), dim=st.integers(1, 5), extra=st.integers(0, 6), holes=st.booleans())
def test_estimates_solve_the_equations(seed, dim, extra, holes):
    """Against LAPACK, also where many entries of P are 0; and once more, on the same state."""
    rng = np.random.default_rng(seed)
    others = rng.normal(size=(dim, extra)) * (rng.random((dim, extra)) >= 0.5 * holes)
    points = np.concatenate([np.eye(dim), others], axis=1)
    learner = Exp2(actions=points, eta=0.3, gamma=0.2)
    state = rng.normal(size=(points.shape[1], 7))
    actions, fed = points[:, rng.integers(points.shape[1], size=7)], rng.normal(size=7)
    covariance = np.einsum("is,js,sr->rij", points, points, learner.distribution(state))
    expected = np.linalg.solve(covariance, (actions * fed).T[:, :, None])[:, :, 0].T
    for _ in range(2):
        np.testing.assert_allclose(learner.estimate(state, actions, fed), expected, rtol=1e-7, atol=1e-9)


@given(seed=st.integers(0, 10**6), dim=st.integers(1, 4), count=st.integers(4, 12))
def test_the_design_is_nearly_g_optimal(seed, dim, count):
    points = np.random.default_rng(seed).normal(size=(dim, count))
    mu = optimal_design(points)
    assert mu.min() >= 0
    assert mu.sum() == pytest.approx(1)
    variance = (points * np.linalg.solve((points * mu) @ points.T, points)).sum(axis=0)
    assert dim - 1e-9 <= variance.max() <= 1.01 * dim + 1e-9  # no design has less than N


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": [[1, 2], [2, 4]]}, r"actions must span R\^2, got points of rank 1"),
        ({"actions": [1, 2]}, "actions must be finite points in columns"),
        ({"actions": [[math.nan]]}, "actions must be finite points in columns"),
        ({"gamma": 0.0}, r"gamma must be in \(0, 1\], got 0.0"),
        ({"eta": 0.0}, "eta must be positive"),
        ({"exploration": [0.5, 0.6]}, "exploration must be 2 probabilities"),
        ({"exploration": [1.0, 0.0]}, "exploration must give weight to points that span"),
    ],
)
def test_bad_exp2_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Exp2(**{"actions": np.eye(2), "eta": 0.1, "gamma": 0.1, **changes})


def test_the_reduction_adds_noise_along_the_point():
    """<Z, x> for points: with S = {(1, 2), ...} its variance is 2 |x|^2 scale^2; 20,000 runs, seed 3, 5 sigmas."""
    inner = Exp2(actions=[[1.0, 0.0], [2.0, 1.0]], eta=0.1, gamma=1.0, exploration=[0.999, 0.001])
    learner = BanditReduction(inner=inner, epsilon=2.0)
    draws = Draws(3)
    state = learner.start(20_000, draws)
    x = np.repeat([[1.0], [2.0]], 20_000, axis=1)
    learner.update(state, x, np.zeros(20_000), draws)
    variance = 2 * 5 * 0.25
    spread = math.sqrt((3 * 2 + 2) * 0.8 / 20_000) * variance  # fourth moments of Laplace noise
    assert state.fed.var() == pytest.approx(variance, abs=5 * spread)
