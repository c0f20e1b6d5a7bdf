"""Simpler pairs: more zeros, fewer distinct losses, numbers of fewer digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ...learners.problems.losses import Adaptive, Family, Linear, Loss, Quadratic, Switch, loss_set
from ...mechanisms.claim import Claim
from ..play.pairs import Pair, World, same_loss

#: Significant digits that numbers are cut to.
_DIGITS = (1, 2, 3, 6)


def simplifications(claim: Claim, pair: Pair) -> Iterator[Pair]:
    """Yield simpler pairs, the boldest first: other rounds 0, numbers of few digits, then single entries.

    They may lie outside the loss set, and not all are cheaper: see `cost`. What would only add losses that are not 0
    is left out: at 10,000 rounds there are 100,000 of them.
    """
    for worlds in chain(_emptied(pair), _shorter(pair), _entries(claim, pair)):
        try:
            yield Pair(*worlds)
        except ValueError:  # the worlds agree now
            continue


def _emptied(pair: Pair) -> Iterator[Sequence[World]]:
    """Yield the pair with all other rounds 0, then stretches of them, then single ones."""
    zero = nothing(pair)
    rounds, t0 = pair.rounds, pair.t0
    differs = [
        t != t0 and not all(same_loss(world[t], zero) for world in (pair.left, pair.right)) for t in range(rounds)
    ]
    stretches = [range(rounds), range(t0 + 1, rounds), range(t0), *(range(t, rounds) for t in range(t0 + 2, rounds))]
    for stretch in (*stretches, *(range(t, t + 1) for t in range(rounds))):
        if any(differs[stretch.start : stretch.stop]):
            yield [
                [zero if t in stretch and t != t0 else loss for t, loss in enumerate(world)]
                for world in (pair.left, pair.right)
            ]


def _shorter(pair: Pair) -> Iterator[Sequence[World]]:
    """Yield the pair with numbers of few digits, rounded or cut towards 0, and with offsets of 0."""
    if pair.arms is not None:
        for arm in range(pair.arms):  # the differing losses on one arm alone
            arrays = [np.array(pair.left), np.array(pair.right)]
            for array in arrays:
                array[pair.t0] = np.sign(array[pair.t0, arm]) * np.eye(pair.arms)[arm] + 0.0  # no -0
            yield arrays
    else:
        yield [[_renumbered(loss, _without_offset) for loss in world] for world in (pair.left, pair.right)]
    for digits in _DIGITS:
        for truncates in (False, True):
            change = partial(_short, digits, truncates)
            yield [[_renumbered(loss, change) for loss in world] for world in (pair.left, pair.right)]


def _renumbered(loss: Loss | Adaptive, change: Callable[[str, float], float]) -> Loss | Adaptive:
    """Return the loss with each of its numbers changed, but not its curvature, which its class demands."""
    if isinstance(loss, np.ndarray):
        return np.array([change("", float(x)) for x in loss])
    if isinstance(loss, Switch):
        low_part, high_part = (_renumbered_family(side, change) for side in (loss.below, loss.above))
        return replace(loss, below=low_part, above=high_part)
    return _renumbered_family(loss, change) if isinstance(loss, Family) else loss


def _renumbered_family(loss: Family, change: Callable[[str, float], float]) -> Family:
    changes: dict[str, Any] = {}
    for name, value in ((f.name, getattr(loss, f.name)) for f in fields(loss) if f.name != "curvature"):
        changes[name] = tuple(change(name, x) for x in value) if isinstance(value, tuple) else change(name, value)
    return replace(loss, **changes)


def _without_offset(name: str, x: float) -> float:
    return 0.0 if name == "offset" else x


def _short(digits: int, truncates: bool, _: str, x: float) -> float:
    """Return x with so many significant digits, rounded, or cut towards 0."""
    if x == 0:
        return x
    unit = digits - 1 - math.floor(math.log10(abs(x)))
    truncated = math.copysign(float(Decimal(repr(abs(x))).scaleb(unit) // 1 * Decimal(10) ** -unit), x)
    return truncated if truncates else round(x, unit)


def _entries(claim: Claim, pair: Pair) -> Iterator[Sequence[World]]:
    """Yield the pair with one entry changed, in both worlds or, in the differing round, in one."""
    if pair.arms is None:
        return
    losses, worlds = loss_set(claim.losses), [np.asarray(world) for world in (pair.left, pair.right)]
    for t in range(pair.rounds):
        for arm in range(pair.arms):
            for value in (0.0, *((losses.high, losses.low, (losses.low + losses.high) / 2) if losses.bounded else ())):
                for sides in ((0, 1),) if t != pair.t0 else ((0, 1), (0,), (1,)):
                    before = [worlds[side][t, arm] for side in sides]
                    if len(sides) * bool(value) > np.count_nonzero(before) or all(x == value for x in before):
                        continue
                    arrays = [world.copy() for world in worlds]
                    for side in sides:
                        arrays[side][t, arm] = value
                    yield arrays


def nothing(pair: Pair) -> Loss:
    """Return the loss of the pair's kind that says nothing."""
    if pair.arms is not None:
        return np.zeros(pair.arms)
    first: object = pair.left[0]
    example = getattr(first, "below", first)
    if isinstance(example, Quadratic):  # as convex as the others
        return Quadratic(curvature=example.curvature, centre=(0.0,) * len(example.centre))
    return Linear(slope=(0.0,) * len(getattr(example, "slope", (0.0,))))


def cost(pair: Pair) -> tuple[int, int, float]:
    """Return how much there is to read: losses that are not 0, distinct ones, and the digits of their numbers."""
    if pair.arms is None:
        worlds = pair.left, pair.right
        zero, distinct = nothing(pair), {str(loss): loss for world in worlds for loss in world}
        numbers: list[float] = []

        def note(_: str, x: float) -> float:
            numbers.append(x)
            return x

        for loss in distinct.values():
            _renumbered(loss, note)
        return sum(loss != zero for world in worlds for loss in world), len(distinct), sum(map(_length, numbers))
    values, counts = np.unique(np.asarray([pair.left, pair.right]), return_counts=True)
    digits = sum(_length(x) * int(count) for x, count in zip(values.tolist(), counts, strict=True))
    return int(counts[values != 0].sum()), len(values), digits


def _length(x: float) -> float:
    """Return the significant digits of a number's short form; 0 for 0 and 1, and half a digit for 1/2."""
    if x in (0.0, 1.0, -1.0):
        return 0.0
    return 0.5 if abs(x) == 0.5 else float(len(Decimal(repr(x)).normalize().as_tuple().digits))


def largest(pair: Pair, radius: float) -> float:
    """Return the largest |f| of the pair's convex losses on the ball of this radius; 0 for vectors."""
    sides = [
        side
        for loss in (*pair.left, *pair.right)
        for side in (getattr(loss, "below", loss), getattr(loss, "above", loss))
    ]
    return max((loss.bound(radius) for loss in sides if isinstance(loss, Family)), default=0.0)
