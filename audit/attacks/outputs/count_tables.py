"""Tables of counts: of the outcomes of a mechanism, and of their projections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ...encoding.features import Columns, Features, LabelledColumns, Labels
from ...statistics.coupling import Places
from ...statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS
from ..protocol import log_ratio
from .learned import SCREENED, OutputAttack, nothing, worth_of
from .regressions import Logistic

#: The most possible outcomes of a table of few; how often on average training must show the outcomes of one, if these
#: are many, and of a larger one: what is seen once says nothing of its kind.
MOST_OUTCOMES, TWICE, REPEATED = 2**16, 2, 16
#: Outcomes up to which a table is of few, and up to which it may be judged by the runs that it was counted on: each
#: outcome has many of them, and counts alone are used. Beyond, the regression's prediction is a prior.
FEW_OUTCOMES, FEWER_OUTCOMES = 256, 24


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
        keys, is_coded = codes(train)
        outcomes, places, times = np.unique(keys[is_coded], return_inverse=True, return_counts=True)
        if not outcomes.size:
            return nothing
        lookup, prior, weight = Places.of(outcomes, codes.size), np.full(outcomes.size, 0.5), 1.0
        fallback: Callable[[Columns], Floats] | None = None
        max_outcomes = FEW_OUTCOMES if train.coupled else FEWER_OUTCOMES
        if self.smooth and outcomes.size > max_outcomes and len(train.features.rows) > 2:
            fallback = Logistic().learn(train)
            # Of a projection, runs of one outcome may differ by the regression.
            shares = special.expit(np.clip(fallback(train)[is_coded], -30, 30))
            prior = np.bincount(places, shares, outcomes.size) / times
            weight = worth_of(prior, places, train.left[is_coded])
        ratios = log_ratio(places, train.left[is_coded], outcomes.size, weight * prior, weight * (1 - prior))
        table = np.append(ratios, 0.0)  # of strange outcomes

        def score(view: Columns) -> Floats:
            keys, is_coded = codes(view)
            places = lookup(keys)
            if not is_coded.all():
                places = np.where(is_coded, places, outcomes.size)
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
                countable = codes.size <= MOST_OUTCOMES
                if keys <= (max(FEW_OUTCOMES, runs // TWICE) if countable else runs // REPEATED):
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
            integral = bool(np.isfinite(values).all() and (values == np.round(values)).all())
            if count < 2 or not integral:
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
        keys, is_coded = np.zeros(runs, dtype=np.int64), np.ones(runs, dtype=np.bool_)
        if self.projection == "all":
            for i, size in enumerate(self.sizes):
                kinds = view.kinds(i)
                keys *= size
                keys += np.maximum(kinds, 1) - np.uint8(1)
                is_coded &= kinds > 0
            return keys, is_coded
        if self.projection == "halves":
            parts = np.rint(view.halves - self.offset).astype(np.int64)
        else:
            parts = np.stack([(view.columns == value).sum(axis=0) for value in self.values])
        for part, size in zip(parts, self.sizes, strict=True):
            is_coded &= (part >= 0) & (part < size)
            keys = keys * size + np.clip(part, 0, size - 1)
        return keys, is_coded


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
