"""The law of the arms of Gaussian follow-the-perturbed-leader with two arms: the tree's shared nodes integrated out.

Arm 0 is played where the difference of the two noisy prefix sums is negative. Prefix sums form a tree:
`R_t = R_parent(t) + (losses since) + noise`, seen through padding. The parent of a power of two is 0, so the arms of
the rounds at and below different powers are independent; below each, messages pass on a grid. Integrands are smooth,
so sums over the grid are exact to rounding.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from ...learners.abilities import is_ours
from ...learners.leaders.ftpl import Ftpl
from ...learners.problems.domains import Simplex
from ...learners.protocol import Learner
from ...mechanisms.draws import Floats
from ...mechanisms.noise import Gaussian
from ...mechanisms.tree import depth, parent
from ..play.pairs import Pair

#: Up to this many rounds, all 2^T sequences are enumerated.
MAX_ROUNDS = 12
#: The grid, in standard deviations of one draw: its step, and how far it reaches beyond the means.
STEP, REACH = 0.125, 10.0


def applies(learner: Learner, pair: Pair) -> bool:
    """Tell whether this is our Gaussian FTPL over two arms, linear losses and at most `MAX_ROUNDS` rounds."""
    return (
        is_ours(learner)
        and isinstance(learner, Ftpl)
        and isinstance(learner.domain, Simplex)
        and learner.arms == 2
        and isinstance(learner.noise, Gaussian)
        and learner.noise.sigma > 0
        and isinstance(pair.left, np.ndarray)
        and 2 <= pair.rounds <= min(MAX_ROUNDS, learner.rounds)
    )


def sequence_law(learner: Ftpl, pair: Pair, left: bool) -> Floats:
    """Return the probabilities of all sequences of arms in one world.

    Returns
    -------
    array (2 ** rounds,)
        Indexed by the sequence read as a binary number, first arm most significant.
    """
    return _Messages(learner, np.asarray(pair.left if left else pair.right)).law()


class _Messages:
    """The message passing of one world, in standard deviations of one draw of the difference."""

    def __init__(self, learner: Ftpl, world: Floats) -> None:
        assert isinstance(learner.noise, Gaussian)
        deviation = math.sqrt(2) * learner.noise.sigma
        self.depth = depth(learner.rounds)
        self.last = len(world) - 1  # prefixes 0..T-1 reach the actions
        self.sums = np.concatenate([[0.0], np.cumsum((world[:, 0] - world[:, 1]) / deviation)])
        reach = REACH * math.sqrt(self.depth)
        steps = math.ceil((np.ptp(self.sums) + 2 * reach) / STEP)
        self.grid = self.sums.min() - reach + STEP * np.arange(steps + 1)

    def law(self) -> Floats:
        law: Floats = self._arms(np.zeros(1), self.depth)[0]
        t = 1
        while t <= self.last:
            law = np.outer(law, self._below(t, np.zeros(1))[0]).ravel()
            t *= 2
        return law

    def _arms(self, mean: Floats, draws: int) -> Floats:
        """Return the law of the arm at a difference of these means and `draws` draws of noise, (means, 2)."""
        size = mean / math.sqrt(draws)
        return np.stack([ndtr(-size), ndtr(size)], axis=-1)

    def _below(self, t: int, start: Floats) -> Floats:
        """Return the law of the arms at and below t, in the order of rounds, given the prefix at its parent.

        Parameters
        ----------
        start : array (points,)

        Returns
        -------
        array (points, 2 ** (rounds at and below t))
        """
        mean = start + (self.sums[t] - self.sums[parent(t)])
        padding = self.depth - t.bit_count()
        children = [t + (1 << i) for i in range((t & -t).bit_length() - 1) if t + (1 << i) <= self.last]
        if not children:
            return self._arms(mean, 1 + padding)
        inside = self._arms(self.grid, padding)  # a prefix with children has a clear bit, hence padding
        for child in children:
            below = self._below(child, self.grid)
            inside = (inside[:, :, None] * below[:, None, :]).reshape(self.grid.size, -1)
        noise = self.grid - mean[:, None]
        law: Floats = np.exp(-0.5 * noise * noise) @ inside * (STEP / math.sqrt(2 * math.pi))
        return law


def path(t: int) -> set[int]:
    """Return the rounds whose nodes make up the prefix at t."""
    nodes = set()
    while t:
        nodes.add(t)
        t = parent(t)
    return nodes


def release_mu(learner: Ftpl, pair: Pair, updates: int | None = None) -> float:
    """Return mu of Gaussian DP of the first `updates` noisy prefix sums, by default all but the last: not padded."""
    updates = pair.rounds - 1 if updates is None else updates
    assert isinstance(learner.noise, Gaussian)
    nodes = sum(parent(t) <= pair.t0 < t for t in range(1, updates + 1))
    difference = np.asarray(pair.left[pair.t0]) - np.asarray(pair.right[pair.t0])
    return math.sqrt(nodes * float(np.square(difference).sum())) / learner.noise.sigma
