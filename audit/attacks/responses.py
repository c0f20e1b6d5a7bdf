"""Attacks on what is played after the round that was changed: arms that follow, responses, sequences of points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...learners.abilities import batch_of, decisions, inward
from ...learners.bandits.exp2 import Exp2
from ...learners.bandits.scrible import Scrible
from ...learners.leaders.doubling import Doubling
from ...learners.leaders.ftrl import Ftrl
from ...learners.leaders.pftal import BanditPftal, Pftal
from ...learners.leaders.private_bandit import NoisyOco, PrivateBandit
from ...learners.problems.domains import Ball, Cube
from ...learners.protocol import Learner
from ...mechanisms.draws import Floats
from ...mechanisms.view import View
from ..laws.sequences import index_of
from ..play.pairs import Pair
from ..play.transcripts import Transcripts
from .protocol import LawAttack, NoEvidence, log_loss, log_ratio

#: Up to this many sequences, the table of training counts is tried.
MAX_TABLE = 20_000
#: Decimals of a score: the last bits of a sum depend on the processor.
DIGITS = 9
#: Digits to which points are compared, which may be computed in several ways; the most different sequences of them,
#: and the fewest training runs for each of these on average.
POINT_DIGITS, MOST_SEQUENCES, FEWEST = 6, 20_000, 20
#: The most arms that are counted, the differing round's included, and the most cells of a table.
MOST_NEXT, CELLS = 5, 5000


def few_sequences(learner: Learner, pair: Pair) -> bool:
    """Tell whether a learner plays arms, and so few rounds that all sequences can be counted."""
    few = learner.arms ** decisions(pair.rounds, batch_of(learner)) <= MAX_TABLE
    return few and not plays_points(learner)


def plays_points(learner: Learner) -> bool:
    """Tell whether actions are points: leaders over anything but arms, and the convex learners."""
    return any(
        isinstance(part, Ftrl | Pftal | BanditPftal | PrivateBandit | NoisyOco | Doubling | Exp2 | Scrible)
        or isinstance(getattr(part, "domain", None), Ball | Cube)
        for part in inward(learner)
    )


class NextArms:
    """Log ratio of smoothed training counts of the arms from the differing round on, where all are too many to count.

    They are counted as they are, or only by which of them are the same arm: few cells, which serve where the losses
    of all arms are alike. What tells most, by the log loss of each half of the training runs by the counts of the
    other, is chosen.
    """

    name = "counts of the next arms"
    exact, trained, calibrated, wording = False, True, True, ""

    def __init__(self, learner: Learner, pair: Pair, train: Transcripts, *, alike: bool, many: int) -> None:
        self.arms, self.batch, self.alike, self.many = learner.arms, batch_of(learner), alike, many
        self.begin = pair.t0 // self.batch
        index = self._index(train)
        self.table = self._log_odds(index, train.left)
        self.loss = self._loss(index, train.left)

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For arms, of which one at least comes after the differing one."""
        if view.channel or plays_points(learner) or few_sequences(learner, pair):
            return False
        return pair.t0 // batch_of(learner) < decisions(pair.rounds, batch_of(learner)) - 1

    @classmethod
    def fit(cls, learner: Learner, pair: Pair, train: Transcripts | None) -> Self | NoEvidence:
        """Count the training runs in every way, and keep the one that tells most."""
        assert train is not None
        if train.actions.ndim != 2:  # a user's points
            return NoEvidence()
        fitted = [cls(learner, pair, train, alike=alike, many=many) for alike, many in cls._ways(learner, pair)]
        return min(fitted, key=lambda one: one.loss)

    @staticmethod
    def _ways(learner: Learner, pair: Pair) -> Iterator[tuple[bool, int]]:
        batch = batch_of(learner)
        left = decisions(pair.rounds, batch) - pair.t0 // batch
        for many in range(2, min(MOST_NEXT, left) + 1):
            yield True, many
            if learner.arms**many <= CELLS:
                yield False, many

    @property
    def cells(self) -> int:
        """How many cells are counted."""
        return int((self.many if self.alike else self.arms) ** self.many)

    def _index(self, transcripts: Transcripts) -> NDArray[np.int64]:
        shown = transcripts.actions[:: self.batch][self.begin : self.begin + self.many]
        if not self.alike:
            return index_of(shown, self.arms, 1)
        first = np.stack([(shown == arm).argmax(axis=0) for arm in shown])  # the first decision with the same arm
        return index_of(first, self.many, 1)

    def _log_odds(self, index: NDArray[np.int64], left: NDArray[np.bool_]) -> Floats:
        return log_ratio(index, left, self.cells, 0.5, 0.5)

    def _loss(self, index: NDArray[np.int64], left: NDArray[np.bool_]) -> float:
        """Return the log loss of either half of the runs by the counts of the other."""
        half = left.size // 2
        parts = slice(half), slice(half, None)
        odds = [self._log_odds(index[parts[1 - i]], left[parts[1 - i]])[index[parts[i]]] for i in (0, 1)]
        return log_loss(np.concatenate(odds), left)

    def score(self, transcripts: Transcripts) -> Floats:
        """Look the arms up."""
        scores: Floats = self.table[self._index(transcripts)]
        return scores


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
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For the actions of private bandits that play a batch after the next one to the differing round's."""
        return (
            type(learner) is PrivateBandit
            and not view.channel
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


class PointCounts:
    """Log ratio of smoothed training counts of each sequence of points; 0 for one that training never saw.

    A sequence is known by its product with fixed random weights, which tells different ones apart.

    Parameters
    ----------
    train : Transcripts
        Of points, (rounds, dim, runs).

    Raises
    ------
    ValueError
        If the sequences are too many to count.
    """

    name = "point counts"
    exact, trained, calibrated, wording = False, True, False, ""

    def __init__(self, train: Transcripts) -> None:
        rounds, dim, _ = train.actions.shape
        self.weights = np.random.Generator(np.random.SFC64(0)).normal(size=rounds * dim)
        self.known, index = np.unique(self._keys(train), return_inverse=True)
        if self.known.size > min(MOST_SEQUENCES, train.runs // FEWEST):
            raise ValueError(f"there are {self.known.size} sequences in {train.runs} runs: too many to count")
        left, right = (np.bincount(index[world], minlength=self.known.size) for world in (train.left, ~train.left))
        self.table: Floats = np.round(np.log(left + 0.5) - np.log(right + 0.5), 9)

    def _keys(self, transcripts: Transcripts) -> Floats:
        points = np.round(transcripts.actions.reshape(self.weights.size, -1), POINT_DIGITS) + 0.0  # no negative zero
        keys: Floats = np.round(self.weights @ points, POINT_DIGITS)
        return keys

    def score(self, transcripts: Transcripts) -> Floats:
        """Look the sequences up."""
        keys = self._keys(transcripts)
        places = np.searchsorted(self.known, keys).clip(max=self.known.size - 1)
        scores: Floats = np.where(self.known[places] == keys, self.table[places], 0.0)
        return scores
