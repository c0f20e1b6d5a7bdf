"""What an unfinished run has kept of its finished claims, as far as it can be what this plan asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...audit.plans.ledger import Ledger
    from ...audit.plans.plan import Plan

#: Of the record of an audited claim, besides what every record has.
REQUIRED = (
    *("surface", "neighbours", "rounds", "epsilon_lower", "method", "confidence", "p_value", "runs", "counts", "pair"),
    *("seconds", "seed", "replay"),
)
#: Of a claim that could not be audited.
ERROR_FIELDS = ("name", "kind", "message", "replay")


def finished(ledger: Ledger, plan: Plan) -> dict[int, Any]:
    """Return the outcomes that a ledger holds: of claims by their index, then of measurements of regret.

    Raises
    ------
    LedgerError
        If one of them cannot be an outcome of this plan.
    """
    names = [task.target for task in plan.tasks] + [task.target for task in plan.regret]
    outcomes = ledger.outcomes()
    for index, outcome in outcomes.items():
        if not isinstance(index, int) or not 0 <= index < len(names):
            raise ledger.damaged(f"it holds a claim {index!r} that the plan does not have")
        fault = _wrong(outcome, names[index], claim=index < len(plan.tasks))
        if fault is not None:
            raise ledger.damaged(f"the outcome of claim {index} ({names[index]}) is none: {fault}")
    return outcomes


def _wrong(outcome: object, name: str, *, claim: bool) -> str | None:
    if not claim:
        return _unlike(outcome, name) or _fault({"alpha": 0.5, "claims": [], "regret": [outcome]})
    if not isinstance(outcome, list) or len(outcome) != 2 or (outcome[0] is None) == (outcome[1] is None):
        return "it must be a record or an error"
    record, error = outcome
    if record is None:
        if not isinstance(error, dict) or not all(isinstance(error.get(key), str) for key in ERROR_FIELDS):
            return f"an error has {', '.join(ERROR_FIELDS)}"
        return _unlike(error, name)
    if (fault := _unlike(record, name) or _fault({"alpha": 0.5, "claims": [record]})) is not None:
        return fault
    lacking = [key for key in REQUIRED if record.get(key) is None]
    lacking += [key for key in ("expected", "exact_epsilon", "shrunk", "two_interval_bound") if key not in record]
    return f"it has no {', '.join(lacking)}" if lacking else None


def _unlike(outcome: object, name: str) -> str | None:
    if not isinstance(outcome, dict):
        return f"it is {type(outcome).__name__}"
    return None if outcome.get("name") == name else f"it is that of {outcome.get('name')!r}"


def _fault(record: Mapping[str, object]) -> str | None:
    from ..record_schema import fault  # not before a command needs it: `--help` is instant

    return fault(record)
