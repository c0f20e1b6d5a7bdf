"""Tables of counts: of the outcomes of a mechanism, of their projections and patterns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ...encoding.features import Columns, Features, LabelledColumns, Labels
from ...statistics.bounds.rounding import rounded
from ...statistics.coupling import Places
from ...statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS
from ..protocol import log_ratio
from .learned import PRIORS, SCREENED, OutputAttack, binned_odds, nothing, worth_of
from .regressions import Logistic

#: The most possible outcomes of a table of few; how often on average training must show the outcomes of one, if these
#: are many, and of a larger one: what is seen once says nothing of its kind.
MOST_OUTCOMES, TWICE, REPEATED = 2**16, 2, 16
#: Outcomes up to which a table is of few, and up to which it may be judged by the runs that it was counted on: each
#: outcome has many of them, and counts alone are used. Beyond, the regression's prediction is a prior.
FEW_OUTCOMES, FEWER_OUTCOMES = 256, 24
#: The most patterns of special values that are told apart: each needs runs of its own to learn from.
MOST_PATTERNS = 64
#: The values of a column that holds categories, at least and at most, and the fewest runs of each on average; the most
#: such columns, and the most columns beside one.
FEWEST_CATEGORIES, MOST_CATEGORIES, FEWEST_OF_CATEGORY, MOST_BESIDE, MOST_BESIDE_CATEGORY = 5, 512, 3, 3, 32
#: The runs that show whether columns depend on one of categories, and how much likelier (nats) they are if some do;
#: and the shares of the categories on which they may.
COMPARED, DEPENDS, DEPENDENT = 4000, 2.0, (0.03, 0.3, 1 - 1e-9)


@dataclass(frozen=True)
class Table(OutputAttack):
    """The log ratio of the counts of every outcome, or of a projection of it, shrunk towards a regression.

    Parameters
    ----------
    projection : str
        "all": the whole output; "halves": the sums of its halves; "order": its values in order of size.
    smooth : bool
        Whether unseen and rare outcomes take the regression's word.
    outcomes : int
        How many were seen in training.
    """

    projection: str
    smooth: bool = True
    outcomes: int = FEW_OUTCOMES

    log_odds = True

    @property
    def needs_other_runs(self) -> bool:
        """Whether it does: halves of the runs would give two scores to each of few outcomes, and more luck."""
        return self.outcomes > FEWER_OUTCOMES

    @property
    def doubt(self) -> float:
        """Standard errors to take off: more where each outcome has few runs, and the best ones are best by luck."""
        return DOUBT_OF_LOG_ODDS if self.outcomes <= FEW_OUTCOMES else DOUBT

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return "table of outcomes" if self.projection == "all" else f"table of {self.projection}"

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Count the outcomes of the training runs."""
        codes = _Codes(train.features, self.projection)
        keys, known = codes(train)
        outcomes, places, times = np.unique(keys[known], return_inverse=True, return_counts=True)
        if not outcomes.size:
            return nothing
        lookup, prior, weight = Places.of(outcomes, codes.size), np.full(outcomes.size, 0.5), 1.0
        fallback: Callable[[Columns], Floats] | None = None
        few = FEW_OUTCOMES if train.coupled else FEWER_OUTCOMES
        if self.smooth and outcomes.size > few and len(train.features.rows) > 2:
            fallback = Logistic().learn(train)
            # Of a projection, runs of one outcome may differ by the regression.
            shares = special.expit(np.clip(fallback(train)[known], -30, 30))
            prior = np.bincount(places, shares, outcomes.size) / times
            weight = worth_of(prior, places, train.left[known])
        ratios = log_ratio(places, train.left[known], outcomes.size, weight * prior, weight * (1 - prior))
        table = np.append(ratios, 0.0)  # of strange outcomes

        def score(view: Columns) -> Floats:
            keys, known = codes(view)
            places = lookup(keys)
            if not known.all():
                places = np.where(known, places, outcomes.size)
            scores = table[places]
            strange = places == outcomes.size
            if fallback is not None and strange.any():
                scores[strange] = fallback(view.part(strange))
            return scores

        return score

    @staticmethod
    def projections(view: Columns) -> dict[str, int]:
        """Return the projections that training runs repeat often enough, with the number of outcomes among them."""
        step = -(-view.columns.shape[1] // SCREENED)
        screened = view.part(slice(None, None, step))
        runs, counts = screened.columns.shape[1], {}
        for projection in ("all", "halves", "order"):
            codes = _Codes(view.features, projection)
            if codes.size:
                keys = np.unique(codes(screened)[0]).size
                few = codes.size <= MOST_OUTCOMES
                if keys <= (max(FEW_OUTCOMES, runs // TWICE) if few else runs // REPEATED):
                    counts[projection] = keys
        return counts


class _Codes:
    """The number of an outcome, or of a projection of it; `size` is 0 where there are too many to number."""

    def __init__(self, features: Features, projection: str) -> None:
        self.projection = projection
        self.columns = features.columns
        count = len(self.columns)
        self.size = 0
        if not features.discrete or not count:
            return
        if projection == "all":
            self.sizes = [column.values.size for column in self.columns]
        else:
            values = np.unique(np.concatenate([column.values for column in self.columns]))
            whole = bool(np.isfinite(values).all() and (values == np.round(values)).all())
            if count < 2 or not whole:
                return
            self.low, self.span = int(values[0]), int(values[-1] - values[0])
            half = count // 2
            if projection == "halves":
                self.sizes = [half * self.span + 1, (count - half) * self.span + 1]
                self.offset = np.array([[half * self.low], [(count - half) * self.low]])
            elif values.size <= 3 < count:
                self.values = values[1:]
                self.sizes = [count + 1] * self.values.size
            else:
                return
        size = float(np.prod(np.array(self.sizes, dtype=np.float64)))
        self.size = int(size) if size < 2.0**62 else 0  # the numbers are 64-bit integers

    def __call__(self, view: Columns) -> tuple[NDArray[np.int64], Labels]:
        """Return the numbers of the outcomes, and which are possible as training saw them."""
        runs = view.columns.shape[1]
        keys, known = np.zeros(runs, dtype=np.int64), np.ones(runs, dtype=np.bool_)
        if self.projection == "all":
            for i, size in enumerate(self.sizes):
                kinds = view.kinds(i)
                keys *= size
                keys += np.maximum(kinds, 1) - np.uint8(1)
                known &= kinds > 0
            return keys, known
        if self.projection == "halves":
            parts = np.rint(view.halves - self.offset).astype(np.int64)
        else:
            parts = np.stack([(view.columns == value).sum(axis=0) for value in self.values])
        for part, size in zip(parts, self.sizes, strict=True):
            known &= (part >= 0) & (part < size)
            keys = keys * size + np.clip(part, 0, size - 1)
        return keys, known


@dataclass(frozen=True)
class Patterns(OutputAttack):
    """The log ratio of the counts of every pattern of special values, and of the rest's sum in bins within it.

    Sparse vectors are such outputs: which queries were above, and the few numbers that were released.
    """

    name, log_odds = "table of patterns", True

    @staticmethod
    def keys(view: Columns) -> NDArray[np.int64]:
        """Return a number for which columns hold which special value, (runs,); all 0 where there are too many."""
        return kinds_of(range(len(view.columns)), view)

    @classmethod
    def is_worth(cls, view: Columns) -> bool:
        """Tell whether some numbers are special, in patterns that training runs repeat."""
        step = -(-view.columns.shape[1] // SCREENED)
        many = np.unique(cls.keys(view.part(slice(None, None, step)))).size
        return not view.features.discrete and 2 <= many <= MOST_PATTERNS

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Count."""
        patterns, places = np.unique(self.keys(train), return_inverse=True)
        rest, within = train.clean.sum(axis=0), (places == place for place in range(patterns.size))
        parts = [binned_odds(rest[here], train.left[here]) for here in within]

        def score(view: Columns) -> Floats:
            keys, rest = self.keys(view), view.clean.sum(axis=0)
            scores = np.zeros(keys.size)
            for pattern, odds in zip(patterns, parts, strict=True):
                here = keys == pattern
                scores[here] = odds(rest[here])
            return scores

        return score


def kinds_of(group: Sequence[int], view: Columns) -> NDArray[np.int64]:
    """Return a number for which special values some columns have; all 0 where there are too many."""
    columns = [view.features.columns[i] for i in group]
    keys = np.zeros(view.columns.shape[1], dtype=np.int64)
    if sum(math.log2(column.values.size + 1) for column in columns) > 62:
        return keys
    for i, column in zip(group, columns, strict=True):
        keys *= column.values.size + 1
        keys += view.kinds(i)
    return keys


@dataclass(frozen=True)
class ByCategory(OutputAttack):
    """The log ratios of the counts of every category, and of what every other column says beside it, in one sum.

    What a number says may depend on a category: an index that was drawn, a seed, the row of a sketch. So it is counted
    on which side of its category's median it is, and shrunk, as much as all counts say, to what it says in any.

    Parameters
    ----------
    index : int
        The column of the categories.
    """

    index: int

    name, log_odds = "table by category", True

    @classmethod
    def worth(cls, train: LabelledColumns) -> list[ByCategory]:
        """Return those of the first columns with categories that repeat themselves, where others depend on them."""
        if train.coupled or train.of_one_world or len(train.features.columns) < 2:
            return []
        few, columns = train.thinned(COMPARED), train.features.columns
        many = range(FEWEST_CATEGORIES, min(few.left.size // FEWEST_OF_CATEGORY, MOST_CATEGORIES) + 1)
        coded = [i for i, one in enumerate(columns) if one.whole or one.values.size >= FEWEST_CATEGORIES]
        some = [i for i in coded if np.unique(few.columns[i]).size in many]
        return [cls(i) for i in some[:MOST_BESIDE] if _ByCategory.of(few, i).gain >= DEPENDS]

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Count."""
        return _ByCategory.of(train.thinned(SCREENED), self.index)


@dataclass(frozen=True)
class _ByCategory:
    """The counted log ratios.

    Attributes
    ----------
    known : array (categories,)
    alone : array (categories,)
        The log ratios of categories.
    beside : list of (column, middles, log ratios)
        Of each category and side.
    gain : float
        How much likelier the runs are (nats) than if no other column depended on the category.
    """

    index: int
    known: Floats
    alone: Floats
    beside: list[tuple[int, Floats, Floats]]
    gain: float

    @classmethod
    def of(cls, train: LabelledColumns, index: int) -> _ByCategory:
        """Count."""
        left = train.left
        known, codes = np.unique(train.columns[index], return_inverse=True)
        worth = worth_of(np.full(known.size, 0.5), codes, left) / 2
        alone = log_ratio(codes, left, known.size, worth, worth)
        beside, gain = [], 0.0
        for i in [i for i in range(len(train.columns)) if i != index][:MOST_BESIDE_CATEGORY]:
            middles = _middles(train.columns[i], codes, known.size)
            cells = _cells_of(train.columns[i], codes, middles)
            sides = log_ratio(cells % 3, left, 3, 0.5, 0.5)
            table, more = _dependent(np.repeat(alone, 3) + np.tile(sides, known.size), cells, left)
            beside.append((i, middles, table - np.repeat(alone, 3)))
            gain += more
        return cls(index, known, alone, beside, gain)

    def __call__(self, view: Columns) -> Floats:
        """Return the log odds; 0 for a category that training has not seen."""
        row = view.columns[self.index]
        codes = np.searchsorted(self.known, row).clip(max=self.known.size - 1)
        total = self.alone[codes]
        for i, middles, table in self.beside:
            total += table[_cells_of(view.columns[i], codes, middles)]
        total[self.known[codes] != row] = 0.0
        return rounded(total)


def _dependent(odds: Floats, cells: NDArray[np.intp], left: Labels) -> tuple[Floats, float]:
    """Return the log ratios of counts of three cells of each category, shrunk to some odds, and what they gain (nats).

    The odds are those of all categories, or of all but a share of them: how much they are worth in these, and which
    share that is, is what makes the runs likeliest (empirical Bayes), and so is each category's chance to be one.
    """
    mine, others = (np.bincount(cells[world], minlength=odds.size) for world in (left, ~left))
    share = special.expit(odds)
    priors = [(worth * share, worth * (1 - share)) for worth in PRIORS]
    likely = np.array([special.betaln(mine + a, others + b) - special.betaln(a, b) for a, b in priors])
    factors = likely.reshape(len(PRIORS), -1, 3).sum(axis=-1)
    factors = rounded(factors - factors[-1], 6)
    chances = np.array([np.logaddexp(np.log1p(-part), math.log(part) + factors) for part in DEPENDENT])
    evidence = rounded(chances.sum(axis=-1), 6)
    part, worth = np.unravel_index(int(np.argmax(evidence)), evidence.shape)
    dependent = np.exp(math.log(DEPENDENT[part]) + factors[worth] - chances[part, worth])
    a, b = priors[worth]
    counted = np.log(mine + a) - np.log(others + b)
    table: Floats = rounded(odds + np.repeat(dependent, 3) * (counted - odds))
    return table, float(evidence[part, worth])


def _middles(row: Floats, codes: NDArray[np.intp], size: int) -> Floats:
    """Return a number between the halves of a column's finite ones, of each category."""
    finite = np.isfinite(row)
    order = np.lexsort((row[finite], codes[finite]))
    values, ends = row[finite][order], np.cumsum(np.bincount(codes[finite], minlength=size))
    middles = np.zeros(size)
    for i, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        if start < end:
            middle, most = values[(start + end) // 2], values[end - 1]
            upto = values[start:end] <= middle if middle < most else values[start:end] < middle
            many = int(np.count_nonzero(upto))
            middles[i] = values[start + many - 1] if many else -np.inf
    return middles


def _cells_of(row: Floats, codes: NDArray[np.intp], middles: Floats) -> NDArray[np.intp]:
    """Return the cell of each run: its category, and whether its number is more than the middle, or is none."""
    with np.errstate(invalid="ignore"):
        side = np.where(np.isfinite(row), row > middles[codes], 2)
    cells: NDArray[np.intp] = 3 * codes + side
    return cells
