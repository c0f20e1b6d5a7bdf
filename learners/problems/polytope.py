"""The logarithmic barrier of a polytope, and Newton's method for any barrier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from ...mechanisms.draws import Floats
from ..protocol import LearnerError
from .barriers import Barrier

#: A centre is accepted at this Newton decrement: its error in the local norm is about as small.
PRECISION = 1e-9
_NEWTON_STEPS = 500


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
