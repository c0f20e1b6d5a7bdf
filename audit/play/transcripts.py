"""Play: both worlds in one batch, block by block, each block a pure function of its key."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...learners.abilities import takes_contexts
from ...learners.blame import at_play, blamed, blaming
from ...learners.protocol import Actions, HasRelease, Learner, LearnerError
from ...learners.sampling import smallest_type
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.view import ACTIONS, View
from .pairs import Pair

#: Runs in a block. It is part of the record: another size would draw other numbers.
BLOCK = 8192
#: Blocks that are certified as one task, at most.
MAX_TOGETHER = 64
#: What is said of a learner that raised where its `observe` was never called: it may have needed a context.
NO_CONTEXT = (
    "; it has a method observe, which plain losses never call: give inputs, or left and right, whose rounds have a "
    "context (--inputs, or --left and --right, of check)"
)


@dataclass(frozen=True)
class Transcripts:
    """What the adversary may see of a block of runs, and what it must guess.

    Attributes
    ----------
    actions : array (rounds, runs) of arms, or (rounds, dim, runs) of points
        Arms in the smallest integer type that holds them: widen them before arithmetic.
    left : bool array (runs,)
        The world label: True where the run was played on the left losses.
    releases : array (releases, [dim,] runs), or None
        The noisy quantities, where the view shows them.
    """

    actions: Actions
    left: NDArray[np.bool_]
    releases: Floats | None = None

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.left.size

    @property
    def alike(self) -> bool:
        """Whether all runs show the same."""
        return all(bool((part == part[..., :1]).all()) for part in (self.actions, self.releases) if part is not None)

    def played(self, arms: int) -> Floats:
        """Return what was played as numbers, (rounds, rows, runs): points, or of each arm but the first whether it."""
        if self.actions.ndim == 3:
            return np.asarray(self.actions, dtype=float)
        is_arm: Floats = (self.actions[:, None] == np.arange(1, arms)[:, None]).astype(float)
        return is_arm

    def __getitem__(self, runs: slice | NDArray[np.generic]) -> Transcripts:
        """Return the transcripts of some of the runs."""
        releases = None if self.releases is None else self.releases[..., runs]
        return Transcripts(self.actions[..., runs], self.left[runs], releases)


def to_bytes(played: Transcripts) -> bytes:
    """Return transcripts as bytes, small ones: arrays alone, no objects."""
    file = io.BytesIO()
    arrays: dict[str, Any] = {"actions": played.actions, "left": played.left}
    arrays |= {} if played.releases is None else {"releases": played.releases}
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def from_bytes(data: bytes) -> Transcripts | None:
    """Return the transcripts that `to_bytes` wrote; None where the bytes are damaged."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return Transcripts(arrays["actions"], arrays["left"], arrays.get("releases"))
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def concatenate(parts: Sequence[Transcripts]) -> Transcripts:
    """Join transcripts of the same learner."""
    releases = [p.releases for p in parts if p.releases is not None]
    return Transcripts(
        np.concatenate([p.actions for p in parts], axis=-1),
        np.concatenate([p.left for p in parts]),
        np.concatenate(releases, axis=-1) if releases else None,
    )


@blaming
def play(
    learner: Learner, pair: Pair, draws: Draws, runs: int, *, view: View = ACTIONS, share: float = 0.5
) -> Transcripts:
    """Play one block: every run in the world of its own label.

    A release is what all rounds but the last release, because no action uses the last; a publication has that too.

    Parameters
    ----------
    draws : Draws
        Keyed for this block alone.
    runs : int
        Of both worlds together.
    view : View
        Whether releases are kept too.
    share : float
        The probability that a run is played in the left world.

    Returns
    -------
    Transcripts

    Raises
    ------
    LearnerError
        If the learner raises, or plays something that is no arm and no point.
    """
    left = draws.labels(runs, share)
    actions: list[Actions] = []
    releases: list[Floats] = []
    releasing = cast(HasRelease, learner)

    def see(t: int, played: Actions) -> None:
        if actions and played.shape != actions[0].shape[1:]:
            raise LearnerError(f"act must return one shape, got {played.shape} in round {t + 1} and another before")
        if not actions:
            dtype = smallest_type(learner.arms) if played.ndim == 1 else np.float64
            actions.append(np.empty((pair.rounds, *played.shape), dtype=dtype))
        actions[0][t] = played

    def learned(t: int, state: object) -> None:
        released = releasing.release(state)
        if released is not None:
            releases.append(released)

    play_rounds(
        learner,
        draws,
        runs,
        pair.rounds,
        see=see,
        feed=feeding(learner, pair, left),
        learned=learned if view.channel else None,
        updates=view.updates(pair.rounds),
    )
    return Transcripts(actions[0], left, np.stack(releases) if releases else None)


def feeding(learner: Learner, pair: Pair, left: NDArray[np.bool_] | bool) -> Callable[[int, Actions], Floats]:
    """Return what feeds a learner back: what it played, and in which world of the pair each run is."""
    past: list[Actions] | None = None if pair.arms is not None else []  # for adaptive losses only

    def feed(t: int, played: Actions) -> Floats:
        fed = pair.feedback(t, played, learner.feedback, left, past or ())
        if past is not None:
            past.append(played)
        return fed

    return feed


def play_rounds(
    learner: Learner,
    draws: Draws,
    runs: int,
    rounds: int,
    *,
    see: Callable[[int, Actions], None],
    feed: Callable[[int, Actions], Floats],
    learned: Callable[[int, object], None] | None = None,
    updates: int | None = None,
    before: Callable[[object], None] | None = None,
) -> None:
    """Play a learner round by round: it acts, is fed back, and updates its state.

    Parameters
    ----------
    see : callable
        Is given the round, from 0, and its actions, which the learner may change afterwards.
    feed : callable
        From the round and its actions to the feedback.
    learned : callable, optional
        Is given the round and the state after its update.
    updates : int, optional
        The rounds that are fed back; by default all but the last, whose feedback no action uses.
    before : callable, optional
        Is given the state before every action, to show it the round's context.

    Raises
    ------
    LearnerError
        If the learner plays something that is no arm and no point, or raises where it might have needed contexts.
    """
    playing = at_play(learner)
    with playing():
        state = learner.start(runs, draws)
    try:
        for t in range(rounds):
            with playing():
                if before is not None:
                    before(state)
                actions = learner.act(state, draws)
            check_actions(actions, learner.arms, runs, t)
            see(t, actions)
            if t < (rounds - 1 if updates is None else updates):
                fed = feed(t, actions)
                with playing():
                    learner.update(state, actions, fed, draws)
                if learned is not None:
                    learned(t, state)
    except Exception as error:
        blame = blamed(error, learner)
        if before is None and takes_contexts(learner) and isinstance(blame, LearnerError):
            raise LearnerError(f"{blame}{NO_CONTEXT}") from error
        raise


def check_actions(actions: object, arms: int, runs: int, t: int) -> None:
    """Raise LearnerError unless these are arms, or finite points, of so many runs; `t` is the round, from 0."""
    if not isinstance(actions, np.ndarray) or actions.shape[-1] != runs or actions.ndim not in (1, 2):
        shape = getattr(actions, "shape", type(actions).__name__)
        raise LearnerError(f"act must return ({runs},) arms or (dim, {runs}) points, got {shape} in round {t + 1}")
    if actions.ndim == 1:
        if actions.dtype.kind not in "iu":
            raise LearnerError(f"act must return integer arms, got dtype {actions.dtype} in round {t + 1}")
        # Read as unsigned a negative number is too large as well.
        if actions.view(f"u{actions.itemsize}").max() >= arms:
            offender = actions[(actions < 0) | (actions >= arms)][0]
            raise LearnerError(f"act must return an arm in 0..{arms - 1}, got {offender} in round {t + 1}")
    elif not np.isfinite(actions).all():
        raise LearnerError(f"act must return finite points, got a value that is not in round {t + 1}")


def blocks(runs: int, numbers: range | None = None) -> list[tuple[int, int]]:
    """Return (block number, its runs) for `runs` runs in blocks of `BLOCK`; with `numbers`, for these only."""
    indices = range(-(-runs // BLOCK))
    return [(i, min(BLOCK, runs - i * BLOCK)) for i in (indices if numbers is None else numbers) if i in indices]


def together(runs: int) -> int:
    """Return how many neighbouring blocks are certified as one task and kept as one sum.

    A thousand tasks suffice to share the work and to lose little by a kill, and in large audits one block is too short
    for the cost of a task and of a line in the ledger. It is part of the ledger, never of the record's counts.
    """
    return min(MAX_TOGETHER, -(-runs // (BLOCK * 1024)))
