"""The particle likelihood ratio: noisy losses integrated out by a filter whose actions are clamped.

The latent is the *noisy* loss. The two worlds then differ only in its density in the differing round, so one set of
particles serves both: ``LR(a) = E[f(y - l) / m(y) | a] / E[f(y - l') / m(y) | a]``, with y the noisy loss of that
round and m the mixture that it is drawn from. The ratio is bounded by the true privacy loss whatever the number of
particles.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ...learners.abilities import decisions, has_inner, kernel_of
from ...learners.protocol import Actions, Arrays, HasInner, Learner, Numbers
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.elementary import exp
from ...mechanisms.noise import Laplace
from ...mechanisms.philox import LANES, lanes
from ..play.kernels import compiled
from ..play.pairs import Pair
from ..play.transcripts import Transcripts
from ..statistics.bounds.rounding import rounded
from .protocol import LawAttack

#: Particles for each transcript, and transcripts filtered together (so that the state stays in cache).
PARTICLES, TOGETHER = 256, 64
#: Scores of few digits: a particle estimate has no more.
DIGITS = 6


def select(state: Any, columns: Any) -> object:
    """Return a learner's state with the given runs: every array's last axis is taken at `columns`."""
    if hasattr(state, "select"):
        return state.select(columns)
    taken = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            taken[field.name] = value.take(columns, axis=-1)  # contiguous, unlike value[..., columns]
        elif is_dataclass(value):
            taken[field.name] = select(value, columns)
    return replace(state, **taken)


class ParticleRatio(LawAttack):
    """Likelihood ratio of the arms of a bandit wrapper with noisy scalar feedback, by a particle filter.

    The score is a function of the transcript alone: the filter's random numbers are fixed, and shared by all runs.

    Parameters
    ----------
    learner : Learner with `HasInner`, its inner learner with `HasProbabilities`
    pair : Pair
        Linear losses.
    particles : int
        For each transcript.
    """

    name = "particle likelihood ratio"
    exact = False

    def __init__(self, learner: Learner, pair: Pair, *, particles: int = PARTICLES) -> None:
        assert isinstance(learner, HasInner)
        assert isinstance(learner.noise, Laplace)
        self.inner, self.noise, self.batch = learner.inner, learner.noise, learner.batch
        self.steps = decisions(pair.rounds, self.batch)
        self.differing = pair.t0 // self.batch
        self.particles = particles
        self.fast = False
        # Mean losses of every full batch, (batches, arms), in both worlds.
        fed = (self.steps - 1) * self.batch
        self.left, self.right = (
            np.asarray(world, dtype=float)[:fed].reshape(self.steps - 1, self.batch, -1).mean(axis=1)
            for world in (pair.left, pair.right)
        )
        draws = Draws(0)
        self.fresh = self.noise.sample((max(1, self.steps - 1), particles), draws)
        self.strata = (np.arange(particles) + 0.5) / particles

    @staticmethod
    def applies(learner: Learner, pair: Pair, surface: str) -> bool:
        """Tell whether the learner feeds Laplace-noisy scalars to a learner whose next law is known."""
        return (
            surface == "actions"
            and has_inner(learner)
            and isinstance(learner.noise, Laplace)
            and pair.arms is not None
            and pair.t0 // learner.batch < decisions(pair.rounds, learner.batch) - 1
        )

    def score(self, transcripts: Transcripts) -> Floats:
        """Filter the transcripts, `TOGETHER` at a time."""
        chosen = transcripts.actions[:: self.batch]
        # Equal sequences have equal scores: filter each once.
        unique, inverse = np.unique(chosen, axis=1, return_inverse=True)
        unique = unique.astype(np.intp)  # transcripts hold arms in few bits
        if self.fast:
            scores = self._filter_fast(unique)
        else:
            parts = [self._filter(unique[:, i : i + TOGETHER]) for i in range(0, unique.shape[1], TOGETHER)]
            scores = np.concatenate(parts)
        return rounded(scores, DIGITS)[inverse.reshape(-1)]

    def faster(self) -> ParticleRatio:
        """Return the same filter on the inner learner's kernel, where it has one that tells probabilities."""
        kernel = kernel_of(self.inner)
        if kernel is not None and kernel.probability is not None:
            self.fast = True
        return self

    def _filter_fast(self, actions: Any) -> Floats:
        """Return what `_filter` does, from a kernel whose lanes are the particles of one transcript."""
        kernel, m = kernel_of(self.inner, self.particles), self.particles
        assert kernel is not None
        filtered = compiled(_filter_block, m, _law=kernel.probability, _update=kernel.update)
        state = tuple(lanes(len(array), 0.0, m) for array in kernel.arrays)
        rows = lanes(8, 0.0, m)
        rows[0], rows[1] = self.strata, self._noise_of_strata()
        chosen = lanes(2, 0.0, m).view(np.int64)
        scores = np.empty(actions.shape[1])
        worlds = np.stack([self.left, self.right])
        # The learners that have such a kernel draw nothing in an update.
        stream = np.zeros(5, np.uint64), np.zeros(1, np.int64), lanes(1, 0.0, m)[0], lanes(1, 0.0, m)[0]
        run = np.ascontiguousarray(actions)
        setting = float(self.noise.scale), int(self.differing)
        filtered(kernel.numbers, kernel.arrays, state, stream, run, worlds, self.fresh, setting, rows, chosen, scores)
        return scores

    def _noise_of_strata(self) -> Floats:
        u = self.strata - 0.5
        noise: Floats = -np.sign(u) * self.noise.scale * np.log1p(-2 * np.abs(u))
        return noise

    def _filter(self, actions: Any) -> Floats:
        """Return the log ratio of each column of `actions`, (decisions, runs)."""
        runs, m = actions.shape[1], self.particles
        state = self.inner.start(runs * m, Draws(0))
        columns = np.arange(runs * m)
        weight = np.ones((runs, m))
        ratios = np.ones((2, runs, m))
        for step in range(self.steps - 1):
            played = np.repeat(actions[step], m)
            if step:  # the first law is the same for all
                weight *= self._probabilities(state, played, columns).reshape(runs, m)
                state, weight, ratios = self._resample(state, weight, ratios)
            fed = self.left[step][played].reshape(runs, m)
            if step == self.differing:
                fed, ratios = self._differ(fed, self.right[step][played].reshape(runs, m))
            else:
                fed = fed + self.fresh[step]
            self.inner.update(state, played, fed.reshape(-1), Draws(0))
        last = np.repeat(actions[-1], m)
        weight *= self._probabilities(state, last, columns).reshape(runs, m)
        sums = np.einsum("rm,wrm->wr", weight, ratios)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratio: Floats = np.log(sums[0]) - np.log(sums[1])
        return log_ratio

    def _probabilities(self, state: object, played: Actions, columns: object) -> Floats:
        probabilities: Floats = self.inner.probabilities(state)[played, columns]  # type: ignore[attr-defined]
        return probabilities

    def _differ(self, left: Floats, right: Floats) -> tuple[Floats, Floats]:
        """Return noisy losses of the differing round, stratified over both worlds, and their density ratios.

        Half of the strata follow each world; a particle's ratios are f(y - l) and f(y - l') over their mean.
        """
        z = self._noise_of_strata()
        y = np.where(np.arange(z.size) % 2 == 0, left + z, right + z)
        scaled = (np.abs(y - right) - np.abs(y - left)) / self.noise.scale  # ln f(y - l) - ln f(y - l')
        in_left = 2 / (1 + np.exp(-scaled))
        return y, np.stack([in_left, 2 - in_left])

    def _resample(self, state: object, weight: Floats, ratios: Floats) -> tuple[object, Floats, Floats]:
        """Resample, systematically, the runs whose effective sample size fell below half of the particles."""
        runs, m = weight.shape
        total = weight.sum(axis=1, keepdims=True)
        total[total == 0] = 1.0
        weight = weight / total
        poor = np.flatnonzero(np.square(weight).sum(axis=1) * m > 2)
        if not poor.size:
            return state, weight * m, ratios
        source = np.broadcast_to(np.arange(m), (runs, m)).copy()
        cumulative = np.minimum(np.cumsum(weight[poor], axis=1), 1.0)
        cumulative[:, -1] = 1.0
        offset = 2.0 * np.arange(poor.size)[:, None]
        ancestors = np.searchsorted((cumulative + offset).ravel(), (self.strata + offset).ravel())
        source[poor] = ancestors.reshape(poor.size, m) - m * np.arange(poor.size)[:, None]
        weight[poor] = 1 / m
        flat = (source + m * np.arange(runs)[:, None]).ravel()
        ratios = ratios.reshape(2, -1)[:, flat].reshape(2, runs, m)
        return select(state, flat), weight * m, ratios


def _law(*args: object) -> None:
    """Stand where `compiled` puts the inner learner's own function."""


_update = _law


def _filter_block(
    numbers: Numbers,
    fresh: Arrays,
    arrays: Arrays,
    stream: object,
    actions: Any,
    worlds: Floats,
    noise: Floats,
    setting: Any,
    rows: Floats,
    chosen: Any,
    scores: Floats,
) -> None:
    """Block: `ParticleRatio._filter`, one transcript after the other, its particles side by side."""
    scale, differing = setting
    weight, fed, p, ratios = rows[2], rows[3:4], rows[4], rows[5:7]
    arms = chosen[0:1]
    steps = len(actions)
    for run in range(actions.shape[1]):
        for k in range(len(arrays)):
            for row in range(len(arrays[k])):
                for i in range(LANES):
                    arrays[k][row, i] = fresh[k][row, i]
        for i in range(LANES):
            weight[i], ratios[0, i], ratios[1, i] = 1.0, 1.0, 1.0
        for step in range(steps):
            arm = actions[step, run]
            for i in range(LANES):
                arms[0, i] = arm
            if step:  # the first law is the same for all
                _law(step, numbers, arrays, arms[0], p)
                for i in range(LANES):
                    weight[i] *= p[i]
            if step == steps - 1:
                break
            if step:
                _resample_block(arrays, rows, chosen[1])
            left, right = worlds[0, step, arm], worlds[1, step, arm]
            if step == differing:
                for i in range(LANES):
                    y = rows[1, i] + (left if i % 2 == 0 else right)
                    ratios[0, i] = 2 / (1 + exp((abs(y - left) - abs(y - right)) / scale))
                    ratios[1, i] = 2 - ratios[0, i]
                    fed[0, i] = y
            else:
                for i in range(LANES):
                    fed[0, i] = left + noise[step, i]
            _update(step, numbers, arrays, stream, arms, fed)
        scores[run] = _log_ratio(weight, ratios)


def _log_ratio(weight: Floats, ratios: Floats) -> float:
    """Return the logarithm of the two worlds' likelihood ratio; where one likelihood is 0, as NumPy has it."""
    likely, less = 0.0, 0.0
    for i in range(LANES):
        likely += weight[i] * ratios[0, i]
        less += weight[i] * ratios[1, i]
    if (likely > 0) & (less > 0):
        return math.log(likely) - math.log(less)
    return math.inf if likely > 0 else (-math.inf if less > 0 else math.nan)


def _resample_block(arrays: Arrays, rows: Floats, source: Any) -> None:
    """Block: `ParticleRatio._resample` of one transcript's particles."""
    strata, weight, room = rows[0], rows[2], rows[7]
    total, squares = 0.0, 0.0
    for i in range(LANES):
        total += weight[i]
        squares += weight[i] * weight[i]
    if total == 0:
        return
    for i in range(LANES):
        weight[i] *= LANES / total
    if squares * LANES <= 2 * total * total:
        return
    below, last = weight[0] / LANES, 0
    for i in range(LANES):  # strata rise, and so do the sums of weights: one pass
        while (below < strata[i]) & (last < LANES - 1):
            last += 1
            below += weight[last] / LANES
        source[i] = last
    for i in range(LANES):
        weight[i] = 1.0
    for k in range(len(arrays)):
        for row in range(len(arrays[k])):
            _take_block(arrays[k][row], source, room)
    for row in range(5, 7):
        _take_block(rows[row], source, room)


def _take_block(values: Floats, source: Any, room: Floats) -> None:
    """Block: `select` of one row."""
    for i in range(LANES):
        room[i] = values[i]
    for i in range(LANES):
        values[i] = room[np.uint64(source[i])]
