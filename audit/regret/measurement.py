"""Regret: measured on a loss sequence, with an honest interval.

A learner that learns nothing is private for free, so every privacy claim comes with this.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from ...learners.blame import blaming
from ...learners.problems.losses import Loss, check_told, feedback
from ...learners.protocol import Actions, Learner
from ...mechanisms.draws import Draws, Floats, Stage
from ...mechanisms.philox import CounterDraws
from ..play.engines import in_parallel
from ..play.execution import HERE, Budget, Execution
from ..play.kernel_totals import has_kernel_for, play_totals
from ..play.pairs import World
from ..play.transcripts import blocks, play_rounds
from ..statistics.bounds.betting import anytime_mean_interval, mean_interval
from .comparator import best_fixed, total_bounds

#: Exact at any number of runs; and for losses that nothing bounds, which no verdict rests on.
BETTING, ANYTIME, NORMAL = "betting", "betting, anytime-valid", "normal approximation"
EXACT = (BETTING, ANYTIME)
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
        "betting" (exact at any number of runs), "betting, anytime-valid" (at a number that hung on the runs too), or
        "normal approximation" (for losses that nothing bounds).
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


@dataclass(frozen=True)
class Played:
    """The total losses of independent runs on one sequence, from which the mean regret and its interval follow.

    Attributes
    ----------
    totals : array (runs,)
    bounds : (float, float) or None
        What no run can leave.
    comparator, gap : float
        The total loss of the best fixed action, and how far above the least it may be.
    rounds : int
    anytime : bool
        Whether the number of runs hung on the runs themselves: then the interval is one that holds at all sizes.
    """

    totals: Floats
    bounds: tuple[float, float] | None
    comparator: float
    gap: float
    rounds: int
    anytime: bool = False

    @property
    def mean(self) -> float:
        """The mean regret."""
        return float(self.totals.mean()) - self.comparator

    @property
    def largest(self) -> float | None:
        """The regret of the worst actions; None where the losses are not bounded."""
        return None if self.bounds is None else self.bounds[1] - self.comparator

    def regret(self, confidence: float) -> Regret:
        """Return the mean regret with its interval.

        It is by betting (`betting`) where the losses of a run are bounded: arms, and points of a domain under linear
        losses. Otherwise it is Student's, and says "normal approximation".
        """
        if self.bounds is None:
            low, high, method = *_student(self.totals, confidence), NORMAL
        else:
            interval = anytime_mean_interval if self.anytime else mean_interval
            method = ANYTIME if self.anytime else BETTING
            low, high = self.bounds
            if low < high:
                low, high = interval(np.clip(self.totals, low, high), low, high, alpha=1 - confidence)
        return Regret(
            mean=self.mean,
            interval=(low - self.comparator, high - self.comparator + self.gap),
            interval_method=method,
            comparator=self.comparator,
            largest=self.largest,
            rounds=self.rounds,
            runs=self.totals.size,
            confidence=confidence,
        )

    def none(self) -> Played:
        """Return the same without a run, to begin with."""
        return replace(self, totals=self.totals[:0], anytime=True)

    def with_more(self, more: Played) -> Played:
        """Return the runs of both, as one sample that was looked at between."""
        bounds = None if more.bounds is None else self.bounds
        return replace(self, totals=np.concatenate([self.totals, more.totals]), bounds=bounds, anytime=True)


def play_runs(
    learner: Learner,
    losses: World,
    budget: Budget = BUDGET,
    execution: Execution = HERE,
    *,
    comparator: float | None = None,
    label: int = 0,
    part: str = "",
    first: int = 0,
) -> Played:
    """Play a learner on a fixed loss sequence.

    The best fixed action in hindsight is an arm; the best expert, where the learner has `advice`; the minimiser of a
    domain that offers `minimise(linear)`; else a vertex of the simplex. Under convex losses it is searched with the
    domain's `minimise`, and the interval allows for the search's gap.

    Parameters
    ----------
    losses : array (rounds, arms) or sequence of convex losses
        Oblivious: the same for every run.
    budget : Budget
        Its runs, and its seed.
    execution : Execution
        Its processes, and the memory of finished blocks.
    comparator : float, optional
        The total loss to compare with, where it is known.
    label : int
        Separates the draws of several measurements under one seed.
    part : str
        Tells this measurement from others of other learners in the same memory.
    first : int
        The number of the first block, where earlier ones were played before.

    Raises
    ------
    ValueError
        For parameters outside their range, losses that are not finite, or convex ones on a domain without `minimise`;
        or if `execution` is to be fast and Numba is missing.
    LearnerError
        If the learner misbehaves.
    """
    runs, memory = budget.of_at_least(FEWEST_RUNS).runs, execution.memory
    _check(losses, comparator)
    fast = execution.fast and has_kernel_for(learner, losses)
    task = partial(play_block, learner, losses, budget.seed, label, fast)
    stage = f"regret/{part}/{len(losses)}/{label}/{runs}{'/fast' if fast else ''}"
    wanted = [(first + number, size) for number, size in blocks(runs)]
    known = memory.recall_totals(stage) if memory is not None else {}
    missing = [block for block in wanted if block[0] not in known]
    for (number, _), (found, points) in zip(
        missing, in_parallel(task, missing, jobs=execution.jobs, alike=True), strict=True
    ):
        known[number] = [float(points), *found.tolist()]
        if memory is not None:
            memory.keep_totals(stage, number, known[number])
    totals = np.concatenate([known[number][1:] for number, _ in wanted])
    gap = 0.0
    if comparator is None:
        comparator, gap = best_fixed(learner, losses)
    bounds = total_bounds(learner, losses, points=bool(known[first][0]))
    # A learner that smooths its points may step outside its domain: then nothing bounds its losses.
    slack = 1e-9 * len(losses)
    if bounds is not None and (totals.min() < bounds[0] - slack or totals.max() > bounds[1] + slack):
        bounds = None
    return Played(totals, bounds, comparator, gap, len(losses))


def _check(losses: World, comparator: float | None) -> None:
    if len(losses) == 0:
        raise ValueError("regret needs at least one round")
    for t, loss in enumerate(losses):
        if isinstance(loss, np.ndarray):
            check_told(loss, f"the loss of round {t + 1}")
    if comparator is not None and not math.isfinite(comparator):
        raise ValueError(f"comparator must be finite, got {comparator!r}")


@blaming
def play_block(
    learner: Learner, losses: World, seed: int, label: int, fast: bool, block: tuple[int, int]
) -> tuple[Floats, bool]:
    """Return the total loss of every run, (runs,), and whether actions are points."""
    number, runs = block
    if fast:
        return play_totals(learner, losses, CounterDraws(seed, Stage.REGRET, label, len(losses), number), runs)
    draws = Draws(seed, Stage.REGRET, pair=label, part=len(losses), block=number)
    totals, incurred, points = np.zeros(runs), np.zeros(runs), False
    oblivious = [cast(Loss, loss) for loss in losses]

    def see(t: int, actions: Actions) -> None:
        nonlocal incurred, points, totals
        points = actions.ndim == 2
        incurred = feedback(oblivious[t], actions, "bandit")
        check_told(incurred, f"the loss of round {t + 1}")
        totals += incurred

    def feed(t: int, actions: Actions) -> Floats:
        if learner.feedback == "bandit":
            return incurred
        gradient = feedback(oblivious[t], actions, "full")
        check_told(gradient, f"the loss of round {t + 1}")
        return gradient

    play_rounds(learner, draws, runs, len(losses), see=see, feed=feed)
    return totals, points


def _student(totals: Floats, confidence: float) -> tuple[float, float]:
    from scipy.stats import t

    n, mean = totals.size, float(totals.mean())
    deviation = float(t.ppf((1 + confidence) / 2, n - 1)) * float(totals.std(ddof=1)) / math.sqrt(n)
    return mean - deviation, mean + deviation
