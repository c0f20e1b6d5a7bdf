"""Regret: measured on a loss sequence, with an honest interval.

A learner that learns nothing is private for free, so every privacy claim comes with this.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from ...learners.blame import blaming
from ...learners.problems.losses import check_told, feedback
from ...learners.protocol import Learner
from ...mechanisms.draws import Draws, Floats, Stage
from ..play.engines import in_parallel
from ..play.execution import HERE, Budget, Execution
from ..play.pairs import World
from ..play.transcripts import blocks, check_actions
from ..statistics.betting import mean_interval
from .comparator import best_fixed, total_bounds

#: Exact at any number of runs; and for losses that nothing bounds, which no verdict rests on.
BETTING, NORMAL = "betting", "normal approximation"
#: Of a measurement that does not say how much it may spend; and the fewest runs of one.
BUDGET, FEWEST_RUNS = Budget(runs=5000), 2


@dataclass(frozen=True)
class Regret:
    """The mean regret of independent runs against the best fixed action in hindsight.

    Attributes
    ----------
    mean : float
        In units of the losses, over all rounds.
    interval : (float, float)
        Contains the expected regret with probability `confidence`.
    interval_method : str
        "betting" (exact at any number of runs) or "normal approximation" (for losses that nothing bounds).
    comparator : float
        The total loss of the best fixed action.
    largest : float or None
        The regret of the worst actions; None where the losses are not bounded. A bound above it says nothing.
    rounds, runs, confidence
        T, the runs, and the interval's level.
    """

    mean: float
    interval: tuple[float, float]
    interval_method: str
    comparator: float
    largest: float | None
    rounds: int
    runs: int
    confidence: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "interval": list(self.interval)}


def measure(
    learner: Learner,
    losses: World,
    budget: Budget = BUDGET,
    execution: Execution = HERE,
    *,
    comparator: float | None = None,
    label: int = 0,
    part: str = "",
) -> Regret:
    """Return the mean regret of a learner on a fixed loss sequence, with a confidence interval.

    The best fixed action in hindsight is an arm; the best expert, where the learner has `advice`; the minimiser of a
    domain that offers `minimise(linear)`; else a vertex of the simplex. Under convex losses it is searched with the
    domain's `minimise`, and the interval allows for the search's gap.

    The interval is by betting (`statistics.betting`) where the losses of a run are bounded: arms, and points of a
    domain under linear losses. Otherwise it is Student's, and says "normal approximation".

    Parameters
    ----------
    losses : array (rounds, arms) or sequence of convex losses
        Oblivious: the same for every run.
    budget : Budget
        Its runs, seed and confidence.
    execution : Execution
        Its processes, and the memory of finished blocks.
    comparator : float, optional
        The total loss to compare with, where it is known.
    label : int
        Separates the draws of several measurements under one seed.
    part : str
        Tells this measurement from others of other learners in the same memory.

    Raises
    ------
    ValueError
        For parameters outside their range, losses that are not finite, or convex ones on a domain without `minimise`.
    LearnerError
        If the learner misbehaves.
    """
    runs, memory = budget.of_at_least(FEWEST_RUNS).runs, execution.memory
    _check(losses, comparator)
    task = partial(play_block, learner, losses, budget.seed, label)
    stage = f"regret/{part}/{len(losses)}/{label}/{runs}"
    known = memory.recall_totals(stage) if memory is not None else {}
    missing = [block for block in blocks(runs) if block[0] not in known]
    for (number, _), (found, points) in zip(
        missing, in_parallel(task, missing, jobs=execution.jobs, alike=True), strict=True
    ):
        known[number] = [float(points), *found.tolist()]
        if memory is not None:
            memory.keep_totals(stage, number, known[number])
    totals = np.concatenate([known[number][1:] for number, _ in blocks(runs)])
    gap = 0.0
    if comparator is None:
        comparator, gap = best_fixed(learner, losses)
    bounds = total_bounds(learner, losses, points=bool(known[0][0]))
    # A learner that smooths its points may step outside its domain: then nothing bounds its losses.
    slack = 1e-9 * len(losses)
    if bounds is None or totals.min() < bounds[0] - slack or totals.max() > bounds[1] + slack:
        bounds = None
        low, high, method = *_student(totals, budget.confidence), NORMAL
    else:
        low, high, method = *_betting(totals, *bounds, budget.confidence), BETTING
    return Regret(
        mean=float(totals.mean()) - comparator,
        interval=(low - comparator, high - comparator + gap),
        interval_method=method,
        comparator=comparator,
        largest=None if bounds is None else bounds[1] - comparator,
        rounds=len(losses),
        runs=runs,
        confidence=budget.confidence,
    )


def _check(losses: World, comparator: float | None) -> None:
    if len(losses) == 0:
        raise ValueError("regret needs at least one round")
    for t, loss in enumerate(losses):
        if isinstance(loss, np.ndarray):
            check_told(loss, f"the loss of round {t + 1}")
    if comparator is not None and not math.isfinite(comparator):
        raise ValueError(f"comparator must be finite, got {comparator!r}")


@blaming
def play_block(learner: Learner, losses: World, seed: int, label: int, block: tuple[int, int]) -> tuple[Floats, bool]:
    """Return the total loss of every run, (runs,), and whether actions are points."""
    number, runs = block
    draws = Draws(seed, Stage.REGRET, pair=label, attack=len(losses), block=number)
    state = learner.start(runs, draws)
    totals = np.zeros(runs)
    points = False
    for t, loss in enumerate(losses):
        actions = learner.act(state, draws)
        check_actions(actions, learner.arms, runs, t)
        points = actions.ndim == 2
        incurred = feedback(loss, actions, "bandit")
        check_told(incurred, f"the loss of round {t + 1}")
        totals += incurred
        if t < len(losses) - 1:
            told = incurred if learner.feedback == "bandit" else feedback(loss, actions, "full")
            check_told(told, f"the loss of round {t + 1}")
            learner.update(state, actions, told, draws)
    return totals, points


def _betting(totals: Floats, low: float, high: float, confidence: float) -> tuple[float, float]:
    if low == high:
        return low, high
    return mean_interval(np.clip(totals, low, high), low, high, alpha=1 - confidence)


def _student(totals: Floats, confidence: float) -> tuple[float, float]:
    from scipy.stats import t

    n, mean = totals.size, float(totals.mean())
    deviation = float(t.ppf((1 + confidence) / 2, n - 1)) * float(totals.std(ddof=1)) / math.sqrt(n)
    return mean - deviation, mean + deviation
