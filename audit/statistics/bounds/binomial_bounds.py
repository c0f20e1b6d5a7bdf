"""Exact bounds of a binomial probability, and counts that are checked.

References
----------
.. [1] C. Clopper, E. Pearson. The use of confidence or fiducial limits illustrated in the case of the
   binomial. Biometrika 26, 1934.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ....errors import must_be

Reals: TypeAlias = np.float64 | NDArray[np.float64]
Floats: TypeAlias = NDArray[np.float64]
_Counts: TypeAlias = NDArray[np.int64] | Floats


def clopper_pearson_lower(k: ArrayLike, n: ArrayLike, alpha: ArrayLike) -> Reals:
    """Return the exact one-sided lower confidence bound of a binomial probability [1]_.

    Parameters
    ----------
    k, n : int or array of int
        Successes and trials.
    alpha : float or array of float
        The probability, at most, that the bound exceeds the true value.

    Raises
    ------
    ValueError
        If a count is negative or no integer, k > n, n < 1, or alpha is outside (0, 1).

    Examples
    --------
    >>> round(float(clopper_pearson_lower(90, 100, 0.05)), 4)
    0.8363
    """
    successes, trials = count_pair("k", k, "n", n)
    return unwrap(lower_bound(successes, trials, check_alpha(alpha)))


def clopper_pearson_upper(k: ArrayLike, n: ArrayLike, alpha: ArrayLike) -> Reals:
    """Return the exact one-sided upper confidence bound of a binomial probability [1]_.

    Parameters and errors are those of `clopper_pearson_lower`; alpha bounds the probability that the bound
    falls short of the true value.
    """
    successes, trials = count_pair("k", k, "n", n)
    return unwrap(upper_bound(successes, trials, check_alpha(alpha)))


def lower_bound(k: _Counts, n: _Counts, alpha: Floats) -> Floats:
    """Return the Clopper-Pearson lower bound; 0 for no success."""
    # scipy gives nan at k = 0. Never beta.ppf(1 - alpha): 1 - alpha rounds to 1.
    quantile = special.betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, alpha)
    bound: Floats = np.where(k > 0, quantile, 0.0)
    return bound


def upper_bound(k: _Counts, n: _Counts, alpha: Floats) -> Floats:
    """Return the Clopper-Pearson upper bound; 1 for no failure."""
    quantile = special.betainccinv(k + 1, np.maximum(n - k, 1), alpha)
    bound: Floats = np.where(k < n, quantile, 1.0)
    return bound


def log_ratio(top: Floats, bottom: Floats) -> Floats:
    """Return ln(top / bottom) clipped at 0, and 0 where top is not positive."""
    positive = np.maximum(top, 0.0)
    with np.errstate(divide="ignore"):
        ratio: Floats = np.maximum(np.log(positive) - np.log(bottom), 0.0)
    return ratio


def unwrap(values: Floats) -> Reals:
    """Return a scalar for scalar arguments."""
    unwrapped: Reals = values[()]
    return unwrapped


def count_pair(
    name_k: str, k: ArrayLike, name_n: str, n: ArrayLike, min_trials: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both counts as int64, checked: 0 <= k <= n, n at least `min_trials`."""
    successes, trials = _check_count(name_k, k), _check_count(name_n, n)
    if np.any(trials < min_trials):
        raise must_be(name_n, f"at least {min_trials}", _first(n, trials < min_trials))
    too_large = successes > trials
    if np.any(too_large):
        pair = np.broadcast_arrays(successes, trials)
        raise ValueError(
            f"{name_k} must be at most {name_n}, got {name_k}={_first(pair[0], too_large)} "
            f"and {name_n}={_first(pair[1], too_large)}"
        )
    return successes, trials


def _check_count(name: str, value: ArrayLike) -> NDArray[np.int64]:
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf":
        raise must_be(name, "a non-negative integer count", value)
    # int64 from here on: 60000 squared overflows an int32. Floats are welcome while they are exact integers.
    is_count = np.isfinite(numbers) & (numbers >= 0) & (numbers < 2.0**53) & (np.floor(numbers) == numbers)
    if not np.all(is_count):
        offender = _first(numbers, ~is_count)
        raise must_be(name, "a non-negative integer count below 2^53", offender)
    return numbers.astype(np.int64)


def check_alpha(alpha: ArrayLike) -> Floats:
    """Return alpha as floats, checked: in (0, 1)."""
    alphas = np.asarray(alpha, dtype=np.float64)
    in_range = (alphas > 0) & (alphas < 1)
    if not np.all(in_range):
        raise must_be("alpha", "in (0, 1)", _first(alphas, ~in_range))
    return alphas


def check_delta(delta: ArrayLike) -> Floats:
    """Return delta as floats, checked: in [0, 1)."""
    deltas = np.asarray(delta, dtype=np.float64)
    in_range = (deltas >= 0) & (deltas < 1)
    if not np.all(in_range):
        raise must_be("delta", "in [0, 1)", _first(deltas, ~in_range))
    return deltas


def _first(values: ArrayLike, mask: ArrayLike) -> object:
    """Return the first offending value, as a plain number for the message."""
    return np.asarray(values)[np.asarray(mask)].flat[0].item()
