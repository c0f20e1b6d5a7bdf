"""Privacy loss distributions on a fixed grid: exact composition of independent parts of a release."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import scipy  # its parts load when first used: scipy.fft takes as long as all else

from .draws import Floats
from .numerics import bisect

#: Grid steps in the largest loss of a part.
STEPS = 4000
#: Below this delta the masses that decide are lost among the rounding errors of a Fourier transform (some 1e-17 for
#: each of up to a million points), and the laws are tilted first.
MIN_DELTA = 1e-9
#: Of an interval that holds a tilt, which need not be exact.
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The law of the log-likelihood ratio under the left world, and under the right: of one part, or of several.

    Attributes
    ----------
    step : float
        Nats between grid points.
    start : int
        The first grid point, in steps.
    left, right : arrays
        Mass at each grid point of ln(dLeft/dRight) in each world.
    least, most : float, optional
        The ends of the support in nats, which decide epsilon at delta = 0; those of the grid's masses by default.
    supremum : float, optional
        The largest loss, where the grid does not reach it: epsilon at delta = 0.
    resolution : float
        The smallest positive delta that the masses are exact enough for.
    parts : tuple of PrivacyLoss
        The independent parts it is composed of; none for a single law.

    Notes
    -----
    A mass that decides may be as small as 2^-n for n parts: the ends of the support are added up, never read off the
    masses. A convolution by Fourier transforms is off by rounding errors of the size of its *largest* masses, so that
    small ones are lost; where delta is small, both laws are first multiplied by exp(theta * loss), which moves with
    the convolution and makes the losses around epsilon the likely ones.
    """

    step: float
    start: int
    left: Floats
    right: Floats
    least: float | None = None
    most: float | None = None
    supremum: float | None = None
    resolution: float = 0.0
    parts: tuple[PrivacyLoss, ...] = ()
    _found: dict[float, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of_laplace(cls, shifts: list[float], *, step: float | None = None) -> PrivacyLoss:
        """Return the loss of releasing independent Laplace variables, each shifted by this many scales.

        The grid's step is a fixed share of the largest shift where it is not given. The ends of the support are exact;
        the continuous part is off by at most half a step per variable.
        """
        return _of_laplace(tuple(s for s in shifts if s > 0), step)

    @classmethod
    def mixture(cls, weights: list[float], parts: list[PrivacyLoss], step: float) -> PrivacyLoss:
        """Return the loss where a public coin, of the same law in both worlds, says which of the parts is released."""
        start = min(part.start for part in parts)
        size = max(part.start + part.left.size for part in parts) - start
        left, right = np.zeros(size), np.zeros(size)
        for weight, part in zip(weights, parts, strict=True):
            cells = slice(part.start - start, part.start - start + part.left.size)
            left[cells] += weight * part.left
            right[cells] += weight * part.right
        likely = [part for weight, part in zip(weights, parts, strict=True) if weight > 0]
        min_loss, max_loss = min(part.ends[0] for part in likely), max(part.ends[1] for part in likely)
        # Its composed parts are not tilted: their small masses are lost in rounding.
        resolution = max(max(part.resolution, MIN_DELTA if part.parts else 0.0) for part in parts)
        return cls(step, start, left, right, min_loss, max_loss, resolution=resolution)

    @classmethod
    def of_outcomes(cls, p: Floats, q: Floats, step: float, resolution: float = 0.0) -> PrivacyLoss:
        """Return the loss of discrete outcomes with positive probabilities p (left) and q (right)."""
        losses = np.log(p) - np.log(q)
        index = np.round(losses / step).astype(np.int64)
        start = int(index.min())
        size = int(index.max()) - start + 1
        left, right = (np.bincount(index - start, weights=w, minlength=size).astype(float) for w in (p, q))
        return cls(step, start, left, right, float(losses.min()), float(losses.max()), resolution=resolution)

    @classmethod
    def of_parts(cls, parts: list[PrivacyLoss]) -> PrivacyLoss:
        """Return the loss of releasing all of these, independent."""
        if len(parts) == 1:
            return parts[0]
        step = parts[0].step
        for part in parts:
            if not math.isclose(step, part.step):
                raise ValueError(f"steps must agree, got {step!r} and {part.step!r}")
        start = sum(part.start for part in parts)
        left, right = (np.exp(_convolved(parts, world, 0.0)) for world in ("left", "right"))
        min_loss, max_loss = (math.fsum(part.ends[i] for part in parts) for i in (0, 1))
        resolution = max(part.resolution for part in parts)
        return cls(step, start, left, right, min_loss, max_loss, resolution=resolution, parts=tuple(parts))

    def compose(self, other: PrivacyLoss) -> PrivacyLoss:
        """Return the loss of releasing both, independent."""
        return self.of_parts([*(self.parts or [self]), *(other.parts or [other])])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the largest loss, in nats."""
        support = np.flatnonzero((self.left > 0) | (self.right > 0)) + self.start
        min_loss = float(support[0]) * self.step if self.least is None else self.least
        return min_loss, float(support[-1]) * self.step if self.most is None else self.most

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta at which the worlds are (epsilon, delta)-indistinguishable, both ways."""
        losses = (self.start + np.arange(self.left.size)) * self.step
        first_above, first_below = np.searchsorted(losses, epsilon, "right"), np.searchsorted(losses, -epsilon)
        left_delta = float(
            np.sum(self.left[first_above:] * -np.expm1(epsilon - losses[first_above:]))
        )  # what lies within says nothing
        right_delta = float(np.sum(self.right[:first_below] * -np.expm1(epsilon + losses[:first_below])))
        direct = max(left_delta, right_delta)
        if direct > MIN_DELTA or not self.parts:
            return direct
        return max(self._small("left", epsilon), self._small("right", epsilon))

    def _small(self, world: str, epsilon: float) -> float:
        """Return a delta that is lost in rounding errors otherwise, one way."""
        sign = 1.0 if world == "left" else -1.0
        tilt = _tilt(self.parts, world, sign * epsilon)
        masses = _convolved(self.parts, world, tilt)
        losses = sign * (self.start + np.arange(masses.size)) * self.step
        with np.errstate(divide="ignore"):
            terms = masses + np.log(-np.expm1(np.minimum(epsilon - losses, 0.0)))
        return float(np.exp(terms).sum())

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 for a delta; the largest loss for delta = 0.

        Raises
        ------
        ValueError
            If delta is positive and below the resolution.
        """
        if 0 < delta < self.resolution:
            raise ValueError(f"this law is numerical: delta must be 0 or at least {self.resolution:g}, got {delta:g}")
        min_loss, max_loss = self.ends
        low, high = 0.0, max(0.0, -min_loss, max_loss)  # 0 before a -0
        if delta == 0:
            return high if self.supremum is None else self.supremum
        if delta not in self._found:
            private = self.delta(0.0) <= delta
            self._found[delta] = 0.0 if private else bisect(lambda e: self.delta(e) > delta, low, high)[1]
        return self._found[delta]


@lru_cache(maxsize=64)  # the pairs of a search often move a release by the same
def _of_laplace(shifts: tuple[float, ...], step: float | None) -> PrivacyLoss:
    if not shifts:
        return PrivacyLoss(1.0 if step is None else step, 0, np.ones(1), np.ones(1))
    step = max(shifts) / STEPS if step is None else step
    atoms = {shift: _laplace_loss(shift, step) for shift in set(shifts)}
    return PrivacyLoss.of_parts([atoms[shift] for shift in shifts])


def _tilt(parts: tuple[PrivacyLoss, ...], world: str, target: float) -> float:
    """Return the theta, per nat, at which the tilted mean of the loss is `target`, on the target's side of 0."""
    different = Counter(parts)
    sign = math.copysign(1.0, target)

    def mean(theta: float) -> float:
        total = 0.0
        for part, times in different.items():
            losses = (part.start + np.arange(part.left.size)) * part.step
            with np.errstate(divide="ignore"):
                weights = np.log(getattr(part, world)) + theta * losses
            weights = np.exp(weights - weights.max())
            total += times * float(losses @ weights / weights.sum())
        return total

    def short(theta: float) -> bool:
        return sign * mean(sign * theta) < abs(target)

    high = 1.0
    while short(high) and high < 2.0**20:
        high *= 2
    return sign * bisect(short, 0.0, high, steps=_HALVINGS)[0]


def _convolved(parts: list[PrivacyLoss] | tuple[PrivacyLoss, ...], world: str, tilt: float) -> Floats:
    """Return the log masses of the sum of independent losses, accurate where losses are likely at this tilt."""
    size = sum(part.left.size - 1 for part in parts) + 1
    padded = scipy.fft.next_fast_len(size, real=True)
    transform, offset = np.ones(padded // 2 + 1, dtype=complex), 0.0
    step = parts[0].step
    for part, times in Counter(parts).items():
        places = np.arange(part.left.size)
        with np.errstate(divide="ignore"):
            weights = np.log(getattr(part, world)) + tilt * step * places
        log_total = float(np.logaddexp.reduce(weights))
        offset += times * log_total
        transform *= scipy.fft.rfft(np.exp(weights - log_total), padded) ** times
    masses = scipy.fft.irfft(transform, padded)[:size]
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.maximum(masses, 0.0)) + offset - tilt * step * np.arange(size)
    return logs


def _laplace_loss(shift: float, step: float) -> PrivacyLoss:
    """Return the loss of one Laplace variable, shifted by `shift` scales: a - 2x between atoms at a and -a."""
    top = round(shift / step)
    # Grid point j stands for losses within half a step of j: x between (shift - loss) / 2 of its two edges.
    edges = np.clip((np.arange(-top, top) + 0.5) * step, -shift, shift)
    x = (shift - edges) / 2  # decreasing from nearly shift to nearly 0
    upper_tail = 0.5 * np.exp(-x)  # P(noise > x)
    left = np.diff(np.concatenate([[0.0], upper_tail, [1.0]]))
    lower_tail = 0.5 * np.exp(x - shift)  # P(shift + noise < x)
    right = -np.diff(np.concatenate([[1.0], lower_tail, [0.0]]))
    return PrivacyLoss(step, -top, left, right, -shift, shift)
