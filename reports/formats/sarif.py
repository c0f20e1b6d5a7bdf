"""SARIF 2.1.0: a falsified claim annotates the line of its learner."""

from __future__ import annotations

import hashlib
import posixpath
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import cast
from urllib.parse import quote

from ...addresses import HOME
from ...audit.record_types import ClaimRecord, PlaceJson, RunRecord
from ...audit.statistics.measure_words import claimed_words
from ..identity import called
from ..reading import (
    bound_words,
    due_verdict,
    failing_bounds,
    is_accepted,
    is_failing,
    is_unexpected,
    is_violated,
    legible,
    may_allow_bypass,
    measure_of,
    reason_words,
    regret_replay,
    replay_word,
    with_relation,
)
from ..sanitise import json_text, visible
from ..status import status_of
from ..upper_words import bypass_text, place_of
from .regret_lines import bound_line

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "claim/v1"
RULES = {
    "falsified": "The privacy claim is false: what was released certifies more than was claimed.",
    "bypass": "An output depends on the input without noise.",
    "unexpected": "The claim was expected to be falsified, and was not.",
    "underpowered": "This audit could not have falsified the claim: too few runs, low power or no difference.",
    "not-audited": "The claim could not be audited.",
    "baseline": "Something got worse since the accepted baseline.",
    "regret": "A bound on regret, or on its growth, is violated.",
    "regret-undecided": "A plan's bound on regret could not be decided, or nothing could exceed it.",
}


def render(record: RunRecord) -> str:
    """Return a record as SARIF 2.1.0.

    A claim falsified against expectation is an error, one that was expected to be false a note. Every result points to
    the file and line where the learner is written, else to its file, else to the plan: for one result without a place
    GitHub refuses them all. It looks for files from the repository's root, the record names them from the folder of
    the run.
    """
    # Names of files are addresses, and stay as they are.
    root = partial(_from_root, record.get("folder") or "")
    plan = _plan(record.get("command") or "")
    entries = (*((record.get("baseline") or {}).get("findings") or ()), *(record.get("errors") or ()))
    places = {visible(entry["name"]): _place_of_target(entry["name"]) or plan for entry in entries}
    for claim in record["claims"]:
        places[visible(claim["name"])] = claim.get("where") or _place_of_target(claim["name"]) or plan
    where = [root(place_of(claim) or places[visible(claim["name"])]) for claim in record["claims"]]
    record = legible(record)
    results = [r for c, place in zip(record["claims"], where, strict=True) if (r := _of_claim(c, place)) is not None]
    for row in failing_bounds(record):
        rule, level = ("regret", "error") if is_violated(row) else ("regret-undecided", "warning")
        replay = regret_replay(row)
        text = f"{bound_line(row)}. {replay[:1].upper()}{replay[1:]}".rstrip()
        name = row.get("name") or "unnamed"
        results.append(_result(rule, level, text, name, root(places.get(name) or _place_of_target(name) or plan)))
    for finding in record["findings"]:
        level = "error" if is_failing(finding) else "note"
        text = f"{finding['kind']}: {called(finding)}: {finding['message']}"
        identity = f"{finding['kind']}/{finding.get('claim') or finding['name']}"
        results.append(_result("baseline", level, text, identity, root(places[finding["name"]])))
    for error in record["errors"]:
        text = f"{error['name']} {error['kind']}: {error['message']}"
        results.append(
            _result("not-audited", "error", text, error["replay"] or error["name"], root(places[error["name"]]))
        )
    status = status_of(record)
    _tell_apart(results)
    driver = {
        "name": "overclaim",
        "version": record["overclaim"],
        "semanticVersion": record["overclaim"],
        "informationUri": HOME,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "commandLine": record["command"],
                "executionSuccessful": not record["errors"],
                "exitCode": status.code,
                "exitCodeDescription": str(status),
            }
        ],
        "results": results,
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _of_claim(claim: ClaimRecord, where: PlaceJson) -> dict[str, object] | None:
    """Return what there is to say about a claim; nothing where it survived, as expected, an audit with power."""
    expected = due_verdict(claim)
    source = f" ({claim['standing']}: {claim['source']})" if claim["standing"] else ""
    head = f"{claim['name']} claims {with_relation(claimed_words(measure_of(claim)), claim)}{source}"
    tail = f"{replay_word(claim).capitalize()}: {claim['replay']}"
    if claim["verdict"] == "FALSIFIED":
        level = "note" if expected == "FALSIFIED" else "error"
        reason = f" Cause: {cause['text']}." if (cause := claim.get("cause")) else ""
        text = f"{head}, but {bound_words(claim)}.{reason} {tail}"
        return _result("falsified", level, text, claim["replay"], where)
    if is_accepted(claim):
        return None
    if claim["verdict"] == "BYPASS":
        level = "error" if is_unexpected(claim) and not may_allow_bypass(claim) else "warning"
        level = "note" if expected == "FALSIFIED" else level
        return _result("bypass", level, f"{head}: {bypass_text(claim)}. {tail}", claim["replay"], where)
    if claim["verdict"] == "UNDERPOWERED":
        text = f"{head}: {_runs(claim)} could not have falsified that; {reason_words(claim)}. {tail}"
        return _result("underpowered", "warning", text, claim["replay"], where)
    if claim["verdict"] != expected:
        text = f"{head}: expected to be falsified, but it survived {_runs(claim)}. {tail}"
        return _result("unexpected", "error", text, claim["replay"], where)
    return None


def _runs(claim: ClaimRecord) -> str:
    unit = "canaries" if claim["scores"] else "runs"
    return f"its {unit}" if claim["runs"] is None else f"{claim['runs']:,} {unit}"


def _tell_apart(results: Sequence[dict[str, object]]) -> None:
    """Give no two results one fingerprint, by which alerts are followed: number those that are alike all the same."""
    seen: Counter[str] = Counter()
    for result in results:
        prints = cast(dict[str, str], result["partialFingerprints"])
        fingerprint = prints[FINGERPRINT]
        seen[fingerprint] += 1
        if seen[fingerprint] > 1:
            prints[FINGERPRINT] = hashlib.sha256(f"{fingerprint}/{seen[fingerprint]}".encode()).hexdigest()


def _result(rule: str, level: str, text: str, identity: str, where: PlaceJson) -> dict[str, object]:
    """Return a result; the fingerprint stays the same while the claim does, so that alerts are not opened twice."""
    fingerprint = hashlib.sha256(f"{rule}/{identity}".encode()).hexdigest()
    return {
        "ruleId": rule,
        "ruleIndex": list(RULES).index(rule),
        "level": level,
        "message": {"text": _plain(text)},
        "locations": [_location(where)],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }


def _plain(text: str) -> str:
    """Return a text as a message of SARIF says it: brackets would embed links (2.1.0, section 3.11.6)."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _location(where: PlaceJson) -> dict[str, object]:
    path = PurePath(where["file"])
    uri = quote(path.as_posix(), errors="surrogatepass")
    artifact = {"uri": f"file://{uri}"} if path.is_absolute() else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": where["line"]}}}


def _from_root(folder: str, place: PlaceJson) -> PlaceJson:
    """Return a place as the repository's root names it, from its name in the folder of a run."""
    return {**place, "file": posixpath.normpath(posixpath.join(folder, place["file"]))}


def _place_of_target(target: str) -> PlaceJson | None:
    file, _, _ = target.rpartition(":")
    return {"file": file, "line": 1} if file.endswith(".py") else None


def _plan(command: str) -> PlaceJson:
    """Return where the plan of a run stands, as its command names it."""
    try:
        parts = shlex.split(command)
    except ValueError:  # a foreign record
        parts = []
    return {"file": next((part for part in parts if part.endswith(".toml")), "overclaim.toml"), "line": 1}
