"""Two inputs as texts that are short enough to be read, and in which what differs is in sight."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ...mechanisms.relations.canonical import Canonical
from .data import shown

#: Letters of an input in a line, and those of them that come before the first difference.
MAX_LETTERS, BEFORE = 84, 24
#: So many equal records in a row are counted.
MIN_COUNTED = 4
#: Digits of a number on which nothing turns.
DIGITS = 4
#: How the records of each kind of data are held; of others the kind is said.
_BRACKETS = {"list": ("[", "]"), "tuple": ("(", ")"), "dictionary": ("{", "}")}


def beside(left: Any, right: Any, max_letters: int = MAX_LETTERS) -> tuple[str, str]:
    """Return the texts of two forms of data, in which what both have is counted where there is no room for it.

    Numbers are rounded, unless that makes records alike that are not.

    Examples
    --------
    >>> beside([0.5] * 20, [0.5] * 19, 40)
    ('[0.5 x 19, 0.5]', '[0.5 x 19]')
    """
    sides = [Canonical.whatever(form) for form in (left, right)]
    exact, rounded = ([_records(side, digits) for side in sides] for digits in (None, DIGITS))
    hidden = len(exact[0]) == len(exact[1]) and any(
        first != second and short == other for first, second, short, other in zip(*exact, *rounded, strict=True)
    )
    digits, records = (None, exact) if hidden else (DIGITS, rounded)
    texts = shown(left, digits), shown(right, digits)
    if max(map(len, texts)) <= max_letters or any(side.kind == "single value" for side in sides):
        return cut_beside(*texts, max_letters)
    before = _alike(*exact)
    after = _alike(*(list(reversed(side[before:])) for side in exact))
    for summed in (False, True):
        lines = [_line(side, rows, before, after, summed) for side, rows in zip(sides, records, strict=True)]
        if max(map(len, lines)) <= max_letters:
            return lines[0], lines[1]
    if len(exact[0]) == len(exact[1]) == before + 1 + after:  # one long record differs: its parts
        pair = [side.records[before] for side in sides]
        full = [shown(record, digits) for record in pair]
        room = max_letters - max(len(line) - len(text) for line, text in zip(lines, full, strict=True))
        parts = beside(pair[0], pair[1], max(room, BEFORE))
        lines = [line.replace(text, part, 1) for line, text, part in zip(lines, full, parts, strict=True)]
    return cut_beside(lines[0], lines[1], max_letters)


def cut_beside(left: str, right: str, max_letters: int = MAX_LETTERS) -> tuple[str, str]:
    """Return two texts, each cut to `max_letters` around the first difference."""
    length = max(len(left), len(right))
    if length <= max_letters:
        return left, right
    shared = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    start = max(0, min(shared - BEFORE, length - max_letters + 3))
    start = 0 if start <= 3 else start
    return _cut(left, start, max_letters), _cut(right, start, max_letters)


def _cut(text: str, start: int, max_letters: int) -> str:
    """Return at most `max_letters` letters of a text, from `start` on; dots stand for the rest."""
    text = f"...{text[start:]}" if start else text
    return text if len(text) <= max_letters else f"{text[: max_letters - 3]}..."


def _records(side: Canonical, digits: int | None) -> list[str]:
    texts = [shown(record, digits) for record in side.records]
    return (
        texts if side.labels is None else [f"{label}: {text}" for label, text in zip(side.labels, texts, strict=True)]
    )


def _alike(left: Sequence[str], right: Sequence[str]) -> int:
    """Return with how many equal records two inputs begin."""
    shorter = min(len(left), len(right))
    return next((i for i in range(shorter) if left[i] != right[i]), shorter)


def _line(side: Canonical, records: Sequence[str], before: int, after: int, summed: bool) -> str:
    """Return the records of one side, those before and after what differs counted if there is no room for them."""
    end = len(records) - after
    parts = [f"{before} alike"] if summed and before else _grouped(records[:before])
    parts = [*parts, *_grouped(records[before:end])]
    parts += [f"{after} alike"] if summed and after else _grouped(records[end:])
    names = ", ".join(side.frame.get("columns") or side.frame.get("keys") or ())
    opening, closing = _BRACKETS.get(side.kind) or (f"{side.kind}({names}{': ' * bool(names)}[", "])")
    return f"{opening}{', '.join(parts)}{closing}"


def _grouped(records: Sequence[str]) -> list[str]:
    """Return the records, equal ones in a row counted."""
    groups = [(record, len(list(equal))) for record, equal in groupby(records)]
    return [
        part
        for record, count in groups
        for part in ([f"{record} x {count}"] if count >= MIN_COUNTED else [record] * count)
    ]
