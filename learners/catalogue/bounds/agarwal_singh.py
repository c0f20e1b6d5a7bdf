"""Agarwal & Singh 2017: the norms of the loss sets, and the regret bounds of the catalogue's entries."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import scipy  # its parts load when first used
from scipy.special import comb, gammaincc

from ....mechanisms.noise import deviation_of, scale_of
from ....mechanisms.tree import depth
from ...conversions.reduction import BanditReduction
from ...entry import Setting
from ...leaders.ftpl import Ftpl
from ...leaders.ftrl import Ftrl
from ...problems.domains import Cube

# The loss sets' norms. Every diameter is the norm times `setting.range`: 1 on [0, 1], 2 on symmetric sets.


def l1_norm(setting: Setting) -> float:
    """Return ||Y||_1, the largest L1 norm of a loss."""
    root = math.sqrt(setting.arms)
    return {"l1-ball": 1.0, "l2-ball": root, "lipschitz": root}.get(setting.losses, float(setting.arms))


def l2_norm(setting: Setting) -> float:
    """Return ||Y||_2, the largest L2 norm of a loss."""
    return 1.0 if setting.losses in ("l1-ball", "l2-ball", "lipschitz") else math.sqrt(setting.arms)


def expected_size(draws: int) -> float:
    """Return E|S| of the sum S of `draws` standard Laplace variables: 2 n C(2n, n) / 4^n."""
    return 2 * draws * float(comb(2 * draws, draws)) / 4.0**draws


@cache
def expected_range(dim: int, draws: int) -> float:
    """Return E[max Z - min Z] of `dim` independent sums of `draws` standard Laplace variables.

    The upper tail of a sum is a mixture of those of Gamma(n - k), k < n, with weights C(n - 1 + k, k) / 2^(n + k).
    """
    if dim == 1 or draws == 0:
        return 0.0
    weights = [float(comb(draws - 1 + k, k)) / 2.0 ** (draws + k) for k in range(draws)]
    shapes = np.arange(draws, 0, -1)

    def excess(x: float) -> float:
        tail: float = sum(w * of_one for w, of_one in zip(weights, gammaincc(shapes, x).tolist(), strict=True))
        return 1 - (1 - tail) ** dim - tail**dim  # P(max > x) - P(max < -x)

    return 2 * float(scipy.integrate.quad(excess, 0, math.inf, limit=200)[0])


def experts_bound(setting: Setting, learner: Ftrl) -> float:
    """Return ln N / eta + eta T / 2 + E[max Z - min Z], sqrt(2 T ln N) + E[...] at the default eta.

    Negative entropy is 1-strongly convex in the L1 norm; the noise Z of a prefix, the same in law for all, is paid
    once (Theorem 3.4 with the constant that its proof supports).
    """
    scale = scale_of(learner.noise)
    noise = scale * expected_range(setting.arms, depth(setting.rounds))
    return math.log(setting.arms) / learner.eta + learner.eta * setting.rounds / 2 + noise


def ball_bound(setting: Setting, learner: Ftrl) -> float:
    """Return 1 / eta + eta T ||Y||_2^2 / 4 + 2 sqrt(E ||Z||_2^2), as in `experts_bound`; R is 2-strongly convex."""
    scale = scale_of(learner.noise)
    noise = 2 * scale * math.sqrt(2 * setting.arms * depth(setting.rounds))
    return 1 / learner.eta + learner.eta * setting.rounds * l2_norm(setting) ** 2 / 4 + noise


def cube_bound(setting: Setting, learner: Ftrl) -> float:
    """Return N / eta + eta T ||Y||_2^2 / 4 + 2 E ||Z||_1, as in `ball_bound`."""
    scale = scale_of(learner.noise)
    noise = 2 * scale * setting.arms * expected_size(depth(setting.rounds))
    return setting.arms / learner.eta + learner.eta * setting.rounds * l2_norm(setting) ** 2 / 4 + noise


def perturbed_bound(setting: Setting, learner: Ftpl) -> float:
    """Return s sqrt(N) ||X||_2 + T ||X||_2 ||Y||_2^2 / (2 s), s = sigma sqrt(ceil(log2 T)) (Abernethy et al. 2014)."""
    deviation = deviation_of(learner.noise) * math.sqrt(depth(setting.rounds))
    if deviation == 0:
        return math.inf
    size = math.sqrt(setting.arms) if isinstance(learner.domain, Cube) else 1.0
    stability = setting.rounds * l2_norm(setting) ** 2 / (2 * deviation)
    return size * (deviation * math.sqrt(setting.arms) + stability)


def exp2_bound(setting: Setting, learner: BanditReduction) -> float:
    """Return `ln N / eta + 2 eta T N (1 + lambda^2 ln^2 NT) + 2 T gamma + 1`: the proof of Theorem 4.1, last lines.

    The 1 stands for the rare large noise. Over a set S of points it is our reading of the same: ln |S| for ln N, B for
    the largest loss 1, and lambda ||x||_1 for the size lambda of the noise.
    """
    inner: Any = learner.inner
    n, t, lam = setting.arms, setting.rounds, learner.noise.scale
    points = getattr(inner, "points", None)
    choices, max_loss, size = n, 1.0, 1.0
    if points is not None:
        choices, size = points.shape[1], float(np.abs(points).sum(axis=0).max())
        max_loss = 1.0 if size == 1 else l1_norm(setting)
    moment = max_loss**2 + (lam * size * math.log(n * t)) ** 2
    excess = 2 * inner.eta * t * n * moment + 2 * t * inner.gamma * max_loss
    return float(math.log(max(choices, 2)) / inner.eta + excess + 1)


def scrible_sizes(setting: Setting, domain: str) -> tuple[float, float]:
    """Return M = max |<l, x>| and the largest squared L2 norm of a point, over "cube", "ball" or "simplex"."""
    largest = {"cube": l1_norm(setting), "ball": l2_norm(setting), "simplex": 1.0}[domain]
    return largest, setting.arms if domain == "cube" else 1.0


def scrible_bound(setting: Setting, learner: BanditReduction, domain: str = "cube") -> float:
    """Return the last display with constants of the proof of Theorem 4.5 (Appendix D), and 1 for rare large noise.

    `2 eta T N^2 (M^2 + lambda^2 N ||X||_2^2) + nu ln T / eta + 8 lambda ||X||_2 sqrt(N) ln NT + 2 M`.
    """
    inner: Any = learner.inner
    n, t, lam = setting.arms, setting.rounds, learner.noise.scale
    largest, squared = scrible_sizes(setting, domain)
    stability = 2 * inner.eta * t * n**2 * (largest**2 + lam**2 * n * squared)
    rest = 8 * lam * math.sqrt(squared * n) * math.log(n * t) + 2 * largest + 1
    return float(stability + inner.barrier.nu * math.log(t) / inner.eta + rest)


def scrible_ball_bound(setting: Setting, learner: BanditReduction) -> float:
    """Return `scrible_bound` over the ball."""
    return scrible_bound(setting, learner, "ball")


def scrible_simplex_bound(setting: Setting, learner: BanditReduction) -> float:
    """Return `scrible_bound` over the simplex."""
    return scrible_bound(setting, learner, "simplex")
