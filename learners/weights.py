"""Weights that are exponentials of running sums, updated one arm at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..mechanisms.draws import Floats
from ..mechanisms.elementary import exp
from ..mechanisms.philox import LANES
from .protocol import Arms

#: Log-weights may drift this far above their reference before a run is re-referenced (exp(700) is the limit).
_DRIFT = 500.0
_FLOOR = math.exp(-_DRIFT)


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
        if moved.max() > _DRIFT or self.total.min() < _FLOOR:
            self._rereference(np.flatnonzero((moved > _DRIFT) | (self.total < _FLOOR)))

    def _rereference(self, runs: Arms) -> None:
        logs = self.log_weights[:, runs]
        self.reference[runs] = logs.max(axis=0)
        weights = np.exp(logs - self.reference[runs])
        self.weights[:, runs] = weights
        self.total[runs] = weights.sum(axis=0)


def shift_block(arrays: Any, arms: Any, change: Floats) -> None:
    """Block: `WeightsState.shift`. `arrays` holds log-weights, weights, and as rows the reference, total and moved."""
    log_weights, weights, rows = arrays
    reference, total, moved = rows[0], rows[1], rows[3]
    for i in range(LANES):
        moved[i] = log_weights[np.uint64(arms[i]), i]
    for i in range(LANES):
        moved[i] += change[i]
    for i in range(LANES):
        change[i] = exp(moved[i] - reference[i])
    for i in range(LANES):
        log_weights[np.uint64(arms[i]), i] = moved[i]
        weights[np.uint64(arms[i]), i] = change[i]
    for i in range(LANES):
        total[i] = weights[0, i]
    for k in range(1, len(weights)):
        for i in range(LANES):
            total[i] += weights[k, i]
    far = 0
    for i in range(LANES):
        far += 1 if (moved[i] - reference[i] > _DRIFT) | (total[i] < _FLOOR) else 0
    if far:
        _rereference_block(log_weights, weights, rows)


def _rereference_block(log_weights: Floats, weights: Floats, rows: Floats) -> None:
    for i in range(LANES):
        if (rows[3, i] - rows[0, i] > _DRIFT) | (rows[1, i] < _FLOOR):
            top, total = log_weights[0, i], 0.0
            for k in range(1, len(weights)):
                top = max(top, log_weights[k, i])
            for k in range(len(weights)):
                weights[k, i] = exp(log_weights[k, i] - top)
                total += weights[k, i]
            rows[0, i], rows[1, i] = top, total
