"""Compiled play of one world that keeps nothing but the total loss of every run: memory does not grow with T."""

from __future__ import annotations

import numpy as np

from ...learners.abilities import kernel_of
from ...learners.protocol import Actions, Arrays, Learner, Numbers
from ...mechanisms.draws import Floats
from ...mechanisms.philox import LANES, CounterDraws, lanes
from .kernels import FEW, WIDE, compiled, part, require_numba, restart, tell_arm, tell_point, teller
from .pairs import World


def has_kernel_for(learner: Learner, losses: World) -> bool:
    """Tell whether a learner can be played compiled on these losses.

    Raises
    ------
    ValueError
        If Numba is missing.
    """
    require_numba()
    kernel = kernel_of(learner)
    if kernel is None or not all(isinstance(loss, np.ndarray) for loss in losses):
        return False
    return kernel.horizon is None or len(losses) <= kernel.horizon


def play_totals(learner: Learner, losses: World, draws: CounterDraws, runs: int) -> tuple[Floats, bool]:
    """Return the total loss of every run on a loss sequence, (runs,), and whether actions are points.

    Parameters
    ----------
    losses : array (rounds, arms)
        Oblivious: the same for every run. `has_kernel_for` must be true of them.
    """
    kernel = kernel_of(learner)
    assert kernel is not None
    width = WIDE if sum(map(len, kernel.arrays)) <= FEW else LANES
    kernel = kernel_of(learner, width) or kernel
    points = kernel.dim is not None
    pay = tell_point if points else tell_arm
    padded = -(-runs // width) * width
    totals = np.zeros(padded)
    played = lanes(kernel.dim or 1, 0.0, width)
    compiled(_totals, width, act=kernel.act, update=kernel.update, tell=teller(learner, kernel), pay=pay)(
        kernel.numbers,
        kernel.arrays,
        tuple(lanes(len(array), 0.0, width) for array in kernel.arrays),
        (np.append(draws.words, np.uint64(0)), np.zeros(1, np.int64), *lanes(2, 0.0, width)),
        np.asarray(losses, dtype=np.float64),
        lanes(learner.arms if learner.feedback == "full" else 1, 0.0, width),
        lanes(1, 0.0, width),
        played if points else played.view(np.intp),
        totals,
    )
    return totals[:runs], points


act = update = tell = pay = part


def _totals(
    numbers: Numbers,
    fresh: Arrays,
    arrays: Arrays,
    stream: object,
    losses: Floats,
    fed: Floats,
    paid: Floats,
    played: Actions,
    totals: Floats,
) -> None:
    """Play every run of a block, `LANES` at a time."""
    for first in range(0, len(totals), LANES):
        restart(first, fresh, arrays, stream)
        for t in range(len(losses)):
            act(t, numbers, arrays, stream, played)
            pay(losses[t], played, paid)
            for i in range(LANES):
                totals[np.uint64(first + i)] += paid[0, i]
            if t + 1 < len(losses):
                tell(losses[t], played, fed)
                update(t, numbers, arrays, stream, played, fed)
