"""Noise for code of one's own, one line each: NumPy's where nobody watches, a noisy call in a trace.

`rng` is the NumPy generator that a plain class or a mechanism of (data, rng) is given. In a trace it is watched, and
each of these says what its noise is for (`overclaim.audit.traces`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import must_be
from .discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise
from .draws import Floats
from .noise import Gaussian, Laplace
from .parameters import check_finite, check_positive


def laplace(value: Any, scale: float, rng: np.random.Generator) -> Any:
    """Return a number or an array with independent Laplace noise.

    **Claim**: epsilon = (L1 sensitivity) / scale.

    Parameters
    ----------
    scale : float
        At least 0; 0 is no noise.

    Examples
    --------
    >>> round(laplace(10.0, 2.0, np.random.default_rng(0)), 3)
    10.64
    """
    law = Laplace(float(scale))
    if hasattr(rng, "noisy"):
        return rng.noisy(law, value, "laplace")
    return value + rng.laplace(0.0, law.scale, np.shape(value) or None)


def gaussian(value: Any, sigma: float, rng: np.random.Generator) -> object:
    """Return a number or an array with independent normal noise.

    **Claim**: mu-Gaussian DP, mu = (L2 sensitivity) / sigma.

    Parameters
    ----------
    sigma : float
        The standard deviation, at least 0; 0 is no noise.
    """
    law = Gaussian(float(sigma))
    if hasattr(rng, "noisy"):
        return rng.noisy(law, value, "gaussian")
    return value + rng.normal(0.0, law.sigma, np.shape(value) or None)


def discrete_laplace(value: object, scale: Fraction | int, rng: np.random.Generator) -> object:
    """Return integers with exact discrete Laplace noise.

    **Claim**: epsilon = (L1 sensitivity) / scale, also against who reads every bit.
    """
    return _discrete(value, DiscreteLaplaceNoise(Fraction(scale)), rng, "discrete_laplace")


def discrete_gaussian(value: object, sigma: Fraction | int, rng: np.random.Generator) -> object:
    """Return integers with exact discrete Gaussian noise.

    **Claim**: rho-zCDP, rho = (L2 sensitivity)^2 / (2 sigma^2).
    """
    return _discrete(value, DiscreteGaussianNoise(Fraction(sigma)), rng, "discrete_gaussian")


def _discrete(value: Any, law: Any, rng: object, name: str) -> object:
    if np.asarray(value).dtype.kind not in "iu":
        raise ValueError(f"discrete noise needs integers, got {value!r}")
    if hasattr(rng, "noisy"):
        return rng.noisy(law, value, name)
    sample = law.sample(np.shape(value) or (1,), SimpleNamespace(generator=rng))
    return value + (sample if np.shape(value) else int(sample[0]))


def randomised_response(category: int, categories: int, epsilon: float, rng: np.random.Generator) -> int:
    """Return the true one of k categories with probability e^epsilon / (e^epsilon + k - 1), else any other.

    **Claim**: epsilon.

    Parameters
    ----------
    category, categories : int
        In 0..categories - 1; at least 2.
    epsilon : float
        In nats, at least 0.
    """
    if not hasattr(category, "__index__") or not 0 <= category < categories or categories < 2:
        raise ValueError(f"category must be in 0..categories - 1, of at least 2, got {category!r} of {categories!r}")
    check_finite("epsilon", epsilon)
    if epsilon < 0:
        raise must_be("epsilon", "at least 0", epsilon)
    law = np.full(categories, math.exp(-epsilon))
    law[category] = 1.0
    return _choice(law / law.sum(), rng, "randomised_response")


def exponential_mechanism(
    utilities: Sequence[float], epsilon: float, rng: np.random.Generator, *, sensitivity: float = 1.0
) -> int:
    """Return the number of a candidate, with probability proportional to exp(epsilon u / (2 sensitivity)).

    **Claim**: epsilon, where no utility moves by more than the sensitivity.

    Parameters
    ----------
    utilities : sequence of float
        One for each candidate, finite.
    epsilon, sensitivity : float
        In nats; positive.
    """
    check_positive("epsilon", epsilon)
    check_positive("sensitivity", sensitivity)
    scores = np.asarray(utilities, dtype=float)
    if scores.ndim != 1 or not scores.size or not np.isfinite(scores).all():
        raise must_be("utilities", "a finite number for each candidate", utilities)
    law = np.exp((scores - scores.max()) * (epsilon / (2 * sensitivity)))
    return _choice(law / law.sum(), rng, "exponential_mechanism")


def _choice(law: Floats, rng: Any, name: str) -> int:
    if hasattr(rng, "chosen"):
        return int(rng.chosen(law, lambda generator: generator.choice(law.size, p=law), name))
    return int(rng.choice(law.size, p=law))
