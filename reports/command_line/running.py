"""A run: the claims of a plan, audited side by side, and the record that they make."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from ...audit.record_types import ClaimRecord, LedgerOfTests, RegretJson, RunRecord, Said
from ...errors import hinted
from ..sanitise import json_text, visible_line
from ..status import INTERNAL, KINDS
from .console import failure_of, own_process, say
from .outcomes import finished

if TYPE_CHECKING:
    from ...audit.execution.cluster import Cluster
    from ...audit.execution.execution import Execution
    from ...audit.plans.ledger import Ledger, Page
    from ...audit.plans.plan import Plan
    from ...audit.plans.regret_tasks import RegretTask
    from ...audit.plans.tasks import Task


def audited(
    plan: Plan, out: Path, resume: bool, restart: bool, jobs: int | None, cluster: Cluster | None
) -> tuple[Ledger, RunRecord]:
    """Return the ledger of a plan's run and its record; say what an earlier run has left of both."""
    from ...audit.execution.cluster import ClusterError
    from ...audit.execution.execution import Execution
    from ...audit.execution.workers import cores
    from ...audit.plans.ledger import Ledger

    if restart and (removed := Ledger.discard(out)):
        say(removed, err=True)
    ledger = Ledger.begin(out, plan, resume=resume)
    execution = Execution(jobs or cores(), cluster=cluster)
    try:
        with resumable(ledger), own_process(), ledger.held():
            record = run_plan(plan, execution, command=command_line(), ledger=ledger, isolate=True)
    except ClusterError as error:
        raise hinted(error, _kept(ledger)) from None
    if ledger.kept is not None:
        for line in kept_lines(ledger, plan):
            say(line, err=True)
    return ledger, record


def kept_lines(ledger: Ledger, plan: Plan) -> list[str]:
    """Return how many finished claims a resumed run keeps, and which it audits again."""
    from ...audit.execution.provenance import named_from_here

    lines = [f"kept {ledger.kept} finished claim{'' if ledger.kept == 1 else 's'}"]
    names = [*(task.target for task in plan.tasks), *(f"regret of {task.target}" for task in plan.regret), "self-test"]
    edits = [f"audited again: {names[i]}: {named_from_here(Path(path))} has changed" for i, path in ledger.edited]
    return lines + edits


def command_line() -> str:
    """Return the command of this run: a resumed run is the same run, and so is one that others compute.

    Of a path that begins at the machine's root it has the part from here, or the last one.
    """
    parts, arguments = [], iter(sys.argv[1:])
    for word in arguments:
        name, _, value = word.partition("=")
        if name in ("--engine", "--scheduler"):
            value or next(arguments, None)
        elif name not in ("--resume", "--restart"):
            parts.append(_from_here(word))
    return shlex.join(["overclaim", *parts])


def _from_here(word: str) -> str:
    from ...audit.execution.provenance import named_from_here, target_from_here

    name, sign, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
    if not Path(value).is_absolute():
        return word
    target = target_from_here(value)
    return f"{name}{sign}{named_from_here(Path(value)) if target == value else target}"


@contextmanager
def resumable(ledger: Ledger) -> Iterator[None]:
    """Say how an interrupted run goes on."""
    try:
        yield
    except KeyboardInterrupt:
        say(_kept(ledger), err=True)
        raise


def _kept(ledger: Ledger) -> str:
    return f"what was finished is kept in {ledger.path}: the same command with --resume goes on"


def run_plan(
    plan: Plan,
    execution: Execution,
    *,
    command: str,
    ledger: Ledger | None = None,
    isolate: bool = False,
) -> RunRecord:
    """Audit the claims of a plan and return the record: claims side by side, one process each.

    Fewer claims than processes are audited one after another, each on all of them. On a cluster the processes here
    choose the events, and its workers play the blocks of certification. With `isolate`, no claim about a user's target
    is audited in this process, which it may end.
    """
    from ...audit.execution.file_reads import collected
    from ...audit.plans.audited_files import audited_files, with_files

    identity = audited_files(plan)
    with collected() as reads:
        record = _record_of(plan, execution, command, ledger, isolate)
    files = {path: digest for hashes in (ledger.files() if ledger else {}).values() for path, digest in hashes.items()}
    outputs = {path for path, digest in reads.hashes.items() if digest is None}
    files = {path: digest for path, digest in {**files, **reads.compared()}.items() if path not in outputs}
    record["audited"] = with_files(identity, files)
    return record


def _record_of(plan: Plan, execution: Execution, command: str, ledger: Ledger | None, isolate: bool) -> RunRecord:
    """Return the record of a plan, but for the files that were audited."""
    from ...audit.plans.regret_tasks import not_measured
    from ..false_regret_statements import false_utility_claims
    from ..record import run_record

    outcomes = finished(ledger, plan) if ledger is not None else {}
    measured = {
        i: outcomes.pop(i) for i in range(len(plan.tasks), len(plan.tasks) + len(plan.regret)) if i in outcomes
    }
    missing = [i for i in range(len(plan.tasks)) if i not in outcomes]
    items = [(plan.tasks[i], i, ledger) for i in missing]
    outcomes |= zip(missing, _outcomes(items, execution, isolate=isolate), strict=True)
    ordered = [outcomes[i] for i in range(len(plan.tasks))]
    claims = _placed([claim for claim, _ in ordered], plan)
    level = {"confidence": plan.confidence} if plan.report_alpha is None else {"alpha": plan.report_alpha}
    for claim in claims:
        claim["question"] |= level
    errors = [error for _, error in ordered if error is not None]
    tests = decide_together(claims, plan)
    record = run_record(claims, seed=plan.seed, alpha=plan.report_alpha or plan.alpha, command=command, errors=errors)
    record["ledger_of_tests"] = tests
    record["protects"] = plan.protects
    record["skipped"] = [{"name": name, "reason": reason} for name, reason in plan.skipped]
    if plan.regret:
        rows = _measured(plan, measured, jobs=execution.jobs, ledger=ledger)
        record["regret"] = [row for row in rows if not isinstance(row, Unmeasured)]
        record["errors"] += [row.error for row in rows if isinstance(row, Unmeasured)]
    if plan.published:
        record["regret_not_measured"] = not_measured()
        record["utility"] = [claim.to_json() for claim in false_utility_claims()]
        _test_itself(record, plan, execution, ledger)
    return record


def _placed(claims: Sequence[ClaimRecord | None], plan: Plan) -> list[ClaimRecord]:
    """Return the claims that were audited, each with its place in the plan, where that tells."""
    placed = zip_longest(claims, plan.places[: len(claims)])
    return [claim | ({"claimed_in": place} if place else {}) for claim, place in placed if claim is not None]


def _test_itself(record: RunRecord, plan: Plan, execution: Execution, ledger: Ledger | None) -> None:
    """Put into a record which bugs the self-test caught; what it could not plant is an error."""
    from ...audit.plans.selftest import selftest
    from ...learners.blame import extra_or_reason

    page = ledger.page(len(plan.tasks) + len(plan.regret)) if ledger is not None else None
    looked = partial(selftest, replace(execution, memory=page, progress=True), sound=False)
    findings, unlooked = extra_or_reason("self-test", looked)
    if page is not None:
        page.close()
    record["selftest"] = [{"name": f"{f.subject}: {f.bug}", "caught": f.good} for f in findings or ()]
    for extra in unlooked:
        record["errors"].append(
            {"name": extra.what, "kind": KINDS[INTERNAL], "message": extra.reason, "replay": "overclaim selftest"}
        )


def decide_together(claims: list[ClaimRecord], plan: Plan) -> LedgerOfTests:
    """Return every test that shared the report's alpha; with an alpha for the report, Holm's procedure decides.

    A claim that Holm's procedure rejects is FALSIFIED, even where its own bound, at alpha / m, stays below the claim;
    its record then says at what level.
    """
    from ...audit.statistics.multiplicity import Decision, holm

    m, alpha = len(plan.tasks), plan.report_alpha
    p_values = [cast(float, claim["p_value"]) for claim in claims]
    if alpha is None:
        tests = [
            Decision(p, plan.alpha, p, claim["verdict"] == "FALSIFIED")
            for p, claim in zip(p_values, claims, strict=True)
        ]
    else:
        tests = holm(p_values, alpha, planned=m)
        for claim, test in zip(claims, tests, strict=True):
            if test.rejected and claim["verdict"] != "FALSIFIED":
                claim |= {"verdict": "FALSIFIED", "reason": None, "untested": False}
                claim["holm"] = {"p_value": test.p_value, "level": test.level}
    return {
        "method": "each for itself" if alpha is None else "Holm",
        "planned": m,
        "family_wise_error": round(min(1.0, m * plan.alpha), 12) if alpha is None else alpha,
        "tests": [
            {"claim": claim["name"], "epsilon": claim["claimed"]["epsilon"], **asdict(test)}
            for claim, test in zip(claims, tests, strict=True)
        ],
    }


#: The claim's record, or what went wrong.
Outcome = tuple[ClaimRecord | None, Said | None]
Item = tuple["Task", int, "Ledger | None"]


def _outcomes(items: Sequence[Item], execution: Execution, *, isolate: bool) -> Iterator[Outcome]:
    """Yield the outcomes of claims in order. Whatever one of them does, even to its process, the others finish."""
    from ...audit.execution.workers import as_completed
    from ...learners.protocol import LearnerError

    jobs = execution.jobs
    on_all = len(items) < jobs or jobs == 1
    audit = partial(_audit_task, replace(execution, progress=True) if on_all else replace(execution, jobs=1))
    job: Callable[[Item], Outcome] = partial(_audit_apart, audit, only_users=True) if on_all and isolate else audit
    costs = [task.cost for task, _, _ in items]
    outcomes: dict[int, Outcome] = {}
    with suppress(LearnerError):  # a worker died, and nobody knows of which claim
        names = [visible_line(task.target) for task, _, _ in items]
        line = partial(finished_words, width=max(map(len, names), default=0))
        outcomes.update(as_completed(job, items, costs, jobs=1 if on_all else jobs, names=names, line=line))
    for i, item in enumerate(items):
        yield outcomes[i] if i in outcomes else _audit_apart(audit, item)


def finished_words(outcome: Outcome, width: int = 0) -> str:
    """Return one line of a claim that is finished, its name in so many columns."""
    from ..formats.run_lines import finished_line

    claim, error = outcome
    if claim is not None:
        return finished_line(claim, width)
    assert error is not None
    where = f" ({error['where']})" if error.get("where") else ""
    message = visible_line(error["message"] + where)
    return f"{error['kind'].upper():<12}  {visible_line(error['name']):<{width}}  {message}"


def _audit_apart(audit: Callable[[Item], Outcome], item: Item, *, only_users: bool = False) -> Outcome:
    """Return the outcome of one claim, audited in a process that it may end."""
    from ...audit.execution.progress import LINE, inside
    from ...audit.execution.workers import alone
    from ...learners.protocol import LearnerError

    task, index, ledger = item
    if only_users and ":" not in task.target:
        return audit(item)
    if ledger is not None and index in (outcomes := ledger.outcomes()):
        return tuple(outcomes[index])
    try:
        return alone(partial(inside, tuple(LINE.stages), audit), item)
    except LearnerError as error:  # not kept: nobody knows what it read
        return None, unaudited(task, error)


def _audit_task(execution: Execution, item: Item) -> Outcome:
    """Return the outcome of one claim, kept in the ledger with the files that it read."""
    from ...audit.execution.file_reads import collected
    from ...audit.execution.provenance import named_from_here

    task, index, ledger = item
    with collected() as reads:
        outcome = _outcome(execution, task, None if ledger is None else ledger.page(index))
        if edited := reads.changed():
            error = ValueError(f"{named_from_here(Path(edited[0]))!r} changed while it was audited")
            outcome = None, unaudited(task, hinted(error, "audit it again"))
        if ledger is not None:
            ledger.keep_outcome(index, outcome)
    return outcome


def _outcome(execution: Execution, task: Task, page: Page | None) -> Outcome:
    """Return the outcome of one claim: one bad learner must not lose the others' results."""
    from ...audit.plans.shrink import shrink_task
    from ..extras import with_shrunk
    from ..record import claim_record

    execution = replace(execution, memory=page)
    outcome: Outcome
    try:
        prepared = task.prepare()
        result = prepared.audit(execution, shrink=task.expected != "falsified" or prepared.relation is not None)
        make_record = partial(claim_record, prepared, result, with_evidence=True, with_trace=True, jobs=execution.jobs)
        record = make_record() if page is None else page.once("record", make_record)
        outcome = with_shrunk(record, partial(shrink_task, task, result, execution)), None
        json_text(outcome)  # what cannot be written would lose the others' records too
    except BaseException as error:
        outcome = None, unaudited(task, error)
    finally:
        if page is not None:
            page.close()
    return outcome


def unaudited(task: Task | RegretTask, error: BaseException) -> Said:
    """Return what to say of a claim that could not be audited; what ends the whole run is raised again."""
    from ...audit.execution.cluster import ClusterError
    from ...audit.plans.lock import LedgerError
    from ...learners.blame import interruption, raised_by_target

    if isinstance(error, LedgerError | ClusterError):
        raise error
    if isinstance(error, KeyboardInterrupt):
        if not raised_by_target(error):
            raise error
        error = interruption(error)
    failure = failure_of(error, of_plan=True)
    kind = KINDS.get(failure.exit_code, "bad input")
    entry: Said = {"name": task.target, "kind": kind, "message": failure.message, "replay": task.command()}
    notes = {"where": getattr(failure, "where", ""), "hint": getattr(failure, "hint", "")}
    return entry | {name: text for name, text in notes.items() if text}  # type: ignore[return-value]


class Unmeasured(NamedTuple):
    """A measurement of regret that could not be made, and why."""

    error: Said


def _measured(
    plan: Plan, outcomes: dict[int, RegretJson], *, jobs: int, ledger: Ledger | None
) -> list[RegretJson | Unmeasured]:
    """Return the measurements of regret; in the ledger they come after the claims."""
    from ...audit.execution.workers import in_parallel

    items = [(task, i, ledger) for i, task in enumerate(plan.regret, start=len(plan.tasks))]
    measured = in_parallel(
        _measure_task, [item for item in items if item[1] not in outcomes], jobs=jobs, progress="regret of the plan"
    )
    return [outcomes[i] if i in outcomes else next(measured) for _, i, _ in items]


def _measure_task(item: tuple[RegretTask, int, Ledger | None]) -> RegretJson | Unmeasured:
    """Return one measurement of regret, kept in the ledger; what goes wrong in it, as an error."""
    from ...audit.execution.workers import alone

    task = item[0]
    try:
        return alone(_measured_here, item) if ":" in task.target else _measured_here(item)
    except Exception as error:
        return Unmeasured(unaudited(task, error))


def _measured_here(item: tuple[RegretTask, int, Ledger | None]) -> RegretJson:
    task, index, ledger = item
    from ...audit.execution.execution import Execution
    from ...audit.execution.file_reads import collected

    page = ledger.page(index) if ledger is not None else None
    with collected():
        try:
            outcome = task.measure(Execution(memory=page))
            json_text(outcome)  # what cannot be written would lose the others' rows too
        finally:
            if page is not None:
                page.close()
        if ledger is not None:
            ledger.keep_outcome(index, outcome)
    return outcome


def cluster_of(workers: str, scheduler: str | None) -> Cluster | None:
    """Return the cluster that was asked for, reached and found to be of this version."""
    from ...audit.execution.cluster import Cluster

    if workers == "local":
        if scheduler is not None:
            raise hinted(ValueError("--scheduler is for --engine dask"), "add --engine dask, or leave out --scheduler")
        return None
    if scheduler is None:
        raise hinted(ValueError("--engine dask needs a scheduler"), "give --scheduler tcp://HOST:PORT")
    cluster = Cluster(scheduler)
    cluster.check()
    return cluster
