"""The law of the arms of Gaussian follow-the-perturbed-leader with two arms: the tree's shared nodes integrated out.

Arm 0 is played where the difference of the two noisy prefix sums is negative, which is seen through padding. Messages
pass along the tree of sums (`tree_messages`). Integrands are smooth, so sums over the grid are exact to rounding.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from ...mechanisms.draws import Floats
from ...mechanisms.tree import depth, parent, roots
from ...mechanisms.tree_messages import TreeMessages

#: Up to this many rounds, all 2^T sequences are enumerated.
MAX_ROUNDS = 12
#: The grid, in standard deviations of one draw: its step, and how far it reaches beyond the means.
STEP, REACH = 0.125, 10.0


def sequence_laws(left: Floats, right: Floats, deviation: float, horizon: int) -> tuple[Floats, Floats]:
    """Return the probabilities of all sequences of arms under both inputs.

    Parameters
    ----------
    left, right : arrays (rounds, 2)
    deviation : float
        Of one node's noise, positive.
    horizon : int
        T of the padded tree.

    Returns
    -------
    arrays (2 ** rounds,)
        Indexed by the sequence read as a binary number, first arm most significant.
    """
    return _Messages(left, deviation, horizon).law(), _Messages(right, deviation, horizon).law()


class _Messages(TreeMessages):
    """The laws of the arms under one input, in standard deviations of one draw of the difference.

    A message is an array (points, 2 ** (rounds at and below t)), in the order of rounds.
    """

    def __init__(self, losses: Floats, deviation: float, horizon: int) -> None:
        self.depth = depth(horizon)
        self.last = len(losses) - 1  # prefixes 0..T-1 reach the actions
        differences = (losses[:, 0] - losses[:, 1]) / (math.sqrt(2) * deviation)
        self.sums = np.concatenate([[0.0], np.cumsum(differences)])
        reach = REACH * math.sqrt(self.depth)
        steps = math.ceil((np.ptp(self.sums) + 2 * reach) / STEP)
        self.grid: Floats = self.sums.min() - reach + STEP * np.arange(steps + 1)

    def law(self) -> Floats:
        law: Floats = self._arms(np.zeros(1), self.depth)[0]
        for t in roots(self.last):
            law = np.outer(law, self.message(t, np.zeros(1))[0]).ravel()
        return law

    def _arms(self, mean: Floats, draws: int) -> Floats:
        """Return the law of the arm at a difference of these means and `draws` draws of noise, (means, 2)."""
        size = mean / math.sqrt(draws)
        return np.stack([ndtr(-size), ndtr(size)], axis=-1)

    def _mean(self, t: int, parent_sums: Floats) -> Floats:
        mean: Floats = parent_sums + (self.sums[t] - self.sums[parent(t)])
        return mean

    def leaf(self, t: int, parent_sums: Floats) -> Floats:
        return self._arms(self._mean(t, parent_sums), 1 + self.depth - t.bit_count())

    def grid_at(self, t: int) -> Floats:
        return self.grid

    def seen(self, t: int, grid: Floats) -> Floats:
        return self._arms(grid, self.depth - t.bit_count())  # a prefix with children has a clear bit, hence padding

    def joined(self, likelihood: Floats, child_message: Floats) -> Floats:
        return np.asarray((likelihood[:, :, None] * child_message[:, None, :]).reshape(len(likelihood), -1))

    def moved(self, t: int, parent_sums: Floats, grid: Floats, likelihoods: Floats) -> Floats:
        noise = grid - self._mean(t, parent_sums)[:, None]
        law: Floats = np.exp(-0.5 * noise * noise) @ likelihoods * (STEP / math.sqrt(2 * math.pi))
        return law
