"""What one run costs on a pair, by its trace: a number without noise that ranks pairs, and bounds nothing."""

from __future__ import annotations

import math
from typing import Any

from ...learners.protocol import LearnerError
from ...mechanisms.claim import Claim
from .costs import path_cost
from .replay import traces
from .tape import UntraceableError
from .watched import UnreadNoiseError


def cost_of_one_run(target: Any, pair: Any, claim: Claim, *, seed: int = 0) -> float | None:
    """Return what the noise of one run, or of one block, costs on a pair in the claim's measure.

    It is infinite where a value that differs has no noise, and None where the target cannot be traced, raises, or
    decides by noise before it releases it.
    """
    try:
        replays = traces(target, pair, seed=seed, view=claim.view, once=True)
    except (UntraceableError, UnreadNoiseError, LearnerError):
        return None
    leaks = [one.leak for one in replays if one.leak is not None]
    if leaks:
        return math.inf if any(leak.bypass for leak in leaks) else None
    costs = [path_cost(one.calls, one.runs) for one in replays if one.calls]
    if not costs:
        return None
    levels = [one.level(claim.measure) for one in costs]
    values = [one.epsilon(claim.delta) if level is None else level for one, level in zip(costs, levels, strict=True)]
    worst = max(float(value.max()) for value in values)
    return None if math.isnan(worst) else worst
