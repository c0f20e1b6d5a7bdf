"""Baselines: what got worse since the record that was accepted.

A record keeps, for each claim, its event as data with what was counted of it (`audit.evidence.frozen`). The gate
counts that very event again, on fresh runs of the learner as it is now, and compares the two shares of right guesses
by Fisher's exact test: given how many guesses were made, a share that is no larger than the baseline's gives a p-value
of at most alpha with probability at most alpha. The fresh runs draw from streams keyed by the hash of what the
baseline counted, at a stage of their own, whatever the seed of the plan: the two samples are independent, which the
test needs, also where the learner did not change at all. Another attack, seed, budget or confidence of the new audit
changes nothing.

With a delta the odds of a right guess are not all: half the error goes to the excess of right guesses over e^epsilon
times the wrong ones, compared by four exact intervals.

The claims of a report share alpha by Holm's procedure: for learners whose laws did not change, the probability that
the gate reports some regression is at most alpha. What a plan promises, catches or leaves out is read, not tested.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..audit.evidence.frozen import Frozen
from ..audit.plans.paths import exists
from ..audit.record_types import BaselineRecord, BeforeRecord, ClaimRecord, CountsJson, MeasureJson, RunRecord, Said
from ..audit.statistics.bounds.binomial_bounds import clopper_pearson_lower, clopper_pearson_upper
from ..audit.statistics.digits import at_least, at_most
from ..audit.statistics.events import Counts
from ..audit.statistics.measure_words import LEVELS, claimed_words, is_epsilon, lower_words
from ..audit.statistics.multiplicity import SMALLEST, holm
from ..audit.verdicts.blind_spot import words as blind_words
from ..errors import hinted
from ..mechanisms.measures.stated import measure_from_json, number_text
from ..mechanisms.numerics import bisect
from .consistency import check_consistent
from .identity import called, mark, matched, measure, same_unit, told_apart, why_another
from .reading import is_failing, lower, measure_of, named_world
from .record import read_record

#: Where what two claims allow is compared: at so many even steps of a probability, and at powers of ten below them, to
#: this one: small deltas and large epsilons differ there alone. And how far rounding may move what they allow.
CURVE, _POWERS, _ROUNDING = 1000, 15, 1e-15
#: Where `accept` puts the baseline.
DEFAULT = Path("overclaim-baseline.json")
#: The audit lost power if the gap between the claim and the smallest violation it catches grew by more than this, or,
#: where no such violation is known, if the runs became fewer by more.
SLACK = 1.10
#: What a claim promises: the less, the better.
_PROMISED = (*LEVELS, "delta")
#: Guesses beyond which Fisher's test takes too long; exact intervals stand in for it.
MOST_EXACT = 10**8
#: Of each claim.
NEEDED = ("epsilon_lower", "method", "counts", "runs", "replay")
TEST = (
    "Each claim's event, as the baseline keeps it, is counted again on fresh runs, in streams keyed by the hash of "
    "what the baseline counted: independent of it whatever the seeds. Fisher's exact test on right and wrong guesses, "
    "new against baseline, one-sided; where delta is not 0, with half the error each, also the excess of right "
    "guesses over e^epsilon times the wrong ones. Holm across the claims: of learners whose laws did not change, some "
    "regression is reported with probability at most alpha."
)


#: What findings are called.
TITLES = {
    "regression": "Worse than the baseline",
    "weakened": "Weaker claim",
    "lost power": "Less power than the baseline",
    "missing": "Missing from this run",
    "not compared": "Not compared with the baseline",
    "more certified": "More certified than the baseline",
    "new": "New",
}


@dataclass(frozen=True)
class Again:
    """What came of counting a baseline's event again.

    Attributes
    ----------
    counts : Counts or None
        Of the fresh runs.
    reason : str
        Why there are none.
    crashed : bool
        Whether the learner misbehaved.
    lost : bool
        Whether the baseline keeps an event, which cannot be counted any more: this fails until it is accepted.
    """

    counts: Counts | None
    reason: str = ""
    crashed: bool = False
    lost: bool = False


#: Counts the events of baselines again: (claim, its baseline) each.
Counting = Callable[[Sequence[tuple[ClaimRecord, ClaimRecord]]], Sequence[Again]]


def read_baseline(path: Path) -> RunRecord:
    """Read a baseline; asking for one that is not there is an error, never a silent pass."""
    if not exists(path, "cannot read the baseline"):
        raise hinted(ValueError(f"there is no baseline {str(path)!r}"), "make one by overclaim accept RECORD.json")
    return read_comparable(path)


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
        lacking = [name for name in NEEDED if claim.get(name) is None]
        lacking += [] if claim["claimed"].get("delta") is not None else ["claimed.delta"]
        lacking += [f"counts.{name}" for name in ("right", "runs") if name not in (claim.get("counts") or {})]
        if lacking:
            raise ValueError(f"{str(path)!r} cannot be compared: claims[{i}] has no {', '.join(lacking)}")
    check_consistent(record, str(path))
    known = {key: value for key, value in record.items() if value is not None}
    return cast(RunRecord, {"alpha": 0.01, "errors": [], **known})


def compare(
    claims: Sequence[ClaimRecord], base: RunRecord, *, alpha: float, again: Counting | None = None
) -> BaselineRecord:
    """Return what changed since the baseline, and put each claim's baseline beside it.

    Parameters
    ----------
    claims : sequence of dict
        Of the new record; each gets a key `baseline`, with the old bound, the counts of the baseline's event then and
        now, the p-value of a regression, and why it was not compared if it was not.
    base : mapping
        The baseline's record.
    alpha : float
        The probability that some regression is reported of learners that did not change.
    again : callable, optional
        Counts the events of baselines again; without it no shares are compared.
    """
    pairs, missing = matched(claims, base["claims"])
    known = [(new, old) for new, old in pairs if old is not None]
    reasons = [why_another(new, old) for new, old in known]
    asked = [pair for pair, reason in zip(known, reasons, strict=True) if reason is None]
    counted = iter([Again(None, "the learner was not played") for _ in asked] if again is None else again(asked))
    results = [Again(None, reason) if reason is not None else next(counted) for reason in reasons]
    tested = [_tested(new, old, result) for (new, old), result in zip(known, results, strict=True)]
    decisions = iter(holm([p for p in tested if p is not None], alpha))
    findings: list[Said] = []
    errors: list[Said] = []
    for (new, old), result, p in zip(known, results, tested, strict=True):
        regressed = p is not None and (decision := next(decisions)).rejected
        if regressed:
            findings.append(_finding("regression", new, _regressed(new, old, decision.adjusted)))
        elif why_another(new, old) is None and lower(new) > 2 * lower(old):
            findings.append(_finding("more certified", new, _more_certified(new, old)))
        if result.crashed:
            errors.append({"name": new["name"], "kind": "crashed", "message": result.reason, "replay": new["replay"]})
        elif result.lost or _is_silent(new, result):
            text = f"{_beside(new)['not_compared']}; this fails until the record is accepted"
            findings.append(_finding("not compared", new, text) | {"fails": True})
        else:
            findings += [_finding("not compared", new, text) for text in _not_compared(new, old)]
        findings += _changes(new, old)
    findings += [_finding("new", new, "not in the baseline") for new, old in pairs if old is None]
    findings += [_finding("missing", old, "in the baseline, but not in this record") for old in missing]
    return {
        "created": base.get("created"),
        "digest": digest(base),
        "alpha": alpha,
        "test": TEST,
        "findings": told_apart(findings, base["claims"], claims),
        "errors": errors,
    }


def _tested(new: ClaimRecord, old: ClaimRecord, result: Again) -> float | None:
    """Return the p-value of a regression, or None; put it beside the new claim with what it rests on."""
    beside: BeforeRecord = {
        "epsilon_lower": old["epsilon_lower"],
        "lower": old.get("lower"),
        "measure": measure(old),
        "p_value": None,
        "not_compared": None,
    }
    if result.counts is None:
        beside["not_compared"] = result.reason
    else:
        then = Frozen.from_json(old["frozen"]).counts
        beside["counts"], beside["counts_before"] = result.counts.to_json(), then.to_json()
        # In other measures than epsilon the odds of a right guess are not all that counts: the excess of right guesses
        # over wrong ones is tested beside them.
        stated = new["claimed"] if is_epsilon(measure_of(new)) else {"epsilon": 0.0, "delta": 1.0}
        beside["p_value"] = regression_p_value(result.counts, then, epsilon=stated["epsilon"], delta=stated["delta"])
        if beside["p_value"] is None:
            when = "any more" if then.guesses else "neither then nor now"
            beside["not_compared"] = f"the baseline's event names no world {when}"
    new["baseline"] = beside
    return beside["p_value"]


def _beside(new: ClaimRecord) -> BeforeRecord:
    """Return what `_tested` put beside a claim."""
    return cast(BeforeRecord, new["baseline"])


def _is_silent(new: ClaimRecord, result: Again) -> bool:
    """Tell whether an event that named worlds names none now: of outputs of another form, or of a much larger leak."""
    silent = result.counts is not None and not result.counts.guesses
    return silent and Counts.of_json(_beside(new)["counts_before"]).guesses > 0


def _more_certified(new: ClaimRecord, old: ClaimRecord) -> str:
    shown = "does not show it" if _beside(new)["not_compared"] is None else "was not compared"
    bound = f"{lower_words(measure_of(new), lower(new))}, was {at_least(lower(old))}"
    return f"{bound}: the baseline's event {shown}, another one does; {new['replay']}"


def _not_compared(new: ClaimRecord, old: ClaimRecord) -> list[str]:
    """Return why a claim, or else the power of its audit, was not compared with its baseline: one line at most."""
    reason = _beside(new)["not_compared"]
    if reason is not None:
        return [reason]
    changed = _power_changed(new, old)
    return [f"the power of its audit: {changed}"] if changed else []


def regression_p_value(new: Counts, old: Counts, *, epsilon: float = 0.0, delta: float = 0.0) -> float | None:
    """Return the p-value of "the event shows no more than it did"; None where there is no guess now.

    Where there was none before, it is that of "right guesses exceed wrong ones by no more than they did".

    Parameters
    ----------
    new, old : Counts
        Of one event, fixed before both, over independent runs with one share of the left world.
    epsilon, delta : float
        Claimed: where delta is 0, the odds of a right guess are all that counts.
    """
    from scipy.stats import fisher_exact

    table = [[counts.right, counts.guesses - counts.right] for counts in (new, old)]
    if not new.guesses:
        return None
    if not old.guesses:
        return _excess_p_value(new, old, 0.0)
    if max(map(sum, table)) > MOST_EXACT:
        return _excess_p_value(new, old, epsilon)
    p = float(fisher_exact(table, alternative="greater").pvalue)
    return p if delta == 0 else min(1.0, 2 * min(p, _excess_p_value(new, old, epsilon)))


def _excess_p_value(new: Counts, old: Counts, epsilon: float) -> float:
    """Return the p-value of "P(right) - e^epsilon P(wrong) did not grow", from four exact intervals."""
    factor = math.exp(min(epsilon, 700.0))

    def rejected(log_alpha: float) -> bool:
        quarter = math.exp(log_alpha) / 4
        now = [(counts.right, counts.guesses - counts.right, counts.runs) for counts in (new, old)]
        (right, wrong, runs), (was_right, was_wrong, before) = now
        least = clopper_pearson_lower(right, runs, quarter) - factor * clopper_pearson_upper(wrong, runs, quarter)
        most = clopper_pearson_upper(was_right, before, quarter)
        return bool(least > most - factor * clopper_pearson_lower(was_wrong, before, quarter))

    low, high = math.log(SMALLEST), -1e-9
    if not rejected(high):
        return 1.0
    return math.exp(bisect(lambda log_alpha: not rejected(log_alpha), low, high, steps=24)[1])


def _regressed(new: ClaimRecord, old: ClaimRecord, p: float) -> str:
    beside = _beside(new)
    rates = _rates(beside["counts"], beside["counts_before"])
    bound = f"{lower_words(measure_of(new), lower(new))}, was {at_least(lower(old))}"
    return f"{bound}; the baseline's event: {rates}, p-value {at_most(p, '.2g')}; {new['replay']}"


def _rates(now: CountsJson, then: CountsJson) -> str:
    """Return the rates of an event now and before: true and false positives, or right guesses where it names both."""
    new, old = Counts.of_json(now), Counts.of_json(then)
    here, there = (named_world({"method": "joint", "counts": counts}) for counts in (now, then))
    two_sided = old.left_upper + old.right_upper and old.left_lower + old.right_lower
    if two_sided or here is None or there is None or not all((here.runs, here.others, there.runs, there.others)):
        share, before = (f"{counts.right / counts.guesses:.1%}" if counts.guesses else "none" for counts in (new, old))
        return f"right guesses {share} (was {before})"
    true, false = f"{here.hits / here.runs:.1%}", f"{here.misses / here.others:.1%}"
    was_true, was_false = f"{there.hits / there.runs:.1%}", f"{there.misses / there.others:.1%}"
    return f"true positives {true} (was {was_true}), false positives {false} (was {was_false})"


def _changes(new: ClaimRecord, old: ClaimRecord) -> list[Said]:
    """Return what is weaker than before in one claim: its promise, or the power of its audit."""
    now, then = measure(new), measure(old)
    same_kind = same_unit(now, then, _PROMISED)
    more, less = (cast("Mapping[str, float]", stated) for stated in (now, then))
    changes = [
        _finding("weakened", new, f"claims {name} {number_text(more[name])}, was {number_text(less[name])}")
        for name in _PROMISED
        if same_kind and name in more and name in less and more[name] > less[name]
    ]
    if now["kind"] == then["kind"] == "profile" and _allows_more(now, then):
        changes.append(_finding("weakened", new, "the claimed profile allows events that it did not"))
    other = now["kind"] != then["kind"] or now.get("order") != then.get("order")
    if other and _allows_more(now, then) and not _allows_more(then, now):
        said = f"the claimed {claimed_words(now)} allows events that {claimed_words(then)} did not"
        changes.append(_finding("weakened", new, said))
    same = now == then and why_another(new, old) is None and _power_changed(new, old) is None
    if same and (lost := _catches_less(new, old)):
        changes.append(_finding("lost power", new, lost))
    if same and _blinder(new, old):
        sees, saw = (blind_words(claim["blind_spot"] or {}) for claim in (new, old))
        changes.append(_finding("lost power", new, f"blind spot: {sees}; before: {saw}"))
    return changes


def _allows_more(now: MeasureJson, then: MeasureJson) -> bool:
    """Tell whether a measure lets some event be likelier than another does; of one that is not known it is not."""
    q = [*(i / CURVE for i in range(CURVE + 1)), *(10.0**-power for power in range(3, _POWERS + 1))]
    try:
        most, before = (measure_from_json(stated).allowed(q) for stated in (now, then))
    except ValueError:
        return False
    return bool((most > before * (1 + 1e-9) + _ROUNDING).any())


def _blinder(new: ClaimRecord, old: ClaimRecord) -> bool:
    """Tell whether an audit misses twice the factor that it caught before: one step of the factors may be chance."""
    spot, before = new.get("blind_spot"), old.get("blind_spot")
    if not (spot and before):
        return False
    now, then = spot["factor"], before["factor"]
    return then is not None and (now is None or now > 2 * then)


def _power_changed(new: ClaimRecord, old: ClaimRecord) -> str | None:
    """Return what else than the runs changed what an audit would catch, in words: its confidence, its way to stop."""
    for name in ("confidence", "stop"):
        now, then = new.get(name), old.get(name)
        if now != then:
            return f"{name} changed ({_text(now)}, was {_text(then)})"
    return None


def _catches_less(new: ClaimRecord, old: ClaimRecord) -> str | None:
    """Return what an audit would catch less of than before; in measures that have no such value, the runs it lost."""
    if _gap(new) > SLACK * _gap(old):
        catches, caught = (_text(claim.get("detectable_epsilon")) for claim in (new, old))
        return f"at best it catches {catches}, before {caught} ({_budget(new)} runs, were {_budget(old)})"
    now, then = (claim.get("budget") or claim["runs"] for claim in (new, old))
    if math.isinf(_gap(new)) and now and then and now * SLACK < then:
        return f"its audit has {now:,} runs, it had {then:,}"
    return None


def _gap(claim: ClaimRecord) -> float:
    detectable = claim.get("detectable_epsilon")
    return math.inf if detectable is None else float(detectable - claim["claimed"]["epsilon"])


def _budget(claim: ClaimRecord) -> str:
    """Return the runs that an audit could spend: one that ended early has played fewer."""
    runs = claim["budget"] if claim["method"] == "anytime" else claim["runs"]
    return "unknown" if runs is None else f"{runs:,}"


def _text(value: object) -> str:
    return "nothing" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _finding(kind: str, claim: ClaimRecord, message: str) -> Said:
    return {"kind": kind, "name": claim["name"], "message": message, "claim": mark(claim), "replay": claim["replay"]}


def failed(record: RunRecord) -> bool:
    """Tell whether a record's comparison with its baseline fails the run."""
    return any(map(is_failing, (record.get("baseline") or {}).get("findings", ())))


def findings_by_title(record: RunRecord) -> list[tuple[str, list[list[str]]]]:
    """Return the findings under what they are called, each as its claim and its sentences on lines of their own."""
    findings = (record.get("baseline") or {}).get("findings", ())
    listed: dict[str, list[list[str]]] = {title: [] for title in TITLES.values()}
    for finding in findings:
        first, *more = finding["message"].split("; ")
        listed.setdefault(TITLES.get(finding["kind"], finding["kind"].capitalize()), []).append(
            [f"{called(finding)}: {first}", *more]
        )
    return [(title, rows) for title, rows in listed.items() if rows]


def lines(record: RunRecord) -> list[str]:
    """Return the findings, one line each."""
    findings = (record.get("baseline") or {}).get("findings", ())
    return [f"{finding['kind']}: {called(finding)}: {finding['message']}" for finding in findings]


def digest(record: RunRecord) -> str:
    """Return the hash of a baseline, as its file holds it."""
    return hashlib.sha256(json.dumps(slim(record), sort_keys=True).encode()).hexdigest()


def made_against(record: RunRecord, base: RunRecord) -> bool:
    """Tell whether a record holds its comparison with this baseline."""
    return (record.get("baseline") or {}).get("digest") == digest(base)


def slim(record: RunRecord) -> dict[str, object]:
    """Return a record as a baseline: without the data of figures and without its own comparison."""
    claims = [{k: v for k, v in claim.items() if k not in ("evidence", "baseline")} for claim in record["claims"]]
    return {**{k: v for k, v in record.items() if k != "baseline"}, "claims": claims}
