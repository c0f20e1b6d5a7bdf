"""Search: which pair of neighbouring loss sequences to audit on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..learners.protocol import Learner
from ..mechanisms.claim import Claim
from .exact import NotExactError, exact_epsilon
from .pairs import Pair, families
from .sequences import COARSE, batch_of

#: Pairs are ranked at this delta at least: the largest ratio alone picks outcomes of probability 1e-23.
RANKING_DELTA = 1e-3


def candidates(learner: Learner, claim: Claim, *, rounds: int) -> list[Pair]:
    """Return the standard pairs for a learner."""
    return families(claim, rounds=rounds, arms=learner.arms, batch=batch_of(learner))


def rank_exactly(
    learner: Learner, claim: Claim, pairs: Sequence[Pair], *, delta: float | None = None
) -> list[Pair] | None:
    """Return the pairs in the order of their exact epsilon, worst first; None if there is no exact method."""
    delta = max(claim.delta, RANKING_DELTA) if delta is None else delta
    try:
        epsilons = [
            exact_epsilon(learner, pair, surface=claim.surface, deltas=(delta,), cells=COARSE)[delta] for pair in pairs
        ]
    except NotExactError:
        return None
    order = np.argsort([-round(e, 6) for e in epsilons], kind="stable")
    return [pairs[i] for i in order]


def worst_exactly(
    learner: Learner, claim: Claim, rounds: int, pairs: Sequence[Pair] | None, deltas: Sequence[float]
) -> tuple[dict[float, float], Pair]:
    """Return the exact epsilon at each delta on the worst pair, and that pair.

    Parameters
    ----------
    pairs : sequence of Pair, optional
        The pairs to compare; by default the standard families.

    Raises
    ------
    NotExactError
        If no exact method covers the learner.
    ValueError
        If a pair lies outside the claim's loss set.
    """
    pairs = candidates(learner, claim, rounds=rounds) if pairs is None else pairs
    for pair in pairs:
        if pair.arms is not None and pair.arms != learner.arms:
            raise ValueError(f"the pair has {pair.arms} arms, but the learner has {learner.arms}")
        pair.check(claim)
    ranked = rank_exactly(learner, claim, pairs)
    worst = pairs[0] if ranked is None else ranked[0]
    return exact_epsilon(learner, worst, surface=claim.surface, deltas=deltas), worst
