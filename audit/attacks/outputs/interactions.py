"""What columns say only together: two of them, or the remainder of a whole row, where none says anything alone.

An exclusive or of two fair bits, the product of two signs, whether two categories are equal: each column has one law
in both worlds, and so has every split of a tree. So pairs are looked at for what their two columns do not say apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ...statistics.bounds.rounding import rounded
from ..features import FEW_VALUES, Feature, LabelledView, Labels, View
from ..protocol import log_ratio
from .learned import SCREENED, quantiles, worth_of
from .regressions import LinearOdds, Logistic

#: Cells, or remainders: one for each run.
Numbers = NDArray[np.int64]
#: Cells of all columns together while pairs are screened, at most; the bins of a number then; the products of cells
#: that are counted; and the columns that are looked at, the first ones.
WIDTH, COARSE_BINS, MOST_PRODUCTS, MOST_COLUMNS = 512, 4, 500_000_000, 256
#: The same of comparisons of columns that have more values than cells: the first columns, and runs.
MOST_COMPARED, COMPARED_RUNS = 64, 4000
#: Bins of a number once its pair is chosen.
FINE_BINS = 8
#: The chance that any pair is taken whose columns are independent, and have the same law in both worlds; and the most
#: that are.
BY_CHANCE, MOST_TAKEN = 1e-6, 12


@dataclass(frozen=True)
class Bins:
    """The cell of a column: which special value, or the bin of its number."""

    index: int
    edges: tuple[float, ...]
    specials: int

    @classmethod
    def of(cls, train: View, index: int, *, discrete: int, numbers: int) -> Bins:
        """Return so many bins at most, between quantiles; a discrete column's are its values, if they are fewer."""
        column = train.features.columns[index]
        if column.discrete and column.values.size < discrete:
            return cls(index, (), column.values.size)
        most = discrete if column.discrete else numbers
        row = train.clean_row(index)
        edges = quantiles(row, most, method="higher")
        return cls(index, tuple(edges[edges > row.min()].tolist()), 0 if column.discrete else column.values.size)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.specials + 1 + len(self.edges)

    def __call__(self, view: View) -> Numbers:
        """Return the cell of each run; 0 for a value of a discrete column that training has not seen."""
        bins = np.searchsorted(self.edges, view.clean_row(self.index), "right")
        if not self.specials:
            return bins
        kinds = view.kinds(self.index).astype(np.int64)
        return np.where(kinds > 0, len(self.edges) + kinds, bins)


@dataclass(frozen=True)
class Cells:
    """The cells of two columns together."""

    one: Bins
    other: Bins

    @property
    def size(self) -> int:
        """How many there are."""
        return self.one.size * self.other.size

    def __call__(self, view: View) -> Numbers:
        """Return the cell of each run."""
        return self.one(view) * self.other.size + self.other(view)


@dataclass(frozen=True)
class Comparison:
    """Which of two columns is more, or whether they are equal."""

    one: int
    other: int
    size = 3

    def __call__(self, view: View) -> Numbers:
        """Return 0 where the first is less, 1 where neither is, 2 where it is more."""
        one, other = view.columns[self.one], view.columns[self.other]
        order: Numbers = 1 + (one > other).astype(np.int64) - (one < other)
        return order


@dataclass(frozen=True)
class Remainder:
    """The sum of whole numbers, or how many numbers are beyond their column's centre, modulo a number."""

    columns: tuple[int, ...]
    size: int
    sides: bool = False

    def __call__(self, view: View) -> Numbers:
        """Return the remainder of each run."""
        total = np.zeros(view.columns.shape[1])
        for i in self.columns:
            row = view.columns[i]
            if self.sides:
                total += row > view.features.columns[i].centre
            else:
                total += np.mod(np.where(np.isfinite(row), row, 0.0), self.size)
        remainder: Numbers = np.rint(total).astype(np.int64) % self.size
        return remainder


Code = Cells | Comparison | Remainder
#: How much more a code says than chance, and the code.
_Found = Iterator[tuple[float, Code]]


@dataclass(frozen=True)
class Interacting(Logistic):
    """Log odds of a logistic regression on the features and on what columns say only together.

    Parameters
    ----------
    codes : tuple
        What is read of the columns together: its log odds are counts.
    stepwise : bool
        Whether it is on the few that tell most alone: of hundreds a regression on all takes long.
    """

    codes: tuple[Code, ...]
    stepwise: bool = False

    name = "logistic regression with pairs"

    def rows_of(self, train: LabelledView) -> list[Feature]:
        """Return the features, and the log odds of every code."""
        return [*train.features.rows, *(_Counted.of(code, train) for code in self.codes)]

    def odds_of(self, matrix: Floats, left: Labels) -> LinearOdds:
        """Return the log odds by features (runs, features)."""
        return LinearOdds.stepwise(matrix, left) if self.stepwise else super().odds_of(matrix, left)


@dataclass(frozen=True)
class _Counted:
    """The log ratio of counts of a code."""

    code: Code
    table: Floats

    @classmethod
    def of(cls, code: Code, train: LabelledView) -> _Counted:
        """Count, and shrink towards even odds as much as the runs say."""
        codes = code(train)
        worth = worth_of(np.full(code.size, 0.5), codes, train.left) / 2
        return cls(code, log_ratio(codes, train.left, code.size, worth, worth))

    def __call__(self, view: View) -> Floats:
        """Look the log ratios up."""
        looked_up: Floats = self.table[view.once(self.code, lambda: self.code(view))]
        return looked_up


def interactions(train: LabelledView) -> tuple[Code, ...]:
    """Return what columns say together of the worlds and do not say apart: the codes that say most, if any do.

    The shares of a pair's cells in the two worlds differ by more than they would if the columns were independent in
    either world.
    """
    count = len(train.features.columns)
    if count < 2 or train.of_one_world:
        return ()
    rare = BY_CHANCE / (2 * count**2)  # a pair's cells are tested, its order and whether it is equal
    found = [*_cells(train, rare), *_comparisons(train, rare), *_remainders(train, rare)]
    return tuple(code for _, code in sorted(found, key=lambda one: -one[0])[:MOST_TAKEN])


def _cells(train: LabelledView, rare: float) -> _Found:
    """Yield the pairs of columns whose cells say something: by counts of all pairs of cells at once."""
    count = min(len(train.features.columns), MOST_COLUMNS)
    most = WIDTH // count
    bins = [Bins.of(train, i, discrete=most, numbers=min(most, COARSE_BINS)) for i in range(count)]
    starts = np.cumsum([0, *(one.size for one in bins)])
    few = train.thinned(max(COMPARED_RUNS, min(SCREENED, MOST_PRODUCTS // int(starts[-1]) ** 2)))
    hot = np.zeros((few.left.size, starts[-1]), dtype=np.float32)  # whole numbers, whose sums are exact in any order
    for start, one in zip(starts, bins, strict=False):
        hot[np.arange(few.left.size), start + one(few)] = 1
    sides = [hot[few.left], hot[~few.left]]
    together = [(side.T @ side).astype(np.float64) / len(side) for side in sides]
    apart, joint = together[0] - together[1], (together[0] + together[1]) / 2
    difference, share = np.diag(apart), np.diag(joint)
    alone = share[:, None] * difference
    excess = np.square(apart - alone - alone.T)
    with np.errstate(invalid="ignore"):
        told = np.where(excess > 0, excess / np.maximum(np.outer(share, share), joint), 0.0)
    told /= sum(1 / len(side) for side in sides)
    told = rounded(np.add.reduceat(np.add.reduceat(told, starts[:-1], axis=0), starts[:-1], axis=1))
    freedoms = np.add.reduceat(share > 0, starts[:-1], dtype=np.int64) - 1
    free = np.outer(freedoms, freedoms)
    for i, j in np.argwhere(np.triu((free > 0) & (special.chdtrc(free, told) <= rare), 1)).tolist():
        pair = (Bins.of(train, place, discrete=FEW_VALUES + 1, numbers=FINE_BINS) for place in (i, j))
        yield float(told[i, j] - free[i, j]), Cells(*pair)


def _comparisons(train: LabelledView, rare: float) -> _Found:
    """Yield the pairs of columns with many values whose order, or being equal, says something.

    What it would say if the columns were independent is seen by comparing one with another run's other one.
    """
    columns = train.features.columns
    wide = [i for i, column in enumerate(columns) if not column.discrete or column.values.size >= FINE_BINS]
    wide = wide[:MOST_COMPARED]
    few = train.thinned(COMPARED_RUNS)
    rows = few.columns[wide]
    sides = [rows[:, few.left], rows[:, ~few.left]]
    for i, one in enumerate(wide[:-1]):
        best = np.zeros(len(wide) - i - 1)
        for compare in (np.less, np.equal):
            excess, variance = np.zeros(best.size), np.zeros(best.size)
            for side, sign in zip(sides, (1, -1), strict=True):
                runs = side.shape[1]
                for mine, which in ((side[i], sign), (np.roll(side[i], 1), -sign)):
                    share = (np.count_nonzero(compare(mine, side[i + 1 :]), axis=1) + 0.5) / (runs + 1)
                    excess += which * share
                    variance += share * (1 - share) / runs
            best = np.maximum(best, rounded(excess**2 / variance))
        for j in np.flatnonzero(special.chdtrc(1, best) <= rare).tolist():
            yield float(best[j]) - 1, Comparison(one, wide[i + 1 + j])


def _remainders(train: LabelledView, rare: float) -> _Found:
    """Yield the remainders of the whole row that say something."""
    columns, few = train.features.columns, train.thinned(SCREENED)
    whole = tuple(i for i, one in enumerate(columns) if one.whole or (one.discrete and _are_whole(one.values)))
    codes = {Remainder(whole, size) for size in (2, 3, *{columns[i].values.size for i in whole}) if 2 <= size <= 24}
    numbers = tuple(i for i, column in enumerate(columns) if not column.discrete)
    for code in (*sorted(codes, key=lambda one: one.size), Remainder(numbers, 2, sides=True)):
        if len(code.columns) < 3:
            continue
        places = code(few)
        times = [np.bincount(places[world], minlength=code.size) for world in (few.left, ~few.left)]
        shares = [one / one.sum() for one in times]
        joint = np.maximum(sum(times) / few.left.size, 1 / few.left.size)
        told = float(rounded(np.sum((shares[0] - shares[1]) ** 2 / joint) / sum(1 / one.sum() for one in times)))
        if special.chdtrc(code.size - 1, told) <= rare:
            yield told - code.size + 1, code


def _are_whole(values: Floats) -> bool:
    return bool(np.isfinite(values).all() and (values == np.rint(values)).all())
