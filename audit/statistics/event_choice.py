"""The pilot of a black-box audit: which thresholds promise the largest bound, with the doubt of many comparisons.

`events.choose_event` serves a pilot that compares a few exact scores. Here many learned scores, pairs and thresholds
compete on the same runs, so the winner's curse is larger: the rates of the events are those of smoothed log odds, and
what the doubt takes off is more where there is less to smooth by.

References
----------
.. [1] L. Fahrmeir, S. Lang. Bayesian inference for generalized additive mixed models based on Markov random field
   priors. Applied Statistics 50, 2001 (random walks as priors of curves).
.. [2] E. Wilson, M. Hilferty. The distribution of chi-square. PNAS 17, 1931.
.. [3] G. Zou, A. Donner. Construction of confidence limits about effect measures. Statistics in Medicine 27, 2008.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray
from scipy import special

from ...mechanisms.draws import Floats
from .bounds.rounding import rounded
from .event_rule import allotment
from .events import UNUSED, Event

#: Standard errors of the pilot taken off what an event promises: of any score, and of one that says log odds.
DOUBT, DOUBT_OF_LOG_ODDS = 2.5, 1.2
#: Variances of the random walk for each unit of its way that are tried, from smooth to free.
STEPS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
#: Log odds beyond which a score says no more.
CERTAIN = 20.0
#: Quantiles and tail places looked at, of scores with more distinct values than their sum.
_QUANTILES, _TAIL = 65, 24
_FEWEST = 3.0  # right guesses, below which an event is no candidate
#: Decimals of what is fitted, whose sums depend on the processor; and the least evidence (nats) that counts.
FITTED, NEARLY = 6, 1e-6


def choose(
    scores: Floats,
    left: NDArray[np.bool_],
    *,
    delta: float,
    alpha: float,
    runs: int,
    doubt: float = DOUBT,
    log_odds: bool = False,
) -> tuple[Event, float]:
    """Return the event that promises most, and the bound (nats) that it promises; a number below 0 if none does.

    Where none does, the event is the one that would promise most without the doubt: it may be a rare one, and there is
    nothing to lose.

    Parameters
    ----------
    scores : array (pilot,)
        Evidence for the left world; nan is never guessed.
    left : bool array (pilot,)
        The world labels.
    delta, alpha : float
        Those of the certificate to come.
    runs : int
        The certification runs to come.
    doubt : float
        Standard errors of the pilot taken off.
    log_odds : bool
        Whether the scores estimate the log odds of the left world, so that a line through them is a fair first guess.
    """
    pilot = left.size
    known = ~np.isnan(scores)
    in_left, in_right = np.sort(scores[known & left]), np.sort(scores[known & ~left])
    grid = _places(np.sort(scores[known]))
    if not grid.size:
        return Event(UNUSED, UNUSED, "guess"), -math.inf
    above, below = _tails(grid, in_left, in_right, log_odds=log_odds)
    # The last row and column stand for a side that is not used. Rates are those of each world: the pilot has more runs
    # of one than of the other, by chance or because pairs share a world.
    upper, lower = (np.append(grid, UNUSED) for _ in range(2))
    sides = (
        (np.append(above[0], 0)[:, None], np.append(below[0], 0)),  # the left world: guessed right, guessed wrong
        (np.append(below[1], 0), np.append(above[1], 0)[:, None]),
    )
    one_sided = np.isnan(upper)[:, None] | np.isnan(lower)
    allowed = (lower < upper[:, None]) | one_sided
    allowed &= sides[0][0] + sides[1][0] >= min(_FEWEST, pilot / 8)
    allowed[-1, -1] = False
    runs_of = int(np.count_nonzero(left)), int(np.count_nonzero(~left))
    if not allowed.any() or not all(runs_of):
        return Event(UNUSED, UNUSED, "guess"), -math.inf
    # One wrong guess is added to every event: half of it to each side of two.
    unseen = np.where(one_sided, 1.0, 0.5)
    used = ~np.isnan(lower), ~np.isnan(upper)[:, None]
    rates = [
        (rights / n, (wrongs + unseen * side) / (n + 1))
        for (rights, wrongs), side, n in zip(sides, used, runs_of, strict=True)
    ]
    setting, quantile = (rates, runs_of, one_sided, delta, runs), -float(special.ndtri(alpha))
    worth, share = _promise(*setting, (quantile, doubt))
    worth = np.where(allowed, worth, -np.inf)
    if worth.max() <= 0:
        worth, share = _promise(*setting, (quantile, 0.0))
        worth = np.where(allowed, -rounded(np.exp(-worth)), -np.inf)  # in the same order, and below every promise
    i, j = np.unravel_index(int(np.argmax(worth)), worth.shape)
    method = "joint" if one_sided[i, j] else "guess"
    return Event(float(lower[j]), float(upper[i]), method, float(share[i, j])), float(worth[i, j])


def _promise(
    rates: list[tuple[Floats, Floats]],
    pilot: tuple[int, int],
    one_sided: NDArray[np.bool_],
    delta: float,
    runs: int,
    errors: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Return the bounds that events promise, from their rates in each world, and the left world's share of the runs.

    Parameters
    ----------
    rates : list of (right, wrong)
        Of guesses, in the left and in the right world.
    pilot : (left, right)
        Its runs.
    runs : int
        The certification runs to come.
    errors : (float, float)
        Standard errors taken off: of the runs to come, and of the pilot.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.maximum(rates[0][0] + rates[1][0] - np.where(one_sided, delta, 2 * delta), 1e-12)
        false = rates[0][1] + rates[1][1]
        # Variances of ln(excess) and of ln(false) by one run of each world. Its right and wrong guesses exclude each
        # other, which makes the two logarithms depend: each takes half of that.
        of_right, of_wrong = (
            [
                np.maximum(one * (1 - one) / total**2 + p * q / (excess * false), 1e-12)
                for (p, q), one in zip(rates, ones, strict=True)
            ]
            for ones, total in (([p for p, _ in rates], excess), ([q for _, q in rates], false))
        )
        share = np.where(one_sided, allotment(of_right[0] + of_wrong[0], of_right[1] + of_wrong[1]), 0.5)
        promise: Floats = np.log(excess / false)
        for error, runs_of in zip(errors, ((runs * share, runs * (1 - share)), pilot), strict=True):
            promise -= _doubt(
                error,
                of_right[0] / runs_of[0] + of_right[1] / runs_of[1],
                of_wrong[0] / runs_of[0] + of_wrong[1] / runs_of[1],
            )
    return rounded(promise), share


def _doubt(errors: float, right: Floats, wrong: Floats) -> Floats:
    """Return what to take off a log ratio of two rates for so many standard errors, given the logarithms' variances.

    A count of c has the variance 1 / c, and limits far from symmetric where it is small [2]_; the two distances from
    the ratio to its limit are summed as standard errors are [3]_.
    """
    least = np.maximum(1 - right / 9 - errors * np.sqrt(right) / 3, 1e-3)
    most = np.maximum(1 - wrong / 9 + errors * np.sqrt(wrong) / 3, 1e-3)
    doubt: Floats = 3 * np.sign(errors) * np.hypot(np.log(least), np.log(most))
    return doubt


def _tails(grid: Floats, in_left: Floats, in_right: Floats, *, log_odds: bool) -> tuple[list[Floats], list[Floats]]:
    """Return the smoothed runs of either world at or above each threshold, and at or below it, from sorted scores."""
    cells = []
    for side in (in_left, in_right):
        ends = np.stack([np.searchsorted(side, grid, end) for end in ("left", "right")], axis=1).ravel()
        cells.append(np.diff(ends, prepend=0, append=side.size))  # below, at, between, ..., at, above
    upto = [np.cumsum(some) for some in smoothed(cells[0], cells[1], _centres(grid) if log_odds else None)]
    return [some[-1] - some[:-1:2] for some in upto], [some[1:-1:2] for some in upto]


def cells_of(scores: Floats, left: NDArray[np.bool_], *, log_odds: bool) -> tuple[Floats, Floats, Floats]:
    """Return thresholds, and the smoothed runs of either world below the first, from each on, and of none (nan).

    A cell holds the scores from a threshold up to, and without, the next; those below all and nan are the first.
    """
    known = ~np.isnan(scores)
    sides = np.sort(scores[known & left]), np.sort(scores[known & ~left])
    grid = _places(np.sort(scores[known]))
    none = [int(np.count_nonzero(~known & here)) for here in (left, ~left)]
    if not grid.size:
        return grid, np.array([float(none[0])]), np.array([float(none[1])])
    counts = [np.diff(np.searchsorted(side, grid), prepend=0, append=side.size) for side in sides]
    centres = np.clip(np.append(grid[:1], grid), -CERTAIN, CERTAIN)
    of_left, of_right = smoothed(counts[0], counts[1], centres if log_odds else None)
    of_left[0], of_right[0] = of_left[0] + none[0], of_right[0] + none[1]
    return grid, of_left, of_right


def _centres(grid: Floats) -> Floats:
    """Return a score for every cell at and between the thresholds."""
    centres = np.repeat(np.clip(grid, -CERTAIN, CERTAIN), 2)
    centres[1:-1:2] = (centres[:-2:2] + centres[2::2]) / 2
    return np.append(grid[:1].clip(-CERTAIN, CERTAIN), centres)


def smoothed(
    in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the runs of each world to be expected in cells of neighbouring scores, given those of all cells.

    The log odds of the cells walk at random, from zero or around a line in the guess, over the log odds of rank [1]_;
    how far, is what makes the runs most likely (empirical Bayes, Laplace's approximation). So a cell of few runs is
    like its neighbours, and the best of many events owes less to luck than by the counts themselves.

    Parameters
    ----------
    in_left, in_right : int array (cells,)
        The runs of either world, cells in order of the score.
    guess : array (cells,), optional
        Log odds as a model says them.
    """
    full = in_left + in_right > 0
    mine, runs = in_left[full].astype(np.float64), (in_left + in_right)[full].astype(np.float64)
    of_left, of_right = float(mine.sum()), float((runs - mine).sum())
    if runs.size < 2 or not of_left or not of_right:
        return in_left.astype(np.float64), in_right.astype(np.float64)
    base = np.full(runs.size, math.log(of_left / of_right))
    if guess is not None:
        base += _line(guess[full], mine, runs, base)
    weight = mine / of_left + (runs - mine) / of_right
    rank = (np.cumsum(weight) - weight / 2) / 2
    way = np.diff(special.logit(rank))
    walk, best, fitted = np.zeros(runs.size), -math.inf, base
    for step in STEPS:
        stiff = 1 / (step * way)
        walk, factor = _walk(walk, mine, runs, base, stiff)
        fit = mine @ walk - runs @ np.logaddexp(0, walk + base) - stiff @ np.diff(walk) ** 2 / 2
        evidence = float(fit + np.log(stiff).sum() / 2 - np.log(factor[1]).sum())
        if evidence > best + NEARLY:  # every step may fit equally well
            best, fitted = evidence, walk + base
    expected = np.zeros(full.size)
    expected[full] = rounded(runs * special.expit(fitted), FITTED)
    return expected, in_left + in_right - expected


def _line(guess: Floats, mine: Floats, runs: Floats, base: Floats) -> Floats:
    """Return the guess times what makes the runs most likely (logistic regression), from 0 to 1.5."""
    basis = np.stack([guess, np.ones(guess.size)])
    weights = np.zeros(2)
    for _ in range(20):
        rate = special.expit(weights @ basis + base)
        curvature = (basis * (runs * rate * (1 - rate))) @ basis.T + 1e-6 * np.eye(2)
        move = np.clip(np.linalg.solve(curvature, basis @ (mine - runs * rate) - 1e-6 * weights), -1, 1)
        weights += move
        if np.abs(move).max() < 1e-4:
            break
    line: Floats = rounded(np.clip(weights[0], 0, 1.5), FITTED) * guess
    return line


def _walk(walk: Floats, mine: Floats, runs: Floats, base: Floats, stiff: Floats) -> tuple[Floats, Floats]:
    """Return the most likely walk around the base, and the curvature's Cholesky factor there, by Newton's steps."""
    tied = np.zeros((2, runs.size))  # the upper diagonal, and the diagonal
    tied[0, 1:] = -stiff
    tied[1, :-1] += stiff
    tied[1, 1:] += stiff
    for _ in range(30):
        rate = special.expit(walk + base)
        bent = np.diff(walk) * stiff
        slope = mine - runs * rate + np.append(bent, 0.0) - np.append(0.0, bent)
        curvature = tied.copy()
        curvature[1] += runs * rate * (1 - rate) + 1e-9
        factor = scipy.linalg.cholesky_banded(curvature, check_finite=False)
        move = scipy.linalg.cho_solve_banded((factor, False), slope, check_finite=False)
        walk = walk + np.clip(move, -2, 2)
        if np.abs(move).max() < 1e-3:
            break
    return walk, factor


def transfer(event: Event, scores: Floats, others: Floats) -> Event:
    """Return the event on other scores of the same runs whose tails hold as many of them.

    The folds of cross-fitting and the final model score alike but not equally: a threshold that cuts 3 % of one may
    lie above everything of the other.
    """
    if np.array_equal(scores, others, equal_nan=True):
        return event
    if event.function is not None:
        event = replace(event, function=event.function.transferred(scores, others))
    upper, lower = UNUSED, UNUSED
    if not math.isnan(event.upper):
        upper = -_lowest_of_top(-others, int(np.sum(scores >= event.upper)))
    if not math.isnan(event.lower):
        lower = _lowest_of_top(others, int(np.sum(scores <= event.lower)))
    if not math.isnan(upper) and not math.isnan(lower) and lower >= upper:
        return event
    return replace(event, lower=lower, upper=upper)


def _lowest_of_top(scores: Floats, many: int) -> float:
    """Return t such that the number of scores at most t is nearest to `many`, and not 0."""
    values, times = np.unique(scores[~np.isnan(scores)], return_counts=True)
    if not values.size:
        return UNUSED
    return float(values[np.argmin(np.abs(np.cumsum(times) - many))])


def _places(ordered: Floats) -> Floats:
    """Return the thresholds to try, from sorted scores."""
    distinct: Floats = ordered[np.append(True, ordered[1:] != ordered[:-1])] if ordered.size else ordered
    if distinct.size <= _QUANTILES + 2 * _TAIL:
        return distinct
    last = ordered.size - 1
    tail = np.geomspace(4, ordered.size / 8, _TAIL).astype(np.int64)
    places = np.concatenate([tail, last - tail, np.linspace(0, last, _QUANTILES).astype(np.int64)])
    spread = np.linspace(0, distinct.size - 1, 33).astype(np.int64)  # sees values that heavy ties would hide
    picked: Floats = np.unique(np.concatenate([ordered[places], distinct[spread]]))
    return picked
