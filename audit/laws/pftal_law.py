"""The law of PFTAL in one dimension: its noisy gradient sums, and what clipped actions tell of them.

An interior action reveals the noisy sum behind it exactly; one at the end of the interval only says on which side the
sum lies. The sums form a tree without padding, `v_t = v_parent(t) + (gradients since) + noise`, so nodes at powers of
two hang from 0 and are independent given the gradients; below each, messages pass on a grid wherever a sum is
censored and on its one point wherever it is not.
"""

from __future__ import annotations

import itertools

import numpy as np

from ...learners.abilities import is_ours
from ...learners.leaders.pftal import BanditPftal, Pftal
from ...learners.problems.losses import Absolute, Switch, feedback, resolve
from ...learners.protocol import Actions, Learner
from ...mechanisms.draws import Floats
from ...mechanisms.noise import scale_of
from ...mechanisms.tree import parent
from ..play.pairs import Pair
from ..statistics.rounding import rounded
from .privacy_loss import PrivacyLoss

#: Points of a censored sum's grid, and how far it reaches past the means, in noise scales.
POINTS, REACH = 256, 20.0


def applies(learner: Learner, pair: Pair) -> bool:
    """Tell whether this is our one-dimensional PFTAL with noise whose centres can be read off the actions."""
    if not (is_ours(learner) and isinstance(learner, Pftal | BanditPftal)):
        return False
    if learner.arms != 1 or scale_of(learner.noise) <= 0:
        return False
    return isinstance(learner, Pftal) or 2 * learner.beta > learner.domain.inner_radius


def release_loss(learner: Pftal | BanditPftal, pair: Pair, updates: int | None = None) -> PrivacyLoss | None:
    """Return the exact privacy loss of the first `updates` noisy sums, p = 1; None where the gap is not known.

    It is known where round 1 differs, at the first points; or where the losses' gradients (for a bandit, the losses)
    differ by a constant. Every released node that holds the round is one Laplace variable shifted by the gap. By
    default the last sum, which no action uses, is left out.
    """
    updates = pair.rounds - 1 if updates is None else updates
    if not isinstance(learner, Pftal | BanditPftal) or learner.arms != 1 or scale_of(learner.noise) <= 0:
        return None
    points = learner.project(np.zeros((1, 1)))
    if pair.t0 > 0:
        points = learner.project(np.linspace(-1, 1, 9)[None] * learner.domain.outer_radius)
    if isinstance(learner, BanditPftal):
        points = np.concatenate([points - learner.beta, points + learner.beta], axis=1)
    worlds = (resolve(world[pair.t0], [points]) for world in (pair.left, pair.right))
    gaps = np.abs(np.subtract(*(feedback(loss, points, learner.feedback) for loss in worlds)))
    if isinstance(learner, BanditPftal):
        gaps = gaps / learner.beta
    if pair.t0 > 0 and any(isinstance(world[pair.t0], Absolute | Switch) for world in (pair.left, pair.right)):
        return None  # a kink may lie between the points
    if gaps.max() - gaps.min() > 1e-9 * max(1.0, gaps.max()):
        return None
    nodes = [t for t in range(1, updates + 1) if parent(t) <= pair.t0 < t]
    return PrivacyLoss.of_laplace([float(gaps.max()) / scale_of(learner.noise)] * len(nodes))


def _below(x: Floats) -> Floats:
    """Return the distribution function of the standard Laplace law."""
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1 - tail)


class ActionLikelihood:
    """Log-likelihood ratio of the actions of one-dimensional PFTAL, left over right.

    Exact but for the grid of censored sums that later sums extend (error below 1e-3 nats, tested).

    Parameters
    ----------
    learner : Pftal or BanditPftal
        In one dimension; the bandit with `beta > r / 2`, so that its centres can be read off its actions.
    pair : Pair
        The two worlds.
    points : int
        Of the grid of a censored sum.

    Raises
    ------
    ValueError
        If the law does not cover the learner.
    """

    def __init__(self, learner: Pftal | BanditPftal, pair: Pair, *, points: int = POINTS) -> None:
        if not applies(learner, pair):
            raise ValueError(f"the law covers noisy PFTAL in one dimension, got {learner}")
        self.learner, self.pair = learner, pair
        self.scale = scale_of(learner.noise)
        self.last = pair.rounds - 1  # sums 1..T-1 reach the actions
        self.points = points

    def log_ratio(self, actions: Actions) -> Floats:
        """Return the log-likelihood ratio of actions (rounds, 1, runs), (runs,)."""
        # Clipped actions repeat: every distinct transcript is evaluated once.
        distinct, inverse = np.unique(actions[:, 0], axis=1, return_inverse=True)
        ratios = self._log_ratio(distinct[:, None])
        # Without rounding, the last bits of a float tell the worlds apart: a leak of the arithmetic (Mironov 2012),
        # which would falsify claims that hold.
        return rounded(ratios)[inverse.reshape(-1)]

    def _log_ratio(self, actions: Floats) -> Floats:
        centres = self.learner.centres(actions)
        self._observe(centres)
        cumulative = [self._cumulative(actions, world) for world in (self.pair.left, self.pair.right)]
        nothing = np.zeros((1, actions.shape[-1]))
        total = np.zeros(actions.shape[-1])
        t = 1
        while t <= self.last:
            if self.pair.t0 + 1 < 2 * t:  # else neither this node nor one below holds the differing round
                left, right = (self._message(t, nothing, sums)[0] for sums in cumulative)
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.log(left) - np.log(right)
                total += np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf)
            t *= 2
        return total

    def _observe(self, centres: Floats) -> None:
        """Set the interval (in noise scales) in which every noisy sum lies: `low == high` where it is revealed."""
        learner = self.learner
        w = centres[:, 0]
        end = learner.shrinkage * learner.domain.outer_radius
        t = np.arange(1, self.last + 1)[:, None]
        means = w[: self.last].cumsum(axis=0) / t
        rate = learner.curvature * t / self.scale
        seen = rate * (means - w[1 : self.last + 1])
        self.low = np.where(w[1 : self.last + 1] >= end * (1 - 1e-9), -np.inf, seen)
        self.high = np.where(w[1 : self.last + 1] <= -end * (1 - 1e-9), np.inf, seen)
        self.exact = self.low == self.high

    def _cumulative(self, actions: Floats, world: object) -> Floats:
        """Return the sums of what the rounds add in a world, in noise scales: (T, runs), from 0."""
        kind = self.learner.feedback
        told = [
            feedback(resolve(loss, actions[: t + 1]), actions[t], kind)  # type: ignore[arg-type]
            for t, loss in enumerate(itertools.islice(world, self.last))  # type: ignore[call-overload]
        ]
        fed = [np.broadcast_to(g, actions[0].shape)[0] for g in self.learner.fed(actions[: self.last], told)]
        return np.cumsum([np.zeros(actions.shape[-1]), *fed], axis=0) / self.scale

    def _children(self, t: int) -> list[int]:
        """Return the rounds whose sum extends the one at t."""
        low = t & -t
        return [t + (1 << i) for i in range(low.bit_length() - 1) if t + (1 << i) <= self.last]

    def _message(self, t: int, above: Floats, sums: Floats) -> Floats:
        """Return the likelihood of what is seen at and below t, given the sum at its parent.

        Parameters
        ----------
        above : array (points, runs)
            Values of the sum at the parent.
        sums : array (T, runs)
            From `_cumulative`.
        """
        means = above + (sums[t] - sums[parent(t)])
        low, high, exact = self.low[t - 1], self.high[t - 1], self.exact[t - 1]
        children = self._children(t)
        if not children:
            return self._seen(low, high, exact, means)
        # A revealed sum is a grid of one point, repeated.
        top = np.abs(sums).max(axis=0) + REACH
        censored_above = np.isinf(high)
        start = np.where(censored_above, low, high)
        span = np.where(exact, 0.0, np.maximum(top + np.abs(start), REACH))
        steps = (np.arange(self.points) + 0.5)[:, None] / self.points
        grid = start + np.where(censored_above, 1.0, -1.0) * steps * span
        inside = np.ones_like(grid)
        for child in children:
            inside = inside * self._message(child, grid, sums)
        inside *= np.where(exact, 1.0, span) / self.points
        return np.stack([(0.5 * np.exp(-np.abs(grid - mean)) * inside).sum(axis=0) for mean in means])

    @staticmethod
    def _seen(low: Floats, high: Floats, exact: Floats, means: Floats) -> Floats:
        """Return the density of a revealed sum, or the mass of its interval, given its mean."""
        point = np.where(exact, low, 0.0)
        density = 0.5 * np.exp(-np.abs(point - means))
        return np.where(exact, density, _mass(low, high, means))


def _mass(low: Floats, high: Floats, means: Floats) -> Floats:
    """Return the mass of one-sided intervals under a standard Laplace law around `means`."""
    upper = np.isinf(high)
    edge = np.where(upper, low, high)
    edge = np.where(np.isfinite(edge), edge, 0.0)
    return np.where(upper, _below(means - edge), _below(edge - means))
