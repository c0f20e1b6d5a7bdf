"""Bisection: where a condition that changes once stops holding."""

from __future__ import annotations

import math
from collections.abc import Callable

#: Halvings: an interval of any usual size is then as narrow as floating point makes it.
STEPS = 60


def bisect(holds: Callable[[float], bool], low: float, high: float, *, steps: int = STEPS) -> tuple[float, float]:
    """Return the ends of a narrow interval, the lower with the condition and the upper without it.

    Unlike a root finder's answer, which may lie on either side, each end is known to be on its own: a bound takes the
    end that errs towards validity.

    Parameters
    ----------
    holds : callable
        The condition; taken to hold at `low` and not at `high`, where it is not asked.
    low, high : float
        The ends to begin with.
    steps : int, optional
        How many times the interval is halved.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def least(holds: Callable[[float], bool], low: float, *, steps: int = STEPS) -> float:
    """Return the upper end of a narrow interval above `low` in which a condition begins to hold; infinite if nowhere.

    Parameters
    ----------
    holds : callable
        The condition: where it holds it holds further up too, at infinity as at some finite number.
    low : float
        Where it is taken not to hold.
    steps : int, optional
        How many times the interval is halved, whose length is the smallest power of 2, from 1, that reaches so far.
    """
    if not holds(math.inf):
        return math.inf
    gap = 1.0
    while not holds(low + gap):
        gap *= 2
    return bisect(lambda x: not holds(x), low, low + gap, steps=steps)[1]


def fewest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest whole number above `low` from which a condition holds.

    Parameters
    ----------
    holds : callable
        The condition; taken to hold at `high` and not at `low`, where it is not asked.
    low, high : int
        The ends to begin with.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
