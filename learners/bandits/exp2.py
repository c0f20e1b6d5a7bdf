"""EXP2: exponential weights over a finite set of points, for bandit linear losses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...errors import must_be
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.parameters import check_positive
from ..protocol import FeedbackKind, PlayKind, State
from ..sampling import draw_arm

#: The exploration design's largest variance s^T M^-1 s is within this factor of the least possible, N.
DESIGN_TOLERANCE = 0.01
_DESIGN_STEPS = 10_000
#: Its vertices take hundreds of megabytes; each dimension more doubles them.
_LARGEST_CUBE = 20


@dataclass(frozen=True, eq=False)
class FiniteSet:
    """Finitely many points, the columns of (N, |S|)."""

    points: Floats

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.points)

    def minimise(self, linear: Floats) -> Floats:
        """Return the point of least <linear, x>, (dim, runs); the first of several."""
        best: Floats = self.points[:, (self.points.T @ linear).argmin(axis=0)]
        return best


@dataclass(frozen=True, kw_only=True)
class Exp2:
    """Play `s` from `p = (1 - gamma) q + gamma mu` over a finite set S, `q ∝ exp(-eta * sum of <l~, s>)`.

    The estimate is `l~ = P^+ s y` with P = E_p[s s^T] and y the fed loss: unbiased, E[l~] = l. Agarwal & Singh 2017,
    Algorithm 5 in the general form of Bubeck, Cesa-Bianchi & Kakade 2012; over unit vectors it is `Exp3`. Actions are
    points. A step costs |S| N^2 + N^3, and less where entries of P are 0 for all points, as for signed axes.

    **Claim**: none of its own.

    Parameters
    ----------
    actions : array-like (N, |S|)
        S, a point in each column. They must span R^N.
    eta : float
        Learning rate, positive.
    gamma : float
        Exploration, in (0, 1]: it keeps P invertible.
    exploration : array-like (|S|,), optional
        mu; by default a G-optimal design.
    """

    actions: ArrayLike
    eta: float
    gamma: float
    exploration: ArrayLike | None = None
    feedback: FeedbackKind = "bandit"
    plays: ClassVar[PlayKind] = "finite points"

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)
        if not 0 < self.gamma <= 1:
            raise must_be("gamma", "in (0, 1]", self.gamma)
        points = self.points
        if points.ndim != 2 or not points.size or not np.isfinite(points).all():
            raise ValueError(f"actions must be finite points in columns, (N, |S|), got shape {points.shape}")
        rank = int(np.linalg.matrix_rank(points))
        if rank < len(points):
            raise ValueError(f"actions must span R^{len(points)}, got points of rank {rank}")
        mu = self.design
        if mu.shape != points.shape[1:] or mu.min() < 0 or abs(mu.sum() - 1) > 1e-9:
            raise must_be("exploration", f"{points.shape[1]} probabilities", self.exploration)
        if np.linalg.matrix_rank(points * mu) < len(points):
            raise ValueError("exploration must give weight to points that span the space")

    @cached_property
    def points(self) -> Floats:
        """S as an array, (N, |S|)."""
        return np.asarray(self.actions, dtype=float)

    @cached_property
    def design(self) -> Floats:
        """The exploration distribution mu, (|S|,)."""
        return optimal_design(self.points) if self.exploration is None else np.asarray(self.exploration, dtype=float)

    @cached_property
    def _products(self) -> tuple[tuple[tuple[int, int], ...], Floats]:
        """The entries (i <= j) of s s^T that are not 0 for all points, and their values at every point."""
        i, j = np.triu_indices(self.arms)
        products = self.points[i] * self.points[j]
        nonzero = products.any(axis=1)
        return tuple(zip(i[nonzero].tolist(), j[nonzero].tolist(), strict=True)), products[nonzero]

    @property
    def domain(self) -> FiniteSet:
        """The points with their linear minimiser."""
        return FiniteSet(self.points)

    @property
    def arms(self) -> int:
        """N, the length of a loss vector."""
        return len(self.points)

    def start(self, runs: int, draws: Draws) -> State:
        """Return the log-weights of the points, (|S|, runs)."""
        return np.zeros((self.points.shape[1], runs))

    def distribution(self, state: State) -> Floats:
        """Return p, (|S|, runs)."""
        q: Floats = state - state.max(axis=0)
        np.exp(q, out=q)
        q *= (1 - self.gamma) / q.sum(axis=0)
        q += self.gamma * self.design[:, None]
        return q

    def act(self, state: State, draws: Draws) -> Floats:
        """Draw a point from p, (N, runs): one uniform a run."""
        points: Floats = self.points.take(draw_arm(self.distribution(state), draws), axis=1)
        return points

    def estimate(self, state: State, actions: Floats, feedback: Floats) -> Floats:
        """Return the loss estimates P^-1 s y, (N, runs)."""
        places, products = self._products
        entries = dict(zip(places, products @ self.distribution(state), strict=True))
        return eliminated(entries, actions * feedback)

    def update(self, state: State, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Subtract eta times the estimated loss of every point from its log-weight."""
        state -= self.eta * (self.points.T @ self.estimate(state, actions, feedback))


def eliminated(entries: dict[tuple[int, int], Floats], right: Floats) -> Floats:
    """Return P^-1 b of every run, (N, runs), by elimination. P is positive definite: it needs no pivots.

    Parameters
    ----------
    entries : dict
        P's entries (i, j), i <= j, each (runs,); what is missing is 0. They are overwritten.
    right : array (N, runs)
        b, which is overwritten.
    """
    n = len(right)
    for c in range(n):
        row = [b for b in range(c + 1, n) if (c, b) in entries]
        for a in row:
            factor = entries[c, a] / entries[c, c]
            right[a] -= factor * right[c]
            for b in row[row.index(a) :]:
                entries[a, b] = entries.get((a, b), 0.0) - factor * entries[c, b]
    for c in range(n - 1, -1, -1):
        for b in range(c + 1, n):
            if (c, b) in entries:
                right[c] -= entries[c, b] * right[b]
        right[c] /= entries[c, c]
    return right


def optimal_design(points: Floats) -> Floats:
    """Return a G-optimal design: weights mu that nearly minimise max_s s^T M^-1 s, M = sum mu(s) s s^T.

    Frank-Wolfe steps from the uniform design (Kiefer & Wolfowitz 1960: the least maximum is N).

    Parameters
    ----------
    points : array (N, |S|)
        Points that span R^N.

    Returns
    -------
    array (|S|,)
        The maximum is at most (1 + `DESIGN_TOLERANCE`) N.
    """
    dim, count = points.shape
    mu = np.full(count, 1.0 / count)
    for _ in range(_DESIGN_STEPS):
        variance = np.einsum("is,is->s", points, np.linalg.solve((points * mu) @ points.T, points))
        worst = int(variance.argmax())
        top = float(variance[worst])
        if top <= (1 + DESIGN_TOLERANCE) * dim:
            break
        step = (top / dim - 1) / (top - 1)  # the exact line search of the determinant
        mu *= 1 - step
        mu[worst] += step
    design: Floats = mu
    return design


def signed_axes(dim: int) -> Floats:
    """Return the 2N points +-e_i, (N, 2N): the vertices of the L1 ball."""
    return np.concatenate([np.eye(dim), -np.eye(dim)], axis=1)


def hypercube(dim: int) -> Floats:
    """Return the 2^N vertices of [-1, 1]^N, (N, 2^N); raise ValueError where there are too many."""
    if dim > _LARGEST_CUBE:
        raise ValueError(f"a hypercube of points must have at most {_LARGEST_CUBE} dimensions, got {dim!r}")
    bits = np.indices((2,) * dim).reshape(dim, -1).astype(np.float64)
    signs: Floats = 1.0 - 2.0 * bits
    return signs
