"""The report's first screen: what was found, of what, for whom, since when, and what was not tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...audit.plans.catalogues import mechanisms
from ...audit.record_types import ClaimRecord, LegibleRecord, Said
from ...audit.statistics.digits import at_most
from ...audit.statistics.measure_words import claimed_words
from ..reading import due_verdict, is_mechanism, measure_of, reason_text, relation_words
from ..status import claims_text
from ..upper_words import bypass_text, is_bounded
from .run_lines import sum_line
from .sentences import finding, power_text

#: What the template reads by name.
View = dict[str, Any]
#: Rows of the table of claims: of more those that falsify or crash are shown, and the others are folded.
MAX_ROWS = 12
#: Letters of a hash that tell files apart at a glance.
_SHORT = 12


def first_screen(record: LegibleRecord, claims: Sequence[View], planned: int) -> View:
    """Return what stands above everything else in a report."""
    falsified = sorted((c for c in claims if c["verdict"] == "FALSIFIED"), key=lambda c: -c["bound"] / c["level"])
    rows = [_row(c) for c in claims] + [_uncounted(e) for e in record["errors"]]
    urgent = [row for row in rows if row["painted"] in ("FALSIFIED", "BYPASS") or row["unaudited"]]
    listed = (rows if len(rows) <= MAX_ROWS else urgent)[:MAX_ROWS]
    return {
        "sentences": [f"{sum_line(record)}.", *_sentences(claims, falsified), _error_rate(record, planned)],
        "audited": _audited(record),
        "protects": _protected(record, claims),
        "since": _since(record),
        "rows": listed,
        "folded": [row for row in rows if row not in listed],
        "limits": limits(claims),
    }


def called(name: str) -> str:
    """Return a target as a reader calls it: `count in noisy.py`."""
    place, colon, target = name.rpartition(":")
    return f"{target} in {place}" if colon else name


def _sentences(claims: Sequence[View], falsified: Sequence[View]) -> list[str]:
    """Return the worst of the falsified claims, and what SURVIVED does not say."""
    sentences = []
    if falsified:
        worst = falsified[0]
        subject = "The falsified claim" if len(falsified) == 1 else "The worst of them"
        claimed = f"{called(worst['name'])} claims {claimed_words(measure_of(cast(ClaimRecord, worst)))}"
        sentences.append(f"{subject}: {claimed}; {finding(cast(ClaimRecord, worst))}. {needed(worst)}".strip())
    if any(c["verdict"] == "SURVIVED" for c in claims):
        sentences.append("Survived is not proved: with these inputs and attacks, no violation was certified.")
    return sentences


def needed(claim: Mapping[str, Any]) -> str:
    """Return how much more noise a falsified claim takes, where its one noise call says so."""
    cause = claim.get("cause") or {}
    differs, planned = cause.get("differs"), cause.get("calibrated_for")
    if cause.get("kind") != "calls" or cause.get("calls") != 1 or not differs or not planned or differs <= planned:
        return ""
    return f"{at_most(differs / planned, '.3g')} times the noise is needed."


def _error_rate(record: LegibleRecord, planned: int) -> str:
    tests: Mapping[str, Any] = record.get("ledger_of_tests") or {}
    errors = [1 - float(claim.get("confidence") or 1 - record["alpha"]) for claim in record["claims"]]
    bound = min(1.0, sum(errors))
    family_error = tests.get("family_wise_error") if tests.get("method") == "Holm" else bound
    if family_error is not None and family_error < 1:
        kind = "privacy claim" if record.get("regret") else "claim"  # bounds of regret have errors of their own
        return f"The chance that this report falsifies any true {kind} is at most {percent(family_error)}."
    return f"The chance that it falsifies a true claim is at most {percent(max(errors, default=0.0))} for each claim."


def percent(value: float) -> str:
    """Return an error in per cent, rounded up, without a space."""
    return f"{at_most(100 * value, '.2g')}%"


def _audited(record: LegibleRecord) -> View:
    """Return the commit, the files and the versions, as far as a record tells."""
    audited: Mapping[str, Any] = record.get("audited") or {}
    commit, clean = audited.get("commit"), audited.get("clean")
    state = {True: "no local changes", False: "with local changes", None: "local changes are not known"}[clean]
    libs = {name: text for name, text in (audited.get("versions") or {}).items() if name not in _ENGINE}
    return {
        "commit": f"commit {commit[:_SHORT]}, {state}" if commit else "no commit is known",
        "files": [(name, digest[:_SHORT], digest) for name, digest in (audited.get("files") or {}).items()],
        "versions": [f"overclaim {record.get('overclaim', '-')}", *(f"{name} {text}" for name, text in libs.items())],
    }


#: Versions that the provenance names: of what overclaim computes with.
_ENGINE = ("overclaim", "python", "numpy", "scipy", "scikit-learn", "optuna")


def _protected(record: LegibleRecord, claims: Sequence[View]) -> str:
    """Return whom the claims protect: in the plan's words, and by what differs between neighbours."""
    changes = list(dict.fromkeys(map(relation_text, claims)))
    rest = f", and {len(changes) - 3} other relations" if len(changes) > 3 else ""
    relations = "; ".join(changes[:3]) + rest
    return f"{people}: {relations}" if (people := record.get("protects")) else relations


def relation_text(claim: Mapping[str, Any]) -> str:
    """Return what differs between neighbours, in words."""
    record = cast(ClaimRecord, claim)
    if claim["scores"]:
        return "one canary is in the training data, or not"
    if text := relation_words(record):
        return text.partition(": ")[2] or text
    if not is_mechanism(record):
        return "one round’s loss is replaced"
    specimen, pair = mechanisms().get(record["name"]), record.get("pair") or {}
    is_ours = specimen and specimen.is_audited_on(pair.get("left"), pair.get("right"))
    return specimen.difference if specimen and is_ours else "the two inputs that are given"


def assumed(claim: View) -> list[str]:
    """Return what must hold for the bound of a claim, and for the bound from above of one that has it."""
    if claim["scores"]:
        return list(claim["scores"]["assumes"])
    source = "the operating system’s" if claim["replayable"] is False else "its generator’s"
    base = [f"the target draws {source} random numbers alone, and no run affects another"]
    return base + list((claim["upper_rests_on"] or ()) if is_bounded(cast(ClaimRecord, claim)) else ())


def _since(record: LegibleRecord) -> list[str]:
    if not record.get("baseline"):
        return ["no earlier audit was given (--baseline)"]
    verbs = {"missing": "dropped"}
    lines = []
    for row in record["findings"]:
        kind = str(row.get("kind", ""))
        lines.append(f"{verbs.get(kind, kind)}: {row.get('label') or row.get('name', '')}: {row.get('message', '')}")
    return lines or ["nothing became worse, and no claim was changed or dropped"]


def _row(claim: View) -> View:
    record = cast(ClaimRecord, claim)
    return {
        "name": called(claim["name"]),
        "setting": claim["setting"],
        "source": claim["claimed_in"] or claim["source"],
        "claimed": claimed_words(measure_of(record)),
        "verdict": claim["verdict"],
        "painted": claim["verdict"],
        "finding": bypass_text(record) if claim["verdict"] == "BYPASS" else finding(record),
        "expected": f"expected {due_verdict(record)}" if claim["unexpected"] else "",
        "change": claim["change"],
        "power": power_text(record),
        "relation": relation_text(claim),
        "assumes": assumed(claim),
        "index": claim["index"],
        "unaudited": False,
    }


def _uncounted(error: Said) -> View:
    where = f" ({place})" if (place := error.get("where")) else ""
    return {
        **dict.fromkeys(("setting", "source", "change", "expected", "index"), ""),
        **dict.fromkeys(("claimed", "power", "relation"), "-"),
        "name": called(error.get("name", "-")),
        "verdict": error.get("kind") or "not audited",
        "painted": "UNDERPOWERED",
        "finding": f"{error.get('message', '')}{where}",
        "assumes": [],
        "unaudited": True,
    }


def limits(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what was not tested, in five lines at most."""
    low = [c for c in claims if c["verdict"] == "UNDERPOWERED"]
    unmeasured = sum(c["verdict"] == "SURVIVED" and c.get("blind_spot") is None for c in claims)
    runs = max((c["runs"] or 0 for c in claims if not c.get("scores")), default=0)
    reasons = ", ".join(dict.fromkeys(reason_text(cast(ClaimRecord, c)) for c in low))
    lines = [
        f"{claims_text(len(low))}: {reasons}" if low else "",
        f"the power of {unmeasured} audit{'s' * (unmeasured != 1)}" if unmeasured else "",
        f"leaks rarer than 1 in {runs:,} runs, and other inputs and attacks than those tried" if runs else "",
        "other canaries and attacks than those scored" if any(c.get("scores") for c in claims) else "",
        "timing, memory and logs"
        + "; low-order bits (--bits)" * bool(runs and not any(c.get("bits") for c in claims)),
        _USERS * bool(runs and not any(str(c["neighbours"]).startswith(("user", "replace-user")) for c in claims)),
    ]
    return [line for line in lines if line]


_USERS = "all that one user gives, where that is more than one record or round"
