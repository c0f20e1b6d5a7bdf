"""Branches: on what the differences of a learner's noisy inputs depend, so that their maximum is taken over all of it.

Given the losses, an input of a noisy call may depend on what was played and on what came out before. For the learners
here it is known how far (each line of `branches` has its reason); for any other the paths are sampled, and said to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...learners.abilities import is_ours
from ...learners.bandits.exp2 import Exp2
from ...learners.bandits.exp4 import BatchedExp4
from ...learners.conversions.batched import BatchedLaplace
from ...learners.conversions.expert_advice import ExpertAdvice
from ...learners.conversions.reduction import BanditReduction, GaussianReduction
from ...learners.leaders.ftpl import Ftpl
from ...learners.leaders.ftrl import Ftrl
from ...learners.leaders.pftal import BanditPftal, Pftal
from ...learners.leaders.private_bandit import NoisyOco, PrivateBandit
from ...learners.problems.losses import Family, Linear, Quadratic, Switch
from ...learners.protocol import Learner
from ...mechanisms.discrete import DiscreteLaplace
from ...mechanisms.noise import Gaussian, L2Laplace, Laplace
from ...mechanisms.one_shot.classic import OneShot
from ...mechanisms.one_shot.concentrated import AnalyticGaussian, Concentrated
from ...mechanisms.one_shot.randomised_response import OneTimeRappor
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


#: The learners whose updates were read for what follows: a subclass may have an update of its own.
_READ: tuple[type, ...] = (
    *(ExpertAdvice, Ftrl, Ftpl, NoisyOco, Pftal, BatchedLaplace, BanditReduction, GaussianReduction, BatchedExp4),
    *(BanditPftal, PrivateBandit),
)
SAMPLED = Branches("sampled", "the paths were sampled")
CONSTANT = Branches("maximised", "no input's difference depends on the path")
BY_ACTION = "the inputs' differences depend on the differing round's action alone; every one was forced"


def branches(target: object, pair: object) -> Branches:
    """Return on what a path's cost depends, for a learner or a mechanism on a pair."""
    if isinstance(target, OneShot | OneTimeRappor | DiscreteLaplace | Concentrated | AnalyticGaussian):
        # Inputs are functions of the data: no output enters one.
        return CONSTANT if is_ours(target) else SAMPLED
    if not isinstance(pair, Pair) or type(target) not in _READ or not is_ours(target):
        return SAMPLED
    losses = pair.left[pair.t0], pair.right[pair.t0]
    linear = _gap(*losses) is not None and not any(isinstance(loss, Quadratic) for loss in losses)
    fixed = all(map(_of_action, losses))
    if isinstance(target, ExpertAdvice):  # the loss of the action is fed, whichever expert was followed
        inner, arms = target.inner, hasattr(getattr(target.inner, "inner", None), "probabilities")
        by_action = type(inner) is BatchedLaplace or (type(inner) in (BanditReduction, GaussianReduction) and arms)
        return _every_arm(target) if by_action and fixed else SAMPLED
    if isinstance(target, Ftrl | Ftpl | NoisyOco):  # a node is a sum of loss vectors
        return CONSTANT if linear else SAMPLED
    if isinstance(target, Pftal):  # a node is a sum of gradients at points that both worlds share
        return CONSTANT if _gap(*losses) is not None else SAMPLED
    if isinstance(target, BatchedLaplace):  # a batch mean moves by the loss of the arm that was played
        return _every_arm(target) if fixed else SAMPLED
    if isinstance(target, BanditReduction | GaussianReduction):
        return _reduction(target, losses) if fixed else SAMPLED
    if isinstance(target, BatchedExp4):  # within the first batch an arm's probability is no function of the past
        return _every_arm(target) if fixed and pair.t0 < target.tau else SAMPLED
    if isinstance(target, BanditPftal | PrivateBandit):
        return _one_point(target, pair)
    return SAMPLED


def _every_arm(learner: Learner) -> Branches:
    return Branches("maximised", BY_ACTION, tuple(range(learner.arms)))


def _of_action(loss: object) -> bool:
    """Tell whether a loss is a function of its round's action alone, in every run."""
    return isinstance(loss, np.ndarray | Family) or (isinstance(loss, Switch) and loss.lag == 0)


def _reduction(learner: BanditReduction | GaussianReduction, losses: tuple[object, object]) -> Branches:
    """Return the branches of <l + Z, x>: by the arm, by the point of a finite set, or bounded by Hölder's inequality.

    At a point the cost is |<d, x>| / (b ||x||_inf) <= ||d||_1 / b, or |<d, x>| / (sigma ||x||_2) <= ||d||_2 / sigma.
    """
    inner = learner.inner
    if isinstance(inner, Exp2):
        return Branches("maximised", BY_ACTION, tuple(inner.points.T))
    if hasattr(inner, "probabilities") or not hasattr(inner, "domain"):  # arms
        return _every_arm(learner)
    left, right = losses
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        return SAMPLED
    d, zero = left - right, np.zeros(1)
    if isinstance(learner.noise, Laplace):
        bound = Cost(np.array([np.abs(d).sum() / learner.noise.scale]), zero, zero)
    else:
        assert isinstance(learner.noise, Gaussian)
        bound = Cost(zero, np.array([np.square(d).sum() / learner.noise.sigma**2]), zero)
    return Branches("bounded", "points are bounded by Hölder's inequality", bound=bound)


def _one_point(learner: BanditPftal | PrivateBandit, pair: Pair) -> Branches:
    """Return the branches of (n / zeta) f(x) u: constant where f - f' is, by u alone where x's centre is known."""
    left, right = pair.left[pair.t0], pair.right[pair.t0]
    euclidean = isinstance(learner.noise, Gaussian | L2Laplace) or learner.arms == 1
    if euclidean and _gap(left, right) == 0:  # |f - f'| is the same everywhere, and |u| = 1
        return CONSTANT
    first = pair.t0 < learner.batch if isinstance(learner, PrivateBandit) else pair.t0 == 0
    if learner.arms == 1 and first and _gap(left, right) is not None:
        return Branches("maximised", "the differing round's point takes two values; both were played", both=True)
    return SAMPLED


def _gap(left: object, right: object) -> float | None:
    """Return the norm of the slope of f - f', two losses; None where they differ by no affine function."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return float(np.linalg.norm(left - right))
    if isinstance(left, Linear) and isinstance(right, Linear):
        return float(np.linalg.norm(np.subtract(left.slope, right.slope)))
    if isinstance(left, Quadratic) and isinstance(right, Quadratic) and left.curvature == right.curvature:
        return float(left.curvature * np.linalg.norm(np.subtract(left.centre, right.centre)))
    return None
