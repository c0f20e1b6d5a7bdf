"""Asi, Raman & Talwar 2025: the catalogue's entry of bandits with expert advice whose advice is sensitive."""

from __future__ import annotations

from ..probes.agreed_advice import AgreedAdvice
from .entries import Case, Entry, Setting


def agreed_advice(setting: Setting) -> AgreedAdvice:
    """Return Algorithm 5 where all experts agree; what is told, and replaced, is the advice for the next round."""
    return AgreedAdvice(arms=setting.arms)


SENSITIVE = (
    "“the expert advice is also taken to be sensitive information”, read as: one round's advice is replaced. That "
    "round's own action is drawn from it, so no finite epsilon holds; for what later rounds learn of it, epsilon does"
)

ENTRIES = (
    Entry(
        name="asi-raman-talwar/agreed-advice",
        summary="bandits with expert advice, one round's advice replaced instead of its loss",
        source="Asi, Raman & Talwar 2025, Section 4, the sentence before Theorem 7",
        build=agreed_advice,
        rounds=2,
        cases=(Case(expected="falsified", standing="reading", runs=5_000, note=SENSITIVE),),
    ),
)
