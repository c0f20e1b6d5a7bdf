"""Mechanisms and learners as users write them: one for each kind of output, input and fault."""

import os
import random
import time

import numpy as np


def count(data, rng, scale=1.0):
    """Count the records."""
    return len(data) + rng.laplace(scale=scale)


def winner(data, draws, runs):
    """Return the place of the largest noisy vote, of all runs at once."""
    noise = draws.generator.laplace(scale=1.0, size=(len(data), runs))
    return (np.array(data)[:, None] + noise).argmax(axis=0)


winner.batched = True


def ages(data, rng):
    """Add up ages, and take what is missing for 999: the fault."""
    return sum(999 if age == "none" else age for age in data) + rng.laplace(scale=100)


def words(data, rng):
    """Answer in words, and now and then with the record itself: the fault."""
    if data and rng.random() < 0.05:
        return f"record {data[-1]}"
    return "many" if len(data) + rng.laplace() > 2 else "few"


def row(data, rng):
    """Return a table of several kinds of columns."""
    total = float(np.sum(data))
    parity = int(rng.random() < 0.55) ^ (round(total) % 2)
    return {"sum": total + rng.laplace(scale=2.0), "parity": parity, "seen": [bool(rng.random() < 0.5), "x"]}


def visits(data, rng):
    """Count the visits of all users: one user may have several, which the noise does not cover."""
    return len(data) + rng.laplace(scale=1.0)


def mean(data, rng):
    """Return a mean whose noise is as large as one record of several matters, and no more."""
    return float(np.mean(data)) + rng.laplace(scale=1.0 / len(data))


def slow(data, rng):
    """Take long where a record is large."""
    if max(data) > 0.75:
        end = time.process_time() + 0.25
        while time.process_time() < end:
            pass
    return sum(data) + rng.laplace(scale=0.5)


def features(data, rng):
    """Average each feature of the first record and its neighbours; the second feature has half the noise."""
    table = np.array(data, dtype=float)
    return (table.sum(axis=0) + rng.laplace(scale=[1.0, 0.5])).tolist()


def from_system(data):
    """Answer by randomness of the system, half of the noise."""
    bits = random.Random(os.urandom(16))
    return len(data) + 0.5 * (bits.expovariate(1.0) - bits.expovariate(1.0))


class Model:
    """What a fit returns."""

    def __init__(self, coef, notes):
        self.coef_, self.notes = coef, notes


def fit(data, rng):
    """Fit a model: its coefficient is noisy, its notes are not."""
    return Model(float(np.mean(data)) + rng.laplace(scale=2.0 / len(data)), f"{len(data)} records")


def canaries(included, rng):
    """Give each canary the score that a training with too little noise gives it."""
    return included + rng.normal(scale=0.5, size=included.size)


class Clicks:
    """Show the banner that was clicked on less often, by noisy counts."""

    feedback = "full"

    def __init__(self, arms, rounds, rng, scale=1.0):
        self.rng, self.scale, self.ahead = rng, scale, 0.0

    def act(self):
        """Return the arm."""
        return int(self.ahead > 0)

    def update(self, losses):
        """Add a noisy difference."""
        self.ahead = float(losses[0]) - 0.5 + self.rng.laplace(scale=self.scale)


class Greeter:
    """Repeat the last context with a chance that the losses of that round set."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.rng, self.context, self.chance = rng, 0.0, 0.5

    def observe(self, context):
        """Take the context."""
        self.context = float(context[0])

    def act(self):
        """Return the arm."""
        return int(self.rng.random() < self.chance)

    def update(self, loss):
        """Learn from the context and the loss."""
        self.chance = 0.35 + 0.3 * (0.5 * self.context + 0.5 * float(loss))


class Follower:
    """Follow the leader, on noisy sums."""

    feedback = "full"

    def __init__(self, arms, rounds, rng, scale=0.5):
        self.rng, self.scale, self.sums = rng, scale, np.zeros(arms)

    def act(self):
        """Return the arm."""
        return int(np.argmin(self.sums + self.rng.laplace(scale=self.scale, size=len(self.sums))))

    def update(self, losses):
        """Add the losses."""
        self.sums = self.sums + losses
