"""Laws of some of a learner's actions at any horizon: what is known of the rows in `horizon.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overclaim.audit.attacks import learner_attacks as attacks
from overclaim.audit.laws.exact import epsilon_from_laws
from overclaim.audit.laws.sequences import COARSE, window_laws
from overclaim.audit.play.pairs import Pair
from overclaim.audit.search.exact_search import expected_bound
from overclaim.mechanisms.draws import Draws

Floats = NDArray[np.float64]
#: Rounds that the leader of `constant_sequence` is kept, quantiles of the noise, and the grid of its log-weight.
LONGEST, QUANTILES = 12, 1000
GRID = np.linspace(-40.0, 40.0, 3201)
#: Quantiles of each of two noises, for the law of the first three arms.
OF_TWO = 300


def constant_sequence(arms: int, eta: float, gamma: float) -> tuple[float, int]:
    """Return the largest |ln P(a) / P'(a)| of a = the first arm in rounds 1 to n, n up to `LONGEST` + 1, and that n.

    The noise of batched EXP3 has scale 1. On these sequences one log-weight alone moves, so their law is an integral
    over one noise after the other, on a grid. As actions of a prefix they are shown at every horizon from n on.
    """
    noise = quantiles(QUANTILES, 1.0)
    p = (1 - gamma) / (1 + (arms - 1) * np.exp(-GRID)) + gamma / arms
    later = np.ones_like(GRID)  # the probability of playing on in the same way, from each log-weight
    best = (0.0, 1)
    for n in range(2, LONGEST + 2):
        stayed = [np.interp(x - eta / q * (1 + noise), GRID, later).mean() for x, q in zip(GRID, p, strict=True)]
        later = p * (np.array(stayed) if n > 2 else 1.0)
        left, right = (np.interp(-eta * arms * (loss + noise), GRID, later).mean() for loss in (1.0, 0.0))
        best = max(best, (abs(math.log(left / right)), n))
    return best


def quantiles(many: int, scale: float) -> Floats:
    """Return the middles of as many equal parts of Laplace noise."""
    u = (np.arange(many) + 0.5) / many - 0.5
    noise: Floats = -np.sign(u) * scale * np.log1p(-2 * np.abs(u))
    return noise


def first_three(learner: Any, pair: Pair) -> tuple[Floats, Floats]:
    """Return the laws of arms 2 and 3 where arm 1 is the first, over the noise of two rounds; arms are alike."""
    noise, laws = quantiles(OF_TWO, learner.noise.scale), []
    one, two = np.repeat(noise, OF_TWO), np.tile(noise, OF_TWO)
    for world in (pair.left, pair.right):
        law = []
        for arm in range(learner.arms):
            state = learner.inner.start(one.size, Draws(0))
            learner.inner.update(state, np.zeros(one.size, dtype=np.intp), world[0][0] + one, Draws(0))
            weight = np.array(learner.inner.probabilities(state)[arm])
            learner.inner.update(state, np.full(one.size, arm), world[1][arm] + two, Draws(0))
            law.append((learner.inner.probabilities(state) * weight).mean(axis=-1))
        laws.append(np.concatenate(law))
    return laws[0], laws[1]


def first_two_of_ftpl(learner: Any, pair: Pair) -> tuple[Floats, Floats]:
    """Return the laws of "arm 2 is arm 1" and "it is not" of the FTPL conversion, over one noise and one count."""
    inner, noise, laws = learner.inner, quantiles(QUANTILES, learner.noise.scale), []
    counts = np.arange(1, inner.cap + 1)
    weights = (1 - 1 / inner.arms) ** (counts - 1) / inner.arms
    weights[-1] = (1 - 1 / inner.arms) ** (inner.cap - 1)
    for world in (pair.left, pair.right):
        state, first = (
            inner.start(counts.size * noise.size, Draws(0)),
            np.zeros(counts.size * noise.size, dtype=np.intp),
        )
        state.shift_at(state.places(first), -inner.eta * np.outer(counts, world[0][0] + noise).reshape(-1))
        again = inner.leading_probability(state, first).reshape(counts.size, -1).mean(axis=1) @ weights
        laws.append(np.array([again, 1 - again]))
    return laws[0], laws[1]


def best_window(learner: Any, pair: Pair, runs: int) -> tuple[float, float]:
    """Return the largest epsilon of a window of twelve arms, and the largest bound to expect of one."""
    windows = []
    for before in reversed(attacks.BEFORE):
        if before <= pair.t0:
            begin = pair.t0 - before
            laws = window_laws(learner, pair, begin, min(pair.rounds, begin + attacks.WINDOW), cells=COARSE)
            windows.append((epsilon_from_laws(*laws), expected_bound(*laws, 0.0, runs)))
    return max(epsilon for epsilon, _ in windows), max(bound for _, bound in windows)
