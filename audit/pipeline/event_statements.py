"""An event of a mechanism's outputs in words: the one statement about one part of an output that it amounts to.

An attack may be a table or a regression. Often it says no more than *key "b" present* or *theta[0] > 1.3*; the
statement that agrees with it in most pilot runs is searched, and shown with how often it agrees. Nothing is certified
by it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import extra_or_reason
from ...mechanisms.draws import Floats
from ..encoding.encoder import has_floats, rows_of, vectors
from ..encoding.features import Labels, Outputs
from ..encoding.objects import plain
from ..encoding.places import text_of_part
from ..encoding.texts import MAX_INTEGER, as_float
from ..statistics.digits import exactly
from ..statistics.events import Event
from .frame import Choice

#: The most runs and the most parts of an output that are used, and the most categories that a statement lists, and
#: letters that it has.
MOST_RUNS, MOST_PARTS, MOST_NAMED, MOST_LETTERS = 2000, 2000, 3, 300
#: A statement is shown if the runs in which it is wrong are at most this share of the runs with the event, and of
#: those without it.
MAX_DISAGREEMENT = 0.1
#: The words for an event that takes the same side in every run.
NOTHING = "nothing found on this pair"

#: What has no parts.
_SCALARS = (float, int, str, bool, type(None))

#: One part of the outputs, its value in each run: `...` where an output has no such part.
Part = Sequence[object] | NDArray[np.generic]


@dataclass(frozen=True)
class _Wording:
    """A statement about one part of an output, and in how many runs it agrees with the event."""

    text: str
    length: int  # of two that agree as often the simpler one is shown
    agrees: int


def described(choice: Choice, outputs: Outputs) -> Choice:
    """Return a choice with what some of the pilot's outputs show of it: its event in words, and whether by floats."""
    describe = partial(event_in_words, choice.event, choice.attack.score(outputs), outputs)
    text, missing = extra_or_reason("event in words", describe)
    return replace(choice, in_words=text or "", floats=has_floats(outputs), missing=missing)


def event_in_words(event: Event, scores: Floats, outputs: Outputs) -> str:
    """Return what an event says of outputs, in words; nothing where no statement about one part of them says it.

    Parameters
    ----------
    event : Event
    scores : array (runs,)
    outputs : array (..., runs) or list
        Of the same runs: the pilot's.
    """
    if event.method == "variational":
        return ""
    runs = min(scores.size, MOST_RUNS)
    outputs = outputs[..., :runs] if isinstance(outputs, np.ndarray) else outputs[:runs]
    sides = {"left": scores[:runs] >= event.upper, "right": scores[:runs] <= event.lower}
    mixed_sides = {world: side for world, side in sides.items() if side.any() and not side.all()}
    if not mixed_sides:
        return NOTHING
    columns = columns_of(outputs)
    statements = ((world, _best(columns, side), side) for world, side in mixed_sides.items())
    texts = [
        f"“{world}” where {best.text} (as the event in {best.agrees:,} of {runs:,} pilot runs)"
        for world, best, side in statements
        if best is not None and runs - best.agrees <= MAX_DISAGREEMENT * min(side.sum(), runs - side.sum())
    ]
    return ", ".join(texts)


def columns_of(outputs: Outputs) -> dict[str, Part]:
    """Return the parts of outputs by their names."""
    shape, numbers = vectors(outputs)
    if numbers is not None and shape is not None:
        sizes = outputs.shape[:-1] if isinstance(outputs, np.ndarray) else [n for n in shape if isinstance(n, int)]
        if not sizes:
            return {"the output": numbers[0]}
        places = np.ndindex(*sizes)
        numbered = zip(places, numbers[:MOST_PARTS], strict=False)
        return {f"output[{', '.join(map(str, place))}]": row for place, row in numbered}
    rows = rows_of(outputs)
    columns: dict[str, list[object]] = {}
    for run, output in enumerate(rows):
        for name, leaf in _parts(output, ""):
            if name not in columns and len(columns) < MOST_PARTS:
                columns[name] = [...] * len(rows)
            if name in columns:
                columns[name][run] = leaf
    return {name: _as_array(column) for name, column in columns.items()}


def _as_array(column: list[object]) -> Part:
    """Return a part that every output has as an array, where it is a plain number; else as it is."""
    kinds = set(map(type, column))
    if kinds == {float} or (kinds == {int} and all(-MAX_INTEGER <= value <= MAX_INTEGER for value in column)):  # type: ignore[operator]
        return np.array(column)
    return column


def _parts(output: object, name: str) -> Iterator[tuple[str, object]]:
    """Yield the parts of one output with their names."""
    if type(output) in _SCALARS:
        yield name or "the output", output
        return
    output = plain(output)
    if isinstance(output, Mapping | Set | Sequence) and not isinstance(output, str | bytes):
        yield name or "the output", _OfType(type(output).__name__)
    if isinstance(output, Mapping):
        for key, value in output.items():
            is_identifier = isinstance(key, str) and key.isidentifier()
            inner = (f"{name}.{key}" if name else key) if is_identifier else f"{name or 'output'}[{_quoted(key)}]"
            yield f"key {_quoted(key)}{f' of {name}' if name else ''}", _PRESENT
            yield from _parts(value, inner)
    elif isinstance(output, Set):
        for item in sorted(output, key=text_of_part):
            yield f"{_quoted(item)} of {name or 'the output'}", _PRESENT
    elif isinstance(output, Sequence) and not isinstance(output, str | bytes):
        yield f"the size of {name or 'the output'}", len(output)
        for i, part in enumerate(output):
            yield from _parts(part, f"{name or 'output'}[{i}]")
    else:
        yield name or "the output", output


#: The largest float.
_MAX_FLOAT = sys.float_info.max


@dataclass(frozen=True)
class _OfType:
    """The value of a part that holds others, as if it were a scalar: elsewhere it may be one."""

    name: str


#: The value of a part of which only its presence counts, such as a key of a dictionary.
_PRESENT = object()


def _quoted(value: object) -> str:
    if isinstance(value, _OfType):
        return f"of type {value.name}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text_of_part(value)


def kind_of_part(part: object) -> str:
    """Return what a part is in words, all numbers alike."""
    if part is ...:
        return "missing"
    if part is _PRESENT:
        return "present"
    if isinstance(part, _OfType):
        return f"a {part.name}"
    is_number = isinstance(part, int | float | np.number) and not isinstance(part, bool)
    return "a number" if is_number else _quoted(part)


def value_of_part(part: object) -> str:
    """Return what a part is in words, every whole number a category of its own."""
    return str(part) if isinstance(part, int | np.integer | np.bool_) else kind_of_part(part)


def _best(columns: Mapping[str, Part], event: Labels) -> _Wording | None:
    """Return the statement about one part that agrees with `event` most often, the simplest of these."""
    statements = (statement for name, column in columns.items() for statement in _statements(name, column, event))
    short = (statement for statement in statements if len(statement.text) <= MOST_LETTERS)
    return max(short, key=lambda statement: (statement.agrees, -statement.length), default=None)


def _statements(name: str, column: Part, event: Labels) -> Iterator[_Wording]:
    if isinstance(column, np.ndarray):
        kind = column.dtype.kind
        if kind in "iu" and (column.min() < -MAX_INTEGER or column.max() > MAX_INTEGER):
            column = column.astype(object)
        missing = np.isnan(column) if kind == "f" else np.zeros(column.size, dtype=np.bool_)
        yield from _about_nan(name, missing, event)
        yield from _about_numbers(name, column, missing, event, integral=kind in "biu")
        return
    present = np.array([value is not ... for value in column])
    if column[int(present.argmax())] is _PRESENT:  # some run has the part, else it would have no column
        yield from _about_marks(f"{name} is present", f"{name} is not present", present, event)
        return
    if not present.all():
        yield from _about_marks(f"{name} is there", f"{name} is not there", present, event)
    numeric = np.array([isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in column])
    if numeric.any():
        pairs = zip(column, numeric, strict=True)
        read_numbers = [math.nan if not ok else v if isinstance(v, int) else as_float(v) for v, ok in pairs]
        rounded = any(isinstance(v, int) and abs(v) > MAX_INTEGER for v in read_numbers)
        numbers = np.array(read_numbers, dtype=object if rounded else np.float64)
        missing = np.array([v != v for v in read_numbers])
        integral = all(
            isinstance(v, int) and abs(v) < _MAX_FLOAT for v, ok in zip(read_numbers, numeric, strict=True) if ok
        )
        yield from _about_nan(name, missing & numeric, event)
        yield from _about_numbers(name, numbers, missing, event, integral=integral)
    texts = [None if ok or value is ... else _quoted(value) for value, ok in zip(column, numeric, strict=True)]
    yield from _about_categories(name, texts, event)


def _about_marks(yes: str, no: str, marks: Labels, event: Labels) -> Iterator[_Wording]:
    agrees = int((marks == event).sum())
    yield _Wording(yes, 1, agrees)
    yield _Wording(no, 1, marks.size - agrees)


def _about_nan(name: str, marks: Labels, event: Labels) -> Iterator[_Wording]:
    if marks.any():
        yield from _about_marks(f"{name} is nan", f"{name} is not nan", marks, event)


def _about_categories(name: str, texts: Sequence[str | None], event: Labels) -> Iterator[_Wording]:
    """Yield that a part is one of few categories: those that are more often where the event says it."""
    weights: dict[str, int] = {}
    for text, is_named in zip(texts, event.tolist(), strict=True):
        if text is not None:
            weights[text] = weights.get(text, 0) + (1 if is_named else -1)
    categories = [text for text, weight in weights.items() if weight > 0]
    if 0 < len(categories) <= MOST_NAMED:
        agrees = int((~event).sum()) + sum(weights[text] for text in categories)
        yield _Wording(f"{name} is {' or '.join(sorted(categories))}", len(categories), agrees)


def _about_numbers(
    name: str, numbers: NDArray[Any], missing: Labels, event: Labels, *, integral: bool
) -> Iterator[_Wording]:
    """Yield the range of a part that agrees with the event most often, and the best range that it is outside of.

    Whole numbers that floats would round, those beyond 2^53, are held as objects.
    """
    values, places = np.unique(numbers[~missing], return_inverse=True)
    if values.size < 2:
        return
    weights: Floats = np.bincount(places, np.where(event[~missing], 1.0, -1.0), minlength=values.size).astype(float)
    for sign, is_outside in ((1.0, False), (-1.0, True)):
        start, end, gain = _heaviest(sign * weights)
        if start > 0 or end < values.size - 1:
            # A run without a number is neither within a range nor outside of it, but it is not a certain number.
            true_of_others = event if is_outside and _is_one(values, start, end, integral=integral) else ~event
            side = event if is_outside else ~event
            agrees = (side & ~missing).sum() + (true_of_others & missing).sum() + gain
            yield _Wording(*_range(name, values, start, end, integral=integral, is_outside=is_outside), int(agrees))


def _heaviest(weights: Floats) -> tuple[int, int, float]:
    """Return the neighbouring values of the largest sum, the first and the last, and the sum."""
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    minimum = np.minimum.accumulate(sums[:-1])
    end = int((sums[1:] - minimum).argmax())
    start = int(sums[: end + 1].argmin())
    return start, end, float(sums[end + 1] - sums[start])


def _is_one(values: NDArray[Any], start: int, end: int, *, integral: bool) -> bool:
    """Tell whether a range is a single number that is named, not what lies between its neighbours."""
    return bool(start == end and (integral or values[start] in (-math.inf, math.inf)))


def _range(
    name: str, values: NDArray[Any], start: int, end: int, *, integral: bool, is_outside: bool
) -> tuple[str, int]:
    """Return that a part is within the values from `start` to `end`, or outside, and how many words that takes."""
    if _is_one(values, start, end, integral=integral):
        return f"{name} {'is not' if is_outside else '='} {_named(values[start])}", 1
    sides = []
    if start > 0:
        edge = None if integral else _between(values[start - 1], values[start])
        sign = "<" if is_outside else ">=" if edge is None else ">"
        sides.append(f"{name} {sign} {_named(values[start] if edge is None else edge)}")
    if end < values.size - 1:
        edge = None if integral else _between(values[end], values[end + 1])
        sign = ">" if is_outside else "<=" if edge is None else "<"
        sides.append(f"{name} {sign} {_named(values[end] if edge is None else edge)}")
    return (" or " if is_outside else " and ").join(sides), len(sides)


def _named(number: Any) -> str:
    """Return a number by all its digits."""
    return str(Decimal(number)) if isinstance(number, int) and abs(number) > MAX_INTEGER else exactly(number)


def _between(low: Any, high: Any) -> float | None:
    """Return the shortest number between two neighbouring values; None where there is none, or one is infinite."""
    middle = _finite(low) / 2 + _finite(high) / 2
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, 17))
    return next((short for short in rounded if low < short < high), None)


def _finite(number: Any) -> float:
    """Return the number as a float, finite for every whole number."""
    return max(-_MAX_FLOAT, min(as_float(number), _MAX_FLOAT)) if isinstance(number, int) else number
