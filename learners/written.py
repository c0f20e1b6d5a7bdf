"""Whether a class is one of ours as we wrote it."""

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

_ROOT = __name__.rpartition(".learners.")[0]
_ROOMS = (f"{_ROOT}.learners.", f"{_ROOT}.mechanisms.", f"{_ROOT}.errors")
#: Faults planted in subclasses of ours, which inherit abilities that were tested with their parents, and in noise;
#: and what plays targets elsewhere.
_PLANTED = (f"{_ROOT}.learners.planted.", f"{_ROOT}.mechanisms.faults", f"{_ROOT}.mechanisms.worker")
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
#: What a class of ours may hold beside functions that can be called or bound.
_HARMLESS = (type, BuiltinFunctionType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType)


class _ReplacedError(Exception):
    """An attribute of the class is not ours."""


def playing(names: Iterable[str]) -> set[str]:
    """Return those names of a class that matter to play: Python adds others when it likes, to pickle for one."""
    return {name for name in names if not name.startswith("__") or name in _HOOKS}


def in_our_rooms(kind: type) -> bool:
    """Tell whether a class says that it is one of our learners, mechanisms or their parts."""
    return kind.__module__.startswith(_ROOMS) and not kind.__module__.startswith(_PLANTED)


def is_written(kind: type) -> bool:
    """Tell whether a class is the one that a module of ours holds, and no attribute of it was replaced.

    The same must be true of its bases, and of the classes that its methods name. Names are not believed: a function
    must have been compiled in the class that has it. What is not looked into: functions beneath these methods, and
    code that was made to pass.
    """
    if not in_our_rooms(kind):
        return False
    try:
        attributes = _attributes(kind)
    except _ReplacedError:
        return False
    # Asked at every look at an ability, of many names: in loops of the interpreter's own.
    return all(
        all(map(is_, map(vars(owner).get, values), values.values())) and not playing(vars(owner).keys() ^ names)
        for owner, values, names in attributes
    )


@cache  # a failure is not kept: what was replaced may be put back
def _attributes(kind: type) -> tuple[tuple[type, dict[str, object], frozenset[str]], ...]:
    """Return a class, its bases and the classes that their methods name, each with its attributes and all its names.

    Raises
    ------
    _ReplacedError
        If one of them is not ours.
    """
    originals: dict[type, tuple[type, dict[str, object], frozenset[str]]] = {}
    classes_left = [kind]
    while classes_left:
        for owner in classes_left.pop().__mro__:
            if owner in originals or vars(owner).get("_is_protocol", False):
                continue
            trusted = owner.__module__.partition(".")[0] in _TRUSTED
            module = vars(sys.modules.get(owner.__module__, sys))
            if not (trusted or owner.__module__.startswith(_ROOMS)) or module.get(owner.__qualname__) is not owner:
                raise _ReplacedError(owner.__qualname__)
            if trusted:
                continue
            values = {
                name: value for name, value in vars(owner).items() if name not in BOOKKEEPING - {"__post_init__"}
            }
            originals[owner] = owner, values, frozenset(vars(owner))
            for code in _codes(owner, values, module):
                classes = (module[name] for name in names_in(code) if isinstance(module.get(name), type))
                classes_left += (value for value in classes if value.__module__.startswith(_ROOMS))
    return tuple(originals.values())


def _codes(owner: type, values: Mapping[str, object], module: Mapping[str, object]) -> Iterator[CodeType]:
    """Yield the code of a class's functions; raise _ReplacedError for one that was not compiled in it."""
    for name, value in values.items():
        for function in _functions(value):
            home, code = function.__globals__, function.__code__
            if home is module and code.co_qualname == f"{owner.__qualname__}.{name}":
                yield code
            elif str(home.get("__name__", "")).partition(".")[0] not in _TRUSTED:  # as enumerations have
                raise _ReplacedError(code.co_qualname)


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


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function's code looks up, those of functions within it too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)
