"""Branches: on what a path's cost depends, as a target declares it, so that the maximum is taken over all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...learners.abilities import is_ours, owns
from ...learners.paths import CONSTANT, Paths
from ..play.pairs import Pair
from .costs import Cost


@dataclass(frozen=True)
class Branches:
    """What decides a path's cost.

    Attributes
    ----------
    how : {"maximised", "bounded", "sampled"}
        Whether the maximum over all paths is computed, bounded, or only sampled.
    reason : str
        In words, for what a bound rests on.
    choices : tuple
        The actions of the differing round to force, one after the other; none where any path costs the same.
    bound : Cost or None
        Of every path, (1,) each, where it is known in closed form.
    both : bool
        Whether the path depends on a direction of two values, both of which the sampled runs must have taken.
    """

    how: str
    reason: str
    choices: tuple[object, ...] = ()
    bound: Cost | None = None
    both: bool = False


SAMPLED = Branches("sampled", "the paths were sampled")


def branches(target: Any, pair: object) -> Branches:
    """Return on what a path's cost depends, for a learner or a mechanism on a pair.

    What a learner says in `paths` was read off its own update: it is taken from our own classes alone.
    """
    if not is_ours(target):
        return SAMPLED
    if getattr(target, "constant_inputs", False):
        return _declared(CONSTANT)
    if not isinstance(pair, Pair) or not owns(target, "paths"):
        return SAMPLED
    declared = target.paths(pair.left[pair.t0], pair.right[pair.t0], pair.t0)
    return SAMPLED if declared is None else _declared(declared)


def _declared(paths: Paths) -> Branches:
    if paths.bound is None:
        return Branches("maximised", paths.reason, paths.choices, both=paths.both)
    pure, mu_squared = (np.array([level]) for level in paths.bound)
    return Branches("bounded", paths.reason, bound=Cost(pure, mu_squared, np.zeros(1)))
