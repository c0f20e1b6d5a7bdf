"""Labelled lines for a terminal: line 1, then labels in one column, in at most eight lines of 120 columns.

Assumptions are whole: what they take beyond one line does not count.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from ..sanitise import visible

#: A label and its text.
Row = tuple[str, str]
#: Columns of the labels and of a line; lines of one label and of all, at most.
LABEL, WIDTH, LINES, MAX_LINES = 12, 120, 2, 8
#: What gets one line where eight do not hold all, the least important first; and what is then left out.
SHORTENED = ("Claimed by", "Cause", "Fix", "Inputs", "Simplest", "Next", "Power", "Meaning", "Evidence")
OPTIONAL = ("Claimed by", "Next")
#: The label of a command, which is to be copied: never wrapped, never shortened.
COMMAND = "Reproduce"
#: The label of what a bound rests on, which is never cut.
ASSUMES = "Assumes"


def labelled(head: str, rows: Sequence[Row]) -> str:
    """Return line 1 and the labels below it, shortened to eight lines; labels without text are left out."""
    rows = [(label, text) for label, text in rows if text]
    limits: dict[str, int] = {}
    max_lines = MAX_LINES + sum(len(wrapped(label, text)) - 1 for label, text in rows if label == ASSUMES)
    for label, limit in [*((name, 1) for name in SHORTENED), *((name, 0) for name in OPTIONAL)]:
        lines = filled(rows, limits)
        if len(lines) < max_lines:
            break
        limits[label] = limit
    return "\n".join([head, *filled(rows, limits)])


def filled(rows: Sequence[Row], limits: Mapping[str, int] | None = None) -> list[str]:
    """Return labels with their texts, each in two lines at most, or in as many as `limits` says; assumptions whole."""
    lines: list[str] = []
    for label, text in rows:
        limit = None if label == ASSUMES else (limits or {}).get(label, LINES)
        lines += [] if limit == 0 else wrapped(label, text, limit)
    return lines


def wrapped(label: str, text: str, max_lines: int | None = None, *, indent: int = 0) -> list[str]:
    """Return a label with its text below each other, in so many lines at most; a command stays in one line."""
    start, text = f"{' ' * indent}{label:<{LABEL}}", visible(text)
    if label == COMMAND or not text:
        return [(start + text).rstrip()]
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        max_lines=max_lines,
        placeholder=" ...",
        break_on_hyphens=False,
    )


def details(rows: Sequence[Row]) -> list[str]:
    """Return what stands below the labels in full: labels with their texts, under a heading."""
    lines = whole(rows, indent=2)
    return ["Details", *lines] if lines else []


def whole(rows: Sequence[Row], *, indent: int = 0) -> list[str]:
    """Return labels with their whole texts; of rows with one label the first alone has it."""
    entries = [(label, text) for label, text in rows if text]
    before = ["", *(label for label, _ in entries)]
    listed = [
        (label if label != last or label == COMMAND else "", text)
        for (label, text), last in zip(entries, before, strict=False)
    ]
    return [line for label, text in listed for line in wrapped(label, text, indent=indent)]
