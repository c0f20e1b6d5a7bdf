"""The threshold probe: the inner learner that makes a noisy scalar leak all of its privacy loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.parameters import check_finite
from ..checks import check_arms
from ..protocol import Arms, FeedbackKind


@dataclass
class ThresholdState:
    """The last fed loss minus the threshold, (runs,)."""

    excess: Floats


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Play arm 1 next iff the last fed loss exceeds `threshold`, else arm 0. Starts with arm 0.

    A probe for claims "for every inner learner": with Laplace noise and a threshold at or beyond the larger of two
    neighbouring losses, the event {arm 1} attains the whole privacy loss of the noisy scalar.

    **Claim**: none of its own.

    Parameters
    ----------
    arms : int
        At least 1; arms beyond the second are never played.
    threshold : float
        c, in units of the fed loss.
    """

    arms: int
    threshold: float
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        check_arms(self.arms)
        check_finite("threshold", self.threshold)

    def start(self, runs: int, draws: Draws) -> ThresholdState:
        """Return the state that plays arm 0."""
        return ThresholdState(np.zeros(runs))

    def act(self, state: ThresholdState, draws: Draws) -> Arms:
        """Return arm 1 where the excess is positive."""
        return ((state.excess > 0) & (self.arms > 1)).astype(np.intp)

    def update(self, state: ThresholdState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Remember the excess of the fed loss."""
        np.subtract(feedback, self.threshold, out=state.excess)

    def probabilities(self, state: ThresholdState) -> Floats:
        """Return the deterministic choice as probabilities, (arms, runs)."""
        arm = self.act(state, Draws(0))
        certain: Floats = (np.arange(self.arms)[:, None] == arm).astype(float)
        return certain

    def line_probabilities(self, x: Floats) -> Floats:
        """Arm 1 iff x > 0."""
        second = (x > 0).astype(float)
        return np.stack([1 - second, second])

    def line_step(self, x: Floats, arm: int) -> tuple[Floats, Floats]:
        """Return the affine step to the fed loss minus the threshold, whatever x."""
        return np.full(x.shape, -self.threshold), np.ones(x.shape)
