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
_COUNTED_TYPES = {str, int, bool, bytes, type(None), np.int64, np.str_}
#: What needs no look at what it is.
_PLAIN_TYPES = (list, tuple, dict, set)
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
        records: list[Any] = [
            record if type(record) in (dict, list, tuple) else plain(record) for record in self.records
        ]
        if len(records) == 2 and isinstance(records[0], list) and isinstance(records[1], dict):  # a frame, its labels
            return _of_one_length({None: records[0], **records[1]})
        kinds = {
            (type(record), len(record)) if isinstance(record, dict | list | tuple) else None for record in records
        }
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
    def of(cls, parts: Sequence[Any], min_count: int = FEWEST_COUNTED) -> Bag:
        """Return those of a list or set; none of so few that their places say what they are."""
        kinds = set(map(type, parts))
        if len(parts) < min_count or kinds == {float}:
            return cls()
        if len(kinds) == 1 and kinds <= _COUNTED_TYPES:
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
        part_lists = [ends.parts for ends in lists]
        lengths = set(map(len, part_lists))
        nested = any(
            isinstance(parts[-1], list | tuple | dict) and _is_counted(parts[-1]) for parts in part_lists if parts
        )
        return len(lengths) > 1 and max(lengths) > MOST_FROM_END and not nested


#: What stands beside the scalars.
NO_SCALARS = (Bag, Table, Ends)


def _is_counted(part: object) -> bool:
    if isinstance(part, list | tuple | dict):
        values = part.values() if isinstance(part, dict) else part
        return 0 < len(part) <= MOST_OWN and set(map(type, values)) <= _COUNTED_TYPES
    return type(part) in _COUNTED_TYPES


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


def check_width(columns: int, max_columns: int = MOST_COLUMNS) -> None:
    """Raise LearnerError for outputs that are too wide to be audited in any reasonable time."""
    if columns > max_columns:
        raise LearnerError(
            f"the mechanism returned an output of {columns:,} columns, more than the {max_columns:,} that an audit "
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
    for values_of_type in places.values():
        yield path, runs[values_of_type], [values[i] for i in values_of_type]


def within(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    """Yield what stands at a place, and within it."""
    for _, those, same_type in of_one_type(path, runs, values):
        if isinstance(same_type[0], float | int | str | bytes | None):
            yield path, those, same_type
        else:
            read_parts = same_type if type(same_type[0]) in _PLAIN_TYPES else list(map(plain, same_type))
            for _, runs_of_type, parts in of_one_type(path, those, read_parts):
                yield from _nested(path, runs_of_type, parts)


def _nested(path: Path, runs: Runs, values: Sequence[Any]) -> Iterator[Placed]:
    """Yield what values of one type hold."""
    example = values[0]
    if isinstance(example, Set):
        parts: Sequence[Sequence[Any]] = [sorted(value, key=text_of_part) for value in values]
    elif isinstance(example, complex):
        parts = [(value.real, value.imag) for value in values]
    elif isinstance(example, Mapping) or (isinstance(example, Sequence) and not isinstance(example, str | bytes)):
        parts = values
    else:
        scalar = isinstance(example, Real | Decimal | str | bytes | None)
        yield path, runs, values if scalar else list(map(category, values))
        return
    if len(path) == MOST_LEVELS:
        raise LearnerError(f"the mechanism returned more than {MOST_LEVELS} levels of nesting")
    check_width(max(map(len, parts)))
    kind, step = type(example).__name__, 2 if isinstance(example, Mapping) else 1  # a key and what it holds
    yield path, runs, [Size(kind, step * len(part)) for part in parts]
    if tables := [(run, Table(part)) for run, part in zip(runs.tolist(), parts, strict=True) if Table.is_in(part)]:
        yield path, np.array([run for run, _ in tables]), [table for _, table in tables]
    if isinstance(example, Mapping):
        yield from _of_keys(path, runs, values)
        return
    min_count = 1 if isinstance(example, Set) else FEWEST_COUNTED
    counted_bags = [Bag.of(part, min_count) for part in parts]
    if bags := [(run, bag) for run, bag in zip(runs.tolist(), counted_bags, strict=True) if bag]:
        yield path, np.array([run for run, _ in bags]), [bag for _, bag in bags]
    if not isinstance(example, Set | complex):
        yield path, runs, list(map(Ends, parts))
    yield from _of_parts(path, runs, parts)


def _of_parts(path: Path, runs: Runs, parts: Sequence[Sequence[Any]], step: int = 1) -> Iterator[Placed]:
    """Yield what the parts of sequences, whose places are so far apart, hold."""
    shortest = min(map(len, parts))
    for i, column in enumerate(zip_longest(*parts, fillvalue=_NOTHING)):
        if i < shortest:
            yield from within((*path, step * i), runs, column)
        else:
            present = [run for run, part in enumerate(column) if part is not _NOTHING]
            yield from within((*path, step * i), runs[present], [column[run] for run in present])


def _of_keys(path: Path, runs: Runs, mappings: Sequence[Mapping[Any, Any]]) -> Iterator[Placed]:
    """Yield the keys of dictionaries by their texts, in order, and what they hold; which key comes first may tell.

    Where all have the same keys, each text stands before what its key holds: frozen events name outcomes so.
    """
    keys_of_names: dict[tuple[object, ...], _Keys] = {}  # most have the same keys
    key_lists: list[_Keys] = []
    for mapping in mappings:
        keys = tuple(mapping)
        plainly = set(map(type, keys)) <= {str, int, bytes}  # others may be equal and have other texts
        key_lists.append(keys_of_names[keys] if plainly and keys in keys_of_names else _Keys.of(keys))
        if plainly:
            keys_of_names[keys] = key_lists[-1]
    if all(item is key_lists[0] for item in key_lists):
        texts, order = key_lists[0]
        columns_of_key = list(zip(*(mapping.values() for mapping in mappings), strict=True))
        for i, place in enumerate(order):
            yield from within((*path, 2 * i), runs, [texts[place]] * len(key_lists))
            yield from within((*path, texts[place]), runs, columns_of_key[place])
    else:
        yield from _of_parts(path, runs, [[texts[place] for place in order] for texts, order in key_lists], step=2)
        runs_of_key: dict[str, tuple[list[int], list[Any]]] = defaultdict(lambda: ([], []))
        for run, (texts, _), mapping in zip(runs.tolist(), key_lists, mappings, strict=True):
            for text, value in zip(texts, mapping.values(), strict=True):
                runs_of_key[text][0].append(run)
                runs_of_key[text][1].append(value)
        for text in sorted(runs_of_key):
            yield from within((*path, text), np.array(runs_of_key[text][0]), runs_of_key[text][1])
    if reordered := [i for i, (_, order) in enumerate(key_lists) if order != sorted(order)]:
        yield from within((*path, ORDER), runs[reordered], [key_lists[i].order for i in reordered])


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
        if not all(set(map(type, column)) <= _COUNTED_TYPES for column in columns):
            return ()
        values = tuple(columns[0]) if len(columns) == 1 else tuple(zip(*columns, strict=False))
        return values if len(set(values)) == len(values) else ()

    @classmethod
    def of_tables(cls, tables: Mapping[Path, Sequence[Placed]]) -> dict[Path, Ids]:
        """Return them where tables have such a column."""
        ids_of_path = {
            path: cls.of([table.columns for *_, leaves in tables_of_path for table in leaves])
            for path, tables_of_path in tables.items()
        }
        return {path: ids for path, ids in ids_of_path.items() if ids is not None}

    @classmethod
    def of(cls, tables: Sequence[Columns]) -> Ids | None:
        """Return the column whose values, none twice in a table and not always in the same places, return most.

        All columns without floats may be one together.
        """
        first = tables[0]
        single_names = [(name,) for name in first if cls.values(first, (name,))]
        countable_names = tuple(name for name, values in first.items() if set(map(type, values)) <= _COUNTED_TYPES)
        ids, best = None, 0
        for names in [*single_names, countable_names] if len(countable_names) < len(first) else single_names:
            value_lists = [cls.values(table, names) for table in tables]
            if all(value_lists) and len(set(value_lists)) > 1:
                times = Counter(value for values in value_lists for value in values)
                often = [(-count, repr(value), value) for value, count in times.items() if count >= REPEATS]
                often = sorted(often, key=lambda entry: entry[:2])[: MOST_READ // len(first)]
                if (total := -sum(entry[0] for entry in often)) > best:
                    best, ids = total, cls(names, {value for *_, value in often})
        return ids


def by_id(path: Path, runs: Runs, leaves: Sequence[Any], ids: Mapping[Path, Ids]) -> Iterator[Placed]:
    """Yield the scalars of tables beside ids that are known, at a place for each id and column."""
    if path not in ids:
        return
    names, identifiers = ids[path]
    runs_of_key: dict[tuple[str, str], tuple[list[int], list[Any]]] = defaultdict(lambda: ([], []))
    for run, table in enumerate(leaves):
        values = Ids.values(table.columns, names)
        present = [(i, repr(value)) for i, value in enumerate(values) if value in identifiers]
        for other, column in table.columns.items():
            for i, text in present if other not in names else ():
                those, parts = runs_of_key[text, repr(other)]
                those.append(run)
                parts.append(column[i])
    for steps, (those, parts) in runs_of_key.items():
        yield from _scalars_within((*path, BY_ID, *steps), runs[those], parts)


def from_end(path: Path, runs: Runs, leaves: Sequence[Ends]) -> Iterator[Placed]:
    """Yield the scalars of the last parts of lists, each at a place for how far from the end its part is."""
    for i in range(MOST_FROM_END):
        reaching = [run for run, end in enumerate(leaves) if len(end.parts) > i]
        if reaching:
            parts = [leaves[run].parts[-1 - i] for run in reaching]
            yield from _scalars_within((*path, FROM_END, i), runs[reaching], parts)


def _scalars_within(path: Path, runs: Runs, parts: Sequence[Any]) -> Iterator[Placed]:
    return (placed for placed in within(path, runs, parts) if type(placed[2][0]) not in NO_SCALARS)


def _of_one_length(column_of_name: Mapping[Any, Any]) -> Columns:
    """Return lists of one length by their names."""
    sequences = all(isinstance(column, list | tuple) for column in column_of_name.values())
    return dict(column_of_name) if sequences and len(set(map(len, column_of_name.values()))) == 1 else {}
