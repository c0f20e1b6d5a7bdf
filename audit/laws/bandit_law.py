"""What PrivateBandit's Gaussian release shows, in closed form, where its dimension is one."""

from __future__ import annotations

import math

import numpy as np

from ...learners.leaders.private_bandit import PrivateBandit
from ...mechanisms.draws import Floats
from ...mechanisms.measures.gaussian_dp import gaussian_delta
from ...mechanisms.noise import Gaussian
from ...mechanisms.numerics import bisect
from ...mechanisms.tree import nodes_holding
from ..play.pairs import Pair


def release_mus(learner: PrivateBandit, pair: Pair, updates: int) -> tuple[float, float] | None:
    """Return mu of Gaussian DP of the release, given each of the two directions of the differing round.

    A direction is drawn alike in both worlds, with probability 1/2 each, and is seen: the responses are released, the
    played points are actions, and their difference is the direction times zeta. Given it, the noisy sums are Gaussian,
    and their means differ by the batch's estimate alone: everything after it is a function of what was released
    before. The first batch plays around a fixed point, so only there are both values of the loss known beforehand.

    Returns
    -------
    tuple or None
        None for other noise, in more dimensions, and where a later batch differs.
    """
    noise = learner.noise
    if not isinstance(noise, Gaussian) or noise.sigma <= 0 or learner.arms != 1 or pair.t0 >= learner.batch:
        return None
    points = learner.template._vertex(1) + learner.zeta * np.array([[1.0, -1.0]])
    values = [_values(losses[pair.t0], points) for losses in (pair.left, pair.right)]
    nodes = len(nodes_holding(0, updates // learner.batch))
    scale = learner.arms / learner.zeta * math.sqrt(nodes) / noise.sigma
    up, down = (np.abs(values[0] - values[1]) * scale).tolist()
    return up, down


def _values(loss: object, points: Floats) -> Floats:
    value = getattr(loss, "value", None)
    return np.asarray(value(points) if value is not None else np.asarray(loss) @ points, dtype=np.float64)


def epsilon_of_either(mus: tuple[float, float], delta: float) -> float:
    """Return the exact epsilon where one of two mu-Gaussian releases is made, each half of the time, and seen which.

    What an event may exceed is then the mean of what it may in each.
    """
    if max(mus) == 0:
        return 0.0
    if delta == 0:
        return math.inf

    def above(epsilon: float) -> bool:
        return sum(gaussian_delta(mu, epsilon) for mu in mus if mu > 0) / 2 > delta

    if not above(0.0):
        return 0.0
    high = 1.0
    while above(high):
        high *= 2
    return bisect(above, 0.0, high)[1]
