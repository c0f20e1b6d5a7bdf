"""The chooser of events: from what is known of scores on either input to the event that promises most of a claim.

Three rules stand behind it, by what is known and claimed: `event_rule` for scores of few attacks, `event_choice` for
the best of many that were learned, and `measure_choice` for claims in other measures than epsilon. Early audits bet
(`sequential`), and weak claims with many runs follow the trend of coupled runs (`event_choice.choose_by_trend`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ...mechanisms.measures.measure import Measure
from . import event_choice
from .event_choice import DOUBT_OF_LOG_ODDS, Certification, Odds, PilotScores
from .event_rule import choose_by_labels, choose_by_odds, choose_from_laws
from .events import Event, bound_of, count
from .measure_choice import Cells, choose

#: The error of the bounds by which pilots of few scores rank events: a ranking needs less confidence than a verdict.
RANKED = 0.2


@dataclass(frozen=True)
class Learned:
    """How scores were learned.

    Attributes
    ----------
    doubt : float
        Standard errors of the pilot taken off what an event promises.
    odds : Odds
        How far scores that estimate log odds are believed.
    min_promise : float
        The bound (nats) up to which a promise is of next to nothing.
    """

    doubt: float
    odds: Odds = Odds.ESTIMATED
    min_promise: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """What is known of the scores of outputs on the left and on the right input.

    Attributes
    ----------
    scores : array (runs,)
        Of pilot runs: how much each speaks for the left input; nan is never guessed.
    left : bool array (runs,)
        True where a run had the left input.
    log_odds : bool
        Whether scores estimate the log odds of the left input.
    exact : bool
        Whether they are these log odds, but for the error of a filter: then they tell more than the labels.
    laws : tuple of arrays (outcomes,), optional
        Of all outcomes the score, and the exact probability on the left and on the right input. Then no runs are
        needed.
    learned : Learned, optional
        How scores were learned, of the best of many attacks.
    """

    scores: Floats = field(default_factory=lambda: np.zeros(0))
    left: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    log_odds: bool = False
    exact: bool = False
    laws: tuple[Floats, Floats, Floats] | None = None
    learned: Learned | None = None

    @property
    def cells(self) -> Cells:
        """How likely cells of neighbouring scores are on either input."""
        if self.laws is not None:
            return Cells.of_laws(*self.laws)
        return Cells.of_scores(self.scores, self.left, log_odds=self.log_odds)


def choose_event(evidence: Evidence, measure: Measure, *, alpha: float, runs: int) -> tuple[Event, float]:
    """Return the event that promises most of a claim, and what it promises.

    Parameters
    ----------
    evidence : Evidence
    measure : Measure
        The claim.
    alpha : float
        The certificate's.
    runs : int
        The counted runs to come, of both inputs together.

    Returns
    -------
    event : Event
    level : float
        In the measure's unit; where nothing is promised a number of at most 0 that ranks events still. Of a claim of
        epsilon pilot runs tell it: nan where there are only laws.
    """
    learned = evidence.learned
    if not measure.is_epsilon:
        doubt = DOUBT_OF_LOG_ODDS if learned is None else learned.doubt
        return choose(evidence.cells, measure, alpha=alpha, runs=runs, doubt=doubt)
    delta, scores, left = measure.stated[1], evidence.scores, evidence.left
    if learned is not None:
        pilot = PilotScores(scores, left, learned.odds if evidence.log_odds else Odds.NONE, learned.doubt)
        return event_choice.choose(pilot, Certification(delta, alpha, runs, learned.min_promise))
    if evidence.laws is not None:
        event = choose_from_laws(*evidence.laws, delta=delta, alpha=alpha, runs=runs)
    else:
        rule = choose_by_odds if evidence.exact else choose_by_labels
        event = rule(scores, left, delta=delta, alpha=alpha, runs=runs)
    return event, promised_by_counts(event, evidence, delta)


def promised_by_counts(event: Event, evidence: Evidence, delta: float) -> float:
    """Return the bound on epsilon that the pilot's own counts of an event would give: a ranking, no certificate."""
    if not evidence.scores.size:
        return math.nan
    counts = count(event, evidence.scores, evidence.left)
    bound = bound_of(event, counts, delta=delta, alpha=RANKED, margins=())
    return bound if bound > 0 or not counts.guesses else float(counts.right / counts.guesses - 1)
