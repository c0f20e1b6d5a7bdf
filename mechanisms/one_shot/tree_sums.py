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

from ..discrete import DiscreteLaplace, DiscreteLaplaceNoise, integers
from ..draws import Draws, Law
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

    def law(self, nodes: int) -> Law:
        """Return the law of one node's noise, where a loss reaches so many of them."""
        return Laplace(nodes / self.epsilon)

    def sums(self, data: Data) -> NDArray[Any]:
        """Return the prefix sums, (dim, 1)."""
        return np.cumsum(column(data), axis=0)

    def __call__(self, data: Data, draws: Draws, runs: int) -> NDArray[np.generic]:
        """Return the noisy prefix sums, (dim, runs)."""
        noise: list[NDArray[np.generic]] = [np.zeros(runs, dtype=np.int64)]
        law, sums = self.law(len(data).bit_length()), self.sums(data)
        for t in range(1, len(data) + 1):  # the prefix at t is that at its parent with one more node
            before = parent(t)
            value = sums[t - 1] - (sums[before - 1] if before else 0)
            noise.append(draws.noise(law, (runs,), value, f"node [{before + 1},{t}]") + noise[before])
        released: NDArray[np.generic] = sums + np.stack(noise)[1:]
        return released


class TreeSumsDiscrete(TreeSumsNaive):
    """The same prefix sums of integers, with exact discrete Laplace noise on every node.

    **Claim**: epsilon where one loss differs by at most 1, also against an adversary who reads every bit.
    """

    def __post_init__(self) -> None:
        DiscreteLaplace(self.epsilon)  # checks it

    def law(self, nodes: int) -> Law:
        """Return the law of one node's noise, where a loss reaches so many of them."""
        return DiscreteLaplaceNoise(nodes * DiscreteLaplace(self.epsilon).scale)

    def sums(self, data: Data) -> NDArray[Any]:
        """Return the prefix sums, (dim, 1)."""
        return np.cumsum(integers(data)).reshape(-1, 1)
