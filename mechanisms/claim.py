"""A privacy claim: what is promised, about which losses, under which neighbour relation, and where it is written."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: The loss sets by name; `learners.losses` holds their geometry.
LOSS_SETS = ("unit", "symmetric", "l1-ball", "l2-ball", "lipschitz")
NEIGHBOURS = ("replace", "zero-out")
SURFACES = ("actions", "release", "publication")
#: What an audit may be expected to find.
EXPECTATIONS = ("falsified", "survived")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of (epsilon, delta)-differential privacy for the released transcript of a learner.

    Parameters
    ----------
    epsilon : float
        In nats, positive and finite.
    delta : float
        In [0, 1).
    losses : str
        The loss set: "unit" for [0, 1] or "symmetric" for [-1, 1] on every coordinate, "l1-ball" or "l2-ball" for
        the unit balls of linear losses, "lipschitz" for convex functions with gradients of norm at most 1.
    neighbours : str
        "replace" (one round's whole loss is replaced) or "zero-out" (it becomes 0).
    surface : str
        What the adversary sees: "actions"; "release", the noisy quantities whose privacy the proof composes, as far as
        actions depend on them; or "publication", all of them as a paper publishes them, those of the last round too.
    source : str
        Paper and theorem.

    Raises
    ------
    ValueError
        For a value outside its range, naming the value.

    Examples
    --------
    >>> Claim(epsilon=1.0, losses="symmetric").neighbours
    'replace'
    >>> Claim(epsilon=-1.0)
    Traceback (most recent call last):
    ValueError: epsilon must be positive and finite, got -1.0
    """

    epsilon: float
    delta: float = 0.0
    losses: str = "unit"
    neighbours: str = "replace"
    surface: str = "actions"
    source: str = ""

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise ValueError(f"epsilon must be positive and finite, got {self.epsilon!r}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be in [0, 1), got {self.delta!r}")
        for name, value, known in (
            ("losses", self.losses, LOSS_SETS),
            ("neighbours", self.neighbours, NEIGHBOURS),
            ("surface", self.surface, SURFACES),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
