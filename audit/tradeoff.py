"""Exact privacy of the Gaussian and the Laplace pair: closed forms, used as references and as oracles.

A pair of one-dimensional laws is meant, the outputs of a mechanism on two neighbouring inputs. Epsilon is in
nats.

References
----------
.. [1] B. Balle, Y.-X. Wang. Improving the Gaussian mechanism for differential privacy. ICML 2018, Theorem 8.
.. [2] J. Dong, A. Roth, W. Su. Gaussian differential privacy. JRSS-B 84, 2022.
"""

from __future__ import annotations

import math

from scipy import optimize, special


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
        raise ValueError(f"delta must be in (0, 1), but got {delta}")
    goal = math.log(delta)
    if _log_gaussian_delta(mu, 0.0) <= goal:
        return 0.0
    # delta(epsilon) < P(log-likelihood ratio > epsilon), a normal tail: beyond this epsilon it is below
    # delta.
    stop = mu * (mu / 2 - float(special.ndtri_exp(goal)))
    return float(
        optimize.brentq(lambda e: _log_gaussian_delta(mu, e) - goal, 0.0, stop + 1e-9, xtol=1e-14, rtol=1e-13)
    )


def gaussian_tradeoff(mu: float, type1: float) -> float:
    """Return the smallest type-II error of a test of N(0, 1) against N(mu, 1) at the given type-I error [2]_.

    Raises
    ------
    ValueError
        If mu is not positive or type1 is outside [0, 1].
    """
    _require_positive("mu", mu)
    _require_share("type1", type1)
    return float(special.ndtr(-special.ndtri(type1) - mu))


def laplace_tradeoff(epsilon: float, type1: float) -> float:
    """Return the smallest type-II error of a test of Laplace(0, 1) against Laplace(epsilon, 1) [2]_.

    Raises
    ------
    ValueError
        If epsilon is negative or type1 is outside [0, 1].
    """
    _require_epsilon("epsilon", epsilon)
    _require_share("type1", type1)
    if type1 < math.exp(-epsilon) / 2:
        return 1.0 - math.exp(epsilon) * type1
    if type1 <= 0.5:
        return math.exp(-epsilon) / (4.0 * type1)
    return math.exp(-epsilon) * (1.0 - type1)


def laplace_delta(epsilon_true: float, epsilon: float) -> float:
    """Return the smallest delta at `epsilon` of Laplace(0, 1) against Laplace(epsilon_true, 1).

    It is 0 from ``epsilon = epsilon_true`` on: the pair is then (epsilon, 0)-indistinguishable.

    Raises
    ------
    ValueError
        If one of the epsilons is negative.
    """
    _require_epsilon("epsilon_true", epsilon_true)
    _require_epsilon("epsilon", epsilon)
    return max(0.0, -math.expm1((epsilon - epsilon_true) / 2))


def _log_gaussian_delta(mu: float, epsilon: float) -> float:
    # delta = Phi(a) - e^epsilon Phi(b): both terms may be 1e-16 and nearly equal, hence logarithms and expm1.
    first = float(special.log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu))
    share = -math.expm1(second - first)
    return first + math.log(share) if share > 0 else -math.inf


def _require_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite, but got {value}")


def _require_epsilon(name: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be non-negative and finite, but got {value}")


def _require_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], but got {value}")
