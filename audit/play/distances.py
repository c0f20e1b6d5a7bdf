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


def numbers_of(form: Any, path: Path = (), held: bool = True) -> Iterator[tuple[Path, Decimal]]:
    """Yield the place and the value, as it is printed, of each finite number in a record's form of data."""
    if isinstance(form, list):
        for i, part in enumerate(form):
            yield from numbers_of(part, (*path, i), held)
    elif isinstance(form, dict):
        for name, part in form.items():
            of_data = held and (name in _HOLDERS or not name.startswith("$") or name in ("$tuple", "$map"))
            if path and path[-1] in _HOLDERS and name not in ("data", "columns"):
                continue
            yield from numbers_of(part, (*path, name), of_data)
    elif held and type(form) in (int, float) and math.isfinite(form):
        yield path, Decimal(repr(form))


def distance_fault(relation: Relation, left: Any, right: Any) -> str:
    """Return why two records' forms of data are not within the distance; nothing where they are.

    The distance is of the numbers as they are printed: `Decimal(repr(x))`.
    """
    ours, theirs = dict(numbers_of(left)), dict(numbers_of(right))
    if ours.keys() != theirs.keys() or with_numbers(left, {}, blank=True) != with_numbers(right, {}, blank=True):
        return "they differ in more than their numbers"
    far = _norm(relation, [abs(ours[path] - theirs[path]) for path in ours])
    return "" if far <= Decimal(relation.distance) else f"their distance is {far:.6}, more than {relation.distance}"


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


def within(relation: Relation, mine: Any, other: Any) -> Any:
    """Return a round's losses moved towards others, by the largest distance of a relation or up to them.

    Raises
    ------
    RelationError
        For losses that are no vectors of one length.
    """
    if not isinstance(mine, list) or not isinstance(other, list) or len(mine) != len(other):
        raise RelationError(f"{relation} applies to loss vectors of one length, got {mine!r:.40} and {other!r:.40}")
    ours, theirs = ([Decimal(repr(float(x))) for x in side] for side in (mine, other))
    gaps = [b - a for a, b in zip(ours, theirs, strict=True)]
    far = [abs(gap) for gap in gaps]
    most, size = Decimal(relation.distance), _norm(relation, far)
    if size <= most:
        return other
    share = SHORT.divide(most, size)
    return [float(a + SHORT.multiply(gap, share)) for a, gap in zip(ours, gaps, strict=True)]


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
