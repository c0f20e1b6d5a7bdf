"""Functions of a library whose noise a trace watches, without an edit or an adapter.

A trace follows the noise that a target draws from its generator. What a library draws elsewhere it cannot see, unless
it is told which functions add noise, and which law each of them has for its arguments.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ContextDecorator, contextmanager
from types import ModuleType, TracebackType
from typing import Any, Self

from .draws import Law

#: How the traces that are running note a noisy call, the innermost last: from the function, the law of its arguments
#: and these to what it returns.
_ACTIVE: list[Callable[..., Any]] = []
#: From the arguments of a function that adds noise to its first one, to the law of the noise.
LawOf = Callable[..., Law]


@contextmanager
def active(note: Callable[..., Any]) -> Iterator[None]:
    """Have watched functions tell a trace of their noise."""
    _ACTIVE.append(note)
    try:
        yield
    finally:
        _ACTIVE.pop()


class watching(ContextDecorator):  # noqa: N801 - a context manager reads as a function
    r"""Have traces watch functions of a library that add noise: a context manager and a decorator.

    Outside a trace they are called as ever. In a trace what such a function returns is a noisy value of its first
    argument. Whatever module holds the function is patched inside, and put back after.

    Parameters
    ----------
    library : module or function
        A function that returns its first argument with noise; or a module that has such functions.
    noise : callable, or mapping of names to callables
        From the arguments of the function to the law of its noise; of a module's functions by their names.

    Raises
    ------
    ValueError
        If it is neither, or the module has no such function.

    Examples
    --------
    >>> from types import ModuleType
    >>> from overclaim.mechanisms.noise import Laplace
    >>> library = ModuleType("library")
    >>> exec("def blur(value, scale):\n    return value + 1", vars(library))
    >>> with watching(library, noise={"blur": lambda value, scale: Laplace(scale)}):
    ...     library.blur(1, 2.0)
    2
    """

    def __init__(self, library: ModuleType | Callable[..., Any], noise: LawOf | Mapping[str, LawOf]) -> None:
        self.laws = _laws_by_function(library, noise)
        self.place = library
        self.before: list[list[tuple[ModuleType, str, Callable[..., Any]]]] = []

    def __enter__(self) -> Self:
        patched = []
        modules = {
            id(module): module for module in (*sys.modules.values(), self.place) if isinstance(module, ModuleType)
        }
        for function, law in self.laws:
            watched = _watched(function, law)
            for module in modules.values():
                for name in [name for name, value in list(vars(module).items()) if value is function]:
                    patched.append((module, name, function))
                    setattr(module, name, watched)
        self.before.append(patched)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for module, name, function in self.before.pop():
            setattr(module, name, function)


def _laws_by_function(
    library: ModuleType | Callable[..., Any], noise: LawOf | Mapping[str, LawOf]
) -> list[tuple[Callable[..., Any], LawOf]]:
    """Return each function with its law."""
    if isinstance(library, ModuleType) and isinstance(noise, Mapping):
        missing = [name for name in noise if not callable(getattr(library, name, None))]
        if missing:
            raise ValueError(f"watching: {library.__name__} has no function {missing[0]!r}")
        return [(getattr(library, name), law) for name, law in noise.items()]
    if callable(library) and callable(noise):
        return [(library, noise)]
    raise ValueError(
        f"watching takes a function and the law of its noise, or a module and laws by name, got {library!r:.80}"
    )


def _watched(function: Callable[..., Any], law_of: LawOf) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _ACTIVE[-1](function, law_of, *args, **kwargs) if _ACTIVE else function(*args, **kwargs)

    return call
