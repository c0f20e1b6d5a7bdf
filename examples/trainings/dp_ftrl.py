"""Logistic regression by DP-FTRL in NumPy, each training sound or with a fault that such code has had.

Every training takes `included`, a bool for each canary, and a generator, and returns a score for each canary, larger
for those that were in the data:

    overclaim check dp_ftrl.py:tree --canaries 256 --trainings 8 --gdp 0.5

Features of a canary are 0 but at its own place, so that its gradient, clipped to norm 1, is 1 there; where it is not
included its gradient is 0. All models are seen. The sound trainings have a mu of just 0.5.
"""

import numpy as np
from scipy import linalg, special

EPOCHS, RATE, FEATURE, MU = 2, 1e-4, 100.0, 0.5
#: Of the banded factorisation: steps, width of the band, and in how many steps an example takes part.
STEPS, BAND, TIMES = 64, 8, 8


def gradients(weights, included):
    """Clipped gradients of the canaries, each at its own place."""
    return included * np.minimum(1.0, FEATURE * (1 - special.expit(FEATURE * weights)))


def tree_of(steps, scale, places, rng):
    """Noise of the nodes of a tree over steps, by level: a node covers 2^level of them."""
    levels = steps.bit_length()
    return [rng.normal(0, scale, (steps >> level, places)) for level in range(levels)]


def run_tree(included, rng, fresh=True):
    """Train in epochs, an example a step, the second epoch in reverse; return the noisy sums of each epoch's nodes.

    The tree is restarted in each epoch: with fresh noise, or with the same.
    """
    many = included.size
    levels = many.bit_length()
    scale = np.sqrt(EPOCHS * levels) / MU
    noise, weights, seen = tree_of(many, scale, many, rng), np.zeros(many), []
    for epoch in range(EPOCHS):
        if epoch and fresh:
            noise = tree_of(many, scale, many, rng)
        order = np.arange(many)[:: 1 if epoch % 2 == 0 else -1]
        sums = [nodes.copy() for nodes in noise]
        start, total = weights.copy(), np.zeros(many)
        for step, canary in enumerate(order):
            gradient = gradients(weights, included)[canary]
            total[canary] += gradient
            for level in range(levels):
                sums[level][step >> level, canary] += gradient
            # What is published: the sum so far, with the noise of the nodes that make it up.
            end, prefix = step + 1, total.copy()
            for level in range(levels):
                if end >> level & 1:
                    prefix += noise[level][(end >> level) - 1]
            weights = start + RATE * prefix
        seen.append(sums)  # differences of what is published
    return seen


def place(epoch, canary, many):
    return canary if epoch % 2 == 0 else many - 1 - canary


def tree(included, rng):
    """The score is the sum of all nodes with a canary, at its place."""
    seen, canaries = run_tree(included, rng), np.arange(included.size)
    return sum(
        sums[level][place(epoch, canaries, included.size) >> level, canaries]
        for epoch, sums in enumerate(seen)
        for level in range(len(sums))
    )


def tree_noise_kept(included, rng):
    """The restarted tree has the noise that it had: a canary that is in another leaf by then is seen without noise."""
    first, second = run_tree(included, rng, fresh=False)
    canaries = np.arange(included.size)
    return first[0][canaries, canaries] - second[0][canaries, canaries]


def banded(included, rng, together=False):
    """Train with noise that is correlated within a band of steps, C^-1 Z for a banded C with columns of norm 1.

    A canary takes part in steps that are a band apart, as its sensitivity assumes, or in as many steps together. The
    score weighs what is seen, C times the noisy gradients, by what a canary adds to it.
    """
    column = np.full(BAND, 1 / np.sqrt(BAND))
    strategy = linalg.toeplitz(np.append(column, np.zeros(STEPS - BAND)), np.zeros(STEPS))
    scale = np.sqrt(TIMES) / MU
    noise = linalg.solve_triangular(strategy, rng.normal(0, scale, (STEPS, included.size)), lower=True)
    own = np.arange(included.size) % BAND
    steps = np.arange(STEPS)[:, None]
    takes_part = steps // TIMES == own if together else steps % BAND == own
    weights, seen = np.zeros(included.size), []
    for step in range(STEPS):
        noisy = gradients(weights, included & takes_part[step]) + noise[step]
        seen.append(noisy)
        weights = weights + RATE * noisy
    return ((strategy @ takes_part) * (strategy @ np.array(seen))).sum(axis=0)


def banded_together(included, rng):
    """An example takes part in adjacent steps, and its sensitivity is that of steps a band apart."""
    return banded(included, rng, together=True)
