"""SCRiBLe: bandit linear optimisation on a convex body through a self-concordant barrier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from ...mechanisms.draws import Draws, Floats
from ..checks import check_arms, check_positive
from ..problems.domains import Ball
from ..protocol import FeedbackKind, LearnerError

#: A centre is accepted at this Newton decrement: its error in the local norm is about as small.
PRECISION = 1e-9
_NEWTON_STEPS = 500


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


@dataclass(frozen=True)
class BallBarrier:
    """R(x) = -ln(1 - ||x||_2^2) on the unit ball of R^N; nu = 1."""

    dim: int
    nu: float = 1.0

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

    def derivatives(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the gradients and Hessians."""
        slack = 1.0 - np.square(z).sum(axis=0)
        gradient = (2.0 * z / slack).T
        return gradient, gradient[:, :, None] * gradient[:, None, :] + (2.0 / slack)[:, None, None] * np.eye(self.dim)

    def minimise(self, linear: Floats) -> Floats:
        """Return the unit vectors against `linear`."""
        return Ball(self.dim).minimise(linear)


@dataclass(frozen=True, eq=False)
class PolytopeBarrier:
    """R(x) = -sum ln(b - A x) on the bounded polytope {A x <= b, C x = d}, in the affine hull of the equalities.

    Parameters
    ----------
    A, b : array-like (m, N), (m,)
    C, d : array-like (k, N), (k,), optional
    parameter : float, optional
        nu, where less than the number of constraints is known to do.

    Raises
    ------
    ValueError
        If the polytope is empty, has no interior in its hull, or is unbounded.
    """

    A: ArrayLike
    b: ArrayLike
    C: ArrayLike | None = None
    d: ArrayLike | None = None
    parameter: float | None = None

    def __post_init__(self) -> None:
        A, b = np.asarray(self.A, dtype=float), np.asarray(self.b, dtype=float)
        if A.ndim != 2 or b.shape != A.shape[:1]:
            raise ValueError(f"A must have a row for each entry of b, got shapes {A.shape} and {b.shape}")
        if (self.C is None) != (self.d is None):
            raise ValueError("C and d must be given together")
        self.centre  # noqa: B018  the checks of the polytope

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        dim = np.asarray(self.A).shape[1]
        if self.C is None or self.d is None:
            return np.zeros(dim), np.eye(dim)
        C, d = np.atleast_2d(np.asarray(self.C, dtype=float)), np.atleast_1d(np.asarray(self.d, dtype=float))
        offset: Floats = np.linalg.lstsq(C, d, rcond=None)[0]
        if not np.allclose(C @ offset, d):
            raise ValueError("the polytope is empty: its equalities contradict each other")
        return offset, scipy.linalg.null_space(C)

    @cached_property
    def _inequalities(self) -> tuple[Floats, Floats]:
        """The constraints in the hull's coordinates."""
        A, b = np.asarray(self.A, dtype=float), np.asarray(self.b, dtype=float)
        return A @ self.basis, b - A @ self.offset

    @property
    def offset(self) -> Floats:
        """A point of the affine hull."""
        return self._hull[0]

    @property
    def basis(self) -> Floats:
        """Orthonormal directions of the hull."""
        return self._hull[1]

    @property
    def nu(self) -> float:
        """The number of constraints, unless a smaller parameter was given."""
        return float(np.asarray(self.b).size) if self.parameter is None else self.parameter

    @cached_property
    def centre(self) -> Floats:
        """The analytic centre, by Newton's method from the centre of a largest ball (at most 1) inside."""
        rows, slacks = self._inequalities
        inner = _inner_point(rows, slacks)
        return minimise(self, np.zeros((inner.size, 1)), inner[:, None])[:, 0]

    def derivatives(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the gradients and Hessians."""
        rows, slacks = self._inequalities
        scaled = rows / (slacks[:, None] - rows @ z).T[:, :, None]  # (runs, m, dim)
        return scaled.sum(axis=1), np.swapaxes(scaled, 1, 2) @ scaled

    def minimise(self, linear: Floats) -> Floats:
        """Return vertices of least <linear, x>: one linear programme for each distinct column."""
        columns, which = np.unique(linear, axis=1, return_inverse=True)
        rows, slacks = self._inequalities
        best = [
            scipy.optimize.linprog(self.basis.T @ column, rows, slacks, bounds=(None, None)).x
            if column.any()
            else self.centre
            for column in columns.T
        ]
        points: Floats = self.offset[:, None] + self.basis @ np.array(best).T[:, which.reshape(-1)]
        return points


def _inner_point(rows: Floats, slacks: Floats) -> Floats:
    """Return a point well inside {rows z <= slacks}; raise ValueError if there is none, or the set is unbounded."""
    count, dim = rows.shape
    if dim == 0:
        raise ValueError("the polytope has no interior: its equalities leave one point")
    sizes = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    bounds = [(None, None)] * dim + [(None, 1.0)]
    ball = scipy.optimize.linprog(np.append(np.zeros(dim), -1.0), np.hstack([rows, sizes]), slacks, bounds=bounds)
    if ball.status == 2 or ball.x[-1] < 0:
        raise ValueError("the polytope is empty: no point satisfies all constraints")
    if ball.x[-1] < 1e-9:
        raise ValueError("the polytope has no interior: some constraint holds with equality everywhere")
    # Stiemke: no direction leads to infinity iff the rows span and have a positive combination that is 0.
    combination = scipy.optimize.linprog(np.ones(count), A_eq=rows.T, b_eq=np.zeros(dim), bounds=(1.0, None))
    if np.linalg.matrix_rank(rows) < dim or combination.status == 2:
        raise ValueError("the polytope is unbounded: bandit linear optimisation needs a bounded domain")
    inner: Floats = ball.x[:-1]
    return inner


def box_barrier(dim: int) -> PolytopeBarrier:
    """Return the barrier -sum ln(1 - x_i^2) of the cube [-1, 1]^N; nu = N, as 2 x^2 / (1 + x^2) <= 1 for each."""
    check_arms(dim)
    return PolytopeBarrier(np.concatenate([np.eye(dim), -np.eye(dim)]), np.ones(2 * dim), parameter=float(dim))


def simplex_barrier(dim: int) -> PolytopeBarrier:
    """Return the barrier -sum ln(x_i) of the probability simplex in its affine hull; nu = N."""
    check_arms(dim)
    return PolytopeBarrier(-np.eye(dim), np.zeros(dim), C=np.ones((1, dim)), d=np.ones(1))


def minimise(barrier: Barrier, linear: Floats, start: Floats) -> Floats:
    """Return argmin <linear, z> + R(z), (dim, runs), by damped Newton steps from interior points `start`.

    A step of length decrement / (1 + decrement) in the local norm never leaves the body, and converges quadratically.

    Raises
    ------
    LearnerError
        If some run has not converged after hundreds of steps.
    """
    z = start.copy()
    active: NDArray[np.intp] = np.arange(z.shape[1])
    before = np.full(active.size, np.inf)
    for _ in range(_NEWTON_STEPS):
        gradient, hessian = barrier.derivatives(z[:, active])
        gradient = gradient + linear[:, active].T
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        decrement = np.sqrt(np.maximum((step * gradient).sum(axis=1), 0.0))
        z[:, active] -= (step / (1 + decrement)[:, None]).T
        # Near the boundary rounding keeps the decrement from falling further.
        moving = (decrement > PRECISION) & ((decrement > 0.1) | (decrement < 0.5 * before))
        active, before = active[moving], decrement[moving]
        if not active.size:
            return z
    raise LearnerError(f"Newton's method did not converge in {_NEWTON_STEPS} steps: is the learning rate too large?")


def _axes(hessian: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues (runs, dim) and eigenvectors (runs, dim, dim) of Hessians, the same on every processor.

    Where eigenvalues are equal, as at the centre of a ball or a simplex, any axes will do, and the last bits of a sum
    would choose them: the Hessian is rounded to a share of 2^-24 of its largest entry. The sign of an axis is free
    too: the first of its largest components is positive.
    """
    largest = np.frexp(np.abs(hessian).max(axis=(1, 2), keepdims=True))[1]
    unit = np.ldexp(1.0, largest - 24)
    values, vectors = np.linalg.eigh(np.rint(hessian / unit) * unit)
    lead = np.argmax(np.rint(np.abs(vectors) * 2.0**20), axis=1)[:, None]
    return values, vectors * np.where(np.take_along_axis(vectors, lead, axis=1) < 0, -1.0, 1.0)


@dataclass
class ScribleState:
    """The centre of play and the sum of the loss estimates, both (dim, runs) in the barrier's coordinates."""

    centre: Floats
    total: Floats


@dataclass(frozen=True, kw_only=True)
class Scrible:
    """Play a random end of an axis of the Dikin ellipsoid at `argmin eta <sum of l~, x> + R(x)`.

    From the centre z with Hessian eigenpairs (lambda_i, v_i), the point is `z + s v_i / sqrt(lambda_i)`, i and the
    sign s uniform; with y the fed loss the estimate is `l~ = N y s sqrt(lambda_i) v_i`, unbiased along the body's
    affine hull. Abernethy, Hazan & Rakhlin 2012, as used by Agarwal & Singh 2017, Theorem 4.5.

    A round costs an eigendecomposition and typically 4 to 10 Newton steps, each of m N^2 + N^3 operations a run for m
    constraints; a change of the estimates that is large in the local norm costs a step for each factor by which the
    distance to the boundary changes.

    **Claim**: none of its own.

    Parameters
    ----------
    barrier : Barrier
        The domain: `BallBarrier`, `PolytopeBarrier`, or any class with the same members.
    eta : float
        Learning rate, positive.
    """

    barrier: Barrier
    eta: float
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)

    @property
    def domain(self) -> Barrier:
        """The body with its linear minimiser."""
        return self.barrier

    @property
    def arms(self) -> int:
        """N, the length of a loss vector."""
        return len(self.barrier.offset)

    def start(self, runs: int, draws: Draws) -> ScribleState:
        """Return the barrier's centre for every run."""
        centre = np.repeat(self.barrier.centre[:, None], runs, axis=1)
        return ScribleState(centre, np.zeros_like(centre))

    def act(self, state: ScribleState, draws: Draws) -> Floats:
        """Return one of the 2 dim ends of the axes, (N, runs): one uniform a run."""
        dim, runs = state.centre.shape
        values, vectors = _axes(self.barrier.derivatives(state.centre)[1])
        end = (draws.uniform(runs) * (2 * dim)).astype(np.intp)
        axis, run = end // 2, np.arange(runs)
        direction = vectors[run, :, axis] * ((1.0 - 2.0 * (end % 2)) / np.sqrt(values[run, axis]))[:, None]
        points: Floats = self.barrier.offset[:, None] + self.barrier.basis @ (state.centre + direction.T)
        return points

    def estimate(self, state: ScribleState, actions: Floats, feedback: Floats) -> Floats:
        """Return the loss estimates in the barrier's coordinates, (dim, runs): N y times the Hessian of the move."""
        move = self.barrier.basis.T @ (actions - self.barrier.offset[:, None]) - state.centre
        dual = np.einsum("rij,jr->ir", self.barrier.derivatives(state.centre)[1], move)
        estimates: Floats = dual * (feedback * len(move))
        return estimates

    def update(self, state: ScribleState, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Add the estimate and move the centre."""
        state.total += self.estimate(state, actions, feedback)
        state.centre = minimise(self.barrier, self.eta * state.total, state.centre)
