"""Paths from one data set to another whose steps are neighbours: along one a decision is bisected."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, Context, Decimal
from itertools import accumulate, chain
from typing import Any

from .canonical import text_of
from .distances import Distance
from .numbers import Path, blank, is_whole, numbers_of, with_numbers
from .records import Records, UnfitError, put_all
from .relation import Relation

#: Digits of numbers on the way: their sums with a distance are floats as they are printed.
_DIGITS = Context(prec=12, rounding=ROUND_DOWN)
#: The most steps of a line: as many as `len` can say.
_MAX_STEPS = 2**62


def groups(size: int, limit: int | None, user: Callable[[int], Hashable]) -> list[list[int]]:
    """Return the places that change together: all or up to so many, and those of one user."""
    places_by_user: dict[Hashable, list[int]] = {}
    for i in range(size):
        places_by_user.setdefault(user(i), []).append(i)
    return [
        places[i : i + (limit or size)]
        for places in places_by_user.values()
        for i in range(0, len(places), limit or size)
    ]


def path_between(relation: Relation, start: Records, end: Records, min_size: int) -> Sequence[Any]:
    """Return a path between data sets of a mechanism; none where there is none.

    Parameters
    ----------
    min_size : int
        The fewest records of a data set.
    """
    if isinstance(relation, Distance):
        return line(relation, start.form, end.form, start.read)
    if not relation.removes:
        return list(_replaced(relation, start, end)) if start.size == end.size else []
    return [] if min_size else [*_fewer(relation, start), *reversed(list(_fewer(relation, end)))]


def _groups_of(relation: Relation, records: Records) -> list[list[int]]:
    return groups(records.size, relation.limit, lambda i: relation.user_at(records, i))


def _fewer(relation: Relation, records: Records) -> Iterator[Any]:
    """Yield data with fewer and fewer records, down to none."""
    group_list = _groups_of(relation, records)
    for count in range(len(group_list), -1, -1):
        yield records.take(sorted(chain.from_iterable(group_list[:count])))


def _replaced(relation: Relation, start: Records, end: Records) -> Iterator[Any]:
    """Yield data whose records become others, as far as these fit; whose they are stays."""
    yield start.data
    records = start
    with suppress(UnfitError, TypeError, AttributeError, IndexError):  # a record of another form
        for places in _groups_of(relation, start):
            stages = (relation.stages(start, start.record(i), end.record(i)) for i in places)
            for new_records in zip(*stages, strict=True):
                records = put_all(records, dict(zip(places, new_records, strict=True)))
                yield records.data


@dataclass(frozen=True)
class _Move:
    """A number that moves to another one in so many steps."""

    path: Path
    start: Decimal
    end: Decimal
    step: Decimal
    steps: int

    @classmethod
    def of(cls, path: Path, start: Decimal, end: Decimal, distance: Decimal, is_int: bool) -> _Move:
        first = start if is_int else _DIGITS.plus(start)
        steps = int((abs(end - first) / distance).to_integral_value(ROUND_CEILING))
        return cls(path, start, end, distance.copy_sign(end - first), steps + (not is_int))

    def at(self, step: int, is_int: bool) -> Decimal:
        """Return the number after a step."""
        if step in (0, self.steps):
            return self.end if step else self.start
        return self.start + step * self.step if is_int else _DIGITS.plus(self.start) + (step - 1) * self.step


@dataclass(frozen=True)
class _Line(Sequence[Any]):
    """Data whose numbers move one after the other by a relation's distance; steps are made as they are asked for."""

    form: Any
    moves: Sequence[_Move]
    read: Callable[[Any], Any]

    def __len__(self) -> int:
        return 1 + sum(move.steps for move in self.moves)

    def __getitem__(self, index: Any) -> Any:
        ends = list(accumulate(move.steps for move in self.moves))
        count = bisect_right(ends, index)
        numbers = {move.path: move.end for move in self.moves[:count]}
        if count < len(self.moves):
            move = self.moves[count]
            numbers[move.path] = move.at(index - (ends[count - 1] if count else 0), is_whole(self.form, move.path))
        return self.read(with_numbers(self.form, numbers))


def line(relation: Distance, start: Any, end: Any, read: Callable[[Any], Any]) -> Sequence[Any]:
    """Return the path between forms of data whose numbers move within a distance; none where more differs."""
    numbers, last = (dict(numbers_of(form)) for form in (start, end))
    if numbers.keys() != last.keys() or text_of(blank(start)) != text_of(blank(end)):
        return []
    moves = []
    for path in numbers:
        is_int = is_whole(start, path)
        distance = Decimal(relation.distance)
        distance = distance.to_integral_value(ROUND_DOWN) if is_int else distance
        if numbers[path] != last[path]:
            if not distance:  # a whole number cannot move by less than 1
                return []
            moves.append(_Move.of(path, numbers[path], last[path], distance, is_int))
    return _Line(start, moves, read) if sum(move.steps for move in moves) < _MAX_STEPS else []
