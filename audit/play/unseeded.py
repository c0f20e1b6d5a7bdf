"""Mechanisms with randomness of their own, such as that of the operating system: no seed replays them."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from ...learners.blame import name_of
from ...mechanisms.constant_seeds import drawn_reseeded
from ...mechanisms.global_random import FRESH_SEEDS, drawn_from
from ..encoding.places import as_text
from ..statistics.events import Counts
from .mechanism_runs import Sample


class CalledOneByOne:
    """A mechanism that is called run by run, with its data alone or with a generator too."""

    batched = False
    #: The option that asks for it.
    option: ClassVar[str]

    def __init__(self, mechanism: Callable[..., object]) -> None:
        if getattr(mechanism, "batched", False):
            raise ValueError(f"{self.option} is for mechanisms that are called run by run, not for batched ones")
        self.mechanism, self.alone = mechanism, _takes_data_alone(mechanism)
        self.__name__ = name_of(mechanism)


class OnGlobals(CalledOneByOne):
    """A mechanism that draws from `np.random`, `random` or unseeded generators, on the generator of each call.

    It is `mechanism(data)`, or `mechanism(data, rng)` as any other. Its own seeds are fresh in each run if `seeding`
    says so.
    """

    option = "global_random"

    def __init__(self, mechanism: Callable[..., object], seeding: bool | str = True) -> None:
        super().__init__(mechanism)
        self.seeding = seeding

    def __call__(self, data: object, rng: np.random.Generator) -> object:
        """Answer once."""
        arguments = [data] if self.alone else [data, rng]
        if self.seeding == FRESH_SEEDS:
            return drawn_reseeded(self.mechanism, rng, self.mechanism, *arguments)
        return drawn_from(rng, self.mechanism, *arguments)


class Unseeded(CalledOneByOne):
    """A mechanism whose randomness cannot be seeded: `mechanism(data)`, or `mechanism(data, rng)` as any other.

    It is played in one process: in others a generator of its own would begin anew, and draw the same in each.
    """

    option = "os_random"

    def __reduce__(self) -> NoReturn:
        raise TypeError("what draws from a generator of its own is played in one process")

    def __call__(self, data: object, rng: object) -> object:
        """Answer once."""
        return self.mechanism(data) if self.alone else self.mechanism(data, rng)


def _takes_data_alone(mechanism: Callable[..., object]) -> bool:
    """Tell whether one argument will do: what has a default, as in `lambda data, m=m: m(data)`, is no generator."""
    try:
        parameters = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):  # of a C extension: it is not told
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return all(p.default is not p.empty for p in places[1:]) and all(
        p.kind is not p.VAR_POSITIONAL for p in parameters
    )


@dataclass(frozen=True)
class Digested(Counts):
    """Counts with a digest of the outputs that were counted."""

    digest: str = ""

    @classmethod
    def of(cls, counts: Counts, sample: Sample) -> Digested:
        """Return the counts of a block with the digest of its outputs."""
        outputs = sample.outputs
        data = outputs.tobytes() if isinstance(outputs, np.ndarray) else as_text(outputs).encode()
        return cls(**vars(counts), digest=hashlib.sha256(data).hexdigest())

    def __add__(self, other: Counts) -> Counts:
        """Add, the digests in the order of the blocks."""
        return self._with(super().__add__(other), self.digest, getattr(other, "digest", ""))

    def __radd__(self, other: Counts) -> Counts:
        """Add to plain counts."""
        return self._with(super().__add__(other), getattr(other, "digest", ""), self.digest)

    @staticmethod
    def _with(counts: Counts, *digests: str) -> Counts:
        parts = [digest for digest in digests if digest]
        text = parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()
        return Digested(**{name: vars(counts)[name] for name in Counts.__dataclass_fields__}, digest=text)


def digest_of(blocks: Sequence[Counts]) -> str | None:
    """Return the digest of all blocks; None where their outputs were not digested, or not in this process."""
    digests = [getattr(block, "digest", "") for block in blocks]
    return hashlib.sha256("".join(digests).encode()).hexdigest() if digests and all(digests) else None
