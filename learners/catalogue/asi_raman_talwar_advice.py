"""Asi, Raman & Talwar 2025: bandits with expert advice, around the Threshold probe and with sensitive advice."""

from __future__ import annotations

from dataclasses import replace

from ..bandits.htinf import SIGMA, Htinf
from ..conversions.expert_advice import ExpertAdvice
from ..entry import Entry, FalsifiedCase, RegretClaim, Setting, Shared, SurvivingCase
from ..probes.agreed_advice import AgreedAdvice
from . import statements as said
from .asi_raman_talwar import (
    PAPER,
    SKIPPED,
    advice_of,
    batched_threshold,
    chosen_batch,
    conversion,
    hidden,
    htinf_bound,
)


def experts_batched_htinf(
    setting: Setting, *, experts: int | None = None, sigma: float = SIGMA, batch: int | None = None
) -> ExpertAdvice:
    """Return Algorithm 5 around the HTINF conversion over experts (Corollary 8)."""
    advice = advice_of(setting, experts)
    tau = chosen_batch(setting, batch)
    return ExpertAdvice(inner=conversion(setting, Htinf(arms=advice.experts, sigma=sigma), tau), advice=advice)


def experts_batched_threshold(
    setting: Setting, *, threshold: float = 1.0, batch: int | None = None, experts: int | None = None
) -> ExpertAdvice:
    """Return Algorithm 5 around the conversion of the Threshold probe over experts, by default one for each arm."""
    advice = advice_of(setting, setting.arms if experts is None else experts)
    inner = batched_threshold(replace(setting, arms=advice.experts), threshold=threshold, batch=batch)
    return ExpertAdvice(inner=inner, advice=advice)


def agreed_advice(setting: Setting) -> AgreedAdvice:
    """Return Algorithm 5 where all experts agree; what is told, and replaced, is the advice for the next round."""
    return AgreedAdvice(arms=setting.arms)


SENSITIVE = (
    "“the expert advice is also taken to be sensitive information”, read as: one round's advice is replaced. That "
    "round's own action is drawn from it, so no finite epsilon holds; for what later rounds learn of it, epsilon does"
)

FIRST_LOSS = [[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]
EVERY_INNER: Shared = {"standing": "theorem", "statement": said.ART_THEOREM_7}

ENTRIES = (
    Entry(
        name="asi-raman-talwar/experts-batched-htinf",
        summary="bandits with expert advice from the HTINF conversion",
        source=f"{PAPER}, Theorem 7 and Corollary 8",
        build=experts_batched_htinf,
        rounds=8,
        regret=RegretClaim(bound=htinf_bound, exponent=0.5, source=f"{PAPER}, Corollary 8; the constant is derived"),
        cases=(SKIPPED, hidden(said.ART_COROLLARY_8)),
        example=SKIPPED,
    ),
    Entry(
        name="asi-raman-talwar/experts-batched-threshold",
        summary="bandits with expert advice from the batched conversion around the Threshold probe",
        source=said.ART_THEOREM_7.source,
        build=experts_batched_threshold,
        rounds=2,
        cases=(SurvivingCase(**EVERY_INNER, pair=FIRST_LOSS, runs=50_000),),
    ),
    Entry(
        name="asi-raman-talwar/agreed-advice",
        summary="bandits with expert advice, one round's advice replaced instead of its loss",
        source="Asi, Raman & Talwar 2025, Section 4, the sentence before Theorem 7",
        build=agreed_advice,
        rounds=2,
        cases=(FalsifiedCase(standing="reading", runs=5_000, note=SENSITIVE),),
    ),
)
