"""Exact levels against closed forms, and dp_accounting as an independent twin where it is installed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from overclaim.audit.laws.exact import NotExactError, epsilon_from_laws, exact_epsilon
from overclaim.audit.laws.exact_levels import exact_level, exact_mu_and_rho, level_of_gaussian, level_of_laws
from overclaim.audit.plans.tasks import Task
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners import BatchedLaplace, Threshold
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.entry import Setting
from overclaim.learners.problems.losses import Linear
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP, gaussian_delta
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.mechanisms.noise import Gaussian
from overclaim.mechanisms.privacy_loss import PrivacyLoss
from overclaim.mechanisms.view import RELEASE, VIEWS

GRID = np.arange(-4.0, 5.2, 2e-3)


def gaussian_laws(mu):
    """Two normal laws in narrow cells, the ends far out in one."""
    edges = np.append(-np.inf, np.append(GRID, np.inf))
    return np.diff(stats.norm.cdf(edges, mu)), np.diff(stats.norm.cdf(edges))


@pytest.mark.parametrize(
    ("measure", "truth"),
    [
        (GDP(9.0), 1.2),
        (ZCDP(9.0), 0.72),
        (RDP(3.0, 9.0), 3 * 0.72),
        (ApproxDP(0.0, 0.9), 2 * stats.norm.cdf(0.6) - 1),
        (Profile(((1.0, 0.2), (0.0, 0.3))), (2 * stats.norm.cdf(0.6) - 1) / 0.3),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_normal_laws_have_the_levels_of_the_gaussian_mechanism(measure, truth):
    assert level_of_laws(measure, *gaussian_laws(1.2)) == pytest.approx(truth, rel=0.02)
    assert level_of_gaussian(measure, 1.2) == pytest.approx(truth, rel=1e-9)
    assert level_of_gaussian(measure, 0.0) == 0


def test_levels_of_few_outcomes_are_those_of_the_worst_event_or_of_the_divergence():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    events = [(0.5, 0.2), (0.8, 0.5), (0.7, 0.5)]
    assert level_of_laws(GDP(1.0), p, q) == pytest.approx(max(float(GDP(1.0).needed(*event)) for event in events))
    assert level_of_laws(ApproxDP(1.0, 0.05), p, q) == pytest.approx(epsilon_from_laws(p, q, 0.05))
    direct = math.log(sum(p**3 * q**-2.0)) / 2
    assert level_of_laws(RDP(3.0, 1.0), p, q) == pytest.approx(direct)
    assert level_of_laws(GDP(1.0), p, q) == pytest.approx(level_of_laws(GDP(1.0), q, p))
    assert level_of_laws(ZCDP(1.0), np.array([0.5, 0.5]), np.array([1.0, 0.0])) == math.inf


def test_an_exact_rho_is_right_to_six_digits_where_its_order_lies_between_two_that_were_looked_at():
    for p, q in ((0.999, 0.9), (0.1, 0.002)):
        a = 1 + np.geomspace(1e-3, 100, 200_000)
        terms = [a * np.log(x) + (1 - a) * np.log(y) for x, y in ((p, q), (1 - p, 1 - q))]
        back = [a * np.log(y) + (1 - a) * np.log(x) for x, y in ((p, q), (1 - p, 1 - q))]
        rho = max(np.max(np.logaddexp(*both) / (a - 1) / a) for both in (terms, back))
        laws = np.array([p, 1 - p]), np.array([q, 1 - q])
        assert level_of_laws(ZCDP(1.0), *laws) == pytest.approx(rho, rel=1e-6)


def test_nothing_to_see_is_exactly_0():
    """A mu of 1e-15 was printed as exact where actions cannot differ, an epsilon of -0 where nothing is released."""
    learner = (
        Task(target="asi-raman-talwar/batched-exp3", parameters=dict.fromkeys(("eta", "gamma", "batch")))
        .prepare()
        .target
    )
    pair = Pair(np.array([[1.0, 1.0]] * 4), np.array([[0.0, 0.0], *[[1.0, 1.0]] * 3]))
    assert exact_mu_and_rho(learner, pair) == {"mu": 0.0, "rho": 0.0}
    assert math.copysign(1.0, PrivacyLoss.of_laplace([]).epsilon(0.0)) == 1.0


@pytest.mark.few("2-actions", "2-release")
@pytest.mark.parametrize("surface", ["actions", "release"])
@pytest.mark.parametrize("rounds", [2, 4])
def test_a_law_of_finite_losses_has_a_finite_mu_and_rho(surface, rounds):
    """Sums that rounding made 1 in one world, and masses that it made 0, told of infinite ones."""
    prepared = Task(target="agarwal-singh/ftrl-experts", rounds=rounds, losses="symmetric", surface=surface).prepare()
    others = [[1.0, 1.0]] * (rounds - 1)
    pair = Pair(np.array([[1.0, -1.0], *others]), np.array([[-1.0, 1.0], *others]))
    levels = exact_mu_and_rho(prepared.target, pair, view=VIEWS[surface])
    epsilons = exact_epsilon(prepared.target, pair, view=VIEWS[surface], deltas=(0.0, 0.01, 0.1))
    assert 0 < levels["rho"] < epsilons[0.0] ** 2 / 2
    assert 0 < levels["mu"] < math.inf
    for delta, epsilon in epsilons.items():
        assert gaussian_delta(levels["mu"], epsilon) > 0.99 * delta  # mu-GDP implies no less than there is


def test_a_release_with_gaussian_noise_states_its_mu_and_rho_and_agrees_with_its_epsilon():
    entry = lookup("agarwal-singh/ftpl-simplex")
    learner = entry.build(entry.setting(rounds=4, epsilon=1.0))
    pair = Pair([[1.0, 1.0]] * 4, [[-1.0, -1.0], *[[1.0, 1.0]] * 3])
    levels = exact_mu_and_rho(learner, pair, view=RELEASE)
    assert levels["rho"] == pytest.approx(levels["mu"] ** 2 / 2)
    epsilon = exact_epsilon(learner, pair, view=RELEASE, deltas=(0.01,))[0.01]
    assert gaussian_delta(levels["mu"], epsilon) == pytest.approx(0.01)
    with pytest.raises(NotExactError):
        exact_level(object(), pair, GDP(1.0), view=RELEASE)


def laplace_release():
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    return learner, Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])


def test_the_divergence_of_a_laplace_release_is_mironovs():
    """Mironov 2017, Proposition 6: ln(a/(2a-1) e^(a-1) + (a-1)/(2a-1) e^-a) / (a-1) at scale 1 for a shift of 1."""
    learner, pair = laplace_release()
    for a in (2.0, 8.0):
        truth = math.log(a / (2 * a - 1) * math.exp(a - 1) + (a - 1) / (2 * a - 1) * math.exp(-a)) / (a - 1)
        assert exact_level(learner, pair, RDP(a, 1.0), view=RELEASE) == pytest.approx(truth, rel=1e-3)
    assert exact_level(learner, pair, ZCDP(1.0), view=RELEASE) <= 0.5
    assert exact_level(learner, pair, ApproxDP(1.0), view=RELEASE) == pytest.approx(1.0, abs=1e-3)


def test_dp_accounting_agrees():
    accounting = pytest.importorskip("dp_accounting", reason="dp_accounting is not installed")
    learner, pair = laplace_release()
    orders = [1.5, 2.0, 8.0]
    laplace = accounting.rdp.RdpAccountant(orders).compose(accounting.LaplaceDpEvent(1.0))
    for order, epsilon in zip(orders, laplace._rdp, strict=True):  # it has no public name
        assert exact_level(learner, pair, RDP(order, 1.0), view=RELEASE) == pytest.approx(epsilon, rel=1e-3)
    gaussian = accounting.pld.PLDAccountant().compose(accounting.GaussianDpEvent(1 / 0.8))
    for delta in (1e-2, 1e-4):
        assert GDP(0.8).approximate(delta) == pytest.approx(gaussian.get_epsilon(delta), rel=1e-3)


def test_a_bandits_gaussian_release_given_its_direction():
    """Means of the noisy sums of played runs, given the direction: they differ by mu standard deviations."""
    learner = lookup("ene-nguyen-vladu/private-bandit-gaussian").build(
        Setting(rounds=4, arms=1, epsilon=1.0, delta=0.01, losses="lipschitz")
    )
    learner = replace(learner, noise=Gaussian(6.0))
    zero = Linear(slope=(0.0,))
    pair = Pair(
        [Linear(slope=(1.0,), offset=0.5), zero, zero, zero], [Linear(slope=(-1.0,), offset=0.25), zero, zero, zero]
    )
    up, down = learner.law(pair.left, pair.right, pair.t0, RELEASE).mus
    assert 0.1 < min(up, down) < max(up, down) - 0.1
    played = play(learner, pair, Draws(0, Stage.CERTIFY), 20_000, view=RELEASE)
    first, x = played.releases[0][:1], learner.template._vertex(1)
    for mu, side in ((up, played.actions[0, 0] > x[0, 0]), (down, played.actions[0, 0] < x[0, 0])):
        left, right = (first[0][side & world] for world in (played.left, ~played.left))
        gap = abs(left.mean() - right.mean()) / learner.noise.sigma
        assert gap == pytest.approx(mu, abs=5 * math.sqrt(4 / side.sum()))  # the chance is below 1e-6
    levels = exact_mu_and_rho(learner, pair, view=RELEASE)
    assert levels == {"mu": max(up, down), "rho": max(up, down) ** 2 / 2}
    epsilon = exact_epsilon(learner, pair, view=RELEASE, deltas=(0.01,))[0.01]
    assert (gaussian_delta(up, epsilon) + gaussian_delta(down, epsilon)) / 2 == pytest.approx(0.01, rel=1e-6)
    assert exact_level(learner, pair, RDP(1e6, 1.0), view=RELEASE) / 1e6 == pytest.approx(levels["rho"], rel=1e-3)
    assert exact_level(learner, pair, RDP(2.0, 1.0), view=RELEASE) < 2 * levels["rho"]
    later = Pair([zero, zero, Linear(slope=(1.0,)), zero], [zero, zero, Linear(slope=(-1.0,)), zero])
    with pytest.raises(NotExactError):
        exact_level(learner, later, GDP(1.0), view=RELEASE)


def test_what_is_left_beside_nearly_all_keeps_its_digits():
    """mu was infinite where the sum of a law's likelier outcomes was rounded to 1."""
    p, q = np.array([1 - 1e-30, 1e-30]), np.array([1 - 1e-20, 1e-20])
    expected = special.ndtri(1e-20) - special.ndtri(1e-30)
    assert level_of_laws(GDP(1.0), p, q) == level_of_laws(GDP(1.0), q, p) == pytest.approx(expected)
