"""Learners that learn, each beside versions that hardly do: planted faults of regret, and bounds that they break."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace
from ..bandits.exp3 import Exp3
from ..leaders.ftrl import Ftrl
from ..problems.domains import EntropySimplex
from ..protocol import Actions, FeedbackKind, Learner, State


@dataclass
class WrappedState:
    """The state of the learner inside, and the rounds that it was told of."""

    inner: State
    rounds: int = 0


@dataclass(frozen=True)
class Wrapped:
    """A learner with a fault between it and the game."""

    inner: Learner
    rounds: int

    @property
    def arms(self) -> int:
        """The number of arms."""
        return self.inner.arms

    @property
    def feedback(self) -> FeedbackKind:
        """What the learner is told."""
        return self.inner.feedback

    def start(self, runs: int, draws: Draws) -> WrappedState:
        """Return the inner state, before the first round."""
        return WrappedState(self.inner.start(runs, draws))

    def act(self, state: WrappedState, draws: Draws) -> Actions:
        """Play what the inner learner plays."""
        return self.inner.act(state.inner, draws)

    def update(self, state: WrappedState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Pass the losses on."""
        state.rounds += 1
        self.inner.update(state.inner, actions, feedback, draws)


class FlippedSign(Wrapped):
    """The losses are passed on as gains."""

    def update(self, state: WrappedState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Pass the losses on with the other sign."""
        super().update(state, actions, -feedback, draws)


class WrongArm(Wrapped):
    """Each arm is told the loss of the next one."""

    def update(self, state: WrappedState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Pass the losses on, one arm off."""
        super().update(state, actions, np.roll(feedback, 1, axis=0), draws)


class ForgetsAfterHalf(Wrapped):
    """From half-time on it begins anew after every round."""

    def update(self, state: WrappedState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Learn, and forget."""
        super().update(state, actions, feedback, draws)
        if state.rounds >= self.rounds // 2:
            state.inner = self.inner.start(actions.shape[-1], draws)


class ForgetsOften(Wrapped):
    """It begins anew after every sqrt(T) rounds."""

    def update(self, state: WrappedState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Learn, and forget."""
        super().update(state, actions, feedback, draws)
        if state.rounds % math.isqrt(self.rounds) == 0:
            state.inner = self.inner.start(actions.shape[-1], draws)


class NeverTheFirst(Wrapped):
    """The first arm's weight goes to the last."""

    def act(self, state: WrappedState, draws: Draws) -> Actions:
        """Play the inner learner's point without its first arm."""
        points = np.array(super().act(state, draws), dtype=float)
        points[-1] += points[0]
        points[0] = 0.0
        return points


@dataclass(frozen=True, kw_only=True)
class RegretSubject:
    """A learner with a bound on its regret that is proved, and the faults that can be planted in it.

    Attributes
    ----------
    name : str
    losses : str
        The loss set of the bound.
    build : callable
        From T to the sound learner.
    bound : callable
        From T.
    faults : mapping
        From a fault's name to what it does and what makes the faulty learner of the sound one and T.
    """

    name: str
    losses: str
    build: Callable[[int], Learner]
    bound: Callable[[int], float]
    faults: Mapping[str, tuple[str, Callable[[Any, int], Learner]]]

    def planted(self, fault: str, rounds: int) -> Learner:
        """Return the learner with a fault; with none, the sound one."""
        sound = self.build(rounds)
        return self.faults[fault][1](sound, rounds) if fault else sound


SUBJECTS = (
    RegretSubject(
        name="regret of Hedge",
        losses="symmetric",
        build=lambda rounds: Ftrl(
            domain=EntropySimplex(2), rounds=rounds, eta=math.sqrt(2 * math.log(2) / rounds), noise=Laplace(0.0)
        ),
        bound=lambda rounds: math.sqrt(2 * rounds * math.log(2)),
        faults={
            "learning rate 0": ("its weights hardly move", lambda sound, _: replace(sound, eta=1e-9)),
            "sign flipped": ("the losses are passed on as gains", FlippedSign),
            "wrong arm": ("each arm is told the loss of the next", WrongArm),
            "forgets after T/2": ("from half-time on it begins anew after every round", ForgetsAfterHalf),
            "forgets every sqrt(T) rounds": ("it begins anew after every sqrt(T) rounds", ForgetsOften),
            "never the first arm": ("the first arm's weight goes to the last", NeverTheFirst),
        },
    ),
    # Auer, Cesa-Bianchi, Freund & Schapire 2002, Corollary 3.2: 2.63 sqrt(g K ln K), g = T.
    RegretSubject(
        name="regret of EXP3",
        losses="unit",
        build=lambda rounds: Exp3(arms=2, eta=_mixing(rounds) / 2, gamma=_mixing(rounds)),
        bound=lambda rounds: 2.63 * math.sqrt(2 * rounds * math.log(2)),
        faults={
            "exploration 1": ("every arm is drawn alike for ever", lambda sound, _: replace(sound, gamma=1.0)),
            "sign flipped": ("the losses are passed on as gains", FlippedSign),
        },
    ),
)


def _mixing(rounds: int) -> float:
    """Return the exploration of Corollary 3.2, which is the learning rate times K too."""
    return min(1.0, math.sqrt(2 * math.log(2) / ((math.e - 1) * rounds)))
