"""Verdicts on regret: what intervals say of a bound and of its growth, and from which horizon on a bound binds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ...learners.protocol import Learner
from ...mechanisms.numerics import fewest
from ..execution.execution import Budget
from ..play.pairs import World
from .growth import Growth
from .measurement import EXACT, Played, Regret, regrets

#: VACUOUS: nothing could violate the bound at these horizons. UNDECIDED: the interval straddles what is promised.
HOLDS, VIOLATED, VACUOUS, UNDECIDED = "HOLDS", "VIOLATED", "VACUOUS", "UNDECIDED"
#: The source of a bound that is a user's.
YOURS = "your bound"
#: How far a fitted slope may lie above the promised exponent: logarithms and short horizons bend it.
TOLERANCE = 0.1
#: Growth is judged over at least so many doublings, from where the bound says something on: fewer than a fit spans
#: (`growth.DOUBLINGS`), for it is certified by the intervals at both ends, which the words name.
MIN_DOUBLINGS = 3
#: Beyond this horizon a bound that says nothing is not followed.
_MAX_HORIZON = 2**60


def regret_verdict(verdict: object) -> str:
    """Return a verdict on regret with what it is about: other sequences may cost more than those that were played."""
    return f"{HOLDS} on the sequences played" if verdict == HOLDS else str(verdict)


def promised_growth(exponent: float, bound_slope: float | None) -> tuple[float, str]:
    """Return what growth is held against, the steeper of a bound's exponent and its own slope, and what that is."""
    return (
        (exponent, "exponent")
        if bound_slope is None or bound_slope <= exponent
        else (bound_slope, "bound's own slope")
    )


def growth_words(verdict: object, binds_from: int | None, against: str, horizons: Iterable[int] = ()) -> str:
    """Return a verdict on growth in words: how far above what it is held to HOLDS may lie, what VACUOUS waits for.

    The others name the horizons that they are about, of those played: the first and the last from `binds_from` on.
    """
    judged = [t for t in horizons if binds_from is not None and t >= binds_from]
    span = f", from T = {min(judged):,} to T = {max(judged):,}" if judged else ""
    if verdict == HOLDS:
        return f"{regret_verdict(verdict)}, to within {TOLERANCE} of the {against}{span}"
    if verdict == VACUOUS:
        start = f"T = {binds_from:,}" if binds_from else "where the bound says something"
        return f"not yet, it takes {MIN_DOUBLINGS} doublings of the horizon from {start} on"
    return f"{verdict}{span}"


def judge_bound(regrets: Sequence[Regret], bound: float) -> str:
    """Return the verdict on a bound from the regret on every sequence, whose intervals hold together."""
    exact = [regret for regret in regrets if regret.interval_method in EXACT]
    if any(regret.interval[0] > bound for regret in exact):
        return VIOLATED
    if len(exact) < len(regrets):
        return UNDECIDED
    if all(regret.largest is not None and bound >= regret.largest for regret in exact):
        return VACUOUS
    return HOLDS if all(regret.interval[1] <= bound for regret in exact) else UNDECIDED


def decisive(regrets: Sequence[Regret], bound: float) -> int:
    """Return the largest mean's place, of those that decide, with the most runs: others may have wide intervals."""
    verdict = judge_bound(regrets, bound)
    deciding = [i for i, regret in enumerate(regrets) if verdict == HOLDS or judge_bound([regret], bound) == verdict]
    return max(deciding or range(len(regrets)), key=lambda i: (regrets[i].runs, regrets[i].mean))


class HorizonRuns:
    """A learner's runs on adversarial sequences at one horizon; intervals, which cost time, where they are asked for.

    All of them hold together, and with those of one other horizon: growth rests on two. `n_reruns` is the number of
    sequences that were played twice, in a pilot and after it (`play_raced`).
    """

    def __init__(
        self,
        learner: Learner,
        sequences: Mapping[str, World],
        played: Sequence[Played],
        budget: Budget,
        n_reruns: int = 0,
    ) -> None:
        self.learner, self.names, self.played = learner, tuple(sequences), tuple(played)
        self.confidence = 1 - budget.alpha / (2 * (len(self.names) + n_reruns))

    @property
    def index(self) -> int:
        """The largest mean's place, of those with the most runs."""
        return max(range(len(self.played)), key=lambda i: (self.played[i].totals.size, self.played[i].mean))

    @property
    def worst(self) -> Played:
        """The runs on that sequence."""
        return self.played[self.index]

    @property
    def growth(self) -> Growth:
        """The mean of this horizon alone."""
        return Growth((self.worst.rounds,), (self.worst.mean,), None, None, None)

    @property
    def bounded(self) -> bool:
        """Whether the losses of all runs are bounded."""
        return all(runs.largest is not None for runs in self.played)

    def regret(self, index: int) -> Regret:
        """Return the regret on one sequence."""
        return self.regrets[index] if "regrets" in vars(self) else self.played[index].regret(self.confidence)

    @cached_property
    def regrets(self) -> list[Regret]:
        """The regret on every sequence."""
        return regrets(self.played, self.confidence)

    def verdict(self, bound: float) -> str:
        """Return the verdict on a bound."""
        if all(runs.largest is not None and bound >= runs.largest for runs in self.played):
            return VACUOUS
        return judge_bound(self.regrets, bound)

    def decisive(self, bound: float) -> int:
        """Return the sequence that a verdict on the bound is shown with."""
        return self.index if self.verdict(bound) == VACUOUS else decisive(self.regrets, bound)

    def limits(self) -> tuple[float, float] | None:
        """Return limits of the largest expected regret over the sequences; None where an interval is not exact."""
        if not self.bounded:
            return None
        return max(regret.interval[0] for regret in self.regrets), max(regret.interval[1] for regret in self.regrets)


def as_bound(value: float) -> float:
    """Return a bound as a float; raise ValueError for what is no number."""
    if math.isnan(value):
        raise ValueError("the printed bound on regret is no number here: nothing to hold the measurement against")
    return float(value)


def first_binding(bound_at: Callable[[int], float], largest_per_round: float) -> int | None:
    """Return the horizon from which on a bound is below the largest possible regret; None if it is not at 2^60.

    Found by doubling and bisection: exact where the bound crosses the largest regret once between two powers of two.
    A bound may say something at tiny horizons too, where its logarithms are 0: that is not what is asked.
    """

    def binds(t: int) -> bool:
        try:
            return bool(bound_at(t) < largest_per_round * t)
        except ValueError:  # so short a game is refused
            return False

    high = _MAX_HORIZON
    if not binds(high):
        return None
    while high > 1 and binds(high // 2):
        high //= 2
    return fewest(binds, high // 2, high)


#: What a printed bound and growth rate come to: fields of a `RegretAudit`.
Judged = dict[str, Any]


def without_violations(judged: Judged) -> Judged:
    """Return the verdicts on a bound without its constant: with a larger one than 1 it may say nothing yet."""
    lenient = judged.copy()
    if judged["bound_verdict"] == VIOLATED:
        lenient["bound_verdict"] = UNDECIDED
    if judged.get("growth_verdict") == VIOLATED:
        lenient["growth_verdict"] = UNDECIDED
    return lenient


def judge_growth(limits: Mapping[int, tuple[float, float] | None], promised: float) -> Judged:
    """Return the verdict on growth between the first and the last of these horizons, and its certified limits."""
    if not limits or max(limits) < 2**MIN_DOUBLINGS * min(limits):
        return {"growth_verdict": VACUOUS}
    first, last = limits[min(limits)], limits[max(limits)]
    if first is None or last is None:
        return {"growth_verdict": UNDECIDED}
    doublings = math.log(max(limits) / min(limits))
    lower = math.log(last[0] / first[1]) / doublings if last[0] > 0 and first[1] > 0 else None
    upper = math.log(last[1] / first[0]) / doublings if last[1] > 0 and first[0] > 0 else None
    verdict = UNDECIDED
    if lower is not None and lower > promised + TOLERANCE:
        verdict = VIOLATED
    elif last[1] <= 0 or (upper is not None and upper <= promised + TOLERANCE):
        verdict = HOLDS
    return {"growth_verdict": verdict, "growth_lower": lower, "growth_upper": upper}
