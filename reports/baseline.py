"""Baselines: what got worse since the record that was accepted.

A regression is found by Fisher's exact test on right and wrong guesses: given how many guesses each record made, a new
share of right guesses that is no larger than the old one gives a p-value of at most alpha with probability at most
alpha. The logarithm of the odds of a right guess is the epsilon that the frozen attack shows, so this is the question
whether the new bound exceeds what the old attack could have produced on the baseline. Where the two audits gave the
worlds other shares of their runs, two exact intervals of the odds at alpha / 2 each are compared instead, a factor of
the shares' odds apart. The claims of a report share alpha by Holm's procedure: some regression of a frozen attack is
reported without cause with probability at most alpha.

Audits that stopped early are compared with each other by limits that hold whenever one stops: a regression is reported
at alpha if the new lower bound on epsilon, at alpha / 2, exceeds the upper limit, at alpha / 2, of what the baseline's
guesses showed, the log odds of the mean probability of a right one. Both are wrong with probability at most alpha
together, however the two audits came to their ends; the smallest such alpha is the p-value.

Where a changed learner led the same audit to another event, the shares still are compared, but the two events would
show different ones even of one learner: the finding says so. Where the audit itself changed, its seed or its budget,
and with it the event, nothing can be compared, and a remark says that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..audit.certification.blind_spot import words as blind_words
from ..audit.plans.paths import exists
from ..audit.statistics.intervals import clopper_pearson_lower, clopper_pearson_upper
from ..audit.statistics.multiplicity import SMALLEST, holm
from .record import read_record
from .sanitise import named_world

#: Where `accept` puts the baseline.
DEFAULT = Path("overclaim-baseline.json")
#: The audit lost power if the gap between the claim and the smallest violation it catches grew by more than this.
SLACK = 1.10
#: What fails a run; other findings are remarks.
FAILING = ("regression", "weakened", "lost power", "missing")
#: Of each claim.
NEEDED = ("epsilon_lower", "method", "counts", "runs", "replay")
TEST = (
    "Fisher's exact test on right and wrong guesses, new against baseline, one-sided; Holm across the claims. "
    "For audits that stopped early, the anytime-valid lower bound on epsilon against the anytime-valid upper limit of "
    "what the baseline's guesses showed, at half the error each. Not done where the seed, the budget or the way to "
    "stop changed, and with it the event. The error level is that of an unchanged attack."
)


def read_baseline(path: Path) -> dict[str, Any]:
    """Read a baseline; asking for one that is not there is an error, never a silent pass."""
    if not exists(path, "cannot read the baseline"):
        raise ValueError(f"there is no baseline {str(path)!r}: make one by overclaim accept RECORD.json")
    return read_comparable(path)


def read_comparable(path: Path) -> dict[str, Any]:
    """Read a record whose claims have all that a comparison needs; a report makes do with less.

    Raises
    ------
    ValueError
        As `read_record`, or if something is missing; the message names it.
    """
    record = read_record(path)
    for i, claim in enumerate(record["claims"]):
        lacking = [name for name in NEEDED if claim.get(name) is None]
        lacking += [] if "delta" in claim["claimed"] else ["claimed.delta"]
        lacking += [f"counts.{name}" for name in ("right", "runs") if name not in (claim.get("counts") or {})]
        if lacking:
            raise ValueError(f"{str(path)!r} cannot be compared: claims[{i}] has no {', '.join(lacking)}")
    return {"alpha": 0.01, "errors": [], **{key: value for key, value in record.items() if value is not None}}


def compare(claims: Sequence[dict[str, Any]], base: Mapping[str, Any], *, alpha: float) -> dict[str, Any]:
    """Return what changed since the baseline, and put each claim's baseline beside it.

    Parameters
    ----------
    claims : sequence of dict
        Of the new record; each gets a key `baseline`, with the old bound and the p-value of a regression.
    base : mapping
        The baseline's record.
    alpha : float
        The chance of any regression reported without cause.
    """
    before = keyed(base["claims"])
    pairs = [(claim, before.pop(key, None)) for key, claim in keyed(claims).items()]
    known = [(new, old) for new, old in pairs if old is not None]
    tested = [(new, old, regression_p_value(new, old)) for new, old in known]
    tests = [(new, old, p) for new, old, p in tested if p is not None]
    findings = []
    decisions = holm([p for _, _, p in tests], alpha) if tests else []
    for new, old, p in tested:
        if p is None:
            findings.append(_finding("not compared", new, _why_not(new, old)))
        new["baseline"] = {"epsilon_lower": old["epsilon_lower"], "p_value": None}
        findings += _changes(new, old)
    for (new, old, p), decision in zip(tests, decisions, strict=True):
        new["baseline"]["p_value"] = p
        if decision.rejected:
            findings.append(_finding("regression", new, _regressed(new, old, decision.adjusted)))
    findings += [_finding("new", new, "not in the baseline") for new, old in pairs if old is None]
    findings += [_finding("missing", old, "in the baseline, but not in this record") for old in before.values()]
    return {"created": base.get("created"), "alpha": alpha, "test": TEST, "findings": findings}


def keyed(claims: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return claims by what identifies them: everything that is audited, but not what is promised about it."""
    found: dict[str, dict[str, Any]] = {}
    for claim in claims:
        facts = [
            claim.get(name) for name in ("name", "calibration", "surface", "neighbours", "losses", "rounds", "arms")
        ]
        text = json.dumps([*facts, claim.get("parameters")], sort_keys=True, default=repr)
        ordinal = sum(key.rpartition("#")[0] == text for key in found)  # the same thing under several claims, in order
        found[f"{text}#{ordinal}"] = claim
    return found


def regression_p_value(new: Mapping[str, Any], old: Mapping[str, Any]) -> float | None:
    """Return the p-value of "guesses are right no more often than in the baseline"; None where it cannot be tested."""
    from scipy.stats import fisher_exact

    if not _comparable(new, old):
        return None
    table = [[c["counts"]["right"], c["counts"]["guesses"] - c["counts"]["right"]] for c in (new, old)]
    if min(sum(row) for row in table) == 0:
        return None
    if new["method"] == "anytime":
        return _early_p_value(new, old)
    if (odds := _odds(new) / _odds(old)) != 1:
        return _weighted_p_value(table, odds)
    return float(fisher_exact(table, alternative="greater").pvalue)


def _odds(claim: Mapping[str, Any]) -> float:
    """Return the odds of a right guess that an event has if its outcomes are as likely in both worlds."""
    found = named_world(claim)
    if found is None:  # the coin of the guess game is fair
        return 1.0
    share: float = (claim.get("event") or {}).get("share", 0.5)
    return share / (1 - share) if found.name == "left" else (1 - share) / share


def _weighted_p_value(table: Sequence[Sequence[int]], odds: float) -> float:
    """Return the p-value of "the odds of a right guess grew at most by this factor", from two exact intervals."""
    (right, wrong), (was_right, was_wrong) = table

    def rejected(log_alpha: float) -> bool:
        half = math.exp(log_alpha) / 2
        least = clopper_pearson_lower(right, right + wrong, half)
        most = clopper_pearson_upper(was_right, was_right + was_wrong, half)
        return bool(least * (1 - most) > odds * most * (1 - least))

    return _smallest_level(rejected)


def _early_p_value(new: Mapping[str, Any], old: Mapping[str, Any]) -> float:
    """Return the p-value of "epsilon is at most what the baseline's guesses showed", for audits that stopped early."""
    from ..audit.statistics.sequential import Bets, share_upper

    bets = Bets(new["claimed"]["epsilon"], new["claimed"]["delta"])
    counts, before = new["counts"], old["counts"]
    wrong = counts["guesses"] - counts["right"]

    def rejected(log_alpha: float) -> bool:
        half = math.exp(log_alpha) / 2
        most = share_upper(before["right"], before["guesses"], half)
        if most >= 1:
            return False
        shown = max(0.0, math.log(most / (1 - most)))
        wealth = bets.log_wealth(counts["right"], wrong, counts["runs"], shown)
        return float(wealth) >= -math.log(half)

    return _smallest_level(rejected)


def _smallest_level(rejected: Callable[[float], bool]) -> float:
    """Return the smallest error level at which a test rejects, given the logarithm of one; 1 if none does."""
    low, high = math.log(SMALLEST), 0.0
    if not rejected(high):
        return 1.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return math.exp(high)


def _same(new: Mapping[str, Any], old: Mapping[str, Any], *names: str) -> bool:
    return all(new.get(name) == old.get(name) for name in names)


def _comparable(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Tell whether the shares of right guesses may be compared: the attack is frozen, or its audit at least.

    The attack of an early audit changes on the way, and its runs depend on the guesses: seed and budget must be equal.
    """
    engines = new.get("engine", "numpy"), old.get("engine", "numpy")
    same_draws = _same(new, old, "seed") and engines[0] == engines[1]
    early = [claim["method"] == "anytime" for claim in (new, old)]
    if any(early):
        return all(early) and same_draws and "budget" in old and _same(new, old, "budget")
    return _same(new, old, "attack", "event", "pair") or (same_draws and _same(new, old, "runs"))


def _why_not(new: Mapping[str, Any], old: Mapping[str, Any]) -> str:
    if _comparable(new, old):
        return "one of the two audits made no guess"
    changed = "the seed, the budget, the engine or the way to stop of its audit changed, and with it the attack"
    return f"{changed}: accept a new baseline"


def _regressed(new: Mapping[str, Any], old: Mapping[str, Any], p: float) -> str:
    attack = "the same attack" if _same(new, old, "attack", "event", "pair") else "another attack than the baseline's"
    return (
        f"epsilon is at least {new['epsilon_lower']:.4g}, it was {old['epsilon_lower']:.4g}: {attack} "
        f"{_shown(new)}; before: {_shown(old)} (adjusted p-value {p:.2g}); {new['replay']}"
    )


def _shown(claim: Mapping[str, Any]) -> str:
    found, counts = named_world(claim), claim["counts"]
    if found is None or not found.runs or not found.others:
        return f"is right in {100 * counts['right'] / counts['guesses']:.2f} % of its guesses"
    name, hits, runs, other, misses, others = found
    return f"says {name} in {100 * hits / runs:.3g} % of {name} runs and {100 * misses / others:.3g} % of {other} ones"


def _changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what is weaker than before in one claim: its promise, or the power of its audit."""
    found = []
    for name in ("epsilon", "delta"):
        now, then = new["claimed"][name], old["claimed"][name]
        if now > then:
            found.append(_finding("weakened", new, f"the claimed {name} is {now:g}, it was {then:g}"))
    same = new["claimed"] == old["claimed"]
    if same and _gap(new) > SLACK * _gap(old):
        now, then = (_text(claim.get("detectable_epsilon")) for claim in (new, old))
        told = f"at best it catches {now}, before {then} ({new['runs']:,} runs, were {old['runs']:,})"
        found.append(_finding("lost power", new, told))
    if same and _blinder(new, old):
        now, then = (blind_words(claim["blind_spot"]) for claim in (new, old))
        found.append(_finding("lost power", new, f"blind spot: {now}; before: {then}"))
    return found


def _blinder(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Tell whether an audit misses twice the factor that it caught before: one step of the factors may be chance."""
    if not (new.get("blind_spot") and old.get("blind_spot")):
        return False
    now, then = (claim["blind_spot"]["factor"] for claim in (new, old))
    return then is not None and (now is None or now > 2 * then)


def _gap(claim: Mapping[str, Any]) -> float:
    detectable = claim.get("detectable_epsilon")
    return math.inf if detectable is None else float(detectable - claim["claimed"]["epsilon"])


def _text(detectable: float | None) -> str:
    return "nothing" if detectable is None else f"{detectable:.4g}"


def _finding(kind: str, claim: Mapping[str, Any], message: str) -> dict[str, str]:
    return {"kind": kind, "name": claim["name"], "message": message}


def failed(record: Mapping[str, Any]) -> bool:
    """Tell whether a record's comparison with its baseline fails the run."""
    return any(finding["kind"] in FAILING for finding in (record.get("baseline") or {}).get("findings", ()))


def lines(record: Mapping[str, Any]) -> list[str]:
    """Return the findings, one line each."""
    findings = (record.get("baseline") or {}).get("findings", ())
    return [f"{finding['kind']}: {finding['name']}: {finding['message']}" for finding in findings]


def slim(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as a baseline: without the data of figures and without its own comparison."""
    claims = [{k: v for k, v in claim.items() if k not in ("evidence", "baseline")} for claim in record["claims"]]
    return {**{k: v for k, v in record.items() if k != "baseline"}, "claims": claims}
