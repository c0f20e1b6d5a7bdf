"""The particle likelihood ratio: noisy losses integrated out by a filter whose actions are clamped.

The latent is the *noisy* loss. The two worlds then differ only in its density in the differing round, so one set of
particles serves both: ``LR(a) = E[f(y - l) / m(y) | a] / E[f(y - l') / m(y) | a]``, with y the noisy loss of that
round and m the mixture that it is drawn from. The ratio is bounded by the true privacy loss whatever the number of
particles.

A particle is a path of all the other noise. From the differing round on each carries the same few values of y, the
nodes, with their weights, so y is integrated by quadrature within every path, and resampling paths never thins its
values out. After many resamplings all paths descend from one, and the ratio is that path's, no mean. Later actions
tell ever less of y, so the filter stops some actions after the differing one (the lag). Where that comes late it
begins some before, with many paths, which until then play freely, and are as many as nodes until y is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...learners.abilities import decisions, has_inner, owns, select
from ...learners.protocol import Actions, HasInner, HasProbabilities, Learner
from ...learners.weights import WeightsState
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace
from ...mechanisms.numerics import rounded
from ...mechanisms.view import View
from ..play.pairs import Pair
from ..play.transcripts import Transcripts
from .protocol import LawAttack, log_losses

#: Paths of noise for each transcript, values of the differing noisy loss for each path, and paths and values of the
#: transcripts that NumPy filters together (so that the state stays in cache).
PARTICLES, NODES, MAX_CELLS = 16, 8, 16_384
#: The actions after the differing one that are filtered; the first lag that is tried on training runs, and how many.
LAG, SHORTEST, TUNED = 16, 8, 4000
DIGITS = 6  # of scores: a particle estimate has no more
#: Paths are resampled where their weights have an effective sample size below 1 / POOR of them, to the quantiles
#: (i + OFFSET) / particles: numbers that no share of equal weights meets exactly, so that no last bit decides.
POOR, OFFSET = 2.0371, 0.3586


@dataclass(frozen=True)
class LateFilter:
    """The filter where many actions come before the differing one: it begins some before, with many paths.

    Attributes
    ----------
    min_actions : int
        Before the differing one: of fewer all are filtered.
    lead : int
        Actions before the differing one from which on they are filtered, at most.
    particles, nodes, lag : int
        To begin with, as those of `ParticleRatio`.
    """

    min_actions: int = 11
    lead: int = 20
    particles: int = 256
    nodes: int = 4
    lag: int = 4


LATE = LateFilter()


class ParticleRatio(LawAttack):
    """Likelihood ratio of the arms of a bandit wrapper with noisy scalar feedback, by a particle filter.

    The score is a function of the transcript alone: the filter's random numbers are fixed, and shared by all runs.

    Parameters
    ----------
    learner : Learner with `HasInner`, its inner learner with `HasProbabilities`
    pair : Pair of linear losses
    particles, nodes : int
        Paths of noise for each transcript, and values of the differing noisy loss for each path; these even.
    lag : int
        How many of the inner learner's actions after the differing one are looked at.
    begin : int
        The first action that is looked at.
    """

    name = "particle likelihood ratio"
    exact, calibrated = False, True

    def __init__(
        self,
        learner: Learner,
        pair: Pair,
        *,
        particles: int = PARTICLES,
        nodes: int = NODES,
        lag: int = LAG,
        begin: int = 0,
    ) -> None:
        assert isinstance(learner, HasInner)
        assert isinstance(learner.noise, Laplace)
        assert isinstance(learner.inner, HasProbabilities)
        super().__init__(learner, pair)
        self.inner, self.noise, self.batch = learner.inner, learner.noise, learner.batch
        self.differing, self.lag, self.begin = pair.t0 // self.batch, lag, begin
        self.steps = min(decisions(pair.rounds, self.batch), self.differing + 1 + lag)
        self.particles, self.nodes = particles, nodes
        # Mean losses of every full batch, (batches, arms), in both worlds.
        fed = (self.steps - 1) * self.batch
        self.left, self.right = (
            np.asarray(world, dtype=float)[:fed].reshape(self.steps - 1, self.batch, -1).mean(axis=1)
            for world in (pair.left, pair.right)
        )
        #: The noise of every update, (updates, particles * nodes): a path's nodes share it.
        self.fresh = np.repeat(self._quantiles(stratified(self.steps - 1 - begin, particles, Draws(0))), nodes, axis=1)
        #: The action from which on paths have nodes: before it there is a path for each, if it did not begin there.
        self.split = self.differing if begin else 0
        n_particles = max(0, self.split - begin)
        self.fresh[:n_particles] = self._quantiles(stratified(n_particles, particles * nodes, Draws(0, part=3)))
        #: What paths do before the first action that is looked at, and their states then.
        self.free, self.state = self._played_freely()
        #: The noise of the differing update, for even nodes around the left loss and for odd ones around the right.
        self.differs = np.repeat(self._quantiles((np.arange(nodes // 2) + 0.5) / (nodes // 2)), 2)

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """Tell whether the learner feeds Laplace-noisy scalars to a learner whose next law is known."""
        return (
            not view.channel
            and has_inner(learner)
            and isinstance(learner.noise, Laplace)
            and pair.arms is not None
            and pair.t0 // learner.batch < decisions(pair.rounds, learner.batch) - 1
        )

    def score(self, transcripts: Transcripts) -> Floats:
        """Filter the transcripts, some of them together."""
        block = transcripts.actions[:: self.batch][self.begin : self.steps]
        unique, inverse = np.unique(block.astype(np.intp), axis=1, return_inverse=True)  # equal scores: filter once
        width = max(1, MAX_CELLS // (self.particles * self.nodes))
        scores = np.concatenate([self._filter(unique[:, i : i + width]) for i in range(0, unique.shape[1], width)])
        return rounded(scores, DIGITS)[inverse.reshape(-1)]

    def tuned(self, train: Transcripts) -> ParticleRatio:
        """Return the filter with the lag whose odds tell the worlds of training runs best.

        Lags are doubled while that lowers the log loss by more than its standard error: longer ones cost more.
        """
        sample, begin = train[:TUNED], max(0, self.differing - LATE.lead)
        late: dict[str, Any] = {"particles": LATE.particles, "nodes": LATE.nodes, "lag": LATE.lag, "begin": begin}
        best = self._with(**late) if self.differing >= LATE.min_actions else self._with(lag=SHORTEST)
        losses = log_losses(best.score(sample), sample.left)
        while best.differing + 1 + best.lag < decisions(self.pair.rounds, self.batch):
            longer = best._with(lag=2 * best.lag)
            held_out = log_losses(longer.score(sample), sample.left)
            gain = losses - held_out
            if rounded(gain.mean(), DIGITS) <= rounded(gain.std() / math.sqrt(gain.size), DIGITS):
                break
            best, losses = longer, held_out
        return best

    def _with(self, **changes: Any) -> ParticleRatio:
        """Return a filter as this one but for what is changed."""
        fields = {name: getattr(self, name) for name in ("particles", "nodes", "lag", "begin")}
        return ParticleRatio(self.learner, self.pair, **{**fields, **changes})

    def _played_freely(self) -> tuple[tuple[Actions, Floats], object]:
        """Return arms and noisy losses before the filter begins, (begin, paths), and the states after them."""
        paths = self.particles * self.nodes
        state = self.inner.start(paths, Draws(0))
        noise, shares = (stratified(self.begin, paths, Draws(0, part=part)) for part in (1, 2))
        losses, shares = self._quantiles(noise), shares + (OFFSET - 0.5) / paths
        arms = np.empty(losses.shape, dtype=np.intp)
        for t in range(self.begin):
            sums = np.cumsum(self.inner.probabilities(state), axis=0)
            arms[t] = (sums[:-1] < shares[t]).sum(axis=0)
            losses[t] += self.left[t][arms[t]]
            self.inner.update(state, arms[t], losses[t].copy(), Draws(0))
        return (arms, losses), state

    def _quantiles(self, shares: Floats) -> Floats:
        """Return the quantiles of the noise."""
        u = shares - 0.5
        noise: Floats = -np.sign(u) * self.noise.scale * np.log1p(-2 * np.abs(u))
        return noise

    def _filter(self, actions: Actions) -> Floats:
        """Return the log ratio of each column of `actions`, (decisions from `begin` on, runs)."""
        runs, m = actions.shape[1], self.particles * self.nodes
        state = select(self.state, np.tile(np.arange(m), runs)) if self.begin else self.inner.start(runs * m, Draws(0))
        columns = np.arange(runs * m)
        weight = np.ones((runs, m))
        ratios = np.ones((2, runs, 1))
        for step in range(self.begin, self.steps - 1):
            seen = actions[step - self.begin]
            played = np.repeat(seen, m)
            if step:  # the first law is the same for all
                weight *= self._probabilities(state, played, columns).reshape(runs, m)
                before, after = (1 if step < first else self.nodes for first in (self.split + 1, self.split))
                state, weight = self._resample(state, weight, before, after)
            fed = self.left[step][seen, None]
            if step == self.differing:
                other = self.right[step][seen, None]
                y = np.where(np.arange(self.nodes) % 2 == 0, fed, other) + self.differs
                scaled = (np.abs(y - other) - np.abs(y - fed)) / self.noise.scale  # ln f(y - l) - ln f(y - l')
                in_left = 2 * expit(scaled)  # over the mean of both densities
                ratios, fed = np.stack([in_left, 2 - in_left]), np.tile(y, self.particles)
            else:
                fed = fed + self.fresh[step - self.begin]
            self.inner.update(state, played, fed.reshape(-1), Draws(0))
        weight *= self._probabilities(state, np.repeat(actions[-1], m), columns).reshape(runs, m)
        sums = (weight.reshape(runs, self.particles, self.nodes).sum(axis=1) * ratios).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_ratio: Floats = np.log(sums[0]) - np.log(sums[1])
        return log_ratio

    def _probabilities(self, state: object, played: Actions, columns: NDArray[np.intp]) -> Floats:
        if isinstance(state, WeightsState) and owns(self.inner, "probability_at"):
            probability: Floats = self.inner.probability_at(state, state.places(played))  # type: ignore[attr-defined]
            return probability
        probabilities: Floats = self.inner.probabilities(state)[played, columns]
        return probabilities

    def _resample(self, state: object, weight: Floats, before: int, after: int) -> tuple[object, Floats]:
        """Resample paths, systematically, where their effective sample size is poor or their nodes become more."""
        runs, m = weight.shape
        paths, n_particles = m // before, m // after
        path = weight.reshape(runs, paths, before).sum(axis=2)
        total = path.sum(axis=1, keepdims=True)
        total[total == 0] = 1.0
        weight *= paths / total
        path *= paths / total
        poor = np.flatnonzero((np.square(path).sum(axis=1) > POOR * paths) | (before != after))
        if not poor.size:
            return state, weight
        cumulative = np.cumsum(path[poor], axis=1) * (n_particles / paths)
        cumulative[:, -1] = n_particles
        offset = 2.0 * n_particles * np.arange(poor.size)[:, None]
        ancestors = np.searchsorted((cumulative + offset).ravel(), (np.arange(n_particles) + OFFSET + offset).ravel())
        source = ancestors.reshape(poor.size, -1) - paths * np.arange(poor.size)[:, None]
        lane = np.broadcast_to(np.arange(m), (runs, m)).copy()
        lane[poor] = (source[:, :, None] * before + np.arange(after) % before).reshape(poor.size, m)
        shares = np.repeat(np.take_along_axis(path[poor], source, axis=1), after, axis=1)
        weight[poor] = np.take_along_axis(weight[poor], lane[poor], axis=1) / shares
        return select(state, (lane + m * np.arange(runs)[:, None]).ravel()), weight


def stratified(rows: int, points: int, draws: Draws) -> Floats:
    """Return points in (0, 1), (rows, points): in each row the middles of as many strata, in an order of its own."""
    return np.asarray((np.argsort(draws.uniform((rows, points)), axis=1) + 0.5) / points)
