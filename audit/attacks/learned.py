"""Learned attacks: evidence for the left world from features of the outputs, by training runs alone.

All are fitted before certification, so a poor one costs power and never validity.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ..statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS
from ..statistics.rounding import rounded, significant
from .features import Features, Labels, View

#: The largest table of outcomes, or how often a larger one must see each on average.
MOST_OUTCOMES, REPEATED = 2**16, 16
#: A table of so few outcomes leaves nothing to learn; in larger ones the regression's word is worth so many runs.
FEW_OUTCOMES, PRIOR = 256, 8.0
#: In a table of so few outcomes each has runs enough that the table may be judged by the runs that made it.
FEWER_OUTCOMES = 24
#: Screening, regression and boosting look at no more runs.
SCREENED, FITTED, BOOSTED = 50_000, 300_000, 50_000
#: Where there are so many times the screened runs, the better features are screened again on as many more.
MANY = 8
FEWEST_BOOSTED = 8000
#: Decimals of a regression's weights, and leading bits of the means and deviations that features are standardised by.
WEIGHT_DIGITS, STANDARD_BITS = 4, 20
#: The spread of what is equal but for rounding, as a share of its size.
LAST_BITS = 1e-12
#: Features up to which a regression is fitted by Newton's method, whose result is good to many digits.
MOST_NEWTON = 512
MOST_PATTERNS = 64
BINS = 24


class Model(Protocol):
    """A way to make a score from training runs."""

    @property
    def name(self) -> str:
        """The attack's name in the record."""

    @property
    def log_odds(self) -> bool:
        """Whether the score says log odds of the left world."""

    @property
    def doubt(self) -> float:
        """Standard errors to take off what the score's best event promises: see `pilot.choose`."""

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Return the score: evidence for the left world, (runs,)."""


@dataclass(frozen=True)
class Threshold:
    """One feature as it is: the event's thresholds do the rest."""

    index: int
    feature: str
    log_odds, doubt = False, DOUBT

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return f"single feature ({self.feature})"

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Learn nothing."""
        feature = view.features.rows[self.index]
        return lambda view: rounded(feature(view))


@dataclass(frozen=True)
class Histogram:
    """The smoothed log ratio of one feature's counts between its quantiles."""

    index: int
    feature: str
    log_odds, doubt = False, DOUBT

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return f"histogram ({self.feature})"

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
    ratio: Floats = rounded(np.log(in_left) - np.log(in_right))
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
    outcomes : int
        How many were seen in training.
    """

    projection: str
    smooth: bool = True
    outcomes: int = FEW_OUTCOMES
    log_odds = True

    @property
    def few(self) -> bool:
        """Whether the outcomes are so few that the table needs no other runs to be judged by."""
        return self.outcomes <= FEWER_OUTCOMES

    @property
    def doubt(self) -> float:
        """Standard errors to take off: more where each outcome has few runs, and the best ones are best by luck."""
        return DOUBT_OF_LOG_ODDS if self.outcomes <= FEW_OUTCOMES else DOUBT

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return "table of outcomes" if self.projection == "all" else f"table of {self.projection}"

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Count the outcomes of the training runs."""
        codes = _Codes(view.features, self.projection)
        keys, known = codes(view)
        outcomes, first, places = np.unique(keys[known], return_index=True, return_inverse=True)
        if not outcomes.size:
            return lambda view: np.zeros(view.columns.shape[1])
        prior, weight = np.full(outcomes.size, 0.5), 1.0
        fallback: Callable[[View], Floats] | None = None
        if self.smooth and outcomes.size > FEW_OUTCOMES and len(view.features.rows) > 2:
            fallback, weight = Logistic().fit(view, left), PRIOR
            # Outcomes of one projection share nearly one log odds: that of any of their runs.
            some = view.part(np.flatnonzero(known)[first])
            prior = 1 / (1 + np.exp(-np.clip(fallback(some), -30, 30)))
        table = _log_ratio(places, left[known], outcomes.size, weight * prior, weight * (1 - prior))

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
        some = view.part(slice(None, None, step))
        found = {}
        for projection in ("all", "halves", "order"):
            codes = _Codes(view.features, projection)
            if codes.size:
                keys = np.unique(codes(some)[0]).size
                if codes.size <= MOST_OUTCOMES or keys <= some.columns.shape[1] // REPEATED:
                    found[projection] = keys
        return found


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
class Patterns:
    """The log ratio of the counts of every pattern of special values, and of the rest's sum in bins within it.

    Sparse vectors are such outputs: which queries were above, and the few numbers that were released.
    """

    name, log_odds, doubt = "table of patterns", True, DOUBT_OF_LOG_ODDS

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
    def applies(cls, view: View) -> bool:
        """Tell whether some numbers are special, in patterns that training runs repeat."""
        step = -(-view.columns.shape[1] // SCREENED)
        many = np.unique(cls.keys(view.part(slice(None, None, step)))).size
        return not view.features.discrete and 2 <= many <= MOST_PATTERNS

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Count."""
        patterns, places = np.unique(self.keys(view), return_inverse=True)
        rest = view.clean.sum(axis=0)
        parts = []
        for place in range(patterns.size):
            here = places == place
            edges = np.unique(np.quantile(rest[here], np.linspace(0, 1, BINS + 1)[1:-1]))
            codes = np.searchsorted(edges, rest[here], "right")
            parts.append((edges, _log_ratio(codes, left[here], edges.size + 1, 0.5, 0.5)))

        def score(view: View) -> Floats:
            keys, rest = self.keys(view), view.clean.sum(axis=0)
            scores = np.zeros(keys.size)
            for pattern, (edges, table) in zip(patterns, parts, strict=True):
                here = keys == pattern
                scores[here] = table[np.searchsorted(edges, rest[here], "right")]
            return scores

        return score


@dataclass(frozen=True)
class Logistic:
    """Log odds of a logistic regression on all features (scikit-learn)."""

    name, log_odds, doubt = "logistic regression", True, DOUBT_OF_LOG_ODDS

    def fit(self, view: View, left: Labels) -> Callable[[View], Floats]:
        """Fit the regression."""
        if left.all() or not left.any():
            return lambda view: np.zeros(view.columns.shape[1])
        features = view.features
        step = -(-left.size // FITTED)
        odds = LinearOdds.fit(features.matrix(view.part(slice(None, None, step))), left[::step])
        return lambda view: odds(view.columns.shape[1], lambda i: features.rows[i](view))


@dataclass(frozen=True)
class LinearOdds:
    """Log odds that are linear in features.

    Parameters
    ----------
    weights : array (features,)
    constant : float
    """

    weights: Floats
    constant: float

    @classmethod
    def fit(cls, matrix: Floats, left: Labels) -> LinearOdds:
        """Return those of a logistic regression (scikit-learn) on features (runs, features), of both worlds.

        What the training finds is rounded, far below its standard error: its sums depend on the processor, and scores
        of the same runs must not.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        mean, scale = (significant(some, STANDARD_BITS) for some in (matrix.mean(axis=0), matrix.std(axis=0)))
        told = scale > LAST_BITS * np.abs(matrix).max(
            axis=0
        )  # what varies less does so by rounding, which tells nothing
        scale[~told] = 1.0
        few = matrix.shape[1] <= MOST_NEWTON
        how = {"solver": "newton-cholesky", "max_iter": 60, "tol": 1e-3} if few else {"max_iter": 300}
        model = LogisticRegression(C=1.0, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a poor fit costs power, and another attack is picked
            model.fit(np.where(told, (matrix - mean) / scale, 0.0), left)
        # The features are not standardised again for every block: the weights are.
        weights = np.where(told, rounded(model.coef_[0], WEIGHT_DIGITS) / scale, 0.0)
        shift = sum(weight * middle for weight, middle in zip(weights.tolist(), mean.tolist(), strict=True))
        return cls(weights, float(rounded(model.intercept_[0], WEIGHT_DIGITS)) - shift)

    def __call__(self, runs: int, feature: Callable[[int], Floats]) -> Floats:
        """Return the log odds, (runs,), of runs whose features are told one by one: a sum in a fixed order."""
        total = np.full(runs, self.constant)
        for i in np.flatnonzero(self.weights).tolist():
            total += self.weights[i] * feature(i)
        return rounded(total)


@dataclass(frozen=True)
class Boosting:
    """Log odds of gradient-boosted trees on all features (scikit-learn)."""

    name, log_odds, doubt = "gradient boosting", True, DOUBT_OF_LOG_ODDS

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
            return rounded(odds)

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
    outcomes = Table.projections(view)
    found += [Table(name, smooth=thorough, outcomes=many) for name, many in outcomes.items()]
    if outcomes.get("all", MOST_OUTCOMES) <= FEW_OUTCOMES:
        return found[:1]
    if Patterns.applies(view):
        found.append(Patterns())
    picked = screen(view, left, 4 if thorough else 2)
    found += [Threshold(i, features.names[i]) for i in picked]
    if thorough and not features.discrete:
        found += [Histogram(i, features.names[i]) for i in picked[:2]]
    if len(features.rows) > 2 and (thorough or "all" not in outcomes):
        found.append(Logistic())
    if thorough and not outcomes and len(features.columns) > 1 and left.size >= FEWEST_BOOSTED:
        found.append(Boosting())
    return found


def screen(view: View, left: Labels, most: int) -> list[int]:
    """Return the features that tell the worlds apart best: by information over all bins, and by their best tail.

    All are looked at on few runs, and the better ones again where there are many: weak evidence needs them.
    """
    rows = list(range(len(view.features.rows)))
    step = -(-left.size // SCREENED)
    if step >= MANY:
        rows = _best_rows(view.part(slice(None, None, step)), left[::step], rows)[: len(rows) // 4 + most]
        step = -(-step // MANY)
    return _best_rows(view.part(slice(None, None, step)), left[::step], rows)[:most]


def _best_rows(view: View, left: Labels, rows: Sequence[int]) -> list[int]:
    """Return the numbers of some features, best first, by either criterion in turn."""
    worth = []
    for i in rows:
        values = view.features.rows[i](view)
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
    return [rows[i] for i in picked]
