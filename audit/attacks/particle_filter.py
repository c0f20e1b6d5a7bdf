"""The particle filter, compiled: one transcript after the other, whose lanes are the nodes of all paths.

Kept apart from `particle`, which says what is filtered: these functions are linked to the inner learner's kernel.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...learners.protocol import Actions, Arrays, Numbers
from ...mechanisms.draws import Floats
from ...mechanisms.elementary import exp
from ...mechanisms.philox import LANES
from ..play.kernels import part

#: Paths are resampled where their weights have an effective sample size below 1 / POOR of them, to the quantiles
#: (i + OFFSET) / particles: numbers that no share of equal weights meets exactly, so that no last bit decides.
POOR, OFFSET = 2.0371, 0.3586

_law = _update = part  # of the inner learner


def filter_block(
    numbers: Numbers,
    fresh: Arrays,
    arrays: Arrays,
    kept: tuple[Floats, ...],
    stream: object,
    actions: Actions,
    shared: NDArray[np.int64],
    worlds: Floats,
    noise: Floats,
    setting: tuple[float, int, int, int, int],
    rows: Floats,
    chosen: NDArray[np.int64],
    scores: Floats,
) -> None:
    """Block: `ParticleRatio._filter`, one transcript after the other, each from where it leaves the one before."""
    scale, differing, nodes, begin, split = setting
    weight, fed, p, in_left = rows[1], rows[2:3], rows[3], rows[4]
    arms = chosen[0:1]
    steps = begin + len(actions)
    for i in range(LANES):
        weight[i], in_left[i] = 1.0, 1.0
    _keep_block(fresh, kept, rows, 0)
    for run in range(actions.shape[1]):
        _recall_block(arrays, kept, rows, shared[run])
        for step in range(begin + shared[run], steps):
            if begin + shared[run] < step <= begin + shared[run + 1]:
                _keep_block(arrays, kept, rows, step - begin)
            arm = actions[step - begin, run]
            for i in range(LANES):
                arms[0, i] = arm
            if step:  # the first law is the same for all
                _law(step, numbers, arrays, arms[0], p)
                for i in range(LANES):
                    weight[i] *= p[i]
            if step == steps - 1:
                break
            if step:
                before, after = (1 if step <= split else nodes), (1 if step < split else nodes)
                _resample_block(arrays, rows, chosen[1], before, after)
            left, right = worlds[0, step, arm], worlds[1, step, arm]
            if step == differing:
                for i in range(LANES):
                    y = rows[0, i] + (left if i % 2 == 0 else right)
                    in_left[i] = 2 / (1 + exp((abs(y - left) - abs(y - right)) / scale))
                    fed[0, i] = y
            else:
                for i in range(LANES):
                    fed[0, i] = left + noise[step - begin, i]
            _update(step, numbers, arrays, stream, arms, fed)
        scores[run] = _log_ratio(weight, in_left)


def _keep_block(arrays: Arrays, kept: tuple[Floats, ...], rows: Floats, depth: int) -> None:
    """Block: keep the states and the weights after so many actions."""
    for k in range(len(arrays)):
        _copy_block(arrays[k], kept[k][depth])
    for i in range(LANES):
        kept[-1][depth, 0, i], kept[-1][depth, 1, i] = rows[1, i], rows[4, i]


def _recall_block(arrays: Arrays, kept: tuple[Floats, ...], rows: Floats, depth: int) -> None:
    """Block: what `_keep_block` kept."""
    for k in range(len(arrays)):
        _copy_block(kept[k][depth], arrays[k])
    for i in range(LANES):
        rows[1, i], rows[4, i] = kept[-1][depth, 0, i], kept[-1][depth, 1, i]


def _copy_block(mine: Floats, other: Floats) -> None:
    """Block: copy all rows; Numba takes six times as long to compile whole arrays that are assigned to slices."""
    for row in range(len(mine)):
        for i in range(LANES):
            other[row, i] = mine[row, i]


def replay_block(numbers: Numbers, arrays: Arrays, stream: object, arms: Actions, told: Floats) -> None:
    """Block: the paths before the first action that is looked at; `arms` and `told` are (rounds, 1, LANES)."""
    for step in range(len(arms)):
        _update(step, numbers, arrays, stream, arms[step], told[step])


def _log_ratio(weight: Floats, in_left: Floats) -> float:
    """Return the logarithm of the two worlds' likelihood ratio; where one likelihood is 0, as NumPy has it."""
    likely, less = 0.0, 0.0
    for i in range(LANES):
        likely += weight[i] * in_left[i]
        less += weight[i] * (2 - in_left[i])
    if (likely > 0) & (less > 0):
        return math.log(likely) - math.log(less)
    return math.inf if likely > 0 else (-math.inf if less > 0 else math.nan)


def _resample_block(arrays: Arrays, rows: Floats, source: NDArray[np.int64], before: int, after: int) -> None:
    """Block: `ParticleRatio._resample` of one transcript's paths."""
    weight, path, room = rows[1], rows[5], rows[6]
    paths, many = LANES // before, LANES // after
    total, squares = 0.0, 0.0
    for j in range(paths):
        path[j] = 0.0
        for i in range(before):
            path[j] += weight[j * before + i]
        total += path[j]
        squares += path[j] * path[j]
    if total == 0:
        return
    for i in range(LANES):
        weight[i] *= paths / total
    if (before == after) & (squares * paths <= POOR * total * total):
        return
    below, last = path[0] * many / total, 0
    for j in range(many):  # quantiles rise, and so do the sums of weights: one pass
        while (below < j + OFFSET) & (last < paths - 1):
            last += 1
            below += path[last] * many / total
        for i in range(after):
            source[j * after + i] = last * before + i % before
            room[j * after + i] = paths / total * path[last]
    _take_block(weight, source, rows[3])
    for i in range(LANES):
        weight[i] /= room[i]
    for k in range(len(arrays)):
        for row in range(len(arrays[k])):
            _take_block(arrays[k][row], source, room)


def _take_block(values: Floats, source: NDArray[np.int64], room: Floats) -> None:
    """Block: `select` of one row."""
    for i in range(LANES):
        room[i] = values[i]
    for i in range(LANES):
        values[i] = room[np.uint64(source[i])]
