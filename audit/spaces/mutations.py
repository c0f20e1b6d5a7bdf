"""Changes of a data set that know what data is made of: copies, users, orders, sizes, outliers and limits of types.

Random values hardly ever repeat, and faults often show where they do: in a value that two users share, in a sum beside
the limit of its type, in one large record before many small ones. Every mutation is one function of `MUTATIONS`; those
of records and those of numbers are drawn equally often, and within either all alike.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import numpy as np

from ...mechanisms.relations.numbers import Path, is_whole, kind_of, numbers_of, ranges_of, with_numbers
from ...mechanisms.relations.records import UnfitError
from ..play.data import from_json, key_of, to_json
from .extremes import plain_record
from .records import Records, features_of, records_of, user_of, with_feature, with_user_of

Rng = np.random.Generator
#: Where integers of 8, 16, 32 and 64 bits end, with and without a sign, where float32 and float64 begin to leave out
#: whole numbers, and where floats end.
LIMITS = (
    *(Decimal(2**bits) for bits in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64)),
    Decimal(repr(sys.float_info.max)),
)
#: Beyond these float32 and float64 still hold numbers, but no longer every whole one.
INEXACT = Decimal(2**24), Decimal(2**53)
#: Numbers are made smaller by up to this power of 2: about a thousand times.
SMALLER = 10
#: The most records whose whole numbers add up to a limit: an 8-bit counter ends at 256.
MAX_SUMMED = 300
#: Attempts to apply a mutation that fits, before the data stays as it is.
MAX_ATTEMPTS = 8


@dataclass(frozen=True)
class DataStats:
    """What is known of the data sets of a space.

    Attributes
    ----------
    pool : sequence
        Records that were drawn.
    min_size, max_size : int
        Records of a data set.
    ranges : dict
        The least and the largest number seen at each place (`kind_of`).
    exact : bool
        Whether the domain tells of any number if it is in it: then numbers that nobody drew are tried too.
    types : set
        The type of what was seen at each place.
    mixes : bool
        Whether a record may have values of several ones.
    """

    pool: Sequence[object]
    min_size: int
    max_size: int
    ranges: dict[Path, tuple[Decimal, Decimal]]
    exact: bool
    types: Set[tuple[Path, str]]
    mixes: bool = True

    @classmethod
    def of(
        cls, bases: Sequence[object], pool: Sequence[object], sizes: Sequence[int], *, exact: bool, mixes: bool = True
    ) -> DataStats:
        """Return what data sets of so many records show."""
        ranges: dict[Path, tuple[Decimal, Decimal]] = {}
        types = set[tuple[Path, str]]()
        for data in bases:
            ranges_of(form := to_json(data), ranges)
            types |= set(_types_in(form))
        return cls(pool, min(sizes), max(sizes), ranges, exact, types, mixes)

    def may_hold(self, data: object) -> bool:
        """Tell whether data may be in the domain: where nothing tells that, it has what was seen at each place."""
        return self.exact or self.types >= set(_types_in(to_json(data)))

    def range_at(self, path: Path) -> tuple[Decimal, Decimal]:
        """Return the least and the largest number seen at a place; UnfitError where none was."""
        if (kind := kind_of(path)) not in self.ranges:
            raise UnfitError("no data set had a number there")
        return self.ranges[kind]


def _types_in(form: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the places of a record's form of data, and the type of what is there."""
    yield path, type(form).__name__
    if isinstance(form, dict):
        for name, part in form.items():
            yield from _types_in(part, (*path, name))
    elif isinstance(form, list):
        for part in form:
            yield from _types_in(part, (*path, "*"))


#: From the records of a data set to data anew; UnfitError where it cannot apply.
Mutation = Callable[[Records, DataStats, Rng], object]


class Mutator:
    """Changes data by one mutation or several; each of a kind is taken once before any comes again.

    So none is missed by luck, where a search has few pairs of each.
    """

    def __init__(self, stats: DataStats) -> None:
        self.stats = stats
        self.queues: list[list[Mutation]] = [[] for _ in MUTATIONS]

    def mutated(self, data: object, rng: Rng) -> object:
        """Return the data after a mutation; each is followed by another in half of the cases."""
        for _ in range(MAX_ATTEMPTS):
            before, mutation = data, self._next(int(rng.integers(len(MUTATIONS))), rng)
            try:
                data = mutation(records_of(data), self.stats, rng)
            except Exception:  # it does not fit such data: whatever it raises is no fault of the user's
                continue
            if not self.stats.may_hold(data):
                data = before
                continue
            if key_of(data) != key_of(before) and rng.random() < 0.5:
                break
        return data

    def _next(self, kind: int, rng: Rng) -> Mutation:
        """Return the next mutation of a kind: all of them come in random order, and then again in another."""
        queue = self.queues[kind]
        if not queue:
            queue += [MUTATIONS[kind][int(i)] for i in rng.permutation(len(MUTATIONS[kind]))]
        return queue.pop()


def _place(records: Records, rng: Rng) -> int:
    if not records.size:
        raise UnfitError("there is no record")
    return int(rng.integers(records.size))


def _all(base: Records, records: Sequence[object]) -> object:
    """Return the data with other records in all places."""
    data = base.data
    for i, record in enumerate(records):
        data = records_of(data).put(i, record)
    return data


def copied(records: Records, stats: DataStats, rng: Rng) -> object:
    """Put a copy of a record in the place of another."""
    return records.put(_place(records, rng), records.record(_place(records, rng)))


def feature_copied(records: Records, stats: DataStats, rng: Rng) -> object:
    """Give a record one value of another: a shared product, key or number."""
    if not stats.mixes:
        raise UnfitError("which values go together is not known")
    index, donor = _place(records, rng), records.record(_place(records, rng))
    record = records.record(index)
    return records.put(index, with_feature(record, int(rng.integers(max(1, features_of(record)))), donor))


def _user(record: object, stats: DataStats) -> str:
    """Return whose a record is; UnfitError for two losses, which are no user and value."""
    if not stats.mixes and not isinstance(record, dict):
        raise UnfitError("a list of losses has no user")
    return user_of(record)


def to_another_user(records: Records, stats: DataStats, rng: Rng) -> object:
    """Give a record to the user of another."""
    index, donor = _place(records, rng), records.record(_place(records, rng))
    _user(donor, stats)
    return records.put(index, with_user_of(donor, records.record(index)))


def dealt(records: Records, stats: DataStats, rng: Rng) -> object:
    """Deal users and values in turn: as many different ones as there are, or as many records as fit."""
    users, values = dict[str, object](), dict[str, object]()
    for i in rng.permutation(len(stats.pool)):
        record = stats.pool[int(i)]
        users.setdefault(_user(record, stats), record)
        values.setdefault(key_of(plain_record(with_user_of(stats.pool[0], record))), record)
    count = max(len(users), len(values)) if rng.random() < 0.5 else stats.max_size
    turns = zip(cycle(users.values()), cycle(values.values()), strict=False)
    return _of_records(records, [with_user_of(*turn) for turn in islice(turns, min(count, stats.max_size))], stats)


def owned_by_one(records: Records, stats: DataStats, rng: Rng) -> object:
    """Put copies of the records of others before them, under one user, who has all that they have then."""
    if rng.random() < 0.5:
        records = records_of(dealt(records, stats, rng))
    owner = stats.pool[int(rng.integers(len(stats.pool)))]
    other_places = [i for i in range(records.size) if _user(records.record(i), stats) != _user(owner, stats)]
    kept_places = sorted(rng.permutation(other_places)[: stats.max_size // 2].tolist())
    copies = [with_user_of(owner, records.record(i)) for i in kept_places]
    return _of_records(records, [*copies, *(records.record(i) for i in kept_places)], stats)


def _of_records(base: Records, records: Sequence[object], stats: DataStats) -> object:
    """Return the data with these records alone."""
    if not base.size or not stats.min_size <= len(records) <= stats.max_size:
        raise UnfitError("a data set would have too few records, or too many")
    return _all(records_of(base.take([0] * len(records))), records)


def reordered(records: Records, stats: DataStats, rng: Rng) -> object:
    """Put the records in another order: turned round, moved on by one, or any."""
    places = list(range(records.size))
    turn = int(rng.integers(3))
    return records.take([places[::-1], places[1:] + places[:1], rng.permutation(records.size).tolist()][turn])


def alternating(records: Records, stats: DataStats, rng: Rng) -> object:
    """Let two records take turns, as in data whose records are paired."""
    pair = records.record(_place(records, rng)), records.record(_place(records, rng))
    return _all(records, [pair[i % 2] for i in range(records.size)])


def constant(records: Records, stats: DataStats, rng: Rng) -> object:
    """Make all records equal."""
    record = (
        stats.pool[int(rng.integers(len(stats.pool)))] if rng.random() < 0.5 else records.record(_place(records, rng))
    )
    return _all(records, [record] * records.size)


def with_an_outlier(records: Records, stats: DataStats, rng: Rng) -> object:
    """Make all records equal but one, which is drawn: first, last or anywhere."""
    index = (0, records.size - 1, _place(records, rng))[int(rng.integers(3))]
    rest = records.record(_place(records, rng))
    outlier = stats.pool[int(rng.integers(len(stats.pool)))]
    return _all(records, [outlier if i == index else rest for i in range(records.size)])


def longer(records: Records, stats: DataStats, rng: Rng) -> object:
    """Add a copy of one record, or repeat all of them up to the largest size seen."""
    n_free = stats.max_size - records.size
    if n_free < 1 or not records.size:
        raise UnfitError("there is no room for more records")
    n_added = 1 if rng.random() < 0.5 else n_free
    index = _place(records, rng)
    return records.take([*range(records.size), *((index + i) % records.size for i in range(n_added))])


def shorter(records: Records, stats: DataStats, rng: Rng) -> object:
    """Take one record away, which makes an even number odd."""
    if records.size <= stats.min_size:
        raise UnfitError("a data set would have too few records")
    return records.without(_place(records, rng))


def _numbers(records: Records, stats: DataStats, *, new: bool = True) -> dict[Path, Decimal]:
    """Return the numbers of the data at one place of its records each; UnfitError where none may be new."""
    if new and not stats.exact:
        raise UnfitError("which numbers fit is not known")
    numbers = dict(numbers_of(to_json(records.data)))
    if not numbers:
        raise UnfitError("there are no numbers")
    return numbers


def _any_of(paths: Sequence[Path], rng: Rng) -> Path:
    return paths[int(rng.integers(len(paths)))]


def _limit(low: Decimal, high: Decimal, rng: Rng, largest: Decimal = Decimal(0)) -> Decimal:
    """Return a number at a limit of a type that holds some numbers, or beside it."""
    limits = [limit for limit in LIMITS if limit >= largest or limit in INEXACT]
    limits = [sign * limit for limit in limits for sign in (1, -1) if low <= sign * limit <= high]
    if not limits:
        raise UnfitError("there is no limit of a type in this range")
    return limits[int(rng.integers(len(limits)))] + int(rng.integers(-1, 2))


def _with_numbers(records: Records, numbers: dict[Path, Decimal]) -> object:
    return from_json(with_numbers(to_json(records.data), numbers))


def at_a_limit(records: Records, stats: DataStats, rng: Rng) -> object:
    """Put a number where a type ends, or beside it."""
    path = _any_of(list(_numbers(records, stats)), rng)
    return _with_numbers(records, {path: _limit(*stats.range_at(path), rng)})


def sum_at_a_limit(records: Records, stats: DataStats, rng: Rng) -> object:
    """Let the numbers at one place of all records add up to where a type ends, or beside it.

    Where whole numbers add up to no limit, records are repeated until their numbers can reach one.
    """
    form, numbers = to_json(records.data), _numbers(records, stats)
    any_path = _any_of(list(numbers), rng)
    kind = kind_of(any_path)
    paths = [path for path in numbers if kind_of(path) == kind]
    low, high = stats.range_at(any_path)
    largest = max(abs(low), abs(high))
    try:
        rest = _limit(len(paths) * low, len(paths) * high, rng, largest)
    except UnfitError:
        if not is_whole(form, any_path):
            raise
        rest = _limit(MAX_SUMMED * low, MAX_SUMMED * high, rng, largest)
        count = math.ceil(rest / (high if rest > 0 else low))
        records = records_of(records.take([i % records.size for i in range(count)]))
        paths = [path for path, _ in numbers_of(to_json(records.data)) if kind_of(path) == kind]
    new: dict[Path, Decimal] = {}
    for left, path in zip(range(len(paths) - 1, -1, -1), paths, strict=True):
        new[path] = max(low, min(high, rest - left * low))
        rest -= new[path]
    return _with_numbers(records, new)


def smaller(records: Records, stats: DataStats, rng: Rng) -> object:
    """Divide all numbers that are not whole by a power of 2: one record that stays large outweighs them then."""
    form, numbers = to_json(records.data), _numbers(records, stats)
    factor = Decimal(2) ** -int(rng.integers(1, SMALLER + 1))
    return _with_numbers(records, {p: x * factor for p, x in numbers.items() if not is_whole(form, p)})


def beside_another(records: Records, stats: DataStats, rng: Rng) -> object:
    """Put a number at another one of its place, or next to it: there bins and thresholds end."""
    form, numbers = to_json(records.data), _numbers(records, stats)
    path = _any_of(list(numbers), rng)
    goal = numbers[_any_of([other for other in numbers if kind_of(other) == kind_of(path)], rng)]
    direction = int(rng.integers(-1, 2))
    if is_whole(form, path):
        return _with_numbers(records, {path: goal + direction})
    neighbour = math.nextafter(float(goal), math.inf * direction) if direction else float(goal)
    return _with_numbers(records, {path: Decimal(repr(neighbour))})


#: All mutations, of records and of numbers. A new one is one function and its place here.
OF_RECORDS: tuple[Mutation, ...] = (
    *(copied, feature_copied, to_another_user, dealt, owned_by_one, reordered, alternating, constant),
    *(with_an_outlier, longer, shorter),
)
OF_NUMBERS: tuple[Mutation, ...] = (at_a_limit, sum_at_a_limit, smaller, beside_another)
MUTATIONS = OF_RECORDS, OF_NUMBERS
