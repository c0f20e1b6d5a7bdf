"""The privacy loss of what batched EXP4 releases, where the differing round lies in its first batch.

There the weights of the experts are equal and the law of the arm is known. Given the arm that was played in the
differing round, every expert's batch mean moves by its own amount under independent Laplace noise; the arm is public
and has the same law in both worlds, so the loss is the mixture of these over the arms.
"""

from __future__ import annotations

from functools import lru_cache

from ...mechanisms.draws import Floats
from ...mechanisms.privacy_loss import STEPS, PrivacyLoss


def law_of_arms(p: Floats, shifts: Floats) -> PrivacyLoss:
    """Return the privacy loss where arm k is played with probability p[k] and Laplace noise is shifted by shifts[k].

    Parameters
    ----------
    p : array (arms,)
    shifts : array (arms, experts)
        In noise scales.
    """
    if not shifts.any():
        return PrivacyLoss.of_laplace([])
    return _mixture(tuple(p.tolist()), tuple(map(tuple, shifts.tolist())))


@lru_cache(maxsize=16)  # pairs that differ alike in the first batch have one law
def _mixture(weights: tuple[float, ...], shifts: tuple[tuple[float, ...], ...]) -> PrivacyLoss:
    """Return the loss where an arm is drawn, and then Laplace noise is shifted by so many scales."""
    step = max(map(max, shifts)) / STEPS
    return PrivacyLoss.mixture(list(weights), [PrivacyLoss.of_laplace(list(s), step=step) for s in shifts], step)
