"""The comparison with a baseline: its events, counted again on the targets of the plan as they are now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...audit.record_types import ClaimRecord, RunRecord
from .console import own_process
from .running import unaudited

if TYPE_CHECKING:
    from ...audit.plans.plan import Plan
    from ...audit.plans.tasks import Task
    from ..baseline import Again

#: The task of a claim, its record, and its baseline's.
Comparison = tuple["Task", ClaimRecord, ClaimRecord]


def hold_against(record: RunRecord, base: RunRecord, file: Path | None, plan: Plan, *, jobs: int | None) -> None:
    """Put the comparison with a baseline into a record; learners that crash in it are errors of the record."""
    from ...audit.execution.provenance import named_from_here
    from ...audit.execution.workers import cores
    from ..baseline import compare

    with own_process():
        again = partial(count_again, plan, jobs=jobs or cores())
        compared = compare(record["claims"], base, alpha=record["alpha"], again=again)
    record["errors"] += compared.pop("errors")
    record["baseline"] = {"file": named_from_here(file or Path()), **compared}


def count_again(plan: Plan, pairs: Sequence[tuple[ClaimRecord, ClaimRecord]], *, jobs: int) -> list[Again]:
    """Return what came of counting the events of baselines again: (claim, its baseline) each."""
    from ...audit.execution.workers import DeadWorkerError, in_parallel

    tasks = {task.completed().command(): task for task in plan.tasks}  # as the record's replay says it
    items = [(tasks[new["replay"]], new, old) for new, old in pairs]
    few = len(items) < jobs
    count = partial(_count_again, jobs=jobs if few else 1)
    counted: list[Again] = []
    try:
        counted.extend(in_parallel(count, items, jobs=1 if few else jobs, progress="baseline"))
    except DeadWorkerError:  # nobody knows which of them it was
        counted += [_count_alone(count, item) for item in items[len(counted) :]]
    return counted


def _count_alone(count: Callable[[Comparison], Again], item: Comparison) -> Again:
    """Return what came of counting in a process of its own, which the target may end."""
    from ...audit.execution.workers import DeadWorkerError, alone
    from ..baseline import Again

    try:
        again: Again = alone(count, item)
    except DeadWorkerError as error:
        return Again(None, str(error), crashed=True)
    return again


def _count_again(item: Comparison, *, jobs: int) -> Again:
    """Return the counts of a baseline's event over as many fresh runs as it had, or as the new audit had if fewer."""
    from ...audit.evidence.frozen import Frozen
    from ...audit.play.data import DataPair
    from ...audit.play.pairs import Pair
    from ..baseline import Again
    from ..identity import game

    task, new, old = item
    if "frozen" not in old:
        return Again(None, "the baseline is of a version that kept no event: accept a new one")
    if old["frozen"].get("kind") == "none":
        return Again(None, str(old["frozen"].get("reason")))
    try:
        frozen = Frozen.from_json(old["frozen"])
        prepared = task.prepare()
        worlds = old["pair"]
        pair = DataPair.of_json(worlds) if prepared.is_mechanism or prepared.of_sequences else Pair.from_json(worlds)
        view, runs = prepared.claim.view, min(frozen.counts.runs, new["budget"])
        return Again(frozen.again(prepared.played, pair, view, key=game(old), runs=runs, jobs=jobs))
    except KeyError as error:
        return Again(None, f"the baseline's claim has no {error}", lost=True)
    except BaseException as error:
        failed = unaudited(task, error)
        crashed = failed["kind"] != "bad input"
        return Again(None, failed["message"], crashed=crashed, lost=not crashed)
