"""Follow the leader: what the regularised and the perturbed leader share, a padded tree of noisy prefix sums."""

from __future__ import annotations

from dataclasses import dataclass

from ..mechanisms.draws import Draws, Floats
from ..mechanisms.noise import Noise
from ..mechanisms.tree import Tree, TreeState
from .checks import check_rounds
from .protocol import Actions, FeedbackKind


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

    def release(self, state: TreeState) -> Floats:
        """Return the noisy prefix sum before padding, (dim, runs)."""
        return state.noisy.copy()

    def release_means(self, actions: Actions, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the means of the noisy prefix sums given the earlier ones."""
        return self.tree.means(releases, feedback)
