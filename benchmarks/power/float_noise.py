"""Noise in double precision from 32-bit uniforms, as Delta-Siege's repository makes it: what leaks through low bits.

Every one is called as `mechanism(data, draws, runs)` with one number. In real arithmetic the claims are true; the
floating-point steps are those of Delta-Siege's mechanisms in their order, and written anew.

References
----------
.. [1] J. Lokna, A. Paradis, D. Dimitrov, M. Vechev. Group and attack: auditing differential privacy. CCS 2023.
.. [2] G. Box, M. Muller. A note on the generation of random normal deviates. Ann. Math. Stat. 29 (1958).
.. [3] G. Marsaglia, T. Bray. A convenient method for generating normal variables. SIAM Review 6 (1964).
.. [4] G. Marsaglia, W. W. Tsang. The ziggurat method for generating random variables. J. Stat. Software 5 (2000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from overclaim.mechanisms.draws import Draws, Floats

#: The uniforms are k / WORDS for whole k.
WORDS = 2**32


def uniform(draws: Draws, shape: int | tuple[int, ...]) -> Floats:
    """Return uniforms on [0, 1), multiples of 2**-32."""
    return draws.generator.integers(0, WORDS, shape) / WORDS


def signs(draws: Draws, runs: int) -> NDArray[np.int64]:
    """Return fair signs."""
    return 2 * (uniform(draws, runs) < 0.5) - 1


@dataclass(frozen=True)
class FloatNoise:
    """What these mechanisms share: the claim that sets their noise, for numbers that differ by at most 1."""

    epsilon: float
    delta: float = 0.0
    batched: ClassVar[bool] = True

    @property
    def deviation(self) -> float:
        """The standard deviation: of the classic Gaussian mechanism, or of Laplace noise where delta is 0."""
        if not self.delta:
            return float(np.sqrt(2) / self.epsilon)
        return float(np.sqrt(2 * np.log(1.25 / self.delta) * np.square(1 / self.epsilon)))

    def standard(self, draws: Draws, runs: int) -> Floats:
        """Return noise of deviation 1, (runs,)."""
        raise NotImplementedError

    def __call__(self, data: float, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers, (runs,)."""
        return data + self.deviation * self.standard(draws, runs)


class LaplaceInversion(FloatNoise):
    """Laplace noise by the inverse of its distribution function."""

    def standard(self, draws: Draws, runs: int) -> Floats:
        """Return noise of deviation 1, (runs,)."""
        size = -np.log(1 - uniform(draws, runs)) / np.sqrt(2)
        return signs(draws, runs) * size


class GaussBoxMuller(FloatNoise):
    """Gaussian noise by a radius and an angle [2]_."""

    def __call__(self, data: float, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers, (runs,): the deviation is multiplied with the radius first."""
        with np.errstate(divide="ignore"):  # of the uniform 0
            radius = np.sqrt(-2 * np.log(uniform(draws, runs)))
        return data + self.deviation * radius * np.cos(2 * np.pi * uniform(draws, runs))


class GaussPolar(FloatNoise):
    """Gaussian noise by a point of the unit disc [3]_, the first of the two numbers that it gives."""

    def __call__(self, data: float, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers, (runs,): the deviation is multiplied with the point first."""
        point = accepted(self.disc, draws, runs)
        square = np.linalg.norm(point, axis=1) ** 2
        return data + self.deviation * point[:, 0] * np.sqrt(-2 * np.log(square) / square)

    @staticmethod
    def disc(draws: Draws, runs: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return points of the square, (runs, 2), and whether they lie in the disc."""
        point = 2 * uniform(draws, (runs, 2)) - 1
        norm = np.linalg.norm(point, axis=1)
        return point, (norm > 0) & (norm < 1)


class GaussZiggurat(FloatNoise):
    """Gaussian noise from 256 layers of equal area [4]_."""

    layers, area, edge = 256, 0.00492867323399, 3.6541528853610088

    def standard(self, draws: Draws, runs: int) -> Floats:
        """Return noise of deviation 1, (runs,)."""
        size = accepted(self.layer, draws, runs)
        return signs(draws, runs) * size

    def tables(self) -> tuple[Floats, Floats, Floats]:
        """Return the layers' widths, densities and shares that need no further look."""
        width, height = np.zeros(self.layers), np.ones(self.layers)
        width[-1], height[-1] = self.edge, density(np.float64(self.edge))
        for i in range(self.layers - 2, 0, -1):
            width[i] = np.sqrt(-2 * np.log(height[i + 1] + self.area / width[i + 1]))
            height[i] = density(width[i])
        share = np.empty(self.layers)
        share[1:] = width[:-1] / width[1:]
        share[0] = self.edge * density(np.float64(self.edge)) / self.area
        width[0] = self.area / density(np.float64(self.edge))
        return width, height, share

    def layer(self, draws: Draws, runs: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return sizes, and whether they are accepted."""
        width, height, share = self.tables()
        i = draws.generator.integers(0, self.layers, runs)
        u = uniform(draws, runs)
        size = u * width[i]
        kept = u < share[i]
        tail, other = ~kept & (i == 0), ~kept & (i != 0)
        size[tail] = accepted(self.tail, draws, int(tail.sum()))
        i = i[other]
        under = uniform(draws, i.size) * (height[i - 1] - height[i]) < density(size[other]) - height[i]
        kept[other] = under
        return size, kept | tail

    def tail(self, draws: Draws, runs: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return sizes beyond the edge, and whether they are accepted."""
        with np.errstate(divide="ignore"):  # of the uniform 0
            x, y = -np.log(uniform(draws, runs)) / self.edge, -np.log(uniform(draws, runs))
        return self.edge + x, x**2 > y**2


def density(x: Any) -> Any:
    """Return the Gaussian density, but for its factor."""
    return np.exp(-0.5 * (x**2))


def accepted(propose: Any, draws: Draws, runs: int) -> Floats:
    """Return what is accepted for every run, proposing anew for the runs where it is not."""
    chosen, kept = propose(draws, runs)
    while not kept.all():
        missing = np.flatnonzero(~kept)
        chosen[missing], kept[missing] = propose(draws, missing.size)
    return chosen  # type: ignore[no-any-return]
