"""Approximate differential privacy, and privacy profiles: finitely many points of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...errors import must_be
from .measure import Floats, TradeOff, directed, is_number, number_text, pair_of

#: The largest delta.
_BELOW_ONE = math.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class ApproxDP(TradeOff):
    """(epsilon, delta)-differential privacy: ``P(S) <= e^epsilon Q(S) + delta`` for every event S.

    Its level is epsilon, and delta where epsilon is 0: then the total variation of the two worlds is at most delta.

    Parameters
    ----------
    epsilon : float
        In nats, finite, at least 0; above 0 where delta is 0.
    delta : float
        In [0, 1).

    Examples
    --------
    >>> float(ApproxDP(0.0, 0.25).needed(0.75, 0.25))
    0.5
    """

    kind: ClassVar[str] = "approximate"
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not (is_number(self.delta) and 0 <= self.delta < 1):
            raise must_be("delta", "in [0, 1)", self.delta)
        if not (is_number(self.epsilon) and self.epsilon >= 0 and self.epsilon + self.delta > 0):
            expected = "at least 0" if self.delta else "positive"
            raise must_be("epsilon", f"{expected} and finite", self.epsilon)
        super().__post_init__()

    @property
    def is_epsilon(self) -> bool:
        """Whether its level is epsilon."""
        return self.epsilon > 0

    @property
    def unit(self) -> str:
        """Epsilon, or delta where epsilon is 0."""
        return "epsilon" if self.epsilon > 0 else "delta"

    def at(self, level: float) -> ApproxDP:
        """Return the claim of another epsilon, or of another delta below 1 where epsilon is 0."""
        if self.epsilon == 0:
            return ApproxDP(0.0, min(level, _BELOW_ONE))
        return ApproxDP(min(level, sys.float_info.max), self.delta)  # a multiple may be beyond

    def as_options(self) -> list[str]:
        """Return both options that make this claim."""
        return ["--epsilon", number_text(self.epsilon), "--delta", number_text(self.delta)]

    def needed(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Return the epsilon that such an event needs at this delta, by itself and by its complement."""
        if self.epsilon == 0:
            return directed(p, q, np.asarray(p, dtype=np.float64) - np.asarray(q, dtype=np.float64))
        return epsilon_needed(p, q, self.delta)

    def allowed(self, q: ArrayLike) -> Floats:
        """Return the largest probability that the claim allows, in closed form."""
        q = np.asarray(q, dtype=np.float64)
        clipped: Floats = np.clip(np.minimum(*self._lines(q)), 0.0, 1.0)
        return clipped

    def slope(self, q: ArrayLike) -> Floats:
        """Return ``e^epsilon``, then ``e^-epsilon``, then 0."""
        q = np.asarray(q, dtype=np.float64)
        steep, flat = self._lines(q)
        with np.errstate(over="ignore"):
            ends = np.where(steep < flat, np.exp(self.epsilon), np.exp(-self.epsilon))
        slopes: Floats = np.where(q + self.delta >= 1, 0.0, ends)
        return slopes

    def _lines(self, q: Floats) -> tuple[Floats, Floats]:
        """Return what the claim allows the event, and what it allows by the event's complement."""
        with np.errstate(over="ignore", invalid="ignore"):
            grown = np.where(q > 0, np.exp(self.epsilon) * q, 0.0)  # e^epsilon may be infinite
            return grown + self.delta, 1 - np.exp(-self.epsilon) * (1 - self.delta - q)

    def approximate(self, delta: float) -> float:
        """Return epsilon, at its own delta and above."""
        return self.epsilon if delta >= self.delta else math.inf

    @property
    def stated(self) -> tuple[float, float]:
        """The claim itself."""
        return self.epsilon, self.delta


def epsilon_needed(p: ArrayLike, q: ArrayLike, delta: ArrayLike) -> Floats:
    """Return the smallest epsilon (nats) at which an event of these probabilities, and its complement, are allowed."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [
            np.log(np.maximum(top, 0.0)) - np.log(rest) for top, rest in ((p - delta, q), (1 - q - delta, 1 - p))
        ]
        return directed(p, q, np.fmax(*ratios))


@dataclass(frozen=True)
class Profile(TradeOff):
    """A privacy profile: (epsilon, delta)-DP at finitely many points, all claimed together.

    Its level counts multiples of the claim, which is 1: of every epsilon at its delta, of delta where epsilon is 0.

    Parameters
    ----------
    points : sequence of (epsilon, delta)
        At least one; each as in `ApproxDP`.

    Examples
    --------
    >>> round(float(Profile(((0.0, 0.25), (1.0, 0.01))).needed(0.75, 0.25)), 2)  # twice the first point
    2.0
    """

    kind: ClassVar[str] = "profile"
    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        try:
            points = tuple((epsilon, delta) for epsilon, delta in self.points)
        except (TypeError, ValueError):
            raise must_be("a profile", "a list of pairs [epsilon, delta]", self.points) from None
        if not points:
            raise ValueError("a profile must have at least one point [epsilon, delta], got none")
        for epsilon, delta in points:
            ApproxDP(epsilon, delta)
        object.__setattr__(self, "points", tuple((float(epsilon), float(delta)) for epsilon, delta in points))

    @classmethod
    def of_plan(cls, value: object) -> Profile:
        """Return the measure of a list of [epsilon, delta]."""
        if not isinstance(value, list | tuple):
            raise must_be("profile", "a list of [epsilon, delta]", value)
        return cls(tuple(pair_of("a point of a profile", "[epsilon, delta]", point) for point in value))

    def as_options(self) -> list[str]:
        """Return the option that makes this claim, its points in place of their file."""
        points = ",".join(f"[{number_text(epsilon)},{number_text(delta)}]" for epsilon, delta in self.points)
        return ["--profile", f"[{points}]"]

    @property
    def claims(self) -> Sequence[ApproxDP]:
        """The points as claims of their own."""
        return [ApproxDP(*point) for point in self.points]

    @property
    def unit(self) -> str:
        """Multiples."""
        return "multiple"

    @property
    def level(self) -> float:
        """One."""
        return 1.0

    def at(self, level: float) -> Profile:
        """Return the claim of so many times each level."""
        return Profile(tuple(claim.at(claim.level * level).stated for claim in self.claims))

    def needed(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Return the multiple of the claim that such an event needs, at the point that it contradicts most."""
        multiples: Floats = np.max([claim.needed(p, q) / claim.level for claim in self.claims], axis=0)
        return multiples

    def allowed(self, q: ArrayLike) -> Floats:
        """Return what every point allows."""
        smallest: Floats = np.min([claim.allowed(q) for claim in self.claims], axis=0)
        return smallest

    def slope(self, q: ArrayLike) -> Floats:
        """Return the slope of the point that allows least."""
        tightest = np.argmin([claim.allowed(q) for claim in self.claims], axis=0)
        slopes = np.array([claim.slope(q) for claim in self.claims])
        slope: Floats = np.take_along_axis(slopes, tightest[None], axis=0)[0]
        return slope

    def approximate(self, delta: float) -> float:
        """Return the smallest epsilon of the points at this delta or below."""
        return min(claim.approximate(delta) for claim in self.claims)

    @property
    def stated(self) -> tuple[float, float]:
        """The point of the largest epsilon."""
        return max(self.points)

    def to_json(self) -> Any:
        """Return the record's `measure`."""
        return {"kind": self.kind, "points": [list(point) for point in self.points]}
