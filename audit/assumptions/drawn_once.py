"""What a user's code draws once for all its runs, and keeps: in a class, a module, a closure, a default argument.

Runs that share a draw are no independent trials, and none of them changes it, so that nothing else gives it away.
"""

from __future__ import annotations

import copy
import math
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import hinted
from ...learners.blame import name_of
from ...learners.protocol import Actions, LearnerError
from ...learners.scalar import Scalar
from ..play.transcripts import BLOCK
from .blocks import DRAWN_BLOCKS, LearnerBlock
from .shared_state import Shared, Walk, is_users, place_of_state, walked

#: What plays a block of a number, with so many runs if that is said; and the numbers of blocks.
Play = Callable[[int, int | None], object]
Blocks = Sequence[int]
#: Runs of all blocks but the first that are played on other draws: the first run draws what is kept.
_RUNS = 2
#: Runs that are played to see whether what a cache keeps shows in them.
_PLAYED = 8
#: Bytes that are copied before the first play, at most; arrays and containers that do not fit are not.
_COPIED = 2**24
#: In place of a value that was not there.
_ABSENT = object()
_DRAWN_ONCE = (
    "{} draws once for all runs: {} was filled in by the first of them from random numbers or its input, and stays. A "
    "run's state belongs to {}"
)

ONCE_CURE = "build what all calls share, such as an encoder, from public values where the file is loaded"
_PUSHED_OUT = (
    "the runs of {} push each other's answers out of a cache: the cache of {} holds {} for all runs, which are played "
    "side by side, and a run plays otherwise with others than alone. What a run draws belongs to self"
)


def check_not_drawn_once(learner: object, play: Play, *, shows: bool = False, blocks: Blocks = DRAWN_BLOCKS) -> None:
    """Play a learner or a mechanism for the first time; raise LearnerError if what its runs share keeps what it drew.

    What is filled in once may be a table. So it is emptied, and the learner plays on the first draws again, then on
    others, emptied each time: a table is always the same, a draw differs where the draws do. Of two outcomes twenty
    blocks of draws give the same one with probability 1e-6. Then the first draws are played on top: what is filled in
    only now and then changes, a draw that is kept does not.

    Parameters
    ----------
    play : callable
        Plays a block of that number, with so many runs if that is said.
    shows : bool
        Whether what `play` returns can be compared, and a draw that is kept must show in it: a statistic does not.
    blocks : sequence of int
        The blocks of other draws.
    """
    tables = _FilledTables(learner, play)
    if not tables.filled:
        return
    name = None
    with suppress(Exception):  # what it fills in elsewhere does not go with what was emptied
        name = tables.kept_draw(blocks, shows=shows)
    tables.restore()
    if name is not None:
        raise hinted(LearnerError(_DRAWN_ONCE.format(name_of(learner), name, place_of_state(learner))), ONCE_CURE)


class _FilledTables:
    """What the runs of a learner share, before and after its first play, which is played here.

    Attributes
    ----------
    filled : list of str
        What the first play filled in, or changed; and what replays did besides.
    """

    def __init__(self, learner: object, play: Callable[[int, int | None], object]) -> None:
        before = walked(learner)
        memo, self._shared = not_copied(before)
        self._blanks = _copies({name: before.found[name][0] for name in before.places}, memo)
        self._old_digests = {
            name: digest
            for name, (value, digest) in before.found.items()
            if name in self._blanks and id(value) not in self._shared
        }
        # What could not be copied cannot be emptied: its tables would grow, and look like draws that are kept.
        fixed = before.places.keys() - self._old_digests
        self._play = play
        play(LearnerBlock.UNWATCHED, None)
        after = walked(learner)
        self._values = after.found
        self._places = {name: place for name, place in after.places.items() if name not in fixed}
        self._first = [name for name in self._places if self._old_digests.get(name) != self._values[name][1]]
        self._watched = [name for name in self._places if name in self._first or id(self._values[name][0]) not in memo]
        self.filled = self._first

    def _empty(self, names: Sequence[str]) -> None:
        """Put back what was there before the first play."""
        blanks = _copies({name: self._blanks[name] for name in names if name in self._blanks}, self._shared)
        for name in names:
            _put(*self._places[name], blanks.get(name, _ABSENT))

    def _replay(self, block: int, runs: int | None) -> tuple[Shared, object]:
        """Return what an emptied learner fills in on other draws, and what it shows."""
        self._empty(self.filled)
        output = self._play(block, runs)
        return _found(self._places, self._watched), output

    def kept_draw(self, blocks: Sequence[int], *, shows: bool) -> str | None:
        """Return the name of a draw that is kept, if there is one."""
        repeat, output = self._replay(LearnerBlock.UNWATCHED, None)
        stable = [name for name in self._watched if _alike(self._values[name], repeat.get(name))]
        for block in blocks:
            other, _ = self._replay(block, None if block == blocks[0] else _RUNS)
            # What it begins with may be one of the outcomes.
            new = {name for name in other if self._old_digests.get(name) != other[name][1]}
            self.filled = [name for name in self._watched if name in self.filled or name in new]
            differing = [name for name in stable if name in other and not _alike(self._values[name], other[name])]
            if differing:
                # A tally changes with later runs.
                copies = _copies({name: other[name][0] for name in differing}, self._shared)
                later_output = self._play(LearnerBlock.UNWATCHED, None)
                later_values = {} if shows and later_output == output else _found(self._places, self._watched)
                for name in differing:
                    if _alike((copies.get(name), other[name][1]), later_values.get(name)):
                        return name
        return None

    def restore(self) -> None:
        """Leave what the first play left."""
        self._empty([name for name in self.filled if name not in self._first])
        for name in self._first:
            _put(*self._places[name], self._values[name][0])


def check_caches(learner: object, play: Callable[[int, int], object], *, blocks: Sequence[int] = DRAWN_BLOCKS) -> None:
    """Raise LearnerError if what a cache of a user's function keeps was drawn: answers that other draws change.

    Nobody can read such a cache, but it can be emptied. Then it is filled on other draws, and the first are played on
    top: what a pure function keeps does not show.

    Parameters
    ----------
    play : callable
        Plays a block of that number with so many runs, and returns what can be compared.
    blocks : sequence of int
        The blocks of other draws.
    """
    caches = [cache for cache in walked(learner).caches.values() if cache.cache_info().currsize]

    def emptied(block: int) -> object:
        for cache in caches:
            cache.cache_clear()
        return play(block, _PLAYED)

    if not caches:
        return
    first_output = emptied(LearnerBlock.UNWATCHED)
    for block in blocks:
        emptied(block)
        warm_output, repeat = (play(LearnerBlock.UNWATCHED, _PLAYED) for _ in range(2))
        if (
            first_output != warm_output == repeat
        ):  # what differs again has another cause, which the checks to come name
            names = " or ".join(cache.__name__ for cache in caches)
            raise LearnerError(_DRAWN_ONCE.format(name_of(learner), f"the cache of {names}", place_of_state(learner)))


def check_not_pushed_out(learner: Scalar, play: Callable[[int, int], Actions]) -> None:
    """Raise LearnerError if runs side by side push out of a cache what a run alone would find there again.

    A user's program plays one run: what it keeps in a cache of a fixed size stays. An audit plays thousands together,
    and a run that lost its noise draws it anew. So some runs are played by themselves, and with as many more as
    overflow the cache: they must play the same.
    """
    bounded = [cache for cache in walked(learner).caches.values() if cache.cache_info().maxsize]
    for cache in bounded:
        cache.cache_clear()
    if bounded:
        play(LearnerBlock.UNWATCHED, 1)
    for cache in bounded:
        size, n_entries = cache.cache_info().maxsize, cache.cache_info().currsize
        if n_entries * BLOCK <= size:
            continue
        n_runs = max(1, min(_PLAYED, size // (2 * n_entries)))
        overflowing_count = min(BLOCK, n_runs + 2 * size // n_entries + 1)
        for block in DRAWN_BLOCKS[: math.ceil(len(DRAWN_BLOCKS) / n_runs)]:
            if not np.array_equal(play(block, n_runs), play(block, overflowing_count)[..., :n_runs]):
                raise LearnerError(_PUSHED_OUT.format(name_of(learner), cache.__name__, size))


def _found(places: Mapping[str, tuple[object, str]], names: Sequence[str]) -> Shared:
    """Return what lies at these places now, where anything does, with digests."""
    values = {name: _get(*places[name]) for name in names}
    return {name: (value, Walk().digest(value)) for name, value in values.items() if value is not _ABSENT}


def _alike(first: tuple[object, str], second: tuple[object, str] | None) -> bool:
    """Tell whether two values are the same; of two mappings, what they both have: others were asked for other keys."""
    if second is None:
        return False
    mapping, other_mapping = first[0], second[0]
    if isinstance(mapping, Mapping) and isinstance(other_mapping, Mapping):
        shared_keys = [key for key in mapping if key in other_mapping]
        return Walk().digest([mapping[key] for key in shared_keys]) == Walk().digest(
            [other_mapping[key] for key in shared_keys]
        )
    return first[1] == second[1]


def not_copied(walk: Walk) -> tuple[dict[int, object], dict[int, object]]:
    """Return what stands in copies for the arrays and containers that are too large to be copied, by their identity.

    First for copies that are kept: one number, of an array whose numbers are all alike, such as one that is still to
    be filled; what holds data is left as it is, and so not looked into. Then for copies of these.
    """
    memo, shared, spare = dict[int, object](), dict[int, object](), _COPIED
    for value in sorted(walk.held.values(), key=_size):
        spare -= _size(value)
        if spare < 0:
            if isinstance(value, np.ndarray) and value.dtype != object and _all_alike(value):
                memo[id(value)] = np.broadcast_to(value.flat[0], value.shape)
            else:
                memo[id(value)] = shared[id(value)] = value
    return memo, shared


def _size(value: object) -> int:
    return value.nbytes if isinstance(value, np.ndarray) else sys.getsizeof(value, 0)


def _all_alike(array: NDArray[Any]) -> bool:
    first = array.flat[0]
    return bool(np.isnan(array).all()) if first != first else bool((array == first).all())


def _copies(values: Mapping[str, object], memo: Mapping[int, object]) -> dict[str, object]:
    """Return values, of what may be changed in its place copies; where two names have one value, of one.

    Left out is what cannot be copied.
    """
    copy_memo, copies = dict(memo), dict[str, object]()
    for name, value in values.items():
        with suppress(Exception):  # such as a lock inside
            copies[name] = copy.deepcopy(value, copy_memo) if _may_change(value) else value
    return copies


def _may_change(value: object) -> bool:
    if isinstance(value, tuple | dict | list | set | bytearray | deque | np.ndarray | SimpleNamespace):
        return True
    kind = type(value)
    return hasattr(value, "__dict__") and is_users(kind.__module__, sys.modules.get(kind.__module__))


def _get(owner: object, name: str) -> object:
    if isinstance(owner, dict):
        return owner.get(name, _ABSENT)
    if isinstance(owner, type):
        return vars(owner).get(name, _ABSENT)
    try:
        return getattr(owner, name, _ABSENT)
    except ValueError:  # a cell that is empty
        return _ABSENT


def _put(owner: object, name: str, value: object) -> None:
    """Put a value where one lies, or none: in a module's names, a class, a cell, a function or a frozen learner."""
    if isinstance(owner, dict):
        owner.pop(name, None)
        owner.update({} if value is _ABSENT else {name: value})
        return
    kind = type if isinstance(owner, type) else object
    if value is not _ABSENT:
        kind.__setattr__(owner, name, value)
    else:
        with suppress(AttributeError):
            kind.__delattr__(owner, name)
