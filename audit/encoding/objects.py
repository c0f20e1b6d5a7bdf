"""What outputs hold that are no scalars of Python's own: objects as lists and dictionaries, or by their texts."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from ...learners.protocol import LearnerError

#: Libraries whose series, tables and scalars are read by their values: their texts round numbers and are cut off.
_COLUMNAR = ("polars", "pyarrow")
#: The most cells of a sparse matrix that are read one by one.
MOST_CELLS = 10_000
#: What stands in the text of an object for parts that are not shown.
_ELLIPSIS = re.compile(r"(?<![^\s,\[(])(?:\.\.\.|…)(?![^\s,\])])")
_READABLE = "a number, a text, None, or lists, tuples, sets, dictionaries and arrays of them"


def plain(output: object) -> object:
    """Return what holds values as lists and dictionaries: arrays, their scalars, pandas' objects, data classes.

    The labels of a series or a frame are part of the output: which there are may depend on the data. Anything else is
    returned as it is.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(output, pandas.Series):
        values, labels = output.tolist(), output.index.tolist()
        return dict(zip(labels, values, strict=True)) if output.index.is_unique else [labels, values]
    if pandas is not None and isinstance(output, pandas.DataFrame):
        columns = [[name, *output.iloc[:, i].tolist()] for i, name in enumerate(output.columns.tolist())]
        values_of_name = {name: values for name, *values in columns} if output.columns.is_unique else columns
        rows = output.index
        numbered = isinstance(rows, pandas.RangeIndex) and (rows.start, rows.step) == (0, 1)
        return values_of_name if numbered else [rows.tolist(), values_of_name]
    if is_columnar(output):
        return _columnar(output)
    if hasattr(output, "tocoo"):
        return _stored(output)
    names = getattr(type(output), "__dataclass_fields__", None)
    names = [attribute.name for attribute in getattr(type(output), "__attrs_attrs__", ())] if names is None else names
    if names and not _is_fitted(output):  # its text may leave fields out, and shortens arrays
        return {name: getattr(output, name) for name in [*names, *_known(output)] if hasattr(output, name)}
    if hasattr(output, "tolist"):
        return output.tolist()
    return np.asarray(output).tolist() if hasattr(output, "__array__") and not isinstance(output, type) else output


def is_columnar(output: object) -> bool:
    """Tell whether an output is of a library of series, tables and scalars."""
    return type(output).__module__.partition(".")[0] in _COLUMNAR


def _columnar(output: Any) -> object:
    """Return what a series, a table or a scalar of such a library holds; what holds none, as it is."""
    if hasattr(output, "collect"):  # a lazy frame
        output = output.collect()
    if hasattr(output, "get_columns"):
        return {column.name: column.to_list() for column in output.get_columns()}
    if hasattr(output, "column_names"):
        names, columns = output.column_names, [column.to_pylist() for column in output.columns]
        unique = len(set(names)) == len(names)
        return dict(zip(names, columns, strict=True)) if unique else [names, columns]
    read = (getattr(output, name) for name in ("to_list", "to_pylist", "as_py") if hasattr(output, name))
    return next(read, lambda: output)()


def _stored(matrix: Any) -> dict[str, object]:
    """Return a sparse matrix: a small one cell by cell, of others the values that it stores, with their places."""
    stored = matrix.tocoo()
    if math.prod(matrix.shape) <= MOST_CELLS:
        return {"stored": stored.nnz, "values": stored.toarray().tolist()}
    axes = stored.coords if hasattr(stored, "coords") else (stored.row, stored.col)  # before SciPy 1.13
    return {"shape": matrix.shape, "places": [axis.tolist() for axis in axes], "values": stored.data.tolist()}


def _known(value: object) -> tuple[str, ...]:
    """Return the names of an object's own attributes."""
    return tuple(getattr(value, "__dict__", ()))


def _is_fitted(value: object) -> bool:
    """Tell whether a thing is a fitted model, which has what it has learned in attributes that end in _."""
    learned = any(attribute.endswith("_") and not attribute.startswith("_") for attribute in _known(value))
    return learned and callable(getattr(type(value), "fit", None))


def category(value: object) -> str:
    """Return the name of a thing that is no number: its text, where that says all that it is and not where.

    The text of a fitted model says how it was made, and that of what is large may leave its middle out.
    """
    kind, name = type(value), repr(value)
    if isinstance(value, Awaitable) and hasattr(value, "close"):
        value.close()  # else Python warns that it was never awaited
    unread = isinstance(value, Iterator | AsyncIterator | Awaitable | ModuleType) or callable(value)
    attributes = () if isinstance(value, type) else _known(value)
    shortened = _ELLIPSIS.search(name) is not None
    if unread or _is_fitted(value) or shortened or f"{id(value):x}" in name.lower():
        article = "an" if kind.__name__[0] in "aeiou" else "a"
        text = ", whose text leaves parts out" if shortened else ""
        hint = "; which attributes of an object are released, --attributes (attributes=) says" if attributes else ""
        raise LearnerError(f"the mechanism returned {article} {kind.__name__}{text}: expected {_READABLE}{hint}")
    return name
