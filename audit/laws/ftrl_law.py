"""The law of entropy FTRL's actions with two experts: noisy prefix sums of a tree, shared nodes integrated out.

With two experts an action reveals the difference of the two noisy prefix sums, whose every noise draw is the
difference of two Laplace draws. Prefix sums form a tree: `R_t = R_parent(t) + (losses since) + noise`, seen through
padding. Nodes at powers of two hang from 0 and are independent given the losses, so the likelihood is a product over
them; below each, messages pass on a grid.
"""

from __future__ import annotations

import math

import numpy as np

from ...learners.abilities import is_ours
from ...learners.leaders.ftrl import Ftrl
from ...learners.problems.domains import EntropySimplex
from ...learners.protocol import Learner
from ...mechanisms.draws import Floats
from ...mechanisms.noise import Laplace, scale_of
from ...mechanisms.tree import depth, parent
from ..play.pairs import Pair
from .privacy_loss import PrivacyLoss

#: The grid of the messages, in noise scales: half width and points.
REACH, POINTS = 24.0, 121
#: The probability that may lie beyond the grid of an exact privacy loss.
MISSING = 1e-6


def applies(learner: Learner, pair: Pair) -> bool:
    """Tell whether this is our entropy FTRL with Laplace noise over two experts and linear losses."""
    return (
        is_ours(learner)
        and isinstance(learner, Ftrl)
        and isinstance(learner.domain, EntropySimplex)
        and learner.arms == 2
        and isinstance(learner.noise, Laplace)
        and learner.noise.scale > 0
        and isinstance(pair.left, np.ndarray)
    )


def density(x: Floats, draws: int) -> Floats:
    """Return the density at x (in noise scales) of the sum of `draws` differences of two Laplace draws.

    The sum of n = 2 * draws standard Laplace variables: exp(-|x|) times a polynomial of degree n - 1.
    """
    n = 2 * draws
    size = np.abs(x)
    coefficients = [
        math.factorial(n - 1 + j) / (math.factorial(n - 1 - j) * math.factorial(j) * 2.0**j) for j in range(n)
    ]
    polynomial: Floats = np.polyval(coefficients, size).astype(float)  # coefficient j belongs to the power n - 1 - j
    polynomial /= math.factorial(n - 1) * 2.0**n
    result: Floats = polynomial * np.exp(-size)
    return result


class PrefixLikelihood:
    """Log-likelihood ratio of the noisy prefix sums of a two-expert tree, up to the grid's accuracy.

    Parameters
    ----------
    learner : Ftrl
        Entropy FTRL over two experts.
    pair : Pair
        The two worlds, linear losses.
    """

    def __init__(self, learner: Ftrl, pair: Pair, *, points: int = POINTS, reach: float = REACH) -> None:
        self.scale = scale_of(learner.noise)
        self.depth = depth(learner.rounds)
        self.last = pair.rounds - 1  # prefixes 1..T-1 reach the actions
        worlds = (np.asarray(pair.left), np.asarray(pair.right))
        self.cumulative = [np.concatenate([[0.0], np.cumsum((w[:, 0] - w[:, 1]) / self.scale)]) for w in worlds]
        self.t0 = pair.t0
        self.grid: Floats = np.linspace(-reach, reach, points)
        self.step = self.grid[1] - self.grid[0]

    def _added(self, t: int, world: int) -> float:
        """Return the losses of the node that ends at t, in noise scales."""
        sums = self.cumulative[world]
        return float(sums[t] - sums[parent(t)])

    def _children(self, t: int) -> list[int]:
        """Return the rounds whose prefix extends the one at t."""
        low = t & -t
        return [t + (1 << i) for i in range(low.bit_length() - 1) if t + (1 << i) <= self.last]

    def _message(self, t: int, world: int, y: Floats, centre: Floats) -> Floats:
        """Return the likelihood of what is seen at and below t, given the prefix at its parent on the grid.

        Parameters
        ----------
        y : array (rounds, runs)
            Row t - 1 holds the padded prefix difference after round t, in noise scales.
        centre : array (runs,)
            Where each run's grid lies.

        Returns
        -------
        array (points, runs)
        """
        padding = self.depth - t.bit_count()
        seen = y[t - 1] - centre
        children = self._children(t)
        if not children:  # nothing below: node and padding noise add up
            return density(seen - self.grid[:, None] - self._added(t, world), 1 + padding)
        if padding == 0:
            raise AssertionError("a prefix with children has a clear bit, hence padding")
        inside = self._inside(t, world, y, centre)
        added = self._added(t, world)
        # moved[i, j]: from a parent at grid[i] to a prefix at grid[j]
        moved = density(self.grid - self.grid[:, None] - added, 1) * self.step
        message: Floats = moved @ inside
        return message

    def _inside(self, t: int, world: int, y: Floats, centre: Floats) -> Floats:
        """Return the likelihood of what is seen at t and below, given the prefix at t on the grid."""
        seen = y[t - 1] - centre
        inside = density(seen - self.grid[:, None], self.depth - t.bit_count())
        for child in self._children(t):
            inside = inside * self._message(child, world, y, centre)
        return inside

    def log_ratio(self, y: Floats) -> Floats:
        """Return the log-likelihood ratio, left over right, of prefix differences y (rounds - 1, runs)."""
        y = y / self.scale
        total = np.zeros(y.shape[-1])
        t = 1
        while t <= self.last:
            if self.t0 < t or t <= self.t0 < 2 * t:
                total += self._power_ratio(t, y)
            t *= 2
        return total

    def _power_ratio(self, t: int, y: Floats) -> Floats:
        """Return the log ratio of what is seen at and below a power of two, whose parent is 0."""
        centre = y[t - 1]
        children = self._children(t)
        if not children:
            left, right = (density(centre - self._added(t, w), self.depth - t.bit_count() + 1) for w in (0, 1))
            return np.log(left) - np.log(right)
        same_below = self.t0 < t
        likelihoods = []
        inside = None
        for world in (0, 1):
            if inside is None or not same_below:
                inside = self._inside(t, world, y, centre)
            first = density(self.grid[:, None] + centre - self._added(t, world), 1)
            likelihoods.append(np.einsum("gr,gr->r", first, inside))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(likelihoods[0]) - np.log(likelihoods[1])
        known: Floats = np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return known


def supremum(learner: Ftrl, pair: Pair) -> float:
    """Return the largest privacy loss of the actions, which ever larger prefix sums approach.

    An action shows the difference of the two sums alone, so a loss that is common to both experts tells nothing.
    """
    gap = np.asarray(pair.left[pair.t0]) - np.asarray(pair.right[pair.t0])
    nodes = sum(parent(t) <= pair.t0 < t for t in range(1, pair.rounds))
    return nodes * abs(float(gap[0] - gap[1])) / scale_of(learner.noise)


def privacy_loss(learner: Ftrl, pair: Pair, *, fine: bool = True) -> PrivacyLoss | None:
    """Return the exact privacy loss of the actions up to T = 4, t0 = 1; None outside that.

    A coarse law (`fine=False`) is off by less than 1e-3 and serves to rank pairs.

    Prefixes 1 and 2 are independent; prefix 3 extends prefix 2, so the pair (2, 3) is integrated on a plane.
    """
    if not applies(learner, pair) or pair.rounds > 4 or pair.t0 != 0 or pair.rounds < 2:
        return None
    law = PrefixLikelihood(learner, pair)
    padding = [law.depth - t.bit_count() for t in range(4)]
    grid = np.linspace(-40.0, 40.0, 1601 if fine else 401)
    h = grid[1] - grid[0]
    line = np.linspace(-60.0, 60.0, 400_001 if fine else 40_001)
    step = 2e-4 if fine else 2e-3
    missing = MISSING if fine else 100 * MISSING  # a coarse sum is itself off
    loss: PrivacyLoss | None = None
    for t in (1, 2):
        if t >= pair.rounds:
            continue
        if t == 2 and pair.rounds == 4:
            planes = []
            for world in (0, 1):
                prior = density(grid - law._added(2, world), 1) * h
                seen = density(grid[:, None] - grid, padding[2])
                last = density(grid - grid[:, None] - law._added(3, world), 1 + padding[3])
                planes.append((seen * prior) @ last)
            cells = [plane.ravel() * h * h for plane in planes]
        else:
            width = line[1] - line[0]
            cells = [density(line - law._added(t, world), 1 + padding[t]) * width for world in (0, 1)]
        if min(cell.sum() for cell in cells) < 1 - missing:
            return None  # the sums lie beyond the grid, in units of so little noise
        kept = (cells[0] > 1e-300) & (cells[1] > 1e-300)
        part = PrivacyLoss.of_outcomes(cells[0][kept], cells[1][kept], step, resolution=10 * missing)
        loss = part if loss is None else loss.compose(part)
    return loss
