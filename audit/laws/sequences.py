"""The exact law of a whole sequence of arms, noise integrated out, for learners where it can be computed."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ... import learners
from ...learners.leaders.ftpl import Ftpl
from ...learners.protocol import Actions, HasInner, HasProbabilities, Learner, OnALine, on_a_line
from ...mechanisms.draws import Draws, Floats, Purpose
from ..play.pairs import Pair
from . import ftpl_law

#: Up to this many sequences are enumerated.
MAX_SEQUENCES = 4096
#: Cells of the grid: for printed values, and for scores and rankings (off by less than 1e-4 and 1e-3).
FINE, COARSE = 2000, 600
#: How far the grid reaches: sinh-spaced, since Laplace tails over small probabilities are long.
REACH = 4000.0
#: Updates in which a learner is watched for draws, the runs of each, and the ranges of the losses that it is told.
_PROBED, _PROBES = 32, 8
_TOLD = ((0.0, 0.0), (1.0, 1.0), (-1.0, -1.0), (0.0, 1.0), (-1.0, 1.0))
#: Where our learners are, and those of them that are planted to be wrong.
_LEARNERS, _PLANTED = learners.__name__, f"{learners.__name__}.planted"


class NotEnumerableError(ValueError):
    """The law of the sequences of this learner is not computable here."""


def batch_of(learner: Learner) -> int:
    """Return the rounds that an arm is held: 1 unless the learner says otherwise."""
    return int(getattr(learner, "batch", 1))


def decisions(rounds: int, batch: int) -> int:
    """Return the number of arms chosen in `rounds` rounds."""
    return -(-rounds // batch)


def check_enumerable(learner: Learner, pair: Pair) -> None:
    """Raise NotEnumerableError unless `sequence_laws` covers the learner and the pair."""
    chosen = decisions(pair.rounds, batch_of(learner))
    if learner.arms**chosen > MAX_SEQUENCES:
        raise NotEnumerableError(
            f"{learner.arms} arms and {chosen} decisions give more than {MAX_SEQUENCES} sequences: shorten the horizon"
        )
    on_grid = has_grid_law(learner) and isinstance(pair.left, np.ndarray)
    ours = is_ours(learner) and (on_grid or ftpl_law.applies(learner, pair))
    if not (has_noiseless_law(learner) or ours):
        raise NotEnumerableError(f"the law of {type(learner).__name__}'s actions has no closed form here")


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
    if isinstance(learner, Ftpl):
        return ftpl_law.sequence_law(learner, pair, True), ftpl_law.sequence_law(learner, pair, False)
    grid = _grid(cast(Hashable, learner), cells)
    return grid.law(pair, True), grid.law(pair, False)


def has_noiseless_law(learner: Learner) -> bool:
    """Tell whether the next arm's law is a function of the past arms and losses.

    A learner that draws while it learns, such as one with noise of its own, has no such law, whatever it offers; one
    that draws seldom is found out by `declared_laws`, which watches it on the losses of the audit.
    """
    if not isinstance(learner, HasProbabilities):
        return False
    inner = getattr(learner, "inner", None)
    return (inner is None or isinstance(inner, HasProbabilities)) and not _draws_to_learn(learner)


class NoDraws(Draws):
    """Draws for a learner that must not draw."""

    def stream(self, purpose: Purpose) -> np.random.Generator:
        """Raise NotEnumerableError."""
        raise NotEnumerableError("the learner draws noise of its own while it learns: its law is not known")


def _draws_to_learn(learner: Learner) -> bool:
    """Tell whether `start`, or one of the first updates, draws, whatever was played and told: several probes."""
    try:
        return _draws_when_probed(cast(Hashable, learner))
    except TypeError:  # not hashable
        return _draws_when_probed.__wrapped__(cast(Hashable, learner))


@lru_cache(maxsize=64)
def _draws_when_probed(learner: Hashable) -> bool:
    return any(_draws_when_told(cast(Learner, learner), *losses) for losses in _TOLD)


def _draws_when_told(learner: Learner, low: float, high: float) -> bool:
    """Tell whether the learner draws to learn from losses in a range, at random arms."""
    chance = np.random.default_rng(0)
    shape = (_PROBES,) if learner.feedback == "bandit" else (learner.arms, _PROBES)
    try:
        state = learner.start(_PROBES, NoDraws(0))
        for _ in range(max(_PROBED, batch_of(learner))):
            arms = chance.integers(learner.arms, size=_PROBES)
            learner.update(state, arms, chance.uniform(low, high, shape), NoDraws(0))
    except NotEnumerableError:
        return True
    except Exception:  # beyond its horizon, or told what it does not take: until there, nothing was drawn
        return False
    return False


def is_noisy(noise: Any) -> bool:
    """Tell whether a law of noise has a positive scale or standard deviation."""
    return any(getattr(noise, scale, 0.0) > 0 for scale in ("scale", "sigma"))


def has_grid_law(learner: Learner) -> bool:
    """Tell whether the learner feeds one noisy scalar, Laplace or Gaussian, to a two-armed learner on a line."""
    return isinstance(learner, HasInner) and is_noisy(learner.noise) and on_a_line(learner.inner)


def is_ours(learner: Learner) -> bool:
    """Tell whether a learner and those inside it are ours as they are written.

    A closed form is that of our code. Another class may have the same abilities, and a subclass another update.
    """
    inner = getattr(learner, "inner", None)
    module = type(learner).__module__
    own = module.startswith(f"{_LEARNERS}.") and not module.startswith(f"{_PLANTED}.")
    return own and (inner is None or is_ours(inner))


def index_of(actions: Actions, arms: int, batch: int) -> NDArray[np.int64]:
    """Return the index of each run's sequence: actions (rounds, runs) to (runs,)."""
    index = np.zeros(actions.shape[-1], dtype=np.int64)
    for chosen in actions[::batch]:
        index *= arms
        index += chosen
    return index


def all_sequences(arms: int, chosen: int) -> Actions:
    """Return every sequence of `chosen` arms in the order of `index_of`, (chosen, arms ** chosen)."""
    return np.indices((arms,) * chosen).reshape(chosen, -1)


def _noiseless_law(learner: Learner, pair: Pair, left: bool) -> Floats:
    assert isinstance(learner, HasProbabilities)
    batch = batch_of(learner)
    sequences = all_sequences(learner.arms, decisions(pair.rounds, batch))
    actions = np.repeat(sequences, batch, axis=0)[: pair.rounds]
    return np.exp(log_likelihood(learner, pair, actions, left))


def log_likelihood(learner: Learner, pair: Pair, actions: Actions, left: bool) -> Floats:
    """Return the log probability of each run's arms in one world, for a learner without noise: (runs,).

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
    with np.errstate(divide="ignore"):
        for t, seen in enumerate(actions):
            played = seen.astype(np.intp)  # as the learner played it: transcripts hold arms in few bits
            if t % batch == 0:  # within a batch the arm is held
                total += np.log(learner.probabilities(state)[played, columns])
            if t < pair.rounds - 1:
                told = pair.feedback(t, played, learner.feedback, left, actions[:t])
                learner.update(state, played, told, draws)
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
        half = np.sinh(np.linspace(0.0, math.asinh(REACH), cells // 2 + 1))
        self.edges = np.concatenate([-half[:0:-1], half])
        middle = np.sinh((np.arange(cells // 2) + 0.5) * math.asinh(REACH) / (cells // 2))
        self.centres = np.concatenate([-middle[::-1], middle])
        self._steps: dict[tuple[int, int, float], Floats] = {}

    def _transition(self, x: Floats, arm: int, loss: float) -> Floats:
        """Return the probabilities of the cells after `arm` and a fed loss of mean `loss`: (cells, len(x))."""
        offset, slope = self.inner.line_step(x, arm)
        # The noise is symmetric, so the sign of the slope matters only for the centre.
        z = (self.edges[1:-1, None] - (offset + slope * loss)) / np.abs(slope)
        tail = self.noise.tail(np.abs(z))
        below = np.where(z < 0, tail, 1 - tail)
        # The outermost cells take the tails. Masses right of the centre are differences of upper tails, which
        # keeps small ones exact.
        above = np.where(z < 0, 1 - tail, tail)
        ones, zeros = np.ones((1, x.size)), np.zeros((1, x.size))
        lower = np.diff(np.concatenate([zeros, below, ones]), axis=0)
        upper = -np.diff(np.concatenate([ones, above, zeros]), axis=0)
        right = np.concatenate([zeros, (z > 0).astype(float)]) > 0
        return np.where(right, upper, lower)

    def _step(self, x: Floats, arm: int, loss: float) -> Floats:
        """Return the transition from the start (one point, 0) or from every cell, computed once."""
        key = (x.size, arm, loss)
        if key not in self._steps:
            self._steps[key] = self._transition(x, arm, loss)
        return self._steps[key]

    def law(self, pair: Pair, left: bool) -> Floats:
        """Return the probabilities of all sequences of chosen arms in one world: (2 ** decisions,)."""
        world = pair.left if left else pair.right
        assert isinstance(world, np.ndarray)
        chosen = decisions(pair.rounds, self.batch)
        x, mass = np.zeros(1), np.ones((1, 1))  # (states, prefixes)
        for b in range(chosen):
            probabilities = self.inner.line_probabilities(x)
            by_arm = [mass * probabilities[arm][:, None] for arm in (0, 1)]
            if b == chosen - 1:
                mass = np.stack([m.sum(axis=0) for m in by_arm], axis=-1)
                break
            losses = world[b * self.batch : (b + 1) * self.batch].mean(axis=0)
            steps = [self._step(x, arm, float(losses[arm])) for arm in (0, 1)]
            mass = np.stack([s @ m for s, m in zip(steps, by_arm, strict=True)], axis=-1)
            mass = mass.reshape(self.centres.size, -1)
            x = self.centres
        return mass.reshape(-1)


@lru_cache(maxsize=4)
def _grid(learner: Hashable, cells: int) -> Grid:
    """Return the learner's grid, so that its transitions serve every pair."""
    return Grid(cast(Learner, learner), cells)
