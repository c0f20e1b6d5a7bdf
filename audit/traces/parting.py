"""Where a run and its replay part: the first event that differs, what leaks by it, and what was to get noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ...mechanisms.noise import Gaussian, Laplace
from ..encoding.places import Size
from .costs import words_of
from .forms.form import Form
from .forms.least_noise import ULPS, scale_of_law
from .libraries import Mapped
from .tape import Call, Drawn, Escape, Release, Shown, Tape, TapeEvent, UntraceableError, Values, site_of
from .watched import CallSite

#: Values that are shown, and scales of noise, differ where they are further apart than this share of their size.
REL_TOLERANCE = 1e-6
#: A shown number below this share of the largest number of its run so far may be what rounding leaves of larger ones:
#: it is compared by that share, or by 1 if that is less.
_CANCELLED = 1e-4
#: Of an output of more values so many are shown.
_MAX_SHOWN = 4
#: Stands where one of two outputs has no value any more.
_NOTHING = object()


@dataclass(frozen=True)
class Leak:
    """Where two runs part although every noisy output and all other randomness is the same: what leaks, and how.

    Attributes
    ----------
    what : str
        "action of round 3", "output", "noisy call 2 (place)".
    round : int
        From 1; 0 for a mechanism.
    place : CallSite or None
        Of the call that parts, where one does; else of the last one before whose inputs differ.
    left, right : str
        What each run has there.
    runs, tried : int
        In how many of the replayed runs.
    hint : str
        What was to get noise, and got noise of scale 0; else the last call before whose inputs differ.
    events : int
        How many events came before.
    number : int
        Of an output of several values the first that differs, from 1; 0 for what is no output.
    lost : CallSite or None
        Where the trace lost track: a draw before it that is no noise call, a use of noise that it does not follow, or
        a noise call that differs itself.
    words : str
        What differs, where it is no value.
    is_scale : bool
        Whether it is the scale of a noisy call, and nothing else.
    """

    what: str
    round: int
    place: CallSite | None
    left: str
    right: str
    runs: int
    tried: int
    hint: str = ""
    events: int = 0
    number: int = 0
    lost: CallSite | None = None
    words: str = ""
    is_scale: bool = False

    @property
    def bypass(self) -> bool:
        """Whether what is shown differs, and nothing random but noise calls came before."""
        return self.lost is None

    @property
    def finding(self) -> str:
        """What differs, and whether a trace can say that nothing random hides it."""
        if self.words:
            return self.words
        if self.bypass:
            return f"{self.what}{f' {self.number}' if self.number else ''} depends on the inputs without noise"
        if self.what.startswith("noisy call"):
            return f"{self.what} has another law, shape or place for the other input"
        return f"the {self.what} does not come from noisy values alone"

    @property
    def seen(self) -> str:
        """What was seen in the paired runs."""
        return (
            f"with the same random numbers it is {self.left} for left and {self.right} for right, in {self.runs} of "
            f"{self.tried} paired runs"
        )

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        if self.is_scale:
            return self.finding + hint
        kind = "BYPASS" if self.bypass else f"NOT BOUNDED: the trace has lost track at {self.lost}"
        return f"{kind}: {self.finding}: {self.seen}{hint}"


def parting(left: list[TapeEvent], right: list[TapeEvent], control: list[TapeEvent], runs: int) -> Leak | None:
    """Return the first event in which a run and its replay part and the run and its control do not; None if none.

    Of runs in which a call has lost its output to rounding what follows is not looked at.

    Raises
    ------
    UntraceableError
        If the control parts in every run.
    """
    sound, comparable = np.ones(runs, dtype=bool), np.ones(runs, dtype=bool)
    calls, largest = 0, np.zeros(runs)
    for events, (a, b, c) in enumerate(zip_longest(left, right, control)):
        for event in (a, b):
            largest = np.maximum(largest, _largest_number(event, runs))
        floor = np.minimum(1.0, _CANCELLED * largest)
        if c is None or a is None or not of_one_kind(a, c):
            sound[:] = False
        elif isinstance(a, Shown) and isinstance(c, Shown):
            sound &= ~_apart(a.value, c.value, floor, REL_TOLERANCE / 10, shifts=True)
        elif isinstance(a, Release) and isinstance(c, Release) and not _same_forms(a, c):
            sound[:] = False
        if not sound.any():
            raise UntraceableError(
                "its replays differ: it draws from elsewhere, or hangs on the rounding of the noisy outputs"
            )
        calls += isinstance(a, Call | Drawn)
        comparable &= ~_lost((a, b, c), runs)
        if not comparable.any():
            return None
        if not comparable.all() and not (a is not None and b is not None and of_one_kind(a, b)):
            return None  # some run is no replay by now
        if a is None or b is None or not of_one_kind(a, b):
            leak = replace(_other_call(a, b, calls, runs), events=events)
            return _of_scale(leak, a, b, left, right) if isinstance(a, Drawn) and isinstance(b, Drawn) else leak
        if isinstance(a, Release) and isinstance(b, Release) and not _same_forms(a, b):
            unlike = next(forms for forms in zip(a.forms, b.forms, strict=True) if not same_noise(*forms))
            return replace(_other_noise("a number", *unlike, runs), events=events, round=a.round, lost=a.place)
        if isinstance(a, Shown) and isinstance(b, Shown):
            parted = _apart(a.value, b.value, floor, REL_TOLERANCE) & sound & comparable
            if parted.any():
                return replace(_shown(a, b, parted, runs), events=events)
    return None


def _lost(events: Iterable[TapeEvent | None], runs: int) -> NDArray[np.bool_]:
    """Tell in which runs one of these calls has lost its output to rounding: (runs,)."""
    in_runs = np.zeros(runs, dtype=bool)
    for event in events:
        if isinstance(event, Call) and event.lost is not None:
            in_runs |= event.lost.reshape(-1, runs).any(axis=0)
    return in_runs


def lost_words(tapes: Iterable[Tape], runs: int) -> str:
    """Return which call has lost its output to rounding in some run; nothing where none has."""
    for events in zip_longest(*(tape.events for tape in tapes)):
        call = next((event for event in events if isinstance(event, Call)), None)
        if call is not None and _lost(events, runs).any():
            return f"inputs of {call.name} at {call.place} are too large for a replay: rounding loses what came out"
    return ""


def of_one_kind(a: TapeEvent, b: TapeEvent) -> bool:
    """Tell whether two events are of one shape and law; their values may differ.

    Noise of one law may stand on two lines, one for each branch: nobody sees which was drawn, and what a branch makes
    of it shows later. An outcome has no law here, so it must be of one line.
    """
    if isinstance(a, Shown) or isinstance(b, Shown):
        return isinstance(a, Shown) and isinstance(b, Shown) and (a.what, a.round) == (b.what, b.round)
    if isinstance(a, Release) or isinstance(b, Release):
        if not (isinstance(a, Release) and isinstance(b, Release)):
            return False
        return (a.round, a.what, len(a.forms)) == (b.round, b.what, len(b.forms))
    if isinstance(a, Drawn) or isinstance(b, Drawn):
        same_shape = isinstance(a, Drawn) and isinstance(b, Drawn) and (a.round, a.shape) == (b.round, b.shape)
        return same_shape and _same_law(a.law, b.law)
    same_call = a.law is not None or (a.name, a.place) == (b.name, b.place)
    return same_call and a.round == b.round and np.shape(a.value) == np.shape(b.value) and _same_law(a.law, b.law)


def _same_law(a: Any, b: Any) -> bool:
    """Tell whether two laws are the same, their numbers within rounding of the larger."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapped):
        return a.metric == b.metric and a.measure == b.measure and _same_law(a.loss(1.0), b.loss(1.0))
    if hasattr(a, "__dict__") and not callable(a):
        return all(_same_law(value, getattr(b, name)) for name, value in vars(a).items())
    if a is None or isinstance(a, str) or callable(a):
        return callable(a) or bool(a == b)
    if np.shape(a) != np.shape(b):
        return False
    first, second = (np.asarray(value, dtype=float) for value in (a, b))
    size = np.maximum(np.abs(first), np.abs(second))
    return not _beyond(
        first, second, size.max(axis=0) if size.ndim > 1 else 0.0, REL_TOLERANCE
    ).any()  # a point's by its norm


def _beyond(a: Any, b: Any, floor: Any, tolerance: float) -> Any:
    """Tell which numbers are further apart than a share of the larger, or of `floor` if that is more."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(floor, np.maximum(np.abs(a), np.abs(b)))
        is_near = np.isfinite(size) & (np.abs(a - b) <= tolerance * size)
    return ~(is_near | (a == b) | (np.isnan(a) & np.isnan(b)))


def _apart(a: Values, b: Values, floor: Floats, tolerance: float, *, shifts: bool = False) -> NDArray[np.bool_]:
    """Tell in which runs two values that are shown differ: (runs,). The shifts of forms are looked at on request."""
    runs = floor.size
    if np.shape(a) != np.shape(b):
        return np.ones(runs, dtype=bool)
    if a.dtype == object:
        first, second = a.reshape(-1, runs), b.reshape(-1, runs)
        pairs = ((first[:, run], second[:, run], float(floor[run])) for run in range(runs))
        return np.array([any(map(_differ, left, right, repeat(size), repeat(shifts))) for left, right, size in pairs])
    differs = _beyond(a, b, floor, tolerance) if a.dtype.kind in "fc" else a != b
    parted: NDArray[np.bool_] = differs.reshape(-1, runs).any(axis=0)
    return parted


def _differ(a: object, b: object, floor: float = 0.0, shifts: bool = False) -> bool:
    if type(a) is Form or type(b) is Form:
        if not (type(a) is Form and type(b) is Form and same_noise(a, b)):
            return True
        return shifts and bool(_beyond(a.shift, b.shift, floor, REL_TOLERANCE))
    if isinstance(a, float) and isinstance(b, float):
        return bool(_beyond(a, b, floor, REL_TOLERANCE))
    return type(a) is not type(b) or bool(a != b)


def _same_forms(a: Release, b: Release) -> bool:
    return all(map(same_noise, a.forms, b.forms))


def same_noise(a: Form, b: Form) -> bool:
    """Tell whether two forms have the same factors, within rounding."""
    first, second = a.factors, b.factors
    return first.keys() == second.keys() and all(abs(c - second[k]) <= ULPS * abs(c) for k, c in first.items())


def _other_noise(subject: str, a: Any, b: Any, runs: int) -> Leak:
    """Return the leak of numbers of which one is a form whose variables have other factors than the other's."""
    form = a if type(a) is Form else b
    place = site_of(form.where)
    if type(a) is not type(b):
        left_text, right_text = ("a number with noise" if type(side) is Form else _word(side) for side in (a, b))
        text = f"{subject} is {left_text} for left and {right_text} for right"
        return Leak(subject, 0, place, left_text, right_text, runs, runs, words=text)
    factors = [[side.factors.get(key, 0.0) for side in (a, b)] for key in (*a.factors, *b.factors)]
    left, right = next((pair for pair in factors if abs(pair[0] - pair[1]) > ULPS * abs(pair[0])), (0.0, 0.0))
    text = f"{subject} has noise with other factors for the other input"
    return Leak(subject, 0, place, f"{left:.6g} x noise", f"{right:.6g} x noise", runs, runs, lost=place, words=text)


def _largest_number(event: TapeEvent | None, runs: int) -> Floats:
    """Return the largest floating-point number of an event, in size, for every run: 0 where it has none."""
    largest = np.zeros(runs)
    parts: tuple[Any, ...] = () if event is None or isinstance(event, Drawn) else (event.value,)
    for part in (*parts, event.output) if isinstance(event, Call) else parts:
        value = np.asarray(part)
        if value.dtype == object and value.shape[-1:] == (runs,):
            value = np.array([[_size_of(x) for x in row] for row in value.reshape(-1, runs)])
        if value.dtype.kind in "fc" and value.size and value.shape[-1:] == (runs,):
            size = np.abs(value.reshape(-1, runs))
            largest = np.maximum(largest, np.where(np.isfinite(size), size, 0.0).max(axis=0))
    return largest


def _size_of(value: object) -> float:
    return value.shift if type(value) is Form else value if isinstance(value, float) else 0.0


def _shown(a: Shown, b: Shown, parted: NDArray[np.bool_], runs: int) -> Leak:
    run = int(parted.argmax())
    first, second = (np.asarray(event.value) for event in (a, b))
    subject = f"{a.what} of round {a.round}" if a.round else a.what
    if first.shape != second.shape and first.dtype != object:
        return Leak(
            subject, a.round, None, f"of shape {first.shape}", f"of shape {second.shape}", int(parted.sum()), runs
        )
    sides = [value.reshape(-1, runs)[:, run].tolist() for value in (first, second)]
    unlike = [values for values in zip(*sides, strict=False) if _differ(*values)]
    number = _number_of_difference(*sides) if a.what == "output" else 0
    if len(sides[0]) == len(sides[1]) and unlike and all(Form in map(type, values) for values in unlike):
        return _unlike_forms(f"{subject}{f' {number}' if number else ''}", a.round, unlike[0], int(parted.sum()), runs)
    left, right = _from_difference(*sides)
    return Leak(subject, a.round, None, left, right, int(parted.sum()), runs, number=number)


def _unlike_forms(subject: str, round_: int, unlike: tuple[Any, Any], parted: int, runs: int) -> Leak:
    """Return the leak of numbers of which at least one is a form: else a number differs that has no noise."""
    leak = replace(_other_noise(subject, *unlike, runs), round=round_, runs=parted)
    public = [side for side in unlike if type(side) is Form and side.is_public]
    return replace(leak, lost=leak.place) if public else leak


def _number_of_difference(left: list[object], right: list[object]) -> int:
    """Return the number, from 1, of the first value that differs; 0 where the values stand beside keys."""
    if any(isinstance(a, Size) and a.kind not in ("list", "tuple") for a in left):
        return 0
    number = 0
    for a, b in zip_longest(left, right, fillvalue=_NOTHING):
        number += not (isinstance(a, Size) and a == b)
        if _differ(a, b):
            break
    return number


def _from_difference(left: list[object], right: list[object]) -> tuple[str, str]:
    """Return a few values of either side, the first that differs among them; of unlike outputs that one alone."""
    if len(left) != len(right):
        return next((_word(a), _word(b)) for a, b in zip_longest(left, right, fillvalue=_NOTHING) if _differ(a, b))
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if not (isinstance(a, Size) and a == b)]
    start = next((i for i, (a, b) in enumerate(pairs) if i + _MAX_SHOWN >= len(pairs) or _differ(a, b)), 0)
    texts = [[_word(side) for side in sides] for sides in zip(*pairs[start : start + _MAX_SHOWN], strict=True)]
    if len(pairs) == 1:
        return texts[0][0], texts[1][0]
    before, after = "..., " * (start > 0), ", ..." * (start + _MAX_SHOWN < len(pairs))
    left_text, right_text = (f"[{before}{', '.join(side)}{after}]" for side in texts)
    return left_text, right_text


def _word(value: object) -> str:
    if value is _NOTHING:
        return "nothing more"
    if isinstance(value, Size) and value.kind == "dict":  # a key and what it holds
        return f"a dict of {value.parts // 2} key{'s' * (value.parts != 2)}"
    if isinstance(value, Size):
        return f"a {value.kind} of {value.parts} part{'s' * (value.parts != 1)}"
    if type(value) is Form:
        return "noisy"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _other_call(a: TapeEvent | None, b: TapeEvent | None, number: int, runs: int) -> Leak:
    """Return the leak of a call that the other run does not make, or makes elsewhere, in another shape or law."""
    first = next((event for event in (a, b) if isinstance(event, Call | Drawn)), None)
    if first is None:
        return _unlike_use(a, b, runs)
    round_, place = first.round, first.place
    subject = f"noisy call {number + (not isinstance(a, Call | Drawn))}"
    locations = [event.loc for event in (a, b) if isinstance(event, Drawn)]
    swapped = len(locations) == 2 and locations[0] == locations[1] != 0.0
    hint = f"its location is {locations[0]:g} for both inputs: are loc and scale swapped?" if swapped else ""
    return Leak(subject, round_, place, _said(a), _said(b), runs, runs, hint=hint, lost=place)


def _of_scale(leak: Leak, a: Drawn, b: Drawn, left: list[TapeEvent], right: list[TapeEvent]) -> Leak:
    """Return the leak of noise whose scale depends on the data, said as that."""
    if type(a.law) is not type(b.law) or a.shape != b.shape or not isinstance(a.law, Laplace | Gaussian):
        return leak
    text = f"the noise at {a.place} depends on the data: {words_of(a.law)} for left, {words_of(b.law)} for right"
    infinite = "; pure epsilon is infinite" if _has_other_tail(a, b, left, right) else ""
    return replace(leak, words=text + infinite, is_scale=True)


def _has_other_tail(a: Drawn, b: Drawn, left: list[TapeEvent], right: list[TapeEvent]) -> bool:
    """Tell whether a number is shown in all its tails, with noise of these draws alone, of another scale for `right`.

    Its ratio has no bound then.
    """
    if any(isinstance(event, Release) for event in (*left, *right)):
        return False  # a line may cut what is shown
    tails = [
        [_tail(cell, drawn) for event in events if isinstance(event, Shown) for cell in event.value.flat]
        for events, drawn in ((left, a), (right, b))
    ]
    return any(x and y and bool(_beyond(x, y, 0.0, REL_TOLERANCE)) for x, y in zip(*tails, strict=False))


def _tail(value: object, drawn: Drawn) -> float:
    """Return the largest scale of the noise in a number that has noise of this draw alone; else 0."""
    if type(value) is not Form or not set(value.factors) <= set(drawn.variables):
        return 0.0
    return scale_of_law(drawn.law) * max(map(abs, value.factors.values()), default=0.0)


def lost_track(leak: Leak, tapes: Sequence[Tape], escapes: Sequence[Escape] = ()) -> CallSite | None:
    """Return where a trace lost track before two runs part; None where nothing random but noise calls came before.

    Parameters
    ----------
    escapes : sequence of Escape
        Where it lost track of noise.
    """
    draws = [*escapes, *(draw for tape in tapes if (draw := tape.other_draw) is not None)]
    of_zero = [{draw.events: draw for draw in tape.of_zero} for tape in tapes]
    draws += [draw for events, draw in of_zero[0].items() if all(events in draws_at for draws_at in of_zero)]
    before = [draw for draw in draws if draw.events <= leak.events]
    return (min(before, key=lambda draw: draw.events).place or CallSite("?", 1)) if before else leak.lost


def _unlike_use(a: TapeEvent | None, b: TapeEvent | None, runs: int) -> Leak:
    """Return the leak of a number with noise that is used otherwise than linearly for one input alone."""
    release = next((event for event in (a, b) if isinstance(event, Release)), None)
    place = release.place if release is not None else CallSite("?", 1)
    left, right = ("used" if isinstance(event, Release) else "not used" for event in (a, b))
    text = "a number with noise is used in another way for the other input"
    return Leak(
        "number", 0 if release is None else release.round, place, left, right, runs, runs, lost=place, words=text
    )


def _said(event: TapeEvent | None) -> str:
    if isinstance(event, Drawn):
        return f"{event.name} at {event.place}, {event.shape[:-1]} of {words_of(event.law)}"
    if isinstance(event, Call):
        law = "an outcome" if event.law is None else words_of(event.law)
        return f"{event.name} at {event.place}, {np.shape(event.value)[:-1]} of {law}"
    return "none here"


def without_noise(left: Tape, right: Tape) -> str:
    """Return which input differs and gets noise of scale 0, or does in one world alone; nothing where none does."""
    for first, second in zip_longest(left.silent, right.silent):
        name, place, value = first or second
        if first is None or second is None or not _same_input(value, second[2]):
            return f"{name} at {place} has noise of scale 0"
    return ""


def _same_input(value: object, other: object) -> bool:
    """Tell whether two inputs are the same, numbers within rounding of the largest."""
    a, b = np.asarray(value), np.asarray(other)
    if a.shape != b.shape or not (a.dtype.kind in "fiub" and b.dtype.kind in "fiub"):
        return np.array_equal(a, b)
    sizes = np.abs(np.stack([a, b]).astype(float))
    return not _beyond(a.astype(float), b.astype(float), sizes.max(initial=0.0), REL_TOLERANCE).any()


def last_call(calls: Sequence[tuple[Call, Call]]) -> tuple[str, CallSite | None]:
    """Return the last call whose inputs differ before the runs part, in words, and its place."""
    text_and_place: tuple[str, CallSite | None] = "", None
    for number, (a, b) in enumerate(calls, start=1):
        if a.value.dtype == object or not _same_input(a.value, b.value):
            text_and_place = f"before it the inputs of noisy call {number} ({a.place}, {a.name}) differ", a.place
    return text_and_place
