"""Attacks that count what is played: the arms from the differing round on, and sequences of points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...learners.abilities import batch_of, decisions, plays_arms
from ...learners.protocol import Learner
from ...mechanisms.draws import Floats
from ...mechanisms.view import View
from ..laws.sequences import index_of
from ..play.pairs import Pair
from ..play.transcripts import Transcripts
from .protocol import NoEvidence, log_loss, log_ratio

#: Up to this many sequences, the table of training counts is tried.
MAX_TABLE = 20_000
#: Digits to which points are compared, which may be computed in several ways; the most different sequences of them,
#: and the fewest training runs for each of these on average.
POINT_DIGITS, MOST_SEQUENCES, MIN_RUNS_PER_SEQUENCE = 6, 20_000, 20
#: The most arms that are counted, the differing round's included, and the most cells of a table.
MOST_NEXT, CELLS = 5, 5000


def few_sequences(learner: Learner, pair: Pair) -> bool:
    """Tell whether a learner plays arms, and so few rounds that all sequences can be counted."""
    return plays_arms(learner) and learner.arms ** decisions(pair.rounds, batch_of(learner)) <= MAX_TABLE


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
        if view.channel or not plays_arms(learner) or few_sequences(learner, pair):
            return False
        return pair.t0 // batch_of(learner) < decisions(pair.rounds, batch_of(learner)) - 1

    @classmethod
    def fit(cls, learner: Learner, pair: Pair, train: Transcripts | None) -> Self | NoEvidence:
        """Count the training runs in every way, and keep the one that tells most."""
        assert train is not None
        if train.actions.ndim != 2:  # a user's points
            return NoEvidence()
        fitted = [
            cls(learner, pair, train, alike=by_repeats, many=n_arms) for by_repeats, n_arms in cls._ways(learner, pair)
        ]
        return min(fitted, key=lambda attack: attack.loss)

    @staticmethod
    def _ways(learner: Learner, pair: Pair) -> Iterator[tuple[bool, int]]:
        batch = batch_of(learner)
        left = decisions(pair.rounds, batch) - pair.t0 // batch
        for n_arms in range(2, min(MOST_NEXT, left) + 1):
            yield True, n_arms
            if learner.arms**n_arms <= CELLS:
                yield False, n_arms

    @property
    def cells(self) -> int:
        """How many cells are counted."""
        return int((self.many if self.alike else self.arms) ** self.many)

    def _index(self, transcripts: Transcripts) -> NDArray[np.int64]:
        arms_played = transcripts.actions[:: self.batch][self.begin : self.begin + self.many]
        if not self.alike:
            return index_of(arms_played, self.arms, 1)
        # The first decision with the same arm.
        first = np.stack([(arms_played == arm).argmax(axis=0) for arm in arms_played])
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
        if self.known.size > min(MOST_SEQUENCES, train.runs // MIN_RUNS_PER_SEQUENCE):
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
