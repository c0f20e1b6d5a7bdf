"""The pilot of a black-box audit: which thresholds promise the largest bound, with the doubt of many comparisons.

`event_rule.choose_by_labels` serves a pilot that compares a few exact scores. Here many learned scores, pairs and
thresholds compete on the same runs, so the winner's curse is larger: the rates of the events are those of smoothed
log odds, and what the doubt takes off is more where there is less to smooth by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...mechanisms.draws import Floats
from ...mechanisms.numerics import rounded
from .coupling import CoupledTails
from .event_candidates import TREND_DOUBT, Candidates
from .event_rule import CERTAIN, picked
from .events import NO_EVENT, Event
from .odds.walks import likely, likely_trends, smoothed, trended

#: Standard errors of the pilot taken off what an event promises: of any score, and of one that says log odds.
DOUBT, DOUBT_OF_LOG_ODDS = 2.5, 1.2
#: The part of it that counts for log odds of discrete outputs by an attack that learned from other runs.
OF_JUDGED = 0.1
#: Runs of either tail that show where log odds of numbers go, at most, and which part of all: beyond them no score is
#: followed.
FOLLOWED, FOLLOWED_SHARE = 100, 400
#: The quantiles, and the places in each tail, that are tried as thresholds where scores have more distinct values.
_QUANTILES, _TAIL = 65, 24
#: Pilot runs below which the counts say what is in doubt: of fewer, attacks learn log odds too large.
_MIN_CURVE_RUNS = 10_000


def choose(
    scores: Floats,
    left: NDArray[np.bool_],
    *,
    delta: float,
    alpha: float,
    runs: int,
    doubt: float = DOUBT,
    log_odds: bool = False,
    judged: bool = False,
    of_numbers: bool = False,
    coupled: bool = False,
    least: float = 0.0,
) -> tuple[Event, float]:
    """Return the event that promises most, and the bound (nats) that it promises; a number below 0 if none does.

    Where none does, or next to nothing, the event is the one that would promise most without the doubt: it may be a
    rare one, and there is nothing to lose.

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
    judged : bool
        Whether log odds are of discrete outputs, by an attack that learned from other runs: less doubt counts then.
    of_numbers : bool
        Whether log odds are of numbers, by an attack that learned where most of them are: beyond these they are not
        believed.
    coupled : bool
        Whether the first half of the runs is of the left world, the other half of the right one, and run i of either
        was played with the same draws. Then rates without smoothing compete too, with the doubt that is left.
    least : float
        The bound (nats) up to which a promise is of next to nothing.
    """
    known = ~np.isnan(scores)
    grid = _places(np.sort(scores[known]))
    runs_of = int(np.count_nonzero(left)), int(np.count_nonzero(~left))
    if not grid.size or not all(runs_of):
        return NO_EVENT, -math.inf
    cells = _cells(grid, scores[known & left]), _cells(grid, scores[known & ~left])
    centres = None
    if log_odds:
        centres = _followed(_centres(grid), scores[known]) if of_numbers else _centres(grid)
    smooth = _tails(smoothed(*cells, centres))
    told = log_odds and judged and not coupled and left.size >= _MIN_CURVE_RUNS
    odds = _tails(likely(*cells, centres)) if told else None
    ways = [Candidates.of(smooth, grid, runs_of, delta=delta, odds=odds)]
    if coupled:
        tails = CoupledTails.of(grid, scores[: left.size // 2], scores[left.size // 2 :])
        ways.append(Candidates.of(smooth, grid, runs_of, delta=delta, tails=tails))
        ways.append(Candidates.of(tails.thresholds, grid, runs_of, delta=delta, tails=tails))
    quantile = -float(special.ndtri(alpha))
    # Rates that are not smoothed vary more with the pilot, so they get a larger doubt.
    taken = doubt * (OF_JUDGED if judged and ways[0].by_curves else 1), doubt, max(doubt, min(2 * doubt, DOUBT))
    promises = [way.best(runs, quantile, off) for way, off in zip(ways, taken, strict=False)]
    # Where no model says the odds, the tail may say more than its counts.
    if not (log_odds or coupled) and (curves := likely_trends(*cells)) is not None:
        trending = ways[0].with_trends(_tails(curves), runs_of, runs)
        promises.append(ways[0].best_of_either(*trending, runs, quantile, (doubt, doubt)))
    best = max(promises, key=_worth)
    if best[1] <= least:
        event, hoped = max((way.best(runs, quantile, 0.0) for way in ways), key=_worth)
        # A number below 0, so that events without a promise rank below all others, in the order of `hoped`.
        best = event, -math.inf if hoped == -math.inf else -float(rounded(math.exp(-hoped)))
    return best


def choose_by_trend(
    scores: Floats, *, delta: float, alpha: float, runs: int, doubt: float, log_odds: bool = False
) -> tuple[Event, float]:
    """Return the event that promises most on coupled runs, by its counts or, if it is rare, by its tail's trend.

    The best of many rare events is best by luck, in its right guesses and in its wrong ones. So what they are worth is
    told from the trend of all runs (`odds.walks.trended`), which is itself worth a few wrong guesses. Where scores
    say log odds, the trend around these tells of every event: then none is best by luck, and nothing is taken off.

    Parameters
    ----------
    scores : array (pilot,)
        The left world's first, then those of the right one with the same draws.
    delta, alpha, runs, doubt, log_odds
        As for `choose`; the doubt is that of counts.
    """
    half, is_number = scores.size // 2, ~np.isnan(scores)
    grid = _places(np.sort(scores[is_number]))
    if not grid.size:
        return NO_EVENT, -math.inf
    in_left, in_right = (_cells(grid, side[~np.isnan(side)]) for side in (scores[:half], scores[half:]))
    tails = CoupledTails.of(grid, scores[:half], scores[half:])
    by_counts = Candidates.of(tails.thresholds, grid, (half, half), delta=delta, tails=tails)
    quantile = -float(special.ndtri(alpha))
    trend = trended(in_left, in_right, _centres(grid) if log_odds else None)
    if trend is None:
        return by_counts.best(runs, quantile, doubt)
    trending, rare = by_counts.with_trend(_tails(trend), half)
    if log_odds:
        return trending.best(runs, quantile, 0.0)
    return by_counts.best_of_either(trending, rare, runs, quantile, (TREND_DOUBT, doubt))


def promised(event: Event, scores: Floats, *, delta: float, alpha: float, runs: int, doubt: float) -> float:
    """Return what an event promises by its counts on coupled runs: a bound (nats), or a number below 0.

    Parameters
    ----------
    event : Event
    scores, delta, alpha, runs, doubt
        As for `choose_by_trend`.
    """
    ends = [end for end in (event.lower, event.upper) if not math.isnan(end)]
    half = scores.size // 2
    if not ends or not half:
        return -math.inf
    grid = np.union1d(_places(np.sort(scores[~np.isnan(scores)])), ends)
    tails = CoupledTails.of(grid, scores[:half], scores[half:])
    candidates = Candidates.of(tails.thresholds, grid, (half, half), delta=delta, tails=tails)
    promises, _ = candidates.promises(runs, -float(special.ndtri(alpha)), doubt)
    upper, lower = (
        grid.size if math.isnan(end) else int(np.searchsorted(grid, end)) for end in (event.upper, event.lower)
    )
    return float(promises[upper, lower])


def _worth(choice: tuple[Event, float]) -> float:
    return choice[1]


def _cells(grid: Floats, scores: Floats) -> NDArray[np.int64]:
    """Return the runs below, at, between and above the thresholds, from the scores of one world."""
    ends = np.stack([np.searchsorted(np.sort(scores), grid, end) for end in ("left", "right")], axis=1).ravel()
    return np.diff(ends, prepend=0, append=scores.size)


def _tails(cells: tuple[Floats, Floats]) -> tuple[Sequence[Floats], Sequence[Floats]]:
    """Return the runs of either world at or above each threshold, and at or below it; cells are on the last axis."""
    upto = [np.cumsum(runs, axis=-1) for runs in cells]
    return [sums[..., -1:] - sums[..., :-1:2] for sums in upto], [sums[..., 1:-1:2] for sums in upto]


def cells_of(scores: Floats, left: NDArray[np.bool_], *, log_odds: bool) -> tuple[Floats, Floats, Floats]:
    """Return thresholds, and the smoothed runs of either world below the first, from each on, and of none (nan).

    A cell holds the scores from a threshold up to, and without, the next; those below all and nan are the first.
    """
    grid, in_left, in_right = counts_of(scores, left)
    none = [int(np.count_nonzero(np.isnan(scores) & world)) for world in (left, ~left)]
    if not grid.size:
        return grid, np.array([float(none[0])]), np.array([float(none[1])])
    centres = np.clip(np.append(grid[:1], grid), -CERTAIN, CERTAIN)
    of_left, of_right = smoothed(in_left, in_right, centres if log_odds else None)
    of_left[0], of_right[0] = of_left[0] + none[0], of_right[0] + none[1]
    return grid, of_left, of_right


def counts_of(scores: Floats, left: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return thresholds, and the runs of either world in their cells as `cells_of` has them, without nan."""
    is_number = ~np.isnan(scores)
    sides = np.sort(scores[is_number & left]), np.sort(scores[is_number & ~left])
    grid = _places(np.sort(scores[is_number]))
    in_left, in_right = (np.diff(np.searchsorted(side, grid), prepend=0, append=side.size) for side in sides)
    return grid, in_left, in_right


def _centres(grid: Floats) -> Floats:
    """Return a score for every cell at and between the thresholds."""
    centres = np.repeat(np.clip(grid, -CERTAIN, CERTAIN), 2)
    centres[1:-1:2] = (centres[:-2:2] + centres[2::2]) / 2
    return np.append(grid[:1].clip(-CERTAIN, CERTAIN), centres)


def _followed(centres: Floats, scores: Floats) -> Floats:
    """Return the cells' scores, level beyond the last `FOLLOWED` runs of either tail.

    Regressions and trees go on where the odds do not: of the many rare events in a tail some few runs fit that too.
    """
    last = min(FOLLOWED, scores.size // FOLLOWED_SHARE)
    low, high = np.partition(scores, (last, scores.size - 1 - last))[[last, scores.size - 1 - last]]
    return np.clip(centres, low, high)


def _places(ordered: Floats) -> Floats:
    """Return the thresholds to try, from sorted scores."""
    distinct: Floats = ordered[np.append(True, ordered[1:] != ordered[:-1])] if ordered.size else ordered
    if distinct.size <= _QUANTILES + 2 * _TAIL:
        return distinct
    tail = np.geomspace(4, ordered.size / 8, _TAIL).astype(np.int64)
    return picked(ordered, distinct, tail=tail, quantiles=_QUANTILES, spread=33)
