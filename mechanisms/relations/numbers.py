"""The numbers of data, by the JSON that a record has of it, and that JSON with others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

#: Where a record's form of data keeps its numbers.
_HOLDERS = ("$array", "$scalar", "$series", "$frame")
#: Moved numbers are rounded to so many digits first: their sums are floats as they are printed, not beyond a distance.
SHORT = Context(prec=6, rounding=ROUND_DOWN)
#: The place of a number in the form that a record has of data.
Path = tuple[Any, ...]


def numbers_of(form: Any, path: Path = (), in_data: bool = True) -> Iterator[tuple[Path, Decimal]]:
    """Yield the place and the value, as it is printed, of each finite number in a record's form of data.

    Keys, names and categories are none, nor are the items of sets, which have no places.
    """
    if isinstance(form, list):
        pairs = path[-1:] == ("$map",) or path[-2:] == ("$frame", "columns")  # of a name and what it has
        for i, part in enumerate(form):
            yield from numbers_of(part[1], (*path, i, 1), in_data) if pairs else numbers_of(part, (*path, i), in_data)
    elif isinstance(form, dict):
        typed = path[-1:] in ((name,) for name in _HOLDERS) or path[-4:-2] == ("$frame", "columns")
        for name, part in form.items():
            if typed and (name not in ("data", "columns") or "categories" in form):
                continue
            of_data = in_data and (name in _HOLDERS or not name.startswith("$") or name in ("$tuple", "$map"))
            yield from numbers_of(part, (*path, name), of_data)
    elif in_data and type(form) in (int, float) and math.isfinite(form):
        yield path, Decimal(repr(form))


def kind_of(path: Path) -> Path:
    """Return the place of a number without its number in lists."""
    return tuple("*" if isinstance(step, int) else step for step in path)


def ranges_of(form: Any, ranges: dict[Path, tuple[Decimal, Decimal]]) -> None:
    """Widen the ranges of the numbers at each place by those of a form of data."""
    for path, number in numbers_of(form):
        kind = kind_of(path)
        low, high = ranges.get(kind, (number, number))
        ranges[kind] = min(low, number), max(high, number)


def is_whole(form: Any, path: Path) -> bool:
    """Return whether the number at a place is whole by its type."""
    dtype = ""
    for step in path:
        if isinstance(form, dict) and "dtype" in form:
            dtype = str(form["dtype"])
        form = form[step]
    return type(form) is int and not dtype.startswith("float")


def with_numbers(form: Any, numbers: Mapping[Path, Decimal]) -> Any:
    """Return a record's form of data with other numbers at some places."""
    return _with(form, lambda old, path: type(old)(numbers[path]) if path in numbers else old)


def blank(form: Any) -> Any:
    """Return a record's form of data with 0 for all of its numbers: what is the same where numbers alone differ."""
    paths = {path for path, _ in numbers_of(form)}
    return _with(form, lambda old, path: 0 if path in paths else old)


def _with(form: Any, change: Callable[[Any, Path], Any], path: Path = ()) -> Any:
    if isinstance(form, list):
        return [_with(part, change, (*path, i)) for i, part in enumerate(form)]
    if isinstance(form, dict):
        return {name: _with(part, change, (*path, name)) for name, part in form.items()}
    return change(form, path) if type(form) in (int, float) else form
