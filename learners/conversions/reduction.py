"""The bandit reduction of Agarwal & Singh: feed a non-private bandit learner noisy losses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import (
    Gaussian,
    Laplace,
    Projected,
    deviation_of,
    laplace_sum_coefficients,
    scale_of,
)
from ...mechanisms.parameters import check_positive
from ..checks import check_epsilon
from ..next_arm import next_arm
from ..paths import Paths, by_action, by_arm, of_action
from ..protocol import Actions, FeedbackKind, Learner, State

#: Of two scales, the smaller over the larger: beyond it they are taken for equal.
NEARLY_EQUAL = 1 - 1e-6


@dataclass
class ReductionState:
    """The inner learner's state and the last noisy loss it was fed, (runs,)."""

    inner: State
    fed: Floats


@dataclass(frozen=True, kw_only=True)
class _Reduction:
    """Feed the inner learner `<l_t, x_t> + <Z_t, x_t>`, Z_t with independent entries of the law `noise`."""

    inner: Learner = field(kw_only=False)
    feedback: FeedbackKind = "bandit"
    batch: int = 1

    @property
    def arms(self) -> int:
        """The length of a loss vector."""
        return self.inner.arms

    if TYPE_CHECKING:

        @property
        def noise(self) -> Laplace | Gaussian:
            """The law of one entry of Z_t."""

    def start(self, runs: int, draws: Draws) -> ReductionState:
        """Return the inner learner's fresh state."""
        return ReductionState(self.inner.start(runs, draws), np.zeros(runs))

    def act(self, state: ReductionState, draws: Draws) -> Actions:
        """Play what the inner learner plays."""
        return self.inner.act(state.inner, draws)

    def update(self, state: ReductionState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Add noise to the played action's loss and pass it on."""
        if actions.ndim == 1:  # an arm is a unit vector: <Z, e_i> is one draw
            state.fed = draws.noise(self.noise, actions.shape, feedback, "loss")
        else:
            law = Projected(self.noise, actions)
            state.fed = draws.noise(law, feedback.shape, feedback, "loss at a point")
        state.fed += feedback
        self.inner.update(state.inner, actions, state.fed, draws)

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what <l + Z, x> depends: the arm, or the point of a finite set; else it is only bounded.

        By Hölder's inequality the cost at a point is |<d, x>| / (b ||x||_inf) <= ||d||_1 / b, or
        |<d, x>| / (sigma ||x||_2) <= ||d||_2 / sigma.
        """
        if not of_action(left, right):
            return None
        points = getattr(self.inner, "points", None)
        if points is not None:
            return by_action(*points.T)
        if hasattr(self.inner, "probabilities") or not hasattr(self.inner, "domain"):  # arms
            return by_arm(self.arms)
        if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
            return None
        d = left - right
        laplace = isinstance(self.noise, Laplace)
        pure = float(np.abs(d).sum() / scale_of(self.noise)) if laplace else 0.0
        mu_squared = 0.0 if laplace else float(np.square(d).sum() / deviation_of(self.noise) ** 2)
        return Paths("points are bounded by Hölder's inequality", bound=(pure, mu_squared))

    def next_arm(self, state: ReductionState) -> Floats | None:
        """Return what the inner learner says of its next arm, (arms, runs)."""
        return next_arm(self.inner, state.inner)

    def release(self, state: ReductionState) -> Floats:
        """Return the noisy loss, (runs,)."""
        return state.fed

    def release_means(self, actions: Actions, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the losses of the played actions, (releases, runs)."""
        return np.stack([np.broadcast_to(f, releases.shape[1:]) for f in feedback[: len(releases)]])


@dataclass(frozen=True, kw_only=True)
class BanditReduction(_Reduction):
    """Feed the inner learner `<l_t, x_t> + <Z_t, x_t>`, Z_t with independent Laplace(sensitivity / epsilon) entries.

    Agarwal & Singh 2017, Algorithm 4.

    **Claim** (Lemma 4.2): epsilon-DP for every inner learner, one round's loss replaced. Published with
    `sensitivity = B >= max |<l, x>| / ||x||_inf`; what replace-one needs is the *difference* of two losses, 2B on
    symmetric losses. The noisy losses with the actions are the release.

    Parameters
    ----------
    inner : Learner
        A bandit learner, over arms or over points.
    epsilon : float
        In nats, positive; inf for no noise.
    sensitivity : float
        B as published; the diameter of the set of losses of an action for a correct claim.
    """

    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_positive("sensitivity", self.sensitivity)

    @property
    def noise(self) -> Laplace:
        """The law of one entry of Z_t."""
        return Laplace(0.0 if math.isinf(self.epsilon) else self.sensitivity / self.epsilon)

    def release_log_density(self, noise: Floats, actions: Actions) -> Floats:
        """Return the log density of the noise in the releases, up to a constant: (runs,).

        At a point x the noise <Z, x> is a sum of Laplace variables of scales |x_i| * sensitivity / epsilon. Exact at
        arms, in up to two dimensions, and at sign vectors; elsewhere a Laplace law of the largest scale, which decides
        the tails and so the privacy loss, stands in.
        """
        if actions.ndim == 2:
            total: Floats = -np.abs(noise / self.noise.scale).sum(axis=0)
            return total
        return sum(
            (_sum_log_density(z / self.noise.scale, np.abs(x)) for z, x in zip(noise, actions, strict=False)),
            start=np.zeros(noise.shape[-1]),
        )


@dataclass(frozen=True, kw_only=True)
class GaussianReduction(_Reduction):
    """Feed the inner learner `<l_t, x_t> + <Z_t, x_t>`, Z_t with independent N(0, sigma^2) entries.

    The (epsilon, delta)-private reduction of the first version of Agarwal & Singh 2017 (arXiv:1701.07953v1), of which
    our texts have the abstract, the pseudocode's outline and the facts on Gaussian vectors in its Appendix B.

    **Claim** ((epsilon, delta)-DP, one round's loss replaced): <Z, x> has the standard deviation sigma ||x||_2, so a
    round is mu-Gaussian DP with mu = max |<l - l', x>| / (sigma ||x||_2). The noisy losses with the actions are the
    release.

    Parameters
    ----------
    inner : Learner
        A bandit learner, over arms or over points.
    noise : Gaussian
        The law of one entry of Z_t.
    """

    noise: Gaussian

    def release_log_density(self, noise: Floats, actions: Actions) -> Floats:
        """Return the log density of the noise in the releases, up to a constant: (runs,)."""
        size = 1.0 if actions.ndim == 2 else np.square(actions[: len(noise)]).sum(axis=1)
        squares = np.square(noise / self.noise.sigma) / np.maximum(size, 1e-300)
        total: Floats = -0.5 * squares.sum(axis=0)
        return total


def _sum_log_density(z: Floats, scales: Floats) -> Floats:
    """Return the log density at z, (runs,), of a sum of Laplace variables of the given scales, (dim, runs).

    Up to a constant of the run. Exact for one or two scales, and for equal ones; else that of the largest scale alone.
    """
    largest = np.maximum(scales.max(axis=0), 1e-300)
    size, dim = np.abs(z) / largest, len(scales)
    factor: Floats = np.zeros_like(size)
    if dim == 2:  # e^-s - r e^(-s / r) for scales 1 and r; so near 1 it has become 1 + s
        r = np.clip(scales.min(axis=0) / largest, 1e-300, NEARLY_EQUAL)
        factor = np.log(-np.expm1(np.log(r) - size * (1 / r - 1)))
    elif dim > 1 and (scales >= NEARLY_EQUAL * largest).all():
        factor = np.log(np.polyval(laplace_sum_coefficients(dim), size))
    density: Floats = factor - size
    return density
