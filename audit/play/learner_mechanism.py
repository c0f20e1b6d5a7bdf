"""A learner as a mechanism: its input a sequence of rounds, its output all that is released in playing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import name_of
from ...learners.problems.losses import Loss, feedback
from ...learners.protocol import Actions, Learner, LearnerError
from ...learners.scalar import values_of
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.view import ACTIONS, View
from ..encoding.features import Outputs
from ..record_types import PairJson
from .data import DataPair
from .rounds import Round, arms_of_round, differing, is_drawn, is_plain, loss_of, shows_nothing, user_of
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

    @cached_property
    def own(self) -> frozenset[int]:
        """The rounds of whoever differs, in either world; where no users are named, the rounds that differ."""
        users = {user_of(world[t]) for world in (self.left, self.right) for t in self.places} - {None}
        shared = [t for world in (self.left, self.right) for t, round_ in enumerate(world) if user_of(round_) in users]
        return frozenset([*self.places, *shared])

    def shows_nothing(self, view: View) -> bool:
        """Tell whether the worlds differ in the last losses alone, which come after all that any learner shows.

        Or, where whoever differs sees alone what is hers, whether all rounds that come after the first are hers.
        """
        if view.without_own and self.own >= set(range(self.places[0], self.rounds)):
            return True
        return not view.last and shows_nothing(self.left, self.right)

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
    view : View
        What is released: see `Claim`.
    """

    learner: Learner
    view: View = ACTIONS
    batched, in_step = True, True

    @property
    def __name__(self) -> str:
        return name_of(self.learner)

    def __call__(self, data: Any, draws: Draws, runs: int, left: NDArray[np.bool_] | None = None) -> Outputs:
        """Return what is seen, (rows, runs): the actions round by round, and after them the values of the channel.

        Of a plain class, whose values may be anything that an output may be: one dictionary of both for each run.

        Parameters
        ----------
        data : sequence, or a pair of sequences
        left : bool array (runs,), optional
            Where data is a pair: in which world each run is.
        """
        in_left = np.ones(runs, dtype=np.bool_) if left is None else left
        worlds: Sequence[Sequence[Round]] = (data, data) if left is None else data
        block = Block(self.learner, self.view, worlds, in_left)
        block.play(draws)
        return block.outputs()


class Block:
    """What one block of runs is told, and what it releases."""

    def __init__(
        self, learner: Learner, view: View, worlds: Sequence[Sequence[Round]], left: NDArray[np.bool_]
    ) -> None:
        self.learner, self.view, self.worlds, self.left = learner, view, worlds, left
        self.hidden = RoundsPair(*map(list, worlds)).own if view.without_own and worlds[0] is not worlds[1] else ()
        self.shown = view.updates(len(worlds[0])) if view.channel else 0
        self.losses = [
            [None if is_drawn(round_) else loss_of(round_, learner.arms) for round_ in world] for world in worlds
        ]
        self.differ = set(differing(*worlds))
        self.plain = all(map(is_plain, (*worlds[0], *worlds[1])))
        self.state: object = None
        self.round = 0
        self.actions: dict[int, Actions] = {}
        self.values: dict[int, Any] = {}

    def play(self, draws: Draws) -> None:
        """Play all rounds."""
        play_rounds(
            self.learner,
            draws,
            self.left.size,
            len(self.losses[0]),
            see=self.see,
            feed=self.feed,
            learned=self.learned,
            updates=len(self.losses[0]),  # the last one is seen where it raises: that leaves the sequence out
            before=None if self.plain else self.before,
        )

    def before(self, state: object) -> None:
        """Show the round's context and its arms, in each world its own."""
        t, learner = self.round, cast(Any, self.learner)
        self.state = state
        if t not in self.differ:
            seen = [(self.worlds[0][t], np.ones_like(self.left))]
        else:
            seen = [(world[t], runs) for world, runs in zip(self.worlds, (self.left, ~self.left), strict=True)]
        for round_, runs in seen:
            if isinstance(round_, dict) and "context" in round_:
                learner.observe(state, round_["context"], runs)
            if (offered := arms_of_round(round_)) is not None:
                learner.offer(state, offered, runs)

    def see(self, t: int, played: Actions) -> None:
        """Keep the actions that the adversary sees."""
        self.round = t + 1
        self._check_offered(t, played)
        if self.view.actions and t not in self.hidden:
            self.actions[t] = played.copy()

    def _check_offered(self, t: int, played: Actions) -> None:
        """Raise LearnerError where a run plays another arm than its round offers."""
        for world, runs in zip(self.worlds, (self.left, ~self.left), strict=True):
            offered = arms_of_round(world[t])
            if offered is not None and (violations := runs & ~np.isin(played, offered)).any():
                run = int(np.flatnonzero(violations)[0])
                problem = f"must return one of the arms {offered} that are offered, got {played[run]}"
                raise LearnerError(f"{name_of(self.learner)}.act {problem} (round {t + 1}, run {run})")

    def feed(self, t: int, played: Actions) -> Floats:
        """Return what every run is told, in its own world."""
        if self.losses[0][t] is None:
            return cast(Floats, cast(Any, self.learner).draw(self.state))
        in_left, in_right = (feedback(cast(Loss, losses[t]), played, self.learner.feedback) for losses in self.losses)
        return np.where(self.left, in_left, in_right) if t in self.differ else in_left

    def learned(self, t: int, state: object) -> None:
        """Keep the values of the channel, in the rounds in which they are shown."""
        if t >= self.shown:
            return
        value = values_of(self.learner, self.view.channel, state)
        if value is not None:
            self.values[t] = value if isinstance(value, list) else np.array(value)

    def outputs(self, rounds: int | None = None) -> Outputs:
        """Return what is seen of every run, in all rounds or in the first ones."""
        runs, seen_of = self.left.size, len(self.losses[0]) if rounds is None else rounds
        played = [row for t, row in self.actions.items() if t < seen_of]
        values = [value for t, value in self.values.items() if t < self.view.updates(seen_of)]
        if not any(isinstance(value, list) for value in self.values.values()):
            rows = [np.atleast_2d(row) for row in (*played, *values)]
            return np.concatenate(rows) if rows else np.empty((0, runs))
        actions = [row.T.tolist() for row in played]
        seen = {**({"actions": actions} if actions else {}), self.view.channel: values}
        return [{name: [of_round[run] for of_round in rounds] for name, rounds in seen.items()} for run in range(runs)]
