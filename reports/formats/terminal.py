"""Plain tables for a terminal: widths fit, colours only where one is watching (click strips them elsewhere)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from ...audit.record_types import ClaimRecord
from ..reading import level, lower, verdict_of
from ..status import Status
from ..upper_words import binding

if TYPE_CHECKING:
    from ...learners.entry import Entry
    from ...mechanisms.library_entry import LibraryEntry
    from ...mechanisms.specimen import Specimen

COLOURS = {"FALSIFIED": "red", "SURVIVED": None, "UNDERPOWERED": "yellow"}
TONES = {"bad": "red", "unsure": "yellow", "good": "green"}
TRACE_COLOURS = {"BYPASS": "red", "NOT BOUNDED": "yellow", "NOT TRACED": "yellow"}
#: The right end of the ruler, in multiples of the claim.
RULER_END = 2.5


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return left-aligned columns, each as wide as its longest cell."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(click.unstyle(row[i])) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [cell + " " * (w - len(click.unstyle(cell))) for cell, w in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def catalogue_table(entries: Iterable[Entry]) -> str:
    """Return name, claim and source of every entry."""
    from ...learners.entry import STANDINGS

    rows = []
    for entry in entries:
        standings = ", ".join(s for s in STANDINGS if any(case.standing == s for case in entry.cases))
        rows.append((entry.name, entry.promise or "none", entry.summary, standings, entry.source))
    return table(("name", "claim", "algorithm", "claim type", "source"), rows)


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


def status_line(status: Status) -> str:
    """Return a status in its colour: its name, what came of the run, and the exit code."""
    return click.style(str(status), fg=None if os.environ.get("NO_COLOR") else TONES[status.tone], bold=True)


def colour(verdict: str) -> str | None:
    """Return a verdict's colour, none where NO_COLOR asks for none; off a terminal click removes it."""
    return None if os.environ.get("NO_COLOR") else {**COLOURS, **TRACE_COLOURS}.get(verdict)


def number(value: float | None) -> str:
    """Return four significant digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def bar(claim: ClaimRecord, size: int) -> str:
    """Return the certified bound as a bar, up to a multiple of the claim, with the claim marked on it."""
    full, empty, mark, overflow = ("━", "┈", "┃", "▶") if _unicode() else ("=", ".", "|", ">")
    upper = binding(claim)
    claim_at = round(size / RULER_END)
    ratio = lower(claim) / level(claim)
    filled = round(min(ratio, RULER_END) * size / RULER_END)
    # A bar that passes the claim, however little, must be seen to pass it, and one that does not, not.
    filled = max(filled, claim_at + 1) if ratio > 1 else min(filled, claim_at)
    cells = [full] * filled + [empty] * (size - filled)
    if ratio > RULER_END:
        cells[-1] = overflow
    cells[claim_at] = mark if ratio <= 1 else click.style(mark, fg=colour(verdict_of(claim)), bold=True)
    if upper is not None and (limit := round(upper / level(claim) * size / RULER_END)) < size:
        limit = max(limit, filled) if filled < size else limit
        cells[limit] = ("┫" if limit == claim_at else "╎") if _unicode() else "]"
    paint = colour(verdict_of(claim))
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
