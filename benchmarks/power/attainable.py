"""What a perfect attack could certify on a mechanism of the zoo, from the law of its outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from overclaim.audit.statistics.bounds import intervals, joint_bound
from overclaim.audit.statistics.event_rule import allotment
from overclaim.benchmarks.power.laws import Inputs, law

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Wrong guesses below which chance is averaged over, at how many quantiles, and for which bounds, beside the largest.
FEW, LEVELS, NEAR = 30.0, 4, 0.7
#: How many of the best events by that are averaged over the law of their counts; an expected count below which each
#: count has its part in that, to so many standard deviations; and the points of a quadrature that does for others.
FINALISTS, EACH, REACH, POINTS = 6, 25.0, 7.0, 7


def attainable(mechanism: Any, pairs: Sequence[Inputs], *, runs: int, alpha: float) -> tuple[float, float]:
    """Return the bound (nats) that a perfect attack is expected to certify, and its standard deviation by chance.

    It knows the best pair and event, and certifies with all of the runs. Both are over the chance of the counts.
    """
    events = [event for pair in pairs for event in best_events(law(mechanism, pair), runs=runs, alpha=alpha)]
    events.sort(key=lambda event: -event.worth)
    return max(event.over_chance() for event in events[:FINALISTS])


Bound = Callable[[Counts, Counts, Counts], Floats]


@dataclass(frozen=True)
class LikelyEvent:
    """An event with its guesses as they are expected.

    Attributes
    ----------
    worth : float
        About the bound that it is expected to have.
    bound : callable
        Of right and wrong guesses, and `played`.
    right, wrong : (float, int)
        Expected guesses, and the runs that they are of.
    """

    worth: float
    bound: Bound
    right: tuple[float, int]
    wrong: tuple[float, int]
    played: int

    def over_chance(self) -> tuple[float, float]:
        """Return the mean of the bound, and its standard deviation, over binomial counts.

        The two counts are taken to be independent: those of one game exclude each other, which matters where few runs
        are abstained from; there the bound varies a little more than this says.
        """
        counts, chances = zip(*(_likely(many, runs) for many, runs in (self.right, self.wrong)), strict=True)
        every = self.bound(*np.broadcast_arrays(counts[0][:, None], counts[1], np.array(self.played)))
        mean = float(chances[0] @ every @ chances[1])
        return mean, math.sqrt(max(0.0, float(chances[0] @ (every - mean) ** 2 @ chances[1])))


def best_events(table: Floats, *, runs: int, alpha: float) -> list[LikelyEvent]:
    """Return the most promising events of a law: thresholds on the ratio."""
    table = table[:, table.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        ratio = np.log(table[0]) - np.log(table[1])
    order = np.argsort(ratio)
    ends = np.append(ratio[order][1:] > ratio[order][:-1], True)
    sums = np.cumsum(table[:, order], axis=1)[:, ends]
    rest = sums[:, -1:] - sums
    half = runs // 2
    # An event of few runs, or an outcome of many: equal steps of the smaller tail's logarithm find both.
    places = _thinned(np.minimum(sums, rest).max(axis=0) * half)
    lower, upper = (half * np.append(np.minimum(tail, 1)[:, places], [[0.0], [0.0]], axis=1) for tail in (sums, rest))
    right = upper[0][:, None] + lower[1]
    wrong = upper[1][:, None] + lower[0]
    apart = np.append(places, ratio.size)[:, None] >= np.append(places, -1)
    both = np.full(right.shape, 2 * half)

    def game(right: Counts, wrong: Counts, runs: Counts) -> Floats:
        guesses = np.clip(right + wrong, 1, runs)
        return intervals.epsilon_guess(np.minimum(right, guesses), guesses, runs, alpha=alpha)

    def joint(right: Counts, wrong: Counts, named: Counts) -> Floats:
        games = np.minimum(right, named), named, np.minimum(wrong, runs - named), runs - named
        return joint_bound.epsilon_joint(*games, alpha=alpha)

    guesses = np.where(apart, expected(game, right, wrong, both), 0.0)
    options = [(game, guesses.ravel(), right.ravel(), wrong.ravel(), both.ravel(), both.ravel(), both.ravel())]
    for a, b in ((upper[0], upper[1]), (lower[1], lower[0])):
        with np.errstate(divide="ignore"):
            share = allotment(half / a - 1, half / np.maximum(b, 1) - 1)
        named = np.rint(runs * share).astype(np.int64)
        counted = a / half * named, b / half * (runs - named)
        options.append((joint, expected(joint, *counted, named), *counted, named, named, runs - named))
    return [
        LikelyEvent(float(worths[i]), bound, (rights[i], of_right[i]), (wrongs[i], of_wrong[i]), played[i])
        for bound, worths, rights, wrongs, played, of_right, of_wrong in options
        for i in np.argsort(-worths)[:FINALISTS]
    ]


def _likely(many: float, runs: int) -> tuple[Counts, Floats]:
    """Return counts and their chances: all binomial ones that are likely, or a few that stand for a normal law's."""
    rate = min(1.0, many / runs)
    deviation = math.sqrt(many * (1 - rate))
    if many < EACH:
        counts = np.arange(min(runs, int(many + REACH * (deviation + 1))) + 1)
        chances = stats.binom.pmf(counts, runs, rate)
    else:
        places, chances = np.polynomial.hermite_e.hermegauss(POINTS)
        counts = np.clip(np.rint(many + places * deviation), 0, runs).astype(np.int64)
    return counts, chances / chances.sum()


def expected(bound: Callable[[Counts, Counts, Counts], Floats], right: Floats, wrong: Floats, runs: Counts) -> Floats:
    """Return the bound at expected counts; where few wrong guesses are expected, its mean over the counts' chance.

    Half a wrong guess is none or one, and the bound at none is far above the mean. The counts are then those of
    Poisson's law at even quantiles.
    """
    bounds = bound(*(np.rint(one).astype(np.int64) for one in (right, wrong)), runs)
    few = (wrong < FEW) & (wrong > 1 / FEW) & (bounds > NEAR * bounds.max())
    if few.any():
        levels = (np.arange(LEVELS) + 0.5) / LEVELS
        counts = [stats.poisson.ppf(levels[:, None], one[few]).astype(np.int64) for one in (right, wrong)]
        every = np.broadcast_arrays(counts[0][:, None], counts[1], runs[few])
        bounds[few] = bound(*every).mean(axis=(0, 1))
    return bounds


def _thinned(expected: Floats, steps: int = 40) -> NDArray[np.int64]:
    """Return places whose expected numbers of runs differ by a factor, on either side of the middle; at most 200."""
    if expected.size <= 100:
        return np.arange(expected.size)
    code = np.rint(steps / 8 * np.log(np.maximum(expected, 1.0))).astype(np.int64)
    return np.flatnonzero(np.diff(code, append=-1))
