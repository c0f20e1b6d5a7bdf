"""Learned attacks: scores for outputs of any form, from training outputs alone.

An output may be a number, a vector, a category, a mixed tuple or None. `Encoder` turns outputs into columns of
numbers, `Features` into what a classifier or a threshold can use, and the models below into evidence for the left
world. All are fitted before certification, so a poor one costs power and never validity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.draws import Floats

#: Scores are rounded: the order of a sum must not split ties.
DIGITS = 9
#: A column with at most so many distinct values is discrete.
FEW_VALUES = 24
#: A value that a continuous column repeats so often is an outcome of its own: ties have probability 0 there.
REPEATS = 5
#: At most so many repeated values of a column are told apart, and columns used for order statistics.
MOST_SPECIALS, MOST_SORTED = 8, 12
#: The largest table of outcomes, and the weight of the prior in training runs.
MOST_OUTCOMES, PRIOR = 2**16, 8.0
#: Screening, regression and boosting look at no more runs.
SCREENED, FITTED, BOOSTED = 50_000, 300_000, 50_000
FEWEST_BOOSTED = 8000
BINS = 24

Labels = NDArray[np.bool_]
Outputs = NDArray[Any] | list[Any]


# ----------------------------------------------------------------------------------------------------
# Outputs to columns
# ----------------------------------------------------------------------------------------------------


def leaves(output: Any) -> list[Any]:
    """Return the scalars of a nested output, in a fixed order."""
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, dict):
        return [leaf for key in sorted(output, key=repr) for leaf in (repr(key), *leaves(output[key]))]
    if isinstance(output, set | frozenset):
        output = sorted(output, key=repr)
    if isinstance(output, list | tuple):
        return [leaf for part in output for leaf in leaves(part)]
    return [output]


def is_number(leaf: Any) -> bool:
    """Tell whether a scalar of an output is a number; truth values are."""
    return isinstance(leaf, int | float | np.integer | np.floating | np.bool_)


@dataclass(frozen=True)
class Encoder:
    """Outputs as columns of numbers, (columns, runs).

    A numeric array is its own encoding. Of any other output every scalar gives a number (nan if it is none) and the
    code of its category (0 for a number, -1 for one never seen in training); the number of scalars comes last.
    """

    categories: tuple[dict[str, int], ...] | None

    @classmethod
    def fit(cls, outputs: Outputs) -> Encoder:
        """Learn the width and the categories."""
        if isinstance(outputs, np.ndarray):
            return cls(None)
        rows = [leaves(output) for output in outputs]
        width = max(map(len, rows), default=0)
        seen: list[set[str]] = [set() for _ in range(width)]
        for row in rows:
            for place, leaf in enumerate(row):
                if not is_number(leaf):
                    seen[place].add(repr(leaf))
        return cls(tuple({name: i for i, name in enumerate(sorted(names), start=1)} for names in seen))

    def __call__(self, outputs: Outputs) -> Floats:
        """Encode."""
        if self.categories is None:
            numbers = np.asarray(outputs, dtype=np.float64)
            return numbers.reshape(-1, numbers.shape[-1])
        width = len(self.categories)
        columns = np.full((2 * width + 1, len(outputs)), np.nan)
        columns[width : 2 * width] = -2.0  # no such scalar
        for run, output in enumerate(outputs):
            row = leaves(output)
            columns[-1, run] = len(row)
            for place, leaf in enumerate(row[:width]):
                if is_number(leaf):
                    columns[place, run] = leaf
                    columns[width + place, run] = 0.0
                else:
                    columns[width + place, run] = self.categories[place].get(repr(leaf), -1)
        return columns


# ----------------------------------------------------------------------------------------------------
# Columns to features
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """What training showed of one column.

    Attributes
    ----------
    values : array
        Its distinct values if it is discrete, else the repeated ones, nan and the infinities included.
    discrete : bool
    centre, spread : float
        Median and half the distance of the quartiles of the finite rest.
    """

    values: Floats
    discrete: bool
    centre: float
    spread: float

    @classmethod
    def of(cls, column: Floats) -> Column:
        """Look at a training column."""
        values, times = np.unique(column, return_counts=True)
        discrete = values.size <= FEW_VALUES and (times.max() >= REPEATS or values.size == 1)
        if not discrete:
            often = np.argsort(-times, kind="stable")[:MOST_SPECIALS]
            values = values[np.sort(often[(times[often] >= REPEATS) | ~np.isfinite(values[often])])]
        rest = column[np.isfinite(column)]
        if not discrete and values.size:
            others = rest[~np.isin(rest, values)]
            rest = others if others.size else rest
        low, centre, high = np.quantile(rest, [0.25, 0.5, 0.75]) if rest.size else (0.0, 0.0, 0.0)
        return cls(values, discrete, float(centre), float(high - low) / 2 or 1.0)

    def equals(self, column: Floats, value: float) -> Labels:
        """Return where the column has the value; nan equals itself."""
        return np.isnan(column) if np.isnan(value) else column == value

    def codes(self, column: Floats) -> tuple[NDArray[np.int64], Labels]:
        """Return the index of each value among `values`, and where it is known."""
        if self.values.size == 1:
            return np.zeros(column.size, dtype=np.int64), self.equals(column, float(self.values[0]))
        place = np.minimum(np.searchsorted(self.values, column), self.values.size - 1)  # nan is sorted last
        found = self.values[place]
        return place, (found == column) | (np.isnan(found) & np.isnan(column))


class View:
    """A block of encoded outputs, with what several features share computed once."""

    def __init__(self, features: Features, columns: Floats) -> None:
        self.features, self.columns = features, columns

    def part(self, runs: Labels | slice) -> View:
        """Return the view of some of the runs."""
        return View(self.features, self.columns[:, runs])

    @cached_property
    def clean(self) -> Floats:
        """The columns with every value that is no ordinary number at the column's centre, (columns, runs)."""
        clean = self.columns.copy()
        for row, column in zip(clean, self.features.columns, strict=True):
            if not column.discrete:
                for value in column.values:
                    row[column.equals(row, value)] = column.centre
            row[~np.isfinite(row)] = column.centre
        return clean

    @cached_property
    def signs(self) -> Floats:
        """The columns around their centres, clipped to a tenth of their spread."""
        return _clipped(self.clean, self.features.columns)

    @cached_property
    def steps(self) -> Floats:
        """The differences of neighbouring columns, the first from 0."""
        return np.diff(self.clean, axis=0, prepend=0.0)

    @cached_property
    def step_signs(self) -> Floats:
        """The differences around their centres, clipped to a tenth of their spread."""
        return _clipped(self.steps, self.features.steps)

    @cached_property
    def ordered(self) -> Floats:
        """The columns in order of size, for each run."""
        return np.sort(self.clean, axis=0)

    @cached_property
    def halves(self) -> Floats:
        """The sums of the first and of the second half of the columns, (2, runs)."""
        half = len(self.clean) // 2
        return np.stack([self.clean[:half].sum(axis=0), self.clean[half:].sum(axis=0)])


def _clipped(rows: Floats, columns: Sequence[Column]) -> Floats:
    centre = np.array([[c.centre] for c in columns])
    spread = np.array([[c.spread] for c in columns])
    clipped: Floats = np.clip((rows - centre) / (0.1 * spread), -1, 1)
    return clipped


Feature = Callable[[View], Floats]


class Features:
    """Features of encoded outputs: each column and its special values, and what the columns are together.

    Parameters
    ----------
    columns : array (columns, runs)
        Training outputs. Constant columns are dropped.
    """

    def __init__(self, columns: Floats) -> None:
        looked = [Column.of(row) for row in columns]
        self.kept = [i for i, column in enumerate(looked) if not (column.discrete and column.values.size == 1)]
        self.columns = [looked[i] for i in self.kept]
        self.discrete = all(column.discrete for column in self.columns)
        self.steps: list[Column] = []
        self.rows: list[Feature] = []
        if self.kept:
            if len(self.kept) > 1 and not self.discrete:
                self.steps = [Column.of(row) for row in View(self, columns[self.kept]).steps]
            self.rows = list(self._list())

    def view(self, columns: Floats) -> View:
        """Return the view of encoded outputs."""
        return View(self, columns if len(self.kept) == len(columns) else columns[self.kept])

    def matrix(self, view: View) -> Floats:
        """Return all features, (runs, features)."""
        return np.stack([row(view) for row in self.rows], axis=1)

    def _list(self) -> Iterator[Feature]:
        for i, column in enumerate(self.columns):
            yield partial(_row, "clean", i)
            if not column.discrete:
                yield partial(_row, "signs", i)
            if column.values.size > 2 or not column.discrete:
                for value in column.values:
                    yield partial(_equals, i, column, float(value))
        count = len(self.columns)
        if count == 1:
            return
        for half in (0, 1):
            yield partial(_row, "halves", half)
            yield partial(_square_of_half, half)
        yield lambda view: view.halves.sum(axis=0)
        yield lambda view: view.halves.prod(axis=0)
        yield lambda view: view.clean.argmax(axis=0).astype(np.float64)
        yield lambda view: view.clean.argmin(axis=0).astype(np.float64)
        if self.discrete:
            yield lambda view: view.clean.max(axis=0)
            yield lambda view: view.clean.min(axis=0)
            return
        yield lambda view: view.signs.sum(axis=0)
        yield lambda view: view.step_signs.sum(axis=0)
        yield from (partial(_row, "steps", i) for i in range(1, count))
        yield from (partial(_row, "step_signs", i) for i in range(count))
        yield from (partial(_row, "ordered", i) for i in (range(count) if count <= MOST_SORTED else (0, count - 1)))
        for value in sorted({float(v) for c in self.columns for v in c.values if not np.isnan(v)}):
            yield partial(_times, value)
        yield lambda view: np.isnan(view.columns).sum(axis=0).astype(np.float64)
        yield lambda view: np.isnan(view.columns).argmin(axis=0).astype(np.float64)


def _row(name: str, index: int, view: View) -> Floats:
    row: Floats = getattr(view, name)[index]
    return row


def _equals(index: int, column: Column, value: float, view: View) -> Floats:
    return column.equals(view.columns[index], value).astype(np.float64)


def _square_of_half(half: int, view: View) -> Floats:
    square: Floats = np.square(view.halves[half])
    return square


def _times(value: float, view: View) -> Floats:
    times: Floats = (view.columns == value).sum(axis=0).astype(np.float64)
    return times


# ----------------------------------------------------------------------------------------------------
# Models
# ----------------------------------------------------------------------------------------------------


class Model(Protocol):
    """A way to make a score from training runs."""

    @property
    def name(self) -> str:
        """The attack's name in the record."""

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Return the score: evidence for the left world, (runs,)."""


@dataclass(frozen=True)
class Threshold:
    """One feature as it is: the event's thresholds do the rest."""

    index: int
    name = "single feature"

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Learn nothing."""
        feature = view.features.rows[self.index]
        return lambda view: np.round(feature(view), DIGITS)


@dataclass(frozen=True)
class Histogram:
    """The smoothed log ratio of one feature's counts between its quantiles."""

    index: int
    name = "histogram"

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Count."""
        feature = view.features.rows[self.index]
        row = feature(view)
        edges = np.unique(np.quantile(row, np.linspace(0, 1, BINS + 1)[1:-1]))
        table = _log_ratio(np.searchsorted(edges, row, "right"), left, edges.size + 1, 0.5, 0.5)
        return lambda view: table[np.searchsorted(edges, feature(view), "right")]


def _log_ratio(
    codes: NDArray[np.int64], left: Labels, size: int, prior_left: Floats | float, prior_right: Floats | float
) -> Floats:
    in_left = np.bincount(codes[left], minlength=size) + prior_left
    in_right = np.bincount(codes[~left], minlength=size) + prior_right
    ratio: Floats = np.round(np.log(in_left) - np.log(in_right), DIGITS)
    return ratio


@dataclass(frozen=True)
class Table:
    """The log ratio of the counts of every outcome, or of a projection of it, shrunk towards a regression.

    Parameters
    ----------
    projection : str
        "all": the whole output; "halves": the sums of its halves; "order": its values in order of size.
    smooth : bool
        Whether unseen and rare outcomes take the regression's word.
    """

    projection: str
    smooth: bool = True

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return "table of outcomes" if self.projection == "all" else f"table of {self.projection}"

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Count the outcomes of the training runs."""
        codes = self._codes(view.features)
        keys, known = codes(view)
        size = codes.size
        prior = np.full(size, 0.5)
        fallback: Callable[[View], Floats] | None = None
        if self.smooth and len(view.features.rows) > 2:
            fallback = Logistic().fit(view, left)
            # Outcomes of one projection share nearly one log odds: that of any of their runs.
            prior[keys] = 1 / (1 + np.exp(-np.clip(fallback(view), -30, 30)))
        weight = PRIOR if fallback is not None else 1.0
        table = _log_ratio(keys[known], left[known], size, weight * prior, weight * (1 - prior))
        seen = np.zeros(size, dtype=np.bool_)
        seen[keys] = True

        def score(view: View) -> Floats:
            keys, known = codes(view)
            scores = table[keys]
            strange = ~(known & seen[keys])
            if strange.any():
                scores[strange] = 0.0 if fallback is None else fallback(view.part(strange))
            return scores

        return score

    def _codes(self, features: Features) -> _Codes:
        return _Codes(features, self.projection)

    @staticmethod
    def projections(features: Features) -> list[str]:
        """Return the projections whose tables are small enough."""
        return [p for p in ("all", "halves", "order") if _Codes(features, p).size]


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
        self.size = int(size) if size <= MOST_OUTCOMES else 0

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
class Logistic:
    """Log odds of a logistic regression on all features (scikit-learn)."""

    name = "logistic regression"

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Fit the regression."""
        from sklearn.linear_model import LogisticRegression

        if left.all() or not left.any():
            return lambda view: np.zeros(view.columns.shape[1])
        features = view.features
        step = -(-left.size // FITTED)
        matrix, left = features.matrix(view.part(slice(None, None, step))), left[::step]
        mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
        scale[scale == 0] = 1.0
        matrix = (matrix - mean) / scale
        model = LogisticRegression(C=1.0, solver="newton-cholesky", max_iter=60, tol=1e-3)
        model.fit(matrix, left)
        # The features are not standardised again for every block: the weights are.
        weights = model.coef_[0] / scale
        constant = float(model.intercept_[0] - weights @ mean)

        def score(view: View) -> Floats:
            total = np.full(view.columns.shape[1], constant)
            for row, weight in zip(features.rows, weights, strict=True):
                if weight:
                    total += weight * row(view)
            return np.round(total, DIGITS)

        return score


@dataclass(frozen=True)
class Boosting:
    """Log odds of gradient-boosted trees on all features (scikit-learn)."""

    name = "gradient boosting"

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Grow the trees."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        if left.all() or not left.any():
            return lambda view: np.zeros(view.columns.shape[1])
        features = view.features
        model = HistGradientBoostingClassifier(
            max_iter=60,
            max_leaf_nodes=12,
            min_samples_leaf=40,
            learning_rate=0.15,
            early_stopping=False,
            random_state=0,
        )
        step = -(-left.size // BOOSTED)
        view = view.part(slice(None, None, step))
        model.fit(features.matrix(view), left[::step])

        def score(view: View) -> Floats:
            odds: Floats = model.decision_function(features.matrix(view))
            return np.round(odds, DIGITS)

        return score


def models(view: View, left: Labels, *, thorough: bool) -> list[Model]:
    """Return the models worth fitting on these training runs.

    Parameters
    ----------
    thorough : bool
        False while many pairs are compared.
    """
    features = view.features
    if not features.rows:
        return []
    found: list[Model] = []
    outcomes = Table.projections(features)
    found += [Table(projection, smooth=thorough) for projection in outcomes]
    if "all" in outcomes and _Codes(features, "all").size <= 256:
        return found[:1]
    picked = screen(view, left, 4 if thorough else 2)
    found += [Threshold(i) for i in picked]
    if thorough and not features.discrete:
        found += [Histogram(i) for i in picked[:2]]
    if len(features.rows) > 2 and (thorough or "all" not in outcomes):
        found.append(Logistic())
    if thorough and not outcomes and len(features.columns) > 1 and left.size >= FEWEST_BOOSTED:
        found.append(Boosting())
    return found


def screen(view: View, left: Labels, most: int) -> list[int]:
    """Return the features that tell the worlds apart best: by information over all bins, and by their best tail."""
    step = -(-left.size // SCREENED)
    view, left = view.part(slice(None, None, step)), left[::step]
    worth = []
    for row in view.features.rows:
        values = row(view)
        edges = np.unique(np.quantile(values, np.linspace(0, 1, 17)[1:-1]))
        codes = np.searchsorted(edges, values, "right")
        both = np.stack([np.bincount(codes[world], minlength=edges.size + 1) for world in (left, ~left)]) + 0.5
        information = float(np.sum((both[0] - both[1]) ** 2 / both.sum(axis=0)))
        tails = np.concatenate([np.cumsum(both, axis=1)[:, :-1], np.cumsum(both[:, ::-1], axis=1)[:, :-1]], axis=1)
        tails = tails if tails.size else both
        ratio = np.abs(np.log(tails[0] / tails[1])) - 2 * np.sqrt((1 / tails).sum(axis=0))
        worth.append((information, float(ratio.max())))
    orders = np.argsort([[-value for value in criterion] for criterion in zip(*worth, strict=True)], kind="stable")
    picked: list[int] = []
    for pair in orders.T.tolist():
        picked += [i for i in dict.fromkeys(pair) if i not in picked]
    return picked[:most]
