"""The pilot of a black-box audit: which thresholds promise the largest bound, with the doubt of many comparisons.

`event_rule.choose_event` serves a pilot that compares a few exact scores. Here many learned scores, pairs and
thresholds compete on the same runs, so the winner's curse is larger: the rates of the events are those of smoothed
log odds, and what the doubt takes off is more where there is less to smooth by.

References
----------
.. [1] E. Wilson, M. Hilferty. The distribution of chi-square. PNAS 17, 1931.
.. [2] G. Zou, A. Donner. Construction of confidence limits about effect measures. Statistics in Medicine 27, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...mechanisms.draws import Floats
from .bounds.rounding import rounded
from .coupling import CoupledTails, in_tail
from .event_rule import CERTAIN, allotment, pairs, picked
from .events import UNUSED, Event
from .smoothing import doubt_by_curves, likely, smoothed, trended

#: Standard errors of the pilot taken off what an event promises: of any score, and of one that says log odds.
DOUBT, DOUBT_OF_LOG_ODDS = 2.5, 1.2
#: The part of it that counts for log odds of discrete outputs by an attack that learned from other runs.
OF_JUDGED = 0.1
#: A tail's trend is followed where it makes fewer wrong guesses expected, and is worth as many itself; the standard
#: errors of the pilot that are taken off then.
TREND, TREND_DOUBT = 30.0, 0.4
#: The quantiles, and the places in each tail, that are tried as thresholds where scores have more distinct values.
_QUANTILES, _TAIL = 65, 24
_FEWEST = 3.0  # right guesses, below which an event is no candidate
#: Pilot runs below which the counts say what is in doubt: of fewer, attacks learn log odds too large.
_FEWEST_OF_CURVES = 10_000
#: Wrong guesses that are added to what the pilot shows, to an event of one side and to each side of two: to its
#: counts, and where log odds say what to expect. Promises of one side are too high otherwise.
_UNSEEN, _UNSEEN_BY_LOG_ODDS = (1.0, 0.5), (0.3, 0.05)


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
    coupled: bool = False,
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
    judged : bool
        Whether log odds are of discrete outputs, by an attack that learned from other runs: less doubt counts then.
    coupled : bool
        Whether the first half of the runs is of the left world, the other half of the right one, and run i of either
        was played with the same draws. Then rates without smoothing compete too, with the doubt that is left.
    """
    known = ~np.isnan(scores)
    grid = _places(np.sort(scores[known]))
    runs_of = int(np.count_nonzero(left)), int(np.count_nonzero(~left))
    if not grid.size or not all(runs_of):
        return Event(UNUSED, UNUSED, "guess"), -math.inf
    cells = _cells(grid, scores[known & left]), _cells(grid, scores[known & ~left])
    centres = _centres(grid) if log_odds else None
    smooth = _tails(smoothed(*cells, centres))
    told = log_odds and judged and not coupled and left.size >= _FEWEST_OF_CURVES
    odds = _tails(likely(*cells, centres)) if told else None
    ways = [_Candidates.of(smooth, grid, runs_of, delta=delta, odds=odds)]
    if coupled:
        tails = CoupledTails.of(grid, scores[: left.size // 2], scores[left.size // 2 :])
        ways.append(_Candidates.of(smooth, grid, runs_of, delta=delta, tails=tails))
        ways.append(_Candidates.of(tails.thresholds, grid, runs_of, delta=delta, tails=tails))
    quantile = -float(special.ndtri(alpha))
    # Rates that are not smoothed vary more with the pilot, so they get a larger doubt.
    taken = doubt * (OF_JUDGED if judged and ways[0].by_curves else 1), doubt, max(doubt, min(2 * doubt, DOUBT))
    best = max((way.best(runs, quantile, off) for way, off in zip(ways, taken, strict=False)), key=_worth)
    if best[1] <= 0:
        event, hoped = max((way.best(runs, quantile, 0.0) for way in ways), key=_worth)
        # A number below 0, so that events without a promise rank below all others, in the order of `hoped`.
        best = event, -math.inf if hoped == -math.inf else -float(rounded(math.exp(-hoped)))
    return best


def choose_by_trend(
    scores: Floats, *, delta: float, alpha: float, runs: int, doubt: float, log_odds: bool = False
) -> tuple[Event, float]:
    """Return the event that promises most on coupled runs, by its counts or, if it is rare, by its tail's trend.

    The best of many rare events is best by luck, in its right guesses and in its wrong ones. So what they are worth is
    told from the trend of all runs (`smoothing.trended`), which is itself worth a few wrong guesses. Where scores say
    log odds, the trend around these tells of every event: then none is best by luck, and nothing is taken off.

    Parameters
    ----------
    scores : array (pilot,)
        The left world's first, then those of the right one with the same draws.
    delta, alpha, runs, doubt, log_odds
        As for `choose`; the doubt is that of counts.
    """
    half, known = scores.size // 2, ~np.isnan(scores)
    grid = _places(np.sort(scores[known]))
    if not grid.size:
        return Event(UNUSED, UNUSED, "guess"), -math.inf
    in_left, in_right = (_cells(grid, side[~np.isnan(side)]) for side in (scores[:half], scores[half:]))
    tails = CoupledTails.of(grid, scores[:half], scores[half:])
    counted = _Candidates.of(tails.thresholds, grid, (half, half), delta=delta, tails=tails)
    curve = trended(in_left, in_right, _centres(grid) if log_odds else None)
    trending, rare = counted.trending(_tails(curve), half)
    quantile = -float(special.ndtri(alpha))
    if log_odds:
        return trending.best(runs, quantile, 0.0)
    ways = trending.promises(runs, quantile, TREND_DOUBT), counted.promises(runs, quantile, doubt)
    return counted.most(*(np.where(rare, told, seen) for told, seen in zip(*ways, strict=True)))


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
    candidates = _Candidates.of(tails.thresholds, grid, (half, half), delta=delta, tails=tails)
    promises, _ = candidates.promises(runs, -float(special.ndtri(alpha)), doubt)
    upper, lower = (
        grid.size if math.isnan(end) else int(np.searchsorted(grid, end)) for end in (event.upper, event.lower)
    )
    return float(promises[upper, lower])


def _worth(choice: tuple[Event, float]) -> float:
    return choice[1]


@dataclass(frozen=True)
class _Candidates:
    """Pairs of thresholds with the rates of their guesses; the last of each axis stands for a side that is not used.

    Attributes
    ----------
    rates : list of (right, wrong)
        Of guesses, in the left and in the right world.
    pilot : tuple of arrays
        The variances of ln(excess of right guesses) and of ln(wrong ones) in the pilot.
    """

    grid: Floats
    rates: list[tuple[Floats, Floats]]
    pilot: tuple[Floats, Floats]
    allowed: NDArray[np.bool_]
    one_sided: NDArray[np.bool_]
    delta: float
    by_curves: bool = False

    @classmethod
    def of(
        cls,
        tails_of: tuple[Sequence[Floats], Sequence[Floats]],
        grid: Floats,
        runs_of: tuple[int, int],
        *,
        delta: float,
        tails: CoupledTails | None = None,
        odds: tuple[Sequence[Floats], Sequence[Floats]] | None = None,
    ) -> _Candidates:
        """Return the candidates from the runs of either world at or above each threshold, and at or below it.

        Rates are those of each world: the pilot may have more runs of one than of the other. `odds` are such runs too,
        (likely curves, thresholds), where log odds say them: how far these differ is then what is in doubt.
        """
        above, below = tails_of
        upper, lower, one_sided, allowed = pairs(grid)
        sides = (
            (np.append(above[0], 0)[:, None], np.append(below[0], 0)),  # the left world: guessed right, guessed wrong
            (np.append(below[1], 0), np.append(above[1], 0)[:, None]),
        )
        allowed &= sides[0][0] + sides[1][0] >= min(_FEWEST, sum(runs_of) / 8)
        unseen = np.where(one_sided, *(_UNSEEN if odds is None else _UNSEEN_BY_LOG_ODDS))
        used = ~np.isnan(lower), ~np.isnan(upper)[:, None]
        guesses = [(rights, wrongs + unseen * side) for (rights, wrongs), side in zip(sides, used, strict=True)]
        rare = np.zeros(allowed.shape, dtype=np.bool_)
        if tails is not None:  # what the trend of a tail makes expect takes part, where it is one of one side
            expected = np.full(allowed.shape, np.nan)
            expected[-1, :-1], expected[:-1, -1] = in_tail(below[1], below[0]), in_tail(above[0], above[1])
            rare = ~np.isnan(expected)
            for _, wrongs in guesses:
                wrongs[rare] *= (expected / (1 + expected))[rare]
        rates = [(rights / n, wrongs / (n + 1)) for (rights, wrongs), n in zip(guesses, runs_of, strict=True)]
        candidates = cls(grid, rates, (unseen, unseen), allowed, one_sided, delta, odds is not None)
        if tails is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                pilot = tails.variances(candidates.excess * runs_of[0], candidates.false * runs_of[0])
                rights, wrongs = (sides[0][k] + sides[1][k] for k in (0, 1))
                pilot = np.where(rare, 1 / rights, pilot[0]), np.where(rare, 1 / (wrongs + 1), pilot[1])
        elif odds is None:
            pilot = candidates.variances(runs_of)
        else:
            pilot = doubt_by_curves(odds, guesses, unseen)
        return replace(candidates, pilot=pilot)

    @property
    def excess(self) -> Floats:
        """The rate of right guesses beyond what delta explains, in both worlds together."""
        slack = np.where(self.one_sided, self.delta, 2 * self.delta)
        excess: Floats = np.maximum(self.rates[0][0] + self.rates[1][0] - slack, 1e-12)
        return excess

    @property
    def false(self) -> Floats:
        """The rate of wrong guesses in both worlds together."""
        return self.rates[0][1] + self.rates[1][1]

    def _of_one(self) -> tuple[list[Floats], list[Floats]]:
        """Return the variances of ln(excess) and of ln(false) by one run of each world.

        Its right and wrong guesses exclude each other, which makes the two logarithms depend: each takes half of that.
        """
        excess, false = self.excess, self.false
        with np.errstate(divide="ignore", invalid="ignore"):
            of_right, of_wrong = (
                [
                    np.maximum(one * (1 - one) / total**2 + p * q / (excess * false), 1e-12)
                    for (p, q), one in zip(self.rates, ones, strict=True)
                ]
                for ones, total in (([p for p, _ in self.rates], excess), ([q for _, q in self.rates], false))
            )
        return of_right, of_wrong

    def variances(self, runs_of: tuple[Floats | float, Floats | float]) -> tuple[Floats, Floats]:
        """Return the variances of ln(excess) and of ln(false) by so many independent runs of each world."""
        with np.errstate(divide="ignore", invalid="ignore"):
            right, wrong = (one[0] / runs_of[0] + one[1] / runs_of[1] for one in self._of_one())
        return right, wrong

    def trending(
        self, tails_of: tuple[Sequence[Floats], Sequence[Floats]], draws: int
    ) -> tuple[_Candidates, NDArray[np.bool_]]:
        """Return the candidates with the rates of tails that follow a trend, and which are so rare that it tells more.

        `tails_of` are the runs that the trend makes expect, as those of `of`, in so many draws.
        """
        above, below = ([np.append(runs, 0.0) for runs in side] for side in tails_of)
        guesses = [(above[0][:, None], below[0]), (below[1], above[1][:, None])]
        (_, first), (_, second) = guesses
        with np.errstate(divide="ignore", invalid="ignore"):
            of_wrong = (first**2 / (first + TREND) + second**2 / (second + TREND)) / (first + second) ** 2
            # The right guesses are as many as the threshold's rank in the tail: that is nobody's luck.
            pilot = np.zeros(of_wrong.shape), np.nan_to_num(of_wrong, nan=1 / TREND)
        rates = [(right / draws, wrong / draws) for right, wrong in guesses]
        return replace(self, rates=rates, pilot=pilot, by_curves=True), (first < TREND) & (second < TREND)

    def promises(self, runs: int, quantile: float, doubt: float) -> tuple[Floats, Floats]:
        """Return the bounds (nats) that events promise in so many certification runs, and the left world's share.

        Parameters
        ----------
        quantile, doubt : float
            Standard errors taken off: of the runs to come, and of the pilot.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            of_right, of_wrong = self._of_one()
            allotted = allotment(of_right[0] + of_wrong[0], of_right[1] + of_wrong[1])
            share = np.where(self.one_sided, allotted, 0.5)
            played = runs * share, runs * (1 - share)
            counted = self._with_one_more(played) if self.by_curves else self
            promise = np.log(counted.excess / counted.false)
            promise -= _doubt(quantile, *counted.variances(played))
            promise -= _doubt(doubt, *self.pilot)
        return np.where(self.allowed, rounded(promise), -np.inf), share

    def _with_one_more(self, played: tuple[Floats, Floats]) -> _Candidates:
        """Return the candidates with one wrong guess more in so many runs of each world: a count's upper limit has it.

        Without it the limit of a count of less than one would be no limit; the pilot's counts have one of their own.
        """
        used = np.arange(self.grid.size + 1) < self.grid.size
        sides = (used, used[:, None])  # wrong guesses in the left world are at or below the lower threshold
        each = np.where(self.one_sided, 1.0, 0.5)
        rates = [
            (right, wrong + each * side / runs)
            for (right, wrong), side, runs in zip(self.rates, sides, played, strict=True)
        ]
        return replace(self, rates=rates)

    def best(self, runs: int, quantile: float, doubt: float) -> tuple[Event, float]:
        """Return the event that promises most, and what it promises."""
        return self.most(*self.promises(runs, quantile, doubt))

    def most(self, worth: Floats, share: Floats) -> tuple[Event, float]:
        """Return the event that is worth most, with the left world's share, and what it is worth."""
        i, j = np.unravel_index(int(np.argmax(worth)), worth.shape)
        if not self.allowed[i, j]:
            return Event(UNUSED, UNUSED, "guess"), -math.inf
        upper, lower = np.append(self.grid, UNUSED)[i], np.append(self.grid, UNUSED)[j]
        method = "joint" if self.one_sided[i, j] else "guess"
        return Event(float(lower), float(upper), method, float(share[i, j])), float(worth[i, j])


def _doubt(errors: float, right: Floats, wrong: Floats) -> Floats:
    """Return what to take off a log ratio of two rates for so many standard errors, given the logarithms' variances.

    A count of c has the variance 1 / c, and limits far from symmetric where it is small [1]_; the two distances from
    the ratio to its limit are summed as standard errors are [2]_.
    """
    least = np.maximum(1 - right / 9 - errors * np.sqrt(right) / 3, 1e-3)
    most = np.maximum(1 - wrong / 9 + errors * np.sqrt(wrong) / 3, 1e-3)
    doubt: Floats = 3 * np.sign(errors) * np.hypot(np.log(least), np.log(most))
    return doubt


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
    none = [int(np.count_nonzero(np.isnan(scores) & here)) for here in (left, ~left)]
    if not grid.size:
        return grid, np.array([float(none[0])]), np.array([float(none[1])])
    centres = np.clip(np.append(grid[:1], grid), -CERTAIN, CERTAIN)
    of_left, of_right = smoothed(in_left, in_right, centres if log_odds else None)
    of_left[0], of_right[0] = of_left[0] + none[0], of_right[0] + none[1]
    return grid, of_left, of_right


def counts_of(scores: Floats, left: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return thresholds, and the runs of either world in their cells as `cells_of` has them, without nan."""
    known = ~np.isnan(scores)
    sides = np.sort(scores[known & left]), np.sort(scores[known & ~left])
    grid = _places(np.sort(scores[known]))
    in_left, in_right = (np.diff(np.searchsorted(side, grid), prepend=0, append=side.size) for side in sides)
    return grid, in_left, in_right


def _centres(grid: Floats) -> Floats:
    """Return a score for every cell at and between the thresholds."""
    centres = np.repeat(np.clip(grid, -CERTAIN, CERTAIN), 2)
    centres[1:-1:2] = (centres[:-2:2] + centres[2::2]) / 2
    return np.append(grid[:1].clip(-CERTAIN, CERTAIN), centres)


def _places(ordered: Floats) -> Floats:
    """Return the thresholds to try, from sorted scores."""
    distinct: Floats = ordered[np.append(True, ordered[1:] != ordered[:-1])] if ordered.size else ordered
    if distinct.size <= _QUANTILES + 2 * _TAIL:
        return distinct
    tail = np.geomspace(4, ordered.size / 8, _TAIL).astype(np.int64)
    return picked(ordered, distinct, tail=tail, quantiles=_QUANTILES, spread=33)
