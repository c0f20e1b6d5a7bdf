"""Privacy loss distributions on a fixed grid: exact composition of independent parts of a release."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when first used: scipy.signal takes as long as all else

from ...mechanisms.draws import Floats
from ..statistics.bisection import bisect

#: Grid steps in the largest loss of a part.
STEPS = 4000


@dataclass(frozen=True)
class PrivacyLoss:
    """The law of the log-likelihood ratio under the left world, and under the right.

    Attributes
    ----------
    step : float
        Nats between grid points.
    start : int
        The first grid point, in steps.
    left, right : arrays
        Mass at each grid point of ln(dLeft/dRight) in each world.
    """

    step: float
    start: int
    left: Floats
    right: Floats

    @classmethod
    def of_laplace(cls, shifts: list[float], *, step: float | None = None) -> PrivacyLoss:
        """Return the loss of releasing independent Laplace variables, each shifted by this many scales.

        The grid's step is a fixed share of the largest shift where it is not given.

        The atoms at the ends of equal shifts lie on the grid, so their sum, which decides epsilon at delta = 0, is
        exact; the continuous part is off by at most half a step per variable.
        """
        shifts = [s for s in shifts if s > 0]
        if not shifts:
            return cls(1.0 if step is None else step, 0, np.ones(1), np.ones(1))
        step = max(shifts) / STEPS if step is None else step
        loss: PrivacyLoss | None = None
        for shift in shifts:
            part = _laplace_loss(shift, step)
            loss = part if loss is None else loss.compose(part)
        assert loss is not None
        return loss

    @classmethod
    def mixture(cls, weights: list[float], parts: list[PrivacyLoss], step: float) -> PrivacyLoss:
        """Return the loss where a public coin, of the same law in both worlds, says which of the parts is released."""
        start = min(part.start for part in parts)
        size = max(part.start + part.left.size for part in parts) - start
        left, right = np.zeros(size), np.zeros(size)
        for weight, part in zip(weights, parts, strict=True):
            here = slice(part.start - start, part.start - start + part.left.size)
            left[here] += weight * part.left
            right[here] += weight * part.right
        return cls(step, start, left, right)

    @classmethod
    def of_outcomes(cls, p: Floats, q: Floats, step: float) -> PrivacyLoss:
        """Return the loss of discrete outcomes with positive probabilities p (left) and q (right)."""
        index = np.round((np.log(p) - np.log(q)) / step).astype(np.int64)
        start = int(index.min())
        size = int(index.max()) - start + 1
        left, right = (np.bincount(index - start, weights=w, minlength=size).astype(float) for w in (p, q))
        return cls(step, start, left, right)

    def compose(self, other: PrivacyLoss) -> PrivacyLoss:
        """Return the loss of releasing both, independent."""
        if not math.isclose(self.step, other.step):
            raise ValueError(f"steps must agree, got {self.step!r} and {other.step!r}")
        left, right = (
            np.maximum(scipy.signal.fftconvolve(a, b), 0.0)
            for a, b in ((self.left, other.left), (self.right, other.right))
        )
        return PrivacyLoss(self.step, self.start + other.start, left, right)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta at which the worlds are (epsilon, delta)-indistinguishable, both ways."""
        losses = (self.start + np.arange(self.left.size)) * self.step
        one = float(np.sum(self.left * -np.expm1(np.minimum(epsilon - losses, 0.0))))
        two = float(np.sum(self.right * -np.expm1(np.minimum(epsilon + losses, 0.0))))
        return max(one, two)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 for a delta; the largest loss for delta = 0."""
        support = np.flatnonzero(np.maximum(self.left, self.right) > 1e-15) + self.start
        if delta == 0:
            return float(max(-support[0], support[-1], 0) * self.step)
        if self.delta(0.0) <= delta:
            return 0.0
        return bisect(lambda e: self.delta(e) > delta, 0.0, float(max(-support[0], support[-1], 0) * self.step))[1]


def _laplace_loss(shift: float, step: float) -> PrivacyLoss:
    """Return the loss of one Laplace variable, shifted by `shift` scales: a - 2x between atoms at a and -a."""
    top = round(shift / step)
    # Grid point j stands for losses within half a step of j: x between (shift - loss) / 2 of its two edges.
    edges = np.clip((np.arange(-top, top) + 0.5) * step, -shift, shift)
    x = (shift - edges) / 2  # decreasing from nearly shift to nearly 0
    above = 0.5 * np.exp(-x)  # P(noise > x)
    left = np.diff(np.concatenate([[0.0], above, [1.0]]))
    below = 0.5 * np.exp(x - shift)  # P(shift + noise < x)
    right = -np.diff(np.concatenate([[1.0], below, [0.0]]))
    return PrivacyLoss(step, -top, left, right)
