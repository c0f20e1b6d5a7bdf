"""False alarms of audits whose inputs are searched: targets that keep their claim exactly, many seeds, one table.

    python benchmarks/validity/input_search_alarms.py [SEEDS] [mechanisms|learners|edge]

Every audit is an error with probability at most 1 - confidence, 0.01 or of `edge` 0.05, whatever the search finds:
pairs are chosen on runs that certify nothing. Most of the mechanisms attain their claim on some pair, which is the
hardest case; all of `edge` do.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from hypothesis import strategies as st

from overclaim import Claim, Verdict, falsify
from overclaim.benchmarks import tables
from overclaim.learners import BatchedLaplace, Exp3, Threshold
from overclaim.learners.bandits.exp4 import SteadyExp4
from overclaim.learners.problems.advice import Advice
from overclaim.testing import neighbours

RUNS, SEEDS = 2000, 42
ONE, APPROXIMATE = Claim(epsilon=1.0), Claim(epsilon=1.0, delta=0.05)
UNIT = st.lists(st.floats(0, 1), min_size=1, max_size=5)
CATEGORIES = st.lists(st.integers(0, 2), max_size=5)


def batched(mechanism):
    """Mark a mechanism as one of many runs at once."""
    mechanism.batched = True
    return mechanism


def counts_of(data):
    """Return the counts of three categories, (3, 1)."""
    return np.bincount(np.array(data, dtype=int), minlength=3)[:, None]


def laplace(draws, shape, scale=1.0):
    return draws.generator.laplace(scale=scale, size=shape)


def geometric(draws, shape, epsilon=1.0):
    return draws.generator.geometric(1 - np.exp(-epsilon), shape) - draws.generator.geometric(
        1 - np.exp(-epsilon), shape
    )


@batched
def mean(data, draws, runs):
    return np.mean(data) + laplace(draws, runs, 1 / len(data))


@batched
def total(data, draws, runs):
    return np.sum(data) + laplace(draws, runs)


@batched
def total_of_missing(data, draws, runs):
    return np.nansum(data) + laplace(draws, runs)


@batched
def count(data, draws, runs):
    return len(data) + geometric(draws, runs)


@batched
def histogram(data, draws, runs):
    return counts_of(data) + geometric(draws, (3, runs))


@batched
def noisy_max(data, draws, runs):
    return (counts_of(data) + laplace(draws, (3, runs), 2.0)).argmax(axis=0)


@batched
def exponential(data, draws, runs):
    return (counts_of(data) / 2 + draws.generator.gumbel(size=(3, runs))).argmax(axis=0)


@batched
def randomised_response(data, draws, runs):
    truth = draws.generator.random(runs) < np.e / (np.e + 1)
    return np.where(truth, data, ~np.bool_(data))


@batched
def responses(data, draws, runs):
    truth = draws.generator.random((len(data), runs)) < np.e / (np.e + 1)
    return np.where(truth, np.array(data)[:, None], ~np.array(data, dtype=bool)[:, None]).sum(axis=0)


@batched
def sampled(data, draws, runs):
    """One record in the clear, with a probability of delta."""
    if not data:
        return np.zeros(runs)
    shown = draws.generator.random(runs) < 0.05
    return np.where(shown, 1.0 + np.max(data), 0.0)


@batched
def keys(data, draws, runs):
    """Keys whose noisy counts pass a threshold that one record passes with a probability below delta."""
    noisy = counts_of(data) + laplace(draws, (3, runs))
    return np.where((counts_of(data) > 0) & (noisy > 1 + np.log(1 / (2 * 0.05))), noisy, 0.0)


@batched
def clipped_sums(data, draws, runs):
    """Two sums of points of the l1 ball."""
    points = np.array(data, dtype=float).reshape(-1, 2)
    points /= np.maximum(1.0, np.abs(points).sum(axis=1, keepdims=True))
    return points.sum(axis=0)[:, None] + laplace(draws, (2, runs))


@batched
def among_columns(data, draws, runs):
    """A sum among columns that are narrowed, and differ by noise alone."""
    noise = laplace(draws, (300, runs))
    noise[150] += np.sum(data)
    return noise


#: Name: mechanism, claim, data, relation.
TARGETS = {
    "mean of n numbers": (mean, ONE, UNIT, "replace"),
    "sum of numbers": (total, ONE, UNIT, "add-remove"),
    "sum of numbers or NaN": (
        total_of_missing,
        ONE,
        st.lists(st.floats(0, 1) | st.just(float("nan")), min_size=1, max_size=5),
        "replace",
    ),
    "count, geometric": (count, ONE, UNIT, "add-remove"),
    "histogram": (histogram, ONE, CATEGORIES, "add-remove"),
    "report noisy max": (noisy_max, ONE, CATEGORIES, "add-remove"),
    "exponential": (exponential, ONE, CATEGORIES, "add-remove"),
    "randomised response": (randomised_response, ONE, st.booleans(), "replace"),
    "sum of responses": (responses, ONE, st.lists(st.booleans(), min_size=1, max_size=5), "replace"),
    "a record in the clear": (sampled, APPROXIMATE, CATEGORIES, "add-remove"),
    "keys above a threshold": (keys, APPROXIMATE, CATEGORIES, "add-remove"),
    "two sums": (
        clipped_sums,
        ONE,
        st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=4),
        "add-remove",
    ),
}


#: A learner that attains its claim of epsilon on a loss of 1 and one of 0, and one that randomises its response.
TIGHT = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
EXPERTS = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
ADVISED = BatchedLaplace(SteadyExp4(advice=Advice(EXPERTS[0]), eta=4.0, gamma=0.02), epsilon=1.0, batch=1)


class Responds:
    """It plays the arm with the smaller loss of the last round, with the probability of a randomised response."""

    feedback, arms = "full", 2

    def start(self, runs, draws):
        return np.zeros(runs)

    def act(self, state, draws):
        truth = draws.uniform(state.size) < np.e / (np.e + 1)
        return np.where(truth, state, 1 - state).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        state[:] = feedback[0] > feedback[1]


VECTORS = st.lists(st.floats(0, 1), min_size=2, max_size=2)
ROUNDS = st.lists(VECTORS, min_size=2, max_size=4)
ADVISED_ROUNDS = st.lists(
    st.fixed_dictionaries({"context": st.sampled_from(EXPERTS), "losses": VECTORS}), min_size=2, max_size=4
)
VISITS = st.lists(
    st.fixed_dictionaries({"user": st.sampled_from("ab"), "losses": VECTORS}),
    min_size=4,
    max_size=4,
).filter(lambda rounds: sum(one["user"] == "a" for one in rounds) == 2)
TWICE = Claim(epsilon=2.0)
LEARNERS = {
    "threshold": (TIGHT, ONE, ROUNDS, "replace"),
    "threshold, twice a user": (TIGHT, TWICE, ROUNDS, "user:2"),
    "randomised response": (Responds(), ONE, ROUNDS, "replace"),
    "randomised response, users": (Responds(), TWICE, VISITS, "user"),
    "EXP3": (BatchedLaplace(Exp3(arms=2, eta=4.0, gamma=0.02), epsilon=1.0, batch=1), ONE, ROUNDS, "zero-out"),
    "EXP4, advice as contexts": (ADVISED, ONE, ADVISED_ROUNDS, "replace-losses"),
}


#: Targets that attain their claim: as little confidence as shows false alarms at all.
EDGE = {
    "sum of numbers": TARGETS["sum of numbers"],
    "two sums": TARGETS["two sums"],
    "a sum among 300 columns": (among_columns, ONE, UNIT, "add-remove"),
    "threshold": LEARNERS["threshold"],
    "randomised response": LEARNERS["randomised response"],
}
KINDS = {"mechanisms": (TARGETS, 0.99), "learners": (LEARNERS, 0.99), "edge": (EDGE, 0.95)}


def main(seeds: int, kind: str) -> None:
    """Print the table."""
    targets, confidence = KINDS[kind]
    began, alarms, audits = time.process_time(), 0, 0
    print(f"| {kind.removesuffix('s')} | relation | claim | audits | false alarms | largest bound | mean bound |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for name, (target, claim, data, relation) in targets.items():
        pairs = neighbours(data, relation)
        how = {"inputs": pairs, "runs": RUNS, "confidence": confidence, "shrink": False}
        results = [falsify(target, claim, seed=seed, **how) for seed in range(seeds)]
        bounds = [result.epsilon_lower for result in results]
        wrong = sum(result.verdict is Verdict.FALSIFIED for result in results)
        alarms, audits = alarms + wrong, audits + seeds
        stated = f"({claim.epsilon:g}, {claim.delta:g})"
        cells = (name, relation, stated, str(seeds), str(wrong), f"{max(bounds):.3f}", f"{np.mean(bounds):.3f}")
        print(f"| {' | '.join(cells)} |", flush=True)
    expected = (1 - confidence) * audits
    print(f"\n{alarms} of {audits} audits, of {RUNS:,} runs each; at most {expected:.2f} are expected.")
    print(f"{time.process_time() - began:.0f} s of processor time. {tables.dated()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS, sys.argv[2] if len(sys.argv) > 2 else "mechanisms")
