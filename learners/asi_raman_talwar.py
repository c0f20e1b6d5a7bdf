"""Asi, Raman & Talwar 2025, Faster Rates for Private Adversarial Bandits: the catalogue's entries."""

from __future__ import annotations

import math

from .batched import BatchedLaplace
from .catalogue import Case, Entry, Setting
from .exp3 import Exp3
from .protocol import Learner
from .threshold import Threshold


def conversion(setting: Setting, inner: Learner, batch: int) -> BatchedLaplace:
    """Return Algorithm 1 around `inner`: noise 1 / (tau epsilon); corrected for [-1, 1], twice that."""
    sensitivity = 1.0 if setting.published else setting.range
    return BatchedLaplace(inner=inner, epsilon=setting.epsilon, batch=batch, sensitivity=sensitivity)


def default_batch(setting: Setting) -> int:
    """Return tau = ceil(1 / epsilon), at most T (Corollary 2)."""
    return max(1, min(setting.rounds, math.ceil(1 / setting.epsilon)))


def batched_exp3(
    setting: Setting, *, eta: float | None = None, gamma: float | None = None, batch: int | None = None
) -> BatchedLaplace:
    """Return the EXP3 conversion (Corollary 22) with mixing; eta and gamma are our choice where not given."""
    k, tau = setting.arms, default_batch(setting) if batch is None else batch
    n = max(1, setting.rounds // tau)
    lam = 1 / (tau * setting.epsilon)
    eta = math.sqrt(math.log(max(k, 2)) / (n * k * (1 + 2 * lam**2))) if eta is None else eta
    gamma = min(1.0, eta * k * (1 + 2 * lam * math.log(k * setting.rounds))) if gamma is None else gamma
    return conversion(setting, Exp3(arms=k, eta=eta, gamma=gamma), tau)


def batched_threshold(
    setting: Setting, *, threshold: float = 1.0, batch: int | None = None
) -> BatchedLaplace:
    """Return the conversion around the Threshold probe, which attains epsilon."""
    tau = default_batch(setting) if batch is None else batch
    return conversion(setting, Threshold(arms=setting.arms, threshold=threshold), tau)


def exp3(setting: Setting, *, eta: float = 0.1, gamma: float = 0.1) -> Exp3:
    """Return plain EXP3 (Algorithm 3): no noise, so any finite epsilon is false at some horizon."""
    return Exp3(arms=setting.arms, eta=eta, gamma=gamma)


SHARP = {"eta": 2.0, "gamma": 0.02, "batch": 1}
LEMMA = "Asi, Raman & Talwar 2025, Lemma 3"

ENTRIES = (
    Entry(
        name="asi-raman-talwar/batched-exp3",
        summary="batched conversion around EXP3",
        source=LEMMA,
        build=batched_exp3,
        rounds=4,
        cases=(
            Case(expected="survived", parameters=SHARP),
            Case(expected="survived", surface="release", parameters=SHARP),
            Case(expected="survived", rounds=8, parameters={"eta": 0.5, "gamma": 0.1, "batch": 2}),
            Case(expected="survived", calibration="corrected", parameters=SHARP),
        ),
    ),
    Entry(
        name="asi-raman-talwar/batched-threshold",
        summary="batched conversion around the Threshold probe",
        source=LEMMA,
        build=batched_threshold,
        rounds=2,
        cases=(
            Case(expected="survived"),
            Case(expected="survived", rounds=4, parameters={"batch": 2, "threshold": 1.0}),
            Case(expected="survived", calibration="corrected"),
        ),
    ),
    Entry(
        name="asi-raman-talwar/exp3",
        summary="plain EXP3, no noise",
        source="none: Asi, Raman & Talwar 2025, Appendix G.1, show that it leaks",
        build=exp3,
        rounds=100,
        cases=(Case(expected="falsified"), Case(expected="falsified", calibration="corrected")),
    ),
)
