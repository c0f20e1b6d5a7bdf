"""How a neighbour relation changes data: a neighbour of an input, and whether two given inputs are neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from ...mechanisms.relation import Relation, RelationError
from ..play.data import from_json, is_frame, is_series, key_of, to_json
from ..play.distances import SHORT, Path, distance_fault, is_whole, kind_of, numbers_of, with_numbers
from .extremes import plain_record
from .records import Records, UnfitError, records_of, records_or_whole

#: The share of the changes of several records in which all of them become the same record: sums add up then.
ALIKE = 0.7
#: The share of the moves within a distance that start where the domain ends: then the whole distance fits into it.
AT_EDGES = 0.7
#: The key of a record that is a mapping, and the column of a frame, which say whose record it is.
USER = "user"


def zeroed(record: Any) -> Any:
    """Return a record with 0 for its numbers and nothing for its texts; its user and its form stay."""
    if isinstance(record, bool | np.bool_):
        return type(record)(False)
    if isinstance(record, int | float | complex | str | bytes):
        return type(record)()
    if isinstance(record, np.ndarray | np.generic):
        zero = np.zeros_like(record)
        return zero if isinstance(record, np.ndarray) else zero[()]
    if is_frame(record):
        parts = {name: record[name] if name == USER else zeroed(record[name]) for name in record.columns}
        return record.assign(**parts)
    if is_series(record):
        return record.map(zeroed).astype(record.dtype)
    if hasattr(record, "cells"):  # a row of a table
        return type(record)([zeroed(cell) for cell in record.cells])
    if isinstance(record, dict):
        return {name: part if name == USER else zeroed(part) for name, part in record.items()}
    if isinstance(record, list | tuple):
        return type(record)([zeroed(part) for part in record])
    return record


def zero_of(relation: Relation, record: Any) -> Any:
    """Return what a record becomes where the relation makes it zero."""
    return with_user_of(record, zeroed(record)) if relation.unit == "user" else zeroed(record)


def user_of(record: Any) -> str:
    """Return a text that says whose record it is.

    Raises
    ------
    RelationError
        For a record that does not say it.
    """
    if isinstance(record, dict) and USER in record:
        return key_of(record[USER])
    if is_frame(record) and USER in record.columns:
        return key_of(record[USER].iloc[0])
    if isinstance(record, list | tuple) and len(record) == 2:
        return key_of(record[0])
    raise RelationError(
        f"a relation of users needs records (user, value) or with the key {USER!r}, got {plain_record(record)!r:.80}"
    )


def with_user_of(record: Any, other: Any) -> Any:
    """Return another record under the user of this one."""
    if isinstance(record, dict):
        return {**other, USER: record[USER]}
    if is_frame(record):
        return other.assign(**{USER: record[USER].to_numpy()})
    return type(record)([record[0], *other[1:]])


def of_user(here: Records, index: int) -> list[int]:
    """Return the places of all records of the user of one."""
    users = [user_of(here.record(i)) for i in range(here.size)]
    return [i for i, user in enumerate(users) if user == users[index]]


@dataclass
class Changes:
    """The neighbours of data by a relation: what search and drawing ask for.

    Attributes
    ----------
    relation : Relation
    fewest : int
        The fewest records of a data set.
    ranges : dict
        The least and the largest number seen at each place of the data, for moves within a distance.
    """

    relation: Relation
    fewest: int = 0
    ranges: dict[Path, tuple[Decimal, Decimal]] = field(default_factory=dict)

    def learn(self, data: object) -> None:
        """Widen the ranges by the numbers of a data set."""
        if self.relation.change == "within":
            for path, number in numbers_of(to_json(data)):
                kind = kind_of(path)
                low, high = self.ranges.get(kind, (number, number))
                self.ranges[kind] = min(low, number), max(high, number)

    def pair(
        self, data: object, index: int, rng: np.random.Generator, draw: Callable[[], Any], *, still: bool = False
    ) -> tuple[object, object]:
        """Return a data set, this one or one like it, and a neighbour of it.

        Parameters
        ----------
        index : int
            Of the record that differs.
        draw : callable
            Returns a record for its place.
        still : bool
            Whether the data set shall stay as it is where it can.

        Raises
        ------
        UnfitError
            Where a record does not fit.
        RelationError
            Where the relation cannot apply to such data.
        """
        relation = self.relation
        if relation.change == "within":
            return self._moved(data, rng, still=still)
        here = records_of(data)
        if relation.unit == "user":
            if not still and rng.random() < ALIKE:  # more records of one user: her share is what the relation protects
                others = [i for i in range(here.size) if rng.random() < rng.random()]
                data = _with(here, {i: with_user_of(here.record(index), here.record(i)) for i in others})
                here = records_of(data)
            places = of_user(here, index)
        else:
            rest = [i for i in range(here.size) if i != index]
            most = min((relation.most or 1) - 1, len(rest))
            many = most if rng.random() < ALIKE else int(rng.integers(most + 1))
            places = sorted([index, *(int(i) for i in rng.permutation(rest)[:many])])
        if relation.change == "add-remove":
            if relation.unit == "record":
                places = [index, *(i for i in places if i != index)][: here.size - self.fewest]
            if not places or here.size - len(places) < self.fewest:
                raise UnfitError("a data set would have too few records")
            return data, here.take([i for i in range(here.size) if i not in places])
        if relation.unit == "user" or rng.random() < ALIKE:  # alike in the data set too: they add up
            mine = draw()
            data = _with(here, {i: self._put(here.record(i), mine) for i in places})
            here = records_of(data)
        if relation.change == "zero":
            return data, _with(here, {i: zero_of(relation, here.record(i)) for i in places})
        alike = draw() if rng.random() < ALIKE else None
        new = {i: self._put(here.record(i), draw() if alike is None else alike) for i in places}
        return data, _with(here, new)

    def _put(self, mine: Any, other: Any) -> Any:
        if self.relation.unit != "user":
            return other
        try:
            return with_user_of(mine, other)
        except (TypeError, AttributeError):
            raise UnfitError("a record of another form does not fit the user's") from None

    def _moved(self, data: object, rng: np.random.Generator, *, still: bool) -> tuple[object, object]:
        """Return data and a neighbour whose numbers moved, by the whole distance where that fits."""
        form = to_json(data)
        places = list(numbers_of(form))
        if not places:
            kind = UnfitError if "$float" in repr(form) else RelationError  # others may be finite
            raise kind(f"{self.relation} needs numbers in the data, got {data!r:.80}")
        reach = [high - low for low, high in (self.ranges.get(kind_of(path), (one, one)) for path, one in places)]
        steps = _steps(self.relation, [is_whole(form, path) for path, _ in places], reach, rng)
        start = {
            path: SHORT.plus(number) if step % 1 else number
            for (path, number), step in zip(places, steps, strict=True)
        }
        if not still and rng.random() < AT_EDGES:
            for (path, number), step in zip(places, steps, strict=True):
                low, high = self.ranges.get(kind_of(path), (number, number))
                start[path] = low if step > 0 else high if step < 0 else number
        moved = {path: start[path] + step for (path, _), step in zip(places, steps, strict=True)}
        base = form if all(start[path] == number for path, number in places) else with_numbers(form, start)
        other = with_numbers(form, moved)
        if distance_fault(self.relation, base, other):
            raise UnfitError("the numbers cannot move so")
        return from_json(base), from_json(other)


def _with(here: Records, records: dict[int, Any]) -> object:
    """Return the data with other records at some places."""
    data = here.data
    for i, record in records.items():
        data = records_of(data).put(i, record)
    return data


def _steps(
    relation: Relation, whole: Sequence[bool], reach: Sequence[Decimal], rng: np.random.Generator
) -> list[Decimal]:
    """Return how far each number moves: together the largest distance, or the largest that they reach.

    Parameters
    ----------
    whole : sequence of bool
        Which numbers are whole.
    reach : sequence of Decimal
        How far each can move in all; 0 where that is not known.
    """
    distance, many = Decimal(relation.distance), len(whole)
    width = 1 if relation.norm == 1 or rng.random() < 1 / 3 else many
    if relation.norm == 2 and width > 1:
        if all(whole):  # so many steps of 1 as fit
            width = max(1, min(many, int(distance * distance)))
        else:
            width = int(rng.integers(2, many + 1)) if rng.random() < 0.5 else many
    if (widest := max(reach)) and relation.norm <= 2 and distance > widest:  # one number does not reach so far
        width = min(many, max(width, math.ceil((distance / widest) ** int(relation.norm))))
    chosen = [int(i) for i in rng.permutation(many)[:width]]
    parts = {1.0: Decimal(width), 2.0: Decimal(width).sqrt()}.get(relation.norm, Decimal(1))
    each = distance if width == 1 else SHORT.divide(distance, parts)
    # All one way, all but one, or at random: sums, differences and spreads feel different ones.
    signs = [1] * width
    turn = int(rng.integers(3))
    if turn == 1:
        signs[0] = -1
    elif turn == 2:
        signs = [1 if rng.random() < 0.5 else -1 for _ in signs]
    flip = 1 if rng.random() < 0.5 else -1
    steps = [Decimal(0)] * many
    for i, sign in zip(chosen, signs, strict=True):
        step = min(each, reach[i] or each)
        steps[i] = flip * sign * (Decimal(math.floor(step)) if whole[i] else step)
    return steps


def check_near(relation: Relation, left: object, right: object) -> None:
    """Raise ValueError unless two inputs of a mechanism are neighbours by a relation.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    if not relation.for_data:
        raise RelationError(f"{relation} is a relation of a learner's rounds, and a mechanism has none")
    if why := _fault(relation, left, right):
        raise ValueError(f"the two inputs are no neighbours by {relation}: {why}")


def _fault(relation: Relation, left: object, right: object) -> str:
    if relation.change == "within":
        return distance_fault(relation, to_json(left), to_json(right))
    ours, theirs = records_or_whole(left), records_or_whole(right)
    mine, other = ([_key(side.record(i)) for i in range(side.size)] for side in (ours, theirs))
    if isinstance(left, set | frozenset) or relation.change == "add-remove":
        return _alike_but(relation, ours, theirs, mine, other)
    if ours.size != theirs.size:
        return f"they have {ours.size} and {theirs.size} records"
    places = [i for i in range(ours.size) if mine[i] != other[i]]
    listed = ", ".join(str(i + 1) for i in places)
    if relation.unit == "user":
        users = {user_of(side.record(i)) for i in places for side in (ours, theirs)}
        if len(users) > 1:
            return f"records {listed} are of several users"
        if relation.most and len(places) > relation.most:
            return f"they differ in records {listed}, more than {relation.most}"
    elif len(places) > (relation.most or 1):
        return f"they differ in records {listed}"
    if relation.change == "zero":
        sides = [(ours, other), (theirs, mine)]
        if not any(all(_key(zero_of(relation, one.record(i))) == keys[i] for i in places) for one, keys in sides):
            return f"neither side is zero in records {listed}"
    if relation.unit == "feature" and places:
        return _features_fault(ours.record(places[0]), theirs.record(places[0]))
    return ""


def _features_fault(mine: Any, other: Any) -> str:
    ours, theirs = to_json(plain_record(mine)), to_json(plain_record(other))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        ours, theirs = list(ours.values()), list(theirs.values())
    rows = isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)
    several = rows and sum(a != b for a, b in zip(ours, theirs, strict=True)) > 1
    return "the record differs in several features" if several else ""


def _alike_but(relation: Relation, ours: Records, theirs: Records, mine: list[str], other: list[str]) -> str:
    """Return why one side is not the other with records taken away, or, of sets, replaced; their order stays."""
    if relation.change != "add-remove":
        gone = len(set(mine) - set(other))
        return "" if len(mine) == len(other) and gone <= (relation.most or 1) else f"they differ in {gone} records"
    (many, keys), (_, fewer) = sorted(((ours, mine), (theirs, other)), key=lambda side: -side[0].size)
    missing, at = [], 0
    for i, key in enumerate(keys):
        if at < len(fewer) and key == fewer[at]:
            at += 1
        else:
            missing.append(i)
    if at < len(fewer):
        return "one side is not the other with records removed"
    if relation.unit == "record":
        most = relation.most or 1
        return "" if len(missing) <= most else f"{len(missing)} records are added or removed, more than {most}"
    users = {user_of(many.record(i)) for i in missing}
    if len(users) > 1 or set(of_user(many, missing[0])) - set(missing) if missing else False:
        return "the records that are added or removed are not all of one user"
    return ""


def _key(record: Any) -> str:
    """Return a text that equal records have alike, wherever they are in a frame."""
    return key_of(record.reset_index(drop=True) if is_frame(record) or is_series(record) else plain_record(record))
