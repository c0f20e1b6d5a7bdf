"""Arrays of forms: what NumPy makes of them keeps what is linear, and releases the forms where anything else is made.

While code is traced, the arrays of floats that it makes by NumPy's constructors can hold forms too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....learners.blame import of_package
from .form import Follower, Form, covered

#: What is linear in arrays, or moves their parts.
_LINEAR = {np.add, np.subtract, np.multiply, np.true_divide, np.negative, np.positive, np.matmul}
#: What noise, which is finite, does not decide.
_OF_SHIFTS = {np.isnan, np.isinf, np.isfinite}
#: What moves parts of arrays, or is linear in them.
_MOVING = frozenset(
    {
        *("sum", "cumsum", "mean", "average", "dot", "vdot", "inner", "outer", "tensordot", "einsum", "kron", "diff"),
        *("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "reshape", "ravel"),
        *("transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims", "broadcast_to", "broadcast_arrays", "tile"),
        *("repeat", "roll", "flip", "fliplr", "flipud", "rot90", "triu", "tril", "diag", "diagonal", "trace"),
        *("diagflat", "where", "append", "insert", "delete", "split", "array_split", "hsplit", "vsplit", "take"),
        *("compress", "atleast_1d", "atleast_2d", "atleast_3d", "copy", "copyto", "put", "fill_diagonal", "real"),
        *("zeros_like", "ones_like", "empty_like", "full_like", "shape", "size", "ndim", "convolve", "ediff1d"),
        *("matrix_transpose", "permute_dims", "vecdot"),
    }
)
#: Larger arrays of data stay NumPy's own: an array of forms has a Python object for each number.
_MOST_CELLS = 20_000
#: The most numbers of a matrix of coefficients.
_MOST_COEFFICIENTS = 2**22


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
        found = super().__getitem__(index)
        return np.float64(found) if type(found) in (float, int, bool) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        before = super().__getitem__(index)
        if type(before) is Form and type(value) is not Form and not isinstance(value, np.ndarray):
            before.tape.overwrite()
        super().__setitem__(index, float(value) if isinstance(value, np.generic) else value)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return a copy; of another type, of what was released."""
        if np.dtype(dtype) == np.dtype(float):
            return self.copy()
        return _released(self)[0].astype(dtype, *args, **kwargs)


def _by_function(name: str) -> Callable[..., Any]:
    """Return a method that is NumPy's function of its name."""
    return lambda self, *args, **kwargs: getattr(np, name)(self, *args, **kwargs)


for _name in ("mean", "std", "var", "round", "argsort", "argmax", "argmin"):
    setattr(FormArray, _name, _by_function(_name))


def holds_forms(values: NDArray[Any]) -> bool:
    """Tell whether an array has forms in it."""
    whole = values.view(np.ndarray)
    return whole.dtype.kind == "O" and any(type(one) is Form for one in whole.flat)


def _plain(value: Any) -> Any:
    """Return arrays of forms, and single forms, as arrays of objects; also in lists."""
    if type(value) is FormArray:
        return value.view(np.ndarray)
    if type(value) is Form:
        alone = np.empty((), dtype=object)
        alone[()] = value
        return alone
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _wrapped(value: Any) -> Any:
    """Return arrays of objects as arrays of forms, also in lists."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(FormArray)
    return type(value)(map(_wrapped, value)) if type(value) in (list, tuple) else value


def _floats(value: Any) -> Any:
    """Return an array of objects that are numbers as NumPy's own."""
    return value.astype(float) if isinstance(value, np.ndarray) and value.dtype == object else value


def _tape(values: Any) -> Follower | None:
    """Return whom the forms in some values report to; None where there are none."""
    if isinstance(values, np.ndarray):
        found = (one.tape for one in values.flat if type(one) is Form) if values.dtype == object else ()
        return next(iter(found), None)
    if type(values) in (list, tuple):
        return next((tape for tape in map(_tape, values) if tape is not None), None)
    return None


def _deep(value: Any, change: Callable[[Any], Any]) -> Any:
    return type(value)(_deep(one, change) for one in value) if type(value) in (list, tuple) else change(value)


def _released(value: Any) -> tuple[Any, Follower | None]:
    """Return an array with its forms released, and whom they report to."""
    plain = _plain(value)
    if not isinstance(plain, np.ndarray) or plain.dtype != object:
        return plain, None
    tape = _tape(plain)
    numbers = [one.tape.release(one) if type(one) is Form else one for one in plain.flat]
    return np.array(numbers, dtype=float).reshape(plain.shape), tape


def numbers_of(value: Any) -> Any:
    """Return a value with all forms in it as plain numbers: they escape."""
    if type(value) is Form:
        return float(value)
    if type(value) in (list, tuple):
        return type(value)(map(numbers_of, value))
    if not isinstance(value, np.ndarray):
        return value
    numbers, tape = _released(value)
    if tape is not None:
        tape.escape()
    return _floats(numbers) if type(value) is FormArray else numbers


@np.errstate(all="ignore")  # the audit's own runs warn, at the place of the target
def by_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what a ufunc makes of arrays of forms."""
    out = kwargs.pop("out", None)
    alone = out is not None and sys.getrefcount(out[0]) <= _alone  # `x += noise`: nobody else has x
    plain = [_plain(value) for value in inputs]
    if "initial" in kwargs or "where" in kwargs:
        kwargs = {name: _plain(value) for name, value in kwargs.items()}
    tape = _tape(plain)
    if tape is None:
        result = _wrapped(_as_objects(getattr(ufunc, method)(*map(_floats, plain), **kwargs)))
    elif ufunc in _OF_SHIFTS and method == "__call__" and not _adaptive(plain[0]):
        result = ufunc(*(_shifts(value) for value in plain), **kwargs)
    elif ufunc in _LINEAR and method != "at" and not _both(ufunc, plain):
        kwargs.pop("dtype", None)
        result = _linear(ufunc, method, plain, kwargs)
        result = _settled(result, tape) if tape.eager else _wrapped(result)
    else:
        result = _computed(getattr(ufunc, method), plain, kwargs, tape)
    if out is None or out[0] is None:
        return result
    rebound = alone and method == "__call__" and type(result) is FormArray and _owns(out[0], result)
    return result if rebound else _written(result, out[0])


#: How many references an array has that is changed in place, where one name has it alone.
_alone = 0


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

    own = np.zeros(1)
    own += np.zeros(1).view(Counting)
    return counts[0]


_alone = _count_references()


def _owns(out: Any, result: Any) -> bool:
    """Tell whether an array is no view, and as large as what is written into it."""
    return type(out) is np.ndarray and out.base is None and out.dtype == np.dtype(float) and out.shape == result.shape


def _settled(result: Any, tape: Follower) -> Any:
    """Return an array of which all forms are released already as NumPy's own."""
    whole = isinstance(result, np.ndarray) and not holds_forms(result)
    return result.astype(float) if whole else _wrapped(result)


def _written(result: Any, out: Any) -> Any:
    if type(out) is FormArray:
        out.view(np.ndarray)[...] = _plain(result)
        return out
    values, tape = _released(result)
    if tape is not None:
        tape.escape()
    np.copyto(out, values, casting="same_kind")
    return out


def _adaptive(values: Any) -> bool:
    return any(type(one) is Form and one.adaptive for one in values.flat)


def _both(ufunc: np.ufunc, plain: Sequence[Any]) -> bool:
    """Tell whether a product is of forms with forms, or what is divided by is a form."""
    if ufunc is np.true_divide:
        return _tape(plain[1]) is not None
    return ufunc in (np.multiply, np.matmul) and len(plain) > 1 and all(_tape(value) is not None for value in plain)


def _linear(ufunc: np.ufunc, method: str, plain: list[Any], kwargs: dict[str, Any]) -> Any:
    if ufunc is np.multiply and method in ("reduce", "accumulate"):
        return _computed(getattr(ufunc, method), plain, kwargs, _tape(plain))
    if ufunc is np.matmul:
        which = 0 if _tape(plain[0]) is not None else 1
        other = np.asarray(_floats(np.asarray(plain[1 - which])), dtype=float)
        of = (lambda part: part @ other) if which == 0 else (lambda part: other @ part)
        return mapped(of, plain[which])
    return getattr(ufunc, method)(*plain, **kwargs)


def mapped(function: Callable[[NDArray[Any]], Any], values: NDArray[Any]) -> Any:
    """Return a linear function of an array of forms: of its shifts, and of the coefficients of each variable."""
    tape = _tape(values)
    assert tape is not None
    where: dict[int, NDArray[Any]] = {}
    adaptive = False
    for place, one in enumerate(values.flat):
        if type(one) is Form:
            adaptive |= one.adaptive
            for key, number in one.coefficients.items():
                if key not in where:
                    where[key] = np.zeros(values.size)
                where[key][place] = number
        if len(where) * values.size > _MOST_COEFFICIENTS:
            raise MemoryError("too many coefficients")
    shift = np.asarray(function(_shifts(values)))
    rows = {key: np.asarray(function(row.reshape(values.shape))).reshape(-1) for key, row in where.items()}
    made = np.empty(shift.size, dtype=object)
    for place, number in enumerate(shift.reshape(-1).tolist()):
        coefficients = {key: float(row[place]) for key, row in rows.items() if row[place] != 0}
        made[place] = Form(tape, number, coefficients, None, adaptive) if coefficients or adaptive else number
    result = made.reshape(shift.shape)
    return result if shift.shape else result[()]


def _shifts(values: Any) -> Any:
    if not isinstance(values, np.ndarray) or values.dtype != object:
        return values
    numbers = [one.shift if type(one) is Form else one for one in values.flat]
    return np.array(numbers, dtype=float).reshape(values.shape)


def _computed(function: Callable[..., Any], args: Any, kwargs: Any, tape: Follower | None) -> Any:
    """Return what a function makes of values whose forms are released."""
    released = _deep(list(args), lambda value: _released(value)[0])
    named = {name: _deep(_plain(value), lambda one: _released(one)[0]) for name, value in kwargs.items()}
    if tape is not None:
        tape.compute((str(function), released, named))
    result = function(*released, **named)
    return _covered(result, tape) if tape is not None else _wrapped(_as_objects(result))


def _covered(result: Any, tape: Follower) -> Any:
    """Return the floats of a result as forms without noise; anything else escapes."""
    if isinstance(result, list | tuple):
        parts = [_covered(one, tape) for one in result]
        return type(result)._make(parts) if hasattr(result, "_make") else type(result)(parts)  # such as SVDResult
    if isinstance(result, np.ndarray) and result.dtype.kind == "f" and not tape.eager:
        made = np.empty(result.size, dtype=object)
        made[:] = [covered(float(one), tape) for one in result.flat]
        return made.reshape(result.shape).view(FormArray)
    if isinstance(result, np.ndarray):
        tape.escape()
        return result
    return covered(result, tape)


def _as_objects(result: Any) -> Any:
    """Return an array of floats as one that can hold forms."""
    floats = isinstance(result, np.ndarray) and result.dtype == np.dtype(float) and result.size <= _MOST_CELLS
    return result.astype(object) if floats else result


def by_function(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return what a function of NumPy makes of arrays of forms."""
    plain = _deep(args, _plain)
    tape = _tape(plain) or _tape([_plain(value) for value in kwargs.values()])
    if function is np.linalg.solve and tape is not None and _tape(plain[0]) is None:
        return _wrapped(mapped(lambda part: np.linalg.solve(_floats(np.asarray(plain[0])), part), plain[1]))
    if function.__name__ in _MOVING:
        named = {name: _deep(value, _plain) for name, value in kwargs.items() if name != "dtype"}
        return _wrapped(function(*plain, **named))
    if tape is None:
        plain = _deep(plain, _floats)
    return _computed(function, plain, kwargs, tape)


for _name, _made in (
    ("__array_ufunc__", lambda self, ufunc, method, *inputs, **kwargs: by_ufunc(ufunc, method, inputs, kwargs)),
    ("__array_function__", lambda self, function, types, args, kwargs: by_function(function, args, kwargs)),
):
    setattr(Form, _name, _made)


@contextmanager
def arrays_of_forms() -> Iterator[None]:
    """Let the arrays of floats that the code under audit makes hold forms; those of libraries stay as they are."""
    made: dict[str, Callable[..., Any]] = {}
    for name in ("zeros", "ones", "empty", "full", "eye", "identity", "array", "asarray", "asanyarray"):
        made[name] = getattr(np, name)
    for name in ("zeros_like", "ones_like", "empty_like", "full_like"):
        made[name] = getattr(np, name)
    try:
        for name, original in made.items():
            setattr(np, name, _constructor(original))
        yield
    finally:
        for name, original in made.items():
            setattr(np, name, original)


def of_library(frame: FrameType) -> bool:
    """Tell whether code is of Python, or of an installed package."""
    module = str(frame.f_globals.get("__name__", ""))
    installed = not {"site-packages", "dist-packages"}.isdisjoint(frame.f_code.co_filename.split("/"))
    return installed or module.partition(".")[0] in sys.stdlib_module_names


def _constructor(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor of arrays that can hold forms."""

    def make(*args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1)
        if of_library(caller) or of_package(str(caller.f_globals.get("__name__", ""))):
            return original(*args, **kwargs)
        if original.__name__ in ("array", "asarray", "asanyarray"):
            return _read(original, *args, **kwargs)
        if original.__name__ == "full" and _tape([_plain(one) for one in args]) is not None:
            return original(args[0], args[1], object).view(FormArray)
        return _wrapped(_as_objects(original(*args, **kwargs)))

    return make


def _read(original: Callable[..., Any], values: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return an array of values; of floats one that can hold forms."""
    if type(values) is FormArray:
        if original.__name__ != "array" and dtype in (None, float, np.float64):
            return values
        values = values.view(np.ndarray)
    if dtype is not None and np.dtype(dtype) != np.dtype(float):
        return original(values, dtype, **kwargs)
    if not isinstance(values, np.ndarray):
        with_forms = original(values, object)
        if holds_forms(with_forms):
            return original(with_forms, object, **kwargs).view(FormArray)
    elif holds_forms(values):
        return original(values, object, **kwargs).view(FormArray)
    return _wrapped(_as_objects(original(values, dtype, **kwargs)))
