"""Pairs of thresholds as events that may be chosen: the rates of their guesses, and the bounds that they promise.

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
from ...mechanisms.numerics import rounded
from .bounds.intervals import NUISANCE_SHARE
from .coupling import CoupledTails, in_tail
from .event_rule import allotment, pairs
from .events import NO_EVENT, UNUSED, Event
from .odds.walks import doubt_by_curves

#: A tail's trend is followed where it makes fewer wrong guesses expected. Of coupled runs it is worth as many itself,
#: and so many standard errors of the pilot are taken off then; by independent runs likely trends say what is in doubt.
TREND, TREND_DOUBT = 30.0, 0.4
#: Wrong guesses that a trend makes expect in a pilot, at least: where there are none, no ratio of rates is a number.
_MIN_TREND_COUNT = 1e-3
_MIN_RIGHT = 3.0  # right guesses, below which an event is no candidate
#: Wrong guesses that are added to what the pilot shows, to an event of one side and to each side of two: to its
#: counts, and where log odds say what to expect. Promises of one side are too high otherwise.
_UNSEEN, _UNSEEN_BY_LOG_ODDS = (1.0, 0.5), (0.3, 0.05)


@dataclass(frozen=True)
class Candidates:
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
    ) -> Candidates:
        """Return the candidates from the runs of either world at or above each threshold, and at or below it.

        Rates are those of each world: the pilot may have more runs of one than of the other. `odds` are such runs too,
        (likely curves, thresholds), where log odds say them: how far these differ is then what is in doubt.
        """
        upper_tails, lower_tails = tails_of
        upper, lower, one_sided, allowed = pairs(grid)
        sides = (
            (
                np.append(upper_tails[0], 0)[:, None],
                np.append(lower_tails[0], 0),
            ),  # the left world: guessed right, guessed wrong
            (np.append(lower_tails[1], 0), np.append(upper_tails[1], 0)[:, None]),
        )
        allowed &= sides[0][0] + sides[1][0] >= min(_MIN_RIGHT, sum(runs_of) / 8)
        unseen = np.where(one_sided, *(_UNSEEN if odds is None else _UNSEEN_BY_LOG_ODDS))
        in_use = ~np.isnan(lower), ~np.isnan(upper)[:, None]
        guesses = [(rights, wrongs + unseen * side) for (rights, wrongs), side in zip(sides, in_use, strict=True)]
        rare = np.zeros(allowed.shape, dtype=np.bool_)
        if tails is not None:  # what the trend of a tail makes expect takes part, where it is one of one side
            expected = np.full(allowed.shape, np.nan)
            expected[-1, :-1], expected[:-1, -1] = (
                in_tail(lower_tails[1], lower_tails[0]),
                in_tail(upper_tails[0], upper_tails[1]),
            )
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
                    np.maximum(rate * (1 - rate) / total**2 + p * q / (excess * false), 1e-12)
                    for (p, q), rate in zip(self.rates, rates, strict=True)
                ]
                for rates, total in (([p for p, _ in self.rates], excess), ([q for _, q in self.rates], false))
            )
        return of_right, of_wrong

    def variances(self, runs_of: tuple[Floats | float, Floats | float]) -> tuple[Floats, Floats]:
        """Return the variances of ln(excess) and of ln(false) by so many independent runs of each world."""
        with np.errstate(divide="ignore", invalid="ignore"):
            of_right, of_wrong = (terms[0] / runs_of[0] + terms[1] / runs_of[1] for terms in self._of_one())
        return of_right, of_wrong

    def with_trend(
        self, tails_of: tuple[Sequence[Floats], Sequence[Floats]], draws: int
    ) -> tuple[Candidates, NDArray[np.bool_]]:
        """Return the candidates with the rates of tails that follow a trend, and which are so rare that it tells more.

        `tails_of` are the runs that the trend makes expect, as those of `of`, in so many coupled draws.
        """
        guesses = _guesses(tails_of)
        (_, first), (_, second) = guesses
        with np.errstate(divide="ignore", invalid="ignore"):
            of_wrong = (first**2 / (first + TREND) + second**2 / (second + TREND)) / (first + second) ** 2
        # The right guesses are as many as the threshold's rank in the tail: that is nobody's luck.
        pilot = np.zeros(of_wrong.shape), np.nan_to_num(of_wrong, nan=1 / TREND)
        return self._trending(guesses, (draws, draws), pilot)

    def with_trends(
        self, curves: tuple[Sequence[Floats], Sequence[Floats]], runs_of: tuple[int, int], runs: int
    ) -> tuple[Candidates, NDArray[np.bool_]]:
        """Return the same by likely trends, (curves, thresholds), in so many runs of each world.

        A wrong guess more in the runs to come, which a count's upper limit has, takes part in what is in doubt.
        """
        upper_tails, lower_tails = ([counts.mean(axis=0) for counts in side] for side in curves)
        guesses = _guesses((upper_tails, lower_tails))
        one_more = np.full(self.allowed.shape, sum(runs_of) / runs)
        return self._trending(guesses, runs_of, doubt_by_curves(curves, guesses, one_more))

    def _trending(
        self, guesses: list[tuple[Floats, Floats]], runs_of: tuple[int, int], pilot: tuple[Floats, Floats]
    ) -> tuple[Candidates, NDArray[np.bool_]]:
        rates = [(rights / n, wrongs / n) for (rights, wrongs), n in zip(guesses, runs_of, strict=True)]
        rare = (guesses[0][1] < TREND) & (guesses[1][1] < TREND)
        return replace(self, rates=rates, pilot=pilot, by_curves=True), rare

    def best_of_either(
        self, other: Candidates, where: NDArray[np.bool_], runs: int, quantile: float, doubts: tuple[float, float]
    ) -> tuple[Event, float]:
        """Return the event that promises most, by the other candidates' rates somewhere; `doubts` are theirs first."""
        predictions = (
            candidates.promises(runs, quantile, doubt) for candidates, doubt in zip((other, self), doubts, strict=True)
        )
        return self.most(
            *(np.where(where, by_trend, by_counts) for by_trend, by_counts in zip(*predictions, strict=True))
        )

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
            candidates = self._with_one_more(played) if self.by_curves else self
            promise = np.log(np.maximum(candidates.excess - self._explained(runs, quantile), 1e-12) / candidates.false)
            promise -= _doubt(quantile, *candidates.variances(played))
            promise -= _doubt(doubt, *self.pilot)
        return np.where(self.allowed, rounded(promise), -np.inf), share

    def _explained(self, runs: int, quantile: float) -> Floats | float:
        """Return what delta explains beyond itself in the guess game, which knows its guesses from below."""
        if not self.delta:
            return 0.0
        guessed = (self.rates[0][0] + self.rates[1][0] + self.false) / 2
        nuisance_quantile = -float(special.ndtri(NUISANCE_SHARE * special.ndtr(-quantile)))
        min_guessed = np.maximum(
            guessed - nuisance_quantile * np.sqrt(np.maximum(guessed * (1 - guessed), 0.0) / runs), 1e-12
        )
        return np.where(self.one_sided, 0.0, 2 * self.delta * (guessed / min_guessed - 1))

    def _with_one_more(self, played: tuple[Floats, Floats]) -> Candidates:
        """Return the candidates with one wrong guess more in so many runs of each world: a count's upper limit has it.

        Without it the limit of a count of less than one would be no limit; the pilot's counts have one of their own.
        """
        is_threshold = np.arange(self.grid.size + 1) < self.grid.size
        # Wrong guesses in the left world are at or below the lower threshold.
        sides = is_threshold, is_threshold[:, None]
        extra = np.where(self.one_sided, 1.0, 0.5)
        rates = [
            (rights, wrongs + extra * side / runs)
            for (rights, wrongs), side, runs in zip(self.rates, sides, played, strict=True)
        ]
        return replace(self, rates=rates)

    def best(self, runs: int, quantile: float, doubt: float) -> tuple[Event, float]:
        """Return the event that promises most, and what it promises."""
        return self.most(*self.promises(runs, quantile, doubt))

    def most(self, predicted_bounds: Floats, share: Floats) -> tuple[Event, float]:
        """Return the event that is worth most, with the left world's share, and what it is worth."""
        i, j = np.unravel_index(int(np.argmax(predicted_bounds)), predicted_bounds.shape)
        if not self.allowed[i, j]:
            return NO_EVENT, -math.inf
        upper, lower = np.append(self.grid, UNUSED)[i], np.append(self.grid, UNUSED)[j]
        method = "joint" if self.one_sided[i, j] else "guess"
        return Event(float(lower), float(upper), method, float(share[i, j])), float(predicted_bounds[i, j])


def _guesses(tails_of: tuple[Sequence[Floats], Sequence[Floats]]) -> list[tuple[Floats, Floats]]:
    """Return the right and wrong guesses of either world that a trend makes expect, from its tails as in `of`."""
    (upper_right, upper_wrong), (lower_wrong, lower_right) = tails_of
    wrongs = (np.append(np.maximum(counts, _MIN_TREND_COUNT), 0.0) for counts in (lower_wrong, upper_wrong))
    of_left, of_right = wrongs
    return [(np.append(upper_right, 0.0)[:, None], of_left), (np.append(lower_right, 0.0), of_right[:, None])]


def _doubt(errors: float, right_variance: Floats, wrong_variance: Floats) -> Floats:
    """Return what to take off a log ratio of two rates for so many standard errors, given the logarithms' variances.

    A count of c has the variance 1 / c, and limits far from symmetric where it is small [1]_; the two distances from
    the ratio to its limit are summed as standard errors are [2]_.
    """
    lower_factor = np.maximum(1 - right_variance / 9 - errors * np.sqrt(right_variance) / 3, 1e-3)
    upper_factor = np.maximum(1 - wrong_variance / 9 + errors * np.sqrt(wrong_variance) / 3, 1e-3)
    doubt: Floats = 3 * np.sign(errors) * np.hypot(np.log(lower_factor), np.log(upper_factor))
    return doubt
