"""Code that draws from global generators, played on a generator that is handed to it.

Most code draws from `np.random`, `random`, or a generator that it makes without a seed. Inside `global_random(rng)`
all three draw from `rng`, and so do torch and code that numba compiled, where they are loaded: the same `rng` gives
the same numbers, and nothing of it stays afterwards but numba's state. What comes from the operating system
(`secrets`, `os.urandom`, `random.SystemRandom`, an own `random.Random()`) cannot be had so.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from functools import partial
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from ..errors import hinted
from .faults import FaultyGenerator, legacy_draws, python_draws
from .framework_random import framework_states, seed_frameworks

#: What code that draws from global generators is played with, in place of its own constant seeds.
FRESH_SEEDS = "fresh seeds"
#: Bits of a seed: two words.
SEED_BITS = 64
#: One thread at a time: the generators are global.
_LOCK = threading.RLock()
#: What draws nothing.
_NO_DRAWS = {"seed", "get_state", "set_state", "getstate", "setstate"}
#: Where NumPy takes entropy from for what is made without a seed.
_ENTROPY: Any = np.random.bit_generator
#: Legacy NumPy, whose own functions the stubs leave out.
_LEGACY: Any = np.random
#: The generator behind the functions of `random`.
_HIDDEN: Any = random.seed.__self__  # type: ignore[attr-defined]
#: The class itself: `random` may hold what watches its seeds.
_RANDOM = random.Random
#: What legacy NumPy draws from, inside.
_BITS = np.random.MT19937(0)


class ThreadsError(RuntimeError):
    """Two threads asked for global generators at once."""


class global_random(ContextDecorator):  # noqa: N801 - a context manager reads as a function
    """Draw from a generator whatever code draws from `np.random`, `random` and unseeded generators.

    A context manager and a decorator. Generators that are made inside without a seed (`default_rng()`,
    `RandomState()`, `SeedSequence()`, `random.Random()`) are seeded from `rng` too; one that was made before keeps its
    own numbers. One thread at a time: another one that enters meanwhile is refused.

    Parameters
    ----------
    rng : numpy.random.Generator
        In a trace it is watched, and so are `np.random.laplace`, `np.random.normal` and `random.gauss` then.

    Raises
    ------
    ThreadsError
        If another thread is inside.

    Examples
    --------
    >>> def count(data, rng):
    ...     with global_random(rng):
    ...         return len(data) + np.random.laplace(scale=1.0)
    >>> round(count([1, 2], np.random.default_rng(0)), 3) == round(count([1, 2], np.random.default_rng(0)), 3)
    True
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.before: list[tuple[Any, ...]] = []

    def __enter__(self) -> global_random:
        self.before.append((random.getstate(), _enter(self.rng)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        state, patched = self.before.pop()
        _leave(patched)
        random.setstate(state)


@contextmanager
def restored() -> Iterator[None]:
    """Restore the state of `random` afterwards: `drawn_from` inside leaves it where it is, which is quicker."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


def drawn_from(rng: np.random.Generator, call: Callable[..., Any], /, *args: object, **kwargs: object) -> Any:
    """Return what a call returns, global generators drawing from `rng`; `random` is not restored (`restored`)."""
    patched = _enter(rng)
    try:
        return call(*args, **kwargs)
    finally:
        _leave(patched)


def _enter(rng: np.random.Generator) -> list[tuple[object, str, object]]:
    """Install the generator; return what was where before, the last first."""
    if not _LOCK.acquire(blocking=False):
        raise hinted(
            ThreadsError("global generators are one for all threads, and another thread uses them"), "use processes"
        )
    patched: list[tuple[object, str, object]] = []
    try:
        _install(rng, patched)
    except BaseException:
        _leave(patched)
        raise
    return patched


def _install(rng: np.random.Generator, patched: list[tuple[object, str, object]]) -> None:
    """Install the generator; add what was where before."""
    # A seed alone is no draw.
    seed_words = np.random.Generator.integers(_seeds(rng), 2**SEED_BITS, size=2, dtype=np.uint64)
    first, second = map(int, seed_words)
    patched.append((_ENTROPY, "randbits", _ENTROPY.randbits))
    patched.append((np.random, "", _LEGACY.get_bit_generator()))
    if hasattr(rng, "recorder"):  # a trace takes a state that moves for a draw
        patched.append((None, "", partial(random.setstate, random.getstate())))
    _LEGACY.set_bit_generator(_BITS)
    _LEGACY.seed([first & 0xFFFFFFFF, first >> 32])
    random.seed(second)
    patched.extend((None, "", restore) for restore in seed_frameworks(first))
    _ENTROPY.randbits = lambda bits: int.from_bytes(rng.bytes(-(-bits // 8)), "little") >> (-bits % 8)
    patched += [(_RANDOM, "seed", _RANDOM.seed), (random, "seed", random.seed)]
    seed, seed_hidden = _seed_from(rng, _RANDOM.seed), random.seed  # which what watches seeds may have patched
    _RANDOM.seed = seed  # type: ignore[method-assign]
    random.seed = lambda a=None, version=2: seed(_HIDDEN) if a is None else seed_hidden(a, version)
    watched = hasattr(rng, "recorder")
    for module, name, function in _watched(rng) if watched else _faulty(rng):
        patched.append((module, name, getattr(module, name)))
        setattr(module, name, function)
    if watched:
        patched.append((None, "", partial(_tell_draws, rng, _states())))


def _seed_from(rng: Any, seeder: Callable[..., None]) -> Callable[..., None]:
    """Return how a generator of `random` is seeded: without a seed by `rng`, where the system's numbers would be."""

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None:
            a = int.from_bytes(np.random.Generator.bytes(rng, SEED_BITS // 4), "little")
            if hasattr(rng, "recorder"):
                rng.recorder.stray()
        seeder(self, a, version)

    return seed


def _seeds(rng: Any) -> np.random.Generator:
    """Return what seeds are drawn from: of a generator that is watched another one, whose state nobody watches."""
    generator: np.random.Generator = rng.recorder.seeds if hasattr(rng, "recorder") else rng
    return generator


def _states() -> tuple[object, ...]:
    """Return the states of the global generators."""
    legacy = _BITS.state["state"]
    return random.getstate(), legacy["pos"], legacy["key"].tobytes(), *framework_states()


def _tell_draws(rng: Any, before: tuple[object, ...]) -> None:
    """Tell of draws by functions that were imported before: they are not patched."""
    if _states() != before:
        rng.recorder.stray()


def _leave(patched: list[tuple[Any, str, Any]]) -> None:
    for module, name, value in reversed(patched):
        if module is None:
            value()
        elif name:
            setattr(module, name, value)
        else:
            _LEGACY.set_bit_generator(value)
    _LOCK.release()


def _faulty(rng: np.random.Generator) -> list[tuple[ModuleType, str, Callable[..., object]]]:
    """Return the functions that draw from a faulty generator; none for a sound one."""
    if not isinstance(rng, FaultyGenerator):
        return []
    make_generator = np.random.default_rng
    drawing = [(np.random, name, draw) for name, draw in legacy_draws(rng)]
    drawing += [(random, name, draw) for name, draw in python_draws(rng)]

    def default_rng(seed: Any = None) -> np.random.Generator:
        return rng.spawn(1)[0] if seed is None else make_generator(seed)

    return [*drawing, (np.random, "default_rng", default_rng)]


def _watched(rng: Any) -> list[tuple[ModuleType, str, Callable[..., object]]]:
    """Return the functions that a trace watches, on a generator that is watched: of noise, and of any other draw."""
    make_generator = np.random.default_rng

    def straying(draw: Callable[..., object]) -> Callable[..., object]:
        def strayed(*args: object, **kwargs: object) -> object:
            rng.recorder.stray()
            return draw(*args, **kwargs)

        return strayed

    drawing = [
        (module, name, straying(draw))
        for module in (np.random, random)
        for name, draw in vars(module).items()
        if type(getattr(draw, "__self__", None)) in (np.random.RandomState, random.Random) and name not in _NO_DRAWS
    ]

    def default_rng(seed: Any = None) -> np.random.Generator:
        if seed is not None:
            return make_generator(seed)
        own_seed = np.random.Generator.integers(_seeds(rng), 2**SEED_BITS, dtype=np.uint64)  # a seed alone is no draw
        generator: np.random.Generator = type(rng)(np.random.PCG64(int(own_seed)), rng.recorder)
        return generator

    return [
        *drawing,
        (np.random, "laplace", rng.laplace),
        (np.random, "normal", rng.normal),
        (np.random, "standard_normal", rng.standard_normal),
        (np.random, "randn", lambda *shape: rng.standard_normal(shape or None)),
        (np.random, "default_rng", default_rng),
        (random, "gauss", lambda mu=0.0, sigma=1.0: rng.normal(mu, sigma)),
        (random, "normalvariate", lambda mu=0.0, sigma=1.0: rng.normal(mu, sigma)),
    ]
