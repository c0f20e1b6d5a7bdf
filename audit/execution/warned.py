"""Warnings of code under audit: a place that warns is shown once, with a count, whichever process it ran in."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...learners.blame import said


class Place(NamedTuple):
    """Where a warning came from."""

    kind: str
    file: str
    line: int


#: From a place to the first warning that it gave, on one line, and how often it warned.
Warned = dict[Place, tuple[str, int]]
#: What is being collected, innermost last; and what was shown where nothing is.
_collecting: list[Warned] = []
_reported: set[Place] = set()


@contextmanager
def collected() -> Iterator[Warned]:
    """Collect warnings, all that no filter hides, in place of showing them."""
    records: Warned = {}

    def note(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: object) -> None:
        text = said(message) if isinstance(message, Warning) else f"{category.__name__}: {message}"
        _add(records, {Place(category.__name__, filename, lineno): (text, 1)})

    with warnings.catch_warnings():
        warnings.simplefilter("always", append=True)  # Python forgets what it has shown, and would show it again
        warnings.showwarning = note  # type: ignore[assignment]
        _collecting.append(records)
        try:
            yield records
        finally:
            _collecting.pop()


def receive(warned: Warned) -> None:
    """Add what another process has collected; where nothing is collected, show each place once."""
    if _collecting:
        _add(_collecting[-1], warned)
        return
    new = {place: record for place, record in warned.items() if place not in _reported}
    _reported.update(new)
    for line in lines(new) if sys.stderr is not None else ():
        print(f"overclaim: {line}", file=sys.stderr)


def lines(warned: Warned) -> list[str]:
    """Return a line for each place."""
    return [
        f"warning: {text} ({place.file}:{place.line}){f', {times:,} times' if times > 1 else ''}"
        for place, (text, times) in sorted(warned.items(), key=lambda item: (item[0].file, item[0].line))
    ]


def _add(total: Warned, warned: Warned) -> None:
    for place, (text, times) in warned.items():
        first, before = total.get(place, (text, 0))
        total[place] = first, before + times
