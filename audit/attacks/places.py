"""The scalars of nested outputs, each at its place: of many outputs at once, place by place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from itertools import zip_longest
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...learners.protocol import LearnerError
from .objects import category, plain

#: The most levels of nesting.
MOST_LEVELS = 50
#: Where the places of a dictionary's keys stand, beside its keys and values.
ORDER = -1
Path = tuple[int, ...]
#: The numbers of some outputs.
Runs = NDArray[np.intp]
#: A place, which outputs have a scalar of one type there, and these scalars.
Placed = tuple[Path, Runs, Sequence[Any]]
#: What needs no look at what it is.
_PLAIN = (list, tuple, dict, set)
_NOTHING = object()


class Size(NamedTuple):
    """What an output holds other parts in, and how many."""

    kind: str
    parts: int


def scalars(output: object) -> Iterator[tuple[Path, object]]:
    """Yield the scalars of an output with their places, and the `Size` of all that is nested, in a fixed order.

    Raises
    ------
    LearnerError
        For what cannot be read, such as a coroutine.
    """
    return ((path, leaves[0]) for path, _, leaves in placed([output]))


def placed(outputs: Sequence[object]) -> Iterator[Placed]:
    """Yield the scalars of many outputs with their places, and the `Size` of all that is nested.

    Raises
    ------
    LearnerError
        For what cannot be read, such as a coroutine.
    """
    return _within((), np.arange(len(outputs)), outputs)


def of_one_type(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    """Yield what stands at a place, type by type."""
    kinds = list(map(type, values))
    if len(set(kinds)) <= 1:
        if values:
            yield path, runs, values
        return
    for here in _alike(kinds):
        yield path, runs[here], [values[i] for i in here]


def _alike(keys: Iterable[object]) -> Iterable[list[int]]:
    """Return the places of equal keys, for each of them."""
    places: dict[object, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        places[key].append(i)
    return places.values()


def _within(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    for _, those, alike in of_one_type(path, runs, values):
        if isinstance(alike[0], float | int | str | bytes | None):
            yield path, those, alike
        else:
            known = alike if type(alike[0]) in _PLAIN else list(map(plain, alike))
            for _, some, parts in of_one_type(path, those, known):
                yield from _nested(path, some, parts)


def _nested(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    """Yield what values of one type hold."""
    one = values[0]
    if isinstance(one, Set):
        parts: Sequence[Sequence[Any]] = [sorted(value, key=repr) for value in values]
    elif isinstance(one, complex):
        parts = [(value.real, value.imag) for value in values]
    elif isinstance(one, Mapping) or (isinstance(one, Sequence) and not isinstance(one, str | bytes)):
        parts = values
    else:
        known = isinstance(one, Real | Decimal | str | bytes | None)
        yield path, runs, values if known else list(map(category, values))
        return
    if len(path) == MOST_LEVELS:
        raise LearnerError(f"the mechanism returned more than {MOST_LEVELS} levels of nesting")
    kind, each = type(one).__name__, 2 if isinstance(one, Mapping) else 1  # a key and what it holds
    yield path, runs, [Size(kind, each * len(part)) for part in parts]
    if isinstance(one, Mapping):
        for here in _alike(map(_keys, values)):
            yield from _of_keys(path, runs[here], [values[i] for i in here])
        return
    shortest = min(map(len, parts))
    for i, column in enumerate(zip_longest(*parts, fillvalue=_NOTHING)):
        if i < shortest:
            yield from _within((*path, i), runs, column)
        else:
            here = [run for run, part in enumerate(column) if part is not _NOTHING]
            yield from _within((*path, i), runs[here], [column[run] for run in here])


def _keys(mapping: Mapping[Any, Any]) -> object:
    """Return what is the same for dictionaries whose keys are the same, in the same order."""
    keys = tuple(mapping)
    return keys if set(map(type, keys)) <= {str, int, bytes} else tuple(map(repr, keys))


def _of_keys(path: Path, runs: Runs, mappings: Sequence[Mapping[Any, Any]]) -> Iterator[Placed]:
    """Yield the keys of dictionaries that have the same ones, by their texts, and what they hold."""
    keys = list(mappings[0])
    order = sorted(range(len(keys)), key=lambda i: repr(keys[i]))
    held = [list(mapping.values()) for mapping in mappings]
    for i, place in enumerate(order):
        yield (*path, 2 * i), runs, [repr(keys[place])] * len(runs)
        yield from _within((*path, 2 * i + 1), runs, [values[place] for values in held])
    if order != sorted(order):  # which key comes first may depend on the data
        yield from _within((*path, ORDER), runs, [order] * len(runs))
