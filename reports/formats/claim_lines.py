"""One claim, one smoke test or one regret in lines for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from ...audit.play.data import shown
from ...audit.regret.growth import DOUBLINGS
from ...audit.regret.verdicts import growth_words, promised_growth, regret_verdict
from ...audit.statistics.certificates import translation_words
from ...audit.statistics.digits import at_least, at_most, confidence_text, within
from ...audit.statistics.measure_words import beside, caught_words, claimed_words, is_epsilon, spent_words, unit_of
from ...audit.verdicts.blind_spot import NOT_SEEN, NOTHING, TOO_FEW, words
from ...audit.verdicts.witness import shrunk_words
from ..reading import (
    REPLAY_WORDS,
    answer_words,
    by_what_law,
    certified,
    counted_words,
    exact_level,
    is_mechanism,
    lower,
    measure_of,
    missing_words,
    reason_of,
    reason_words,
    regret_replay,
    remark_lines,
    replay_word,
    rounds_words,
    with_relation,
)
from ..record_types import SIDES, ClaimRecord, SmokeRecord
from ..sanitise import visible, visible_line
from ..upper_words import bounded_words, trace_lines
from .terminal import confidence, number, shrunk_lines, verdict_word, width

if TYPE_CHECKING:
    from ...audit.regret.measurement import RegretJson
    from ...mechanisms.measures.measure import MeasureJson


def claim_lines(claim: ClaimRecord) -> str:
    """Return one claim's outcome in a few lines."""
    data, claim = claim, visible(claim)
    measure, caught, known = measure_of(claim), claim["detectable_epsilon"], exact_level(claim)
    exact = f", exactly {known:.4f} on this pair" if known is not None else ""
    exact = ", infinite on this pair" if claim["exact_infinite"] and is_epsilon(measure) else exact
    if claim.get("exact_mu") is not None and claim.get("exact_rho") is not None:
        exact += f"; exactly mu {claim['exact_mu']:.4f} and rho {claim['exact_rho']:.4f} on this pair"
    exact += by_what_law(claim) if exact else ""
    bound = "" if is_epsilon(measure) else beside(measure)
    unit = "multiples of the claimed profile" if measure.get("kind") == "profile" else unit_of(measure)
    best = caught_words(caught, claim["claimed"]["epsilon"])
    claimed = visible_line(with_relation(claimed_words(measure), claim))
    lines = [
        f"{verdict_word(claim['verdict'])}{bounded_words(claim)}  {claim['name']}: claimed {claimed}"
        f"{_noise_words(claim)}{answer_words(claim)}",
        f"{'certified' if lower(claim) > 0 else 'nothing certified'}: {unit} >= {certified(claim, '.4f')}{bound} with "
        f"{confidence(claim)} confidence{exact}",
        *([f"at best, from {spent_words(claim['method'])}: {best}"] if is_epsilon(measure) else []),
        *([f"blind spot: {words(spot)}"] if (spot := claim.get("blind_spot")) else []),
        *[visible_line(line) for line in (*trace_lines(claim), *missing_words(claim))],
        *_standing_lines(claim),
        f"attack: {claim['attack']}, {claim['method']}, {counted_words(claim)}",
        *([f"in words: {visible_line(claim['event_in_words'])}"] if claim.get("event_in_words") else []),
        *[f"remark: {visible_line(line)}" for line in remark_lines(data)],
        _worlds_line(data),
        *_translation_lines(claim),
        *_searched_lines(data),
        f"{replay_word(claim)}: {claim['replay']}",
    ]
    if claim["verdict"] == "SURVIVED":
        lines.append("surviving is not a proof: another attack, another pair or more runs may certify more")
        if claim.get("unread_bits"):
            lines.append("the low-order bits of its floats were not read: --bits does")
    if claim["verdict"] == "UNDERPOWERED":
        lines.append(_reason_line(claim))
    return "\n".join([_filled(lines), *shrunk_lines(claim)])


def _noise_words(claim: ClaimRecord) -> str:
    """Return that an option of the claim has set the noise of a catalogue's target too, and how to set it alone."""
    names = claim.get("noise_set_by") or []
    options, alone = (" and ".join(f"{dash}{name}" for name in names) for dash in ("--", "--set "))
    return f" ({options} set{'s' * (len(names) == 1)} its noise too; {alone} the noise alone)" if names else ""


def _reason_line(claim: ClaimRecord) -> str:
    """Return why a claim is UNDERPOWERED, and where the runs went if few of them were left to certify."""
    pilot, runs = claim["pilot_runs"] or 0, claim["runs"] or 0
    few = reason_of(claim) == TOO_FEW and 2 * pilot > runs
    return reason_words(claim) + f": to choose what to certify took {pilot:,} of {runs:,}" * few


def _worlds_line(claim: ClaimRecord) -> str:
    """Return the two inputs, or the rounds in which two sequences differ."""
    pair = claim["pair"]
    if is_mechanism(claim):
        return visible_line(f"inputs: left {shown(pair['left'])}, right {shown(pair['right'])}")
    rounds = pair.get("rounds") or [pair["round"]]
    worlds = [cast("list[object]", pair[side]) for side in SIDES]
    sides = [[str(world[t - 1]) for t in rounds] for world in worlds]
    alike = len(rounds) > 1 and all(len(set(side)) == 1 for side in sides)
    left, right = (side[0] if alike else " and ".join(side) for side in sides)
    words = f"pair: {rounds_words(rounds)} of {len(worlds[0])}, left {left}, right {right}{' in each' * alike}"
    return visible_line(words)


def _searched_lines(claim: ClaimRecord) -> list[str]:
    """Return how inputs were searched, and the smallest that were certified; and what cannot be replayed."""
    lines, searched, small = [], claim.get("searched"), claim.get("smallest_inputs")
    if searched:
        raised = f"; it raised on {searched['refused']}, first: {searched['reason']}" if searched["refused"] else ""
        slow = f"; it was too slow on {searched['slow']}" if searched.get("slow") else ""
        lines.append(f"searched: {searched['tried']} pairs of inputs{raised}{slow}")
    if small and not small.get("fresh", True):
        lines.append("shrunk: no smaller inputs were certified; trials have fewer runs, and may miss a weak violation")
    elif small:
        lines.append(
            f"shrunk to: left {shown(small['pair']['left'])}, right {shown(small['pair']['right'])}: "
            f"{shrunk_words(small)}, certified afresh"
        )
    if claim.get("replayable") is False:
        digest = claim.get("outputs_digest")
        kept = f"; SHA-256 of its outputs: {digest}" if digest else ""
        lines.append(f"it is said to draw from a generator of its own: no counts are replayed{kept}")
    return [visible_line(line) for line in lines]


def _translation_lines(claim: ClaimRecord) -> list[str]:
    """Return what the claim's event says in all measures, by one region of its two probabilities."""
    translation = claim.get("translation")
    if not translation:
        return []
    return [
        f"the event in all measures, one region with {confidence(claim)} confidence: {translation_words(translation)}"
    ]


def _standing_lines(claim: ClaimRecord) -> list[str]:
    """Return whose claim it is, in whose words, what is false about them and what their authors could answer."""
    said, lines = claim.get("quotation"), []
    if claim.get("standing"):
        own = " (nobody's claim)" if claim["standing"] == "control" else f", {claim['source']}"
        lines.append(f"standing: {claim['standing']}{own}")
    if said:
        lines.append(f"says: “{said['text']}” ({said['where']})")
    if claim["verdict"] == "FALSIFIED":
        for what, text in (
            ("what is false", claim.get("false")),
            ("its authors could answer", claim.get("answer")),
            ("what mends it", claim.get("repair")),
        ):
            lines += [f"{what}: {text}"] if text else []
    if claim.get("note"):
        lines.append(f"note: {claim['note']}")
    return [visible_line(line) for line in lines]


def smoke_lines(smoke: SmokeRecord) -> str:
    """Return the outcome of a one-run audit in a few lines."""
    smoke = visible(smoke)
    claimed, sure = smoke["claimed"], confidence_text(smoke["confidence"])
    lines = [
        f"{verdict_word(smoke['verdict'])}  {smoke['name']}: claimed {claimed_words(cast('MeasureJson', claimed))}"
        f"{_smoke_answer(smoke)}",
        f"certified: epsilon >= {at_least(smoke['epsilon_lower'], '.4f', claimed['epsilon'])} with {sure} confidence",
        f"one run of {smoke['rounds']:,} rounds: {smoke['right']:,} of {smoke['guesses']:,} coins guessed right, "
        f"p-value {at_most(smoke['p_value'], '.3g')}",
    ]
    if smoke["verdict"] != "FALSIFIED":
        lines.append("a smoke test: a learner that adds many losses up survives it whatever its epsilon; check audits")
    return _filled(lines)


def _smoke_answer(smoke: SmokeRecord) -> str:
    """Return what line 1 says behind a claim whose bound is no answer; empty where it is one."""
    if smoke["verdict"] == "UNDERPOWERED" and smoke.get("reason") != NOT_SEEN:
        return f"; one run of {smoke['rounds']:,} rounds is too little to test it"
    return "" if smoke["epsilon_lower"] > 0 else f"; {NOTHING}"


def _filled(lines: Iterable[str]) -> str:
    """Return the lines, long ones broken; but not a command, which is to be copied."""
    return "\n".join(
        line
        if line.startswith(tuple(f"{word}: " for word in REPLAY_WORDS))
        else textwrap.fill(line, width(), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in lines
    )


def _growth_words(audit: RegretJson) -> str:
    if audit["slope"] is None:
        if len(audit["horizons"]) < 2:
            least = 2**DOUBLINGS
            return f"no growth exponent: it needs T = {least} or more, and a learner that plays T / {least} rounds"
        return f"no growth exponent: fewer than three of the horizons show any regret, T = {audit['horizons']}"
    low, high = within(audit["slope_lower"], audit["slope_upper"])
    return f"growth exponent {number(audit['slope'])}, between {low} and {high}, over T = {audit['horizons']}"


def regret_lines(target: str, audit: RegretJson) -> str:
    """Return a regret measurement in a few lines."""
    target, audit = visible(target), visible(audit)
    low, high = within(*(audit["interval"] or (None, None)))
    rounds = audit["rounds"]
    lines = [
        f"{target}: mean regret {audit['mean_regret']:.4g} in {rounds} round{'s' * (rounds != 1)}, "
        f"{audit['sequence']} losses",
        f"interval [{low}, {high}] at {confidence_text(audit['confidence'])}, {audit['interval_method']}, "
        f"{audit['runs']} runs" + (", expected losses" if audit.get("expected_losses") else ""),
        _growth_words(audit),
    ]
    if audit.get("source"):
        binds = audit.get("binds_from")
        none = "no largest regret is known" if audit.get("largest") is None else "it says nothing at T = 2^60"
        says = f"it says something from T = {binds:,} on" if binds is not None else none
        verdict = regret_verdict(audit["bound_verdict"])
        lines.append(f"bound {number(audit['bound'])}: {verdict}; {says} ({audit['source']})")
        own = audit.get("bound_slope")
        against = promised_growth(audit["exponent"] or 0.0, own)[1]
        certified = list(within(audit.get("growth_lower"), audit.get("growth_upper")))
        lines.append(
            f"claimed exponent {number(audit['exponent'])}"
            + (f" (the bound's own slope here: {number(own)})" if own is not None else "")
            + f": {growth_words(audit['growth_verdict'], binds, against, audit['horizons'])}"
            + (f", certified growth {' to '.join(certified)}" if certified != ["-", "-"] else "")
        )
    if found := audit.get("found"):
        blocks, means = ", ".join(f"{n} x {loss}" for n, loss in found), audit["by_sequence"]
        listed = max(mean for name, mean in means.items() if name != "found by search")
        comparison = f"mean regret {means['found by search']:.4g}, on the listed sequences {listed:.4g} at most"
        lines.append(f"found by search: {blocks}: {comparison}")
        lines += filter(None, [regret_replay(audit)])
    for one in audit.get("adaptive") or ():
        low, high = within(one["interval"][0], one["interval"][1])
        lines.append(
            f"an adversary that {one['adversary']}: mean regret {one['mean_regret']:.4g}, interval "
            f"[{low}, {high}] (no verdict rests on it)"
        )
    return _filled(lines)
