"""Faces that are lazy (PEP 562): a public name is imported from its room on first use."""

from collections.abc import Callable, Mapping
from importlib import import_module


def lazily(
    namespace: dict[str, object], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a module.

    Parameters
    ----------
    namespace : dict
        The module's `globals()`.
    homes : mapping
        From each public name to the module that has it.
    """

    def getattribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        value: object = getattr(import_module(homes[name]), name)
        namespace[name] = value
        return value

    return getattribute, lambda: sorted({*namespace, *homes})
