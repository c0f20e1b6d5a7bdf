"""Evidence for a register of others, as YAML: what was claimed, what was tested, what was not, and what no test shows.

Each claim has the fields of OpenDP's Differential Privacy Deployments Registry that an audit can fill, under the names
that the registry's schema gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec

from ...addresses import schema_address
from ...audit.record_types import ClaimRecord, LegibleRecord, MeasureJson, RunRecord
from ...audit.statistics.measure_words import claimed_words
from ...audit.verdicts.blind_spot import words as power_words
from ...errors import hinted
from ..reading import (
    bound_words,
    counted_words,
    legible,
    measure_of,
    reason_words,
    verdict_of,
)
from ..sanitise import visible
from .first_screen import limits, relation_text

VERSION = 1
#: What no finite audit of outputs shows, whatever its verdict.
UNTESTABLE = (
    "that the claim holds on every pair of neighbours: a test finds violations, it proves none absent",
    "whether the neighbours of the claim are what the protected people need",
    "what is released elsewhere: privacy loss adds up over releases",
    "the random generator where the code runs: the audit draws from one of its own",
)
#: The registry's name of a measure, by its kind.
_VARIANTS = {"zcdp": "Zero-concentrated DP", "rdp": "Renyi DP"}
#: Its names of privacy parameters.
_PARAMETERS = ("epsilon", "delta", "rho")


class Tested(TypedDict):
    """What an audit of a claim did, and found."""

    verdict: str
    found: str
    counts: str
    power: str
    inputs: str


class RegistryFields(TypedDict):
    """Fields of the registry's `deployment`."""

    dp_variant: dict[str, str]
    privacy_loss: dict[str, Any]
    implementation: dict[str, str]


class ClaimEvidence(TypedDict):
    """The evidence for one claim."""

    target: str
    source: str
    claimed: str
    neighbours: str
    tested: Tested
    command: str
    registry: RegistryFields


class Audited(TypedDict):
    """What the audit was of: versions, commit and the SHA-256 of each file."""

    overclaim: str
    created: str
    commit: str | None
    clean: bool | None
    versions: dict[str, str]
    files: dict[str, str]


class Evidence(TypedDict):
    """Evidence of a run."""

    evidence: int
    protects: str
    audited: Audited
    claims: list[ClaimEvidence]
    not_audited: list[str]
    not_tested: list[str]
    cannot_be_tested: list[str]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of evidence."""
    return msgspec.json.schema(Evidence)


def evidence(record: RunRecord) -> Evidence:
    """Return the evidence that a record holds."""
    read = legible(record)
    return {
        "evidence": VERSION,
        "protects": str(read.get("protects") or ""),
        "audited": _audited(read),
        "claims": [_claim(claim) for claim in read["claims"]],
        "not_audited": [f"{error.get('name', '')}: {error.get('message', '')}" for error in read["errors"]],
        "not_tested": limits(read["claims"]),
        "cannot_be_tested": list(UNTESTABLE),
    }


def render(record: RunRecord) -> str:
    """Return the evidence of a record as YAML.

    Raises
    ------
    ValueError
        If PyYAML is not installed.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        raise hinted(ValueError("--evidence needs PyYAML"), "pip install 'overclaim[evidence]'") from None
    head = f"# yaml-language-server: $schema={schema_address('evidence', VERSION)}\n"
    return head + str(yaml.safe_dump(visible(evidence(record)), sort_keys=False, allow_unicode=True, width=120))


def _audited(record: LegibleRecord) -> Audited:
    audited: Mapping[str, Any] = record.get("audited") or {}
    return {
        "overclaim": str(record.get("overclaim") or ""),
        "created": str(record.get("created") or ""),
        "commit": audited.get("commit"),
        "clean": audited.get("clean"),
        "versions": audited.get("versions") or {},
        "files": audited.get("files") or {},
    }


def _claim(claim: ClaimRecord) -> ClaimEvidence:
    spot, measure = claim.get("blind_spot"), measure_of(claim)
    levels = dict(measure)
    tested: Tested = {
        "verdict": verdict_of(claim),
        "found": bound_words(claim),
        "counts": counted_words(claim),
        "power": power_words(spot) if spot else "not measured",
        "inputs": "given" if claim.get("pair_given") or claim.get("scores") else "chosen by overclaim",
    }
    return {
        "target": claim["name"],
        "source": str(claim.get("claimed_in") or claim.get("source") or ""),
        "claimed": claimed_words(measure),
        "neighbours": relation_text(claim),
        "tested": tested,
        "command": str(claim.get("replay") or ""),
        "registry": {
            "dp_variant": {"variant_name": _variant(measure)},
            "privacy_loss": {
                "privacy_unit_details": relation_text(claim),
                "privacy_parameters": {name: levels[name] for name in _PARAMETERS if name in levels},
                "privacy_parameters_details": claimed_words(measure),
            },
            "implementation": {"justification": _justification(claim, tested)},
        },
    }


def _variant(measure: MeasureJson) -> str:
    """Return the registry's name of a claim's measure; Custom where it has none."""
    kind = measure.get("kind") or "approximate"
    if kind == "approximate":
        return "Approximate DP" if measure.get("delta") else "Pure DP"
    return _VARIANTS.get(kind, "Custom")


def _justification(claim: ClaimRecord, tested: Tested) -> str:
    """Return what answers the registry's question whether and how the process was validated and verified."""
    answers = {
        "FALSIFIED": "It was tested, and the claim is false",
        "BYPASS": "It was tested, and an output depends on the input without noise",
        "SURVIVED": "It was tested, and not falsified; this is no proof",
        "UNDERPOWERED": f"It was tested, and the test decides nothing ({reason_words(claim)})",
    }
    found = f"{tested['found']}; {tested['counts']}"
    return f"{answers[tested['verdict']]}: {found}. Power: {tested['power']}. Repeat it: {claim.get('replay') or ''}"
