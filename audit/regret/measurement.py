"""Regret: measured on a loss sequence, with an honest interval.

A learner that learns nothing is private for free, so every privacy claim comes with this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...errors import must_be
from ...learners.problems.losses import check_told
from ...learners.protocol import Learner
from ...learners.scalar import plays_run_by_run
from ...mechanisms.draws import Floats
from ..execution.execution import IN_PROCESS, Budget, Execution
from ..execution.workers import in_parallel
from ..play.pairs import World
from ..play.transcripts import BLOCK
from ..record_types import RegretJson
from ..statistics.bounds.betting import anytime_mean_interval, mean_intervals
from .comparator import best_fixed, total_bounds
from .side_by_side import counted, play_block

#: How an interval was computed. The first two are exact at any number of runs; the third is for losses without a
#: bound, and no verdict rests on it.
BETTING, ANYTIME, NORMAL = "betting", "betting, anytime-valid", "normal approximation"
EXACT = (BETTING, ANYTIME)
#: The budget of a measurement that names none, and the fewest runs of one.
BUDGET, MIN_RUNS = Budget(runs=5000), 2
#: A plain class plays all its runs on so many sequences: those of the largest mean in a pilot of a tenth of them.
RACED, PILOT_SHARE = 3, 10
#: The label of that pilot: no measurement shares its draws.
RACE = 3_000_000
#: Runs that objects of a plain class play at a time: few, for a process has nothing to do until its block is there.
PLAIN_BLOCK = 512


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
    expected_losses : bool
        Whether the losses of a run are those expected under the probabilities that the learner states.
    """

    mean: float
    interval: tuple[float, float]
    interval_method: str
    comparator: float
    largest: float | None
    rounds: int
    runs: int
    confidence: float
    expected_losses: bool = False

    def to_json(self) -> RegretJson:
        """Return the record's form."""
        return {
            "mean_regret": self.mean,
            "interval": list(self.interval),
            "interval_method": self.interval_method,
            "comparator": self.comparator,
            "largest": self.largest,
            "rounds": self.rounds,
            "runs": self.runs,
            "confidence": self.confidence,
            "expected_losses": self.expected_losses,
        }


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
    expected : bool
        Whether a run's total is of the losses expected under the probabilities that the learner states, not of those
        of its arms: their mean is the same, the variance of a single round's no larger.
    """

    totals: Floats
    bounds: tuple[float, float] | None
    comparator: float
    gap: float
    rounds: int
    anytime: bool = False
    expected: bool = False

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
        return regrets([self], confidence)[0]

    def sample(self) -> tuple[Floats, float, float]:
        """Return the totals and what they cannot leave."""
        assert self.bounds is not None
        return np.clip(self.totals, *self.bounds), *self.bounds

    def none(self) -> Played:
        """Return the same without a run, to begin with."""
        return replace(self, totals=self.totals[:0], anytime=True)

    def with_more(self, other: Played) -> Played:
        """Return the runs of both, as one sample that was looked at between."""
        bounds = None if other.bounds is None else self.bounds
        return replace(self, totals=np.concatenate([self.totals, other.totals]), bounds=bounds, anytime=True)


def regrets(played: Sequence[Played], confidence: float) -> list[Regret]:
    """Return mean regrets with their intervals, each at this confidence: in less time than one after the other."""
    interval_of: dict[int, tuple[float, float, str]] = {}
    by_size: dict[int, list[int]] = {}
    for i, runs in enumerate(played):
        if runs.bounds is None:
            interval_of[i] = (*_student(runs.totals, confidence), NORMAL)
        elif runs.bounds[0] >= runs.bounds[1]:
            interval_of[i] = (*runs.bounds, ANYTIME if runs.anytime else BETTING)
        elif runs.anytime:
            interval_of[i] = (*anytime_mean_interval(*runs.sample(), alpha=1 - confidence), ANYTIME)
        else:
            by_size.setdefault(runs.totals.size, []).append(i)
    for indices in by_size.values():
        intervals = mean_intervals([played[i].sample() for i in indices], alpha=1 - confidence)
        interval_of |= {i: (*interval, BETTING) for i, interval in zip(indices, intervals, strict=True)}
    return [
        Regret(
            mean=runs.mean,
            interval=(low - runs.comparator, high - runs.comparator + runs.gap),
            interval_method=method,
            comparator=runs.comparator,
            largest=runs.largest,
            rounds=runs.rounds,
            runs=runs.totals.size,
            confidence=confidence,
            expected_losses=runs.expected,
        )
        for i, runs in enumerate(played)
        for low, high, method in (interval_of[i],)
    ]


def play_sequences(
    learner: Learner,
    sequences: Sequence[World],
    budget: Budget = BUDGET,
    execution: Execution = IN_PROCESS,
    *,
    comparator: float | None = None,
    label: int = 0,
    part: str = "",
    first: int = 0,
) -> list[Played]:
    """Play a learner on fixed loss sequences of one length, all its runs side by side.

    The best fixed action in hindsight is an arm; the best expert, where the learner has `advice`; the minimiser of a
    domain that offers `minimise(linear)`; else a vertex of the simplex. Under convex losses it is searched with the
    domain's `minimise`, and the interval allows for the search's gap.

    Parameters
    ----------
    sequences : sequence of arrays (rounds, arms), or of sequences of convex losses
        Oblivious: the same for every run. Each is met by the budget's runs.
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
        For parameters outside their range, losses that are not finite, or convex ones on a domain without `minimise`.
    LearnerError
        If the learner misbehaves.
    """
    runs, memory = budget.of_at_least(MIN_RUNS).runs, execution.memory
    for losses in sequences:
        _check(losses, comparator)
    quantity = counted(learner, sequences)
    task = partial(play_block, learner, sequences, budget.seed, label, quantity)
    n_sequences, rounds = len(sequences), len(sequences[0])
    stage = f"regret/{part}/{rounds}/{label}/{n_sequences} x {runs}"
    blocks = [(first + number, size) for number, size in shares(learner, runs, n_sequences)]
    bar = f"regret at T = {rounds:,}" if execution.progress else None
    block_totals = memory.recall_totals(stage) if memory is not None else {}
    missing = [block for block in blocks if block[0] not in block_totals]
    for (number, _), (totals_of_block, points) in zip(
        missing, in_parallel(task, missing, jobs=execution.jobs, equal_costs=True, progress=bar), strict=True
    ):
        block_totals[number] = [float(points), *totals_of_block.ravel().tolist()]
        if memory is not None:
            memory.keep_totals(stage, number, block_totals[number])
    totals = np.concatenate([np.reshape(block_totals[number][1:], (n_sequences, -1)) for number, _ in blocks], axis=1)
    points = bool(block_totals[first][0])
    return [
        _played(learner, losses, row, comparator, points=points, expected=quantity == "expected")
        for losses, row in zip(sequences, totals, strict=True)
    ]


def play_raced(
    learner: Learner, sequences: Sequence[World], budget: Budget = BUDGET, execution: Execution = IN_PROCESS
) -> list[Played]:
    """Play all runs on the three sequences that cost most in a pilot; return the pilot's runs of the others.

    How many runs there are depends on the budget alone. The pilot and the runs after it are independent: of `n`
    sequences at most `n + RACED` intervals can be wrong, each whatever was chosen.
    """
    pilot = replace(budget, runs=max(MIN_RUNS, budget.runs // PILOT_SHARE))
    played = play_sequences(learner, sequences, pilot, execution, label=RACE)
    worst = sorted(sorted(range(len(played)), key=lambda i: -played[i].mean)[:RACED])
    reruns = play_sequences(learner, [sequences[i] for i in worst], budget, execution)
    rerun_of = dict(zip(worst, reruns, strict=True))
    return [rerun_of.get(i, pilot_runs) for i, pilot_runs in enumerate(played)]


def shares(learner: Learner, runs: int, n_sequences: int) -> list[tuple[int, int]]:
    """Return (block number, runs of each sequence) for `runs` runs of each of so many sequences."""
    size = max(1, (PLAIN_BLOCK if plays_run_by_run(learner) else BLOCK) // n_sequences)
    return [(i, min(size, runs - i * size)) for i in range(-(-runs // size))]


def _played(
    learner: Learner, losses: World, totals: Floats, comparator: float | None, *, points: bool, expected: bool
) -> Played:
    gap = 0.0
    if comparator is None:
        comparator, gap = best_fixed(learner, losses, points=points)
    bounds = total_bounds(learner, losses, points=points)
    # A learner that smooths its points may step outside its domain: then nothing bounds its losses.
    slack = 1e-9 * len(losses)
    if bounds is not None and (totals.min() < bounds[0] - slack or totals.max() > bounds[1] + slack):
        bounds = None
    return Played(totals, bounds, comparator, gap, len(losses), expected=expected)


def _check(losses: World, comparator: float | None) -> None:
    if len(losses) == 0:
        raise ValueError("regret needs at least one round")
    # A table that is finite as a whole needs no look at each of its rounds.
    sound = isinstance(losses, np.ndarray) and losses.dtype != object and bool(np.isfinite(losses).all())
    for t, loss in enumerate(() if sound else losses):
        if isinstance(loss, np.ndarray):
            check_told(loss, f"the loss of round {t + 1}")
    if comparator is not None and not math.isfinite(comparator):
        raise must_be("comparator", "finite", comparator)


def _student(totals: Floats, confidence: float) -> tuple[float, float]:
    from scipy.stats import t

    n, mean = totals.size, float(totals.mean())
    deviation = float(t.ppf((1 + confidence) / 2, n - 1)) * float(totals.std(ddof=1)) / math.sqrt(n)
    return mean - deviation, mean + deviation
