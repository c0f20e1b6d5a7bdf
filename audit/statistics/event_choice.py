"""The pilot of a black-box audit: which thresholds promise the largest bound, with the doubt of many comparisons.

`event_rule.choose_by_labels` serves a pilot that compares a few exact scores. Here many learned scores, pairs and
thresholds compete on the same runs, so the winner's curse is larger: the rates of the events are those of smoothed
log odds, and what the doubt takes off is more where there is less to smooth by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

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
OF_HELD_OUT = 0.1
#: Runs of either tail that show where log odds of numbers go, at most, and which part of all: beyond them no score is
#: followed.
FOLLOWED, FOLLOWED_SHARE = 100, 400
#: The quantiles, and the places in each tail, that are tried as thresholds where scores have more distinct values.
_QUANTILES, _TAIL = 65, 24
#: Pilot runs below which the counts say what is in doubt: of fewer, attacks learn log odds too large.
_MIN_CURVE_RUNS = 10_000


class Odds(Enum):
    """How far scores are believed as log odds of the left world."""

    NONE = auto()  #: not at all: they rank runs
    ESTIMATED = auto()  #: a line through them is a fair first guess
    HELD_OUT = auto()  #: of discrete outputs, by an attack that learned from other runs: less doubt counts
    NUMERIC = auto()  #: of numbers, by an attack that learned where most of them are: not believed beyond these


@dataclass(frozen=True, eq=False)
class PilotScores:
    """Scores of a pilot's runs.

    Parameters
    ----------
    scores : array (pilot,)
        Evidence for the left world; nan is never guessed.
    left : bool array (pilot,), or None
        The world labels. None of coupled runs: the first half is of the left world, the other half of the right one,
        and run i of either was played with the same draws.
    odds : Odds
        What they say.
    doubt : float
        Standard errors of the pilot taken off what an event promises.
    """

    scores: Floats
    left: NDArray[np.bool_] | None = None
    odds: Odds = Odds.NONE
    doubt: float = DOUBT

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """Which scores are not nan."""
        return ~np.isnan(self.scores)

    @cached_property
    def grid(self) -> Floats:
        """The thresholds to try."""
        return _places(np.sort(self.scores[self.is_number]))

    @cached_property
    def labels(self) -> NDArray[np.bool_]:
        """The world labels."""
        return np.arange(self.scores.size) < self.scores.size // 2 if self.left is None else self.left

    @property
    def tails(self) -> CoupledTails:
        """The tails of coupled runs."""
        half = self.scores.size // 2
        return CoupledTails.of(self.grid, self.scores[:half], self.scores[half:])

    @property
    def centres(self) -> Floats | None:
        """A first guess of the log odds in every cell; None where scores do not say them."""
        if self.odds is Odds.NONE:
            return None
        centres = _centres(self.grid)
        return _followed(centres, self.scores[self.is_number]) if self.odds is Odds.NUMERIC else centres


@dataclass(frozen=True)
class Certification:
    """The certificate that an event is chosen for.

    Parameters
    ----------
    delta, alpha : float
        What it will be stated for.
    runs : int
        The certification runs to come, both worlds together.
    min_promise : float
        The bound (nats) up to which a promise is of next to nothing.
    """

    delta: float
    alpha: float
    runs: int
    min_promise: float = 0.0

    @property
    def quantile(self) -> float:
        """The normal quantile of alpha."""
        return -float(special.ndtri(self.alpha))


class Promise(NamedTuple):
    """An event, and the bound (nats) that it promises; a number below 0, which ranks events still, if none."""

    event: Event
    bound: float


def choose(pilot: PilotScores, certification: Certification) -> Promise:
    """Return the event that promises most.

    Where none does, or next to nothing, the event is the one that would promise most without the doubt: it may be a
    rare one, and there is nothing to lose. On coupled runs rates without smoothing compete too, with the doubt that is
    left.
    """
    scores, grid, doubt = pilot.scores, pilot.grid, pilot.doubt
    left, right = (pilot.is_number & world for world in (pilot.labels, ~pilot.labels))
    runs_of = int(np.count_nonzero(pilot.labels)), int(np.count_nonzero(~pilot.labels))
    if not grid.size or not all(runs_of):
        return Promise(NO_EVENT, -math.inf)
    cells = _cells(grid, scores[left]), _cells(grid, scores[right])
    smooth = _tails(smoothed(*cells, pilot.centres))
    by_curves = pilot.odds is Odds.HELD_OUT and pilot.left is not None and scores.size >= _MIN_CURVE_RUNS
    odds = _tails(likely(*cells, pilot.centres)) if by_curves else None
    estimators = [Candidates.of(smooth, grid, runs_of, delta=certification.delta, odds=odds)]
    if pilot.left is None:
        tails = pilot.tails
        estimators += [
            Candidates.of(rates, grid, runs_of, delta=certification.delta, tails=tails)
            for rates in (smooth, tails.thresholds)
        ]
    runs, quantile = certification.runs, certification.quantile
    # Rates that are not smoothed vary more with the pilot, so they get a larger doubt.
    penalties = doubt * (OF_HELD_OUT if by_curves else 1), doubt, max(doubt, min(2 * doubt, DOUBT))
    predictions = [
        Promise(*candidates.best(runs, quantile, penalty))
        for candidates, penalty in zip(estimators, penalties, strict=False)
    ]
    # Where no model says the odds, the tail may say more than its counts.
    independent = pilot.odds is Odds.NONE and pilot.left is not None
    if independent and (curves := likely_trends(*cells)) is not None:
        trending = estimators[0].with_trends(_tails(curves), runs_of, runs)
        predictions.append(Promise(*estimators[0].best_of_either(*trending, runs, quantile, (doubt, doubt))))
    best = max(predictions, key=_bound)
    if best.bound <= certification.min_promise:
        hopes = [Promise(*candidates.best(runs, quantile, 0.0)) for candidates in estimators]
        event, hope = max(hopes, key=_bound)
        # A number below 0, so that events without a promise rank below all others, in the order of hopes.
        best = Promise(event, -math.inf if hope == -math.inf else -float(rounded(math.exp(-hope))))
    return best


def choose_by_trend(pilot: PilotScores, certification: Certification) -> Promise:
    """Return the event that promises most on coupled runs, by its counts or, if it is rare, by its tail's trend.

    The best of many rare events is best by luck, in its right guesses and in its wrong ones. So what they are worth is
    told from the trend of all runs (`odds.walks.trended`), which is itself worth a few wrong guesses. Where scores
    say log odds, the trend around these tells of every event: then none is best by luck, and nothing is taken off. The
    pilot's doubt is that of counts.
    """
    scores, grid, half = pilot.scores, pilot.grid, pilot.scores.size // 2
    if not grid.size:
        return Promise(NO_EVENT, -math.inf)
    in_left, in_right = (_cells(grid, side[~np.isnan(side)]) for side in (scores[:half], scores[half:]))
    tails, runs, quantile = pilot.tails, certification.runs, certification.quantile
    by_counts = Candidates.of(tails.thresholds, grid, (half, half), delta=certification.delta, tails=tails)
    trend = trended(in_left, in_right, pilot.centres)
    if trend is None:
        return Promise(*by_counts.best(runs, quantile, pilot.doubt))
    trending, rare = by_counts.with_trend(_tails(trend), half)
    if pilot.odds is not Odds.NONE:
        return Promise(*trending.best(runs, quantile, 0.0))
    return Promise(*by_counts.best_of_either(trending, rare, runs, quantile, (TREND_DOUBT, pilot.doubt)))


def predicted_bound(event: Event, pilot: PilotScores, certification: Certification) -> float:
    """Return what an event promises by its counts on coupled runs: a bound (nats), or a number below 0."""
    ends = [end for end in (event.lower, event.upper) if not math.isnan(end)]
    half = pilot.scores.size // 2
    if not ends or not half:
        return -math.inf
    grid = np.union1d(pilot.grid, ends)
    tails = CoupledTails.of(grid, pilot.scores[:half], pilot.scores[half:])
    candidates = Candidates.of(tails.thresholds, grid, (half, half), delta=certification.delta, tails=tails)
    promises, _ = candidates.promises(certification.runs, certification.quantile, pilot.doubt)
    upper, lower = (
        grid.size if math.isnan(end) else int(np.searchsorted(grid, end)) for end in (event.upper, event.lower)
    )
    return float(promises[upper, lower])


def _bound(promise: Promise) -> float:
    return promise.bound


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
