"""Replay: a run in the left world, the same in the right with every noisy output frozen, and where the two part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from ..play.unseeded import Unseeded
from .libraries import watched_libraries
from .parting import Leak, last_call, lost_track, lost_words, of_one_kind, parting, without_noise
from .tape import Call, Tape, TapeEvent, UntraceableError
from .watched import UnreadNoiseError, settled

#: Runs of a batched target, and of one that is called run by run.
RUNS, PLAIN_RUNS = 256, 24
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
    watched : bool
        Whether any noise was asked for where it is watched, be it of scale 0.
    bare : str
        Which input differs and gets noise of scale 0, if one does: few runs may show it, so no replay rules it out.
    lost : str
        Which call's output rounding has taken from a replay, if one's: what follows was not compared there.
    """

    left: list[TapeEvent]
    right: list[TapeEvent]
    leak: Leak | None
    runs: int
    watched: bool = True
    bare: str = ""
    lost: str = ""

    @property
    def calls(self) -> list[tuple[Call, Call]]:
        """The noisy calls in both worlds, up to where the runs part."""
        pairs = []
        for left, right in zip(self.left, self.right, strict=False):
            if not of_one_kind(left, right):
                break
            if isinstance(left, Call) and isinstance(right, Call):
                pairs.append((left, right))
        return pairs


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
    direct: set[object] = set()
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
    bare = without_noise(recorded, replayed)
    if leak is not None:
        after, place = last_call(recorded.events, replayed.events, runs)
        alone = f"noise drawn at {recorded.alone[0]} was used before it was added to a value" if recorded.alone else ""
        hints = filter(None, (bare or after, f"{alone}: what it is added to later has none here" if alone else ""))
        astray = lost_track(leak, (recorded, replayed))
        leak = replace(leak, hint="; ".join(hints), place=leak.place or place, lost=astray)
    watched = any(tape.silent or any(isinstance(e, Call) for e in tape.events) for tape in (recorded, replayed))
    lost = lost_words((recorded, replayed, control), runs)
    return Trace(recorded.events, replayed.events, leak, runs, watched, bare, lost)


def _play(playing: Playing, left: bool, tape: Tape, direct: set[object]) -> Tape:
    tape.direct |= direct
    try:
        playing(tape, left)
    except LearnerError as error:
        if isinstance(error.__cause__, UnreadNoiseError):  # our refusal, whichever code asked for the noise
            raise UntraceableError(str(error.__cause__)) from None
        raise
    return tape


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
            tape.show(view.channel, _column(settled(value[0])) if isinstance(value, list) else np.array(value))

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
            outputs = settled(called(mechanism, data, tape, runs))
        tape.show("output", np.asarray(outputs))
        return
    with watched_libraries(tape), at_play(mechanism)():
        answer = settled(called(mechanism, data, tape.watched))
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


def traces(target: Any, pair: Any, *, seed: int = 0, view: View = ACTIONS) -> list[Trace]:
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
        learner_playing(target, pair, runs, view)
        if hasattr(target, "act") or isinstance(target, Scalar)
        else mechanism_playing(target, pair.left, pair.right, runs)
    )
    recorded = [trace(playing, seed, block, runs, plain=plain) for block in range(PLAIN_RUNS if plain else 1)]
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


def _ours(target: object) -> bool:
    if isinstance(target, Unseeded | WithAttributes):
        return _ours(target.mechanism)
    kind = getattr(target, "user_class", type(target))
    return str(kind.__module__).startswith(f"{__name__.partition('.')[0]}.")
