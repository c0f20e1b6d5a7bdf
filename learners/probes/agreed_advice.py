"""The agreed advice: bandits with experts who agree, to see what an action tells of the advice that it follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ..checks import check_arms
from ..protocol import Arms, FeedbackKind
from ..sampling import draw_arm


@dataclass
class AdviceState:
    """The distribution over arms that all experts advise for this round, (arms, runs)."""

    advice: Floats


@dataclass(frozen=True, kw_only=True)
class AgreedAdvice:
    """Draw the arm from the advice on which all experts agree: the vector of the round before, as shares of its sum.

    Asi, Raman & Talwar 2025, Algorithm 5, where the experts agree: whichever expert the inner bandit names, with
    whatever noise, the action is drawn from the same advice. What is replaced is a round's advice, so that is what a
    round is told here; losses would change nothing. Where no arm has a share all have the same.

    **Claim**: none of its own.

    Parameters
    ----------
    arms : int
        At least 1.
    """

    arms: int
    feedback: FeedbackKind = "full"

    def __post_init__(self) -> None:
        check_arms(self.arms)

    def start(self, runs: int, draws: Draws) -> AdviceState:
        """Return the state of a first round in which all arms are advised alike."""
        return AdviceState(np.full((self.arms, runs), 1 / self.arms))

    def act(self, state: AdviceState, draws: Draws) -> Arms:
        """Return an arm drawn from the advice."""
        return draw_arm(state.advice, draws)

    def update(self, state: AdviceState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Hear the advice for the next round."""
        losses = np.broadcast_to(feedback, state.advice.shape)
        total = losses.sum(axis=0)
        state.advice = np.where(total > 0, losses / np.where(total > 0, total, 1.0), 1 / self.arms)

    def probabilities(self, state: AdviceState) -> Floats:
        """Return the advice, (arms, runs)."""
        return state.advice
