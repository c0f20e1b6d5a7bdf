"""On what the inputs of a learner's noise calls depend, so that a trace can take the largest cost over all paths.

Given the losses, an input of a noise call may depend on what was played and on what came out before. A learner says
by its method `paths` how far; where it says nothing, traces sample the paths, and say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .problems.losses import Family, Linear, Quadratic, Switch

#: What the noisy sums of a learner add up, by its attribute `summands`: a search for the worst losses rests on it.
Summands = Literal["losses", "gradients"]


@dataclass(frozen=True)
class Paths:
    """What decides the cost of a learner's noise on a pair of losses of one round.

    Attributes
    ----------
    reason : str
        In words, for what a bound assumes.
    choices : tuple
        The actions of the differing round to force, one after the other; none where any path costs the same.
    bound : tuple of two floats, optional
        Epsilon and mu squared of every path, where they are known in closed form.
    both : bool
        Whether the path depends on a direction of two values, both of which the sampled runs must have taken.
    """

    reason: str
    choices: tuple[object, ...] = ()
    bound: tuple[float, float] | None = None
    both: bool = False


CONSTANT = Paths("no input's difference depends on the path")


def by_action(*choices: object) -> Paths:
    """Return the paths where the action of the differing round decides, and may be any of these."""
    return Paths("the inputs' differences depend on the differing round's action alone; every one was forced", choices)


def by_arm(arms: int) -> Paths:
    """Return the paths where the arm of the differing round decides."""
    return by_action(*range(arms))


def of_action(*losses: object) -> bool:
    """Return whether each loss is a function of its round's action alone, in every run."""
    return all(
        isinstance(loss, np.ndarray | Family) or (isinstance(loss, Switch) and loss.lag == 0) for loss in losses
    )


def slope_between(left: object, right: object) -> float | None:
    """Return the norm of the slope of the difference of two losses; None where that is no affine function."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return float(np.linalg.norm(left - right))
    if isinstance(left, Linear) and isinstance(right, Linear):
        return float(np.linalg.norm(np.subtract(left.slope, right.slope)))
    if isinstance(left, Quadratic) and isinstance(right, Quadratic) and left.curvature == right.curvature:
        return float(left.curvature * np.linalg.norm(np.subtract(left.centre, right.centre)))
    return None


def if_linear(left: object, right: object) -> Paths | None:
    """Return constant paths for a learner that adds up loss vectors, if both losses are linear."""
    linear = slope_between(left, right) is not None and not isinstance(left, Quadratic)
    return CONSTANT if linear else None
