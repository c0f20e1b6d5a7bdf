"""What one run costs on a pair, by its trace: a number without noise that ranks pairs, and bounds nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...learners.protocol import LearnerError
from ...mechanisms.claim import Claim
from .costs import path_cost
from .parting import REL_TOLERANCE
from .replay import Trace, traces
from .tape import UntraceableError
from .watched import UnreadNoiseError


def cost_of_one_run(target: Any, pair: Any, claim: Claim, *, seed: int = 0) -> float | None:
    """Return what the noise of one run, or of one block, costs on a pair in the claim's measure.

    It is infinite where a value that differs has no noise, and None where the target cannot be traced, raises, or
    decides by noise before it releases it. Where the scale of noise depends on the input, which no composition
    bounds, it is the claim and the log ratio of both scales: more than any cost that shows nothing.
    """
    try:
        replays = traces(target, pair, seed=seed, view=claim.view, first_alone=True)
    except (UntraceableError, UnreadNoiseError, LearnerError):
        return None
    leaks = [replay.leak for replay in replays if replay.leak is not None]
    if leaks and any(leak.bypass for leak in leaks):
        return math.inf
    if leaks:
        gap = max(map(_scale_gap, replays))
        return claim.measure.level + gap if gap > 0 else None
    costs = [path_cost(replay.calls, replay.runs) for replay in replays if replay.calls]
    if not costs:
        return None
    levels = [run_cost.level(claim.measure) for run_cost in costs]
    values = [
        run_cost.epsilon(claim.delta) if level is None else level
        for run_cost, level in zip(costs, levels, strict=True)
    ]
    worst = max(float(value.max()) for value in values)
    return None if math.isnan(worst) else worst


def _scale_gap(replay: Trace) -> float:
    """Return the log ratio of the scales of the first noise whose scale differs between the inputs; 0 without one."""
    for left, right in zip(replay.left, replay.right, strict=False):
        laws: tuple[Any, Any] = (getattr(left, "law", None), getattr(right, "law", None))
        scales: list[Any] = [getattr(law, "scale", getattr(law, "sigma", None)) for law in laws]
        if type(laws[0]) is not type(laws[1]) or None in scales or np.shape(scales[0]) != np.shape(scales[1]):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = float(np.max(np.abs(np.log(scales[0]) - np.log(scales[1])), initial=0.0))
        if gap > REL_TOLERANCE:
            return gap
    return 0.0
