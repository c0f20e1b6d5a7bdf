"""A score of a private bandit: the responses of later batches along the difference of the inputs' gradients."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...mechanisms.draws import Floats
from ..laws import Neighbours
from ..problems.domains import LinearOracle
from ..problems.losses import feedback, resolve
from ..protocol import Actions

#: Decimals of a score: the last bits of a sum depend on the processor.
DIGITS = 9


class Bandit(Protocol):
    """A private bandit, as far as its responses need it."""

    @property
    def oracle(self) -> LinearOracle:
        """The domain."""

    @property
    def arms(self) -> int:
        """The number of coordinates."""

    @property
    def batch(self) -> int:
        """Rounds per batch."""

    @property
    def zeta(self) -> float:
        """The sampling radius."""

    def first_point(self, runs: int) -> Floats:
        """Return what the first batch plays around, (dim, runs)."""

    def estimate(self, x: Floats, action: Floats, loss: Floats) -> Floats:
        """Return the gradient estimate of a round, (dim, runs)."""


class ResponseScore:
    """The responses of later batches against the difference of the inputs' gradients.

    A played point is its batch's response plus zeta times a direction. The direction of the round that differs says by
    how much, and which way, the gradients differ; responses are clipped sums of gradients and noise, so that the left
    input is the likelier the further they lie against that difference. On an interval that zeta is not shorter than,
    the sign of a played point is that of its direction, and the response is known exactly; elsewhere it is estimated
    by the batch's mean.
    """

    def __init__(self, learner: Bandit, pair: Neighbours) -> None:
        self.learner, self.pair = learner, pair

    def response(self, actions: Floats, batch: int) -> Floats:
        """Return the response that a batch (from 0) played around, (dim, runs)."""
        learner = self.learner
        if batch == 0:
            return learner.first_point(actions.shape[-1])
        played = actions[batch * learner.batch : (batch + 1) * learner.batch]
        if learner.arms == 1 and 2 * learner.zeta >= learner.oracle.diameter:
            first: Floats = played[0] - learner.zeta * np.sign(played[0])
            return first
        mean: Floats = played.mean(axis=0)
        return mean

    def __call__(self, actions: Actions) -> Floats:
        """Return the sum of the later responses against the difference of the gradients, (runs,)."""
        learner, pair, t0 = self.learner, self.pair, self.pair.t0
        past = list(actions[: t0 + 1])
        left, right = (
            feedback(resolve(losses[t0], past), actions[t0], "bandit") for losses in (pair.left, pair.right)
        )
        change = learner.estimate(self.response(actions, t0 // learner.batch), actions[t0], left - right)
        later_batches = range(t0 // learner.batch + 2, -(-pair.rounds // learner.batch))
        total = sum((self.response(actions, batch) for batch in later_batches), start=np.zeros_like(change))
        score: Floats = np.round(-(change * total).sum(axis=0), DIGITS)
        return score
