"""Lower bounds on Renyi divergences from a bounded function of what is released, fixed before the runs.

For every bounded f and every order a > 1 [2]_

    D_a(P || Q) >= a / (a - 1) ln E_P[e^((a-1) f)] - ln E_Q[e^(a f)],

and at a = 1, for the Kullback-Leibler divergence, ``E_P[f] - ln E_Q[e^f]`` [1]_; both are equalities where f is the
log-likelihood ratio. Here f is a step function of an attack's score, so the runs are summed up by how often the score
was in each step. The right side grows with one mean and falls with the other: what is smallest in a joint region of
both is enclosed (`joint_wealth`), by bets that are fixed with the function. The divergence grows with its order, so a
bound at one order holds at larger ones.

References
----------
.. [1] M. Donsker, S. Varadhan. Asymptotic evaluation of certain Markov process expectations for large time IV. Comm.
   Pure Appl. Math. 36, 1983.
.. [2] J. Birrell, P. Dupuis, M. Katsoulakis, L. Rey-Bellet, J. Wang. Variational representations and neural network
   estimation of Renyi divergences. SIAM J. Math. Data Sci. 3, 2021, Theorem 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....errors import must_be
from ....mechanisms.measures.divergences import NEAR_ONE
from ....mechanisms.measures.measure import Measure
from ....mechanisms.measures.renyi import RDP, ZCDP
from .joint_wealth import JointWealth, TwoSampleBets

_Floats = NDArray[np.float64]

#: What is taken off a bound for the rounding of its own computation, as a share of it.
_ROUNDING = 1e-12
#: Bets that know nothing: stakes of many sizes.
_SIZES = tuple(2.0**-i for i in range(13))
SPREAD = TwoSampleBets(
    first=(*_SIZES, *_SIZES, *(0.0 for _ in _SIZES)),
    second=(*_SIZES, *(0.0 for _ in _SIZES), *_SIZES),
    weights=(1 / 64,) * 39,  # in binary, so that their sum is exact
)


def transferred(edges: tuple[float, ...], scores: _Floats, new_scores: _Floats) -> tuple[float, ...]:
    """Return the thresholds for other scores of the same runs, with about as many of them in each step."""
    old, new = np.sort(scores[~np.isnan(scores)]), np.sort(new_scores[~np.isnan(new_scores)])
    if not old.size or not new.size:
        return edges
    ranks = np.searchsorted(old, edges) / old.size * new.size
    return tuple(np.append(new, np.inf)[np.rint(ranks).astype(np.int64)].tolist())


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
        Of the divergence: 1, or more than a millionth above it.
    towards : {"left", "right"}
        The world that is P.
    bets : TwoSampleBets
        On what grows with f in P, and on what falls with f in Q, both in [0, 1] (`in_p` and `in_q`).
    runs : int
        The runs of both worlds together that the stakes are made for. Of another number that was fixed before, or
        that no outcome had a part in, stakes are as many times larger as a standard error is; 0 leaves them alone.
    """

    edges: tuple[float, ...]
    values: tuple[float, ...]
    order: float = 1.0
    towards: str = "left"
    bets: TwoSampleBets = SPREAD
    runs: int = 0

    def __post_init__(self) -> None:
        if len(self.values) != len(self.edges) + 1 or not np.isfinite(self.values).all():
            raise must_be("values", f"{len(self.edges) + 1} finite numbers", self.values)
        if not (self.order == 1 or self.order >= 1 + NEAR_ONE):  # rounding is divided by the difference
            raise must_be("order", f"1 or at least {1 + NEAR_ONE:.7g}", self.order)
        if self.towards not in ("left", "right"):
            raise must_be("towards", "left or right", self.towards)

    def tally(self, scores: ArrayLike, left: ArrayLike) -> tuple[int, ...]:
        """Return how often scores were in each step, in the left world and then in the right one."""
        values, world = np.asarray(scores, dtype=np.float64), np.asarray(left)
        steps = np.where(np.isnan(values), 0, np.searchsorted(self.edges, values, side="right"))
        counts = [np.bincount(steps[side], minlength=len(self.values)) for side in (world, ~world)]
        return tuple(np.concatenate(counts).tolist())

    def transferred(self, scores: _Floats, new_scores: _Floats) -> StepFunction:
        """Return the function on other scores of the same runs, with about as many of them in each step."""
        return replace(self, edges=transferred(self.edges, scores, new_scores))

    @property
    def in_p(self) -> _Floats:
        """The variable in [0, 1] that is bet on in P, by step: f, or e^((a-1) f), in units of its range."""
        return _in_range(self._grown(self.order - 1))

    @property
    def in_q(self) -> _Floats:
        """The variable in [0, 1] that is bet on in Q, by step: e^(a f) in units of its range, taken off 1."""
        return _in_range(-self._grown(self.order))

    def _grown(self, exponent: float) -> _Floats:
        """Return e^(exponent f), or f itself, relative to the largest value: what is taken off cancels."""
        f = np.asarray(self.values) - max(self.values)
        return np.exp(exponent * f) if exponent else f

    def bound(self, of_p: ArrayLike, of_q: ArrayLike) -> _Floats:
        """Return the bound on the divergence (nats) where `in_p` and `in_q` have these means; it grows with both."""
        rising, falling = self._grown(self.order - 1), self._grown(self.order)
        s, t = (np.asarray(mean, dtype=np.float64) for mean in (of_p, of_q))
        p = rising.min() + s * (rising.max() - rising.min())
        q = falling.max() - t * (falling.max() - falling.min())
        a = self.order
        with np.errstate(divide="ignore"):
            bound: _Floats = (p if a == 1 else a / (a - 1) * np.log(np.maximum(p, 0.0))) - np.log(q)
        return bound


def _in_range(x: _Floats) -> _Floats:
    width = float(np.ptp(x))
    return (x - x.min()) / width if width > 0 else np.zeros_like(x)


def divergence_lower(function: StepFunction, left: ArrayLike, right: ArrayLike, *, alpha: float) -> float:
    """Return a lower bound (nats) on the divergence of the function's order, wrong with probability at most alpha.

    Parameters
    ----------
    function : StepFunction
        Fixed before the runs, with its bets.
    left, right : array of int (steps,)
        How often the score was in each step, in either world.
    alpha : float
        In (0, 1).

    Examples
    --------
    >>> coin = StepFunction(edges=(0.0,), values=(-1.0, 1.0))  # of randomised response at epsilon 1
    >>> round(divergence_lower(coin, [2689, 7311], [7311, 2689], alpha=0.01), 2)  # the truth is 0.462
    0.4
    """
    return max(0.0, _wealth(function, left, right).least(function.bound, alpha=alpha) * (1 - _ROUNDING))


def divergence_p_value(function: StepFunction, left: ArrayLike, right: ArrayLike, divergence: float) -> float:
    """Return a p-value of the claim that the divergence of the function's order is at most so much.

    It is the inverse of the wealth against that claim: of a true one it is at most alpha with probability at most
    alpha, for every alpha (Markov). Parameters are those of `divergence_lower`.
    """
    evidence = _wealth(function, left, right).evidence(function.bound, divergence / (1 - _ROUNDING))
    return math.exp(-max(0.0, evidence))


def _wealth(function: StepFunction, left: ArrayLike, right: ArrayLike) -> JointWealth:
    of_p, of_q = (left, right) if function.towards == "left" else (right, left)
    runs = int(np.sum(of_p)) + int(np.sum(of_q))
    bets = function.bets.times(math.sqrt(function.runs / runs)) if function.runs and runs else function.bets
    return JointWealth(bets, (function.in_p, of_p), (function.in_q, of_q))


def divergence_of(measure: Measure, order: float) -> float:
    """Return the largest divergence of some order that a claim allows.

    Raises
    ------
    ValueError
        If it says nothing of that order.
    """
    if isinstance(measure, ZCDP):
        return measure.rho * order
    if isinstance(measure, RDP) and order <= measure.order:
        return measure.epsilon
    raise ValueError(f"{measure!r} says nothing of a divergence of order {order:g}")


def level_of(measure: Measure, order: float, divergence: float) -> float:
    """Return the level of a measure that a lower bound on a divergence of some order gives.

    Raises
    ------
    ValueError
        As `divergence_of`.
    """
    return divergence / divergence_of(measure.at(1.0), order)
