"""Follow the leader: what the regularised and the perturbed leader share, a padded tree of noisy prefix sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Noise
from ...mechanisms.tree import Tree, TreeState, nodes_holding
from ...mechanisms.view import ACTIONS, View
from ..checks import check_rounds
from ..laws import Law, Losses, Neighbours, law_of_shifts
from ..paths import Paths, Summands, if_linear
from ..protocol import Actions, FeedbackKind


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
    #: What a node adds up.
    summands: ClassVar[Summands] = "losses"

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

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law of the noisy prefix sums: every released node that holds round t0 is shifted; else None."""
        if not view.channel:
            return None
        shifts = Neighbours(left, right, t0).difference.tolist()
        return law_of_shifts(self.noise, shifts * len(nodes_holding(t0, view.updates(len(left)))))

    def release(self, state: TreeState) -> Floats:
        """Return the noisy prefix sum before padding, (dim, runs)."""
        return state.noisy.copy()

    def release_means(self, actions: Actions, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the means of the noisy prefix sums given the earlier ones."""
        return self.tree.means(releases, feedback)
