"""Newton's method for any barrier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ..protocol import LearnerError
from .barriers import Barrier

#: A centre is accepted at this Newton decrement: its error in the local norm is about as small.
PRECISION = 1e-9
_NEWTON_STEPS = 500


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
