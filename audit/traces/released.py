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
from .tape import Call, Draw, Drawn, Release, Shown, Tape, TapeEvent, UntraceableError, site_of
from .watched import CallSite

#: The most outputs that are combined in words.
_MOST_TERMS = 4


def rows_of(left: Sequence[TapeEvent], right: Sequence[TapeEvent], events: int) -> list[Row]:
    """Return the forms that the first events release, as rows.

    A number that is shown is that of the form whose value it is: no other has all its digits.
    """
    rows = []
    known: dict[float, tuple[Form, Form]] = {}
    for place, (a, b) in enumerate(islice(zip(left, right, strict=False), events)):
        if isinstance(a, Release) and isinstance(b, Release):
            rows.append(Row(a.form.coefficients, a.form.shift, b.form.shift, place))
            known[a.value] = a.form, b.form
        elif isinstance(a, Shown) and isinstance(b, Shown) and a.value.shape == b.value.shape:
            for number, one, other in _numbered(a.value, b.value):
                if type(one) is type(other) is not Form and isinstance(one, float) and one == other:
                    one, other = known.get(one, (one, other))
                if type(one) is type(other) is Form and one.coefficients:
                    rows.append(Row(one.coefficients, one.shift, other.shift, place, number))
    return rows


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
            self.found: Explained = explained(self.rows, self.laws)
        except MemoryError as error:
            raise reworded(error, str(error), UntraceableError) from None

    def leak(self, runs: int) -> Leak | None:
        """Return the first row that no noise explains together with those before it, as a leak; None if none."""
        if self.found.unexplained is None:
            return None
        row = self.rows[self.found.unexplained]
        event = self.left.events[row.event]
        if isinstance(event, Release):
            form, what, number = event.form, "number", 0
            words = "a number depends on the inputs beside its noise"
        else:
            assert isinstance(event, Shown)
            one, words = event.value.flat[self._place(event, row.number)], ""
            form = one if type(one) is Form else self._released_as(one)
            what = f"{event.what} of round {event.round}" if event.round else event.what
            number = 0 if event.what != "output" or _by_keys(event) else row.number
        value = form.tape.concrete(form)
        here, there = (f"{one:.6g}" for one in (value, value + self.found.rest))
        place = site_of(form.where)
        leak = Leak(what, event.round, place, here, there, 1, runs, number=number, events=row.event, words=words)
        if isinstance(event, Release):
            return replace(leak, lost=event.place)
        shown = [one for one in self.rows[: self.found.unexplained + 1] if one.number]
        alone = explained(shown, self.laws).unexplained is None
        sites = {event.place for event in self.left.events if isinstance(event, Drawn) and row.uses(event.variables)}
        hint = f"its noise, drawn at {', '.join(sorted(map(str, sites)))}, is in other outputs too"
        if number:
            hint += self._noiseless(row, shown[:-1])
        return replace(leak, hint=hint, lost=self._first_release() if alone else None)

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

    def _released_as(self, value: float) -> Form:
        """Return the form that was released as a number."""
        return next(e.form for e in self.left.events if isinstance(e, Release) and e.value == value)

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

    def _hides(self, leak: Leak, escaped: list[Draw]) -> list[Draw]:
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
            for key, factor in row.coefficients.items():
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
        factor = next((factors[key] for key in drawn.variables if key in factors), 1.0)
        level, moved = (
            factor * np.array([known.get(key, 0.0) for key in drawn.variables]).reshape(drawn.shape)
            for known in (self.found.level, self.found.moved)
        )
        law: Any = drawn.law
        if factor != 1.0:
            law = type(law)(factor * float(getattr(law, "scale", getattr(law, "sigma", 1.0))))
        one = Call(drawn.name, drawn.place, drawn.round, law, level, None)
        return one, replace(one, value=level + moved)


def _times(factor: float) -> str:
    return "" if abs(factor - 1) <= ROUNDED else f"{factor:.6g} x "


def _by_keys(event: Shown) -> bool:
    return any(isinstance(one, Size) and one.kind not in ("list", "tuple") for one in event.value.flat)
