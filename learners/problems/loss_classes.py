"""Classes of convex losses that theorems are about: how strongly convex, and how large on the domain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .domains import LinearMinimiser
from .losses import TOLERANCE, Family, Linear, Quadratic, Switch


@dataclass(frozen=True)
class ConvexClass:
    """Convex losses on a domain.

    A loss that is surely outside is refused; a user's own kind of loss is taken for one that is inside.

    Parameters
    ----------
    domain : object
        Over which linear functions can be minimised, or the bound is not looked at.
    curvature : float
        The least strong convexity.
    bound : float
        The largest |f| on the domain.
    """

    domain: object
    curvature: float = 0.0
    bound: float = math.inf

    def check(self, loss: object, name: str) -> None:
        """Raise ValueError for a loss that is surely outside; `name` names it in the message."""
        if isinstance(loss, Switch):
            self.check(loss.below, name)
            self.check(loss.above, name)
        elif isinstance(loss, np.ndarray):
            self.check(Linear(slope=tuple(loss)), name)
        elif isinstance(loss, Family):
            curved = loss.curvature if isinstance(loss, Quadratic) else 0.0
            if curved < self.curvature * (1 - TOLERANCE):
                raise ValueError(f"{name} must be {self.curvature:g}-strongly convex, got {curved:g}: {loss}")
            if (max_value := self._most(loss)) > self.bound * (1 + TOLERANCE):
                raise ValueError(f"{name} must be at most {self.bound:g} in absolute value, got {max_value:g}: {loss}")

    def _most(self, loss: Family) -> float:
        """Return an |f| that a loss has on the domain: the largest of a linear one, and on balls."""
        if not isinstance(self.domain, LinearMinimiser) or math.isinf(self.bound):
            return 0.0
        if not isinstance(loss, Linear):
            return loss.bound(getattr(self.domain, "inner_radius", 0.0))
        slope = np.array(loss.slope)[:, None]
        ends = [float(np.vdot(slope, self.domain.minimise(sign * slope))) for sign in (1.0, -1.0)]
        return max(abs(end + loss.offset) for end in ends)
