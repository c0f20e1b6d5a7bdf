"""The pilot of a claim in any measure: which event, or which function of the score, promises the largest bound.

An event that is best for epsilon is not best for rho: what an event promises is told by the claim's own measure, at
the shares that the pilot saw, moved by the standard errors of the runs to come and of the pilot itself.
Zero-concentrated and Renyi DP may be certified by a step function of the score too (`variational`): the log odds of
each step, clipped, at one of several orders, with the stakes that its certificate will bet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...mechanisms.measures.divergences import NEAR_ONE
from ...mechanisms.measures.measure import Measure, TradeOff
from ...mechanisms.measures.renyi import RDP, ZCDP
from ...mechanisms.numerics import best, rounded, significant
from .bounds.joint_wealth import AT_RISK, TwoSampleBets
from .bounds.variational import StepFunction, level_of
from .event_choice import DOUBT, cells_of
from .event_rule import allotment
from .events import UNUSED, Event

_Floats = NDArray[np.float64]

#: Steps of a function, at most.
STEPS = 48
#: Log odds at which functions are clipped, and orders, less 1, that are tried.
_CLIPS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_ORDERS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
#: Scales of stakes that are tried, in shares of that which is best for normal variables.
_SCALES = np.geomspace(0.125, 2.0, 17)
#: The weight of the best stakes, and those of the other bets in multiples of them: on both samples, and on one.
_MAIN, _SIZES, _SINGLE_SIZES = 15 / 16, (0.25, 0.5, 2.0, 4.0), (2.0, 4.0)
#: Leading bits of what is written down of a function: its sums depend on the processor.
_BITS = 24


@dataclass(frozen=True)
class Cells:
    """What a pilot, or exact laws, show of a score: how likely it is in cells of neighbouring values in each world.

    Attributes
    ----------
    edges : array (cells - 1,)
        Thresholds, ascending: a cell holds the scores from one up to, and without, the next.
    left, right : array (cells,)
        Probabilities.
    runs : (float, float)
        The runs of either world that they were estimated from, infinite for laws.
    """

    edges: _Floats
    left: _Floats
    right: _Floats
    runs: tuple[float, float]

    @classmethod
    def of_scores(cls, scores: _Floats, left: NDArray[np.bool_], *, log_odds: bool = False) -> Cells:
        """Return those of a pilot, smoothed as `event_choice` does."""
        edges, of_left, of_right = cells_of(scores, left, log_odds=log_odds)
        runs = max(1, int(left.sum())), max(1, int((~left).sum()))
        return cls(edges, of_left / runs[0], of_right / runs[1], runs)

    @classmethod
    def of_laws(cls, scores: ArrayLike, p: ArrayLike, q: ArrayLike) -> Cells:
        """Return those of exact laws of the same outcomes, whose scores are given: nan of one that cannot be."""
        of_outcomes = np.asarray(scores, dtype=np.float64)
        possible = ~np.isnan(of_outcomes)
        values, places = np.unique(of_outcomes[possible], return_inverse=True)
        laws = [np.bincount(places, weights=np.asarray(law)[possible], minlength=values.size) for law in (p, q)]
        return cls(values[1:], laws[0] / laws[0].sum(), laws[1] / laws[1].sum(), (math.inf, math.inf))


def choose(cells: Cells, measure: Measure, *, alpha: float, runs: int, doubt: float = DOUBT) -> tuple[Event, float]:
    """Return the event that promises the largest level, with a function of the score where that promises more.

    Parameters
    ----------
    cells : Cells
    measure : Measure
        The claim.
    alpha : float
        The certificate's.
    runs : int
        The certification runs to come, both worlds together.
    doubt : float
        Standard errors of the pilot taken off.

    Returns
    -------
    event : Event
    level : float
        What it promises, in the measure's unit; below 0 where nothing does.
    """
    if not cells.edges.size:
        return Event(UNUSED, 0.0, "joint"), -1.0
    event, level = _best_event(cells, measure, alpha, runs, doubt)
    if isinstance(measure, RDP | ZCDP):
        function, function_level, share = _best_function(cells, measure, alpha, runs, doubt)
        if rounded(function_level) > rounded(level):
            return replace(event, method="variational", function=function, share=share), function_level
    return event, level


def _best_event(cells: Cells, measure: Measure, alpha: float, runs: int, doubt: float) -> tuple[Event, float]:
    """Return the best of the events "the score is at least a threshold"; complements and both orders are in it."""
    p, q = (np.cumsum(law[::-1])[::-1][1:] for law in (cells.left, cells.right))
    p, q = (np.clip(law, 1 / (2 * runs), 1 - 1 / (2 * runs)) for law in (p, q))
    by_intervals = not isinstance(measure, TradeOff)  # by two intervals, each with half of the error
    error = alpha / 2 if by_intervals else alpha
    # What n runs do not show may be as likely as -ln(error) / n: no normal error says so.
    quantile, unseen = -float(special.ndtri(error)), -math.log(error)
    spreads = [np.sqrt(law * (1 - law)) for law in (p, q)]
    share: _Floats = np.full(p.size, 0.5)
    for _ in range(2):  # the second time with runs shared out as the first says
        errors = [
            np.maximum(spread * quantile / np.sqrt(runs * part), unseen / (runs * part))
            + spread * doubt / math.sqrt(pilot)
            for spread, part, pilot in zip(spreads, (share, 1 - share), cells.runs, strict=True)
        ]
        low, high = np.maximum(p - errors[0], 0.0), np.minimum(q + errors[1], 1.0)
        needed_level = measure.needed(p, q)
        level_losses = [needed_level - measure.needed(low, q), needed_level - measure.needed(p, high)]
        promise = measure.needed(low, high) if by_intervals else needed_level - np.hypot(*level_losses)
        # Where nothing is promised, events are ranked by the difference of the shares in standard errors.
        promise = np.where(promise > 0, promise, (p - q) / np.hypot(*errors) / quantile - 2)
        last_share = share
        share = allotment((level_losses[0] ** 2) * share, (level_losses[1] ** 2) * (1 - share))
    i = best(promise)
    return Event(UNUSED, float(cells.edges[i]), "joint", float(last_share[i])), float(promise[i])


def _best_function(
    cells: Cells, measure: Measure, alpha: float, runs: int, doubt: float
) -> tuple[StepFunction, float, float]:
    """Return the best of the clipped log odds of the cells, the level that it promises, and the left world's share."""
    edges, left, right = _merged(cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.nan_to_num(np.log(left) - np.log(right), nan=0.0, posinf=_CLIPS[-1], neginf=-_CLIPS[-1])
    orders = [1 + excess for excess in _ORDERS]
    if isinstance(measure, RDP):  # what is true of a lower order is so of a higher one
        claimed_orders = [measure.order] if measure.order >= 1 + NEAR_ONE else []
        orders = [order for order in orders if order < measure.order] + claimed_orders
    candidates = []
    for towards, sign, p, q, pilot in (
        ("left", 1, left, right, cells.runs),
        ("right", -1, right, left, cells.runs[::-1]),
    ):
        for clip in _CLIPS:
            f = tuple(significant(np.clip(sign * odds, -clip, clip), _BITS).tolist())
            for order in orders:
                function = StepFunction(tuple(edges.tolist()), f, order, towards)
                bound, bets, share = _with_bets(function, p, q, pilot, alpha, runs, doubt)
                candidates.append((level_of(measure, order, bound), function, bets, share))
    level, function, bets, share = candidates[best([level for level, *_ in candidates])]
    return replace(function, bets=_bets(*bets), runs=runs), level, share


def _with_bets(
    function: StepFunction, p: _Floats, q: _Floats, pilot: tuple[float, float], alpha: float, runs: int, doubt: float
) -> tuple[float, tuple[float, float], float]:
    """Return the bound that a function promises, the best stakes in P and Q, and the left world's share of the runs.

    Where each sample's mean is a little less than what is seen, a stake l gains ``n E ln(1 + l (x - E x))``, which is
    negative, and n l for each unit of the distance. Stakes in proportion to the slopes of the bound, by the runs of
    each world, therefore gain in proportion to what is taken off the bound, and their size makes that smallest.
    """
    x, y = function.in_p, function.in_q
    s, t = (min(1.0, float(law @ values)) for law, values in ((p, x), (q, y)))  # the shares may sum to a little more
    bound_at_means = float(function.bound(s, t))
    if not math.isfinite(bound_at_means):
        return -math.inf, (0.0, 0.0), 0.5
    step = 1e-6
    slopes = [(bound_at_means - float(function.bound(*less))) / step for less in ((s - step, t), (s, t - step))]
    centred = x - s, y - t
    spreads = [
        slope**2 * float(law @ np.square(values)) for slope, law, values in zip(slopes, (p, q), centred, strict=True)
    ]
    if not np.isfinite(spreads).all() or sum(spreads) <= 0:
        return -math.inf, (0.0, 0.0), 0.5
    of_p = float(allotment(np.array(spreads[0]), np.array(spreads[1])))
    sizes = runs * of_p, runs * (1 - of_p)
    variance = sum(spread / size for spread, size in zip(spreads, sizes, strict=True))
    goal = -math.log(alpha * _MAIN)
    scales = _SCALES * math.sqrt(2 * goal / variance)
    stakes = [scales * slope / size for slope, size in zip(slopes, sizes, strict=True)]
    allowed = np.maximum(stakes[0] * max(s, float(x.max()) * 1e-3), stakes[1] * t) <= AT_RISK
    with np.errstate(invalid="ignore", divide="ignore"):
        cost = sum(
            -size * (law @ np.log1p(np.outer(values, stake)))
            for size, law, values, stake in zip(sizes, (p, q), centred, stakes, strict=True)
        )
    off = np.where(allowed & ~np.isnan(cost), (goal + cost) / scales, np.inf)
    i = int(np.argmin(rounded(off)))
    if not np.isfinite(off[i]):
        return -math.inf, (0.0, 0.0), 0.5
    of_pilot = math.sqrt(sum(spread / size for spread, size in zip(spreads, pilot, strict=True)))
    share = of_p if function.towards == "left" else 1 - of_p
    return bound_at_means - float(off[i]) - doubt * of_pilot, (float(stakes[0][i]), float(stakes[1][i])), share


def _bets(in_p: float, in_q: float) -> TwoSampleBets:
    """Return bets of these stakes above all, of smaller and larger ones, and on one sample alone."""
    pairs = [(1.0, 1.0), *((size, size) for size in _SIZES), *((size, 0.0) for size in _SINGLE_SIZES)]
    pairs += [(0.0, size) for size in _SINGLE_SIZES]
    first, second = (
        tuple(significant(np.array(sizes) * stake, _BITS).tolist())
        for sizes, stake in zip(zip(*pairs, strict=True), (in_p, in_q), strict=True)
    )
    return TwoSampleBets(first, second, (_MAIN, *((1 - _MAIN) / (len(pairs) - 1),) * (len(pairs) - 1)))


def _merged(cells: Cells) -> tuple[_Floats, _Floats, _Floats]:
    """Return cells of about equal weight, few enough for a function."""
    if cells.left.size <= STEPS:
        return cells.edges, cells.left, cells.right
    weight = rounded(np.cumsum(cells.left + cells.right)[:-1] / 2)
    # Narrower towards both ends, where the log odds are large.
    goals = (1 - np.cos(np.linspace(0, np.pi, STEPS + 1)[1:-1])) / 2
    cuts = np.unique(np.searchsorted(weight, goals).clip(0, weight.size - 1))
    sums = [np.add.reduceat(law, np.append(0, cuts + 1)) for law in (cells.left, cells.right)]
    return cells.edges[cuts], sums[0], sums[1]
