"""A learner as a mechanism: its input a sequence of rounds, its output all that is released in playing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import name_of
from ...learners.problems.losses import feedback
from ...learners.protocol import Actions, HasContexts, HasRelease, Learner
from ...mechanisms.draws import Draws, Floats
from .mechanism_runs import DataPair
from .pairs import PairJson
from .rounds import Round, differing, loss_of, shows_nothing
from .transcripts import play_rounds


@dataclass(frozen=True)
class RoundsPair(DataPair):
    """Two neighbouring sequences of rounds."""

    left: list[Round]
    right: list[Round]

    @cached_property
    def places(self) -> list[int]:
        """Where they differ."""
        return differing(self.left, self.right)

    @property
    def rounds(self) -> int:
        """How many rounds both have."""
        return len(self.left)

    @property
    def difference(self) -> str:
        """Where the two worlds differ, in words."""
        if self.rounds == 1:
            return "one round"
        return f"pair differing in round{'s' * (len(self.places) > 1)} {', '.join(str(t + 1) for t in self.places)}"

    def shows_nothing(self, surface: str) -> bool:
        """Tell whether the worlds differ in the last losses alone, which come after all that any learner shows."""
        return surface != "publication" and shows_nothing(self.left, self.right)

    def to_json(self) -> PairJson:
        """Return the record's form: the differing rounds from 1, the first alone too, and both sequences."""
        differ = [t + 1 for t in self.places]
        return {**super().to_json(), "round": differ[0], "rounds": differ}


@dataclass(frozen=True)
class LearnerMechanism:
    """Play a learner on a sequence of rounds, or in step on two of them.

    Attributes
    ----------
    learner : Learner
        Built for a horizon: a shorter sequence is the beginning of a game.
    surface : str
        What is released: see `Claim`.
    """

    learner: Learner
    surface: str = "actions"
    batched, in_step = True, True

    @property
    def __name__(self) -> str:
        return name_of(self.learner)

    def __call__(
        self, data: Any, draws: Draws, runs: int, left: NDArray[np.bool_] | None = None
    ) -> NDArray[np.generic]:
        """Return what is released, (rows, runs): the actions round by round, and after them the releases.

        Parameters
        ----------
        data : sequence, or a pair of sequences
        left : bool array (runs,), optional
            Where data is a pair: in which world each run is.
        """
        in_left = np.ones(runs, dtype=np.bool_) if left is None else left
        worlds: Sequence[Sequence[Round]] = (data, data) if left is None else data
        horizon = len(worlds[0])
        shown = {"actions": 0, "publication": horizon}.get(self.surface, horizon - 1)
        block = _Block(self.learner, worlds, in_left, shown)
        play_rounds(
            self.learner,
            draws,
            runs,
            horizon,
            see=block.see,
            feed=block.feed,
            learned=block.learned,
            updates=horizon,  # the last one is seen where it raises: that leaves the sequence out
            before=block.before if block.contexts else None,
        )
        return np.concatenate([np.atleast_2d(row) for row in (*block.actions, *block.releases)])


class _Block:
    """What one block of runs is told, and what it releases."""

    def __init__(
        self, learner: Learner, worlds: Sequence[Sequence[Round]], left: NDArray[np.bool_], shown: int
    ) -> None:
        self.learner, self.worlds, self.left, self.shown = learner, worlds, left, shown
        self.losses = [[loss_of(round_) for round_ in world] for world in worlds]
        self.differ = set(differing(*worlds))
        self.contexts = any(isinstance(round_, dict) and "context" in round_ for round_ in (*worlds[0], *worlds[1]))
        self.actions: list[Actions] = []
        self.releases: list[Floats] = []

    def before(self, state: object) -> None:
        """Show the round's context, in each world its own."""
        t, observe = len(self.actions), cast(HasContexts, self.learner).observe
        if t not in self.differ:
            seen = [(self.worlds[0][t], np.ones_like(self.left))]
        else:
            seen = [(world[t], runs) for world, runs in zip(self.worlds, (self.left, ~self.left), strict=True)]
        for round_, runs in seen:
            if isinstance(round_, dict) and "context" in round_:
                observe(state, round_["context"], runs)

    def see(self, t: int, played: Actions) -> None:
        """Keep the actions."""
        self.actions.append(played.copy())

    def feed(self, t: int, played: Actions) -> Floats:
        """Return what every run is told, in its own world."""
        in_left, in_right = (feedback(losses[t], played, self.learner.feedback) for losses in self.losses)
        return np.where(self.left, in_left, in_right) if t in self.differ else in_left

    def learned(self, t: int, state: object) -> None:
        """Keep what was released, in the rounds in which that is shown."""
        if t >= self.shown:
            return
        released = cast(HasRelease, self.learner).release(state)
        if released is not None:
            self.releases.append(np.array(released))
