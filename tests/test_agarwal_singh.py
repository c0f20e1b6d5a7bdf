"""Agarwal & Singh 2017: every algorithm against the pseudocode run slowly, exact laws, and the catalogue's entries."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from overclaim.audit import ftpl_law
from overclaim.audit.alphabets import linear_alphabet
from overclaim.audit.exact import epsilon_from_laws, exact_epsilon
from overclaim.audit.falsify import falsify
from overclaim.audit.families import first_round
from overclaim.audit.pairs import Pair
from overclaim.audit.play import play
from overclaim.audit.tradeoff import gaussian_delta, gaussian_epsilon
from overclaim.learners import agarwal_singh
from overclaim.learners.catalogue import lookup
from overclaim.learners.domains import Ball, Cube, EntropySimplex, Simplex
from overclaim.learners.exp2 import Exp2, hypercube, optimal_design, signed_axes
from overclaim.learners.exp3 import Exp3
from overclaim.learners.ftpl import Ftpl, gaussian_sigma, published_sigma
from overclaim.learners.ftrl import Ftrl
from overclaim.learners.reduction import BanditReduction
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Gaussian, Laplace

NAMES = [entry.name for entry in agarwal_singh.ENTRIES]


def entry(name):
    return lookup(f"agarwal-singh/{name}")


def played(learner, losses, draws, runs=1):
    """The actions on a loss sequence, (rounds, [dim,] runs)."""
    state, actions = learner.start(runs, draws), []
    for loss in losses:
        x = learner.act(state, draws)
        actions.append(np.array(x))
        told = loss[:, None] if learner.feedback == "full" else (loss[x] if x.ndim == 1 else loss @ x)
        learner.update(state, x, told, draws)
    return np.array(actions)


def slow_tree_leader(choose, losses, noise, draws):
    """Algorithms 1 to 3 for one run: a dictionary of all populated nodes, and padding by line 6 of Algorithm 2."""
    rounds, dim = losses.shape
    deep = math.ceil(math.log2(rounds))
    nodes, actions = {}, []
    for t in range(rounds):
        start, prefix, used = 0, np.zeros((dim, 1)), 0
        while start < t:  # the fewest populated nodes that cover 1..t
            length = max(
                size for size in (2**i for i in range(deep + 1)) if (start, size) in nodes and start + size <= t
            )
            prefix = prefix + nodes[start, length]
            start, used = start + length, used + 1
        for _ in range(deep - used):
            prefix = prefix + noise.sample((dim, 1), draws)
        actions.append(choose(prefix[:, 0]))
        length = (t + 1) & -(t + 1)
        start = t + 1 - length
        nodes[start, length] = losses[start : t + 1].sum(axis=0)[:, None] + noise.sample((dim, 1), draws)
    return np.array(actions)


def softmax(linear):
    weights = np.exp(-(linear - linear.min()))
    return weights / weights.sum()


def project(linear):
    dim = linear.size
    return optimize.minimize(
        lambda x: linear @ x + x @ x,
        np.zeros(dim),
        jac=lambda x: linear + 2 * x,
        constraints={"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x},
        method="SLSQP",
        options={"ftol": 1e-14},
    ).x


@pytest.mark.parametrize("rounds", [2, 5, 8, 13])
@pytest.mark.parametrize(
    ("domain", "choose", "atol"),
    [
        (EntropySimplex(3), softmax, 1e-12),
        (Ball(3), project, 1e-5),
        (Cube(3), lambda linear: np.array([max(-1.0, min(1.0, -v / 2)) for v in linear]), 1e-12),
    ],
)
def test_ftrl_plays_as_the_pseudocode(domain, choose, atol, rounds):
    losses = np.random.default_rng(rounds).uniform(-1, 1, (rounds, 3))
    noise, eta = Laplace(0.7), 0.4
    got = played(Ftrl(domain=domain, rounds=rounds, eta=eta, noise=noise), losses, Draws(4))[:, :, 0]
    twin = slow_tree_leader(lambda prefix: choose(eta * prefix), losses, noise, Draws(4))
    np.testing.assert_allclose(got, twin, atol=atol)


@pytest.mark.parametrize("rounds", [2, 5, 8, 13])
@pytest.mark.parametrize(
    ("domain", "choose"),
    [
        (Simplex(3), lambda linear: min(range(3), key=lambda i: linear[i])),
        (Ball(3), lambda linear: -linear / np.linalg.norm(linear)),
        (Cube(3), lambda linear: np.array([-1.0 if v > 0 else 1.0 for v in linear])),
    ],
)
def test_ftpl_plays_as_the_pseudocode(domain, choose, rounds):
    losses = np.random.default_rng(rounds).uniform(-1, 1, (rounds, 3))
    got = played(Ftpl(domain=domain, rounds=rounds, noise=Gaussian(1.5)), losses, Draws(4))[..., 0]
    twin = slow_tree_leader(choose, losses, Gaussian(1.5), Draws(4))
    np.testing.assert_allclose(got, twin, atol=1e-12)


# The exact law of two-armed FTPL.


def slow_law(learner, world):
    """Orthant probabilities of the joint normal law of the differences, for T = 3 or 4."""
    rounds = len(world)
    paths = [ftpl_law._path(t) for t in range(1, rounds)]
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
    assert ftpl_law.applies(learner, pair)
    for left in (True, False):
        law = ftpl_law.sequence_law(learner, pair, left)
        np.testing.assert_allclose(law, slow_law(learner, world if left else other), atol=1e-6)


@pytest.mark.parametrize("rounds", [6, 12])
def test_the_law_of_ftpl_is_a_law(rounds):
    world = np.random.default_rng(rounds).uniform(-1, 1, (rounds, 2))
    learner = Ftpl(domain=Simplex(2), rounds=rounds, noise=Gaussian(0.5))
    law = ftpl_law.sequence_law(learner, Pair(world, np.vstack([-world[:1], world[1:]])), True)
    assert law.shape == (2**rounds,)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-12)


def test_ftpl_plays_by_its_law():
    """Chi-square over all 32 sequences of five rounds, 40,000 runs, seed 6, false-alarm probability 1e-6."""
    world = np.array([[1, -1], [-0.5, 0.5], [0, 1], [1, 0], [0, 0.0]])
    learner = Ftpl(domain=Simplex(2), rounds=6, noise=Gaussian(1.0))
    law = ftpl_law.sequence_law(learner, Pair(world, np.vstack([world[:-1], [[1, 1]]])), True)
    arms = played(learner, world, Draws(6), 40_000)
    counts = np.bincount(np.array([16, 8, 4, 2, 1]) @ arms, minlength=32)
    assert stats.chisquare(counts, 40_000 * law / law.sum()).pvalue > 1e-6


def test_ftpl_epsilon_of_the_specification():
    """T = 4, epsilon 1, delta 0.01: sigma = 14.99, worst at t0 = 1 whatever the suffix of (1, -1) or (-1, 1)."""
    learner = entry("ftpl-simplex").build(entry("ftpl-simplex").setting())
    assert learner.noise.sigma == pytest.approx(14.9859, abs=1e-4)
    tail = [[1, -1]] * 3
    pair = Pair([[1, -1], *tail], [[-1, 1], *tail])
    p, q = (ftpl_law.sequence_law(learner, pair, left) for left in (True, False))
    found = [epsilon_from_laws(p, q, delta) for delta in (0, 1e-3, 1e-2)]
    assert found == pytest.approx([0.2782, 0.2723, 0.2170], abs=5e-5)
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
            laws = [ftpl_law.sequence_law(learner, pair, left) for left in (True, False)]
            worst = max(worst, epsilon_from_laws(*laws))
    assert worst == pytest.approx(0.2782, abs=5e-5)


def test_tree_mu_of_the_specification():
    assert [ftpl_law.tree_mu(t) for t in (2, 4, 8, 16)] == pytest.approx([1, 1.0801, 1.2076, 1.3529], abs=5e-5)
    assert ftpl_law.tree_mu(8, 8) == 0
    for horizon in (2, 3, 4, 7, 16, 33):  # padding only hides
        deep = math.ceil(math.log2(horizon))
        assert all(ftpl_law.tree_mu(horizon, t0) <= math.sqrt(deep) + 1e-9 for t0 in range(1, horizon + 1))
    with pytest.raises(ValueError, match=r"t0 must be in 1\.\.4, got 5"):
        ftpl_law.tree_mu(4, 5)


def test_ftpl_law_knows_where_it_applies():
    pair = Pair([[1, 0], [0, 0]], [[0, 1], [0, 0]])
    one = Ftpl(domain=Simplex(2), rounds=4, noise=Gaussian(1.0))
    assert ftpl_law.applies(one, pair)
    for other in (
        Ftpl(domain=Simplex(2), rounds=4, noise=Gaussian(0.0)),
        Ftpl(domain=Simplex(2), rounds=4, noise=Laplace(1.0)),
        Ftpl(domain=Simplex(3), rounds=4, noise=Gaussian(1.0)),
        Ftpl(domain=Cube(2), rounds=4, noise=Gaussian(1.0)),
        Exp3(arms=2, eta=1.0),
    ):
        assert not ftpl_law.applies(other, pair)


# Calibrations.


@given(
    sensitivity=st.floats(0.01, 100), epsilon=st.floats(0.01, 30), delta=st.sampled_from([1e-9, 1e-5, 0.01, 0.1, 0.5])
)
def test_gaussian_sigma_is_the_least(sensitivity, epsilon, delta):
    sigma = gaussian_sigma(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert gaussian_delta(sensitivity / sigma, epsilon) == pytest.approx(delta, rel=1e-6)


def release_epsilon(learner, pair, delta):
    return gaussian_epsilon(ftpl_law.release_mu(learner, pair), delta)


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
    mu = ftpl_law.release_mu(learner, pair)
    assert mu == pytest.approx(0.0975, abs=1e-4)
    assert 1e-25 < stats.norm.sf(1 / mu - mu / 2) < 1e-23
    assert gaussian_delta(mu, 1.0) > 0  # so no epsilon is large enough for delta = 0
    laws = [ftpl_law.sequence_law(learner, pair, left) for left in (True, False)]
    assert epsilon_from_laws(*laws) == pytest.approx(0.0988, abs=1e-4)


@pytest.mark.parametrize(("name", "losses"), [("ftrl-ball", "l2-ball"), ("ftrl-cube", "l1-ball")])
def test_the_truth_about_ftrl_over_bodies(name, losses):
    one = entry(name)

    def worst(**changes):
        neighbours = changes.pop("neighbours", "replace")
        setting = one.setting(**changes)
        learner = one.build(setting)
        claim = one.claim(setting, neighbours=neighbours, surface="release")
        pairs = first_round(linear_alphabet(claim, setting.arms), setting.rounds, 1)
        return max(exact_epsilon(learner, pair, surface="release", deltas=(0.0,))[0.0] for pair in pairs)

    assert one.losses == losses
    assert worst() == pytest.approx(2, abs=1e-3)
    assert worst(neighbours="zero-out") == pytest.approx(1, abs=1e-3)
    assert worst(calibration="corrected") == pytest.approx(1, abs=1e-3)
    assert worst(rounds=3) == pytest.approx(2 * 2 / math.log2(3), abs=2e-3)
    assert worst(rounds=3, neighbours="zero-out") == pytest.approx(2 / math.log2(3), abs=1e-3)
    assert worst(rounds=3, calibration="corrected") == pytest.approx(1, abs=1e-3)


def test_published_noise_is_as_printed():
    settings = {"rounds": 8, "arms": 4, "epsilon": 0.5}
    scales = {"ftrl-experts": 4 * 3 / 0.5, "ftrl-ball": 2 * 3 / 0.5, "ftrl-cube": 3 / 0.5}
    for name, scale in scales.items():
        assert entry(name).build(entry(name).setting(**settings)).noise.scale == pytest.approx(scale)
    sigma = math.sqrt(4) / 0.5 * 3 * math.log(3 / 1e-2)
    for name in ("ftpl-simplex", "ftpl-ball", "ftpl-cube"):
        assert entry(name).build(entry(name).setting(**settings)).noise.sigma == pytest.approx(sigma)
    one = published_sigma(rounds=2**20, dim=4, norm=2.0, epsilon=1e6, delta=0.1)
    assert one == pytest.approx(2 * math.sqrt(2**20 / (2 * 20)))  # what regret wants
    for name, scale in {"reduction-exp2-actions": 2, "reduction-scrible": 2}.items():
        assert entry(name).build(entry(name).setting(**settings)).noise.scale == pytest.approx(scale)
    hyper = entry("reduction-exp2-actions").build(
        entry("reduction-exp2-actions").setting(**settings), points="hypercube"
    )
    assert hyper.noise.scale == pytest.approx(4 / 0.5)


def test_scrible_takes_the_printed_rate():
    setting = entry("reduction-scrible").setting(rounds=100, arms=3, epsilon=0.5)
    learner = entry("reduction-scrible").build(setting)
    assert learner.inner.eta == pytest.approx(math.sqrt(3 * math.log(100) / (2 * 9 * 100 * (1 + 4 * 3 * 3))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("calibration", ["as_published", "corrected"])
def test_without_epsilon_there_is_no_noise(name, calibration):
    one = lookup(name)
    setting = one.setting(rounds=4, epsilon=math.inf, calibration=calibration)
    learner = one.build(setting)
    assert getattr(learner.noise, "scale", 0.0) == 0
    assert getattr(learner.noise, "sigma", 0.0) == 0
    world = np.array([[0.5, 0.2], [0.1, 0.3], [0.4, 0.4], [0.0, 0.1]])
    other = world.copy()
    other[0] = 0
    pair = Pair(world, other)
    seen = play(learner, pair, Draws(1), 50, surface="release")
    told = [
        np.where(seen.left, *(pair.feedback(t, seen.actions[t], learner.feedback, left) for left in (True, False)))
        for t in range(3)
    ]
    np.testing.assert_allclose(seen.releases, learner.release_means(seen.actions, seen.releases, told), atol=1e-12)


def test_bad_settings_are_named():
    one = entry("ftpl-simplex")
    with pytest.raises(ValueError, match="rounds must be at least 2 for follow-the-perturbed-leader"):
        one.build(one.setting(rounds=1))
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\) for Gaussian noise, got 0"):
        one.build(one.setting(delta=0.0))
    with pytest.raises(ValueError, match="points must be axes or hypercube, got 'ball'"):
        agarwal_singh.reduction_exp2_actions(entry("reduction-exp2-actions").setting(), points="ball")
    with pytest.raises(ValueError, match="domain must be one of cube, ball, simplex, got 'moon'"):
        agarwal_singh.reduction_scrible(entry("reduction-scrible").setting(), domain="moon")


# EXP2 over a finite set.


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


def test_exp2_over_unit_vectors_is_exp3():
    """Their laws agree after every round of the same play; they draw from them in ways of their own."""
    rounds, runs = 40, 200
    generator = np.random.default_rng(3)
    losses, arms = generator.uniform(-1, 1, (rounds, 3)), generator.integers(3, size=(rounds, runs))
    one, two = Exp2(actions=np.eye(3), eta=0.4, gamma=0.1), Exp3(arms=3, eta=0.4, gamma=0.1)
    first, second = one.start(runs, Draws(8)), two.start(runs, Draws(8))
    for loss, played in zip(losses, arms, strict=True):
        np.testing.assert_allclose(one.distribution(first), two.probabilities(second), rtol=1e-9)
        one.update(first, np.eye(3)[:, played], loss[played], Draws(8))
        two.update(second, played, loss[played], Draws(8))
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


# Regret.


def test_the_expected_range_of_the_noise():
    """Against 100,000 draws, seed 4; false-alarm probability 1e-6 a comparison."""
    for dim, draws in ((2, 1), (2, 3), (5, 4)):
        z = Laplace(1.0).sample((draws, dim, 100_000), Draws(4)).sum(axis=0)
        ranges = np.ptp(z, axis=0)
        error = 4.9 * ranges.std() / math.sqrt(100_000)
        assert agarwal_singh.expected_range(dim, draws) == pytest.approx(ranges.mean(), abs=error)
        sizes = np.abs(z[0])
        error = 4.9 * sizes.std() / math.sqrt(100_000)
        assert agarwal_singh.expected_size(draws) == pytest.approx(sizes.mean(), abs=error)
    # Of two, the range is the size of a sum of twice as many.
    assert agarwal_singh.expected_range(2, 3) == pytest.approx(agarwal_singh.expected_size(6))
    assert agarwal_singh.expected_range(1, 3) == 0


def test_the_experts_bound_is_the_specified_one():
    one = entry("ftrl-experts")
    setting = one.setting(rounds=64, epsilon=math.inf)
    assert one.regret.bound(setting, one.build(setting)) == pytest.approx(math.sqrt(2 * 64 * math.log(2)))
    below = [
        t
        for t in (4, 8, 16, 32)
        if 2 * t > one.regret.bound(one.setting(rounds=t, epsilon=1e9), one.build(one.setting(rounds=t, epsilon=1e9)))
    ]
    assert below == [4, 8, 16, 32]


@pytest.mark.parametrize("name", ["ftrl-experts", "ftrl-ball", "ftrl-cube", "ftpl-simplex", "ftpl-ball", "ftpl-cube"])
@pytest.mark.parametrize("epsilon", [1.0, 1e3])
def test_regret_stays_below_its_bound(name, epsilon):
    """Mean of 400 runs on a constant gap and on random losses, T = 128, seed 5; the bounds leave over 5 sigmas."""
    one = entry(name)
    setting = one.setting(rounds=128, epsilon=epsilon)
    learner = one.build(setting)
    bound = one.regret.bound(setting, learner)
    size = {"symmetric": 1.0, "l2-ball": 0.5**0.5, "l1-ball": 0.5}[one.losses]
    rng = np.random.default_rng(5)
    for losses in (np.tile([size, -size], (128, 1)), size * rng.choice([-1.0, 1.0], (128, 2))):
        actions = played(learner, losses, Draws(5), 400)
        suffered = (
            np.take_along_axis(losses, actions, axis=1)
            if actions.ndim == 2
            else np.einsum("td,tdr->tr", losses, actions)
        ).sum(axis=0)
        total = losses.sum(axis=0)
        best = {"e": total.min(), "s": total.min(), "b": -np.linalg.norm(total), "c": -np.abs(total).sum()}
        kind = {"experts": "e", "simplex": "s", "ball": "b", "cube": "c"}[name.split("-")[1]]
        assert suffered.mean() - best[kind] <= bound


# End to end: the cases whose truth no other test computes.


@pytest.mark.parametrize("name", ["ftpl-simplex", "reduction-exp2-actions", "reduction-scrible"])
def test_cases_get_their_expected_verdicts(name):
    one = entry(name)
    for case in one.cases:
        changes = {key: getattr(case, key) for key in ("losses", "rounds", "arms") if getattr(case, key)}
        if case.delta is not None:
            changes["delta"] = case.delta
        setting = one.setting(calibration=case.calibration, epsilon=case.epsilon, **changes)
        claim = one.claim(setting, neighbours=case.neighbours, surface=case.surface)
        learner = one.build(setting, **case.parameters)
        found = falsify(learner, claim, rounds=setting.rounds, runs=case.runs, seed=2)
        assert found.verdict.name.lower() == case.expected, case
