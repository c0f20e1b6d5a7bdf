"""Domains: convex sets with the minimisers that follow-the-leader algorithms need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...mechanisms.draws import Floats
from ...mechanisms.elementary import exp
from ...mechanisms.philox import LANES
from ..checks import check_arms
from ..protocol import Actions, Arms


class Regularised(Protocol):
    """A domain with a regulariser R and its prox oracle. Any class with these two members will do."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    def prox(self, linear: Floats) -> Floats:
        """Return argmin over the domain of <linear, x> + R(x), (dim, runs)."""


class Linear(Protocol):
    """A domain with a linear minimisation oracle."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    def minimise(self, linear: Floats) -> Actions:
        """Return argmin over the domain of <linear, x>: points (dim, runs), or (runs,) arms for unit vectors."""


def simplex_minimise_block(linear: Floats, arms: Any, rows: Floats) -> None:
    """Block: `Simplex.minimise`."""
    least = rows[0]
    for i in range(LANES):
        least[i], arms[0, i] = linear[0, i], 0
    for k in range(1, len(linear)):
        for i in range(LANES):
            arms[0, i] = k if linear[k, i] < least[i] else arms[0, i]
            least[i] = min(least[i], linear[k, i])


def entropy_prox_block(linear: Floats, x: Floats, rows: Floats) -> None:
    """Block: `EntropySimplex.prox`."""
    least, total = rows[0], rows[1]
    for i in range(LANES):
        least[i], total[i] = linear[0, i], 0.0
    for k in range(1, len(x)):
        for i in range(LANES):
            least[i] = min(least[i], linear[k, i])
    for k in range(len(x)):
        for i in range(LANES):
            x[k, i] = exp(least[i] - linear[k, i])
        for i in range(LANES):
            total[i] += x[k, i]
    for k in range(len(x)):
        for i in range(LANES):
            x[k, i] /= total[i]


def ball_prox_block(linear: Floats, x: Floats, rows: Floats) -> None:
    """Block: `Ball.prox`."""
    size = rows[0]
    for i in range(LANES):
        size[i] = 0.0
    for k in range(len(x)):
        for i in range(LANES):
            x[k, i] = linear[k, i] * -0.5
            size[i] += x[k, i] * x[k, i]
    for i in range(LANES):
        size[i] = max(math.sqrt(size[i]), 1.0)
    for k in range(len(x)):
        for i in range(LANES):
            x[k, i] /= size[i]


def cube_prox_block(linear: Floats, x: Floats, rows: Floats) -> None:
    """Block: `Cube.prox`."""
    for k in range(len(x)):
        for i in range(LANES):
            x[k, i] = min(max(linear[k, i] * -0.5, -1.0), 1.0)


def cube_minimise_block(linear: Floats, x: Floats, rows: Floats) -> None:
    """Block: `Cube.minimise`."""
    for k in range(len(x)):
        for i in range(LANES):
            x[k, i] = -1.0 if linear[k, i] > 0 else 1.0


@dataclass(frozen=True)
class Simplex:
    """The probability simplex; its vertices are arms."""

    dim: int
    minimise_block = staticmethod(simplex_minimise_block)

    def __post_init__(self) -> None:
        check_arms(self.dim)

    def minimise(self, linear: Floats) -> Arms:
        """Return the arm of the smallest coordinate, (runs,); the first of several."""
        arms: Arms = linear.argmin(axis=0)
        return arms


@dataclass(frozen=True)
class EntropySimplex(Simplex):
    """The probability simplex with negative entropy, R(x) = sum x ln x (Agarwal & Singh 2017, Corollary 3.2.1)."""

    prox_block = staticmethod(entropy_prox_block)

    def prox(self, linear: Floats) -> Floats:
        """Return softmax(-linear)."""
        x: Floats = linear.min(axis=0) - linear
        np.exp(x, out=x)
        x /= x.sum(axis=0)
        return x

    def invert(self, x: Floats) -> Floats:
        """Return the linear functions that lead to points x, up to a constant: those with coordinate 0 equal to 0."""
        with np.errstate(divide="ignore"):
            logs = np.log(x)
        inverse: Floats = logs[0] - logs
        return inverse


@dataclass(frozen=True)
class Ball:
    """The unit L2 ball with R(x) = ||x||_2^2 (Agarwal & Singh 2017, Corollary 3.2.2)."""

    dim: int
    prox_block = staticmethod(ball_prox_block)

    def __post_init__(self) -> None:
        check_arms(self.dim)

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
class Cube:
    """The cube [-1, 1]^N with R(x) = ||x||_2^2 (Agarwal & Singh 2017, Corollary 3.2.3)."""

    dim: int
    prox_block = staticmethod(cube_prox_block)
    minimise_block = staticmethod(cube_minimise_block)

    def __post_init__(self) -> None:
        check_arms(self.dim)

    def prox(self, linear: Floats) -> Floats:
        """Return -linear / 2, clipped."""
        x = linear * -0.5
        return np.clip(x, -1.0, 1.0, out=x)

    def invert(self, x: Floats) -> Floats:
        """Return the shortest linear functions that lead to points x; inside the cube, the only ones."""
        return -2.0 * x

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertices against `linear`; 1 in coordinates where it is 0."""
        return np.where(linear > 0, -1.0, 1.0)
