"""EXP2 over the vertices of a hypercube, whose weights factorise: N numbers a run in place of 2^N."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...mechanisms.draws import Draws, Floats
from .exp2 import Exp2, hypercube

#: The largest exponent that is taken: beyond it a sign's probability is 0 to double precision.
_LARGEST = 700.0


@dataclass
class HypercubeState:
    """The sums of the estimates, (N, runs), and the probabilities under q that a coordinate is 1, which they give."""

    sums: Floats
    up: Floats


@dataclass(frozen=True, kw_only=True)
class HypercubeExp2(Exp2):
    """`Exp2` over `hypercube(N)`, exploring uniformly: the same law, from the same draws, in O(N) a step.

    `q ∝ exp(-eta <L, s>)` is a product over the coordinates: s_k is 1 with probability 1 / (1 + exp(2 eta L_k)), with
    mean m_k = -tanh(eta L_k). So P = D + (1 - gamma) m m^T with D = diag(1 - (1 - gamma) m_k^2), whose inverse is that
    of Sherman & Morrison 1950, and a vertex is drawn coordinate by coordinate, which halves the vertices in their
    order.

    **Claim**: none of its own.

    Parameters
    ----------
    actions : array (N, 2^N)
        `hypercube(N)`; other points are refused, and so is another exploration than the uniform one.
    eta, gamma
        As in `Exp2`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.array_equal(self.points, hypercube(len(self.points))):
            raise ValueError("actions must be the vertices of a hypercube, in the order of `hypercube`")
        if np.ptp(self.design) > 0:
            raise ValueError("exploration must be uniform over the vertices")

    def start(self, runs: int, draws: Draws) -> HypercubeState:
        """Return sums of 0: every sign is as probable as the other."""
        return HypercubeState(np.zeros((self.arms, runs)), np.full((self.arms, runs), 0.5))

    def distribution(self, state: HypercubeState) -> Floats:
        """Return p, (2^N, runs)."""
        product = np.full((1, state.up.shape[1]), 1 - self.gamma)
        for upper_shares in state.up:
            product = np.stack([product * upper_shares, product * (1 - upper_shares)], axis=1).reshape(
                -1, upper_shares.size
            )
        product += self.gamma / len(product)
        return product

    def act(self, state: HypercubeState, draws: Draws) -> Floats:
        """Draw a vertex from p, (N, runs): one uniform a run, which the vertices share out in their order."""
        u = draws.uniform(state.up.shape[1])
        points = np.empty(state.up.shape)
        threshold, upper, is_down = (np.empty(u.shape) for _ in range(3))
        # What is left of the product and of the uniform part, of the vertices that begin with the signs so far. Signs
        # are multiplied with: a choice by a mask, which no processor can foresee, costs several times as much.
        product, uniform = np.full(u.shape, 1 - self.gamma), self.gamma
        for share, point in zip(state.up, points, strict=True):
            uniform /= 2
            np.multiply(share, product, out=threshold)
            np.add(threshold, uniform, out=upper)
            np.subtract(u, upper, out=is_down)
            np.copysign(0.5, is_down, out=point)
            np.add(point, 0.5, out=is_down)
            upper *= is_down
            u -= upper
            # The part of the chosen sign: that of 1, or what is left without it.
            product -= threshold
            product -= threshold
            product *= is_down
            product += threshold
        points *= -2
        return points

    def estimate(self, state: HypercubeState, actions: Floats, feedback: Floats) -> Floats:
        """Return the loss estimates P^-1 s y, (N, runs)."""
        mean = 2 * state.up
        mean -= 1
        estimates: Floats = actions * feedback
        weighed = mean * (1 - self.gamma)
        diagonal = weighed * mean
        np.subtract(1, diagonal, out=diagonal)
        estimates /= diagonal
        weighed /= diagonal  # (1 - gamma) D^-1 m
        along = np.einsum("kr,kr->r", mean, estimates)
        along /= 1 + np.einsum("kr,kr->r", mean, weighed)
        weighed *= along
        estimates -= weighed
        return estimates

    def update(self, state: HypercubeState, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Add the estimated loss."""
        state.sums += self.estimate(state, actions, feedback)
        odds = np.multiply(state.sums, 2 * self.eta, out=state.up)
        np.minimum(odds, _LARGEST, out=odds)
        np.exp(odds, out=odds)
        odds += 1
        np.divide(1.0, odds, out=odds)
