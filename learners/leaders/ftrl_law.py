"""The law of entropy FTRL's actions with two experts: noisy prefix sums of a tree, shared nodes integrated out.

With two experts an action reveals the difference of the two noisy prefix sums, whose every noise draw is the
difference of two Laplace draws, and which are seen through padding. The likelihood is a product over the powers of
two; below each, messages pass along the tree of sums (`tree_messages`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...mechanisms.draws import Floats
from ...mechanisms.noise import laplace_sum_density
from ...mechanisms.privacy_loss import PrivacyLoss
from ...mechanisms.tree import children, depth, nodes_holding, parent, roots
from ...mechanisms.tree_messages import RunMessages
from ..laws import Neighbours, NotEnumerableError

#: The grid of the messages, in noise scales: half width and points.
REACH, POINTS = 24.0, 121
#: What there is an exact law of.
COVERED = "FTRL is exact with entropy over two arms, up to 4 rounds, differing in round 1, unless noise is tiny"
#: The probability that may lie beyond the grid of an exact privacy loss.
MISSING = 1e-6


def density(x: Floats, draws: int) -> Floats:
    """Return the density at x (in noise scales) of the sum of `draws` differences of two Laplace draws."""
    return laplace_sum_density(x, 2 * draws)


class PrefixLikelihood:
    """Log-likelihood ratio of the noisy prefix sums of a two-expert tree, up to the grid's accuracy.

    Parameters
    ----------
    pair : Neighbours
        Linear losses of two experts.
    scale : float
        Of one node's Laplace noise.
    horizon : int
        T of the padded tree.
    """

    def __init__(
        self, pair: Neighbours, scale: float, horizon: int, *, points: int = POINTS, reach: float = REACH
    ) -> None:
        self.scale = scale
        self.depth = depth(horizon)
        self.last = pair.rounds - 1  # prefixes 1..T-1 reach the actions
        worlds = (np.asarray(pair.left), np.asarray(pair.right))
        self.cumulative = [np.concatenate([[0.0], np.cumsum((w[:, 0] - w[:, 1]) / self.scale)]) for w in worlds]
        self.t0 = pair.t0
        self.grid: Floats = np.linspace(-reach, reach, points)
        self.step = self.grid[1] - self.grid[0]

    def log_ratio(self, y: Floats) -> Floats:
        """Return the log-likelihood ratio, left over right, of prefix differences y (rounds - 1, runs)."""
        y = y / self.scale
        total = np.zeros(y.shape[-1])
        for t in roots(self.last):
            if self.t0 < 2 * t:  # else neither this prefix nor one below holds the differing round
                total += self._root_ratio(t, y)
        return total

    def added(self, t: int, world: int) -> float:
        """Return the losses of the node that ends at t, in noise scales."""
        sums = self.cumulative[world]
        return float(sums[t] - sums[parent(t)])

    def _root_ratio(self, t: int, y: Floats) -> Floats:
        """Return the log ratio of what is seen at and below a power of two, whose parent is 0."""
        centre = y[t - 1]
        if not children(t, self.last):
            left, right = (density(centre - self.added(t, w), self.depth - t.bit_count() + 1) for w in (0, 1))
            return np.log(left) - np.log(right)
        same_below = self.t0 < t
        likelihoods = []
        likelihood = None
        for world in (0, 1):
            if likelihood is None or not same_below:
                messages = _Messages(self, world, y, centre)
                likelihood = messages.inside(t, self.grid)
            first = density(self.grid[:, None] + centre - self.added(t, world), 1)
            likelihoods.append(messages.log(np.einsum("gr,gr->r", first, likelihood)))
        with np.errstate(invalid="ignore"):
            ratio = likelihoods[0] - likelihoods[1]
        defined_ratio: Floats = np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return defined_ratio


class _Messages(RunMessages):
    """The messages of one world, (points, runs), on grids that lie around a centre of each run.

    Parameters
    ----------
    y : array (rounds, runs)
        Row t - 1 holds the padded prefix difference after round t, in noise scales.
    centre : array (runs,)
    """

    def __init__(self, law: PrefixLikelihood, world: int, y: Floats, centre: Floats) -> None:
        self.law, self.world, self.y, self.centre, self.last = law, world, y, centre, law.last

    def leaf(self, t: int, parent_sums: Floats) -> Floats:
        seen = self.y[t - 1] - self.centre
        return density(seen - parent_sums[:, None] - self.law.added(t, self.world), 1 + self.law.depth - t.bit_count())

    def grid_at(self, t: int) -> Floats:
        return self.law.grid

    def seen(self, t: int, grid: Floats) -> Floats:
        # A prefix with children has a clear bit, hence padding.
        return density(self.y[t - 1] - self.centre - grid[:, None], self.law.depth - t.bit_count())

    def moved(self, t: int, parent_sums: Floats, grid: Floats, likelihoods: Floats) -> Floats:
        added = self.law.added(t, self.world)
        message: Floats = density(grid - parent_sums[:, None] - added, 1) * self.law.step @ likelihoods
        return message


def supremum(pair: Neighbours, scale: float) -> float:
    """Return the largest privacy loss of the actions, which ever larger prefix sums approach.

    An action shows the difference of the two sums alone, so a loss that is common to both experts tells nothing.
    """
    gap = np.asarray(pair.left[pair.t0]) - np.asarray(pair.right[pair.t0])
    nodes = len(nodes_holding(pair.t0, pair.rounds - 1))
    return nodes * abs(float(gap[0] - gap[1])) / scale


def privacy_loss(pair: Neighbours, scale: float, horizon: int, *, fine: bool = True) -> PrivacyLoss:
    """Return the exact privacy loss of the actions up to T = 4, t0 = 1.

    A coarse law (`fine=False`) is off by less than 1e-3 and serves to rank pairs.

    Prefixes 1 and 2 are independent; prefix 3 extends prefix 2, so the pair (2, 3) is integrated on a plane.

    Raises
    ------
    NotEnumerableError
        Outside that, and where noise is so little that the sums leave the grid.
    """
    if pair.rounds > 4 or pair.t0 != 0 or pair.rounds < 2:
        raise NotEnumerableError(COVERED)
    law = PrefixLikelihood(pair, scale, horizon)
    padding = [law.depth - t.bit_count() for t in range(4)]
    grid = np.linspace(-40.0, 40.0, 1601 if fine else 401)
    h = grid[1] - grid[0]
    line = np.linspace(-60.0, 60.0, 400_001 if fine else 40_001)
    step = 2e-4 if fine else 2e-3
    missing = MISSING if fine else 100 * MISSING  # a coarse sum is itself off
    parts = []
    for t in (1, 2):
        if t >= pair.rounds:
            continue
        if t == 2 and pair.rounds == 4:
            planes = []
            for world in (0, 1):
                prior = density(grid - law.added(2, world), 1) * h
                seen = density(grid[:, None] - grid, padding[2])
                last = density(grid - grid[:, None] - law.added(3, world), 1 + padding[3])
                planes.append((seen * prior) @ last)
            cells = [plane.ravel() * h * h for plane in planes]
        else:
            width = line[1] - line[0]
            cells = [density(line - law.added(t, world), 1 + padding[t]) * width for world in (0, 1)]
        if min(cell.sum() for cell in cells) < 1 - missing:
            raise NotEnumerableError(COVERED)  # the sums lie beyond the grid, in units of so little noise
        positive = (cells[0] > 1e-300) & (cells[1] > 1e-300)
        parts.append(PrivacyLoss.of_outcomes(cells[0][positive], cells[1][positive], step, resolution=10 * missing))
    return replace(PrivacyLoss.of_parts(parts), supremum=supremum(pair, scale))
