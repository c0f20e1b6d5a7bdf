"""Likelihood ratios of leaders whose actions are points: what a vector's coordinates tell, each or together.

Noise is independent by coordinate, and so are the coordinates of an action over the cube: signs of Gaussian prefix
sums, or clipped Laplace ones. Elsewhere a Gaussian tree has a linear statistic, and powers of two are independent.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincc

from ...learners.abilities import is_ours
from ...learners.leaders.ftpl import Ftpl
from ...learners.leaders.ftrl import Ftrl
from ...learners.problems.domains import Ball, Cube, EntropySimplex, Simplex
from ...learners.protocol import Learner
from ...mechanisms.draws import Floats
from ...mechanisms.noise import (
    Gaussian,
    Laplace,
    deviation_of,
    laplace_sum_coefficients,
    laplace_sum_density,
    scale_of,
)
from ...mechanisms.numerics import rounded
from ...mechanisms.tree import depth, nodes_of, parent, roots
from ...mechanisms.tree_messages import RunMessages
from ...mechanisms.view import View
from ..laws import ftpl_law
from ..play.pairs import Pair
from ..play.transcripts import Transcripts
from .protocol import LawAttack

#: The grid of a prefix sum that later ones extend, in noise scales: how far it reaches past the means, and points.
REACH, POINTS = 20.0, 121
#: Points of the integral over the shift that a softmax hides.
SHIFTS = 97


def _linear(pair: Pair) -> bool:
    return isinstance(pair.left, np.ndarray) and pair.rounds > 1


def _laplace_leader(learner: Learner, pair: Pair, view: View) -> bool:
    return (
        not view.channel
        and is_ours(learner)
        and isinstance(learner, Ftrl)
        and isinstance(learner.noise, Laplace)
        and learner.noise.scale > 0
        and _linear(pair)
    )


class SignRatio(LawAttack):
    """Exact log-likelihood ratio of Gaussian FTPL over the cube: every coordinate is a two-armed problem."""

    name = "sign sequences"
    wording = "the signs of every coordinate, with the noise integrated out"

    def __init__(self, learner: Learner, pair: Pair) -> None:
        assert isinstance(learner, Ftpl)
        super().__init__(learner, pair)
        # Against an arm of loss 0 with noise, the difference of two arms carries sqrt 2 times the deviation.
        sigma = deviation_of(learner.noise) / math.sqrt(2)
        twin = Ftpl(domain=Simplex(2), rounds=learner.rounds, noise=Gaussian(sigma))
        self.tables = []
        for i in range(learner.arms):
            losses = (np.asarray(world)[:, i] for world in (pair.left, pair.right))
            worlds = [np.stack([row, np.zeros(pair.rounds)], axis=1) for row in losses]
            if np.array_equal(worlds[0], worlds[1]):
                self.tables.append(np.zeros(2**pair.rounds))
                continue
            p, q = (ftpl_law.sequence_law(twin, Pair(*worlds), left) for left in (True, False))
            self.tables.append(np.log(p) - np.log(q))

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For Gaussian FTPL over the cube, at horizons whose sign sequences are enumerated."""
        return (
            not view.channel
            and is_ours(learner)
            and isinstance(learner, Ftpl)
            and isinstance(learner.domain, Cube)
            and deviation_of(learner.noise) > 0
            and _linear(pair)
            and pair.rounds <= min(ftpl_law.MAX_ROUNDS, learner.rounds)
        )

    def score(self, transcripts: Transcripts) -> Floats:
        """Look every coordinate's signs up: 1 is played where the noisy sum is negative, as the twin's arm 0."""
        powers = 2 ** np.arange(self.pair.rounds)[::-1]
        index = np.tensordot(powers, (transcripts.actions < 0).astype(np.int64), axes=1)
        total: Floats = sum(table[row] for table, row in zip(self.tables, index, strict=True))
        return rounded(total)


class Whitened(LawAttack):
    """The linear statistic `Delta^T Sigma^-1 y` of a Gaussian tree, y the noisy prefix sums or what shows of them.

    It is the log-likelihood ratio where actions reveal the prefix sums; with Laplace noise nearly so, as they are sums
    of some draws. A vertex shows a direction only, whose mean given the sum is nearly linear while the noise is large
    against the losses: the score is then the first-order one.
    """

    name = "whitened prefix sums"
    exact, calibrated = False, True
    learner: Ftpl | Ftrl

    def __init__(self, learner: Learner, pair: Pair) -> None:
        assert isinstance(learner, Ftpl | Ftrl)
        super().__init__(learner, pair)
        paths = [nodes_of(t) for t in range(1, pair.rounds)]
        covariance = np.array([[float(len(a & b)) for b in paths] for a in paths]).reshape(len(paths), len(paths))
        np.fill_diagonal(covariance, depth(learner.rounds))
        shifted = (np.arange(1, pair.rounds) > pair.t0).astype(float)
        self.weights = np.linalg.solve(covariance, shifted)
        self.delta = np.asarray(pair.left[pair.t0]) - np.asarray(pair.right[pair.t0])
        if isinstance(learner.domain, EntropySimplex):
            self.delta = self.delta - self.delta.mean()  # a softmax hides what is common to all coordinates
        variance = max(deviation_of(learner.noise) ** 2, 2 * scale_of(learner.noise) ** 2)  # of one draw
        self.weights /= variance if isinstance(learner, Ftrl) else 1.0
        sums = np.cumsum(np.asarray(pair.left) + np.asarray(pair.right), axis=0)[:-1] / 2
        self.middle = float(self.weights @ sums @ self.delta) if isinstance(learner, Ftrl) else 0.0

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For leaders with Gaussian or Laplace noise, and linear losses."""
        return (
            not view.channel
            and is_ours(learner)
            and isinstance(learner, Ftpl | Ftrl)
            and max(deviation_of(learner.noise), scale_of(learner.noise)) > 0
            and _linear(pair)
        )

    def score(self, transcripts: Transcripts) -> Floats:
        """Weigh the prefix sums, or minus the points, which lie against them."""
        actions = transcripts.actions
        learner = self.learner
        if actions.ndim == 2:  # arms are unit vectors
            along = self.delta[actions[1:]]
            along = self.delta.mean() - along
        else:
            seen = learner.invert(actions[1:]) if isinstance(learner, Ftrl) else -actions[1:]
            along = np.einsum("i,tir->tr", self.delta, seen)
        scores: Floats = rounded(self.weights @ along - self.middle)
        return scores


def upper_tail(x: Floats, draws: int) -> Floats:
    """Return the probability that the sum of `draws` standard Laplace variables exceeds x."""
    size = np.abs(x)
    terms = enumerate(laplace_sum_coefficients(draws)[::-1])  # coefficient of |x|^k
    tail: Floats = sum(c * math.factorial(k) * gammaincc(k + 1, size) for k, c in terms)
    return np.where(x < 0, 1 - tail, tail)


class CoordinateRatio(LawAttack):
    """Log-likelihood ratio of Laplace FTRL over the cube: coordinates apart, shared tree nodes integrated out.

    An action inside reveals its noisy prefix sum; a clipped coordinate only says on which side the sum lies.
    """

    name = "inverted coordinates"
    wording = "the noisy prefix sums that the coordinates reveal, or bound where they are clipped"
    learner: Ftrl

    def __init__(self, learner: Learner, pair: Pair) -> None:
        assert isinstance(learner, Ftrl)
        super().__init__(learner, pair)
        self.scale = scale_of(learner.noise)
        self.depth = depth(learner.rounds)
        self.t0, self.last = pair.t0, pair.rounds - 1
        self.worlds = [np.asarray(world) / self.scale for world in (pair.left, pair.right)]
        self.edge = 2.0 / (learner.eta * self.scale)

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For FTRL over the cube or an interval, with Laplace noise and linear losses."""
        domain = getattr(learner, "domain", None)
        return _laplace_leader(learner, pair, view) and (
            isinstance(domain, Cube) or (isinstance(domain, Ball) and domain.dim == 1)
        )

    def score(self, transcripts: Transcripts) -> Floats:
        """Sum the log ratios of the coordinates in which the worlds differ."""
        actions = transcripts.actions[1:]
        seen = self.learner.invert(actions) / self.scale
        cube = isinstance(self.learner.domain, Cube) or self.learner.arms == 1
        total = np.zeros(transcripts.runs)
        for i in range(self.learner.arms):
            if self.worlds[0][self.t0, i] == self.worlds[1][self.t0, i]:
                continue
            side = np.where(np.abs(actions[:, i]) >= 1, -np.sign(actions[:, i]), 0) if cube else 0 * actions[:, i]
            total += self._coordinate(seen[:, i], side, [world[:, i] for world in self.worlds])
        return rounded(total)

    def _coordinate(self, seen: Floats, side: Floats, worlds: list[Floats]) -> Floats:
        total = np.zeros(seen.shape[-1])
        for t in roots(self.last):
            if self.t0 < 2 * t:  # else neither this prefix nor one below holds the differing round
                left, right = (_Messages(self, seen, side, world).log_likelihood(t, np.zeros(1)) for world in worlds)
                with np.errstate(invalid="ignore"):
                    ratio = left - right
                total += np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return total


class _Messages(RunMessages):
    """The messages of one coordinate in one world, (points, runs)."""

    def __init__(self, ratio: CoordinateRatio, seen: Floats, side: Floats, world: Floats) -> None:
        self.ratio, self.inverted, self.side, self.world, self.last = ratio, seen, side, world, ratio.last

    def leaf(self, t: int, above: Floats) -> Floats:
        return self._likelihood(t, self._means(t, above), 1 + self.ratio.depth - t.bit_count())

    def grid_at(self, t: int) -> Floats:
        centre = float(self.world[:t].sum())
        return np.linspace(centre - REACH, centre + REACH, POINTS)

    def seen(self, t: int, grid: Floats) -> Floats:
        return self._likelihood(t, grid, self.ratio.depth - t.bit_count())

    def moved(self, t: int, above: Floats, grid: Floats, inside: Floats) -> Floats:
        kernel = laplace_sum_density(grid - self._means(t, above)[:, None], 1) * (grid[1] - grid[0])
        moved: Floats = kernel @ inside
        return moved

    def _means(self, t: int, above: Floats) -> Floats:
        means: Floats = above + self.world[parent(t) : t].sum()
        return means

    def _likelihood(self, t: int, means: Floats, draws: int) -> Floats:
        side = self.side[t - 1]
        likelihood = laplace_sum_density(self.inverted[t - 1] - means[:, None], draws)
        if np.any(side):
            clipped = np.flatnonzero(side)
            sign = side[clipped]
            tails = {s: upper_tail(self.ratio.edge - s * means, draws) for s in (1.0, -1.0)}
            likelihood[:, clipped] = np.where(sign > 0, tails[1.0][:, None], tails[-1.0][:, None])
        return likelihood


class PointRatio(CoordinateRatio):
    """The same over the ball: exact inside; a point on the boundary is taken for the shortest sum that leads there."""

    name = "inverted points"
    exact = False

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For FTRL over the ball, with Laplace noise and linear losses."""
        domain = getattr(learner, "domain", None)
        return _laplace_leader(learner, pair, view) and isinstance(domain, Ball) and domain.dim > 1


class ShiftedRatio(LawAttack):
    """Log-likelihood ratio of entropy FTRL over several experts, from the prefix sums at powers of two.

    A softmax hides one shift, common to all coordinates, over which the product of their densities is integrated.
    Powers of two are independent given the losses; what later prefixes tell of their nodes is left out.
    """

    name = "inverted prefix sums up to a shift"
    exact, calibrated = False, True
    learner: Ftrl

    def __init__(self, learner: Learner, pair: Pair) -> None:
        assert isinstance(learner, Ftrl)
        super().__init__(learner, pair)
        self.depth = depth(learner.rounds)
        self.scale = scale_of(learner.noise)
        self.sums = [np.cumsum(np.asarray(world), axis=0) / self.scale for world in (pair.left, pair.right)]
        self.powers = [1 << k for k in range(self.depth) if pair.t0 < 1 << k <= pair.rounds - 1]

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For entropy FTRL with Laplace noise over three experts or more."""
        domain = getattr(learner, "domain", None)
        return _laplace_leader(learner, pair, view) and isinstance(domain, EntropySimplex) and domain.dim > 2

    def score(self, transcripts: Transcripts) -> Floats:
        """Sum over powers of two."""
        total = np.zeros(transcripts.runs)
        for t in self.powers:
            y = self.learner.invert(transcripts.actions[t : t + 1])[0] / self.scale
            centre = np.median(y, axis=0)
            grid = np.linspace(-REACH / 2, REACH / 2, SHIFTS)[:, None] - centre
            left, right = (
                np.prod(
                    [laplace_sum_density(y[i] + grid - sums[t - 1, i], self.depth) for i in range(len(y))], axis=0
                ).sum(axis=0)
                for sums in self.sums
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                total += np.nan_to_num(np.log(left) - np.log(right), nan=0.0, posinf=0.0, neginf=0.0)
        return rounded(total)
