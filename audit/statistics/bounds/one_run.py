"""Lower bounds on epsilon from guesses of coins that shared one run.

References
----------
.. [1] T. Steinke, M. Nasr, M. Jagielski. Privacy auditing with one (1) training run. NeurIPS 2023,
   arXiv:2305.08846, Theorem 5.2 and Algorithm of Appendix D.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts load when first used

from . import intervals
from .bisection import bisect

#: Parts of the bracket of epsilon in which the first crossing is looked for, and halvings of that part.
_SCAN, _BISECTIONS = 32, 45


def one_run_p_value(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the p-value of "(epsilon, delta)-DP holds" after one run with many canaries [1]_.

    ``beta + 2 m delta max_i P(v > W >= v - i) / i`` with W ~ Bin(r, sigmoid(epsilon)), beta = P(W >= v), v
    right guesses of r made, m canaries.

    **Validity**: each of the m canaries is set by its own fair coin, independent of all else; the privacy
    claimed is for the change of one canary; the guesses are made from what is released alone; and the number
    of guesses r is fixed in advance (more right guesses than r would ever allow cannot be bought by stopping
    late).

    Parameters
    ----------
    correct, guesses, canaries : int
        v, r and m.
    epsilon : float
        The claim, in nats.
    delta : float
        The claim's delta.

    Raises
    ------
    ValueError
        If the counts are no integers with 0 <= correct <= guesses <= canaries and guesses >= 1, epsilon is
        negative, or delta is outside [0, 1).
    """
    _check(correct, guesses, canaries, delta)
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon must be non-negative and finite, but got {epsilon}")
    chance = float(scipy.special.expit(epsilon))
    beta = float(scipy.stats.binom.sf(correct - 1, guesses, chance))
    if delta == 0 or correct == 0:
        return beta
    lags = np.arange(1, correct + 1)
    below = np.cumsum(scipy.stats.binom.pmf(correct - lags, guesses, chance))
    return min(1.0, beta + 2 * canaries * delta * float(np.max(below / lags)))


def epsilon_one_run(correct: int, guesses: int, canaries: int, *, delta: float = 0.0, alpha: float = 0.05) -> float:
    """Return a lower bound on epsilon (nats) from one run: the smallest epsilon not rejected at alpha.

    It exceeds the true epsilon with probability at most alpha, under the conditions of `one_run_p_value`.

    Raises
    ------
    ValueError
        As `one_run_p_value`; also if alpha is outside (0, 1).
    """
    _check(correct, guesses, canaries, delta)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), but got {alpha}")

    def rejected(epsilon: float) -> bool:
        return one_run_p_value(correct, guesses, canaries, epsilon, delta) <= alpha

    # At `high` the first term of the p-value alone is above alpha.
    level = max(0.5, (1 + alpha) / 2)
    high = float(intervals.epsilon_guess(correct, guesses, guesses, alpha=level))
    if high == 0 or not rejected(0.0):
        return 0.0
    grid = np.linspace(0.0, high, _SCAN)
    # The p-value need not grow with epsilon when delta > 0: the bound is the first crossing, not any.
    step = next(i for i in range(1, _SCAN) if i == _SCAN - 1 or not rejected(float(grid[i])))
    return bisect(rejected, float(grid[step - 1]), float(grid[step]), steps=_BISECTIONS)[0]


def _check(correct: int, guesses: int, canaries: int, delta: float) -> None:
    counts = {"correct": correct, "guesses": guesses, "canaries": canaries}
    for name, value in counts.items():
        if value != int(value) or value < 0:
            raise ValueError(f"{name} must be a non-negative integer count, but got {value}")
    if not (correct <= guesses <= canaries and guesses >= 1):
        got = ", ".join(f"{name}={value}" for name, value in counts.items())
        raise ValueError(f"expected correct <= guesses <= canaries and guesses >= 1, but got {got}")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), but got {delta}")
