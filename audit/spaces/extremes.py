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
    n_edges = [0] * len(pool)
    for column in range(width):
        values = [(row[column], i) for i, row in enumerate(numbers) if column < len(row)]
        finite = sorted((value, i) for value, i in values if math.isfinite(value))
        edges = {value for value, _ in (finite[0], finite[-1])} if finite else set()
        for value, i in values:
            n_edges[i] += value in edges or not math.isfinite(value)
    order = sorted(range(len(pool)), key=lambda i: -n_edges[i])
    places.update(dict.fromkeys(i for i in order if n_edges[i]))
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
    pool_keys, new_corners = set(map(key_of, map(plain_record, pool))), list[Any]()
    for places, same_shape in shapes.items():
        numbers = [dict(numbers_of(form)) for form in same_shape]
        for choose in (max, min) if len(places) > 1 else ():
            corner = {path: choose(values[path] for values in numbers) for path in places}
            new_corners.append(from_json(with_numbers(same_shape[0], corner)))
    return [corner for corner in new_corners if key_of(corner) not in pool_keys]


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
    records = records_of(data)
    n_features = min((features_of(records.record(i)) for i in range(records.size)), default=0)
    if not n_features:
        raise UnfitError("there is no feature that all records have")
    single, turn = int(rng.integers(n_features)), int(rng.integers(4))
    features = [single] if n_features == 1 or turn % 2 else [other for other in range(n_features) if other != single]
    if turn and isinstance(data, tuple) and isinstance(plain_record(record), list):
        features = list(range(n_features - 1))  # the last part of (X, y) is the labels
    for i in range(records.size):
        own_record = records.record(i)
        for feature in features:
            own_record = with_feature(own_record, feature, record)
        records = records_of(records.put(i, own_record))
    return records.data


def all_equal(data: object, record: object) -> object:
    """Return data whose records are all this one; UnfitError where it does not fit."""
    records = records_of(data)
    for i in range(records.size):
        records = records_of(records.put(i, record))
    return records.data


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
