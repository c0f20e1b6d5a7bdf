"""The law of PFTAL in one dimension: its noisy gradient sums, and what clipped actions tell of them.

An interior action reveals the noisy sum behind it exactly; one at the end of the interval only says on which side the
sum lies. The sums form a tree without padding; messages pass along it (`tree_messages`), on a grid wherever a sum is
censored and on its one point wherever it is not.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ...mechanisms.noise import Noise, scale_of
from ...mechanisms.numerics import rounded
from ...mechanisms.tree import parent, roots
from ...mechanisms.tree_messages import RunMessages
from ..laws import Losses, Neighbours, NotEnumerableError
from ..problems.domains import Projection
from ..problems.losses import Absolute, Switch, feedback, resolve
from ..protocol import Actions, FeedbackKind

#: Points of a censored sum's grid, and how far it reaches past the means, in noise scales.
POINTS, REACH = 256, 20.0
#: Laws of clipped actions: the most rounds, the most probability inside the interval that is left out, and the points
#: of the grid of a sum beyond an end (epsilon is off by less than 1e-3).
MAX_CLIPPED, MAX_INTERIOR, CLIPPED_POINTS = 10, 1e-2, 128
#: Runs whose messages are moved at once.
_CACHED = 512


class Leader(Protocol):
    """Follow the approximate leader in one dimension, as far as its law needs it."""

    @property
    def domain(self) -> Projection:
        """C."""

    @property
    def noise(self) -> Noise:
        """The law of one node's noise."""

    @property
    def curvature(self) -> float:
        """H."""

    @property
    def shrinkage(self) -> float:
        """Centres lie in this multiple of the domain."""

    @property
    def feedback(self) -> FeedbackKind:
        """What it is told."""

    def project(self, x: Floats) -> Floats:
        """Return the projection onto the shrunken domain."""

    def centres(self, actions: Floats) -> Floats:
        """Return the points behind actions."""

    def fed(self, actions: Floats, feedback: list[Floats]) -> list[Floats]:
        """Return what each round adds to the counter."""


def gap(pair: Neighbours, points: Floats, kind: FeedbackKind) -> float | None:
    """Return by how much the inputs' feedback differs at these points, (1, points); None where that is no constant."""
    if pair.t0 > 0 and any(isinstance(losses[pair.t0], Absolute | Switch) for losses in (pair.left, pair.right)):
        return None  # a kink may lie between the points
    left, right = (resolve(losses[pair.t0], [points]) for losses in (pair.left, pair.right))
    gaps = np.abs(feedback(left, points, kind) - feedback(right, points, kind))
    return None if gaps.max() - gaps.min() > 1e-9 * max(1.0, gaps.max()) else float(gaps.max())


def _distinct_columns(x: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the distinct columns of (rows, runs) in lexical order, and which of them each column is.

    As `np.unique(x, axis=1)`, whose comparisons of whole columns take many times as long.
    """
    column_index = np.zeros(x.shape[1], dtype=np.intp)
    for row in x:
        values, place = np.unique(row, return_inverse=True)
        _, column_index = np.unique(column_index * values.size + place, return_inverse=True)
    _, first = np.unique(column_index, return_index=True)
    return first, column_index


def _below(x: Floats) -> Floats:
    """Return the distribution function of the standard Laplace law."""
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1 - tail)


class ActionLikelihood:
    """Log-likelihood ratio of the actions of one-dimensional PFTAL, left over right.

    Exact but for the grid of censored sums that later sums extend (error below 1e-3 nats, tested).

    Parameters
    ----------
    learner : Leader
        Noisy and in one dimension, with centres that can be read off its actions.
    pair : Neighbours
    points : int
        Of the grid of a censored sum.
    """

    def __init__(self, learner: Leader, pair: Neighbours, *, points: int = POINTS) -> None:
        self.learner, self.t0, self.worlds = learner, pair.t0, (pair.left, pair.right)
        self.scale = scale_of(learner.noise)
        self.last = pair.rounds - 1  # sums 1..T-1 reach the actions
        self.points = points

    def __call__(self, actions: Actions) -> Floats:
        """Return the log-likelihood ratio of actions (rounds, 1, runs), (runs,)."""
        # Clipped actions repeat: every distinct transcript is evaluated once.
        first, inverse = _distinct_columns(actions[:, 0])
        ratios = self._log_ratio(actions.take(first, axis=-1))
        # Without rounding, the last bits of a float tell the worlds apart: a leak of the arithmetic (Mironov 2012),
        # which would falsify claims that hold.
        return rounded(ratios)[inverse]

    def _log_ratio(self, actions: Floats) -> Floats:
        nothing = np.zeros((1, actions.shape[-1]))
        total = np.zeros(actions.shape[-1])
        messages = self.messages(actions)
        for t in roots(self.last):
            if self.t0 + 1 < 2 * t:  # else neither this node nor one below holds the differing round
                left, right = (world.log_likelihood(t, nothing) for world in messages)
                with np.errstate(invalid="ignore"):
                    ratio = left - right
                total += np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return total

    def laws(self, actions: Floats) -> list[Floats]:
        """Return the density of actions (rounds, 1, runs) in both worlds; their probability where all are clipped."""
        nothing = np.zeros((1, actions.shape[-1]))
        return [
            np.exp(sum(world.log_likelihood(t, nothing) for t in roots(self.last))) for world in self.messages(actions)
        ]

    def messages(self, actions: Floats) -> list[_Messages]:
        """Return the message passing of both worlds for these actions."""
        revealed = self._revealed(self.learner.centres(actions))
        return [_Messages(self.points, *revealed, self._cumulative(actions, world)) for world in self.worlds]

    def _revealed(self, centres: Floats) -> tuple[Floats, Floats]:
        """Return the interval (in noise scales) in which every noisy sum lies: a point where it is revealed."""
        learner = self.learner
        w = centres[:, 0]
        end = learner.shrinkage * learner.domain.outer_radius
        t = np.arange(1, self.last + 1)[:, None]
        means = w[: self.last].cumsum(axis=0) / t
        rate = learner.curvature * t / self.scale
        seen = rate * (means - w[1 : self.last + 1])
        low = np.where(w[1 : self.last + 1] >= end * (1 - 1e-9), -np.inf, seen)
        high = np.where(w[1 : self.last + 1] <= -end * (1 - 1e-9), np.inf, seen)
        return low, high

    def _cumulative(self, actions: Floats, world: Losses) -> Floats:
        """Return the sums of what the rounds add in a world, in noise scales: (T, runs), from 0."""
        played, kind = list(actions), self.learner.feedback
        losses = [feedback(resolve(world[t], played[: t + 1]), played[t], kind) for t in range(self.last)]
        fed = [np.broadcast_to(g, actions[0].shape)[0] for g in self.learner.fed(actions[: self.last], losses)]
        return np.cumsum([np.zeros(actions.shape[-1]), *fed], axis=0) / self.scale


class _Messages(RunMessages):
    """The messages of one world, (points, runs). A revealed sum is a grid of one point, repeated.

    Parameters
    ----------
    low, high : arrays (T - 1, runs)
        The interval in which every noisy sum lies.
    sums : array (T, runs)
        Of what the rounds add.
    """

    def __init__(self, points: int, low: Floats, high: Floats, sums: Floats) -> None:
        self.points, self.low, self.high, self.sums, self.last = points, low, high, sums, len(low)
        self.exact = low == high
        self.top = np.abs(sums).max(axis=0) + REACH

    def leaf(self, t: int, parent_sums: Floats) -> Floats:
        """Return the density of a revealed sum, or the mass of its interval."""
        low, high, exact = self.low[t - 1], self.high[t - 1], self.exact[t - 1]
        means = self._means(t, parent_sums)
        point = np.where(exact, low, 0.0)
        density = 0.5 * np.exp(-np.abs(point - means))
        return np.where(exact, density, _mass(low, high, means))

    def grid_at(self, t: int) -> Floats:
        steps = (np.arange(self.points) + 0.5)[:, None] / self.points
        censored_above, start = self._start(t)
        grid: Floats = start + np.where(censored_above, 1.0, -1.0) * steps * self._span(t)
        return grid

    def seen(self, t: int, grid: Floats) -> Floats:
        return np.ones_like(grid)  # the grid lies where the sum may

    def moved(self, t: int, parent_sums: Floats, grid: Floats, likelihoods: Floats) -> Floats:
        likelihoods = likelihoods * (np.where(self.exact[t - 1], 1.0, self._span(t)) / self.points)
        likelihoods *= 0.5
        means = self._means(t, parent_sums)
        message = np.empty(means.shape)
        for start in range(0, grid.shape[1], _CACHED):  # a stretch of runs stays near the processor for all means
            part = slice(start, start + _CACHED)
            grid_part, weight = (np.ascontiguousarray(rows[:, part]) for rows in (grid, likelihoods))
            kernel = np.empty(grid_part.shape)
            for mean, total in zip(means[:, part], message[:, part], strict=True):
                np.abs(np.subtract(grid_part, mean, out=kernel), out=kernel)
                np.exp(np.negative(kernel, out=kernel), out=kernel)
                kernel *= weight
                kernel.sum(axis=0, out=total)
        return message

    def _means(self, t: int, parent_sums: Floats) -> Floats:
        means: Floats = parent_sums + (self.sums[t] - self.sums[parent(t)])
        return means

    def _start(self, t: int) -> tuple[NDArray[np.bool_], Floats]:
        censored_above = np.isinf(self.high[t - 1])
        return censored_above, np.where(censored_above, self.low[t - 1], self.high[t - 1])

    def _span(self, t: int) -> Floats:
        _, start = self._start(t)
        return np.where(self.exact[t - 1], 0.0, np.maximum(self.top + np.abs(start), REACH))


def _mass(low: Floats, high: Floats, means: Floats) -> Floats:
    """Return the mass of one-sided intervals under a standard Laplace law around `means`."""
    upper = np.isinf(high)
    edge = np.where(upper, low, high)
    edge = np.where(np.isfinite(edge), edge, 0.0)
    return np.where(upper, _below(means - edge), _below(edge - means))


def clipped_laws(learner: Leader, pair: Neighbours, *, points: int = CLIPPED_POINTS) -> tuple[Floats, Floats]:
    """Return the laws of the actions where nearly all lie at the ends of the interval.

    With losses of small curvature an action inside the interval has a probability of the order of the curvature; the
    laws are what remains, made to sum to 1.

    Parameters
    ----------
    points : int
        Of the grid of a sum beyond an end.

    Raises
    ------
    NotEnumerableError
        Elsewhere.
    """
    if not 1 < pair.rounds <= MAX_CLIPPED:
        raise NotEnumerableError(f"laws of clipped actions are for 2 to {MAX_CLIPPED} rounds")
    signs = np.indices((2,) * (pair.rounds - 1)).reshape(pair.rounds - 1, -1) * 2.0 - 1.0
    first = learner.project(np.zeros((1, signs.shape[1])))
    actions = np.concatenate([first[None], signs[:, None] * learner.domain.outer_radius])
    p, q = ActionLikelihood(learner, pair, points=points).laws(actions)
    if min(p.sum(), q.sum()) < 1 - MAX_INTERIOR:
        raise NotEnumerableError("too many actions lie inside the interval")
    return p / p.sum(), q / q.sum()
