"""The probability simplex in coordinates of its own hull, with its centre for origin: a body that has an inside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...mechanisms.draws import Floats
from ..checks import check_arms
from .domains import ProbabilitySimplex


@dataclass(frozen=True)
class CentredSimplex:
    """The points z for which `1 / n + basis z` is a probability vector over n = dim + 1 experts.

    Smith & Thakurta's bandit needs a body that contains a ball around 0; the simplex in R^n has none.
    """

    dim: int

    def __post_init__(self) -> None:
        check_arms(self.dim)

    @property
    def experts(self) -> int:
        """The number of experts, n."""
        return self.dim + 1

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal directions of the hull, (experts, dim): Helmert's contrasts."""
        rows = np.tri(self.dim, self.experts) - np.diag(np.arange(1.0, self.experts), 1)[: self.dim]
        directions: Floats = (rows / np.sqrt(np.square(rows).sum(axis=1, keepdims=True))).T
        return directions

    @property
    def outer_radius(self) -> float:
        """The distance of a vertex."""
        return math.sqrt(self.dim / self.experts)

    @property
    def inner_radius(self) -> float:
        """The distance of a face's centre."""
        return 1 / math.sqrt(self.dim * self.experts)

    @property
    def diameter(self) -> float:
        """The distance of two vertices."""
        return math.sqrt(2)

    def probabilities(self, z: Floats) -> Floats:
        """Return the vectors that points stand for, (experts, runs)."""
        return 1 / self.experts + self.basis @ z

    def project(self, x: Floats) -> Floats:
        """Return the nearest points."""
        nearest: Floats = self.basis.T @ ProbabilitySimplex(self.experts).project(self.probabilities(x))
        return nearest

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertices of least <linear, z>, (dim, runs)."""
        vertices = self.basis.T
        minimisers: Floats = vertices[:, (self.basis @ linear).argmin(axis=0)]
        return minimisers
