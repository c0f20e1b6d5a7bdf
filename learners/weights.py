"""Weights that are exponentials of running sums, updated one arm at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..mechanisms.draws import Floats
from .protocol import Arms

#: The sum of the weights may drift this far before a run is moved back (exp(709) is the largest float).
_SMALLEST, _LARGEST = math.exp(-500.0), math.exp(500.0)


@dataclass
class WeightsState:
    """Log-weights and weights of every run, kept both ways so that a step needs one exponential: the played arm's.

    Only their differences matter, so a run whose weights grow too large or too small is moved back towards 0.
    """

    log_weights: Floats  # (arms, runs)
    weights: Floats  # (arms, runs): their exponentials
    total: Floats  # (runs,): the sum of the weights
    columns: Arms  # (runs,): 0, 1, 2, ...

    @classmethod
    def fresh(cls, arms: int, runs: int) -> WeightsState:
        """Return equal weights."""
        total = np.full(runs, float(arms))
        return cls(np.zeros((arms, runs)), np.ones((arms, runs)), total, np.arange(runs))

    def select(self, runs: Arms) -> WeightsState:
        """Return the state of the given runs, which may repeat."""
        return WeightsState(
            self.log_weights.take(runs, axis=1),
            self.weights.take(runs, axis=1),
            self.total.take(runs),
            np.arange(len(runs)),
        )

    def places(self, arms: Arms) -> Arms:
        """Return where the entries of the given arm of every run lie in the flat arrays, (runs,)."""
        places: Arms = np.multiply(arms, self.columns.size, dtype=np.intp)
        places += self.columns
        return places

    def weights_at(self, places: Arms) -> Floats:
        """Return one weight of every run, (runs,)."""
        return self.weights.reshape(-1)[places]

    def shift_at(self, places: Arms, change: Floats) -> None:
        """Add `change` to one log-weight of every run."""
        shifted = self.log_weights.reshape(-1)[places]
        shifted += change
        self.log_weights.reshape(-1)[places] = shifted
        with np.errstate(over="ignore"):
            np.exp(shifted, out=shifted)
        self.weights.reshape(-1)[places] = shifted
        np.sum(self.weights, axis=0, out=self.total)
        if not (self.total.min() > _SMALLEST and self.total.max() < _LARGEST):
            self._recentre(np.flatnonzero((self.total <= _SMALLEST) | (self.total >= _LARGEST)))

    def _recentre(self, runs: Arms) -> None:
        logs = self.log_weights[:, runs]
        logs -= logs.max(axis=0)
        weights = np.exp(logs)
        self.log_weights[:, runs] = logs
        self.weights[:, runs] = weights
        self.total[runs] = weights.sum(axis=0)
