"""The records of a data set, whatever holds them: lists, arrays, frames, tables of several parts, dictionaries.

A record is what one person contributes: an item of a list, tuple or set, a row of an array or a frame, a row across
the parts of labelled data `(X, y)` or of a dictionary of columns, an item of a dictionary of anything else. Data that
is none of these is one record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import hinted
from ...mechanisms.relations import RelationError
from ...mechanisms.relations import records as relations
from ...mechanisms.relations.canonical import USER, kind_of_value, zero_of
from ...mechanisms.relations.records import UnfitError
from ..play.data import UnreadableDataError, from_json, import_pandas, is_frame, is_series, key_of, to_json


class Records(relations.Records):
    """The records of one data set. Nothing is changed in place: every method returns data anew.

    Attributes
    ----------
    removable : bool
        Whether records can be taken away.
    """

    removable: ClassVar[bool] = True

    def check_removable(self) -> None:
        """Raise RelationError where no record can ever be taken away."""
        if not self.removable:
            raise RelationError(f"{type(self.data).__name__} data is one record, which cannot be taken away")

    def without(self, index: int) -> object:
        """Return the data without a record."""
        return self.take([i for i in range(self.size) if i != index])

    def records_of(self, data: object) -> Records:
        """Return the records of other data."""
        return records_of(data)

    @property
    def form(self) -> Any:
        """The data's form in a record."""
        return to_json(self.data)

    def read(self, form: object) -> Any:
        """Return the data that a form stands for."""
        return from_json(form)

    def zeroed(self, record: Any) -> Any:
        """Return a record with 0 for its numbers and nothing for its texts."""
        return zeroed(record)

    def user_of(self, record: Any) -> str:
        """Return a text that says whose a record is."""
        return user_of(record)

    def with_user_of(self, record: Any, other: Any) -> Any:
        """Return another record under the user of this one."""
        return with_user_of(record, other)

    def features_of(self, record: Any) -> int:
        """Return how many features a record has."""
        return features_of(record)

    def with_feature(self, record: Any, feature: int, other: Any) -> Any:
        """Return a record with one feature of another record."""
        return with_feature(record, feature, other)


def records_of(data: object) -> Records:
    """Return the records of a data set.

    Raises
    ------
    RelationError
        For parts of a table that have different numbers of rows.
    """
    if isinstance(data, np.ndarray) and data.ndim:
        return _Array(data)
    if is_frame(data) or is_series(data):
        return _Frame(data)
    if isinstance(data, Mapping):
        parts = list(data.values())
        return _Table(data, parts) if parts and all(map(_is_rows, parts)) else _Keyed(data)
    if isinstance(data, tuple) and len(data) > 1 and all(map(_is_rows, data)):
        return _Table(data, list(data))
    if isinstance(data, list | tuple):
        return _Items(data)
    if isinstance(data, set | frozenset):
        return _Set(data)
    return _Single(data)


def records_or_whole(data: object) -> Records:
    """Return the records of a data set; data that has none, as parts of different numbers of rows, is one record."""
    try:
        return records_of(data)
    except RelationError:
        return _Single(data)


def _key_and_value(record: Any) -> tuple[Any, Any]:
    """Return a dictionary's record; raise UnfitError for one of data of another kind."""
    if not isinstance(record, tuple) or len(record) != 2:
        raise UnfitError("a record that is no key and value does not fit the dictionary")
    return record


def _check_no_table(parts: Collection[object]) -> None:
    """Raise UnfitError where data that was no table would be one, whose records are others."""
    if all(map(_is_rows, parts)):
        raise UnfitError("the record makes a table of the data")


def _is_rows(part: object) -> bool:
    return (
        isinstance(part, list) or is_frame(part) or is_series(part) or (isinstance(part, np.ndarray) and part.ndim > 0)
    )


class _Items(Records):
    data: list[object] | tuple[object, ...]

    def __init__(self, data: list[object] | tuple[object, ...]) -> None:
        self.data, self.size = data, len(data)

    def record(self, index: int) -> object:
        return self.data[index]

    def take(self, indices: Sequence[int]) -> Collection[object]:
        return type(self.data)([self.data[i] for i in indices])

    def put(self, index: int, record: object) -> Collection[object]:
        new_data = type(self.data)([record if i == index else item for i, item in enumerate(self.data)])
        if isinstance(new_data, tuple) and len(new_data) > 1:
            _check_no_table(new_data)
        return new_data


class _Set(Records):
    data: set[object] | frozenset[object]

    def __init__(self, data: set[object] | frozenset[object]) -> None:
        self.data, self.size, self.items = data, len(data), sorted(data, key=repr)

    def record(self, index: int) -> object:
        return self.items[index]

    def take(self, indices: Sequence[int]) -> Collection[object]:
        return type(self.data)(self.items[i] for i in indices)

    def put(self, index: int, record: object) -> Collection[object]:
        if record in self.data and record != self.items[index]:
            raise UnfitError(f"the record {record!r} is there already")
        return type(self.data)(record if i == index else item for i, item in enumerate(self.items))


class _Array(Records):
    data: NDArray[np.generic]

    def __init__(self, data: NDArray[np.generic]) -> None:
        self.data, self.size = data, len(data)

    def record(self, index: int) -> object:
        return self.data[index]

    def take(self, indices: Sequence[int]) -> object:
        return self.data[np.asarray(indices, dtype=np.intp)]

    def put(self, index: int, record: Any) -> object:
        if np.shape(record) != self.data.shape[1:]:
            raise UnfitError(f"a record of shape {np.shape(record)} does not fit rows of {self.data.shape[1:]}")
        new_data = self.data.copy()
        new_data[index] = record
        return new_data


class _Frame(Records):
    data: Any  # of pandas, which is not imported for its types

    def __init__(self, data: Any) -> None:
        self.data, self.size = data, len(data)

    def record(self, index: int) -> object:
        return self.data.iloc[[index]]

    def take(self, indices: Sequence[int]) -> object:
        frame = self.data.iloc[list(indices)]
        is_labelled = not self.data.index.equals(import_pandas().RangeIndex(self.size))
        return frame if is_labelled and frame.index.is_unique else frame.reset_index(drop=True)

    def put(self, index: int, record: object) -> object:
        pandas = import_pandas()
        parts = [self.data.iloc[:index], record, self.data.iloc[index + 1 :]]
        new_data = pandas.concat([part for part in parts if len(part)], ignore_index=True)
        same_types = (
            new_data.dtypes.equals(self.data.dtypes) if is_frame(new_data) else new_data.dtype == self.data.dtype
        )
        if not same_types:
            raise UnfitError("a record with other types of columns does not fit the frame")
        return new_data.set_axis(self.data.index)  # labels name the records


class _Table(Records):
    """Several parts with a row for each record."""

    data: Mapping[object, object] | tuple[object, ...]

    def __init__(self, data: Mapping[object, object] | tuple[object, ...], parts: Sequence[object]) -> None:
        self.data, self.parts = data, [records_of(part) for part in parts]
        sizes = [part.size for part in self.parts]
        self.size = sizes[0]
        if len(set(sizes)) > 1:
            raise hinted(
                RelationError(
                    f"the parts of a table must have a row for each record, got {', '.join(map(str, sizes))} rows"
                ),
                "for other data give a function as the relation",
            )

    def _whole(self, parts: Sequence[object]) -> object:
        return tuple(parts) if isinstance(self.data, tuple) else dict(zip(self.data, parts, strict=True))

    def record(self, index: int) -> object:
        return _Row([part.record(index) for part in self.parts])

    def take(self, indices: Sequence[int]) -> object:
        return self._whole([part.take(indices) for part in self.parts])

    def put(self, index: int, record: object) -> object:
        if not isinstance(record, _Row) or len(record.cells) != len(self.parts):
            raise UnfitError("a record with other parts does not fit the table")
        return self._whole([part.put(index, cell) for part, cell in zip(self.parts, record.cells, strict=True)])


@dataclass(frozen=True)
class _Row:
    """A record of a table: the row of each part."""

    cells: list[object]


class _Keyed(Records):
    """A dictionary whose items are the records."""

    data: Mapping[object, object]

    def __init__(self, data: Mapping[object, object]) -> None:
        self.data, self.size, self.items = data, len(data), list(data.items())

    def record(self, index: int) -> object:
        return self.items[index]

    def take(self, indices: Sequence[int]) -> object:
        return dict(self.items[i] for i in indices)

    def put(self, index: int, record: Any) -> object:
        key, value = _key_and_value(record)
        if key != self.items[index][0] and key in self.data:
            raise UnfitError(f"the key {key!r} is there already")
        new_data = dict((key, value) if i == index else item for i, item in enumerate(self.items))
        _check_no_table(new_data.values())
        return new_data

    def replaced(self, record: Any, other: Any) -> Any:
        """Return the item with the value of another, which none of this data set's has: its key names the record."""
        key, value = _key_and_value(other)
        if key != record[0] and key in self.data:
            raise UnfitError(f"the key {key!r} is there already")
        return record[0], value

    def zeroed(self, record: Any) -> Any:
        """Return the item with its value as zero."""
        return record[0], zeroed(record[1])

    def features_of(self, record: Any) -> int:
        """Return how many features the value of an item has."""
        return features_of(record[1])

    def with_feature(self, record: Any, feature: int, other: Any) -> Any:
        """Return the item with one feature of another's value."""
        return record[0], with_feature(record[1], feature, _key_and_value(other)[1])


class _Single(Records):
    """Data that is one record, and always there."""

    removable = False

    def __init__(self, data: object) -> None:
        self.data, self.size = data, 1

    def record(self, index: int) -> object:
        return self.data

    def take(self, indices: Sequence[int]) -> object:
        if list(indices) != [0]:
            self.check_removable()
        return self.data

    def put(self, index: int, record: object) -> object:
        kinds = {kind_of_value(to_json(value)) for value in (self.data, record) if value is not None}
        if len(kinds) > 1:
            raise UnfitError(f"data of other kinds: {', '.join(sorted(kinds))}")
        return record


def features_of(record: object) -> int:
    """Return how many features a record has: a number or a text has one."""
    if isinstance(record, _Row):
        return sum(map(features_of, record.cells))
    if is_frame(record):
        return int(record.shape[1])
    if isinstance(record, np.ndarray):
        return int(record.size) if record.ndim else 1
    if isinstance(record, list | tuple | Mapping):
        return len(record)
    return 1


def _form(record: object) -> str:
    """Return what kind of thing holds the features of a record; nothing for a number or a text, which is its own."""
    if isinstance(record, Mapping):
        return "mapping"
    if isinstance(record, list | tuple):
        return "sequence"
    if isinstance(record, np.ndarray):
        return "array" if record.ndim else ""
    return "row" if isinstance(record, _Row) else "frame" if is_frame(record) else ""


def with_feature(record: object, feature: int, other: Any) -> object:
    """Return a record with one feature of another record; UnfitError where the other has none."""
    if _form(record) != _form(other) or feature >= features_of(record):
        raise UnfitError("one of the records has no such feature")
    if isinstance(record, _Row):
        cells = list(record.cells)
        for i, cell in enumerate(cells):
            if feature < features_of(cell):
                cells[i] = with_feature(cell, feature, other.cells[i])
                return _Row(cells)
            feature -= features_of(cell)
    if is_frame(record):
        new_data = record.copy()
        new_data[new_data.columns[feature]] = other[new_data.columns[feature]].to_numpy()
        return new_data
    if isinstance(record, np.ndarray) and record.ndim:
        if np.shape(other) != record.shape:
            raise UnfitError("the records have different shapes")
        new_data = record.copy()
        new_data.flat[feature] = np.asarray(other).flat[feature]
        return new_data
    if isinstance(record, Mapping):
        key = list(record)[feature]
        if key not in other:
            raise UnfitError(f"the other record has no {key!r}")
        return {**record, key: other[key]}
    if isinstance(record, list | tuple):
        if len(other) <= feature:
            raise UnfitError("the other record has fewer features")
        return type(record)([other[i] if i == feature else part for i, part in enumerate(record)])
    return other


def zeroed(record: Any) -> Any:
    """Return a record with 0 for its numbers and nothing for its texts; its user and its form stay."""
    if isinstance(record, _Row):
        return _Row(list(map(zeroed, record.cells)))
    try:
        return from_json(zero_of(to_json(record)))
    except UnreadableDataError:
        raise UnfitError("nothing is no category of the column") from None


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
    text = " ".join(repr(getattr(record, "cells", record)).split())
    raise RelationError(f"a relation of users needs records (user, value) or with the key {USER!r}, got {text:.80}")


def with_user_of(record: Any, other: Any) -> Any:
    """Return another record under the user of this one."""
    if isinstance(record, dict):
        return {**other, USER: record[USER]}
    if is_frame(record):
        return other.assign(**{USER: record[USER].to_numpy()})
    return type(record)([record[0], *other[1:]])
