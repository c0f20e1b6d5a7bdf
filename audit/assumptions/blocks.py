"""The blocks of runs that checks play, each on draws of its own, and whether several blocks follow one law."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from ...learners.protocol import Actions
from ...mechanisms.draws import Draws, Stage
from ..play.pairs import Pair

#: The false-alarm probability of the test for randomness that the runs of a block share. Real sharing is plain to see.
SHARED = 1e-9
#: Blocks that this test compares: of what plays all runs in one call, and of a mechanism that is called run by run.
SHARED_BLOCKS, ONE_BY_ONE_BLOCKS = range(8, 14), range(8, 20)
#: Blocks of one run each, of what plays all runs in one call.
ALONE_BLOCKS = range(128, 192)
#: Blocks on whose draws what was drawn once is drawn again: of two outcomes all are alike with probability 1e-6.
DRAWN_BLOCKS = range(32, 52)
#: Cells with fewer sequences over all samples are merged: the chi-square approximation needs large counts.
_FULL_CELL = 50
#: The last rounds whose joint law is compared.
_WINDOW = 6


class LearnerBlock(IntEnum):
    """What a block of a learner's checks is played for, beside `SHARED_BLOCKS`: the last part of its draws' key."""

    UNWATCHED = 0
    REPLAYED = 1
    OTHER = 2
    INTERVENING = 3  # between the two plays of REPLAYED, and for the size of the state
    QUIET = 4
    ORIGINAL = 5
    TWIN = 6
    LOSSES = 7
    ADVERSARY = 20
    DECLARED = 21
    NOISE = 22
    LAW = 23
    POOL = 24


class MechanismBlock(IntEnum):
    """The same of a mechanism's checks, beside `SHARED_BLOCKS` or `ONE_BY_ONE_BLOCKS`."""

    REPLAYED = 0
    OTHER = 1
    INTERVENING = 2
    FIRST = 3  # before any other call
    BEFORE = 4
    SECOND = 5
    AFTERWARDS = 6
    POOL = 7


def draws_of(seed: int, block: int) -> Draws:
    """Return the draws of a check's block."""
    return Draws(seed, Stage.CONFORMANCE, block=block)


def homogeneity_p_value(*samples: Actions) -> float:
    """Return a p-value of "all samples of action sequences, (rounds, [dim,] runs), have one law"."""
    if samples[0].ndim == 2:
        return _chi_square(*(sample[-_WINDOW:] for sample in samples))
    # Points: the quarters of each coordinate's range in the last two rounds, with Bonferroni's correction.
    p_values = []
    for i in range(samples[0].shape[1]):
        last = [sample[-2:, i] for sample in samples]
        edges = np.quantile(np.concatenate(last, axis=1), [0.25, 0.5, 0.75], axis=1).T
        binned = [np.stack([np.searchsorted(e, row) for e, row in zip(edges, x, strict=True)]) for x in last]
        p_values.append(_chi_square(*binned))
    return min(1.0, len(p_values) * min(p_values))


def _chi_square(*samples: NDArray[np.generic]) -> float:
    counts = [Counter(map(tuple, sample.T.tolist())) for sample in samples]
    totals: Counter[tuple[object, ...]] = sum(counts, start=Counter())
    full = [cell for cell, total in totals.items() if total >= _FULL_CELL]
    table = np.array([[count[cell] for cell in full] for count in counts]).reshape(len(samples), -1)
    rest = np.array([[count.total()] for count in counts]) - table.sum(axis=1, keepdims=True)
    if rest.sum() >= _FULL_CELL:
        table = np.hstack([table, rest])
    if table.shape[1] < 2:
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float(chdtrc((table.shape[0] - 1) * (table.shape[1] - 1), (np.square(table - expected) / expected).sum()))


def apart_if_exchanged(pair: Pair) -> float:
    """Return how far the left losses and the right ones, with their arms exchanged, favour different arms.

    Whether runs interact is seen by what runs on the former do beside others on the latter.
    """
    left, right = pair.left, pair.right
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        return 0.0
    return float(np.ptp(left - right[:, ::-1], axis=1).sum())
