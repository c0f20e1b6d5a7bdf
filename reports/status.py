"""The status of a run: what its exit code, titles, boxes and test cases say, decided in one place.

The first that holds counts, the gravest first. `AS EXPECTED` alone is green.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..audit.record_types import ClaimRecord, RunRecord
from .reading import (
    WORSE,
    due_verdict,
    is_accepted,
    is_failing,
    is_in_doubt,
    is_open,
    is_violated,
    may_allow_bypass,
    verdict_of,
)

#: The exit codes of a run and of a check.
OK, FALSIFIED, BAD_INPUT, UNDERPOWERED, CRASHED, INTERNAL = 0, 1, 2, 3, 4, 70
#: What the errors of claims are called whose exit code is not that of bad input; the first counts.
KINDS = {INTERNAL: "internal error", CRASHED: "crashed"}
StatusName = Literal[
    "FAULT",
    "CRASHED",
    "NOT AUDITED",
    "FALSE",
    "LEAK",
    "WORSE",
    "CHANGED",
    "REGRET",
    "UNDECIDED",
    "IN DOUBT",
    "AS EXPECTED",
]


@dataclass(frozen=True)
class Status:
    """What a run comes to.

    Attributes
    ----------
    name : str
        One of `StatusName`.
    code : int
        The exit code.
    text : str
        What came of it, in one sentence without its full stop.
    """

    name: StatusName
    code: int
    text: str

    @property
    def tone(self) -> Literal["bad", "unsure", "good"]:
        """How it is painted: only what is as expected is good."""
        if self.code == UNDERPOWERED or self.name == "IN DOUBT":
            return "unsure"
        return "good" if self.name == "AS EXPECTED" else "bad"

    @property
    def symbol(self) -> str:
        """A mark beside its colour, as Markdown shows it."""
        return {"bad": "❌", "unsure": "⚠️", "good": "✅"}[self.tone]

    @property
    def mark(self) -> str:
        """The same mark as plain text, which every font has."""
        return {"bad": "✗", "unsure": "?", "good": "✓"}[self.tone]

    def __str__(self) -> str:
        ending = f" (exit code {self.code})" if self.code else ""
        return f"{self.name}  {self.text}{ending}"


def status_of(record: RunRecord) -> Status:
    """Return the status of a record, or of a record of one claim."""
    claims, errors = record.get("claims") or [], record.get("errors") or []
    total = len(claims) + len(errors)
    if errors:
        names: dict[str, tuple[StatusName, int]] = {
            KINDS[INTERNAL]: ("FAULT", INTERNAL),
            KINDS[CRASHED]: ("CRASHED", CRASHED),
        }
        kinds = {error.get("kind") for error in errors}
        name, code = next((status for kind, status in names.items() if kind in kinds), ("NOT AUDITED", BAD_INPUT))
        return Status(name, code, f"{len(errors)} of {claims_text(total)} could not be audited")
    if not total and not record.get("regret"):
        return Status("NOT AUDITED", BAD_INPUT, "No claim was audited")
    return _false(claims, total) or _worse(record) or _undecided(record, claims, total)


def claims_text(count: int) -> str:
    """Return how many claims, in words."""
    return f"{count} claim{'s' * (count != 1)}"


def _false(claims: Sequence[ClaimRecord], total: int) -> Status | None:
    """Return what fails by the verdicts alone."""
    false = sum(verdict_of(claim) == "FALSIFIED" != due_verdict(claim) for claim in claims)
    unmet = sum(verdict_of(claim) == "SURVIVED" != due_verdict(claim) for claim in claims)
    leaks = sum(
        verdict_of(claim) == "BYPASS" and due_verdict(claim) != "FALSIFIED" and not may_allow_bypass(claim)
        for claim in claims
    )
    texts = [f"{false} {'is' if false == 1 else 'are'} falsified"] if false else []
    texts += [f"{unmet} survived where FALSIFIED was expected"] if unmet else []
    if texts:
        return Status("FALSE", FALSIFIED, f"Of {claims_text(total)}, {', '.join(texts)}")
    if leaks:
        verb = "has" if leaks == 1 else "have"
        text = f"Of {claims_text(total)}, {leaks} {verb} an output that depends on the input without noise"
        return Status("LEAK", FALSIFIED, text)
    return None


def _worse(record: RunRecord) -> Status | None:
    """Return what fails by the comparison with the baseline, or by a bound on regret."""
    findings = (record.get("baseline") or {}).get("findings") or ()
    kinds = Counter(finding["kind"] for finding in findings if is_failing(finding))
    if worse := kinds[WORSE]:
        verb = "leaks" if worse == 1 else "leak"
        return Status("WORSE", FALSIFIED, f"{claims_text(worse)} {verb} more than was accepted")
    if kinds:
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return Status("CHANGED", FALSIFIED, f"Not what was accepted: {listed}")
    violated = sum(map(is_violated, record.get("regret") or ()))
    if violated:
        return Status("REGRET", FALSIFIED, f"{violated} bound{'s' * (violated > 1)} on regret violated")
    return None


def _undecided(record: RunRecord, claims: Sequence[ClaimRecord], total: int) -> Status:
    """Return what came of a run in which nothing failed."""
    bounds = sum(map(is_open, record.get("regret") or ()))
    undecided = sum(
        (verdict_of(claim) == "UNDERPOWERED" and not is_accepted(claim))
        or (verdict_of(claim) == "BYPASS" and may_allow_bypass(claim))
        for claim in claims
    )
    texts = [f"{undecided} of {claims_text(total)} not decided"] if undecided else []
    texts += [f"{bounds} bound{'s' * (bounds > 1)} on regret not decided"] if bounds else []
    if texts:
        return Status("UNDECIDED", UNDERPOWERED, "; ".join(texts))
    if doubt := sum(map(is_in_doubt, claims)):
        return Status("IN DOUBT", OK, f"{doubt} of {claims_text(total)} in doubt: later changes decide")
    return Status("AS EXPECTED", OK, f"{claims_text(total)}, all as expected" if total else "Regret is as expected")
