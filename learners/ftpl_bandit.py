"""Follow the perturbed leader for bandits, with geometric resampling in place of importance weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..mechanisms.draws import Draws, Floats
from .checks import _check_count, check_arms, check_positive
from .protocol import Arms, FeedbackKind


@dataclass
class PerturbedState:
    """The estimated losses, (arms, runs)."""

    losses: Floats


@dataclass(frozen=True, kw_only=True)
class FtplBandit:
    """Play `argmin_i eta L_i - Z_i` with fresh Exp(1) perturbations; weigh the loss by a capped resampling count.

    The played arm's loss y enters L as M y, where M is the number of times the perturbed leader must be drawn again
    until it is the played arm, at most `cap`: E[M] = (1 - (1 - p)^cap) / p. Neu & Bartok 2016; Asi, Raman & Talwar
    2025, Algorithm 4. The law of the perturbation, `eta` and `cap` are our choice.

    **Claim**: none of its own; inside `BatchedLaplace`, epsilon-DP. The count is noise of its own, so the law of the
    next arm is no function of the past arms and losses, and this learner offers no `probabilities`.

    Parameters
    ----------
    arms : int
        K, at least 1.
    eta : float
        Learning rate, positive.
    cap : int
        The largest count, at least 1. A round costs at most K resamples in expectation.
    """

    arms: int
    eta: float
    cap: int
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        check_arms(self.arms)
        check_positive("eta", self.eta)
        _check_count("cap", self.cap)

    def start(self, runs: int, draws: Draws) -> PerturbedState:
        """Return estimates of 0."""
        return PerturbedState(np.zeros((self.arms, runs)))

    def _leader(self, losses: Floats, draws: Draws) -> Arms:
        perturbed = draws.uniform(losses.shape)
        np.negative(perturbed, out=perturbed)
        np.log1p(perturbed, out=perturbed)  # minus an Exp(1) variable
        perturbed += self.eta * losses
        best = perturbed[0]
        leader = np.zeros(best.size, dtype=np.intp)
        for arm in range(1, self.arms):
            leader[perturbed[arm] < best] = arm
            best = np.minimum(best, perturbed[arm])
        return leader

    def act(self, state: PerturbedState, draws: Draws) -> Arms:
        """Return the perturbed leader."""
        return self._leader(state.losses, draws)

    def count(self, state: PerturbedState, actions: Arms, draws: Draws) -> Floats:
        """Return how often the leader is drawn until it is the played arm, at most `cap`: (runs,)."""
        counts = np.full(actions.size, float(self.cap))
        active = np.arange(actions.size)
        losses = state.losses
        for m in range(1, self.cap):
            missed = self._leader(losses, draws) != actions[active]
            counts[active[~missed]] = m
            active, losses = active[missed], losses[:, missed]
            if not active.size:
                break
        return counts

    def update(self, state: PerturbedState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Add the count times the loss to the played arm's estimate."""
        runs = actions.size
        estimate = self.count(state, actions, draws)
        estimate *= feedback
        state.losses.reshape(-1)[actions * runs + np.arange(runs)] += estimate
