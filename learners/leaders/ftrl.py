"""Private follow-the-regularised-leader: noisy prefix sums of losses from a tree, then a prox step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace, deviation_of, scale_of
from ...mechanisms.parameters import check_positive
from ...mechanisms.tree import TreeState
from ...mechanisms.view import ACTIONS, View
from ..laws import Law, Losses, Neighbours, NotEnumerableError, Score
from ..problems.domains import Ball, Cube, EntropySimplex, Regularised
from ..protocol import PlayKind
from .ftrl_law import COVERED, privacy_loss
from .leader import Leader
from .leader_ratios import coordinate_ratio, prefix_ratio, shifted_ratio, whitened


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
    plays: ClassVar[PlayKind] = "points"

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

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law of the noisy prefix sums; of actions with two experts, the privacy loss on a grid."""
        if view.channel:
            return super().law(left, right, t0, view, fine=fine)
        pair = Neighbours(left, right, t0)
        if not (pair.linear and self._laplace_scale and isinstance(self.domain, EntropySimplex) and self.arms == 2):
            raise NotEnumerableError(COVERED)
        return privacy_loss(pair, self._laplace_scale, self.rounds, fine=fine)

    def score(self, left: Losses, right: Losses, t0: int) -> tuple[Score, ...]:
        """Return the scores of the noisy prefix sums that the actions reveal, or bound where they are clipped."""
        pair, scale, domain = Neighbours(left, right, t0), self._laplace_scale, self.domain
        variance = max(deviation_of(self.noise) ** 2, 2 * scale_of(self.noise) ** 2)  # of one draw
        if not pair.linear or pair.rounds < 2 or variance <= 0:
            return ()
        entropy = isinstance(domain, EntropySimplex)
        linear = whitened(pair, self.rounds, variance=variance, invert=self.invert, centred=entropy)
        if not scale:
            return (linear,)
        if entropy and self.arms <= 2:
            return (prefix_ratio(pair, scale, self.rounds, self.invert),) if self.arms == 2 else (linear,)
        if entropy:
            return shifted_ratio(pair, scale, self.rounds, self.invert), linear
        if isinstance(domain, Cube | Ball):
            clipped = isinstance(domain, Cube) or self.arms == 1
            edge = 2.0 / (self.eta * scale) if clipped else None
            ratio = coordinate_ratio(pair, scale, self.rounds, self.invert, edge=edge)
            return (ratio,) if clipped else (ratio, linear)
        return (linear,)

    @property
    def _laplace_scale(self) -> float:
        """The scale of Laplace noise; 0 of any other."""
        return scale_of(self.noise) if isinstance(self.noise, Laplace) else 0.0
