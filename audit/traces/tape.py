"""Tapes: draws that record the noisy calls of a block of runs, or replay them with their outputs frozen."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Draws, Floats, Law, Outcome, Purpose, Stage
from ...mechanisms.noise import Projected
from ..execution.provenance import named_from_here
from .forms.arrays import FormArray, numbers_of, of_library
from .forms.form import Form, Line
from .forms.returned import is_returned
from .watched import CallSite, UnreadNoiseError, Watched

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = __name__.partition(".")[0]
#: What stands between a noisy call and the line that asked for it.
_BETWEEN = (
    *(f"{_PACKAGE}.{room}." for room in ("audit.traces", "testing", "mechanisms.primitives", "mechanisms.noise")),
    f"{_PACKAGE}.mechanisms.global_random.",
    f"{_PACKAGE}.mechanisms.watching.",
    "numpy.",
)
#: What calls the code under audit.
_HARNESS = f"{_PACKAGE}.audit."
#: By how much outputs are nudged in the control, over the largest of their size, their input's and the noise's: well
#: above rounding, and so far below what is called a difference that a sound target may magnify it a thousandfold.
NUDGE = 1e-14
#: How far a replayed value with its noise may be from the frozen output, over the larger of its size and the noise's:
#: rounding takes more where the value is larger by far, and what follows is then no replay.
_OFF = 1e-8


#: What is recorded of values: arrays of numbers, or of what else was released.
Values = NDArray[Any]


class UntraceableError(ValueError):
    """Nothing can be said of a target from inside: it draws in a way that is not watched."""


@dataclass(frozen=True)
class Call:
    """One noisy call of a block of runs.

    Attributes
    ----------
    name : str
    place : CallSite
    round : int
        From 1; 0 for a mechanism.
    law : Law or None
        Of the noise; None for an outcome.
    value : array
        What the noise was for, the runs on the last axis; of an outcome its probabilities, (outcomes, [dim]).
    output : array
        What came out, the runs on the last axis.
    lost : array of bool, optional
        In which parts of it value and noise do not make it, for rounding.
    """

    name: str
    place: CallSite
    round: int
    law: object
    value: Values
    output: Any
    lost: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Shown:
    """Something that the adversary may see: an action, a release or an output."""

    what: str
    round: int
    value: Values


@dataclass(frozen=True)
class Drawn:
    """Fresh noise that is followed: variables numbered from `first`, in a shape with the runs on the last axis.

    `loc` is the number that it is drawn around, where it is one.
    """

    name: str
    place: CallSite
    round: int
    law: Law
    first: int
    shape: tuple[int, ...]
    loc: float = 0.0

    @property
    def variables(self) -> range:
        """Their numbers."""
        return range(self.first, self.first + math.prod(self.shape))


@dataclass(frozen=True)
class Release:
    """A linear form that was used otherwise than linearly: its value is known from here on."""

    place: CallSite
    round: int
    form: Form
    value: float


TapeEvent = Call | Shown | Drawn | Release


@dataclass(frozen=True)
class Draw:
    """A draw that a trace does not follow: how many events came before it, and where it is written."""

    events: int
    place: CallSite


class Following(Enum):
    """How noise that is drawn from a generator is followed.

    As forms; until it is added to a number; not beyond the location that it is drawn around; or not at all.
    """

    FORMS = 0
    EAGER = 1
    AT_ONCE = 2
    NOT = 3


class Tape(Draws):
    """Draws that record every noisy call, or replay it with its output frozen. All else is drawn as the key says.

    Noise has a stream of its own, so that what else is drawn is the same in a replay.

    Parameters
    ----------
    seed, block : int
        The key.
    frozen : sequence of events, optional
        Of the recorded run: a call returns what the call of the same number did.
    nudged : bool
        Whether frozen outputs are moved a little, as rounding would.
    runs : int
        In the block.
    following : Following
    """

    def __init__(
        self,
        seed: int,
        block: int = 0,
        *,
        runs: int = 1,
        frozen: Sequence[TapeEvent] = (),
        nudged: bool = False,
        following: Following = Following.FORMS,
    ) -> None:
        super().__init__(seed, Stage.TRACE, 0, 0, block)
        self.noises = Draws(seed, Stage.TRACE, 0, 1, block)
        self.plain = super().stream(Purpose.LEARNER)
        self.runs = runs
        self.following = following
        self.frozen = [event for event in frozen if isinstance(event, Call)]
        self.known = [event.value for event in frozen if isinstance(event, Release)]
        self.nudges = np.random.default_rng(block) if nudged else None
        self.events: list[TapeEvent] = []
        self.round = self._made = 0
        self.drawn: list[float] = []  # the noise of every variable
        self.released = 0
        self.silent: list[tuple[str, CallSite, object]] = []  # what was to get noise of scale 0
        self.other_draw: Draw | None = None  # the first draw that is no noise call
        self.escaped: Draw | None = None  # where a plain number, a bool or an index first depends on noise
        self.deciding: CallSite | None = None  # the same, where it goes elsewhere than into what is returned
        self.answers = False  # whether what the code under audit returns is seen, and nothing else done with it
        self.computed: list[tuple[bytes, CallSite]] = []  # of what values were computed that depend on released ones
        self.overwritten: CallSite | None = None  # where a number with noise was replaced by one without
        self.of_zero: list[Draw] = []  # noise calls for 0: their noise may be meant for another value

    @property
    def eager(self) -> bool:
        """Whether a sum of noise and a number is released at once, as a plain number."""
        return self.following is Following.EAGER

    def forget(self) -> None:
        """Let go of what was played: forms know their tape, and Python frees no circle through an array of them."""
        self.events, self.frozen, self.silent = [], [], []

    def stray(self) -> None:
        """Note a draw that is no noise call."""
        if self.other_draw is None:
            self.other_draw = Draw(len(self.events), self.place())

    def escape(self) -> None:
        """Note that the code under audit has a plain number, a bool or an index that depends on noise."""
        if self.escaped is None:
            self.escaped = Draw(len(self.events), used())
        if self.deciding is None and not (self.answers and is_returned(_caller())):
            self.deciding = used()

    def compute(self, inputs: object) -> None:
        """Note what a value is computed of, released values among it."""
        self.computed.append((_text_of(inputs).encode(), used()))

    def overwrite(self) -> None:
        """Note that a number with noise is replaced by one without."""
        self.overwritten = self.place()

    def line(self) -> Line:
        """Return the line of the code under audit that runs."""
        frame = _caller()
        return ("?", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)

    def concrete(self, form: Form) -> float:
        """Return the value of a form with the noise that was drawn."""
        return form.shift + math.fsum(factor * self.drawn[key] for key, factor in form.coefficients.items())

    def release(self, form: Form) -> float:
        """Note that a form is released; return its value, in a replay that of the recorded run."""
        if form.released is None:
            value = self.concrete(form)
            if self.released < len(self.known):
                value = self.known[self.released]
                if self.nudges is not None and math.isfinite(value):
                    value += NUDGE * max(abs(value), abs(form.shift)) * float(self.nudges.choice([-1.0, 1.0]))
            self.released += 1
            form.released = value
            self.events.append(Release(used(), self.round, form, value))
        return form.released

    def added(self, kind: Callable[[float], Law], loc: Any, scale: Any, size: Any, name: str) -> Any:
        """Return a location plus fresh noise: forms.

        Raises
        ------
        UnreadNoiseError
            If a batched target draws noise for other than all its runs.
        """
        scales = np.asarray(scale, dtype=float)
        asked = () if size is None else tuple(np.atleast_1d(size).tolist())
        shape = np.broadcast_shapes(np.shape(loc), scales.shape, asked)
        if self.runs > 1 and shape[-1:] != (self.runs,):
            raise UnreadNoiseError(f"watched noise of a batched target must have the shape (..., runs), got {shape}")
        if not scales.any():
            self.silent.append((name, self.place(), loc))
            return loc + (np.zeros(shape) if shape else 0.0)
        column = shape if self.runs > 1 else (math.prod(shape), 1)
        alike = scales.size == 1 or bool((scales == scales.flat[0]).all())
        law = kind(float(scales.flat[0]) if alike else 1.0)
        noise = np.asarray(law.sample(column, self.noises), dtype=float).reshape(shape)
        if not alike:
            noise = noise * scales
        if self.following is Following.NOT:
            made = loc + noise
            return made if shape else float(made)
        first, where, place = len(self.drawn), self.line(), self.place()
        self.drawn += noise.reshape(-1).tolist()
        if alike:
            fixed = float(loc) if type(loc) in (int, float, np.float64) else 0.0
            self.events.append(Drawn(name, place, self.round, law, first, column, fixed))
        else:
            each = np.broadcast_to(scales, shape).reshape(-1).tolist()
            laws = [(first + i, kind(one)) for i, one in enumerate(each)]
            self.events += [Drawn(name, place, self.round, law, number, (1, 1)) for number, law in laws]
        forms = np.empty(noise.size, dtype=object)
        forms[:] = [Form(self, 0.0, {first + i: 1.0}, where) for i in range(noise.size)]
        bare: Any = forms.reshape(shape).view(FormArray) if shape else forms[0]
        made = bare if np.ndim(loc) == 0 and type(loc) is not Form and loc == 0 else bare + loc
        return numbers_of(made) if self.following is Following.AT_ONCE else made

    def zero(self) -> None:
        """Note that the next noise call has 0 as its value."""
        self.of_zero.append(Draw(len(self.events), self.place()))

    def show(self, what: str, value: Values) -> None:
        """Note what the adversary may see."""
        self.events.append(Shown(what, self.round, value))

    def noise(self, law: Law, shape: tuple[int, ...], value: object, name: str = "") -> Any:
        """Return noise, and note the call; in a replay, what leads to the frozen output."""
        if not bounds_something(law):
            self.silent.append((name or "noise", self.place(), value() if callable(value) else value))
            return law.sample(shape, self.noises)
        exact = np.asarray(numbers_of(value() if callable(value) else value))
        if exact.ndim == 0 and exact == 0:
            self.zero()
        value = np.broadcast_to(exact, shape).copy()
        before = self._before(shape)
        size = scale_of(law)
        output = value + law.sample(shape, self.noises) if before is None else self._nudged(before, value, size)
        made, lost = _made(value, output, size)
        self._note(name, law, value, output, lost)
        return made

    def outcome(self, law: Callable[[], object], sample: Callable[[Draws], Outcome], name: str = "") -> Outcome:
        """Return an outcome, and note the call; in a replay, the frozen outcome."""
        probabilities = np.asarray(law(), dtype=float)
        drawn: Any = sample(self.noises)
        before = self._before(np.shape(drawn))
        output: Outcome = drawn if before is None else copy.copy(before)
        self._note(name, None, probabilities, output)
        return output

    def measured(self, law: object, value: object, make: Callable[[], object], name: str) -> object:
        """Return what another's code released of a value, and note the call; in a replay, what it released before."""
        if not bounds_something(law):
            self.silent.append((name, self.place(), value))
            return make()
        column = np.asarray(value).reshape(-1, 1) if hasattr(law, "sample") else np.empty((0, 0), dtype=object)
        if column.dtype.kind not in "biuf":  # its own map, or its law, takes it whole
            column = np.empty((1, 1), dtype=object)
            column.fill(value)
        self._made += 1
        before = self.frozen[self._made - 1].output if self._made <= len(self.frozen) else None
        output = make() if before is None else copy.copy(before)
        self._note(name, law, column, output)
        return output

    def stream(self, purpose: Purpose) -> np.random.Generator:
        """Return a fresh generator, whose draws are not watched."""
        self.stray()
        return super().stream(purpose)

    def run_generator(self, run: int) -> np.random.Generator:
        """Return a watched generator. A trace plays a plain class one run at a time."""
        return self.watched

    @cached_property
    def watched(self) -> Watched:
        """The watched generator of a plain class, a mechanism of (data, rng), or a batched target that asks for it."""
        return Watched(self.plain.bit_generator, self)

    @property
    def generator(self) -> np.random.Generator:
        """The watched generator."""
        return self.watched

    def uniform(self, shape: int | tuple[int, ...]) -> Floats:
        """Return uniforms on [0, 1)."""
        self.stray()
        return self.plain.random(shape)

    def normal(self, shape: int | tuple[int, ...]) -> Floats:
        """Return standard normal draws that are no noise, such as directions."""
        self.stray()
        return self.plain.standard_normal(shape)

    def _before(self, shape: tuple[int, ...]) -> Any:
        """Return the frozen output of this call; None where none of this shape was recorded."""
        self._made += 1
        if self._made > len(self.frozen):
            return None
        output = self.frozen[self._made - 1].output
        return output if np.shape(output) == shape else None

    def _nudged(self, output: Values, value: Values, scale: float | Floats) -> Values:
        if self.nudges is None or output.dtype.kind in "iu":
            return output
        size = np.maximum(scale, np.maximum(np.abs(output), np.abs(value)))
        size[~np.isfinite(size)] = 0.0
        nudged: Values = output + NUDGE * size * self.nudges.choice([-1.0, 1.0], output.shape)
        return nudged

    def _note(
        self,
        name: str,
        law: object,
        value: Values,
        output: object,
        lost: NDArray[np.bool_] | None = None,
    ) -> None:
        self.events.append(Call(name or "noise", self.place(), self.round, law, value, output, lost))

    def place(self) -> CallSite:
        """Return where the noisy call that is being made is written."""
        return place()


def _made(value: Values, output: Values, scale: float | Floats) -> tuple[Values, NDArray[np.bool_] | None]:
    """Return the noise that leads from a value to an output, and where it does not, for rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        made = np.asarray(output - value)
        if made.dtype.kind != "f":
            return made, None
        made[value == output] = 0.0  # infinite ones too
        made[np.isinf(value) & np.isinf(made)] = np.nan  # which add up to that without a warning
        again = value + made
        off = np.abs(again - output) <= _OFF * np.maximum(scale, np.abs(output))
    return made, ~(off | (again == output) | (np.isnan(again) & np.isnan(output)))


def bounds_something(law: object) -> bool:
    """Tell whether a law has noise at all: with scale 0 it passes its value through."""
    if isinstance(law, Projected):
        return bounds_something(law.law)
    return bool(getattr(law, "scale", getattr(law, "sigma", 1.0)) > 0)


def scale_of(law: object) -> float | Floats:
    """Return the scale or standard deviation of a law's noise, at points for each run; 0 where it has none."""
    if isinstance(law, Projected):
        of_points: Floats = scale_of(law.law) * np.abs(law.points).max(axis=0)
        return of_points
    return float(getattr(law, "scale", getattr(law, "sigma", 0.0)))


def place() -> CallSite:
    """Return where the noisy call that is being made is written."""
    frame = _caller()
    return CallSite("?", 1) if frame is None else site_of((frame.f_code.co_filename, frame.f_lineno))


def used() -> CallSite:
    """Return where the code under audit uses a number: not in a library that it calls."""
    first = frame = _caller()
    while frame is not None and of_library(frame):
        frame = frame.f_back
    if frame is None or f"{frame.f_globals.get('__name__', '')}.".startswith(_HARNESS):  # all of it is a library
        frame = first
    return CallSite("?", 1) if frame is None else site_of((frame.f_code.co_filename, frame.f_lineno))


def _text_of(value: object) -> str:
    """Return a text of arrays, numbers and lists of them that is the same for the same."""
    if isinstance(value, np.ndarray):
        return f"{value.shape} {value.dtype} {value.tolist()!r}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text_of, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_text_of(one)}' for name, one in value.items())}}}"
    return repr(value)


def site_of(line: Line) -> CallSite:
    """Return a line as the place that reports name."""
    return CallSite(_relative(line[0]), line[1])


def _caller() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_BETWEEN):
        frame = frame.f_back
    return frame


@cache  # of few files, and of thousands of calls
def _relative(file: str) -> str:
    path = Path(file)
    return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else named_from_here(path)
