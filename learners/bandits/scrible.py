"""SCRiBLe: bandit linear optimisation on a convex body through a self-concordant barrier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.parameters import check_positive
from ..abilities import owns
from ..problems.barriers import Barrier, ClosedForms
from ..problems.domains import signs
from ..problems.newton import minimise
from ..protocol import FeedbackKind, LearnerError, PlayKind


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
    return values, vectors * signs(np.take_along_axis(vectors, lead, axis=1) < 0)


def _finite(values: Floats) -> Floats:
    """Return the values; raise LearnerError where one is not finite: its centre is on the boundary, or beyond it."""
    if not np.isfinite(values).all():
        raise LearnerError("SCRiBLe has a centre too near the boundary for floating point: is eta too large?")
    return values


@dataclass
class ScribleState:
    """The centre of play and the sum of the loss estimates, both (dim, runs) in the barrier's coordinates."""

    centre: Floats
    total: Floats


@dataclass(frozen=True, kw_only=True)
class Scrible:
    """Play a random end of an axis of the Dikin ellipsoid at `argmin eta <sum of l~, x> + R(x)`.

    From the centre z with Hessian eigenpairs (lambda_i, v_i), the point is `z + s v_i / sqrt(lambda_i)`, i and the
    sign s uniform; with y the fed loss the estimate is `l~ = n y s sqrt(lambda_i) v_i`, n the number of axes, unbiased
    along the body's affine hull. Abernethy, Hazan & Rakhlin 2012, as used by Agarwal & Singh 2017, Theorem 4.5.

    On a ball, a cube and a simplex a round costs some N operations a run, as centres and axes have closed forms.
    Elsewhere it costs an eigendecomposition and typically 4 to 10 Newton steps, each of m N^2 + N^3 operations for m
    constraints; a change of the estimates that is large in the local norm costs a step for each factor by which the
    distance to the boundary changes.

    **Claim**: none of its own.

    Parameters
    ----------
    barrier : Barrier
        The domain: `BallBarrier`, `BoxBarrier`, `SimplexBarrier`, or a class with the same members.
    eta : float
        Learning rate, positive.

    Raises
    ------
    LearnerError
        Where it is so large that a centre cannot be told from the boundary.
    """

    barrier: Barrier
    eta: float
    feedback: FeedbackKind = "bandit"
    plays: ClassVar[PlayKind] = "points"

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)

    @cached_property
    def _closed(self) -> ClosedForms | None:
        """The barrier, where it has closed forms of its own."""
        has_closed_forms = owns(self.barrier, "minimum", "curved", "axis")
        return cast(ClosedForms, self.barrier) if has_closed_forms else None

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
        end = (draws.uniform(runs) * (2 * dim)).astype(np.intp)
        axis = end // 2
        with np.errstate(all="ignore"):
            if self._closed is not None:
                value, direction = self._closed.axis(state.centre, axis)
            else:
                values, vectors = _axes(_finite(self.barrier.derivatives(state.centre)[1]))
                value, direction = values[np.arange(runs), axis], vectors[np.arange(runs), :, axis].T
            length = _finite((1.0 - 2.0 * (end % 2)) / np.sqrt(value))
        move = direction * length
        points: Floats = self.barrier.offset[:, None] + self.barrier.basis @ (state.centre + move)
        return points

    def estimate(self, state: ScribleState, actions: Floats, feedback: Floats) -> Floats:
        """Return the loss estimates in the barrier's coordinates, (dim, runs): dim y times the Hessian of the move."""
        move = self.barrier.basis.T @ (actions - self.barrier.offset[:, None]) - state.centre
        with np.errstate(all="ignore"):
            if self._closed is not None:
                dual = self._closed.curved(state.centre, move)
            else:
                dual = np.einsum("rij,jr->ir", self.barrier.derivatives(state.centre)[1], move)
            return _finite(dual * (feedback * len(move)))

    def update(self, state: ScribleState, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Add the estimate and move the centre."""
        state.total += self.estimate(state, actions, feedback)
        linear = self.eta * state.total
        if self._closed is not None:
            state.centre = self._closed.minimum(linear)
        else:
            with np.errstate(all="ignore"):
                state.centre = minimise(self.barrier, linear, state.centre)
