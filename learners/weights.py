"""Weights that are exponentials of running sums, updated one arm at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..mechanisms.draws import Floats
from .protocol import Arms

#: Log-weights may drift this far above their reference before a run is re-referenced (exp(700) is the limit).
_DRIFT = 500.0


@dataclass
class WeightsState:
    """Log-weights and weights of every run, kept both ways so that a step needs one exponential: the played arm's."""

    log_weights: Floats  # (arms, runs)
    reference: Floats  # (runs,)
    weights: Floats  # (arms, runs): exp(log_weights - reference)
    total: Floats  # (runs,)
    columns: Arms  # (runs,): 0, 1, 2, ...

    @classmethod
    def fresh(cls, arms: int, runs: int) -> WeightsState:
        """Return equal weights."""
        total = np.full(runs, float(arms))
        return cls(np.zeros((arms, runs)), np.zeros(runs), np.ones((arms, runs)), total, np.arange(runs))

    def select(self, runs: Arms) -> WeightsState:
        """Return the state of the given runs, which may repeat."""
        return WeightsState(
            self.log_weights.take(runs, axis=1),
            self.reference.take(runs),
            self.weights.take(runs, axis=1),
            self.total.take(runs),
            np.arange(len(runs)),
        )

    def shift(self, arms: Arms, change: Floats) -> None:
        """Add `change` to the log-weight of the given arm of every run."""
        flat = arms * self.columns.size
        flat += self.columns
        moved = self.log_weights.reshape(-1)[flat]
        moved += change
        self.log_weights.reshape(-1)[flat] = moved
        moved -= self.reference
        with np.errstate(over="ignore"):
            self.weights.reshape(-1)[flat] = np.exp(moved)
        np.sum(self.weights, axis=0, out=self.total)
        if moved.max() > _DRIFT or self.total.min() < math.exp(-_DRIFT):
            self._rereference(np.flatnonzero((moved > _DRIFT) | (self.total < math.exp(-_DRIFT))))

    def _rereference(self, runs: Arms) -> None:
        logs = self.log_weights[:, runs]
        self.reference[runs] = logs.max(axis=0)
        weights = np.exp(logs - self.reference[runs])
        self.weights[:, runs] = weights
        self.total[runs] = weights.sum(axis=0)
