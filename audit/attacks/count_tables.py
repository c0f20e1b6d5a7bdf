"""Tables of counts: of the outcomes of a mechanism, of their projections and patterns, of sequences of points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ..play.transcripts import Transcripts
from ..statistics.bounds.rounding import rounded
from ..statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS
from .features import Features, LabelledView, Labels, View
from .learned import SCREENED, Logistic, OutputAttack, nothing

#: The largest table of outcomes, or how often a larger one must see each on average.
MOST_OUTCOMES, REPEATED = 2**16, 16
#: A table of so few outcomes leaves nothing to learn; in larger ones the regression's word is worth so many runs.
FEW_OUTCOMES, PRIOR = 256, 8.0
#: In a table of so few outcomes each has runs enough that the table may be judged by the runs that made it.
FEWER_OUTCOMES = 24
MOST_PATTERNS = 64
BINS = 24
#: Digits to which points are compared: the same point may be computed in several ways.
DIGITS = 6
#: The most different sequences of points, and the fewest training runs for each of them on average.
MOST_SEQUENCES, FEWEST = 20_000, 20


@dataclass(frozen=True)
class Histogram(OutputAttack):
    """The smoothed log ratio of one feature's counts between its quantiles."""

    coarse = True

    index: int
    feature: str

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return f"histogram ({self.feature})"

    def learn(self, train: LabelledView) -> Callable[[View], Floats]:
        """Count."""
        feature = train.features.rows[self.index]
        row = feature(train)
        edges = np.unique(np.quantile(row, np.linspace(0, 1, BINS + 1)[1:-1]))
        table = _log_ratio(np.searchsorted(edges, row, "right"), train.left, edges.size + 1, 0.5, 0.5)
        return lambda view: table[np.searchsorted(edges, feature(view), "right")]


def _log_ratio(
    codes: NDArray[np.int64], left: Labels, size: int, prior_left: Floats | float, prior_right: Floats | float
) -> Floats:
    in_left = np.bincount(codes[left], minlength=size) + prior_left
    in_right = np.bincount(codes[~left], minlength=size) + prior_right
    ratio: Floats = rounded(np.log(in_left) - np.log(in_right))
    return ratio


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
            # Outcomes of one projection share nearly one log odds: that of any of their runs.
            representative = train.part(np.flatnonzero(known)[first])
            prior = 1 / (1 + np.exp(-np.clip(fallback(representative), -30, 30)))
        table = _log_ratio(places, train.left[known], outcomes.size, weight * prior, weight * (1 - prior))

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
            parts.append((edges, _log_ratio(codes, train.left[here], edges.size + 1, 0.5, 0.5)))

        def score(view: View) -> Floats:
            keys, rest = self.keys(view), view.clean.sum(axis=0)
            scores = np.zeros(keys.size)
            for pattern, (edges, table) in zip(patterns, parts, strict=True):
                here = keys == pattern
                scores[here] = table[np.searchsorted(edges, rest[here], "right")]
            return scores

        return score


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
        found = np.searchsorted(self.known, keys).clip(max=self.known.size - 1)
        scores: Floats = np.where(self.known[found] == keys, self.table[found], 0.0)
        return scores
