"""The ROC curve of the scores of canaries: on log axes, beside what the claim allows and what is certified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...audit.record_types import ClaimRecord
from ...audit.statistics.measure_words import bound_words, claimed_words, unit_of
from ...errors import hinted
from ...mechanisms.measures.stated import measure_from_json
from ..reading import HELD_OUT, level, lower, measure_of, named_world
from .drawing import BAD, INK, LEFT, available, draw, per_cent, standalone

if TYPE_CHECKING:
    from ...mechanisms.measures.measure import Measure
    from .drawing import Axes

TITLE = "ROC curve of the scores"
#: Points of the curves of a claim and of a bound.
_CURVE = 200


def roc(claim: ClaimRecord) -> tuple[str, str, str]:
    """Return the SVG of a claim's ROC curve, what it shows, and how to read it."""
    scores, measure = claim["scores"] or {}, measure_from_json(measure_of(claim))
    inserted = max(1, scores["inserted"])
    held_out = max(1, scores["canaries"] - scores["inserted"])
    floor = 0.5 / max(inserted, held_out)
    x = np.maximum(np.array([0, *scores["roc"]["held_out"]]) / held_out, floor)
    y = np.maximum(np.array([0, *scores["roc"]["inserted"]]) / inserted, floor)
    grid = np.geomspace(floor, 1.0, _CURVE)
    bound = lower(claim)

    def paint(axes: Axes) -> None:
        allowed = np.maximum(measure.allowed(grid), floor)
        axes.fill_between(grid, floor, allowed, color=BAD, alpha=0.10, linewidth=0)
        axes.plot(grid, allowed, color=BAD, linewidth=1.2, linestyle=(0, (4, 2)))
        if bound > 0:
            axes.plot(grid, np.maximum(_at(measure, bound).allowed(grid), floor), color=INK, linewidth=1.2)
        axes.plot(x, y, color=LEFT)
        axes.plot(*_threshold(claim, floor), color=LEFT, marker="o", markersize=5, linewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(per_cent)
        axes.set_xlim(floor, 1)
        axes.set_ylim(floor, 1)
        for text, colour, height in (("scores", LEFT, 0.30), ("claim", BAD, 0.21), ("certified", INK, 0.12)):
            if colour != INK or bound > 0:
                axes.text(0.97, height, text, color=colour, ha="right", va="top", transform=axes.transAxes)

    false, true = _threshold(claim, 0.0)
    stated = measure_of(claim)
    alternative = (
        f"at the threshold {true[0]:.1%} of the included canaries and {false[0]:.1%} of the held-out ones are above; "
        f"the claim of {claimed_words(stated)} allows {float(measure.allowed(false[0])):.1%}"
    )
    certified = f" Black: the largest curve of {unit_of(stated)} {bound_words(stated, bound)}." if bound > 0 else ""
    caption = (
        "Shares of canaries above each threshold. A training that keeps the claim stays inside the shaded region, but "
        f"for chance.{certified} Dot: the threshold that shows most."
    )
    return draw(paint, "held-out canaries above", "included canaries above"), alternative, caption


def _at(measure: Measure, bound: float) -> Measure:
    """Return the measure at the certified level."""
    return measure if math.isclose(bound, measure.level) else measure.at(bound)


def _threshold(claim: ClaimRecord, floor: float) -> tuple[list[float], list[float]]:
    """Return the rates of both kinds of canaries above the threshold of a record."""
    world = named_world(claim)
    if world is None or not world.runs or not world.others:
        return [floor], [floor]
    here, there = world.hits / world.runs, world.misses / world.others
    false, true = (1 - here, 1 - there) if world.name == HELD_OUT else (there, here)
    return [max(false, floor)], [max(true, floor)]


def plot(claim: ClaimRecord) -> str:
    """Return a file of SVG with a claim's ROC curve; raise ValueError where nothing can draw it."""
    if not available():
        raise hinted(ValueError("--plot needs matplotlib"), "pip install 'overclaim[figures]'")
    svg, alternative, _ = roc(claim)
    return standalone(svg, f"{TITLE}: {level(claim):g} claimed", alternative)
