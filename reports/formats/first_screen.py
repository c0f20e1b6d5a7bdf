"""The report's first screen: what was found, of what, for whom, since when, and what was not tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...audit.record_types import ClaimRecord, LegibleRecord, Said
from ...audit.statistics.digits import at_least, at_most
from ...audit.statistics.measure_words import claimed_words
from ...audit.verdicts.blind_spot import factor_words
from ..reading import due_verdict, is_mechanism, lower, measure_of, relation_words
from ..upper_words import bypass_text

#: What the template reads by name.
View = dict[str, Any]
#: Rows of the table of claims: of more the false and the unexpected ones are shown, and a link leads to all.
MOST_ROWS = 12
#: What each verdict is called by whoever does not know the words of the record.
PLAIN = {"FALSIFIED": "FALSE", "BYPASS": "no noise", "SURVIVED": "not refuted", "UNDERPOWERED": "not tested"}
#: Letters of a hash that tell files apart at a glance.
_SHORT = 12


def first_screen(record: LegibleRecord, claims: Sequence[View], planned: int) -> View:
    """Return what stands above everything else in a report."""
    false = sorted((c for c in claims if c["verdict"] == "FALSIFIED"), key=lambda c: -c["bound"] / c["level"])
    rows = [_row(c) for c in claims] + [_uncounted(e) for e in record["errors"]]
    bad = [row for row in rows if row["painted"] in ("FALSIFIED", "BYPASS") or row["crashed"]]
    listed = rows if len(rows) <= MOST_ROWS else bad
    return {
        "sentences": [*_sentences(record, claims, false), _error_rate(record, planned)],
        "audited": _audited(record),
        "protects": _protected(record, claims),
        "since": _since(record),
        "rows": listed[:MOST_ROWS],
        "more": len(rows) - len(listed[:MOST_ROWS]),
        "limits": limits(claims),
    }


def called(name: str) -> str:
    """Return a target as a reader calls it: `count in noisy.py`."""
    place, colon, target = name.rpartition(":")
    return f"{target} in {place}" if colon else name


def _sentences(record: LegibleRecord, claims: Sequence[View], false: Sequence[View]) -> list[str]:
    """Return how many claims are false, the worst of them, and what the others are not."""
    if not claims:
        return ["No claim was audited."]
    verdicts = [c["verdict"] for c in claims]
    crashed = sum(e.get("kind") == "crashed" for e in record["errors"])
    counts = [
        (len(false), "is", "are", "false"),
        (verdicts.count("BYPASS"), "depends", "depend", "on the input without noise"),
        (verdicts.count("SURVIVED"), "was", "were", "not refuted"),
        (verdicts.count("UNDERPOWERED") + len(record["errors"]) - crashed, "", "", "could not be tested"),
        (crashed, "", "", "crashed"),
    ]
    said = [f"{n or 'none'} {one if n < 2 else many} {what}".replace("  ", " ") for n, one, many, what in counts[:1]]
    said += [f"{n} {f'{one if n == 1 else many} ' if one else ''}{what}" for n, one, many, what in counts[1:] if n]
    total = len(claims) + len(record["errors"])
    sentences = [f"Of {total} privacy claim{'s' * (total != 1)}, {', '.join(said)}."]
    if false:
        worst = false[0]
        which = "The false one" if len(false) == 1 else "The worst of them"
        claimed = f"{called(worst['name'])} claims {claimed_words(measure_of(cast(ClaimRecord, worst)))}"
        sentences.append(f"{which}: {claimed}; {_bound(worst)}. {needed(worst)}".strip())
    if "SURVIVED" in verdicts:
        sentences.append("“Not refuted” is not a proof of privacy.")
    return sentences


def _bound(claim: View) -> str:
    if claim["by_holm"]:
        return f"it is above {at_least(claim['level'])}, by all tests of this report together"
    return f"it is at least {claim['certified']}"


def needed(claim: Mapping[str, Any]) -> str:
    """Return how much more noise a falsified claim takes, where its one noise call says so."""
    cause = claim.get("cause") or {}
    differs, fits = cause.get("differs"), cause.get("calibrated_for")
    if cause.get("kind") != "calls" or cause.get("calls") != 1 or not differs or not fits or differs <= fits:
        return ""
    return f"{at_most(differs / fits, '.3g')} times the noise is needed."


def _error_rate(record: LegibleRecord, planned: int) -> str:
    """Return the chance that the report calls any true claim false."""
    tests: Mapping[str, Any] = record.get("ledger_of_tests") or {}
    errors = [1 - float(claim.get("confidence") or 1 - record["alpha"]) for claim in record["claims"]]
    every = min(1.0, sum(errors))
    together = tests.get("family_wise_error") if tests.get("method") == "Holm" else every
    if together is not None and together < 1:
        kind = "privacy claim" if record.get("regret") else "claim"  # bounds of regret have errors of their own
        return f"The chance that this report calls any true {kind} false is at most {percent(together)}."
    return (
        f"The chance that it calls a true claim false is at most {percent(max(errors, default=0.0))} for each claim."
    )


def percent(value: float) -> str:
    """Return an error in per cent, rounded up, without a space."""
    return f"{at_most(100 * value, '.2g')}%"


def _audited(record: LegibleRecord) -> View:
    """Return the commit, the files and the versions, as far as a record tells."""
    known: Mapping[str, Any] = record.get("audited") or {}
    commit, clean = known.get("commit"), known.get("clean")
    state = {True: "no local changes", False: "with local changes", None: "local changes are not known"}[clean]
    own = {name: text for name, text in (known.get("versions") or {}).items() if name not in _OURS}
    return {
        "commit": f"commit {commit[:_SHORT]}, {state}" if commit else "no commit is known",
        "files": [(name, digest[:_SHORT], digest) for name, digest in (known.get("files") or {}).items()],
        "versions": [f"overclaim {record.get('overclaim', '-')}", *(f"{name} {text}" for name, text in own.items())],
    }


#: Versions that the provenance names: of what overclaim computes with.
_OURS = ("overclaim", "python", "numpy", "scipy", "scikit-learn", "optuna")


def _protected(record: LegibleRecord, claims: Sequence[View]) -> str:
    """Return whom the claims protect: in the plan's words, and by what differs between neighbours."""
    differ = list(dict.fromkeys(_difference(c) for c in claims))
    many = f", and {len(differ) - 3} other relations" if len(differ) > 3 else ""
    relations = "; ".join(differ[:3]) + many
    return f"{said}: {relations}" if (said := record.get("protects")) else relations


def _difference(claim: View) -> str:
    record = cast(ClaimRecord, claim)
    if claim["scores"]:
        return "one canary is in the training data, or not"
    if words := relation_words(record):
        return words.partition(": ")[2] or words
    return "the two inputs that are given" if is_mechanism(record) else "one round’s loss is replaced"


def _since(record: LegibleRecord) -> list[str]:
    """Return what changed since the baseline."""
    if not record.get("baseline"):
        return ["no earlier audit was given (--baseline)"]
    words = {"missing": "dropped"}
    found = []
    for one in record["findings"]:
        kind = str(one.get("kind", ""))
        found.append(f"{words.get(kind, kind)}: {one.get('label') or one.get('name', '')}: {one.get('message', '')}")
    return found or ["nothing became worse, and no claim was changed or dropped"]


def _row(claim: View) -> View:
    plain = PLAIN[claim["verdict"]]
    result = {
        "FALSIFIED": f"{_bound(claim).removeprefix('it is ')}, claimed {claim['level']:g}",
        "SURVIVED": f"at least {claim['certified']}" if lower(cast(ClaimRecord, claim)) > 0 else "nothing was seen",
        "BYPASS": bypass_text(cast(ClaimRecord, claim)),
        "UNDERPOWERED": str(claim["reason"] or ""),
    }[claim["verdict"]]
    spot = claim["blind_spot"]
    power = ("not measured" if spot is None else factor_words(spot)) if claim["verdict"] == "SURVIVED" else "-"
    return {
        "name": called(claim["name"]),
        "setting": claim["setting"],
        "source": claim["claimed_in"] or claim["source"] or "-",
        "verdict": plain,
        "painted": claim["verdict"],
        "result": result,
        "power": power,
        "expected": f"expected {due_verdict(cast(ClaimRecord, claim)).lower()}" if claim["unexpected"] else "",
        "index": claim["index"],
        "crashed": False,
    }


def _uncounted(error: Said) -> View:
    crashed = error.get("kind") == "crashed"
    where = f" ({place})" if (place := error.get("where")) else ""
    return {
        "name": called(error.get("name", "-")),
        "setting": "",
        "source": "-",
        "verdict": "crashed" if crashed else "not tested",
        "painted": "UNDERPOWERED",
        "result": f"{error.get('message', '')}{where}",
        "power": "-",
        "expected": "",
        "index": None,
        "crashed": True,
    }


def limits(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what was not tested, in five lines at most."""
    low = [c for c in claims if c["verdict"] == "UNDERPOWERED"]
    unmeasured = sum(c["verdict"] == "SURVIVED" and c.get("blind_spot") is None for c in claims)
    most = max((c["runs"] or 0 for c in claims if not c.get("scores")), default=0)
    why = ", ".join(dict.fromkeys(str(c["reason"]) for c in low if c["reason"]))
    lines = [
        f"{len(low)} claim{'s' * (len(low) != 1)}: {why}" if low else "",
        f"the power of {unmeasured} audit{'s' * (unmeasured != 1)}" if unmeasured else "",
        f"leaks rarer than 1 in {most:,} runs, and other inputs and attacks than those tried" if most else "",
        "timing, memory and logs" + ("" if any(c.get("bits") for c in claims) else "; low-order bits (--bits)"),
        "" if any(str(c["neighbours"]).startswith(("user", "replace-user")) for c in claims) else _USERS,
    ]
    return [line for line in lines if line]


_USERS = "all that one user gives, where that is more than one record or round"
