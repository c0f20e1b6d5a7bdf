"""Seeds that code sets itself: watched while it plays, so that a seed that is the same in every run has its line.

What is watched is called by its name in `numpy.random`, `random` or torch, or in the globals of the code under audit.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

#: What takes a seed, by module: of torch only where it is loaded.
_SEEDED: Mapping[str, tuple[str, ...]] = {
    "numpy.random": ("default_rng", "RandomState", "seed", "PCG64", "MT19937", "Philox", "SFC64", "SeedSequence"),
    "random": ("seed", "Random"),
    "torch": ("manual_seed",),
}


class SeedLog:
    """The seeds that were set by each line."""

    def __init__(self) -> None:
        self.seeds: dict[tuple[str, int], list[int]] = defaultdict(list)

    def note(self, seed: object, frame: FrameType | None) -> None:
        """Keep a whole number that is a seed, with the line that set it."""
        if frame is not None and isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            self.seeds[frame.f_code.co_filename, frame.f_lineno].append(int(seed))

    def constant_seeds(self, runs: int) -> list[tuple[str, int, int]]:
        """Return file, line and seed of the lines that set the same seed in each of some runs, at least two."""
        same = [(place, seeds) for place, seeds in self.seeds.items() if len(seeds) >= runs > 1 and len({*seeds}) == 1]
        return [(Path(file).name, line, seeds[0]) for (file, line), seeds in same]


@contextmanager
def watched_seeds(names: Mapping[str, object] | None = None) -> Iterator[SeedLog]:
    """Watch the functions that take a seed.

    Parameters
    ----------
    names : mapping, optional
        The globals of the code under audit, which may have imported such a function by its name.
    """
    log, patched = SeedLog(), list[tuple[dict[str, Any], str, Any]]()
    spaces = [vars(np.random), vars(random), *([names] if isinstance(names, dict) else [])]
    originals = {
        id(function): function
        for module, known in _SEEDED.items()
        for function in (getattr(sys.modules.get(module), name, None) for name in known)
        if function is not None
    }
    spaces += [vars(sys.modules["torch"])] if "torch" in sys.modules else []
    try:
        for space in spaces:
            for name, value in list(space.items()):
                if id(value) in originals:
                    patched.append((space, name, value))
                    space[name] = _noting(value, log)
        yield log
    finally:
        for space, name, value in patched:
            space[name] = value


def _noting(seeded: Any, log: SeedLog) -> Any:
    """Return what notes the seed and calls a function, or makes an object of a class, which stays of its own kind."""
    if isinstance(seeded, type):
        return _NotingKind(seeded.__name__, (), {"kind": seeded, "log": log})

    def call(*args: Any, **kwargs: Any) -> object:
        log.note(_seed_of(args, kwargs), sys._getframe(1))
        return seeded(*args, **kwargs)

    return call


def _seed_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """Return the seed of a call: its first argument, whatever it is called."""
    return next(iter((*args, *kwargs.values())), None)


class _NotingKind(type):
    """Stands for a class: its calls note the seed, and instances of the class are its own."""

    kind: Any
    log: SeedLog

    def __call__(cls, *args: Any, **kwargs: Any) -> object:
        cls.log.note(_seed_of(args, kwargs), sys._getframe(1))
        return cls.kind(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.kind, name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.kind)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.kind)
