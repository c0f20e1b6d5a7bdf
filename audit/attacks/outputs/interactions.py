"""What columns say only together: two or three of them, where none says it alone.

An exclusive or of two fair bits, the product of two signs, whether two categories are equal: each column has one law
in both worlds, and so has every split of a tree. So pairs are looked at for what their two columns do not say apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import rounded
from ...encoding.columns import FEW_VALUES
from ...encoding.features import Columns, Feature, LabelledColumns, Labels
from ..protocol import log_ratio
from .learned import SCREENED, quantiles, worth_of
from .regressions import LinearOdds, Logistic

#: Cells: one for each run.
Numbers = NDArray[np.int64]
#: Cells of a column while pairs are screened: so many of all columns together, or two; the bins of a number then; the
#: products of cells that are counted, and the fewest runs; and the cells of the columns that are looked at, the first.
WIDTH, COARSE_BINS, MOST_PRODUCTS, FEWEST_RUNS, MOST_CELLS = 512, 4, 10_000_000_000, 1000, 10_000
#: Cells whose pairs with all others are looked at together.
BLOCK = 512
#: The first columns whose triples are screened, and the least share of the runs on either side of such a column.
MOST_TRIPLED, LEAST_SIDE = 64, 0.25
#: The first columns that are compared, of those with more values than cells, and the runs of these and of triples.
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
    def of(cls, train: Columns, index: int, *, discrete: int, numbers: int) -> Bins:
        """Return so many bins at most, between quantiles; a discrete column's are its values, if they are fewer."""
        column = train.features.columns[index]
        if column.discrete and column.values.size < discrete:
            return cls(index, (), column.values.size)
        most = discrete if column.discrete else numbers
        row = train.clean_row(index)
        least, edges = row.min(), quantiles(row, most, method="higher")
        edges = edges[edges > least]
        if not edges.size and row.max() > least:  # most runs have the least number
            edges = np.array([row[row > least].min()])
        return cls(index, tuple(edges.tolist()), 0 if column.discrete else column.values.size)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.specials + 1 + len(self.edges)

    def __call__(self, view: Columns) -> Numbers:
        """Return the cell of each run; 0 for a value of a discrete column that training has not seen."""
        bins = np.searchsorted(self.edges, view.clean_row(self.index), "right")
        if not self.specials:
            return bins
        kinds = view.kinds(self.index).astype(np.int64)
        return np.where(kinds > 0, len(self.edges) + kinds, bins)


@dataclass(frozen=True)
class Cells:
    """The cells of columns together."""

    bins: tuple[Bins, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return math.prod(one.size for one in self.bins)

    def __call__(self, view: Columns) -> Numbers:
        """Return the cell of each run."""
        cells = self.bins[0](view)
        for one in self.bins[1:]:
            cells = cells * one.size + one(view)
        return cells


@dataclass(frozen=True)
class Comparison:
    """Which of two columns is more, or whether they are equal."""

    one: int
    other: int
    size = 3

    def __call__(self, view: Columns) -> Numbers:
        """Return 0 where the first is less, 1 where neither is, 2 where it is more."""
        one, other = view.columns[self.one], view.columns[self.other]
        order: Numbers = 1 + (one > other).astype(np.int64) - (one < other)
        return order


Code = Cells | Comparison
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

    def rows_of(self, train: LabelledColumns) -> list[Feature]:
        """Return the features, and the log odds of every code."""
        return [*train.features.rows, *(Counted.of(code, train) for code in self.codes)]

    def odds_of(self, matrix: Floats, left: Labels) -> LinearOdds:
        """Return the log odds by features (runs, features)."""
        return LinearOdds.stepwise(matrix, left) if self.stepwise else super().odds_of(matrix, left)


@dataclass(frozen=True)
class Counted:
    """The log ratio of counts of a code."""

    code: Code
    table: Floats

    @classmethod
    def of(cls, code: Code, train: LabelledColumns) -> Counted:
        """Count, and shrink towards even odds as much as the runs say."""
        codes = code(train)
        worth = worth_of(np.full(code.size, 0.5), codes, train.left) / 2
        return cls(code, log_ratio(codes, train.left, code.size, worth, worth))

    def __call__(self, view: Columns) -> Floats:
        """Look the log ratios up."""
        looked_up: Floats = self.table[view.once(self.code, lambda: self.code(view))]
        return looked_up


def interactions(train: LabelledColumns) -> tuple[Code, ...]:
    """Return what columns say together of the worlds and do not say apart: the codes that say most, if any do.

    The shares of a pair's cells in the two worlds differ by more than they would if the columns were independent in
    either world.
    """
    count = len(train.features.columns)
    if not count or train.of_one_world:
        return ()
    rare = BY_CHANCE / (2 * count**2)  # a pair's cells are tested, its order and whether it is equal
    cells = list(_cells(train, rare))
    together = [tuple(one.index for one in code.bins) for _, code in cells]
    found = [*cells, *_triples(train), *_comparisons(train, rare, together)]
    return tuple(code for _, code in sorted(found, key=lambda one: -one[0])[:MOST_TAKEN])


def _cells(train: LabelledColumns, rare: float) -> Iterator[tuple[float, Cells]]:
    """Yield the pairs of columns whose cells say most: by counts of all pairs of cells."""
    count, rough = len(train.features.columns), train.thinned(COMPARED_RUNS)
    most, bins, ends = max(2, WIDTH // count), list[Bins](), [0]
    for index in range(count):
        one = Bins.of(rough, index, discrete=most, numbers=min(most, COARSE_BINS))
        if ends[-1] + one.size > MOST_CELLS:
            break
        bins.append(one)
        ends.append(ends[-1] + one.size)
    starts, width = np.array(ends), ends[-1]
    few = train.thinned(max(FEWEST_RUNS, min(SCREENED, MOST_PRODUCTS // width**2)))
    hot = np.zeros((few.left.size, width), dtype=np.float32)  # whole numbers, whose sums are exact in any order
    for start, one in zip(starts, bins, strict=False):
        hot[np.arange(few.left.size), start + one(few)] = 1
    sides = [hot[few.left], hot[~few.left]]
    shares = [side.mean(axis=0, dtype=np.float64) for side in sides]
    difference, share = shares[0] - shares[1], (shares[0] + shares[1]) / 2
    freedoms = np.add.reduceat(share > 0, starts[:-1], dtype=np.int64) - 1
    found: list[tuple[float, int, int]] = []
    least = 0.99 * special.chdtri(1, rare)  # of any freedom: to look at the others takes most of the time
    first = 0
    while first < len(bins) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + BLOCK, "right")) - 1)
        here, there = slice(starts[first], starts[last]), slice(starts[first], None)
        together = [(side[:, here].T @ side[:, there]).astype(np.float64) / len(side) for side in sides]
        alone = np.outer(share[here], difference[there]) + np.outer(difference[here], share[there])
        excess = np.square(together[0] - together[1] - alone)
        likely = np.maximum(np.outer(share[here], share[there]), (together[0] + together[1]) / 2)
        told = np.divide(excess, likely, out=np.zeros_like(excess), where=excess > 0)
        told /= sum(1 / len(side) for side in sides)
        told = np.add.reduceat(told, starts[first:last] - starts[first], axis=0)
        told = rounded(np.add.reduceat(told, starts[first:-1] - starts[first], axis=1))
        free = np.outer(freedoms[first:last], freedoms[first:])
        i, j = np.nonzero(np.triu((free > 0) & (told >= least), 1))
        taken = special.chdtrc(free[i, j], told[i, j]) <= rare
        i, j = i[taken], j[taken]
        found += zip((told[i, j] - free[i, j]).tolist(), (first + i).tolist(), (first + j).tolist(), strict=True)
        first = last
    for excess_of, *pair in sorted(found, key=lambda one: -one[0])[:MOST_TAKEN]:
        yield excess_of, Cells(tuple(Bins.of(train, i, discrete=FEW_VALUES + 1, numbers=FINE_BINS) for i in pair))


def _triples(train: LabelledColumns) -> _Found:
    """Yield the triples of columns whose sides say something: by how their third central moment differs."""
    few = train.thinned(COMPARED_RUNS)
    bins = [Bins.of(few, i, discrete=2, numbers=2) for i in range(min(len(train.features.columns), MOST_TRIPLED))]
    marks = np.array([one(few) > 0 for one in bins])
    shares = (marks[:, few.left].mean(axis=1) + marks[:, ~few.left].mean(axis=1)) / 2
    even = np.flatnonzero(np.minimum(shares, 1 - shares) >= LEAST_SIDE)
    if even.size < 3:
        return
    worlds = [marks[even][:, world].astype(np.float32) for world in (few.left, ~few.left)]  # exact sums, as above
    spread = shares[even] * (1 - shares[even])
    least = special.chdtri(1, BY_CHANCE / math.comb(even.size, 3))
    pairs = [(world @ world.T).astype(np.float64) / world.shape[1] for world in worlds]
    for i in range(even.size - 2):
        moments = []
        for world, pair in zip(worlds, pairs, strict=True):
            rest, mean = world[i + 1 :], np.diag(pair)
            both = (rest * world[i] @ rest.T).astype(np.float64) / world.shape[1]
            later, beside = mean[i + 1 :], np.outer(pair[i, i + 1 :], mean[i + 1 :])
            moments.append(both - mean[i] * (pair[i + 1 :, i + 1 :] - 2 * np.outer(later, later)) - beside - beside.T)
        told = np.square(moments[0] - moments[1]) / np.outer(spread[i + 1 :], spread[i + 1 :]) / spread[i]
        told = rounded(told / sum(1 / world.shape[1] for world in worlds))
        for j, k in np.argwhere(np.triu(told >= least, 1)).tolist():
            triple = even[[i, i + 1 + j, i + 1 + k]].tolist()
            yield float(told[j, k]) - 1, Cells(tuple(bins[column] for column in triple))


def _comparisons(train: LabelledColumns, rare: float, pairs: Sequence[tuple[int, ...]]) -> _Found:
    """Yield the pairs of columns with many values whose order, or being equal, says something.

    All of the first such columns are compared, and the pairs of others that say something together. What it would say
    if the columns were independent is seen by comparing one with another run's other one.
    """
    columns, few = train.features.columns, train.thinned(COMPARED_RUNS)
    wide = [i for i, column in enumerate(columns) if not column.discrete or column.values.size >= FINE_BINS]
    near = wide[:MOST_COMPARED]
    others = {one: near[place:] for place, one in enumerate(near[:-1], start=1)}
    for one, other in pairs:
        if one in wide and other in wide and other not in near:
            others[one] = [*others.get(one, []), other]
    for one, those in others.items():
        best = np.zeros(len(those))
        rows = few.columns[[one, *those]]
        for compare in (np.less, np.equal):
            excess, variance = np.zeros(best.size), np.zeros(best.size)
            for world, sign in ((few.left, 1), (~few.left, -1)):
                side = rows[:, world]
                runs = side.shape[1]
                for mine, which in ((side[0], sign), (np.roll(side[0], 1), -sign)):
                    share = (np.count_nonzero(compare(mine, side[1:]), axis=1) + 0.5) / (runs + 1)
                    excess += which * share
                    variance += share * (1 - share) / runs
            best = np.maximum(best, rounded(excess**2 / variance))
        for j in np.flatnonzero(special.chdtrc(1, best) <= rare).tolist():
            yield float(best[j]) - 1, Comparison(one, those[j])
