"""The records at the edges of what a strategy draws: where sensitivities are often attained, and code has faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ...mechanisms.relations.numbers import Path, numbers_of, with_numbers
from ...mechanisms.relations.records import UnfitError
from ..play.data import from_json, key_of, shown, to_json
from .records import features_of, records_of, with_feature

Record = TypeVar("Record")


def plain_record(record: object) -> object:
    """Return a record as data: that of a table is the list of its cells."""
    return getattr(record, "cells", record)


def extremes(pool: Sequence[Record]) -> list[Record]:
    """Return the records at the edges of what was drawn: least and largest numbers, missing ones, the simplest."""
    numbers = [_numbers(plain_record(record)) for record in pool]
    width = max(map(len, numbers), default=0)
    places: dict[int, None] = {}
    worth = [0] * len(pool)
    for column in range(width):
        values = [(row[column], i) for i, row in enumerate(numbers) if column < len(row)]
        finite = sorted((value, i) for value, i in values if math.isfinite(value))
        edges = {value for value, _ in (finite[0], finite[-1])} if finite else set()
        for value, i in values:
            worth[i] += value in edges or not math.isfinite(value)
    order = sorted(range(len(pool)), key=lambda i: -worth[i])
    places.update(dict.fromkeys(i for i in order if worth[i]))
    places.update(dict.fromkeys(range(min(2, len(pool)))))
    return [pool[i] for i in list(places)[: max(8, len(pool) // 4)]] or list(pool)


def corners(pool: Sequence[Any]) -> list[Any]:
    """Return records whose numbers are all the largest drawn at their places, or all the least, if none is like that.

    Of many numbers that are drawn alone hardly all are at an edge.
    """
    forms = [to_json(record) for record in pool if isinstance(record, list | tuple | dict | np.ndarray)]
    shapes: dict[frozenset[Path], list[Any]] = {}
    for form in forms:
        shapes.setdefault(frozenset(path for path, _ in numbers_of(form)), []).append(form)
    known, found = set(map(key_of, map(plain_record, pool))), list[Any]()
    for places, alike in shapes.items():
        numbers = [dict(numbers_of(form)) for form in alike]
        for choose in (max, min) if len(places) > 1 else ():
            corner = {path: choose(one[path] for one in numbers) for path in places}
            found.append(from_json(with_numbers(alike[0], corner)))
    return [one for one in found if key_of(one) not in known]


def by_length(record: object) -> tuple[int, str]:
    """Return how much there is to read of a record, and its text: zeros come first."""
    text = shown(to_json(plain_record(record)))
    return len(text), text


def all_alike(data: object, record: object, rng: np.random.Generator) -> object:
    """Return data whose records all have one feature of this record, or all of its features but one.

    Labelled data mostly keeps its labels: of one class alone a model learns nothing, and many refuse it.

    Raises
    ------
    UnfitError
        Where they do not fit.
    """
    here = records_of(data)
    many = min((features_of(here.record(i)) for i in range(here.size)), default=0)
    if not many:
        raise UnfitError("there is no feature that all records have")
    one, turn = int(rng.integers(many)), int(rng.integers(4))
    features = [one] if many == 1 or turn % 2 else [other for other in range(many) if other != one]
    if turn and isinstance(data, tuple) and isinstance(plain_record(record), list):
        features = list(range(many - 1))  # the last part of (X, y) is the labels
    for i in range(here.size):
        mine = here.record(i)
        for feature in features:
            mine = with_feature(mine, feature, record)
        here = records_of(here.put(i, mine))
    return here.data


def all_equal(data: object, record: object) -> object:
    """Return data whose records are all this one; UnfitError where it does not fit."""
    here = records_of(data)
    for i in range(here.size):
        here = records_of(here.put(i, record))
    return here.data


def _numbers(record: object) -> list[float]:
    """Return the numbers of a record, in its order; texts by their length."""
    form, numbers = [to_json(record)], list[float]()
    while form:
        part = form.pop(0)
        if isinstance(part, dict):
            form = [*(float(v) if k == "$float" else v for k, v in part.items()), *form]
        elif isinstance(part, list):
            form = [*part, *form]
        elif isinstance(part, str):
            numbers.append(float(len(part)))
        elif part is not None:
            numbers.append(float(part) if abs(part) < 1e300 else math.copysign(math.inf, part))
    return numbers
