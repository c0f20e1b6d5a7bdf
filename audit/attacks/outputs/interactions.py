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


@dataclass(frozen=True)
class Screening:
    """How much is looked at for what columns say only together.

    Attributes
    ----------
    cells : int
        Of a column while pairs are screened: so many of all columns together, or two.
    coarse_bins, fine_bins : int
        Of a number while pairs are screened, and once its pair is chosen.
    max_products : int
        Products of cells that are counted.
    min_runs : int
        That are counted, whatever the products.
    max_cells : int
        Of the first columns, which are looked at.
    block : int
        Cells whose pairs with all others are looked at together.
    max_tripled, max_compared : int
        The first columns whose triples are screened, and that are compared of those with more values than cells.
    min_side : float
        The least share of the runs on either side of a column of a triple.
    compared_runs : int
        Runs of triples and comparisons.
    false_alarm_rate : float
        The chance that any pair is taken whose columns are independent, and have the same law in both worlds.
    max_interactions : int
        That are taken.
    """

    cells: int = 512
    coarse_bins: int = 4
    fine_bins: int = 8
    max_products: int = 10_000_000_000
    min_runs: int = 1000
    max_cells: int = 10_000
    block: int = 512
    max_tripled: int = 64
    max_compared: int = 64
    min_side: float = 0.25
    compared_runs: int = 4000
    false_alarm_rate: float = 1e-6
    max_interactions: int = 12


SCREENING = Screening()


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
        max_bins = discrete if column.discrete else numbers
        row = train.clean_row(index)
        minimum, edges = row.min(), quantiles(row, max_bins, method="higher")
        edges = edges[edges > minimum]
        if not edges.size and row.max() > minimum:  # most runs have the least number
            edges = np.array([row[row > minimum].min()])
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
        return math.prod(column.size for column in self.bins)

    def __call__(self, view: Columns) -> Numbers:
        """Return the cell of each run."""
        cells = self.bins[0](view)
        for column in self.bins[1:]:
            cells = cells * column.size + column(view)
        return cells


@dataclass(frozen=True)
class Comparison:
    """Which of two columns is more, or whether they are equal."""

    first: int
    second: int
    size = 3

    def __call__(self, view: Columns) -> Numbers:
        """Return 0 where the first is less, 1 where neither is, 2 where it is more."""
        first, second = view.columns[self.first], view.columns[self.second]
        order: Numbers = 1 + (first > second).astype(np.int64) - (first < second)
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
        weight = worth_of(np.full(code.size, 0.5), codes, train.left) / 2
        return cls(code, log_ratio(codes, train.left, code.size, weight, weight))

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
    rare = SCREENING.false_alarm_rate / (2 * count**2)  # a pair's cells are tested, its order and whether it is equal
    cells = list(_cells(train, rare))
    pairs = [tuple(item.index for item in code.bins) for _, code in cells]
    candidates = [*cells, *_triples(train), *_comparisons(train, rare, pairs)]
    return tuple(code for _, code in sorted(candidates, key=lambda item: -item[0])[: SCREENING.max_interactions])


def _cells(train: LabelledColumns, rare: float) -> Iterator[tuple[float, Cells]]:
    """Yield the pairs of columns whose cells say most: by counts of all pairs of cells."""
    count, rough = len(train.features.columns), train.thinned(SCREENING.compared_runs)
    max_bins, bins, ends = max(2, SCREENING.cells // count), list[Bins](), [0]
    for index in range(count):
        column = Bins.of(rough, index, discrete=max_bins, numbers=min(max_bins, SCREENING.coarse_bins))
        if ends[-1] + column.size > SCREENING.max_cells:
            break
        bins.append(column)
        ends.append(ends[-1] + column.size)
    starts, width = np.array(ends), ends[-1]
    sample = train.thinned(max(SCREENING.min_runs, min(SCREENED, SCREENING.max_products // width**2)))
    hot = np.zeros((sample.left.size, width), dtype=np.float32)  # whole numbers, whose sums are exact in any order
    for start, column in zip(starts, bins, strict=False):
        hot[np.arange(sample.left.size), start + column(sample)] = 1
    sides = [hot[sample.left], hot[~sample.left]]
    shares = [side.mean(axis=0, dtype=np.float64) for side in sides]
    difference, share = shares[0] - shares[1], (shares[0] + shares[1]) / 2
    freedoms = np.add.reduceat(share > 0, starts[:-1], dtype=np.int64) - 1
    candidates: list[tuple[float, int, int]] = []
    threshold = 0.99 * special.chdtri(1, rare)  # of any freedom: to look at the others takes most of the time
    first = 0
    while first < len(bins) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + SCREENING.block, "right")) - 1)
        rows, columns = slice(starts[first], starts[last]), slice(starts[first], None)
        joint = [(side[:, rows].T @ side[:, columns]).astype(np.float64) / len(side) for side in sides]
        additive = np.outer(share[rows], difference[columns]) + np.outer(difference[rows], share[columns])
        excess = np.square(joint[0] - joint[1] - additive)
        likely = np.maximum(np.outer(share[rows], share[columns]), (joint[0] + joint[1]) / 2)
        statistic = np.divide(excess, likely, out=np.zeros_like(excess), where=excess > 0)
        statistic /= sum(1 / len(side) for side in sides)
        statistic = np.add.reduceat(statistic, starts[first:last] - starts[first], axis=0)
        statistic = rounded(np.add.reduceat(statistic, starts[first:-1] - starts[first], axis=1))
        free = np.outer(freedoms[first:last], freedoms[first:])
        i, j = np.nonzero(np.triu((free > 0) & (statistic >= threshold), 1))
        is_significant = special.chdtrc(free[i, j], statistic[i, j]) <= rare
        i, j = i[is_significant], j[is_significant]
        candidates += zip(
            (statistic[i, j] - free[i, j]).tolist(), (first + i).tolist(), (first + j).tolist(), strict=True
        )
        first = last
    for excess_of, *pair in sorted(candidates, key=lambda item: -item[0])[: SCREENING.max_interactions]:
        fine = (Bins.of(train, i, discrete=FEW_VALUES + 1, numbers=SCREENING.fine_bins) for i in pair)
        yield excess_of, Cells(tuple(fine))


def _triples(train: LabelledColumns) -> _Found:
    """Yield the triples of columns whose sides say something: by how their third central moment differs."""
    sample = train.thinned(SCREENING.compared_runs)
    bins = [
        Bins.of(sample, i, discrete=2, numbers=2)
        for i in range(min(len(train.features.columns), SCREENING.max_tripled))
    ]
    marks = np.array([column_bins(sample) > 0 for column_bins in bins])
    shares = (marks[:, sample.left].mean(axis=1) + marks[:, ~sample.left].mean(axis=1)) / 2
    even = np.flatnonzero(np.minimum(shares, 1 - shares) >= SCREENING.min_side)
    if even.size < 3:
        return
    # Exact sums, as above.
    worlds = [marks[even][:, world].astype(np.float32) for world in (sample.left, ~sample.left)]
    spread = shares[even] * (1 - shares[even])
    threshold = special.chdtri(1, SCREENING.false_alarm_rate / math.comb(even.size, 3))
    pairs = [(world @ world.T).astype(np.float64) / world.shape[1] for world in worlds]
    for i in range(even.size - 2):
        moments = []
        for world, pair in zip(worlds, pairs, strict=True):
            rest, mean = world[i + 1 :], np.diag(pair)
            products = (rest * world[i] @ rest.T).astype(np.float64) / world.shape[1]
            partners, cross = mean[i + 1 :], np.outer(pair[i, i + 1 :], mean[i + 1 :])
            moments.append(
                products - mean[i] * (pair[i + 1 :, i + 1 :] - 2 * np.outer(partners, partners)) - cross - cross.T
            )
        statistic = np.square(moments[0] - moments[1]) / np.outer(spread[i + 1 :], spread[i + 1 :]) / spread[i]
        statistic = rounded(statistic / sum(1 / world.shape[1] for world in worlds))
        for j, k in np.argwhere(np.triu(statistic >= threshold, 1)).tolist():
            triple = even[[i, i + 1 + j, i + 1 + k]].tolist()
            yield float(statistic[j, k]) - 1, Cells(tuple(bins[column] for column in triple))


def _comparisons(train: LabelledColumns, rare: float, pairs: Sequence[tuple[int, ...]]) -> _Found:
    """Yield the pairs of columns with many values whose order, or being equal, says something.

    All of the first such columns are compared, and the pairs of others that say something together. What it would say
    if the columns were independent is seen by comparing one with another run's other one.
    """
    columns, sample = train.features.columns, train.thinned(SCREENING.compared_runs)
    wide = [i for i, column in enumerate(columns) if not column.discrete or column.values.size >= SCREENING.fine_bins]
    leading = wide[: SCREENING.max_compared]
    partners = {index: leading[place:] for place, index in enumerate(leading[:-1], start=1)}
    for index, other in pairs:
        if index in wide and other in wide and other not in leading:
            partners[index] = [*partners.get(index, []), other]
    for index, partner_columns in partners.items():
        best = np.zeros(len(partner_columns))
        rows = sample.columns[[index, *partner_columns]]
        for compare in (np.less, np.equal):
            excess, variance = np.zeros(best.size), np.zeros(best.size)
            for world, sign in ((sample.left, 1), (~sample.left, -1)):
                side = rows[:, world]
                runs = side.shape[1]
                for values, weight in ((side[0], sign), (np.roll(side[0], 1), -sign)):
                    share = (np.count_nonzero(compare(values, side[1:]), axis=1) + 0.5) / (runs + 1)
                    excess += weight * share
                    variance += share * (1 - share) / runs
            best = np.maximum(best, rounded(excess**2 / variance))
        for j in np.flatnonzero(special.chdtrc(1, best) <= rare).tolist():
            yield float(best[j]) - 1, Comparison(index, partner_columns[j])
