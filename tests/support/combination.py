"""A learner whose leak needs several parts of a pair at once: what families miss and a search should find."""

from dataclasses import dataclass

import numpy as np

#: The losses of each third of the rounds behind the first.
PATTERN = (0.5, 0.0, 1.0)


@dataclass
class _Seen:
    first: np.ndarray
    matched: np.ndarray
    rounds: int = 0


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Remembers the first loss, and tells it the better the others follow a pattern: a third 1/2, then 0, then 1."""

    rounds: int
    arms: int = 2
    feedback: str = "bandit"

    def start(self, runs, draws):
        return _Seen(np.zeros(runs), np.zeros(runs))

    def probabilities(self, state):
        lean = 0.45 * state.first * state.matched / (self.rounds - 2)
        return np.stack([0.5 - lean, 0.5 + lean])

    def act(self, state, draws):
        return (draws.uniform(state.first.shape) < self.probabilities(state)[1]).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        if state.rounds == 0:
            state.first = 2 * feedback - 1
        else:
            state.matched = state.matched + (feedback == PATTERN[3 * (state.rounds - 1) // (self.rounds - 1)])
        state.rounds += 1
