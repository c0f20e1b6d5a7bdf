"""Tables of counts: of the outcomes of a mechanism, of their projections and patterns; regressions on bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ...statistics.bounds.rounding import rounded
from ...statistics.coupling import Codes, Places
from ...statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS
from ..features import Features, LabelledView, Labels, View, equal
from ..protocol import log_ratio
from .learned import SCREENED, OutputAttack, binned_odds, nothing, worth_of
from .regressions import STRETCH, Coded, CodedRuns, Logistic

#: The most possible outcomes of a table of few; how often on average training must show the outcomes of one, if these
#: are many, and of a larger one: what is seen once says nothing of its kind.
MOST_OUTCOMES, TWICE, REPEATED = 2**16, 2, 16
#: Outcomes up to which a table is of few, and up to which it may be judged by the runs that it was counted on: each
#: outcome has many of them, and counts alone are used. Beyond, the regression's prediction is a prior.
FEW_OUTCOMES, FEWER_OUTCOMES = 256, 24
MOST_PATTERNS = 64
#: Bins of a number of equal width, the share of its values beyond them on either side, and how far edges lie from
#: those numbers in units of bins.
UNIFORM, FAR_TAIL, NUDGE = 48, 5e-4, 6e-10
#: The most runs of a regression on bins.
MOST_REGRESSED = 1_000_000


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
        outcomes, places, times = np.unique(keys[known], return_inverse=True, return_counts=True)
        if not outcomes.size:
            return nothing
        lookup, prior, weight = Places.of(outcomes, codes.size), np.full(outcomes.size, 0.5), 1.0
        fallback: Callable[[View], Floats] | None = None
        few = FEW_OUTCOMES if train.coupled else FEWER_OUTCOMES
        if self.smooth and outcomes.size > few and len(train.features.rows) > 2:
            fallback = Logistic().learn(train)
            # Of a projection, runs of one outcome may differ by the regression.
            shares = special.expit(np.clip(fallback(train)[known], -30, 30))
            prior = np.bincount(places, shares, outcomes.size) / times
            weight = worth_of(prior, places, train.left[known])
        ratios = log_ratio(places, train.left[known], outcomes.size, weight * prior, weight * (1 - prior))
        table = np.append(ratios, 0.0)  # of strange outcomes

        def score(view: View) -> Floats:
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
    def projections(view: View) -> dict[str, int]:
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

    def __call__(self, view: View) -> tuple[NDArray[np.int64], Labels]:
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
    def keys(view: View) -> NDArray[np.int64]:
        """Return a number for which columns hold which special value, (runs,); all 0 where there are too many."""
        return _kinds(range(len(view.columns)), view)

    @classmethod
    def is_worth(cls, view: View) -> bool:
        """Tell whether some numbers are special, in patterns that training runs repeat."""
        step = -(-view.columns.shape[1] // SCREENED)
        many = np.unique(cls.keys(view.part(slice(None, None, step)))).size
        return not view.features.discrete and 2 <= many <= MOST_PATTERNS

    def learn(self, train: LabelledView) -> Callable[[View], Floats]:
        """Count."""
        patterns, places = np.unique(self.keys(train), return_inverse=True)
        rest, within = train.clean.sum(axis=0), (places == place for place in range(patterns.size))
        parts = [binned_odds(rest[here], train.left[here]) for here in within]

        def score(view: View) -> Floats:
            keys, rest = self.keys(view), view.clean.sum(axis=0)
            scores = np.zeros(keys.size)
            for pattern, odds in zip(patterns, parts, strict=True):
                here = keys == pattern
                scores[here] = odds(rest[here])
            return scores

        return score


@dataclass(frozen=True)
class BinnedRegression(OutputAttack):
    """Log odds of a logistic regression on what the columns show, in bins, and on special values together [1]_.

    Special values, and the categories of discrete columns, are counted together where their patterns are few; ordinary
    numbers in bins, whose weights differ the less the nearer they are, save a step at the median, where noise around
    a value changes sides. Among special values, as in the answers of sparse vectors, the least number may count, with
    how many of each there are, in place of each column's: numbers that were compared before they were released say so
    most, fresh ones each alone.

    Coupled runs: what both worlds do with the same draws cancels, and weak evidence is left.

    Parameters
    ----------
    step : float
        Standard deviation, before anything is seen, of the difference of neighbouring bins' weights.
    least : bool
        Whether the least number counts in place of each column's, where several columns have special values.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani. Generalized additive models. Statistical Science 1, 1986.
    """

    step: float
    least: bool = False

    log_odds = True

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return "regression on bins of the least" if self.least else "regression on bins"

    def learn(self, train: LabelledView) -> Callable[[View], Floats]:
        """Fit the weights."""
        parts = train.once(("parts", self.least), lambda: list(_parts(train, least=self.least)))
        if not parts or train.of_one_world:
            return nothing
        runs = train.thinned(MOST_REGRESSED)

        def coded() -> CodedRuns:
            shown = [Coded(*part.of(runs), part.size, part.ordered, self.least, part.jump) for part in parts]
            return CodedRuns(shown, runs.left)

        tables = runs.once(("coded", self.least), coded).tables(self.step)
        read = [(part, table) for part, table in zip(parts, tables, strict=True) if table.any()]

        def score(view: View) -> Floats:
            total = np.zeros(view.columns.shape[1])
            for part, table in read:
                codes, weights = part.of(view)
                told = table.take(codes)
                total += told if weights is None else told * weights
            return rounded(total)

        return score


@dataclass(frozen=True)
class _Part:
    """What is read of a run: see `regressions.Coded`. `times` is a value whose share of the columns is the weight."""

    codes: Callable[[View], Codes]
    size: int
    ordered: bool
    times: float | None = None
    jump: int = 0

    def of(self, view: View) -> tuple[Codes, Floats | None]:
        """Return the codes of runs, and their weights if they are not 1."""
        codes = view.once(self.codes, lambda: self.codes(view))
        if self.times is None:
            return codes, None
        same = equal(view.columns, self.times)
        return codes, same.sum(axis=0, dtype=np.int32) / len(same)


def _parts(train: LabelledView, *, least: bool) -> Iterator[_Part]:
    columns, special = train.features.columns, train.features.with_specials
    few = train.thinned(SCREENED)
    for group in ([i for i, column in enumerate(columns) if column.discrete], special):
        if group:
            known, times = np.unique(_kinds(group, few), return_counts=True)
            if known.size * REPEATED <= times.sum():
                places = Places.of(known, math.prod(columns[i].values.size + 1 for i in group))
                yield _Part(partial(_place, group, places), known.size + 1, ordered=False)
                continue
            yield from (_Part(partial(_kind, i), columns[i].values.size + 1, ordered=False) for i in group)
    numbers = [i for i, column in enumerate(columns) if not column.discrete and not (least and i in special)]
    sources: list[Callable[[View], Floats]] = [partial(_numbers, i) for i in numbers]
    if least:
        sources.append(_least)
    elif len(numbers) == len(columns) > 1 and not special:
        sources += [partial(_step, i) for i in range(1, len(columns))]
    for source in sources:
        row = source(few)
        row = row[np.isfinite(row)]
        low, middle, high = np.quantile(row, [FAR_TAIL, 0.5, 1 - FAR_TAIL]).tolist() if row.size else (0.0, 0.0, 0.0)
        if high > low:
            width = (high - low) / UNIFORM
            jump = min(max(math.ceil((middle - low) / width), 1), UNIFORM - 1)
            bins = partial(_bins, source, middle - jump * width, 1 / width)
            yield _Part(bins, UNIFORM + 1, ordered=True, jump=jump)
    if least:  # the bins are those of the least
        values = sorted({float(v) for i in special for v in columns[i].values if not math.isnan(v)})
        yield from (_Part(bins, UNIFORM + 1, ordered=True, times=value) for value in (*values[:2], math.nan))


def _numbers(index: int, view: View) -> Floats:
    return view.numbers(index)


def _least(view: View) -> Floats:
    return view.least


def _step(index: int, view: View) -> Floats:
    """Return the difference of a column from the one before it."""
    difference: Floats = view.columns[index] - view.columns[index - 1]
    return difference


def _kinds(group: Sequence[int], view: View) -> NDArray[np.int64]:
    """Return a number for which special values some columns have; all 0 where there are too many."""
    columns = [view.features.columns[i] for i in group]
    keys = np.zeros(view.columns.shape[1], dtype=np.int64)
    if sum(math.log2(column.values.size + 1) for column in columns) > 62:
        return keys
    for i, column in zip(group, columns, strict=True):
        keys *= column.values.size + 1
        keys += view.kinds(i)
    return keys


def _kind(index: int, view: View) -> Codes:
    return view.kinds(index)


def _place(group: Sequence[int], places: Places, view: View) -> Codes:
    """Return the place of the special values of some columns among the patterns that are known."""
    return places(_kinds(group, view))


def _bins(source: Callable[[View], Floats], low: float, per_unit: float, view: View) -> Codes:
    """Return the bin of each number, all of the same width, the outermost without end; one more than all for none."""
    numbers = source(view)
    codes = np.empty(numbers.size, dtype=np.uint8)
    for start in range(0, numbers.size, STRETCH):
        here = slice(start, start + STRETCH)
        with np.errstate(invalid="ignore", over="ignore"):  # the last bits of numbers at an edge decide nothing
            place = numbers[here] - low
            place *= per_unit
            place += NUDGE
            codes[here] = np.clip(place, 0, UNIFORM - 1, out=place)
        finite = np.isfinite(numbers[here])
        if not finite.all():
            codes[here] *= finite
            codes[here] += ~finite * np.uint8(UNIFORM)
    return codes
