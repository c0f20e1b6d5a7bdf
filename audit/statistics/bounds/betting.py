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
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

_Floats = NDArray[np.float64]

#: The share of the observations, the first ones, from which the grid of hypotheses and the first spread are taken, and
#: how many they are at least, where that is no more than a tenth.
_PILOT, _FEWEST = 0.02, 20
#: How often stakes are renewed at most, and after how many observations at least.
_RENEWALS, _EACH = 400, 3
#: No observation takes more than this share of the wealth: of one sample, and of all sample sizes together.
_AT_RISK, _ALWAYS_AT_RISK = 0.999, 0.5
#: The width of a cell of hypotheses near the mean, in standard errors, and how far from it cells are so narrow.
_CELL, _NEAR = 0.03, 26.0
#: The gambler aims at so much more than is needed, in logarithms: what nearly has its goal would bet next to nothing.
_BEYOND = 0.1
#: Wealth is a sum of logarithms: so much is left for rounding.
_ROUNDING = 1e-9
#: Beyond, each cell is so much wider than the one before.
_WIDENING = 1.2
#: Cells that are refuted together where they can be, and the share of the error that is spent on that.
_TOGETHER, _SKIPPED = 16, 0.01
#: Below what the pilot lets expect: so many standard deviations, and so far that it limits stakes to so much over all.
_USUAL, _LEVERAGE = 5.0, 10.0
#: The share of the error that is kept for samples with an observation down there, and how fine their share is told.
_SURPRISED, _STEP = 0.1, 0.1
#: Log-worths of a digital option, and the slope of each in standard deviations of the sum: the inverse Mills ratio.
_PRICES = -np.geomspace(1e3, 1e-6, 2000)
_SLOPES = np.exp(-0.5 * np.square(special.ndtri_exp(_PRICES)) - _PRICES) / math.sqrt(2 * math.pi)


def mean_interval(values: ArrayLike, low: float, high: float, *, alpha: float) -> tuple[float, float]:
    """Return limits that contain the mean of independent, alike, bounded observations with probability 1 - alpha.

    Stakes replicate a digital option: at every moment the gambler bets to reach 1 / alpha in the end with the largest
    probability, by a normal approximation from the wealth, the spread and the number of observations left [2]_. Stakes
    are the same for all hypotheses of a cell, and cells are fixed by the first observations, which are not bet on:
    within a cell the wealth is monotone in the hypothesis, so that a cell is refuted if its worst end is. The limits
    are the ends of the outermost cells that are not.

    No stake against a mean m can exceed 1 / m, since an observation may be 0. Where 0 is far below all that the first
    observations let expect, this costs length: at n = 5000 and a range of 50 standard deviations no gambler has even
    chances below 1.15 normal intervals (`benchmarks/intervals.py`). There a floor is fixed between, and the share p of
    the law below it is a parameter: with n observations above the floor, of probability (1 - p)^n, the error that is
    left for the mean above the floor is larger by 1 / (1 - p)^n, and the mean is at least (1 - p) times that. A tenth
    of the error is kept for samples that do have observations below the floor: it is spent on them without a floor.

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

    x = _unit(values, low, high, alpha)[:, None]

    def lower(x: _Floats) -> float:
        def refuted(mean: float) -> bool:
            return bool(_ever_refuted(x, mean, alpha / 2)[0])

        return bisect(refuted, 0.0, 1.0)[0] if refuted(1e-12) else 0.0

    return low + (high - low) * lower(x), high - (high - low) * lower(1 - x)


def _ever_refuted(x: _Floats, mean: float, alpha: float) -> NDArray[np.bool_]:
    """Tell for which samples x, (n, samples), the hypothesis "the mean is at most this" is refuted at any size."""
    n = np.arange(1, len(x) + 1)[:, None]
    means = (0.5 + np.cumsum(x, axis=0)) / (n + 1)
    spread = (0.25 + np.cumsum((x - means) ** 2, axis=0)) / (n + 1)
    before = np.concatenate([np.full((1, x.shape[1]), 0.25), spread[:-1]])
    stakes = np.sqrt(-2 * math.log(alpha) / (before * n * np.log1p(n)))
    bets = np.minimum(stakes, _ALWAYS_AT_RISK / mean) if mean > 0 else stakes
    ever: NDArray[np.bool_] = np.cumsum(np.log1p(bets * (x - mean)), axis=0).max(axis=0) >= _ROUNDING - math.log(alpha)
    return ever


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


#: Observations in an order: values, (kinds,) or (kinds, hypotheses), and how often each.
_Block = tuple[_Floats, _Floats]


def _in_order(x: _Floats) -> list[_Block]:
    """Return the pilot and blocks of the other observations, (n,) or (n, hypotheses)."""
    first = _first(len(x))
    others = np.array_split(x[first:], max(1, min(_RENEWALS, (len(x) - first) // _EACH)))
    return [(block, np.ones(len(block))) for block in (x[:first], *others)]


def _lower_limit(x: _Floats, alpha: float) -> float:
    """Return a lower limit of the mean of x in [0, 1], wrong with probability at most alpha."""
    return _lower_of(_in_order(x), alpha)


def _lower_of(blocks: Sequence[_Block], alpha: float) -> float:
    """Return a lower limit of the mean of observations in [0, 1], the first block of which are the pilot."""
    size = int(sum(times.sum() for _, times in blocks[1:]))
    floor = _floor(blocks[0], size)
    plain = (np.zeros(1), np.ones(1))
    if floor == 0 or blocks[0][0].min() < floor:
        return _limit(blocks, size, alpha, *plain)
    if min(values.min() for values, _ in blocks) < floor:
        return _limit(blocks, size, _SURPRISED * alpha, *plain)
    # If a share p lies below the floor, none of n does with probability e^-rest, where e^(-rest / n) = 1 - p. The
    # error of what follows is that times as much, and the mean is at least (1 - p) times that of the others.
    alpha *= 1 - _SURPRISED
    rests = np.arange(0.0, -math.log(alpha), _STEP)
    above = [((values - floor) / (1 - floor), times) for values, times in blocks]
    return _limit(above, size, alpha, rests, np.exp(-(rests + _STEP) / size), floor)


def _limit(
    blocks: Sequence[_Block], size: int, alpha: float, rests: _Floats, shares: _Floats, floor: float = 0.0
) -> float:
    """Return the least of the lower limits of the mean with errors alpha e^rest, in units of the range, times shares.

    The range is that above the floor.
    """
    cells = _cells(blocks[0], size)
    edges = floor + (1 - floor) * cells
    # Cells that even a group of them refutes at a small part of the error need no bets of their own.
    skipped = _refuted(blocks, cells[_TOGETHER::_TOGETHER], _SKIPPED * alpha)
    first = _TOGETHER * (skipped.size if skipped.all() else int(np.argmin(skipped)))
    errors = np.minimum((1 - _SKIPPED) * alpha * np.exp(rests), 1.0)
    lowest, open_ = 1.0, np.ones(errors.size, dtype=bool)
    for start in range(first, cells.size - 1, _TOGETHER):
        open_ &= shares * edges[start] < lowest
        if not open_.any():
            break
        means = cells[start + 1 : start + 1 + _TOGETHER]  # the lower the hypothesis, the larger the wealth
        refuted = _refuted(blocks, np.tile(means, open_.sum()), np.repeat(errors[open_], means.size))
        refuted = refuted.reshape(-1, means.size)
        stands = ~refuted.all(axis=1)
        ends = shares[open_] * edges[start + np.argmin(refuted, axis=1)]
        lowest = min(lowest, float(ends.min(initial=1.0, where=stands)))
        open_[np.flatnonzero(open_)[stands]] = False
    return lowest


def _first(size: int) -> int:
    """Return how many observations are the pilot."""
    return math.ceil(max(_PILOT * size, min(_FEWEST, size / 10)))


def _floor(pilot: _Block, left: int) -> float:
    """Return below what observations would be a surprise; 0 where 0 is not far below the mean."""
    mean, spread = _mean_and_spread(pilot)
    return max(0.0, mean - spread * max(math.sqrt(left) / _LEVERAGE, _USUAL))


def _refuted(blocks: Sequence[_Block], means: _Floats, alpha: float | _Floats) -> NDArray[np.bool_]:
    """Tell which hypotheses "the mean is at most this" a gambler refutes, each with error alpha.

    Parameters
    ----------
    blocks : sequence of (values, times)
        The pilot, of which nothing is asked, and the observations to bet on: independent, at least 0. Values for all
        hypotheses together, (kinds,), or for each its own, (kinds, hypotheses).
    means, alpha : array (hypotheses,)
        Fixed before anything but the pilot is seen.
    """
    wealth, goal = np.zeros(means.shape), _ROUNDING - np.log(alpha)  # logarithms
    total: Any = np.float64(0)
    square: Any = np.float64(0)
    seen = np.float64(0)
    at_risk, left = _AT_RISK / means, sum(times.sum() for _, times in blocks)
    for values, times in blocks:
        if seen:
            spread = np.sqrt(np.maximum(square / seen - (total / seen) ** 2, 0.0) + 1 / seen**2)
            # The option is worth exp(price); the stake is its slope in the sum so far, by its worth.
            stake = np.interp(wealth - goal - _BEYOND, _PRICES, _SLOPES) / (spread * math.sqrt(left))
            stake = np.where(wealth >= goal, 0.0, np.minimum(stake, at_risk))
            for row, often in zip(values, times, strict=True):
                wealth += often * np.log1p(stake * (row - means))
        total, square = total + times @ values, square + times @ np.square(values)
        seen, left = seen + times.sum(), left - times.sum()
    return wealth >= goal


def _mean_and_spread(pilot: _Block) -> tuple[float, float]:
    """Return mean and standard deviation, the latter a little more than 0 where nothing differed."""
    values, times = pilot
    seen = float(times.sum())
    mean = float(times @ values) / seen
    return mean, math.sqrt(max(float(times @ np.square(values)) / seen - mean**2, 0.0) + 1 / seen**2)


def _cells(pilot: _Block, left: int) -> _Floats:
    """Return the edges of cells that cover [0, 1]: narrow about the pilot's mean, wider and wider beyond."""
    mean, spread = _mean_and_spread(pilot)
    error = spread / math.sqrt(left)
    reach = _NEAR * error
    near = np.arange(-reach, reach, _CELL * error)
    widths = _CELL * error * _WIDENING ** np.arange(1, math.ceil(math.log(1 / error + 2) / math.log(_WIDENING)) + 30)
    far = reach + np.cumsum(widths)
    edges = mean + np.concatenate([-far[::-1], near, [reach], far])
    inside = edges[(edges > 0) & (edges < 1)]
    return np.concatenate([[0.0], inside, [1.0]])
