"""A plain class as a mechanism that is called run by run, on a generator of its own or on none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...learners.blame import name_of
from ...learners.protocol import Learner, LearnerError
from ...learners.scalar import Scalar
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Draws
from ...mechanisms.view import ACTIONS, View
from .learner_mechanism import Block, LearnerMechanism
from .raising import outcome_of


class _Own(Draws):
    """The draws of one run, whose generator is given."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(0)
        self.generator = rng

    def run_generator(self, run: int) -> np.random.Generator:
        """Return the generator."""
        return self.generator


@dataclass(frozen=True)
class RunByRun:
    """Play an object of a plain class on a sequence of rounds.

    Attributes
    ----------
    learner : Scalar
    view : View
        What is seen: see `Claim`.
    raising : bool
        Whether an exception of its methods is an outcome: it stands behind what was seen before it.
    """

    learner: Scalar
    view: View = ACTIONS
    raising: bool = False
    batched: ClassVar[bool] = False

    @property
    def __name__(self) -> str:
        return name_of(self.learner)

    def __call__(self, data: Any, rng: np.random.Generator) -> object:
        """Return what is seen of one run."""
        block = Block(self.learner, self.view, (data, data), np.ones(1, dtype=np.bool_))
        raised: list[object] = []
        try:
            block.play(_Own(rng))
        except LearnerError as error:
            outcome = outcome_of(error.__cause__) if self.raising else None
            if outcome is None:
                raise
            raised.append(outcome)
        seen = block.outputs()
        run = seen[:, 0].tolist() if isinstance(seen, np.ndarray) else seen[0]
        return [*run, *raised] if isinstance(run, list) else {**run, "raised": raised}


def played_alone(claim: Claim, *, os_random: bool) -> bool:
    """Return whether the runs of a learner are played one by one: exceptions count, or nothing can be seeded."""
    return os_random or claim.raising == "outcome"


def player_of(learner: Learner, claim: Claim, *, run_by_run: bool) -> LearnerMechanism | RunByRun:
    """Return what plays a learner on a sequence of rounds: all runs at once, or each alone.

    Raises
    ------
    ValueError
        For a learner that plays many runs at once, or a view that depends on both inputs, where each is played alone.
    """
    if not run_by_run:
        return LearnerMechanism(learner, claim.view)
    raising = claim.raising == "outcome"
    option = "raising" if raising else "os_random"
    if not isinstance(learner, Scalar):
        raise ValueError(f"{option} is for plain classes, and {name_of(learner)} plays many runs at once")
    if claim.view.without_own:
        raise ValueError(f"{option} plays each run alone: it takes no surface {claim.surface}")
    return RunByRun(learner, claim.view, raising)
