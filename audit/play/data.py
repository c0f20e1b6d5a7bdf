"""Data as mechanisms take it, and its form in a record: JSON, where arrays, frames, tuples and NaN have tags.

What JSON can hold is itself. Everything else is an object of one key that begins with `$`, so that it reads back as it
was: `{"$float": "nan"}`, `{"$array": {"dtype": "int64", "data": [1, 2]}}`.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import hinted

if TYPE_CHECKING:
    from ...mechanisms.view import View
    from ..record_types import PairJson

#: Letters of an input that a message shows.
MAX_LETTERS = 200


def shortened(data: object) -> str:
    """Return an input on one line, its first letters where it is long."""
    text = " ".join(repr(data).split())
    return text if len(text) <= MAX_LETTERS else f"{text[:MAX_LETTERS]}..."


#: Types of array elements that a record holds: no objects, which only pickles can.
ARRAY_KINDS = "biufcUSMm"


class UnreadableDataError(ValueError):
    """Data that no record can hold, or a form that stands for no data."""


def is_frame(data: object) -> TypeGuard[Any]:
    """Tell whether data is a frame of pandas; pandas is not imported for it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_series(data: object) -> TypeGuard[Any]:
    """Tell whether data is a series of pandas; pandas is not imported for it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.Series)


def to_json(data: Any) -> Any:
    """Return the form of data in a record.

    Raises
    ------
    UnreadableDataError
        For what a record cannot hold, such as an object of the user's.
    """
    if data is None or type(data) in (bool, int, str):
        return data
    if type(data) is float:
        return data if math.isfinite(data) else {"$float": repr(data)}
    if type(data) is list:
        return [to_json(part) for part in data]
    if type(data) is dict:
        has_plain_keys = all(type(key) is str and not key.startswith("$") for key in data)
        if has_plain_keys:
            return {key: to_json(value) for key, value in data.items()}
        return {"$map": [[to_json(key), to_json(value)] for key, value in data.items()]}
    if type(data) is tuple:
        return {"$tuple": [to_json(part) for part in data]}
    if type(data) in (set, frozenset):
        return {f"${type(data).__name__}": [to_json(part) for part in sorted(data, key=repr)]}
    if type(data) is bytes:
        return {"$bytes": base64.b64encode(data).decode()}
    if isinstance(data, np.ma.MaskedArray):
        raise hinted(UnreadableDataError("a record cannot hold a masked array"), "give its values and its mask")
    if isinstance(data, np.ndarray):
        return {"$array": _array(data)}
    if isinstance(data, np.generic) and data.dtype.kind in ARRAY_KINDS:
        return {"$scalar": _array(np.asarray(data))}
    if is_frame(data):
        if not data.columns.is_unique:
            raise UnreadableDataError("a record cannot hold a data frame with two columns of one name")
        columns = [[to_json(_plain(name)), _column(data[name])] for name in data.columns]
        return {"$frame": {"columns": columns, **_named(data.columns), **_labels(data)}}
    if is_series(data):
        return {"$series": _column(data) | _named(data) | _labels(data)}
    text = " ".join(repr(data).split())
    raise UnreadableDataError(f"a record cannot hold an input of the type {type(data).__name__}: {text:.80}")


def _array(array: NDArray[Any]) -> dict[str, object]:
    if array.dtype.kind not in ARRAY_KINDS or array.dtype.hasobject:
        raise UnreadableDataError(f"a record cannot hold an array of {array.dtype}")
    if array.dtype.kind in "Mm":
        return {"dtype": array.dtype.str, "shape": list(array.shape), "data": array.view("int64").ravel().tolist()}
    if array.dtype.kind == "c":
        parts = np.stack([array.real, array.imag], axis=-1)
        return {"dtype": array.dtype.str, "shape": list(array.shape), "data": to_json(parts.ravel().tolist())}
    form: dict[str, object] = {"dtype": array.dtype.str if array.dtype.kind in "US" else str(array.dtype)}
    if not array.size and array.ndim != 1:
        form["shape"] = list(array.shape)
    return {**form, "data": to_json(array.tolist())}


def _column(column: Any) -> dict[str, object]:
    values = [_plain(value) for value in column.tolist()]
    form: dict[str, object] = {
        "dtype": str(column.dtype),
        "data": [None if _is_missing(value) else to_json(value) for value in values],
    }
    if form["dtype"] == "category":
        form["categories"] = [to_json(_plain(value)) for value in column.dtype.categories.tolist()]
        form["ordered"] = bool(column.dtype.ordered)
    return form


def _named(data: Any) -> dict[str, object]:
    """Return the name of a series or of labels, where it has one."""
    return {} if data.name is None else {"name": to_json(_plain(data.name))}


def _labels(data: Any) -> dict[str, object]:
    """Return the labels of the rows, where they are more than the rows' numbers."""
    rows = data.index
    is_default = rows.dtype.kind == "i" and rows.tolist() == list(range(len(rows))) and rows.name is None
    return {} if is_default else {"index": _column(rows) | _named(rows)}


def _plain(value: Any) -> object:
    for name in ("to_datetime64", "to_timedelta64"):  # of pandas' own, where no time zone would be lost
        if hasattr(value, name) and getattr(value, "tzinfo", None) is None and not _is_missing(value):
            return getattr(value, name)()
    return value.item() if isinstance(value, np.generic) else value


def _is_missing(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def from_json(form: object) -> Any:
    """Return the data that a form stands for; what has no tag is itself.

    Raises
    ------
    UnreadableDataError
        For a tag whose value cannot be read.
    """
    if isinstance(form, list):
        return [from_json(part) for part in form]
    if not isinstance(form, dict):
        return form
    if len(form) == 1:
        ((tag, value),) = form.items()
        if tag in _READERS:
            try:
                return _READERS[tag](value)
            except UnreadableDataError:
                raise
            except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
                raise UnreadableDataError(f"cannot read the input {json.dumps(form)[:80]}: {error}") from None
    return {key: from_json(value) for key, value in form.items()}


def _read_array(form: Mapping[str, Any]) -> NDArray[np.generic]:
    dtype = np.dtype(form["dtype"])
    if dtype.kind not in ARRAY_KINDS or dtype.hasobject:
        raise UnreadableDataError(f"an input cannot be an array of {dtype}")
    data = from_json(form["data"])
    if dtype.kind in "Mm":
        return np.array(data, dtype="int64").reshape(form["shape"]).view(dtype)
    if dtype.kind == "c":
        parts = np.array(data, dtype=float).reshape(*form["shape"], 2)
        return (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    array = np.array(data, dtype=dtype)
    return array.reshape(form["shape"]) if "shape" in form else array


def _read_series(form: Mapping[str, Any]) -> object:
    pandas = import_pandas()
    return pandas.Series(
        from_json(form["data"]), dtype=_read_type(form), index=_read_labels(form), name=from_json(form.get("name"))
    )


def _read_type(form: Mapping[str, Any]) -> object:
    if "categories" not in form:
        return form["dtype"]
    if lacking := [value for value in form["data"] if value is not None and value not in form["categories"]]:
        raise UnreadableDataError(f"no category of the column: {lacking[0]!r:.80}")
    return import_pandas().CategoricalDtype(from_json(form["categories"]), form.get("ordered", False))


def _read_frame(form: Mapping[str, Any]) -> object:
    frame = import_pandas().DataFrame({from_json(name): _read_series(column) for name, column in form["columns"]})
    frame.columns.name = from_json(form.get("name"))
    labels = _read_labels(form)
    return frame if labels is None else frame.set_axis(labels, axis=0)


def _read_labels(form: Mapping[str, Any]) -> object:
    labels = form.get("index")
    return labels and import_pandas().Index(
        from_json(labels["data"]), dtype=_read_type(labels), name=from_json(labels.get("name"))
    )


def import_pandas() -> ModuleType:
    """Return pandas; raise UnreadableDataError where it is not installed."""
    try:
        return import_module("pandas")
    except ImportError:
        raise hinted(
            UnreadableDataError("data frames need pandas, which is not installed"), "pip install pandas"
        ) from None


def _read_float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise UnreadableDataError(f"$float must be nan, inf or -inf, got {text!r}")
    return float(text)


_READERS: dict[str, Callable[[Any], object]] = {
    "$float": _read_float,
    "$tuple": lambda parts: tuple(from_json(parts)),
    "$set": lambda parts: set(from_json(parts)),
    "$frozenset": lambda parts: frozenset(from_json(parts)),
    "$map": lambda items: {from_json(key): from_json(value) for key, value in items},
    "$bytes": lambda text: base64.b64decode(text, validate=True),
    "$array": _read_array,
    "$scalar": lambda form: _read_array(form)[()],
    "$series": _read_series,
    "$frame": _read_frame,
}


def key_of(data: object) -> str:
    """Return a text that equal data have alike, NaN being equal to itself; other data have another."""
    return json.dumps(to_json(data), sort_keys=True, allow_nan=False)


def shown(form: object, digits: int | None = None) -> str:
    """Return a record's form of data as a reader would write it: arrays as lists, frames by their columns.

    Long numbers are rounded to `digits` digits; where that is None, no number is rounded.
    """

    def text(part: object) -> str:
        return shown(part, digits)

    if isinstance(form, list):
        return f"[{', '.join(map(text, form))}]"
    if not isinstance(form, dict):
        exact = json.dumps(form, ensure_ascii=False)
        short = exact if digits is None or not isinstance(form, float) else f"{form:.{digits}g}"
        return exact if len(exact) <= len(short) + 2 or ("e" in short and "e" not in exact) else short
    tag, value = next(iter(form.items()), ("", cast(Any, None)))
    if len(form) != 1 or not tag.startswith("$"):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {text(v)}" for key, v in form.items()) + "}"
    if tag == "$float":
        return str(value)
    if tag == "$tuple":
        return f"({', '.join(map(text, value))}{',' * (len(value) == 1)})"
    labels = f"; rows {text(value['index']['data'])}" if tag in ("$series", "$frame") and "index" in value else ""
    if tag in ("$array", "$series"):
        return f"{tag[1:]}({text(value['data'])}{labels})"
    if tag == "$scalar":  # dates and durations as they are written
        return str(_read_array(value)[()]) if value["dtype"][1:2] in "Mm" else text(value["data"])
    if tag == "$map":
        return "{" + ", ".join(f"{text(key)}: {text(part)}" for key, part in value) + "}"
    if tag == "$frame":
        columns = (f"{text(name)}: {text(column['data'])}" for name, column in value["columns"])
        return f"frame({', '.join(columns)}{labels})"
    return f"{tag[1:]}({text(value)})"


@dataclass(frozen=True)
class DataPair:
    """Two neighbouring inputs of a mechanism. Whether they are neighbours is the caller's to know.

    Parameters
    ----------
    left, right : JSON, NumPy arrays, pandas frames and series, tuples, sets, bytes, NaN
        What a record can hold (`play.data`).

    Raises
    ------
    ValueError
        If an input is something else, or both are the same.
    """

    left: object
    right: object

    def __post_init__(self) -> None:
        for side in ("left", "right"):
            try:
                key_of(getattr(self, side))
            except (UnreadableDataError, RecursionError) as error:
                raise ValueError(f"the {side} input cannot be taken: {error}") from None
        if self.keys[0] == self.keys[1]:
            raise ValueError(f"the two inputs must differ, both are {shown(to_json(self.left))[:MAX_LETTERS]}")

    @cached_property
    def keys(self) -> tuple[str, str]:
        """A text for each input, the same for equal ones."""
        return key_of(self.left), key_of(self.right)

    @property
    def difference(self) -> str:
        """Where the two worlds differ, in words: a mechanism answers once."""
        return "one round"

    def shows_nothing(self, view: View) -> bool:
        """Tell whether the worlds differ in nothing that can be shown: not of a mechanism's inputs."""
        return False

    def to_json(self) -> PairJson:
        """Return the record's form."""
        return {"round": 1, "left": to_json(self.left), "right": to_json(self.right)}

    @classmethod
    def of_json(cls, data: Any) -> DataPair:
        """Read the record's form."""
        return cls(from_json(data["left"]), from_json(data["right"]))
