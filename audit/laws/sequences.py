"""The exact law of a whole sequence of arms, noise integrated out, for learners where it can be computed."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...errors import hinted
from ...learners.abilities import (
    NoDraws,
    batch_of,
    decisions,
    declares,
    has_grid_law,
    has_noiseless_law,
    inward,
    is_ours,
    owns,
    plays_arms,
)
from ...learners.blame import name_of
from ...learners.laws import HasLaw, Law, NotEnumerableError, OutcomeLaw
from ...learners.protocol import Actions, HasInner, HasProbabilities, Learner, OnALine
from ...mechanisms.draws import Floats
from ...mechanisms.noise import deviation_of, scale_of
from ...mechanisms.view import ACTIONS, View
from ..play.pairs import Pair

#: Up to this many sequences are enumerated.
MAX_SEQUENCES = 4096
#: Cells of the grid: for printed values, and for scores and rankings (off by less than 1e-4 and 1e-3).
FINE, COARSE = 2000, 600
#: Decisions from which on what came before a window is followed on a grid of at least so many cells, a multiple of the
#: window's: masses at the centres of coarse cells spread out a little more with each step. It is not where losses take
#: many values: each needs a matrix.
LONG, AT_LEAST, FEW_ROWS = 16, 1800, 4
#: How far the grid reaches, at least, in steps of noise from the start, and after arms that are not likely:
#: it is sinh-spaced, since Laplace tails over small probabilities are long.
REACH, STEPS, LONG_STEPS = 4000.0, 50.0, 3.0
#: States whose transitions are computed at once: their arrays stay near the processor.
_STATES = 32
#: The least probability that double precision holds with all its digits, with room for a few factors.
MIN_PROBABILITY = 1e-290
#: How far the probabilities of all sequences may be from summing to 1.
SUMS = 1e-6


def declared_law(learner: Learner, pair: Pair, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
    """Return the law that a learner declares of what a view shows; None where it declares none.

    Of another author's only one of outcomes is believed, which is held against play (`assumptions.declared_laws`).

    Raises
    ------
    NotEnumerableError
        If the learner says why it is not known.
    """
    if not declares(learner, "law"):
        return None
    law: Law | None = cast(HasLaw, learner).law(pair.left, pair.right, pair.t0, view, fine=fine)
    return law if isinstance(law, OutcomeLaw) or is_ours(learner) else None


def check_enumerable(learner: Learner, pair: Pair) -> None:
    """Raise NotEnumerableError unless `sequence_laws` covers the learner and the pair."""
    length = decisions(pair.rounds, batch_of(learner))
    if learner.arms**length > MAX_SEQUENCES:
        raise hinted(
            NotEnumerableError(f"{learner.arms} arms and {length} decisions give more than {MAX_SEQUENCES} sequences"),
            "use fewer `rounds`",
        )
    on_grid = has_grid_law(learner) and isinstance(pair.left, np.ndarray)
    if not (on_grid or has_noiseless_law(learner) or declared_law_of_arms(learner, pair)):
        raise NotEnumerableError(f"the law of {name_of(learner)}'s actions has no closed form here")


def sequence_laws(learner: Learner, pair: Pair, *, cells: int = FINE) -> tuple[Floats, Floats]:
    """Return the probabilities of all sequences of chosen arms in the left and in the right world.

    Returns
    -------
    p, q : arrays (arms ** decisions,)
        Indexed by the sequence read as a number in base `arms`, first arm most significant. A batched learner
        chooses once a batch.

    Parameters
    ----------
    cells : int
        Of the grid, for learners that need one.

    Raises
    ------
    NotEnumerableError
        If there are more than `MAX_SEQUENCES`, or the learner's law is not known.
    """
    check_enumerable(learner, pair)
    if has_noiseless_law(learner):
        return _noiseless_law(learner, pair, True), _noiseless_law(learner, pair, False)
    declared = declared_law_of_arms(learner, pair)
    if declared is not None:
        return declared.laws()
    worlds = (np.asarray(world, dtype=np.float64).tobytes() for world in (pair.left, pair.right))
    p, q = (_grid_law(cast(Hashable, learner), cells, losses) for losses in worlds)
    return p, q


def declared_law_of_arms(learner: Learner, pair: Pair) -> OutcomeLaw | None:
    """Return the exact law that a learner declares of its sequences of arms; None where it declares none."""
    if not plays_arms(learner):
        return None
    law = declared_law(learner, pair)
    return law if isinstance(law, OutcomeLaw) and law.exact else None


def window_laws(learner: Learner, pair: Pair, begin: int, end: int, *, cells: int = FINE) -> tuple[Floats, Floats]:
    """Return the probabilities of the arms of the decisions from `begin` to before `end`, as `sequence_laws`.

    The arms before are summed over, those after left out: two laws whose epsilon is a lower bound on the pair's.

    Raises
    ------
    NotEnumerableError
        If there are more sequences than `MAX_SEQUENCES`, or the learner is not one with a grid.
    """
    if not (has_grid_law(learner) and isinstance(pair.left, np.ndarray)) or 2 ** (end - begin) > MAX_SEQUENCES:
        raise NotEnumerableError(f"the law of {name_of(learner)}'s arms {begin} to {end} is not computed")
    grid = _grid(cast(Hashable, learner), cells)
    laws = []
    for world in (pair.left, pair.right):
        assert isinstance(world, np.ndarray)
        fine = 1
        if begin >= LONG and len(np.unique(world[: begin * batch_of(learner)], axis=0)) <= FEW_ROWS:
            fine = -(-AT_LEAST // cells)
        x, mass = _grid(cast(Hashable, learner), fine * cells).after(world, begin)
        if fine > 1:  # the fine cells lie within the coarse ones
            x, mass = grid.centres, mass.reshape(cells, fine).sum(axis=1)
        laws.append(grid.law_from(world, x, mass, begin, end))
    return laws[0], laws[1]


def log_sequence_laws(learner: Learner, pair: Pair, *, cells: int = FINE) -> tuple[Floats, Floats]:
    """Return the logarithms of `sequence_laws`, in which no possible sequence is lost.

    Raises
    ------
    NotEnumerableError
        As `sequence_laws`; also if a possible sequence is too unlikely for double precision, or the probabilities do
        not sum to 1.
    """
    check_enumerable(learner, pair)
    if has_noiseless_law(learner):
        actions = _all_actions(learner, pair)
        logs = [log_likelihood(learner, pair, actions, left) for left in (True, False)]
        if _plays_every_arm(learner) and not np.isfinite(logs).all():
            raise NotEnumerableError(
                f"some sequences have probabilities below {MIN_PROBABILITY:g}: the learning rate is too large"
            )
    else:
        laws = sequence_laws(learner, pair, cells=cells)
        possible = _grid(cast(Hashable, learner), cells).possible(pair) if has_grid_law(learner) else True
        if any((possible & ~(law > MIN_PROBABILITY)).any() for law in laws):
            raise NotEnumerableError(
                f"some sequences have probabilities below {MIN_PROBABILITY:g}: the noise is too small"
            )
        with np.errstate(divide="ignore"):
            logs = [np.log(law) for law in laws]
    for log in logs:
        if not abs(float(np.exp(log).sum()) - 1) < SUMS:
            raise NotEnumerableError(f"the probabilities of all sequences sum to {np.exp(log).sum():g}, not to 1")
    return logs[0], logs[1]


def index_of(actions: Actions, arms: int, batch: int) -> NDArray[np.int64]:
    """Return the index of each run's sequence: actions (rounds, runs) to (runs,)."""
    index = np.zeros(actions.shape[-1], dtype=np.int64)
    for arm_row in actions[::batch]:
        index *= arms
        index += arm_row
    return index


def all_sequences(arms: int, length: int) -> Actions:
    """Return every sequence of `chosen` arms in the order of `index_of`, (chosen, arms ** chosen)."""
    return np.indices((arms,) * length).reshape(length, -1)


def _plays_every_arm(learner: object) -> bool:
    """Tell whether every arm always has a positive probability, though perhaps one that no double holds."""
    *_, innermost = inward(learner)
    return owns(innermost, "plays_every_arm")


def _noiseless_law(learner: Learner, pair: Pair, left: bool) -> Floats:
    return np.exp(log_likelihood(learner, pair, _all_actions(learner, pair), left))


def _all_actions(learner: Learner, pair: Pair) -> Actions:
    batch = batch_of(learner)
    return np.repeat(all_sequences(learner.arms, decisions(pair.rounds, batch)), batch, axis=0)[: pair.rounds]


def log_likelihood(learner: Learner, pair: Pair, actions: Actions, left: bool | NDArray[np.bool_]) -> Floats:
    """Return the log probability of each run's arms in its world, for a learner without noise: (runs,).

    Raises
    ------
    NotEnumerableError
        If the learner draws noise after all.
    """
    assert isinstance(learner, HasProbabilities)
    runs = actions.shape[-1]
    draws = NoDraws(0)  # a learner without noise draws only its arms, which are given
    state = learner.start(runs, draws)
    total = np.zeros(runs)
    columns = np.arange(runs)
    batch = batch_of(learner)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for t, seen in enumerate(actions):
            played = seen.astype(np.intp)  # as the learner played it: transcripts hold arms in few bits
            if t % batch == 0:  # within a batch the arm is held
                total += np.log(learner.probabilities(state)[played, columns])
            if t < pair.rounds - 1:
                feedback = pair.feedback(t, played, learner.feedback, left, actions[:t])
                learner.update(state, played, feedback, draws)
    return total


class Grid:
    """The one-dimensional filter: the law of a two-armed learner's real state, given its arms.

    The state after a noisy step is affine in one draw of noise, so a cell's next mass is an exact difference of
    distribution functions; within a cell the mass sits at its centre. Cells never straddle 0, where
    `Threshold` decides.
    """

    def __init__(self, learner: Learner, cells: int) -> None:
        assert isinstance(learner, HasInner)
        assert isinstance(learner.inner, OnALine)
        self.inner: OnALine = learner.inner
        self.noise = learner.noise
        self.batch = learner.batch
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slopes = np.abs([self.inner.line_step(np.array([0.0, -REACH, REACH]), arm)[1] for arm in (0, 1)])
        step, longest = float(slopes[0, 0]), float(np.max(slopes, initial=0.0, where=np.isfinite(slopes)))
        noise = max(scale_of(self.noise), deviation_of(self.noise))
        farthest = max(REACH, STEPS * step * noise, LONG_STEPS * longest * (1 + noise))
        unit = min(1.0, step * max(noise, 0.1))  # cells near 0 are finer than a step
        reach = math.asinh(farthest / unit)
        half = unit * np.sinh(np.linspace(0.0, reach, cells // 2 + 1))
        self.edges = np.concatenate([-half[:0:-1], half])
        middle = unit * np.sinh((np.arange(cells // 2) + 0.5) * reach / (cells // 2))
        self.centres = np.concatenate([-middle[::-1], middle])
        self._steps: dict[tuple[int, int, float], Floats] = {}
        self._after: tuple[Floats, Floats] = np.empty((0, 2)), np.ones(1)

    def _transition(self, x: Floats, arm: int, loss: float) -> Floats:
        """Return the probabilities of the cells after `arm` and a fed loss of mean `loss`: (cells, len(x))."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            offset, slope = self.inner.line_step(x, arm)
        undefined = ~(np.isfinite(offset) & np.isfinite(slope))  # states in which the arm is never played
        offset, slope = np.where(undefined, 0.0, offset), np.where(undefined, 1.0, slope)
        result = np.empty((self.edges.size - 1, x.size))
        for start in range(0, x.size, _STATES):
            part = slice(start, start + _STATES)
            # The noise is symmetric, so the sign of the slope matters only for the centre.
            z = (self.edges[1:-1, None] - (offset[part] + slope[part] * loss)) / np.abs(slope[part])
            tail = self.noise.tail(np.abs(z))
            rest = 1 - tail
            low = z < 0
            mass_below, mass_above = np.where(low, tail, rest), np.where(low, rest, tail)
            # The outermost cells take the tails. Masses right of the centre are differences of upper tails, which
            # keeps small ones exact.
            masses = result[:, part]
            masses[0] = mass_below[0]
            masses[1:-1] = np.where(z[:-1] > 0, mass_above[:-1] - mass_above[1:], mass_below[1:] - mass_below[:-1])
            masses[-1] = np.where(z[-1] > 0, mass_above[-1], 1 - mass_below[-1])
        return result

    def _step(self, x: Floats, arm: int, loss: float) -> Floats:
        """Return the transition from the start (one point, 0) or from every cell, computed once."""
        key = (x.size, arm, loss)
        if key not in self._steps:
            self._steps[key] = self._transition(x, arm, loss)
        return self._steps[key]

    def possible(self, pair: Pair) -> NDArray[np.bool_]:
        """Return which sequences have a positive probability: after the first arm, noise reaches every state."""
        length = decisions(pair.rounds, self.batch)
        first = self.inner.line_probabilities(np.zeros(1))[:, 0] > 0
        later_arms = self.inner.line_probabilities(self.centres).max(axis=1) > 0
        arms = all_sequences(2, length)
        result: NDArray[np.bool_] = first[arms[0]] & later_arms[arms[1:]].all(axis=0)
        return result

    def after(self, world: Floats, count: int) -> tuple[Floats, Floats]:
        """Return the states after so many decisions, and their probabilities, whatever the arms were.

        The last answer is kept: a longer way with the same losses goes on from there.
        """
        losses_until = world[: count * self.batch].copy()
        cached_losses, mass = self._after
        if count < cached_losses.shape[0] // self.batch or not np.array_equal(
            losses_until[: cached_losses.shape[0]], cached_losses
        ):
            cached_losses, mass = losses_until[:0], np.ones(1)
        steps: dict[tuple[int, bytes], Floats] = {}
        for b in range(cached_losses.shape[0] // self.batch, count):
            x = self.centres if b else np.zeros(1)
            losses = world[b * self.batch : (b + 1) * self.batch].mean(axis=0)
            if (key := (x.size, losses.tobytes())) not in steps:
                played = self.inner.line_probabilities(x)
                first, second = (self._transition(x, arm, float(losses[arm])) * played[arm] for arm in (0, 1))
                steps[key] = first + second
            mass = steps[key] @ mass
        self._after = losses_until, mass
        return (self.centres if count else np.zeros(1)), mass

    def law_from(self, world: Floats, x: Floats, mass: Floats, begin: int, end: int) -> Floats:
        """Return the probabilities of the arms from `begin` to before `end`, from states x of these probabilities."""
        half = (begin + end) // 2  # forward to here and backward to here: few columns on both ways
        mass = mass[:, None]  # (states, prefixes)
        for b in range(begin, half):
            by_arm = [mass * played[:, None] for played in self.inner.line_probabilities(x)]
            steps = self._steps_of(world, b, x)
            mass = np.stack([s @ m for s, m in zip(steps, by_arm, strict=True)], axis=-1)
            mass = mass.reshape(self.centres.size, -1)
            x = self.centres
        rest: Floats = np.ones((1, self.centres.size))  # (suffixes, states): the probability of a suffix in each state
        for b in range(end - 1, half - 1, -1):
            states = x if b == half else self.centres
            if b < end - 1:
                continuations = [rest @ step for step in self._steps_of(world, b, states)]
            else:
                continuations = [np.ones((1, states.size))] * 2
            played = self.inner.line_probabilities(states)
            rest = np.concatenate([arm * after for arm, after in zip(played, continuations, strict=True)])
        return (rest @ mass).T.reshape(-1)

    def _steps_of(self, world: Floats, b: int, x: Floats) -> list[Floats]:
        """Return the transition of every arm after batch b, from the states x."""
        losses = world[b * self.batch : (b + 1) * self.batch].mean(axis=0)
        return [self._step(x, arm, float(losses[arm])) for arm in (0, 1)]


@lru_cache(maxsize=4)
def _grid(learner: Hashable, cells: int) -> Grid:
    """Return the learner's grid, so that its transitions serve every pair."""
    return Grid(cast(Learner, learner), cells)


@lru_cache(maxsize=64)
def _grid_law(learner: Hashable, cells: int, losses: bytes) -> Floats:
    """Return the probabilities of all sequences of arms in one world, (2 ** decisions,), computed once.

    A search, an attack, a blind spot and a record ask for the same ones, when the grid is long forgotten.
    """
    grid, world = _grid(learner, cells), np.frombuffer(losses).reshape(-1, 2)
    law = grid.law_from(world, np.zeros(1), np.ones(1), 0, decisions(len(world), grid.batch))
    law.flags.writeable = False
    return law
