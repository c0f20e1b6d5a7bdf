"""False alarms of audits of sound targets at the edge of what they promise: each view, each relation, exceptions.

    python benchmarks/validity/sayable_alarms.py [AUDITS] [NAME ...]

Every target spends all of its epsilon on some pair of neighbours by its relation, and more on pairs that are none: a
search that left the relation would falsify it. An audit is wrong with probability at most 1 - confidence.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np
from hypothesis import strategies as st

from overclaim import Claim, Verdict, falsify
from overclaim.benchmarks import tables
from overclaim.testing import neighbours

AUDITS, RUNS, CONFIDENCE = 1000, 300, 0.95
ONE = Claim(epsilon=1.0)
UNIT = st.lists(st.floats(0, 1), min_size=3, max_size=4)
ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 1)), min_size=2, max_size=4)
PLANE = st.lists(st.floats(0, 1), min_size=2, max_size=2)
TELLING = {"left": [[1.0, 1.0], [0.0, 0.0]], "right": [[0.0, 0.0], [0.0, 0.0]]}


def noisy(query, scale):
    """Return a batched mechanism: a number of the data with Laplace noise."""

    def mechanism(data, draws, runs):
        return query(data) + draws.generator.laplace(scale=scale, size=runs)

    mechanism.batched = True
    return mechanism


def of_users(data):
    """Return the sum over users of what one user's rows add up to, at most 1."""
    totals: dict[str, float] = {}
    for user, value in data:
        totals[user] = totals.get(user, 0.0) + value
    return sum(min(1.0, total) for total in totals.values())


class Coin:
    """Flips the loss that it is told, as often as epsilon = 1 wants, and shows that bit one way or another."""

    feedback = "bandit"
    true = math.e / (1 + math.e)

    def __init__(self, arms, rounds, rng):
        self.rng, self.bit = rng, 0

    def act(self):
        return int(self.rng.integers(2))

    def update(self, loss):
        self.bit = round(loss) if self.rng.random() < self.true else 1 - round(loss)

    def report(self):
        return {"bit": self.bit}

    def model(self):
        return [self.bit, "x"]

    def release(self):
        return self.bit


class Own(Coin):
    """Plays its context, and then what it was told of the first loss."""

    def observe(self, context):
        self.context = context

    def act(self):
        return self.context if self.context is not None else self.bit

    def update(self, loss):
        if self.context is not None:
            super().update(self.context)


def raising(data, rng):
    """Raise for 1 or for 0, by randomised response."""
    if (rng.random() < Coin.true) == bool(data[0]):
        raise ValueError(data)
    return 0


def nan(data, rng):
    """Answer nan by randomised response to a value that is missing."""
    return math.nan if (rng.random() < Coin.true) == math.isnan(data[0]) else 0.0


CONTEXTS = {
    "left": [{"context": 0, "losses": [0.0, 0.0]}, {"context": None, "losses": [0.0, 0.0]}],
    "right": [{"context": 1, "losses": [0.0, 0.0]}, {"context": None, "losses": [0.0, 0.0]}],
}
TARGETS = {
    "view joint": (Own, Claim(epsilon=1.0, surface="joint"), CONTEXTS),
    "view reports": (Coin, Claim(epsilon=1.0, surface="reports"), TELLING),
    "view model": (Coin, Claim(epsilon=1.0, surface="model"), TELLING),
    "view release, plain class": (Coin, Claim(epsilon=1.0, surface="release"), TELLING),
    "exceptions as outcomes": (raising, Claim(epsilon=1.0, raising="outcome"), {"left": [0], "right": [1]}),
    "nan": (nan, ONE, {"left": [math.nan], "right": [0.0]}),
    "replace:3": (noisy(sum, 3.0), ONE, {"inputs": neighbours(UNIT, "replace:3")}),
    "add-remove:2": (noisy(sum, 2.0), ONE, {"inputs": neighbours(UNIT, "add-remove:2")}),
    "zero-out": (noisy(sum, 1.0), ONE, {"inputs": neighbours(UNIT, "zero-out")}),
    "l1:0.5": (noisy(sum, 0.5), ONE, {"inputs": neighbours(PLANE, "l1:0.5")}),
    "l2:0.5": (noisy(sum, math.sqrt(0.5)), ONE, {"inputs": neighbours(PLANE, "l2:0.5")}),
    "linf:0.25": (noisy(sum, 0.5), ONE, {"inputs": neighbours(PLANE, "linf:0.25")}),
    "user": (noisy(of_users, 1.0), ONE, {"inputs": neighbours(ROWS, "user")}),
    "replace-user": (noisy(of_users, 1.0), ONE, {"inputs": neighbours(ROWS, "replace-user")}),
    "zero-out-user": (noisy(of_users, 1.0), ONE, {"inputs": neighbours(ROWS, "zero-out-user")}),
}


def main() -> None:
    """Print how many of the audits falsified a claim that is true."""
    audits = int(sys.argv[1]) if len(sys.argv) > 1 else AUDITS
    alpha = 1 - CONFIDENCE
    most = alpha + 3 * math.sqrt(alpha * (1 - alpha) / audits)
    rows: tables.Rows = []
    for name in sys.argv[2:] or TARGETS:
        target, claim, worlds = TARGETS[name]
        began, alarms, bounds = time.process_time(), 0, []
        for seed in range(audits):
            result = falsify(target, claim, **worlds, runs=RUNS, seed=seed, confidence=CONFIDENCE, shrink=False)
            alarms += result.verdict is Verdict.FALSIFIED
            bounds.append(result.epsilon_lower)
        rows.append(
            {
                "what is said": name,
                "audits": audits,
                "false alarms": alarms,
                "rate": round(alarms / audits, 4),
                "at most": round(most, 4),
                "mean bound, of 1": round(float(np.mean(bounds)), 3),
                "CPU s": round(time.process_time() - began),
            }
        )
        print(*rows[-1].values(), flush=True, file=sys.stderr)
    print(tables.table(rows))


if __name__ == "__main__":
    main()
