"""What is released of linear forms: the rows of A x noise + shift, what explains them, and the noise calls of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from ...errors import reworded
from ...mechanisms.draws import Law
from ..encoding.places import Size
from .forms.form import Form
from .forms.least_noise import ROUNDED, Explained, Row, combination, explained, in_span
from .parting import Leak, lost_track
from .tape import Call, Drawn, Escape, Release, Shown, Tape, TapeEvent, UntraceableError, site_of
from .watched import CallSite

#: The most outputs that are combined in words.
_MOST_TERMS = 4


def rows_of(left: Sequence[TapeEvent], right: Sequence[TapeEvent], events: int) -> list[Row]:
    """Return the forms that the first events release, as rows; and shown numbers without noise that differ.

    A number that is shown is that of the form whose value it is: no other has all its digits. Where calls are frozen,
    what follows from them is compared apart.
    """
    rows = []
    form_of_value: dict[float, tuple[Form, Form]] = {}
    frozen = any(isinstance(event, Call) for event in left)
    for place, (a, b) in enumerate(islice(zip(left, right, strict=False), events)):
        if isinstance(a, Release) and isinstance(b, Release):
            rows += [_row(*forms, place, 0) for forms in zip(a.forms, b.forms, strict=False)]
            if a.value is not None:
                form_of_value[a.value] = a.forms[0], b.forms[0]
        elif isinstance(a, Shown) and isinstance(b, Shown) and a.value.shape == b.value.shape:
            for number, first, second in _numbered(a.value, b.value):
                if type(first) is type(second) is not Form and isinstance(first, float) and first == second:
                    first, second = form_of_value.get(first, (first, second))
                if type(first) is type(second) is Form:
                    rows.append(_row(first, second, place, number))
                elif not frozen and isinstance(first, float) and isinstance(second, float) and first != second:
                    rows.append(Row({}, first, second, place, number))
    return rows


def _row(left: Form, right: Form, place: int, number: int) -> Row:
    return Row(left.noise, left.shift, right.shift, place, number, max(left.size, right.size))


def _numbered(a: Any, b: Any) -> Iterator[tuple[int, Any, Any]]:
    """Yield the numbers of two values that are shown, with their places from 1."""
    number = 0
    for first, second in zip(a.flat, b.flat, strict=True) if a.dtype.kind in "Of" else ():
        number += not isinstance(first, Size)
        yield number, first, second


class Released:
    """What two paired runs release of forms, up to where they part."""

    def __init__(self, left: Tape, right: Tape, events: int) -> None:
        self.left, self.right = left, right
        self.rows = rows_of(left.events, right.events, events)
        draws = [event for event in left.events if isinstance(event, Drawn)]
        self.laws: list[Law] = [event.law for event in draws for _ in event.variables]
        try:
            operations = max(tape.operations for tape in (left, right))
            self.found: Explained = explained(self.rows, self.laws, operations)
        except MemoryError as error:
            raise reworded(error, str(error), UntraceableError) from None

    def leak(self, runs: int) -> Leak | None:
        """Return the first row that no noise explains together with those before it, as a leak; None if none."""
        if self.found.unexplained is None:
            return None
        row = self.rows[self.found.unexplained]
        event = self.left.events[row.event]
        form = self._form_of(event, row)
        left, right = (f"{level:.6g}" for level in (self._level(form, row), self._level(form, row) + self.found.rest))
        place = None if form is None else site_of(form.where)
        if isinstance(event, Release):
            text = "a number depends on the inputs beside its noise"
            return Leak(
                "number", event.round, place, left, right, 1, runs, events=row.event, words=text, lost=event.place
            )
        assert isinstance(event, Shown)
        subject, number = self._name(event, row)
        leak = Leak(subject, event.round, place, left, right, 1, runs, number=number, events=row.event)
        shown_rows = [each_row for each_row in self.rows[: self.found.unexplained + 1] if each_row.number]
        suffices = explained(shown_rows, self.laws).unexplained is None
        releases = (event.place for event in self.left.events if isinstance(event, Release))
        untracked = next(releases, None) if suffices else place if form is not None and form.is_public else None
        if not row.factors:
            return replace(leak, lost=untracked)
        sites = {
            event.place
            for event in self.left.events
            if isinstance(event, Drawn) and not row.factors.keys().isdisjoint(event.variables)
        }
        hint = f"its noise, drawn at {', '.join(sorted(map(str, sites)))}, is in other outputs too"
        if number:
            hint += self._noiseless(row, shown_rows[:-1])
        return replace(leak, hint=hint, lost=untracked)

    def _form_of(self, event: TapeEvent, row: Row) -> Form | None:
        """Return the form of a row; None of a number without noise."""
        if isinstance(event, Release):
            return next(form for form in event.forms if form.noise == row.factors and form.shift == row.left)
        assert isinstance(event, Shown)
        value = event.value.flat[self._place(event, row.number)]
        if type(value) is Form or not row.factors:
            return value if type(value) is Form else None
        return next(e.forms[0] for e in self.left.events if isinstance(e, Release) and e.value == value)

    @staticmethod
    def _level(form: Form | None, row: Row) -> float:
        return row.left if form is None else form.tape.concrete(form)

    @staticmethod
    def _name(event: Shown, row: Row) -> tuple[str, int]:
        """Return what a row is, and its number in an output."""
        subject = f"{event.what} of round {event.round}" if event.round else event.what
        return subject, 0 if event.what != "output" or _by_keys(event) else row.number

    @staticmethod
    def _noiseless(row: Row, shown_rows: list[Row]) -> str:
        """Return which combination of outputs carries no noise, where a few do it, and what it is for both inputs."""
        spanning = [term for term in shown_rows if term.event == row.event]
        terms = {
            spanning[place].number: (factor, spanning[place]) for place, factor in combination(row, spanning).items()
        }
        if not 0 < len(terms) <= _MOST_TERMS:
            return ""
        texts = [f"{'-' if factor > 0 else '+'} {_times(abs(factor))}output {j}" for j, (factor, _) in terms.items()]
        sides = [[term.left, term.right] for _, term in terms.values()]
        factors = [factor for factor, _ in terms.values()]
        left, right = (
            shift - sum(factor * shifts[side] for factor, shifts in zip(factors, sides, strict=True))
            for side, shift in enumerate((row.left, row.right))
        )
        noiseless = f"output {row.number} {' '.join(texts)}"
        return f"; {noiseless} carries none: it is {left:.6g} for left and {right:.6g} for right"

    @staticmethod
    def _place(event: Shown, number: int) -> int:
        flat = list(event.value.flat)
        return [i for i, cell in enumerate(flat) if not isinstance(cell, Size)][number - 1]

    def lost(self, leak: Leak) -> CallSite | None:
        """Return where the trace lost track before a leak; None where it is a bypass."""
        before = [tape.escaped for tape in (self.left, self.right)]
        escaped = [draw for draw in before if draw is not None and draw.events <= leak.events]
        hidden = self._hides(leak, escaped)
        return lost_track(leak, (self.left, self.right), hidden)

    def _hides(self, leak: Leak, escaped: list[Escape]) -> list[Escape]:
        """Return where noise became a number, unless what is shown says all that was released by then."""
        if not escaped:
            return []
        inner_rows = [row for row in self.rows if not row.number and row.event <= leak.events]
        shown_rows = [row for row in self.rows if row.number]
        return [] if in_span(inner_rows, shown_rows) else escaped

    def calls(self) -> list[tuple[Call, Call]]:
        """Return the noise calls of both runs: of noise that is followed what it is noise for."""
        factors: dict[int, float] = {}
        for row in self.rows:
            for key, factor in row.factors.items():
                factors.setdefault(key, abs(factor))
        pairs = []
        for a, b in zip(self.left.events, self.right.events, strict=False):
            if type(a) is not type(b):
                break
            if isinstance(a, Call) and isinstance(b, Call):
                if np.shape(a.value) != np.shape(b.value):
                    break
                pairs.append((a, b))
            elif isinstance(a, Drawn) and isinstance(b, Drawn):
                pairs.append(self._call(a, factors))
        return pairs

    def _call(self, draw: Drawn, factors: dict[int, float]) -> tuple[Call, Call]:
        """Return fresh noise as a call, times the factor that it has where it is released first."""
        factor = next((factors[key] for key in draw.variables if factors.get(key)), 1.0)
        level, moves = (
            factor * np.array([amounts.get(key, 0.0) for key in draw.variables]).reshape(draw.shape)
            for amounts in (self.found.level, self.found.moved)
        )
        law: Any = draw.law
        if factor != 1.0:
            law = type(law)(factor * float(getattr(law, "scale", getattr(law, "sigma", 1.0))))
        call = Call(draw.name, draw.place, draw.round, law, level, None, moved=moves)
        return call, replace(call, value=level + moves)


def _times(factor: float) -> str:
    return "" if abs(factor - 1) <= ROUNDED else f"{factor:.6g} x "


def _by_keys(event: Shown) -> bool:
    return any(isinstance(cell, Size) and cell.kind not in ("list", "tuple") for cell in event.value.flat)
