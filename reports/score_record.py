"""The record of scores of canaries: nothing was searched, so it has no pair of inputs and no frozen event."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..audit.execution.provenance import named_from_here

if TYPE_CHECKING:
    from ..audit.plans.tasks import Prepared
    from ..audit.record_types import ClaimRecord
    from ..audit.verdicts.verdict import Result

#: Why a later run does not count the event again.
NOT_FROZEN = "scores of canaries are data: nothing is played again"
NOT_TRAINED_AGAIN = "a training is not run again to be compared"


def of_scores(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what the record of scores has of its own, or otherwise than other records."""
    task, canaries = prepared.task, result.canaries
    if canaries is None:
        return {}
    file = task.scores or task.inserted
    return {
        "design": canaries.design,
        "scores": canaries.to_json(),
        "budget": result.runs,
        "frozen": {"kind": "none", "reason": NOT_FROZEN if task.of_scores else NOT_TRAINED_AGAIN},
        **({"where": {"file": named_from_here(Path(file)), "line": 1}} if file is not None else {}),
    }


def p_value_of(result: Result) -> float:
    """Return the p-value of a claim: of all scores, or of the counts of an event."""
    if result.canaries is not None:
        return result.canaries.p_value
    from ..audit.statistics.multiplicity import p_value

    return p_value(result.claim, result.event, result.certificate)
