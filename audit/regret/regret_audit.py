"""A learner's regret on adversarial sequences, held against the printed bound and growth rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...learners.blame import blaming
from ...learners.catalogue.entries import Entry, Setting
from ...learners.problems.losses import LOSS_SETS
from ...learners.protocol import Learner
from ...learners.scalar import recipe
from ..play.execution import HERE, Budget, Execution
from ..play.pairs import World
from .adversaries import regret_losses
from .growth import Growth, default_horizons, growth
from .measurement import BETTING, BUDGET, Regret, measure

#: VACUOUS: nothing could violate the bound at these horizons. UNDECIDED: the interval straddles what is promised.
HOLDS, VIOLATED, VACUOUS, UNDECIDED = "HOLDS", "VIOLATED", "VACUOUS", "UNDECIDED"
#: How far a fitted slope may lie above the promised exponent: logarithms and short horizons bend it.
TOLERANCE = 0.1
#: Growth is judged over at least so many doublings.
FEWEST_DOUBLINGS = 3
#: Beyond this horizon a bound that says nothing is not followed.
_FARTHEST = 2**60


@dataclass(frozen=True, kw_only=True)
class RegretAudit:
    """What a learner's regret is, beside what is printed about it.

    Attributes
    ----------
    regret, sequence
        The worst of the adversarial sequences at the setting's horizon, and its name.
    growth : Growth
        Of the worst sequence's mean at each horizon.
    bound, exponent, source
        What is printed, if anything.
    bound_slope : float or None
        The slope of the printed bound itself over the same horizons, with its logarithms.
    binds_from : int or None
        The horizon from which on the bound is below the largest possible regret, by the bound's own formula; None
        where it is not at 2^60, or nothing bounds the losses.
    bound_verdict : str or None
        Of the setting's horizon. VIOLATED: on some sequence the expected regret exceeds the bound. HOLDS: it is below
        the bound on every sequence played, and the bound is below the largest possible regret. VACUOUS: the bound is
        not below it. UNDECIDED: the interval straddles the bound, or is no exact one. VIOLATED and HOLDS are wrong
        with probability at most 1 - confidence.
    growth_verdict : str or None
        Of the largest regret over the sequences, between the first and the last horizon from `binds_from` on; VACUOUS
        where they span fewer than three doublings. VIOLATED or HOLDS where the certified growth between them is above,
        or below, the exponent or the bound's own slope, whichever is steeper, and the tolerance; else UNDECIDED.
    growth_lower, growth_upper : float or None
        The certified limits of that growth: of log regret by log T, from the intervals at both horizons.
    """

    regret: Regret
    sequence: str
    growth: Growth
    bound: float | None = None
    exponent: float | None = None
    source: str = ""
    bound_slope: float | None = None
    binds_from: int | None = None
    bound_verdict: str | None = None
    growth_verdict: str | None = None
    growth_lower: float | None = None
    growth_upper: float | None = None

    @property
    def verdict(self) -> str | None:
        """The worse of the two: VIOLATED, UNDECIDED, VACUOUS, HOLDS; None if nothing is claimed."""
        verdicts = (self.bound_verdict, self.growth_verdict)
        return next((v for v in (VIOLATED, UNDECIDED, VACUOUS, HOLDS) if v in verdicts), None)

    def to_json(self) -> dict[str, Any]:
        """Return what `overclaim regret --json` prints."""
        regret = self.regret.to_json()
        return {
            "mean_regret": regret.pop("mean"),
            **regret,
            "sequence": self.sequence,
            "bound": self.bound,
            "exponent": self.exponent,
            "slope": self.growth.slope,
            "slope_lower": self.growth.slope_lower,
            "slope_upper": self.growth.slope_upper,
            "horizons": list(self.growth.horizons),
            "regrets": list(self.growth.regrets),
            "bound_slope": self.bound_slope,
            "binds_from": self.binds_from,
            "bound_verdict": self.bound_verdict,
            "growth_verdict": self.growth_verdict,
            "growth_lower": self.growth_lower,
            "growth_upper": self.growth_upper,
            "verdict": self.verdict,
            "source": self.source,
        }


@blaming
def audit_regret(
    target: Entry | Any,
    setting: Setting,
    budget: Budget = BUDGET,
    execution: Execution = HERE,
    *,
    parameters: Mapping[str, Any] | None = None,
    horizons: Sequence[int] | None = None,
    sequences: Callable[[int], Mapping[str, World]] | None = None,
) -> RegretAudit:
    """Measure a learner's regret and hold it against the printed bound and growth rate.

    Parameters
    ----------
    target : Entry, or a user's object
        A user's object makes no claim: only the measurement is returned.
    setting : Setting
        The game; its `rounds` is the horizon of the bound.
    budget, execution
        As for `measure`. The confidence holds over all sequences together.
    parameters : mapping, optional
        The algorithm's own parameters.
    horizons : sequence of int, optional
        For the growth; default six doublings up to the setting's rounds, or from 16.
    sequences : callable, optional
        From a horizon to loss sequences by name; default `adversaries`, or for an entry with convex losses two
        extreme losses (quadratic ones tilted), held, alternating, switching and at random.

    Raises
    ------
    ValueError, LearnerError
        As `measure`, `growth` and `recipe`.
    """
    horizons = default_horizons(setting.rounds) if horizons is None else tuple(horizons)
    growth(horizons, [1.0] * len(horizons))  # refuse bad horizons before hours of play

    def play(rounds: int) -> _Played:
        game = replace(setting, rounds=rounds)
        learner = _build(target, game, parameters or {})
        chosen = sequences(rounds) if sequences else regret_losses(target, game, learner, budget.seed)
        _check_losses(chosen, game)
        each = replace(budget, confidence=1 - budget.alpha / (2 * len(chosen)))  # growth rests on two horizons
        found = [measure(learner, losses, each, execution, label=i) for i, losses in enumerate(chosen.values())]
        return _Played(learner, tuple(chosen), tuple(found))

    here = play(setting.rounds)
    played = {t: here if t == setting.rounds else play(t) for t in horizons}
    grown = growth(horizons, [played[t].worst.mean for t in horizons], confidence=budget.confidence)
    audit = RegretAudit(regret=replace(here.worst, confidence=budget.confidence), sequence=here.sequence, growth=grown)
    claim = target.regret if isinstance(target, Entry) else None
    if claim is None:
        return audit

    def bound_at(t: int) -> float:
        game = replace(setting, rounds=t)
        return _number(claim.bound(game, played[t].learner if t in played else _build(target, game, parameters or {})))

    return replace(
        audit, exponent=claim.exponent, source=claim.source, **_judge(claim.exponent, bound_at, setting, here, played)
    )


@dataclass(frozen=True)
class _Played:
    """The regret of a learner on adversarial sequences at one horizon."""

    learner: Learner
    names: tuple[str, ...]
    regrets: tuple[Regret, ...]

    @property
    def index(self) -> int:
        return int(np.argmax([regret.mean for regret in self.regrets]))

    @property
    def worst(self) -> Regret:
        return self.regrets[self.index]

    @property
    def sequence(self) -> str:
        return self.names[self.index]


def _judge(
    exponent: float, bound_at: Callable[[int], float], setting: Setting, here: _Played, played: Mapping[int, _Played]
) -> dict[str, Any]:
    """Return what a printed bound and growth rate come to."""
    bound, bounds = bound_at(setting.rounds), [bound_at(t) for t in played]
    largest = _largest_per_round(here.regrets)
    binds_from = None if largest is None else first_binding(bound_at, largest)
    printed = growth(tuple(played), bounds).slope if all(0 < b < math.inf for b in bounds) else None
    binding = {t: _limits(p.regrets) for t, p in played.items() if binds_from is not None and t >= binds_from}
    return {
        "bound": bound if math.isfinite(bound) else None,
        "bound_slope": printed,
        "binds_from": binds_from,
        "bound_verdict": judge_bound(here.regrets, bound),
        **_judge_growth(binding, exponent if printed is None else max(exponent, printed)),
    }


def judge_bound(found: Sequence[Regret], bound: float) -> str:
    """Return the verdict on a bound from the regret on every sequence, whose intervals hold together."""
    exact = [regret for regret in found if regret.interval_method == BETTING]
    if any(regret.interval[0] > bound for regret in exact):
        return VIOLATED
    if len(exact) < len(found):
        return UNDECIDED
    if all(regret.largest is not None and bound >= regret.largest for regret in exact):
        return VACUOUS
    return HOLDS if all(regret.interval[1] <= bound for regret in exact) else UNDECIDED


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

    high = _FARTHEST
    if not binds(high):
        return None
    while high > 1 and binds(high // 2):
        high //= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binds(middle) else (middle, high)
    return high


def _largest_per_round(found: Sequence[Regret]) -> float | None:
    largest = [regret.largest / regret.rounds for regret in found if regret.largest is not None]
    return max(largest) if len(largest) == len(found) else None


def _limits(found: Sequence[Regret]) -> tuple[float, float] | None:
    """Return limits of the largest expected regret over the sequences; None where an interval is not exact."""
    if any(regret.interval_method != BETTING for regret in found):
        return None
    return max(regret.interval[0] for regret in found), max(regret.interval[1] for regret in found)


def _judge_growth(limits: Mapping[int, tuple[float, float] | None], promised: float) -> dict[str, Any]:
    """Return the verdict on growth between the first and the last of these horizons, and its certified limits."""
    if not limits or max(limits) < 2**FEWEST_DOUBLINGS * min(limits):
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


def _check_losses(chosen: Mapping[str, World], game: Setting) -> None:
    """Raise ValueError unless every vector lies in the game's loss set."""
    for name, losses in chosen.items():
        for t, loss in enumerate(losses):
            if isinstance(loss, np.ndarray):
                LOSS_SETS[game.losses].check(loss, f"the loss of round {t + 1} of {name!r}")


def _number(bound: float) -> float:
    if math.isnan(bound):
        raise ValueError("the printed bound on regret is no number here: nothing to hold the measurement against")
    return float(bound)


def _build(target: Entry | Any, game: Setting, parameters: Mapping[str, Any]) -> Learner:
    if isinstance(target, Entry):
        return target.build(game, **parameters)
    return recipe(target, arms=game.arms, rounds=game.rounds, **parameters)
