"""Drawing arms from probabilities, all runs at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.draws import Draws, Floats
from .protocol import Arms


def draw_arm(p: Floats, draws: Draws) -> Arms:
    """Draw one arm per run from probabilities (arms, runs), by inverse distribution function: one uniform each."""
    u = draws.uniform(p.shape[1])
    arms: NDArray[Any] = np.zeros(u.size, dtype=np.int8 if len(p) < 128 else np.int32)
    for row in p[:-1]:
        u -= row
        arms += u >= 0
    return arms.astype(np.intp)


def of_arm(values: Floats, arms: Arms) -> Floats:
    """Return the played arm's entry of each run: values (arms, runs) to (runs,)."""
    runs = arms.size
    played: Floats = values.reshape(-1)[arms * runs + np.arange(runs)]
    return played
