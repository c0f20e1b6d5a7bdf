"""Tapes: draws that record the noisy calls of a block of runs, or replay them with their outputs frozen."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Draws, Floats, Law, Outcome, Purpose, Stage
from ...mechanisms.noise import Projected
from ..execution.provenance import named_from_here
from .forms.arrays import FormArray, filled, holds_forms, plain_of, values_of
from .forms.form import Form, Line
from .forms.least_noise import scale_of_law
from .forms.proxy import of_library
from .forms.returned import is_returned
from .forms.trusted import is_trusted, shape_of, warning_state
from .watched import CallSite, UnreadNoiseError, Watched

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = __name__.partition(".")[0]
#: What stands between a noisy call and the line that asked for it.
_INNER_MODULES = (
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
    moved : array, optional
        By how much the noise moves that makes up for the difference of the inputs, where that is known itself.
    """

    name: str
    place: CallSite
    round: int
    law: object
    value: Values
    output: Any
    lost: NDArray[np.bool_] | None = None
    moved: Values | None = None


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
    """Linear forms whose values are known from here on.

    Attributes
    ----------
    value : float or None
        Of a single form whose value the code under audit has; None of arguments of a trusted function.
    what : str
        The trusted function and its plain arguments, as a text that is the same for the same.
    """

    place: CallSite
    round: int
    forms: tuple[Form, ...]
    value: float | None
    what: str = ""


TapeEvent = Call | Shown | Drawn | Release


@dataclass(frozen=True)
class Escape:
    """Where a trace no longer follows what is random: how many events came before, where it is written, and why."""

    events: int
    place: CallSite | None
    why: str

    def __str__(self) -> str:
        return f"the target {self.why}" if self.place is None else f"{self.place} {self.why}"


class Tape(Draws):
    """Draws that record every noisy call, or replay it with its output frozen. All else is drawn as the key says.

    Noise has a stream of its own, so that what else is drawn is the same in a replay.

    Parameters
    ----------
    seed, block : int
        The key.
    frozen : sequence of events, optional
        Of the recorded run: a call returns what the call of the same number did, and so does who asks for a value.
    nudged : bool
        Whether frozen outputs of calls are moved a little, as rounding would.
    runs : int
        In the block.
    forms : bool
        Whether noise that is drawn from a generator is followed, else asked for where it is drawn.
    """

    def __init__(
        self,
        seed: int,
        block: int = 0,
        *,
        runs: int = 1,
        frozen: Sequence[TapeEvent] = (),
        nudged: bool = False,
        forms: bool = True,
    ) -> None:
        super().__init__(seed, Stage.TRACE, 0, 0, block)
        self.noises = Draws(seed, Stage.TRACE, 0, 1, block)
        self.plain = super().stream(Purpose.LEARNER)
        self.seeds = Draws(seed, Stage.TRACE, 0, 2, block).generator
        self.runs = runs
        self.forms = forms
        self.frozen = [event for event in frozen if isinstance(event, Call)]
        self.recorded = [event.value for event in frozen if isinstance(event, Release) and event.value is not None]
        self.nudges = np.random.default_rng(block) if nudged else None
        self.events: list[TapeEvent] = []
        self.round = self._made = 0
        self.operations = 0
        self.values_given: dict[int, float] = {}  # of forms that were asked for
        self.silent: list[tuple[str, CallSite, object]] = []  # what was to get noise of scale 0
        self.other_draw: Escape | None = None  # the first draw that is no noise call
        self.escaped: Escape | None = None  # where the code under audit first has a value that depends on noise
        self.quiet = warning_state()
        self.answers = False  # whether what the code under audit returns is seen, and nothing else done with it
        self.overwritten: CallSite | None = None  # where a number with noise was replaced by one without
        self.of_zero: list[Escape] = []  # noise calls for 0: their noise may be meant for another value
        self.generators: list[tuple[np.random.BitGenerator, bytes]] = []  # that are watched, and their states before
        self._drawn: list[float] = []  # the noise of every variable
        self.scales: list[float] = []  # of the noise of every variable
        self._public: list[Callable[[], float]] = []  # the value of every public variable
        self._kept: list[Form] = []  # whose values were given: their numbers are no other's while they live

    def forget(self) -> None:
        """Let go of what was played: forms know their tape, and Python frees no circle through an array of them."""
        self.events, self.frozen, self.silent, self._public, self._kept = [], [], [], [], []

    def stray(self, reason: str = "draws otherwise than noise") -> None:
        """Note a draw that is no noise call."""
        if self.other_draw is None:
            self.other_draw = Escape(len(self.events), place(), reason)

    def watch(self, bits: np.random.BitGenerator) -> None:
        """Note a generator that is watched: whoever draws from it unseen moves its state."""
        self.generators.append((bits, _state(bits)))

    @contextmanager
    def states_watched(self) -> Iterator[None]:
        """Note a draw that nobody noted, where the state of a watched or of a global generator moves."""
        before = _global_states()
        yield
        has_moved = any(_state(bits) != state for bits, state in self.generators) or _global_states() != before
        if has_moved and self.other_draw is None:
            self.other_draw = Escape(len(self.events), None, "draws from a generator in a way that is not watched")

    def escape(self, reason: str, place: CallSite | None = None) -> None:
        """Note that what the code under audit does may depend on noise from here on."""
        if self.escaped is None:
            self.escaped = Escape(len(self.events), place or used(), reason)

    def hear(self, frame: FrameType) -> None:
        """Note that an exception passes a frame of the code under audit: whether it does may depend on noise."""
        if self._drawn:
            self.escape("raises an exception", site_of(_line_of(frame)))

    def overwrite(self) -> None:
        """Note that a number with noise is replaced by one without."""
        self.overwritten = place()

    def line(self) -> Line:
        """Return the line of the code under audit that runs."""
        return _line()

    def concrete(self, form: Form) -> float:
        """Return the value of a form with the noise that was drawn."""
        parts = (
            factor * (self._drawn[key] if key >= 0 else self._public[-1 - key]())
            for key, factor in form.factors.items()
        )
        return form.shift + sum(parts)

    def reveal(self, form: Form) -> float:
        """Note that the code under audit has the value of a form, and return it: in a replay the recorded one."""
        self.escape("asks for the value of a noisy number")
        return self._released(form)

    def answer(self, form: Form, names: tuple[str, ...], other: object = None) -> float:
        """Return the value of a form: released where it goes through one of these builtins into what is returned."""
        gives_whole = names[0] in ("int", "round")  # which raise of what is not finite
        if self.answers and not (gives_whole and form.is_public) and is_returned(_caller(), names, other):
            return self._released(form)
        return self.reveal(form)

    def _released(self, form: Form) -> float:
        if id(form) not in self.values_given:
            count = len(self.values_given)
            value = self.recorded[count] if count < len(self.recorded) else self.concrete(form)
            self.values_given[id(form)] = value
            self._kept.append(form)
            self.events.append(Release(used(), self.round, (form,), value))
        return self.values_given[id(form)]

    def publish(self, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Return a trusted function of forms, which are released: public variables. Else return `NotImplemented`."""
        args = [plain_of(value) if type(value) is Form else value for value in args]
        in_keywords = [holds_forms(value) or isinstance(value, FormArray) for value in kwargs.values()]
        if any(in_keywords) or not is_trusted(function, args, kwargs, self.quiet):
            return NotImplemented
        shape = shape_of(function, [filled(value, lambda form: 1.0) for value in args], kwargs)
        forms = [cell for value in args if holds_forms(value) for cell in value.flat if type(cell) is Form]
        if shape is None or not forms:
            return NotImplemented
        first, computed = len(self._public), _Computed(self, function, args, kwargs)
        call_text = " ".join([function.__name__, *map(_text_of, (*args, *kwargs.items()))])
        self.events.append(Release(used(), self.round, tuple(forms), None, call_text))
        for form in forms:
            if form.is_signed_zero:
                self.escape("uses the sign of a noisy number times 0")
        count = math.prod(shape)
        self._public += [lambda i=i: computed.values[i] for i in range(count)]  # type: ignore[misc]
        cells = np.empty(count, dtype=object)
        cells[:] = [Form(self, 0.0, {-1 - i: 1.0}) for i in range(first, first + count)]
        return cells.reshape(shape).view(FormArray) if shape else cells[0]

    def added(self, kind: Callable[[float], Law], loc: Any, scale: Any, size: Any, name: str) -> Any:
        """Return a location plus fresh noise: forms.

        Raises
        ------
        UnreadNoiseError
            If a batched target draws noise for other than all its runs.
        """
        scales = np.asarray(scale, dtype=float)
        asked_shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        shape = np.broadcast_shapes(np.shape(loc), scales.shape, asked_shape)
        if self.runs > 1 and shape[-1:] != (self.runs,):
            raise UnreadNoiseError(f"watched noise of a batched target must have the shape (..., runs), got {shape}")
        if not scales.any():
            self.silent.append((name, place(), loc))
            return loc + (np.zeros(shape) if shape else 0.0)
        column = shape if self.runs > 1 else (math.prod(shape), 1)
        is_single_scale = scales.size == 1 or bool((scales == scales.flat[0]).all())
        law = kind(float(scales.flat[0]) if is_single_scale else 1.0)
        noise = np.asarray(law.sample(column, self.noises), dtype=float).reshape(shape)
        if is_single_scale:
            fixed = float(loc) if type(loc) in (int, float, np.float64) else 0.0
            draws = [Drawn(name, place(), self.round, law, len(self._drawn), column, fixed)]
            return self._added(loc, noise, draws, [True] * noise.size)
        cell_scales = np.broadcast_to(scales, shape).reshape(-1).tolist()
        if not all(cell_scales):
            self.silent.append(
                (name, place(), np.broadcast_to(values_of(loc), shape)[np.reshape(cell_scales, shape) == 0])
            )
        numbers = itertools.count(len(self._drawn))
        draws = [
            Drawn(name, place(), self.round, kind(cell_scale), next(numbers), (1, 1))
            for cell_scale in cell_scales
            if cell_scale
        ]
        return self._added(loc, noise * scales, draws, cell_scales)

    def _added(self, loc: Any, noise: Values, draws: list[Drawn], scales: Sequence[object]) -> Any:
        """Return a location plus noise as forms, where its scale is not 0."""
        shape, where, numbers = noise.shape, _line(), itertools.count(len(self._drawn))
        self.events += draws
        self.scales += [scale_of_law(event.law) for event in draws for _ in event.variables]
        self._drawn += [value for value, scale in zip(noise.reshape(-1).tolist(), scales, strict=True) if scale]
        forms = np.empty(noise.size, dtype=object)
        forms[:] = [Form(self, 0.0, {next(numbers): 1.0}, where) if scale else 0.0 for scale in scales]
        bare: Any = forms.reshape(shape).view(FormArray) if shape else forms[0]
        result = bare if np.ndim(loc) == 0 and type(loc) is not Form and loc == 0 else bare + loc
        return result if self.forms else values_of(result)

    def zero(self) -> None:
        """Note that the next noise call has 0 as its value."""
        self.of_zero.append(Escape(len(self.events), place(), "draws noise for 0"))

    def show(self, subject: str, value: Values) -> None:
        """Note what the adversary may see."""
        signs = (
            [cell for cell in value.flat if type(cell) is Form and cell.is_signed_zero]
            if value.dtype == object
            else []
        )
        if signs:
            self.escape("shows the sign of a noisy number times 0", site_of(signs[0].where))
        self.events.append(Shown(subject, self.round, value))

    def noise(self, law: Law, shape: tuple[int, ...], value: object, name: str = "") -> Any:
        """Return noise, and note the call; in a replay, what leads to the frozen output."""
        if not bounds_something(law):
            self.silent.append((name or "noise", place(), value() if callable(value) else value))
            return law.sample(shape, self.noises)
        exact = np.asarray(values_of(value() if callable(value) else value))
        if exact.ndim == 0 and exact == 0:
            self.zero()
        value = np.broadcast_to(exact, shape).copy()
        before = self._before(shape)
        size = scale_of(law)
        output = value + law.sample(shape, self.noises) if before is None else self._nudged(before, value, size)
        addend, is_lost = _made(value, output, size)
        self._note(name, law, value, output, is_lost)
        return addend

    def outcome(self, law: Callable[[], object], sample: Callable[[Draws], Outcome], name: str = "") -> Outcome:
        """Return an outcome, and note the call; in a replay, the frozen outcome."""
        probabilities = np.asarray(law(), dtype=float)
        sampled: Any = sample(self.noises)
        before = self._before(np.shape(sampled))
        output: Outcome = sampled if before is None else copy.copy(before)
        self._note(name, None, probabilities, output)
        return output

    def measured(self, law: object, value: object, make: Callable[[], object], name: str) -> object:
        """Return what another's code released of a value, and note the call; in a replay, what it released before."""
        if not bounds_something(law):
            self.silent.append((name, place(), value))
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
        is_lost: NDArray[np.bool_] | None = None,
    ) -> None:
        self.events.append(Call(name or "noise", place(), self.round, law, value, output, is_lost))


class PlainTape(Tape):
    """A tape that gives plain numbers: noise times a factor, moved by what makes up for the difference of two inputs.

    Parameters
    ----------
    stretch : float
    moved : dict of float, optional
        By how much the noise of each variable moves.
    """

    def __init__(
        self, seed: int, block: int = 0, *, runs: int = 1, stretch: float = 1.0, moves: Mapping[int, float] = {}
    ) -> None:
        super().__init__(seed, block, runs=runs, forms=False)
        self.stretch, self.moved = stretch, moves

    def _added(self, loc: Any, noise: Values, draws: list[Drawn], scales: Sequence[object]) -> Any:
        self.events += draws
        first = len(self._drawn)
        self._drawn += [0.0 for scale in scales if scale]
        numbers = itertools.count(first)
        moves = [self.moved.get(next(numbers), 0.0) if scale else 0.0 for scale in scales]
        result = loc + (self.stretch * noise + np.reshape(moves, noise.shape))
        return result if np.ndim(result) else float(result)


def _made(value: Values, output: Values, scale: float | Floats) -> tuple[Values, NDArray[np.bool_] | None]:
    """Return the noise that leads from a value to an output, and where it does not, for rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        noise = np.asarray(output - value)
        if noise.dtype.kind != "f":
            return noise, None
        noise[value == output] = 0.0  # infinite ones too
        noise[np.isinf(value) & np.isinf(noise)] = np.nan  # which add up to that without a warning
        total = value + noise
        off = np.abs(total - output) <= _OFF * np.maximum(scale, np.abs(output))
    return noise, ~(off | (total == output) | (np.isnan(total) & np.isnan(output)))


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


def _line() -> Line:
    """Return the line of the code under audit that runs."""
    return _line_of(_caller())


def place() -> CallSite:
    """Return where the noisy call that is being made is written."""
    return site_of(_line())


def used() -> CallSite:
    """Return where the code under audit uses a number: not in a library that it calls."""
    first = frame = _caller()
    while frame is not None and of_library(frame):
        frame = frame.f_back
    if frame is None or f"{frame.f_globals.get('__name__', '')}.".startswith(_HARNESS):  # all of it is a library
        frame = first
    return site_of(_line_of(frame))


def _state(bits: np.random.BitGenerator) -> bytes:
    return pickle.dumps(bits.state)


def _global_states() -> tuple[object, ...]:
    state: Any = np.random.get_state()  # noqa: NPY002 - a target may draw from it
    _, array, *position = state
    return random.getstate(), array.tobytes(), *position


def _text_of(value: Any) -> str:
    """Return a text of an argument that is the same for the same, to the last bit."""
    if isinstance(value, np.ndarray):
        cells = ["a form" if type(cell) is Form else cell for cell in value.reshape(-1).tolist()]
        return f"{value.shape} {value.dtype} {cells!r}"
    return repr(value)


@dataclass
class _Computed:
    """What a trusted function gives of the noise that was drawn: computed when somebody asks for it."""

    tape: Tape
    function: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]

    @cached_property
    def values(self) -> list[float]:
        with np.errstate(all="ignore"):
            result = self.function(*(filled(value, self.tape.concrete) for value in self.args), **self.kwargs)
        flat: list[float] = np.reshape(result, -1).tolist()
        return flat


def site_of(line: Line) -> CallSite:
    """Return a line as the place that reports name."""
    return CallSite(_relative(line[0]), line[1])


def _line_of(frame: FrameType | None) -> Line:
    return ("?", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _caller() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_INNER_MODULES):
        frame = frame.f_back
    return frame


@cache  # of few files, and of thousands of calls
def _relative(file: str) -> str:
    path = Path(file)
    return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else named_from_here(path)
