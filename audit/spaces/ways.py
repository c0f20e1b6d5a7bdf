"""Ways from one data set to another whose steps are neighbours: along one a decision is bisected."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, Context, Decimal
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ...mechanisms.relation import Relation
from ..play.data import from_json, to_json
from ..play.distances import Path, is_whole, numbers_of, with_numbers
from .changes import user_of, with_user_of, zero_of
from .records import Records, UnfitError, features_of, records_of, with_feature

#: Digits of numbers on the way: their sums with a distance are floats as they are printed.
_DIGITS = Context(prec=12, rounding=ROUND_DOWN)
#: The most steps of a line: as many as `len` can say.
_MOST = 2**62


def groups(size: int, most: int | None, user: Callable[[int], Hashable] | None = None) -> list[list[int]]:
    """Return the places that change together: all or up to so many, and those of one user."""
    own: dict[Hashable, list[int]] = {}
    for i in range(size):
        own.setdefault(user(i) if user else None, []).append(i)
    return [places[i : i + (most or size)] for places in own.values() for i in range(0, len(places), most or size)]


def way(relation: Relation, left: Any, right: Any, fewest: int) -> Sequence[Any]:
    """Return a way between data sets of a mechanism; none where there is no such way.

    Parameters
    ----------
    fewest : int
        The fewest records of a data set.
    """
    if relation.change == "within":
        return line(relation, left, right)
    ours, theirs = records_of(left), records_of(right)
    if relation.change != "add-remove":
        return list(_replaced(relation, ours, theirs)) if ours.size == theirs.size else []
    if fewest:
        return []
    return [*_fewer(relation, ours), *reversed(list(_fewer(relation, theirs)))]


def _by_user(relation: Relation, here: Records) -> Callable[[int], Hashable] | None:
    return (lambda i: user_of(here.record(i))) if relation.unit == "user" else None


def _fewer(relation: Relation, here: Records) -> Iterator[Any]:
    """Yield data with fewer and fewer records, down to none."""
    known = groups(here.size, relation.most, _by_user(relation, here))
    for many in range(len(known), -1, -1):
        yield here.take(sorted(chain.from_iterable(known[:many])))


def _replaced(relation: Relation, ours: Records, theirs: Records) -> Iterator[Any]:
    """Yield data whose records become others, as far as these fit; whose they are stays."""
    data = ours.data
    yield data
    with suppress(UnfitError, TypeError, AttributeError, IndexError):  # a record of another form
        for places in groups(ours.size, relation.most, _by_user(relation, ours)):
            for changed in _changes(relation, ours, theirs, places):
                for i, record in changed.items():
                    data = records_of(data).put(i, record)
                yield data


def _changes(relation: Relation, ours: Records, theirs: Records, places: Sequence[int]) -> Iterator[dict[int, Any]]:
    """Yield the records at some places, one step after the other."""
    if relation.unit == "feature":
        for i in places:
            record = ours.record(i)
            for feature in range(features_of(record)):
                record = with_feature(record, feature, theirs.record(i))
                yield {i: record}
        return
    if relation.change == "zero":
        yield {i: zero_of(relation, ours.record(i)) for i in places}
    of_user = relation.unit == "user"
    yield {i: with_user_of(ours.record(i), theirs.record(i)) if of_user else theirs.record(i) for i in places}


class _Move(NamedTuple):
    """A number that moves to another one in so many steps."""

    path: Path
    start: Decimal
    end: Decimal
    step: Decimal
    steps: int

    @classmethod
    def of(cls, path: Path, start: Decimal, end: Decimal, most: Decimal, whole: bool) -> _Move:
        first = start if whole else _DIGITS.plus(start)
        steps = int((abs(end - first) / most).to_integral_value(ROUND_CEILING))
        return cls(path, start, end, most.copy_sign(end - first), steps + (not whole))

    def at(self, step: int, whole: bool) -> Decimal:
        """Return the number after a step."""
        if step in (0, self.steps):
            return self.end if step else self.start
        return self.start + step * self.step if whole else _DIGITS.plus(self.start) + (step - 1) * self.step


@dataclass(frozen=True)
class _Line(Sequence[Any]):
    """Data whose numbers move one after the other by a relation's distance; steps are made as they are asked for."""

    form: Any
    moves: Sequence[_Move]

    def __len__(self) -> int:
        return 1 + sum(move.steps for move in self.moves)

    def __getitem__(self, index: Any) -> Any:
        ends = list(accumulate(move.steps for move in self.moves))
        done = bisect_right(ends, index)
        numbers = {move.path: move.end for move in self.moves[:done]}
        if done < len(self.moves):
            move = self.moves[done]
            numbers[move.path] = move.at(index - (ends[done - 1] if done else 0), is_whole(self.form, move.path))
        return from_json(with_numbers(self.form, numbers))


def line(relation: Relation, left: Any, right: Any) -> Sequence[Any]:
    """Return the way between data whose numbers move within a distance; none where more than numbers differs."""
    ours, theirs = to_json(left), to_json(right)
    start, end = (dict(numbers_of(form)) for form in (ours, theirs))
    if start.keys() != end.keys() or with_numbers(ours, {}, blank=True) != with_numbers(theirs, {}, blank=True):
        return []
    moves = []
    for path in start:
        whole = is_whole(ours, path)
        most = Decimal(relation.distance).to_integral_value(ROUND_DOWN) if whole else Decimal(relation.distance)
        if start[path] != end[path]:
            if not most:  # a whole number cannot move by less than 1
                return []
            moves.append(_Move.of(path, start[path], end[path], most, whole))
    return _Line(ours, moves) if sum(move.steps for move in moves) < _MOST else []
