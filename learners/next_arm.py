"""The law of the next arm given all that a state holds, noise too: what a run's loss is expected to be."""

from __future__ import annotations

from typing import Any

from ..mechanisms.draws import Floats
from .abilities import is_ours
from .protocol import Learner


def states_next_arm(learner: Learner) -> bool:
    """Tell whether a learner says the law of its next arm in every state, and is exactly ours as it is written.

    `probabilities` may say more than the losses show: of a learner that has noise of its own it is no law of the arms
    given the losses, but it is one given the state. Nobody else's word is taken for how it plays.
    """
    return is_ours(learner) and _states(learner)


def _states(learner: Learner) -> bool:
    if not (hasattr(learner, "next_arm") or hasattr(learner, "probabilities")):
        return False
    inner = getattr(learner, "inner", None)
    return inner is None or _states(inner)


def next_arm(learner: Any, state: object) -> Floats | None:
    """Return the law of the next arm, (arms, runs); None where the arm of the round before is held."""
    law: Floats | None = (learner.next_arm if hasattr(learner, "next_arm") else learner.probabilities)(state)
    return law
