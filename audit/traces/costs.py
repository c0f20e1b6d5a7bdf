"""What a noisy call costs: the privacy loss that its inputs in both worlds allow, law by law, and their sum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...mechanisms.discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise
from ...mechanisms.draws import Floats
from ...mechanisms.measures.approximate import ApproxDP
from ...mechanisms.measures.gaussian_dp import GDP, gaussian_epsilon
from ...mechanisms.measures.measure import Measure
from ...mechanisms.measures.renyi import RDP, ZCDP
from ...mechanisms.noise import Exponential, Gaussian, L2Laplace, Laplace, Projected
from ...mechanisms.privacy_loss import STEPS, PrivacyLoss
from .libraries import Mapped
from .tape import Call, scale_of

#: Inputs that are closer than this, over the larger of 1 and their size, are the same, as a replay rounds; if that
#: leaves out no more than so many scales of the noise.
SAME_INPUT, DUST = 1e-11, 1e-10
#: Costs of runs that agree to as many binary digits, some 14 decimal ones, differ by rounding.
_DIGITS = 2.0**46
#: At most so many Laplace shifts are composed exactly at delta > 0.
_MOST_SHIFTS = 64


@dataclass(frozen=True)
class Cost:
    """What calls cost in every run: pure losses add up, and so do squares of mu and rho of zCDP: (runs,) each.

    References
    ----------
    J. Dong, A. Roth, W. Su. Gaussian differential privacy. JRSS B 2022, Corollary 3.3; adaptively chosen mu: A. Smith,
    A. Thakurta. Fully adaptive composition for Gaussian differential privacy. 2022. zCDP: M. Bun, T. Steinke. TCC
    2016.
    """

    pure: Floats
    mu_squared: Floats
    rho: Floats

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.pure + other.pure, self.mu_squared + other.mu_squared, self.rho + other.rho)

    def epsilon(self, delta: float) -> Floats:
        """Return the least epsilon that is known to hold at delta, for every run."""
        kinds, kind_of_run = self._kinds()
        return np.array([_epsilon(pure, mu_squared, rho, delta) for pure, mu_squared, rho in kinds])[kind_of_run]

    def level(self, measure: Measure) -> Floats | None:
        """Return the level of a measure for every run; None where `own_level` knows none for one of them."""
        kinds, kind_of_run = self._kinds()
        levels = [own_level(measure, *parts) for parts in kinds]
        return None if None in levels else np.array(levels, dtype=float)[kind_of_run]

    def _kinds(self) -> tuple[list[list[float]], NDArray[np.intp]]:
        """Return the different costs of runs, within rounding, and the one that each run has."""
        share, exponent = np.frexp(np.stack([self.pure, self.mu_squared, self.rho]))
        rows = np.ldexp(np.rint(share * _DIGITS) / _DIGITS, exponent)
        kinds, kind_of_run = np.unique(rows, axis=1, return_inverse=True)
        return kinds.T.tolist(), kind_of_run.reshape(-1)


def _epsilon(pure: float, mu_squared: float, rho: float, delta: float) -> float:
    if not math.isfinite(pure) or not math.isfinite(mu_squared + rho):
        return math.inf
    if mu_squared == rho == 0:
        return pure
    if delta == 0:
        return math.inf
    if rho == 0:
        return pure + gaussian_epsilon(math.sqrt(mu_squared), delta)
    rho += mu_squared / 2  # mu-GDP is (mu^2 / 2)-zCDP
    return pure + ZCDP(rho).approximate(delta)


def own_level(measure: Measure, pure: float, mu_squared: float, rho: float) -> float | None:
    """Return the level of a measure that a path's cost comes to; None where no sum of such costs is known in it.

    A pure epsilon is at most epsilon^2 / 2 in rho, epsilon at every Renyi order, and what randomised response is in
    mu and in total variation; mu is mu^2 / 2 in rho. Total variations add up, of which rho is at most sqrt(rho / 2).

    References
    ----------
    M. Bun, T. Steinke. Concentrated differential privacy. TCC 2016, Propositions 1.4 and 1.6.
    """
    mu = math.sqrt(mu_squared)
    if isinstance(measure, ApproxDP) and not measure.is_epsilon:
        return min(1.0, math.tanh(pure / 2) + 2 * float(special.ndtr(mu / 2)) - 1 + math.sqrt(rho / 2))
    if sum(part > 0 for part in (pure, mu_squared, rho)) > 1:
        return None  # the path that costs most in one measure need not in another
    if isinstance(measure, GDP):
        return mu - 2 * float(special.ndtri(special.expit(-pure))) if rho == 0 else None
    of_normal = rho + mu_squared / 2
    if isinstance(measure, ZCDP):
        return of_normal + pure**2 / 2
    if isinstance(measure, RDP):
        return measure.order * of_normal + min(pure, measure.order * pure**2 / 2)
    return None


@np.errstate(over="ignore")
def cost(left: Call, right: Call, runs: int) -> Cost:
    """Return what a call costs given its inputs in both worlds.

    Its law is the same in both worlds, which a trace compares. Laplace: |d|_1 / b; Laplace in L2
    |d|_2 / b; Gaussian mu = |d|_2 / sigma; discrete Laplace as Laplace; discrete Gaussian rho = |d|_2^2 / (2 sigma^2);
    an outcome the largest log ratio of its probabilities, summed over independent coordinates. What a law of another
    kind costs is not known: infinite where the inputs differ.
    """
    zero = np.zeros(runs)
    if left.law is None:
        return Cost(np.full(runs, _outcome_loss(left.value, right.value)), zero, zero)
    law = left.law
    if isinstance(law, Mapped):
        size = law.loss(law.distance(left.value[0, 0], right.value[0, 0]))
        return Cost(np.array([size]), zero, zero) if law.measure == "MaxDivergence" else Cost(zero, zero, zero + size)
    d = difference(left, right).reshape(-1, runs)
    l1, l2 = np.abs(d).sum(axis=0), np.sqrt(np.square(d).sum(axis=0))
    if isinstance(law, Projected):
        points = np.abs(law.points)
        if isinstance(law.law, Laplace):
            return Cost(_over(l1, law.law.scale * points.max(axis=0)), zero, zero)
        return Cost(zero, np.square(_over(l1, law.law.sigma * np.sqrt(np.square(points).sum(axis=0)))), zero)
    if isinstance(law, Laplace | DiscreteLaplaceNoise):
        return Cost(l1 / float(law.scale), zero, zero)
    if isinstance(law, L2Laplace):
        return Cost(l2 / law.scale, zero, zero)
    if isinstance(law, Gaussian):
        return Cost(zero, np.square(l2 / law.sigma), zero)
    if isinstance(law, DiscreteGaussianNoise):
        return Cost(zero, zero, np.square(l2 / float(law.sigma)) / 2)
    return Cost(np.where(l1 > 0, math.inf, 0.0), zero, zero)


def bounds_no_ratio(law: object) -> bool:
    """Tell whether no shift of a law is private at delta 0: of normal noise, and of noise on one side."""
    law = law.law if isinstance(law, Projected) else law
    return isinstance(law, Gaussian | DiscreteGaussianNoise | Exponential)


def _over(size: Floats, scale: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.where(size > 0, size / scale, 0.0)
    return ratio


def difference(left: Call, right: Call) -> Floats:
    """Return by how much the inputs of a call differ, 0 within rounding; inf where one is no number."""
    if left.moved is not None:
        gap: Floats = np.abs(left.moved)
        return gap
    if left.value.dtype.kind in "iu" and right.value.dtype.kind in "iu":  # exactly, also beyond 2^53
        gap = np.abs(left.value.astype(object) - right.value.astype(object)).astype(float)
        return gap
    a, b = (np.asarray(call.value, dtype=float) for call in (left, right))
    with np.errstate(invalid="ignore"):
        d: Floats = np.abs(a - b)
        rounded = d <= SAME_INPUT * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
        d[rounded & (d <= DUST * scale_of(left.law))] = 0.0
    d[np.isnan(d)] = math.inf
    d[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    return d


def _outcome_loss(p: Floats, q: Floats) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(p) - np.log(q))
    ratios[(p == 0) & (q == 0)] = 0.0
    return float(np.sum(ratios.max(axis=0)))


def path_cost(calls: Iterable[tuple[Call, Call]], runs: int) -> Cost:
    """Return what all calls of a trace cost together, in every run."""
    zero = np.zeros(runs)
    return sum((cost(left, right, runs) for left, right in calls), start=Cost(zero, zero, zero))


def laplace_shifts(calls: Iterable[tuple[Call, Call]], run: int, runs: int) -> list[float] | None:
    """Return the shifts of a run's Laplace noise in scales; None where other noise is shifted too, or too many are."""
    shifts: list[float] = []
    for left, right in calls:
        if not isinstance(left.law, Laplace | L2Laplace):
            if np.any(cost(left, right, runs).epsilon(0.0)):
                return None
            continue
        d = difference(left, right).reshape(-1, runs)[:, run]
        if isinstance(left.law, L2Laplace) and d.size > 1 and d.any():
            return None
        shifts += [float(s) for s in d / left.law.scale if s > 0]
    return shifts if len(shifts) <= _MOST_SHIFTS and all(map(math.isfinite, shifts)) else None


def composed_epsilon(shifts: list[float], delta: float) -> float:
    """Return a bound on the epsilon of shifted Laplace variables at delta: their sum, or less by composing their laws.

    The laws are composed on a grid, which is off by at most half a step a variable; that is added.
    """
    total = math.fsum(shifts)
    if delta == 0 or not shifts:
        return total
    try:
        composed = PrivacyLoss.of_laplace(shifts).epsilon(delta)
    except ValueError:  # a delta below the resolution
        return total
    return min(total, composed + len(shifts) * max(shifts) / STEPS / 2)


def words_of(law: object) -> str:
    """Return a law in a few words, with its scale."""
    if law is None:
        return "outcome"
    if isinstance(law, Projected):
        return f"{words_of(law.law)} times the point"
    if isinstance(law, Mapped):
        return f"OpenDP, {law.measure}"
    for name in ("scale", "sigma"):
        if hasattr(law, name):
            return f"{type(law).__name__.removesuffix('Noise')}({name} {float(getattr(law, name)):.6g})"
    return type(law).__name__
