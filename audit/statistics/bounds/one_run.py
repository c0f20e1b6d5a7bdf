"""Lower bounds on epsilon from guesses of coins that shared one run.

References
----------
.. [1] T. Steinke, M. Nasr, M. Jagielski. Privacy auditing with one (1) training run. NeurIPS 2023,
   arXiv:2305.08846, Theorem 5.2 and Algorithm of Appendix D.
.. [2] S. Mahloujifar, L. Melis, K. Chaudhuri. Auditing f-differential privacy in one run. ICML 2025, arXiv:2410.22235.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # its parts load when first used

from ....errors import must_be
from ....mechanisms.measures.measure import Floats, Measure, TradeOff
from ....mechanisms.numerics import bisect
from . import intervals

#: Parts of the bracket of epsilon in which the first crossing is looked for, and halvings of that part.
_SCAN, _BISECTIONS = 32, 45
#: Standard deviations below the mean, and lags at least, to which the theorem's maximum is looked for one by one.
_LAG_DEVIATIONS, _MIN_LAGS = 10.0, 64
#: Points at which a trade-off is tabulated: fewer where `allowed` is itself a search.
_POINTS, _SEARCHED = 1024, 64
#: Tails that are followed downwards: so many standard errors of the guesses, within which a refuted claim contradicts
#: itself, and a few more. A claim whose tails are not followed to the end is not refuted.
_SPAN, _SLACK = 8.0, 64
#: What rounding may add to the sum of probabilities, and to one of them.
_ROUNDING, _LAST_DIGIT = 1e-9, 1e-15
#: The least probability that is searched for, the largest log odds, those of 1 in floats, and halvings of log odds.
_TINY, _LARGEST, _STEPS = 1e-12, 40.0, 22
#: Doublings of a level until it is not refuted, and halvings of the last of them.
_DOUBLINGS, _HALVINGS = 60, 18


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
        raise must_be("epsilon", "non-negative and finite", epsilon)
    chance = float(scipy.special.expit(epsilon))
    beta = float(scipy.stats.binom.sf(correct - 1, guesses, chance))
    if delta == 0 or correct == 0:
        return beta
    spread = math.sqrt(guesses * chance * (1 - chance))
    n_lags = min(correct, max(_MIN_LAGS, math.ceil(correct - guesses * chance + _LAG_DEVIATIONS * spread)))
    lags = np.arange(1, n_lags + 1)
    masses = np.cumsum(scipy.stats.binom.pmf(correct - lags, guesses, chance))
    # Of all further lags the probability is at most that of all smaller counts, and the lag at least the next one.
    rest = float(scipy.stats.binom.cdf(correct - 1, guesses, chance)) / (n_lags + 1) if n_lags < correct else 0.0
    return min(1.0, beta + 2 * canaries * delta * max(rest, float(np.max(masses / lags))))


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
        raise must_be("alpha", "in (0, 1)", alpha)

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


def refuted_in_one_run(measure: Measure, correct: int, guesses: int, canaries: int, *, alpha: float) -> bool:
    """Tell whether right guesses in one run with many canaries refute a claim in any measure.

    The recursion over tails is ``audit_rh_with_cap`` of [2]_; docs/one-run.md states and proves it. With V right
    guesses of r, t_v = P(V >= v), and g(x) the largest probability that the claim allows an event whose probability is
    x once one coin is turned, every mechanism that keeps the claim has

        t_{v-1} >= (t_v + ... + t_r + m g^-1((v t_v + t_{v+1} + ... + t_r) / m)) / (r - v + 1).

    From alpha at the number that was seen, and 0 above it, this leads to a tail above 1 where the claim is refuted.

    **Validity**: as `one_run_p_value`. A true claim is refuted with probability at most alpha, and what is below a
    refuted level is refuted.

    Parameters
    ----------
    measure : Measure
        The claim, about the change of one canary.
    correct, guesses, canaries : int
        v, r and m.
    alpha : float
        In (0, 1).

    Raises
    ------
    ValueError
        As `one_run_p_value`; also if alpha is outside (0, 1).

    Examples
    --------
    >>> from overclaim.mechanisms.measures.gaussian_dp import GDP
    >>> [refuted_in_one_run(GDP(mu), 170, 200, 200, alpha=0.05) for mu in (0.5, 1.0)]
    [True, False]
    """
    _check(correct, guesses, canaries, 0.0)
    if not 0 < alpha < 1:
        raise must_be("alpha", "in (0, 1)", alpha)
    if correct == 0:
        return False
    points = _POINTS if isinstance(measure, TradeOff) else _SEARCHED
    shares = np.geomspace(correct * alpha / canaries, guesses / canaries, points)
    inverse = least_allowed(measure, shares)
    # Beyond a point g^-1, which is convex, is at least as steep as before it; of what a search finds, at least level.
    slopes = np.append(0.0, np.diff(inverse) / np.diff(shares)) * isinstance(measure, TradeOff)
    return _contradiction(correct, guesses, canaries, alpha, (shares.tolist(), inverse.tolist(), slopes.tolist()))


def _contradiction(
    correct: int, guesses: int, canaries: int, alpha: float, inverse: tuple[list[float], list[float], list[float]]
) -> bool:
    """Tell whether a tail of at least alpha at so many right guesses asks for a probability above 1.

    The inverse trade-off is at least a line beyond each of its points: those, its values, and the slopes.
    """
    points, values, slopes = inverse
    tail, higher, segment, last = alpha, 0.0, 0, len(points) - 1  # t_v, and the sum of the tails above it
    for v in range(correct, max(0, correct - int(_SPAN * math.sqrt(guesses)) - _SLACK), -1):
        share = (v * tail + higher) / canaries
        while segment < last and points[segment + 1] <= share:
            segment += 1
        higher += tail
        mass = canaries * (values[segment] + slopes[segment] * max(0.0, share - points[segment]))
        tail = max(tail, (higher + mass) / (guesses - v + 1))
        if tail > 1 + _ROUNDING:
            return True
    return False


def least_allowed(measure: Measure, p: Floats) -> Floats:
    """Return the smallest probability in one input that a claim allows with p in the other, from below.

    An event and its complement are allowed together: it is ``1 - g(1 - p)``, and g(p) is ``1 - least_allowed(1 - p)``.
    """
    if isinstance(measure, TradeOff):
        return np.maximum(0.0, 1 - measure.allowed(1 - p) - _LAST_DIGIT)
    high = np.minimum(scipy.special.logit(p), _LARGEST)
    low = np.minimum(high, scipy.special.logit(_TINY))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        fine = measure.needed(p, scipy.special.expit(middle)) <= measure.level
        low, high = np.where(fine, low, middle), np.where(fine, middle, high)
    smallest: Floats = np.where(low > scipy.special.logit(_TINY), scipy.special.expit(low), 0.0)
    return smallest


def level_one_run(measure: Measure, correct: int, guesses: int, canaries: int, *, alpha: float = 0.05) -> float:
    """Return a lower bound on the level of a measure from one run, wrong with probability at most alpha.

    Conditions, parameters and errors are those of `refuted_in_one_run`; `measure` says which levels are asked for.

    Examples
    --------
    >>> from overclaim.mechanisms.measures.gaussian_dp import GDP
    >>> round(level_one_run(GDP(1.0), 170, 200, 200), 2)
    0.7
    """
    return largest_refuted(measure, lambda claim: refuted_in_one_run(claim, correct, guesses, canaries, alpha=alpha))


def largest_refuted(measure: Measure, *tests: Callable[[Measure], bool]) -> float:
    """Return the largest level of a measure that one of some tests refutes, from below; 0 if none is.

    Each test is settled by the data alone, and refutes what is below a level that it refutes.
    """
    best = 0.0
    for refuted in tests:
        low, high = best, max(2 * best, measure.level)
        if low and not refuted(measure.at(low)):
            continue
        for _ in range(_DOUBLINGS):
            if not refuted(measure.at(high)):
                break
            low, high = high, 2 * high
        best = bisect(lambda level, is_refuted=refuted: is_refuted(measure.at(level)), low, high, steps=_HALVINGS)[0]  # type: ignore[misc]
    return best


def _check(correct: int, guesses: int, canaries: int, delta: float) -> None:
    counts = {"correct": correct, "guesses": guesses, "canaries": canaries}
    for name, value in counts.items():
        if value != int(value) or value < 0:
            raise must_be(name, "a non-negative integer count", value)
    if not (correct <= guesses <= canaries and guesses >= 1):
        counts_text = ", ".join(f"{name}={value}" for name, value in counts.items())
        raise ValueError(f"expected correct <= guesses <= canaries and guesses >= 1, got {counts_text}")
    if not 0 <= delta < 1:
        raise must_be("delta", "in [0, 1)", delta)
