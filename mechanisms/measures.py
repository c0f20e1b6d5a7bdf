"""How a claim counts privacy: approximate DP, Gaussian DP, zero-concentrated DP, Renyi DP, and privacy profiles.

Every measure says the same kind of thing about an event with probability p in one world and q in the other: at which
level of the measure both are allowed together. Claims are tested, certified, translated and drawn by that alone. All
of it follows from post-processing: an event makes a binary mechanism, which keeps whatever the mechanism keeps.

References
----------
.. [1] J. Dong, A. Roth, W. Su. Gaussian differential privacy. JRSS-B 84, 2022.
.. [2] M. Bun, T. Steinke. Concentrated differential privacy. TCC 2016.
.. [3] I. Mironov. Renyi differential privacy. CSF 2017.
.. [4] C. Canonne, G. Kamath, T. Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020, Proposition 12.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .divergences import either_way
from .gaussian_dp import gaussian_epsilon

_Floats = NDArray[np.float64]

#: The delta at which a claim in another measure is translated to an epsilon, where nothing else says.
DELTA = 1e-5
#: Orders, less 1, at which a divergence is looked at before and after its largest share of the order is bracketed; 0
#: is the limit, the Kullback-Leibler divergence.
_ORDERS = np.concatenate([[0.0], np.geomspace(1e-2, 1e4, 48)])
_FINER = np.linspace(-1.0, 1.0, 9)
#: The largest delta.
_BELOW_ONE = math.nextafter(1.0, 0.0)
#: Halvings of the interval from q to 1 in which the largest probability that is allowed lies.
_STEPS = 60


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)


def _require(name: str, value: Any, least: float, *, inclusive: bool = False) -> None:
    if not _is_number(value) or value < least or (value == least and not inclusive):
        bound = f"at least {least:g}" if inclusive else "positive" if least == 0 else f"above {least:g}"
        raise ValueError(f"{name} must be {bound} and finite, got {value!r}")


@dataclass(frozen=True)
class Measure(ABC):
    """A claim in one measure; the guarantee holds for both orders of two neighbours.

    Its `level` is what is claimed, in the `unit` of the measure: the less, the more private.
    """

    kind: ClassVar[str]

    @property
    def unit(self) -> str:
        """The name of the level: "epsilon", "delta", "mu", "rho", or "multiple" for the multiples of a profile."""
        return fields(self)[-1].name

    @property
    def level(self) -> float:
        """What is claimed."""
        return float(getattr(self, self.unit))

    @property
    def is_epsilon(self) -> bool:
        """Whether the level is an epsilon at a delta, which the guess game certifies too."""
        return isinstance(self, ApproxDP) and self.epsilon > 0

    def at(self, level: float) -> Self:
        """Return the same measure at another level."""
        return replace(self, **{self.unit: level})

    def to_json(self) -> dict[str, Any]:
        """Return the record's `measure`."""
        return {"kind": self.kind, **vars(self)}

    @abstractmethod
    def needed(self, p: ArrayLike, q: ArrayLike) -> _Floats:
        """Return the smallest level that allows an event of probability p in one world and q in the other.

        It grows with p and falls with q; 0 where p <= q. The event refutes the claim where it is above `level`.
        """

    @abstractmethod
    def approximate(self, delta: float) -> float:
        """Return an epsilon (nats) with which the claim implies (epsilon, delta)-DP; infinite where it does not."""

    def allowed(self, q: ArrayLike) -> _Floats:
        """Return the largest probability that the claim allows an event in one world, given q in the other."""
        low = np.asarray(q, dtype=np.float64)
        high = np.ones_like(low)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            fine = self.needed(middle, q) <= self.level
            low, high = np.where(fine, middle, low), np.where(fine, high, middle)
        return low

    def slope(self, q: ArrayLike) -> _Floats:
        """Return the slope of `allowed`, which falls with q.

        Raises
        ------
        NotImplementedError
            By measures without a closed form.
        """
        raise NotImplementedError(f"{type(self).__name__} has no closed form of what it allows")

    @property
    def stated(self) -> tuple[float, float]:
        """The claim as (epsilon, delta): what it implies at `DELTA`, unless it says so itself."""
        return self.approximate(DELTA), DELTA


def _directed(p: ArrayLike, q: ArrayLike, level: _Floats) -> _Floats:
    """Return the level where p is above q, and 0 elsewhere."""
    return np.where(np.asarray(p) > np.asarray(q), np.maximum(level, 0.0), 0.0)


@dataclass(frozen=True)
class ApproxDP(Measure):
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
        if not (_is_number(self.delta) and 0 <= self.delta < 1):
            raise ValueError(f"delta must be in [0, 1), got {self.delta!r}")
        if not (_is_number(self.epsilon) and self.epsilon >= 0 and self.epsilon + self.delta > 0):
            least = "at least 0" if self.delta else "positive"
            raise ValueError(f"epsilon must be {least} and finite, got {self.epsilon!r}")

    @property
    def unit(self) -> str:
        """Epsilon, or delta where epsilon is 0."""
        return "epsilon" if self.epsilon > 0 else "delta"

    def at(self, level: float) -> ApproxDP:
        """Return the claim of another epsilon, or of another delta below 1 where epsilon is 0."""
        return ApproxDP(level, self.delta) if self.epsilon > 0 else ApproxDP(0.0, min(level, _BELOW_ONE))

    def needed(self, p: ArrayLike, q: ArrayLike) -> _Floats:
        """Return the epsilon that such an event needs at this delta, by itself and by its complement."""
        if self.epsilon == 0:
            return _directed(p, q, np.asarray(p, dtype=np.float64) - np.asarray(q, dtype=np.float64))
        return epsilon_needed(p, q, self.delta)

    def allowed(self, q: ArrayLike) -> _Floats:
        """Return the largest probability that the claim allows, in closed form."""
        q = np.asarray(q, dtype=np.float64)
        with np.errstate(over="ignore"):
            most = np.minimum(np.exp(self.epsilon) * q + self.delta, 1 - np.exp(-self.epsilon) * (1 - self.delta - q))
        clipped: _Floats = np.clip(most, 0.0, 1.0)
        return clipped

    def slope(self, q: ArrayLike) -> _Floats:
        """Return ``e^epsilon``, then ``e^-epsilon``, then 0."""
        q = np.asarray(q, dtype=np.float64)
        with np.errstate(over="ignore"):
            steep = np.exp(self.epsilon) * q + self.delta < 1 - np.exp(-self.epsilon) * (1 - self.delta - q)
        found: _Floats = np.where(
            q + self.delta >= 1, 0.0, np.where(steep, np.exp(self.epsilon), np.exp(-self.epsilon))
        )
        return found

    def approximate(self, delta: float) -> float:
        """Return epsilon, at its own delta and above."""
        return self.epsilon if delta >= self.delta else math.inf

    @property
    def stated(self) -> tuple[float, float]:
        """The claim itself."""
        return self.epsilon, self.delta


def epsilon_needed(p: ArrayLike, q: ArrayLike, delta: ArrayLike) -> _Floats:
    """Return the smallest epsilon (nats) at which an event of these probabilities, and its complement, are allowed."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [
            np.log(np.maximum(top, 0.0)) - np.log(rest) for top, rest in ((p - delta, q), (1 - q - delta, 1 - p))
        ]
        return _directed(p, q, np.fmax(*ratios))


@dataclass(frozen=True)
class GDP(Measure):
    """Gaussian differential privacy: the worlds are at least as hard to tell apart as N(0, 1) from N(mu, 1) [1]_.

    Parameters
    ----------
    mu : float
        Positive and finite.

    Examples
    --------
    >>> round(float(GDP(1.0).needed(0.5, 0.1587)), 3)
    1.0
    """

    kind: ClassVar[str] = "gdp"
    mu: float

    def __post_init__(self) -> None:
        _require("mu", self.mu, 0.0)

    def needed(self, p: ArrayLike, q: ArrayLike) -> _Floats:
        """Return ``Phi^-1(p) - Phi^-1(q)``."""
        return _directed(p, q, special.ndtri(np.asarray(p, dtype=float)) - special.ndtri(np.asarray(q, dtype=float)))

    def allowed(self, q: ArrayLike) -> _Floats:
        """Return ``Phi(Phi^-1(q) + mu)``."""
        most: _Floats = special.ndtr(special.ndtri(np.asarray(q, dtype=np.float64)) + self.mu)
        return most

    def slope(self, q: ArrayLike) -> _Floats:
        """Return ``exp(-mu z - mu^2 / 2)`` at ``z = Phi^-1(q)``."""
        with np.errstate(over="ignore"):
            found: _Floats = np.exp(-self.mu * special.ndtri(np.asarray(q, dtype=np.float64)) - self.mu**2 / 2)
        return found

    def approximate(self, delta: float) -> float:
        """Return the exact epsilon of mu-Gaussian DP at a delta."""
        return gaussian_epsilon(self.mu, delta) if delta > 0 else math.inf


@dataclass(frozen=True)
class RDP(Measure):
    """Renyi differential privacy: the divergence of the given order is at most epsilon, both ways [3]_.

    Parameters
    ----------
    order : float
        Finite, above 1.
    epsilon : float
        In nats, positive and finite.

    Examples
    --------
    >>> round(float(RDP(2.0, 1.0).needed(0.75, 0.25)), 4)  # the divergence of order 2 of two coins
    0.8473
    """

    kind: ClassVar[str] = "rdp"
    order: float
    epsilon: float

    def __post_init__(self) -> None:
        _require("order", self.order, 1.0)
        _require("epsilon", self.epsilon, 0.0)

    def needed(self, p: ArrayLike, q: ArrayLike) -> _Floats:
        """Return the divergence of the two coins, the larger of both ways."""
        return _directed(p, q, either_way(self.order, p, q))

    def approximate(self, delta: float) -> float:
        """Return ``epsilon + ln((a-1)/a) - (ln delta + ln a)/(a-1)`` [4]_."""
        if delta <= 0:
            return math.inf
        a = self.order
        return max(0.0, self.epsilon + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1))


@dataclass(frozen=True)
class ZCDP(Measure):
    """Zero-concentrated differential privacy: the divergence of every order a > 1 is at most rho a, both ways [2]_.

    Parameters
    ----------
    rho : float
        Positive and finite.

    Examples
    --------
    >>> round(ZCDP(0.5).approximate(1e-5), 2)  # the epsilon that it implies
    4.74
    """

    kind: ClassVar[str] = "zcdp"
    rho: float

    def __post_init__(self) -> None:
        _require("rho", self.rho, 0.0)

    def needed(self, p: ArrayLike, q: ArrayLike) -> _Floats:
        """Return the largest divergence of the coins by its order, to about 1e-4 of itself from below."""
        p, q = (np.asarray(x, dtype=np.float64)[..., None] for x in np.broadcast_arrays(p, q))

        def share(orders: _Floats) -> _Floats:
            return either_way(orders, p, q) / orders

        coarse = share(1 + _ORDERS)
        at = np.argmax(np.nan_to_num(coarse, nan=-1.0), axis=-1)[..., None]
        finer = 1 + _ORDERS[np.maximum(at, 1)] * (_ORDERS[2] / _ORDERS[1]) ** _FINER
        best = np.maximum(coarse.max(axis=-1), share(finer).max(axis=-1))
        return _directed(p[..., 0], q[..., 0], best)

    def approximate(self, delta: float) -> float:
        """Return the least epsilon that Renyi DP of some order gives at a delta [4]_."""
        return min(RDP(1 + less, self.rho * (1 + less)).approximate(delta) for less in _ORDERS[1:].tolist())

    def to_json(self) -> dict[str, Any]:
        """Return the record's `measure`."""
        return {"kind": self.kind, "rho": self.rho}


@dataclass(frozen=True)
class Profile(Measure):
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
            points = tuple((float(epsilon), float(delta)) for epsilon, delta in self.points)
        except (TypeError, ValueError):
            raise ValueError(f"a profile must be a list of pairs [epsilon, delta], got {self.points!r}") from None
        if not points:
            raise ValueError("a profile must have at least one point [epsilon, delta], got none")
        for epsilon, delta in points:
            ApproxDP(epsilon, delta)
        object.__setattr__(self, "points", points)

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

    def needed(self, p: ArrayLike, q: ArrayLike) -> _Floats:
        """Return the multiple of the claim that such an event needs, at the point that it contradicts most."""
        multiples: _Floats = np.max([claim.needed(p, q) / claim.level for claim in self.claims], axis=0)
        return multiples

    def allowed(self, q: ArrayLike) -> _Floats:
        """Return what every point allows."""
        most: _Floats = np.min([claim.allowed(q) for claim in self.claims], axis=0)
        return most

    def slope(self, q: ArrayLike) -> _Floats:
        """Return the slope of the point that allows least."""
        least = np.argmin([claim.allowed(q) for claim in self.claims], axis=0)
        slopes = np.array([claim.slope(q) for claim in self.claims])
        found: _Floats = np.take_along_axis(slopes, least[None], axis=0)[0]
        return found

    def approximate(self, delta: float) -> float:
        """Return the smallest epsilon of the points at this delta or below."""
        return min(claim.approximate(delta) for claim in self.claims)

    @property
    def stated(self) -> tuple[float, float]:
        """The point of the largest epsilon."""
        return max(self.points)

    def to_json(self) -> dict[str, Any]:
        """Return the record's `measure`."""
        return {"kind": self.kind, "points": [list(point) for point in self.points]}


_KINDS: dict[str, type[Measure]] = {cls.kind: cls for cls in (ApproxDP, GDP, ZCDP, RDP, Profile)}


def measure_from_json(data: Any) -> Measure:
    """Return the measure that a record's `measure` says.

    Raises
    ------
    ValueError
        If it is none.
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind not in _KINDS:
        raise ValueError(f"a measure must have a kind, one of {', '.join(_KINDS)}, got {data!r}")
    try:
        return _KINDS[kind](**{name: value for name, value in data.items() if name != "kind"})
    except TypeError:
        raise ValueError(f"this is no measure of kind {kind!r}: {data!r}") from None
