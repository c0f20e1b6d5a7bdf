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
from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ....errors import must_be

_Floats = NDArray[np.float64]

#: The share of the observations, the first ones, from which the grid of hypotheses and the first spread are taken, and
#: how many they are at least, where that is no more than a tenth.
_PILOT, _MIN_PILOT = 0.02, 20
#: How often stakes are renewed at most, and after how many observations at least.
_RENEWALS, _MIN_BLOCK = 400, 3
#: The largest share of the wealth that one observation can lose: at one sample size, and at all of them together.
_AT_RISK, _ALWAYS_AT_RISK = 0.999, 0.5
#: The width of a cell of hypotheses near the mean, in standard errors, and how far from it cells are so narrow.
_CELL, _NARROW_REACH = 0.03, 26.0
#: The stakes aim at the goal's logarithm plus this: just below the goal itself they would be nearly 0.
_GOAL_MARGIN = 0.1
#: So many factors are multiplied before a logarithm is taken: none is below 1 - _AT_RISK, so the product does not
#: underflow, and one that overflows is beyond any goal.
_FACTORS = 12
#: Hypotheses that are refuted are set aside when fewer than this share of the others stand.
_STANDING = 0.8
#: What the log wealth must have beyond its goal, for the rounding of the sum of logarithms.
_ROUNDING = 1e-9
#: Beyond _NARROW_REACH each cell is so many times as wide as the one before.
_WIDENING = 1.2
#: Cells that are refuted together where they can be, the share of the error that is spent on that, and the shares of
#: the law for which it is done at once.
_GROUP, _GROUP_ERROR, _GROUP_SHARES = 8, 0.01, 8
#: Cells that one question is about, at most.
_MAX_AT_ONCE = 32
#: A floor lies so many standard deviations below the pilot's mean, or further: the standard deviation times the square
#: root of the number of observations left, divided by _LEVERAGE.
_FLOOR_DEVIATIONS, _LEVERAGE = 5.0, 10.0
#: The share of the error for samples with an observation below their floor, and the steps (nats) of the error that
#: bounds how much of the law may lie below it.
_SURPRISED, _STEP = 0.1, 0.1
#: Log-worths of a digital option, from 0 down by one over _FINE, and the slope of each in standard deviations of the
#: sum: the inverse Mills ratio.
_FINE = 64
_PRICES = -(np.arange(40 * _FINE) + 0.5) / _FINE
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
    chances below 1.15 normal intervals (`benchmarks/validity/intervals.py`). There a floor is fixed between, and the
    share p of the law below it is a parameter: with n observations above the floor, of probability (1 - p)^n, the
    error that is left for the mean above the floor is larger by 1 / (1 - p)^n, and the mean is at least (1 - p) times
    that. A tenth of the error is kept for samples that do have observations below the floor: it is spent on them
    without a floor.

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
    return mean_intervals([(values, low, high)], alpha=alpha)[0]


def mean_intervals(
    samples: Sequence[tuple[ArrayLike, float, float]], *, alpha: float | Sequence[float]
) -> list[tuple[float, float]]:
    """Return `mean_interval` of several samples of one size, in less time than one after the other.

    Parameters
    ----------
    samples : sequence of (values, low, high)
    alpha : float, or sequence of float
        The error of each interval.

    Raises
    ------
    ValueError
        As `mean_interval`, or for samples of different sizes.
    """
    alphas = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (len(samples),))
    units = [_unit(*sample, alpha=float(error)) for sample, error in zip(samples, alphas, strict=True)]
    if len({x.size for x in units}) > 1:
        raise ValueError(f"samples must have one size, got {sorted({x.size for x in units})}")
    if not units:
        return []
    # The upper limit of x is the lower one of 1 - x, each with half of the error.
    x = np.stack([side for unit in units for side in (unit, 1 - unit)], axis=1)
    limits = _lower_limits(x, np.repeat(alphas / 2, 2))
    ends = [(limits[i], 1 - limits[i + 1]) for i in range(0, len(limits), 2)]
    return [
        (low + (high - low) * lower, low + (high - low) * upper)
        for (_, low, high), (lower, upper) in zip(samples, ends, strict=True)
    ]


def anytime_mean_interval(values: ArrayLike, low: float, high: float, *, alpha: float) -> tuple[float, float]:
    """Return limits that contain the mean at all sample sizes together with probability 1 - alpha.

    The hedged capital of [1]_ with predictable stakes that shrink as ``1 / sqrt(t log t)``: one may look after every
    observation, and stop when one likes. The wealth against each hypothesis is monotone in it, so limits are found by
    bisection. Parameters and errors are those of `mean_interval`; the limits are those after all of the values, and
    hold together with those after fewer.
    """
    from ....mechanisms.numerics import bisect

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
        raise must_be("alpha", "in (0, 1)", alpha)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"low must be below high, both finite, got {low!r} and {high!r}")
    if x.ndim != 1 or x.size < 2:
        raise ValueError(f"values must be a vector of at least 2 numbers, got shape {x.shape}")
    if not np.all((x >= low) & (x <= high)):
        raise ValueError(f"values must lie in [{low:g}, {high:g}], got {x.min():g} to {x.max():g}")
    return (x - low) / (high - low)


#: A search for a limit: it asks whether hypotheses are refuted, each with an error of its own, and returns the limit.
_Search = Generator[tuple[_Floats, _Floats], NDArray[np.bool_], float]


def _in_order(x: _Floats) -> list[_Floats]:
    """Return the pilot and blocks of the other observations of samples (n, samples)."""
    first = _first(len(x))
    return [x[:first], *np.array_split(x[first:], max(1, min(_RENEWALS, (len(x) - first) // _MIN_BLOCK)))]


def _lower_limits(x: _Floats, alphas: _Floats) -> list[float]:
    """Return a lower limit of the mean of each sample in [0, 1], x (n, samples), wrong with at most its error."""
    blocks = _in_order(x)
    size = len(x) - len(blocks[0])
    floors = _floors(blocks[0], size)
    surprised = (floors > 0) & (x.min(axis=0) < floors)
    floors[surprised] = 0.0
    errors = np.where(surprised, _SURPRISED * alphas, alphas)
    # If a share p lies below the floor, none of n does with probability e^-rest, where e^(-rest / n) = 1 - p. The
    # error of what follows is that times as much, and the mean is at least (1 - p) times that of the others.
    errors[floors > 0] *= 1 - _SURPRISED
    scaled_blocks = [(rows - floors) / (1 - floors) for rows in blocks]
    searches = []
    for mean, spread, floor, alpha in zip(
        *_mean_and_spread(scaled_blocks[0]), floors.tolist(), errors.tolist(), strict=True
    ):
        rests = np.arange(0.0, -math.log(alpha), _STEP) if floor else np.zeros(1)
        shares = np.exp(-(rests + _STEP) / size) if floor else np.ones(1)
        searches.append(_limit(_cells(mean, spread, size), mean, alpha, rests, shares, floor))
    return _run_searches(scaled_blocks, searches)


def _run_searches(blocks: Sequence[_Floats], searches: Sequence[_Search]) -> list[float]:
    """Return what searches come to, one for each sample: what all of them ask is answered at once."""
    limits = [0.0] * len(searches)
    questions = {i: next(search) for i, search in enumerate(searches)}
    while questions:
        columns = np.repeat(list(questions), [means.size for means, _ in questions.values()])
        means, errors = (np.concatenate(parts) for parts in zip(*questions.values(), strict=True))
        refuted = _refuted(blocks, columns, means, errors)
        for i in list(questions):
            try:
                questions[i] = searches[i].send(refuted[columns == i])
            except StopIteration as ended:
                limits[i] = ended.value
                del questions[i]
    return limits


def _limit(
    cells: _Floats, pilot_mean: float, alpha: float, rests: _Floats, shares: _Floats, floor: float = 0.0
) -> _Search:
    """Return the least of the lower limits of the mean with errors alpha e^rest, in units of the range, times shares.

    The range is that above the floor. A limit is the lower edge of the first cell that is not refuted, and cells are
    looked at from below, in every rest as far as it may have the least limit; groups of them up to `pilot_mean`.
    """
    edges = floor + (1 - floor) * cells
    # Groups of cells that a small part of the least error of several rests refutes need no bets of their own.
    ends, ranges = cells[_GROUP : np.searchsorted(cells, pilot_mean) : _GROUP], rests[::_GROUP_SHARES]
    group_errors = _GROUP_ERROR * alpha * np.exp(ranges)
    skipped = (yield np.tile(ends, ranges.size), np.repeat(group_errors, ends.size)).reshape(ranges.size, -1)
    skip = _GROUP * np.cumprod(skipped, axis=1).sum(axis=1)
    position = np.minimum(np.repeat(skip, _GROUP_SHARES)[: rests.size], cells.size - 1)
    errors = np.minimum((1 - _GROUP_ERROR) * alpha * np.exp(rests), 1.0)
    lowest = 1.0
    # Some rests first, which tell how far the others must be followed.
    for chunk in (np.arange(rests.size)[::-_GROUP_SHARES], np.arange(rests.size)):
        n_cells = _GROUP  # a question costs much and a cell little: the further the search goes, the more at once
        while (
            chunk := chunk[(position[chunk] < cells.size - 1) & (shares[chunk] * edges[position[chunk]] < lowest)]
        ).size:
            these = np.minimum(position[chunk, None] + np.arange(n_cells), cells.size - 2)
            # The lower the hypothesis, the larger the wealth: if the upper edge of a cell is refuted, all of it is.
            refuted = (yield cells[these + 1].ravel(), np.repeat(errors[chunk], n_cells)).reshape(these.shape)
            position[chunk] = np.minimum(position[chunk] + np.cumprod(refuted, axis=1).sum(axis=1), cells.size - 1)
            stands = ~refuted.all(axis=1)
            lowest = min(lowest, float((shares[chunk] * edges[position[chunk]]).min(initial=1.0, where=stands)))
            chunk, n_cells = chunk[~stands], min(2 * n_cells, _MAX_AT_ONCE)
    return lowest


def _first(size: int) -> int:
    """Return how many observations are the pilot."""
    return math.ceil(max(_PILOT * size, min(_MIN_PILOT, size / 10)))


def _floors(pilot: _Floats, left: int) -> _Floats:
    """Return for each sample a floor: a value so far below the pilot's mean that observations below it are improbable.

    It is 0 where 0 is not so far below the mean, and where the pilot has observations below it.
    """
    mean, spread = _mean_and_spread(pilot)
    floors = np.maximum(0.0, mean - spread * max(math.sqrt(left) / _LEVERAGE, _FLOOR_DEVIATIONS))
    floors[pilot.min(axis=0) < floors] = 0.0
    return floors


def _refuted(
    blocks: Sequence[_Floats], columns: NDArray[np.intp], means: _Floats, alpha: _Floats
) -> NDArray[np.bool_]:
    """Tell which hypotheses "the mean of this sample is at most that" a gambler refutes, each with error alpha.

    Parameters
    ----------
    blocks : sequence of arrays (observations, samples)
        The pilot, of which nothing is asked, and the observations to bet on: independent, at least 0.
    columns : array of int (hypotheses,)
        The sample that each is about.
    means, alpha : array (hypotheses,)
        Fixed before anything but the pilot is seen.
    """
    goal = _ROUNDING - np.log(alpha)  # a logarithm, as the wealth
    refuted = np.zeros(means.shape, dtype=np.bool_)
    open_, wealth, at_risk = np.arange(means.size), np.zeros(means.shape), _AT_RISK / means
    total, square = blocks[0].sum(axis=0), np.square(blocks[0]).sum(axis=0)
    seen, left = len(blocks[0]), sum(map(len, blocks[1:]))
    for rows in blocks[1:]:
        # What has reached its goal stakes nothing more: most of what is far below the mean, after a few blocks.
        short = goal - wealth
        if np.count_nonzero(stands := short > 0) < _STANDING * open_.size:
            refuted[open_[~stands]] = True
            open_, columns, means, goal = open_[stands], columns[stands], means[stands], goal[stands]
            wealth, at_risk, short = wealth[stands], at_risk[stands], short[stands]
        if not open_.size:
            break
        spread = np.sqrt(np.maximum(square / seen - (total / seen) ** 2, 0.0) + 1 / seen**2) * math.sqrt(left)
        # The option is worth exp(price); the stake is its slope in the sum so far, by its worth.
        price = ((np.maximum(short, 0.0) + _GOAL_MARGIN) * _FINE).astype(np.intp)
        stake = _SLOPES.take(price, mode="clip") / spread.take(columns)
        np.minimum(stake, at_risk, out=stake)
        stake *= short > 0
        for chunk in np.array_split(rows, -(-len(rows) // _FACTORS)) if len(rows) > _FACTORS else [rows]:
            factors = np.ones(columns.shape)  # one logarithm for all of them
            for row in chunk:
                factor = row.take(columns)
                factor -= means
                factor *= stake
                factor += 1
                factors *= factor
            wealth += np.log(factors, out=factors)
        total, square = total + rows.sum(axis=0), square + np.square(rows).sum(axis=0)
        seen, left = seen + len(rows), left - len(rows)
    refuted[open_] = wealth >= goal
    return refuted


def _mean_and_spread(pilot: _Floats) -> tuple[_Floats, _Floats]:
    """Return the means of samples and their standard deviations, a little more than 0 where nothing differed."""
    mean = pilot.mean(axis=0)
    return mean, np.sqrt(np.maximum(np.square(pilot).mean(axis=0) - mean**2, 0.0) + 1 / len(pilot) ** 2)


def _cells(mean: float, spread: float, left: int) -> _Floats:
    """Return the edges of cells that cover [0, 1]: narrow about the pilot's mean, wider and wider beyond."""
    error = spread / math.sqrt(left)
    reach = _NARROW_REACH * error
    narrow_edges = np.arange(-reach, reach, _CELL * error)
    widths = _CELL * error * _WIDENING ** np.arange(1, math.ceil(math.log(1 / error + 2) / math.log(_WIDENING)) + 30)
    wide_edges = reach + np.cumsum(widths)
    edges = mean + np.concatenate([-wide_edges[::-1], narrow_edges, [reach], wide_edges])
    interior = edges[(edges > 0) & (edges < 1)]
    return np.concatenate([[0.0], interior, [1.0]])
