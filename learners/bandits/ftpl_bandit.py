"""Follow the perturbed leader for bandits, with geometric resampling in place of importance weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.parameters import check_positive
from ..checks import check_arms, check_whole
from ..protocol import Arms, FeedbackKind
from ..sampling import of_arm, smallest_type
from ..weights import WeightsState


@dataclass(frozen=True, kw_only=True)
class FtplBandit:
    """Play `argmin_i eta L_i - Z_i` with fresh Exp(1) perturbations; weigh the loss by a capped resampling count.

    The played arm's loss y enters L as M y, where M is the number of times the perturbed leader must be drawn again
    until it is the played arm, at most `cap`: E[M] = (1 - (1 - p)^cap) / p. Neu & Bartok 2016; Asi, Raman & Talwar
    2025, Algorithm 4. The law of the perturbation, `eta` and `cap` are our choice.

    M is drawn at once, as a capped geometric variable: with Exp(1) perturbations p is the integral of a polynomial,
    which Gauss-Legendre quadrature with ceil(K / 2) nodes gives exactly.

    **Claim**: none of its own; inside `BatchedLaplace`, epsilon-DP. The count is noise of its own, so the law of the
    next arm is no function of the past arms and losses, and this learner offers no `probabilities`.

    Parameters
    ----------
    arms : int
        K, at least 1.
    eta : float
        Learning rate, positive.
    cap : int
        The largest count, at least 1.
    """

    arms: int
    eta: float
    cap: int
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        check_arms(self.arms)
        check_positive("eta", self.eta)
        check_whole("cap", self.cap)

    def start(self, runs: int, draws: Draws) -> WeightsState:
        """Return estimates of 0; the log-weights are -eta L."""
        return WeightsState.fresh(self.arms, runs)

    def act(self, state: WeightsState, draws: Draws) -> Arms:
        """Return the perturbed leader: argmin of eta L - Z is argmin of U exp(eta L), U uniform."""
        perturbed = draws.uniform(state.weights.shape)
        with np.errstate(divide="ignore", over="ignore"):
            perturbed /= state.weights
        best = perturbed[0]
        leader = np.zeros(best.size, dtype=smallest_type(self.arms))
        for arm in range(1, self.arms):
            leader[perturbed[arm] < best] = arm
            best = np.minimum(best, perturbed[arm])
        return leader.astype(np.intp)

    def leading_probability(self, state: WeightsState, arms: Arms) -> Floats:
        """Return the probability that the perturbed leader is the given arm of every run, (runs,).

        With b_j = exp(-eta (L_j - min L)) it is b_i times the integral over u in [0, 1] of the product over j != i of
        1 - u b_j.
        """
        b = state.weights / state.weights.max(axis=0)
        arm_sum = of_arm(b, arms)
        nodes, weights = np.polynomial.legendre.leggauss((self.arms + 1) // 2)
        p = np.zeros(arms.size)
        for u, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            rest = 1 - u * arm_sum
            product = np.reciprocal(rest, out=rest)
            for row in b:
                product *= 1 - u * row
            p += weight * product
        p *= arm_sum
        return p

    def count(self, state: WeightsState, actions: Arms, draws: Draws) -> Floats:
        """Return how often the leader is drawn until it is the played arm, at most `cap`: (runs,)."""
        u = 1 - draws.uniform(actions.size)  # in (0, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            tries = np.log(u) / np.log1p(-np.minimum(self.leading_probability(state, actions), 1.0))
        return np.clip(np.ceil(np.nan_to_num(tries, nan=1.0, posinf=self.cap)), 1, self.cap)

    def update(self, state: WeightsState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Add the count times the loss to the played arm's estimate."""
        estimate = self.count(state, actions, draws)
        estimate *= feedback
        estimate *= -self.eta
        state.shift_at(state.places(actions), estimate)
