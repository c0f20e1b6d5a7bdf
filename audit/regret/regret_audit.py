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
from ..play.pairs import World
from .adversaries import regret_losses
from .growth import Growth, default_horizons, growth
from .measurement import Regret, Totals, measure

#: UNDERPOWERED: steeper than promised, at horizons too short for the promise to bind.
HOLDS, VIOLATED, UNDERPOWERED = "HOLDS", "VIOLATED", "UNDERPOWERED"
#: How far a fitted slope may lie above the promised exponent: logarithms and short horizons bend it.
TOLERANCE = 0.1


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
    bound_verdict : str or None
        VIOLATED if the expected regret exceeds the bound, with the stated confidence over all sequences.
    growth_verdict : str or None
        VIOLATED if the lower limit of the slope exceeds the exponent, and the slope of the bound itself with its
        logarithms, by more than the tolerance; but UNDERPOWERED where the bound says nothing at the first horizon, as
        regret may still be linear there.
    """

    regret: Regret
    sequence: str
    growth: Growth
    bound: float | None = None
    exponent: float | None = None
    source: str = ""
    bound_verdict: str | None = None
    growth_verdict: str | None = None

    @property
    def verdict(self) -> str | None:
        """The worse of the two: VIOLATED, UNDERPOWERED, HOLDS; None if nothing is claimed."""
        verdicts = (self.bound_verdict, self.growth_verdict)
        return next((v for v in (VIOLATED, UNDERPOWERED, HOLDS) if v in verdicts), None)

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
            "bound_verdict": self.bound_verdict,
            "growth_verdict": self.growth_verdict,
            "verdict": self.verdict,
            "source": self.source,
        }


@blaming
def audit_regret(
    target: Entry | Any,
    setting: Setting,
    *,
    parameters: Mapping[str, Any] | None = None,
    horizons: Sequence[int] | None = None,
    sequences: Callable[[int], Mapping[str, World]] | None = None,
    runs: int = 5000,
    seed: int = 0,
    confidence: float = 0.99,
    jobs: int = 1,
    memory: Totals | None = None,
) -> RegretAudit:
    """Measure a learner's regret and hold it against the printed bound and growth rate.

    Parameters
    ----------
    target : Entry, or a user's object
        A user's object makes no claim: only the measurement is returned.
    setting : Setting
        The game; its `rounds` is the horizon of the bound.
    parameters : mapping, optional
        The algorithm's own parameters.
    horizons : sequence of int, optional
        For the growth; default six doublings up to the setting's rounds, or from 16.
    sequences : callable, optional
        From a horizon to loss sequences by name; default `adversaries`, or for an entry with convex losses two
        extreme losses (quadratic ones tilted), held, alternating, switching and at random.
    runs, seed, confidence, jobs, memory
        As for `measure`. The confidence holds over all sequences together.

    Raises
    ------
    ValueError, LearnerError
        As `measure`, `growth` and `recipe`.
    """
    horizons = default_horizons(setting.rounds) if horizons is None else tuple(horizons)
    growth(horizons, [1.0] * len(horizons))  # refuse bad horizons before hours of play

    def worst(rounds: int) -> tuple[Learner, str, list[Regret], int]:
        game = replace(setting, rounds=rounds)
        learner = _build(target, game, parameters or {})
        chosen = sequences(rounds) if sequences else regret_losses(target, game, learner, seed)
        _check_losses(chosen, game)
        level = 1 - (1 - confidence) / len(chosen)
        found = [
            measure(learner, losses, runs=runs, seed=seed, confidence=level, jobs=jobs, label=i, memory=memory)
            for i, losses in enumerate(chosen.values())
        ]
        index = int(np.argmax([regret.mean for regret in found]))
        return learner, list(chosen)[index], found, index

    learner, sequence, found, index = worst(setting.rounds)
    means, built_at, largest_at = {}, {}, {}
    for t in horizons:
        built_at[t], _, others, i = (learner, sequence, found, index) if t == setting.rounds else worst(t)
        means[t], largest_at[t] = others[i].mean, others[i].largest
    grown = growth(horizons, [means[t] for t in horizons], confidence=confidence)
    audit = RegretAudit(regret=replace(found[index], confidence=confidence), sequence=sequence, growth=grown)
    claim = target.regret if isinstance(target, Entry) else None
    if claim is None:
        return audit
    bound = _number(claim.bound(setting, learner))
    violated = max(regret.interval[0] for regret in found) > bound
    bounds = [float(claim.bound(replace(setting, rounds=t), built_at[t])) for t in horizons]
    return replace(
        audit,
        bound=bound if math.isfinite(bound) else None,
        exponent=claim.exponent,
        source=claim.source,
        bound_verdict=VIOLATED if violated else HOLDS,
        growth_verdict=_judge_growth(grown, claim.exponent, bounds, largest_at[horizons[0]]),
    )


def _judge_growth(grown: Growth, exponent: float, bounds: Sequence[float], largest: float | None) -> str:
    finite = all(0 < bound < math.inf for bound in bounds)
    printed = growth(grown.horizons, bounds).slope if finite else None
    allowed = max(exponent, exponent if printed is None else printed) + TOLERANCE
    if grown.slope_lower is None or grown.slope_lower <= allowed:
        return HOLDS
    return VIOLATED if finite and largest is not None and bounds[0] < largest else UNDERPOWERED


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
