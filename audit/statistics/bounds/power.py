"""What a budget could catch: the power of the guess game, computed from exact binomial tails.

The reference is a Laplace mechanism attacked optimally: at a true epsilon of e the right side is guessed in
half of the runs, the wrong one in e^-e of that, and in between the attack abstains. With delta > 0 the
mechanism also reveals its input with probability delta, which makes it exactly (e, delta)-DP. `runs` always
means certification runs, both worlds together.

Randomised response, which shows all that an epsilon allows and is guessed in every run, is caught a little sooner:
behind a claim of 1, at alpha = 0.01, 10,000 runs catch 1.082 of it, and 1.101 of the reference.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....errors import must_be
from ....mechanisms.numerics import fewest, least
from . import binomial_bounds, intervals
from .binomial import survival, upper_quantile
from .joint_bound import epsilon_joint

# The number of guesses is itself random: the power is averaged over this many equally likely values of it.
_GUESS_COUNTS = (np.arange(65) + 0.5) / 65
#: Where few runs do not suffice, it is asked whether the most do.
_MANY_RUNS, _MAX_RUNS = 2**20, 2**50
#: Of an interval of some nats: the power of a discrete test says no more than nine digits of an epsilon.
_HALVINGS = 30
#: The shares of the runs that the left world may have. Neither gets fewer: what a pilot says of rare events is rough.
SHARES = np.arange(10, 91) / 100


def ceiling_epsilon(runs: int, *, delta: float = 0.0, alpha: float = 0.05) -> float:
    """Return the bound (nats) that a perfect attack, right in every run, would certify.

    A claim of as much or more is UNDERPOWERED at this budget: no attack could falsify it. It guesses the world of
    every run; or, which with a large delta and few runs certifies more, it names one world alone, whatever share of
    the runs that world has.

    Raises
    ------
    ValueError
        If runs < 1, alpha is outside (0, 1) or delta outside [0, 1).
    """
    guessed = float(intervals.epsilon_guess(runs, runs, runs, delta=delta, alpha=alpha))
    if delta == 0 or runs == 1:
        return guessed
    left = lefts(runs)
    return max(guessed, float(np.max(epsilon_joint(left, left, 0, runs - left, delta=delta, alpha=alpha))))


def lefts(runs: int) -> NDArray[np.int64]:
    """Return how many of some runs may be of the left world, as an audit may share them out; both worlds have one."""
    return np.unique(np.rint(runs * SHARES).clip(1, max(1, runs - 1)).astype(np.int64))


def falsification_power(claimed: float, true: float, runs: int, *, delta: float = 0.0, alpha: float = 0.05) -> float:
    """Return the probability that the guess game falsifies `claimed` when the reference has epsilon `true`.

    Parameters
    ----------
    claimed, true : float
        Epsilon in nats; `true` may be infinite.
    runs : int
        Certification runs.
    delta, alpha : float
        The claim's delta and the certificate's error.

    Raises
    ------
    ValueError
        If claimed is negative or infinite, true is negative, runs < 1, alpha is outside (0, 1) or delta
        outside [0, 1).
    """
    _check(claimed, runs, delta, alpha)
    if not true >= 0:
        raise must_be("true", "a non-negative epsilon", true)
    p_right, p_wrong = (1 + delta) / 2, (1 - delta) / 2 * math.exp(-true)
    guesses = upper_quantile(1 - _GUESS_COUNTS, runs, min(1.0, p_right + p_wrong))
    nuisance_alpha = intervals.NUISANCE_SHARE * alpha if delta > 0 else 0.0
    odds, excess = math.exp(-claimed), np.zeros_like(guesses)
    if delta > 0:
        with np.errstate(divide="ignore"):
            excess = np.asarray(delta / binomial_bounds.clopper_pearson_lower(guesses, runs, nuisance_alpha))
    # The largest share of right guesses that the claim allows, and the count from which its test rejects.
    allowed = np.minimum((1 + (excess * odds if odds else 0.0)) / (1 + odds), 1.0)
    last_kept = upper_quantile(alpha - nuisance_alpha, guesses, allowed)
    # Up to alpha the test is exact: reject iff P(Bin(guesses, allowed) >= right guesses) <= alpha.
    caught = survival(last_kept, guesses, p_right / (p_right + p_wrong))
    return float(np.mean(caught))


@lru_cache(maxsize=256)  # the trials of a search share a budget
def detectable_epsilon(
    claimed: float, runs: int, *, delta: float = 0.0, alpha: float = 0.05, power: float = 0.9
) -> float:
    """Return the smallest true epsilon (nats) whose violation of `claimed` is caught with the given power.

    Infinite if no violation of the reference, however gross, is caught that often. Parameters and errors are
    those of `falsification_power`; power must be in (0, 1).

    Examples
    --------
    >>> round(detectable_epsilon(1.0, 10_000, alpha=0.01), 3)
    1.101
    """
    _check(claimed, runs, delta, alpha, power)

    def enough(true: float) -> bool:
        return falsification_power(claimed, true, runs, delta=delta, alpha=alpha) >= power

    return least(enough, claimed, steps=_HALVINGS)  # where e^-true underflows, true might as well be infinite


@lru_cache(maxsize=256)
def required_runs(claimed: float, true: float, *, delta: float = 0.0, alpha: float = 0.05, power: float = 0.9) -> int:
    """Return the certification runs from which a true epsilon is caught with the given power.

    The power of a discrete test is a sawtooth in the runs, so one run less falls short but some smaller
    number may not. Parameters and errors are those of `falsification_power`; true must exceed claimed.

    Raises
    ------
    ValueError
        Also if 2^50 runs do not suffice.
    """
    _check(claimed, 1, delta, alpha, power)
    if not true > claimed:
        raise ValueError(f"true must exceed claimed={claimed}, got {true}")

    def enough(runs: int) -> bool:
        return falsification_power(claimed, true, runs, delta=delta, alpha=alpha) >= power

    high = 1
    while not enough(high):
        high *= 2
        if high == _MANY_RUNS and not enough(_MAX_RUNS):  # which takes longer than all else
            raise ValueError(f"more than 2^50 runs are needed to tell true={true} from claimed={claimed}")
    return fewest(enough, high // 2, high)


def _check(claimed: float, runs: int, delta: float, alpha: float, power: float = 0.5) -> None:
    if not (claimed >= 0 and math.isfinite(claimed)):
        raise must_be("claimed", "a non-negative, finite epsilon", claimed)
    if not 1 <= runs <= _MAX_RUNS:
        raise must_be("runs", "at least 1 and at most 2^50", runs)
    if not 0 <= delta < 1:
        raise must_be("delta", "in [0, 1)", delta)
    if not 0 < alpha < 1:
        raise must_be("alpha", "in (0, 1)", alpha)
    if not 0 < power < 1:
        raise must_be("power", "in (0, 1)", power)
