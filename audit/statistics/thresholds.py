"""Thresholds that a choice of event scans: which scores are tried, and which pairs of them make an event."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .events import UNUSED

_Floats = NDArray[np.float64]


def picked(ordered: _Floats, distinct: _Floats, *, tail: NDArray[np.int64], quantiles: int, spread: int) -> _Floats:
    """Return thresholds from many sorted scores, in ascending order.

    Parameters
    ----------
    ordered, distinct : arrays of float
        The scores, and their distinct values.
    tail : array of int
        Places among the scores, from the lowest one, that are tried from both ends.
    quantiles : int
        Scores that are tried at even distances.
    spread : int
        Distinct values that are tried at even distances: quantiles miss some where few values hold most scores.
    """
    last = ordered.size - 1
    places = np.concatenate([tail, last - tail, np.linspace(0, last, quantiles).astype(np.int64)])
    values = distinct[np.linspace(0, distinct.size - 1, spread).astype(np.int64)]
    thresholds: _Floats = np.unique(np.concatenate([ordered[places], values]))
    return thresholds


def pairs(grid: _Floats) -> tuple[_Floats, _Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return all pairs of thresholds as a table; the last row and the last column stand for a side that is not used.

    Returns
    -------
    upper, lower : arrays (thresholds + 1,)
        Of the rows, from which score up the left world is named; of the columns, up to which the right one is.
    one_sided : bool array (thresholds + 1, thresholds + 1)
        Where a side is not used.
    allowed : bool array of the same shape
        Where no score names both worlds and some side is used.
    """
    upper, lower = (np.append(grid, UNUSED) for _ in range(2))
    one_sided = np.isnan(upper)[:, None] | np.isnan(lower)
    allowed = (lower < upper[:, None]) | one_sided
    allowed[-1, -1] = False
    return upper, lower, one_sided, allowed
