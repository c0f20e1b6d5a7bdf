"""A run: the claims of a plan, audited side by side, and the record that they make."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from ..sanitise import is_untested
from .console import BAD_INPUT, CRASHED, FALSIFIED, OK, UNDERPOWERED

if TYPE_CHECKING:
    from ...audit.plans.ledger import Ledger
    from ...audit.plans.plan import Plan
    from ...audit.plans.tasks import RegretTask, Task
    from ...audit.play.cluster import Cluster


def run_plan(
    plan: Plan, *, jobs: int, command: str, ledger: Ledger | None = None, cluster: Cluster | None = None
) -> dict[str, Any]:
    """Audit the claims of a plan and return the record: claims side by side, one process each.

    Fewer claims than processes are audited one after another, each on all of them. On a cluster the processes here
    choose the events, and its workers play the blocks of certification.
    """
    from ...audit.plans.selftest import selftest
    from ...audit.play.engines import in_parallel
    from ...audit.regret.false_regret_statements import false_utility_claims
    from ..record import run_record

    outcomes = dict(ledger.outcomes()) if ledger is not None else {}
    measured = {
        i: outcomes.pop(i) for i in range(len(plan.tasks), len(plan.tasks) + len(plan.regret)) if i in outcomes
    }
    missing = [i for i in range(len(plan.tasks)) if i not in outcomes]
    items = [(plan.tasks[i], i, ledger, cluster) for i in missing]
    few = len(items) < jobs
    audit = partial(_audit_task, jobs=jobs if few else 1)
    for i, outcome in zip(missing, in_parallel(audit, items, jobs=1 if few else jobs, progress="claims"), strict=True):
        outcomes[i] = outcome
    ordered = [outcomes[i] for i in range(len(plan.tasks))]
    claims = [claim for claim, _ in ordered if claim is not None]
    errors = [error for _, error in ordered if error is not None]
    tests = decide_together(claims, plan)
    record = run_record(claims, seed=plan.seed, alpha=plan.report_alpha or plan.alpha, command=command, errors=errors)
    record["ledger_of_tests"] = tests
    if plan.regret:
        record["regret"] = _measured(plan, measured, jobs=jobs, ledger=ledger)
        record["utility"] = [claim.to_json() for claim in false_utility_claims()]
        found = selftest(jobs=jobs, sound=False)
        record["selftest"] = [{"name": f"{f.subject}: {f.bug}", "caught": f.good} for f in found]
    return record


def decide_together(claims: list[dict[str, Any]], plan: Plan) -> dict[str, Any]:
    """Return every test that shared the report's alpha; with an alpha for the report, Holm's procedure decides.

    A claim that Holm's procedure rejects is FALSIFIED, even where its own bound, at alpha / m, stays below the claim;
    its record then says at what level.
    """
    from ...audit.statistics.multiplicity import Decision, holm

    m, alpha = len(plan.tasks), plan.report_alpha
    p_values = [claim["p_value"] for claim in claims]
    if alpha is None:
        tests = [
            Decision(p, plan.alpha, p, claim["verdict"] == "FALSIFIED")
            for p, claim in zip(p_values, claims, strict=True)
        ]
    else:
        tests = holm([*p_values, *[1.0] * (m - len(claims))], alpha)[: len(claims)]  # a claim that crashed counts too
        for claim, test in zip(claims, tests, strict=True):
            if test.rejected and claim["verdict"] != "FALSIFIED":
                claim["verdict"] = "FALSIFIED"
                claim["holm"] = {"p_value": test.p_value, "level": test.level}
    return {
        "method": "each for itself" if alpha is None else "Holm",
        "family_wise_error": round(min(1.0, m * plan.alpha), 12) if alpha is None else alpha,
        "tests": [
            {"claim": claim["name"], "epsilon": claim["claimed"]["epsilon"], **asdict(test)}
            for claim, test in zip(claims, tests, strict=True)
        ],
    }


#: The claim's record, or what went wrong.
Outcome = tuple[dict[str, Any] | None, dict[str, str] | None]


def _audit_task(item: tuple[Task, int, Ledger | None, Cluster | None], *, jobs: int) -> Outcome:
    """Return the outcome of one claim, kept in the ledger: one bad learner must not lose the others' results."""
    from ...audit.plans.shrink import shrink_task
    from ...learners.protocol import LearnerError
    from ..record import claim_record

    task, index, ledger, cluster = item
    page = ledger.page(index) if ledger is not None else None
    outcome: Outcome
    try:
        prepared = task.prepare()
        result = prepared.audit(jobs=jobs, memory=page, cluster=cluster)
        record = claim_record(prepared, result, with_evidence=True)
        shrunk = shrink_task(task, result)
        outcome = {**record, "shrunk": shrunk.to_json() if shrunk else None}, None
    except (LearnerError, ValueError) as error:
        kind = "crashed" if isinstance(error, LearnerError) else "bad input"
        outcome = None, {"name": task.target, "kind": kind, "message": str(error), "replay": task.command()}
    finally:
        if page is not None:
            page.close()
    if ledger is not None:
        ledger.keep_outcome(index, outcome)
    return outcome


def _measured(
    plan: Plan, known: dict[int, dict[str, Any]], *, jobs: int, ledger: Ledger | None
) -> list[dict[str, Any]]:
    """Return the measurements of regret; in the ledger they come after the claims."""
    from ...audit.play.engines import in_parallel

    items = [(task, i, ledger) for i, task in enumerate(plan.regret, start=len(plan.tasks))]
    found = in_parallel(_measure_task, [item for item in items if item[1] not in known], jobs=jobs, progress="regret")
    return [known[i] if i in known else next(found) for _, i, _ in items]


def _measure_task(item: tuple[RegretTask, int, Ledger | None]) -> dict[str, Any]:
    """Return one measurement of regret, kept in the ledger."""
    task, index, ledger = item
    if ledger is None:
        return task.measure()
    page = ledger.page(index)
    try:
        found = task.measure(page)
    finally:
        page.close()
    ledger.keep_outcome(index, found)
    return found


def exit_code(record: dict[str, Any]) -> int:
    """Return the exit code of a run: crashes first, then regressions and surprises, then undecided claims."""
    from ..baseline import failed

    if any(error["kind"] == "crashed" for error in record["errors"]):
        return CRASHED
    if record["errors"]:
        return BAD_INPUT
    if failed(record):
        return FALSIFIED
    wanted = [(c["verdict"], (c["expected"] or "survived").upper()) for c in record["claims"]]
    if any(verdict != expected and verdict != "UNDERPOWERED" for verdict, expected in wanted):
        return FALSIFIED
    if any(is_untested(c) and not c.get("untested_allowed") for c in record["claims"]):
        return UNDERPOWERED
    return UNDERPOWERED if any(verdict == "UNDERPOWERED" for verdict, _ in wanted) else OK
