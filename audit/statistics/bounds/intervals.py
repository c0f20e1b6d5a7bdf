"""Lower bounds on epsilon from counts: by two Clopper-Pearson intervals, and in the guess game.

Both bounds are exact: built from binomial tails alone, valid at every sample size. The counts must come
from runs drawn *after* the event was fixed. Arguments broadcast against each other; scalars give a
``numpy.float64``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .binomial_bounds import Reals, check_alpha, check_delta, count_pair, log_ratio, lower_bound, unwrap, upper_bound

# The share of alpha spent on a nuisance parameter (the guess rate, or the Berger-Boos box).
NUISANCE_SHARE = 1e-3


def epsilon_two_interval(
    k_p: ArrayLike,
    n_p: ArrayLike,
    k_q: ArrayLike,
    n_q: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    alpha: ArrayLike = 0.05,
) -> Reals:
    """Return a lower bound on epsilon (nats) from two Clopper-Pearson intervals at alpha/2 each.

    The event happened in `k_p` of `n_p` runs of world P and in `k_q` of `n_q` runs of world Q; the bound is
    ``ln((p_lower - delta) / q_upper)``, clipped at 0. Transparent, never the sharpest.

    Parameters
    ----------
    k_p, n_p, k_q, n_q : int or array of int
        Runs with the event, and runs, in each world.
    delta : float or array of float
        The delta at which epsilon is bounded.
    alpha : float or array of float
        The probability, at most, that the bound exceeds the true epsilon.

    Raises
    ------
    ValueError
        As `clopper_pearson_lower`; also if delta is outside [0, 1).

    Examples
    --------
    >>> round(float(epsilon_two_interval(5_000, 10_000, 700, 10_000, alpha=0.01)), 3)
    1.847
    """
    in_p, runs_p = count_pair("k_p", k_p, "n_p", n_p)
    in_q, runs_q = count_pair("k_q", k_q, "n_q", n_q)
    slack, half = check_delta(delta), check_alpha(alpha) / 2
    return unwrap(log_ratio(lower_bound(in_p, runs_p, half) - slack, upper_bound(in_q, runs_q, half)))


def epsilon_two_interval_complement(
    k_p: ArrayLike,
    n_p: ArrayLike,
    k_q: ArrayLike,
    n_q: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    alpha: ArrayLike = 0.05,
) -> Reals:
    """Return the bound (nats) that the complement of the event gives, with the roles of the worlds exchanged.

    ``ln((1 - q_upper - delta) / (1 - p_lower))`` needs no interval beyond the two of `epsilon_two_interval`,
    so both bounds hold together with error alpha and the larger one may be taken. Parameters and errors are
    the same.
    """
    in_p, runs_p = count_pair("k_p", k_p, "n_p", n_p)
    in_q, runs_q = count_pair("k_q", k_q, "n_q", n_q)
    # Complements are computed from the other tail: 1 - q_upper would lose every digit of a small difference.
    return epsilon_two_interval(runs_q - in_q, runs_q, runs_p - in_p, runs_p, delta=delta, alpha=alpha)


def epsilon_guess(
    right: ArrayLike, guesses: ArrayLike, runs: ArrayLike, *, delta: ArrayLike = 0.0, alpha: ArrayLike = 0.05
) -> Reals:
    """Return a lower bound on epsilon (nats) from the guess game.

    Each run has a fair, independent world label; the attack guesses it or abstains. (epsilon, delta)-DP gives
    ``P(right) <= e^epsilon P(wrong) + delta`` per run, hence of the guesses made a share of at most
    ``(e^epsilon + delta/rho) / (1 + e^epsilon)`` is right, with rho the guess rate. With delta = 0 the guess
    rate plays no part and all of alpha goes to the one interval; otherwise alpha/1000 is spent on a lower
    bound of rho.

    Parameters
    ----------
    right, guesses, runs : int or array of int
        Right guesses, guesses made (possibly none), runs played.
    delta : float or array of float
        The delta of the per-run inequality above.
    alpha : float or array of float
        The probability, at most, that the bound exceeds the true epsilon.

    Raises
    ------
    ValueError
        If a count is negative or no integer, right > guesses, guesses > runs, runs < 1, alpha is
        outside (0, 1) or delta outside [0, 1).

    Examples
    --------
    >>> round(float(epsilon_guess(8_808, 10_000, 10_000, alpha=0.01)), 3)  # the share of epsilon = 2 is 0.8808
    1.928
    """
    guessed, played = count_pair("guesses", guesses, "runs", runs)
    correct, guessed = count_pair("right", right, "guesses", guessed, min_trials=0)
    slack, error = check_delta(delta), check_alpha(alpha)
    correct, guessed, played, slack, error = np.broadcast_arrays(correct, guessed, played, slack, error)
    nuisance_alpha = np.where(slack > 0, NUISANCE_SHARE * error, 0.0)
    at_least_one = np.maximum(guessed, 1)  # with no guess at all the bounds below are vacuous: pi >= 0, 1 - pi <= 1
    rate = lower_bound(guessed, played, np.where(slack > 0, nuisance_alpha, error))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.where(slack > 0, slack / rate, 0.0)
    # 1 - pi_lower is the upper bound of the wrong share: the other tail, never a subtraction.
    bound = log_ratio(
        lower_bound(correct, at_least_one, error - nuisance_alpha) - excess,
        upper_bound(at_least_one - correct, at_least_one, error - nuisance_alpha),
    )
    return unwrap(np.where(guessed > 0, bound, 0.0))
