"""Gaussian differential privacy: exact (epsilon, delta) of N(0, 1) against N(mu, 1), and back. Epsilon is in nats.

References
----------
.. [1] B. Balle, Y.-X. Wang. Improving the Gaussian mechanism for differential privacy. ICML 2018, Theorem 8.
.. [2] J. Dong, A. Roth, W. Su. Gaussian differential privacy. JRSS-B 84, 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # its parts load when first used: the roots are wanted seldom
from numpy.typing import ArrayLike
from scipy import special

from ...errors import must_be
from .measure import Floats, TradeOff, directed, require_level

#: Means between which an epsilon has too many digits for its tails to be subtracted.
_HUGE = 1e6
#: A mean below which the two terms of delta are too near each other to be subtracted, and how that is integrated then.
_SMALL_MU = 0.1
#: A logarithm of what no float holds by far.
_NO_FLOAT = -1e6
_NODES, _WEIGHTS = math.sqrt(0.15) * np.array([-1.0, 0.0, 1.0]), np.array([5.0, 8.0, 5.0]) / 18


@dataclass(frozen=True)
class GDP(TradeOff):
    """Gaussian differential privacy: the worlds are at least as hard to tell apart as N(0, 1) from N(mu, 1) [2]_.

    Parameters
    ----------
    mu : float
        Positive and finite.

    Examples
    --------
    >>> round(float(GDP(1.0).needed(0.5, 0.1587)), 3)
    1.0
    """

    kind: ClassVar[str] = "gdp"
    mu: float

    def __post_init__(self) -> None:
        require_level("mu", self.mu)
        super().__post_init__()

    def needed(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Return ``Phi^-1(p) - Phi^-1(q)``."""
        return directed(p, q, special.ndtri(np.asarray(p, dtype=float)) - special.ndtri(np.asarray(q, dtype=float)))

    def allowed(self, q: ArrayLike) -> Floats:
        """Return ``Phi(Phi^-1(q) + mu)``."""
        share: Floats = special.ndtr(special.ndtri(np.asarray(q, dtype=np.float64)) + self.mu)
        return share

    def slope(self, q: ArrayLike) -> Floats:
        """Return ``exp(-mu z - mu^2 / 2)`` at ``z = Phi^-1(q)``."""
        with np.errstate(over="ignore"):
            slope: Floats = np.exp(-self.mu * special.ndtri(np.asarray(q, dtype=np.float64)) - self.mu**2 / 2)
        return slope

    def approximate(self, delta: float) -> float:
        """Return the exact epsilon of mu-Gaussian DP at a delta."""
        return gaussian_epsilon(self.mu, delta) if delta > 0 else math.inf


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the smallest delta at which N(0, 1) and N(mu, 1) are (epsilon, delta)-indistinguishable [1]_.

    Raises
    ------
    ValueError
        If mu is not positive or epsilon is negative.

    Examples
    --------
    >>> round(gaussian_delta(mu=1.0, epsilon=1.0), 4)
    0.1269
    """
    _require_positive("mu", mu)
    _require_epsilon("epsilon", epsilon)
    return math.exp(_log_gaussian_delta(mu, epsilon))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which N(0, 1) and N(mu, 1) are (epsilon, delta)-indistinguishable.

    Raises
    ------
    ValueError
        If mu is not positive or delta is outside (0, 1).
    """
    _require_positive("mu", mu)
    if not 0 < delta < 1:
        raise must_be("delta", "in (0, 1)", delta)
    goal = math.log(delta)
    if _log_gaussian_delta(mu, 0.0) <= goal:
        return 0.0
    # delta(epsilon) < P(log-likelihood ratio > epsilon), a normal tail: beyond this epsilon it is below
    # delta.
    stop = mu * (mu / 2 - float(special.ndtri_exp(goal)))
    if mu > _HUGE:  # then it is that, to eleven digits; infinite where no float holds it
        return stop
    return float(
        scipy.optimize.brentq(lambda e: _log_gaussian_delta(mu, e) - goal, 0.0, stop + 1e-9, xtol=1e-14, rtol=1e-13)
    )


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu for which N(0, 1) and N(mu, 1) are (epsilon, delta)-indistinguishable [1]_.

    Noise of standard deviation ``sensitivity / gaussian_mu(epsilon, delta)`` is the least that is (epsilon, delta)-DP.

    Raises
    ------
    ValueError
        If epsilon is negative or delta is outside (0, 1).

    Examples
    --------
    >>> round(gaussian_mu(epsilon=1.0, delta=gaussian_delta(mu=1.0, epsilon=1.0)), 6)
    1.0
    """
    _require_epsilon("epsilon", epsilon)
    if not 0 < delta < 1:
        raise must_be("delta", "in (0, 1)", delta)

    def excess(log_mu: float) -> float:
        return math.exp(_log_gaussian_delta(math.exp(log_mu), epsilon)) - delta

    if epsilon > _HUGE**2:  # then delta is that normal tail, and a little less
        quantile = float(special.ndtri(delta))
        return quantile + math.sqrt(quantile**2 + 2 * epsilon)
    if epsilon / delta < 1e-16:  # then it is that of no epsilon, and may be as small as floats are
        return 2 * math.sqrt(2) * float(special.erfinv(delta))
    min_log = max(math.log(delta), -700.0)  # no mean is below its delta; of tiny ones e^-700 is below any
    return math.exp(float(scipy.optimize.brentq(excess, min_log, 20.0, xtol=1e-13)))


def _log_gaussian_delta(mu: float, epsilon: float) -> float:
    # delta = Phi(a) - e^epsilon Phi(b): both terms may be 1e-16 and nearly equal, hence logarithms and expm1.
    first = float(special.log_ndtr(mu / 2 - epsilon / mu))
    if mu < _SMALL_MU and first > _NO_FLOAT:
        # The difference of their logarithms is the integral of t + phi(t) / Phi(t) from b to a, by Gauss and Legendre.
        t = mu * _NODES - epsilon / mu
        correction = -mu * float(_WEIGHTS @ (t + math.sqrt(2 / math.pi) / special.erfcx(-t / math.sqrt(2))))
    else:
        correction = epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu)) - first
    share = -math.expm1(min(correction, 0.0))  # rounding may make it positive
    return first + math.log(share) if share > 0 else -math.inf


def _require_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise must_be(name, "positive and finite", value)


def _require_epsilon(name: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise must_be(name, "non-negative and finite", value)
