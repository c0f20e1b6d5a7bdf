"""Lower limits of two means together, in either world's runs, by bets on counts: no order of the runs enters.

Two samples of independent observations in [0, 1], n of one and k of the other, have the means s and t. A bet stakes a
share l on the first sample and a share h on the second: against the hypothesis that the means are at most s and t, its
wealth

    W(s, t) = prod_i (1 + l (x_i - s)) prod_j (1 + h (y_j - t))

has the expectation at most 1 where that is true, as each factor has, given the others [1]_. It is a product: it
depends on how often each value was seen, and on nothing else. So is any mixture of such wealths with weights that sum
to at most 1. Bets and weights are fixed before the runs. Then (Markov) the true means are in the region
``{(s, t): W(s, t) < 1 / alpha}`` with probability at least 1 - alpha; and since the wealth of runs in the order of
their arrival is a supermartingale, in all of these regions together, after however many runs (Ville). The sizes of the
samples may be random, as long as what is played next does not look at outcomes to come: given the worlds of all runs,
those of one world are independent and alike.

**The region is an interval from above in each mean.** Each factor falls with its mean, so each wealth does. A stake l
is not allowed where ``l s`` is above `AT_RISK`: from there on its wealth counts as 0, which keeps it falling.

**What is smallest in the region is enclosed, not searched.** For a function g that grows with both means, and any
vertices s_0 < ... < s_M and t_0 < ... < t_N that span [0, 1]: a point of the region in the cell [s_i, s_i+1] x [t_j,
t_j+1] has W(s_i+1, t_j+1) <= W(s, t) < 1 / alpha, and g there is at least g(s_i, t_j). For each i the smallest such j
is found by bisection; the bound is the least of the g(s_i, t_j). Between a few vertices where a wealth is computed its
logarithm is interpolated linearly, which is below it: the logarithm is concave in each mean, being a sum of ln(1 + l
(x - s)). Rounding is taken off each logarithm.

Two means share one error without halving it, and stakes in the ratio in which a bound depends on both means bet on
that bound: beside two limits with half of the error each, the bound is closer by about a fifth.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS-B 86, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ....errors import must_be

_Floats = NDArray[np.float64]
#: A function of both means, which grows with each.
Objective = Callable[[_Floats, _Floats], _Floats]

#: The largest loss of one observation, as a share of the wealth.
AT_RISK = 0.9
#: How far around the mean vertices are close, in standard errors, how many are there, and how distances grow beyond.
_DENSE_REACH, _DENSE_VERTICES, _GROWTH = 12.0, 4096, 1.01
#: A wealth is computed at every so many vertices, and interpolated between.
_COMPUTED = 32
#: What is taken off the logarithm of a wealth for rounding: some of it, and more for each observation.
_ROUNDING, _ROUNDING_PER_RUN = 1e-9, 1e-14


@dataclass(frozen=True)
class TwoSampleBets:
    """Bets on two samples: a mixture.

    Parameters
    ----------
    first, second : tuple of float
        The stakes of each bet on either sample, at least 0.
    weights : tuple of float
        Positive, of sum at most 1.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.first) == len(self.second) == len(self.weights) > 0:
            raise ValueError(f"bets must have two stakes and a weight each, got {self!r}")
        stakes = (*self.first, *self.second)
        if not all(math.isfinite(stake) and stake >= 0 for stake in stakes):
            raise must_be("stakes", "at least 0 and finite", stakes)
        if not all(weight > 0 for weight in self.weights) or math.fsum(self.weights) > 1:
            raise must_be("weights", "positive, and at most 1 together", self.weights)

    def times(self, factor: float) -> TwoSampleBets:
        """Return the bets with all stakes so many times as large."""
        first, second = (tuple(stake * factor for stake in stakes) for stakes in (self.first, self.second))
        return TwoSampleBets(first, second, self.weights)


class JointWealth:
    """The wealth of bets against each pair of means, after the runs were counted.

    Parameters
    ----------
    bets : TwoSampleBets
        Fixed before the runs.
    first, second : (values, counts)
        Of either sample: values in [0, 1], and how often each was observed.

    Examples
    --------
    >>> bets = TwoSampleBets((0.1, 0.0), (0.1, 0.2), (0.5, 0.5))
    >>> wealth = JointWealth(bets, ([0.0, 1.0], [300, 700]), ([0.0, 1.0], [500, 500]))
    >>> round(wealth.least(lambda s, t: s + t, alpha=0.01), 2)  # 0.7 and 0.5 were seen
    1.08
    """

    def __init__(
        self, bets: TwoSampleBets, first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike]
    ) -> None:
        self._weights = np.log(np.array(bets.weights))
        self._s, of_first = _logarithms(*first, bets.first)
        self._t, of_second = _logarithms(*second, bets.second)
        self._first, self._second = of_first + self._weights[:, None], of_second

    def least(self, objective: Objective, *, alpha: float) -> float:
        """Return a number below all that the objective is in the region of error alpha."""
        goal = -math.log(alpha)
        rows = np.arange(self._s.size - 1)
        first_column = _first_where(lambda j: self._log(rows + 1, j + 1) < goal, rows.size, self._t.size - 1)
        nonempty = first_column < self._t.size - 1  # in the others every mean of the second sample is refuted
        with np.errstate(divide="ignore"):
            return float(np.min(objective(self._s[rows[nonempty]], self._t[first_column[nonempty]]), initial=math.inf))

    def evidence(self, objective: Objective, level: float) -> float:
        """Return a number below the log wealth against every pair of means whose objective is at most the level.

        Where it is at least ln(1 / alpha), `least` is above the level, but for rounding.
        """
        rows = np.arange(self._s.size - 1)
        with np.errstate(divide="ignore"):
            first_column = _first_where(
                lambda j: objective(self._s[rows], self._t[j]) > level, rows.size, self._t.size - 1
            )
        nonempty = first_column > 0
        return float(np.min(self._log(rows[nonempty] + 1, first_column[nonempty]), initial=math.inf))

    def _log(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> _Floats:
        """Return the log wealth at vertices."""
        total: _Floats = special.logsumexp(self._first[:, i] + self._second[:, j], axis=0)
        return total


def _logarithms(values: ArrayLike, counts: ArrayLike, stakes: tuple[float, ...]) -> tuple[_Floats, _Floats]:
    """Return vertices, and what is below the log wealth of each stake against each of them, (stakes, vertices)."""
    x, n = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    seen, bets = n > 0, np.array(stakes)[:, None]
    x, n = x[seen], n[seen]
    vertices = _vertices(x, n)
    computed = vertices[::_COMPUTED] if (vertices.size - 1) % _COMPUTED == 0 else np.append(vertices[::_COMPUTED], 1.0)
    allowed = bets * computed <= AT_RISK
    logs = np.zeros(allowed.shape)
    for value, often in zip(x.tolist(), n.tolist(), strict=True):
        logs += often * np.log1p(np.where(allowed, bets * (value - computed), 0.0))
    logs -= _ROUNDING + _ROUNDING_PER_RUN * n.sum()
    log_wealth = np.array([np.interp(vertices, computed, row) for row in logs])
    # A stake counts between two vertices only if it is allowed at both.
    ends = np.searchsorted(computed, vertices)
    return vertices, np.where(np.take_along_axis(allowed, ends[None], axis=1), log_wealth, -np.inf)


def _vertices(x: _Floats, counts: _Floats) -> _Floats:
    """Return points from 0 to 1, ascending: close to each other around the mean of what was seen."""
    runs = max(1.0, float(counts.sum()))
    mean = float(x @ counts) / runs if x.size else 0.5
    error = math.sqrt(max(float(np.square(x - mean) @ counts) / runs, 1 / runs) / runs)
    dense = np.linspace(0.0, _DENSE_REACH * error, _DENSE_VERTICES // 2 + 1)
    steps = max(0, math.ceil(math.log(1 / dense[-1]) / math.log(_GROWTH)))
    distances = np.concatenate([dense, dense[-1] * _GROWTH ** np.arange(1, steps + 1)])
    points = np.concatenate([[0.0, 1.0], mean - distances, mean + distances])
    return np.unique(points[(points >= 0) & (points <= 1)])


def _first_where(
    holds: Callable[[NDArray[np.int64]], NDArray[np.bool_]], rows: int, columns: int
) -> NDArray[np.int64]:
    """Return for each row the first column from which on the condition holds; their number where it never does."""
    low, high = np.zeros(rows, dtype=np.int64), np.full(rows, columns, dtype=np.int64)
    while np.any(low < high):
        middle = (low + high) // 2
        holds_at_middle = holds(np.minimum(middle, columns - 1))
        open_ = low < high
        low, high = (
            np.where(open_ & ~holds_at_middle, middle + 1, low),
            np.where(open_ & holds_at_middle, middle, high),
        )
    return low
