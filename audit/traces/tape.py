"""Tapes: draws that record the noisy calls of a block of runs, or replay them with their outputs frozen."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Draws, Floats, Law, Outcome, Purpose, Stage
from ...mechanisms.noise import Projected
from ..execution.provenance import named_from_here
from .watched import CallSite, Watched

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = __name__.partition(".")[0]
#: What stands between a noisy call and the line that asked for it.
_BETWEEN = (
    *(f"{_PACKAGE}.{room}." for room in ("audit.traces", "testing", "mechanisms.primitives", "mechanisms.noise")),
    "numpy.",
)
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


TapeEvent = Call | Shown


@dataclass(frozen=True)
class Draw:
    """A draw that a trace does not follow: how many events came before it, and where it is written."""

    events: int
    place: CallSite


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
    """

    def __init__(
        self, seed: int, block: int = 0, *, runs: int = 1, frozen: Sequence[TapeEvent] = (), nudged: bool = False
    ) -> None:
        super().__init__(seed, Stage.TRACE, 0, 0, block)
        self.noises = Draws(seed, Stage.TRACE, 0, 1, block)
        self.plain = super().stream(Purpose.LEARNER)
        self.runs = runs
        self.frozen = [event for event in frozen if isinstance(event, Call)]
        self.nudges = np.random.default_rng(block) if nudged else None
        self.events: list[TapeEvent] = []
        self.round = self._made = 0
        self.direct: set[object] = set()
        self.alone: list[CallSite] = []
        self.silent: list[tuple[str, CallSite, object]] = []  # what was to get noise of scale 0
        self.other_draw: Draw | None = None  # the first draw that is no noise call, or noise that is used otherwise
        self.of_zero: list[Draw] = []  # noise calls for 0: their noise may be meant for another value

    def stray(self, where: CallSite | None = None) -> None:
        """Note a draw that is no noise call, or noise that is used otherwise than for one value."""
        if self.other_draw is None:
            self.other_draw = Draw(len(self.events), where or self.place())

    def zero(self) -> None:
        """Note that the next noise call has 0 as its value."""
        self.of_zero.append(Draw(len(self.events), self.place()))

    def show(self, what: str, value: Values) -> None:
        """Note what the adversary may see."""
        self.events.append(Shown(what, self.round, value))

    def noise(
        self, law: Law, shape: tuple[int, ...], value: object, name: str = "", where: CallSite | None = None
    ) -> Any:
        """Return noise, and note the call; in a replay, what leads to the frozen output."""
        if not bounds_something(law):
            self.silent.append((name or "noise", where or self.place(), value() if callable(value) else value))
            return law.sample(shape, self.noises)
        exact = np.asarray(value() if callable(value) else value)
        if exact.ndim == 0 and exact == 0:
            self.zero()
        value = np.broadcast_to(exact, shape).copy()
        before = self._before(shape)
        size = scale_of(law)
        output = value + law.sample(shape, self.noises) if before is None else self._nudged(before, value, size)
        made, lost = _made(value, output, size)
        self._note(name, law, value, output, where, lost)
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
        whole = np.empty((1, 1), dtype=object)
        whole[0, 0] = value
        self._made += 1
        before = self.frozen[self._made - 1].output if self._made <= len(self.frozen) else None
        output = make() if before is None else copy.copy(before)
        known = isinstance(value, int | float | np.number) and hasattr(law, "sample")
        self._note(name, law, np.asarray(value).reshape(-1, 1) if known else whole, output)
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
        where: CallSite | None = None,
        lost: NDArray[np.bool_] | None = None,
    ) -> None:
        self.events.append(Call(name or "noise", where or self.place(), self.round, law, value, output, lost))

    def place(self) -> CallSite:
        """Return where the noisy call that is being made is written."""
        return place()

    def spot(self) -> object:
        """Return the same to the instruction."""
        frame = _caller()
        return None if frame is None else (frame.f_code, frame.f_lasti)


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
    return CallSite("?", 1) if frame is None else CallSite(_relative(frame.f_code.co_filename), frame.f_lineno)


def _caller() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_BETWEEN):
        frame = frame.f_back
    return frame


def _relative(file: str) -> str:
    path = Path(file)
    return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else named_from_here(path)
