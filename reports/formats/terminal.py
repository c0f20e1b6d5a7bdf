"""Plain tables for a terminal: widths fit, colours only where one is watching (click strips them elsewhere)."""

from __future__ import annotations

import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ...audit.certification.blind_spot import factor_words, words
from ...audit.certification.witness import witness_lines
from ...audit.inputs.data import shown
from ...audit.regret.verdicts import YOURS
from ...audit.statistics.certificates import translation_words
from ...audit.statistics.measure_words import beside, claimed_words, is_epsilon, unit_of
from ...learners.catalogue.entries import Entry
from ...learners.catalogue.statements import STANDINGS
from ...mechanisms.libraries.entry import LibraryEntry
from ...mechanisms.one_shot.zoo import Specimen
from ..headline import beside_words, headline, headline_words
from ..sanitise import (
    REPLAY_WORDS,
    bound_words,
    by_holm,
    counted_words,
    exact_level,
    exact_words,
    is_mechanism,
    is_untested,
    level,
    lower,
    measure_of,
    replay_word,
    untested_words,
    visible,
    visible_line,
)
from ..upper_words import binding, bounded_words, is_bounded, trace_lines

COLOURS = {"FALSIFIED": "red", "SURVIVED": "green", "UNDERPOWERED": "yellow"}
#: The right end of the ruler, in multiples of the claim.
RULER_END = 2.5


def width() -> int:
    """Return the columns to fill."""
    return min(shutil.get_terminal_size((100, 24)).columns, 140)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return left-aligned columns, each as wide as its longest cell."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(click.unstyle(row[i])) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [cell + " " * (w - len(click.unstyle(cell))) for cell, w in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "-" * min(width(), sum(widths) + 2 * len(widths) - 2))
    return "\n".join(lines)


def catalogue_table(entries: Iterable[Entry]) -> str:
    """Return name, claim and source of every entry."""
    rows = []
    for entry in entries:
        delta = f", {entry.delta:g}" if entry.delta else ""
        epsilon = "f(T)" if entry.claim_epsilon else "epsilon"
        standings = ", ".join(s for s in STANDINGS if any(case.standing == s for case in entry.cases))
        rows.append((entry.name, f"({epsilon}{delta})-DP on {entry.losses}", entry.summary, standings, entry.source))
    return table(("name", "claim", "algorithm", "standing", "source"), rows)


def zoo_table(specimens: Iterable[Specimen]) -> str:
    """Return name, fault and source of every mechanism."""
    rows = [(s.name, s.fault or "-", s.source) for s in specimens]
    return table(("mechanism", "fault", "source"), rows)


def library_table(entries: Iterable[LibraryEntry]) -> str:
    """Return name, claim, relations and words of every entry of the libraries' catalogue."""
    rows = []
    for entry in entries:
        claimed = f"({number(entry.claim.epsilon)}, {entry.claim.delta:g})"
        relations = ", ".join(entry.relations) if entry.near is None else "within the sensitivity"
        rows.append((entry.name, claimed, relations, entry.source))
    return table(("name", "claim", "neighbours", "source"), rows)


def verdict_word(verdict: str) -> str:
    """Return the verdict in its colour."""
    return click.style(verdict, fg=colour(verdict), bold=True)


def colour(verdict: str) -> str | None:
    """Return a verdict's colour, none where NO_COLOR asks for none; off a terminal click removes it."""
    return None if os.environ.get("NO_COLOR") else COLOURS[verdict]


def number(value: float | None) -> str:
    """Return four significant digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def confidence(claim: Mapping[str, Any]) -> str:
    """Return a claim's confidence with as many digits as tell it from certainty."""
    digits = 2 - math.floor(math.log10(max(1 - claim["confidence"], 1e-17)))
    return f"{claim['confidence']:.{min(max(4, digits), 17)}g}"


def claims_table(record: dict[str, Any]) -> str:
    """Return the view of a run: a ruler of all claims, what is unexpected, what could not be audited, and the sum."""
    record = visible(record)
    claims, columns = record["claims"], width()
    shorts = [visible_line(c["name"]).rpartition("/")[2] for c in claims]
    longest = min(max((len(name) for name in shorts), default=0), 24)
    bar = 20 if columns >= 110 else 10
    room = max(min(columns - bar - 37, longest + 2 + max((len(_setting(c)) for c in claims), default=0)), 12)
    claim_at = round(bar / RULER_END)
    heads = (
        "0".ljust(claim_at)
        + "claim".ljust(bar - claim_at)
        + f"{'at least':>10}{'claimed':>8} {'exact':>7}{'blind':>7}"
    )
    lines, paper = [" " * (room + 4) + heads] if claims else [], None
    for claim, short in zip(claims, shorts, strict=True):
        found = visible_line(claim["name"]).rpartition("/")[0]
        if found != paper:
            paper = found
            lines += [click.style(shorten(paper, columns), bold=True)] if paper else []
        label = shorten(f"{shorten(short, longest):<{longest}}  {_setting(claim)}", room)
        mark = click.style(_glyph(claim), fg=colour(claim["verdict"]), bold=not is_untested(claim))
        lines.append(f"{mark} {label:<{room}}  {_bar(claim, bar)}{_numbers(claim)}")
    surprises = [c for c in claims if c.get("expected") and c["verdict"] != c["expected"].upper()]
    for claim in surprises:
        lines.append("")
        lines.append(f"{click.style('unexpected', bold=True)}: {visible_line(claim['name'])}, {_setting(claim)}")
        lines.append(
            f"  {verdict_word(claim['verdict'])}, expected {claim['expected']}: {visible_line(claim['replay'])}"
        )
        lines += [f"  {line}" for line in _shrunk_lines(claim)]
    lines += [
        f"falsified together: {visible_line(c['name'])}, {_setting(c)}: {bound_words(c)}" for c in claims if by_holm(c)
    ]
    lines += _bound_lines(record)
    lines += [
        f"{error['kind']}: {visible_line(error['name'])}: {visible_line(error['message'])}"
        for error in record.get("errors", ())
    ]
    verdicts = [c["verdict"] for c in claims]
    counts = [
        click.style(f"{verdicts.count(v)} {v.lower()}", fg=colour(v), bold=True) for v in COLOURS if v in verdicts
    ]
    if untested := sum(map(is_untested, claims)):
        counts.append(f"{untested} of them untested: no attack known")
    if bounded := sum(map(is_bounded, claims)):
        counts.append(f"{bounded} of them bounded by their traces")
    judged = sum(1 for c in claims if c.get("expected"))
    as_expected = f"; {judged - len(surprises)} of {judged} as expected" if judged else ""
    lines += ["", *headline_lines(record), f"{', '.join(counts) or 'no claim was audited'}{as_expected}"]
    return "\n".join(lines)


def _bound_lines(record: Mapping[str, Any]) -> list[str]:
    """Return a line for every bound on regret of a plan's own, and for every one that is violated."""
    return [
        f"regret of {visible_line(r['name'])}: {r['verdict']}: mean {number(r['mean_regret'])}, bound "
        f"{number(r['bound'])}, T = {r['rounds']}, {visible_line(r['sequence'])} losses"
        for r in record.get("regret") or ()
        if r.get("source") == YOURS or r.get("verdict") == "VIOLATED"
    ]


def headline_lines(record: Mapping[str, Any]) -> list[str]:
    """Return what is false of what is published, with what else was falsified; nothing for a user's own claims."""
    counts = headline(record["claims"])
    if not any(claim.get("standing") for claim in record["claims"]):
        return []
    words = [click.style(headline_words(record), bold=True), beside_words(counts)]
    return [word for word in words if word]


def _setting(claim: Mapping[str, Any]) -> str:
    """Return what tells a claim from its siblings: what is not as usual, which is as the paper has it."""
    words = [claim.get("calibration") or "", claim.get("losses") or ""]
    words = [word for word in words if word != "as_published"]
    if is_mechanism(claim):
        words = ["mechanism"]
    words += [claim[key] for key, usual in (("surface", "actions"), ("neighbours", "replace")) if claim[key] != usual]
    words += [f"T={claim['rounds']}"] if claim.get("rounds") and not is_mechanism(claim) else []
    measure = measure_of(claim)
    if not is_epsilon(measure):
        words.append("total variation" if measure.get("kind") == "approximate" else str(measure.get("kind")))
    words += [f"order={measure['order']:g}"] if measure.get("order") else []
    words += [f"delta={measure['delta']:g}"] if is_epsilon(measure) and measure.get("delta") else []
    return visible_line(" ".join(word for word in words if word))


def _numbers(claim: Mapping[str, Any]) -> str:
    claimed, exact = number(level(claim)), exact_words(claim)
    return f"{number(lower(claim)):>10}{claimed:>8} {exact:>7}{factor_words(claim.get('blind_spot')):>7}"


def _bar(claim: Mapping[str, Any], size: int) -> str:
    """Return the certified bound as a bar, up to a multiple of the claim, with the claim marked on it."""
    full, empty, mark, beyond = ("━", "┈", "┃", "▶") if _unicode() else ("=", ".", "|", ">")
    upper = binding(claim)
    claim_at = round(size / RULER_END)
    ratio = lower(claim) / level(claim)
    filled = round(min(ratio, RULER_END) * size / RULER_END)
    # A bar that passes the claim, however little, must be seen to pass it, and one that does not, not.
    filled = max(filled, claim_at + 1) if ratio > 1 else min(filled, claim_at)
    cells = [full] * filled + [empty] * (size - filled)
    if ratio > RULER_END:
        cells[-1] = beyond
    cells[claim_at] = mark if ratio <= 1 else click.style(mark, fg=colour(claim["verdict"]), bold=True)
    if upper is not None and (at := round(upper / claim["claimed"]["epsilon"] * size / RULER_END)) < size:
        at = max(at, filled) if filled < size else at
        cells[at] = ("┫" if at == claim_at else "╎") if _unicode() else "]"
    paint = colour(claim["verdict"])
    start, end = "".join(cells[:claim_at]), "".join(cells[claim_at + 1 :])
    passed = end[: max(0, filled - claim_at - 1)]
    return (
        click.style(start[:filled], fg=paint)
        + click.style(start[filled:], dim=True)
        + cells[claim_at]
        + click.style(passed, fg=paint)
        + click.style(end[len(passed) :], dim=True)
    )


def shorten(text: str, size: int) -> str:
    """Return the text in at most `size` columns, cut with an ellipsis."""
    if len(text) <= size:
        return text
    return text[: size - 1] + "…" if _unicode() else text[: size - 3] + "..."


def _unicode() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "━┈┃┫╎▶✗✓…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _glyph(claim: Mapping[str, Any]) -> str:
    """Return the mark of a verdict: no tick where nothing was tested."""
    if is_untested(claim):
        return "-"
    marks = "✗✓?" if _unicode() else "x+?"
    return dict(zip(COLOURS, marks, strict=True))[claim["verdict"]]


def claim_lines(claim: dict[str, Any]) -> str:
    """Return one claim's outcome in a few lines."""
    claim = visible(claim)
    measure, caught, known = measure_of(claim), claim["detectable_epsilon"], exact_level(claim)
    exact = f", exactly {known:.4f} on this pair" if known is not None else ""
    exact = ", infinite on this pair" if claim["exact_infinite"] and is_epsilon(measure) else exact
    if claim.get("exact_mu") is not None and claim.get("exact_rho") is not None:
        exact += f"; exactly mu {claim['exact_mu']:.4f} and rho {claim['exact_rho']:.4f} on this pair"
    bound = "" if is_epsilon(measure) else beside(measure)
    unit = "multiples of the claimed profile" if measure.get("kind") == "profile" else unit_of(measure)
    best = "no violation nine times in ten" if caught is None else number(caught)
    pair = claim["pair"]
    t0 = pair["round"] - 1
    word = click.style("UNTESTED", bold=True) if is_untested(claim) else verdict_word(claim["verdict"])
    lines = [
        f"{word}{bounded_words(claim)}  {claim['name']}: claimed {claimed_words(measure)}",
        f"certified: {unit} >= {lower(claim):.4f}{bound} with {confidence(claim)} confidence{exact}",
        *([f"at best, from this many runs: {best}"] if is_epsilon(measure) else []),
        *([f"blind spot: {words(claim['blind_spot'])}"] if claim.get("blind_spot") else []),
        *[visible_line(line) for line in trace_lines(claim)],
        *_standing_lines(claim),
        f"attack: {claim['attack']}, {claim['method']}, {counted_words(claim)}",
        f"inputs: left {shown(pair['left'])}, right {shown(pair['right'])}"
        if is_mechanism(claim)
        else f"pair: round {pair['round']} of {len(pair['left'])}, left {pair['left'][t0]}, right {pair['right'][t0]}",
        *_translation_lines(claim),
        *_searched_lines(claim),
        f"{replay_word(claim)}: {claim['replay']}",
    ]
    if claim["verdict"] == "SURVIVED":
        lines.append("surviving is not a proof: no attack tried here separates the worlds beyond the claim")
    if is_untested(claim):
        lines.append(untested_words(claim) + ("; no attack known" if claim.get("blind_spot") else ""))
    if claim["verdict"] == "UNDERPOWERED":
        lines.append("undecided: even a perfect attack could not falsify so large a claim with so few runs")
    return "\n".join([_filled(lines), *_shrunk_lines(claim)])


def _searched_lines(claim: Mapping[str, Any]) -> list[str]:
    """Return how inputs were searched, and the smallest that were certified; and what cannot be replayed."""
    lines, searched, small = [], claim.get("searched"), claim.get("smallest_inputs")
    if searched:
        raised = f"; it raised on {searched['refused']}, first: {searched['reason']}" if searched["refused"] else ""
        lines.append(f"searched: {searched['tried']} pairs of inputs{raised}")
    if small:
        lines.append(
            f"shrunk to: left {shown(small['pair']['left'])}, right {shown(small['pair']['right'])}: "
            f"epsilon at least {small['epsilon_lower']:.4g}, certified afresh"
        )
    if claim.get("replayable") is False:
        digest = claim.get("outputs_digest")
        kept = f"; SHA-256 of its outputs: {digest}" if digest else ""
        lines.append(f"its randomness cannot be seeded: no counts can be replayed{kept}")
    return [visible_line(line) for line in lines]


def _translation_lines(claim: Mapping[str, Any]) -> list[str]:
    """Return what the claim's event says in all measures, by one region of its two probabilities."""
    found = claim.get("translation")
    if not found:
        return []
    return [f"the event in all measures, one region with {confidence(claim)} confidence: {translation_words(found)}"]


def _standing_lines(claim: Mapping[str, Any]) -> list[str]:
    """Return whose claim it is, in whose words, what is false about them and what their authors could answer."""
    said, lines = claim.get("quotation"), []
    if claim.get("standing"):
        own = " (nobody's claim)" if claim["standing"] == "control" else f", {claim['source']}"
        lines.append(f"standing: {claim['standing']}{own}")
    if said:
        lines.append(f"says: “{said['text']}” ({said['where']})")
    if claim["verdict"] == "FALSIFIED":
        told = (("what is false", "false"), ("its authors could answer", "answer"), ("what mends it", "repair"))
        lines += [f"{words}: {claim[name]}" for words, name in told if claim.get(name)]
    if claim.get("note"):
        lines.append(f"note: {claim['note']}")
    return [visible_line(line) for line in lines]


def shrunk_words(record: Mapping[str, Any]) -> str:
    """Return how many shrunk witnesses the files of a run hold; nothing where there are none."""
    shrunk = sum(1 for claim in record["claims"] if claim.get("shrunk"))
    return f": both hold {shrunk} shrunk witness{'es' * (shrunk > 1)}" if shrunk else ""


def _shrunk_lines(claim: Mapping[str, Any]) -> list[str]:
    """Return a claim's shrunk witness: its bound, the losses of both worlds, and the command that replays it."""
    shrunk = claim.get("shrunk")
    if not shrunk:
        return []
    filled = [
        textwrap.fill(line, width(), subsequent_indent=" " * 9, break_long_words=False, break_on_hyphens=False)
        for line in witness_lines(shrunk)
    ]
    return [*filled, f"  replay: {visible_line(shrunk['replay'])}"]


def smoke_lines(found: dict[str, Any]) -> str:
    """Return the outcome of a one-run audit in a few lines."""
    found = visible(found)
    claimed = found["claimed"]
    at = f" at delta {claimed['delta']:g}" if claimed["delta"] else ""
    lines = [
        f"{verdict_word(found['verdict'])}  {found['name']}: claimed epsilon {claimed['epsilon']:g}{at}",
        f"certified: epsilon >= {found['epsilon_lower']:.4f} with {confidence(found)} confidence",
        f"one run of {found['rounds']:,} rounds: {found['right']:,} of {found['guesses']:,} coins guessed right, "
        f"p-value {found['p_value']:.3g}",
    ]
    if found["verdict"] != "FALSIFIED":
        lines.append("a smoke test: a learner that adds many losses up survives it whatever its epsilon; check audits")
    return _filled(lines)


def _filled(lines: Iterable[str]) -> str:
    """Return the lines, long ones broken; but not a command, which is to be copied."""
    return "\n".join(
        line
        if line.startswith(tuple(f"{word}: " for word in REPLAY_WORDS))
        else textwrap.fill(line, width(), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in lines
    )


def regret_lines(target: str, audit: dict[str, Any]) -> str:
    """Return a regret measurement in a few lines."""
    target, audit = visible(target), visible(audit)
    low, high = audit["interval"]
    lines = [
        f"{target}: mean regret {audit['mean_regret']:.4g} in {audit['rounds']} rounds, {audit['sequence']} losses",
        f"interval [{low:.4g}, {high:.4g}] at {audit['confidence']:.4g}, {audit['interval_method']}, "
        f"{audit['runs']} runs",
        f"growth exponent {number(audit['slope'])}, between {number(audit['slope_lower'])} and "
        f"{number(audit['slope_upper'])}, over T = {audit['horizons']}",
    ]
    if audit.get("source"):
        binds = audit.get("binds_from")
        none = "no largest regret is known" if audit.get("largest") is None else "it says nothing up to T = 2^60"
        says = f"it says something from T = {binds:,} on" if binds is not None else none
        lines.append(f"bound {number(audit['bound'])}: {audit['bound_verdict']}; {says} ({audit['source']})")
        own = audit.get("bound_slope")
        certified = [number(audit.get(f"growth_{end}")) for end in ("lower", "upper")]
        lines.append(
            f"claimed exponent {number(audit['exponent'])}"
            + (f" (the bound's own slope here: {number(own)})" if own is not None else "")
            + f": {audit['growth_verdict']}"
            + (f", certified growth {' to '.join(certified)}" if certified != ["-", "-"] else "")
        )
    if audit.get("found"):
        blocks, means = ", ".join(f"{n} x {loss}" for n, loss in audit["found"]), audit["by_sequence"]
        listed = max(mean for name, mean in means.items() if name != "found by search")
        found = f"mean regret {means['found by search']:.4g}, on the listed sequences {listed:.4g} at most"
        lines.append(f"found by search: {blocks}: {found}")
    for one in audit.get("adaptive") or ():
        low, high = one["interval"]
        lines.append(
            f"an adversary that {one['adversary']}: mean regret {one['mean_regret']:.4g}, interval "
            f"[{low:.4g}, {high:.4g}] (no verdict rests on it)"
        )
    if audit.get("replay"):
        lines.append(f"replay: {audit['replay']}")
    return _filled(lines)
