"""Mechanisms whose claims are not an epsilon: Gaussian noise in rho or mu, alone, on a tree, and through a matrix.

Prefix sums are of values in [-1, 1]; neighbours replace one value, which moves it by up to 2.

References
----------
.. [1] M. Bun, T. Steinke. Concentrated differential privacy. TCC 2016, Proposition 1.6.
.. [2] C. Canonne, G. Kamath, T. Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020, Theorem 4.
.. [3] B. Balle, Y.-X. Wang. Improving the Gaussian mechanism for differential privacy. ICML 2018, Theorem 8.
.. [4] T.-H. H. Chan, E. Shi, D. Song. Private and continual release of statistics. TISSEC 2011 (the binary tree).
.. [5] H. Fichtenberger, M. Henzinger, J. Upadhyay. Constant matters: fine-grained error bound on differentially
   private continual observation. ICML 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ..discrete import DiscreteGaussianNoise, integers
from ..draws import Draws, Floats
from ..measures.approximate import ApproxDP
from ..measures.gaussian_dp import GDP, gaussian_epsilon, gaussian_mu
from ..measures.measure import Measure
from ..measures.renyi import ZCDP
from ..noise import Gaussian
from ..parameters import check_positive
from ..tree import parent
from .classic import Data, column

#: Of exact noise, in steps of 1/1024: `DiscreteGaussianNoise` takes no more of them.
_LARGEST_SIGMA = 32
#: How far replacing a value of [-1, 1] moves it.
REPLACED = 2.0


def _noisy_number(data: Data, law: Gaussian, draws: Draws, runs: int) -> Floats:
    value = float(data[0])
    noisy: Floats = draws.noise(law, (runs,), value, "number") + value
    return noisy


@dataclass(frozen=True)
class Concentrated:
    """What these mechanisms share: the rho that sets their noise.

    Parameters
    ----------
    rho : float
        Of zero-concentrated DP, positive and finite.
    """

    rho: float = 0.5
    batched: ClassVar[bool] = True
    #: Inputs of noise calls are functions of the data: no output enters one.
    constant_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    @property
    def measure(self) -> Measure:
        """What is claimed."""
        return ZCDP(self.rho)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise for an L2 sensitivity of 1 [1]_."""
        return 1 / math.sqrt(2 * self.rho)

    def weakened(self, factor: float) -> object:
        """Return the same mechanism with its noise divided by a factor, by the rho that its noise is for."""
        return type(self)(self.rho * factor**2)


@dataclass(frozen=True)
class GaussianMechanism(Concentrated):
    """Release one number with normal noise of variance 1 / (2 rho).

    **Claim**: rho-zCDP, and mu-Gaussian DP with mu = sqrt(2 rho), for inputs that differ by at most 1; both exactly.
    """

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers, (runs,)."""
        return _noisy_number(data, Gaussian(self.sigma), draws, runs)


class GaussianForTwiceRho(GaussianMechanism):
    """Broken: the variance is 1 / (4 rho), so the mechanism is 2 rho-zCDP and no better."""

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        return 1 / math.sqrt(4 * self.rho)


@dataclass(frozen=True)
class DiscreteGaussianMechanism(Concentrated):
    """Release an integer with exact discrete Gaussian noise of parameter sigma^2 = 1 / (2 rho) [2]_.

    **Claim**: rho-zCDP for integers that differ by at most 1. The divergence of order 1 is exactly rho, but for the
    rounding of sigma, up to a multiple of 1/1024.
    """

    rho: float = 1.0  # at 1/2 a standard deviation is its variance

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma > _LARGEST_SIGMA:
            raise must_be("rho", f"so large that sigma is at most {_LARGEST_SIGMA}", self.rho)

    @property
    def noise(self) -> DiscreteGaussianNoise:
        """The law of the noise; sigma is rounded up to a fraction that can be sampled exactly."""
        return DiscreteGaussianNoise(Fraction(math.ceil(self.sigma * 1024), 1024))

    def __call__(self, data: Data, draws: Draws, runs: int) -> NDArray[np.int64]:
        """Return the noisy integers, (runs,)."""
        value = int(integers(data)[0])
        noisy: NDArray[np.int64] = draws.noise(self.noise, (runs,), value, "integer") + value
        return noisy


class DiscreteGaussianSigmaForVariance(DiscreteGaussianMechanism):
    """Broken: the variance 1 / (2 rho) is taken for the standard deviation, too small where rho is above 1/2."""

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        return 1 / (2 * self.rho)

    def weakened(self, factor: float) -> object:
        """Return the same mechanism with its noise divided by a factor, by the rho that its noise is for."""
        return type(self)(self.rho * factor)


@dataclass(frozen=True)
class AnalyticGaussian:
    """Release one number with the least normal noise that is (epsilon, delta)-DP [3]_.

    **Claim**: (epsilon, delta)-DP for inputs that differ by at most 1, exactly; it is mu-Gaussian DP for the largest
    such mu.

    Parameters
    ----------
    epsilon : float
        In nats, positive and finite.
    delta : float
        In (0, 1).
    """

    epsilon: float = 1.0
    delta: float = 0.01
    batched: ClassVar[bool] = True
    #: Inputs of noise calls are functions of the data: no output enters one.
    constant_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        if not (isinstance(self.delta, float) and 0 < self.delta < 1):
            raise must_be("delta", "in (0, 1)", self.delta)

    @property
    def measure(self) -> Measure:
        """What is claimed."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def exact(self) -> GDP:
        """The same privacy in mu."""
        return GDP(gaussian_mu(self.epsilon, self.delta))

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        return 1 / gaussian_mu(self.epsilon, self.delta)

    def weakened(self, factor: float) -> AnalyticGaussian:
        """Return the same mechanism with its noise divided by a factor, by the epsilon that its noise is for."""
        if factor == 1:
            return self
        mu = gaussian_mu(self.epsilon, self.delta) * factor
        return type(self)(gaussian_epsilon(mu, self.delta), self.delta)

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers, (runs,)."""
        return _noisy_number(data, Gaussian(self.sigma), draws, runs)


class AnalyticGaussianSigmaForVariance(AnalyticGaussian):
    """Broken: the standard deviation that is needed is taken for the variance, too little where it is above 1."""

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        return math.sqrt(1 / gaussian_mu(self.epsilon, self.delta))

    def weakened(self, factor: float) -> AnalyticGaussian:
        """As that of `AnalyticGaussian`: the deviation is a square root."""
        return super().weakened(factor**2)


@dataclass(frozen=True)
class TreeSumsGaussian(Concentrated):
    """Release every prefix sum online, from the noisy nodes of a binary tree [4]_.

    The prefix at t is the one at its parent with one more node, so each is known as soon as round t is over. A value
    lies in at most floor(lg T) + 1 nodes; a node's variance is as many times 2^2 / (2 rho).

    **Claim**: rho-zCDP where one value of [-1, 1] is replaced.
    """

    moved: ClassVar[float] = REPLACED

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy prefix sums, (dim, runs)."""
        node = Gaussian(self.moved * self.sigma * math.sqrt(len(data).bit_length()))
        values, noise = column(data), [np.zeros(runs)]
        for t in range(1, len(data) + 1):
            node_sum = float(values[parent(t) : t].sum())
            noise.append(draws.noise(node, (runs,), node_sum, f"node {t}") + noise[parent(t)])
        return np.cumsum(values, axis=0) + np.stack(noise)[1:]


class TreeSumsForAddRemove(TreeSumsGaussian):
    """Broken: noise for a value that is added or removed, which moves it by up to 1, where it is replaced."""

    moved: ClassVar[float] = 1.0


@dataclass(frozen=True)
class SquareRootSums(Concentrated):
    """Release every prefix sum through the square root of the matrix of prefix sums [5]_.

    The lower triangular matrix A of ones is B B, where B is Toeplitz with the coefficients binom(2k, k) / 4^k. What is
    released is B (B x + z), z normal; replacing a value moves B x by 2 times the norm of B's first column.

    **Claim**: rho-zCDP where one value of [-1, 1] is replaced.
    """

    moved: ClassVar[float] = REPLACED

    @staticmethod
    def coefficients(horizon: int) -> Floats:
        """Return the first column of B, (horizon,)."""
        k = np.arange(1, horizon)
        return np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy prefix sums, (dim, runs)."""
        horizon = len(data)
        first = self.coefficients(horizon)
        lags = np.subtract.outer(np.arange(horizon), np.arange(horizon))
        root = np.where(lags >= 0, first[np.maximum(lags, 0)], 0.0)
        scale = self.moved * self.sigma * float(np.sqrt(first @ first))
        half = root @ column(data)
        released: Floats = root @ (draws.noise(Gaussian(scale), (horizon, runs), half, "half sums") + half)
        return released


class SquareRootSumsForAddRemove(SquareRootSums):
    """Broken: noise for a value that is added or removed, which moves it by up to 1, where it is replaced."""

    moved: ClassVar[float] = 1.0
