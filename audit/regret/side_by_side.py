"""Several loss sequences played side by side: one call of the learner a round for the runs of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import blaming
from ...learners.next_arm import next_arm, states_next_arm
from ...learners.problems.losses import Loss, check_told, feedback
from ...learners.protocol import Actions, FeedbackKind, Learner
from ...mechanisms.draws import Draws, Floats, Stage
from ..play.pairs import World
from ..play.transcripts import play_rounds


class SideBySide:
    """Loss sequences of one length, each met by so many neighbouring runs.

    Parameters
    ----------
    worlds : sequence of World
    runs : int
        Of each.
    """

    def __init__(self, worlds: Sequence[World], runs: int) -> None:
        self.worlds, self.runs = worlds, runs

    @cached_property
    def _tables(self) -> Floats | None:
        """All vectors, (rounds, worlds, arms); None where losses are convex functions."""
        if not all(isinstance(world, np.ndarray) for world in self.worlds):
            return None
        return np.stack([np.asarray(world, dtype=np.float64) for world in self.worlds], axis=1)

    def told(self, t: int, actions: Actions, kind: FeedbackKind) -> Floats:
        """Return what the runs are told of a round, as `losses.feedback` does of one loss."""
        if len(self.worlds) == 1:
            return feedback(cast(Loss, self.worlds[0][t]), actions, kind)
        if self._tables is None:
            return self._told_each(t, actions, kind)
        vectors = self._tables[t]
        if kind == "full":
            return np.repeat(vectors.T, self.runs, axis=1)
        if actions.ndim == 1:
            places = actions.reshape(len(vectors), -1)
            return np.take_along_axis(vectors, places, axis=1).ravel()
        return self.weighed(t, actions)

    def weighed(self, t: int, weights: Floats) -> Floats:
        """Return the sums of a round's vectors by weights (arms, runs of all): of points, or of probabilities."""
        if len(self.worlds) == 1:
            weighted: Floats = np.asarray(self.worlds[0][t]) @ weights
            return weighted
        assert self._tables is not None
        grouped = weights.reshape(len(weights), len(self.worlds), -1)
        sums: Floats = (self._tables[t].T[:, :, None] * grouped).sum(axis=0).ravel()
        return sums

    def _told_each(self, t: int, actions: Actions, kind: FeedbackKind) -> Floats:
        """Evaluate every loss of the round once, at the runs of all sequences that have it."""
        groups: dict[int, list[int]] = {}
        for i, world in enumerate(self.worlds):
            groups.setdefault(id(world[t]), []).append(i)
        parts = []
        for indices in groups.values():
            columns = np.concatenate([np.arange(i * self.runs, (i + 1) * self.runs) for i in indices])
            loss = cast(Loss, self.worlds[indices[0]][t])
            parts.append((columns, feedback(loss, actions.take(columns, axis=-1), kind)))
        everyones = np.empty((*parts[0][1].shape[:-1], actions.shape[-1]))
        for columns, losses in parts:
            everyones[..., columns] = losses
        return everyones


@blaming
def play_block(
    learner: Learner, worlds: Sequence[World], seed: int, label: int, quantity: str, block: tuple[int, int]
) -> tuple[NDArray[np.float64], bool]:
    """Return the total loss of every run, (worlds, runs), and whether actions are points.

    Parameters
    ----------
    quantity : {"played", "expected"}
        What is added up: the losses of the actions, or those expected under the probabilities that the learner states,
        of which `states_next_arm` must be true.
    block : (int, int)
        Its number and its runs of each sequence.
    """
    number, runs = block
    rounds = len(worlds[0])
    draws = Draws(seed, Stage.REGRET, pair=label, part=rounds, block=number)
    everyone, points = SideBySide(worlds, runs), False
    totals, incurred = np.zeros(len(worlds) * runs), np.zeros(0)
    law: Floats | None = None

    def said(state: object) -> None:
        nonlocal law
        if (next_law := next_arm(learner, state)) is not None:  # else the arm is held, and what was said still holds
            law = next_law.copy()

    def see(t: int, actions: Actions) -> None:
        nonlocal incurred, points, totals
        points = actions.ndim == 2
        incurred = everyone.told(t, actions, "bandit")
        check_told(incurred, f"the loss of round {t + 1}")
        totals += incurred if law is None else everyone.weighed(t, law)

    def feed(t: int, actions: Actions) -> Floats:
        if learner.feedback == "bandit":
            return incurred
        gradient = everyone.told(t, actions, "full")
        check_told(gradient, f"the loss of round {t + 1}")
        return gradient

    play_rounds(
        learner,
        draws,
        len(worlds) * runs,
        rounds,
        see=see,
        feed=feed,
        before=said if quantity == "expected" else None,
    )
    return totals.reshape(len(worlds), runs), points


def counted(learner: Learner, worlds: Sequence[World]) -> str:
    """Return what is added up of a learner on these losses: the `how` of `play_block`."""
    vectors = all(isinstance(world, np.ndarray) for world in worlds)
    return "expected" if vectors and states_next_arm(learner) else "played"
