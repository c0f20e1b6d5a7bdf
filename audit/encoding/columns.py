"""A column of numbers: what training shows of it, and what is special among its values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats

#: A column with at most so many distinct values is discrete.
FEW_VALUES = 24
#: A value that a continuous column repeats so often is treated as an atom: without one, ties have probability 0.
REPEATS = 5
#: Numbers on a grid repeat themselves: an atom is so many times as frequent as one of the next two on each side of it.
STANDS_OUT = 3
#: A column with numbers beyond LARGE is transformed by asinh, and later numbers beyond it are clipped, so that sums
#: and fourth powers are finite. One with a range below SMALL is multiplied by a power of two: scores are rounded.
LARGE, MIN_WIDTH = 1e50, 1e-3
#: At most so many repeated values of a column are told apart.
MOST_SPECIALS = 8
#: Whole numbers whose median is so many spreads or less from either end of what their bits can hold may be masks of
#: bits, and the bits of a float.
FILLING, FLOAT_BITS = 8, 53
#: The most numbers of plain columns that are sorted together, which bounds the memory.
MAX_NUMBERS = 2**20
#: The shares of a column's numbers below its quartiles and its median.
QUARTERS = np.array([0.25, 0.5, 0.75])


@dataclass(frozen=True)
class Column:
    """What training showed of one column.

    Attributes
    ----------
    values : array
        Its distinct values if it is discrete, else the repeated ones, nan and the infinities included.
    discrete : bool
    centre, spread : float
        Median and half the distance of the quartiles of the finite rest, as `look` shows it; on a grid the median is
        between two numbers.
    transform : "log", int or None
        What numbers of an extreme size are replaced by: asinh of them, or their product with 2 to this power.
    whole : bool
        Whether it is not discrete, and its finite numbers are whole.
    bits : range
        Which bits of whole numbers may say something: the lowest, and where numbers fill what they can hold, all.
    """

    values: Floats
    discrete: bool
    centre: float
    spread: float
    transform: Literal["log"] | int | None = None
    whole: bool = False
    bits: range = range(0)

    @classmethod
    def of(cls, column: Floats) -> Column:
        """Look at a training column."""
        ordered = np.sort(column)
        values, times = _counted(ordered)
        discrete = values.size <= FEW_VALUES and (times.max() >= REPEATS or values.size == 1)
        if not discrete:
            padded = np.pad(times, 2)
            neighbours = np.maximum(np.minimum(padded[:-4], padded[1:-3]), np.minimum(padded[3:-1], padded[4:]))
            times = np.where((times >= STANDS_OUT * neighbours) | ~np.isfinite(values), times, 0)
            max_specials = min(MOST_SPECIALS, times.size)
            min_times = np.partition(times, -max_specials)[
                -max_specials
            ]  # of the most frequent, and the first of equals
            frequent = np.flatnonzero(times > min_times)
            often = np.sort(np.append(frequent, np.flatnonzero(times == min_times)[: max_specials - frequent.size]))
            values = values[often[(times[often] >= REPEATS) | ~np.isfinite(values[often])]]
        rest = ordered[np.isfinite(ordered)]
        integral = not discrete and bool(rest.size and (rest == np.rint(rest)).all())
        bits = _bits_of(rest) if integral else range(0)
        if not discrete and np.isfinite(values).any():
            remainder = rest[~np.isin(rest, values)]
            rest = remainder if remainder.size else rest
        transform = _transform_for(rest)
        rest = _transformed(transform, rest)
        low, centre, high = of_sorted(rest, QUARTERS) if rest.size else (0.0, 0.0, 0.0)
        spread = float(high - low) / 2
        if not discrete:
            centre = _between(rest, centre)
        return cls(values, discrete, float(centre), spread if spread > 1 / LARGE else 1.0, transform, integral, bits)

    @classmethod
    def of_each(cls, columns: Floats) -> list[Column]:
        """Look at training columns, (columns, runs): at plain ones together, whose numbers are finite and differ."""
        if columns.shape[1] < 2:
            return list(map(cls.of, columns))
        result: list[Column] = []
        step = max(1, MAX_NUMBERS // max(1, columns.shape[1]))
        for start in range(0, len(columns), step):
            result += cls._of_some(columns[start : start + step])
        return result

    @classmethod
    def _of_some(cls, columns: Floats) -> list[Column]:
        ordered = np.sort(columns, axis=1)
        low, high = ordered[:, 0], ordered[:, -1]
        continuous = (ordered[:, 1:] > ordered[:, :-1]).all(axis=1) & (low >= -LARGE) & (high <= LARGE)
        with np.errstate(invalid="ignore", over="ignore"):
            continuous &= (high - low >= MIN_WIDTH) & (ordered != np.rint(ordered)).any(axis=1)
        looked = iter(_quartiles(ordered[continuous]))
        none = np.empty(0)
        return [
            cls(none, False, *next(looked)) if is_continuous else cls.of(columns[i])
            for i, is_continuous in enumerate(continuous)
        ]

    def look(self, column: Floats) -> Floats:
        """Return the numbers as features take them: finite, special values at the centre."""
        transformed = _transformed(self.transform, column)
        transformed = np.where(np.isfinite(transformed), np.clip(transformed, -LARGE, LARGE), self.centre)
        if not self.discrete:
            for value in self.values[np.isfinite(self.values)]:
                transformed[column == value] = self.centre
        return transformed

    def kinds(self, column: Floats) -> NDArray[np.uint8]:
        """Return which of `values` each number is, from 1 on; 0 for others. Comparisons are faster than a search."""
        kinds = np.zeros(column.size, dtype=np.uint8)
        for place, value in enumerate(self.values.tolist(), start=1):
            kinds += equal(column, value).view(np.uint8) * np.uint8(place)
        return kinds


def of_sorted(ordered: Floats, shares: Floats) -> Floats:
    """Return the quantiles of numbers that are sorted along their first axis.

    They are those of `np.quantile`, which takes ten times as long for few of them.
    """
    position = shares * (len(ordered) - 1)
    low = position.astype(np.intp)
    part = (position - low).reshape(-1, *(1,) * (ordered.ndim - 1))
    first, second = ordered[low], ordered[np.minimum(low + 1, len(ordered) - 1)]
    return np.where(part < 0.5, first + (second - first) * part, second - (second - first) * (1 - part))


def equal(numbers: Floats, value: float) -> NDArray[np.bool_]:
    """Return which of the numbers are the value; nan equals itself."""
    return np.isnan(numbers) if math.isnan(value) else numbers == value


def _quartiles(ordered: Floats) -> list[tuple[float, float]]:
    """Return the median of each sorted row, and half the distance of its quartiles."""
    low, centre, high = of_sorted(ordered.T, QUARTERS)
    spread = (high - low) / 2
    return list(zip(centre.tolist(), np.where(spread > 1 / LARGE, spread, 1.0).tolist(), strict=True))


def _counted(ordered: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct ones of sorted numbers, and how many there are of each; nan, the last, equals itself."""
    differ = ordered[1:] != ordered[:-1]
    differ &= ~np.isnan(ordered[:-1])
    starts = np.flatnonzero(np.append(True, differ))
    return ordered[starts], np.diff(starts, append=ordered.size)


def _bits_of(ordered: Floats) -> range:
    """Return which bits of sorted whole numbers may say something."""
    low, centre, high = of_sorted(ordered, QUARTERS)
    if ordered[0] < 0 or ordered[-1] > LARGE:
        return range(1)
    size = math.frexp(ordered[-1])[1]
    fills = min(centre, 2.0**size - centre) <= FILLING * (high - low) / 2
    return range(max(0, size - FLOAT_BITS), size) if fills else range(1)


def _transform_for(numbers: Floats) -> Literal["log"] | int | None:
    if not numbers.size:
        return None
    low, high = float(numbers.min()), float(numbers.max())
    if max(-low, high) > LARGE:
        return "log"
    return -math.frexp(high - low)[1] if 0 < high - low < MIN_WIDTH else None


def _between(ordered: Floats, median: float) -> float:
    """Return the median, or where it repeats itself what is between it and the next number, so that it has a side."""
    first, end = (int(np.searchsorted(ordered, median, side)) for side in ("left", "right"))
    if end - first < REPEATS:
        return median
    excess_below, excess_above = abs(2 * first - ordered.size), abs(2 * end - ordered.size)
    other = ordered[max(first - 1, 0) if excess_below <= excess_above else min(end, ordered.size - 1)]
    return float(median + (other - median) / 2)


def _transformed(transform: Literal["log"] | int | None, numbers: Floats) -> Floats:
    if transform is None:
        return numbers
    if transform == "log":
        return np.arcsinh(numbers)
    with np.errstate(over="ignore"):
        stretched: Floats = np.ldexp(numbers, transform)
    return stretched
