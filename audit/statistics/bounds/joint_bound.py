"""Lower bounds on epsilon from both worlds' binomial tails together.

References
----------
.. [1] R. Berger, D. Boos. P values maximized over a confidence set for the nuisance parameter. JASA 89,
   1994.
.. [2] S. Stouffer et al. The American Soldier, vol. 1. Princeton, 1949 (the sum of weighted normal scores).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .binomial_bounds import (
    Floats,
    Reals,
    check_alpha,
    check_delta,
    count_pair,
    log_ratio,
    lower_bound,
    unwrap,
    upper_bound,
)
from .intervals import NUISANCE_SHARE
from .joint_cover import MARGINS, Ends, proved

#: Which rows of a problem are meant: their numbers, or all.
Rows = NDArray[np.intp] | slice
_COARSE = np.linspace(0.0, 1.0, 25)  # places in the box, in units of its width (about eight sd)
_FINE = np.linspace(-1.0, 1.0, 9)  # places around the coarse minimum, in units of a coarse cell
_SCAN = np.linspace(0.0, 1.0, 12)  # places in the bracket of epsilon, looked at before searching between two
_STEPS, _CLOSE, _MAX_SCORE = 30, 1e-7, 9.0  # of that search: steps, width of the last bracket, largest score
_ALL = slice(None)
_CHUNK = 512  # rows of a joint problem solved at once: bounds the memory


def epsilon_joint(
    k_p: ArrayLike,
    n_p: ArrayLike,
    k_q: ArrayLike,
    n_q: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    alpha: ArrayLike = 0.05,
    margins: Sequence[float] = MARGINS,
    level: float | None = None,
) -> Reals:
    """Return a lower bound on epsilon (nats) from both binomial tails together.

    For every point ``(p, q)`` of the null boundary ``p = e^epsilon q + delta`` the exact tail probabilities
    of the two counts become normal scores and are summed with Stouffer weights [2]_ fixed by the point. The
    null is rejected when the smallest sum over a Berger-Boos box [1]_ (alpha/1000) passes the normal quantile
    of what is left of alpha; the bound is the smallest epsilon that is not rejected. At the true point the
    scores are at most standard normal and independent, and a smaller true p only lowers them: the error is at
    most alpha.

    Parameters and errors are those of `epsilon_two_interval`, and

    margins : sequence of float
        What may be given up to prove that all null points below the bound are rejected (`joint_cover`). None, and they
        are only looked at on a grid, which may find some 1e-3 standard errors too much: enough to choose among events,
        and never for what is said of a learner.
    level : float, optional
        Only whether the bound is above it is asked, without a proof: the search ends as soon as that is clear, and
        what is returned lies on the bound's side of the level.
    """
    in_p, runs_p = count_pair("k_p", k_p, "n_p", n_p)
    in_q, runs_q = count_pair("k_q", k_q, "n_q", n_q)
    columns = np.broadcast_arrays(in_p, runs_p, in_q, runs_q, check_delta(delta), check_alpha(alpha))
    rows = np.stack([column.ravel() for column in columns])
    # Runs of an audit repeat the same few counts: each distinct row is solved once.
    distinct, place = np.unique(rows, axis=1, return_inverse=True)
    starts = range(0, distinct.shape[1], _CHUNK)
    solved = [_joint_rows(distinct[:, start : start + _CHUNK, None], margins, level) for start in starts]
    bounds = np.concatenate(solved) if solved else np.empty(0)
    return unwrap(bounds[place.ravel()].reshape(columns[0].shape))


def rejected(
    k_p: ArrayLike, n_p: ArrayLike, k_q: ArrayLike, n_q: ArrayLike, *, epsilon: ArrayLike, delta: float, alpha: float
) -> NDArray[np.bool_]:
    """Tell whether the null of each epsilon is rejected, on the grid alone: where not, the bound is at most that.

    Parameters are those of `epsilon_joint`, for a choice among events: one look, where the bound takes twenty.
    """
    columns = np.broadcast_arrays(k_p, n_p, k_q, n_q, epsilon, delta, NUISANCE_SHARE * alpha)
    *game, epsilons, slack, g = (np.asarray(column, dtype=np.float64).reshape(-1, 1) for column in columns)
    box = lower_bound(game[0], game[1], g / 2), upper_bound(game[2], game[3], g / 2)
    is_rejected: NDArray[np.bool_] = _smallest_score((*game, slack), box, epsilons) > -special.ndtri(alpha - g[:, 0])
    return is_rejected


def _joint_rows(problems: Floats, margins: Sequence[float], level: float | None) -> Floats:
    """Solve joint problems, (6, rows, 1): k_p, n_p, k_q, n_q, delta and alpha of each."""
    k_p, n_p, k_q, n_q, delta, alpha = problems
    g = NUISANCE_SHARE * alpha
    p_box, q_box = lower_bound(k_p, n_p, g / 2), upper_bound(k_q, n_q, g / 2)
    # Below `floor` the box holds no null point: all is rejected. At `ceiling` it holds one where both scores are
    # at most 0 (or at the quantile itself if alpha > 1/2), which is not.
    half = np.maximum(0.5, alpha)
    floor = log_ratio(p_box - delta, q_box)
    ceiling = log_ratio(lower_bound(k_p, n_p, half) - delta, upper_bound(k_q, n_q, half))
    answer = floor[:, 0]
    live = ceiling[:, 0] > answer
    columns = (k_p, n_p, k_q, n_q, delta, p_box, q_box, -special.ndtri(alpha - g))
    if level is not None:
        live = (answer <= level) & (ceiling[:, 0] > level)
        *data, p_box, q_box, quantile = (column[live] for column in columns)
        worst = _smallest_score(tuple(data), (p_box, q_box), np.full(quantile.shape, level))
        live[live] = worst > quantile[:, 0]  # where the level itself is not rejected, the bound is not above it
    if not live.any():
        return answer
    *data, p_box, q_box, quantile = (column[live] for column in columns)
    box = p_box, q_box

    def excess(epsilon: Floats, selection: Rows = _ALL) -> Floats:
        """Return by how much the smallest score of rows passes the quantile, (rows, columns): rejected where positive.

        Of some rows alone, where the others are not asked for.
        """
        n_epsilons = epsilon.shape[1]
        rows, ends = (
            tuple(np.repeat(column[selection], n_epsilons, axis=0) for column in columns) for columns in (data, box)
        )
        worst = _smallest_score(rows, (ends[0], ends[1]), epsilon.ravel()[:, None]).reshape(epsilon.shape)
        # Infinite scores have no slope.
        surplus: Floats = np.clip(worst - quantile[selection], -_MAX_SCORE, _MAX_SCORE)
        return surplus

    low = _crossing(excess, *_first_bracket(excess, floor[live], ceiling[live]), level)
    if margins:
        scores = (_score_p, _score_q)
        low = proved(low, floor[live], (ceiling - floor)[live], tuple(data), box, quantile, scores, margins)
    answer[live] = low[:, 0]
    return answer


def _first_bracket(excess: Callable[[Floats], Floats], floor: Floats, ceiling: Floats) -> tuple[Ends, Ends]:
    """Return the ends of brackets of the *first* epsilon that is not rejected, and the excess there.

    A search between floor and ceiling at once would trust in one crossing.
    """
    scan = floor + (ceiling - floor) * _SCAN
    surplus = excess(scan)
    surplus[:, 0], surplus[:, -1] = np.abs(surplus[:, 0]), -np.abs(surplus[:, -1])  # as is known of floor and ceiling
    first = np.maximum(1, np.argmin(surplus > 0, axis=1))[:, None]
    (low, high), (excess_low, excess_high) = (
        [np.take_along_axis(x, index, axis=1) for index in (first - 1, first)] for x in (scan, surplus)
    )
    return (low, high), (excess_low, excess_high)


def _crossing(excess: Callable[[Floats, Rows], Floats], ends: Ends, values: Ends, level: float | None) -> Floats:
    """Return the lower ends of brackets that are cut until they are narrow, or lie on one side of the level."""
    (low, high), (excess_low, excess_high) = ends, values
    lower_ends, active_rows = low.copy(), np.arange(len(low))
    for _ in range(_STEPS):
        wide = high - low > _CLOSE  # a row that is found is left behind, whatever the others need
        if level is not None:
            wide &= (low <= level) & (high > level)
        if not wide.all():
            wide_rows = np.flatnonzero(wide)
            active_rows, (low, high, excess_low, excess_high) = (
                active_rows[wide_rows],
                (x[wide_rows] for x in (low, high, excess_low, excess_high)),
            )
        if not active_rows.size:
            break
        # Regula falsi, the end that stays twice at half its value (Illinois); bisection where it says nothing.
        middle = low + (high - low) * (excess_low / (excess_low - excess_high))
        middle = np.where((middle > low) & (middle < high), middle, (low + high) / 2)
        passed = (value := excess(middle, active_rows)) > 0
        low, high = np.where(passed, middle, low), np.where(passed, high, middle)
        excess_low, excess_high = np.where(passed, value, excess_low / 2), np.where(passed, excess_high / 2, value)
        lower_ends[active_rows] = low
    return lower_ends


def _smallest_score(data: tuple[Floats, ...], box: tuple[Floats, Floats], epsilon: Floats) -> Floats:
    """Return the smallest Stouffer sum over the null points of the box, shape (rows,)."""
    delta = data[4]
    start = np.clip((box[0] - delta) * np.exp(-epsilon), 0.0, 1.0)
    # Beyond e^epsilon q + delta = 1 only world Q speaks, and its score grows with q: that stretch is never
    # the minimum.
    stop = np.minimum(box[1], (1.0 - delta) * np.exp(-epsilon))
    stop = np.maximum(start, stop)
    # Equal steps of asin(sqrt(q)) are equal steps in standard deviations of a binomial.
    left, right = np.arcsin(np.sqrt(start)), np.arcsin(np.sqrt(stop))
    cell = (right - left) * _COARSE[1]
    coarse = left + (right - left) * _COARSE
    scores = _stouffer(data, np.clip(np.sin(coarse) ** 2, start, stop), epsilon)
    centre = np.take_along_axis(coarse, np.argmin(scores, axis=1)[:, None], axis=1)
    fine = np.clip(centre + cell * _FINE, left, right)
    fine_scores = _stouffer(data, np.clip(np.sin(fine) ** 2, start, stop), epsilon)
    smallest: Floats = np.minimum(scores.min(axis=1), fine_scores.min(axis=1))
    return smallest


def _stouffer(data: tuple[Floats, ...], q: Floats, epsilon: Floats) -> Floats:
    """Return the weighted sum of the two normal scores at the null points (e^epsilon q + delta, q)."""
    _, n_p, _, n_q, delta = data
    p = np.minimum(np.exp(epsilon) * q + delta, 1.0)
    # The weights sd(p^)/(p - delta) and sd(q^)/q, both times q: finite at q = 0.
    weight_p = np.sqrt(p * (1.0 - p) / n_p) * np.exp(-epsilon)
    weight_q = np.sqrt(q * (1.0 - q) / n_q)
    score_p, score_q = _score_p(data, p), _score_q(data, q)
    with np.errstate(invalid="ignore"):
        # A weight vanishes faster than its score diverges: the product's limit is 0.
        top = np.where(weight_p > 0, weight_p * score_p, 0.0) + np.where(weight_q > 0, weight_q * score_q, 0.0)
        total: Floats = top / np.hypot(weight_p, weight_q)
    # Opposite infinities, or no weight at all: do not reject.
    return np.where(np.isnan(total), -np.inf, total)


def _score_p(data: tuple[Floats, ...], p: Floats) -> Floats:
    k, n = data[0], data[1]
    return _score(special.betainc, special.betaincc, k, n - k + 1, n, k, p)


def _score_q(data: tuple[Floats, ...], q: Floats) -> Floats:
    k, n = data[2], data[3]
    return _score(special.betaincc, special.betainc, k + 1, n - k, n, k, q)


def _score(tail: np.ufunc, opposite: np.ufunc, a: Floats, b: Floats, n: Floats, k: Floats, x: Floats) -> Floats:
    """Return ``-ndtri(tail probability)``, large where the count speaks against the null, at every scale."""
    mass = tail(a, b, x)
    score: Floats = -special.ndtri(mass)
    heavy = mass > 0.9  # near 1 the digits are in the opposite tail
    rest = np.broadcast_to(a, x.shape)[heavy], np.broadcast_to(b, x.shape)[heavy], x[heavy]
    score[heavy] = special.ndtri(opposite(*rest))
    # Past 37 sd both tails underflow. The deviance root is close enough there: the true null point is met
    # this far out with probability 1e-300, so these values only steer the search.
    underflow = np.isinf(score) & (x > 0) & (x < 1)
    if underflow.any():
        share, point = np.broadcast_to(k / n, x.shape)[underflow], x[underflow]
        deviance = special.rel_entr(share, point) + special.rel_entr(1 - share, 1 - point)
        score[underflow] = np.sign(score[underflow]) * np.sqrt(2 * np.broadcast_to(n, x.shape)[underflow] * deviance)
    # k_p = 0 and k_q = n_q: the tail is everything and the count says nothing against the null.
    return np.where((a <= 0) | (b <= 0), -np.inf, score)
