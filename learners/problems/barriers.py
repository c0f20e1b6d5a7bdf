"""Self-concordant barriers, on which SCRiBLe plays: of a ball, a cube and a simplex, with closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ...mechanisms.draws import Floats
from ..checks import check_arms
from ..protocol import Arms
from ..sampling import stretches
from .domains import Ball, signs

#: Newton steps, at most; few suffice.
_NEWTON_STEPS = 100
#: A squared distance from a ball's centre that is none.
TINY = 1e-24
#: Steps to an eigenvalue of a simplex, at most, and a step after which no other is needed: the next is its square.
_ROOT_STEPS, _ROOT_NEAR = 100, 1e-8


class Barrier(Protocol):
    """A nu-self-concordant barrier R of a convex body, in its own coordinates z: the points are `offset + basis z`."""

    @property
    def offset(self) -> Floats:
        """A point of the body's affine hull, (N,)."""

    @property
    def basis(self) -> Floats:
        """Orthonormal directions of the hull, (N, dim)."""

    @property
    def nu(self) -> float:
        """The barrier's parameter."""

    @property
    def centre(self) -> Floats:
        """The minimiser of R, (dim,)."""

    def derivatives(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the gradients (runs, dim) and Hessians (runs, dim, dim) of R at interior points z, (dim, runs)."""

    def minimise(self, linear: Floats) -> Floats:
        """Return the body's points of least <linear, x>, (N, runs): what regret is measured against."""


class ClosedForms(Protocol):
    """What a barrier may offer beside: what SCRiBLe asks of it in closed form, in its own coordinates."""

    def minimum(self, linear: Floats) -> Floats:
        """Return argmin <linear, z> + R(z), (dim, runs)."""

    def curved(self, z: Floats, move: Floats) -> Floats:
        """Return the Hessian of R at z times a move, both (dim, runs)."""

    def axis(self, z: Floats, index: Arms) -> tuple[Floats, Floats]:
        """Return the chosen eigenvalue of the Hessian at z, (runs,), and its `oriented` eigenvector, (dim, runs)."""


class _AroundOrigin:
    """What barriers share whose minimiser is the origin, in the standard coordinates of R^N."""

    dim: int

    def __post_init__(self) -> None:
        check_arms(self.dim)

    @property
    def offset(self) -> Floats:
        """The origin."""
        return np.zeros(self.dim)

    @property
    def basis(self) -> Floats:
        """The standard basis."""
        return np.eye(self.dim)

    @property
    def centre(self) -> Floats:
        """The origin."""
        return np.zeros(self.dim)


@dataclass(frozen=True)
class BallBarrier(_AroundOrigin):
    """R(x) = -ln(1 - ||x||_2^2) on the unit ball of R^N; nu = 1."""

    dim: int
    nu: float = 1.0

    def derivatives(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the gradients and Hessians."""
        slack = 1.0 - np.square(z).sum(axis=0)
        gradient = (2.0 * z / slack).T
        return gradient, gradient[:, :, None] * gradient[:, None, :] + (2.0 / slack)[:, None, None] * np.eye(self.dim)

    def minimise(self, linear: Floats) -> Floats:
        """Return the unit vectors against `linear`."""
        return Ball(self.dim).minimise(linear)

    def minimum(self, linear: Floats) -> Floats:
        """Return the minimisers: the gradient is 2 z / (1 - ||z||^2)."""
        return radial(linear, np.square(linear).sum(axis=0))

    def curved(self, z: Floats, move: Floats) -> Floats:
        """Return the Hessian times a move: 2 / s of it and 4 / s^2 of its part along z, s = 1 - ||z||^2."""
        scale = 2.0 / (1.0 - np.square(z).sum(axis=0))
        curved: Floats = scale * (move + scale * (z * move).sum(axis=0) * z)
        return curved

    def axis(self, z: Floats, index: Arms) -> tuple[Floats, Floats]:
        """Return a chosen axis: the last lies along z, the others are a reflection's that takes the last of R^N there.

        Across z the eigenvalues are equal, and any axes will do.
        """
        squared = np.square(z).sum(axis=0)
        along = np.zeros_like(z)
        along[-1] = 1.0
        np.divide(z, np.sqrt(squared), out=along, where=squared > TINY)
        # Two reflections do it: the one is taken that does not cancel, and the last bits of a sum do not choose.
        sign = signs(np.rint(along[-1] * 2.0**20) < 0)
        across = along.copy()
        across[-1] += sign
        runs = np.arange(z.shape[1])
        directions = -(across[index, runs] / (1.0 + sign * along[-1])) * across
        directions[index, runs] += 1.0
        last = index == self.dim - 1
        scale = 2.0 / (1.0 - squared)
        return scale + np.where(last, scale**2 * squared, 0.0), oriented(np.where(last, along, directions))


def oriented(directions: Floats) -> Floats:
    """Return unit vectors (dim, runs) or their opposites: the first of the largest components is positive."""
    sizes = np.rint(directions * 2.0**20)
    sizes *= 2.0**32 - np.arange(len(sizes))[:, None]  # whole numbers: of equal ones the first is the largest
    turned: Floats = directions * signs(sizes.max(axis=0) + sizes.min(axis=0) < 0)
    return turned


def radial(linear: Floats, squared: Floats) -> Floats:
    """Return z with 2 z / (1 - |z|^2) = -linear, |linear|^2 being `squared`."""
    z: Floats = -linear / (1.0 + np.sqrt(1.0 + squared))
    return z


@dataclass(frozen=True)
class BoxBarrier(_AroundOrigin):
    """R(x) = -sum ln(1 - x_i^2) on the cube [-1, 1]^N; nu = N, as 2 x^2 / (1 + x^2) <= 1 for each."""

    dim: int

    @property
    def nu(self) -> float:
        """N."""
        return float(self.dim)

    def derivatives(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the gradients and the Hessians, which are diagonal."""
        return (2.0 * z / (1.0 - z * z)).T, self._curvature(z).T[:, :, None] * np.eye(self.dim)

    def minimise(self, linear: Floats) -> Floats:
        """Return vertices against `linear`, 0 where that is 0."""
        return -np.sign(linear)

    def minimum(self, linear: Floats) -> Floats:
        """Return the minimisers, coordinate by coordinate."""
        return radial(linear, np.square(linear))

    def curved(self, z: Floats, move: Floats) -> Floats:
        """Return the Hessian times a move."""
        return self._curvature(z) * move

    def axis(self, z: Floats, index: Arms) -> tuple[Floats, Floats]:
        """Return a chosen coordinate's."""
        directions, runs = np.zeros_like(z), np.arange(z.shape[1])
        directions[index, runs] = 1.0
        return self._curvature(z[index, runs]), directions

    @staticmethod
    def _curvature(z: Floats) -> Floats:
        curvature: Floats = 1.0 / np.square(1.0 - z) + 1.0 / np.square(1.0 + z)
        return curvature


@dataclass(frozen=True)
class SimplexBarrier:
    """R(x) = -sum ln(x_i) on the probability simplex, in its affine hull; nu = N."""

    dim: int

    def __post_init__(self) -> None:
        check_arms(self.dim)
        if self.dim == 1:
            raise ValueError("the polytope has no interior: its equalities leave one point")

    @property
    def nu(self) -> float:
        """N."""
        return float(self.dim)

    @property
    def offset(self) -> Floats:
        """The middle."""
        return np.full(self.dim, 1.0 / self.dim)

    @cached_property
    def basis(self) -> Floats:
        """Helmert's: a coordinate against the mean of those before it."""
        before = np.arange(1, self.dim)
        basis: Floats = np.triu(np.ones((self.dim, self.dim - 1)))
        basis[before, before - 1] = -before
        return basis / np.sqrt(before * (before + 1.0))

    @property
    def centre(self) -> Floats:
        """The middle."""
        return np.zeros(self.dim - 1)

    def _points(self, z: Floats) -> Floats:
        points: Floats = self.basis @ z
        points += 1.0 / self.dim
        return points

    def derivatives(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the gradients and Hessians."""
        inverse = 1.0 / self._points(z)
        scaled = inverse.T[:, :, None] * self.basis
        return -(self.basis.T @ inverse).T, np.swapaxes(scaled, 1, 2) @ scaled

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertex of the least entry, the first of several."""
        return np.eye(self.dim)[:, linear.argmin(axis=0)]

    def minimum(self, linear: Floats) -> Floats:
        """Return the minimisers: x = 1 / (l + mu), where mu makes them sum to 1.

        Over the least entry mu lies in [1, N], and Newton's method on 1 / sum, which is concave, climbs from 1.
        """
        losses = self.basis @ linear
        losses -= losses.min(axis=0)
        mu, x = np.ones(losses.shape[1]), np.empty_like(losses)
        for _ in range(_NEWTON_STEPS):
            np.divide(1.0, np.add(losses, mu, out=x), out=x)
            total = x.sum(axis=0)
            step = total * (total - 1.0) / np.square(x, out=x).sum(axis=0)
            mu += step
            if not (np.abs(step) > 1e-15 * self.dim * mu).any():
                break
        minimisers: Floats = self.basis.T @ (1.0 / (losses + mu))
        return minimisers

    def curved(self, z: Floats, move: Floats) -> Floats:
        """Return the Hessian times a move."""
        curved: Floats = self.basis.T @ ((self.basis @ move) / np.square(self._points(z)))
        return curved

    def axis(self, z: Floats, index: Arms) -> tuple[Floats, Floats]:
        """Return a chosen axis: v = c / (d - lambda) with d = 1 / x^2, where lambda makes it sum to 0.

        Between two neighbours of the sorted d lies one such lambda. Equal ones are told apart by their place, by 2^-24
        of the largest: there any axes will do, and the last bits of a sum would choose.
        """
        d = 1.0 / np.square(self._points(z))
        d += np.arange(self.dim)[:, None] * (d.max(axis=0) * 2.0**-24)
        ordered, runs = np.sort(d, axis=0), np.arange(z.shape[1])
        smallest = ordered[index, runs]
        gap = ordered[index + 1, runs] - smallest
        d -= smallest
        root = np.concatenate([_root(d[:, stretch], gap[stretch]) for stretch in stretches(d.shape)])
        direction = self.basis.T @ (1.0 / (d - root))
        return smallest + root, oriented(direction / np.sqrt(np.square(direction).sum(axis=0)))


def _root(d: Floats, gap: Floats) -> Floats:
    """Return x in (0, gap) with f(x) = sum 1 / (d - x) = 0, where d has an entry 0, one `gap`, and none between them.

    Newton's method on f as a function of 1 / (gap - x) - 1 / x, of which it is no more than N - 1 times as steep, and
    by halves where it leaves what is known to hold the root.
    """
    x, low, high, inverse, tolerance = gap / 2, np.zeros_like(gap), gap.copy(), np.empty_like(d), _ROOT_NEAR * gap
    for _ in range(_ROOT_STEPS):
        np.divide(1.0, np.subtract(d, x, out=inverse), out=inverse)
        f = inverse.sum(axis=0)
        low, high = np.where(f < 0, x, low), np.where(f > 0, x, high)
        inverse_x, inverse_rest = 1.0 / x, 1.0 / (gap - x)
        slope = np.square(inverse, out=inverse).sum(axis=0) / (np.square(inverse_x) + np.square(inverse_rest))
        aim = gap * (inverse_rest - inverse_x - f / slope)
        next_x = 2.0 * gap / (2.0 - aim + np.sqrt(4.0 + np.square(aim)))
        next_x = np.where((next_x > low - tolerance) & (next_x < high + tolerance), next_x, (low + high) / 2)
        distance = np.abs(next_x - x)
        x = next_x
        if not (distance > tolerance).any():
            break
    return x
