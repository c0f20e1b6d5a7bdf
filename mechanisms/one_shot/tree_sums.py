"""The prefix sums that follow the regularised leader, released as a mechanism: with naive noise, and with exact noise.

References
----------
.. [1] N. Agarwal, K. Singh. The price of differential privacy for online learning. ICML 2017.
.. [2] I. Mironov. On significance of the least significant bits for differential privacy. CCS 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..discrete import DiscreteLaplace, discrete_laplace, integers
from ..draws import Draws
from ..noise import Laplace
from ..tree import parent
from .classic import Data, OneShot, column


@dataclass(frozen=True)
class TreeSumsNaive(OneShot):
    """Broken: the noise is Laplace in double precision, whose low-order bits tell the sums [2]_.

    Every prefix sum of the losses is released, with the noise that the tree counter of FTRL gives it before padding
    [1]_ (Algorithms 1 and 2).

    **Claim**: epsilon where one loss differs by at most 1. It is true in real arithmetic: a loss reaches at most
    floor(lg T) + 1 nodes, and the scale of a node's noise is that number over epsilon.
    """

    def noise(self, nodes: int, runs: int, draws: Draws) -> NDArray[Any]:
        """Return the noise of one node, where a loss reaches so many of them, (runs,)."""
        return Laplace(nodes / self.epsilon).sample((runs,), draws)

    def sums(self, data: Data) -> NDArray[Any]:
        """Return the prefix sums, (dim, 1)."""
        return np.cumsum(column(data), axis=0)

    def __call__(self, data: Data, draws: Draws, runs: int) -> NDArray[Any]:
        """Return the noisy prefix sums, (dim, runs)."""
        noise = [np.zeros(runs, dtype=np.int64)]
        for t in range(1, len(data) + 1):  # the prefix at t is that at its parent with one more node
            noise.append(self.noise(len(data).bit_length(), runs, draws) + noise[parent(t)])
        return self.sums(data) + np.stack(noise)[1:]


class TreeSumsDiscrete(TreeSumsNaive):
    """The same prefix sums of integers, with exact discrete Laplace noise on every node.

    **Claim**: epsilon where one loss differs by at most 1, also against an adversary who reads every bit.
    """

    def __post_init__(self) -> None:
        DiscreteLaplace(self.epsilon)  # checks it

    def noise(self, nodes: int, runs: int, draws: Draws) -> NDArray[Any]:
        """Return the noise of one node, where a loss reaches so many of them, (runs,)."""
        return discrete_laplace(nodes * DiscreteLaplace(self.epsilon).scale, runs, draws.generator)

    def sums(self, data: Data) -> NDArray[Any]:
        """Return the prefix sums, (dim, 1)."""
        return np.cumsum(integers(data)).reshape(-1, 1)
