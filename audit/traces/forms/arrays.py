"""Arrays of forms: NumPy moves and adds them as objects; of all else it is given their values.

The arrays of floats that the code under audit makes by NumPy's constructors can hold forms too: its modules have a
proxy of NumPy while it is traced. Nobody else's NumPy is touched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .form import Form

if TYPE_CHECKING:
    from ..tape import Tape

#: What is linear in arrays, or moves their parts.
_LINEAR = {np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.matmul}
#: What noise, which is finite, does not decide.
_OF_SHIFTS = {np.isnan, np.isinf, np.isfinite}
#: What moves parts of arrays, or is linear in them.
_MOVING = frozenset(
    getattr(np, name)
    for name in (
        *("sum", "cumsum", "mean", "average", "dot", "vdot", "inner", "outer", "tensordot", "einsum", "kron", "diff"),
        *("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "reshape", "ravel"),
        *("transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims", "broadcast_to", "broadcast_arrays", "tile"),
        *("repeat", "roll", "flip", "fliplr", "flipud", "rot90", "triu", "tril", "diag", "diagonal", "trace"),
        *("diagflat", "where", "append", "insert", "delete", "split", "array_split", "hsplit", "vsplit", "take"),
        *("compress", "atleast_1d", "atleast_2d", "atleast_3d", "copy", "copyto", "put", "fill_diagonal", "real"),
        *("zeros_like", "ones_like", "empty_like", "full_like", "shape", "size", "ndim", "convolve", "ediff1d"),
        *("matrix_transpose", "permute_dims", "vecdot"),
    )
    if hasattr(np, name)
)
#: Names of arguments that make more of these.
_NOT_MOVING = frozenset({"out", "where", "dtype", "casting", "subok", "optimize"})
#: Methods of arrays that move or add, as they are; and those that are NumPy's function of the name.
_OWN_METHODS = frozenset(
    (
        *("cumsum", "dot", "sum", "reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "repeat", "take"),
        *(
            "compress",
            "diagonal",
            "trace",
            "copy",
            "fill",
            "item",
            "tolist",
            "conj",
            "conjugate",
            "resize",
            "setflags",
        ),
    )
)
_FUNCTIONS = ("mean", "std", "var", "round", "clip", "max", "min")
#: Attributes that show what is inside of an array.
_INNER = ("data", "ctypes", "__array_interface__", "__array_struct__", "itemsize", "nbytes", "imag")
#: Larger arrays of data stay NumPy's own: an array of forms has a Python object for each number.
_MOST_CELLS = 20_000
#: The most numbers of a matrix of factors.
_MOST_FACTORS = 2**22


class FormArray(np.ndarray[Any, Any]):
    """An array of floats, some of them forms."""

    @property
    def dtype(self) -> Any:
        """That of floats, as which it is used."""
        return np.dtype(float)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return by_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        return by_function(function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        return np.float64(part) if type(part) in (float, int, bool) else part

    def __setitem__(self, index: Any, value: Any) -> None:
        before = super().__getitem__(index)
        if type(before) is Form and type(value) is not Form and not isinstance(value, np.ndarray):
            before.tape.overwrite()
        super().__setitem__(index, float(value) if isinstance(value, np.generic) else value)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a copy; of another type, of its values."""
        if dtype in (float, np.float64) and not args and not kwargs:
            return self.copy()
        return on_values(np.ndarray.astype, [self, dtype, *args], kwargs)


def _by_function(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(np, name)(self, *args, **kwargs)


def _by_values(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: on_values(getattr(np.ndarray, name), [self, *args], kwargs)


def _attribute(name: str) -> property:
    return property(lambda self: getattr(values_of(self), name))


for _name in _FUNCTIONS:
    setattr(FormArray, _name, _by_function(_name))
for _name in dir(np.ndarray):
    if callable(getattr(np.ndarray, _name)) and not (
        _name.startswith("_") or _name in vars(FormArray) or _name in _OWN_METHODS
    ):
        setattr(FormArray, _name, _by_values(_name))
for _name in ("__contains__", "__divmod__", "__rdivmod__", "__reduce__", "__reduce_ex__", "__complex__"):
    setattr(FormArray, _name, _by_values(_name))
for _name in _INNER:
    setattr(FormArray, _name, _attribute(_name))


def holds_forms(value: object) -> bool:
    """Tell whether something is an array that has forms in it."""
    cells = np.ndarray.view(value, np.ndarray) if isinstance(value, np.ndarray) else np.empty(0)
    return cells.dtype == object and any(type(cell) is Form for cell in cells.flat)


def plain_of(value: Any) -> Any:
    """Return arrays of forms, and single forms, as arrays of objects; also in lists."""
    if type(value) is FormArray:
        return np.ndarray.view(value, np.ndarray)
    if type(value) is Form:
        cell = np.empty((), dtype=object)
        cell[()] = value
        return cell
    return type(value)(map(plain_of, value)) if type(value) in (list, tuple) else value


def wrapped(value: Any) -> Any:
    """Return arrays of objects as arrays of forms, also in lists."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(FormArray)
    return type(value)(map(wrapped, value)) if type(value) in (list, tuple) else value


def _floats(value: Any) -> Any:
    """Return an array of objects that are numbers as NumPy's own."""
    return value.astype(float) if type(value) is np.ndarray and value.dtype == object else value


def _tape(values: Any) -> Tape | None:
    """Return whom the forms in some values report to; None where there are none."""
    if isinstance(values, np.ndarray):
        tapes = (cell.tape for cell in values.flat if type(cell) is Form) if values.dtype == object else ()
        return next(iter(tapes), None)
    if type(values) in (list, tuple):
        return next((tape for tape in map(_tape, values) if tape is not None), None)
    return None


def _deep(value: Any, change: Callable[[Any], Any]) -> Any:
    return type(value)(_deep(part, change) for part in value) if type(value) in (list, tuple) else change(value)


def values_of(value: Any) -> Any:
    """Return a value with all forms in it revealed: arrays of forms as arrays of floats."""
    if type(value) is Form:
        return value.tape.reveal(value)
    if type(value) in (list, tuple):
        return type(value)(map(values_of, value))
    if not isinstance(value, np.ndarray):
        return value
    if type(value) is not FormArray and not holds_forms(value):
        return value
    return filled(plain_of(value), lambda form: form.tape.reveal(form))


def filled(value: Any, number: Callable[[Form], float]) -> Any:
    """Return an array of objects as floats, with a number in place of each form; anything else as it is."""
    if not isinstance(value, np.ndarray) or value.dtype != object:
        return value
    cells = [number(cell) if type(cell) is Form else cell for cell in value.flat]
    return np.array(cells, dtype=float).reshape(value.shape)


def on_values(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what a function makes of the values of forms; arrays of forms have these values from then on."""
    arguments = [*args, *kwargs.values()]
    values = [_deep(value, values_of) for value in arguments]
    keywords = dict(zip(kwargs, values[len(args) :], strict=True))
    result = function(*values[: len(args)], **keywords)
    for before, after in zip(arguments, values, strict=True):
        if type(before) is FormArray and before.shape == after.shape:
            plain_of(before)[...] = after
    return result


def by_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what a ufunc makes of arrays of forms."""
    out = kwargs.pop("out", None)
    has_one_name = out is not None and sys.getrefcount(out[0]) <= _references  # `x += noise`: nobody else has x
    arrays = [plain_of(value) for value in inputs]
    tape = _tape(arrays)
    is_call = method == "__call__"
    if kwargs.get("where") is True:  # as methods of arrays say
        del kwargs["where"]
    if not set(kwargs) <= {"axis", "keepdims", "initial", "dtype", "axes"} or kwargs.get("dtype") not in (None, float):
        result = on_values(getattr(ufunc, method), inputs, kwargs)
    elif tape is None:
        result = wrapped(_as_objects(getattr(ufunc, method)(*map(_floats, arrays), **kwargs)))
    elif ufunc in _OF_SHIFTS and is_call and not _holds_public(arrays[0]):
        result = ufunc(*(_shifts(value) for value in arrays))
    elif ufunc in _LINEAR and method != "at" and not _both(ufunc, arrays):
        kwargs.pop("dtype", None)
        result = wrapped(_linear(ufunc, method, arrays, kwargs, tape))
    else:
        result = NotImplemented
        if is_call and not kwargs and out is None:
            result = tape.publish(ufunc, [plain_of(_floats_of(value)) for value in inputs], {})
        if result is NotImplemented:
            result = on_values(getattr(ufunc, method), inputs, kwargs)
    if out is None or out[0] is None:
        return result
    rebound = has_one_name and is_call and type(result) is FormArray and _owns(out[0], result)
    return result if rebound else _written(result, out[0])


#: How many references an array has that is changed in place, where one name has it alone.
_references = 0


def _count_references() -> int:
    """Return how many references an array has that is changed in place, where one name has it alone."""
    counts: list[int] = []

    class Counting(np.ndarray[Any, Any]):
        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
            return counted(ufunc, method, inputs, kwargs)

    def counted(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        out = kwargs.pop("out", None)
        counts.append(sys.getrefcount(out[0]))
        return out[0]

    array = np.zeros(1)
    array += np.zeros(1).view(Counting)
    return counts[0]


_references = _count_references()


def _owns(out: Any, result: Any) -> bool:
    """Tell whether an array is no view, and as large as what is written into it."""
    return type(out) is np.ndarray and out.base is None and out.dtype == np.dtype(float) and out.shape == result.shape


def _written(result: Any, out: Any) -> Any:
    if type(out) is FormArray:
        plain_of(out)[...] = plain_of(result)
        return out
    np.copyto(out, values_of(result), casting="same_kind")
    return out


def _floats_of(value: Any) -> Any:
    """Return an array of forms that has none as NumPy's own."""
    return value if type(value) is not FormArray or holds_forms(value) else _floats(plain_of(value))


def _holds_public(values: Any) -> bool:
    return any(type(cell) is Form and cell.is_public for cell in values.flat)


def _both(ufunc: np.ufunc, arrays: Sequence[Any]) -> bool:
    """Tell whether a product is of forms with forms, or what is divided by is a form."""
    if ufunc is np.true_divide:
        return len(arrays) < 2 or _tape(arrays[1]) is not None
    return ufunc in (np.multiply, np.matmul) and len(arrays) > 1 and all(_tape(value) is not None for value in arrays)


def _linear(ufunc: np.ufunc, method: str, arrays: list[Any], kwargs: dict[str, Any], tape: Tape) -> Any:
    if ufunc is np.multiply and method in ("reduce", "accumulate"):
        return on_values(getattr(ufunc, method), [wrapped(array) for array in arrays], kwargs)
    if ufunc is np.matmul:
        place = 0 if _tape(arrays[0]) is not None else 1
        other = np.asarray(_floats(np.asarray(arrays[1 - place])), dtype=float)
        return mapped(lambda part: part @ other if place == 0 else other @ part, arrays[place], tape)
    with np.errstate(all="ignore"):  # the audit's own runs warn, at the place of the target
        return getattr(ufunc, method)(*arrays, **kwargs)


def mapped(function: Callable[[NDArray[Any]], Any], values: NDArray[Any], tape: Tape) -> Any:
    """Return a linear function of an array of forms: of its shifts, and of the factors of each variable."""
    rows: dict[int, NDArray[Any]] = {}
    size = 0.0
    for place, cell in enumerate(values.flat):
        size = max(size, cell.size if type(cell) is Form else abs(cell))
        for key, number in cell.factors.items() if type(cell) is Form else ():
            rows.setdefault(key, np.zeros(values.size))[place] = number
        if len(rows) * values.size > _MOST_FACTORS:
            raise MemoryError("too many factors")
    shift = np.asarray(function(_shifts(values)))
    columns = {key: np.asarray(function(row.reshape(values.shape))).reshape(-1) for key, row in rows.items()}
    tape.operations += values.size * shift.size
    cells = np.empty(shift.size, dtype=object)
    for place, number in enumerate(shift.reshape(-1).tolist()):
        factors = {key: float(row[place]) for key, row in columns.items() if row[place] != 0}
        cells[place] = Form(tape, number, factors, None, size) if factors else number
    result = cells.reshape(shift.shape)
    return result if shift.shape else result[()]


def _shifts(values: Any) -> Any:
    return filled(values, lambda form: form.shift)


def _as_objects(result: Any) -> Any:
    """Return an array of floats as one that can hold forms."""
    floats = isinstance(result, np.ndarray) and result.dtype == np.dtype(float) and result.size <= _MOST_CELLS
    return result.astype(object) if floats else result


def by_function(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return what a function of NumPy makes of arrays of forms."""
    arrays = _deep(list(args), plain_of)
    tape = _tape(arrays) or _tape([plain_of(value) for value in kwargs.values()])
    if function is np.linalg.solve and tape is not None and _tape(arrays[0]) is None:
        matrix = _floats(np.asarray(arrays[0]))
        return wrapped(mapped(lambda part: np.linalg.solve(matrix, part), arrays[1], tape))
    if tape is None:
        keywords = {name: _deep(value, _floats_of) for name, value in kwargs.items()}
        return wrapped(_as_objects(function(*_deep(list(args), _floats_of), **keywords)))
    if function in _MOVING and _NOT_MOVING.isdisjoint(kwargs):
        return wrapped(function(*arrays, **{name: _deep(value, plain_of) for name, value in kwargs.items()}))
    result = tape.publish(function, _deep(list(args), lambda value: plain_of(_floats_of(value))), kwargs)
    return on_values(function, args, kwargs) if result is NotImplemented else result


for _name, _method in (
    ("__array_ufunc__", lambda self, ufunc, method, *inputs, **kwargs: by_ufunc(ufunc, method, inputs, kwargs)),
    ("__array_function__", lambda self, function, types, args, kwargs: by_function(function, args, kwargs)),
):
    setattr(Form, _name, _method)
