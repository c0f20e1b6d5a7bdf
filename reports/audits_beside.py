"""Audits beside one whose inputs were searched, on fresh seeds: its verdict stands whatever they find."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..audit.execution.execution import Execution, seed_beyond
from ..audit.play.data import DataPair
from ..audit.record_types import BeyondLimitsJson, ClaimRecord, OtherRelationJson
from ..audit.spaces.files import read_schema
from ..audit.spaces.schema import fits, widened
from ..audit.verdicts.verdict import Result, Verdict
from ..learners.protocol import LearnerError

if TYPE_CHECKING:
    from ..audit.plans.tasks import Prepared, Task

#: How far beyond the seed of the audit theirs is.
SEED_SHIFT = 3_000_000
#: The share of the runs that inputs beyond a schema's limits have, and the fewest of them.
SHARE, MIN_RUNS = 0.1, 1_000


def audits_beside(prepared: Prepared, result: Result, jobs: int) -> ClaimRecord:
    """Return what an audit of a mechanism says beside its verdict: the relation it keeps, the inputs that break it."""
    if not prepared.is_mechanism:
        return {}
    if result.verdict is Verdict.FALSIFIED:
        other = weaker_relation(prepared.task, result, jobs)
        return {} if other is None else {"survives": other}
    beyond = beyond_limits(prepared.task, jobs)
    return {} if beyond is None else {"beyond_limits": beyond}


def weaker_relation(task: Task, result: Result, jobs: int) -> OtherRelationJson | None:
    """Return what an audit of records added or removed finds, where replaced ones falsify it and these do not.

    Replacing a record is removing one and adding one: a pure epsilon that costs more than twice the claim breaks it
    under both relations.
    """
    measure = result.claim.measure
    name, colon, count = task.relation.partition(":")
    if name != "replace" or (not result.claim.delta and measure.is_epsilon and result.lower > 2 * measure.level):
        return None
    weaker = f"add-remove{colon}{count}"
    with suppress(ValueError):  # inputs of one size have no such neighbours
        audit = _audited(task, jobs, neighbours=weaker)
        if audit.verdict is Verdict.SURVIVED and audit.lower > 0:
            return {"neighbours": weaker, "lower": audit.lower, "runs": audit.runs}
    return None


def beyond_limits(task: Task, jobs: int) -> BeyondLimitsJson | None:
    """Return a violation on inputs beyond the limits of their schema's numbers, which the claim is not about."""
    schema = read_schema(task.input_schema)
    if (wider := widened(schema)) == schema:
        return None
    runs = min(task.budget.runs, max(MIN_RUNS, int(SHARE * task.budget.runs)))
    with suppress(ValueError, LearnerError):  # what refuses such inputs is as good as what clips them
        audit = _audited(task, jobs, runs=runs, input_schema=wider, power="off")
        pair = cast(DataPair, audit.pair)
        if audit.verdict is Verdict.FALSIFIED and not (fits(schema, pair.left) and fits(schema, pair.right)):
            return {"pair": pair.to_json(), "lower": audit.lower, "runs": audit.runs}
    return None


def _audited(task: Task, jobs: int, runs: int | None = None, **changes: Any) -> Result:
    """Return the result of a task with changes, on fresh seeds."""
    budget = replace(task.budget, seed=seed_beyond(task.budget.seed, SEED_SHIFT), runs=runs or task.budget.runs)
    return replace(task, **changes, budget=budget).prepare().audit(Execution(jobs))
