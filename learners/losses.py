"""Losses: vectors for linear losses, small convex families, and the sets that claims quantify over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.draws import Floats
from .protocol import Actions, FeedbackKind

#: Tolerance for membership of a loss set: a vector scaled to norm 1 may be off by a few units in the last place.
TOLERANCE = 1e-9


@runtime_checkable
class Convex(Protocol):
    """A convex loss on points (dim, runs)."""

    def value(self, x: Floats) -> Floats:
        """Return the losses of the points, (runs,)."""

    def gradient(self, x: Floats) -> Floats:
        """Return (sub)gradients at the points, (dim, runs)."""


#: A round's loss: a vector of length `arms` (linear), or a convex function.
Loss = NDArray[np.float64] | Convex


def feedback(loss: Loss, actions: Actions, kind: FeedbackKind) -> Floats:
    """Return what a learner of this feedback kind is told after `actions` under `loss`.

    Returns
    -------
    array
        "bandit": (runs,), the loss of the action. "full": the loss vector (dim, 1), or the gradient at the action
        (dim, runs) for a convex loss.
    """
    if isinstance(loss, np.ndarray):
        if kind == "full":
            return loss[:, None]
        return loss.take(actions) if actions.ndim == 1 else loss @ actions
    return loss.gradient(actions) if kind == "full" else loss.value(actions)


@dataclass(frozen=True)
class LossSet:
    """A set of loss vectors: all that `contains` accepts."""

    name: str
    low: float
    high: float

    def check(self, loss: Floats, what: str) -> None:
        """Raise ValueError unless the vector `loss` lies in the set; `what` names it in the message."""
        if self.name == "l1-ball":
            size, bound = float(np.abs(loss).sum()), "L1 norm at most 1"
        elif self.name in ("l2-ball", "lipschitz"):
            size, bound = float(np.sqrt(np.square(loss).sum())), "L2 norm at most 1"
        else:
            outside = loss[(loss < self.low - TOLERANCE) | (loss > self.high + TOLERANCE)]
            if outside.size:
                raise ValueError(
                    f"{what} must lie in [{self.low:g}, {self.high:g}] ({self.name}), got {outside[0]:g}"
                )
            return
        if size > 1 + TOLERANCE:
            raise ValueError(f"{what} must have {bound} ({self.name}), got norm {size:g}")

    def scale(self, dim: int) -> float:
        """Return the factor that brings a vector of entries in [low, high] into the set at its boundary."""
        return {"l1-ball": 1 / dim, "l2-ball": dim**-0.5, "lipschitz": dim**-0.5}.get(self.name, 1.0)


LOSS_SETS: dict[str, LossSet] = {
    "unit": LossSet("unit", 0.0, 1.0),
    **{name: LossSet(name, -1.0, 1.0) for name in ("symmetric", "l1-ball", "l2-ball", "lipschitz")},
}
