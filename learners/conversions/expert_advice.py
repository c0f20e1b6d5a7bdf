"""Bandits with expert advice from any bandit: the experts are its arms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace, Noise
from ..abilities import has_release
from ..next_arm import next_arm
from ..paths import Paths, by_arm, of_action
from ..problems.advice import Advice
from ..protocol import Arms, FeedbackKind, Learner
from ..sampling import draw_arm
from .batched import BatchedLaplace
from .reduction import BanditReduction, GaussianReduction


@dataclass
class AdvisedState:
    """The inner learner's state, the expert it follows in each run, and the round from 0."""

    inner: object
    expert: Arms
    rounds: int


@dataclass(frozen=True, kw_only=True)
class ExpertAdvice:
    """Let a bandit over N experts name an expert, draw the action from its advice, and feed it the action's loss.

    Asi, Raman & Talwar 2025, Algorithm 5 (after Auer et al. 2002).

    **Claim** (Theorem 7): as private as the inner learner, for every advice, by post-processing. What is released is
    the actions, not the experts. Within a batch of the inner learner the expert is held, the action is not. The
    release is the inner learner's, if it has one.

    Parameters
    ----------
    inner : Learner
        A bandit learner with one arm per expert.
    advice : Advice
        The experts' distributions over arms.
    """

    inner: Learner = field(kw_only=False)
    advice: Advice
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        if self.inner.arms != self.advice.experts:
            raise ValueError(
                f"the inner learner must have one arm per expert: {self.advice.experts}, got {self.inner.arms}"
            )

    @property
    def arms(self) -> int:
        """The number of actions."""
        return self.advice.arms

    @property
    def noise(self) -> Noise:
        """The law of the noise on the inner learner's release; none if it has none."""
        return self.inner.noise if has_release(self.inner) else Laplace(0.0)

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what is fed depends: on the action's loss, whichever expert was followed."""
        inner = self.inner
        arms = hasattr(getattr(inner, "inner", None), "probabilities")
        by_action = type(inner) is BatchedLaplace or (type(inner) in (BanditReduction, GaussianReduction) and arms)
        return by_arm(self.arms) if by_action and of_action(left, right) else None

    def start(self, runs: int, draws: Draws) -> AdvisedState:
        """Return the inner learner's fresh state."""
        return AdvisedState(self.inner.start(runs, draws), np.zeros(runs, dtype=np.intp), 0)

    def act(self, state: AdvisedState, draws: Draws) -> Arms:
        """Draw the action from the advice of the expert that the inner learner names."""
        state.expert = self.inner.act(state.inner, draws)
        return draw_arm(self.advice.at(state.rounds).T.take(state.expert, axis=1), draws)

    def update(self, state: AdvisedState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Feed the action's loss to the followed expert."""
        self.inner.update(state.inner, state.expert, feedback, draws)
        state.rounds += 1

    def next_arm(self, state: AdvisedState) -> Floats:
        """Return the law of the next action, (arms, runs): given the expert where it is held."""
        advice, law = self.advice.at(state.rounds).T, next_arm(self.inner, state.inner)
        law_of_arms: Floats = advice.take(state.expert, axis=1) if law is None else advice @ law
        return law_of_arms

    def release(self, state: AdvisedState) -> Floats | None:
        """Return what the inner learner released, if anything."""
        return self.inner.release(state.inner) if has_release(self.inner) else None

    def release_means(self, actions: Arms, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the noiseless releases: they depend on the losses fed, whichever expert was followed."""
        assert has_release(self.inner)
        return self.inner.release_means(actions, releases, feedback)
