"""What the code under audit alone sees while it is traced: a proxy of NumPy, and who asks about its exceptions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ....learners.blame import of_package
from .arrays import FormArray, _as_objects, holds_forms, plain_of, wrapped
from .form import Form

#: How far what plays a target for us is looked through for it.
_DEPTH = 4
_READING = (np.array, np.asarray, np.asanyarray)
_MAKING = (np.zeros, np.ones, np.empty, np.full, np.eye, np.identity)
_LIKE = (np.zeros_like, np.ones_like, np.empty_like, np.full_like)


class NumpyProxy(ModuleType):
    """NumPy, whose constructors of arrays of floats make arrays that can hold forms."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def __dir__(self) -> list[str]:
        return dir(np)


def _constructor(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor of arrays that can hold forms."""

    def make(*args: Any, **kwargs: Any) -> Any:
        if original in _READING:
            return _read(original, *args, **kwargs)
        if original in (np.full, np.full_like) and len(args) == 2 and type(args[1]) is Form and not kwargs:
            shape = args[0] if original is np.full else np.shape(args[0])
            return np.full(shape, plain_of(args[1]), object).view(FormArray)
        return wrapped(_as_objects(original(*args, **kwargs)))

    return make


def _read(original: Callable[..., Any], values: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return an array of values; of floats one that can hold forms."""
    if dtype not in (None, float, np.float64):
        return values.astype(dtype) if type(values) is FormArray else original(values, dtype, **kwargs)
    if type(values) is FormArray:
        return values.copy() if original is np.array else values
    if type(values) is Form:
        return wrapped(plain_of(values))
    objects = values if isinstance(values, np.ndarray) else original(values, object)
    if holds_forms(objects):
        return original(objects, object, **kwargs).view(FormArray)
    return wrapped(_as_objects(original(values, dtype, **kwargs)))


_PROXY = NumpyProxy("numpy")
_PROXIES: dict[int, Any] = {id(np): _PROXY}
_original: Any
for _original in (*_READING, *_MAKING, *_LIKE):
    _PROXIES[id(_original)] = _constructor(_original)
    setattr(_PROXY, _original.__name__, _PROXIES[id(_original)])


@cache
def of_library_file(file: str, module: str) -> bool:
    """Tell whether code of a file and a module is Python's, or of an installed package."""
    installed = not {"site-packages", "dist-packages"}.isdisjoint(file.split("/"))
    return installed or module.partition(".")[0] in sys.stdlib_module_names


def of_library(frame: FrameType) -> bool:
    """Tell whether code is of Python, or of an installed package."""
    return of_library_file(frame.f_code.co_filename, str(frame.f_globals.get("__name__", "")))


@lru_cache(maxsize=2)
def _own(count: int, last: str) -> list[ModuleType]:
    """Return the modules that are neither Python's, nor installed, nor ours, of so many loaded ones."""
    return [
        module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and not of_package(name)
        and not of_library_file(str(getattr(module, "__file__", None) or "?"), name)
    ]


def _loaded() -> tuple[int, str]:
    return len(sys.modules), next(reversed(sys.modules))


def is_importable(target: object) -> bool:
    """Tell whether a new process that imports the modules of a target has it too."""
    return all(map(_has_function, _functions(target, _DEPTH)))


def _has_function(function: FunctionType) -> bool:
    if of_package(str(function.__module__)):
        return True
    path, spec = None, None
    parts = str(function.__module__).split(".")
    for part in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:part]), path)
        path = None if spec is None else spec.submodule_search_locations
    return (
        spec is not None and spec.origin == function.__code__.co_filename and "<locals>" not in function.__qualname__
    )


def own_modules(target: object) -> list[dict[str, Any]]:
    """Return the names of the modules that are neither Python's, nor installed, nor ours, and of a target's own."""
    spaces: dict[int, dict[str, Any]] = {id(vars(module)): vars(module) for module in _own(*_loaded())}
    for function in _functions(target, _DEPTH):
        space = function.__globals__
        if not of_package(str(space.get("__name__", ""))):
            spaces[id(space)] = space
    return list(spaces.values())


def _functions(target: Any, depth: int) -> Iterator[FunctionType]:
    """Yield the functions that a target is made of."""
    if isinstance(target, FunctionType):
        yield target
    if not depth or not hasattr(target, "__dict__"):
        return
    kind = target if isinstance(target, type) else type(target)
    yield from (function for function in vars(kind).values() if isinstance(function, FunctionType))
    for attribute in list(vars(target).values()):
        if callable(attribute) or hasattr(attribute, "act"):
            yield from _functions(attribute, depth - 1)


@contextmanager
def numpy_proxy(target: object) -> Iterator[None]:
    """Put a proxy of NumPy into the modules of a target."""
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    for space in own_modules(target):
        for name, value in list(space.items()):
            if id(value) in _PROXIES:
                replaced.append((space, name, value))
                space[name] = _PROXIES[id(value)]
    try:
        yield
    finally:
        for space, name, value in replaced:
            space[name] = value


@contextmanager
def exceptions_heard(hear: Callable[[FrameType], None]) -> Iterator[None]:
    """Call a function with every frame of the code under audit that an exception passes, caught there or not."""
    is_target: dict[CodeType, bool] = {}

    def in_frame(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception" and not issubclass(arg[0], StopIteration):
            hear(frame)
        return in_frame

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code not in is_target:
            is_target[code] = not (of_library(frame) or of_package(str(frame.f_globals.get("__name__", ""))))
        if not is_target[code]:
            return None
        frame.f_trace_lines = False
        return in_frame

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield
    finally:
        sys.settrace(before)
