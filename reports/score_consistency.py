"""What the coins of a record of scores decide, computed again: the bound, the p-value, the ROC curve, the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from ..audit.record_types import ClaimRecord, Design, ScoresJson
from ..audit.statistics.canary_scores import CanaryScores, ceiling, certified, coins_of, p_value_of
from ..mechanisms.measures.measure import Measure


class Due(NamedTuple):
    """A field of a record, and what it must be: each value of `due` is one, or they are the ends of a range."""

    field: str
    stated: Any
    due: Sequence[Any]


def due_of_scores(claim: ClaimRecord, measure: Measure, alphas: Sequence[float]) -> Iterator[Due]:
    """Yield fields of a claim with what follows for them from its scores.

    Raises
    ------
    ValueError
        For coins that are not as many as the canaries.
    """
    scores = cast(ScoresJson, claim["scores"])
    yield Due("runs", claim.get("runs"), [scores["canaries"]])
    yield Due("counts.runs_left", claim["counts"]["runs_left"], [scores["inserted"]])
    yield from _of_roc(scores)
    canaries = _canaries(claim)
    if scores.get("coins") is not None:
        yield Due("scores.inserted", scores["inserted"], [canaries.inserted])
        above = np.cumsum(canaries.coins)
        for i, (ins, outs) in enumerate(zip(*_points(scores), strict=True)):
            known = int(above[ins + outs - 1]) if 0 < ins + outs <= above.size else 0
            yield Due(f"scores.roc.inserted[{i}]", ins, [known])
    stated_bound = claim.get("lower") if not measure.is_epsilon else claim.get("epsilon_lower")
    if scores.get("coins") is None:
        most = [ceiling(canaries, measure, alpha=alpha) for alpha in alphas]
        if (stated_bound or 0.0) > max(most) * (1 + 1e-6):
            yield Due("lower", stated_bound, most)
        return
    made = [certified(canaries, measure, alpha=alpha) for alpha in alphas]
    bounds = [one.lower for one in made]
    yield Due("epsilon_lower", claim.get("epsilon_lower"), [one.epsilon_lower for one in made])
    yield Due("lower", claim.get("lower"), bounds)
    if (stated := claim.get("p_value")) is not None:
        p = [p_value_of(canaries, measure, alpha=a, lower=b) for a, b in zip(alphas, bounds, strict=True)]
        if not any(abs(math.log(max(stated, 1e-300) / one)) <= 1e-5 for one in p):
            yield Due("p_value", f"{stated:.6g}", [f"{p[0]:.6g}"])


def underpowered_by_scores(claim: ClaimRecord, measure: Measure, alpha: float) -> bool:
    """Return whether a perfect attack could not have refuted the claim from these canaries."""
    return ceiling(_canaries(claim), measure, alpha=alpha) <= measure.level


def _canaries(claim: ClaimRecord) -> CanaryScores:
    """Return the canaries of a record; where it keeps no coins, as a perfect attack would have scored them."""
    scores = cast(ScoresJson, claim["scores"])
    coins = coins_of(scores)
    if coins is None:
        coins = np.arange(scores["canaries"]) < scores["inserted"]
    return CanaryScores.of_order(cast(Design, claim["design"]), coins, seed=claim.get("seed") or 0)


def _points(scores: ScoresJson) -> tuple[list[int], list[int]]:
    return scores["roc"]["inserted"], scores["roc"]["held_out"]


def _of_roc(scores: ScoresJson) -> Iterator[Due]:
    """Yield what a ROC curve must be: as long on both axes, ascending, up to all canaries."""
    sides = _points(scores)
    yield Due("scores.roc", len(sides[0]), [len(sides[1])])
    totals = scores["inserted"], scores["canaries"] - scores["inserted"]
    for name, side, total in zip(("inserted", "held_out"), sides, totals, strict=True):
        yield Due(f"scores.roc.{name}", side[-1] if side else 0, [total])
        if any(after < before for before, after in pairwise(side)):
            yield Due(f"scores.roc.{name}", "descending", ["ascending"])
