"""Likelihood ratios of leaders: what the actions tell of a tree's noisy prefix sums, coordinates each or together.

Noise is independent by coordinate, and so are the coordinates of an action over the cube: signs of Gaussian prefix
sums, or clipped Laplace ones. Elsewhere a Gaussian tree has a linear statistic, and powers of two are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import gammaincc

from ...mechanisms.draws import Floats
from ...mechanisms.noise import laplace_sum_coefficients, laplace_sum_density
from ...mechanisms.numerics import rounded
from ...mechanisms.tree import depth, nodes_of, parent, roots
from ...mechanisms.tree_messages import RunMessages
from ..laws import Neighbours, Score
from ..protocol import Actions
from .ftpl_law import sequence_laws
from .ftrl_law import PrefixLikelihood

#: The grid of a prefix sum that later ones extend, in noise scales: how far it reaches past the means, and points.
REACH, POINTS = 20.0, 121
#: Points of the integral over the shift that a softmax hides.
SHIFTS = 97

#: From actions (rounds, dim, runs) to the noisy prefix sums behind them.
Inversion = Callable[[Floats], Floats]


def prefix_ratio(pair: Neighbours, scale: float, horizon: int, invert: Inversion) -> Score:
    """Return the exact score of two-expert entropy FTRL: its actions inverted, shared tree nodes integrated out."""
    wording = "the noisy prefix sums that the actions reveal"
    return Score(
        "inverted prefix sums", partial(_PrefixRatio, pair, scale, horizon, invert), exact=True, wording=wording
    )


def sign_ratio(pair: Neighbours, deviation: float, horizon: int) -> Score:
    """Return the exact score of Gaussian FTPL over the cube: every coordinate is a two-armed problem."""
    wording = "the signs of every coordinate, with the noise integrated out"
    return Score("sign sequences", partial(_SignRatio, pair, deviation, horizon), exact=True, wording=wording)


def coordinate_ratio(pair: Neighbours, scale: float, horizon: int, invert: Inversion, *, edge: float | None) -> Score:
    """Return the score of Laplace FTRL over the cube, which is exact, or over the ball.

    Over the ball a point on the boundary is taken for the shortest sum that leads there.

    Parameters
    ----------
    edge : float or None
        The prefix sum, in noise scales, from which on a coordinate is clipped; None over the ball.
    """
    prepare = partial(_CoordinateRatio, pair, scale, horizon, invert, edge)
    if edge is None:
        return Score("inverted points", prepare)
    wording = "the noisy prefix sums that the coordinates reveal, or bound where they are clipped"
    return Score("inverted coordinates", prepare, exact=True, wording=wording)


def shifted_ratio(pair: Neighbours, scale: float, horizon: int, invert: Inversion) -> Score:
    """Return the score of entropy FTRL over several experts, from the prefix sums at powers of two.

    A softmax hides one shift, common to all coordinates, over which the product of their densities is integrated.
    Powers of two are independent given the losses; what later prefixes tell of their nodes is left out.
    """
    prepare = partial(_ShiftedRatio, pair, scale, horizon, invert)
    return Score("inverted prefix sums up to a shift", prepare, calibrated=True)


def whitened(
    pair: Neighbours,
    horizon: int,
    *,
    variance: float = 1.0,
    invert: Inversion | None = None,
    centred: bool = False,
) -> Score:
    """Return the linear statistic `Delta^T Sigma^-1 y` of a Gaussian tree, y the noisy prefix sums or their signs.

    It is the log-likelihood ratio where actions reveal the prefix sums; with Laplace noise nearly so, as they are sums
    of some draws. A vertex shows a direction only, whose mean given the sum is nearly linear while the noise is large
    against the losses: the score is then the first-order one.

    Parameters
    ----------
    variance : float
        Of one draw of noise, where actions are inverted.
    invert : callable, optional
        Where actions reveal the prefix sums.
    centred : bool
        Whether a softmax hides what is common to all coordinates.
    """
    prepare = partial(_Whitened, pair, horizon, variance, invert, centred)
    return Score("whitened prefix sums", prepare, calibrated=True)


class _PrefixRatio:
    def __init__(self, pair: Neighbours, scale: float, horizon: int, invert: Inversion) -> None:
        self.likelihood, self.invert = PrefixLikelihood(pair, scale, horizon), invert

    def __call__(self, actions: Actions) -> Floats:
        """Invert the actions of rounds 2 to T."""
        # invert fixes coordinate 0 to 0; the difference of the two prefix sums is minus coordinate 1.
        return rounded(self.likelihood.log_ratio(-self.invert(actions[1:])[:, 1]))


class _SignRatio:
    def __init__(self, pair: Neighbours, deviation: float, horizon: int) -> None:
        self.rounds = pair.rounds
        left, right = np.asarray(pair.left), np.asarray(pair.right)
        # Against an arm of loss 0 with noise, the difference of two arms carries sqrt 2 times the deviation.
        twin = deviation / math.sqrt(2)
        self.tables = []
        for i in range(left.shape[1]):
            worlds = [np.stack([losses[:, i], np.zeros(pair.rounds)], axis=1) for losses in (left, right)]
            if np.array_equal(worlds[0], worlds[1]):
                self.tables.append(np.zeros(2**pair.rounds))
                continue
            p, q = sequence_laws(worlds[0], worlds[1], twin, horizon)
            self.tables.append(np.log(p) - np.log(q))

    def __call__(self, actions: Actions) -> Floats:
        """Look every coordinate's signs up: 1 is played where the noisy sum is negative, as the twin's arm 0."""
        powers = 2 ** np.arange(self.rounds)[::-1]
        index = np.tensordot(powers, (actions < 0).astype(np.int64), axes=1)
        total: Floats = sum(table[row] for table, row in zip(self.tables, index, strict=True))
        return rounded(total)


class _Whitened:
    def __init__(
        self, pair: Neighbours, horizon: int, variance: float, invert: Inversion | None, centred: bool
    ) -> None:
        self.invert = invert
        paths = [nodes_of(t) for t in range(1, pair.rounds)]
        covariance = np.array([[float(len(a & b)) for b in paths] for a in paths]).reshape(len(paths), len(paths))
        np.fill_diagonal(covariance, depth(horizon))
        shifted = (np.arange(1, pair.rounds) > pair.t0).astype(float)
        left, right = np.asarray(pair.left), np.asarray(pair.right)
        self.delta = left[pair.t0] - right[pair.t0]
        if centred:
            self.delta = self.delta - self.delta.mean()
        self.weights = np.linalg.solve(covariance, shifted) / variance
        sums = np.cumsum(left + right, axis=0)[:-1] / 2
        self.middle = 0.0 if invert is None else float(self.weights @ sums @ self.delta)

    def __call__(self, actions: Actions) -> Floats:
        """Weigh the prefix sums, or minus the points, which lie against them."""
        if actions.ndim == 2:  # arms are unit vectors
            along = self.delta.mean() - self.delta[actions[1:]]
        else:
            seen = -actions[1:] if self.invert is None else self.invert(actions[1:])
            along = np.einsum("i,tir->tr", self.delta, seen)
        scores: Floats = rounded(self.weights @ along - self.middle)
        return scores


def upper_tail(x: Floats, draws: int) -> Floats:
    """Return the probability that the sum of `draws` standard Laplace variables exceeds x."""
    size = np.abs(x)
    terms = enumerate(laplace_sum_coefficients(draws)[::-1])  # coefficient of |x|^k
    tail: Floats = sum(c * math.factorial(k) * gammaincc(k + 1, size) for k, c in terms)
    return np.where(x < 0, 1 - tail, tail)


class _CoordinateRatio:
    """Coordinates apart, shared tree nodes integrated out.

    An action inside reveals its noisy prefix sum; a clipped coordinate only says on which side the sum lies.
    """

    def __init__(self, pair: Neighbours, scale: float, horizon: int, invert: Inversion, edge: float | None) -> None:
        self.scale, self.invert, self.edge = scale, invert, edge
        self.depth = depth(horizon)
        self.t0, self.last = pair.t0, pair.rounds - 1
        self.worlds = [np.asarray(losses) / scale for losses in (pair.left, pair.right)]

    def __call__(self, actions: Actions) -> Floats:
        """Sum the log ratios of the coordinates in which the inputs differ."""
        actions = actions[1:]
        seen = self.invert(actions) / self.scale
        total = np.zeros(actions.shape[-1])
        for i in range(actions.shape[1]):
            if self.worlds[0][self.t0, i] == self.worlds[1][self.t0, i]:
                continue
            clipped = np.abs(actions[:, i]) >= 1
            side = np.zeros(clipped.shape) if self.edge is None else np.where(clipped, -np.sign(actions[:, i]), 0)
            total += self._coordinate(seen[:, i], side, [losses[:, i] for losses in self.worlds])
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

    def __init__(self, ratio: _CoordinateRatio, seen: Floats, side: Floats, world: Floats) -> None:
        self.ratio, self.inverted, self.side, self.world, self.last = ratio, seen, side, world, ratio.last

    def leaf(self, t: int, parent_sums: Floats) -> Floats:
        return self._likelihood(t, self._means(t, parent_sums), 1 + self.ratio.depth - t.bit_count())

    def grid_at(self, t: int) -> Floats:
        centre = float(self.world[:t].sum())
        return np.linspace(centre - REACH, centre + REACH, POINTS)

    def seen(self, t: int, grid: Floats) -> Floats:
        return self._likelihood(t, grid, self.ratio.depth - t.bit_count())

    def moved(self, t: int, parent_sums: Floats, grid: Floats, likelihoods: Floats) -> Floats:
        kernel = laplace_sum_density(grid - self._means(t, parent_sums)[:, None], 1) * (grid[1] - grid[0])
        message: Floats = kernel @ likelihoods
        return message

    def _means(self, t: int, parent_sums: Floats) -> Floats:
        means: Floats = parent_sums + self.world[parent(t) : t].sum()
        return means

    def _likelihood(self, t: int, means: Floats, draws: int) -> Floats:
        side = self.side[t - 1]
        likelihood = laplace_sum_density(self.inverted[t - 1] - means[:, None], draws)
        edge = self.ratio.edge
        if edge is not None and np.any(side):
            clipped = np.flatnonzero(side)
            sign = side[clipped]
            tails = {s: upper_tail(edge - s * means, draws) for s in (1.0, -1.0)}
            likelihood[:, clipped] = np.where(sign > 0, tails[1.0][:, None], tails[-1.0][:, None])
        return likelihood


class _ShiftedRatio:
    def __init__(self, pair: Neighbours, scale: float, horizon: int, invert: Inversion) -> None:
        self.depth, self.scale, self.invert = depth(horizon), scale, invert
        self.sums = [np.cumsum(np.asarray(losses), axis=0) / scale for losses in (pair.left, pair.right)]
        self.powers = [1 << k for k in range(self.depth) if pair.t0 < 1 << k <= pair.rounds - 1]

    def __call__(self, actions: Actions) -> Floats:
        """Sum over powers of two."""
        total = np.zeros(actions.shape[-1])
        for t in self.powers:
            y = self.invert(actions[t : t + 1])[0] / self.scale
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
