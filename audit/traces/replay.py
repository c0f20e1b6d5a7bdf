"""Replay: a run in the left world, the same in the right with every noisy output frozen, and where the two part."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import at_play, blaming, name_of
from ...learners.protocol import Actions, Learner, LearnerError
from ...learners.scalar import Scalar, values_of
from ...mechanisms.draws import Draws
from ...mechanisms.view import ACTIONS, View
from ..encoding.places import scalars
from ..play.attributes import WithAttributes
from ..play.mechanism_runs import called
from ..play.pairs import Pair
from ..play.transcripts import feeding, play_rounds
from ..play.unseeded import CalledOneByOne
from .forms.form import Form
from .forms.proxy import exceptions_heard, numpy_proxy
from .forms.trusted import warning_state
from .libraries import watched_libraries
from .parting import Leak, last_call, lost_words, parting, without_noise
from .released import Released
from .tape import Call, Drawn, Escape, PlainTape, Shown, Tape, TapeEvent, UntraceableError
from .watched import UnreadNoiseError

#: Runs of a batched target, and of one that is called run by run.
RUNS, PLAIN_RUNS = 256, 24
#: Runs of a batched target that may do the same in each; and how much noise is followed in about a second.
MIN_RUNS, _MOST_FORMS = 2, 2**15
#: A block has fewer runs where rounds times coordinates times runs would pass this.
_MOST_VALUES = 2_000_000
#: A world, played on a tape: `True` is the left one.
Playing = Callable[[Tape, bool], None]


@dataclass(frozen=True)
class Trace:
    """The events of a block of runs in the left world, and of its replay in the right.

    Attributes
    ----------
    left, right : lists of events
    leak : Leak or None
    runs : int
    calls : list of (Call, Call)
        The noise calls for both inputs, up to where the runs part.
    watched : bool
        Whether any noise was asked for where it is watched, be it of scale 0.
    bare : str
        Which input differs and gets noise of scale 0, if one does: few runs may show it, so no replay rules it out.
    lost : str
        Which call's output rounding has taken from a replay, if one's: what follows was not compared there.
    exact : bool
        Whether every run does the same as these: nobody asked for the value of a noisy number, and nothing else is
        random.
    escaped : Escape or None
        Why it is not exact, where that is known.
    rounded : float or None
        The largest number whose rounding is not small beside the noise, where it may hide what no noise explains.
    moved : dict of float, optional
        By how much the noise of each variable moves that makes up for the difference of the inputs.
    """

    left: list[TapeEvent]
    right: list[TapeEvent]
    leak: Leak | None
    runs: int
    calls: list[tuple[Call, Call]]
    watched: bool = True
    bare: str = ""
    lost: str = ""
    exact: bool = False
    escaped: Escape | None = None
    rounded: float | None = None
    moved: Mapping[int, float] = field(default_factory=dict)


def trace(playing: Playing, seed: int, block: int, runs: int, *, forms: bool = True, foreign: object = None) -> Trace:
    """Record a block in the left world and replay it in the right.

    A control replays the left world with every frozen output moved by more than rounding: a run in which the control
    parts too says nothing of a leak.

    Parameters
    ----------
    forms : bool
        Whether noise from a generator is followed.
    foreign : object, optional
        The target, where it is not ours: then arrays that it makes can hold forms.

    Raises
    ------
    UntraceableError
        If the control parts in every run: it draws from where nothing is watched, or hangs on rounding.
    """
    with ExitStack() as afterwards:

        def played(left: bool, frozen: list[TapeEvent], nudged: bool) -> Tape:
            tape = Tape(seed, block, runs=runs, frozen=frozen, nudged=nudged, forms=forms)
            afterwards.callback(tape.forget)
            return play_on(tape, playing, left, foreign)

        follows_all = foreign is not None and forms
        result = _replayed(played, runs, follows_all=follows_all)
        if follows_all and (result.leak is not None or block == 0):
            plain_tape = play_on(PlainTape(seed, block, runs=runs), playing, True, foreign)
            if not _shows_the_same(plain_tape.events, result.left):
                raise UntraceableError("with numbers it shows something else than with what a trace follows")
        return result


def _replayed(play: Callable[[bool, list[TapeEvent], bool], Tape], runs: int, *, follows_all: bool) -> Trace:
    """Return the trace of a block that `play` plays: in which world, with which frozen outputs, and whether moved."""
    recorded = play(True, [], False)
    replayed = play(False, recorded.events, False)
    calling = any(isinstance(event, Call) for tape in (recorded, replayed) for event in tape.events)
    control = play(True, recorded.events, True) if calling or not follows_all else recorded  # plain plays test forms
    leak = parting(recorded.events, replayed.events, control.events, runs)
    bare = without_noise(recorded, replayed)
    released = Released(recorded, replayed, len(recorded.events) if leak is None else leak.events + 1)
    leak, calls = _first(leak, released.leak(runs)), released.calls()
    if leak is not None:
        after, place = last_call(calls)
        place = leak.place or (recorded.overwritten if leak.what == "output" else None) or place
        leak = replace(leak, hint=bare or leak.hint or after, place=place, lost=released.lost(leak))
    tapes = (recorded, replayed)
    watched = any(tape.silent or any(isinstance(e, Call | Drawn) for e in tape.events) for tape in tapes)
    rounded_call = lost_words((recorded, replayed, control), runs)
    escapes = [escape for tape in tapes for escape in (tape.escaped, tape.other_draw) if escape is not None]
    exact = follows_all and not escapes and not calling
    escaped, explanation = escapes[0] if escapes else None, released.found
    extras = bare, rounded_call, exact, escaped, explanation.rounded, explanation.moved
    return Trace(recorded.events, replayed.events, leak, runs, calls, watched, *extras)


def _first(parted: Leak | None, unexplained: Leak | None) -> Leak | None:
    """Return the leak that comes first; of two in one place the bypass."""
    if parted is None or unexplained is None:
        return parted or unexplained
    return unexplained if unexplained.events < parted.events or parted.lost is not None else parted


def play_on(tape: Tape, playing: Playing, left: bool, foreign: object = None) -> Tape:
    """Play a world on a tape, and return it. Of code that is not ours nothing is random but what the tape knows."""
    try:
        with ExitStack() as stack:
            if foreign is not None:
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                tape.quiet = warning_state()
                stack.enter_context(tape.states_watched())
                if tape.forms:
                    stack.enter_context(numpy_proxy(foreign))
                    stack.enter_context(exceptions_heard(tape.hear))
            playing(tape, left)
    except LearnerError as error:
        if isinstance(error.__cause__, UnreadNoiseError):  # our refusal, whichever code asked for the noise
            raise UntraceableError(str(error.__cause__)) from None
        raise
    return tape


@dataclass
class _Taped:
    """A learner that tells its tape the round, and plays what it is forced to in one of them."""

    learner: Learner
    tape: Tape
    t0: int
    forced: object

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    @property
    def __name__(self) -> str:
        return name_of(self.learner)

    def act(self, state: object, draws: Draws) -> Actions:
        self.tape.round += 1
        played = self.learner.act(state, draws)
        if self.forced is None or self.tape.round != self.t0 + 1:
            return played
        return np.repeat(np.asarray(self.forced, dtype=played.dtype)[..., None], played.shape[-1], axis=-1)


@blaming
def _play_learner(learner: Learner, pair: Pair, runs: int, view: View, forced: object, tape: Tape, left: bool) -> None:
    def learned(t: int, state: object) -> None:
        value = values_of(learner, view.channel, state)
        if value is not None:  # of a plain class, which plays one run, the list of its value
            tape.show(view.channel, _column(value[0]) if isinstance(value, list) else np.array(value))

    def see(t: int, played: Actions) -> None:
        if view.actions and not (view.without_own and t == pair.t0):
            tape.show("action", played.copy())

    play_rounds(
        _Taped(learner, tape, pair.t0, forced),
        tape,
        runs,
        pair.rounds,
        see=see,
        feed=feeding(learner, pair, left),
        learned=learned if view.channel else None,
        updates=view.updates(pair.rounds),
    )


@blaming
def _play_mechanism(mechanism: Callable[..., object], pair: Any, runs: int, tape: Tape, left: bool) -> None:
    data = pair.left if left else pair.right
    if getattr(mechanism, "batched", False):
        with at_play(mechanism)():
            outputs = called(mechanism, data, tape, runs)
        tape.show("output", np.asarray(outputs))
        return
    tape.answers = True
    with watched_libraries(tape), at_play(mechanism)():
        answer = called(mechanism, data, tape.watched)
    tape.show("output", _column(answer))


def _column(answer: object) -> NDArray[np.object_]:
    """Return the values of one run's output, (values, 1): texts are compared as they are, numbers with a tolerance."""
    values = list(scalars(answer))
    column = np.empty((len(values), 1), dtype=object)
    for i, (_, value) in enumerate(values):
        column[i, 0] = value
    return column


def is_plain(target: object) -> bool:
    """Tell whether a target draws from a NumPy generator, one run at a time."""
    return isinstance(target, Scalar) or not (hasattr(target, "act") or getattr(target, "batched", False))


def traces(target: Any, pair: Any, *, seed: int = 0, view: View = ACTIONS, first_alone: bool = False) -> list[Trace]:
    """Return traces of a learner or of a mechanism on a pair: one block of runs, or several runs of a plain target.

    Parameters
    ----------
    first_alone : bool
        Whether the first block is all that is asked for.

    Raises
    ------
    UntraceableError
        If the target draws in a way that is not watched.
    LearnerError
        If it raises.
    """
    if hasattr(target, "play_block"):
        raise UntraceableError("another Python plays it, and a trace follows what this Python plays")
    is_scalar = is_plain(target)
    size = getattr(pair, "rounds", 1) * (getattr(target, "arms", None) or 1)
    if size > _MOST_VALUES:
        raise UntraceableError(f"a run has {size:,} values, more than the {_MOST_VALUES:,} that a trace holds")
    runs = 1 if is_scalar else min(RUNS, _MOST_VALUES // size)

    def playing_of(runs: int) -> Playing:
        return playing(target, pair, runs, view)

    recorded = _blocks(
        playing_of, seed, runs, is_scalar, foreign=None if is_ours_inside(target) else target, first_alone=first_alone
    )
    if not any(replay.watched for replay in recorded) and not is_ours_inside(target):
        leak = next((replay.leak for replay in recorded if replay.leak), None)
        difference = f"; with the same random numbers on both inputs its {leak.what} differs" if leak else ""
        remedy = (
            "overclaim.testing.laplace(value, scale, rng) or gaussian, or as value + rng.laplace(0, scale)"
            if is_scalar
            else "draws.noise(law, shape, value), or as value + draws.generator.laplace(0, scale, shape)"
        )
        raise UntraceableError(
            f"{name_of(target)} draws no noise in a way that is watched in these runs{difference}: draw it by {remedy}"
        )
    return recorded


def playing(target: Any, pair: Any, runs: int, view: View = ACTIONS, *, forced: object = None) -> Playing:
    """Return what plays a learner or a mechanism in either world of a pair.

    Parameters
    ----------
    forced : arm or point, optional
        What every run of a learner plays in the differing round, whatever it says.
    """
    if hasattr(target, "act") or isinstance(target, Scalar):
        return partial(_play_learner, target, pair, runs, view, forced)
    return partial(_play_mechanism, target, pair, runs)


def _blocks(
    playing_of: Callable[[int], Playing], seed: int, runs: int, is_scalar: bool, foreign: object, first_alone: bool
) -> list[Trace]:
    """Return traces of some blocks: of a small one where every run does the same."""
    first_runs = runs if foreign is None else min(MIN_RUNS, runs)
    first, options = _followed(playing_of(first_runs), seed, first_runs, foreign, is_scalar)
    if first_alone or (first.exact and first.leak is None):
        return [first]
    if is_scalar:
        return [first, *(trace(playing_of(1), seed, block, 1, **options) for block in range(1, PLAIN_RUNS))]
    if first_runs == runs:
        return [first]
    variables = sum(len(event.variables) for event in first.left if isinstance(event, Drawn))
    runs = min(runs, max(PLAIN_RUNS, _MOST_FORMS * first_runs // max(variables, 1)))
    return [trace(playing_of(runs), seed, 0, runs, **options)]


def _followed(
    playing: Playing, seed: int, runs: int, foreign: object, is_scalar: bool
) -> tuple[Trace, dict[str, Any]]:
    """Return the trace of a block, and how it was played: where forms change what a target does, not so far."""
    options: dict[str, Any] = {"forms": True, "foreign": foreign}
    try:
        return trace(playing, seed, 0, runs, **options), options
    except (LearnerError, UntraceableError, MemoryError):
        if not is_scalar and foreign is None:
            raise
    options["forms"] = False
    return trace(playing, seed, 0, runs, **options), options


def _shows_the_same(plain_events: list[TapeEvent], followed: list[TapeEvent]) -> bool:
    """Tell whether a target shows what its trace says where it plays with the same noise as plain numbers.

    Forms are no floats, and it may ask: what a leak is said of must not be that.
    """
    shown_values = [
        [event.value for event in events if isinstance(event, Shown)] for events in (plain_events, followed)
    ]
    return len(shown_values[0]) == len(shown_values[1]) and all(map(_same_values, *shown_values))


def _same_values(a: Any, b: Any) -> bool:
    return a.shape == b.shape and (a.dtype != object or all(map(_same_value, a.flat, b.flat)))


def _same_value(a: Any, b: Any) -> bool:
    b = b.tape.concrete(b) if type(b) is Form else b
    if isinstance(a, float | int) and isinstance(b, float | int):
        return bool(np.isclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True))
    return bool(a == b)


def is_ours_inside(target: object) -> bool:
    """Tell whether what is played of a target is ours."""
    if isinstance(target, CalledOneByOne | WithAttributes):
        return is_ours_inside(target.mechanism)
    kind = getattr(target, "user_class", type(target))
    return str(kind.__module__).startswith(f"{__name__.partition('.')[0]}.")
