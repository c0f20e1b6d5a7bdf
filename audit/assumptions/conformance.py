"""The conformance suite: what every learner must do before an audit of it means anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import hinted, must_be, placed
from ...learners.blame import blaming, name_of, raised
from ...learners.checks import check_whole
from ...learners.problems.losses import Loss, feedback
from ...learners.protocol import Actions, HasInner, HasRelease, Learner, LearnerError, LossError
from ...learners.scalar import OS_CURE, Scalar, as_learner, state_cures
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace
from ...mechanisms.view import ACTIONS, RELEASE
from ..play.pairs import Pair
from ..play.transcripts import play, play_rounds
from .blocks import SHARED, SHARED_BLOCKS, LearnerBlock, draws_of, homogeneity_p_value
from .declared_laws import check_stated
from .drawn_once import check_caches, check_not_drawn_once, check_not_pushed_out
from .independence import near_runs_alike
from .shared_state import check_unshared, shared_state

#: The probability that a test of a law accuses a learner that obeys it.
FALSE_ALARM = 1e-6
#: Steps (rounds times runs) of one play of `check_fresh`, and the most and fewest runs.
_STEPS, _MOST_RUNS, _FEWEST_RUNS = 2**15, 256, 8
#: The fewest rounds of a play: in fewer a learner shows too little of how it goes on.
_ROUNDS = 8
#: Last arms, or coordinates of the last points, in which runs near each other are compared.
_COMPARED = 12

#: What a learner is told in round t after its actions.
Feed = Callable[[int, Actions], Floats]


@dataclass(frozen=True)
class Conformance:
    """What was checked.

    Attributes
    ----------
    learner : str
        Its class.
    checked, skipped : tuple of str
        The rules of which no breach was found, and those that do not apply to this learner.
    """

    learner: str
    checked: tuple[str, ...]
    skipped: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line for the rules that were checked and one for those that do not apply."""
        lines = [f"{self.learner}: no breach found in {', '.join(self.checked)}"]
        return "\n".join(lines + [f"does not apply: {', '.join(self.skipped)}"] * bool(self.skipped))


@blaming
def check_learner(
    learner_or_class: object,
    *,
    arms: int = 2,
    rounds: int = 8,
    losses: ArrayLike | Sequence[Loss] | None = None,
    parameters: Mapping[str, object] | None = None,
    twin: object = None,
    runs: int = 256,
    twin_runs: int = 8192,
    grows: bool = False,
    seed: int = 0,
) -> Conformance:
    """Raise LearnerError unless a learner keeps the rules that audits rely on.

    The rules: every action is an arm or a finite point; state is fresh for every run and all randomness comes from the
    draws, so that a keyed block is always the same; runs do not interact; the state does not grow with the rounds;
    what it plays and releases follows what its abilities say (`declared_laws`); without noise (epsilon = inf,
    or a noise of scale 0) each release is its mean; and a slow twin has the same law.

    Parameters
    ----------
    learner_or_class : Learner, or a user's class
        As for `falsify`.
    arms, rounds : int
        K and T, for a class. At least 8 rounds; a learner that is built already must accept that many.
    losses : array (rounds, arms) or sequence of convex losses, optional
        What it plays against. Random in [0, 1] by default.
    parameters : mapping, optional
        Further arguments of the class.
    twin : Learner or class, optional
        Another implementation. The laws of the last six arms, or of the quarters in which the last two points lie,
        are compared by a chi-square test, which accuses a true twin with probability 1e-6 (asymptotically; rare
        sequences are merged).
    runs, twin_runs : int
        Runs of each play, and of each sample of the comparison with the twin.
    grows : bool
        Declares that the state grows with the rounds.
    seed : int
        Non-negative.

    Returns
    -------
    Conformance

    Raises
    ------
    LearnerError
        If a rule is broken; the message names the rule.
    ValueError
        For parameters outside their range.

    Examples
    --------
    >>> from overclaim.learners import Exp3
    >>> print(check_learner(Exp3(arms=2, eta=0.5, gamma=0.1)))
    Exp3: no breach found in arms and points, fresh state, no interaction, bounded state, abilities
    does not apply: no noise at epsilon = inf, twin
    """
    rounds, runs = check_whole("rounds", rounds), check_whole("runs", runs)
    if rounds < _ROUNDS:
        raise must_be("rounds", f"at least {_ROUNDS}", rounds)
    if runs < 2:
        raise must_be("runs", "at least 2", runs)
    learner = as_learner(learner_or_class, arms=arms, rounds=rounds, **dict[str, Any](parameters or {}))
    pair = _pair(losses, rounds, learner.arms, seed)
    _check_fresh(learner, pair, seed, runs)
    checked, skipped = ["arms and points", "fresh state", "no interaction"], []

    if grows:
        skipped.append("bounded state")
    else:
        _check_growth(learner, pair, seed)
        checked.append("bounded state")

    quiet = _without_noise(learner)
    if isinstance(quiet, HasRelease):
        _check_silence(quiet, pair, seed, runs)
        checked.append("no noise at epsilon = inf")
    else:
        skipped.append("no noise at epsilon = inf")

    declares = _check_abilities(learner, pair, losses is None, seed)
    (checked if declares else skipped).append("abilities")

    if twin is None:
        skipped.append("twin")
    else:
        other = as_learner(
            twin, arms=learner.arms, rounds=pair.rounds, **dict[str, Any](_known(twin, parameters or {}))
        )
        _check_twin(learner, other, pair, seed, twin_runs)
        checked.append("twin")
    return Conformance(name_of(learner), tuple(checked), tuple(skipped))


def check_fresh(learner: Learner, pair: Pair, seed: int) -> None:
    """Raise LearnerError if state outlives a run, runs interact or share randomness, or it comes from elsewhere.

    The quick part of `check_learner`, for every audit: a keyed block must give the same actions when it is played
    again after another block, and the actions of a run must not depend on the losses of other runs.
    """
    _check_fresh(learner, pair, seed, max(_FEWEST_RUNS, min(_MOST_RUNS, _STEPS // pair.rounds)))


def _check_fresh(learner: Learner, pair: Pair, seed: int, runs: int) -> None:
    name = name_of(learner)
    try:
        check_not_drawn_once(learner, lambda block, size: play(learner, pair, draws_of(seed, block), size or runs))
        check_caches(learner, lambda block, size: play(learner, pair, draws_of(seed, block), size).actions.tolist())
    except (LearnerError, LossError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise raised(name_of(learner), error) from error

    shared = shared_state(learner)  # after a first play: what is filled in once may be
    feed = partial(pair.feedback, kind=learner.feedback, left=True)
    first, _ = _played(learner, feed, pair.rounds, runs, draws_of(seed, LearnerBlock.REPLAYED))
    other, _ = _played(learner, feed, pair.rounds, runs, draws_of(seed, LearnerBlock.OTHER))
    # One round of one run more, so that a counter of calls is not back where it was, whatever it is divided by.
    _played(learner, feed, 1, 1, draws_of(seed, LearnerBlock.INTERVENING))
    replayed, traces = _played(learner, feed, pair.rounds, runs, draws_of(seed, LearnerBlock.REPLAYED))
    if (where := _difference(first, replayed)) is not None:
        elsewhere = f"{name} keeps state between runs, or draws from elsewhere than its own generator"
        refusal = LearnerError(f"{elsewhere}: the same block played again gave other actions")
        raise placed(hinted(refusal, *_cure(learner)), f"round {where[0]}, run {where[1]}")
    varied = _difference(first, np.broadcast_to(first[..., :1], first.shape)) is not None
    if varied and _difference(first, other) is None:
        refusal = LearnerError(f"{name} draws from a generator with a fixed seed: two blocks gave the same actions")
        raise hinted(refusal, *_cure(learner))
    if isinstance(learner, Scalar):
        check_not_pushed_out(learner, lambda block, size: play(learner, pair, draws_of(seed, block), size).actions)
    _check_interaction(learner, pair, first, traces, seed)
    if not isinstance(learner, Scalar):  # there every run has a generator of its own
        blocks = [_played(learner, feed, pair.rounds, runs, draws_of(seed, block))[0] for block in SHARED_BLOCKS]
        if homogeneity_p_value(first, other, *blocks) < SHARED:
            raise hinted(
                LearnerError(
                    f"the runs of {name} share randomness, such as one draw for a whole block: blocks of "
                    "runs differ more than independent runs do"
                ),
                "draw for every run, as in draws.uniform(runs)",
            )
        actions = np.concatenate([first, other, *blocks], axis=-1)
        if near_runs_alike(actions.reshape(-1, actions.shape[-1])[-_COMPARED:].astype(np.float64), runs):
            raise hinted(
                LearnerError(
                    f"the runs of {name} share randomness, such as one draw for two of them: those near "
                    "each other are more, or less, alike than others"
                ),
                "draw for every run, as in draws.uniform(runs)",
            )
    check_unshared(learner, shared)


def _check_interaction(learner: Learner, pair: Pair, first: Actions, traces: Floats, seed: int) -> None:
    """Play the same draws with other losses in the second half of the runs: the first half must not notice.

    Those are the right world's with the arms exchanged; where a learner takes no such losses, the right world's own.
    """
    runs = first.shape[-1]
    is_first_half = np.arange(runs) < runs // 2
    right = getattr(pair, "right", None)
    mirrored = right[:, ::-1].copy() if isinstance(right, np.ndarray) else None

    def feed(t: int, actions: Actions, mirrored: Floats | None = mirrored) -> Floats:
        kind = learner.feedback
        other_losses = (
            pair.feedback(t, actions, kind, False) if mirrored is None else feedback(mirrored[t], actions, kind)
        )
        return np.where(is_first_half, pair.feedback(t, actions, kind, True), other_losses)

    replay = partial(_played, learner, rounds=pair.rounds, runs=runs)
    try:
        second, new_traces = replay(feed, draws=draws_of(seed, LearnerBlock.REPLAYED))
    except LearnerError:  # the audit never plays them, and inputs may be searched among others alone
        second, new_traces = replay(partial(feed, mirrored=None), draws=draws_of(seed, LearnerBlock.REPLAYED))
    fed = (
        f"the runs of {name_of(learner)} interact: other losses in half of them changed the actions of the other half"
    )
    if np.array_equal(traces, new_traces):
        if (where := _difference(first[..., is_first_half], second[..., is_first_half])) is not None:
            raise placed(hinted(LearnerError(fed), *_cure(learner)), f"round {where[0]}, run {where[1]}")
    # Where the number of draws depends on the losses, the same key no longer means the same draws: compare the laws.
    elif homogeneity_p_value(first[..., is_first_half], second[..., is_first_half]) < FALSE_ALARM:
        raise hinted(LearnerError(f"{fed} in law"), *_cure(learner))


def _cure(learner: Learner) -> tuple[str, ...]:
    """Return what cures global randomness, of a plain class: its runs share a global generator, seeded or not."""
    return (*state_cures(learner), OS_CURE) if isinstance(learner, Scalar) else ()


def _check_growth(learner: Learner, pair: Pair, seed: int) -> None:
    """Raise LearnerError if the state is larger in every quarter of the rounds than in the one before."""
    sizes: list[int] = []
    owner = learner.user_class if isinstance(learner, Scalar) else type(learner)
    shared = [value for key, value in vars(owner).items() if not key.startswith("__")]

    def watch(state: object) -> None:
        sizes.append(_bytes([state, getattr(learner, "__dict__", None), shared], set()))

    feed = partial(pair.feedback, kind=learner.feedback, left=True)
    _played(learner, feed, pair.rounds, 4, draws_of(seed, LearnerBlock.INTERVENING), watch)
    quarters = [max(part) for part in np.array_split(np.array(sizes), 4)]
    if all(np.diff(quarters) > 0):
        raise hinted(
            LearnerError(
                f"the state of {name_of(learner)} grows with the rounds: {quarters[0]} bytes, then "
                f"{quarters[-1]} (4 runs, {pair.rounds} rounds)"
            ),
            "declare it with grows=True",
        )


def _bytes(value: object, seen: set[int]) -> int:
    """Return the size of all arrays, containers and texts that `value` holds."""
    if id(value) in seen or value is None or isinstance(value, type | np.random.Generator):
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes + (sum(_bytes(v, seen) for v in value.flat) if value.dtype == object else 0)
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if isinstance(value, Mapping):
        return 16 * len(value) + sum(_bytes(v, seen) for v in value.values())
    if hasattr(value, "__len__") and hasattr(value, "__iter__"):  # lists, sets, deques
        return 8 * len(value) + sum(_bytes(v, seen) for v in value)
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    attributes = [getattr(value, name, None) for name in slots] + list(getattr(value, "__dict__", {}).values())
    return sum(_bytes(v, seen) for v in attributes)


def _without_noise(learner: object) -> object:
    """Return the learner at epsilon = inf, or with a noise of scale 0; None if it has neither field."""
    if not is_dataclass(learner) or isinstance(learner, type | Scalar):
        return None
    names = {field.name for field in fields(learner) if field.init}
    changes = {"epsilon": math.inf} if "epsilon" in names else {"noise": Laplace(0.0)} if "noise" in names else {}
    try:
        return replace(learner, **changes) if changes else None
    except ValueError as error:
        raise LearnerError(f"{name_of(learner)} must accept epsilon = inf, which means no noise: {error}") from error


def _check_abilities(learner: Learner, pair: Pair, extremes: bool, seed: int) -> bool:
    """Hold the abilities of a learner, and of one inside it, against what they play; tell whether there were any."""
    rows = (
        np.vstack([np.eye(learner.arms), 1 - np.eye(learner.arms), np.ones((1, learner.arms))]) if extremes else None
    )
    view = RELEASE if isinstance(learner, HasRelease) else ACTIONS
    declares = check_stated(learner, pair, seed, rows=rows, view=view)
    return (isinstance(learner, HasInner) and check_stated(learner.inner, pair, seed, rows=rows)) or declares


def _check_silence(quiet: Any, pair: Pair, seed: int, runs: int) -> None:
    losses: list[Floats] = []
    releases: list[Floats] = []

    def feed(t: int, actions: Actions) -> Floats:
        losses.append(pair.feedback(t, actions, quiet.feedback, True))
        return losses[-1]

    def watch(state: object) -> None:
        released = quiet.release(state)
        if released is not None:
            releases.append(np.array(released))

    actions, _ = _played(quiet, feed, pair.rounds, runs, draws_of(seed, LearnerBlock.QUIET), watch)
    if releases:
        means = quiet.release_means(actions, np.stack(releases), losses)
        if not np.allclose(releases, means, rtol=1e-9, atol=1e-9):
            worst = float(np.abs(np.stack(releases) - means).max())
            raise LearnerError(f"{name_of(quiet)} adds noise at epsilon = inf: a release is {worst:.3g} off its mean")


def _check_twin(learner: Learner, twin: Learner, pair: Pair, seed: int, runs: int) -> None:
    samples = []
    for block, player in ((LearnerBlock.ORIGINAL, learner), (LearnerBlock.TWIN, twin)):
        feed = partial(pair.feedback, kind=player.feedback, left=True)
        samples.append(_played(player, feed, pair.rounds, runs, draws_of(seed, block))[0])
    p_value = homogeneity_p_value(*samples)
    if p_value < FALSE_ALARM:
        names = f"{name_of(learner)} and its twin {name_of(twin)}"
        raise LearnerError(f"{names} play by different laws (chi-square p-value {p_value:.2g})")


def _played(
    learner: Learner,
    feed: Feed,
    rounds: int,
    runs: int,
    draws: Draws,
    watch: Callable[[object], None] | None = None,
) -> tuple[Actions, Floats]:
    """Return the actions, and a draw of the shared generator after every round: equal iff as much was drawn."""
    actions: list[Actions] = []
    trace: list[Floats] = []

    def learned(t: int, state: object) -> None:
        if watch is not None:
            watch(state)
        trace.append(draws.uniform(1))

    try:
        play_rounds(
            learner,
            draws,
            runs,
            rounds,
            see=lambda t, played: actions.append(np.array(played)),
            feed=feed,
            learned=learned,
            updates=rounds,
        )
    except (LearnerError, LossError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise raised(name_of(learner), error) from error
    return np.stack(actions), np.concatenate(trace)


def _difference(left: Actions, right: Actions) -> tuple[int, int] | None:
    """Return the first round and run (rounds from 1) where two arrays of actions differ."""
    differ: NDArray[np.bool_] = left != right
    if left.dtype.kind == "f":
        differ &= ~np.isclose(left, right, rtol=1e-7, atol=1e-9)
    if not differ.any():
        return None
    first = np.argwhere(differ)[0]
    return int(first[0]) + 1, int(first[-1])


def _pair(losses: ArrayLike | Sequence[Loss] | None, rounds: int, arms: int, seed: int) -> Pair:
    if losses is None:
        losses = draws_of(seed, LearnerBlock.LOSSES).uniform((rounds, arms))
    if any(hasattr(loss, "gradient") for loss in losses):  # type: ignore[union-attr]
        world = list(losses)  # type: ignore[arg-type]
        return Pair(world, [world[-1], *world[1:]])
    left = np.asarray(losses, dtype=float)
    if left.shape[1:] != (arms,):
        raise ValueError(f"losses must have shape (rounds, {arms}), for {arms} arms, got {left.shape}")
    right = left.copy()
    right[0] = 0 if np.array_equal(1 - left[0], left[0]) else 1 - left[0]
    return Pair(left, right)


def _known(twin: object, parameters: Mapping[str, object]) -> Mapping[str, object]:
    return parameters if isinstance(twin, type) else {}
