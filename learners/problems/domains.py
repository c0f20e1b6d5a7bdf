"""Domains: balls, cubes and simplices, by what a learner may ask of them.

A set minimises linear functions, projects, or minimises them with a regulariser added (a prox step). `Ball`, `Cube`,
`Simplex` and `EntropySimplex` are the same sets as Agarwal & Singh 2017 use them: of radius 1, with its regularisers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ...mechanisms.parameters import check_positive
from ..checks import check_arms
from ..protocol import Actions, Arms

#: Rows that are sorted by a network, at most: more comparisons cost more than NumPy's sort of each column.
_NETWORK = 16
#: Powers of e from -708 on lack digits, and NumPy takes twenty times as long for them, and for those that are 0.
_LEAST_EXPONENT = -707.0


class Domain(Protocol):
    """A set of points of so many coordinates."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""


class Regularised(Domain, Protocol):
    """A domain with a regulariser R and its prox oracle. Any class with these two members will do."""

    def prox(self, linear: Floats) -> Floats:
        """Return argmin over the domain of <linear, x> + R(x), (dim, runs)."""


@runtime_checkable
class LinearMinimiser(Protocol):
    """A domain over which linear functions can be minimised."""

    def minimise(self, linear: Floats) -> Actions:
        """Return argmin over the domain of <linear, x>: points (dim, runs), or (runs,) arms for unit vectors."""


class Minimiser(Domain, LinearMinimiser, Protocol):
    """A domain whose linear functions are minimised by points or by arms."""


class LinearOracle(Domain, Protocol):
    """A convex domain that can minimise linear functions."""

    @property
    def diameter(self) -> float:
        """An upper bound on the L2 distance of two points."""

    def minimise(self, linear: Floats) -> Floats:
        """Return a point of the domain with the least <linear, x>, for every run: (dim, runs)."""


class Projection(Domain, Protocol):
    """A convex domain that can project."""

    @property
    def outer_radius(self) -> float:
        """The largest L2 norm of a point."""

    @property
    def inner_radius(self) -> float:
        """The radius of the largest L2 ball around 0 inside; 0 if there is none."""

    def project(self, x: Floats) -> Floats:
        """Return the nearest points of the domain, (dim, runs)."""


def signs(negative: NDArray[np.bool_]) -> Floats:
    """Return -1 where it is so, else 1: by arithmetic, as a processor cannot guess branches by chance."""
    x = negative.astype(np.float64)
    x *= -2.0
    x += 1.0
    return x


@dataclass(frozen=True)
class _Ball:
    """A ball around 0 of a norm, with its dimension and radius."""

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_arms(self.dim)
        check_positive("radius", self.radius)


class L1Ball(_Ball):
    """The cross-polytope, ||x||_1 <= radius."""

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2 * self.radius

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertex against the largest coordinate."""
        runs = np.arange(linear.shape[1])
        largest = np.abs(linear).argmax(axis=0)
        x = np.zeros(linear.shape)
        x[largest, runs] = -np.copysign(self.radius, linear[largest, runs] + 0.0)  # 0 has one sign
        return x


class L2Ball(_Ball):
    """The Euclidean ball, ||x||_2 <= radius."""

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2 * self.radius

    @property
    def outer_radius(self) -> float:
        """The radius."""
        return self.radius

    @property
    def inner_radius(self) -> float:
        """The radius."""
        return self.radius

    def minimise(self, linear: Floats) -> Floats:
        """Return the point opposite to `linear`; where that is 0, the one opposite to the first axis."""
        norms = np.sqrt(np.square(linear).sum(axis=0))
        point: Floats = linear * (-self.radius / np.where(norms > 0, norms, 1.0))
        point[0] = np.where(norms > 0, point[0], -self.radius)
        return point

    def project(self, x: Floats) -> Floats:
        """Return x, scaled to the radius where it is longer."""
        if self.dim == 1:
            return np.clip(x, -self.radius, self.radius)  # exact at the ends
        norms = np.sqrt(np.square(x).sum(axis=0))
        nearest: Floats = x * (self.radius / np.maximum(norms, self.radius))
        return nearest


class LInfBall(_Ball):
    """The cube, ||x||_inf <= radius."""

    @property
    def diameter(self) -> float:
        """Its diagonal."""
        return 2 * self.radius * math.sqrt(self.dim)

    @property
    def outer_radius(self) -> float:
        """Half the diagonal."""
        return self.radius * math.sqrt(self.dim)

    @property
    def inner_radius(self) -> float:
        """The radius."""
        return self.radius

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertex of opposite signs."""
        return -np.copysign(self.radius, linear + 0.0)  # 0 has one sign

    def project(self, x: Floats) -> Floats:
        """Return x with every coordinate clipped."""
        return np.clip(x, -self.radius, self.radius)


def sorted_down(x: Floats) -> Floats:
    """Return the columns of (dim, runs) sorted from the largest down: few rows by a network, all runs at once."""
    if len(x) > _NETWORK:
        return -np.sort(-x, axis=0)
    rows, minima = x.copy(), np.empty(x.shape[1:])
    for i, j in comparisons(len(x)):
        np.minimum(rows[i], rows[j], out=minima)
        np.maximum(rows[i], rows[j], out=rows[i])
        rows[j] = minima
    return rows


@cache
def comparisons(size: int) -> tuple[tuple[int, int], ...]:
    """Return the comparisons of Batcher's odd-even merge sort (1968), in order: each puts two places in order."""
    return tuple(
        (i, i + k)
        for p in (2**e for e in range((size - 1).bit_length()))
        for k in (p >> e for e in range(p.bit_length()))
        for first in range(k % p, size - k, 2 * k)
        for i in range(first, min(first + k, size - k))
        if i // (2 * p) == (i + k) // (2 * p)
    )


@dataclass(frozen=True)
class ProbabilitySimplex:
    """The probability simplex; its oracle answers vertices, as points."""

    dim: int

    def __post_init__(self) -> None:
        check_arms(self.dim)

    @property
    def diameter(self) -> float:
        """The square root of 2 (0 for one point)."""
        return math.sqrt(2) if self.dim > 1 else 0.0

    @property
    def outer_radius(self) -> float:
        """1."""
        return 1.0

    @property
    def inner_radius(self) -> float:
        """0: no ball around the origin fits."""
        return 0.0

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertex of the least coordinate."""
        x = np.zeros(linear.shape)
        x[linear.argmin(axis=0), np.arange(linear.shape[1])] = 1.0
        return x

    def project(self, x: Floats) -> Floats:
        """Return max(x - tau, 0) with tau such that it sums to 1 (Held, Wolfe & Crowder 1974)."""
        total, tau = np.zeros(x.shape[1]), np.full(x.shape[1], -math.inf)
        for count, largest in enumerate(sorted_down(x), start=1):
            total += largest
            np.maximum(tau, (total - 1) / count, out=tau)  # it grows as long as the next belongs to the support
        nearest: Floats = x - tau
        np.maximum(nearest, 0.0, out=nearest)
        return nearest


@dataclass(frozen=True)
class Simplex:
    """The probability simplex; its vertices are arms."""

    dim: int

    def __post_init__(self) -> None:
        check_arms(self.dim)

    def minimise(self, linear: Floats) -> Arms:
        """Return the arm of the smallest coordinate, (runs,); the first of several."""
        arms: Arms = linear.argmin(axis=0)
        return arms


@dataclass(frozen=True)
class EntropySimplex(Simplex):
    """The probability simplex with negative entropy, R(x) = sum x ln x (Agarwal & Singh 2017, Corollary 3.2.1)."""

    def prox(self, linear: Floats) -> Floats:
        """Return softmax(-linear); what is e^707 times less likely than the likeliest has probability 0."""
        x: Floats = linear.min(axis=0) - linear
        if x.min() < _LEAST_EXPONENT:
            positive = x >= _LEAST_EXPONENT
            np.maximum(x, _LEAST_EXPONENT, out=x)
            np.exp(x, out=x)
            x *= positive
        else:
            np.exp(x, out=x)
        x /= x.sum(axis=0)
        return x

    def invert(self, x: Floats) -> Floats:
        """Return the linear functions that lead to points x, up to a constant: those with coordinate 0 equal to 0.

        Probabilities that have vanished, below about exp(-708), are read as the least that are numbers still.
        """
        logs = np.log(np.maximum(x, np.finfo(float).tiny))
        inverse: Floats = logs[0] - logs
        return inverse


@dataclass(frozen=True)
class Ball(L2Ball):
    """The unit L2 ball with R(x) = ||x||_2^2 (Agarwal & Singh 2017, Corollary 3.2.2)."""

    radius: float = field(default=1.0, init=False, repr=False)

    def prox(self, linear: Floats) -> Floats:
        """Return the projection of -linear / 2."""
        x = linear * -0.5
        x /= np.maximum(np.sqrt(np.square(x).sum(axis=0)), 1.0)
        return x

    def invert(self, x: Floats) -> Floats:
        """Return the shortest linear functions that lead to points x; inside the ball, the only ones."""
        return -2.0 * x

    def minimise(self, linear: Floats) -> Floats:
        """Return the unit vectors against `linear`; the first unit vector where it is 0."""
        size = np.sqrt(np.square(linear).sum(axis=0))
        zero = size == 0
        x = linear / np.where(zero, -1.0, -size)
        x[0, zero] = 1.0
        return x


@dataclass(frozen=True)
class Cube(LInfBall):
    """The cube [-1, 1]^N with R(x) = ||x||_2^2 (Agarwal & Singh 2017, Corollary 3.2.3)."""

    radius: float = field(default=1.0, init=False, repr=False)

    def prox(self, linear: Floats) -> Floats:
        """Return -linear / 2, clipped."""
        x = linear * -0.5
        return np.clip(x, -1.0, 1.0, out=x)

    def invert(self, x: Floats) -> Floats:
        """Return the shortest linear functions that lead to points x; inside the cube, the only ones."""
        return -2.0 * x

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertices against `linear`; 1 in coordinates where it is 0."""
        return signs(linear > 0)
