"""Losses: vectors for linear losses, small convex families, adaptive ones, and the sets that claims quantify over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be, must_be_one_of
from ...mechanisms.claim import loss_range
from ...mechanisms.draws import Floats
from ..protocol import Actions, FeedbackKind, LossError

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


@runtime_checkable
class Adaptive(Protocol):
    """A loss that the adversary chooses after it saw the actions so far, each run its own."""

    def given(self, actions: Sequence[Actions]) -> Convex:
        """Return the round's loss after `actions`, those of rounds 1 to now (this round's included).

        A strongly adaptive adversary picks f_t knowing w_1..w_t (Smith & Thakurta 2013, section 1).
        """


def resolve(loss: Loss | Adaptive, actions: Sequence[Actions]) -> Loss:
    """Return the round's loss: `loss` itself, or what an adaptive one becomes after `actions`."""
    return loss.given(actions) if hasattr(loss, "given") else loss  # isinstance takes 20 times as long


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


def _vector(name: str, values: Iterable[float]) -> tuple[float, ...]:
    vector = tuple(float(v) for v in values)
    if not vector or not all(math.isfinite(v) for v in vector):
        raise must_be(name, "a non-empty vector of finite numbers", values)
    return vector


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise must_be(name, "finite", value)
    return float(value)


class Declared:
    """A loss whose fields are its record's form."""

    name: ClassVar[str]

    def to_json(self) -> dict[str, object]:
        """Return the record's form."""
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {"loss": self.name, **fields}


@dataclass(frozen=True, kw_only=True)
class Linear(Declared):
    """`f(x) = <slope, x> + offset`; on arms, the loss of arm i is `slope[i] + offset`.

    Parameters
    ----------
    slope : tuple of float
        The gradient, everywhere.
    offset : float
    """

    name = "linear"
    slope: tuple[float, ...]
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", _vector("slope", self.slope))
        object.__setattr__(self, "offset", _finite("offset", self.offset))

    def value(self, x: Actions) -> Floats:
        """Return the losses of points (dim, runs) or of arms (runs,)."""
        slope = np.array(self.slope)
        values: Floats = (slope.take(x) if x.ndim == 1 else slope @ x) + self.offset
        return values

    def gradient(self, x: Actions) -> Floats:
        """Return the slope for every run; for arms, the loss vector."""
        constant = self.offset if x.ndim == 1 else 0.0
        return np.repeat(np.array(self.slope)[:, None] + constant, x.shape[-1], axis=1)

    def lipschitz(self, radius: float) -> float:
        """Return the L2 norm of the slope, on every domain."""
        return math.hypot(*self.slope)

    def bound(self, radius: float) -> float:
        """Return the largest |f| on the ball of this radius around 0."""
        return math.hypot(*self.slope) * radius + abs(self.offset)


@dataclass(frozen=True, kw_only=True)
class Quadratic(Declared):
    """`f(x) = curvature / 2 * ||x - centre||_2^2 + offset`: strongly convex.

    A centre outside the domain makes it nearly linear there, with gradients between `curvature * (||centre|| - R)`
    and `curvature * (||centre|| + R)` on a ball of radius R.

    Parameters
    ----------
    curvature : float
        H, positive.
    centre : tuple of float
        Where the loss is least.
    offset : float
    """

    name = "quadratic"
    curvature: float
    centre: tuple[float, ...]
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (self.curvature > 0 and math.isfinite(self.curvature)):
            raise must_be("curvature", "positive and finite", self.curvature)
        object.__setattr__(self, "centre", _vector("centre", self.centre))
        object.__setattr__(self, "offset", _finite("offset", self.offset))

    @classmethod
    def steep(cls, slope: Sequence[float], *, curvature: float, radius: float) -> Quadratic:
        """Return the loss with gradient along `slope` at 0 whose Lipschitz constant is the norm of `slope`.

        The constant is that on the ball of this radius. At 0 the value is 0 and the gradient has norm
        `||slope|| - curvature * radius`.

        Raises
        ------
        ValueError
            If the norm of `slope` is less than `curvature * radius`: no such loss is so flat.
        """
        norm = math.hypot(*slope)
        if norm < curvature * radius * (1 - TOLERANCE) or norm == 0:
            raise ValueError(f"slope must have norm at least {curvature * radius:g}, got {norm:g}")
        distance = max(norm / curvature - radius, 0.0)
        centre = tuple(-s / norm * distance for s in slope)
        return cls(curvature=curvature, centre=centre, offset=-0.5 * curvature * distance**2)

    def value(self, x: Floats) -> Floats:
        """Return the losses, (runs,)."""
        gap = x - np.array(self.centre)[:, None]
        values: Floats = 0.5 * self.curvature * np.square(gap).sum(axis=0) + self.offset
        return values

    def gradient(self, x: Floats) -> Floats:
        """Return `curvature * (x - centre)`, (dim, runs)."""
        gradient: Floats = self.curvature * (x - np.array(self.centre)[:, None])
        return gradient

    def lipschitz(self, radius: float) -> float:
        """Return the largest gradient norm on the ball of this radius around 0."""
        return self.curvature * (radius + math.hypot(*self.centre))

    def bound(self, radius: float) -> float:
        """Return the largest |f| on the ball of this radius around 0."""
        distance = math.hypot(*self.centre)
        low, high = (0.5 * self.curvature * d**2 for d in (max(distance - radius, 0.0), distance + radius))
        return max(abs(low + self.offset), abs(high + self.offset))


@dataclass(frozen=True, kw_only=True)
class Absolute(Declared):
    """`f(x) = |<slope, x> - level| + offset`; the subgradient at the kink is 0.

    Parameters
    ----------
    slope : tuple of float
    level, offset : float
    """

    name = "absolute"
    slope: tuple[float, ...]
    level: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", _vector("slope", self.slope))
        object.__setattr__(self, "level", _finite("level", self.level))
        object.__setattr__(self, "offset", _finite("offset", self.offset))

    def value(self, x: Floats) -> Floats:
        """Return the losses, (runs,)."""
        values: Floats = np.abs(np.array(self.slope) @ x - self.level) + self.offset
        return values

    def gradient(self, x: Floats) -> Floats:
        """Return the slope or its opposite, (dim, runs)."""
        slope = np.array(self.slope)
        return slope[:, None] * np.sign(slope @ x - self.level)

    def lipschitz(self, radius: float) -> float:
        """Return the L2 norm of the slope."""
        return math.hypot(*self.slope)

    def bound(self, radius: float) -> float:
        """Return the largest |f| on the ball of this radius around 0."""
        reach = math.hypot(*self.slope) * radius
        low, high = max(abs(self.level) - reach, 0.0), abs(self.level) + reach
        return max(abs(low + self.offset), abs(high + self.offset))


Family = Linear | Quadratic | Absolute


@dataclass(frozen=True)
class SwitchedLoss:
    """One of two losses, chosen for every run: what `Switch` becomes once it has seen the actions."""

    first: Family
    second: Family
    use_second: NDArray[np.bool_]  # (runs,)

    def value(self, x: Actions) -> Floats:
        """Return the losses, (runs,)."""
        return np.where(self.use_second, self.second.value(x), self.first.value(x))

    def gradient(self, x: Actions) -> Floats:
        """Return the gradients, (dim, runs)."""
        return np.where(self.use_second, self.second.gradient(x), self.first.gradient(x))


@dataclass(frozen=True, kw_only=True)
class Switch(Declared):
    """An adaptive loss: `above` where a past action exceeds a threshold, `below` elsewhere.

    Parameters
    ----------
    below, above : Linear, Quadratic or Absolute
        The two losses.
    threshold : float
        Compared with a coordinate of the action; for arms, with the arm's number.
    lag : int
        Which action: 0 for this round's, 1 for the one before. Where there was none, `below`.
    coordinate : int
        Which coordinate of a point.
    """

    name = "switch"
    below: Family
    above: Family
    threshold: float = 0.0
    lag: int = 0
    coordinate: int = 0

    def __post_init__(self) -> None:
        _finite("threshold", self.threshold)
        for name, value in (("lag", self.lag), ("coordinate", self.coordinate)):
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
                raise must_be(name, "a whole number of at least 0", value)

    def given(self, actions: Sequence[Actions]) -> Convex:
        """Return the loss after these actions."""
        if len(actions) == 0:
            raise ValueError("an adaptive loss needs this round's action, got no actions")
        seen = len(actions) > self.lag
        action = actions[-1 - self.lag] if seen else actions[-1]
        column = action if action.ndim == 1 else action[self.coordinate]
        return SwitchedLoss(self.below, self.above, (column > self.threshold) & seen)

    def to_json(self) -> dict[str, object]:
        """Return the record's form."""
        return {**super().to_json(), "below": self.below.to_json(), "above": self.above.to_json()}


_FAMILIES: dict[str, type[Family]] = {kind.name: kind for kind in (Linear, Quadratic, Absolute)}


def from_json(data: object) -> Loss | Switch:
    """Read a loss from the record's form: a list of numbers, or an object with its family in "loss".

    Raises
    ------
    ValueError
        If it is neither, naming what was found.
    """
    if isinstance(data, list):
        try:
            return np.asarray(data, dtype=float)
        except OverflowError:
            raise ValueError("a loss vector must be finite, got a number beyond all floats") from None
        except (TypeError, ValueError):
            raise must_be("a loss vector", "a list of numbers", data) from None
    kinds = (*_FAMILIES, "switch")
    if not isinstance(data, dict) or "loss" not in data:
        raise must_be("a loss", f'a list of numbers or an object with "loss" ({", ".join(kinds)})', data)
    fields = {name: value for name, value in data.items() if name != "loss"}
    try:
        if data["loss"] == "switch":
            below, above = (_side(name, fields.pop(name, None)) for name in ("below", "above"))
            return Switch(below=below, above=above, **fields)
        return _FAMILIES[data["loss"]](**fields)
    except KeyError:
        raise must_be_one_of('"loss"', kinds, data["loss"]) from None
    except TypeError as error:
        raise ValueError(f"a {data['loss']} loss has other fields: {error}") from None


def _side(name: str, data: object) -> Family:
    loss = from_json(data) if isinstance(data, dict) else None
    if not isinstance(loss, Family):
        raise must_be(f"{name} of a switch", f"a loss of a family ({', '.join(_FAMILIES)})", data)
    return loss


def check_told(losses: Floats, name: str, loss: Loss | None = None) -> None:
    """Raise LossError unless what is told or paid is finite, and a user's own `loss` 1-Lipschitz where it was played.

    `losses` holds values (runs,) or gradients (dim, runs); `name` names the loss and its round in the message.
    """
    if not (fine := np.isfinite(losses)).all():
        raise must_be(name, "finite", losses[~fine].flat[0], LossError)
    if losses.ndim == 2 and not isinstance(loss, np.ndarray | Family | SwitchedLoss | None):
        steepest = float(np.sqrt(np.square(losses).sum(axis=0)).max())
        if steepest > 1 + TOLERANCE:
            raise LossError(f"{name} must be 1-Lipschitz, got a gradient of norm {steepest:g}")


def check_lipschitz(loss: Family | Switch, radius: float, bound: float = 1.0, *, name: str = "the loss") -> None:
    """Raise ValueError unless `loss` is `bound`-Lipschitz on the ball of this radius around 0."""
    if isinstance(loss, Switch):
        check_lipschitz(loss.below, radius, bound, name=name)
        check_lipschitz(loss.above, radius, bound, name=name)
        return
    constant = loss.lipschitz(radius)
    if constant > bound * (1 + TOLERANCE):
        raise ValueError(f"{name} must be {bound:g}-Lipschitz on radius {radius:g}, got {constant:g}: {loss}")


@dataclass(frozen=True)
class LossSet:
    """A set of loss vectors: all that `check` accepts."""

    name: str
    low: float
    high: float

    def check(self, loss: Floats, name: str) -> None:
        """Raise ValueError unless the vector `loss` lies in the set; `name` names it in the message."""
        if self.name == "l1-ball":
            size, bound = float(np.abs(loss).sum()), "L1 norm at most 1"
        elif self.name in ("l2-ball", "lipschitz"):
            size, bound = float(np.sqrt(np.square(loss).sum())), "L2 norm at most 1"
        elif self.name != "any":
            violations = loss[~((loss >= self.low - TOLERANCE) & (loss <= self.high + TOLERANCE))]
            if violations.size:
                raise ValueError(
                    f"{name} must lie in [{self.low:g}, {self.high:g}] ({self.name}), got {violations[0]:g}"
                )
            return
        else:
            return
        if not size <= 1 + TOLERANCE:
            raise ValueError(f"{name} must have {bound} ({self.name}), got norm {size:g}")

    @property
    def bounded(self) -> bool:
        """Whether it has extremes."""
        return math.isfinite(self.low)

    @property
    def box(self) -> bool:
        """Whether all coordinates are free of each other."""
        return self.bounded and self.scale(2) == 1

    def scale(self, dim: int) -> float:
        """Return the factor that brings a vector of entries in [low, high] into the set at its boundary."""
        return {"l1-ball": 1 / dim, "l2-ball": 1 / math.sqrt(dim), "lipschitz": 1 / math.sqrt(dim)}.get(self.name, 1.0)


def loss_set(name: str) -> LossSet:
    """Return a loss set by its name: one of `LOSS_SETS`, or one of a user's own."""
    return LOSS_SETS[name] if name in LOSS_SETS else LossSet(name, *loss_range(name))


LOSS_SETS: dict[str, LossSet] = {
    "unit": LossSet("unit", 0.0, 1.0),
    **{name: LossSet(name, -1.0, 1.0) for name in ("symmetric", "l1-ball", "l2-ball", "lipschitz")},
}
