"""Measures in words, as records hold them: what is claimed, and what was certified, each in the measure's own unit.

A record may be an older one or anyone's: whatever fits its schema has words.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...mechanisms.measures.kinds import KINDS
from .digits import at_least

if TYPE_CHECKING:
    from ..record_types import MeasureJson


#: In a claim's own measure: what it promises, the less the better. The rest of a measure says in what it is stated.
LEVELS = tuple(dict.fromkeys(("epsilon", *(kind.unit for kind in KINDS.values()))))
SYMBOLS = {"epsilon": "ε", "delta": "δ", **{kind.unit: kind.symbol for kind in KINDS.values()}}


def unit_of(measure: MeasureJson) -> str:
    """Return the name of a measure's level: "epsilon", "delta", "mu", "rho" or "multiple"."""
    kind = KINDS.get(str(measure.get("kind")))
    if kind is not None:
        return kind.unit
    return "delta" if measure.get("epsilon") == 0 and measure.get("delta") else "epsilon"


def level_of(measure: MeasureJson) -> float:
    """Return what is claimed, in that unit; 1 where a record does not say."""
    level = measure.get(unit_of(measure))
    return float(level) if isinstance(level, int | float) and level > 0 else 1.0


def written(number: float) -> str:
    """Return a number with all of its digits."""
    return repr(float(number)).removesuffix(".0")


def is_epsilon(measure: MeasureJson) -> bool:
    """Tell whether what is claimed is an epsilon above 0, at a delta."""
    return measure.get("kind") in (None, "approximate") and unit_of(measure) == "epsilon"


def at_delta(delta: float) -> str:
    """Return the delta that an epsilon is stated at, to be put behind a number."""
    return f" at delta {delta:.10g}"


def beside(measure: MeasureJson) -> str:
    """Return what the level is stated at, to be put behind a number."""
    if measure.get("kind") == "rdp":
        return f" at Rényi order {written(measure.get('order', math.nan))}"
    if unit_of(measure) == "delta":
        return " at epsilon 0"
    return at_delta(measure["delta"]) if is_epsilon(measure) and measure.get("delta") else ""


def spent_words(method: str) -> str:
    """Return from which runs a perfect attack catches what "at best" says: an early end takes none of them away."""
    return "the whole budget" if method == "anytime" else "this many runs"


def caught_words(detectable: float | None, claimed: float) -> str:
    """Return the least epsilon that a budget catches behind a claim, in digits that tell them apart; or that of none.

    It is that of Laplace noise: where none is caught nine times in ten, what shows more still may be.
    """
    if detectable is None or not math.isfinite(detectable):
        return "no violation by Laplace noise nine times in ten"
    text = f"{detectable:.4g}"
    return text if float(text) > claimed else at_least(detectable, claim=claimed)


def claimed_words(measure: MeasureJson) -> str:
    """Return what is claimed."""
    if measure.get("kind") == "profile":
        points = measure.get("points") or []
        return f"a profile of {len(points)} point{'s' * (len(points) != 1)}"
    return f"{unit_of(measure)} {level_of(measure):.10g}{beside(measure)}"


def bound_words(measure: MeasureJson, lower: float) -> str:
    """Return a level behind "at least"."""
    of_profile = measure.get("kind") == "profile"
    times = " times the claimed profile at one of its points" if of_profile else beside(measure)
    return f"{at_least(lower, claim=level_of(measure))}{times}"


def subject_of(measure: MeasureJson) -> str:
    """Return of what a bound is said."""
    return "the true profile" if measure.get("kind") == "profile" else unit_of(measure)


def level_words(measure: MeasureJson) -> str:
    """Return what a level counts."""
    return "the multiple of the profile" if measure.get("kind") == "profile" else unit_of(measure)


def lower_words(measure: MeasureJson, lower: float) -> str:
    """Return a level with the name of its unit, as "rho is at least 0.5"."""
    return f"{subject_of(measure)} is at least {bound_words(measure, lower)}"
