"""What every audit does: choose on a pilot, certify on fresh runs, decide. What it plays is each audit's own."""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeVar

from msgspec import to_builtins

from ...errors import about, hinted
from ...learners.blame import MissingExtra
from ...mechanisms.claim import Claim
from ..attacks.protocol import FittedAttack
from ..execution.execution import IN_PROCESS, Budget, Execution, Json
from ..execution.progress import stage
from ..execution.workers import in_parallel
from ..play.data import DataPair
from ..play.pairs import Pair
from ..play.transcripts import BLOCK, blocks, together
from ..statistics.bounds.power import detectable_epsilon
from ..statistics.certificates import ceiling, certify_claim
from ..statistics.chooser import Evidence, choose_event
from ..statistics.events import Certificate, Counts, Event
from ..verdicts.rare import Rare
from ..verdicts.verdict import OnPair, Result

Value = TypeVar("Value")
Block = TypeVar("Block")
#: The fewest runs of an audit.
FEWEST_RUNS = 20
#: Paired runs that are looked at first: most targets show a difference in fewer.
FIRST_PAIRED = 256
#: The most bytes of a block of runs that are kept for a resumed audit; a larger one is played again.
MOST_KEPT = 2**21


@dataclass(frozen=True)
class Choice(OnPair):
    """What the pilot fixed: everything that certification needs."""

    pair: Pair | DataPair
    attack: FittedAttack[Any]
    event: Event
    index: int  # of the pair, a part of the key of its draws
    in_words: str = ""  # the event, where it says no more than one statement about the outputs
    alike: bool = False  # whether all runs that it was chosen on show the same
    floats: bool = False  # whether what a mechanism returned then has floats that hardly ever repeat
    missing: tuple[MissingExtra, ...] = ()  # why the words are, if they are
    promised: float = -math.inf  # the bound that the pilot expects, as far as it says

    @property
    def key(self) -> str:
        """Everything that the counts of a certification block depend on, besides the audit's own facts."""
        event = self.event
        key = f"certify/{self.index}/{self.attack.name}/{event.method}/{event.lower!r}/{event.upper!r}/{event.share!r}"
        return key if event.function is None else f"{key}/{json.dumps(to_builtins(event.function))}"


@dataclass(frozen=True, kw_only=True)
class Audit(ABC):
    """One audit's fixed facts; what it is an audit of adds how it chooses and how it plays a block."""

    claim: Claim
    budget: Budget
    execution: Execution = IN_PROCESS

    @abstractmethod
    def choose(self, options: Sequence[Any]) -> tuple[Choice, int]:
        """Return the pair, attack and event to certify, and the runs that it took to choose them."""

    @abstractmethod
    def counter(self, choice: Choice) -> Callable[[tuple[int, int]], Counts]:
        """Return what counts the event in a block of fresh runs, (its number, its runs); it travels to processes."""

    def outputs_differ(self, choice: Choice, block: int, runs: int) -> bool | None:
        """Return whether any of `runs` paired runs shows another output for the other input.

        Paired runs have the same random numbers and different inputs; None where no runs can be paired.
        """
        return None

    @property
    def target(self) -> Any:
        """What is audited, where faults can be planted in it."""
        return None

    def shown_of_left(self, pair: Any, runs: int) -> object:
        """Return what some runs show of the left input, as what is equal where they are; None where none can."""
        return None

    @abstractmethod
    def of(self, target: Any) -> Self:
        """Return the same audit of another target."""

    @abstractmethod
    def anytime(self) -> Any:
        """Return the early audit (`anytime.Anytime`) with the same facts."""

    def check(self, options: Sequence[Any]) -> object:
        """Raise LearnerError if runs depend on each other; return what `recheck` compares with."""
        return None

    def recheck(self, options: Sequence[Any], choice: Choice, before: object) -> None:
        """Raise LearnerError if runs have come to depend on each other by the end of the audit."""
        return

    def promised(self, evidence: Evidence) -> tuple[Event, float]:
        """Return the event that promises most of the claim in its own measure, and what it promises."""
        return choose_event(evidence, self.claim.measure, alpha=self.budget.alpha, runs=self.budget.runs)

    def naming_the_cure(self) -> AbstractContextManager[None]:
        """Say in what the target raises how it can be audited all the same, where it can be."""
        return nullcontext()

    def exact(self, result: Result) -> float | None:
        """Return the exact level of what is claimed on the pair; None where no law tells it."""
        return None

    def told(self, result: Result) -> Result:
        """Return the result in the terms of the target."""
        return result

    def once(self, stage: str, compute: Callable[[], Json]) -> Json:
        """Return the JSON that a stage comes to, as the memory has it or computed now."""
        memory = self.execution.memory
        return compute() if memory is None else memory.once(stage, compute)

    def kept_blocks(
        self,
        stage: str,
        blocks: Sequence[Block],
        play: Callable[[Sequence[Block]], Iterable[Value]],
        read: Callable[[bytes], Value | None],
        write: Callable[[Value], bytes | None],
        quick: float = 0.0,
    ) -> list[Value]:
        """Return what blocks of runs showed: those that the memory knows, and the others played now and kept there.

        Parameters
        ----------
        stage : str
            Everything that the blocks depend on besides their numbers and sizes.
        read, write : callable
            From bytes, and to them: None for what cannot be kept, or is damaged; then it is played again.
        quick : float
            Seconds: a block that is played in fewer is not kept but played again, which costs less.
        """
        memory = self.execution.memory
        if memory is None:
            return list(play(blocks))
        values: dict[Block, Value] = {}
        for block in blocks:
            data = memory.recall_stage(f"{stage}/{block}")
            value = read(data) if isinstance(data, bytes) else None
            if value is not None:
                values[block] = value
        missing = [block for block in blocks if block not in values]
        start = time.perf_counter()
        for block, played in zip(missing, play(missing), strict=True):
            values[block] = played
            if time.perf_counter() - start >= quick:
                data = write(played)
                if data is not None and len(data) <= MOST_KEPT:
                    memory.keep_stage(f"{stage}/{block}", data)
            start = time.perf_counter()
        return [values[block] for block in blocks]

    def certification_blocks(self, choice: Choice, runs: int) -> list[Counts]:
        """Return the counts of the event in order: of blocks that the memory knows, and of fresh ones.

        Each count is the sum over `together(runs)` neighbouring blocks: one task, and one row of the memory.
        """
        memory = self.execution.memory
        recalled = memory.recall(choice.key) if memory is not None else {}
        units = range(-(-runs // (BLOCK * together(runs))))
        missing = [unit for unit in units if unit not in recalled]
        sums = in_parallel(
            partial(_sum_of_blocks, self.counter(choice), runs),
            missing,
            jobs=self.execution.jobs,
            equal_costs=True,
            progress=f"counting {runs:,} runs" if self.execution.progress else None,
            cluster=self.execution.cluster,
        )
        for unit, counts in zip(missing, sums, strict=True):
            recalled[unit] = counts
            if memory is not None:
                memory.keep(choice.key, unit, counts)
        return [recalled[unit] for unit in units]


def _sum_of_blocks(count: Callable[[tuple[int, int]], Counts], runs: int, unit: int) -> Counts:
    n_together = together(runs)
    return sum(map(count, blocks(runs, range(unit * n_together, (unit + 1) * n_together))), start=Counts())


@dataclass(frozen=True)
class Certified:
    """What an audit has certified, before the verdict."""

    choice: Choice
    pilot: int  # runs spent on choosing
    certificate: Certificate
    detectable: float  # the smallest epsilon that a perfect attack would have caught from all the runs, nan if unknown
    ceiling: float | None = None  # none above it could be certified, if not epsilon in a fixed number of runs
    blocks: tuple[Counts, ...] = ()
    rare: Rare | None = None  # a lead of stretched noise that stands


def too_few_runs(runs: int, choosing: int, n_counted: int, pairs: int) -> ValueError:
    """Return the error that choosing among pairs of inputs leaves fewer runs than have to be counted."""
    purpose = f"choosing among {pairs} pairs of inputs takes" if pairs > 1 else "choosing the event takes"
    error = about("runs", ValueError(f"runs = {runs} is too small: {purpose} {choosing:,} runs"))
    fewer = ", or give the inputs with `pair`, or `left` and `right`" if pairs > 1 else ""
    return hinted(error, f"use `runs={choosing + n_counted}` or more{fewer}")


#: Looks for leads of rare differences in the pilot: from a choice and the runs that are counted to what to certify.
LookForRare = Callable[[Choice, int], tuple[Choice, Rare | None]]


def all_runs(audit: Audit, options: Sequence[object], look: LookForRare | None = None) -> Certified:
    """Certify on all the runs that choosing leaves.

    Parameters
    ----------
    look : callable, optional
        Looks for rare differences, where what was chosen promises no falsification.

    Raises
    ------
    ValueError
        If it leaves none.
    """
    with stage("choosing inputs and event" if audit.execution.progress else None):
        choice, pilot = audit.choose(options)
    runs = audit.budget.runs
    if pilot >= runs:
        raise too_few_runs(runs, pilot, 1, len(options))
    measure, alpha, rare = audit.claim.measure, audit.budget.alpha, None
    if look is not None and not choice.promised > measure.level:
        choice, rare = look(choice, runs - pilot)
    parts = tuple(audit.certification_blocks(choice, runs - pilot))
    certificate = certify_claim(measure, choice.event, sum(parts, start=Counts()), alpha=alpha)
    if look is not None and choice.promised > measure.level >= certificate.lower:  # the pilot promised too much
        rare = look(choice, 0)[1]
    if measure.is_epsilon:
        detectable = detectable_epsilon(audit.claim.epsilon, runs, delta=audit.claim.delta, alpha=alpha)
        return Certified(choice, pilot, certificate, detectable, blocks=parts, rare=rare)
    max_bound = ceiling(measure, runs - pilot, alpha=alpha)
    return Certified(choice, pilot, certificate, math.nan, max_bound, parts, rare)


def with_paired_runs(audit: Audit, result: Result, choice: Choice) -> Result:
    """Return the result with its paired runs, where all of them gave the same output and the verdict rests on that.

    There are as many as one block holds, and as many as were counted where these certify anything: what is rarer than
    one in a block may have shown in them.
    """
    spot = result.blind_spot
    tested = spot is not None and (spot.kind is None or not spot.untested)
    if result.final or result.exceeded or result.bounded or result.rare is not None or tested:
        return result
    n_counted = result.certificate.counts.runs
    rest = n_counted if result.lower > 0 else min(n_counted, BLOCK)
    sizes = [min(FIRST_PAIRED, rest), *(size for _, size in blocks(rest - min(FIRST_PAIRED, rest)))]
    for block, size in enumerate(sizes):
        if audit.outputs_differ(choice, block, size) is not False:
            return result
    return replace(result, paired=sum(sizes))


def conclude(audit: Audit, outcome: Certified, start: float) -> Result:
    """Return the verdict with everything that stands behind it; `start` is on the clock of `time.perf_counter`."""
    certified = outcome.certificate.counts.runs
    return Result(
        claim=audit.claim,
        certificate=outcome.certificate,
        pair=outcome.choice.pair,
        event=outcome.choice.event,
        attack=outcome.choice.attack.name,
        runs=outcome.pilot + certified,
        pilot=outcome.pilot,
        detectable_epsilon=outcome.detectable,
        seed=audit.budget.seed,
        seconds=time.perf_counter() - start,
        scorer=outcome.choice.attack,
        blocks=outcome.blocks,
        event_in_words=outcome.choice.in_words,
        alike=outcome.choice.alike,
        floats=outcome.choice.floats,
        missing=outcome.choice.missing,
        ceiling=outcome.ceiling,
        rare=outcome.rare,
    )
