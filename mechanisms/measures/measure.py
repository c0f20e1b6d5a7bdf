"""How a claim counts privacy: approximate DP, Gaussian DP, zero-concentrated DP, Renyi DP, and privacy profiles.

Every measure says the same kind of thing about an event with probability p in one world and q in the other: at which
level of the measure both are allowed together. Claims are tested, certified, translated and drawn by that alone. All
of it follows from post-processing: an event makes a binary mechanism, which keeps whatever the mechanism keeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import must_be
from ..parameters import is_finite

Floats = NDArray[np.float64]

#: The delta at which a claim in another measure is translated to an epsilon, where nothing else says.
DELTA = 1e-5
#: The largest level of a measure: its square is finite.
_LARGEST = 1e100
#: Halvings of the interval from q to 1 in which the largest probability that is allowed lies.
_STEPS = 60


def is_number(value: object) -> bool:
    """Return whether a value is a finite number."""
    return isinstance(value, Real) and is_finite(value)


def require_level(name: str, value: float, minimum: float = 0.0) -> None:
    """Raise ValueError for a level that is not above the least, or beyond what is computed with."""
    if not is_number(value) or value <= minimum:
        raise must_be(name, f"{(f'above {minimum:g}' if minimum else 'positive')} and finite", value)
    if float(value) > _LARGEST:
        raise must_be(name, f"at most {_LARGEST:g}", value)


@dataclass(frozen=True)
class Measure(ABC):
    """A claim in one measure; the guarantee holds for both orders of two neighbours.

    Its `level` is what is claimed, in the `unit` of the measure: the less, the more private.
    """

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        """Keep numbers of every type, such as NumPy's, as floats: records and words know no others."""
        for field in fields(self):
            object.__setattr__(self, field.name, float(getattr(self, field.name)))

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
        return False

    def at(self, level: float) -> Self:
        """Return the same measure at another level."""
        return replace(self, **{self.unit: level})

    @classmethod
    def of_plan(cls, value: Any) -> Self:
        """Return the measure that a plan states by a value."""
        return cls(**{fields(cls)[-1].name: value})

    def as_options(self) -> list[str]:
        """Return the options of the command line that make this claim."""
        return [f"--{self.kind}", number_text(self.level)]

    def to_json(self) -> Any:
        """Return the record's `measure`."""
        return {"kind": self.kind, **vars(self)}

    @abstractmethod
    def needed(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Return the smallest level that allows an event of probability p in one world and q in the other.

        It grows with p and falls with q; 0 where p <= q. The event refutes the claim where it is above `level`.
        """

    @abstractmethod
    def approximate(self, delta: float) -> float:
        """Return an epsilon (nats) with which the claim implies (epsilon, delta)-DP; infinite where it does not."""

    def allowed(self, q: ArrayLike) -> Floats:
        """Return the largest probability that the claim allows an event in one world, given q in the other."""
        low = np.asarray(q, dtype=np.float64)
        high = np.ones_like(low)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            fine = self.needed(middle, q) <= self.level
            low, high = np.where(fine, middle, low), np.where(fine, high, middle)
        return low

    @property
    def stated(self) -> tuple[float, float]:
        """The claim as (epsilon, delta): what it implies at `DELTA`, unless it says so itself."""
        return self.approximate(DELTA), DELTA


def pair_of(name: str, form: str, value: object) -> tuple[Any, Any]:
    """Return both parts of what is stated as a pair, or raise a ValueError that names it and its form."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise must_be(name, form, value)
    return value[0], value[1]


def number_text(value: object) -> str:
    """Return the shortest text that reads back as the value."""
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


class TradeOff(Measure):
    """A measure whose trade-off of both errors is known in closed form: its bounds weigh the errors together."""

    @abstractmethod
    def slope(self, q: ArrayLike) -> Floats:
        """Return the slope of `allowed`, which falls with q."""


def directed(p: ArrayLike, q: ArrayLike, level: Floats) -> Floats:
    """Return the level where p is above q, and 0 elsewhere."""
    return np.where(np.asarray(p) > np.asarray(q), np.maximum(level, 0.0), 0.0)
