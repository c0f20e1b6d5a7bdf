"""The history of a baseline: what was counted of each of its claims at each change of the audited code.

A text file beside the baseline, one JSON line for each claim and change. They count in the order of their times, and
are only ever added: git merges two branches by taking both sides (`*.history merge=union`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..audit.plans.lock import alone
from ..audit.plans.paths import exists, read_text
from ..audit.statistics.change_evidence import STAKES, Guesses, Limits, Line


class Count(NamedTuple):
    """What one change showed of an event, beside the line that it was tested against."""

    line: Line
    guesses: Guesses
    log_e: float = 0.0

    @property
    def log_growth(self) -> NDArray[np.float64]:
        """The logarithm of L for each stake."""
        return self.line.log_growth(self.guesses) + self.log_e

    def to_json(self) -> list[float]:
        """Return the numbers of a line of the history."""
        return [self.line.epsilon, self.line.delta, *self.guesses, self.log_e]

    @classmethod
    def of_json(cls, numbers: Any) -> Count:
        """Read them; raise ValueError for others."""
        epsilon, delta, hits, misses, runs, log_e = (float(number) for number in numbers)
        sizes = [int(hits), int(misses), int(runs)]
        if sizes != [hits, misses, runs] or min(sizes) < 0 or hits + misses > runs or not 0 <= delta < 1:
            raise ValueError("no counts")
        return cls(Line(epsilon, delta), Guesses(*sizes), log_e)


@dataclass(frozen=True)
class Change:
    """One claim at one change: the hash of both, and the counts of its own event and of the accepted one.

    Attributes
    ----------
    time : str
        When it was audited.
    claim, change : str
    own, accepted : Count or None
    batches, more_runs : int
        In which it was counted on.
    read : dict
        The hashes of the files that the audit read, by their names: a later change is known by these.
    """

    time: str
    claim: str
    change: str
    own: Count | None
    accepted: Count | None
    batches: int = 0
    more_runs: int = 0
    read: dict[str, str] = field(default_factory=dict)

    @property
    def of_claim(self) -> list[int]:
        """The rows of the events that are tested by the claim itself."""
        if self.own is None:
            return []
        return [0, 1] if self.accepted is not None and self.accepted.line == self.own.line else [0]

    def limits(self, claims: int) -> Limits:
        """Return where a claim is red: later where the accepted bound, which may be wrong, is what it is tested by."""
        bounded = self.accepted is not None and 1 not in self.of_claim
        return Limits(claims, bounded)

    @property
    def log_growth(self) -> NDArray[np.float64]:
        """The logarithm of L: (events, stakes), the claim's own event first; nan of one that was not counted."""
        rows = [np.full(STAKES.size, np.nan) if row is None else row.log_growth for row in (self.own, self.accepted)]
        return np.array(rows)

    def to_text(self) -> str:
        """Return its line."""
        data = vars(self) | {name: count and count.to_json() for name, count in self.counts.items()}
        return json.dumps(data, sort_keys=True)

    @property
    def counts(self) -> dict[str, Count | None]:
        """What was counted of each event."""
        return {"own": self.own, "accepted": self.accepted}

    @classmethod
    def of_text(cls, text: str) -> Change:
        """Read a line; raise ValueError for another."""
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("no object")
        time, claim, change = (str(data[name]) for name in ("time", "claim", "change"))
        read = {str(name): str(digest) for name, digest in data["read"].items()}
        claimed, accepted = (None if data[name] is None else Count.of_json(data[name]) for name in ("own", "accepted"))
        return cls(time, claim, change, claimed, accepted, int(data["batches"]), int(data["more_runs"]), read)


@dataclass(frozen=True)
class History:
    """The changes that a file holds.

    Attributes
    ----------
    path : Path
    changes : list of Change
        One for each claim and change, the first of those that are alike, in the order of their times.
    torn : bool
        Whether its last line was cut off, as by a kill, and dropped.
    """

    path: Path
    changes: list[Change]
    torn: bool = False

    @classmethod
    def beside(cls, baseline: Path) -> History:
        """Read the history of a baseline; there may be none yet.

        Raises
        ------
        ValueError
            For a line that is none, but for the last.
        """
        path = baseline.with_suffix(".history")
        lines = read_text(path, "history").splitlines() if exists(path, "cannot read the history") else []
        changes: list[Change] = []
        torn = False
        for number, line in enumerate(lines, start=1):
            try:
                changes.append(Change.of_text(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
                if number < len(lines):
                    raise ValueError(f"{path}:{number} is no line of a history") from None
                torn = True
        first: dict[tuple[str, str], Change] = {}
        for change in sorted(changes, key=lambda change: change.time):
            first.setdefault((change.claim, change.change), change)
        return cls(path, [*first.values()], torn)

    def of(self, claim: str) -> list[Change]:
        """Return the changes of a claim."""
        return [change for change in self.changes if change.claim == claim]

    def until(self, change: Change) -> list[Change]:
        """Return the changes of a claim up to one of them, which ends the list as the file has it."""
        changes = self.of(change.claim)
        place = next((i for i, other in enumerate(changes) if other.change == change.change), None)
        return [*changes, change] if place is None else changes[: place + 1]

    def add(self, changes: Sequence[Change]) -> None:
        """Append changes that no other run has added meanwhile; one run at a time does."""
        with alone(self.path.with_name(f".{self.path.name}.adding")):  # to write has a lock of its own
            current = History.beside(self.path)
            keys = {(change.claim, change.change) for change in current.changes}
            last = max((change.time for change in current.changes), default="")  # clocks differ
            new = [change for change in changes if (change.claim, change.change) not in keys]
            added = [replace(change, time=max(change.time, last)) for change in new]
            if current.torn:
                self.write(current.changes)
            self.changes[:] = [*current.changes, *added]
            if added:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("".join(f"{change.to_text()}\n" for change in added))

    def write(self, changes: Sequence[Change]) -> None:
        """Write the file anew."""
        from .record import write_atomically

        write_atomically(self.path, "".join(f"{change.to_text()}\n" for change in changes))
