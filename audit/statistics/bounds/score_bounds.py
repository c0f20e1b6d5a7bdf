"""Lower bounds on epsilon from the scores of canaries, each in the data by a fair coin of its own.

Pure differential privacy bounds the odds of each coin, given all scores and all other coins, by e^epsilon. So whose
coin is guessed and in which order may be chosen by looking at the scores: they are sorted, and the coins of the
highest scores are guessed "in", those of the lowest "out", from the extremes inwards. Of any such guess the chance to
be right is at most sigmoid(epsilon), whatever came before it. Two tests share alpha:

- *shares*: the guesses of a few shares of the scores, fixed beforehand, each by a binomial tail;
- *bets*: for an epsilon, money is bet on guesses one after the other, at odds that are fair at that epsilon [1]_. It
  is multiplied by 1 / alpha with probability at most alpha, at any time (Ville's inequality), so that the best moment
  may be looked up.

Of every other claim, those with delta > 0 among them, a few shares are tested by the tails of the number of right
guesses (`one_run.refuted_in_one_run`).

References
----------
.. [1] I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS B 86, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ....errors import must_be
from ....mechanisms.measures.approximate import ApproxDP
from ....mechanisms.measures.measure import Measure
from .intervals import epsilon_guess
from .one_run import largest_refuted, refuted_in_one_run

_Floats = NDArray[np.float64]
#: Shares of the scores that are guessed, from both ends: beside bets, which find small ones, and without bets.
WIDE_SHARES, SHARES = (0.35, 0.85), (0.02, 0.06, 0.18, 0.45, 0.85)
#: Of the bets: how much the coins' log odds exceed an epsilon, by hypothesis; each is bet on with equal money. Four
#: lose the logarithm of 4, more of them more: on Gaussian and Laplace scores four certified most.
EXCESSES = np.geomspace(0.3, 3.0, 4)
#: Parts of the money that are bet on guesses at both ends, and at the upper and at the lower one alone.
BOTH_ENDS, ONE_END = 0.9, 0.05
#: Moments at which the money is looked at: at most so many, ever further apart.
MOMENTS = 300
#: The grid of tested epsilons: 1 + epsilon grows by this factor, up to that epsilon.
GROWTH, LAST = 1.004, 40.0
#: Epsilons of the grid that are tested together.
BLOCK = 24
#: By how much a level must be exceeded to be: the search for a bound halves no further.
MIN_EXCESS = 1 + 2.0**-17
#: Standard deviations of the number of inserted canaries for which scores are left over: one sample is too small in
#: 1 of 400 audits, and nothing is certified then.
SPARE = 3.0


def fair_coins(inserted: ArrayLike, held_out: ArrayLike, *, seed: int = 0) -> tuple[_Floats, NDArray[np.bool_]] | None:
    """Return scores of fair, independent coins, from two samples of independent scores.

    How many inserted scores there would be with fair coins is drawn, and so are the scores that are left out. In the
    order of the scores, equal ones by lot, the coins are fair and independent where both samples have one law.

    Returns
    -------
    scores, included : arrays (m,)
        None where a sample has too few scores for the coins that fell.
    """
    ins, outs = check_scores("inserted", inserted), check_scores("held_out", held_out)
    rng = np.random.default_rng([seed, 1])  # and no stream of lots
    n = min(ins.size, outs.size)
    coins = max(0, int(2 * n - SPARE * math.sqrt(2 * n)))
    n_inserted = int(rng.binomial(coins, 0.5))
    if not coins or n_inserted > ins.size or coins - n_inserted > outs.size:
        return None
    samples = [
        np.delete(sample, rng.choice(sample.size, sample.size - left, replace=False, shuffle=False))
        for sample, left in ((ins, n_inserted), (outs, coins - n_inserted))
    ]
    return np.concatenate(samples), np.arange(coins) < n_inserted


def epsilon_from_coins(
    scores: ArrayLike, included: ArrayLike, *, delta: float = 0.0, alpha: float = 0.05, seed: int = 0
) -> float:
    """Return a lower bound on epsilon (nats) from scores of canaries that were included by fair coins.

    **Validity**: the coins are fair, independent of each other and of all else, and each decided whether its canary
    was in the data; scores depend on coins through the training alone; the claim is about the change of one canary.
    The bound exceeds the true epsilon with probability at most alpha. Canaries of several trainings, each in one of
    them alone, count as those of one training.

    Proof. Let the true epsilon be e and g the first tested epsilon that is at least e. A bound above e is a rejection
    of g. With delta = 0 the k-th guess is right with probability at most sigmoid(e) <= sigmoid(g), given all scores
    and the coins before it. So the number of right guesses among the first r is at most binomial in distribution, and
    each share is rejected with probability at most alpha / 2 / (number of shares); and money bet at odds sigmoid(g) is
    a nonnegative supermartingale from 1, which reaches 2 / alpha with probability at most alpha / 2. With delta > 0
    see `level_from_coins`.

    Parameters
    ----------
    scores : array (m,)
        Larger for canaries that the attack takes for included. Infinities are allowed; ties are broken by lot.
    included : bool array (m,)
    delta : float
        In [0, 1).
    alpha : float
        In (0, 1).
    seed : int
        Of the lot that breaks ties.

    Raises
    ------
    ValueError
        For scores that are NaN, coins that are not 0 or 1, lengths that differ, or no score.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(2000) < 0.5
    >>> round(epsilon_from_coins(coins + rng.laplace(size=2000), coins), 2) < 1.0
    True
    """
    if delta > 0:
        return level_from_coins(ApproxDP(1.0, delta), scores, included, alpha=alpha, seed=seed)
    right = _guesses(scores, included, seed)
    return max(_by_shares(right, alpha / 2), _by_bets(right, alpha / 2)) if right.size else 0.0


def level_from_coins(
    measure: Measure, scores: ArrayLike, included: ArrayLike, *, alpha: float = 0.05, seed: int = 0
) -> float:
    """Return a lower bound on the level of a measure from scores of canaries that were included by fair coins.

    Conditions, parameters and errors are those of `epsilon_from_coins`; `measure` says which levels are asked for.
    Each of a few shares of the scores is tested with an equal part of alpha by `refuted_in_one_run`.

    In a measure such as GDP, whose claims allow rare outcomes to tell much, one run certifies a part of the level,
    however many canaries it has: a training that tells the coins with probability alpha, and else nothing, shows as
    much. Independent scores certify all of it (`rank_bounds.level_from_samples`).

    Examples
    --------
    >>> from overclaim.mechanisms.measures.gaussian_dp import GDP
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(2000) < 0.5
    >>> 1.2 < level_from_coins(GDP(1.0), 3 * coins + rng.normal(size=2000), coins) < 3.0
    True
    """
    return largest_refuted(measure, *_tests_of_shares(scores, included, alpha, seed))


def refuted_by_coins(
    measure: Measure, scores: ArrayLike, included: ArrayLike, *, alpha: float = 0.05, seed: int = 0
) -> bool:
    """Return whether scores refute a claim: whether their lower bound on its level is above it, without the bound.

    Parameters and errors are those of `level_from_coins`.

    Examples
    --------
    >>> coins = np.arange(100) < 50
    >>> [refuted_by_coins(ApproxDP(epsilon, 1e-5), coins, coins) for epsilon in (1.0, 9.0)]
    [True, False]
    """
    if not (measure.is_epsilon and not measure.stated[1]):
        next_claim = measure.at(measure.level * MIN_EXCESS)
        return any(refuted(next_claim) for refuted in _tests_of_shares(scores, included, alpha, seed))
    right = _guesses(scores, included, seed)
    if not right.size or _by_shares(right, alpha / 2) > measure.level:
        return bool(right.size)
    grid = tested()
    grid_below = grid[: int(np.searchsorted(grid, measure.level, side="right")) + 1]
    rejected = _rejected_by_bets(right, alpha / 2)
    return all(rejected(block).all() for block in _blocks(grid_below)[::-1])


def _tests_of_shares(
    scores: ArrayLike, included: ArrayLike, alpha: float, seed: int
) -> list[Callable[[Measure], bool]]:
    """Return for each of a few shares of the guesses whether they refute a claim."""
    right = _guesses(scores, included, seed)
    correct, canaries, part = np.cumsum(right, dtype=np.int64), np.size(scores), alpha / len(SHARES)
    games = (
        [(int(correct[n_guesses - 1]), n_guesses, canaries) for n_guesses in _guess_counts(right.size, SHARES)]
        if right.size
        else []
    )
    return [lambda claim, game=game: refuted_in_one_run(claim, *game, alpha=part) for game in games]  # type: ignore[misc]


def _guesses(scores: ArrayLike, included: ArrayLike, seed: int) -> NDArray[np.bool_]:
    """Return which guesses are right, the uppermost, the lowermost, the second, and so on, (2 * half,)."""
    values, coins = check_scores("scores", scores), check_coins(included, np.size(scores))
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    if (ranked[1:] == ranked[:-1]).any():
        lot = np.random.default_rng(seed).permutation(values.size)
        order = lot[np.argsort(-values[lot], kind="stable")]
    coins = coins[order]
    half = coins.size // 2
    right = np.empty(2 * half, dtype=np.bool_)
    right[0::2], right[1::2] = coins[:half], ~coins[::-1][:half]
    return right


def _guess_counts(n_guesses: int, shares: tuple[float, ...]) -> list[int]:
    """Return how many guesses are counted for each share."""
    return [max(1, round(share * n_guesses)) for share in shares]


def _by_shares(right: NDArray[np.bool_], alpha: float) -> float:
    n_guesses = np.array(_guess_counts(right.size, WIDE_SHARES))
    bounds = epsilon_guess(np.cumsum(right)[n_guesses - 1], n_guesses, n_guesses, alpha=alpha / len(WIDE_SHARES))
    return float(np.max(bounds))


def tested() -> _Floats:
    """Return the grid of tested epsilons."""
    grid: _Floats = np.expm1(math.log(GROWTH) * np.arange(1, math.ceil(math.log1p(LAST) / math.log(GROWTH))))
    return grid


def _by_bets(right: NDArray[np.bool_], alpha: float) -> float:
    """Return the last epsilon of the grid up to which all are rejected; 0 if the first is not."""
    last, rejected_by_bets = 0.0, _rejected_by_bets(right, alpha)
    for block in _blocks(tested()):
        rejected = rejected_by_bets(block)
        if not rejected.all():
            first = int(np.argmin(rejected))
            return float(block[first - 1]) if first else last
        last = float(block[-1])
    return last


def _blocks(grid: _Floats) -> list[_Floats]:
    """Return a grid in parts of about equal size."""
    return np.array_split(grid, -(-grid.size // BLOCK))


def _rejected_by_bets(right: NDArray[np.bool_], alpha: float) -> Callable[[_Floats], NDArray[np.bool_]]:
    """Return the function that tells which epsilons bets on some guesses reject."""
    pairs = right.size // 2
    moments = np.unique(np.geomspace(1, pairs, MOMENTS).astype(np.int64))
    upper, lower = (np.cumsum(right[end::2], dtype=np.int64)[moments - 1] for end in (0, 1))
    return lambda epsilon: log_money(upper, lower, moments, epsilon).max(axis=1) >= -math.log(alpha)


def log_money(
    upper: NDArray[np.int64], lower: NDArray[np.int64], moments: NDArray[np.int64], epsilon: _Floats
) -> _Floats:
    """Return the logarithm of the money after so many guesses at each end, (epsilons, moments).

    Parameters
    ----------
    upper, lower : int array (moments,)
        Right guesses at each end by then.
    moments : int array (moments,)
        Guesses at each end by then.
    """
    gains = []
    chance = epsilon[:, None] + EXCESSES  # the log odds that are bet on, (epsilons, excesses)
    # Log of q / sigmoid(epsilon), and of (1 - q) / (1 - sigmoid(epsilon)).
    log_gain = special.log_expit(chance) - special.log_expit(epsilon)[:, None]
    log_loss = special.log_expit(-chance) - special.log_expit(-epsilon)[:, None]
    for right, n_guesses in ((upper + lower, 2 * moments), (upper, moments), (lower, moments)):
        log_wealths = log_gain[..., None] * right + log_loss[..., None] * (n_guesses - right)
        gains.append(special.logsumexp(log_wealths, axis=1) - math.log(EXCESSES.size))
    parts = np.log([BOTH_ENDS, ONE_END, ONE_END])
    money: _Floats = special.logsumexp(np.stack(gains, axis=-1) + parts, axis=-1)
    return money


def check_scores(name: str, scores: ArrayLike) -> _Floats:
    """Return scores as a float array; raise ValueError, naming the first that is none."""
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise must_be(name, "numbers", scores) from None
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be a list of at least one number, got shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{name} must be numbers, number {int(np.argmax(np.isnan(array))) + 1} is nan")
    return array


def check_coins(included: ArrayLike, n_scores: int) -> NDArray[np.bool_]:
    """Return coins as a bool array; raise ValueError unless there is a 0 or 1 for each of so many scores."""
    coins = np.asarray(included)
    if coins.shape != (n_scores,):
        raise ValueError(f"included must have one value for each of {n_scores} scores, got shape {coins.shape}")
    if coins.dtype != np.bool_:
        invalid = ~np.isin(coins, (0, 1)) if coins.dtype.kind in "iuf" else np.ones(n_scores, dtype=np.bool_)
        if invalid.any():
            raise must_be("included", "0 or 1", coins[invalid][0])
    return coins.astype(np.bool_)
