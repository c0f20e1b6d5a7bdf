"""The best fixed action in hindsight, and how large or small the total loss of a run can be."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from ...errors import hinted
from ...learners.abilities import inward
from ...learners.blame import name_of
from ...learners.problems.advice import Advice
from ...learners.problems.domains import LinearMinimiser
from ...learners.problems.losses import feedback
from ...learners.protocol import Learner
from ...mechanisms.draws import Floats
from ..play.pairs import World


@runtime_checkable
class InBall(LinearMinimiser, Protocol):
    """Such a domain inside a ball around 0."""

    @property
    def outer_radius(self) -> float:
        """The ball's radius."""


@runtime_checkable
class Bounded(Protocol):
    """A convex loss whose values on a ball are bounded."""

    def bound(self, radius: float) -> float:
        """Return the largest |f| on the ball of this radius around 0."""


#: Steps of the search for the best fixed point under convex losses.
_STEPS = 200


def domain_of(learner: object) -> LinearMinimiser | None:
    """Return the first domain with a linear minimiser on the way from a wrapper to its inner learner."""
    for layer in inward(learner):
        for domain in (getattr(layer, "domain", None), getattr(layer, "oracle", None)):
            if isinstance(domain, LinearMinimiser):
                return domain
    return None


def _minimisers(domain: LinearMinimiser, linear: Floats) -> Floats:
    """Return the domain's points with the least <linear, x>, (dim, runs)."""
    points = np.asarray(domain.minimise(linear))
    return points if points.ndim == 2 else np.eye(linear.shape[0])[:, points]  # arms stand for unit vectors


def total_bounds(learner: Learner, losses: World, *, points: bool) -> tuple[float, float] | None:
    """Return bounds on the total loss of a run; None where the points may leave the domain or nothing is known."""
    # A learner that smooths its points plays so far outside its domain.
    reach = getattr(learner, "zeta", None) if points else None
    if points and hasattr(learner, "oracle") and reach is None:
        return None
    domain = domain_of(learner) if points else None
    if all(isinstance(loss, np.ndarray) for loss in losses):
        table = np.asarray(losses)
        overshoot = (reach or 0.0) * float(np.sqrt(np.square(table).sum(axis=1)).sum())
        if domain is None:
            return float(table.min(axis=1).sum()), float(table.max(axis=1).sum())
        low, high = (float((sign * table.T * _minimisers(domain, sign * table.T)).sum()) for sign in (1.0, -1.0))
        return low - overshoot, overshoot - high
    kinds = {type(loss): loss for loss in losses}  # few: the question is slow for each of many rounds
    if isinstance(domain, InBall) and all(isinstance(loss, Bounded) for loss in kinds.values()):
        max_total = float(sum(cast(Bounded, loss).bound(domain.outer_radius + (reach or 0.0)) for loss in losses))
        return -max_total, max_total
    return None


def best_fixed(learner: Learner, losses: World, *, points: bool = True) -> tuple[float, float]:
    """Return the total loss of the best fixed action, and how far above the least it may be.

    What plays arms is compared with arms, or with experts, whatever it has inside.
    """
    domain = domain_of(learner) if points else None
    domain = getattr(domain, "shrunk_from", domain)  # regret is against the best point of the whole one
    if all(isinstance(loss, np.ndarray) for loss in losses):
        table = np.asarray(losses)
        parts = (getattr(part, "advice", None) for part in inward(learner))
        advice = next((part for part in parts if isinstance(part, Advice)), None)
        if advice is not None:
            return float(np.sum([advice.at(t) @ loss for t, loss in enumerate(table)], axis=0).min()), 0.0
        total = table.sum(axis=0)[:, None]
        return float(total.min() if domain is None else (total * _minimisers(domain, total)).sum()), 0.0
    if domain is None:
        raise hinted(
            ValueError(f"{name_of(learner)} has no domain to minimise convex losses over"), "give a comparator"
        )
    return best_fixed_point(domain, losses, learner.arms)


def best_fixed_point(domain: LinearMinimiser, losses: World, dim: int) -> tuple[float, float]:
    """Minimise a sum of convex losses by conditional gradient with exact line search."""
    from scipy.optimize import minimize_scalar

    multiplicity: dict[Any, int] = {}
    for loss in losses:
        key = tuple(loss) if isinstance(loss, np.ndarray) else loss
        multiplicity[key] = multiplicity.get(key, 0) + 1
    terms = [(np.array(k) if isinstance(k, tuple) else k, times) for k, times in multiplicity.items()]

    def value(x: Floats) -> float:
        return sum(times * float(np.squeeze(feedback(loss, x, "bandit"))) for loss, times in terms)

    def gradient(x: Floats) -> Floats:
        return sum((times * feedback(loss, x, "full") for loss, times in terms), start=np.zeros((dim, 1)))

    x = _minimisers(domain, gradient(np.zeros((dim, 1))))
    best, floor = value(x), -math.inf
    for _ in range(_STEPS):
        slope = gradient(x)
        step = _minimisers(domain, slope) - x
        floor = max(floor, value(x) + float((slope * step).sum()))  # convexity: nothing in the domain lies below
        if best - floor <= 1e-9 * max(1.0, abs(best)):
            break
        along = partial(lambda a, x, step: value(x + a * step), x=x, step=step)
        x = x + float(minimize_scalar(along, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x) * step
        best = min(best, value(x))
    return best, max(0.0, best - floor)
