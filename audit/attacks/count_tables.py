"""Tables of counts: of the outcomes of a mechanism, of their projections and patterns, of sequences of points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ..play.transcripts import Transcripts
from ..statistics.bounds.rounding import rounded
from ..statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS
from .features import Column, Features, LabelledView, Labels, View
from .learned import BINS, SCREENED, Logistic, OutputAttack, log_ratio, nothing

#: The most outcomes of a table, and how often on average training must repeat the outcomes of a larger one.
MOST_OUTCOMES, REPEATED = 2**16, 16
#: Outcomes up to which counts alone are used; beyond, the regression's prediction is a prior worth so many runs.
FEW_OUTCOMES, PRIOR = 256, 8.0
#: Outcomes up to which a table may be judged by the runs that it was counted on: each outcome has many of them.
FEWER_OUTCOMES = 24
MOST_PATTERNS = 64
#: Edges of a column's bins, finer in its tails: rare values often have the largest likelihood ratios.
QUANTILES = np.unique([*np.linspace(0, 1, BINS + 1)[1:-1], *(q for t in (1e-4, 1e-3, 5e-3, 0.02) for q in (t, 1 - t))])
#: Digits to which points are compared: the same point may be computed in several ways.
DIGITS = 6
#: The most different sequences of points, and the fewest training runs for each of them on average.
MOST_SEQUENCES, FEWEST = 20_000, 20


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

    def learn(self, train: LabelledView) -> Callable[[View], Floats]:
        """Count the outcomes of the training runs."""
        codes = _Codes(train.features, self.projection)
        keys, known = codes(train)
        outcomes, first, places = np.unique(keys[known], return_index=True, return_inverse=True)
        if not outcomes.size:
            return nothing
        prior, weight = np.full(outcomes.size, 0.5), 1.0
        fallback: Callable[[View], Floats] | None = None
        if self.smooth and outcomes.size > FEW_OUTCOMES and len(train.features.rows) > 2:
            fallback, weight = Logistic().learn(train), PRIOR
            # The runs of one outcome have nearly the same log odds by the regression, so one run of each is asked.
            representative = train.part(np.flatnonzero(known)[first])
            prior = 1 / (1 + np.exp(-np.clip(fallback(representative), -30, 30)))
        table = log_ratio(places, train.left[known], outcomes.size, weight * prior, weight * (1 - prior))

        def score(view: View) -> Floats:
            keys, known = codes(view)
            places = np.minimum(np.searchsorted(outcomes, keys), outcomes.size - 1)
            scores = table[places]
            strange = ~(known & (outcomes[places] == keys))
            if strange.any():
                scores[strange] = 0.0 if fallback is None else fallback(view.part(strange))
            return scores

        return score

    @staticmethod
    def projections(view: View) -> dict[str, int]:
        """Return the projections that training runs repeat often enough, with the number of outcomes among them."""
        step = -(-view.columns.shape[1] // SCREENED)
        screened = view.part(slice(None, None, step))
        counts = {}
        for projection in ("all", "halves", "order"):
            codes = _Codes(view.features, projection)
            if codes.size:
                keys = np.unique(codes(screened)[0]).size
                if codes.size <= MOST_OUTCOMES or keys <= screened.columns.shape[1] // REPEATED:
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

    def __call__(self, view: View) -> tuple[NDArray[np.int64], Labels]:
        """Return the numbers of the outcomes, and which are possible as training saw them."""
        runs = view.columns.shape[1]
        keys, known = np.zeros(runs, dtype=np.int64), np.ones(runs, dtype=np.bool_)
        if self.projection == "all":
            for column, row, size in zip(self.columns, view.columns, self.sizes, strict=True):
                code, fine = column.codes(row)
                keys = keys * size + code
                known &= fine
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
    def keys(view: View) -> NDArray[np.int64]:
        """Return a number for which columns hold which special value, (runs,); all 0 where there are too many."""
        keys = np.zeros(view.columns.shape[1], dtype=np.int64)
        if sum(np.log2(column.values.size + 1) for column in view.features.columns) > 62:
            return keys
        for row, column in zip(view.columns, view.features.columns, strict=True):
            keys *= column.values.size + 1
            for code, value in enumerate(column.values, start=1):
                keys[column.equals(row, float(value))] += code
        return keys

    @classmethod
    def is_worth(cls, view: View) -> bool:
        """Tell whether some numbers are special, in patterns that training runs repeat."""
        step = -(-view.columns.shape[1] // SCREENED)
        many = np.unique(cls.keys(view.part(slice(None, None, step)))).size
        return not view.features.discrete and 2 <= many <= MOST_PATTERNS

    def learn(self, train: LabelledView) -> Callable[[View], Floats]:
        """Count."""
        patterns, places = np.unique(self.keys(train), return_inverse=True)
        rest = train.clean.sum(axis=0)
        parts = []
        for place in range(patterns.size):
            here = places == place
            edges = np.unique(np.quantile(rest[here], np.linspace(0, 1, BINS + 1)[1:-1]))
            codes = np.searchsorted(edges, rest[here], "right")
            parts.append((edges, log_ratio(codes, train.left[here], edges.size + 1, 0.5, 0.5)))

        def score(view: View) -> Floats:
            keys, rest = self.keys(view), view.clean.sum(axis=0)
            scores = np.zeros(keys.size)
            for pattern, (edges, table) in zip(patterns, parts, strict=True):
                here = keys == pattern
                scores[here] = table[np.searchsorted(edges, rest[here], "right")]
            return scores

        return score


@dataclass(frozen=True)
class ColumnRatios(OutputAttack):
    """The sum of smoothed log ratios of the columns' counts, as if the columns were independent (naive Bayes) [1]_.

    Special values, and the categories of discrete columns, are counted together where their patterns are few; ordinary
    numbers in bins, each column on its own. What the counts of a part say is shrunk by how much of it may be chance
    [2]_, and a part that says no more than chance is not read at all.

    References
    ----------
    .. [1] P. Domingos, M. Pazzani. On the optimality of the simple Bayesian classifier under zero-one loss. Machine
       Learning 29, 1997.
    .. [2] W. James, C. Stein. Estimation with quadratic loss. Proc. 4th Berkeley Symposium, 1961.
    """

    name, log_odds = "sum of the columns' log ratios", True

    def learn(self, train: LabelledView) -> Callable[[View], Floats]:
        """Count."""
        parts = [ratios for part in _parts(train) if (ratios := _Ratios.of(part, train)) is not None]

        def score(view: View) -> Floats:
            total = np.zeros(view.columns.shape[1])
            for ratios in parts:
                codes = np.minimum(ratios.codes(view), ratios.table.size - 1)  # what training has not seen
                total += ratios.table[codes]
            return rounded(total)

        return score


Codes = Callable[[View], NDArray[np.int64]]


def _parts(train: LabelledView) -> Iterator[Codes]:
    """Yield what is counted on its own: a number, from 0, for each run."""
    columns = train.features.columns
    for group in (
        [i for i, column in enumerate(columns) if column.discrete],
        [i for i, column in enumerate(columns) if not column.discrete and column.values.size],
    ):
        if group:
            keys = partial(_kinds, group)
            known, times = np.unique(keys(train.every(-(-train.left.size // SCREENED))), return_counts=True)
            if known.size * REPEATED <= times.sum():
                yield partial(_place, known, keys)
            else:
                yield from (partial(_kinds, [i]) for i in group)
    for i, column in enumerate(columns):
        if not column.discrete:
            numbers = train.columns[i]
            edges = np.unique(np.quantile(numbers[_ordinary(column, numbers)], QUANTILES))
            yield partial(_bins, i, edges)


def _ordinary(column: Column, numbers: Floats) -> Labels:
    ordinary: Labels = np.isfinite(numbers)
    for value in column.values:
        ordinary &= ~column.equals(numbers, float(value))
    return ordinary


def _kinds(group: Sequence[int], view: View) -> NDArray[np.int64]:
    """Return a number for which special values some columns have; all 0 where there are too many."""
    columns = [view.features.columns[i] for i in group]
    keys = np.zeros(view.columns.shape[1], dtype=np.int64)
    if sum(math.log2(column.values.size + 1) for column in columns) > 62:
        return keys
    for i, column in zip(group, columns, strict=True):
        place, known = column.codes(view.columns[i])
        keys = keys * (column.values.size + 1) + np.where(known, place + 1, 0)
    return keys


def _place(known: NDArray[np.int64], keys: Codes, view: View) -> NDArray[np.int64]:
    """Return the place of each key among the known ones, which are in order; one more than all for others."""
    numbers = keys(view)
    place = np.searchsorted(known, numbers)
    return np.where(known[np.minimum(place, known.size - 1)] == numbers, place, known.size)


def _bins(index: int, edges: Floats, view: View) -> NDArray[np.int64]:
    """Return the bin of a column's ordinary numbers, and one more than all for the rest."""
    numbers = view.columns[index]
    bins = np.searchsorted(edges, numbers, "right")
    return np.where(_ordinary(view.features.columns[index], numbers), bins, edges.size + 1)


@dataclass(frozen=True)
class _Ratios:
    """A part's log ratio by code."""

    codes: Codes
    table: Floats

    @classmethod
    def of(cls, codes: Codes, train: LabelledView) -> _Ratios | None:
        """Count training runs; None where they say no more than chance."""
        numbers = codes(train)
        size = int(numbers.max()) + 2  # unseen codes have the last place
        both = np.stack([np.bincount(numbers[world], minlength=size) for world in (train.left, ~train.left)])
        subject_to_chance = both.sum(axis=0).astype(np.float64)
        if train.coupled:  # only what differs between the worlds is subject to chance
            left, right = np.split(numbers, 2)
            apart = left != right
            subject_to_chance = sum(np.bincount(side[apart], minlength=size) for side in (left, right)) + 1.0
        expected = both.sum(axis=0) * both.sum(axis=1)[:, None] / both.sum()
        chi = float(np.sum((both - expected)[0] ** 2 / np.maximum(subject_to_chance / 4, 1e-9)))
        chance = np.count_nonzero(both.sum(axis=0)) - 1
        if chi <= chance + 2 * math.sqrt(2 * chance):
            return None
        rates = (both + 0.5) / both.sum(axis=1)[:, None]
        table = (1 - chance / chi) * (np.log(rates[0]) - np.log(rates[1]))
        table[both.sum(axis=0) == 0] = 0.0
        if isinstance(codes, partial) and codes.func is _bins:
            table[codes.args[1].size + 1 :] = 0.0  # special values have a part of their own
        return cls(codes, rounded(table))


class PointCounts:
    """Log ratio of smoothed training counts of each sequence of points; 0 for one that training never saw.

    A sequence is known by its product with fixed random weights, which tells different ones apart.

    Parameters
    ----------
    train : Transcripts
        Of points, (rounds, dim, runs).

    Raises
    ------
    ValueError
        If the sequences are too many to count.
    """

    name = "point counts"
    exact, trained, wording = False, True, ""

    def __init__(self, train: Transcripts) -> None:
        rounds, dim, _ = train.actions.shape
        self.weights = np.random.Generator(np.random.SFC64(0)).normal(size=rounds * dim)
        self.known, index = np.unique(self._keys(train), return_inverse=True)
        if self.known.size > min(MOST_SEQUENCES, train.runs // FEWEST):
            raise ValueError(f"there are {self.known.size} sequences in {train.runs} runs: too many to count")
        left, right = (np.bincount(index[world], minlength=self.known.size) for world in (train.left, ~train.left))
        self.table: Floats = np.round(np.log(left + 0.5) - np.log(right + 0.5), 9)

    def _keys(self, transcripts: Transcripts) -> Floats:
        points = np.round(transcripts.actions.reshape(self.weights.size, -1), DIGITS) + 0.0  # no negative zero
        keys: Floats = np.round(self.weights @ points, DIGITS)
        return keys

    def score(self, transcripts: Transcripts) -> Floats:
        """Look the sequences up."""
        keys = self._keys(transcripts)
        places = np.searchsorted(self.known, keys).clip(max=self.known.size - 1)
        scores: Floats = np.where(self.known[places] == keys, self.table[places], 0.0)
        return scores
