"""Whether the runs of a mechanism are independent: its only randomness the generator, and no memory.

Intervals count runs as independent trials. What can be caught before certification, in it and after it, is refused, so
that no record claims anything of such a mechanism; a sound one is refused with probability below 1e-6.

References
----------
.. [1] A. Wald, J. Wolfowitz. On a test whether two samples are from the same population. Ann. Math. Stat. 11, 1940.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from types import FunctionType

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...errors import hinted
from ...learners.abilities import is_ours
from ...learners.blame import name_of
from ...learners.protocol import Learner, LearnerError
from ...learners.scalar import OS_CURE, Scalar, state_cures
from ...mechanisms.draws import Floats
from ...mechanisms.numerics import rounded
from ..encoding.encoder import Encoder
from ..encoding.features import Labels, Outputs
from ..play.data import DataPair
from ..play.mechanism_runs import comparable, join, outputs_of, run_block
from ..play.pairs import Pair
from ..play.transcripts import BLOCK, play
from ..statistics.events import Event
from .blocks import (
    ALONE_BLOCKS,
    DRAWN_BLOCKS,
    ONE_BY_ONE_BLOCKS,
    SHARED,
    SHARED_BLOCKS,
    LearnerBlock,
    MechanismBlock,
    draws_of,
    homogeneity_p_value,
)
from .drawn_once import check_caches, check_not_drawn_once, not_copied
from .shared_state import walked

#: Runs that are played twice, at most: few where the budget is small.
_REPLAYED = 64
#: Runs of each block that is compared with others: of a batched mechanism, and at most of one called run by run, which
#: is dearer and has more blocks.
_COMPARED, _COMPARED_ONE_BY_ONE = 256, 32
#: Numbers of a whole block that are compared, at most: a wide output has fewer runs.
_CELLS = 2**22
#: The most columns that are compared, evenly over a wide output: each takes a millisecond. The columns that an event
#: reads are tested again in every block that certifies (`check_neighbours`).
_MOST_ROWS = 1024
#: Last arms, or coordinates of points, of a learner in which the runs of a whole block are compared.
_LAST = 12
#: The false-alarm probability of the test on one certification block: there may be millions of blocks.
_IN_A_BLOCK = 1e-14
#: Within so many standard errors of the mean the exact p-value is far above _IN_A_BLOCK, and is not computed.
_MAX_Z = 5.0

#: Between the numbers of a learner's blocks and those of the same checks of a mechanism.
_OFFSET = 64
#: Runs of the blocks that a copy of the mechanism plays.
_RUNS = 8

_STATE = (
    "the same draws gave other outputs, or were used up differently: a {} must draw from its generator alone "
    "and keep no state"
)
_GPU_CURE = f"{OS_CURE}, or whose last digits vary, as those of sums on a GPU may"
_FAULT = "the runs of the mechanism share randomness"


def check_replay(
    mechanism: object, pair: DataPair, seed: int, runs: int = 4096, before: tuple[object, ...] | None = None
) -> tuple[object, ...]:
    """Raise LearnerError unless the same draws give the same outputs, whatever was called before.

    A block is played, then others, then the first again: outputs and the use of the generator must be the same.
    What answers from a cache, for one, draws nothing the second time.

    Parameters
    ----------
    runs : int
        The audit's budget.
    before : tuple, optional
        What an earlier check of the same mechanism and pair returned, to be met again.

    Returns
    -------
    tuple
        What the first block looked like.
    """
    size = max(16, min(_REPLAYED, runs // 64))
    _played(mechanism, pair, seed, MechanismBlock.FIRST, 1) if before else check_memory(mechanism, pair, seed)
    first = _played(mechanism, pair, seed, MechanismBlock.REPLAYED, size)
    _played(mechanism, pair, seed, MechanismBlock.OTHER, size)
    # One call more, so that a counter of calls is not back where it was, whatever it is divided by.
    _played(mechanism, pair, seed, MechanismBlock.INTERVENING, 1)
    replayed = _played(mechanism, pair, seed, MechanismBlock.REPLAYED, size)
    if first != replayed or before not in (None, first):
        raise state_error("mechanism", *state_cures(mechanism), _GPU_CURE)
    return first


def state_error(kind: str, *cures: str) -> LearnerError:
    """Return the error about what keeps state or draws from elsewhere: a mechanism, or a training."""
    return hinted(LearnerError(_STATE.format(kind)), *cures)


def check_nothing_kept(
    mechanism: object, play: Callable[[int, int | None], object], *, blocks: Sequence[int] = DRAWN_BLOCKS
) -> None:
    """Raise LearnerError if what all calls share keeps what it drew; `play` makes the first call of all.

    Parameters are those of `check_not_drawn_once`.
    """
    try:
        check_not_drawn_once(mechanism, play, shows=True, blocks=blocks)
        check_caches(mechanism, play, blocks=blocks)
    except LearnerError:
        raise
    except Exception:  # such as a connection, which cannot be looked into: then this check is left out
        pass


def check_memory(mechanism: object, pair: DataPair, seed: int) -> None:
    """Raise LearnerError unless a mechanism answers as its copy does that has answered before, on other draws.

    What keeps its first answers looks like a constant ever after, so this must come before any other call.
    """
    twin = None if getattr(mechanism, "batched", False) else _copy(mechanism)

    def play(block: int, size: int | None) -> list[object]:
        # One run before the others: it raises for outputs that cannot be encoded, and none else was made in vain.
        return [_played(mechanism, pair, seed, block + _OFFSET, runs) for runs in (1, size or _RUNS)]

    check_nothing_kept(mechanism, play)
    first = _played(mechanism, pair, seed, MechanismBlock.FIRST, 1)
    if twin is None:
        return
    for block in (MechanismBlock.BEFORE, MechanismBlock.SECOND):
        _played(twin, pair, seed, block, _RUNS)
    is_same = _played(twin, pair, seed, MechanismBlock.FIRST, 1) == first
    if (
        not is_same
        or len({_played(side, pair, seed, MechanismBlock.AFTERWARDS, _RUNS) for side in (twin, mechanism)}) > 1
    ):
        raise state_error("mechanism", *state_cures(mechanism), _GPU_CURE)


def _copy(mechanism: object) -> object:
    """Return a copy of an object with attributes of its own; None of a function, and of what cannot be copied.

    A function's code would go on with globals that the copy does not have: `check_not_drawn_once` empties these.
    """
    if isinstance(mechanism, FunctionType):
        return None
    try:
        walk = walked(mechanism)
        memo = not_copied(walk)[1]  # what is too large is shared, and what lies in a module, a class or a closure too
        for name, (owner, _) in walk.places.items():
            if owner is not mechanism:
                memo[id(walk.found[name][0])] = walk.found[name][0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return copy.deepcopy(mechanism, memo)
    except Exception:  # such as a lock or an open file: then this check is left out
        return None


def _played(mechanism: object, pair: DataPair, seed: int, block: int, runs: int) -> tuple[object, ...]:
    """Return outputs that compare as they are, nan included, and a number that tells how much was drawn."""
    draws = draws_of(seed, block)
    return comparable(run_block(mechanism, pair, draws, runs).outputs), draws.generator.random()


def check_independence(mechanism: object, pair: DataPair, seed: int, runs: int = 4096) -> None:
    """Raise LearnerError if the runs of a mechanism share randomness, such as one draw for a block, or interact.

    Many such runs say as much as one, and no interval that counts them holds.

    Parameters
    ----------
    runs : int
        The audit's budget.
    """
    batched = getattr(mechanism, "batched", False)
    size = _COMPARED if batched else max(4, min(_COMPARED_ONE_BY_ONE, runs // 128))
    numbers = SHARED_BLOCKS if batched else ONE_BY_ONE_BLOCKS
    parts = [outputs_of(mechanism, pair.left, draws_of(seed, block), size) for block in numbers]
    outputs = join(parts)
    ranks = _ranks(outputs)
    samples = np.split(ranks, len(numbers), axis=1)
    if any(_same_by_no_chance(samples[0], other) for other in samples[1:]):
        raise LearnerError("the mechanism draws from a generator with a fixed seed: two blocks gave the same outputs")
    if ranks.size and homogeneity_p_value(*(sample[None] for sample in samples)) < SHARED:
        raise hinted(
            LearnerError(f"{_FAULT}, such as one draw for a whole block: blocks differ more than independent runs do"),
            "draw for every run",
        )
    if near_runs_alike(ranks, size):
        raise hinted(
            LearnerError(f"{_FAULT}: those near each other are more, or less, alike than others"), "draw for every run"
        )
    if batched:
        _check_pool(mechanism, pair, seed, min(BLOCK, runs // 4, _CELLS // max(1, len(ranks))))
        single_runs = [outputs_of(mechanism, pair.left, draws_of(seed, block), 1) for block in ALONE_BLOCKS]
        if _last_differ(_ranks(join([*parts, *single_runs])), len(single_runs)):
            raise LearnerError(
                "the runs of the mechanism depend on each other, as by a mean over all of them: one that is played "
                "alone has another law than those of a block"
            )


def _check_pool(mechanism: object, pair: DataPair, seed: int, size: int) -> None:
    if size <= _COMPARED:
        return
    outputs = outputs_of(mechanism, pair.left, draws_of(seed, MechanismBlock.POOL), size)
    if near_runs_alike(_ranks(outputs), size):
        raise hinted(
            LearnerError(f"{_FAULT}, such as a pool that serves a block of {size:,} again"), "draw for every run"
        )


def _last_differ(ranks: Floats, last: int) -> bool:
    """Tell whether the last runs are more on one side of the median, or nearer to it, than a choice by lot."""
    splits = [split for row in ranks for split in _splits(row)]
    return any(_by_lot(split, last) < SHARED / len(splits) for split in splits)


def _by_lot(marks: Labels, last: int) -> float:
    """Return the exact two-sided p-value of "which runs are the last was drawn by lot", from how many are marked."""
    size, n_marked = marks.size, int(np.count_nonzero(marks))
    counts = np.arange(max(0, last - (size - n_marked)), min(last, n_marked) + 1)
    law = np.exp(_log_choose(n_marked, counts) + _log_choose(size - n_marked, last - counts) - _log_choose(size, last))
    return _two_sided(law, int(np.count_nonzero(marks[-last:])) - int(counts[0]))


def _two_sided(law: Floats, seen: int) -> float:
    return min(1.0, 2 * float(min(law[: seen + 1].sum(), law[seen:].sum())))


def _log_choose(n: int, k: NDArray[np.int64] | int) -> Floats:
    """Return the logarithm of the number of ways to choose k of n things."""
    log_count: Floats = -special.betaln(n - k + 1, k + 1) - math.log(n + 1)
    return log_count


def near_runs_alike(rows: Floats, size: int) -> bool:
    """Tell whether runs so far apart, or as far from a block's ends, are more or less alike than by chance.

    Besides a power of two and half a block, of all distances that at which they are most alike.

    Parameters
    ----------
    rows : array (n, runs)
        What runs of one law gave, block after block.
    size : int
        Runs of a block.
    """
    lags = sorted({2**i for i in range(int(math.log2(size)))} | {size // 2, (size + 1) // 2})
    splits = [split for row in rows for split in _splits(row)]
    blocks = np.arange(rows.shape[-1]).reshape(-1, size)
    ends = np.stack([blocks, blocks[:, ::-1]], axis=-1).reshape(len(blocks), -1)[:, :size].ravel()  # first, last, ..
    looks = [(split, lag) for split in splits for lag in lags] + [(split[ends], 1) for split in splits]
    if any(neighbours_p_value(marks, lag) < SHARED / len(looks) for marks, lag in looks):
        return True
    return any(neighbours_p_value(split, _alike_at(split, size)) < SHARED / len(splits) / size for split in splits)


def _alike_at(marks: Labels, size: int) -> int:
    """Return the distance, less than `size`, at which marks are most, or least, alike, in standard errors."""
    power = np.abs(np.fft.rfft(marks - marks.mean(), 2 * marks.size)) ** 2
    products = np.abs(np.fft.irfft(power)[1:size]) / np.sqrt(marks.size - np.arange(1, size))
    return 1 + int(rounded(products).argmax())


def check_block(learner: Learner, pair: Pair, seed: int, runs: int) -> None:
    """Raise LearnerError if runs of a batched learner share draws in a block that is as large as those of the audit.

    Such as a pool of noise that serves more runs than it holds: in a small block each has a draw of its own.

    Parameters
    ----------
    runs : int
        The audit's budget, of which a quarter is played at most.
    """
    size = min(BLOCK, runs // 4)
    if isinstance(learner, Scalar) or is_ours(learner) or size <= _COMPARED:
        return
    actions = play(learner, pair, draws_of(seed, LearnerBlock.POOL), size, share=1.0).actions
    if near_runs_alike(actions.reshape(-1, size)[-_LAST:].astype(np.float64), size):
        raise hinted(
            LearnerError(
                f"the runs of {name_of(learner)} share randomness, such as a pool of noise that serves a "
                f"block of {size:,} again and again"
            ),
            "draw for every run, as in draws.uniform(runs)",
        )


def _ranks(outputs: Outputs) -> Floats:
    """Return the columns of the encoded outputs by rank, (columns, runs): finite, and no matter how large."""
    columns = Encoder.fit(outputs)(outputs)
    columns = columns[:: -(-len(columns) // _MOST_ROWS) or 1]
    ranks = [np.unique(column, return_inverse=True)[1] for column in columns]
    return np.array([row for row in ranks if row.any()], dtype=np.float64).reshape(-1, columns.shape[1])


def _splits(ranks: Floats) -> list[Labels]:
    """Return the runs above the median, and those far from it."""
    return [_above_median(ranks), _above_median(np.abs(ranks - np.median(ranks)))]


def _above_median(values: Floats) -> Labels:
    middle = np.median(values)
    is_above: Labels = values > middle
    return is_above if is_above.any() else values >= middle


def _same_by_no_chance(first: Floats, other: Floats) -> bool:
    """Tell whether two blocks are equal, and that is less likely than `SHARED` given the outputs in each."""
    if not np.array_equal(first, other) or not first.size:
        return False
    times = np.unique(first, axis=1, return_counts=True)[1]
    orders = special.gammaln(first.shape[1] + 1) - special.gammaln(times + 1).sum()
    return bool(orders > -math.log(SHARED / 16))


def check_neighbours(event: Event, scores: Floats, left: Labels) -> None:
    """Raise LearnerError if runs of a certification block meet its event in clusters, or by turns.

    That is exactly what the interval takes for independent. The test is exact, and so strict that blocks without
    number may be tested.
    """
    for side in (scores >= event.upper, scores <= event.lower):
        if not side.any():
            continue
        for world in (left, ~left):
            marks = side[world]
            lags = {1, 2, 4, marks.size // 2}
            if any(neighbours_p_value(marks, lag) < _IN_A_BLOCK for lag in lags if 0 < lag < marks.size):
                raise hinted(
                    LearnerError(f"{_FAULT} or keep state: those that certify meet the event in clusters or by turns"),
                    "draw for every run",
                )


def neighbours_p_value(marks: NDArray[np.bool_], lag: int) -> float:
    """Return a p-value of "all orders of these marks are equally likely", from how often those `lag` apart differ.

    The marks are read in steps of `lag`, which only orders them anew, and their runs counted: the exact two-sided test
    of Wald and Wolfowitz [1]_. Returns 1 where it is plainly not small.

    Parameters
    ----------
    marks : bool array (runs,)
    lag : int
        From 1 to runs - 1.
    """
    size, n_marked = marks.size, int(np.count_nonzero(marks))
    if n_marked in (0, size):
        return 1.0
    changes = int(np.count_nonzero(marks[lag:] != marks[:-lag]))
    ends = np.roll(marks[-lag:], (size - lag) % lag)  # the last mark of each pass, in the order of the passes
    changes += int(np.count_nonzero(ends[:-1] != marks[1:lag]))
    twice = 2.0 * n_marked * (size - n_marked)
    spread = math.sqrt(max(0.0, twice * (twice - size) / (size**2 * (size - 1.0))))
    if abs(changes - twice / size) <= _MAX_Z * spread:
        return 1.0
    return _two_sided(_law_of_changes(n_marked, size - n_marked), changes)


def _law_of_changes(n_ones: int, n_zeros: int) -> Floats:
    """Return the probabilities of 0, 1, 2.. changes in a random order of so many ones and zeros."""

    def log_ways(groups: NDArray[np.int64], n_things: int) -> Floats:  # to cut things in a row into non-empty groups
        log_count = _log_choose(n_things - 1, np.clip(groups, 1, n_things) - 1)
        return np.where(groups <= n_things, log_count, -np.inf)

    runs = np.arange(2, 2 * min(n_ones, n_zeros) + 2)
    short_half, long_half = runs // 2, runs - runs // 2
    total = _log_choose(n_ones + n_zeros, n_ones)
    law = np.exp(log_ways(long_half, n_ones) + log_ways(short_half, n_zeros) - total)
    law += np.exp(log_ways(short_half, n_ones) + log_ways(long_half, n_zeros) - total)
    return np.append(0.0, law)
