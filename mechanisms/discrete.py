"""Exact discrete Laplace noise: integers in, integers out, no floating-point number anywhere.

References
----------
.. [1] C. Canonne, G. Kamath, T. Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020.
.. [2] I. Mironov. On significance of the least significant bits for differential privacy. CCS 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import must_be
from .draws import Draws
from .parameters import check_positive

Integers = NDArray[np.int64]
#: Products of a numerator or denominator with a loop's counter must stay far below 2**63.
_LARGEST = 2**31


def bernoulli_exp(numerator: Integers, denominator: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Return exact draws of Bernoulli(exp(-numerator / denominator)) for numerators in 0..denominator ([1]_, Alg. 1).

    The first k at which a coin of probability (numerator / denominator) / k fails is odd with exactly the wanted
    probability; each coin compares one uniform integer.
    """
    k = np.ones(numerator.size, dtype=np.int64)
    open_runs = np.arange(numerator.size)
    while open_runs.size:
        numbers = generator.integers(0, denominator * k[open_runs])
        open_runs = open_runs[numbers < numerator[open_runs]]
        k[open_runs] += 1
    odd: NDArray[np.bool_] = k % 2 == 1
    return odd


def discrete_laplace(scale: Fraction, size: int, generator: np.random.Generator) -> Integers:
    """Return exact draws of the law proportional to exp(-|x| / scale) on the integers ([1]_, Algorithm 2).

    Parameters
    ----------
    scale : Fraction
        Positive, numerator and denominator at most 2**31.
    """
    t, s = scale.numerator, scale.denominator
    if not 0 < t <= _LARGEST or s > _LARGEST:
        raise must_be("scale", "positive with numerator and denominator at most 2**31", scale)
    noise = np.zeros(size, dtype=np.int64)
    open_runs = np.arange(size)
    while open_runs.size:
        u = generator.integers(0, t, open_runs.size)
        accepted = bernoulli_exp(u, t, generator)
        v = np.zeros(open_runs.size, dtype=np.int64)  # geometric with ratio 1/e
        going = np.flatnonzero(accepted)
        while going.size:
            going = going[bernoulli_exp(np.ones(going.size, dtype=np.int64), 1, generator)]
            v[going] += 1
        magnitude = (u + t * v) // s
        negative = generator.integers(0, 2, open_runs.size) == 1
        accepted &= ~(negative & (magnitude == 0))
        noise[open_runs[accepted]] = np.where(negative, -magnitude, magnitude)[accepted]
        open_runs = open_runs[~accepted]
    return noise


@dataclass(frozen=True)
class DiscreteLaplaceNoise:
    """The law of exact discrete Laplace noise: epsilon = (L1 sensitivity) / scale."""

    scale: Fraction

    def sample(self, shape: tuple[int, ...], draws: Draws) -> Integers:
        """Return draws."""
        return discrete_laplace(self.scale, math.prod(shape), draws.generator).reshape(shape)


@dataclass(frozen=True)
class DiscreteGaussianNoise:
    """The law of exact discrete Gaussian noise: rho-zCDP, rho = (L2 sensitivity)^2 / (2 sigma^2) ([1]_, Theorem 4).

    Parameters
    ----------
    sigma : Fraction
        Numerator and denominator at most 2**15.
    """

    sigma: Fraction

    def sample(self, shape: tuple[int, ...], draws: Draws) -> Integers:
        """Return draws by rejection from discrete Laplace noise ([1]_, Algorithm 3)."""
        n, d = self.sigma.numerator, self.sigma.denominator
        if not 0 < n <= 2**15 or d > 2**15:
            raise must_be("sigma", "positive with numerator and denominator at most 2**15", self.sigma)
        t = n // d + 1
        noise = np.zeros(math.prod(shape), dtype=np.int64)
        open_runs = np.arange(noise.size)
        while open_runs.size:
            y = discrete_laplace(Fraction(t), open_runs.size, draws.generator)
            accepted = np.array([_kept(int(size), n, d, t, draws.generator) for size in np.abs(y)], dtype=bool)
            noise[open_runs[accepted]] = y[accepted]
            open_runs = open_runs[~accepted]
        return noise.reshape(shape)


def _kept(size: int, n: int, d: int, t: int, generator: np.random.Generator) -> bool:
    """Return an exact draw of Bernoulli(exp(-(size - sigma^2 / t)^2 / (2 sigma^2))), sigma = n / d."""
    exponent = Fraction((size * t * d * d - n * n) ** 2, 2 * n * n * d * d * t * t)
    while exponent > 1:
        if not _coin(Fraction(1), generator):
            return False
        exponent -= 1
    return _coin(exponent, generator)


def _coin(exponent: Fraction, generator: np.random.Generator) -> bool:
    """Return an exact draw of Bernoulli(exp(-exponent)) for an exponent in 0..1, of any denominator."""
    k = 1
    while True:
        bound = exponent.denominator * k
        n_words = -(-bound.bit_length() // 32) + 1
        limit = (1 << (32 * n_words)) // bound * bound
        while True:
            number = int.from_bytes(generator.bytes(4 * n_words), "little")
            if number < limit:
                break
        if number % bound >= exponent.numerator:
            return k % 2 == 1
        k += 1


def integers(data: Sequence[object]) -> Integers:
    """Return the data as an array, or raise ValueError if they are not integers."""
    values = np.asarray(data)
    if values.dtype.kind not in "iu":
        raise ValueError(f"discrete noise needs integers, got {data!r}")
    return values


@dataclass(frozen=True)
class DiscreteLaplace:
    """Release integers with exact discrete Laplace noise of scale 1 / epsilon on every coordinate.

    A number that is not an integer must first be rounded to a fixed grid and counted in its units.

    **Claim**: epsilon for an L1 sensitivity of 1, delta = 0; exactly, also against an adversary who reads every bit
    of the output, where double-precision Laplace noise leaks through its low-order bits [2]_.

    Parameters
    ----------
    epsilon : float or Fraction
        In 1e-6..2000. A float is taken as the nearest fraction with a denominator of at most 10**6.
    """

    epsilon: float | Fraction = 1.0
    batched: ClassVar[bool] = True
    #: Inputs of noise calls are functions of the data: no output enters one.
    constant_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon, minimum=1e-6, maximum=2000)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise."""
        return 1 / Fraction(self.epsilon).limit_denominator(10**6)

    def __call__(self, data: Sequence[int], draws: Draws, runs: int) -> Integers:
        """Return the noisy integers, (dim, runs).

        Raises
        ------
        ValueError
            If the data are not integers.
        """
        values = integers(data)
        column = values.reshape(-1, 1)
        noise = draws.noise(DiscreteLaplaceNoise(self.scale), (values.size, runs), column, "integers")
        released: Integers = noise + column
        return released
