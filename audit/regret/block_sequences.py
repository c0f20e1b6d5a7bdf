"""Loss sequences that are constant on blocks: what searches for adversaries find, and what replays them."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ...errors import must_be
from ...learners.problems.losses import Loss
from ..play.pairs import World, fixed_loss, loss_json


@dataclass(frozen=True, eq=False)
class BlockSequence:
    """A loss sequence in blocks; at another horizon blocks keep their shares of the rounds.

    Attributes
    ----------
    lengths : tuple of int
        Rounds of each block, positive.
    losses : tuple of Loss
        A vector or a convex loss for each block.
    """

    lengths: tuple[int, ...]
    losses: tuple[Loss, ...]

    @property
    def rounds(self) -> int:
        """The rounds of all blocks."""
        return sum(self.lengths)

    def at(self, rounds: int) -> World:
        """Return the losses, one a round, stretched or compressed to so many rounds."""
        ends = np.round(np.cumsum(self.lengths) * (rounds / self.rounds)).astype(int)
        world = [
            loss for loss, n in zip(self.losses, np.diff([0, *ends]).tolist(), strict=True) for _ in range(max(0, n))
        ]
        vectors = [loss for loss in world if isinstance(loss, np.ndarray)]
        return np.stack(vectors) if len(vectors) == len(world) else world

    def merged(self) -> BlockSequence:
        """Return the same losses in as few blocks as there can be."""
        blocks = zip(self.lengths, self.losses, strict=True)
        groups = [list(group) for _, group in groupby(blocks, key=lambda block: repr(loss_json(block[1])))]
        lengths = tuple(sum(n for n, _ in group) for group in groups)
        return BlockSequence(lengths, tuple(group[0][1] for group in groups))

    def to_json(self) -> list[list[object]]:
        """Return `[[rounds, loss], ...]`."""
        return [[n, loss_json(loss)] for n, loss in zip(self.lengths, self.losses, strict=True)]

    @classmethod
    def from_json(cls, data: object) -> BlockSequence:
        """Read `[[rounds, loss], ...]`.

        Raises
        ------
        ValueError
            For anything else, naming what was found.
        """
        shape = 'a sequence must be a non-empty list of [rounds, loss], as in "[[8, [1, 0]], [8, [0, 1]]]"'
        if not isinstance(data, list) or not data:
            raise ValueError(f"{shape}, got {' '.join(reprlib.repr(data).split())}")
        for block in data:
            if not isinstance(block, list) or len(block) != 2 or type(block[0]) is not int or block[0] < 1:
                raise ValueError(f"{shape}, got {reprlib.repr(block)}")
        losses = [fixed_loss(loss) for _, loss in data]
        if any(isinstance(loss, np.ndarray) and (loss.ndim != 1 or not np.isfinite(loss).all()) for loss in losses):
            raise must_be("a loss vector", "a list of finite numbers", data)
        if len({loss.size if isinstance(loss, np.ndarray) else -1 for loss in losses}) > 1:
            raise ValueError("the losses of a sequence must be vectors of one length, or all of them convex")
        return cls(tuple(n for n, _ in data), tuple(losses))

    def __str__(self) -> str:
        return ", ".join(f"{n} x {loss}" for n, loss in self.to_json())


def equal_blocks(rounds: int, losses: Sequence[Loss]) -> BlockSequence:
    """Return these losses, each for as many rounds as the others, up to one."""
    ends = np.linspace(0, rounds, len(losses) + 1).astype(int)
    blocks = [(n, loss) for n, loss in zip(np.diff(ends).tolist(), losses, strict=True) if n]
    return BlockSequence(tuple(n for n, _ in blocks), tuple(loss for _, loss in blocks)).merged()
