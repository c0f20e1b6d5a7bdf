"""Replay: a run in the left world, the same in the right with every noisy output frozen, and where the two part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from itertools import zip_longest
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
from .forms.arrays import arrays_of_forms
from .forms.form import Form
from .libraries import watched_libraries
from .parting import Leak, last_call, lost_words, parting, without_noise
from .released import Released
from .tape import Call, Drawn, Following, Release, Shown, Tape, TapeEvent, UntraceableError, site_of
from .watched import CallSite, UnreadNoiseError

#: Runs of a batched target, and of one that is called run by run.
RUNS, PLAIN_RUNS = 256, 24
#: Runs of a batched target that may do the same in each; and how much noise is followed in about a second.
_FEW, _MOST_FORMS = 2, 2**15
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
        Whether every run does the same as these: no branch, no index and no shift depends on noise.
    escaped : CallSite or None
        Where a branch, an index, a plain number or the shift of other noise first depends on noise that is followed.
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
    escaped: CallSite | None = None


def trace(
    playing: Playing,
    seed: int,
    block: int,
    runs: int,
    *,
    following: Following = Following.FORMS,
    foreign: bool = False,
) -> Trace:
    """Record a block in the left world and replay it in the right.

    A control replays the left world with every frozen output moved by more than rounding: a run in which the control
    parts too says nothing of a leak.

    Parameters
    ----------
    following : Following
        How noise from a generator is followed.
    foreign : bool
        Whether the target is not ours: then arrays that it makes can hold forms.

    Raises
    ------
    UntraceableError
        If the control parts in every run: it draws from where nothing is watched, or hangs on rounding.
    """
    with ExitStack() as afterwards:

        def played(left: bool, frozen: list[TapeEvent], nudged: bool) -> Tape:
            tape = Tape(seed, block, runs=runs, frozen=frozen, nudged=nudged, following=following)
            afterwards.callback(tape.forget)
            return _play(playing, left, tape, foreign)

        return _replayed(played, runs, alone=foreign and following is Following.FORMS)


def _replayed(play: Callable[[bool, list[TapeEvent], bool], Tape], runs: int, *, alone: bool) -> Trace:
    """Return the trace of a block that `play` plays: in which world, with which frozen outputs, and whether moved."""
    recorded = play(True, [], False)
    control = play(True, recorded.events, True)
    replayed = play(False, recorded.events, False)
    try:
        leak = parting(recorded.events, replayed.events, control.events, runs)
    except UntraceableError:
        again = play(True, recorded.events, False)
        parting(recorded.events, recorded.events, again.events, runs)  # says that it draws from elsewhere, if it does
        raise UntraceableError(
            "its replays differ: it draws from elsewhere, or hangs on the rounding of the noisy outputs"
        ) from None
    bare = without_noise(recorded, replayed)
    released = Released(recorded, replayed, len(recorded.events) if leak is None else leak.events + 1)
    leak, calls = _first(leak, released.leak(runs)), released.calls()
    if leak is not None:
        after, place = last_call(calls)
        place = leak.place or (recorded.overwritten if leak.what == "output" else None) or place
        leak = replace(leak, hint=bare or leak.hint or after, place=place, lost=released.lost(leak))
    watched = any(
        tape.silent or any(isinstance(e, Call | Drawn) for e in tape.events) for tape in (recorded, replayed)
    )
    lost = lost_words((recorded, replayed, control), runs)
    sites = (*map(_escape, (recorded, replayed)), _other_function(recorded, replayed))
    escaped = next((place for place in sites if place is not None), None)
    exact = alone and escaped is None and all(map(_draws_nothing_else, (recorded, replayed)))
    return Trace(recorded.events, replayed.events, leak, runs, calls, watched, bare, lost, exact, escaped)


def _first(parted: Leak | None, unexplained: Leak | None) -> Leak | None:
    """Return the leak that comes first; of two in one place the bypass."""
    if parted is None or unexplained is None:
        return parted or unexplained
    return unexplained if unexplained.events < parted.events or parted.lost is not None else parted


def _escape(tape: Tape) -> CallSite | None:
    """Return where a branch, an index, a number or the shift of other noise first depends on noise."""
    if tape.deciding is not None:
        return tape.deciding
    forms = [event.form for event in tape.events if isinstance(event, Release)]
    for event in tape.events:
        if isinstance(event, Shown) and event.value.dtype == object:
            forms += [one for one in event.value.flat if type(one) is Form]
    return next((site_of(form.where) for form in forms if form.adaptive and form.coefficients), None)


def _other_function(left: Tape, right: Tape) -> CallSite | None:
    """Return where something else than released values goes into a value that is computed of them, and differs."""
    for one, other in zip_longest(left.computed, right.computed):
        if one is None or other is None or one[0] != other[0]:
            return (one or other)[1]
    return None


def _draws_nothing_else(tape: Tape) -> bool:
    """Tell whether nothing is random but noise that is followed."""
    return tape.other_draw is None and not any(isinstance(event, Call) for event in tape.events)


def _play(playing: Playing, left: bool, tape: Tape, foreign: bool) -> Tape:
    try:
        with arrays_of_forms() if foreign and tape.following is Following.FORMS else nullcontext():
            playing(tape, left)
    except LearnerError as error:
        if isinstance(error.__cause__, UnreadNoiseError):  # our refusal, whichever code asked for the noise
            raise UntraceableError(str(error.__cause__)) from None
        raise
    return tape


def _is_followed(playing: Playing, seed: int, runs: int, found: Trace) -> bool:
    """Tell whether following noise changed nothing that a target shows: forms are no floats, and it may ask."""
    sides = [(True, found.left)]
    if found.exact and not any(isinstance(event, Release) for event in found.right):  # what is frozen is of the left
        sides.append((False, found.right))
    for left, events in sides:
        plain = _play(playing, left, Tape(seed, 0, runs=runs, following=Following.NOT), foreign=True)
        shown = [[event for event in one if isinstance(event, Shown)] for one in (plain.events, events)]
        if any(a is None or b is None or not _same_values(a, b) for a, b in zip_longest(*shown)):
            return False
    return True


def _same_values(a: Shown, b: Shown) -> bool:
    if a.value.shape != b.value.shape:
        return False
    if a.value.dtype != object and b.value.dtype != object:
        return bool(np.allclose(a.value, b.value, equal_nan=True)) if a.value.dtype.kind in "fc" else True
    return all(map(_same_value, a.value.flat, b.value.flat))


def _same_value(a: Any, b: Any) -> bool:
    b = b.tape.concrete(b) if type(b) is Form else b
    if isinstance(a, float | int) and isinstance(b, float | int):
        return bool(np.isclose(a, b, rtol=1e-6, atol=0.0, equal_nan=True)) or abs(a - b) < 1e-9
    return bool(a == b)


def learner_playing(
    learner: Learner, pair: Pair, runs: int, view: View = ACTIONS, *, forced: object = None
) -> Playing:
    """Return what plays a learner in either world of a pair.

    Parameters
    ----------
    forced : arm or point, optional
        What every run plays in the differing round, whatever the learner says.
    """

    def playing(tape: Tape, left: bool) -> None:
        _play_learner(learner, pair, tape, runs, left, view, forced)

    return playing


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
def _play_learner(learner: Learner, pair: Pair, tape: Tape, runs: int, left: bool, view: View, forced: object) -> None:
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


def mechanism_playing(mechanism: Callable[..., object], left_data: object, right_data: object, runs: int) -> Playing:
    """Return what runs a mechanism on either of its inputs; one that is called run by run, once."""

    def playing(tape: Tape, left: bool) -> None:
        _play_mechanism(mechanism, left_data if left else right_data, tape, runs)

    return playing


@blaming
def _play_mechanism(mechanism: Callable[..., object], data: object, tape: Tape, runs: int) -> None:
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


def traces(target: Any, pair: Any, *, seed: int = 0, view: View = ACTIONS, once: bool = False) -> list[Trace]:
    """Return traces of a learner or of a mechanism on a pair: one block of runs, or several runs of a plain target.

    Parameters
    ----------
    once : bool
        Whether the first block is all that is asked for.

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
    is_learner = hasattr(target, "act") or isinstance(target, Scalar)

    def playing_of(runs: int) -> Playing:
        if is_learner:
            return learner_playing(target, pair, runs, view)
        return mechanism_playing(target, pair.left, pair.right, runs)

    recorded = _blocks(playing_of, seed, runs, plain, foreign=not _ours(target), once=once)
    if not any(one.watched for one in recorded) and not _ours(target):
        leak = next((one.leak for one in recorded if one.leak), None)
        then = f"; with the same random numbers in both worlds its {leak.what} differs" if leak else ""
        how = (
            "overclaim.testing.laplace(value, scale, rng) or gaussian, or as value + rng.laplace(0, scale)"
            if plain
            else "draws.noise(law, shape, value), or as value + draws.generator.laplace(0, scale, shape)"
        )
        raise UntraceableError(
            f"{name_of(target)} draws no noise in a way that is watched in these runs{then}: draw it by {how}"
        )
    return recorded


def _blocks(
    playing_of: Callable[[int], Playing], seed: int, runs: int, plain: bool, foreign: bool, once: bool
) -> list[Trace]:
    """Return traces of some blocks: of a small one where every run does the same."""
    few = min(_FEW, runs) if foreign else runs
    following, first = _followed(playing_of(few), seed, few, plain or foreign, foreign)
    if once or (first.exact and first.leak is None):
        return [first]
    how: dict[str, Any] = {"following": following, "foreign": foreign}
    if plain:
        return [first, *(trace(playing_of(1), seed, block, 1, **how) for block in range(1, PLAIN_RUNS))]
    if few == runs:
        return [first]
    drawn = sum(len(event.variables) for event in first.left if isinstance(event, Drawn))
    runs = min(runs, max(PLAIN_RUNS, _MOST_FORMS * few // max(drawn, 1)))
    return [trace(playing_of(runs), seed, 0, runs, **how)]


def _followed(playing: Playing, seed: int, runs: int, watched: bool, foreign: bool) -> tuple[Following, Trace]:
    """Return how far noise is followed, and the trace of a block.

    Where following noise changes what the target does, or makes it raise, noise is followed less far.
    """
    last = Following.AT_ONCE if watched else Following.FORMS
    for following in Following:
        try:
            first = trace(playing, seed, 0, runs, following=following, foreign=foreign)
        except (LearnerError, UntraceableError, MemoryError):
            if following is last:
                raise
            continue
        if following is last or following is not Following.FORMS or _is_followed(playing, seed, runs, first):
            return following, first
    raise AssertionError(last)


def _ours(target: object) -> bool:
    if isinstance(target, CalledOneByOne | WithAttributes):
        return _ours(target.mechanism)
    kind = getattr(target, "user_class", type(target))
    return str(kind.__module__).startswith(f"{__name__.partition('.')[0]}.")
