"""Plain tables for a terminal: widths fit, colours only where one is watching (click strips them elsewhere)."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from ...audit.regret.verdicts import YOURS, promised_growth, regret_verdict
from ...audit.statistics.digits import at_least, confidence_text
from ...audit.statistics.measure_words import is_epsilon
from ...audit.verdicts.blind_spot import factor_words
from ...audit.verdicts.witness import witness_lines
from ...learners.catalogue.entries import Entry
from ...learners.catalogue.statements import STANDINGS
from ...mechanisms.libraries.entry import LibraryEntry
from ...mechanisms.measures.stated import number_text
from ...mechanisms.one_shot.zoo import Specimen
from ..headline import beside_words, headline_words
from ..identity import settings
from ..reading import (
    bound_words,
    by_holm,
    certified,
    due_verdict,
    exact_words,
    is_mechanism,
    is_unexpected,
    is_violated,
    kind_words,
    level,
    lower,
    measure_of,
    missing_words,
)
from ..record_types import ClaimRecord, RunRecord
from ..sanitise import visible, visible_line
from ..upper_words import binding, is_bounded

if TYPE_CHECKING:
    from ...audit.regret.measurement import RegretJson

COLOURS = {"FALSIFIED": "red", "SURVIVED": "green", "UNDERPOWERED": "yellow"}
TRACE_COLOURS = {"BYPASS": "red", "NOT BOUNDED": "yellow", "NOT TRACED": "yellow"}
#: The right end of the ruler, in multiples of the claim.
RULER_END = 2.5


def width() -> int:
    """Return the columns to fill; a file or a log cuts off none."""
    return min(shutil.get_terminal_size((140, 24)).columns, 140)


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
        standings = ", ".join(s for s in STANDINGS if any(case.standing == s for case in entry.cases))
        rows.append((entry.name, entry.promise or "none", entry.summary, standings, entry.source))
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
    return None if os.environ.get("NO_COLOR") else {**COLOURS, **TRACE_COLOURS}.get(verdict)


def number(value: float | None) -> str:
    """Return four significant digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def confidence(claim: ClaimRecord) -> str:
    """Return a claim's confidence with as many digits as tell it from certainty."""
    return confidence_text(claim["confidence"])


def claims_table(record: RunRecord) -> str:
    """Return the view of a run: a ruler of all claims, what is unexpected, what could not be audited, and the sum."""
    record = visible(record)
    claims, columns = record["claims"], width()
    shorts = [visible_line(c["name"]).rpartition("/")[2] for c in claims]
    longest = min(max((len(name) for name in shorts), default=0), 24)
    bar = 20 if columns >= 110 else 10
    own = [setting(claim) for claim in claims]
    told = [visible_line(text) for text in settings(claims, own, " ")]
    room = max(min(columns - bar - 37, longest + 2 + max(map(len, told), default=0)), 12)
    claim_at = round(bar / RULER_END)
    heads = f"{'0':<{claim_at}}{'claim':<{bar - claim_at}}{'at least':>10}{'claimed':>8} {'exact':>7}{'blind':>7}"
    lines, paper = [" " * (room + 4) + heads] if claims else [], None
    for claim, short, usual, its in zip(claims, shorts, own, told, strict=True):
        group = visible_line(claim["name"]).rpartition("/")[0]
        if group != paper:
            # What is of no paper, in a file here, does not stand beneath the heading of one.
            lines += [click.style(shorten(group or "claims", columns), bold=True)] if group or paper else []
            paper = group
        apart = its[len(usual) :]  # is cut off last
        apart = apart if len(apart) <= room // 2 else ""
        label = shorten(f"{shorten(short, longest):<{longest}}  {its.removesuffix(apart)}", room - len(apart)) + apart
        mark = click.style(_glyph(claim), fg=colour(claim["verdict"]), bold=True)
        lines.append(f"{mark} {label:<{room}}  {_bar(claim, bar)}{_numbers(claim)}")
    if any(exact_words(claim) != "-" for claim in claims):
        lines.append("exact: on the audited pair alone")
    for claim, its in zip(claims, told, strict=True):
        if not is_unexpected(claim):
            continue
        lines.append("")
        lines.append(f"{click.style('unexpected', bold=True)}: {visible_line(claim['name'])}, {its}")
        due = due_verdict(claim).lower()
        why = f" ({claim['reason']})" if claim.get("reason") else ""
        lines.append(f"  {verdict_word(claim['verdict'])}{why}, expected {due}: {visible_line(claim['replay'])}")
        lines += [f"  {line}" for line in shrunk_lines(claim)]
    lines += [
        f"falsified together: {visible_line(c['name'])}, {its}: {bound_words(c)}"
        for c, its in zip(claims, told, strict=True)
        if by_holm(c)
    ]
    lines += [f"{visible_line(c['name'])}: {visible_line(line)}" for c in claims for line in missing_words(c)]
    lines += _bound_lines(record)
    for error in record.get("errors", ()):
        lines.append(f"{error['kind']}: {visible_line(error['name'])}: {visible_line(error['message'])}")
    lines += _skipped_lines(record)
    return "\n".join([*lines, "", *headline_lines(record), _sum_line(record)])


def _skipped_lines(record: RunRecord) -> list[str]:
    """Return a line for every library that is not installed, or not in the version that is quoted."""
    rooms = Counter(
        (visible_line(s["name"]).rpartition("/")[0], visible_line(s["reason"])) for s in record.get("skipped") or ()
    )
    return [f"skipped: {room}, {count} of its entries: {reason}" for (room, reason), count in rooms.items()]


def _sum_line(record: RunRecord) -> str:
    """Return how many claims have which verdict, how many of them as expected, and how many entries were skipped."""
    claims, skipped = record["claims"], record.get("skipped") or ()
    verdicts = [c["verdict"] for c in claims]
    counts = [
        click.style(f"{verdicts.count(v)} {v.lower()}", fg=colour(v), bold=True) for v in COLOURS if v in verdicts
    ]
    if bounded := [c for c in claims if is_bounded(c)]:
        everywhere = sum(c.get("upper_scope") == "claim" for c in bounded)
        scopes = {"on every pair": everywhere, "on the audited pair": len(bounded) - everywhere}
        words = " and ".join(f"{many} {where}" for where, many in scopes.items() if many)
        counts.append(f"{words} bounded by their traces")
    stated = [c for c in claims if c.get("expected")]
    met = sum(not is_unexpected(c) for c in stated)
    judged = [f"{met} of {len(stated)} as expected"] if stated else []
    if surprises := sum(is_unexpected(c) for c in claims if not c.get("expected")):
        judged.append(f"{surprises} {'more ' if met < len(stated) else ''}unexpected")
    as_expected = f"; {', '.join(judged)}" if judged else ""
    as_expected += f"; {len(skipped)} skipped, of which nothing is known" if skipped else ""
    return f"{', '.join(counts) or 'no claim was audited'}{as_expected}"


def _bound_lines(record: RunRecord) -> list[str]:
    """Return a line for every bound on regret of a plan's own, and for every one that is violated."""
    rows = record.get("regret") or ()
    return [bound_line(row) for row in rows if row.get("source") == YOURS or is_violated(row)]


def bound_line(row: RegretJson) -> str:
    """Return what a measurement of regret says of its bound, and of a growth that is violated."""
    name, sequence = (visible_line(row.get(field) or "unnamed") for field in ("name", "sequence"))
    growing = row.get("growth_verdict") == "VIOLATED"
    verdict = (growing and row.get("bound_verdict")) or row.get("verdict")  # the row's is the worse of the two
    line = (
        f"regret of {name}: {regret_verdict(verdict)}: mean {number(row.get('mean_regret'))}, "
        f"bound {number(row.get('bound'))}, T = {row.get('rounds')}, {sequence} losses"
    )
    if growing:
        claimed, what = promised_growth(row.get("exponent") or 0.0, row.get("bound_slope"))
        line += f"; VIOLATED: growth exponent at least {at_least(row.get('growth_lower'))}, claimed {number(claimed)}"
        line += f" ({what})" if claimed != row.get("exponent") else ""
    return line


def headline_lines(record: RunRecord) -> list[str]:
    """Return what is false of what is published, with what else was falsified; nothing for a user's own claims."""
    if not any(claim.get("standing") for claim in record["claims"]):
        return []
    words = [click.style(headline_words(record), bold=True), beside_words(record["claims"])]
    return [word for word in words if word]


def setting(claim: ClaimRecord) -> str:
    """Return what tells a claim from its siblings: what is not as usual, which is as the paper has it."""
    words = [claim.get("calibration") or "", claim.get("losses") or ""]
    words = [word for word in words if word != "as_published"]
    if is_mechanism(claim):
        words = [kind_words(claim)]
    words += [claim["surface"]] if claim["surface"] != "actions" else []
    words += [claim["neighbours"]] if claim["neighbours"] != "replace" else []
    words += [f"T={claim['rounds']}"] if claim.get("rounds") and not is_mechanism(claim) else []
    measure = measure_of(claim)
    if not is_epsilon(measure):
        words.append("total variation" if measure.get("kind") == "approximate" else str(measure.get("kind")))
    words += [f"order={number_text(measure['order'])}"] if measure.get("order") else []
    words += [f"delta={number_text(measure['delta'])}"] if is_epsilon(measure) and measure.get("delta") else []
    return visible_line(" ".join(word for word in words if word))


def _numbers(claim: ClaimRecord) -> str:
    claimed, exact = number(level(claim)), exact_words(claim)
    return f"{certified(claim):>10}{claimed:>8} {exact:>7}{factor_words(claim.get('blind_spot')):>7}"


def _bar(claim: ClaimRecord, size: int) -> str:
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
    if upper is not None and (at := round(upper / level(claim) * size / RULER_END)) < size:
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


def _glyph(claim: ClaimRecord) -> str:
    """Return the mark of a verdict."""
    marks = "✗✓?" if _unicode() else "x+?"
    return dict(zip(COLOURS, marks, strict=True))[claim["verdict"]]


def shrunk_words(record: RunRecord) -> str:
    """Return how many shrunk witnesses the files of a run hold; nothing where there are none."""
    shrunk = sum(1 for claim in record["claims"] if (found := claim.get("shrunk")) and found.get("fresh", True))
    return f": both hold {shrunk} shrunk witness{'es' * (shrunk > 1)}" if shrunk else ""


def shrunk_lines(claim: ClaimRecord) -> list[str]:
    """Return a claim's shrunk witness: its bound, the losses of both worlds, and the command that replays it."""
    shrunk = claim.get("shrunk")
    if not shrunk:
        return []
    filled = [
        textwrap.fill(line, width(), subsequent_indent=" " * 9, break_long_words=False, break_on_hyphens=False)
        for line in witness_lines(shrunk)
    ]
    return [*filled, f"  replay: {visible_line(shrunk['replay'])}"]
