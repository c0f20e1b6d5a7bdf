"""Rates of events in two worlds that were played with the same draws: how far their ratio is in doubt.

A run of the left world and the run of the right one that was played with the same draws mostly meet the same event.
What they share says nothing of the ratio of the two rates, and takes nothing off its precision: only the runs that
differ do. So a pilot of such runs tells apart events, attacks and pairs that one of independent runs confuses.

Here too are the tables in which many scores, and the numbers of outcomes, are looked up.

References
----------
.. [1] P. Glasserman, D. Yao. Some guidelines and guarantees for common random numbers. Management Science 38, 1992.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ...mechanisms.numerics import rounded

#: Wrong guesses that the trend of a tail is told from, how many times the rarest of them it is followed back, and the
#: standard errors that make it clear.
TREND_RUNS, TREND_FACTOR, TREND_ERRORS = 100.0, 16.0, 4.0
#: Cells of a table of thresholds, those in one cell beyond which a search is faster, and scores that are looked up
#: together: all stays near the processor.
CELLS, CROWDED, STRETCH = 2**12, 8, 2**14
#: The most whole numbers whose places are kept in a table.
MAX_KEYS = 2**20
#: Whole numbers from 0 on, in a type that is large enough.
Codes = NDArray[np.unsignedinteger[Any]] | NDArray[np.int64]


@dataclass(frozen=True)
class CoupledTails:
    """Runs of both worlds at or above each threshold, and at or below it, and how many of them share their draws.

    The last place of every axis stands for a side that is not used.

    Attributes
    ----------
    upper_counts, lower_counts : (left, right), arrays (thresholds + 1,)
    both_above, both_below : arrays (thresholds + 1,)
        Draws with which either world is there.
    right_twice, wrong_twice : arrays (thresholds + 1, thresholds + 1)
        By upper and lower threshold: draws with which both worlds are guessed right, or both wrong.
    """

    upper_counts: tuple[Floats, Floats]
    lower_counts: tuple[Floats, Floats]
    both_above: Floats
    both_below: Floats
    right_twice: Floats
    wrong_twice: Floats

    @classmethod
    def of(cls, grid: Floats, left: Floats, right: Floats) -> CoupledTails:
        """Count scores (draws,) of either world, in the order of the draws, at thresholds in ascending order."""
        # How many thresholds a score reaches, and from which on it is at or below one: nan does neither.
        reaches, starts = zip(*(reached(grid, scores) for scores in (left, right)), strict=True)
        size = grid.size + 1
        return cls(
            (_count_above(reaches[0], size), _count_above(reaches[1], size)),
            (_count_at_most(starts[0], size), _count_at_most(starts[1], size)),
            _count_above(np.minimum(*reaches), size),
            _count_at_most(np.maximum(*starts), size),
            _count_jointly(reaches[0], starts[1], size),
            _count_jointly(reaches[1], starts[0], size),
        )

    @property
    def thresholds(self) -> tuple[list[Floats], list[Floats]]:
        """The runs of either world at or above each threshold, and at or below it."""
        return [counts[:-1] for counts in self.upper_counts], [counts[:-1] for counts in self.lower_counts]

    def variances(self, rights: Floats, wrongs: Floats) -> tuple[Floats, Floats]:
        """Return the variances of ln(right) and of ln(wrong) that count in their difference.

        Parameters
        ----------
        rights, wrongs : arrays (thresholds + 1, thresholds + 1)
            Guesses, less what the claim's delta explains.
        """
        shared = self.both_above[:, None] + self.both_below
        common = shared * (1 / rights - 1 / wrongs) ** 2 / 2
        raw_right = self.upper_counts[0][:, None] + self.lower_counts[1] + 2 * self.right_twice
        raw_wrong = self.upper_counts[1][:, None] + self.lower_counts[0] + 2 * self.wrong_twice
        # One run is added to those that differ: that none was seen does not mean that none can.
        return (raw_right - shared + 1) / rights**2 + common, (raw_wrong - shared + 1) / wrongs**2 + common


def reached(grid: Floats, scores: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many thresholds each score reaches, and the first one that it is at or below: none for nan.

    What `np.searchsorted` finds from the right and from the left, in a table: cells of one width say how many
    thresholds lie in lower ones, since no score is in a lower cell than a lower score, whatever is rounded; those in
    the score's own cell are compared.

    Parameters
    ----------
    grid : array (thresholds,)
        In ascending order, none twice.
    scores : array (runs,)
    """
    spread = float(grid[-1]) - float(grid[0]) if grid.size > 1 else 0.0
    low, per_unit = (float(grid[0]), CELLS / spread) if 0 < spread < math.inf else (0.0, 0.0)
    grid_cells = _cells_of(grid, low, per_unit)
    times = np.bincount(grid_cells, minlength=CELLS)
    if scores.size < CELLS or times.max() > CROWDED:
        n_reached, n_passed = (np.searchsorted(grid, scores, side) for side in ("right", "left"))
        return np.where(np.isnan(scores), 0, n_reached), n_passed
    before = np.cumsum(times) - times
    threshold_rows = np.full((int(times.max()), CELLS), np.nan)
    threshold_rows[np.arange(grid.size) - before[grid_cells], grid_cells] = grid
    reaches, starts = np.empty(scores.size, dtype=np.int64), np.empty(scores.size, dtype=np.int64)
    for start in range(0, scores.size, STRETCH):
        runs = slice(start, start + STRETCH)
        chunk = scores[runs]
        cells = _cells_of(chunk, low, per_unit)
        n_reached, n_passed = before.take(cells), np.where(np.isnan(chunk), grid.size, before.take(cells))
        for row in threshold_rows:
            threshold = row.take(cells)
            n_reached += chunk >= threshold
            n_passed += chunk > threshold
        reaches[runs], starts[runs] = n_reached, n_passed
    return reaches, starts


def _cells_of(numbers: Floats, low: float, per_unit: float) -> NDArray[np.intp]:
    """Return the cell of each number; the first one's for nan."""
    with np.errstate(invalid="ignore", over="ignore"):
        cells = numbers - low
        cells *= per_unit
    return np.fmin(np.fmax(cells, 0, out=cells), CELLS - 1, out=cells).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Places:
    """The place of a whole number among known ones, which are in order; one more than all for others.

    Attributes
    ----------
    numbers : int array
    table : int array or None
        The place of every number from 0 on, where these are few enough.
    """

    numbers: NDArray[np.int64]
    table: NDArray[np.unsignedinteger[Any]] | None

    @classmethod
    def of(cls, numbers: NDArray[np.int64], size: int) -> Places:
        """Return the places; `size` is more than any number that will be asked for."""
        if size > MAX_KEYS:
            return cls(numbers, None)
        table = np.full(size, numbers.size, dtype=np.min_scalar_type(numbers.size))
        table[numbers] = np.arange(numbers.size)
        return cls(numbers, table)

    def __call__(self, numbers: NDArray[np.int64]) -> Codes:
        """Look the numbers up."""
        if self.table is not None:
            return self.table.take(numbers)
        place = np.searchsorted(self.numbers, numbers)
        return np.where(self.numbers[np.minimum(place, self.numbers.size - 1)] == numbers, place, self.numbers.size)


def _count_above(codes: NDArray[np.int64], size: int) -> Floats:
    """Return how many codes are more than each number."""
    times = np.bincount(codes, minlength=size)
    return (codes.size - np.cumsum(times)).astype(np.float64)


def _count_at_most(codes: NDArray[np.int64], size: int) -> Floats:
    """Return how many codes are at most each number; none for the last, which stands for no threshold."""
    upto = np.cumsum(np.bincount(codes, minlength=size)).astype(np.float64)
    upto[-1] = 0.0
    return upto


def _count_jointly(upper_codes: NDArray[np.int64], lower_codes: NDArray[np.int64], size: int) -> Floats:
    """Return how often one code is more than each number while the other is at most each number."""
    times = np.bincount(upper_codes * size + lower_codes, minlength=size * size).reshape(size, size)
    upto = np.cumsum(times, axis=1)
    counts: Floats = (upto.sum(axis=0) - np.cumsum(upto, axis=0)).astype(np.float64)
    counts[:, -1] = 0.0
    return counts


def in_tail(rights: Floats, wrongs: Floats) -> Floats:
    """Return the wrong guesses that the trend of less rare tails makes expect; nan where enough were seen.

    In a tail that says ever more of the world, the wrong guesses are a power of the right ones; a power of 1 says that
    the ratio stays, which is assumed unless the counts say otherwise clearly; then the power is taken one standard
    error lower than it looks.

    Parameters
    ----------
    rights, wrongs : arrays (thresholds,)
        Guesses beyond each threshold.
    """
    expected = np.full(rights.shape, np.nan)
    enough = np.flatnonzero((wrongs >= TREND_RUNS) & (rights > 0))
    if not enough.size:
        return expected
    rarest = enough[np.argmin(rights[enough])]
    further = enough[rights[enough] >= TREND_FACTOR * rights[rarest]]
    power = 1.0
    if further.size:
        base = further[np.argmin(rights[further])]
        distance = math.log(rights[base] / rights[rarest])
        seen, error = math.log(wrongs[base] / wrongs[rarest]) / distance, 1 / (distance * math.sqrt(wrongs[rarest]))
        power = seen - error if seen - TREND_ERRORS * error > 1 else 1.0
    rare = (rights < rights[rarest]) & (wrongs < TREND_RUNS)
    expected[rare] = wrongs[rarest] * (rights[rare] / rights[rarest]) ** max(1.0, float(rounded(power, 3)))
    counts: Floats = np.maximum(expected, 1e-3)
    return counts
