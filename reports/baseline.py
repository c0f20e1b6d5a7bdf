"""Baselines: whether every accepted claim was asked again as it was accepted, counted, and passed.

With a baseline a run is green only if each accepted claim was asked again unchanged, with at least the accepted power,
was counted, and passed. Whatever else changed is red until `accept`.

Passing is decided by evidence over all changes (`audit.statistics.change_evidence`). Each audited change counts two
events on fresh runs: the audit's own against the claim, and the accepted one, which the baseline keeps as data,
against the smaller of the claim and an upper bound on what it showed when it was accepted. A claim whose evidence is
neither enough nor gone is counted on in the same run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..audit.plans.paths import exists
from ..audit.record_types import BaselineRecord, BeforeRecord, ClaimRecord, RunRecord, Said
from ..audit.statistics import change_evidence as evidence
from ..audit.statistics.bounds.binomial_bounds import clopper_pearson_lower
from ..audit.statistics.digits import at_least, at_most
from ..audit.statistics.events import Counts
from ..audit.statistics.measure_words import lower_words
from ..errors import hinted
from .consistency import check_consistent
from .history import Change, History
from .identity import called, mark, matched, measure, told_apart
from .reading import lower, measure_of
from .record import read_record

#: Where `accept` puts the baseline.
DEFAULT = Path("overclaim-baseline.json")
#: Of each claim.
REQUIRED = ("epsilon_lower", "method", "counts", "runs", "replay", "question")
#: The shares of the canaries, those with the highest scores, at which scores are compared: fixed before any is seen.
SHARES = (0.01, 0.05, 0.2, 0.5)
#: The probability that chance calls an event silent, of each claim and change: beside the promise it is nothing.
SILENCE = 1e-9
TEST = (
    f"If all claims are true and no accepted leak grew, chance turns this gate red with probability at most "
    f"{evidence.ERROR:.0%} in {evidence.CHANGES} audited changes."
)
#: What findings are called.
TITLES = {
    "worse": "Worse than the baseline",
    "changed": "Not what was accepted",
    "missing": "Missing from this run",
    "new": "New",
}


@dataclass(frozen=True)
class Recount:
    """What came of counting the events of a claim.

    Attributes
    ----------
    change : Change or None
        None where nothing was counted, and `reason` says why.
    reason : str
    crashed : bool
        Whether the target misbehaved.
    """

    change: Change | None
    reason: str = ""
    crashed: bool = False


#: Counts the events of (claim, its baseline) each.
Counting = Callable[[Sequence[tuple[ClaimRecord, ClaimRecord]]], Sequence[Recount]]


def read_baseline(path: Path) -> RunRecord:
    """Read a baseline; asking for one that is not there is an error, never a silent pass."""
    if not exists(path, "cannot read the baseline"):
        raise hinted(ValueError(f"there is no baseline {str(path)!r}"), "make one by overclaim accept RECORD.json")
    record = read_comparable(path)
    if not all("accepted" in claim for claim in record["claims"]):
        raise hinted(
            ValueError(f"{str(path)!r} is no baseline, or one of an older version"), "overclaim accept it again"
        )
    return record


def read_comparable(path: Path) -> RunRecord:
    """Read a record whose claims have all that a comparison needs; a report makes do with less.

    Raises
    ------
    ValueError
        As `read_record`, if there is no claim, if something is missing, or if the record contradicts itself.
    """
    record = read_record(path)
    if not record["claims"]:
        raise ValueError(f"{str(path)!r} cannot be compared: it has no claim")
    for i, claim in enumerate(record["claims"]):
        lacking = [name for name in REQUIRED if claim.get(name) is None]
        lacking += [] if claim["claimed"].get("delta") is not None else ["claimed.delta"]
        lacking += [f"counts.{name}" for name in ("right", "runs") if name not in (claim.get("counts") or {})]
        if lacking:
            error = ValueError(f"{str(path)!r} cannot be compared: claims[{i}] has no {', '.join(lacking)}")
            raise hinted(error, "audit it again by overclaim run, and accept that record")
    check_consistent(record, str(path))
    fields = {key: value for key, value in record.items() if value is not None}
    return cast(RunRecord, {"alpha": 0.01, "errors": [], **fields})


def compare(
    claims: Sequence[ClaimRecord], base: RunRecord, *, count: Counting | None = None, history: History | None = None
) -> BaselineRecord:
    """Return what is not as it was accepted, and put each claim's baseline beside it.

    Parameters
    ----------
    claims : sequence of dict
        Of the new record; each that continues an accepted one gets a key `baseline`, with the old bound, the evidence
        over the changes and what it decides.
    base : dict
        The baseline's record.
    count : callable, optional
        Counts the events of claims; without it only what is asked is compared.
    history : History, optional
        To which what was counted is added.
    """
    matching = matched(claims, base["claims"])
    findings: list[Said] = []
    errors: list[Said] = []
    pairs = [(new, old) for new, old, changes in matching.pairs if not changes]
    recounts = [Recount(None, "the target was not played")] * len(pairs) if count is None else count(pairs)
    for new, old, changes in matching.pairs:
        new["baseline"] = _beside(old)
        if changes:
            findings.append(_finding("changed", new, "; ".join(map(str, changes))))
    if history is not None:
        history.add([recount.change for recount in recounts if recount.change is not None])
    for (new, old), recount in zip(pairs, recounts, strict=True):
        if recount.crashed:
            errors.append({"name": new["name"], "kind": "crashed", "message": recount.reason, "replay": new["replay"]})
        elif recount.change is not None:
            past = [recount.change] if history is None else history.until(recount.change)
            findings += _judged(new, old, past, past[-1], len(base["claims"]))
        elif new.get("scores"):
            findings += _judged_scores(new, old, len(base["claims"]))
        elif count is not None:
            findings.append(_finding("changed", new, f"it cannot be counted: {recount.reason}"))
    findings += [_finding("new", new, "not in the baseline") for new in matching.added]
    findings += [_finding("missing", old, "in the baseline, but not in this record") for old in matching.missing]
    return {
        "created": base.get("created"),
        "digest": digest(base),
        "test": TEST,
        "changes": 0 if history is None else len({change.change for change in history.changes}),
        "findings": told_apart(findings, base["claims"], claims),
        "errors": errors,
    }


def _beside(old: ClaimRecord) -> BeforeRecord:
    return {"epsilon_lower": old["epsilon_lower"], "lower": old.get("lower"), "measure": measure(old)}


def _judged(new: ClaimRecord, old: ClaimRecord, past: Sequence[Change], change: Change, claims: int) -> list[Said]:
    """Put beside a claim what its evidence decides; return the finding that it leaks more than was accepted."""
    limits = change.limits(claims)
    growth = evidence.evidence_of([past_change.log_growth for past_change in past], 2, limits)
    before = cast(BeforeRecord, new["baseline"])
    before |= {
        "decision": decide(growth, limits, change, exceeded=new["verdict"] == "FALSIFIED"),
        "evidence": round(growth.log_mean() / math.log(10), 3),
        "red_from": round(limits.log_red / math.log(10), 3),
        "batches": change.batches,
        "more_runs": change.more_runs,
        "exceeded": new["verdict"] == "FALSIFIED",
    }
    if before["decision"] != "worse":
        silent = is_silent(old, change)
        return [_finding("changed", new, "its accepted event names no input any more")] if silent else []
    assert change.accepted is not None
    line, (hits, misses, runs) = change.accepted.line, change.accepted.guesses
    text = f"its accepted event named the input rightly {hits:,} times and wrongly {misses:,} times in {runs:,} runs"
    odds = f"accepted are odds of at most {at_most(math.exp(min(line.epsilon, 700.0)), '.3g')}"
    return [_finding("worse", new, "; ".join([_bound(new, old), text, odds, new["replay"]]))]


def is_silent(old: ClaimRecord, change: Change) -> bool:
    """Tell whether an accepted event names no input any more, as of outputs of another form: not by chance alone."""
    guesses = evidence.Guesses.of(Counts.of_json(old["accepted"]["counts"]))
    if change.accepted is None or change.accepted.guesses.right + change.accepted.guesses.wrong:
        return False
    rate = float(clopper_pearson_lower(guesses.right + guesses.wrong, guesses.runs, SILENCE))
    return (1 - rate) ** change.accepted.guesses.runs < SILENCE


def decide(growth: evidence.Evidence, limits: evidence.Limits, change: Change, *, exceeded: bool) -> str:
    """Return what the evidence after a change decides: false, worse, in doubt or passed.

    Parameters
    ----------
    exceeded : bool
        Whether the audit falsified the claim.
    """
    mean = growth.log_mean()
    if mean >= limits.log_red:
        return "false" if growth.log_mean(change.of_claim) >= limits.log_red else "worse"
    uncounted = not change.batches and (exceeded or mean >= limits.log_doubt)
    return "in doubt" if uncounted or (change.batches and mean >= 0) else "passed"


def _judged_scores(new: ClaimRecord, old: ClaimRecord, claims: int) -> list[Said]:
    """Return the finding that the highest scores tell more than the accepted ones: of equal shares of the canaries."""
    ratio = _log_odds_of_inclusion(new) - _log_odds_of_inclusion(old)
    tests = claims * len(SHARES)
    results = []
    for share in SHARES:
        before, after = (_highest(claim, share) for claim in (old, new))
        bound = evidence.accepted_line(evidence.Line(math.inf), before, evidence.ERROR / 2 / tests)
        results.append((evidence.p_value_of_growth(evidence.Line(bound.epsilon + ratio), after), before, after))
    p, before, after = min(results, key=lambda result: result[0])
    cast(BeforeRecord, new["baseline"])["p_value"] = min(1.0, p * len(SHARES))
    if p >= evidence.ERROR / (2 * evidence.CHANGES * tests):
        return []
    text = f"of the {after.right + after.wrong:,} highest scores {after.right:,} are of included canaries"
    was = f"accepted were {before.right:,} of {before.right + before.wrong:,}, p-value {at_most(p, '.2g')}"
    return [_finding("worse", new, "; ".join([_bound(new, old), f"{text}, {was}", new["replay"]]))]


def _highest(claim: ClaimRecord, share: float) -> evidence.Guesses:
    """Return how many of this share of the canaries, those with the highest scores, were included and held out."""
    roc = claim["scores"]["roc"] if claim["scores"] else {"inserted": [0], "held_out": [0]}
    total = [a + b for a, b in zip(roc["inserted"], roc["held_out"], strict=True)]
    place = min(range(len(total)), key=lambda i: (abs(total[i] - share * total[-1]), i))
    return evidence.Guesses(roc["inserted"][place], roc["held_out"][place], total[-1])


def _log_odds_of_inclusion(claim: ClaimRecord) -> float:
    scores = claim["scores"]
    assert scores is not None
    inserted, held_out = scores["inserted"], scores["canaries"] - scores["inserted"]
    return math.log((inserted + 0.5) / (held_out + 0.5))


def _bound(new: ClaimRecord, old: ClaimRecord) -> str:
    return f"{lower_words(measure_of(new), lower(new))}, was {at_least(lower(old))}"


def _finding(kind: str, claim: ClaimRecord, message: str) -> Said:
    return {"kind": kind, "name": claim["name"], "message": message, "claim": mark(claim), "replay": claim["replay"]}


def findings_by_title(record: RunRecord) -> list[tuple[str, list[list[str]]]]:
    """Return the findings under what they are called, each as its claim and its sentences on lines of their own."""
    listed: dict[str, list[list[str]]] = {title: [] for title in TITLES.values()}
    for finding in (record.get("baseline") or {}).get("findings", ()):
        first, *rest = finding["message"].split("; ")
        title = TITLES.get(finding["kind"], finding["kind"].capitalize())
        listed.setdefault(title, []).append([f"{called(finding)}: {first}", *rest])
    return [(title, rows) for title, rows in listed.items() if rows]


def digest(record: RunRecord) -> str:
    """Return the hash of a baseline, as its file holds it."""
    return hashlib.sha256(json.dumps(slim(record), sort_keys=True).encode()).hexdigest()


def slim(record: RunRecord) -> dict[str, object]:
    """Return a record as a baseline: without the data of figures and without its own comparison."""
    claims = [{k: v for k, v in claim.items() if k not in ("evidence", "baseline")} for claim in record["claims"]]
    return {**{k: v for k, v in record.items() if k not in ("baseline", "status")}, "claims": claims}
