"""The ladder probe: the inner learner that makes an action sequence spell out a noisy scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ..protocol import Arms, FeedbackKind


@dataclass
class LadderState:
    """The rung that the last fed loss stands on, (runs,)."""

    rung: Arms


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """Play the number of thresholds that the last fed loss exceeds. Starts with arm 0.

    A probe for claims "for every inner learner" with more than two arms. Thresholds at the two neighbouring losses
    (three arms) make both tails of a Laplace variable decisive, where `Threshold` uses one; more of them release the
    noisy scalar to the width of a rung, so that an attack may choose its event afterwards.

    **Claim**: none of its own.

    Parameters
    ----------
    thresholds : sequence of float
        Increasing, in units of the fed loss; one fewer than the arms.
    """

    thresholds: Sequence[float]
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        rungs = tuple(float(c) for c in self.thresholds)
        if any(not a < b for a, b in pairwise(rungs)):
            raise ValueError(f"thresholds must increase, got {rungs!r}")
        object.__setattr__(self, "thresholds", rungs)

    @property
    def arms(self) -> int:
        """One more than the thresholds."""
        return len(self.thresholds) + 1

    def start(self, runs: int, draws: Draws) -> LadderState:
        """Return the state that plays arm 0."""
        return LadderState(np.zeros(runs, dtype=np.intp))

    def act(self, state: LadderState, draws: Draws) -> Arms:
        """Return the rung."""
        return state.rung.copy()

    def update(self, state: LadderState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Climb: an equal threshold is not exceeded."""
        state.rung = np.searchsorted(self.thresholds, feedback, side="left")

    def probabilities(self, state: LadderState) -> Floats:
        """Return the deterministic choice as probabilities, (arms, runs)."""
        certain: Floats = (np.arange(self.arms)[:, None] == state.rung).astype(float)
        return certain
