"""What all runs of a user's learner share: attributes of its classes, globals, closures, default arguments.

None of it may change while it plays. A run that leaves something behind for later runs makes them dependent, whether
or not the few runs of a check act on it; intervals count runs as independent trials.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import suppress
from functools import cached_property
from types import FunctionType, GeneratorType, ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...learners.abilities import is_ours
from ...learners.blame import name_of, of_package
from ...learners.protocol import Learner, LearnerError
from ...learners.scalar import Scalar
from ...learners.written import BOOKKEEPING, names_in

#: Values that are looked into, at most: what lies beyond is not compared.
MOST_OBJECTS = 200_000
#: Where installed packages lie: their code is not followed, nor is ours; values of their classes are.
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})

#: From the name of a value to the value, kept so that no other takes its place in memory, and a digest.
Shared = dict[str, tuple[object, str]]


def shared_state(learner: Learner) -> Shared:
    """Return everything that the runs of a learner share, with digests, by its name; nothing for one of ours."""
    return walked(learner).found


def check_unshared(learner: Learner, before: Shared) -> None:
    """Raise LearnerError if something that the runs of a learner share has changed since `before`.

    Code of installed packages is not followed; nor are files, other processes and C extensions seen.
    """
    if names := _changed(before, shared_state(learner)):
        raise LearnerError(
            f"{name_of(learner)} keeps state between runs: {names[0]} changed while it played. A run's state "
            f"belongs to {place_of_state(learner)}"
        )


def place_of_state(learner: object) -> str:
    """Return where the state of a run belongs, in words."""
    learner = getattr(learner, "learner", learner)  # of one that is audited on rounds
    if isinstance(learner, Scalar):
        return "self, made in __init__"
    return "what start returns" if hasattr(learner, "start") else "its call"


def walked(learner: object) -> Walk:
    """Return what the runs of a learner or of a mechanism share, where it lies, and its arrays and containers."""
    walk = Walk()
    if not is_ours(learner):
        walk.owner(learner)
    return walk


def _changed(before: Shared, after: Shared) -> list[str]:
    """Return where something else is now: another value, or an equal one that was put in its place."""
    return [name for name in {**after, **before} if _differ(before.get(name), after.get(name))]


def _differ(before: tuple[object, str] | None, after: tuple[object, str] | None) -> bool:
    return before is None or after is None or before[0] is not after[0] or before[1] != after[1]


@runtime_checkable
class Cached(Protocol):
    """A function that keeps its answers, as `functools.lru_cache` makes it."""

    __name__: str

    def cache_info(self) -> Any:
        """Return, among others, how many answers are kept."""

    def cache_clear(self) -> None:
        """Forget all answers."""


class Walk:
    """Follows a user's code, and takes digests of the values that it finds."""

    def __init__(self) -> None:
        self.found: Shared = {}
        self.seen, self.left = set[int](), MOST_OBJECTS
        #: Where a value lies that can be put back, and its name there: a class, a module's names, a cell, a function.
        self.places: dict[str, tuple[object, str]] = {}
        #: Arrays that were met, and containers, by their identity.
        self.held: dict[int, object] = {}
        #: Functions of the user's whose answers `functools.lru_cache` keeps, where nobody can read them.
        self.caches: dict[int, Cached] = {}

    def owner(self, learner: object) -> None:
        """Follow a learner or a mechanism."""
        self.of_code(learner, functions := list(_functions(learner)))
        if functions:
            return
        if isinstance(learner, Scalar):
            self.of_class(learner.user_class)
            for name, value in learner.parameters.items():
                self.value(f"its parameter {name}", value)
            return
        self.of_class(type(learner))
        for name, value in getattr(learner, "__dict__", {}).items():
            if isinstance(getattr(type(learner), name, None), cached_property):
                continue
            if hasattr(value, "update") and hasattr(value, "act"):  # a learner inside
                if not is_ours(value):
                    self.owner(value)
            else:
                self.value(f"its attribute {name}", value, learner, name)

    def of_class(self, kind: type) -> None:
        """Follow a class and its bases."""
        for owner in kind.__mro__:
            if id(owner) in self.seen or not is_users(owner.__module__, sys.modules.get(owner.__module__)):
                continue
            self.seen.add(id(owner))
            for name, value in vars(owner).items():
                functions = list(_functions(value))
                self.of_code(value, functions)
                if not functions and name not in BOOKKEEPING and not isinstance(value, property | cached_property):
                    self.value(f"{owner.__name__}.{name}", value, owner, name)

    def of_code(self, value: object, functions: Collection[FunctionType]) -> None:
        """Follow the functions behind a value, and keep it where it has a cache."""
        for function in functions:
            self.of_function(function)
        cached = getattr(value, "__func__", value)
        if isinstance(cached, Cached) and any(
            is_users(function.__module__, function.__globals__) for function in functions
        ):
            self.caches[id(cached)] = cached

    def of_function(self, function: FunctionType) -> None:
        """Follow a function: what it holds, and the globals that it names."""
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        scope = function.__globals__
        if not is_users(scope.get("__name__", ""), scope):
            return
        name = function.__qualname__
        self.value(f"a default argument of {name}", function.__defaults__, function, "__defaults__")
        self.value(f"a keyword's default of {name}", function.__kwdefaults__, function, "__kwdefaults__")
        for attribute, value in vars(function).items():
            self.value(f"{name}.{attribute}", value, function, attribute)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.value(f"{variable}, which {name} encloses,", cell.cell_contents, cell, "cell_contents")
            except ValueError:  # not filled yet
                continue
        for symbol in dict.fromkeys(names_in(function.__code__)):
            if symbol in scope:
                self.value(f"the global {symbol}", scope[symbol], scope, symbol)

    def value(self, name: str, value: object, owner: object = None, key: str = "") -> None:
        """Keep a digest of a value under a name; follow it instead where it is code."""
        if isinstance(value, type):
            self.of_class(value)
        elif functions := list(_functions(value)):
            self.of_code(value, functions)
        elif not isinstance(value, ModuleType) and not name.startswith("the global __"):
            self.found[name] = value, self.digest(value)
            if owner is not None:
                self.places[name] = owner, key

    def digest(self, value: object) -> str:
        """Return a digest of a value."""
        digest = hashlib.blake2b(digest_size=16)
        self._digest(value, digest, set())
        return digest.hexdigest()

    def _digest(self, value: object, digest: hashlib.blake2b, parents: set[int]) -> None:
        kind = type(value)
        digest.update(f"{kind.__module__}.{kind.__qualname__};".encode())
        self.left -= 1
        if self.left < 0 or id(value) in parents:
            return
        if isinstance(value, np.ndarray | Collection) and not isinstance(value, str | bytes):
            self.held[id(value)] = value
        if (
            value is None
            or kind in (bool, int, float, complex, str, bytes, bytearray)
            or isinstance(value, np.generic)
        ):
            digest.update(repr(value).encode("utf-8", "replace"))
        elif isinstance(value, np.ndarray) and value.dtype != object:
            digest.update(f"{value.dtype}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)  # no copy, unless in strides
        elif isinstance(value, type):
            self.of_class(value)
        elif isinstance(value, FunctionType):
            self.of_function(value)
        else:
            for part in _parts(value):
                self._digest(part, digest, parents | {id(value)})


def _parts(value: object) -> Iterator[object]:
    """Yield what makes up a value's state."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield key
            yield item
    elif isinstance(value, Set):
        yield sorted(map(repr, value))
    elif isinstance(value, list | tuple | deque | np.ndarray):
        yield from value
    elif isinstance(value, np.random.Generator):
        yield value.bit_generator.state
    elif isinstance(value, np.random.RandomState):
        yield value.get_state()
    elif isinstance(value, GeneratorType):
        yield None if value.gi_frame is None else (value.gi_frame.f_lasti, dict(value.gi_frame.f_locals))
    elif type(value).__module__ == "itertools":
        yield repr(value)
    elif hasattr(value, "getstate"):  # random.Random
        with suppress(NotImplementedError):  # that of the operating system has none
            yield value.getstate()
    elif not isinstance(value, ModuleType) and type(value).__module__.partition(".")[0] not in (
        "logging",
        "threading",
    ):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        attributes |= {
            name: item for name, item in getattr(value, "__dict__", {}).items() if not _is_cached(value, name)
        }
        yield attributes


def _is_cached(value: object, name: str) -> bool:
    return isinstance(getattr(type(value), name, None), cached_property)


def _functions(value: object) -> Iterator[FunctionType]:
    """Yield the functions behind a value, if it is code."""
    inner = getattr(value, "__func__", value)  # of a static method, which may keep its answers
    parts = (
        (value.fget, value.fset, value.fdel)
        if isinstance(value, property)
        else (value.func,)
        if isinstance(value, cached_property)
        else (inner, getattr(inner, "__wrapped__", None))
    )
    for part in parts:
        if isinstance(part, FunctionType):
            yield part


def is_users(name: str, module: object) -> bool:
    """Tell whether a module, or its globals, is a user's own file, and not ours or an installed package."""
    if name.partition(".")[0] in sys.stdlib_module_names - {"__main__"} or of_package(name):
        return False
    scope = module if isinstance(module, dict) else getattr(module, "__dict__", {})
    return not str(scope.get("__file__") or "").startswith(_INSTALLED)
