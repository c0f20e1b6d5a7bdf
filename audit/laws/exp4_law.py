"""The privacy loss of what batched EXP4 releases, where the differing round lies in its first batch.

There the weights of the experts are equal and the law of the arm is known. Given the arm that was played in the
differing round, every expert's batch mean moves by its own amount under independent Laplace noise; the arm is public
and has the same law in both worlds, so the loss is the mixture of these over the arms.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...learners.bandits.exp4 import BatchedExp4, mixture
from ...mechanisms.privacy_loss import STEPS, PrivacyLoss
from ..play.pairs import Pair


def release_loss(learner: BatchedExp4, pair: Pair) -> PrivacyLoss | None:
    """Return the privacy loss of the noisy batch means with the actions; None beyond the first batch.

    Later batches add nothing: given what was released before them, they are the same in both worlds.
    """
    if pair.t0 >= learner.tau or not isinstance(pair.left, np.ndarray) or not isinstance(pair.right, np.ndarray):
        return None
    if learner.tau > pair.rounds - 1:
        return PrivacyLoss.of_laplace([])  # the release reaches no action
    advice = learner.advice.at(pair.t0)
    equal = np.full((learner.advice.experts, 1), 1 / learner.advice.experts)
    p = mixture(equal, advice, learner.gamma)[:, 0]
    change = np.abs(pair.left[pair.t0] - pair.right[pair.t0])
    shifts = advice * change / (p * learner.tau * learner.noise.scale)  # (experts, arms), in scales
    if not shifts.any():
        return PrivacyLoss.of_laplace([])
    return _mixture(tuple(p.tolist()), tuple(map(tuple, shifts.T.tolist())))


@lru_cache(maxsize=16)  # pairs that differ alike in the first batch have one law
def _mixture(weights: tuple[float, ...], shifts: tuple[tuple[float, ...], ...]) -> PrivacyLoss:
    """Return the loss where an arm is drawn, and then Laplace noise is shifted by so many scales."""
    step = max(map(max, shifts)) / STEPS
    return PrivacyLoss.mixture(list(weights), [PrivacyLoss.of_laplace(list(s), step=step) for s in shifts], step)
