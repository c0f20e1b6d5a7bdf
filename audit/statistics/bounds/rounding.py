"""Numbers without their last bits, so that no choice hangs on them.

Processors, BLAS kernels and versions of the C library agree in all but the last bits of a logarithm or a sum. What is
equal in real arithmetic, such as the worths of two mirrored events, differs there, and an `argmax` of such numbers
picks another event on another machine; so does a threshold that a score meets exactly. Scores, worths and whatever
else is compared are therefore rounded first, and the first of equals is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Decimals that are kept: a billionth of a nat decides nothing.
DIGITS = 9
#: Beyond this size a number is known to fewer decimals: so many of its leading bits are kept.
_LARGE, _BITS = 2.0**13, 43
#: Rounding goes up from 0.3586 of a cell, not from its half: halves and other short fractions are what exact losses
#: and noise scales make, and none of three decimals or nine bits is within 4e-4 cells of it.
_UP = 0.5 + np.sqrt(2.0) / 10

_Floats = NDArray[np.float64]


def rounded(numbers: ArrayLike, digits: int = DIGITS) -> _Floats:
    """Return the numbers to so many decimals, large ones to 43 bits; infinities and nan as they are.

    Numbers of at most `digits` decimals stay what they are. Two results of one computation that differ by 1e-16, in
    numbers of size 1, come out different with a chance of about 1e-16 / 10**-digits, which is one in ten million.
    """
    values = np.asarray(numbers, dtype=np.float64)
    unit = 10.0**digits
    with np.errstate(invalid="ignore", over="ignore"):
        near: _Floats = np.floor(values * unit + _UP) / unit
    large = ~(np.abs(values) < _LARGE)
    return np.where(large, significant(values, _BITS), near) if large.any() else near


def significant(numbers: ArrayLike, bits: int) -> _Floats:
    """Return the numbers to so many leading bits; infinities and nan as they are."""
    mantissa, exponent = np.frexp(np.asarray(numbers, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        short: _Floats = np.ldexp(np.floor(np.ldexp(mantissa, bits) + _UP), exponent - bits)
    return short


def best(values: ArrayLike) -> int:
    """Return the index of the largest of the numbers as they are rounded, the first of equals; nan is never it."""
    known = rounded(values).ravel()
    return int(np.argmax(np.where(np.isnan(known), -np.inf, known)))
