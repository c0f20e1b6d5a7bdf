"""Domains: convex sets with the minimisers that follow-the-leader algorithms need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..mechanisms.draws import Floats
from .checks import check_arms


class Regularised(Protocol):
    """A domain with a regulariser R whose prox step has a closed form."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    def prox(self, linear: Floats) -> Floats:
        """Return argmin over the domain of <linear, x> + R(x), (dim, runs)."""


@dataclass(frozen=True)
class EntropySimplex:
    """The probability simplex with negative entropy, R(x) = sum x ln x (Agarwal & Singh 2017, Corollary 3.2.1)."""

    dim: int

    def __post_init__(self) -> None:
        check_arms(self.dim)

    def prox(self, linear: Floats) -> Floats:
        """Return softmax(-linear)."""
        x = linear.min(axis=0) - linear
        np.exp(x, out=x)
        x /= x.sum(axis=0)
        return x

    def invert(self, x: Floats) -> Floats:
        """Return the linear functions that lead to points x, up to a constant: those with coordinate 0 equal to 0."""
        with np.errstate(divide="ignore"):
            logs = np.log(x)
        inverse: Floats = logs[0] - logs
        return inverse
