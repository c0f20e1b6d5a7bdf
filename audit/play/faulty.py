"""Targets with a fault planted in their noise: what an audit plays to see whether it notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...learners.blame import name_of
from ...mechanisms.draws import Draws
from ...mechanisms.faults import Fault, FaultyDraws


class FaultyMechanism:
    """A mechanism with a fault in its noise, called run by run or batched."""

    def __init__(self, mechanism: Callable[..., object], fault: Fault) -> None:
        self.mechanism, self.fault = mechanism, fault
        self.batched, self.in_step = (getattr(mechanism, name, False) for name in ("batched", "in_step"))
        self.__name__ = name_of(mechanism)

    @property
    def play_block(self) -> Callable[..., Any]:
        """What plays a block, of a mechanism that does so."""
        return partial(self.mechanism.play_block, fault=self.fault)  # type: ignore[attr-defined]

    def __call__(self, data: object, source: Any, *more: object) -> object:
        """Answer once, or for all runs of a block."""
        faulty = FaultyDraws(source, self.fault) if self.batched else self.fault.generator(source)
        return self.mechanism(data, faulty, *more)


@dataclass(frozen=True)
class FaultyLearner:
    """A batched learner with a fault in its noise."""

    learner: Any
    fault: Fault

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("learner", "fault"):
            raise AttributeError(name)
        return getattr(self.learner, name)

    def start(self, runs: int, draws: Draws) -> Any:
        """Begin, on faulty draws."""
        return self.learner.start(runs, FaultyDraws(draws, self.fault))

    def act(self, state: Any, draws: Draws) -> Any:
        """Act, on faulty draws."""
        return self.learner.act(state, FaultyDraws(draws, self.fault))

    def update(self, state: Any, actions: Any, feedback: Any, draws: Draws) -> None:
        """Learn, on faulty draws."""
        self.learner.update(state, actions, feedback, FaultyDraws(draws, self.fault))
