"""Lower bounds on epsilon from counts: the only place where counts become bounds.

Every bound here is exact: built from binomial tails alone, valid at every sample size. The counts must come
from runs drawn *after* the event was fixed. Arguments broadcast against each other; scalars give a
``numpy.float64``.

References
----------
.. [1] C. Clopper, E. Pearson. The use of confidence or fiducial limits illustrated in the case of the
   binomial. Biometrika 26, 1934.
.. [2] R. Berger, D. Boos. P values maximized over a confidence set for the nuisance parameter. JASA 89,
   1994.
.. [3] S. Stouffer et al. The American Soldier, vol. 1. Princeton, 1949 (the sum of weighted normal scores).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .joint_cover import MARGINS, proved

Reals: TypeAlias = np.float64 | NDArray[np.float64]
_Floats: TypeAlias = NDArray[np.float64]
_Counts: TypeAlias = NDArray[np.int64] | _Floats

# The share of alpha spent on a nuisance parameter (the guess rate, or the Berger-Boos box).
NUISANCE_SHARE = 1e-3

_COARSE = np.linspace(0.0, 1.0, 25)  # places in the box, in units of its width (about eight sd)
_FINE = np.linspace(-1.0, 1.0, 9)  # places around the coarse minimum, in units of a coarse cell
_SCAN = np.linspace(0.0, 1.0, 12)  # places in the bracket of epsilon, looked at before searching between two
_STEPS, _CLOSE, _FAR = 30, 1e-7, 9.0  # of that search: steps, width of the last bracket, largest score
_CHUNK = 512  # rows of a joint problem solved at once: bounds the memory


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
    successes, trials = _count_pair("k", k, "n", n)
    return _unwrap(_lower(successes, trials, _check_alpha(alpha)))


def clopper_pearson_upper(k: ArrayLike, n: ArrayLike, alpha: ArrayLike) -> Reals:
    """Return the exact one-sided upper confidence bound of a binomial probability [1]_.

    Parameters and errors are those of `clopper_pearson_lower`; alpha bounds the probability that the bound
    falls short of the true value.
    """
    successes, trials = _count_pair("k", k, "n", n)
    return _unwrap(_upper(successes, trials, _check_alpha(alpha)))


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
    in_p, runs_p = _count_pair("k_p", k_p, "n_p", n_p)
    in_q, runs_q = _count_pair("k_q", k_q, "n_q", n_q)
    slack, half = _check_delta(delta), _check_alpha(alpha) / 2
    return _unwrap(_log_ratio(_lower(in_p, runs_p, half) - slack, _upper(in_q, runs_q, half)))


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
    in_p, runs_p = _count_pair("k_p", k_p, "n_p", n_p)
    in_q, runs_q = _count_pair("k_q", k_q, "n_q", n_q)
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
    made, played = _count_pair("guesses", guesses, "runs", runs)
    correct, made = _count_pair("right", right, "guesses", made, least=0)
    slack, error = _check_delta(delta), _check_alpha(alpha)
    correct, made, played, slack, error = np.broadcast_arrays(correct, made, played, slack, error)
    spent = np.where(slack > 0, NUISANCE_SHARE * error, 0.0)
    some = np.maximum(made, 1)  # with no guess at all the bounds below are vacuous: pi >= 0, 1 - pi <= 1
    rate = _lower(made, played, np.where(slack > 0, spent, error))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.where(slack > 0, slack / rate, 0.0)
    # 1 - pi_lower is the upper bound of the wrong share: the other tail, never a subtraction.
    bound = _log_ratio(_lower(correct, some, error - spent) - excess, _upper(some - correct, some, error - spent))
    return _unwrap(np.where(made > 0, bound, 0.0))


def epsilon_joint(
    k_p: ArrayLike,
    n_p: ArrayLike,
    k_q: ArrayLike,
    n_q: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    alpha: ArrayLike = 0.05,
    margins: Sequence[float] = MARGINS,
) -> Reals:
    """Return a lower bound on epsilon (nats) from both binomial tails together.

    For every point ``(p, q)`` of the null boundary ``p = e^epsilon q + delta`` the exact tail probabilities
    of the two counts become normal scores and are summed with Stouffer weights [3]_ fixed by the point. The
    null is rejected when the smallest sum over a Berger-Boos box [2]_ (alpha/1000) passes the normal quantile
    of what is left of alpha; the bound is the smallest epsilon that is not rejected. At the true point the
    scores are at most standard normal and independent, and a smaller true p only lowers them: the error is at
    most alpha.

    Parameters and errors are those of `epsilon_two_interval`, and

    margins : sequence of float
        What may be given up to prove that all null points below the bound are rejected (`joint_cover`). None, and they
        are only looked at on a grid, which may find some 1e-3 standard errors too much: enough to choose among events,
        and never for what is said of a learner.
    """
    in_p, runs_p = _count_pair("k_p", k_p, "n_p", n_p)
    in_q, runs_q = _count_pair("k_q", k_q, "n_q", n_q)
    columns = np.broadcast_arrays(in_p, runs_p, in_q, runs_q, _check_delta(delta), _check_alpha(alpha))
    rows = np.stack([column.ravel() for column in columns])
    # Runs of an audit repeat the same few counts: each distinct row is solved once.
    distinct, place = np.unique(rows, axis=1, return_inverse=True)
    starts = range(0, distinct.shape[1], _CHUNK)
    solved = [_joint_rows(margins, *distinct[:, start : start + _CHUNK, None]) for start in starts]
    found = np.concatenate(solved) if solved else np.empty(0)
    return _unwrap(found[place.ravel()].reshape(columns[0].shape))


def _joint_rows(
    margins: Sequence[float], k_p: _Floats, n_p: _Floats, k_q: _Floats, n_q: _Floats, delta: _Floats, alpha: _Floats
) -> _Floats:
    """Solve a column of joint problems, each array of shape (rows, 1)."""
    g = NUISANCE_SHARE * alpha
    p_box, q_box = _lower(k_p, n_p, g / 2), _upper(k_q, n_q, g / 2)
    # Below `floor` the box holds no null point: all is rejected. At `ceiling` it holds one where both scores are
    # at most 0 (or at the quantile itself if alpha > 1/2), which is not.
    level = np.maximum(0.5, alpha)
    floor = _log_ratio(p_box - delta, q_box)
    ceiling = _log_ratio(_lower(k_p, n_p, level) - delta, _upper(k_q, n_q, level))
    answer = floor[:, 0]
    live = ceiling[:, 0] > answer
    if not live.any():
        return answer
    data = tuple(column[live] for column in (k_p, n_p, k_q, n_q, delta))
    box = (p_box[live], q_box[live])
    quantile = -special.ndtri((alpha - g)[live])

    def excess(epsilon: _Floats) -> _Floats:
        """Return by how much the smallest score passes the quantile, (rows, columns): rejected where positive."""
        many = epsilon.shape[1]
        rows, ends = (tuple(np.repeat(column, many, axis=0) for column in columns) for columns in (data, box))
        worst = _smallest_score(rows, (ends[0], ends[1]), epsilon.ravel()[:, None]).reshape(epsilon.shape)
        over: _Floats = np.clip(worst - quantile, -_FAR, _FAR)  # infinite scores have no slope
        return over

    low, high = floor[live], ceiling[live]
    scan = low + (high - low) * _SCAN
    over = excess(scan)
    over[:, 0], over[:, -1] = np.abs(over[:, 0]), -np.abs(over[:, -1])  # as said above of floor and ceiling
    # The bound is the *first* epsilon that is not rejected; a search of the whole bracket would trust in one crossing.
    first = np.maximum(1, np.argmin(over > 0, axis=1))[:, None]
    (low, high), (above, below) = (
        [np.take_along_axis(x, at, axis=1) for at in (first - 1, first)] for x in (scan, over)
    )
    for _ in range(_STEPS):
        wide = high - low > _CLOSE  # a row that is found stays as it is, whatever the others need
        if not wide.any():
            break
        # Regula falsi, the end that stays twice at half its value (Illinois); bisection where it says nothing.
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = low + (high - low) * (above / (above - below))
        middle = np.where((middle > low) & (middle < high), middle, (low + high) / 2)
        passed = (found := excess(middle)) > 0
        low, high = np.where(wide & passed, middle, low), np.where(wide & ~passed, middle, high)
        above, below = np.where(passed, found, above / 2), np.where(passed, below / 2, found)
    if margins:
        low = proved(low, floor[live], (ceiling - floor)[live], data, box, quantile, (_score_p, _score_q), margins)
    answer[live] = low[:, 0]
    return answer


def _smallest_score(data: tuple[_Floats, ...], box: tuple[_Floats, _Floats], epsilon: _Floats) -> _Floats:
    """Return the smallest Stouffer sum over the null points of the box, shape (rows,)."""
    delta = data[4]
    start = np.clip((box[0] - delta) * np.exp(-epsilon), 0.0, 1.0)
    # Beyond e^epsilon q + delta = 1 only world Q speaks, and its score grows with q: that stretch is never
    # the minimum.
    stop = np.minimum(box[1], (1.0 - delta) * np.exp(-epsilon))
    stop = np.maximum(start, stop)
    # Equal steps of asin(sqrt(q)) are equal steps in standard deviations of a binomial.
    left, right = np.arcsin(np.sqrt(start)), np.arcsin(np.sqrt(stop))
    cell = (right - left) * _COARSE[1]
    coarse = left + (right - left) * _COARSE
    scores = _stouffer(data, np.clip(np.sin(coarse) ** 2, start, stop), epsilon)
    centre = np.take_along_axis(coarse, np.argmin(scores, axis=1)[:, None], axis=1)
    fine = np.clip(centre + cell * _FINE, left, right)
    again = _stouffer(data, np.clip(np.sin(fine) ** 2, start, stop), epsilon)
    smallest: _Floats = np.minimum(scores.min(axis=1), again.min(axis=1))
    return smallest


def _stouffer(data: tuple[_Floats, ...], q: _Floats, epsilon: _Floats) -> _Floats:
    """Return the weighted sum of the two normal scores at the null points (e^epsilon q + delta, q)."""
    _, n_p, _, n_q, delta = data
    p = np.minimum(np.exp(epsilon) * q + delta, 1.0)
    # The weights sd(p^)/(p - delta) and sd(q^)/q, both times q: finite at q = 0.
    weight_p = np.sqrt(p * (1.0 - p) / n_p) * np.exp(-epsilon)
    weight_q = np.sqrt(q * (1.0 - q) / n_q)
    score_p, score_q = _score_p(data, p), _score_q(data, q)
    with np.errstate(invalid="ignore"):
        # A weight vanishes faster than its score diverges: the product's limit is 0.
        top = np.where(weight_p > 0, weight_p * score_p, 0.0) + np.where(weight_q > 0, weight_q * score_q, 0.0)
        total: _Floats = top / np.hypot(weight_p, weight_q)
    # Opposite infinities, or no weight at all: do not reject.
    return np.where(np.isnan(total), -np.inf, total)


def _score_p(data: tuple[_Floats, ...], p: _Floats) -> _Floats:
    k, n = data[0], data[1]
    return _score(special.betainc, special.betaincc, k, n - k + 1, n, k, p)


def _score_q(data: tuple[_Floats, ...], q: _Floats) -> _Floats:
    k, n = data[2], data[3]
    return _score(special.betaincc, special.betainc, k + 1, n - k, n, k, q)


def _score(tail: np.ufunc, opposite: np.ufunc, a: _Floats, b: _Floats, n: _Floats, k: _Floats, x: _Floats) -> _Floats:
    """Return ``-ndtri(tail probability)``, large where the count speaks against the null, at every scale."""
    mass = tail(a, b, x)
    score: _Floats = -special.ndtri(mass)
    heavy = mass > 0.9  # near 1 the digits are in the opposite tail
    rest = np.broadcast_to(a, x.shape)[heavy], np.broadcast_to(b, x.shape)[heavy], x[heavy]
    score[heavy] = special.ndtri(opposite(*rest))
    # Past 37 sd both tails underflow. The deviance root is close enough there: the true null point is met
    # this far out with probability 1e-300, so these values only steer the search.
    far = np.isinf(score) & (x > 0) & (x < 1)
    if far.any():
        share, point = np.broadcast_to(k / n, x.shape)[far], x[far]
        deviance = special.rel_entr(share, point) + special.rel_entr(1 - share, 1 - point)
        score[far] = np.sign(score[far]) * np.sqrt(2 * np.broadcast_to(n, x.shape)[far] * deviance)
    # k_p = 0 and k_q = n_q: the tail is everything and the count says nothing against the null.
    return np.where((a <= 0) | (b <= 0), -np.inf, score)


def _lower(k: _Counts, n: _Counts, alpha: _Floats) -> _Floats:
    # scipy gives nan at k = 0. Never beta.ppf(1 - alpha): 1 - alpha rounds to 1.
    inside = special.betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, alpha)
    bound: _Floats = np.where(k > 0, inside, 0.0)
    return bound


def _upper(k: _Counts, n: _Counts, alpha: _Floats) -> _Floats:
    inside = special.betainccinv(k + 1, np.maximum(n - k, 1), alpha)
    bound: _Floats = np.where(k < n, inside, 1.0)
    return bound


def _log_ratio(top: _Floats, bottom: _Floats) -> _Floats:
    """Return ln(top / bottom) clipped at 0, and 0 where top is not positive."""
    positive = np.maximum(top, 0.0)
    with np.errstate(divide="ignore"):
        ratio: _Floats = np.maximum(np.log(positive) - np.log(bottom), 0.0)
    return ratio


def _unwrap(values: _Floats) -> Reals:
    """Return a scalar for scalar arguments."""
    unwrapped: Reals = values[()]
    return unwrapped


def _count_pair(
    name_k: str, k: ArrayLike, name_n: str, n: ArrayLike, least: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    successes, trials = _check_count(name_k, k), _check_count(name_n, n)
    if np.any(trials < least):
        raise ValueError(f"{name_n} must be at least {least}, but got {_first(n, trials < least)}")
    above = successes > trials
    if np.any(above):
        pair = np.broadcast_arrays(successes, trials)
        raise ValueError(
            f"{name_k} must be at most {name_n}, but got {name_k}={_first(pair[0], above)} "
            f"and {name_n}={_first(pair[1], above)}"
        )
    return successes, trials


def _check_count(name: str, value: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(value)
    if given.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a non-negative integer count, but got {value!r}")
    # int64 from here on: 60000 squared overflows an int32. Floats are welcome while they are exact integers.
    whole = np.isfinite(given) & (given >= 0) & (given < 2.0**53) & (np.floor(given) == given)
    if not np.all(whole):
        wrong = _first(given, ~whole)
        raise ValueError(f"{name} must be a non-negative integer count below 2^53, but got {wrong}")
    return given.astype(np.int64)


def _check_alpha(alpha: ArrayLike) -> _Floats:
    given = np.asarray(alpha, dtype=np.float64)
    inside = (given > 0) & (given < 1)
    if not np.all(inside):
        raise ValueError(f"alpha must be in (0, 1), but got {_first(given, ~inside)}")
    return given


def _check_delta(delta: ArrayLike) -> _Floats:
    given = np.asarray(delta, dtype=np.float64)
    inside = (given >= 0) & (given < 1)
    if not np.all(inside):
        raise ValueError(f"delta must be in [0, 1), but got {_first(given, ~inside)}")
    return given


def _first(values: ArrayLike, wrong: ArrayLike) -> object:
    """Return the first offending value, as a plain number for the message."""
    return np.asarray(values)[np.asarray(wrong)].flat[0].item()
