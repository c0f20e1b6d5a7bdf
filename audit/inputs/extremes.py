"""The records at the edges of what a strategy draws: where sensitivities are often attained, and code has faults."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .data import to_json


def plain_record(record: object) -> object:
    """Return a record as data: that of a table is the list of its cells."""
    return getattr(record, "cells", record)


def extremes(pool: Sequence[object]) -> list[object]:
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
