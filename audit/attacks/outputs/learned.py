"""Attacks learned from the features of outputs, by training runs alone: what they are, one feature, and trees.

All are fitted before certification, so a poor one costs power and never validity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import rounded
from ...encoding.features import Columns, Features, LabelledColumns, Labels, Outputs
from ...statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS
from ..protocol import Scorer

#: The most training runs that screening and boosting use.
SCREENED, BOOSTED = 50_000, 50_000
#: Numbers of runs that a guess of an outcome's odds may be worth.
PRIORS = (8.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


def quantiles(values: Floats, bins: int, *, method: Literal["linear", "higher"] = "linear") -> Floats:
    """Return the inner edges, none twice, of so many bins that hold equal shares of some values."""
    ordered = np.sort(values)  # faster than the partition by so many places that NumPy makes of others
    edges: Floats = np.unique(np.quantile(ordered, np.linspace(0, 1, bins + 1)[1:-1], method=method))
    return edges


def on_outputs(attack: Scorer[Columns], encoder: Callable[[Outputs], Floats], features: Features) -> Scorer[Outputs]:
    """Return a fitted attack on features as one on the raw outputs that they are made from."""
    return Scorer(attack.name, lambda outputs: attack.score(features.view(encoder(outputs))))


class OutputAttack(ABC):
    """An attack on what is known of a mechanism: its outputs, as features."""

    #: Whether the score estimates the log odds of the left world.
    log_odds: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The attack's name in the record."""

    @property
    def doubt(self) -> float:
        """Standard errors to take off what the score's best event promises: see `event_choice.choose`."""
        return DOUBT_OF_LOG_ODDS if self.log_odds else DOUBT

    @property
    def needs_other_runs(self) -> bool:
        """Whether it can only be judged by other runs than those that it learned from."""
        return True

    def fit(self, mechanism: object, pair: object, train: LabelledColumns) -> Scorer[Columns]:
        """Return the score, fitted on training runs."""
        return Scorer(self.name, self.learn(train))

    def cross_fitted(self, mechanism: object, pair: object, train: LabelledColumns) -> Floats:
        """Return the scores of all runs, of each by the attack as it was fitted on the other half of them."""
        if not self.needs_other_runs:
            return self.fit(mechanism, pair, train).score(train)
        scores = np.empty(train.left.size)
        halves = [train.every(2, i) if train.coupled else train.part(train.fold(i)) for i in (0, 1)]
        for i, half in enumerate(halves):
            scores[train.fold(i)] = self.fit(mechanism, pair, halves[1 - i]).score(half)
        return scores

    @abstractmethod
    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Return the evidence for the left world, (runs,), as a function of views."""


@dataclass(frozen=True)
class SingleFeature(OutputAttack):
    """One feature as it is, or its negative: the event's thresholds do the rest."""

    index: int
    feature: str
    sign: float = 1.0

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return f"single feature ({'' if self.sign > 0 else 'minus '}{self.feature})"

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Learn nothing."""
        feature = train.features.rows[self.index]
        return lambda view: self.sign * rounded(feature(view))


def worth_of(prior: Floats, places: NDArray[np.int64], left: Labels) -> float:
    """Return how many runs a guess of each outcome's share of the left world is worth: what makes the runs likeliest.

    The shares stray from the guess by a beta distribution [1]_: a guess that says what the runs say is worth many.

    Parameters
    ----------
    prior : array (outcomes,)
    places : int array (runs,)
        The outcome of each run.
    left : bool array (runs,)

    References
    ----------
    .. [1] D. Williams. The analysis of binary responses from toxicological experiments. Biometrics 31, 1975.
    """
    own_counts, other_counts = (np.bincount(places[world], minlength=prior.size) for world in (left, ~left))
    evidence = [
        float(np.sum(special.betaln(own_counts + a, other_counts + b) - special.betaln(a, b)))
        for a, b in ((weight * prior, weight * (1 - prior)) for weight in PRIORS)
    ]
    return PRIORS[int(np.argmax(rounded(np.array(evidence), 6)))]


def nothing(view: Columns) -> Floats:
    """Return the score of an attack that had nothing to learn from: 0 for every run."""
    return np.zeros(view.columns.shape[1])


@dataclass(frozen=True)
class Boosting(OutputAttack):
    """Log odds of gradient-boosted trees on all features (scikit-learn)."""

    name, log_odds = "gradient boosting", True

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Grow the trees."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        if train.of_one_world:
            return nothing
        features = train.features
        model = HistGradientBoostingClassifier(
            max_iter=60,
            max_leaf_nodes=12,
            min_samples_leaf=40,
            learning_rate=0.15,
            early_stopping=False,
            random_state=0,
        )
        sample = train.thinned(BOOSTED)
        model.fit(features.matrix(sample), sample.left)

        def score(view: Columns) -> Floats:
            odds: Floats = model.decision_function(features.matrix(view))
            return rounded(odds)

        return score
