"""Randomness by name: every stream is a pure function of its key, so results do not depend on who computes them."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import must_be

Floats = NDArray[np.float64]
Outcome = TypeVar("Outcome")
#: What is added to the part of a key for a second call on the same draws: no part is so large.
_CONTINUED = 2**31


class Stage(IntEnum):
    """What a stream is drawn for. Certification never shares a stream with anything that chose its event."""

    SEARCH = 0
    TRAIN = 1
    PILOT = 2
    CERTIFY = 3
    REGRET = 4
    CONFORMANCE = 5
    EVIDENCE = 6
    FROZEN = 7
    COMPARISON = 8
    TRACE = 9
    PAIRED = 10


class Purpose(IntEnum):
    """Separate streams inside one block, so that a label never shifts the learner's noise."""

    LABEL = 0
    LEARNER = 1
    ADVERSARY = 3


class Law(Protocol):
    """What noise is drawn from."""

    def sample(self, shape: tuple[int, ...], draws: Draws) -> Any:
        """Return independent draws of the given shape."""


class _Sequence(np.random.SeedSequence):
    """A seed sequence whose `entropy`, by which a user's code may seed another generator, is of one stream alone.

    That of NumPy's is the seed of the audit, the same for all its runs, which then shared their noise. So did the
    calls of a mechanism, which draw from one generator: each begins with `begin_call`, and has an entropy of its own.
    """

    calls = 0

    @property
    def entropy(self) -> int:  # type: ignore[override]
        """128 bits of the sequence's own."""
        return int.from_bytes(self.generate_state(4).tobytes(), "little")

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        """Return the words that seed a generator: the sequence's own before the first call, then the call's."""
        state = super().generate_state(n_words, dtype)
        if not self.calls:
            return state
        state_words = super().generate_state(4).tolist()
        return np.random.SeedSequence([*state_words, self.calls]).generate_state(n_words, dtype)


def begin_call(generator: object) -> None:
    """Give the seed sequence of a generator of ours an entropy of its own for the call that begins."""
    if not isinstance(generator, np.random.Generator):
        return
    bits = np.random.Generator.bit_generator.__get__(generator)  # of one that is watched too: this is no draw
    if isinstance(sequence := getattr(bits, "seed_seq", None), _Sequence):
        sequence.calls += 1


class Draws:
    """The only source of randomness of a block of runs.

    Parameters
    ----------
    seed : int
        The audit's seed, non-negative.
    stage, pair, part, block : int
        The rest of the key. `part` tells draws of one stage and pair apart: a search from its trials, the horizons of
        a regret, the runs that a frozen event looks at and those that it is counted on. The same key
        always yields the same numbers, whatever was drawn before it.

    Notes
    -----
    Continuous noise is made from `uniform` by inverse distribution functions wherever the law allows it, so that
    a twin can be fed the same numbers.
    """

    def __init__(self, seed: int, stage: int = 0, pair: int = 0, part: int = 0, block: int = 0) -> None:
        if seed < 0:
            raise must_be("seed", "a non-negative integer", seed)
        self.key = (int(seed), int(stage), int(pair), int(part), int(block))

    def continued(self) -> Draws:
        """Return draws whose generator is this one's, and goes on where it is, while all their other streams are new.

        Two calls that each ask for a stream by its name, or make one of the key, then share no numbers.
        """
        seed, stage, pair, part, block = self.key
        draws = Draws(seed, stage, pair, part + _CONTINUED, block)
        draws.generator = self.generator
        return draws

    def stream(self, purpose: Purpose) -> np.random.Generator:
        """Return a fresh generator at the start of the stream for `purpose`."""
        seed, *spawn = self.key
        # Built directly: SeedSequence.spawn is stateful and would depend on the order of the calls.
        sequence = _Sequence(seed, spawn_key=(*spawn, int(purpose)))
        return np.random.Generator(np.random.SFC64(sequence))

    @cached_property
    def generator(self) -> np.random.Generator:
        """The learner's generator. Use it directly only for laws that have no short inverse."""
        return self.stream(Purpose.LEARNER)

    def labels(self, runs: int, share: float = 0.5) -> NDArray[np.bool_]:
        """Return an independent world label for each run: (runs,), True for the left world.

        Parameters
        ----------
        share : float
            The probability of the left world; fair by default.
        """
        return self.stream(Purpose.LABEL).random(runs) < share

    def uniform(self, shape: int | tuple[int, ...]) -> Floats:
        """Return uniforms on [0, 1), multiples of 2**-53."""
        return self.generator.random(shape)

    def normal(self, shape: int | tuple[int, ...]) -> Floats:
        """Return standard normal draws."""
        return self.generator.standard_normal(shape)

    def noise(self, law: Law, shape: tuple[int, ...], value: object, name: str = "") -> Any:
        """Return noise of a law, which the caller adds to `value`: a noisy call.

        Everything that a proof composes asks for its noise here, so that a trace (`overclaim.audit.traces`) can watch.

        Parameters
        ----------
        law : Law
        shape : tuple of int
            Of the noise: (runs,) or (dim, runs).
        value : array, or a function that returns it
            What the noise is for. Only a trace looks at it, and only then is a function called.
        name : str
            Of the call, for a trace.
        """
        return law.sample(shape, self)

    def outcome(self, law: Callable[[], object], sample: Callable[[Draws], Outcome], name: str = "") -> Outcome:
        """Return an outcome of a law on finitely many values: a noisy call that adds nothing.

        Parameters
        ----------
        law : function
            Returns the probabilities, (outcomes,) or (outcomes, dim) of independent coordinates; for a trace alone.
        sample : function of draws
            Draws the outcome.
        name : str
            Of the call, for a trace.
        """
        return sample(self)

    def run_generator(self, run: int) -> np.random.Generator:
        """Return the generator of one run of a plain class: a stream of its own."""
        seed, *spawn = self.key
        sequence = _Sequence(seed, spawn_key=(*spawn, int(Purpose.LEARNER), run))
        return np.random.Generator(np.random.SFC64(sequence))
