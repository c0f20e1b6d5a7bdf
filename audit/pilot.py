"""The pilot of a black-box audit: which thresholds promise the largest bound, with the doubt of many comparisons.

`events.choose_event` serves a pilot that compares a few exact scores. Here many learned scores, pairs and thresholds
compete on the same runs, so the winner's curse is larger, and so is what the doubt takes off.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..mechanisms.draws import Floats
from .events import UNUSED, Event

#: Standard errors of the pilot taken off what an event promises, for each e-fold of the thresholds that compete.
DOUBT = 0.6
#: Quantiles and tail places looked at, of scores with more distinct values than their sum.
_QUANTILES, _TAIL = 65, 24
_FEWEST = 6.0  # right guesses, below which a normal standard error means nothing


def choose(
    scores: Floats, left: NDArray[np.bool_], *, delta: float, alpha: float, runs: int, doubt: float | None = None
) -> tuple[Event, float]:
    """Return the event that promises most, and the bound (nats) that it promises.

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
    doubt : float, optional
        Standard errors of the pilot taken off; by default as the number of thresholds demands.
    """
    pilot = left.size
    known = ~np.isnan(scores)
    in_left, in_right = np.sort(scores[known & left]), np.sort(scores[known & ~left])
    grid = _places(np.sort(scores[known]))
    if not grid.size:
        return Event(UNUSED, UNUSED, "guess"), -math.inf
    if doubt is None:
        doubt = DOUBT * math.log(max(2, grid.size))
    above = [side.size - np.searchsorted(side, grid, "left") for side in (in_left, in_right)]
    below = [np.searchsorted(side, grid, "right") for side in (in_left, in_right)]
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
    runs_of = np.count_nonzero(left), np.count_nonzero(~left)
    if not allowed.any() or not all(runs_of):
        return Event(UNUSED, UNUSED, "guess"), -math.inf
    # One wrong guess is added to every event: half of it to each side of two.
    unseen = np.where(one_sided, 1.0, 0.5)
    used = ~np.isnan(lower), ~np.isnan(upper)[:, None]
    rates = [
        (rights / n, (wrongs + unseen * side) / (n + 1))
        for (rights, wrongs), side, n in zip(sides, used, runs_of, strict=True)
    ]
    slack = np.where(one_sided, delta, 2 * delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess, false = np.maximum(rates[0][0] + rates[1][0] - slack, 1e-12), rates[0][1] + rates[1][1]
        # Of one world's runs, those guessed right and those guessed wrong exclude each other.
        variance = sum(
            (p / excess**2 + q / false**2 - (p / excess - q / false) ** 2) / n
            for (p, q), n in zip(rates, runs_of, strict=True)
        )
        quantile = -float(special.ndtri(alpha))
        spread = np.sqrt(np.maximum(variance, 1e-12))
        worth = np.log(excess / false) - (quantile * math.sqrt(pilot / runs) + doubt) * spread
    worth = np.where(allowed, worth, -np.inf)
    i, j = np.unravel_index(int(np.argmax(worth)), worth.shape)
    method = "joint" if one_sided[i, j] else "guess"
    return Event(float(lower[j]), float(upper[i]), method), float(worth[i, j])


def transfer(event: Event, scores: Floats, others: Floats) -> Event:
    """Return the event on other scores of the same runs whose tails hold as many of them.

    The folds of cross-fitting and the final model score alike but not equally: a threshold that cuts 3 % of one may
    lie above everything of the other.
    """
    if np.array_equal(scores, others, equal_nan=True):
        return event
    upper, lower = UNUSED, UNUSED
    if not math.isnan(event.upper):
        upper = -_lowest_of_top(-others, int(np.sum(scores >= event.upper)))
    if not math.isnan(event.lower):
        lower = _lowest_of_top(others, int(np.sum(scores <= event.lower)))
    if not math.isnan(upper) and not math.isnan(lower) and lower >= upper:
        return event
    return Event(lower, upper, event.method)


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
