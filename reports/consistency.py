"""Records that contradict themselves: what the counts of a claim decide is computed again, and compared.

A record is data that anybody may have edited. Its counts fix the bound, the p-value and the verdict of each claim,
so no edit of one of these alone agrees with the others. What no other number of a record fixes, such as seconds or
thresholds, is not looked at, and neither are figures. A field that is missing or null says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from msgspec import convert

from ..audit.canaries.score_audit import INPUTS, concluded
from ..audit.execution.execution import Budget
from ..audit.execution.progress import steps
from ..audit.record_types import ClaimRecord, Design, RunRecord, ScoresJson
from ..audit.statistics import certificates, sequential
from ..audit.statistics.bounds.power import detectable_epsilon
from ..audit.statistics.bounds.variational import StepFunction
from ..audit.statistics.canary_scores import CanaryScores, coins_of
from ..audit.statistics.digits import exceeds
from ..audit.statistics.events import NO_EVENT, UNUSED, Certificate, Counts, Event
from ..audit.statistics.graded_bets import GRADES
from ..audit.statistics.measure_words import is_epsilon
from ..audit.statistics.multiplicity import P_VALUE_DIGITS, holm
from ..audit.verdicts.blind_spot import LARGEST, TOO_FEW, BlindSpot
from ..audit.verdicts.verdict import Result, too_few
from ..errors import hinted
from ..mechanisms.claim import Claim
from ..mechanisms.measures.stated import measure_from_json
from .extras import UNCOUNTED, translated
from .headline import headline
from .reading import by_holm, exact_level, is_exceeded, lower, measure_of
from .record import counted, promised
from .sanitise import finite
from .score_record import p_value_of
from .upper_words import least_binding

if TYPE_CHECKING:
    from ..mechanisms.measures.measure import Measure

#: How far two computations of one number may be apart, relatively: processors and libraries round otherwise.
CLOSE = 1e-6
#: And absolutely, where differences of larger numbers are near 0; p-values are none.
_DUST = 1e-12
#: A record rounds its confidence to so much: alpha is known to that.
_ALPHA = 5e-13


class Contradiction(NamedTuple):
    """A field of a record that does not follow from the others."""

    field: str
    message: str


def check_consistent(record: RunRecord, file: str) -> None:
    """Raise ValueError, naming the claim and the field, for a record that contradicts itself."""
    for i, claim in enumerate(steps(record["claims"], "checking the record")):
        where = f"claims[{i}]"
        try:
            contradiction = next(of_claim(claim), None)
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:  # its numbers are nobody's
            text = " ".join(f"{type(error).__name__}: {error}".split())
            raise ValueError(f"{file!r} cannot be checked: {where} of {claim['name']}: {text}") from None
        if contradiction is not None:
            text = f"{where}.{contradiction.field} of {claim['name']} {contradiction.message}"
            raise hinted(ValueError(f"{file!r} contradicts itself: {text}"), "audit it again")
    for field, message in _of_record(record):
        raise hinted(ValueError(f"{file!r} contradicts itself: {field} {message}"), "audit it again")


def of_claim(claim: ClaimRecord) -> Iterator[Contradiction]:
    """Yield what does not follow in one claim."""
    data = measure_of(claim)
    measure = measure_from_json({**data, "delta": data.get("delta") or 0.0} if is_epsilon(data) else data)
    epsilon, delta = measure.stated
    yield from _compared(claim, {"claimed": {"epsilon": epsilon, "delta": delta}, "measure": measure.to_json()})
    yield from _of_replay(claim)
    frozen = cast("Mapping[str, Any]", claim.get("frozen") or {})
    for place, holder in (("", claim), ("frozen.", frozen)):
        with suppress(KeyError):
            yield from _compared(holder, {"counts": Counts.of_json(holder.get("counts") or {}).to_json()}, place)
    if claim.get("scores"):
        yield from _of_canaries(claim)
    result = None
    if claim.get("counts") and claim.get("confidence") is not None:
        result, contradictions = _rebuilt(claim, measure)
        yield from contradictions
    if claim.get("epsilon_lower") is not None:
        yield from _of_verdict(claim, measure, result)
        yield from _of_blind_spot(claim, measure)


def _rebuilt(claim: ClaimRecord, measure: Measure) -> tuple[Result | None, list[Contradiction]]:
    """Return a result of the claim's counts, and what its record says otherwise; None where they do not tell it."""
    try:
        counts = Counts.of_json(claim["counts"])
    except KeyError:
        return None, []
    if not counts.runs:
        return None, []
    if claim.get("scores"):
        result = _of_coins(claim, measure)
        return result, [*_of_scores(claim, result)]
    if claim.get("method") == "anytime":
        result = _of_bets(claim, measure, counts)
        return result, [*_of_early(claim, counts, result), *_compared(claim, _decided(result))]
    readings = [_of_event(claim, measure, counts, event) for event in _events(claim, counts)]
    if not readings:
        return None, [Contradiction("event", "does not fit its counts")]
    differences = [[*_compared(claim, _decided(result), rel=_tolerance(claim))] for result in readings]
    return min(zip(readings, differences, strict=True), key=lambda reading: len(reading[1]))


def _decided(result: Result) -> dict[str, Any]:
    """Return what a record has of a result that its counts decide, by the functions that wrote it."""
    certificate = result.certificate
    return {
        **promised(result),
        "counts": counted(result)["counts"],
        "runs": result.runs,
        "two_interval_bound": None if certificate.method in UNCOUNTED else certificate.two_interval_bound,
        "translation": translated(result),
        "p_value": p_value_of(result),
        "detectable_epsilon": finite(result.detectable_epsilon),
    }


def _result(claim: ClaimRecord, measure: Measure, certificate: Certificate, event: Event, **power: Any) -> Result:
    runs = certificate.counts.runs
    pilot = claim.get("pilot_runs")
    pilot = int(claim.get("runs") or runs) - runs if pilot is None else pilot
    return Result(
        Claim(measure=measure), certificate, INPUTS, event, "", runs + pilot, pilot, **power, seed=0, seconds=0.0
    )


def _of_event(claim: ClaimRecord, measure: Measure, counts: Counts, event: Event) -> Result:
    """Return the result of a number of runs that was fixed before."""
    alpha, (epsilon, delta) = _alpha(claim), measure.stated
    certificate = certificates.certify_claim(measure, event, counts, alpha=alpha)
    ceiling = certificates.ceiling(measure, counts.runs, alpha=alpha)
    runs, detectable = int(claim.get("runs") or counts.runs), math.nan
    if measure.is_epsilon:
        detectable = detectable_epsilon(epsilon, runs, delta=delta, alpha=alpha)
    return _result(claim, measure, certificate, event, detectable_epsilon=detectable, ceiling=ceiling)


def _events(claim: ClaimRecord, counts: Counts) -> Iterator[Event]:
    """Yield the events that a record may mean: JSON has no number for an unused and for an infinite threshold."""
    event: Mapping[str, Any] = claim.get("event") or {}
    function = event.get("function")
    if function is not None:
        edges = [math.inf if edge is None else edge for edge in function["edges"]]
        edges[:1] = [-math.inf if edge is None else edge for edge in function["edges"][:1]]
        function = convert({**function, "edges": edges}, StepFunction)
        if len(counts.tally) != 2 * len(function.values):
            raise ValueError(f"its tally must have {2 * len(function.values)} numbers")
    method, share = str(claim.get("method") or "guess"), event.get("share", 0.5)
    infinite = (("lower", -math.inf), ("upper", math.inf))
    sides = [(UNUSED, end) if event.get(name) is None else (event[name],) for name, end in infinite]
    for low, high in product(*sides):
        tails = (counts.left_lower + counts.right_lower, low), (counts.left_upper + counts.right_upper, high)
        one_sided = math.isnan(low) != math.isnan(high)
        if (one_sided or (method == "guess" and not low >= high)) and not any(
            n and math.isnan(end) for n, end in tails
        ):
            yield Event(low, high, method, share, function)


def _of_bets(claim: ClaimRecord, measure: Measure, counts: Counts) -> Result:
    """Return the result of an audit that stopped early, with the bound that its record states."""
    alpha, (epsilon, delta) = _alpha(claim), measure.stated
    certificate = Certificate(float(claim.get("epsilon_lower") or 0.0), "anytime", delta, alpha, counts, 0.0)
    runs = int(claim.get("budget") or claim.get("runs") or counts.runs) - int(claim.get("pilot_runs") or 0)
    ceiling = sequential.ceiling_epsilon(epsilon, runs, delta=delta, alpha=alpha)
    detectable = sequential.detectable_epsilon(epsilon, runs, delta=delta, alpha=alpha)
    return _result(claim, measure, certificate, NO_EVENT, detectable_epsilon=detectable, ceiling=ceiling)


def _of_early(claim: ClaimRecord, counts: Counts, result: Result) -> Iterator[Contradiction]:
    """Yield whether an early bound is none: the largest on the way, and just above the claim that it falsified."""
    if len(counts.tally) != 2 * GRADES or sum(counts.tally) > counts.runs:
        yield Contradiction("counts.tally", f"must have {2 * GRADES} numbers of at most {counts.runs} runs")
        return
    bound, epsilon = result.epsilon_lower, result.claim.epsilon
    last = sequential.AnytimeBets(epsilon, result.claim.delta).epsilon_lower(counts, result.certificate.alpha)
    if bound < last * (1 - CLOSE) or bound > epsilon * (1 + CLOSE):
        yield from _compared(
            claim, {"epsilon_lower": max(last, math.nextafter(epsilon, math.inf) * (bound > epsilon))}
        )
    if (budget := claim.get("budget")) is not None and result.runs > budget:
        yield Contradiction("runs", f"is {result.runs}, of a budget of {budget}")


def _of_coins(claim: ClaimRecord, measure: Measure) -> Result:
    """Return the result of scores of canaries; where no coins are kept, as a perfect attack would have scored them."""
    scores, seed = cast(ScoresJson, claim["scores"]), int(claim.get("seed") or 0)
    coins = coins_of(scores)
    if coins is None:
        coins = np.arange(scores["canaries"]) < scores["inserted"]
    canaries = CanaryScores.of_order(cast(Design, claim["design"]), coins, seed=seed)
    return concluded(canaries, Claim(measure=measure), Budget(seed=seed, confidence=1 - _alpha(claim)), 0.0)


def _of_canaries(claim: ClaimRecord) -> Iterator[Contradiction]:
    """Yield what numbers and ROC curve of scores of canaries say otherwise than their coins."""
    scores = cast(ScoresJson, claim["scores"])
    yield from _compared(claim, {"runs": scores["canaries"], "counts": {"runs": scores["canaries"]}})
    yield from _compared(claim, {"counts": {"runs_left": scores["inserted"]}})
    sides = scores["roc"]["inserted"], scores["roc"]["held_out"]
    totals = {"inserted": scores["inserted"], "held_out": scores["canaries"] - scores["inserted"]}
    for (name, total), side in zip(totals.items(), sides, strict=True):
        if len(side) != len(sides[0]) or side != sorted(side) or (side or [0])[-1] != total:
            yield Contradiction(f"scores.roc.{name}", f"must ascend to {total}, in {len(sides[0])} steps")
    if (coins := coins_of(scores)) is not None:
        sums = np.cumsum(coins)
        expected = [int(sums[ins + outs - 1]) if ins + outs else 0 for ins, outs in zip(*sides, strict=True)]
        yield from _compared(claim, {"scores": {"inserted": int(coins.sum()), "roc": {"inserted": expected}}})


def _of_scores(claim: ClaimRecord, result: Result) -> Iterator[Contradiction]:
    """Yield what does not follow from the coins of canaries; without them, from a perfect attack."""
    if cast(ScoresJson, claim["scores"]).get("coins") is not None:
        # Equal scores have no threshold between them: which one the counts are of, the coins do not tell.
        yield from _compared(claim, {**_decided(result), "counts": claim["counts"]}, rel=_tolerance(claim))
    elif lower(claim) > result.lower * (1 + CLOSE):
        yield Contradiction("lower", f"is {lower(claim):.6g}, and a perfect attack has {result.lower:.6g}")


def _of_verdict(claim: ClaimRecord, measure: Measure, result: Result | None) -> Iterator[Contradiction]:
    """Yield whether the verdict is another than the bound says, or than Holm's procedure."""
    verdict, is_above = claim["verdict"], lower(claim) > measure.level
    untested, reason = bool(claim.get("untested")), claim.get("reason")
    lacks_runs = reason == TOO_FEW
    if result is not None:
        alpha = result.certificate.alpha
        lacks_runs = too_few(result.claim, result.certificate.counts.runs, alpha, ceiling=result.ceiling)
    if by_holm(claim):
        test = claim["holm"]
        yield from _compared(claim, {"holm": {"p_value": claim.get("p_value")}})
        if is_above or test["p_value"] > test["level"] * (1 + CLOSE):
            yield Contradiction("holm", "falsifies nothing here")
    expected = "FALSIFIED" if is_above or by_holm(claim) else "UNDERPOWERED" if lacks_runs or untested else "SURVIVED"
    if verdict != expected:
        yield Contradiction("verdict", f"is {verdict}, and {expected} follows from the rest")
    if untested and verdict == "FALSIFIED":
        yield Contradiction("untested", f"is true of a claim that is {verdict}")
    if "reason" in claim and (
        (reason is None) == (verdict == "UNDERPOWERED")
        or (reason == TOO_FEW) != (lacks_runs and verdict == "UNDERPOWERED")
        or untested != (reason not in (None, TOO_FEW))
    ):
        yield Contradiction("reason", f"is {reason!r} of a claim that is {verdict}")


def _of_blind_spot(claim: ClaimRecord, measure: Measure) -> Iterator[Contradiction]:
    """Yield what the factors that were tried do not say, and whether that makes the audit no test."""
    spot = claim.get("blind_spot")
    if not spot or not spot.get("bounds"):
        return
    bounds = tuple((factor, bound) for factor, bound in spot["bounds"])
    factor = min((factor for factor, bound in bounds if bound > measure.level), default=None)
    slack = spot.get("true_to"), spot.get("false_at")
    rebuilt = BlindSpot(factor, bounds, None, 0.0, "", *slack, limit=spot.get("limit") or LARGEST)
    fields = cast("dict[str, Any]", rebuilt.to_json())
    yield from _compared(claim, {"blind_spot": {name: fields[name] for name in ("factor", "missed", "tried")}})
    decided = claim["verdict"] == "FALSIFIED" or claim.get("reason") == TOO_FEW
    untested = not decided and (rebuilt.untested or is_exceeded(claim) or bool(claim.get("rare")))
    if bool(claim.get("untested")) != untested and not (rebuilt.untested and _is_bounded(claim, measure)):
        yield Contradiction("untested", f"is {bool(claim.get('untested'))}, and its blind spot says {untested}")


def _is_bounded(claim: ClaimRecord, measure: Measure) -> bool:
    """Tell whether a trace or an exact law may bound what was audited by no more than the claim."""
    on_pair = bool(claim.get("pair_given"))
    upper = least_binding(claim, on_pair=on_pair)
    by_law = on_pair and exact_level(claim) is not None and not is_exceeded(claim)
    return by_law or (upper is not None and not exceeds(upper, measure.level))


def _of_replay(claim: ClaimRecord) -> Iterator[Contradiction]:
    """Yield which numbers of an audit its command states otherwise."""
    options = dict(pairwise((claim.get("replay") or "").split()))
    claimed = ("epsilon", "delta") if is_epsilon(measure_of(claim)) else ()
    for name in ("seed", "confidence", "rounds", "arms", "runs", *claimed):
        with suppress(KeyError, ValueError):
            number = float(options[f"--{name}"])
            entry = {"claimed": {name: number}} if name in claimed else {"budget" if name == "runs" else name: number}
            yield from _compared(claim, entry)


def _of_record(record: RunRecord) -> Iterator[Contradiction]:
    claims = record["claims"]
    yield from _compared(record, {"headline": headline(claims)})
    ledger = record.get("ledger_of_tests") or {}
    tests = ledger.get("tests")
    if tests is None:
        return
    planned, alpha = int(ledger.get("planned") or len(claims)), ledger.get("family_wise_error")
    if len(tests) != len(claims) or planned < len(claims):
        yield Contradiction("ledger_of_tests", f"has {len(tests)} of {planned} tests, of {len(claims)} claims")
        return
    decided: list[dict[str, Any]] = [{} for _ in claims]
    if ledger.get("method") == "Holm" and alpha is not None and 0 < alpha < 1:
        decided = [vars(row) for row in holm([float(c.get("p_value") or 1.0) for c in claims], alpha, planned=planned)]
    for i, (test, claim, decision) in enumerate(zip(tests, claims, decided, strict=True)):
        expected = {"p_value": claim.get("p_value"), "epsilon": claim["claimed"]["epsilon"], **decision}
        expected["rejected"] = claim["verdict"] == "FALSIFIED"
        yield from _compared(test, expected, f"ledger_of_tests.tests[{i}].")


def _alpha(claim: ClaimRecord) -> float:
    """Return the error of a claim's audit: its record rounds it in its confidence, and not in a translation."""
    rounded = 1 - claim["confidence"]
    exact = cast("Mapping[str, Any]", claim.get("translation") or {}).get("alpha")
    return float(exact) if exact is not None and 0 < exact < 1 and abs(exact - rounded) <= 2 * _ALPHA else rounded


def _tolerance(claim: ClaimRecord) -> float:
    """Return how far two computations may be apart that start from the rounded confidence."""
    return CLOSE + min(1e-3, _ALPHA / _alpha(claim))


def _compared(recorded: Any, expected: Any, place: str = "", *, rel: float = CLOSE) -> Iterator[Contradiction]:
    """Yield the values that are others than those that follow, field by field; what is not stated is none."""
    if recorded is None:
        return
    if isinstance(expected, Mapping) and isinstance(recorded, Mapping):
        for name in (name for name in expected if name in recorded):
            yield from _compared(recorded[name], expected[name], f"{place}{name}.", rel=rel)
        return
    if isinstance(expected, list) and isinstance(recorded, list) and len(expected) == len(recorded):
        for i, pair in enumerate(zip(recorded, expected, strict=True)):
            yield from _compared(*pair, f"{place.removesuffix('.')}[{i}].", rel=rel)
        return
    field = place.removesuffix(".")
    agrees = recorded == expected
    if isinstance(recorded, int | float) and isinstance(expected, int | float):
        is_p = field.endswith(("p_value", "adjusted"))  # searched on a logarithmic scale, to so many nats
        close = {"rel_tol": rel + P_VALUE_DIGITS} if is_p else {"rel_tol": rel, "abs_tol": _DUST}
        agrees = math.isclose(recorded, expected, **close)
    if not agrees:
        text, other = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in (recorded, expected))
        yield Contradiction(field, f"is {text}, and {other} follows from the rest")
