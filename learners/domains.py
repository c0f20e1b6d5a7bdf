"""Domains: convex sets with the minimisers that follow-the-leader algorithms need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..mechanisms.draws import Floats
from .checks import check_arms
from .protocol import Actions, Arms


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
