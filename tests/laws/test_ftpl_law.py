"""The exact law of two-armed follow-the-perturbed-leader: against orthants of a normal law, and play."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from overclaim.audit.laws.exact import epsilon_from_laws
from overclaim.audit.play.pairs import Pair
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.leaders.ftpl import Ftpl
from overclaim.learners.problems.domains import Cube, Simplex
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.measures.gaussian_dp import gaussian_delta, gaussian_epsilon
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.view import RELEASE
from overclaim.tests.support.plain_play import played


def entry(name):
    return lookup(f"agarwal-singh/{name}")


def sequence_law(learner, pair, left):
    """Return the law of all sequences of arms under one input."""
    return learner.law(pair.left, pair.right, pair.t0).laws()[0 if left else 1]


def path(t):
    """The rounds whose nodes make up the prefix at t: t without its lowest bits, one after the other."""
    nodes = set()
    while t:
        nodes.add(t)
        t -= t & -t
    return nodes


def slow_law(learner, world):
    """Orthant probabilities of the joint normal law of the differences, for T = 3 or 4."""
    rounds = len(world)
    paths = [path(t) for t in range(1, rounds)]
    deep = math.ceil(math.log2(learner.rounds))
    covariance = np.array([[len(a & b) if i != j else deep for j, b in enumerate(paths)] for i, a in enumerate(paths)])
    mean = np.cumsum(world[:, 0] - world[:, 1])[:-1] / (math.sqrt(2) * learner.noise.sigma)
    law = []
    for index in range(2 ** (rounds - 1)):
        signs = np.array([1.0 if index >> (rounds - 2 - t) & 1 else -1.0 for t in range(rounds - 1)])
        flipped = covariance * np.outer(signs, signs)
        zero = np.zeros(rounds - 1)
        law.append(stats.multivariate_normal.cdf(signs * mean, zero, flipped, abseps=1e-9, releps=1e-9))
    return 0.5 * np.concatenate([law, law])


@pytest.mark.slow(reason="a twin by numerical integrals")
@settings(max_examples=4, deadline=None)
@given(
    rounds=st.integers(2, 4), horizon=st.integers(4, 9), seed=st.integers(0, 10**6), sigma=st.sampled_from([0.3, 5.0])
)
def test_the_law_of_ftpl_is_the_orthants_of_a_normal_law(rounds, horizon, seed, sigma):
    world = np.random.default_rng(seed).uniform(-1, 1, (rounds, 2))
    other = world.copy()
    other[0] = -other[0]
    learner = Ftpl(domain=Simplex(2), rounds=horizon, noise=Gaussian(sigma))
    pair = Pair(world, other)
    for left in (True, False):
        law = sequence_law(learner, pair, left)
        np.testing.assert_allclose(law, slow_law(learner, world if left else other), atol=1e-6)


@pytest.mark.parametrize("rounds", [6, 12])
def test_the_law_of_ftpl_is_a_law(rounds):
    world = np.random.default_rng(rounds).uniform(-1, 1, (rounds, 2))
    learner = Ftpl(domain=Simplex(2), rounds=rounds, noise=Gaussian(0.5))
    law = sequence_law(learner, Pair(world, np.vstack([-world[:1], world[1:]])), True)
    assert law.shape == (2**rounds,)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-12)


def test_ftpl_plays_by_its_law():
    """Chi-square over all 32 sequences of five rounds, 40,000 runs, seed 6, false-alarm probability 1e-6."""
    world = np.array([[1, -1], [-0.5, 0.5], [0, 1], [1, 0], [0, 0.0]])
    learner = Ftpl(domain=Simplex(2), rounds=6, noise=Gaussian(1.0))
    law = sequence_law(learner, Pair(world, np.vstack([world[:-1], [[1, 1]]])), True)
    arms = played(learner, world, Draws(6), 40_000)
    counts = np.bincount(np.array([16, 8, 4, 2, 1]) @ arms, minlength=32)
    assert stats.chisquare(counts, 40_000 * law / law.sum()).pvalue > 1e-6


def test_ftpl_epsilon_of_the_specification():
    """T = 4, epsilon 1, delta 0.01: sigma = 14.99, worst at t0 = 1 whatever the suffix of (1, -1) or (-1, 1)."""
    learner = entry("ftpl-simplex").build(entry("ftpl-simplex").setting())
    assert learner.noise.sigma == pytest.approx(14.9859, abs=1e-4)
    tail = [[1, -1]] * 3
    pair = Pair([[1, -1], *tail], [[-1, 1], *tail])
    p, q = (sequence_law(learner, pair, left) for left in (True, False))
    epsilons = [epsilon_from_laws(p, q, delta) for delta in (0, 1e-3, 1e-2)]
    assert epsilons == pytest.approx([0.2782, 0.2723, 0.2170], abs=5e-5)
    # Of all pairs, on all rounds and with all extreme prefixes, none is worse.
    worst = 0.0
    signs = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    for t0 in range(3):
        for s in signs:
            world = np.stack([s, -s], axis=1).astype(float)
            other = world.copy()
            other[t0] *= -1
            end = np.zeros((1, 2))
            pair = Pair(np.vstack([world, end]), np.vstack([other, end]))
            laws = [sequence_law(learner, pair, left) for left in (True, False)]
            worst = max(worst, epsilon_from_laws(*laws))
    assert worst == pytest.approx(0.2782, abs=5e-5)


def test_ftpl_law_knows_where_it_applies():
    pair = Pair([[1, 0], [0, 0]], [[0, 1], [0, 0]])
    one = Ftpl(domain=Simplex(2), rounds=4, noise=Gaussian(1.0))
    assert one.law(pair.left, pair.right, pair.t0) is not None
    for other in (
        Ftpl(domain=Simplex(2), rounds=4, noise=Gaussian(0.0)),
        Ftpl(domain=Simplex(2), rounds=4, noise=Laplace(1.0)),
        Ftpl(domain=Simplex(3), rounds=4, noise=Gaussian(1.0)),
        Ftpl(domain=Cube(2), rounds=4, noise=Gaussian(1.0)),
    ):
        assert other.law(pair.left, pair.right, pair.t0) is None


def release_mu(learner, pair):
    (mu,) = learner.law(pair.left, pair.right, pair.t0, RELEASE).mus
    return mu


def release_epsilon(learner, pair, delta):
    return gaussian_epsilon(release_mu(learner, pair), delta)


@pytest.mark.parametrize("name", ["ftpl-simplex", "ftpl-ball", "ftpl-cube"])
@pytest.mark.parametrize("rounds", [2, 3, 4, 7, 16])
def test_corrected_ftpl_is_private_at_the_release(name, rounds):
    one = entry(name)
    setting = one.setting(rounds=rounds, calibration="corrected")
    learner = one.build(setting)
    size = 1.0 if name == "ftpl-simplex" else 0.5**0.5
    loss = size * np.array([1.0, 1.0])
    pair = Pair([loss, *[[0, 0]] * (rounds - 1)], [-loss, *[[0, 0]] * (rounds - 1)])
    assert release_epsilon(learner, pair, 1e-2) == pytest.approx(1, abs=1e-6)
    published = one.build(one.setting(rounds=rounds))
    assert release_epsilon(published, pair, 1e-2) < 1


def test_published_ftpl_is_too_quiet_for_a_large_epsilon_and_delta():
    """T = 2: both terms of the printed sigma are too small; epsilon is 2.85 at delta = 0.1 where 2 is claimed."""
    one = entry("ftpl-simplex")
    learner = one.build(one.setting(rounds=2, epsilon=2.0, delta=0.1))
    pair = Pair([[1, 1], [0, 0]], [[-1, -1], [0, 0]])
    sigma = max(math.sqrt(2) * math.sqrt(2 / math.sqrt(2)), math.sqrt(2) / 2 * math.log(10))
    assert learner.noise.sigma == pytest.approx(sigma)
    assert gaussian_delta(2 * math.sqrt(2) / sigma, 2.8456) == pytest.approx(0.1, abs=1e-5)
    assert release_epsilon(learner, pair, 0.1) == pytest.approx(2.8456, abs=5e-5)


def test_the_pure_claim_of_ftpl_is_never_seen():
    one = entry("ftpl-simplex")
    learner = one.build(one.setting(delta=0.0), noise_delta=1e-6)
    pair = Pair([[1, -1], [1, -1], [1, -1], [0, 0]], [[-1, 1], [1, -1], [1, -1], [0, 0]])
    mu = release_mu(learner, pair)
    assert mu == pytest.approx(0.0975, abs=1e-4)
    assert 1e-25 < stats.norm.sf(1 / mu - mu / 2) < 1e-23
    assert gaussian_delta(mu, 1.0) > 0  # so no epsilon is large enough for delta = 0
    laws = [sequence_law(learner, pair, left) for left in (True, False)]
    assert epsilon_from_laws(*laws) == pytest.approx(0.0988, abs=1e-4)
