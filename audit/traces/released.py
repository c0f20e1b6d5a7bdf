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
    known: dict[float, tuple[Form, Form]] = {}
    frozen = any(isinstance(event, Call) for event in left)
    for place, (a, b) in enumerate(islice(zip(left, right, strict=False), events)):
        if isinstance(a, Release) and isinstance(b, Release):
            rows += [_row(*forms, place, 0) for forms in zip(a.forms, b.forms, strict=False)]
            if a.value is not None:
                known[a.value] = a.forms[0], b.forms[0]
        elif isinstance(a, Shown) and isinstance(b, Shown) and a.value.shape == b.value.shape:
            for number, one, other in _numbered(a.value, b.value):
                if type(one) is type(other) is not Form and isinstance(one, float) and one == other:
                    one, other = known.get(one, (one, other))
                if type(one) is type(other) is Form:
                    rows.append(_row(one, other, place, number))
                elif not frozen and isinstance(one, float) and isinstance(other, float) and one != other:
                    rows.append(Row({}, one, other, place, number))
    return rows


def _row(left: Form, right: Form, place: int, number: int) -> Row:
    return Row(left.noise, left.shift, right.shift, place, number, max(left.size, right.size))


def _numbered(a: Any, b: Any) -> Iterator[tuple[int, Any, Any]]:
    """Yield the numbers of two values that are shown, with their places from 1."""
    number = 0
    for one, other in zip(a.flat, b.flat, strict=True) if a.dtype.kind in "Of" else ():
        number += not isinstance(one, Size)
        yield number, one, other


class Released:
    """What two paired runs release of forms, up to where they part."""

    def __init__(self, left: Tape, right: Tape, events: int) -> None:
        self.left, self.right = left, right
        self.rows = rows_of(left.events, right.events, events)
        drawn = [event for event in left.events if isinstance(event, Drawn)]
        self.laws: list[Law] = [event.law for event in drawn for _ in event.variables]
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
        here, there = (f"{one:.6g}" for one in (self._level(form, row), self._level(form, row) + self.found.rest))
        place = None if form is None else site_of(form.where)
        if isinstance(event, Release):
            words = "a number depends on the inputs beside its noise"
            return Leak(
                "number", event.round, place, here, there, 1, runs, events=row.event, words=words, lost=event.place
            )
        assert isinstance(event, Shown)
        what, number = self._name(event, row)
        leak = Leak(what, event.round, place, here, there, 1, runs, number=number, events=row.event)
        shown = [one for one in self.rows[: self.found.unexplained + 1] if one.number]
        alone = explained(shown, self.laws).unexplained is None
        lost = self._first_release() if alone else place if form is not None and form.is_public else None
        if not row.factors:
            return replace(leak, lost=lost)
        sites = {event.place for event in self.left.events if isinstance(event, Drawn) and row.uses(event.variables)}
        hint = f"its noise, drawn at {', '.join(sorted(map(str, sites)))}, is in other outputs too"
        if number:
            hint += self._noiseless(row, shown[:-1])
        return replace(leak, hint=hint, lost=lost)

    def _form_of(self, event: TapeEvent, row: Row) -> Form | None:
        """Return the form of a row; None of a number without noise."""
        if isinstance(event, Release):
            return next(form for form in event.forms if form.noise == row.factors and form.shift == row.left)
        assert isinstance(event, Shown)
        one = event.value.flat[self._place(event, row.number)]
        if type(one) is Form or not row.factors:
            return one if type(one) is Form else None
        return next(e.forms[0] for e in self.left.events if isinstance(e, Release) and e.value == one)

    @staticmethod
    def _level(form: Form | None, row: Row) -> float:
        return row.left if form is None else form.tape.concrete(form)

    @staticmethod
    def _name(event: Shown, row: Row) -> tuple[str, int]:
        """Return what a row is, and its number in an output."""
        what = f"{event.what} of round {event.round}" if event.round else event.what
        return what, 0 if event.what != "output" or _by_keys(event) else row.number

    @staticmethod
    def _noiseless(row: Row, shown: list[Row]) -> str:
        """Return which combination of outputs carries no noise, where a few do it, and what it is for both inputs."""
        others = [one for one in shown if one.event == row.event]
        terms = {others[place].number: (factor, others[place]) for place, factor in combination(row, others).items()}
        if not 0 < len(terms) <= _MOST_TERMS:
            return ""
        words = [f"{'-' if factor > 0 else '+'} {_times(abs(factor))}output {j}" for j, (factor, _) in terms.items()]
        sides = [[one.left, one.right] for _, one in terms.values()]
        factors = [factor for factor, _ in terms.values()]
        left, right = (
            own - sum(factor * both[side] for factor, both in zip(factors, sides, strict=True))
            for side, own in enumerate((row.left, row.right))
        )
        noiseless = f"output {row.number} {' '.join(words)}"
        return f"; {noiseless} carries none: it is {left:.6g} for left and {right:.6g} for right"

    @staticmethod
    def _place(event: Shown, number: int) -> int:
        flat = list(event.value.flat)
        return [i for i, one in enumerate(flat) if not isinstance(one, Size)][number - 1]

    def _first_release(self) -> CallSite | None:
        return next((event.place for event in self.left.events if isinstance(event, Release)), None)

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
        inside = [row for row in self.rows if not row.number and row.event <= leak.events]
        shown = [row for row in self.rows if row.number]
        return [] if in_span(inside, shown) else escaped

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

    def _call(self, drawn: Drawn, factors: dict[int, float]) -> tuple[Call, Call]:
        """Return fresh noise as a call, times the factor that it has where it is released first."""
        factor = next((factors[key] for key in drawn.variables if factors.get(key)), 1.0)
        level, moved = (
            factor * np.array([known.get(key, 0.0) for key in drawn.variables]).reshape(drawn.shape)
            for known in (self.found.level, self.found.moved)
        )
        law: Any = drawn.law
        if factor != 1.0:
            law = type(law)(factor * float(getattr(law, "scale", getattr(law, "sigma", 1.0))))
        one = Call(drawn.name, drawn.place, drawn.round, law, level, None, moved=moved)
        return one, replace(one, value=level + moved)


def _times(factor: float) -> str:
    return "" if abs(factor - 1) <= ROUNDED else f"{factor:.6g} x "


def _by_keys(event: Shown) -> bool:
    return any(isinstance(one, Size) and one.kind not in ("list", "tuple") for one in event.value.flat)
