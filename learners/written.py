"""Whether a class is one of ours as we wrote it, down to what its methods call."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from operator import is_
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any

_ROOT = __name__.rpartition(".learners.")[0]
_ROOMS = (f"{_ROOT}.learners.", f"{_ROOT}.mechanisms.", f"{_ROOT}.errors")
#: Faults planted in subclasses of ours: they inherit abilities that were tested with their parents.
_PLANTED = f"{_ROOT}.learners.planted."
#: Whose functions and classes our code calls.
_TRUSTED = {"numpy", "scipy", *sys.stdlib_module_names} - {"__main__"}
#: What Python and dataclasses write into a class. None of it plays.
_TEXT = """
    __module__ __qualname__ __doc__ __dict__ __weakref__ __slots__ __firstlineno__ __static_attributes__
    __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __parameters__ __orig_bases__ __type_params__
    __init__ __post_init__ __init_subclass__ __repr__ __str__ __eq__ __hash__ __setattr__ __delattr__ __replace__
    __getstate__ __setstate__ __match_args__ __dataclass_fields__ __dataclass_params__ __abstractmethods__ _abc_impl
    _is_protocol _is_runtime_protocol __protocol_attrs__ __non_callable_proto_members__
"""
BOOKKEEPING = frozenset(_TEXT.split())
#: What stands before every attribute of an object.
_HOOKS = {"__getattr__", "__getattribute__", "__class__"}
#: A place, a name in it, and what we wrote there; without a name, all the names of a class.
_Written = tuple[Mapping[str, object], str, object]
#: A place, those of its names that matter, what we wrote at each, and all the names that a class had, or None.
_Place = tuple[Mapping[str, object], tuple[str, ...], tuple[object, ...], frozenset[str] | None]


#: What else a class of ours may hold that can be called or bound.
_HARMLESS = (type, BuiltinFunctionType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType)


class _ReplacedError(Exception):
    """Something beneath the class is not ours."""


def playing(names: Iterable[str]) -> set[str]:
    """Return those names of a class that matter to play: Python adds others when it likes, to pickle for one."""
    return {name for name in names if not name.startswith("__") or name in _HOOKS}


def in_our_rooms(kind: type) -> bool:
    """Tell whether a class says that it is one of our learners, mechanisms or their parts."""
    return kind.__module__.startswith(_ROOMS) and not kind.__module__.startswith(_PLANTED)


def is_written(kind: type) -> bool:
    """Tell whether a class is found in a module of ours and nothing beneath it was replaced.

    Beneath it are its methods and those of its bases, the functions and classes of ours that their code names, and so
    on. Names are not believed: a class must be the one that our module holds, a function must have been compiled
    there. What is not looked into: attributes of NumPy and SciPy, and code that was made to pass.
    """
    if not in_our_rooms(kind):
        return False
    try:
        beneath = _beneath(kind)
    except _ReplacedError:
        return False
    # Asked at every look at an ability, of hundreds of names: in loops of the interpreter's own.
    return all(
        all(map(is_, map(place.get, names), values)) and (every is None or _has_the_names(place, every))
        for place, names, values, every in beneath
    )


def _has_the_names(place: Mapping[str, object], every: frozenset[str]) -> bool:
    """Tell whether a class has the names that it had, but for those that do not matter to play."""
    return place.keys() == every or playing(place.keys() ^ every) == set()


@cache  # a failure is not kept: what was replaced may be put back
def _beneath(kind: type) -> tuple[_Place, ...]:
    written: dict[tuple[int, str], _Written] = {}
    _visit_class(kind, written)
    places: dict[int, tuple[Mapping[str, Any], dict[str, Any]]] = {}
    for (holder, _), (place, name, value) in written.items():
        places.setdefault(holder, (place, {}))[1][name] = value
    every = {holder: names.pop("", None) for holder, (_, names) in places.items()}
    return tuple((place, tuple(names), tuple(names.values()), every[i]) for i, (place, names) in places.items())


def _visit_class(kind: type, written: dict[tuple[int, str], _Written]) -> None:
    for owner in kind.__mro__:
        if vars(owner).get("_is_protocol", False):
            continue
        trusted = owner.__module__.partition(".")[0] in _TRUSTED
        module = vars(sys.modules.get(owner.__module__, sys))
        if not (trusted or owner.__module__.startswith(_ROOMS)) or module.get(owner.__qualname__) is not owner:
            raise _ReplacedError(owner.__qualname__)
        if trusted:
            continue
        written[id(owner), ""] = (vars(owner), "", frozenset(vars(owner)))
        for name, value in vars(owner).items():
            if name in BOOKKEEPING - {"__post_init__"} or (id(owner), name) in written:
                continue
            written[id(owner), name] = (vars(owner), name, value)
            for function in _functions(value):
                if isinstance(value, staticmethod):  # a function of the module, under a name of the class
                    _visit_named(function, name, written)
                elif not _is_trusted(function):  # as enumerations have
                    _visit_function(function, module, f"{owner.__qualname__}.{name}", written)


def _functions(value: object) -> Iterator[FunctionType]:
    """Yield the functions behind an attribute of a class."""
    if isinstance(value, property):
        parts: tuple[object, ...] = (value.fget, value.fset, value.fdel)
    elif isinstance(value, cached_property):
        parts = (value.func,)
    else:
        parts = (getattr(value, "__wrapped__", value),)  # classmethod, staticmethod, functools.cache
    for part in parts:
        if isinstance(part, FunctionType):
            yield part
        elif (callable(part) or hasattr(part, "__get__")) and not isinstance(part, _HARMLESS):
            raise _ReplacedError(repr(part))


def _visit_function(
    function: FunctionType, module: Mapping[str, object], name: str, written: dict[tuple[int, str], _Written]
) -> None:
    if function.__globals__ is not module or function.__code__.co_qualname != name:
        raise _ReplacedError(name)
    for named in set(names_in(function.__code__)) & module.keys():
        if (id(module), named) not in written:
            written[id(module), named] = (module, named, module[named])
            _visit_named(module[named], named, written)


def _visit_named(value: object, name: str, written: dict[tuple[int, str], _Written]) -> None:
    """Visit what a name of a module stands for: a function or class of ours. Modules and constants are let be."""
    value = getattr(value, "__wrapped__", value)
    if isinstance(value, type) and value.__module__.startswith(_ROOMS):
        _visit_class(value, written)
    elif isinstance(value, FunctionType) and not _is_trusted(value):
        home = vars(sys.modules.get(value.__globals__.get("__name__", ""), sys))
        if not home.get("__name__", "").startswith(_ROOMS):
            raise _ReplacedError(name)
        _visit_function(value, home, value.__code__.co_qualname, written)
    elif isinstance(value, type) and value.__module__.partition(".")[0] not in _TRUSTED:
        raise _ReplacedError(name)


def _is_trusted(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__", "")).partition(".")[0] in _TRUSTED


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function's code looks up, those of functions within it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
