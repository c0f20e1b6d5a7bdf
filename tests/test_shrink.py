"""Shrink: witnesses become small, and the new certificate owes nothing to the old runs."""

import importlib.util
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from overclaim import Claim, Pair, Verdict
from overclaim.audit.shrink import FRESH, shrink, shrink_task
from overclaim.audit.tasks import Task
from overclaim.learners import BanditReduction, LearnerError, Threshold
from overclaim.learners.losses import Quadratic


def audited(target, **options):
    task = Task(target=target, runs=100_000, **options)
    return task, task.prepare().audit()


def test_the_reduction_shrinks_to_one_loss():
    task, result = audited("agarwal-singh/reduction-threshold", rounds=6)
    shrunk = shrink_task(task, result)
    assert (shrunk.pair.rounds, shrunk.arms, shrunk.pair.t0) == (2, 2, 0)
    assert np.count_nonzero(shrunk.pair.left) + np.count_nonzero(shrunk.pair.right) == 2
    assert shrunk.epsilon_lower > shrunk.claimed == 1.0
    assert shrunk.seed == FRESH
    text = str(shrunk)
    assert "*(1, 0)*  (0, 0)" in text
    words = shlex.split(shrunk.replay)
    again = Pair.from_json(json.loads(words[words.index("--pair") + 1]))
    assert again.to_json() == shrunk.pair.to_json()
    assert json.loads(json.dumps(shrunk.to_json()))["pair"]["round"] == 1


def test_the_replay_gives_the_same_bound():
    task, result = audited("agarwal-singh/ftrl-experts", surface="release")
    shrunk = shrink_task(task, result)
    assert (shrunk.pair.rounds, shrunk.arms) == (2, 1)
    again = Task(
        target=task.target,
        rounds=2,
        arms=1,
        surface="release",
        runs=shrunk.runs,
        seed=shrunk.seed,
        pair=shrunk.pair,
    )
    assert again.prepare().audit().epsilon_lower == shrunk.epsilon_lower


def test_trials_serve_where_nothing_is_exact():
    task, result = audited("smith-thakurta/pftal-bandit", arms=1, surface="release")
    assert result.verdict is Verdict.FALSIFIED
    shrunk = shrink_task(task, result)
    assert shrunk.pair.rounds < 4
    assert all(isinstance(loss, Quadratic) for loss in shrunk.pair.left)  # as convex as the class demands


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")
def test_a_fast_witness_is_certified_on_kernels():
    """Its replay says so, and gives the same bound; NumPy's draws give another."""
    task, result = audited("agarwal-singh/reduction-threshold", rounds=2, fast=True)
    shrunk = shrink_task(task, result)
    words = shlex.split(shrunk.replay)
    assert "--fast" in words
    again, other = (
        replace(task, runs=shrunk.runs, seed=shrunk.seed, pair=shrunk.pair, fast=fast).prepare().audit()
        for fast in (True, False)
    )
    assert again.engine == "numba"
    assert again.epsilon_lower == shrunk.epsilon_lower != other.epsilon_lower


def test_what_survived_is_not_shrunk():
    task, result = audited("agarwal-singh/reduction-threshold", parameters={"calibration": "corrected"})
    assert shrink_task(task, result) is None


def test_learners_that_cannot_be_built_are_no_smaller_witness():
    ones = np.ones((4, 2))
    other = ones.copy()
    other[1] = -1

    def build(pair):
        if pair.rounds < 3:
            raise LearnerError("needs three rounds")
        learner = BanditReduction(inner=Threshold(arms=pair.arms, threshold=1.0), epsilon=1.0)
        return learner, Claim(epsilon=1.0, losses="symmetric")

    shrunk = shrink(build, Pair(ones, other), runs=50_000)
    assert shrunk.pair.rounds == 3


@pytest.mark.parametrize("seed", [0, 7])
def test_equal_rounds_are_counted_in_print(seed):
    learner = BanditReduction(inner=Threshold(arms=2, threshold=1.0), epsilon=1.0)

    def build(pair):
        if pair.rounds < 7:
            raise ValueError("seven rounds or none")
        return learner, Claim(epsilon=1.0, losses="symmetric")

    left, right = np.zeros((7, 2)), np.zeros((7, 2))
    left[0], right[0] = 1, -1
    assert "(0, 0) x 6" in str(shrink(build, Pair(left, right), runs=50_000, seed=seed))
