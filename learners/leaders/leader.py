"""Follow the leader: what the regularised and the perturbed leader share, a padded tree of noisy prefix sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Block, Blocks, Noise
from ...mechanisms.philox import LANES, Stream, lanes
from ...mechanisms.tree import Tree, TreeState, depth, tree_blocks
from ..checks import check_rounds
from ..paths import Paths, if_linear
from ..protocol import Actions, Arrays, FeedbackKind, Kernel, Numbers


@dataclass(frozen=True, kw_only=True)
class Leader:
    """The counter of noisy prefix sums, and the release whose privacy is composed.

    Parameters
    ----------
    rounds : int
        T, the horizon.
    noise : Noise
        The law of one node's noise.
    """

    rounds: int
    noise: Noise
    feedback: FeedbackKind = "full"
    #: The noisy prefix sums are a sequence of Algorithm 2, whole.
    publishes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rounds(self.rounds)

    @property
    def arms(self) -> int:
        """The number of coordinates."""
        raise NotImplementedError

    @property
    def tree(self) -> Tree:
        """The counter of prefix sums (Agarwal & Singh 2017, Algorithm 2)."""
        return Tree(self.noise, self.rounds)

    def start(self, runs: int, draws: Draws) -> TreeState:
        """Return an empty counter."""
        return self.tree.start(self.arms, runs)

    def update(self, state: TreeState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Add the loss vector to the counter."""
        self.tree.add(state, feedback, draws)

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what a node's inputs depend: a node is a sum of loss vectors."""
        return if_linear(left, right)

    def release(self, state: TreeState) -> Floats:
        """Return the noisy prefix sum before padding, (dim, runs)."""
        return state.noisy.copy()

    def release_means(self, actions: Actions, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the means of the noisy prefix sums given the earlier ones."""
        return self.tree.means(releases, feedback)

    def _kernel(self, step: object, rate: float, *, points: bool, width: int) -> Kernel | None:
        """Return the kernel: the tree's arrays and two rows of room.

        Parameters
        ----------
        step : function (linear, played, rows), or None
            The domain's block; without one, and for noise without one, there is no kernel.
        rate : float
            What the prefix sums are multiplied by.
        points : bool
            Whether it plays points.
        """
        noise, scale = getattr(self.noise, "block", (None, 0.0))
        if noise is None or step is None:
            return None
        act, update = _blocks(step, noise)
        n, levels = self.arms, self.rounds.bit_length()
        arrays = tuple(lanes(rows, 0.0, width) for rows in (n, n * levels, n, n, 2))
        return Kernel(
            act=act,
            update=update,
            numbers=(scale, float(rate), depth(self.rounds)),
            arrays=arrays,
            dim=n if points else None,
            released=2,
            scalar=False,
            horizon=self.rounds,
        )


@cache
def _blocks(step: Callable[..., None], noise: Block) -> Blocks:
    """Return a leader's functions of blocks."""
    add, pad = tree_blocks(noise)

    def act_block(t: int, numbers: Numbers, arrays: Arrays, stream: Stream, played: Actions) -> None:
        scale, rate, draws = numbers
        pad(t, draws, scale, arrays, stream, arrays[4][0])
        for k in range(len(arrays[3])):
            for i in range(LANES):
                arrays[3][k, i] *= rate
        step(arrays[3], played, arrays[4])

    def update_block(t: int, numbers: Numbers, arrays: Arrays, stream: Stream, played: Actions, fed: Floats) -> None:
        add(t, numbers[0], arrays, stream, fed)

    return act_block, update_block
