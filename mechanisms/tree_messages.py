"""Message passing on the tree of noisy prefix sums: what is seen at and below a node, given the sum at its parent.

Prefix sums form a tree, `R_t = R_parent(t) + (losses since) + noise`. The nodes at powers of two hang from 0, so what
is seen at and below different ones is independent given the losses; below each, messages pass on a grid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from .draws import Floats
from .tree import children


class TreeMessages(ABC):
    """The messages of one world.

    Attributes
    ----------
    last : int
        The last prefix that is seen.
    """

    last: int

    def message(self, t: int, parent_sums: Floats) -> Floats:
        """Return the likelihood of what is seen at and below t, for each value of the sum at its parent."""
        if not children(t, self.last):
            return self.leaf(t, parent_sums)
        grid = self.grid_at(t)
        return self.moved(t, parent_sums, grid, self.inside(t, grid))

    def inside(self, t: int, grid: Floats) -> Floats:
        """Return the likelihood of what is seen at and below t, for each value of the sum at t."""
        likelihood = self.seen(t, grid)
        for child in children(t, self.last):
            likelihood = self.joined(likelihood, self.message(child, grid))
        return likelihood

    def joined(self, likelihood: Floats, child_message: Floats) -> Floats:
        """Return the likelihood of both of two things that are independent given the sum."""
        return likelihood * child_message

    @abstractmethod
    def leaf(self, t: int, parent_sums: Floats) -> Floats:
        """Return the likelihood of what is seen at a node that none extends, where node and padding noise add up."""

    @abstractmethod
    def grid_at(self, t: int) -> Floats:
        """Return values of the sum at t, over which it is integrated."""

    @abstractmethod
    def seen(self, t: int, grid: Floats) -> Floats:
        """Return the likelihood of what is seen at t alone, for each value of the sum at t."""

    @abstractmethod
    def moved(self, t: int, parent_sums: Floats, grid: Floats, likelihoods: Floats) -> Floats:
        """Return the likelihood given the sum at the parent, from that given the sum at t."""


class RunMessages(TreeMessages):
    """The messages of what many runs show, (points, runs): densities of so many rounds that only logarithms hold them.

    Each run's messages are divided by powers of two, which are counted.
    """

    #: Of the powers of two by which what is seen below the node at hand was divided.
    exponent: NDArray[np.intp] | int = 0

    def log_likelihood(self, t: int, parent_sums: Floats) -> Floats:
        """Return the logarithm of `message` for the only value of the sum above, (runs,)."""
        self.exponent = 0
        return self.log(self.message(t, parent_sums)[0])

    def log(self, likelihood: Floats) -> Floats:
        """Return the logarithm of a likelihood that was made of scaled messages; where it is 0, minus infinity."""
        with np.errstate(divide="ignore"):
            logarithm: Floats = np.log(likelihood) + math.log(2) * self.exponent
        return logarithm

    def inside(self, t: int, grid: Floats) -> Floats:
        """Return what `TreeMessages.inside` does, scaled."""
        likelihood = super().inside(t, grid)
        _, exponent = np.frexp(likelihood.max(axis=0))
        self.exponent = self.exponent + exponent
        scaled: Floats = np.ldexp(likelihood, -exponent)
        return scaled
