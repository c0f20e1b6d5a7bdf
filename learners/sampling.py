"""Drawing arms from probabilities, all runs at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from ..mechanisms.draws import Draws, Floats
from .protocol import Arms

#: Divided by in place of a probability below it: an arm that is clamped may have none in the other world.
LEAST = 1e-300
#: Numbers that stay in a processor's second cache, with as many beside them.
_CACHED = 2**16


def stretches(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield some runs after the other: an array of that many rows, (rows, runs), stays near the processor for each."""
    rows, runs = shape
    width = max(1, _CACHED // max(1, rows))
    for start in range(0, runs, width):
        yield slice(start, start + width)


@cache
def smallest_type(arms: int) -> type[np.int8 | np.int16 | np.int32]:
    """Return the type that holds the arms in the least memory."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if arms <= np.iinfo(kind).max)


def draw_arm(p: Floats, draws: Draws) -> Arms:
    """Draw one arm per run from probabilities (arms, runs), by inverse distribution function: one uniform each."""
    u = draws.uniform(p.shape[1])
    arms = np.zeros(u.size, dtype=smallest_type(len(p)))
    for row in p[:-1]:
        u -= row
        arms += u >= 0
    return arms.astype(np.intp)


def of_arm(values: Floats, arms: Arms) -> Floats:
    """Return the played arm's entry of each run: values (arms, runs) to (runs,)."""
    runs = arms.size
    played: Floats = values.reshape(-1)[np.multiply(arms, runs, dtype=np.intp) + np.arange(runs)]
    return played
