"""The sentences of a claim, each behind its label: every format that says one of them takes it from here."""

from __future__ import annotations

import math
from functools import partial
from statistics import NormalDist

from ...audit.record_types import BlindSpotJson, ClaimRecord
from ...audit.statistics.canary_words import INDEPENDENT, canaries_words, is_half, needed_words
from ...audit.statistics.digits import at_least, at_most, confidence_text
from ...audit.statistics.measure_words import beside, caught_words, claimed_words, is_epsilon, level_words, unit_of
from ...audit.verdicts.blind_spot import HIDDEN, LOW_POWER, NOT_SEEN, RARE, TOO_FEW, UNMEASURED
from ...audit.verdicts.rare import rounded_up
from ...mechanisms.measures.stated import measure_from_json
from ...mechanisms.numerics import fewest
from ..reading import (
    answer_words,
    bound_text,
    bound_words,
    by_holm,
    is_exceeded,
    is_mechanism,
    is_unguessed,
    level,
    lower,
    may_allow_bypass,
    measure_of,
    named_world,
    one_sided_lines,
    reason_of,
    reason_words,
    remark_lines,
    verdict_of,
)
from ..sanitise import visible_line
from ..upper_words import binding, binding_where, bypass_text, is_bounded, trace_lines
from .event_words import guess_shares, named_rates
from .input_words import inputs_words, pair_words
from .layout import Row

#: Counts above the claim are pointed out below this p-value.
NOTABLE = 0.05
#: What a search of enough runs leaves to be counted, at least, and what none needs more runs than.
COUNTED_SHARE, MAX_RUNS = 0.4, 2**50
NO_PROOF = "no violation was found; this is not a proof of privacy"
LITTLE = "the target ignores these inputs, or the attack cannot see what leaks"
SAMPLING = " (within sampling error)"
#: Letters of an input that stands in a sentence.
MAX_BESIDE = 40


def confidence_words(confidence: float) -> str:
    """Return a confidence in per cent, rounded down, with as many digits as tell it from certainty."""
    return f"{confidence_text(confidence)} confidence"


def answer(claim: ClaimRecord) -> str:
    """Return line 1 behind its verdict: the target, its claim, and the bound or why there is none."""
    name = visible_line(claim["name"]) + ", with fresh seeds" * bool(claim.get("reseed"))
    text = f"{name}: claimed {claimed_words(measure_of(claim))}; {finding(claim)}"
    return text + _evidence_above(claim)


def _evidence_above(claim: ClaimRecord) -> str:
    """Return that counts are above the claim though not certainly, and the runs that would decide; mostly nothing.

    A claim that is exactly tight has such counts in one audit of twenty.
    """
    p_value, alpha = claim.get("p_value"), 1 - claim["confidence"]
    is_counted = claim.get("method") in ("guess", "joint") and not claim.get("scores")
    if verdict_of(claim) in ("FALSIFIED", "BYPASS") or not is_counted or not p_value or not alpha < p_value < NOTABLE:
        return ""
    seen, quantile, power = (-NormalDist().inv_cdf(tail) for tail in (p_value, alpha, 0.1))
    runs = rounded_up(int((claim.get("runs") or 0) * ((quantile + power) / seen) ** 2))
    return f"; its counts are above the claim (p-value {at_most(p_value, '.2g')}): --runs {runs} decides"


def finding(claim: ClaimRecord) -> str:
    """Return what an audit certified, or why that is nothing."""
    if text := answer_words(claim):
        return text
    if by_holm(claim):
        return bound_words(claim)
    return f"{_at_least(claim, lower(claim))} ({confidence_words(claim['confidence'])})"


def _at_least(claim: ClaimRecord, bound: float) -> str:
    """Return that the level of a claim is at least so much, on whatever inputs that was certified."""
    measure = measure_of(claim)
    # What holds at a delta holds all the more without one, so that the claim's own need not be repeated.
    where = "" if is_epsilon(measure) else beside(measure)
    return f"{level_words(measure)} is at least {bound_text(bound, level(claim))}{where}"


def claimed_by(claim: ClaimRecord) -> str:
    """Return who claims it: a paper, a documentation, or an accountant; nothing of a user's own claim."""
    source, standing, note = claim.get("source") or "", claim.get("standing"), claim.get("note") or ""
    if not standing:
        return f"not known: {note}" if note.startswith("the catalogue has no case") else note
    if standing == "control":
        return f"nobody: a control ({source})" if source.startswith("none") else "nobody: a control"
    if standing == "variant":
        return f"nobody: a variant of {source}"
    return f"{source} (one reading of it)" if standing == "reading" else source


def shares(seen: float, limit: float | None = None) -> tuple[str, str]:
    """Return two shares in per cent with one decimal, or as many as tell them from 0, 1 and, if larger, each other."""
    pair = (seen, seen if limit is None else limit)
    for places in range(1, 8):
        first, second = (_share(share, places) for share in pair)
        if pair[0] <= pair[1] or first != second:
            break
    return first, second


def _share(share: float, places: int) -> str:
    """Return a share in per cent with so many decimals, or as many more as tell it from 0 and 1."""
    if share in (0, 1):
        return f"{share:.0%}"
    texts = (f"{100 * share:.{decimals}f}" for decimals in range(places, 17))
    return next((text for text in texts if 0 < float(text) < 100), f"{100 * share:g}") + "%"


def evidence(claim: ClaimRecord) -> str:
    """Return what the attack achieved in the counted runs, and what the claim allows."""
    counts, method = claim.get("counts") or {}, claim.get("method")
    if is_unguessed(claim):
        return "the attack made no guess: in the pilot runs it found nothing that tells the inputs apart"
    if method == "variational":
        return _evidence_of_scores(claim)
    if (rates := named_rates(claim)) is not None:
        rate, other_rate, limit = (float(str(rates[name])) for name in ("here", "there", "most"))
        (text, allowed), false = shares(rate, limit), _false_positives(claim, other_rate)
        sentence = f'the attack finds "{rates["name"]}" with true-positive rate {text} at false-positive rate {false}'
        if lower(claim) == 0 and rate <= limit and not claim["claimed"]["delta"]:
            return f"{sentence}: no better than chance" + SAMPLING * (rate > other_rate)
        return f"{sentence}; {_allows(claim, rate, limit, allowed)}"
    if not counts.get("guesses"):
        return ""
    share = counts["right"] / counts["guesses"]
    limits = guess_shares(claim)
    text, allowed = shares(share, limits["most"] if limits else None)
    sentence = f"{text} of the attack's guesses are right"
    return f"{sentence}; {_allows(claim, share, limits['most'], allowed)}" if limits else sentence


def _false_positives(claim: ClaimRecord, share: float) -> str:
    """Return a false-positive rate; where none happened, of how many: it may still be above 0."""
    world = named_world(claim)
    none = f" (0 of {world.other_runs:,})" if world is not None and not world.misses else ""
    return shares(share)[0] + none


def _allows(claim: ClaimRecord, seen: float, limit: float, allowed: str) -> str:
    sampling = SAMPLING if seen > limit and verdict_of(claim) != "FALSIFIED" else ""
    promise = claimed_words(measure_of(claim))
    return f"{promise if promise.count(' ') == 1 else 'the claim'} allows {allowed}{sampling}"


def _evidence_of_scores(claim: ClaimRecord) -> str:
    """Return the rates at one threshold of scores that are all certified: what the claim allows there is no test."""
    world = named_world({**claim, "method": "joint"})
    if world is None or not world.runs or not world.other_runs:
        return "the bound uses all scores of the attack"
    rate, other_rate = shares(world.hits / world.runs)[0], shares(world.misses / world.other_runs)[0]
    sentence = f'the attack finds "{world.name}" with true-positive rate {rate} at false-positive rate {other_rate}'
    return f"{sentence}; the bound uses all of its scores"


def simplest(claim: ClaimRecord) -> str:
    """Return the simplest counterexample with the bound of its own certificate; nothing where none is simpler."""
    for shrunk in (claim.get("smallest_inputs"), claim.get("shrunk")):
        if shrunk and shrunk.get("fresh", True) and shrunk.get("pair"):
            bound = shrunk.get("lower") if shrunk.get("measure") else shrunk.get("epsilon_lower")
            pair = pair_words(shrunk["pair"], of_data=is_mechanism(claim), max_letters=40).removeprefix(
                "the losses of "
            )
            unit = unit_of(measure_of(claim))
            return f"{pair}; {unit} is at least {bound_text(bound or 0.0, level(claim))} here too"
    return ""


def cause(claim: ClaimRecord) -> str:
    """Return why a claim is false, as a trace or its paper's reading says; or how outputs depend on inputs alone."""
    traced, leak, untraced = claim.get("cause"), claim.get("leak"), claim.get("untraced")
    if leak and leak.get("bypass"):
        return ": ".join(filter(None, ["BYPASS", bypass_text(claim), leak.get("seen")]))
    if verdict_of(claim) != "FALSIFIED":
        return ""
    if traced and traced["kind"] == "calls":
        return str(traced["text"])
    of_trace = traced["text"] if traced else f"NOT TRACED: {untraced}" if untraced else ""
    if not of_trace and claim.get("trace_result"):
        of_trace = f"the trace names no line: {trace_lines(claim)[0]}"
    return str(claim.get("false") or "; ".join(claim.get("remarks") or ()) or of_trace)


def fix(claim: ClaimRecord) -> str:
    """Return what would make a false claim true."""
    return str(claim.get("repair") or "") if verdict_of(claim) == "FALSIFIED" else ""


def attack(claim: ClaimRecord) -> str:
    """Return which attack was used, and when its event was fixed."""
    if claim.get("scores"):
        return "every threshold on the scores; the evidence is of the one that shows most"
    exact = " (exact)" if claim.get("attack_exact") else ""
    form = {
        "joint": "one event, fixed before the runs that were counted",
        "guess": "guesses, by thresholds that were fixed before the runs that were counted",
        "anytime": "bets, each of which was placed before its run was played",
        "variational": "a function of the score, fixed before the runs that were counted",
    }.get(claim.get("method") or "", "an event, fixed before the runs that were counted")
    return f"{claim.get('attack') or 'none'}{exact}; {form}"


def power(claim: ClaimRecord) -> str:
    """Return what a power test caught and missed, or that none was made and what so many runs detect at best."""
    spot, scores = claim.get("blind_spot"), claim.get("scores")
    if verdict_of(claim) == "FALSIFIED" or reason_of(claim) in (TOO_FEW, RARE) or (scores and not spot):
        return ""
    if not spot:
        best = f" (at best, {detectable_words(claim)})" if is_epsilon(measure_of(claim)) and lower(claim) > 0 else ""
        off = (claim.get("question") or {}).get("power") == "off"
        reason = "" if off or claim.get("required_power") is None else ": no fault of ours changes its outputs"
        return f"not measured{reason}{best}"
    if spot.get("kind"):
        return _planted(spot)
    change, factor, missed = weakened_words(spot.get("parameter")), spot.get("factor"), spot.get("missed")
    if factor is None:
        text = f"missed even when {change} {spot.get('tried') or 1:g}"
    else:
        text = f"detected when {change} {factor:g}" + (f"; missed at {missed:g}" if missed else "")
    if (true_to := spot.get("true_to")) and true_to > 1:
        text += f"; the claim is true up to {at_least(true_to, '.3g')} (exact laws)"
    return text


def _planted(spot: BlindSpotJson) -> str:
    factor, missed = spot.get("factor"), spot.get("missed")
    caught, other = ([f"all noise / {size:g}"] if size else [] for size in (factor, missed))
    for site in spot.get("sites") or ():
        (caught if site["caught"] else other).append(f"a {site['kind']} draw at {site['place']}")
    text = f"caught on these inputs: {', '.join(caught)}" if caught else ""
    return "; ".join(filter(None, [text, f"missed: {', '.join(other)}" if other else ""]))


def power_text(claim: ClaimRecord) -> str:
    """Return by what the noise is divided where a power test detects it; a dash where there is nothing to measure."""
    spot, falsified = claim.get("blind_spot"), verdict_of(claim) == "FALSIFIED"
    if falsified or reason_of(claim) == TOO_FEW or (claim.get("scores") and not spot):
        return "-"
    if not spot:
        return "not measured"
    change = "noise / " if weakened_words(spot.get("parameter")).startswith("the noise") else "x "
    return f"{change}{spot['factor']:g}" if spot.get("factor") else f"missed {change}{spot.get('tried') or 1:g}"


def weakened_words(parameter: str | None) -> str:
    """Return what a power test changes, to stand before a factor."""
    if parameter in (None, "noise") or str(parameter).startswith("1/"):
        return "the noise is divided by"
    return f"{parameter} is multiplied by"


def detectable_words(claim: ClaimRecord) -> str:
    """Return the smallest violation that so many runs detect."""
    anytime = claim.get("method") == "anytime"
    runs = claim.get("budget") if anytime else claim.get("runs")
    caught = claim.get("detectable_epsilon")
    text = caught_words(caught, claim["claimed"]["epsilon"])
    violation = f"epsilon {text}" if caught is not None and math.isfinite(caught) else text
    return f"{runs:,} runs detect {violation}" if runs else f"the whole budget detects {violation}"


def meaning(claim: ClaimRecord) -> str:
    """Return what a verdict means, and what fresh runs remark; behind FALSIFIED, the relation that may be meant."""
    if verdict_of(claim) == "FALSIFIED":
        return "; ".join([*survives_lines(claim), *one_sided_lines(claim)])
    text = _meaning(claim)
    return "; ".join([text, *beyond_lines(claim), *remark_lines(claim)]) if text else ""


def survives_lines(claim: ClaimRecord) -> list[str]:
    """Return the weaker relation under which a falsified claim survived."""
    if not (other := claim.get("survives")):
        return []
    text = f"under {other['neighbours']} it survives {other['runs']:,} fresh runs ({_at_least(claim, other['lower'])})"
    return [f"{text}: the claim may be meant for that relation"]


def beyond_lines(claim: ClaimRecord) -> list[str]:
    """Return what inputs beyond the limits of their schema cost, where that is more than the claim."""
    if not (beyond := claim.get("beyond_limits")):
        return []
    from ...audit.play.pair_text import beside as pair_texts  # it loads NumPy

    left, right = map(visible_line, pair_texts(beyond["pair"]["left"], beyond["pair"]["right"], MAX_BESIDE))
    bound = _at_least(claim, beyond["lower"])
    return [f"beyond the limits of its schema {bound} (left {left}, right {right}): clip inputs that may lie there"]


def _meaning(claim: ClaimRecord) -> str:
    verdict, reason = verdict_of(claim), reason_of(claim)
    before = claim.get("baseline")
    if verdict == "SURVIVED" and isinstance(before, dict) and before.get("exceeded"):
        confidence, extra_runs = confidence_text(claim["confidence"]), before.get("more_runs") or 0
        end = "did not" if before.get("decision") == "passed" else "leave it in doubt: the next changes decide"
        return f"one audit at {confidence} exceeded the claim; {extra_runs:,} more runs {end}"
    if verdict == "SURVIVED":
        text = NO_PROOF if lower(claim) > 0 or is_bounded(claim) else f"this audit tested little: {LITTLE}"
        if traced := _traced(claim):
            text = f"{text.removesuffix('; this is not a proof of privacy')}; {traced}"
        text += _noise_too(claim)
        return text + "; low-order bits were not tested (--bits)" * bool(claim.get("unread_bits"))
    if verdict == "BYPASS":
        may = "its delta may allow that" if may_allow_bypass(claim) else "the claim allows no such output"
        return f"what was certified is within the claim, but an output depends on the input without noise; {may}"
    if claim.get("scores") and reason in (TOO_FEW, NOT_SEEN):
        return _meaning_of_scores(claim)
    if reason == TOO_FEW:
        return _too_few(claim)
    if reason is None:
        return ""
    explanation = reason_words(claim).partition(": ")[2]
    if reason == LOW_POWER and not is_exceeded(claim):
        is_false = (claim.get("blind_spot") or {}).get("false_at") is not None
        explanation = "no attack is known" if is_false else "the claim has slack, or the attack is weak"
    return explanation + f"; {LITTLE}" * (reason == NOT_SEEN)


def _noise_too(claim: ClaimRecord) -> str:
    """Return that the options of a claim have set the noise too: then the audit is of other noise than the usual."""
    names = claim.get("noise_set_by") or []
    options, settings = (" and ".join(f"{dash}{name}" for name in names) for dash in ("--", "--set "))
    return f"; {options} set the noise too ({settings}: the noise alone)" if names else ""


def _traced(claim: ClaimRecord) -> str:
    """Return what a trace bounds, or that it bounds nothing; nothing where none was made."""
    upper, unit = binding(claim), unit_of(measure_of(claim))
    if upper is not None:
        return f"the trace bounds {unit} by {at_most(upper, '.2f')} {binding_where(claim)} (-v lists its assumptions)"
    if claim.get("untraced"):
        return f"NOT TRACED: {claim['untraced']}"
    return "the trace found no bound (-v says why)" if claim.get("trace_result") else ""


def _meaning_of_scores(claim: ClaimRecord) -> str:
    scores = claim["scores"] or {}
    if reason_of(claim) == TOO_FEW:
        return f"{needed_words(scores)}; here are {scores['canaries']:,}"
    return "all scores are equal: the attack tells nothing apart"


def _too_few(claim: ClaimRecord) -> str:
    required, runs, pilot = needed_runs(claim), counted_runs(claim), claim.get("pilot_runs") or 0
    target = f"{required:,}" if required else "more than 10^15"
    text = f"a perfect attack needs {target} counted runs; this audit had {runs:,}"
    choice = "event" if claim.get("pair_given") else "inputs"
    return text + (f", as choosing the {choice} took {pilot:,}" if pilot > runs else "")


def counted_runs(claim: ClaimRecord) -> int:
    """Return the runs that an audit counts; of one that may stop early, those that it might have counted."""
    if claim.get("method") == "anytime":
        return int(claim.get("budget") or 0) - int(claim.get("pilot_runs") or 0)
    return int((claim.get("counts") or {}).get("runs") or 0)


def needed_runs(claim: ClaimRecord) -> int | None:
    """Return the fewest counted runs from which a perfect attack falsifies a claim; None where that is too many."""
    high = 2
    while not _can_falsify(claim, high):
        high *= 2
        if high > MAX_RUNS:
            return None
    return fewest(partial(_can_falsify, claim), high // 2, high)


def _can_falsify(claim: ClaimRecord, runs: int) -> bool:
    from ...audit.statistics import certificates, sequential

    measure, alpha = measure_from_json(measure_of(claim)), 1 - claim["confidence"]
    if claim.get("method") == "anytime":
        epsilon, delta = measure.stated
        return sequential.ceiling_epsilon(epsilon, runs, delta=delta, alpha=alpha) > measure.level
    return certificates.ceiling(measure, runs, alpha=alpha) > measure.level


def enough_runs(claim: ClaimRecord) -> int | None:
    """Return the smallest 1, 2 or 4 times a power of ten from which an audit has the counted runs that it needs."""
    required, pilot = needed_runs(claim), int(claim.get("pilot_runs") or 0)
    if required is None:
        return None
    rounds = (digit * 10**power for power in range(1, 17) for digit in (1, 2, 4))
    return next((runs for runs in rounds if runs * COUNTED_SHARE >= required and runs - pilot >= required), None)


def next_step(claim: ClaimRecord) -> str:
    """Return what to do next, where there is something to try."""
    reason, verdict, scores = reason_of(claim), verdict_of(claim), claim.get("scores")
    if scores:
        return _next_of_scores(claim)
    inputs = "--left and --right, or --inputs" if is_mechanism(claim) else "--pair, --inputs"
    if verdict == "FALSIFIED":
        if claim.get("replayable") is False:
            return "each repetition has other counts: no seed sets the target's random numbers"
        return ""
    if reason == TOO_FEW:
        enough = enough_runs(claim)
        options = "--left and --right" if is_mechanism(claim) else "--pair"
        pair = "" if claim.get("pair_given") else f"; or give the inputs with {options}"
        return (f"--runs {enough}" if enough else "no affordable number of runs tests so large a claim") + pair
    if reason == LOW_POWER:
        return "try more runs" if is_exceeded(claim) else _more_power(claim, inputs)
    if reason == RARE:
        runs = claim["rare"]["runs"]
        return "" if runs is None else f"--runs {rounded_up(2 * runs)}"
    if reason == UNMEASURED:
        return "--weaken NAME names the parameter that sets the noise; or try more runs"
    nothing = verdict == "SURVIVED" and lower(claim) == 0 and not is_bounded(claim)
    if reason in (NOT_SEEN, HIDDEN) or nothing:
        return f"try {'' if is_mechanism(claim) else 'more rounds, '}other inputs ({inputs}) or more runs"
    return ""


def _more_power(claim: ClaimRecord, inputs: str) -> str:
    """Return what gives an audit of low power more of it."""
    if (claim.get("blind_spot") or {}).get("kind") is None:
        return _other_parameter(claim)
    if claim["claimed"]["delta"] and is_epsilon(measure_of(claim)):
        return f"of Gaussian noise test --gdp MU; else try more runs or other inputs ({inputs})"
    return f"try more runs or other inputs ({inputs}); --power FACTOR asks for less"


def _other_parameter(claim: ClaimRecord) -> str:
    """Return how a parameter is named that sets more noise, where a power test took it to set less."""
    spot = claim.get("blind_spot") or {}
    name = spot.get("parameter") or "noise"
    if name == "noise" or spot.get("false_at") is not None or spot.get("true_to"):
        return ""
    other = name.removeprefix("1/") if name.startswith("1/") else f"1/{name}"
    return f"if more of {name} is more noise, use --weaken {other}"


def _next_of_scores(claim: ClaimRecord) -> str:
    scores = claim["scores"] or {}
    if scores.get("reversed"):
        level = 1 - (1 - claim["confidence"]) / 2
        cure = f"audit the negated scores too, each at half of alpha (--confidence {level:.6g})"
        return f"the lower scores tell more: {cure}"
    if reason_of(claim) == TOO_FEW and scores.get("needed") is not None:
        advice = "use more trainings" if claim["design"] == INDEPENDENT else "use more canaries, or several trainings"
        return f"{advice}: their scores are audited together"
    return ""


def canaries(claim: ClaimRecord) -> str:
    """Return how many canaries were scored, and whether each had a coin of its own."""
    scores = claim.get("scores")
    if not scores:
        return ""
    text = f"{canaries_words(claim['design'], scores)}, {scores['inserted']:,} of them included"
    half = "; each canary has a coin of its own, and choosing a random half does not count"
    return text + half * is_half(claim["design"], scores)


def rows(claim: ClaimRecord) -> list[Row]:
    """Return the labels of a claim with their sentences, in their order; those without one are empty."""
    scores = claim.get("scores")
    return [
        ("Claimed by", claimed_by(claim)),
        ("Evidence", evidence(claim)),
        ("Canaries", canaries(claim)),
        ("Assumes", "; ".join(scores["assumes"]) if scores else ""),
        ("Inputs", "" if scores else inputs_words(claim)),
        ("Simplest", simplest(claim)),
        ("Cause", cause(claim)),
        ("Fix", fix(claim)),
        ("Power", power(claim)),
        ("Meaning", meaning(claim)),
        ("Next", next_step(claim)),
        ("Reproduce", claim.get("replay") or ""),
    ]
