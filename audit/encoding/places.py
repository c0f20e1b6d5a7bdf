"""The scalars of nested outputs, each at its place: of many outputs at once, place by place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import zip_longest
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...learners.protocol import LearnerError
from .columns import REPEATS
from .objects import category, plain

#: The most levels of nesting.
MOST_LEVELS = 50
#: The most values that one output may hold side by side, and the most numbers of a vector: with more even the smallest
#: audit takes minutes.
MOST_COLUMNS, MOST_NUMBERS = 2**14, 2**17
#: Where the places of a dictionary's keys stand, beside its keys and values; the records of a table, by their ids; and
#: the last parts of a list by how far they are from its end, the most of them.
ORDER, BY_ID, FROM_END, MOST_FROM_END = -1, -2, -3, 4
#: The most values that are read by the id beside them.
MOST_READ = 512
#: Parts by their number, and what a dictionary holds by the text of its key.
Path = tuple[int | str, ...]
#: The numbers of some outputs.
Runs = NDArray[np.intp]
#: A place, which outputs have a scalar of one type there, and these scalars.
Placed = tuple[Path, Runs, Sequence[Any]]
#: The fewest parts that are counted; the kinds of such a part, or of its own ones, and of these the most.
FEWEST_COUNTED, MOST_OWN = 8, 8
_COUNTED = {str, int, bool, bytes, type(None), np.int64, np.str_}
#: What needs no look at what it is.
_PLAIN = (list, tuple, dict, set)
_NOTHING = object()
#: The columns of a table by their names or numbers.
Columns = dict[Hashable, Sequence[Any]]


class Size(NamedTuple):
    """What an output holds other parts in, and how many."""

    kind: str
    parts: int


@dataclass(frozen=True)
class Table:
    """Records, or columns of one length, that an id in one of their fields may tell apart: see `by_id`."""

    records: Any

    @staticmethod
    def is_in(parts: Mapping[Any, Any] | Sequence[Any]) -> bool:
        """Tell whether parts look like records or columns."""
        first = next(iter(parts.values() if isinstance(parts, Mapping) else parts), None)
        return isinstance(first, list | tuple | dict) or hasattr(first, "__dataclass_fields__")

    @cached_property
    def columns(self) -> Columns:
        """The columns of records that are alike, or lists of one length; none where there is no table."""
        if isinstance(self.records, Mapping):
            return _of_one_length(self.records)
        records: list[Any] = [one if type(one) in (dict, list, tuple) else plain(one) for one in self.records]
        if len(records) == 2 and isinstance(records[0], list) and isinstance(records[1], dict):  # a frame, its labels
            return _of_one_length({None: records[0], **records[1]})
        kinds = {(type(one), len(one)) if isinstance(one, dict | list | tuple) else None for one in records}
        if len(kinds) != 1 or None in kinds:
            return {}
        first = records[0]
        if not isinstance(first, dict):
            return dict(enumerate(zip(*records, strict=True)))
        if any(record.keys() != first.keys() for record in records):
            return {}
        return {name: [record[name] for record in records] for name in first}


class Bag(tuple[Any, ...]):
    """Parts that may repeat themselves, whose order may say nothing: texts, whole numbers, small records of them."""

    __slots__ = ()

    @classmethod
    def of(cls, parts: Sequence[Any], fewest: int = FEWEST_COUNTED) -> Bag:
        """Return those of a list or set; none of so few that their places say what they are."""
        kinds = set(map(type, parts))
        if len(parts) < fewest or kinds == {float}:
            return cls()
        if len(kinds) == 1 and kinds <= _COUNTED:
            return cls(parts)
        return cls(repr(part) for part in parts if _is_counted(part))


class Ends(NamedTuple):
    """A list whose length may vary, and with it the places of its last parts: see `from_end`."""

    parts: Sequence[Any]

    @staticmethod
    def differ(lists: Iterable[Ends]) -> bool:
        """Tell whether lists are of several lengths, and not all of them so short that these and places say it.

        Small records are counted, wherever they stand.
        """
        some = [one.parts for one in lists]
        lengths = set(map(len, some))
        nested = any(isinstance(parts[-1], list | tuple | dict) and _is_counted(parts[-1]) for parts in some if parts)
        return len(lengths) > 1 and max(lengths) > MOST_FROM_END and not nested


#: What stands beside the scalars.
NO_SCALARS = (Bag, Table, Ends)


def _is_counted(part: object) -> bool:
    if isinstance(part, list | tuple | dict):
        own = part.values() if isinstance(part, dict) else part
        return 0 < len(part) <= MOST_OWN and set(map(type, own)) <= _COUNTED
    return type(part) in _COUNTED


def scalars(output: object) -> Iterator[tuple[Path, object]]:
    """Yield the scalars of an output with their places, and the `Size` of all that is nested, in a fixed order.

    Raises
    ------
    LearnerError
        For what cannot be read, such as a coroutine.
    """
    return ((path, leaves[0]) for path, _, leaves in _scalars_within((), np.arange(1), [output]))


def as_text(outputs: Sequence[object]) -> str:
    """Return all scalars of many outputs, nan included, with their places, as a text that is the same for the same."""
    read = _scalars_within((), np.arange(len(outputs)), outputs)
    return repr([(path, runs.tolist(), leaves) for path, runs, leaves in read])


def placed(outputs: Sequence[object]) -> Iterator[Placed]:
    """Yield the scalars of many outputs with their places, and the `Size` of all that is nested.

    Beside them stands each `Bag`, `Table` and `Ends`. What is yielded of an output does not depend on the others.

    Raises
    ------
    LearnerError
        For what cannot be read, such as a coroutine.
    """
    if outputs:
        check_width(_width(outputs[0]))
    return within((), np.arange(len(outputs)), outputs)


def check_width(columns: int, most: int = MOST_COLUMNS) -> None:
    """Raise LearnerError for outputs that are too wide to be audited in any reasonable time."""
    if columns > most:
        raise LearnerError(
            f"the mechanism returned an output of {columns:,} columns, more than the {most:,} that an audit "
            "reads: return fewer, such as those that one record changes"
        )


def _width(output: Any, levels: int = MOST_LEVELS) -> int:
    """Return how many scalars an output holds."""
    if isinstance(output, str | bytes) or not levels:
        return 1
    if isinstance(size := getattr(output, "size", None), int):  # of arrays and data frames
        return size
    if isinstance(output, Set | Sequence | Mapping):
        parts = output.values() if isinstance(output, Mapping) else output
        return sum(_width(part, levels - 1) for part in parts)
    return 1


def of_one_type(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    """Yield what stands at a place, type by type."""
    kinds = list(map(type, values))
    if len(set(kinds)) <= 1:
        if values:
            yield path, runs, values
        return
    places: dict[type, list[int]] = defaultdict(list)
    for i, kind in enumerate(kinds):
        places[kind].append(i)
    for here in places.values():
        yield path, runs[here], [values[i] for i in here]


def within(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    """Yield what stands at a place, and within it."""
    for _, those, alike in of_one_type(path, runs, values):
        if isinstance(alike[0], float | int | str | bytes | None):
            yield path, those, alike
        else:
            known = alike if type(alike[0]) in _PLAIN else list(map(plain, alike))
            for _, some, parts in of_one_type(path, those, known):
                yield from _nested(path, some, parts)


def _nested(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    """Yield what values of one type hold."""
    one = values[0]
    if isinstance(one, Set):
        parts: Sequence[Sequence[Any]] = [sorted(value, key=text_of_part) for value in values]
    elif isinstance(one, complex):
        parts = [(value.real, value.imag) for value in values]
    elif isinstance(one, Mapping) or (isinstance(one, Sequence) and not isinstance(one, str | bytes)):
        parts = values
    else:
        known = isinstance(one, Real | Decimal | str | bytes | None)
        yield path, runs, values if known else list(map(category, values))
        return
    if len(path) == MOST_LEVELS:
        raise LearnerError(f"the mechanism returned more than {MOST_LEVELS} levels of nesting")
    check_width(max(map(len, parts)))
    kind, each = type(one).__name__, 2 if isinstance(one, Mapping) else 1  # a key and what it holds
    yield path, runs, [Size(kind, each * len(part)) for part in parts]
    if tables := [(run, Table(part)) for run, part in zip(runs.tolist(), parts, strict=True) if Table.is_in(part)]:
        yield path, np.array([run for run, _ in tables]), [table for _, table in tables]
    if isinstance(one, Mapping):
        yield from _of_keys(path, runs, values)
        return
    fewest = 1 if isinstance(one, Set) else FEWEST_COUNTED
    counted = [Bag.of(part, fewest) for part in parts]
    if bags := [(run, bag) for run, bag in zip(runs.tolist(), counted, strict=True) if bag]:
        yield path, np.array([run for run, _ in bags]), [bag for _, bag in bags]
    if not isinstance(one, Set | complex):
        yield path, runs, list(map(Ends, parts))
    yield from _of_parts(path, runs, parts)


def _of_parts(path: Path, runs: Runs, parts: Sequence[Sequence[Any]], step: int = 1) -> Iterator[Placed]:
    """Yield what the parts of sequences, whose places are so far apart, hold."""
    shortest = min(map(len, parts))
    for i, column in enumerate(zip_longest(*parts, fillvalue=_NOTHING)):
        if i < shortest:
            yield from within((*path, step * i), runs, column)
        else:
            here = [run for run, part in enumerate(column) if part is not _NOTHING]
            yield from within((*path, step * i), runs[here], [column[run] for run in here])


def _of_keys(path: Path, runs: Runs, mappings: Sequence[Mapping[Any, Any]]) -> Iterator[Placed]:
    """Yield the keys of dictionaries by their texts, in order, and what they hold; which key comes first may tell.

    Where all have the same keys, each text stands before what its key holds: frozen events name outcomes so.
    """
    known: dict[tuple[object, ...], _Keys] = {}  # most have the same keys
    of: list[_Keys] = []
    for mapping in mappings:
        keys = tuple(mapping)
        plainly = set(map(type, keys)) <= {str, int, bytes}  # others may be equal and have other texts
        of.append(known[keys] if plainly and keys in known else _Keys.of(keys))
        if plainly:
            known[keys] = of[-1]
    if all(one is of[0] for one in of):
        texts, order = of[0]
        held = list(zip(*(mapping.values() for mapping in mappings), strict=True))
        for i, place in enumerate(order):
            yield from within((*path, 2 * i), runs, [texts[place]] * len(of))
            yield from within((*path, texts[place]), runs, held[place])
    else:
        yield from _of_parts(path, runs, [[texts[place] for place in order] for texts, order in of], step=2)
        at: dict[str, tuple[list[int], list[Any]]] = defaultdict(lambda: ([], []))
        for run, (texts, _), mapping in zip(runs.tolist(), of, mappings, strict=True):
            for text, value in zip(texts, mapping.values(), strict=True):
                at[text][0].append(run)
                at[text][1].append(value)
        for text in sorted(at):
            yield from within((*path, text), np.array(at[text][0]), at[text][1])
    if moved := [i for i, (_, order) in enumerate(of) if order != sorted(order)]:
        yield from within((*path, ORDER), runs[moved], [of[i].order for i in moved])


def text_of_part(part: object) -> str:
    """Return the text of a key or of a set's part: sets within have theirs in an order that no hash decides."""
    if not isinstance(part, Set | tuple):
        return repr(part)
    texts = list(map(text_of_part, part))
    if type(part) is tuple:
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
    return f"{type(part).__name__}({{{', '.join(sorted(texts))}}})" if isinstance(part, Set) else repr(part)


class _Keys(NamedTuple):
    """The texts of a dictionary's keys, no two the same, and the places of these texts in their order."""

    texts: list[str]
    order: list[int]

    @classmethod
    def of(cls, keys: Sequence[object]) -> _Keys:
        texts = list(map(text_of_part, keys))
        if len(set(texts)) < len(texts):
            texts = [f"{text} {i}" for i, text in enumerate(texts)]
        return cls(texts, sorted(range(len(texts)), key=texts.__getitem__))


class Ids(NamedTuple):
    """The column of a table, or the columns together, by whose values records are known, and those values."""

    columns: tuple[Hashable, ...]
    known: Set[Any]

    @staticmethod
    def values(table: Columns, names: tuple[Hashable, ...]) -> tuple[Any, ...]:
        """Return what these columns say of each record; nothing where that does not tell records apart."""
        columns = [table.get(name, ()) for name in names]
        if not all(set(map(type, column)) <= _COUNTED for column in columns):
            return ()
        values = tuple(columns[0]) if len(columns) == 1 else tuple(zip(*columns, strict=False))
        return values if len(set(values)) == len(values) else ()

    @classmethod
    def of_tables(cls, tables: Mapping[Path, Sequence[Placed]]) -> dict[Path, Ids]:
        """Return them where tables have such a column."""
        found = {path: cls.of([table.columns for *_, leaves in of for table in leaves]) for path, of in tables.items()}
        return {path: ids for path, ids in found.items() if ids is not None}

    @classmethod
    def of(cls, tables: Sequence[Columns]) -> Ids | None:
        """Return the column whose values, none twice in a table and not always in the same places, return most.

        All columns without floats may be one together.
        """
        first = tables[0]
        alone = [(name,) for name in first if cls.values(first, (name,))]
        counted = tuple(name for name, values in first.items() if set(map(type, values)) <= _COUNTED)
        chosen, best = None, 0
        for names in [*alone, counted] if len(counted) < len(first) else alone:
            held = [cls.values(of, names) for of in tables]
            if all(held) and len(set(held)) > 1:
                times = Counter(value for values in held for value in values)
                often = [(-count, repr(value), value) for value, count in times.items() if count >= REPEATS]
                often = sorted(often, key=lambda one: one[:2])[: MOST_READ // len(first)]
                if (total := -sum(one[0] for one in often)) > best:
                    best, chosen = total, cls(names, {value for *_, value in often})
        return chosen


def by_id(path: Path, runs: Runs, leaves: Sequence[Any], ids: Mapping[Path, Ids]) -> Iterator[Placed]:
    """Yield the scalars of tables beside ids that are known, at a place for each id and column."""
    if path not in ids:
        return
    names, known = ids[path]
    held: dict[tuple[str, str], tuple[list[int], list[Any]]] = defaultdict(lambda: ([], []))
    for run, table in enumerate(leaves):
        values = Ids.values(table.columns, names)
        here = [(i, repr(value)) for i, value in enumerate(values) if value in known]
        for other, column in table.columns.items():
            for i, text in here if other not in names else ():
                those, parts = held[text, repr(other)]
                those.append(run)
                parts.append(column[i])
    for steps, (those, parts) in held.items():
        yield from _scalars_within((*path, BY_ID, *steps), runs[those], parts)


def from_end(path: Path, runs: Runs, leaves: Sequence[Ends]) -> Iterator[Placed]:
    """Yield the scalars of the last parts of lists, each at a place for how far from the end its part is."""
    for i in range(MOST_FROM_END):
        here = [run for run, end in enumerate(leaves) if len(end.parts) > i]
        if here:
            parts = [leaves[run].parts[-1 - i] for run in here]
            yield from _scalars_within((*path, FROM_END, i), runs[here], parts)


def _scalars_within(path: Path, runs: Runs, parts: Sequence[Any]) -> Iterator[Placed]:
    return (placed for placed in within(path, runs, parts) if type(placed[2][0]) not in NO_SCALARS)


def _of_one_length(named: Mapping[Any, Any]) -> Columns:
    """Return lists of one length by their names."""
    alike = all(isinstance(column, list | tuple) for column in named.values())
    return dict(named) if alike and len(set(map(len, named.values()))) == 1 else {}
