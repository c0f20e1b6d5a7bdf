"""Whether every null point of a joint test is rejected: a proof by cells, where a grid would look between them.

The joint test (`joint_bound`) rejects a point (p, q), with p = e^epsilon q + delta, where the weighted sum
of two normal scores passes a quantile. Its bound is valid if *every* point of the box with an epsilon below the bound
is rejected. On a cell of epsilons and q this is shown, not sampled:

- the score of world P falls with p, that of world Q rises with q: on the cell they are at least a, P's at the largest
  p, and b, Q's at the smallest q. From there, on the largest epsilon's curve, they rise at least by their smallest
  slopes (`_slope`): a bound that is linear in q for given weights, and least at one of the curve's ends;
- the squared ratio of the weights is p (1 - p) / (q (1 - q)) times e^(-2 epsilon) n_Q / n_P. It falls with epsilon, as
  p (1 - p) / (p - delta)^2 does with p. It falls with q too: its logarithm's derivative has the sign of
  p (q - p) - delta (1 - q) (1 - 2 p), whose last term is at most (p - q) (2 p - 1) <= (p - q) p, as delta <= p - q.
  So its ends are at two corners of the cell;
- for given a and b the sum is (a, b) times the direction (cos phi, sin phi), which lies in the first quadrant, between
  those ends. It is least where the direction is opposite to (a, b), if that lies between, else at one of the ends.

A cell whose least sum passes the quantile is cleared; others are cut in four, until none is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Data = tuple[Floats, ...]
Ends = tuple[Floats, Floats]
#: From rows of data and points to the scores of one world.
Score = Callable[[Data, Floats], Floats]

#: What is given up for a proof, in widths of the search's bracket: the nearer, the more cells.
MARGINS = (2e-4, 1e-3, 5e-3, 0.05)
#: The same for figures, where the first of these is not seen.
COARSE = MARGINS[2:]
#: Cells of a row at first, in epsilon and in q; how often cells are cut; and how many of a row may be left.
_CELLS, _CUTS, _MAX_CELLS = (3, 12), 16, 20_000
#: Runs from which on a density is not computed closely enough, and its relative error below.
_MAX_DENSITY_RUNS, _ROUNDING = 1e7, 1e-6


def proved(
    bounds: Floats,
    floor: Floats,
    width: Floats,
    data: Data,
    box: Ends,
    quantile: Floats,
    scores: tuple[Score, Score],
    margins: Sequence[float] = MARGINS,
) -> Floats:
    """Return, for each row, an epsilon just below the one that was found, up to which all is proved to be rejected.

    Parameters
    ----------
    bounds, floor, width : arrays (rows, 1)
        What a search found, below which everything is rejected anyway, and the bracket that it was looked for in: some
        four standard errors.
    margins : sequence of float
        What is given up of the bracket: the first that can be proved; where none can, all.
    """
    answer, left = floor.copy(), np.ones(len(bounds), dtype=bool)
    for margin in margins:
        left &= (bounds - margin * width > floor)[:, 0]
        if not left.any():
            break
        ends = floor[left], (bounds - margin * width)[left]
        open_data = tuple(column[left] for column in data)
        proved_rows = np.flatnonzero(left)[
            covered(open_data, (box[0][left], box[1][left]), quantile[left], ends, scores)
        ]
        answer[proved_rows] = (bounds - margin * width)[proved_rows]
        left[proved_rows] = False
    return answer


def covered(data: Data, box: Ends, quantile: Floats, ends: Ends, scores: tuple[Score, Score]) -> Bools:
    """Tell for which rows all null points of the box at these epsilons are proved to be rejected, (rows,).

    Parameters
    ----------
    data : arrays (rows, 1)
        k_P, n_P, k_Q, n_Q and delta.
    box : arrays (rows, 1)
        The least p and the largest q.
    quantile : array (rows, 1)
        What the sum must pass.
    ends : arrays (rows, 1)
        The least and the largest epsilon.
    scores : functions
        Of world P at p, of world Q at q.
    """
    rows, (along, across) = len(quantile), _CELLS
    unproved = np.zeros(rows, dtype=bool)
    row = np.repeat(np.arange(rows), along * across)
    i, j = (np.tile(steps.ravel(), rows)[:, None] for steps in np.indices(_CELLS))
    smallest_q = np.clip((box[0] - data[4]) * np.exp(-ends[1]), 0.0, 1.0)
    start, stop = np.arcsin(np.sqrt(smallest_q))[row], np.arcsin(np.sqrt(box[1]))[row]  # steps of standard deviations
    low, high = (ends[0][row] + (ends[1] - ends[0])[row] * (i + k) / along for k in (0, 1))
    left, right = (start + (stop - start) * (j + k) / across for k in (0, 1))
    for _ in range(_CUTS):
        delta = data[4][row]
        q = (
            np.maximum(np.sin(left) ** 2, (box[0][row] - delta) * np.exp(-high)),
            np.minimum(np.minimum(np.sin(right) ** 2, box[1][row]), (1.0 - delta) * np.exp(-low)),
        )
        feasible = ((q[0] <= q[1]) & ~unproved[row][:, None])[:, 0]
        row, low, high, left, right = (x[feasible] for x in (row, low, high, left, right))
        q = q[0][feasible], q[1][feasible]
        sums = _least_sum(tuple(column[row] for column in data), q, (low, high), scores)
        unclear = ~(sums > quantile[row])[:, 0]
        row, low, high, left, right = (x[unclear] for x in (row, low, high, left, right))
        if not row.size:
            return ~unproved
        unproved |= np.bincount(row, minlength=rows) > _MAX_CELLS
        middle, centre, row = (low + high) / 2, (left + right) / 2, np.tile(row, 4)
        low, high = np.concatenate([low, low, middle, middle]), np.concatenate([middle, middle, high, high])
        left, right = np.concatenate([left, centre, left, centre]), np.concatenate([centre, right, centre, right])
    unproved[row] = True
    return ~unproved


def _least_sum(data: Data, q: Ends, epsilon: Ends, scores: tuple[Score, Score]) -> Floats:
    """Return a lower bound of the weighted sum of scores on each cell, (cells, 1); -inf where there is none."""
    k_p, n_p, k_q, n_q, delta = data
    p_low, p_high = (np.minimum(np.exp(e) * x + delta, 1.0) for e, x in zip(epsilon, q, strict=True))
    first = np.minimum(np.exp(epsilon[1]) * q[0] + delta, 1.0)  # the other end of the largest epsilon's curve
    a, a_first = (scores[0](data, p) for p in (p_high, first))
    b, b_last = (scores[1](data, x) for x in q)
    with np.errstate(all="ignore"):
        rises = (
            np.where(
                p_high < 1.0, _slope((first, p_high), (a, a_first), k_p, n_p - k_p + 1.0) * (p_high - first), 0.0
            ),
            _slope(q, (b, b_last), k_q + 1.0, n_q - k_q) * (q[1] - q[0]),
        )
        weights_low, weights_high = _weights(data, p_low, q[0]), _weights(data, p_high, q[1])
        along = np.minimum(
            _least_between(a + rises[0], b, weights_low, weights_high),
            _least_between(a, b + rises[1], weights_low, weights_high),
        )
        ends = _at_one(data, p_low, q[1], b), _at_zero(data, (p_low, p_high), q[1], epsilon[1], a)
    return np.fmax(np.fmax(along, ends[0]), ends[1])


def _weights(data: Data, p: Floats, q: Floats) -> Ends:
    return np.sqrt(p * (1.0 - p) / data[1]) / (p - data[4]), np.sqrt((1.0 - q) / (q * data[3]))


def _least_between(a: Floats, b: Floats, first: Ends, second: Ends) -> Floats:
    """Return the least sum of the scores a and b over all weights between two."""

    def total(of_p: Floats, of_q: Floats) -> Floats:
        sums = (np.where(of_p > 0, of_p * a, 0.0) + np.where(of_q > 0, of_q * b, 0.0)) / np.hypot(of_p, of_q)
        return np.where(np.isnan(sums), -np.inf, sums)

    corners = np.minimum(total(*first), total(*second))
    # Weights opposite to two negative scores: their ratio b / a lies between those of the corners.
    is_interior = (first[1] * a - first[0] * b) * (second[1] * a - second[0] * b) <= 0
    smallest: Floats = np.where((a < 0) & (b < 0) & is_interior, -np.hypot(a, b), corners)
    return smallest


def _slope(x: Ends, score: Ends, alpha: Floats, beta: Floats) -> Floats:
    """Return a lower bound of a score's slope between two probabilities; 0 where none is known.

    The tail of a binomial count is the distribution function of Beta(alpha, beta), whose density f is log-concave:
    least at an end. The slope of the normal quantile at that tail is f over the normal density of the score, which is
    largest where the score is closest to 0.
    """
    log_density = np.minimum(*(special.xlogy(alpha - 1.0, y) + special.xlog1py(beta - 1.0, -y) for y in x))
    closest = np.where(score[0] * score[1] <= 0, 0.0, np.minimum(np.abs(score[0]), np.abs(score[1])))
    slope = np.exp(log_density - special.betaln(alpha, beta) + closest**2 / 2 + math.log(2 * math.pi) / 2)
    # Scores far out are approximate, and so is the logarithm of the density of very many runs.
    reliable = (
        (alpha >= 1.0)
        & (beta >= 1.0)
        & (alpha + beta < _MAX_DENSITY_RUNS)
        & (np.abs(score[0]) < 30)
        & (np.abs(score[1]) < 30)
    )
    slopes: Floats = np.where(reliable & np.isfinite(slope), slope * (1.0 - _ROUNDING), 0.0)
    return slopes


def _at_one(data: Data, p: Floats, q: Floats, b: Floats) -> Floats:
    """Return a lower bound of the sum where P's probability is at least p, up to 1, and Q's at most q; nan elsewhere.

    At 1 the score falls without bound, but its product with the weight does not: k_P - 1 or fewer have a probability
    of at least p^n (1 - p)^m, m = n_P - k_P + 1, so the score is at least -sqrt(2 ln(1 / that)), and the product
    largest at the smallest p, since x ln(1 / x) rises up to x = 1 / e.
    """
    rest, weights = 1.0 - p, _weights(data, p, q)
    score_bound = np.sqrt(2.0 * ((data[1] - data[0] + 1.0) * np.log(1.0 / rest) + data[1] * np.log(1.0 / p)))
    score_bound = np.where(rest > 0, score_bound, 0.0)
    return np.where(rest < 0.3, _quotient(b - weights[0] * score_bound / weights[1], weights[0] / weights[1]), np.nan)


def _at_zero(data: Data, p: Ends, q: Floats, epsilon: Floats, a: Floats) -> Floats:
    """Return the same where Q's probability is at most q, down to 0, and P's in an interval: the mirror image."""
    score_bound = np.sqrt(2.0 * ((data[2] + 1.0) * np.log(1.0 / q) + data[3] * np.log(1.0 / (1.0 - q))))
    weight = np.sqrt(np.minimum(p[0] * (1.0 - p[0]), p[1] * (1.0 - p[1])) / data[1]) * np.exp(-epsilon)
    other = np.sqrt(q / data[3])  # both weights times q, as the sum is written in `joint_bound`
    return np.where(q < 0.3, _quotient(a - other * score_bound / weight, other / weight), np.nan)


def _quotient(top: Floats, ratio: Floats) -> Floats:
    """Return the least of top / hypot(1, r) for r from 0 to `ratio`."""
    smallest: Floats = np.where(top > 0, top / np.hypot(1.0, ratio), top)
    return smallest
