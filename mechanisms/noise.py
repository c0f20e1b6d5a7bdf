"""Noise laws: how each is sampled, its density, and the privacy it gives for a sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import gammaln, ndtr

from ..errors import must_be
from .draws import Draws, Floats
from .weakening import NoNoiseError

Shape = tuple[int, ...]
#: Squares of outcomes and of their quotients by a scale up to this are numbers still.
LARGEST = 1e150
#: The bit of a float that is its sign.
_SIGN = np.int64(-(2**63))
#: So many factors from 2^-54 to 2^52 have a product that is a number with all its digits.
_FACTORS = 16


class Noise(Protocol):
    """A law for additive noise. Arrays have the runs on the last axis, coordinates before it."""

    def sample(self, shape: Shape, draws: Draws) -> Floats:
        """Return independent draws of the given shape: (runs,) or (dim, runs)."""

    def log_density(self, x: Floats) -> Floats:
        """Return the log density of noise `x`: (runs,), summed over all axes before the last."""


@runtime_checkable
class HasScale(Protocol):
    """Ability: noise that is a standard law times one number, as Laplace noise is."""

    @property
    def scale(self) -> float:
        """The number."""


@runtime_checkable
class HasDeviation(Protocol):
    """Ability: Gaussian noise."""

    @property
    def sigma(self) -> float:
        """The standard deviation of each coordinate."""


def scale_of(noise: object) -> float:
    """Return the scale of noise; 0 where it has none: Gaussian noise has a deviation (`deviation_of`)."""
    return float(noise.scale) if isinstance(noise, HasScale) else 0.0


def deviation_of(noise: object) -> float:
    """Return the standard deviation of Gaussian noise; 0 where the noise is of another kind."""
    return float(noise.sigma) if isinstance(noise, HasDeviation) else 0.0


def _divided(scale: float, factor: float) -> float:
    """Return the scale of noise divided by a factor, or raise NoNoiseError where there is none."""
    if scale == 0:
        raise NoNoiseError("there is no noise to divide")
    return scale / factor


def _check_scale(name: str, scale: float) -> None:
    if not (scale >= 0 and math.isfinite(scale)):
        raise must_be(name, "finite and at least 0", scale)
    if scale and not 1 / LARGEST <= scale <= LARGEST:
        raise must_be(name, f"0, or from {1 / LARGEST:g} to {LARGEST:g}", scale)


def _over_coordinates(values: Floats) -> Floats:
    """Sum over every axis but the last."""
    total: Floats = values.reshape(-1, values.shape[-1]).sum(axis=0)
    return total


#: What makes uniforms symmetric about 0, and never exactly 0.
_MIDDLE = 0.5 - 2.0**-54


def _half_factor(shape: Shape, draws: Draws) -> Floats:
    """Return exp(x) / 2 of standard Laplace draws x, those that `Laplace.sample` makes of the same uniforms."""
    u = draws.uniform(shape)
    np.subtract(_MIDDLE, u, out=u)
    return np.maximum(-0.25 / u, u, out=u)  # x is -ln(2 |u|) where this u is negative, and else its opposite


@dataclass(frozen=True)
class Laplace:
    """Independent Laplace noise of scale `scale` on every coordinate; scale 0 is no noise.

    **Claim**: epsilon = (L1 sensitivity) / scale, delta = 0 (Dwork, McSherry, Nissim & Smith 2006).

    Examples
    --------
    >>> Laplace(scale=0.5).epsilon(sensitivity=1.0)
    2.0
    """

    scale: float

    def __post_init__(self) -> None:
        _check_scale("scale", self.scale)

    def sample(self, shape: Shape, draws: Draws) -> Floats:
        """Return draws by inverse distribution function: one uniform each (3x faster than Generator.laplace)."""
        if self.scale == 0:
            return np.zeros(shape)
        u = draws.uniform(shape)
        u -= _MIDDLE
        size = np.abs(u)
        size *= 2.0
        np.log(size, out=size)
        size *= -self.scale
        bits = u.view(np.int64)  # the sign of u to a positive size: np.copysign takes as long as the logarithm
        bits &= _SIGN
        bits |= size.view(np.int64)
        return u

    def sample_sums(self, count: int, shape: Shape, draws: Draws) -> Floats:
        """Return sums of `count` draws each, those that `sample` would return, by one logarithm for every few of them.

        They are the same but for rounding.
        """
        if count > _FACTORS:
            sums = self.sample_sums(_FACTORS, shape, draws)
            sums += self.sample_sums(count - _FACTORS, shape, draws)
            return sums
        if count == 1 or self.scale == 0:
            return self.sample(shape, draws)
        product = _half_factor(shape, draws)
        for _ in range(count - 1):
            product *= _half_factor(shape, draws)
        product *= 2.0**count  # exact
        np.log(product, out=product)
        product *= self.scale
        return product

    def log_density(self, x: Floats) -> Floats:
        """Return the log density, (runs,)."""
        return _over_coordinates(-np.abs(x) / self.scale - math.log(2 * self.scale))

    def weakened(self, factor: float) -> Laplace:
        """Return the same law with its scale divided by a factor."""
        return Laplace(_divided(self.scale, factor))

    def tail(self, x: Floats) -> Floats:
        """Return the probability that one draw exceeds x >= 0, for each entry."""
        return 0.5 * np.exp(-x / self.scale)

    def epsilon(self, sensitivity: float) -> float:
        """Return epsilon (nats) for an L1 sensitivity."""
        return sensitivity / self.scale


@dataclass(frozen=True)
class Gaussian:
    """Independent Gaussian noise of standard deviation `sigma` on every coordinate.

    **Claim**: mu-Gaussian DP with mu = (L2 sensitivity) / sigma (Dong, Roth & Su 2022); never pure DP.
    """

    sigma: float

    def __post_init__(self) -> None:
        _check_scale("sigma", self.sigma)

    def sample(self, shape: Shape, draws: Draws) -> Floats:
        """Return normal draws."""
        if self.sigma == 0:
            return np.zeros(shape)
        noise = draws.normal(shape)
        noise *= self.sigma
        return noise

    def total(self, draws: int) -> Gaussian:
        """Return the law of the sum of so many independent draws."""
        return Gaussian(self.sigma * math.sqrt(draws))

    def log_density(self, x: Floats) -> Floats:
        """Return the log density, (runs,)."""
        constant = math.log(self.sigma) + 0.5 * math.log(2 * math.pi)
        return _over_coordinates(-0.5 * np.square(x / self.sigma) - constant)

    def weakened(self, factor: float) -> Gaussian:
        """Return the same law with its standard deviation divided by a factor."""
        return Gaussian(_divided(self.sigma, factor))

    def tail(self, x: Floats) -> Floats:
        """Return the probability that one draw exceeds x >= 0, for each entry."""
        tail: Floats = ndtr(-x / self.sigma)
        return tail

    def mu(self, sensitivity: float) -> float:
        """Return mu of Gaussian DP for an L2 sensitivity."""
        return sensitivity / self.sigma


@dataclass(frozen=True)
class L2Laplace:
    """Noise with density proportional to exp(-||n||_2 / scale) in `dim` dimensions.

    The radius is Gamma(shape `dim`, scale `scale`) and the direction uniform: the noise of Algorithm 2 of Smith &
    Thakurta 2013. The proof of their Lemma 8 swaps shape and scale.

    **Claim**: epsilon = (L2 sensitivity) / scale, delta = 0.
    """

    scale: float
    dim: int

    def __post_init__(self) -> None:
        _check_scale("scale", self.scale)
        if self.dim < 1:
            raise must_be("dim", "at least 1", self.dim)

    def sample(self, shape: Shape, draws: Draws) -> Floats:
        """Return draws of shape (dim, runs)."""
        if shape[0] != self.dim:
            raise ValueError(f"shape must start with dim = {self.dim}, got {shape!r}")
        if self.scale == 0:
            return np.zeros(shape)
        if self.dim == 1:  # the one-dimensional law is Laplace
            return Laplace(self.scale).sample(shape, draws)
        direction = draws.normal(shape)
        radius = draws.generator.standard_gamma(self.dim, shape[1:]) * self.scale
        direction *= radius / np.sqrt(np.square(direction).sum(axis=0))
        return direction

    def log_density(self, x: Floats) -> Floats:
        """Return the log density, (runs,); the constant is that of the radius over the sphere's area."""
        p = self.dim
        area = math.log(2) + 0.5 * p * math.log(math.pi) - float(gammaln(p / 2))
        constant = area + float(gammaln(p)) + p * math.log(self.scale)
        norms: Floats = np.sqrt(np.square(x).sum(axis=0))
        return -norms / self.scale - constant

    def weakened(self, factor: float) -> L2Laplace:
        """Return the same law with its scale divided by a factor."""
        return L2Laplace(_divided(self.scale, factor), self.dim)

    def epsilon(self, sensitivity: float) -> float:
        """Return epsilon (nats) for an L2 sensitivity."""
        return sensitivity / self.scale


@dataclass(frozen=True)
class Projected:
    """The noise <Z, x> of points x whose Z has independent entries of a law.

    **Claim**: with Laplace entries of scale b a shift d costs at most |d| / (b max |x_i|), as the sum has a Laplace
    term of that scale; with normal ones, mu = |d| / (sigma ||x||_2).

    Parameters
    ----------
    law : Laplace or Gaussian
        Of one entry.
    points : array (dim, runs)
    """

    law: Laplace | Gaussian
    points: Floats

    def sample(self, shape: Shape, draws: Draws) -> Floats:
        """Return draws, (runs,)."""
        noise: Floats = (self.law.sample(self.points.shape, draws) * self.points).sum(axis=0)
        return noise


@dataclass(frozen=True)
class Exponential:
    """Noise on one side only, of which no shift is private: it bounds no ratio."""

    scale: float

    def sample(self, shape: tuple[int, ...], draws: Draws) -> Floats:
        """Return draws by inverse distribution function."""
        noise: Floats = -self.scale * np.log1p(-draws.uniform(shape))
        return noise


def laplace_sum_coefficients(draws: int) -> list[float]:
    """Return the polynomial in |x|, highest power first, that times exp(-|x|) is the density of a sum of draws.

    They are standard Laplace variables.
    """
    n = draws
    divisor = math.factorial(n - 1) * 2.0**n
    return [
        math.factorial(n - 1 + j) / (math.factorial(n - 1 - j) * math.factorial(j) * 2.0**j) / divisor
        for j in range(n)
    ]


#: Numbers that a sum's density is computed of at once; and a size where exp(-size) is 0, and its powers are numbers.
_CACHED, _VANISHED = 2**14, 1e3


def laplace_sum_density(x: Floats, draws: int) -> Floats:
    """Return the density at x of the sum of `draws` standard Laplace variables."""
    first, *coefficients = laplace_sum_coefficients(draws)
    size = np.abs(np.asarray(x, dtype=np.float64), order="C")
    density = np.empty_like(size)
    for start in range(0, size.size, _CACHED):  # a stretch stays near the processor through all passes
        part = size.reshape(-1)[start : start + _CACHED]
        np.minimum(part, _VANISHED, out=part)
        value = density.reshape(-1)[start : start + _CACHED]
        value.fill(first)
        for coefficient in coefficients:
            value *= part
            value += coefficient
        value *= np.exp(-part)
    return density
