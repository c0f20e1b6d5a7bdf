"""Seeds that code sets itself: watched while it plays, so that a constant one has its line; or fresh in every run.

What is watched is called by its name in `numpy.random`, `random` or torch, or in a module that has imported the name.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import random
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from .faults import FaultyGenerator
from .global_random import drawn_from

#: What takes a seed, by module: of torch only where it is loaded.
_SEEDED = {
    "numpy.random": ("default_rng", "RandomState", "seed", "PCG64", "MT19937", "Philox", "SFC64", "SeedSequence"),
    "random": ("seed", "Random"),
    "torch": ("manual_seed",),
}
_PACKAGE = __name__.partition(".")[0]
#: Where installed packages lie: what a user wrote is named before them.
_INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
#: What holds a generator in code: its module, what that holds, and what these hold.
_MAX_DEPTH = 3
#: A seed that somebody wrote is below this; the entropy of an unseeded generator is not, but for a chance of 2**-64.
_MAX_SEED = 2**64

#: Frames of ours that may lie between a seed and the line that set it.
_BETWEEN = 2


def _seeders() -> dict[int, Any]:
    """Return what takes a seed, by identity."""
    modules = {name: sys.modules[name] for name in _SEEDED if name in sys.modules}
    found = [getattr(module, name, None) for module_name, module in modules.items() for name in _SEEDED[module_name]]
    return {id(seeder): seeder for seeder in found if seeder is not None}


#: Those before anything patches them.
_UNPATCHED = _seeders()


class SeedLog:
    """The seeds that were set by each line."""

    def __init__(self) -> None:
        self.seeds: dict[tuple[str, int], list[int]] = defaultdict(list)

    def note(self, seed: object, frame: FrameType | None) -> object:
        """Keep a whole number that is a seed, with the line that set it; return the seed."""
        line = _written_line(frame)
        if line is not None and isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
            self.seeds[line].append(int(seed))
        return seed

    def constant_seeds(self, runs: int) -> list[tuple[str, int, int]]:
        """Return file, line and seed of the lines that set the same seed in each of some runs, at least two."""
        constant = [
            (place, seeds) for place, seeds in self.seeds.items() if len(seeds) >= runs > 1 and len({*seeds}) == 1
        ]
        return [(Path(file).name, line, seeds[0]) for (file, line), seeds in constant]


@contextmanager
def watched_seeds(target: object = None) -> Iterator[SeedLog]:
    """Watch the functions that take a seed, while code under audit plays."""
    log = SeedLog()
    with _changed_seeds(target, log.note):
        yield log


def drawn_reseeded(target: object, rng: np.random.Generator, call: Callable[..., Any], /, *args: object) -> Any:
    """Return what a call of code under audit returns, each of its own seeds being another one in every run.

    Global generators draw from `rng`, as in `drawn_from`. Equal seeds of a run stay equal: code that draws the same
    numbers twice still does. Generators that were made before the call, and their seeds with them, are set anew.
    """
    bits: Any = np.random.Generator.bit_generator.__get__(rng)  # of one that is watched too: this is no draw
    words = getattr(bits, "seed_seq", None) or bits._seed_seq
    run = words.generate_state(4).tolist()

    def fresh(seed: object, frame: FrameType | None) -> object:
        if not isinstance(seed, (int, np.integer, str, bytes)) or isinstance(seed, bool):
            return seed
        return _fresh_seed(run, repr(seed if isinstance(seed, (str, bytes)) else int(seed)))

    with ExitStack() as stack:
        for name, generator in held_generators(target).items():
            stack.callback(_set_anew(generator, _fresh_seed(run, name)))
        stack.enter_context(_changed_seeds(target, fresh, rng))
        return drawn_from(rng, call, *args)


def held_generators(target: object) -> dict[str, Any]:
    """Return the generators that code under audit has before it is called, by where it has them."""
    written = _written(target)
    try:
        return _held(written)
    except TypeError:  # it has no hash
        return _held.__wrapped__(written)


def seed_held(generator: object) -> int | None:
    """Return the seed that a generator was made with; None where it tells none, or was made without."""
    sequence = getattr(getattr(generator, "bit_generator", None), "seed_seq", None)
    entropy = getattr(sequence, "entropy", None)
    return entropy if isinstance(entropy, int) and entropy < _MAX_SEED else None


@lru_cache(maxsize=8)
def _held(written: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    seen: set[int] = set()
    waiting = [("", written, 0), *((name, value, 1) for name, value in _globals_of(written).items())]
    for name, value, depth in waiting:  # it grows
        if id(value) in seen or name.startswith("__"):
            continue
        seen.add(id(value))
        if isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
            if not isinstance(value, random.SystemRandom):
                found[name] = value
        elif depth < _MAX_DEPTH:
            waiting += [(f"{name}.{key}".lstrip("."), part, depth + 1) for key, part in _parts(value)]
    return found


def _parts(value: Any) -> list[tuple[str, object]]:
    """Return what a function has by default, or a user's class or object holds."""
    if isinstance(value, FunctionType):
        defaults = value.__defaults__ or ()
        names = value.__code__.co_varnames[value.__code__.co_argcount - len(defaults) : value.__code__.co_argcount]
        named = zip(names, defaults)  # noqa: B905 - Python 3.8 has no `strict`
        return [*named, *(value.__kwdefaults__ or {}).items(), *inspect.getclosurevars(value).nonlocals.items()]
    kind = value if isinstance(value, type) else type(value)
    module = sys.modules.get(str(kind.__module__))
    file = str(getattr(module, "__file__", _INSTALLED[0] if module else ""))  # a target's own may not stay there
    return [] if file.startswith(_INSTALLED) else list(getattr(value, "__dict__", {}).items())


def _set_anew(generator: Any, seed: int) -> Callable[[], object]:
    """Seed a generator; return what restores it."""
    if isinstance(generator, random.Random):
        state = generator.getstate()
        generator.seed(seed)
        return lambda: generator.setstate(state)
    bits = generator.bit_generator if isinstance(generator, np.random.Generator) else generator._bit_generator
    before, bits.state = bits.state, type(bits)(seed).state

    def restore() -> None:
        bits.state = before

    return restore


def _fresh_seed(run: list[int], seed: str) -> int:
    """Return the seed, of 32 bits, that stands for another one in a run."""
    digest = hashlib.blake2b(repr(run).encode() + seed.encode("utf-8", "replace"), digest_size=4)
    return int.from_bytes(digest.digest(), "little")


@contextmanager
def _changed_seeds(
    target: object, change: Callable[[object, FrameType | None], object], rng: np.random.Generator | None = None
) -> Iterator[None]:
    """Change the seeds that code sets; generators that it makes have the faults of `rng`, or are watched as it is."""
    seeders = {**_UNPATCHED, **_seeders()}
    spaces = [_globals_of(_written(target)), *_importing(len(sys.modules))]
    patched = [(space, name, value) for space in spaces for name, value in space.items() if id(value) in seeders]
    changing = {id(value): _changing(value, change, rng) for _, _, value in patched}  # one for all names of a function
    try:
        for space, name, value in patched:
            space[name] = changing[id(value)]
        yield
    finally:
        for space, name, value in patched:
            space[name] = value


@lru_cache(maxsize=1)
def _importing(count: int) -> list[dict[str, Any]]:
    """Return the names of the modules that have what takes a seed; `count` is how many modules are loaded."""
    spaces = [
        vars(module)
        for name, module in list(sys.modules.items())
        if module is not None and name.partition(".")[0] not in (_PACKAGE, "numpy", "random", "torch")
    ]
    own = [vars(sys.modules[name]) for name in _SEEDED if name in sys.modules]
    return own + [space for space in spaces if any(id(value) in _UNPATCHED for value in list(space.values()))]


def _written(target: Any) -> Any:
    """Return the function or class that somebody wrote, without what plays, reads or catches it for us."""
    while hasattr(target, "mechanism"):
        target = target.mechanism
    target = getattr(target, "learner", target)
    return getattr(target, "user_class", getattr(target, "func", target))


def _globals_of(written: Any) -> dict[str, Any]:
    """Return the globals of the module that a function, or a class, is written in; none where nothing tells."""
    kind = written if isinstance(written, (type, FunctionType)) else type(written)
    functions = [kind, *(vars(kind).values() if isinstance(kind, type) else ())]
    return next((one.__globals__ for one in functions if hasattr(one, "__globals__")), {})


def _written_line(frame: FrameType | None) -> tuple[str, int] | None:
    """Return the innermost line that a user wrote, else that of a package; None where both are ours."""
    nearest, between = None, 0
    while frame is not None:
        file = frame.f_code.co_filename
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] != _PACKAGE:
            nearest = nearest or (file, frame.f_lineno)
            if not file.startswith(_INSTALLED):
                return file, frame.f_lineno
        elif nearest is not None or between == _BETWEEN:  # ours called it
            break
        between += 1
        frame = frame.f_back
    return nearest


def _changing(seeder: Any, change: Callable[[object, FrameType | None], object], rng: Any) -> Any:
    """Return what changes the seed and calls a function, or makes an object of a class, of its own kind."""

    def call(*args: Any, **kwargs: Any) -> object:
        frame = sys._getframe(1)
        if args:
            args = (change(args[0], frame), *args[1:])
        elif kwargs:
            (first, seed), *others = kwargs.items()
            kwargs = {first: change(seed, frame), **dict(others)}
        made = seeder(*args, **kwargs)
        if isinstance(rng, FaultyGenerator) and type(made) is np.random.Generator:
            return FaultyGenerator(made.bit_generator, rng.fault, rng.run)
        if hasattr(rng, "recorder") and type(made) is np.random.Generator:
            return type(rng)(made.bit_generator, rng.recorder)
        return made

    if isinstance(seeder, type):
        return _ChangingKind(seeder.__name__, (), {"kind": seeder, "call": staticmethod(call)})
    return call


class _ChangingKind(type):
    """Stands for a class: its calls change the seed, and instances of the class are its own."""

    kind: Any
    call: Callable[..., object]

    def __call__(cls, *args: Any, **kwargs: Any) -> object:
        return cls.call(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.kind, name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.kind)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.kind)
