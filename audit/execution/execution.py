"""What an audit may spend, and how it is carried out: two frozen values that every layer passes on as they are."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ...errors import must_be, must_be_one_of
from ...learners.checks import check_whole
from ...mechanisms.parameters import is_finite

if TYPE_CHECKING:
    from ..statistics.events import Counts
    from .cluster import Cluster

#: When an audit ends: after all its runs, or as soon as the claim is falsified.
STOPS = ("budget", "early")


#: The largest number of runs, and seed.
LARGEST = 2**53 - 1


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless the confidence is in (0, 1), and 1 less it too, as computed."""
    finite = is_finite(confidence)
    if not finite or not 0 < 1 - confidence < 1:
        where = "farther from 0 and 1 than floating point" if finite and 0 < confidence < 1 else "in (0, 1)"
        raise must_be("confidence", where, confidence)


@dataclass(frozen=True)
class Budget:
    """What an audit may spend, and the error that it may make. The result depends on nothing else but the target.

    Parameters
    ----------
    runs : int
        All of them, both worlds, search and pilot included; below 2^53.
    seed : int
        Non-negative, below 2^53.
    confidence : float
        1 - alpha of the certificate, in (0, 1).
    stop : {"budget", "early"}
        After all the runs, or as soon as the claim is falsified.
    tests : int
        How many tests share that error evenly (Bonferroni).

    Raises
    ------
    ValueError
        For values outside their range.
    """

    runs: int = 100_000
    seed: int = 0
    confidence: float = 0.99
    stop: str = "budget"
    tests: int = 1

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        object.__setattr__(self, "confidence", float(self.confidence))
        for name, value in (("runs", self.runs), ("seed", self.seed)):
            try:
                object.__setattr__(self, name, operator.index(value))  # NumPy's integers overflow
            except TypeError:
                raise must_be(name, "a whole number", value) from None
            if not value <= LARGEST:  # a record's numbers are exact in every language
                raise must_be(name, "below 2^53", value)
        if self.seed < 0:
            raise must_be("seed", "at least 0", self.seed)
        if self.stop not in STOPS:
            raise must_be_one_of("stop", STOPS, self.stop)

    @property
    def alpha(self) -> float:
        """The error of one test."""
        return (1 - self.confidence) / self.tests

    def of_at_least(self, runs: int) -> Budget:
        """Return the budget; raise ValueError if it has fewer runs."""
        if self.runs < runs:
            raise must_be("runs", f"at least {runs}", self.runs)
        return self


def seed_beyond(seed: int, offset: int) -> int:
    """Return the seed of an audit inside another: so many further on, from 0 again beyond the largest."""
    return (seed + offset) % (LARGEST + 1)


#: What a stage comes to: JSON that reads back as it was.
Json = TypeVar("Json")


class Memory(Protocol):
    """Finished blocks and stages of one audit or measurement, kept across interruptions: a `ledger.Page`."""

    def recall(self, stage: str) -> dict[int, Counts]:
        """Return the finished blocks of a stage."""

    def keep(self, stage: str, block: int, counts: Counts) -> None:
        """Keep one finished block."""

    def recall_totals(self, stage: str) -> dict[int, list[float]]:
        """Return the finished blocks of a stage that kept numbers of its own."""

    def keep_totals(self, stage: str, block: int, totals: Sequence[float]) -> None:
        """Keep one finished block of such a stage."""

    def once(self, stage: str, compute: Callable[[], Json]) -> Json:
        """Return the JSON that a stage came to, as it was kept, or as it is computed now."""

    def recall_stage(self, stage: str) -> str | bytes | None:
        """Return the text or the bytes that were kept of a stage; None where nothing was."""

    def keep_stage(self, stage: str, value: bytes) -> None:
        """Keep the bytes that a stage came to."""


class PrefixedMemory:
    """A memory whose stages have names of their own, for an audit inside another: its methods take a stage first."""

    def __init__(self, memory: Memory, prefix: str) -> None:
        self._memory, self._prefix = memory, prefix

    def __getattr__(self, name: str) -> Any:
        if name not in vars(Memory):
            raise AttributeError(name)
        method = getattr(self._memory, name)
        return lambda stage, *values: method(f"{self._prefix}/{stage}", *values)


@dataclass(frozen=True)
class Execution:
    """How an audit is carried out. No verdict depends on it.

    Parameters
    ----------
    jobs : int
        Processes.
    progress : bool
        Whether to show a progress bar on stderr.
    memory : Memory, optional
        Finished blocks are taken from it, and new ones kept in it.
    cluster : Cluster, optional
        Computes the blocks of certification, instead of processes here.

    Raises
    ------
    ValueError
        For another number of processes, or what is no cluster or memory.
    """

    jobs: int = 1
    progress: bool = False
    memory: Memory | None = None
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", check_whole("jobs", self.jobs))
        if self.cluster is not None:
            from .cluster import Cluster  # it loads the workers' modules

            if not isinstance(self.cluster, Cluster):
                raise must_be("cluster", "a Cluster, as Cluster('tcp://HOST:PORT')", self.cluster)
        if self.memory is not None and not hasattr(self.memory, "recall"):
            raise must_be("memory", "a Memory", self.memory)

    def inside(self, prefix: str) -> Execution:
        """Return the same for an audit inside this one, whose stages have names of their own in the memory."""
        return self if self.memory is None else replace(self, memory=cast(Memory, PrefixedMemory(self.memory, prefix)))


#: One process, this one, which remembers nothing; and what an audit spends that does not say how much.
IN_PROCESS, BUDGET = Execution(), Budget()
