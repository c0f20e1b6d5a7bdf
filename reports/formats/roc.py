"""The ROC curve of the scores of canaries: on log axes, beside what the claim allows and what is certified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...audit.record_types import ClaimRecord
from ...audit.statistics.measure_words import bound_words, unit_of
from ...errors import hinted
from ...mechanisms.measures.stated import measure_from_json
from ..reading import HELD_OUT, level, lower, measure_of, named_world
from .drawing import INK, LEFT, RED, available, draw, per_cent, standalone
from .sentences import evidence

if TYPE_CHECKING:
    from ...mechanisms.measures.measure import Measure
    from .drawing import Axes

TITLE = "ROC curve of the scores"
#: Points of the curves of a claim and of a bound.
_CURVE = 200


def roc(claim: ClaimRecord) -> tuple[str, str, str]:
    """Return the SVG of a claim's ROC curve, what it shows, and how to read it."""
    measure = measure_from_json(measure_of(claim))
    x, y, floor = _curves(claim)
    grid = np.geomspace(floor, 1.0, _CURVE)
    bound, rates = lower(claim), _rates(claim)

    def paint(axes: Axes) -> None:
        allowed = np.maximum(measure.allowed(grid), floor)
        axes.fill_between(grid, floor, allowed, color=RED, alpha=0.10, linewidth=0)
        axes.plot(grid, allowed, color=RED, linewidth=1.2, linestyle=(0, (4, 2)))
        if bound > 0:
            axes.plot(grid, np.maximum(_at(measure, bound).allowed(grid), floor), color=INK, linewidth=1.2)
        axes.plot(x, y, color=LEFT)
        if rates:
            axes.plot(*(max(rate, floor) for rate in rates), color=LEFT, marker="o", markersize=5, linewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(per_cent)
        axes.set_xlim(floor, 1)
        axes.set_ylim(floor, 1)
        for text, colour, height in (("scores", LEFT, 0.30), ("claim", RED, 0.21), ("certified", INK, 0.12)):
            if colour != INK or bound > 0:
                axes.text(0.97, height, text, color=colour, ha="right", va="top", transform=axes.transAxes)

    data = measure_of(claim)
    certified = f" Black: the largest curve of {unit_of(data)} {bound_words(data, bound)}." if bound > 0 else ""
    caption = (
        "Rates at each threshold. A training that keeps the claim stays inside the shaded region, but for "
        f"chance.{certified} Dot: the threshold of the evidence."
    )
    return draw(paint, "false-positive rate", "true-positive rate"), evidence(claim), caption


def _at(measure: Measure, bound: float) -> Measure:
    return measure if math.isclose(bound, measure.level) else measure.at(bound)


def _rates(claim: ClaimRecord) -> tuple[float, float] | None:
    event = named_world(claim)
    return (
        None
        if event is None or not event.runs or not event.other_runs
        else (event.misses / event.other_runs, event.hits / event.runs)
    )


def _curves(claim: ClaimRecord) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return both rates at every threshold, of what the evidence finds, and the least that log axes show."""
    scores, event = claim["scores"] or {}, named_world(claim)
    inserted, held_out = scores["inserted"], scores["canaries"] - scores["inserted"]
    true = np.array([0, *scores["roc"]["inserted"]]) / max(1, inserted)
    false = np.array([0, *scores["roc"]["held_out"]]) / max(1, held_out)
    if event is not None and event.name == HELD_OUT:
        true, false = 1 - false, 1 - true
    floor = 0.5 / max(1, inserted, held_out)
    return np.maximum(false, floor), np.maximum(true, floor), floor


def plot(claim: ClaimRecord) -> str:
    """Return a file of SVG with a claim's ROC curve; raise ValueError where nothing can draw it."""
    if not available():
        raise hinted(ValueError("--plot needs matplotlib"), "pip install 'overclaim[figures]'")
    svg, alternative, _ = roc(claim)
    return standalone(svg, f"{TITLE}: {level(claim):g} claimed", alternative)
