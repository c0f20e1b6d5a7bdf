"""Agarwal & Singh 2017: every algorithm against the pseudocode run slowly, and the catalogue's entries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from overclaim.audit.laws.exact import exact_epsilon
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.loss_choices import linear_alphabet
from overclaim.learners.catalogue import agarwal_singh
from overclaim.learners.catalogue.bounds import agarwal_singh as agarwal_singh_bounds
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.entry import Setting
from overclaim.learners.leaders.ftpl import Ftpl, gaussian_sigma, published_sigma
from overclaim.learners.leaders.ftrl import Ftrl
from overclaim.learners.problems.domains import Ball, Cube, EntropySimplex, Simplex
from overclaim.learners.problems.losses import LOSS_SETS
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.measures.gaussian_dp import gaussian_delta
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.view import RELEASE
from overclaim.tests.support.plain_play import played

NAMES = [entry.name for entry in agarwal_singh.ENTRIES]


def entry(name):
    return lookup(f"agarwal-singh/{name}")


@pytest.mark.parametrize(("losses", "leaks"), [("unit", 1.0), ("symmetric", 2.0)])
def test_with_a_natural_logarithm_the_laplace_noise_is_for_that_much_less(losses, leaks):
    """At T = 4 a loss reaches two nodes, and ln 4 = 1.39 are paid for."""
    one = entry("ftrl-experts")
    setting = one.setting(losses=losses)
    left, right = np.ones((4, 2)), np.ones((4, 2))
    right[0] = 1 - leaks
    law = exact_epsilon(one.build(setting, base="e"), Pair(left, right), view=RELEASE, deltas=[0.0])
    assert law[0.0] == pytest.approx(leaks / math.log(2), rel=1e-6)
    with pytest.raises(ValueError, match="base must be one of 2, e, 10; got '16'"):
        one.build(setting, base="16")


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
        missing = [noise] * (deep - used)
        if missing and isinstance(noise, Gaussian):  # the law of their sum
            missing = [Gaussian(noise.sigma * len(missing) ** 0.5)]
        for law in missing:
            prefix = prefix + law.sample((dim, 1), draws)
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


@given(
    sensitivity=st.floats(0.01, 100), epsilon=st.floats(0.01, 30), delta=st.sampled_from([1e-9, 1e-5, 0.01, 0.1, 0.5])
)
def test_gaussian_sigma_is_the_least(sensitivity, epsilon, delta):
    sigma = gaussian_sigma(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert gaussian_delta(sensitivity / sigma, epsilon) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(("name", "losses"), [("ftrl-ball", "l2-ball"), ("ftrl-cube", "l1-ball")])
def test_the_truth_about_ftrl_over_bodies(name, losses):
    one = entry(name)

    def worst(**changes):
        neighbours = changes.pop("neighbours", "replace")
        setting = one.setting(**changes)
        learner = one.build(setting)
        claim = one.claim(setting, neighbours=neighbours, surface="release")
        pairs = first_round(linear_alphabet(claim, setting.arms), setting.rounds, 1)
        return max(exact_epsilon(learner, pair, view=RELEASE, deltas=(0.0,))[0.0] for pair in pairs)

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


@pytest.mark.parametrize("losses", LOSS_SETS)
def test_the_norms_are_those_of_the_loss_set(losses):
    """Lipschitz losses had those of [-1, 1]: at N = 2 FTRL had 1.41 times the printed noise."""
    extremes = [np.eye(4)[0], np.full(4, LOSS_SETS[losses].scale(4))]
    for x in extremes:
        LOSS_SETS[losses].check(x, "an extreme loss")
    setting = Setting(rounds=4, arms=4, losses=losses)
    assert agarwal_singh_bounds.l1_norm(setting) == max(np.abs(x).sum() for x in extremes)
    assert agarwal_singh_bounds.l2_norm(setting) == max(np.linalg.norm(x) for x in extremes)


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
    seen = play(learner, pair, Draws(1), 50, view=RELEASE)
    fed = [
        np.where(seen.left, *(pair.feedback(t, seen.actions[t], learner.feedback, left) for left in (True, False)))
        for t in range(3)
    ]
    np.testing.assert_allclose(seen.releases, learner.release_means(seen.actions, seen.releases, fed), atol=1e-12)


def test_bad_settings_are_named():
    one = entry("ftpl-simplex")
    with pytest.raises(ValueError, match="rounds must be at least 2 for follow-the-perturbed-leader"):
        one.build(one.setting(rounds=1))
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\) for Gaussian noise, got 0"):
        one.build(one.setting(delta=0.0))
    with pytest.raises(ValueError, match=r"noise_delta must be in \(0, 1\), got 7"):
        one.build(one.setting(), noise_delta=7.0)
    with pytest.raises(ValueError, match="points must be axes or hypercube, got 'ball'"):
        agarwal_singh.reduction_exp2_actions(entry("reduction-exp2-actions").setting(), points="ball")
    with pytest.raises(ValueError, match="domain must be one of cube, ball, simplex; got 'moon'"):
        agarwal_singh.reduction_scrible(entry("reduction-scrible").setting(), domain="moon")


def test_the_expected_range_of_the_noise():
    """Against 100,000 draws, seed 4; false-alarm probability 1e-6 a comparison."""
    for dim, draws in ((2, 1), (2, 3), (5, 4)):
        z = Laplace(1.0).sample((draws, dim, 100_000), Draws(4)).sum(axis=0)
        ranges = np.ptp(z, axis=0)
        error = 4.9 * ranges.std() / math.sqrt(100_000)
        assert agarwal_singh_bounds.expected_range(dim, draws) == pytest.approx(ranges.mean(), abs=error)
        sizes = np.abs(z[0])
        error = 4.9 * sizes.std() / math.sqrt(100_000)
        assert agarwal_singh_bounds.expected_size(draws) == pytest.approx(sizes.mean(), abs=error)
    # The range of two coordinates is the size of a sum of twice as many draws.
    assert agarwal_singh_bounds.expected_range(2, 3) == pytest.approx(agarwal_singh_bounds.expected_size(6))
    assert agarwal_singh_bounds.expected_range(1, 3) == 0


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


@pytest.mark.parametrize(
    "name",
    ["ftpl-simplex", *(pytest.param(f"reduction-{on}", marks=pytest.mark.slow) for on in ("exp2-actions", "scrible"))],
)
def test_cases_get_their_expected_verdicts(name):
    one = entry(name)
    for case in one.cases:
        changes = {key: getattr(case, key) for key in ("losses", "rounds", "arms") if getattr(case, key)}
        if case.delta is not None:
            changes["delta"] = case.delta
        setting = one.setting(calibration=case.calibration, epsilon=case.epsilon, **changes)
        claim = one.claim(setting, neighbours=case.neighbours, surface=case.surface)
        learner = one.build(setting, **case.parameters)
        result = falsify(learner, claim, rounds=setting.rounds, runs=case.runs, seed=2)
        assert result.verdict.name.lower() == case.expected, case
