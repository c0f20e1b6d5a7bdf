"""Private follow-the-regularised-leader: noisy prefix sums of losses from a tree, then a prox step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.parameters import check_positive
from ...mechanisms.tree import TreeState
from ..problems.domains import Regularised
from .leader import Leader


@dataclass(frozen=True, kw_only=True)
class Ftrl(Leader):
    """Play `x_t = argmin <eta * L~_{t-1}, x> + R(x)`, L~ the padded tree's noisy prefix sum of losses.

    Agarwal & Singh 2017, Algorithm 1 with Algorithm 2.

    **Claim** (Theorem 3.1): epsilon-DP with Laplace noise of scale `||Y||_1 log2(T) / epsilon` on every node, one
    round's loss replaced. What replace-one needs is the L1 *diameter* of Y, and ceil(log2 T). The noisy prefix sums
    before padding are the release.

    Parameters
    ----------
    domain : Regularised
        The set of points with its regulariser.
    rounds : int
        T, the horizon.
    eta : float
        Learning rate, positive.
    noise : Noise
        The law of one node's noise.
    """

    domain: Regularised
    eta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("eta", self.eta)

    @property
    def arms(self) -> int:
        """The number of coordinates."""
        return self.domain.dim

    def act(self, state: TreeState, draws: Draws) -> Floats:
        """Return the prox step at the noisy prefix sum, (dim, runs)."""
        linear = self.tree.pad(state, draws)
        return self.domain.prox(self.eta * linear)

    def invert(self, actions: Floats) -> Floats:
        """Return the noisy prefix sums behind actions (rounds, dim, runs), up to a constant per round.

        On the boundary of a domain many prefix sums share an action; the domain chooses one.

        Raises
        ------
        AttributeError
            If the domain's prox step cannot be inverted.
        """
        inverse: Floats = np.stack([self.domain.invert(x) for x in actions])  # type: ignore[attr-defined]
        return inverse / self.eta
