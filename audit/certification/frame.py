"""What every audit does: choose on a pilot, certify on fresh runs, decide. What it plays is each audit's own."""

from __future__ import annotations

import operator
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

from ...mechanisms.claim import Claim
from ..play.cluster import Cluster
from ..play.engines import in_parallel
from ..play.transcripts import BLOCK, blocks, together
from ..statistics.events import Certificate, Counts, Event, certify
from ..statistics.power import detectable_epsilon
from .verdict import Result, decide


class Memory(Protocol):
    """Finished certification blocks of one audit, kept across interruptions: a `ledger.Page`."""

    def recall(self, stage: str) -> dict[int, Counts]:
        """Return the finished blocks of a stage."""

    def keep(self, stage: str, block: int, counts: Counts) -> None:
        """Keep one finished block."""


@dataclass(frozen=True)
class Choice:
    """What the pilot fixed: everything that certification needs."""

    pair: Any  # Pair or DataPair
    attack: Any  # an `Attack`, or what scores the outputs of a mechanism
    event: Event
    index: int  # of the pair, a part of the key of its draws

    @property
    def key(self) -> str:
        """Everything that the counts of a certification block depend on, besides the audit's own facts."""
        event = self.event
        return (
            f"certify/{self.index}/{self.attack.name}/{event.method}/{event.lower!r}/{event.upper!r}/{event.share!r}"
        )


@dataclass(frozen=True, kw_only=True)
class Audit(ABC):
    """One audit's fixed facts; what it is an audit of adds how it chooses and how it plays a block."""

    claim: Claim
    runs: int
    seed: int
    alpha: float
    jobs: int = 1
    progress: bool = False
    memory: Memory | None = None
    cluster: Cluster | None = None  # computes the blocks of certification; all others are computed here
    engine: str = "numpy"  # or "numba": compiled kernels, on draws of their own

    @abstractmethod
    def choose(self, options: Sequence[Any]) -> tuple[Choice, int]:
        """Return the pair, attack and event to certify, and the runs that it took to choose them."""

    @abstractmethod
    def counter(self, choice: Choice) -> Callable[[tuple[int, int]], Counts]:
        """Return what counts the event in a block of fresh runs, (its number, its runs); it travels to processes."""

    @abstractmethod
    def of(self, target: Any) -> Self:
        """Return the same audit of another target."""

    def certification_blocks(self, choice: Choice, runs: int) -> list[Counts]:
        """Return the counts of the event in order: of blocks that the memory knows, and of fresh ones.

        Each count is the sum over `together(runs)` neighbouring blocks: one task, and one row of the memory.
        """
        known = self.memory.recall(choice.key) if self.memory is not None else {}
        units = range(-(-runs // (BLOCK * together(runs))))
        missing = [unit for unit in units if unit not in known]
        sums = in_parallel(
            partial(_sum_of_blocks, self.counter(choice), runs),
            missing,
            jobs=self.jobs,
            alike=True,
            progress="certify" if self.progress else None,
            cluster=self.cluster,
        )
        for unit, counts in zip(missing, sums, strict=True):
            known[unit] = counts
            if self.memory is not None:
                self.memory.keep(choice.key, unit, counts)
        return [known[unit] for unit in units]


def _sum_of_blocks(count: Callable[[tuple[int, int]], Counts], runs: int, unit: int) -> Counts:
    many = together(runs)
    return sum(map(count, blocks(runs, range(unit * many, (unit + 1) * many))), start=Counts())


@dataclass(frozen=True)
class Found:
    """What an audit has found, before the verdict."""

    choice: Choice
    pilot: int  # runs spent on choosing
    certificate: Certificate
    detectable: float  # the smallest epsilon that a perfect attack would have caught from all the runs
    ceiling: float | None = None  # the largest they could have certified, if not that of a fixed number of runs
    blocks: tuple[Counts, ...] = ()


def all_runs(audit: Audit, options: Sequence[Any]) -> Found:
    """Certify on all the runs that choosing leaves.

    Raises
    ------
    ValueError
        If it leaves none.
    """
    choice, pilot = audit.choose(options)
    if pilot >= audit.runs:
        many = f"choosing among {len(options)} pairs takes {pilot}"
        raise ValueError(f"runs must be more than {pilot}, got {audit.runs}: {many}; a pair of your own takes fewer")
    certified, limits = audit.runs - pilot, {"delta": audit.claim.delta, "alpha": audit.alpha}
    parts = tuple(audit.certification_blocks(choice, certified))
    certificate = certify(choice.event, sum(parts, start=Counts()), **limits)
    return Found(
        choice, pilot, certificate, detectable_epsilon(audit.claim.epsilon, audit.runs, **limits), blocks=parts
    )


def conclude(audit: Audit, found: Found, began: float) -> Result:
    """Return the verdict with everything that stands behind it; `began` is on the clock of `time.perf_counter`."""
    certified, bound = found.certificate.counts.runs, found.certificate.epsilon_lower
    return Result(
        verdict=decide(audit.claim, bound, certified, audit.alpha, ceiling=found.ceiling),
        claim=audit.claim,
        certificate=found.certificate,
        pair=found.choice.pair,
        event=found.choice.event,
        attack=found.choice.attack.name,
        runs=found.pilot + certified,
        pilot=found.pilot,
        detectable_epsilon=found.detectable,
        seed=audit.seed,
        seconds=time.perf_counter() - began,
        scorer=found.choice.attack,
        blocks=found.blocks,
        engine=audit.engine,
    )


def check_budget(runs: int, confidence: float) -> None:
    """Raise ValueError for a budget that no audit can have."""
    if not 0 < 1 - confidence < 1:  # as computed
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    try:
        operator.index(runs)
    except TypeError:
        raise ValueError(f"runs must be a whole number, got {runs!r}") from None
    if runs < 20:
        raise ValueError(f"runs must be at least 20, got {runs!r}")
