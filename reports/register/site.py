"""The pages of a register: one for each claim, at an address that its question alone decides, and an index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...audit.record_types import ClaimRecord, LegibleRecord, RunRecord
from ...audit.statistics.measure_words import claimed_words
from ...audit.verdicts.blind_spot import factor_words
from ...errors import hinted
from ..formats.first_screen import called, relation_text
from ..formats.html import environment, shown_claim
from ..identity import mark
from ..reading import bound_words, legible, measure_of, verdict_of
from ..record import write_atomically
from ..sanitise import json_text
from .badge import badge_of

#: Letters of the hash of a claim's question in its address.
_HASH_LETTERS = 10


@dataclass(frozen=True)
class Audit:
    """A claim with the record that it is of."""

    claim: ClaimRecord
    record: LegibleRecord

    @property
    def address(self) -> str:
        """The folder of its page, the same for every audit that asks the same."""
        name = re.sub(r"[^a-z0-9]+", "-", self.claim["name"].lower()).strip("-")
        return f"claims/{name[:60]}-{mark(self.claim)[:_HASH_LETTERS]}"

    @property
    def created(self) -> str:
        """When it was audited."""
        return str(self.record.get("created") or "")


def newest_audits(records: Iterable[RunRecord]) -> list[Audit]:
    """Return the newest audit of each claim of some records, in the order of their addresses.

    Raises
    ------
    ValueError
        For a record of an older version: its claims have no question, which decides their addresses.
    """
    by_address: dict[str, Audit] = {}
    for record in map(legible, records):
        if unasked := next((claim["name"] for claim in record["claims"] if "question" not in claim), None):
            raise hinted(ValueError(f"{unasked} is of a record without questions"), "audit it again")
        for audit in (Audit(claim, record) for claim in record["claims"]):
            earlier = by_address.get(audit.address)
            if earlier is None or earlier.created <= audit.created:
                by_address[audit.address] = audit
    return [by_address[address] for address in sorted(by_address)]


def is_publishable(claim: ClaimRecord) -> bool:
    """Tell whether a register may show a claim: a fault of published software only after its authors were told."""
    return not (claim.get("undisclosed") and verdict_of(claim) in ("FALSIFIED", "BYPASS"))


def write_site(audits: Iterable[Audit], folder: Path) -> int:
    """Write the pages of a register into a folder; return how many claims it has."""
    rows = [_row(audit) for audit in audits]
    for row in rows:
        place = folder / row["address"]
        _write(place / "index.html", "register_claim.html", row)
        _write(place / "badge.svg", "badge.svg", {"badge": row["badge"]})
        write_atomically(place / "badge.json", json_text(row["badge"].to_json(), indent=1))
    verdicts = sorted({row["verdict"] for row in rows})
    _write(folder / "index.html", "register_index.html", {"rows": rows, "verdicts": verdicts})
    _write(folder / "filter.js", "filter.js", {})
    return len(rows)


def _write(file: Path, template: str, page: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, environment(__package__).get_template(template).render(page))


def _row(audit: Audit) -> dict[str, Any]:
    claim, record = audit.claim, audit.record
    audited: Mapping[str, Any] = record.get("audited") or {}
    card = shown_claim(claim)
    return {
        "c": card,
        "claims": [card],
        "alpha": 1 - card["confidence"],
        "address": audit.address,
        "title": f"{called(claim['name'])}: claimed {claimed_words(measure_of(claim))}",
        "verdict": verdict_of(claim),
        "claimed": claimed_words(measure_of(claim)),
        "found": bound_words(claim),
        "power": factor_words(claim.get("blind_spot")),
        "relation": relation_text(card),
        "source": claim.get("source") or "",
        "created": audit.created[:10],
        "overclaim": record.get("overclaim", ""),
        "commit": audited.get("commit") or "",
        "clean": audited.get("clean"),
        "files": audited.get("files") or {},
        "versions": audited.get("versions") or {},
        "badge": badge_of(claim),
    }
