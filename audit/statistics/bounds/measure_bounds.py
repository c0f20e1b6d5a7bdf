"""Lower bounds in any measure from the counts of an event, as `joint_bound` gives them for epsilon at a delta.

An event that was fixed before the runs has probability p in one world and q in the other. What a measure says of them
grows with p and falls with q, so a region of (p, q) is summed up by its boundary. Two regions are used, both exact:

- the corner of two one-sided Clopper-Pearson intervals, each with half of the error;
- for trade-offs, which say in closed form what they allow, the points (p, q) that a weighted sum of both tails' normal
  scores [2]_ does not reject, within a box that holds the truth but for a thousandth of the error [1]_. Where the sum
  is smallest is enclosed by cells: in each, the score of p is smallest at its largest p, that of q at its smallest q,
  so that what is not looked at is bounded as well.

References
----------
.. [1] R. Berger, D. Boos. P values maximized over a confidence set for the nuisance parameter. JASA 89, 1994.
.. [2] S. Stouffer et al. The American Soldier, vol. 1. Princeton, 1949 (the sum of weighted normal scores).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ....mechanisms.measures.approximate import Profile
from ....mechanisms.measures.measure import Measure, TradeOff
from .binomial_bounds import clopper_pearson_lower, clopper_pearson_upper
from .intervals import NUISANCE_SHARE

_Floats = NDArray[np.float64]

#: Cells of the boundary at first, and those into which the ones around the smallest are divided.
_CELLS, _REFINED_CELLS, _SUBCELLS = 48, 3, 24
#: The steps in which levels are tested: so many to the claim, or to the largest standard error of a share, times 4.
_STEPS, _STEPS_OF_ERROR = 4096, 8
#: Larger claims are tested as finely as this one.
_MAX_STEP_LEVEL = 10.0
#: The least step, as a share of the claim: some times what floating point tells apart.
_PRECISION = 2.0**-50
#: Tails below this have the score of this: about 37.
_MIN_TAIL = 1e-300


def corner(k_p: ArrayLike, n_p: ArrayLike, k_q: ArrayLike, n_q: ArrayLike, *, alpha: float) -> tuple[_Floats, _Floats]:
    """Return a lower limit of p and an upper limit of q that hold together with probability 1 - alpha.

    Parameters and errors are those of `intervals.epsilon_two_interval`.
    """
    limits = clopper_pearson_lower(k_p, n_p, alpha / 2), clopper_pearson_upper(k_q, n_q, alpha / 2)
    return np.asarray(limits[0]), np.asarray(limits[1])


def refuted(
    measure: Measure, k_p: ArrayLike, n_p: ArrayLike, k_q: ArrayLike, n_q: ArrayLike, *, alpha: float
) -> NDArray[np.bool_]:
    """Tell whether the counts of an event refute a claim: of a true one with probability at most alpha.

    Parameters
    ----------
    measure : Measure
        The claim.
    k_p, n_p, k_q, n_q : int or array of int
        Runs with the event, and runs, in each world. They broadcast.
    alpha : float
        In (0, 1).
    """
    if not isinstance(measure, TradeOff):
        return np.asarray(measure.needed(*corner(k_p, n_p, k_q, n_q, alpha=alpha)) > measure.level)
    data = np.broadcast_arrays(*(np.asarray(count, dtype=np.int64) for count in (k_p, n_p, k_q, n_q)))
    columns = tuple(column.reshape(-1, 1) for column in data)
    box = [np.asarray(limit) for limit in corner(*columns, alpha=NUISANCE_SHARE * alpha)]
    quantile = -special.ndtri((1 - NUISANCE_SHARE) * alpha)
    # If p = allowed(q) then 1 - q = allowed(1 - p): an event and its complement are allowed together.
    start = np.clip(1 - measure.allowed(1 - box[0]), 0.0, 1.0)
    none = start[:, 0] > box[1][:, 0]  # the box holds nothing that the claim allows
    angles = [np.arcsin(np.sqrt(end[:, 0])) for end in (start, np.maximum(start, box[1]))]
    edges = np.sin(np.linspace(angles[0], angles[1], _CELLS + 1, axis=-1)) ** 2  # equal steps in standard deviations
    cell_minima = _least_of_cells(measure, columns, edges)
    worst = np.clip(np.argmin(cell_minima, axis=1)[:, None], _REFINED_CELLS // 2, _CELLS - 1 - _REFINED_CELLS // 2)
    refined_cells = worst + np.arange(_REFINED_CELLS) - _REFINED_CELLS // 2
    ends = np.take_along_axis(edges, np.append(refined_cells, refined_cells[:, -1:] + 1, axis=1), axis=1)
    finer = np.concatenate(
        [np.linspace(ends[:, i], ends[:, i + 1], _SUBCELLS, endpoint=False, axis=1) for i in range(_REFINED_CELLS)]
        + [ends[:, -1:]],
        axis=1,
    )
    np.put_along_axis(cell_minima, refined_cells, np.inf, axis=1)
    excluded = np.minimum(cell_minima.min(axis=1), _least_of_cells(measure, columns, finer).min(axis=1)) > quantile
    rejected: NDArray[np.bool_] = (none | excluded).reshape(data[0].shape)
    return rejected


def _least_of_cells(measure: TradeOff, data: tuple[NDArray[np.int64], ...], edges: _Floats) -> _Floats:
    """Return a number below the sum of scores in each cell of what the claim just allows, q between two edges.

    The scores of a point are weighed by an angle, which the point and the runs fix: its tangent is the standard error
    of q's share times the slope of what is allowed, over the standard error of p's share. In a cell it lies between
    two angles, since that slope falls with q; and a sum weighed by an angle in between is least at one of them, unless
    both scores are negative.
    """
    k_p, n_p, k_q, n_q = data
    p, q = measure.allowed(edges), edges
    with np.errstate(all="ignore"):
        a = np.where(k_p > 0, _score(k_p, n_p - k_p + 1, p[:, 1:]), -np.inf)  # the least of p's score, and of q's
        b = np.where(k_q < n_q, _score(n_q - k_q, k_q + 1, 1 - q[:, :-1]), -np.inf)
        slope, of_p, of_q = measure.slope(q), _deviations(p, n_p), _deviations(q, n_q)
        angles = np.arctan2(of_q[0] * slope[:, 1:], of_p[1]), np.arctan2(of_q[1] * slope[:, :-1], of_p[0])
        angles = np.nan_to_num(angles[0], nan=0.0), np.nan_to_num(angles[1], nan=np.pi / 2)
        sums = [np.cos(angle) * a + np.sin(angle) * b for angle in angles]
        minima: _Floats = np.where((a < 0) & (b < 0), -np.hypot(a, b), np.minimum(*sums))
    return np.nan_to_num(minima, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def _deviations(x: _Floats, runs: NDArray[np.int64]) -> tuple[_Floats, _Floats]:
    """Return the least and the largest standard error of a share in each cell, its probability between two edges."""
    ends = np.sqrt(x[:, :-1] * (1 - x[:, :-1]) / runs), np.sqrt(x[:, 1:] * (1 - x[:, 1:]) / runs)
    contains_half = (x[:, :-1] < 0.5) & (x[:, 1:] > 0.5)
    return np.minimum(*ends), np.where(contains_half, 0.5 / np.sqrt(runs), np.maximum(*ends))


def _score(a: ArrayLike, b: ArrayLike, x: _Floats) -> _Floats:
    """Return the normal score of a beta tail at x: large where the tail is small."""
    tail, rest = special.betainc(a, b, x), special.betaincc(a, b, x)
    score: _Floats = np.where(
        tail < 0.5, -special.ndtri(np.maximum(tail, _MIN_TAIL)), special.ndtri(np.maximum(rest, _MIN_TAIL))
    )
    return score


def level_lower(measure: Measure, k_p: int, n_p: int, k_q: int, n_q: int, *, alpha: float) -> float:
    """Return a lower bound on the level of the measure that is true, wrong with probability at most alpha.

    Where it is above the claim's level, `refuted` holds. Parameters as for `refuted`.

    Levels are tested upwards in steps that the claim and the runs fix, until one stands: if the bound is above the
    truth, the first step that is not below the truth was refuted, and that is one test of a true claim.

    Examples
    --------
    >>> from overclaim.mechanisms.measures.gaussian_dp import GDP
    >>> round(level_lower(GDP(1.0), 5_000, 10_000, 1_587, 10_000, alpha=0.01), 3)
    0.951
    """
    counts = (k_p, n_p, k_q, n_q)
    if not isinstance(measure, TradeOff):
        return float(measure.needed(*corner(*counts, alpha=alpha)))
    # Up to here the box of `refuted` holds nothing that is allowed, so that every level is refuted.
    floor = float(measure.needed(*corner(*counts, alpha=NUISANCE_SHARE * alpha)))
    smallest = min(claim.level for claim in measure.claims) if isinstance(measure, Profile) else 1.0
    step = max(min(measure.level, _MAX_STEP_LEVEL) / _STEPS, 1 / (_STEPS_OF_ERROR * math.sqrt(n_p + n_q) * smallest))
    step = max(step, measure.level * _PRECISION)  # beside which a smaller one would not be seen
    first = measure.level * (1 + 1e-9)  # so that a bound is above the claim if the claim is refuted
    lower, k = floor, math.ceil((floor - first) / step)
    while (level := first + k * step) <= 0 or refuted(measure.at(level), *counts, alpha=alpha):
        lower, k = max(lower, level), k + 1
    return float(lower)
