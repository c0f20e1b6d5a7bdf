"""Counts of whole sequences of points, for learners that play few of them: vertices, or the points of a finite set."""

from __future__ import annotations

import numpy as np

from ...mechanisms.draws import Floats
from ..play.transcripts import Transcripts

#: Digits to which points are compared: the same point may be computed in several ways.
DIGITS = 6
#: The most different sequences, and the fewest training runs for each of them on average.
MOST, FEWEST = 20_000, 20


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
    exact = False
    trained = True

    def __init__(self, train: Transcripts) -> None:
        rounds, dim, _ = train.actions.shape
        self.weights = np.random.Generator(np.random.SFC64(0)).normal(size=rounds * dim)
        self.known, index = np.unique(self._keys(train), return_inverse=True)
        if self.known.size > min(MOST, train.runs // FEWEST):
            raise ValueError(f"there are {self.known.size} sequences in {train.runs} runs: too many to count")
        left, right = (np.bincount(index[world], minlength=self.known.size) for world in (train.left, ~train.left))
        self.table: Floats = np.round(np.log(left + 0.5) - np.log(right + 0.5), 9)

    def _keys(self, transcripts: Transcripts) -> Floats:
        points = np.round(transcripts.actions.reshape(self.weights.size, -1), DIGITS) + 0.0  # no negative zero
        keys: Floats = np.round(self.weights @ points, DIGITS)
        return keys

    def score(self, transcripts: Transcripts) -> Floats:
        """Look the sequences up."""
        keys = self._keys(transcripts)
        found = np.searchsorted(self.known, keys).clip(max=self.known.size - 1)
        scores: Floats = np.where(self.known[found] == keys, self.table[found], 0.0)
        return scores
