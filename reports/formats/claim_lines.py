"""One claim for a terminal: the answer, its labels, and on request all details."""

from __future__ import annotations

import re

from ...audit.record_types import ClaimRecord
from ...audit.statistics.digits import at_least, at_most
from ...audit.statistics.measure_words import beside, is_epsilon, level_words
from ..reading import (
    by_what_law,
    counted_words,
    exact_level,
    level,
    lower,
    measure_of,
    missing_words,
    remark_lines,
    verdict_of,
)
from ..upper_words import trace_lines
from . import sentences
from .layout import COMMAND, LABEL, Row, details, labelled
from .terminal import verdict_word

#: An option with its value, if it has one.
_KEYWORD = re.compile(r"--([a-z]+)( NAME)?")
#: No p-value is said to be smaller.
SMALLEST = 1e-100
#: What kind of claim each standing is.
CLAIM_TYPES = {
    "theorem": "theorem: a numbered statement, tested with its own parameters",
    "proof": "proof step: a quantity that a proof calls private, though the algorithm does not output it",
    "computed": "theorem, refuted by an exact distribution: no affordable number of runs refutes it",
    "reading": "interpretation: it depends on how the source is read",
    "variant": "variant: the algorithm outside the assumptions of its paper, or under other neighbours",
    "control": "control: nobody claims it",
    "documented": "documented: what the documentation of a library says",
}


def claim_lines(claim: ClaimRecord, *, quiet: bool = False, verbose: bool = False, python: bool = False) -> str:
    """Return a claim in at most eight lines; line 1 alone if `quiet`, and all details too if `verbose`.

    In `python` options are keywords, and no other command is the next step.
    """
    head = f"{verdict_word(verdict_of(claim))}  {sentences.answer(claim)}"
    if quiet:
        return head
    rows = sentences.rows(claim)
    if python:
        omitted_labels = (COMMAND, *(["Next"] if claim.get("replayable") is not False else []))
        rows = [(label, _KEYWORD.sub(_keyword, text)) for label, text in rows if label not in omitted_labels]
        rows.append((COMMAND, claim.get("replay") or ""))
    lines = [labelled(head, rows), *(details(detail_rows(claim)) if verbose else [])]
    return "\n".join([*lines, *(_translation(claim) if verbose else [])])


def _keyword(match: re.Match[str]) -> str:
    return f"{match[1]}={match[2].strip() if match[2] else 'True'}"


def detail_rows(claim: ClaimRecord) -> list[Row]:
    """Return what `-v` adds: whose claim it is, the bound with its counts, what it took, and what stands beside it."""
    quotation, false = claim.get("quotation"), verdict_of(claim) == "FALSIFIED"
    shrunk = claim.get("smallest_inputs") or claim.get("shrunk") or {}
    return [
        ("Quotation", f'"{quotation["text"]}" ({quotation["where"]})' if quotation else ""),
        ("Claim type", CLAIM_TYPES.get(claim.get("standing") or "", "")),
        ("What fails", str(claim.get("false") or "") if false else ""),
        ("Defence", str(claim.get("answer") or "") if false else ""),
        ("Note", str(claim.get("note") or "") if claim.get("standing") else ""),
        ("Bound", _bound(claim)),
        ("Attack", sentences.attack(claim)),
        ("Event", str(claim.get("event_in_words") or "").replace("“", '"').replace("”", '"')),
        ("Counts", counted_words(claim)),
        ("Budget", _budget(claim)),
        ("Detectable", _detectable(claim)),
        ("Power test", _power_test(claim)),
        *(("Power test", line) for line in _sites(claim)),
        *(
            ("Trace", line)
            for line in trace_lines(claim)
            if not line.startswith("cause: ") and "rests on: " not in line
        ),
        *(("Assumes", line) for line in claim.get("upper_rests_on") or ()),
        ("Search", _search(claim)),
        ("Simplest", _simplest(claim)),
        (COMMAND, str(shrunk.get("replay") or "") if shrunk.get("fresh", True) else ""),
        *(("Remark", line) for line in remark_lines(claim)),
        *(("Missing", line.removeprefix("missing: ")) for line in missing_words(claim)),
        ("Generator", _generator(claim)),
    ]


def _bound(claim: ClaimRecord) -> str:
    """Return the bound with four decimals, the exact values of these inputs, and the p-value of the claim."""
    measure, p_value = measure_of(claim), claim.get("p_value")
    bound = f"{at_least(lower(claim), '.4f', level(claim))}{beside(measure)}"
    text = f"{level_words(measure).removeprefix('the ')} >= {bound}"
    confidence = sentences.confidence_words(claim["confidence"])
    text = f"{text} ({confidence})" if lower(claim) > 0 else f"nothing certified ({text})"
    exact, texts = exact_level(claim), list[str]()
    if claim.get("exact_infinite") and is_epsilon(measure):
        texts.append("infinite")
    elif exact is not None:
        texts.append(f"{exact:.4f}")
    levels = {"mu": claim.get("exact_mu"), "rho": claim.get("exact_rho")}
    texts += [f"{name} {value:.4f}" for name, value in levels.items() if value is not None]
    text += f"; exact value for these inputs{by_what_law(claim)}: {', '.join(texts)}" if texts else ""
    if p_value is None:
        return text
    return f"{text}; p-value {'at most ' * (p_value <= SMALLEST)}{at_most(p_value, '.2g')}"


def _budget(claim: ClaimRecord) -> str:
    runs, pilot, counts = claim.get("runs"), claim.get("pilot_runs"), claim.get("counts") or {}
    if not runs or claim.get("scores"):
        return ""
    purpose = "the event" if claim.get("pair_given") else "inputs and event"
    text = f"{runs:,} runs: {pilot or 0:,} to choose {purpose}, {counts.get('runs', 0):,} to certify"
    budget = claim.get("budget")
    return text + (f"; it stopped early, of {budget:,}" if budget and budget > runs else "")


def _detectable(claim: ClaimRecord) -> str:
    if not is_epsilon(measure_of(claim)) or claim.get("scores"):
        return ""
    return f"at best, {sentences.detectable_words(claim)} (perfect attack, Laplace noise, 90% power)"


def _power_test(claim: ClaimRecord) -> str:
    spot = claim.get("blind_spot")
    if not spot or not spot.get("bounds"):
        return ""
    change = sentences.weakened_words(spot.get("parameter"))
    factors = [
        f"{factor:g}: {'falsified' if bound > level(claim) else 'not falsified'}" for factor, bound in spot["bounds"]
    ]
    text = f"{change} {', '.join(factors)}"
    text += f"; {spot['runs']:,} fresh runs each" if spot.get("runs") else ""
    return text + (f", error {at_most(100 * spot['alpha'], '.2g')}% each" if spot.get("alpha") else "")


def _sites(claim: ClaimRecord) -> list[str]:
    sites = (claim.get("blind_spot") or {}).get("sites") or ()
    return [f"a {site['kind']} draw at {site['place']}: {('missed', 'caught')[site['caught']]}" for site in sites]


def _search(claim: ClaimRecord) -> str:
    searched = claim.get("searched")
    if not searched:
        return ""
    text = f"{searched['tried']:,} pairs of inputs"
    text += f"; it raised on {searched['refused']:,}, first: {searched['reason']}" if searched["refused"] else ""
    return text + (f"; it was too slow on {searched['slow']:,}" if searched.get("slow") else "")


def _simplest(claim: ClaimRecord) -> str:
    """Return the simplest counterexample whole, or that none simpler was certified."""
    shrunk = claim.get("smallest_inputs") or claim.get("shrunk")
    if not shrunk:
        return ""
    if not shrunk.get("fresh", True):
        return "no simpler inputs were certified; candidate checks have fewer runs, and may miss a weak violation"
    return f"certified with {shrunk['runs']:,} runs of its own" if shrunk.get("runs") else ""


def _generator(claim: ClaimRecord) -> str:
    """Return that no seed repeats the counts, and the digest of the outputs."""
    if claim.get("replayable") is not False:
        return ""
    digest = claim.get("outputs_digest")
    suffix = f"; SHA-256 of its outputs: {digest}" if digest else ""
    return f"the target draws from a generator of its own, so no seed repeats the counts{suffix}"


def _translation(claim: ClaimRecord) -> list[str]:
    """Return what the claim's event says in all measures, by one region of its two probabilities."""
    translation = claim.get("translation")
    if not translation:
        return []
    epsilons = ", ".join(f"{at_least(bound, '.3f')} at delta {delta:g}" for delta, bound in translation["epsilon"])
    mu, rho, variation = (at_least(translation[name], ".3f") for name in ("mu", "rho", "delta"))
    return [
        f"  Same event in other measures ({sentences.confidence_words(claim['confidence'])})",
        f"{' ' * (LABEL + 2)}epsilon >= {epsilons}",
        f"{' ' * (LABEL + 2)}mu >= {mu}, rho >= {rho}, total variation >= {variation}",
    ]
