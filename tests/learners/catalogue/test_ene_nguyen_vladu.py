"""PrivateBandit against the paper's pseudocode, its response's precision, and its slack."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, norm

from overclaim.audit.play.transcripts import play
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.loss_choices import alphabet_of
from overclaim.learners.catalogue import ene_nguyen_vladu
from overclaim.learners.entry import Setting
from overclaim.learners.leaders.doubling import Doubling
from overclaim.learners.leaders.private_bandit import MIN_RUNS, NoisyOco, PrivateBandit, conditional_gradient
from overclaim.learners.problems.combinatorial import Paths, SpanningTrees
from overclaim.learners.problems.domains import L1Ball, L2Ball, LInfBall, ProbabilitySimplex
from overclaim.learners.problems.losses import Linear, Quadratic
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.measures.gaussian_dp import gaussian_mu
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.view import RELEASE
from overclaim.tests.support.refusals import refusals

CLAIM = Claim(epsilon=1.0, losses="lipschitz")
LAPLACE, GAUSSIAN = (
    next(e for e in ene_nguyen_vladu.ENTRIES if e.name == f"ene-nguyen-vladu/private-bandit-{noise}")
    for noise in ("laplace", "gaussian")
)


def setting(rounds=16, **changes):
    return Setting(rounds=rounds, **{"arms": 1, "losses": "lipschitz", **changes})


def pairs(bandit):
    """The audit's own pairs that differ in the first round, with losses of 0 from then on."""
    standard = first_round(alphabet_of(bandit, CLAIM), bandit.rounds, 1)
    return [pair for pair in standard if not any(pair.left[-1].slope)]


@pytest.mark.parametrize("domain", [L2Ball(3), LInfBall(3, 0.5), ProbabilitySimplex(3)], ids=str)
def test_conditional_gradient_is_as_precise_as_asked(domain):
    """The minimiser of 1/2 ||x||^2 + <s, x> is the projection of -s."""
    linear = np.random.default_rng(0).normal(size=(3, 300))
    for precision in (0.5, 0.1):
        x = conditional_gradient(domain, linear, precision)
        assert np.sqrt(np.square(x - domain.project(-linear)).sum(axis=0)).max() <= precision


@pytest.mark.parametrize(
    "domain", [L2Ball(3), SpanningTrees(3, ((0, 1), (1, 2), (2, 0))), Paths(2, ((0, 1),) * 3)], ids=str
)
def test_conditional_gradient_of_a_run_does_not_depend_on_the_others(domain):
    """Most have arrived when few still move, so those are looked at with all others and by themselves."""
    runs = 6 * MIN_RUNS
    linear = np.random.default_rng(0).normal(size=(3, runs)) * np.geomspace(0.01, 3, runs)
    together = conditional_gradient(domain, linear, 0.1)
    for run in range(0, runs, 71):
        here = linear[:, run : run + 1]
        alone = conditional_gradient(domain, here, 0.1)
        np.testing.assert_array_equal(together[:, run : run + 1], alone)


def test_derived_constants():
    bandit = PrivateBandit(oracle=L2Ball(4), rounds=256, noise=Laplace(0.0), lipschitz=3.0)
    assert (bandit.batch, bandit.batches) == (16, 16)
    assert bandit.zeta == pytest.approx(2 * 2 / 4)
    assert bandit.eta == pytest.approx(2 / (64 * 2 * 3))
    # M = L D n / zeta = T^(1/4) sqrt(n) L
    assert 3 * 2 * 4 / bandit.zeta == pytest.approx(4 * 2 * 3)
    published = ene_nguyen_vladu.private_bandit_laplace(setting(256, arms=4, epsilon=2.0))
    assert published.noise.scale == pytest.approx(16 * 4 * 8 / 2)


@pytest.mark.parametrize(("rounds", "batch", "batches"), [(1, 1, 1), (2, 2, 1), (10, 4, 3), (16, 4, 4), (17, 5, 4)])
def test_horizons_that_are_no_squares(rounds, batch, batches):
    bandit = PrivateBandit(oracle=L1Ball(2), rounds=rounds, noise=Laplace(1.0))
    assert (bandit.batch, bandit.batches) == (batch, batches)
    draws = Draws(0)
    state = bandit.start(3, draws)
    for _ in range(rounds):
        x = bandit.act(state, draws)
        bandit.update(state, x, np.ones(3), draws)


def test_without_noise_it_is_the_pseudocode():
    """Algorithm 1 by hand, from the played points: the response of batch R + 1 rests on batches 1..R-1."""
    bandit = ene_nguyen_vladu.private_bandit_laplace(setting(36, arms=2, epsilon=math.inf))
    loss, draws, runs = Quadratic(curvature=0.3, centre=(0.5, -0.2)), Draws(1), 5
    state, sums, centres = bandit.start(runs, draws), [np.zeros((2, runs))], []
    for batch in range(6):
        gradient = np.zeros((2, runs))
        for r in range(6):
            x = bandit.act(state, draws)
            if r == 0:
                centres.append(state.oco.x.copy())
            direction = (x - centres[batch]) / bandit.zeta
            np.testing.assert_allclose(np.square(direction).sum(axis=0), 1.0)
            gradient += 2 / bandit.zeta * loss.value(x) * direction
            bandit.update(state, x, loss.value(x), draws)
        sums.append(sums[-1] + gradient)
    for batch in range(1, 6):
        exact = L2Ball(2).project(-bandit.eta * sums[batch - 1])
        distance = np.sqrt(np.square(centres[batch] - exact).sum(axis=0)).max()
        assert distance <= 2 / math.sqrt(6)


@pytest.mark.parametrize("entry", [LAPLACE, GAUSSIAN], ids=lambda e: e.name)
@pytest.mark.parametrize("dim", [1, 2])
def test_releases_are_their_means_plus_noise(entry, dim):
    """Kolmogorov-Smirnov on 3 nodes, each at 1e-7: chance 3e-7. The responses released beside carry no noise."""
    chosen = setting(16, arms=dim, delta=1e-2 if entry is GAUSSIAN else 0.0)
    bandit = entry.build(chosen)
    pair = pairs(bandit)[0]
    block = play(bandit, pair, Draws(2), 4000, view=RELEASE)
    assert block.releases.shape == (3, 2 * dim, 4000)
    fed = [pair.feedback(t, block.actions[t], "bandit", block.left) for t in range(16)]
    noise = block.releases - bandit.release_means(block.actions, block.releases, fed)
    np.testing.assert_array_equal(noise[:, dim:], 0.0)
    for node in noise[:, :dim]:
        law = ("laplace", (0, bandit.noise.scale)) if entry is LAPLACE else ("norm", (0, bandit.noise.sigma))
        assert kstest(node[0], law[0], args=law[1]).pvalue > 1e-7


def largest_ratio(bandit, pair, runs=4000):
    """Return the largest log ratio of releases: for Laplace noise, epsilon where its atoms are met."""
    block = play(bandit, pair, Draws(3), runs, view=RELEASE)
    total = np.zeros(runs)
    for sign, world in ((1, True), (-1, False)):
        fed = [pair.feedback(t, block.actions[t], "bandit", world) for t in range(pair.rounds)]
        noise = block.releases - bandit.release_means(block.actions, block.releases, fed)
        total += sign * bandit.noise.log_density(noise.reshape(-1, runs))
    return np.abs(total).max()


@pytest.mark.parametrize(
    ("rounds", "epsilon"),
    [
        (4, 2 * (1 + 2**-0.5) * 2**0.5 / 4),
        (9, 4 * (1 + 3**-0.5) * 3**0.5 / (3 * math.log2(9))),
        (16, 0.75),
        (256, 0.3125),
    ],
)
def test_true_epsilon_of_the_published_noise(rounds, epsilon):
    """2 (1 + zeta / D) T^(1/4) levels / (sqrt T lg T): above 1 at T = 4 and 9, then falling as T^(-1/4)."""
    bandit = LAPLACE.build(setting(rounds))
    ratios = [largest_ratio(bandit, pair) for pair in pairs(bandit)]
    assert max(ratios) == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize("rounds", [4, 9, 16, 64])
def test_corrected_noise_is_tight(rounds):
    bandit = LAPLACE.build(setting(rounds, calibration="corrected"))
    ratios = [largest_ratio(bandit, pair) for pair in pairs(bandit)]
    assert max(ratios) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (0.1, 1e-6), (5.0, 1e-3)])
def test_gaussian_mu_attains_its_delta(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    attained = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert attained == pytest.approx(delta, rel=1e-6)


def test_actions_before_the_third_batch_know_nothing():
    """At T = 4 no action rests on a loss: both worlds play the same points from the same draws."""
    bandit = LAPLACE.build(setting(4))
    played = []
    for offset in (0.0, 1.0):
        draws, loss = Draws(4), Linear(slope=(1.0,), offset=offset)
        state, actions = bandit.start(50, draws), []
        for _ in range(4):
            x = bandit.act(state, draws)
            actions.append(x)
            bandit.update(state, x, loss.value(x), draws)
        played.append(np.array(actions))
    np.testing.assert_array_equal(*played)


def test_template_learns_without_noise():
    oco = NoisyOco(oracle=ProbabilitySimplex(3), rounds=200, eta=0.1, noise=Laplace(0.0), precision=0.05)
    draws, gradient = Draws(5), np.array([[1.0], [0.0], [2.0]])
    state = oco.start(4, draws)
    for _ in range(200):
        oco.update(state, oco.act(state, draws), gradient, draws)
    assert oco.act(state, draws)[1].min() > 0.9


def test_doubling_starts_afresh_at_each_horizon():
    built = []

    def build(rounds):
        built.append(rounds)
        return PrivateBandit(oracle=L2Ball(1), rounds=rounds, noise=Laplace(1.0))

    learner, draws = Doubling(build=build, first=4), Draws(6)
    assert (learner.feedback, learner.arms) == ("bandit", 1)
    built.clear()
    state = learner.start(3, draws)
    for _ in range(4 + 8 + 1):
        x = learner.act(state, draws)
        learner.update(state, x, np.ones(3), draws)
    assert built == [4, 8, 16]
    assert state.inner.t == 1


@pytest.mark.parametrize("entry", [LAPLACE, GAUSSIAN], ids=lambda e: e.name)
def test_pairs_meet_the_papers_assumptions(entry):
    """1-Lipschitz, and 0 somewhere in the unit ball."""
    grid = np.linspace(-1, 1, 201)[None]
    bandit = entry.build(setting(delta=1e-2 if entry is GAUSSIAN else 0.0))
    standard = first_round(alphabet_of(bandit, CLAIM), bandit.rounds, 1)
    assert len(standard) == 15
    for pair in standard:
        assert pair.t0 == 0
        for loss in {*pair.left, *pair.right}:
            assert loss.lipschitz(1.0) <= 1
            assert np.abs(loss.value(grid)).min() < 1e-12


test_bad_input_is_named = refusals(
    (lambda: ene_nguyen_vladu.private_bandit_laplace(setting(), domain="torus"), "domain must be one of .*torus"),
    (lambda: ene_nguyen_vladu.private_bandit_gaussian(setting()), "delta must be in"),
    (lambda: PrivateBandit(oracle=ProbabilitySimplex(1), rounds=4, noise=Laplace(1.0)), "more than one point"),
    (lambda: PrivateBandit(oracle=L2Ball(1), rounds=0, noise=Laplace(1.0)), "rounds must be"),
    (lambda: Doubling(build=lambda rounds: None, first=0), "first must be"),
)
