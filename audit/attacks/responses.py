"""The attack on a private bandit's actions: which way later responses moved along the gradient that was changed."""

from __future__ import annotations

import numpy as np

from ...learners.leaders.private_bandit import PrivateBandit
from ...learners.protocol import Learner
from ...mechanisms.draws import Floats
from ..play.pairs import Pair
from ..play.transcripts import Transcripts
from .protocol import LawAttack

DIGITS = 9


class Responses(LawAttack):
    """Score the responses of later batches along the difference of the two worlds' gradient estimates.

    A played point is its batch's response plus zeta times a direction. The direction of the round that differs says by
    how much, and which way, the worlds' gradients differ; responses are clipped sums of gradients and noise, so that
    the left world is the likelier the further they lie against that difference. On an interval that zeta is not
    shorter than, the sign of a played point is that of its direction, and the response is known exactly; elsewhere it
    is estimated by the batch's mean.
    """

    name = "responses along the changed gradient"
    exact = False
    learner: PrivateBandit

    def __init__(self, learner: Learner, pair: Pair) -> None:
        assert isinstance(learner, PrivateBandit)
        super().__init__(learner, pair)

    @staticmethod
    def applies(learner: Learner, pair: Pair, surface: str) -> bool:
        """For the actions of private bandits that play a batch after the next one to the differing round's."""
        return (
            type(learner) is PrivateBandit
            and surface == "actions"
            and pair.rounds > learner.batch * (pair.t0 // learner.batch + 2)
        )

    def response(self, actions: Floats, batch: int) -> Floats:
        """Return the response that a batch (from 0) played around, (dim, runs)."""
        learner = self.learner
        if batch == 0:
            return learner.template._vertex(actions.shape[-1])
        played = actions[batch * learner.batch : (batch + 1) * learner.batch]
        if learner.arms == 1 and 2 * learner.zeta >= learner.oracle.diameter:
            first: Floats = played[0] - learner.zeta * np.sign(played[0])
            return first
        mean: Floats = played.mean(axis=0)
        return mean

    def score(self, transcripts: Transcripts) -> Floats:
        """Return the sum of the later responses against the difference of the gradients, (runs,)."""
        learner, t0, actions = self.learner, self.pair.t0, transcripts.actions
        left, right = (
            self.pair.feedback(t0, actions[t0], learner.feedback, world, actions[:t0]) for world in (True, False)
        )
        change = learner._estimate(self.response(actions, t0 // learner.batch), actions[t0], left - right)
        later = range(t0 // learner.batch + 2, -(-self.pair.rounds // learner.batch))
        total = sum((self.response(actions, batch) for batch in later), start=np.zeros_like(change))
        score: Floats = np.round(-(change * total).sum(axis=0), DIGITS)
        return score
