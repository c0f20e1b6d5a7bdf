"""Replay: a run in the left world, the same in the right with every noisy output frozen, and where the two part."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import blaming, name_of
from ...learners.protocol import Learner
from ...learners.scalar import Scalar
from ...mechanisms.draws import Draws
from ..attacks.encoding import scalars
from ..play.pairs import Pair
from ..play.transcripts import play_rounds
from .libraries import watched_libraries
from .tape import Call, Event, Place, Shown, Tape, UntraceableError
from .watched import settled

#: Runs of a batched target, and of one that is called run by run.
RUNS, PLAIN_RUNS = 256, 24
#: A block has fewer runs where rounds times coordinates times runs would pass this.
_MOST_VALUES = 2_000_000
#: Values that are shown, and scales of noise, differ where they are further apart than this, over the larger of 1 and
#: their size.
APART = 1e-6
#: A world, played on a tape: `True` is the left one.
Playing = Callable[[Tape, bool], None]


@dataclass(frozen=True)
class Leak:
    """Where two runs part although every noisy output and all other randomness is the same: what leaks, and how.

    Attributes
    ----------
    what : str
        "action of round 3", "output", "noisy call 2 (place)".
    round : int
        From 1; 0 for a mechanism.
    place : Place or None
        Of the call that parts, where one does; else of the last one before whose inputs differ.
    left, right : str
        What each run has there.
    runs, tried : int
        In how many of the replayed runs.
    hint : str
        What was to get noise, and got noise of scale 0; else the last call before whose inputs differ.
    """

    what: str
    round: int
    place: Place | None
    left: str
    right: str
    runs: int
    tried: int
    hint: str = ""

    def __str__(self) -> str:
        return (
            f"leak: {self.what} differs although everything noisy is the same: left {self.left}, right {self.right} "
            f"(in {self.runs} of {self.tried} replayed runs)" + (f"; {self.hint}" if self.hint else "")
        )


@dataclass(frozen=True)
class Trace:
    """The events of a block of runs in the left world, and of its replay in the right.

    Attributes
    ----------
    left, right : lists of events
    leak : Leak or None
    runs : int
    watched : bool
        Whether any noise was asked for where it is watched, be it of scale 0.
    bare : str
        Which input differs and gets noise of scale 0, if one does: few runs may show it, so no replay rules it out.
    """

    left: list[Event]
    right: list[Event]
    leak: Leak | None
    runs: int
    watched: bool = True
    bare: str = ""

    @property
    def calls(self) -> list[tuple[Call, Call]]:
        """The noisy calls in both worlds, up to where the runs part."""
        found = []
        for left, right in zip(self.left, self.right, strict=False):
            if not _of_one_kind(left, right):
                break
            if isinstance(left, Call) and isinstance(right, Call):
                found.append((left, right))
        return found


def trace(playing: Playing, seed: int, block: int, runs: int, *, plain: bool = False) -> Trace:
    """Record a block in the left world and replay it in the right.

    A control replays the left world with every frozen output moved by more than rounding: a run in which the control
    parts too says nothing of a leak.

    Parameters
    ----------
    plain : bool
        Whether the target draws from a generator of NumPy's: then the places where it draws noise for a value are
        looked for first.

    Raises
    ------
    UntraceableError
        If the control parts in every run: it draws from where nothing is watched, or hangs on rounding.
    """
    direct: set[Place] = set()
    for left in (True, False) if plain else ():
        direct |= _play(playing, left, Tape(seed, block, runs=runs), direct).direct
    recorded = _play(playing, True, Tape(seed, block, runs=runs), direct)
    control = _play(playing, True, Tape(seed, block, runs=runs, frozen=recorded.events, nudged=True), direct)
    replayed = _play(playing, False, Tape(seed, block, runs=runs, frozen=recorded.events), direct)
    try:
        leak = parting(recorded.events, replayed.events, control.events, runs)
    except UntraceableError:
        again = _play(playing, True, Tape(seed, block, runs=runs, frozen=recorded.events), direct)
        parting(recorded.events, recorded.events, again.events, runs)  # says that it draws from elsewhere, if it does
        raise UntraceableError(
            "its replays differ: it draws from elsewhere, or hangs on the rounding of the noisy outputs"
        ) from None
    bare = _without_noise(recorded, replayed)
    if leak is not None:
        after, place = _last_call(recorded.events, replayed.events, runs)
        leak = replace(leak, hint=bare or after, place=leak.place or place)
    watched = any(tape.silent or any(isinstance(e, Call) for e in tape.events) for tape in (recorded, replayed))
    return Trace(recorded.events, replayed.events, leak, runs, watched, bare)


def _without_noise(left: Tape, right: Tape) -> str:
    """Return which input differs and gets noise of scale 0; nothing where none does."""
    for (name, place, value), (_, _, other) in zip(left.silent, right.silent, strict=False):
        a, b = np.asarray(value), np.asarray(other)
        numbers = a.shape == b.shape and a.dtype.kind in "fiub" and b.dtype.kind in "fiub"
        if not (np.allclose(a, b, rtol=APART, atol=APART, equal_nan=True) if numbers else np.array_equal(a, b)):
            return f"{name} at {place} has noise of scale 0"
    return ""


def _last_call(left: list[Event], right: list[Event], runs: int) -> tuple[str, Place | None]:
    """Return the last call whose inputs differ before the runs part, in words, and its place."""
    words: tuple[str, Place | None] = "", None
    number = 0
    for a, b in zip(left, right, strict=False):
        if not _of_one_kind(a, b) or (isinstance(a, Shown) and _apart(a.value, b.value, runs, APART).any()):
            break
        if isinstance(a, Call):
            number += 1
            if a.value.dtype == object or not np.allclose(a.value, b.value, rtol=APART, atol=APART, equal_nan=True):
                words = f"before it the inputs of noisy call {number} ({a.place}, {a.name}) differ", a.place
    return words


def _play(playing: Playing, left: bool, tape: Tape, direct: set[Place]) -> Tape:
    tape.direct |= direct
    playing(tape, left)
    return tape


def learner_playing(
    learner: Learner, pair: Pair, runs: int, surface: str = "actions", *, forced: Any = None
) -> Playing:
    """Return what plays a learner in either world of a pair.

    Parameters
    ----------
    forced : arm or point, optional
        What every run plays in the differing round, whatever the learner says.
    """

    def playing(tape: Tape, left: bool) -> None:
        _play_learner(learner, pair, tape, runs, left, surface, forced)

    return playing


@dataclass
class _Taped:
    """A learner that tells its tape the round, and plays what it is forced to in one of them."""

    learner: Learner
    tape: Tape
    t0: int
    forced: Any

    @property
    def arms(self) -> int:
        return self.learner.arms

    @property
    def feedback(self) -> Any:
        return self.learner.feedback

    def start(self, runs: int, draws: Draws) -> Any:
        return self.learner.start(runs, draws)

    def act(self, state: Any, draws: Draws) -> Any:
        self.tape.round += 1
        played = self.learner.act(state, draws)
        if self.forced is None or self.tape.round != self.t0 + 1:
            return played
        return np.repeat(np.asarray(self.forced, dtype=played.dtype)[..., None], played.shape[-1], axis=-1)

    def update(self, state: Any, actions: Any, feedback: Any, draws: Draws) -> None:
        self.learner.update(state, actions, feedback, draws)


@blaming
def _play_learner(learner: Learner, pair: Pair, tape: Tape, runs: int, left: bool, surface: str, forced: Any) -> None:
    past: list[Any] | None = None if pair.arms is not None else []  # for adaptive losses only

    def feed(t: int, played: Any) -> Any:
        told = pair.feedback(t, played, learner.feedback, left, past or ())
        if past is not None:
            past.append(played)
        return told

    def learned(t: int, state: Any) -> None:
        released = learner.release(state)  # type: ignore[attr-defined]
        if released is not None:
            tape.show("release", np.array(released))

    play_rounds(
        _Taped(learner, tape, pair.t0, forced),
        tape,
        runs,
        pair.rounds,
        see=lambda t, played: tape.show("action", played.copy()),
        feed=feed,
        learned=learned if surface != "actions" else None,
        updates=pair.rounds - (surface != "publication"),
    )


def mechanism_playing(mechanism: Any, left_data: Any, right_data: Any, runs: int) -> Playing:
    """Return what runs a mechanism on either of its inputs; one that is called run by run, once."""

    def playing(tape: Tape, left: bool) -> None:
        data = copy.deepcopy(left_data if left else right_data)
        _play_mechanism(mechanism, data, tape, runs)

    return playing


@blaming
def _play_mechanism(mechanism: Any, data: Any, tape: Tape, runs: int) -> None:
    if getattr(mechanism, "batched", False):
        tape.show("output", np.asarray(settled(mechanism(data, tape, runs))))
        return
    with watched_libraries(tape):
        found = list(scalars(settled(mechanism(data, *_generator(mechanism, tape)))))
    column = np.empty((len(found), 1), dtype=object)  # texts are compared as they are, numbers with a tolerance
    for i, (_, value) in enumerate(found):
        column[i, 0] = value
    tape.show("output", column)


def _generator(mechanism: Any, tape: Tape) -> tuple[Any, ...]:
    """Return the watched generator; nothing for a mechanism of the data alone, whose randomness has no seed."""
    try:
        alone = len(inspect.signature(mechanism).parameters) == 1
    except (TypeError, ValueError):
        alone = False
    return () if alone else (tape.watched,)


def parting(left: list[Event], right: list[Event], control: list[Event], runs: int) -> Leak | None:
    """Return the first event in which a run and its replay part and the run and its control do not; None if none.

    Raises
    ------
    UntraceableError
        If the control parts in every run.
    """
    sound = np.ones(runs, dtype=bool)
    calls = 0
    for a, b, c in zip_longest(left, right, control):
        if c is None or a is None or not _of_one_kind(a, c):
            sound[:] = False
        elif isinstance(a, Shown):
            sound &= ~_apart(a.value, c.value, runs, APART / 10)
        if not sound.any():
            raise UntraceableError(
                "with the same outputs and the same generator it does not do the same again: it draws from elsewhere"
            )
        calls += isinstance(a, Call)
        if a is None or b is None or not _of_one_kind(a, b):
            return _other_call(a, b, calls, runs)
        if isinstance(a, Shown) and isinstance(b, Shown):
            parted = _apart(a.value, b.value, runs, APART) & sound
            if parted.any():
                return _shown(a, b, parted, runs)
    return None


def _of_one_kind(a: Event, b: Event) -> bool:
    """Tell whether two events are of one place, shape and law; their values may differ."""
    if isinstance(a, Shown) or isinstance(b, Shown):
        return isinstance(a, Shown) and isinstance(b, Shown) and (a.what, a.round) == (b.what, b.round)
    same = (a.name, a.place, a.round) == (b.name, b.place, b.round)
    return same and np.shape(a.value) == np.shape(b.value) and _same_law(a.law, b.law)


def _same_law(a: Any, b: Any) -> bool:
    """Tell whether two laws are the same, their scales within rounding."""
    if type(a) is not type(b):
        return False
    if hasattr(a, "__dict__") and not callable(a):
        return all(_same_law(value, getattr(b, name)) for name, value in vars(a).items())
    if a is None or isinstance(a, str) or callable(a):
        return callable(a) or bool(a == b)
    if np.shape(a) != np.shape(b):
        return False
    here, there = (np.asarray(value, dtype=float) for value in (a, b))
    return np.allclose(here, there, rtol=APART, atol=APART, equal_nan=True)


def _apart(a: Any, b: Any, runs: int, tolerance: float) -> NDArray[np.bool_]:
    """Tell in which runs two values that are shown differ: (runs,)."""
    if np.shape(a) != np.shape(b):
        return np.ones(runs, dtype=bool)
    if a.dtype == object:
        return np.array([any(map(_differ, a[:, run], b[:, run])) for run in range(runs)])
    if a.dtype.kind in "iub":
        apart = a != b
    else:
        with np.errstate(invalid="ignore"):
            size = np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
            same = (np.abs(a - b) <= tolerance * size) | (a == b) | (np.isnan(a) & np.isnan(b))
        apart = ~same
    found: NDArray[np.bool_] = apart.reshape(-1, runs).any(axis=0)
    return found


def _differ(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return not (abs(a - b) <= APART * max(1.0, abs(a), abs(b)) or a == b or (a != a and b != b))
    return type(a) is not type(b) or bool(a != b)


def _shown(a: Shown, b: Shown, parted: NDArray[np.bool_], runs: int) -> Leak:
    run = int(parted.argmax())
    first, second = (np.asarray(event.value) for event in (a, b))
    what = f"{a.what} of round {a.round}" if a.round else a.what
    if first.shape != second.shape:
        return Leak(
            what, a.round, None, f"of shape {first.shape}", f"of shape {second.shape}", int(parted.sum()), runs
        )
    here, there = (_number(value.reshape(-1, runs)[:, run]) for value in (first, second))
    return Leak(what, a.round, None, here, there, int(parted.sum()), runs)


def _number(values: Any) -> str:
    words = [f"{value:.6g}" if isinstance(value, float | np.floating) else str(value) for value in values[:4]]
    more = ", ..." if len(values) > 4 else ""
    return words[0] if len(values) == 1 else f"[{', '.join(words)}{more}]"


def _other_call(a: Event | None, b: Event | None, number: int, runs: int) -> Leak:
    """Return the leak of a call that the other run does not make, or makes elsewhere, in another shape or law."""
    first = a if isinstance(a, Call) else b if isinstance(b, Call) else None
    round_ = first.round if first else 0
    at = f"noisy call {number + (not isinstance(a, Call))}"
    return Leak(at, round_, first.place if first else None, _said(a), _said(b), runs, runs)


def _said(event: Event | None) -> str:
    if isinstance(event, Call):
        law = "an outcome" if event.law is None else str(event.law)
        return f"{event.name} at {event.place}, {np.shape(event.value)[:-1]} of {law}"
    return "none here"


def is_plain(target: Any) -> bool:
    """Tell whether a target draws from a NumPy generator, one run at a time."""
    return isinstance(target, Scalar) or not (hasattr(target, "act") or getattr(target, "batched", False))


def traces(target: Any, pair: Any, *, seed: int = 0, surface: str = "actions") -> list[Trace]:
    """Return traces of a learner or of a mechanism on a pair: one block of runs, or several runs of a plain target.

    Raises
    ------
    UntraceableError
        If the target draws in a way that is not watched.
    LearnerError
        If it raises.
    """
    plain = is_plain(target)
    size = getattr(pair, "rounds", 1) * (getattr(target, "arms", None) or 1)
    if size > _MOST_VALUES:
        raise UntraceableError(f"a run has {size:,} values, more than the {_MOST_VALUES:,} that a trace holds")
    runs = 1 if plain else min(RUNS, _MOST_VALUES // size)
    playing = (
        learner_playing(target, pair, runs, surface)
        if hasattr(target, "act") or isinstance(target, Scalar)
        else mechanism_playing(target, pair.left, pair.right, runs)
    )
    found = [trace(playing, seed, block, runs, plain=plain) for block in range(PLAIN_RUNS if plain else 1)]
    if not any(one.watched for one in found) and not _ours(target):
        leak = next((one.leak for one in found if one.leak), None)
        then = f"; with the same random numbers in both worlds its {leak.what} differs" if leak else ""
        raise UntraceableError(
            f"{name_of(target)} draws no noise in a way that is watched{then}: draw it by "
            "overclaim.testing.laplace(value, scale, rng) or gaussian, or as value + rng.laplace(0, scale)"
        )
    return found


def _ours(target: Any) -> bool:
    kind = getattr(target, "user_class", type(target))
    return str(kind.__module__).startswith(f"{__name__.partition('.')[0]}.")
