"""Intervals for the mean of a bounded variable, by betting: at one sample size, and at all of them together.

A gambler bets on independent observations x in [0, 1] against the hypothesis that their mean is m: a stake of s turns
a wealth K into ``K (1 + s (x - m))``. If the hypothesis is true and each stake is fixed before its observation, the
wealth is a martingale from 1, so it ever reaches 1 / alpha with probability at most alpha (Ville). An interval is what
no gambler has refuted [1]_. How good the stakes are decides how short it is, never whether it is valid.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS-B 86, 2024.
.. [2] V. Voracek, F. Orabona. STaR-Bets: sequential target-recalculating bets for tighter confidence intervals. 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

_Floats = NDArray[np.float64]

#: The share of the observations, the first ones, from which the grid of hypotheses and the first spread are taken, and
#: how many they are at least, where that is no more than a tenth.
_PILOT, _FEWEST = 0.02, 20
#: How often stakes are renewed.
_RENEWALS = 500
#: No observation takes more than this share of the wealth: of one sample, and of all sample sizes together.
_AT_RISK, _ALWAYS_AT_RISK = 0.95, 0.5
#: The width of a cell of hypotheses near the mean, in standard errors, and how far from it cells are so narrow.
_CELL, _NEAR = 0.04, 26.0
#: The gambler aims at so much more than is needed, in logarithms: what nearly has its goal would bet next to nothing.
_BEYOND = 0.1
#: Wealth is a sum of logarithms: so much is left for rounding.
_ROUNDING = 1e-9
#: The seed of the order into which counts are put.
_ORDER = 20_240_601
#: Beyond, each cell is so much wider than the one before.
_WIDENING = 1.2


def mean_interval(values: ArrayLike, low: float, high: float, *, alpha: float) -> tuple[float, float]:
    """Return limits that contain the mean of independent bounded observations with probability 1 - alpha.

    Stakes replicate a digital option: at every moment the gambler bets to reach 1 / alpha in the end with the largest
    probability, by a normal approximation from the wealth, the spread and the number of observations left [2]_. Stakes
    are the same for all hypotheses of a cell, and cells are fixed by the first observations, which are not bet on:
    within a cell the wealth is monotone in the hypothesis, so that a cell is refuted if its worst end is. The limits
    are the ends of the outermost cells that are not.

    Parameters
    ----------
    values : array (n,)
        In [low, high], n >= 2, in the order drawn.
    low, high : float
        What the variable cannot leave, low < high.
    alpha : float
        The error of both limits together, in (0, 1).

    Raises
    ------
    ValueError
        For an alpha or values outside their range, or too few values.

    Examples
    --------
    >>> coins = np.random.default_rng(0).random(1000) < 0.5
    >>> tuple(round(limit, 2) for limit in mean_interval(coins, 0.0, 1.0, alpha=0.01))
    (0.43, 0.52)
    """
    x = _unit(values, low, high, alpha)
    # The upper limit of x is the lower one of 1 - x, each with half of the error.
    lower, upper = _lower_limit(x, alpha / 2), 1 - _lower_limit(1 - x, alpha / 2)
    return low + (high - low) * lower, low + (high - low) * upper


def anytime_mean_interval(values: ArrayLike, low: float, high: float, *, alpha: float) -> tuple[float, float]:
    """Return limits that contain the mean at all sample sizes together with probability 1 - alpha.

    The hedged capital of [1]_ with predictable stakes that shrink as ``1 / sqrt(t log t)``: one may look after every
    observation, and stop when one likes. The wealth against each hypothesis is monotone in it, so limits are found by
    bisection. Parameters and errors are those of `mean_interval`; the limits are those after all of the values, and
    hold together with those after fewer.
    """
    from .bisection import bisect

    x = _unit(values, low, high, alpha)

    def lower(x: _Floats) -> float:
        n = np.arange(1, x.size + 1)
        means = (0.5 + np.cumsum(x)) / (n + 1)
        spread = (0.25 + np.cumsum((x - means) ** 2)) / (n + 1)
        before = np.concatenate([[0.25], spread[:-1]])
        stakes = np.sqrt(2 * math.log(2 / alpha) / (before * n * np.log1p(n)))

        def refuted(mean: float) -> bool:
            bets = np.minimum(stakes, _ALWAYS_AT_RISK / mean) if mean > 0 else stakes
            return bool(np.cumsum(np.log1p(bets * (x - mean))).max() >= math.log(2 / alpha) + _ROUNDING)

        return bisect(refuted, 0.0, 1.0)[0] if refuted(1e-12) else 0.0

    return low + (high - low) * lower(x), high - (high - low) * lower(1 - x)


def _unit(values: ArrayLike, low: float, high: float, alpha: float) -> _Floats:
    x = np.asarray(values, dtype=np.float64)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha!r}")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"low must be below high, both finite, got {low!r} and {high!r}")
    if x.ndim != 1 or x.size < 2:
        raise ValueError(f"values must be a vector of at least 2 numbers, got shape {x.shape}")
    if not np.all((x >= low) & (x <= high)):
        raise ValueError(f"values must lie in [{low:g}, {high:g}], got {x.min():g} to {x.max():g}")
    return (x - low) / (high - low)


def mean_lower_of_counts(values: ArrayLike, counts: ArrayLike, low: float, high: float, *, alpha: float) -> float:
    """Return a lower limit of the mean of a bounded variable of few values, of which only the counts are known.

    Independent observations are exchangeable: put into a random order, by draws that know nothing but the counts, they
    have the law that they had. So one may bet on the counts in an order that is drawn for them, always the same.

    Parameters
    ----------
    values : array (kinds,)
        In [low, high].
    counts : array of int (kinds,)
        How often each was observed, at least 2 together.
    low, high : float
        What the variable cannot leave, low < high.
    alpha : float
        The probability, at most, that the limit exceeds the mean, in (0, 1).

    Raises
    ------
    ValueError
        As `mean_interval`.

    Examples
    --------
    >>> round(mean_lower_of_counts([0.0, 1.0], [500, 500], 0.0, 1.0, alpha=0.005), 2)
    0.46
    """
    many = np.asarray(counts, dtype=np.int64)
    if int(many.sum()) < 2:
        raise ValueError(f"at least 2 observations are needed, got {int(many.sum())}")
    return low + (high - low) * _lower_of(_Shuffled(_unit(values, low, high, alpha), many), alpha)


@dataclass(frozen=True)
class _Sequence:
    """Observations in the order drawn."""

    x: _Floats

    @property
    def size(self) -> int:
        return self.x.size

    def blocks(self, first: int) -> Iterator[tuple[_Floats, _Floats]]:
        """Yield the first observations, and then blocks of the others: values, and how often each."""
        for block in (self.x[:first], *np.array_split(self.x[first:], min(_RENEWALS, self.size - first))):
            yield block, np.ones(block.size)


@dataclass(frozen=True)
class _Shuffled:
    """Counts of values, in a random order."""

    values: _Floats
    counts: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    def blocks(self, first: int) -> Iterator[tuple[_Floats, _Floats]]:
        """Yield the first observations, and then blocks of the others: values, and how often each."""
        generator, left = np.random.default_rng(_ORDER), self.counts
        others = self.size - first
        for many in (first, *np.diff(np.linspace(0, others, min(_RENEWALS, others) + 1).astype(np.int64)).tolist()):
            drawn = generator.multivariate_hypergeometric(left, many, method="marginals")
            left = left - drawn
            yield self.values[drawn > 0], drawn[drawn > 0].astype(np.float64)


def _lower_limit(x: _Floats, alpha: float) -> float:
    """Return a lower limit of the mean of x in [0, 1], wrong with probability at most alpha."""
    return _lower_of(_Sequence(x), alpha)


def _lower_of(observed: _Sequence | _Shuffled, alpha: float) -> float:
    first = math.ceil(max(_PILOT * observed.size, min(_FEWEST, observed.size / 10)))
    blocks = observed.blocks(first)
    total = square = seen = 0.0

    def add(block: _Floats, times: _Floats) -> None:
        nonlocal total, square, seen
        total, square = total + float(times @ block), square + float(times @ np.square(block))
        seen += float(times.sum())

    add(*next(blocks))
    edges = _cells(total, square, int(seen), observed.size - first)
    worst = edges[1:]  # the lower the hypothesis, the larger the wealth
    wealth, goal = np.zeros(worst.size), _ROUNDING - math.log(alpha)  # logarithms
    for block, times in blocks:
        left, spread = observed.size - seen, _spread(total, square, int(seen))
        refuted = wealth >= goal
        price = np.where(refuted, -1.0, wealth - goal - _BEYOND)
        quantile = special.ndtri_exp(price)
        # The option is worth Phi(quantile); the stake is its slope in the sum so far, by its worth.
        slope = np.exp(-0.5 * np.square(quantile) - price) / (math.sqrt(2 * math.pi) * spread * math.sqrt(left))
        stake = np.where(refuted, 0.0, np.minimum(slope, _AT_RISK / worst))
        wealth = wealth + times @ np.log1p(stake * (block[:, None] - worst))
        add(block, times)
    standing = np.flatnonzero(wealth < goal)
    return float(edges[standing[0]]) if standing.size else 1.0


def _spread(total: float, square: float, seen: int) -> float:
    """Return the standard deviation so far, a little more than 0 where nothing differed yet."""
    return math.sqrt(max(square / seen - (total / seen) ** 2, 0.0) + 1 / seen**2)


def _cells(total: float, square: float, seen: int, left: int) -> _Floats:
    """Return the edges of cells that cover [0, 1]: narrow about the first mean, wider and wider beyond."""
    error = _spread(total, square, seen) / math.sqrt(left)
    reach = _NEAR * error
    near = np.arange(-reach, reach, _CELL * error)
    widths = _CELL * error * _WIDENING ** np.arange(1, math.ceil(math.log(1 / error + 2) / math.log(_WIDENING)) + 30)
    far = reach + np.cumsum(widths)
    edges = total / seen + np.concatenate([-far[::-1], near, [reach], far])
    inside = edges[(edges > 0) & (edges < 1)]
    return np.concatenate([[0.0], inside, [1.0]])
