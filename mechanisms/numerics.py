"""Numbers without their last bits, so that no choice hangs on them; and bisection: where a condition stops holding.

Processors, BLAS kernels and versions of the C library agree in all but the last bits of a logarithm or a sum. What is
equal in real arithmetic, such as the worths of two mirrored events, differs there, and an `argmax` of such numbers
picks another event on another machine; so does a threshold that a score meets exactly. Scores, worths and whatever
else is compared are therefore rounded first, and the first of equals is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Decimals that are kept: a billionth of a nat decides nothing.
DIGITS = 9
#: Beyond this size a number is known to fewer decimals: so many of its leading bits are kept.
_LARGE, _BITS = 2.0**13, 43
#: Rounding goes up from 0.3586 of a cell, not from its half: halves and other short fractions are what exact losses
#: and noise scales make, and none of three decimals or nine bits is within 4e-4 cells of it.
_OFFSET = 0.5 + np.sqrt(2.0) / 10

#: Halvings: an interval of any usual size is then as narrow as floating point makes it.
STEPS = 60

_Floats = NDArray[np.float64]


def rounded(numbers: ArrayLike, digits: int = DIGITS) -> _Floats:
    """Return the numbers to so many decimals, large ones to 43 bits; infinities and nan as they are.

    Numbers of at most `digits` decimals stay what they are. Two results of one computation that differ by 1e-16, in
    numbers of size 1, come out different with a chance of about 1e-16 / 10**-digits, which is one in ten million.
    """
    values = np.asarray(numbers, dtype=np.float64)
    unit = 10.0**digits
    with np.errstate(invalid="ignore", over="ignore"):
        decimal: _Floats = np.floor(values * unit + _OFFSET) / unit
    large = ~(np.abs(values) < _LARGE)
    return np.where(large, significant(values, _BITS), decimal) if large.any() else decimal


def significant(numbers: ArrayLike, bits: int) -> _Floats:
    """Return the numbers to so many leading bits; infinities and nan as they are."""
    mantissa, exponent = np.frexp(np.asarray(numbers, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        short: _Floats = np.ldexp(np.floor(np.ldexp(mantissa, bits) + _OFFSET), exponent - bits)
    return short


def best(values: ArrayLike) -> int:
    """Return the index of the largest of the numbers as they are rounded, the first of equals; nan is never it."""
    numbers = rounded(values).ravel()
    return int(np.argmax(np.where(np.isnan(numbers), -np.inf, numbers)))


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
