"""What a target's module asks of its process: how floating-point errors are handled, and the current folder.

Both are our own while we compute, and the target's while it plays. A target that asks NumPy and SciPy to raise would
have our arithmetic raise, and be blamed for that. One that goes to another folder would take our relative paths along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy import special

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Handling:
    """What to do about each kind of error, as `numpy.seterr` and `scipy.special.seterr` take it, and where to be."""

    numpy: Mapping[str, Any]
    special: Mapping[str, Any]
    #: None stays in the folder that is current.
    folder: str | None = None

    @classmethod
    def now(cls) -> Handling:
        """Return that of the process."""
        return cls(np.geterr(), special.geterr())

    @contextmanager
    def set(self) -> Iterator[None]:
        """Handle errors so for a while, in that folder."""
        before = special.geterr()
        with np.errstate(**self.numpy), nullcontext() if self.folder is None else _inside(self.folder):
            try:
                _set_special(self.special)
                yield
            finally:
                _set_special(before)


def _current() -> str | None:
    """Return the current folder; None where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


@contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = _current()
    with suppress(OSError):  # it is gone: what the target looks for there is too
        os.chdir(folder)
    try:
        yield
    finally:
        _return(before)


def _return(folder: str | None) -> None:
    if folder is not None and _current() != folder:
        with suppress(OSError):
            os.chdir(folder)


def _set_special(handling: Mapping[str, Any]) -> None:
    if special.geterr() != handling:  # to set it takes twenty times as long as to look
        special.seterr(**handling)


#: As both begin: what our arithmetic is written for.
OURS = Handling(
    {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"},
    {kind: "raise" if kind == "memory" else "ignore" for kind in special.geterr()},
)
#: The target's, innermost last: an audit may play another target inside.
_theirs: list[Handling] = [OURS]
#: That of every target that was loaded: a module is loaded once, and its helpers too.
_loaded: dict[str, Handling] = {}


def handling_of_target() -> Handling:
    """Return how the target wants errors to be handled."""
    return _theirs[-1]


@contextmanager
def _set(handling: Handling) -> Iterator[None]:
    _theirs.append(handling)
    try:
        with OURS.set():
            yield
    finally:
        _theirs.pop()


@contextmanager
def loading(place: str) -> Iterator[None]:
    """Load a target's module: what it asks of them is the target's from now on, also where it was loaded before."""
    before = _current()
    try:
        with OURS.set():
            yield
            handling = Handling.now()
        if (folder := _current()) != before:
            handling = replace(handling, folder=folder)
    finally:
        _return(before)
    if handling != OURS:
        _loaded[place] = handling
    _theirs[-1] = _loaded.get(place, OURS)


@contextmanager
def beside_target() -> Iterator[None]:
    """Load code that is not the target: the target keeps its own handling and folder."""
    target = _theirs[-1]
    try:
        yield
    finally:
        _theirs[-1] = target


def loaded_none() -> None:
    """Note that the target has no module of its own."""
    _theirs[-1] = OURS


@contextmanager
def ours() -> Iterator[None]:
    """Compute in our way. A caller's process that does otherwise does as its target wants."""
    current = Handling.now()
    with _set(_theirs[-1] if current == OURS else current):
        yield


@contextmanager
def theirs() -> Iterator[None]:
    """Play the target: it has its own handling, and what it changes is not kept."""
    with _theirs[-1].set():
        yield


def with_handling(handling: Handling, task: Callable[[Item], Result], item: Item) -> Result:
    """Return `task(item)`, in another process than that which loaded the target."""
    with _set(handling):
        return task(item)
