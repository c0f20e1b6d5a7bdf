"""Nothing that decides is dropped from an exact law: ends of supports, small masses, lost states, coarse grids."""

import math

import numpy as np
import pytest

from overclaim.audit.laws.exact import NotExactError, epsilon_from_laws, exact_epsilon
from overclaim.audit.play.pairs import Pair
from overclaim.learners import BanditReduction, BatchedLaplace, Exp3, Ftrl, Threshold
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.mechanisms.measures.gaussian_dp import gaussian_epsilon
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.privacy_loss import PrivacyLoss
from overclaim.mechanisms.view import RELEASE


def first_round(rounds, left, right, suffix=0.0, arms=2):
    worlds = np.full((2, rounds, arms), float(suffix))
    worlds[0, 0], worlds[1, 0] = left, right
    return Pair(*worlds)


def test_the_ends_of_seventy_composed_releases_decide():
    """The outermost atoms have probability 2^-70; dropping masses under 1e-15 gave 1.714."""
    learner = Ftrl(domain=EntropySimplex(10), rounds=128, eta=0.1, noise=Laplace(70.0))
    pair = first_round(128, 1, -1, arms=10)
    assert exact_epsilon(learner, pair, view=RELEASE, deltas=(0.0,))[0.0] == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("shifts", [[0.3, 0.1, 0.7], [0.25] * 3, [1.0, 1 / 3, 1 / 7]])
def test_ends_need_not_lie_on_the_grid(shifts):
    assert PrivacyLoss.of_laplace(shifts).epsilon(0.0) == pytest.approx(math.fsum(shifts), rel=1e-14)


def test_a_thousand_releases_compose(monkeypatch):
    """Their sum is nearly normal, so delta is nearly that of Gaussian DP."""
    monkeypatch.setattr("overclaim.mechanisms.privacy_loss.STEPS", 100)
    loss = PrivacyLoss.of_laplace([0.01] * 1000)
    assert loss.epsilon(0.0) == pytest.approx(10.0)
    assert loss.left.sum() == pytest.approx(1.0, abs=1e-9)
    one = loss.parts[0]
    places = (one.start + np.arange(one.left.size)) * one.step
    variance = 1000 * float(one.left @ places**2 - (one.left @ places) ** 2)
    assert loss.epsilon(1e-3) == pytest.approx(gaussian_epsilon(math.sqrt(variance), 1e-3), rel=0.02)


def direct(loss, epsilon):
    """Delta by direct convolution, in which small masses keep their digits."""
    worlds = []
    for world in ("left", "right"):
        masses = np.ones(1)
        for part in loss.parts:
            masses = np.convolve(masses, getattr(part, world))
        worlds.append(masses)
    losses = (loss.start + np.arange(worlds[0].size)) * loss.step
    return max(
        float(np.sum(masses * -np.expm1(np.minimum(epsilon - sign * losses, 0.0))))
        for masses, sign in zip(worlds, (1, -1), strict=True)
    )


def test_small_deltas_keep_their_digits(monkeypatch):
    """Forty shifts of very different sizes need no Fourier transform of 1e-17: deltas down to 1e-26 are compared."""
    monkeypatch.setattr("overclaim.mechanisms.privacy_loss.STEPS", 60)
    loss = PrivacyLoss.of_laplace([0.05] * 40)
    top = loss.epsilon(0.0)
    deltas = []
    for share in (0.3, 0.6, 0.8, 0.9, 0.97, 0.999):
        expected = direct(loss, share * top)
        deltas.append(expected)
        assert loss.delta(share * top) == pytest.approx(expected, rel=1e-6)
    assert deltas[-1] < 1e-14
    epsilons = [loss.epsilon(delta) for delta in (1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-30)]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] <= top


@pytest.mark.slow(reason="two exact laws")
def test_states_in_which_an_arm_is_never_played_lose_no_sequence():
    """Without exploration far states divide by 0: the exact epsilon was given as 0."""
    pair = first_round(4, 1, 0, suffix=1)
    bare, mixed = (
        exact_epsilon(BatchedLaplace(Exp3(arms=2, eta=0.5, gamma=gamma), epsilon=1.0, batch=1), pair)[0.0]
        for gamma in (0.0, 1e-4)
    )
    assert bare == pytest.approx(0.7984, abs=1e-4)
    assert bare == pytest.approx(mixed, abs=1e-3)


@pytest.mark.parametrize("epsilon", [700.0, 2000.0])
def test_probabilities_that_no_double_holds_have_no_exact_value(epsilon):
    """An underflow was given as an infinite epsilon."""
    learner = BatchedLaplace(Threshold(arms=2, threshold=1.0), epsilon=epsilon, batch=1)
    with pytest.raises(NotExactError, match="probabilities below 1e-290: the noise is too small"):
        exact_epsilon(learner, first_round(2, 1, 0, suffix=1))


def test_a_grid_that_has_not_converged_has_no_exact_value():
    learner = BanditReduction(Exp3(arms=2, eta=0.5, gamma=0.1), epsilon=200.0)
    with pytest.raises(NotExactError, match=r"the grid is too coarse here, with Laplace\(scale=0\.005\)"):
        exact_epsilon(learner, first_round(4, 1, 0, suffix=1))


def test_a_replayed_law_is_compared_by_its_logarithms():
    """Two arms of weights e^0 and e^-800: the probability of the rare one is no double, its ratio is."""

    class Rare:
        arms, feedback = 2, "bandit"

        def start(self, runs, draws):
            return {"log": np.zeros(runs), "runs": runs}

        def act(self, state, draws):
            return (draws.uniform(state["runs"]) < self.probabilities(state)[1]).astype(np.intp)

        def probabilities(self, state):
            rare = np.exp(state["log"] - 300)
            return np.stack([1 - rare, rare])

        def update(self, state, actions, feedback, draws):
            state["log"] = feedback * 1.0

    learner = Rare()
    epsilons = exact_epsilon(learner, first_round(4, 1, 0, suffix=1), deltas=(0.0, 1e-3))
    assert epsilons[0.0] == pytest.approx(1.0, rel=1e-9)
    assert epsilons[1e-3] == 0.0


@pytest.mark.slow(reason="exact laws on a grid")
def test_numerical_laws_refuse_deltas_below_their_resolution():
    learner = Ftrl(domain=EntropySimplex(2), rounds=4, eta=0.5, noise=Laplace(4.0))
    pair = Pair([[1, -1], [0, 0], [0, 0], [0, 0]], [[-1, 1], [0, 0], [0, 0], [0, 0]])
    assert exact_epsilon(learner, pair, deltas=(0.0, 1e-3))[0.0] == 2.0
    with pytest.raises(NotExactError, match="this law is numerical: delta must be 0 or at least 1e-05, got 1e-09"):
        exact_epsilon(learner, pair, deltas=(1e-9,))


def test_delta_zero_of_laws_counts_every_possible_outcome():
    p, q = np.array([1.0, 1e-300, 0.0]), np.array([1.0, 1e-305, 0.0])
    assert epsilon_from_laws(p, q) == pytest.approx(5 * math.log(10))
    assert epsilon_from_laws(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == math.inf


def test_losses_on_different_grids_do_not_compose():
    one = PrivacyLoss.of_laplace([1.0])
    other = PrivacyLoss(one.step * 2, one.start, one.left, one.right)
    with pytest.raises(ValueError, match="steps must agree"):
        one.compose(other)
