"""Agarwal & Singh 2017, The Price of Differential Privacy for Online Learning: the catalogue's entries."""

from __future__ import annotations

import math

from ..mechanisms.noise import Laplace
from ..mechanisms.tree import depth
from .catalogue import Case, Entry, Setting
from .domains import EntropySimplex
from .exp3 import Exp3
from .ftrl import Ftrl
from .reduction import BanditReduction
from .threshold import Threshold


def tree_levels(setting: Setting) -> float:
    """Return the factor of the node noise: log2 T as printed, without a ceiling; ceil(log2 T) corrected."""
    return math.log2(setting.rounds) if setting.published else float(depth(setting.rounds))


def reduction(setting: Setting, inner: Exp3 | Threshold) -> BanditReduction:
    """Return Algorithm 4 around `inner`: noise B / epsilon, B = 1; corrected, the diameter of the losses."""
    sensitivity = 1.0 if setting.published else setting.range
    return BanditReduction(inner=inner, epsilon=setting.epsilon, sensitivity=sensitivity)


def ftrl_experts(setting: Setting, *, eta: float | None = None) -> Ftrl:
    """Return FTRL over experts: noise N log2 T / epsilon (Corollary 3.2.1); eta = sqrt(2 ln N / T) is our choice."""
    n, t = setting.arms, setting.rounds
    diameter = n * (1.0 if setting.published else setting.range)
    scale = 0.0 if math.isinf(setting.epsilon) else diameter * tree_levels(setting) / setting.epsilon
    default = math.sqrt(2 * math.log(max(n, 2)) / t)
    return Ftrl(domain=EntropySimplex(n), rounds=t, eta=default if eta is None else eta, noise=Laplace(scale))


def reduction_threshold(setting: Setting, *, threshold: float = 1.0) -> BanditReduction:
    """Return the reduction around the Threshold probe; c = 1, the largest loss, leaks most."""
    return reduction(setting, Threshold(arms=setting.arms, threshold=threshold))


def reduction_exp2(
    setting: Setting, *, eta: float | None = None, gamma: float | None = None
) -> BanditReduction:
    """Return the reduction around EXP2 over arms, which is EXP3 with mixing; Theorem 4.1's eta and gamma."""
    n, t = setting.arms, setting.rounds
    lam = 0.0 if math.isinf(setting.epsilon) else 1 / setting.epsilon
    moment = 1 + 2 * lam**2 * math.log(n * t)
    eta = math.sqrt(math.log(max(n, 2)) / (2 * n * t * moment)) if eta is None else eta
    gamma = min(1.0, eta * n * math.sqrt(moment)) if gamma is None else gamma
    return reduction(setting, Exp3(arms=n, eta=eta, gamma=gamma))


SHARP = {"eta": 2.0, "gamma": 0.02}
LEMMA = "Agarwal & Singh 2017, Lemma 4.2"

ENTRIES = (
    Entry(
        name="agarwal-singh/ftrl-experts",
        summary="follow the regularised leader over experts, Laplace tree",
        source="Agarwal & Singh 2017, Theorem 3.1 and Corollary 3.2.1",
        build=ftrl_experts,
        rounds=4,
        losses="symmetric",
        cases=(
            Case(expected="falsified", delta=1e-3, runs=400_000),
            Case(expected="falsified", surface="release"),
            Case(
                expected="falsified",
                surface="release",
                losses="unit",
                rounds=3,
                note="log T without a ceiling",
            ),
            Case(expected="survived", neighbours="zero-out", surface="release"),
            Case(expected="survived", losses="unit", surface="release"),
            Case(expected="survived", calibration="corrected", surface="release"),
            Case(expected="survived", calibration="corrected", delta=1e-3),
        ),
    ),
    Entry(
        name="agarwal-singh/reduction-threshold",
        summary="bandit reduction around the Threshold probe",
        source=LEMMA,
        build=reduction_threshold,
        rounds=2,
        losses="symmetric",
        cases=(
            Case(expected="falsified"),
            Case(expected="falsified", surface="release"),
            Case(expected="survived", neighbours="zero-out"),
            Case(expected="survived", losses="unit"),
            Case(expected="survived", calibration="corrected"),
        ),
    ),
    Entry(
        name="agarwal-singh/reduction-exp2",
        summary="bandit reduction around EXP2 over arms",
        source=f"{LEMMA} and Theorem 4.1",
        build=reduction_exp2,
        rounds=4,
        losses="symmetric",
        cases=(
            Case(expected="falsified", parameters=SHARP),
            Case(expected="survived", neighbours="zero-out", parameters=SHARP),
            Case(expected="survived", calibration="corrected", parameters=SHARP),
        ),
    ),
)
