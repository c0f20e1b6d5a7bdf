"""Tails and quantiles of the binomial distribution.

They are those of ``scipy.stats.binom``, which takes longer to import than most audits take.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

_Floats = NDArray[np.float64]
#: Variances from which on an expansion is off by less than one; and trials up to which the quantile is exact.
_SMOOTH, _EXACT = 400.0, 2.0**40


def survival(count: ArrayLike, n: ArrayLike, p: ArrayLike) -> _Floats:
    """Return P(X > count) of binomial X: ``I_p(count + 1, n - count)``, the incomplete beta function.

    Parameters
    ----------
    count, n : array of whole numbers
    p : array
        In [0, 1].

    Examples
    --------
    >>> [round(float(tail), 4) for tail in survival([-1, 0, 1, 2], 2, 0.1)]
    [1.0, 0.19, 0.01, 0.0]
    """
    count, n = np.asarray(count, dtype=np.float64), np.asarray(n, dtype=np.float64)
    tail = special.betainc(np.maximum(count, 0) + 1, np.maximum(n - count, 1), p)
    tails: _Floats = np.where(count < 0, 1.0, np.where(count >= n, 0.0, tail))
    return tails


def _expanded(tail: _Floats, n: _Floats, p: _Floats) -> _Floats:
    """Return nearly the quantile, not rounded, by Cornish and Fisher's expansion: ten times as fast as SciPy's."""
    sd, z = np.sqrt(n * p * (1 - p)), -special.ndtri(tail)
    skewness, excess = (1 - 2 * p) / sd, (1 - 6 * p * (1 - p)) / sd**2
    third = skewness * (z**2 - 1) / 6
    fourth = excess * (z**3 - 3 * z) / 24 - skewness**2 * (2 * z**3 - 5 * z) / 36
    expanded: _Floats = n * p + sd * (z + third + fourth) - 0.5
    return expanded


def upper_quantile(tail: ArrayLike, n: ArrayLike, p: ArrayLike) -> _Floats:
    """Return the least count of 0, ..., n with P(X > count) <= tail of binomial X.

    Of more than 2^40 trials it is as good as one by at most 2^-40 of them larger.

    Parameters
    ----------
    tail : array
        In (0, 1).
    n : array of whole numbers
    p : array
        In [0, 1].

    Examples
    --------
    >>> [float(upper_quantile(tail, 100, 0.5)) for tail in (0.95, 0.5, 0.05)]
    [42.0, 50.0, 58.0]
    """
    tail, n, p = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (tail, n, p)))
    inner = (p > 0) & (p < 1) & (n > 0)
    guess = np.where(p >= 1, n, 0.0)
    smooth = inner & (n * p * (1 - p) > _SMOOTH) & (n <= _EXACT)
    guess[smooth] = _expanded(tail[smooth], n[smooth], p[smooth])
    rough = inner & ~smooth
    guess[rough] = n[rough] - 1 - np.nan_to_num(special.bdtrik(tail[rough], n[rough], 1 - p[rough]))  # less what fails
    high: _Floats = np.clip(np.ceil(guess), 0, n)
    resolution = np.maximum(np.floor(n * 2.0**-40), 1.0)
    low, step = high - resolution, resolution
    # An expansion is a guess, and older libraries have eight digits only: a bracket P(X > low) > tail >= P(X > high)
    # is looked for.
    while (too_low := survival(high, n, p) > tail).any():
        low, high, step = np.where(too_low, high, low), np.where(too_low, np.minimum(high + step, n), high), 2 * step
    while (too_high := survival(low, n, p) <= tail).any():
        high, low, step = (
            np.where(too_high, low, high),
            np.where(too_high, np.maximum(low - step, -1.0), low),
            2 * step,
        )
    while (high - low > resolution).any():
        middle = np.floor((low + high) / 2)
        too_low = survival(middle, n, p) > tail
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return high
