"""The numbers of data, their distance as they are printed, and moves within a distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from ...mechanisms.relation import Relation, RelationError

#: Where a record's form of data keeps its numbers.
_HOLDERS = ("$array", "$scalar", "$series", "$frame")
#: Moved numbers are rounded to so many digits first: their sums are floats as they are printed, not beyond a distance.
SHORT = Context(prec=6, rounding=ROUND_DOWN)
#: Squares of floats have up to 34 digits, and a distance is compared exactly.
EXACT = Context(prec=200)
#: The place of a number in the form that a record has of data.
Path = tuple[Any, ...]


def numbers_of(form: Any, path: Path = (), of_data: bool = True) -> Iterator[tuple[Path, Decimal]]:
    """Yield the place and the value, as it is printed, of each finite number in a record's form of data."""
    if isinstance(form, list):
        for i, part in enumerate(form):
            yield from numbers_of(part, (*path, i), of_data)
    elif isinstance(form, dict):
        for name, part in form.items():
            part_of_data = of_data and (name in _HOLDERS or not name.startswith("$") or name in ("$tuple", "$map"))
            if path and path[-1] in _HOLDERS and name not in ("data", "columns"):
                continue
            yield from numbers_of(part, (*path, name), part_of_data)
    elif of_data and type(form) in (int, float) and math.isfinite(form):
        yield path, Decimal(repr(form))


def distance_fault(relation: Relation, left: Any, right: Any) -> str:
    """Return why two records' forms of data are not within the distance; nothing where they are.

    The distance is of the numbers as they are printed: `Decimal(repr(x))`.
    """
    left_numbers, right_numbers = dict(numbers_of(left)), dict(numbers_of(right))
    left_blank, right_blank = (with_numbers(form, {}, blank=True) for form in (left, right))
    if left_numbers.keys() != right_numbers.keys() or left_blank != right_blank:
        return "they differ in more than their numbers"
    distance = _norm(relation, [abs(left_numbers[path] - right_numbers[path]) for path in left_numbers])
    if distance <= Decimal(relation.distance):
        return ""
    return f"their distance is {distance:.6}, more than {relation.distance}"


def _norm(relation: Relation, moves: Sequence[Decimal]) -> Decimal:
    """Return the norm of moves."""
    if relation.norm == 1:
        return sum(moves, Decimal(0))
    if relation.norm == 2:
        squares = Decimal(0)
        for move in moves:
            squares = EXACT.fma(move, move, squares)
        return EXACT.sqrt(squares)
    return max(moves, default=Decimal(0))


def within(relation: Relation, losses: Any, other: Any) -> Any:
    """Return a round's losses moved towards others, by the largest distance of a relation or up to them.

    Raises
    ------
    RelationError
        For losses that are no vectors of one length.
    """
    if not isinstance(losses, list) or not isinstance(other, list) or len(losses) != len(other):
        raise RelationError(f"{relation} applies to loss vectors of one length, got {losses!r:.40} and {other!r:.40}")
    start, goal = ([Decimal(repr(float(x))) for x in side] for side in (losses, other))
    gaps = [b - a for a, b in zip(start, goal, strict=True)]
    moves = [abs(gap) for gap in gaps]
    max_distance, size = Decimal(relation.distance), _norm(relation, moves)
    if size <= max_distance:
        return other
    share = SHORT.divide(max_distance, size)
    return [float(a + SHORT.multiply(gap, share)) for a, gap in zip(start, gaps, strict=True)]


def kind_of(path: Path) -> Path:
    """Return the place of a number without its number in lists."""
    return tuple("*" if isinstance(step, int) else step for step in path)


def is_whole(form: Any, path: Path) -> bool:
    """Return whether the number at a place is whole by its type."""
    dtype = ""
    for step in path:
        if isinstance(form, dict) and "dtype" in form:
            dtype = str(form["dtype"])
        form = form[step]
    return type(form) is int and not dtype.startswith("float")


def with_numbers(form: Any, numbers: dict[Path, Decimal], path: Path = (), *, blank: bool = False) -> Any:
    """Return a record's form of data with other numbers at some places; with 0 for all numbers where `blank`."""
    if isinstance(form, list):
        return [with_numbers(part, numbers, (*path, i), blank=blank) for i, part in enumerate(form)]
    if isinstance(form, dict):
        return {name: with_numbers(part, numbers, (*path, name), blank=blank) for name, part in form.items()}
    if type(form) not in (int, float):
        return form
    if blank:
        return 0
    if path not in numbers:
        return form
    number = numbers[path]
    return int(number) if type(form) is int else float(number)
