"""Lower bounds on Renyi divergences from a bounded function of what is released, fixed before the runs.

For every bounded f and every order a > 1 [2]_

    D_a(P || Q) >= a / (a - 1) ln E_P[e^((a-1) f)] - ln E_Q[e^(a f)],

and at a = 1, for the Kullback-Leibler divergence, ``E_P[f] - ln E_Q[e^f]`` [1]_; both are equalities where f is the
log-likelihood ratio. Here f is a step function of an attack's score, so the runs are summed up by how often the score
was in each step. Each expectation gets a one-sided limit with half of the error: the empirical Bernstein bound [3]_.
Betting on the counts is its twin, sharper where runs are few, but valid only on average over the orders that they are
put into. The divergence grows with its order, so a bound at one order holds at larger ones.

References
----------
.. [1] M. Donsker, S. Varadhan. Asymptotic evaluation of certain Markov process expectations for large time IV. Comm.
   Pure Appl. Math. 36, 1983.
.. [2] J. Birrell, P. Dupuis, M. Katsoulakis, L. Rey-Bellet, J. Wang. Variational representations and neural network
   estimation of Renyi divergences. SIAM J. Math. Data Sci. 3, 2021, Theorem 3.
.. [3] A. Maurer, M. Pontil. Empirical Bernstein bounds and sample variance penalization. COLT 2009, Theorem 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....mechanisms.measures.measure import Measure
from ....mechanisms.measures.renyi import RDP, ZCDP
from .betting import mean_lower_of_counts

_Floats = NDArray[np.float64]
#: A lower limit of a mean, from the values of a variable, how often each was seen, its least and largest value.
Limit = Callable[..., float]


@dataclass(frozen=True)
class StepFunction:
    """A function of a score that is constant between thresholds: the f of the bounds above.

    Parameters
    ----------
    edges : tuple of float
        The thresholds, ascending. A score of nan is in the first step.
    values : tuple of float
        The value of each step, one more than there are thresholds, finite.
    order : float
        Of the divergence, at least 1.
    towards : {"left", "right"}
        The world that is P.
    """

    edges: tuple[float, ...]
    values: tuple[float, ...]
    order: float = 1.0
    towards: str = "left"

    def __post_init__(self) -> None:
        if len(self.values) != len(self.edges) + 1 or not np.isfinite(self.values).all():
            raise ValueError(f"values must be {len(self.edges) + 1} finite numbers, got {self.values!r}")
        if not self.order >= 1:
            raise ValueError(f"order must be at least 1, got {self.order!r}")
        if self.towards not in ("left", "right"):
            raise ValueError(f"towards must be left or right, got {self.towards!r}")

    def tally(self, scores: ArrayLike, left: ArrayLike) -> tuple[int, ...]:
        """Return how often scores were in each step, in the left world and then in the right one."""
        values, world = np.asarray(scores, dtype=np.float64), np.asarray(left)
        steps = np.where(np.isnan(values), 0, np.searchsorted(self.edges, values, side="right"))
        counts = [np.bincount(steps[here], minlength=len(self.values)) for here in (world, ~world)]
        return tuple(np.concatenate(counts).tolist())

    def transferred(self, scores: _Floats, others: _Floats) -> StepFunction:
        """Return the function on other scores of the same runs, with about as many of them in each step."""
        old, new = np.sort(scores[~np.isnan(scores)]), np.sort(others[~np.isnan(others)])
        if not old.size or not new.size:
            return self
        below = np.searchsorted(old, self.edges) / old.size * new.size
        edges = np.append(new, np.inf)[np.rint(below).astype(np.int64)]
        return replace(self, edges=tuple(edges.tolist()))

    def to_json(self) -> dict[str, Any]:
        """Return the record's form."""
        return {**vars(self), "edges": list(self.edges), "values": list(self.values)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> StepFunction:
        """Return the function that `to_json` wrote."""
        return cls(**{**data, "edges": tuple(data["edges"]), "values": tuple(data["values"])})


def betting(values: ArrayLike, counts: ArrayLike, low: float, high: float, *, alpha: float) -> float:
    """Return `betting.mean_lower_of_counts`, or the least value where a bet needs more observations. A twin."""
    many = int(np.sum(counts))
    return mean_lower_of_counts(values, counts, low, high, alpha=alpha) if many > 1 and low < high else low


def empirical_bernstein(values: ArrayLike, counts: ArrayLike, low: float, high: float, *, alpha: float) -> float:
    """Return ``mean - sqrt(2 V ln(2/alpha) / n) - 7 (high - low) ln(2/alpha) / (3 (n - 1))`` [3]_."""
    x, many = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    n = float(many.sum())
    if n < 2:
        return low
    mean = float(many @ x) / n
    variance = float(many @ np.square(x - mean)) / (n - 1)
    doubt = math.log(2 / alpha)
    return max(low, mean - math.sqrt(2 * variance * doubt / n) - 7 * (high - low) * doubt / (3 * (n - 1)))


def divergence_lower(
    function: StepFunction, left: ArrayLike, right: ArrayLike, *, alpha: float, limit: Limit = empirical_bernstein
) -> float:
    """Return a lower bound (nats) on the divergence of the function's order, wrong with probability at most alpha.

    Parameters
    ----------
    function : StepFunction
        Fixed before the runs.
    left, right : array of int (steps,)
        How often the score was in each step, in either world.
    alpha : float
        In (0, 1).
    limit : callable
        What bounds each mean.

    Examples
    --------
    >>> coin = StepFunction(edges=(0.0,), values=(-1.0, 1.0))  # of randomised response at epsilon 1
    >>> round(divergence_lower(coin, [2689, 7311], [7311, 2689], alpha=0.01), 3)  # the truth is 0.462
    0.39
    """
    f, a = np.asarray(function.values), function.order
    of_p, of_q = (left, right) if function.towards == "left" else (right, left)
    # Values are taken relative to the largest: exponentials of them are at most 1, and what is taken off cancels.
    shifted = f - f.max()
    grown = np.exp(a * shifted)
    upper = -limit(-grown, of_q, -1.0, -float(grown.min()), alpha=alpha / 2)
    if a == 1:
        lower = limit(shifted, of_p, float(shifted.min()), 0.0, alpha=alpha / 2)
        return max(0.0, lower - math.log(upper))
    weighted = np.exp((a - 1) * shifted)
    lower = limit(weighted, of_p, float(weighted.min()), 1.0, alpha=alpha / 2)
    # Of large orders the least value is 0 in floating point, and so may the limit be.
    return max(0.0, a / (a - 1) * math.log(lower) - math.log(upper)) if lower > 0 else 0.0


def level_of(measure: Measure, order: float, divergence: float) -> float:
    """Return the level of a measure that a lower bound on a divergence of some order gives.

    Raises
    ------
    ValueError
        If it gives none.
    """
    if isinstance(measure, ZCDP):
        return divergence / order
    if isinstance(measure, RDP) and order <= measure.order:
        return divergence
    raise ValueError(f"a divergence of order {order:g} bounds no {measure!r}")
