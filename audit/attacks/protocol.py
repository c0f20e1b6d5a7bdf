"""What an attack on learners is, and what scores runs, of learners and of mechanisms alike."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ...mechanisms.numerics import rounded

if TYPE_CHECKING:
    from ...learners.protocol import Learner
    from ...mechanisms.view import View
    from ..encoding.features import Labels
    from ..play.pairs import Pair
    from ..play.transcripts import Transcripts
    from ..statistics.coupling import Codes

#: Log odds of a score that knows a run's world, where their mean is taken: one that is wrong costs as much.
_CERTAIN = 1000.0

#: What is seen of runs.
Seen = TypeVar("Seen", contravariant=True)


class Described(Protocol):
    """What a record says of an attack."""

    @property
    def name(self) -> str:
        """The attack's name in the record."""

    @property
    def exact(self) -> bool:
        """Whether the score is the exact log-likelihood ratio of what is seen."""

    @property
    def wording(self) -> str:
        """What an exact score is computed from, in the words of a report; empty for others."""


class FittedAttack(Described, Protocol[Seen]):
    """A score of runs. An event is thresholds on it, so every score is valid: a poor one costs power."""

    def score(self, seen: Seen) -> Floats:
        """Return the evidence for the left world, (runs,); nan is never guessed."""


class LearnerAttack(Described, Protocol):
    """An attack on learners, a class whose objects are fitted: what `FittedAttack` says, and how it is fitted."""

    @property
    def trained(self) -> bool:
        """Whether it learns from training runs."""

    @property
    def calibrated(self) -> bool:
        """Whether its log loss judges it where it is not exact: noise is integrated out, or a few arms are counted."""

    def applies(self, learner: Learner, pair: Pair, view: View, /) -> bool:
        """Tell whether it can attack this learner on this pair, from what this view shows."""

    def fit(self, learner: Learner, pair: Pair, train: Transcripts | None, /) -> FittedAttack[Any]:
        """Return the score, fitted on training runs if it is trained."""


class LawAttack(ABC):
    """An attack on learners that is made from the learner's law alone."""

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    trained: ClassVar[bool] = False
    calibrated: ClassVar[bool] = False
    wording: ClassVar[str] = ""

    def __init__(self, learner: Learner, pair: Pair) -> None:
        self.learner, self.pair = learner, pair

    @staticmethod
    @abstractmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """Tell whether it can attack this learner on this pair, from what this view shows."""

    @classmethod
    def fit(cls, learner: Learner, pair: Pair, train: Transcripts | None) -> Self:
        """Return the attack; it needs no training."""
        return cls(learner, pair)

    @abstractmethod
    def score(self, transcripts: Transcripts) -> Floats:
        """Return the evidence for the left world, (runs,)."""


@dataclass(frozen=True)
class Scorer(Generic[Seen]):
    """A fitted attack that is a function of what is seen."""

    name: str
    function: Callable[[Seen], Floats]
    exact: bool = False
    wording: str = ""

    def score(self, seen: Seen) -> Floats:
        """Return the function's value."""
        return self.function(seen)


def log_losses(scores: Floats, left: NDArray[np.bool_]) -> Floats:
    """Return minus the log probability that scores, log odds, give to each run's own world; that of a coin for nan."""
    odds = np.nan_to_num(scores, nan=0.0, posinf=_CERTAIN, neginf=-_CERTAIN)
    losses: Floats = np.logaddexp(0.0, np.where(left, -odds, odds))
    return losses


def log_loss(scores: Floats, left: NDArray[np.bool_], *, other_odds: Floats | None = None) -> float:
    """Return the mean of `log_losses`, rounded.

    With the scores of another attack beside, whose odds are exact, two standard errors of the difference are added:
    what tells no more than chance leaves open is no better.
    """
    losses = log_losses(scores, left)
    spread = (
        0.0 if other_odds is None else float((losses - log_losses(other_odds, left)).std()) / math.sqrt(losses.size)
    )
    return float(rounded(losses.mean() + 2 * spread))


def log_ratio(
    codes: Codes, left: Labels, size: int, prior_left: Floats | float, prior_right: Floats | float
) -> Floats:
    """Return the log ratio of the two worlds' counts of each code, from 0 to size - 1, with these added to them."""
    in_left = np.bincount(codes[left], minlength=size) + prior_left
    in_right = np.bincount(codes[~left], minlength=size) + prior_right
    ratio: Floats = rounded(np.log(in_left) - np.log(in_right))
    return ratio


class NoEvidence:
    """A fitted attack that says nothing of any run: where the outputs are constant."""

    name, exact, wording = "none", False, ""

    def score(self, outputs: NDArray[np.generic] | Sized) -> Floats:
        """Return nan for every run."""
        runs = outputs.shape[-1] if isinstance(outputs, np.ndarray) else len(outputs)
        return np.full(runs, math.nan)
