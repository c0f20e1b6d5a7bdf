"""Records that contradict themselves: what the counts of a claim decide is computed again, and compared.

A record is data that anybody may have edited. Its counts fix the bound, the p-value and the verdict of each claim,
so no edit of one of these alone agrees with the others. What no other number of a record fixes, such as seconds or
thresholds, is not looked at, and neither are figures.

Early stopping keeps the largest bound on the way, and not only the last one: the counts give its least value, and as
many guesses, all of them correct, its largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..audit.record_types import ClaimRecord, RunRecord
from ..audit.statistics import certificates, sequential
from ..audit.statistics.bounds import intervals, power
from ..audit.statistics.bounds.variational import StepFunction
from ..audit.statistics.digits import exceeds
from ..audit.statistics.events import UNUSED, Certificate, Counts, Event, bound_of
from ..audit.statistics.graded_bets import GRADES
from ..audit.statistics.measure_words import is_epsilon
from ..audit.statistics.multiplicity import P_VALUE_DIGITS, holm, p_value, unproved_p_value
from ..audit.verdicts.blind_spot import LARGEST, TOO_FEW, BlindSpot
from ..errors import hinted
from ..mechanisms.claim import Claim
from ..mechanisms.measures.stated import measure_from_json
from .headline import headline
from .reading import by_holm, exact_level, is_exceeded, is_untested, lower, measure_of, reason_of
from .score_consistency import due_of_scores, underpowered_by_scores
from .upper_words import least_binding

if TYPE_CHECKING:
    from ..audit.statistics.bounds.variational import StepsJson
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
    for i, claim in enumerate(record["claims"]):
        where = f"claims[{i}]"
        try:
            wrong = next(of_claim(claim), None)
        except (ArithmeticError, KeyError, TypeError, ValueError) as error:  # its numbers are nobody's
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise ValueError(f"{file!r} cannot be checked: {where} of {claim['name']}: {said}") from None
        if wrong is not None:
            said = f"{where}.{wrong.field} of {claim['name']} {wrong.message}"
            raise hinted(ValueError(f"{file!r} contradicts itself: {said}"), "audit it again")
    for field, message in _of_record(record):
        raise hinted(ValueError(f"{file!r} contradicts itself: {field} {message}"), "audit it again")


def of_claim(claim: ClaimRecord) -> Iterator[Contradiction]:
    """Yield what does not follow in one claim."""
    said, claimed = measure_of(claim), claim["claimed"]
    measure = measure_from_json({**said, "delta": said.get("delta") or 0.0} if is_epsilon(said) else said)
    own: Mapping[str, Any] = claim.get("measure") or {}
    for name, due in zip(("epsilon", "delta"), measure.stated, strict=True):
        yield from _differs(f"claimed.{name}", cast("Mapping[str, Any]", claimed).get(name) or 0.0, due)
        if is_epsilon(said) and name in own:
            yield from _differs(f"measure.{name}", own[name] or 0.0, due)
    yield from _of_replay(claim)
    yield from _of_counts(claim, measure)
    if claim.get("epsilon_lower") is None:
        return
    if is_epsilon(said) and claim.get("lower") is not None:
        yield from _differs("lower", claim["lower"], claim.get("epsilon_lower"))
    yield from _of_verdict(claim, measure)
    if _is_recent(claim):
        yield from _of_blind_spot(claim, measure)


def _of_counts(claim: ClaimRecord, measure: Measure) -> Iterator[Contradiction]:
    """Yield what does not follow from the counts of a claim, where it has all of them."""
    frozen = cast("Mapping[str, Any]", claim.get("frozen") or {})
    for place, tally in (("counts", claim.get("counts")), ("frozen.counts", frozen.get("counts"))):
        known = cast("Mapping[str, Any]", tally or {})
        sums = (("right", ("left_upper", "right_lower")), ("guesses", ("right", "left_lower", "right_upper")))
        for name, parts in sums:
            if {name, *parts} <= known.keys():
                yield from _differs(f"{place}.{name}", known[name], sum(known[part] for part in parts))
    try:
        counts = Counts.of_json(claim.get("counts") or {})
    except KeyError:
        return
    if claim.get("pilot_runs") is not None:
        yield from _differs("runs", claim.get("runs"), counts.runs + cast(int, claim["pilot_runs"]))
    if not counts.runs or claim.get("confidence") is None:
        return
    if claim.get("scores"):
        yield from _of_scores(claim, measure, counts)
        return
    early = claim.get("method") == "anytime"
    yield from (_of_early(claim, measure, counts) if early else _of_event(claim, measure, counts))
    yield from _of_power(claim, measure, counts)


def _of_scores(claim: ClaimRecord, measure: Measure, counts: Counts) -> Iterator[Contradiction]:
    """Yield what does not follow from scores of canaries."""
    alphas = _alphas(claim)
    for field, stated, due in due_of_scores(claim, measure, alphas):
        yield from _outside(field, stated, due) if isinstance(stated, float) else _differs(field, stated, due[0])
    few = claim.get("reason") == TOO_FEW
    if claim["verdict"] != "FALSIFIED" and few != underpowered_by_scores(claim, measure, alphas[0]):
        said = "not enough" if not few else "enough"
        yield Contradiction("reason", f"is {claim.get('reason')!r}, and {counts.runs} canaries are {said}")


def _of_verdict(claim: ClaimRecord, measure: Measure) -> Iterator[Contradiction]:
    """Yield whether the verdict is another than the bound says, or than Holm's procedure."""
    verdict, above = claim["verdict"], lower(claim) > measure.level
    if above and verdict != "FALSIFIED":
        yield Contradiction("verdict", f"is {verdict}, and its bound {lower(claim):.6g} is above what it claims")
    if verdict == "FALSIFIED" and not above and not by_holm(claim):
        yield Contradiction("verdict", f"is FALSIFIED, and its bound {lower(claim):.6g} is not above what it claims")
    if by_holm(claim):
        test = claim["holm"]
        yield from _differs("holm.p_value", test["p_value"], claim.get("p_value"))
        if verdict != "FALSIFIED" or above or test["p_value"] > test["level"] * (1 + CLOSE):
            yield Contradiction("holm", "falsifies nothing here")
    untested = bool(claim.get("untested"))
    if untested and verdict == "FALSIFIED":
        yield Contradiction("untested", f"is true of a claim that is {verdict}")
    if "reason" in claim:  # before version 0.2 there was none, and what was untested was SURVIVED
        reason = claim["reason"]
        if (reason is None) == (verdict == "UNDERPOWERED"):
            yield Contradiction("reason", f"is {reason!r} of a claim that is {verdict}")
        if untested != (reason not in (None, TOO_FEW)):
            yield Contradiction("untested", f"is {untested}, and the reason is {reason!r}")


def _of_blind_spot(claim: ClaimRecord, measure: Measure) -> Iterator[Contradiction]:
    """Yield what the factors that were tried do not say, and whether that makes the audit no test."""
    spot = claim.get("blind_spot")
    if spot and spot.get("bounds"):
        falsified = [factor for factor, bound in spot["bounds"] if bound > measure.level]
        yield from _differs("blind_spot.factor", spot["factor"], min(falsified, default=None))
        slack = spot.get("true_to"), spot.get("false_at")
        bounds = tuple((factor, bound) for factor, bound in spot["bounds"])
        limit = spot.get("limit") or LARGEST
        known = BlindSpot(spot["factor"], bounds, None, spot.get("alpha") or 0.0, "", *slack, limit=limit)
        for name, due in (("missed", known.missed), ("tried", max(factor for factor, _ in bounds))):
            yield from _differs(f"blind_spot.{name}", cast("dict[str, Any]", spot).get(name), due)
        decided = claim["verdict"] == "FALSIFIED" or reason_of(claim) == TOO_FEW
        due = not decided and (known.untested or is_exceeded(claim) or bool(claim.get("rare")))
        if bool(claim.get("untested")) != due and not (known.untested and _is_bounded(claim, measure)):
            yield Contradiction("untested", f"is {bool(claim.get('untested'))}, and its blind spot says {due}")


def _is_bounded(claim: ClaimRecord, measure: Measure) -> bool:
    """Tell whether a trace or an exact law may bound what was audited by no more than the claim."""
    given = bool(claim.get("pair_given"))
    upper = least_binding(claim, on_pair=given)
    by_law = given and exact_level(claim) is not None and not is_exceeded(claim)
    return by_law or (upper is not None and not exceeds(upper, measure.level))


def _of_replay(claim: ClaimRecord) -> Iterator[Contradiction]:
    """Yield which numbers of an audit its command states otherwise."""
    words = (claim.get("replay") or "").split()
    stated = dict(pairwise(words))
    facts = {name: cast("Mapping[str, Any]", claim).get(name) for name in ("seed", "confidence", "rounds", "arms")}
    facts |= {"runs": claim.get("budget")}
    facts |= (
        {f"claimed.{name}": value for name, value in claim["claimed"].items()} if is_epsilon(measure_of(claim)) else {}
    )
    for name, value in facts.items():
        with suppress(KeyError, ValueError):
            due = float(stated[f"--{name.removeprefix('claimed.')}"])
            yield from _differs("budget" if name == "runs" else name, due if value is None else value, due)


def _is_recent(claim: ClaimRecord) -> bool:
    """Tell whether what is derived from a claim was computed as it is now: version 0.1.0 had other ways."""
    return "unread_bits" in claim


def _of_event(claim: ClaimRecord, measure: Measure, counts: Counts) -> Iterator[Contradiction]:
    """Yield which bounds and p-value are not those of the counts: by one reading of the event all must be."""
    try:
        readings = list(_events(claim, counts))
    except (KeyError, TypeError, ValueError) as error:
        yield Contradiction("event", f"cannot be read ({type(error).__name__}: {error})")
        return
    found = [list(_of_reading(claim, measure, event, counts)) for event in readings]
    if not found:
        yield Contradiction("event", "does not fit its counts")
    elif all(found):
        yield from min(found, key=len)


def _events(claim: ClaimRecord, counts: Counts) -> Iterator[Event]:
    """Yield the events that a record may mean: JSON has no number for an unused and for an infinite threshold."""
    stated: Mapping[str, Any] = claim.get("event") or {}
    function = stated.get("function")
    if function is not None:
        edges = [math.inf if edge is None else edge for edge in function["edges"]]
        edges[:1] = [-math.inf if edge is None else edge for edge in function["edges"][:1]]
        function = StepFunction.of_json(cast("StepsJson", {**function, "edges": edges}))
        if len(counts.tally) != 2 * len(function.values):
            raise ValueError(f"its tally must have {2 * len(function.values)} numbers")
    method, share = str(claim.get("method") or "guess"), stated.get("share", 0.5)
    sides = [(UNUSED, infinite) if stated.get(name) is None else (stated[name],) for name, infinite in _INFINITE]
    for low, high in product(*sides):
        named = (counts.left_lower + counts.right_lower, low), (counts.left_upper + counts.right_upper, high)
        one_sided = math.isnan(low) != math.isnan(high)
        if (one_sided or (method == "guess" and not low >= high)) and not any(
            n and math.isnan(end) for n, end in named
        ):
            yield Event(low, high, method, share, function)


_INFINITE = (("lower", -math.inf), ("upper", math.inf))


def _of_reading(claim: ClaimRecord, measure: Measure, event: Event, counts: Counts) -> Iterator[Contradiction]:
    alphas = _alphas(claim)
    made = [certificates.certify_claim(measure, event, counts, alpha=alpha) for alpha in alphas]
    delta = measure.stated[1]
    # Until version 0.1.0 joint bounds were not proved: the same search without its last step.
    unproved = [bound_of(event, counts, delta=delta, alpha=alpha, margins=()) for alpha in alphas]
    of_epsilon = [one.epsilon_lower for one in made]
    yield from _outside("epsilon_lower", claim.get("epsilon_lower"), of_epsilon, unproved)
    if not measure.is_epsilon:
        yield from _outside("lower", claim.get("lower"), [one.lower for one in made])
    yield from _outside(
        "two_interval_bound", claim.get("two_interval_bound"), [one.two_interval_bound for one in made]
    )
    if claim.get("p_value") is not None:
        yield from _of_p_value(cast(float, claim["p_value"]), measure, event, made)
    told = claim.get("translation")
    if told and _is_recent(claim):
        yield from _outside("translation.alpha", told.get("alpha"), alphas)
        due = certificates.translation(event, counts, alpha=alphas[0])
        yield from _of_translation(cast("Mapping[str, Any]", told), cast("Mapping[str, Any]", due or {}))


def _of_p_value(stated: float, measure: Measure, event: Event, made: Sequence[Certificate]) -> Iterator[Contradiction]:
    due = [p_value(Claim(measure=measure), event, one) for one in made]
    unproved = [unproved_p_value(measure, event, one.counts) for one in made] if event.function is None else []
    # It is searched for on a logarithmic scale, to so many nats.
    if not any(abs(math.log(max(stated, 1e-300) / p)) <= P_VALUE_DIGITS + CLOSE for p in (*due, *unproved)):
        yield Contradiction("p_value", f"is {stated:.6g}, and its counts give {due[0]:.6g}")


def _of_translation(told: Mapping[str, Any], due: Mapping[str, Any]) -> Iterator[Contradiction]:
    for name in ("p_lower", "q_upper", "delta", "mu", "rho"):
        if name in told:
            yield from _differs(f"translation.{name}", told[name], due.get(name))
    for i, (stated, other) in enumerate(zip(told["epsilon"], due.get("epsilon", ()), strict=False)):
        for value, number in zip(stated, other, strict=True):
            yield from _differs(f"translation.epsilon[{i}]", value, number)


def _of_early(claim: ClaimRecord, measure: Measure, counts: Counts) -> Iterator[Contradiction]:
    """Yield what an audit that stopped early cannot have come to."""
    alpha, (epsilon, delta) = _alphas(claim)[0], measure.stated
    bets, plain = sequential.AnytimeBets(epsilon, delta), sequential.Bets(epsilon, delta)
    bound = float(claim.get("epsilon_lower") or 0.0)
    best = Counts(counts.runs, left_upper=counts.runs, tally=(counts.runs, *(0,) * (2 * GRADES - 1)))
    most = max(bets.epsilon_lower(best, alpha), _plain_lower(plain, counts.runs, alpha))
    if bound > max(most, math.nextafter(epsilon, math.inf)) * (1 + CLOSE):
        yield Contradiction("epsilon_lower", f"is {bound:.6g}, and {counts.runs} correct guesses give {most:.6g}")
    wrong = counts.guesses - counts.right
    if counts.tally:
        if len(counts.tally) != 2 * GRADES or sum(counts.tally) > counts.runs:
            yield Contradiction("counts.tally", f"must have {2 * GRADES} numbers of at most {counts.runs} runs")
            return
        least = bets.epsilon_lower(counts, alpha)
        wealth = bets.log_wealth_of(counts, epsilon)
    else:  # of version 0.1.0, which did not bet in grades
        least, wealth = 0.0, float(plain.log_wealth(counts.right, wrong, counts.runs, epsilon))
    if bound < least * (1 - CLOSE):
        yield Contradiction("epsilon_lower", f"is {bound:.6g}, and its counts give {least:.6g}")
    if counts.tally and bound > epsilon * (1 + CLOSE):  # it ended there
        yield from _differs("epsilon_lower", bound, max(least, math.nextafter(epsilon, math.inf)))
    if claim.get("p_value") is not None:
        yield from _differs("p_value", claim["p_value"], max(1e-100, min(1.0, math.exp(-max(0.0, wealth)))))


def _plain_lower(bets: sequential.Bets, runs: int, alpha: float) -> float:
    """Return what bets on guesses alone certify from so many correct ones."""
    low, high = 0.0, 1.0
    while float(bets.log_wealth(runs, 0, runs, high)) >= -math.log(alpha):
        low, high = high, 2 * high
    return high if low or high == 1.0 else 0.0


def _of_power(claim: ClaimRecord, measure: Measure, counts: Counts) -> Iterator[Contradiction]:
    """Yield whether so many runs could have falsified the claim, and the verdict says otherwise; and "at best"."""
    alpha, (epsilon, delta) = _alphas(claim)[0], measure.stated
    runs, budget = counts.runs, claim.get("budget")
    if claim.get("method") == "anytime":
        if budget is None:
            return
        runs = budget - int(claim.get("pilot_runs") or 0)
        if runs < 1:
            yield Contradiction("budget", f"is {budget}, and the pilot alone had {claim['pilot_runs']} runs")
            return
        ceilings = [sequential.ceiling_epsilon(epsilon, runs, delta=delta, alpha=alpha)]
        detectable = sequential.detectable_epsilon(epsilon, runs, delta=delta, alpha=alpha)
    elif measure.is_epsilon:
        # Until version 0.1.0 only guesses were thought of.
        guessed = float(intervals.epsilon_guess(runs, runs, runs, delta=delta, alpha=alpha))
        ceilings = [power.ceiling_epsilon(runs, delta=delta, alpha=alpha), guessed]
        detectable = power.detectable_epsilon(epsilon, int(claim.get("runs") or runs), delta=delta, alpha=alpha)
    else:
        ceilings, detectable = [certificates.ceiling(measure, runs, alpha=alpha)], math.nan
    if budget is not None and int(claim.get("runs") or 0) > budget:
        yield Contradiction("runs", f"is {claim['runs']}, of a budget of {budget}")
    if claim["verdict"] != "FALSIFIED":
        decided = {"SURVIVED" if ceiling > measure.level else "UNDERPOWERED" for ceiling in ceilings}
        close = any(math.isclose(ceiling, measure.level, rel_tol=CLOSE) for ceiling in ceilings)
        by_runs = "SURVIVED" if is_untested(claim) else claim["verdict"]
        if by_runs not in decided and not close:
            yield Contradiction("verdict", f"is {claim['verdict']}, and {runs} runs make it {decided.pop()}")
    if "detectable_epsilon" in claim and _is_recent(claim):
        due = detectable if math.isfinite(detectable) else None
        yield from _differs("detectable_epsilon", claim["detectable_epsilon"], due)


def _of_record(record: RunRecord) -> Iterator[Contradiction]:
    """Yield what does not follow from the claims together."""
    claims = record["claims"]
    said: Mapping[str, int] = record.get("headline") or {}
    for name, counted in headline(claims).items():
        if name in said and said[name] != counted:
            yield Contradiction(f"headline.{name}", f"is {said[name]}, and the claims say {counted}")
    together = record.get("ledger_of_tests") or {}
    tests = together.get("tests")
    if tests is None:
        return
    if len(tests) != len(claims):
        yield Contradiction("ledger_of_tests", f"has {len(tests)} tests of {len(claims)} claims")
        return
    planned, alpha = int(together.get("planned") or len(claims)), together.get("family_wise_error")
    if planned < len(claims):
        yield Contradiction("ledger_of_tests.planned", f"is {planned}, of {len(claims)} claims")
    decided: list[dict[str, Any]] = [{} for _ in claims]
    if together.get("method") == "Holm" and alpha is not None and 0 < alpha < 1:
        decided = [vars(one) for one in holm([float(c.get("p_value") or 1.0) for c in claims], alpha, planned=planned)]
    for i, (test, claim, decision) in enumerate(zip(tests, claims, decided, strict=True)):
        facts = {"p_value": claim.get("p_value"), "epsilon": claim["claimed"]["epsilon"], **decision}
        facts["rejected"] = claim["verdict"] == "FALSIFIED"
        for name, value in facts.items():
            if name in test:
                yield from _differs(f"ledger_of_tests.tests[{i}].{name}", test[name], value)


def _alphas(claim: ClaimRecord) -> list[float]:
    """Return the error of a claim's audit; its limits where the record rounds it too much."""
    near = 1 - claim["confidence"]
    exact = cast("Mapping[str, Any]", claim.get("translation") or {}).get("alpha")
    if exact is not None and 0 < exact < 1 and abs(exact - near) <= 2 * _ALPHA:
        return [float(exact)]
    return [near] if near * CLOSE > 10 * _ALPHA else [max(near - _ALPHA, near / 2), near + _ALPHA]


def _outside(field: str, stated: Any, *ways: Sequence[float]) -> Iterator[Contradiction]:
    """Yield a number that is not what its counts give, in any of the ways of computing it: each a range."""
    if stated is None or any(
        (min(due) - _dust(min(due))) <= stated <= (max(due) + _dust(max(due))) for due in ways if due
    ):
        return
    yield Contradiction(field, f"is {stated:.6g}, and its counts give {ways[0][0]:.6g}")


def _dust(value: float) -> float:
    return CLOSE * abs(value) + _DUST


def _differs(field: str, stated: Any, due: Any) -> Iterator[Contradiction]:
    """Yield a value that is another than the one that follows."""
    if isinstance(stated, int | float) and isinstance(due, int | float):
        same = math.isclose(
            stated, due, rel_tol=CLOSE, abs_tol=0.0 if field.endswith(("p_value", "adjusted")) else _DUST
        )
    else:
        same = stated == due
    if not same:
        said, other = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in (stated, due))
        yield Contradiction(field, f"is {said}, and {other} follows from the rest")
