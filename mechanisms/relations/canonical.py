"""One form of all data, by which inputs are compared: its records, and what is no record and must stay the same.

It is read from the JSON that a record has of data (`{"$array": ...}`), whatever held it in Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import hinted

#: The key of a record that is a mapping, and the column of a frame, which say whose record it is.
USER = "user"
#: What holds typed values, which stand under its "data".
_TYPED = ("$array", "$scalar", "$series")


class RelationError(ValueError):
    """A neighbour relation that cannot apply to the data."""


def text_of(form: Any) -> str:
    """Return a text that equal forms have alike, in whatever order their mappings are."""
    return json.dumps(sorted_form(form), sort_keys=True, allow_nan=False)


def sorted_form(form: Any) -> Any:
    """Return a form whose mappings by other keys than text are in the order of the keys: they have none."""
    if isinstance(form, list):
        return [sorted_form(part) for part in form]
    if not isinstance(form, dict):
        return form
    if form.keys() == {"$map"}:
        return {"$map": sorted(sorted_form(form["$map"]), key=text_of)}
    return {name: sorted_form(part) for name, part in form.items()}


class Row(list[Any]):
    """A record with a value for each column; of a table, a record for each part."""

    def __init__(self, values: Sequence[Any], names: Sequence[str] | None = None) -> None:
        super().__init__(values)
        self.names = names


@dataclass(frozen=True)
class Canonical:
    """The records of data, and all else.

    Attributes
    ----------
    form : object
        The JSON of the data.
    kind : str
        What holds the records: a list, a tuple, a set, a table, a dictionary, an array, a frame, a series or, where
        the data is one record, a single value.
    frame : dict
        What must be equal, by its name: keys of a table, types and names of columns, the shape of a record.
    records : list
        Their forms.
    labels : list of str or None
        Keys or labels of the records, where they are more than their numbers.
    parts : tuple of Canonical
        Of a table.
    inferred : dict
        The frame without the categories that follow from the records.
    noun : {"record", "round"}
    """

    form: Any
    kind: str
    records: Sequence[Any]
    frame: dict[str, Any] = field(default_factory=dict)
    labels: Sequence[str] | None = None
    parts: tuple[Canonical, ...] = ()
    inferred: dict[str, Any] = field(default_factory=dict)
    noun: str = "record"

    @staticmethod
    def of(form: Any) -> Canonical:
        """Return the canonical form of data; RelationError for a table whose parts have different numbers of rows."""
        if isinstance(form, list):
            return Canonical(form, "list", form)
        tag, value = _tagged(form)
        if tag == "$tuple":
            return _table(form, "tuple", value) if len(value) > 1 and all(map(_is_rows, value)) else _opened(form)
        if tag in ("$set", "$frozenset"):
            return Canonical(form, tag[1:], value)
        if tag == "$array" and isinstance(value["data"], list):
            return _array(form, value)
        if tag == "$series":
            return _series(form, value)
        if tag == "$frame":
            return _frame(form, value)
        if isinstance(form, dict) and tag in ("", "$map"):
            values = [part for _, part in _items(form)]
            return _table(form, "table", values) if values and all(map(_is_rows, values)) else _opened(form)
        return Canonical(form, "single value", [form], {"kinds": kind_of_value(form)})

    @staticmethod
    def whatever(form: Any) -> Canonical:
        """Return the canonical form of data; a table whose parts have different numbers of rows is its items."""
        try:
            return Canonical.of(form)
        except RelationError:
            return _opened(form)

    @property
    def unlabelled(self) -> bool:
        """Whether nothing but their numbers names the records."""
        return self.labels is None

    def opened(self, other: Canonical) -> Canonical:
        """Return a table as its items, where the other is no table: without some of its items a mapping may be one."""
        kind_as_items = {"table": "dictionary", "tuple": "tuple"}.get(self.kind)
        return _opened(self.form) if self.parts and kind_as_items == other.kind and not other.parts else self

    def frame_fault(self, other: Canonical) -> str:
        """Return what differs that is no record."""
        kinds = [f"{side.kind} of parts" if side.parts else side.kind for side in (self, other)]
        if kinds[0] != kinds[1]:
            return f"their kinds differ: {kinds[0]} and {kinds[1]}"
        missing = self.kind == "single value" and None in (self.form, other.form)
        if self.frame != other.frame and (not self.inferred or self.inferred != other.inferred) and not missing:
            name = next(name for name in [*self.frame, *other.frame] if self.frame.get(name) != other.frame.get(name))
            return f"their {name} differ: {_short(self.frame.get(name))} and {_short(other.frame.get(name))}"
        faults = (own_part.frame_fault(part) for own_part, part in zip(self.parts, other.parts, strict=True))
        return next((fault for fault in faults if fault), "")

    def key(self, index: int, *, labelled: bool = False) -> str:
        """Return a text that equal records have alike; with their labels, by their numbers where they have none."""
        text = text_of(self.records[index])
        return f"{self.labels[index] if self.labels else index} {text}" if labelled else text

    def places_apart(self, other: Canonical) -> list[int]:
        """Return where the records differ from others, as many."""
        return [i for i in range(len(self.records)) if self.key(i) != other.key(i)]

    def aligned(self, other: Canonical) -> Canonical:
        """Return a set with the records first that the other has too: sets have no places."""
        shared = {other.key(i) for i in range(len(other.records))}
        order = sorted(range(len(self.records)), key=lambda i: (self.key(i) not in shared, i))
        return replace(self, records=[self.records[i] for i in order])

    def users(self, *, required: bool = True) -> list[str | None]:
        """Return whose each record is; RelationError for one that does not say it, where it must."""
        return [self._user(i, required) for i in range(len(self.records))]

    def _user(self, index: int, required: bool) -> str | None:
        record = self.records[index]
        if self.kind == "dictionary" and self.labels:
            return self.labels[index]
        if isinstance(record, Row):
            if record.names and USER in record.names:
                return text_of(record[record.names.index(USER)])
        elif isinstance(record, dict) and USER in record:
            return text_of(record[USER])
        elif self.kind != "array" and isinstance(pair := _sequence(record), list) and len(pair) == 2:
            return text_of(pair[0])
        if not required:
            return None
        if self.noun == "round":
            raise RelationError(
                'user needs rounds that say whose they are, {"user": ..., "losses": ...}; or how many rounds a user '
                "has at most, as in user:3 or rounds_per_user=3"
            )
        raise RelationError(
            f"a relation of users needs records (user, value) or with the key {USER!r}, got {_short(record)}"
        )


def _short(part: Any) -> str:
    return f"{part!r:.40}"


def _tagged(form: Any) -> tuple[str, Any]:
    """Return the tag of a form and what stands under it; an empty one where it has none."""
    if isinstance(form, dict) and len(form) == 1:
        ((tag, value),) = form.items()
        if tag.startswith("$"):
            return tag, value
    return "", None


def _sequence(form: Any) -> Any:
    return form["$tuple"] if isinstance(form, dict) and form.keys() == {"$tuple"} else form


def _items(form: Any) -> list[tuple[str, Any]]:
    """Return the keys of a mapping, as text, and its values, in the order of the keys."""
    items = form["$map"] if form.keys() == {"$map"} else form.items()
    return sorted(((text_of(key), value) for key, value in items), key=lambda item: item[0])


def _is_rows(form: Any) -> bool:
    tag, value = _tagged(form)
    return (
        isinstance(form, list) or tag in ("$series", "$frame") or (tag == "$array" and isinstance(value["data"], list))
    )


def _opened(form: Any) -> Canonical:
    """Return a tuple by its items, and a mapping by its values, which its keys name."""
    if isinstance(sequence := _sequence(form), list):
        return Canonical(form, "tuple", sequence)
    items = _items(form)
    return Canonical(form, "dictionary", [value for _, value in items], labels=[key for key, _ in items])


def _table(form: Any, kind: str, parts: Sequence[Any]) -> Canonical:
    """Return several parts with a row for each record."""
    keys = None
    if kind == "table":
        keys, parts = zip(*_items(form), strict=True)
    sides = tuple(map(Canonical.of, parts))
    sizes = [len(side.records) for side in sides]
    if len(set(sizes)) > 1:
        error = RelationError(
            f"the parts of a table must have a row for each record, got {', '.join(map(str, sizes))} rows"
        )
        raise hinted(error, "for other data give a function as the relation")
    records = [Row(cells) for cells in zip(*(side.records for side in sides), strict=True)]
    labels = None
    if any(side.labels for side in sides):
        labels = [text_of([side.labels and side.labels[i] for side in sides]) for i in range(sizes[0])]
    return Canonical(form, kind, records, {"keys": keys, "parts": len(sides)}, labels, sides)


def _array(form: Any, value: Any) -> Canonical:
    dtype, shape = str(value["dtype"]), value.get("shape")
    records = list(map(_flat, value["data"] if shape is None else _rows(value["data"], shape)))
    frame = {"types": _type(dtype), "shapes of a record": (shape or _shape(value["data"]))[1:]}
    return Canonical(form, "array", records, frame)


def _rows(values: list[Any], shape: Sequence[int]) -> list[Any]:
    """Return the rows of numbers that stand one after the other: of dates, and of complex numbers as two each."""
    if not shape[0]:
        return []
    width = len(values) // shape[0]
    return [values[i * width : (i + 1) * width] for i in range(shape[0])]


def _flat(row: Any) -> Any:
    if isinstance(row, list) and row and isinstance(row[0], list):
        return [value for part in row for value in _flat(part)]
    return row


def _shape(values: Any) -> list[int]:
    return [len(values), *(_shape(values[0]) if values else [])] if isinstance(values, list) else []


def _type(dtype: str) -> str:
    """Return a type of numpy; how long texts may be follows from them."""
    return re.sub(r"(?<=[US])\d+$", "", dtype)


def _types(columns: Sequence[Any], *, inferred: bool) -> list[Any]:
    """Return the types of columns, with their categories unless these follow from the values."""
    types = []
    for column in columns:
        categories = column.get("categories")
        follows = categories == sorted({text_of(x): x for x in column["data"] if x is not None}.values(), key=_order)
        types.append([column["dtype"], None if inferred and follows else categories, column.get("ordered")])
    return types


def _order(value: Any) -> tuple[str, Any]:
    return (type(value).__name__, value) if isinstance(value, str | int | float) else ("", text_of(value))


def _series(form: Any, value: Any) -> Canonical:
    frame = {"names": value.get("name"), "types": _types([value], inferred=False), **_index_frame(value)}
    inferred = {**frame, "types": _types([value], inferred=True)}
    return Canonical(form, "series", value["data"], frame, _labels(value), inferred=inferred)


def _frame(form: Any, value: Any) -> Canonical:
    names = [name if isinstance(name, str) else text_of(name) for name, _ in value["columns"]]
    columns = [column for _, column in value["columns"]]
    listed = {"columns": [text_of(name) for name, _ in value["columns"]], "names of columns": value.get("name")}
    frame = {**listed, "types": _types(columns, inferred=False), **_index_frame(value)}
    rows = zip(*(column["data"] for column in columns), strict=True)
    records: list[Any] = [Row(cells, names) for cells in rows]
    if not columns:
        records = [Row([], [])] * len(value["index"]["data"] if "index" in value else [])
    inferred = {**frame, "types": _types(columns, inferred=True)}
    return Canonical(form, "frame", records, frame, _labels(value), inferred=inferred)


def _index_frame(value: Any) -> dict[str, Any]:
    return {"names of labels": value.get("index", {}).get("name")}


def _labels(value: Any) -> list[str] | None:
    return None if "index" not in value else [text_of(label) for label in value["index"]["data"]]


def kind_of_value(form: Any) -> str:
    """Return what kind of thing data is that has no records."""
    if form is None:
        return "nothing"
    if isinstance(form, str):
        return "text"
    tag, value = _tagged(form)
    if tag in ("$scalar", "$array"):
        name = _type(str(value["dtype"]))
        kind = "text" if "U" in name else name if any(letter in name for letter in "SMm") else "number"
        return kind if tag == "$scalar" else f"array of {name} without rows"
    return "bytes" if tag == "$bytes" else "number"


# What becomes of single records


def zero_of(form: Any) -> Any:
    """Return a form with 0 for its numbers and nothing for its texts; a user, labels and types stay."""
    if isinstance(form, bool):
        return False
    if isinstance(form, int | float | str):
        return type(form)()
    if isinstance(form, Row):
        names = form.names or [""] * len(form)
        return Row([part if name == USER else zero_of(part) for name, part in zip(names, form, strict=True)], names)
    if isinstance(form, list):
        return list(map(zero_of, form))
    if not isinstance(form, dict):
        return form
    tag, value = _tagged(form)
    if tag in ("$set", "$frozenset"):
        return form
    if tag == "$float":
        return 0.0
    if tag in _TYPED:
        return {tag: {**value, "data": zero_of(value["data"])}}
    if tag == "$frame":
        columns = [
            [name, {**part, "data": part["data"] if name == USER else zero_of(part["data"])}]
            for name, part in value["columns"]
        ]
        return {tag: {**value, "columns": columns}}
    if tag == "$map":
        return {tag: [[key, zero_of(part)] for key, part in value]}
    return {name: part if name == USER else zero_of(part) for name, part in form.items()}


def is_zero_of(other: Any, record: Any, data: Canonical, *, of_user: bool = False) -> bool:
    """Return whether another record is one as zero: of a round its losses, of a user all but who she is."""
    if data.noun == "round":
        return bool(other == {**record, "losses": zero_of(record["losses"])})
    if of_user and data.kind != "dictionary" and isinstance(pair := _sequence(record), list) and type(pair) is list:
        zeroed = [pair[0], *map(zero_of, pair[1:])]
        return bool(other == (zeroed if pair is record else {"$tuple": zeroed}))
    return bool(other == zero_of(record))


def feature_fault(record: Any, other: Any) -> str:
    """Return why two records differ in more than one feature; nothing where they do not."""
    (frame, features), (other_frame, other_features) = _features(record), _features(other)
    if frame != other_frame or len(features) != len(other_features):
        return f"the records have other features: {_short(record)} and {_short(other)}"
    several = sum(a != b for a, b in zip(features, other_features, strict=True)) > 1
    return "the record differs in several features" if several else ""


def _features(record: Any) -> tuple[Any, list[str]]:
    """Return what must stay of a record where one feature is another, and its features."""
    tag, value = _tagged(record)
    if isinstance(record, Row) and record.names is None:
        frames, features = zip(*map(_features, record), strict=True)
        return list(frames), [feature for part in features for feature in part]
    if isinstance(parts := _sequence(record), list):
        return ["tuple" if tag else "list"], list(map(text_of, parts))
    if tag == "$array" and isinstance(value["data"], list):
        rows = _array(record, value)
        return [rows.frame, value.get("shape") or _shape(value["data"])], list(map(text_of, _flat([value["data"]])))
    if tag == "$frame":
        return [[name for name, _ in value["columns"]]], [text_of(part) for _, part in value["columns"]]
    if isinstance(record, dict) and tag in ("", "$map"):
        items = _items(record)
        return [key for key, _ in items], [text_of(part) for _, part in items]
    return kind_of_value(record) if isinstance(record, dict) else None, [text_of(record)]
