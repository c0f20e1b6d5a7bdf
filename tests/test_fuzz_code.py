"""Fuzzing of other people's code: learners and mechanisms that misbehave, and honest ones.

What is private by construction is not FALSIFIED more often than alpha allows; what misbehaves ends with a verdict or
with an error that says what is wrong with it.
"""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from overclaim import Claim, Pair, Verdict, falsify
from overclaim.audit.pipeline.falsify import falsify_mechanism
from overclaim.learners.protocol import LearnerError
from overclaim.tests.support.fuzzing import FACTOR, cases, values

PAIR = Pair([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
ALPHA = 0.05


def settled(audit):
    """Run an audit of somebody's code: a verdict, or an error that says what is wrong with the code."""
    try:
        outcome = audit().verdict
    except (LearnerError, ValueError) as error:
        outcome = str(error)
    assert isinstance(outcome, Verdict) or outcome


def few_enough(what, alarms, audits):
    most = int(stats.binom.isf(1e-6, audits, ALPHA))
    print(f"{what}: {alarms} of {audits} falsified at alpha = {ALPHA}, at most {most}")
    assert alarms <= most


def generator_action():
    yield 0


ACTIONS = {
    "float": lambda: 0.5,
    "whole float": lambda: 1.0,
    "none": lambda: None,
    "text": lambda: "0",
    "array": lambda: np.array([0, 1]),
    "column": lambda: np.array([[1]]),
    "numpy": lambda: np.int8(1),
    "bool": lambda: True,
    "below": lambda: -1,
    "beyond": lambda: 2,
    "huge": lambda: 10**30,
    "nan": lambda: math.nan,
    "generator": generator_action,
    "class": lambda: int,
    "raises": lambda: 1 // 0,
    "no key": lambda: {}["x"],
    "assertion": lambda: pytest.fail("as a user's assertion would"),
    "recursion": lambda: ACTIONS["recursion"](),
    "stop": lambda: next(iter(())),
}


def bad_learner(action, when, where, feedback, store):
    """A learner that misbehaves in one round, in one method."""

    class Bad:
        shared = 0

        def __init__(self, arms, rounds, rng):
            self.rng, self.t, self.arms = rng, 0, arms
            if where == "init":
                ACTIONS[action]()

        def act(self):
            self.t += 1
            Bad.shared += 1
            if store == "class":
                return Bad.shared % self.arms
            if store == "own randomness":
                return random.randrange(self.arms)
            if store == "attributes":
                self.__dict__[f"x{self.t}"] = self
            return ACTIONS[action]() if where == "act" and self.t >= when else int(self.rng.integers(self.arms))

        def update(self, told):
            if where == "update" and self.t >= when:
                ACTIONS[action]()
            if store == "writes feedback" and isinstance(told, np.ndarray):
                told += 1

    if feedback is not ...:
        Bad.feedback = feedback
    if store == "no act":
        del Bad.act
    return Bad


@pytest.mark.slow(reason="a hundred audits")
@cases(80)
@given(
    st.sampled_from(list(ACTIONS)),
    st.integers(1, 3),
    st.sampled_from(["init", "act", "update"]),
    st.sampled_from(["full", "bandit", "none", None, 3, ...]),
    st.sampled_from([None, None, "class", "own randomness", "attributes", "writes feedback", "no act"]),
    st.integers(0, 10**6),
)
def test_learners_that_misbehave(action, when, where, feedback, store, seed):
    kind = bad_learner(action, when, where, feedback, store)
    claim = Claim(epsilon=1.0, losses="unit")
    settled(lambda: falsify(kind, claim, pair=PAIR, runs=200, seed=seed))


def honest_learner(kind, epsilon, delta):
    """Private by construction: its first play is noise, every later one follows from a randomised response."""

    class Honest:
        feedback = "full"

        def __init__(self, arms, rounds, rng):
            self.rng, self.arm = rng, int(rng.integers(arms))

        def act(self):
            return self.arm if kind != "uniform" else int(self.rng.integers(2))

        def update(self, told):
            if kind == "uniform" or getattr(self, "told", False):
                return
            self.told = True
            truth = int(told[0] > told[1])
            if kind == "reveals with delta" and self.rng.random() < delta:
                self.arm = truth
                return
            stay = math.exp(epsilon) / (1 + math.exp(epsilon))
            self.arm = truth if self.rng.random() < stay else 1 - truth

    return Honest


@pytest.mark.nightly(reason="60 audits; of mechanisms CI has 30")
def test_honest_learners_are_falsified_no_more_than_alpha():
    """At the claim's very boundary; the count's false-alarm probability is 1e-6, by the binomial law at alpha."""
    rng, alarms, audits = np.random.default_rng(), 0, 60 * FACTOR
    rng = np.random.default_rng(0) if FACTOR == 1 else rng
    for _ in range(audits):
        kind = rng.choice(["uniform", "responds", "reveals with delta"])
        epsilon = float(rng.choice([0.1, 0.5, 1.0, 2.0]))
        delta = float(rng.choice([0.01, 0.1])) if kind == "reveals with delta" else 0.0
        result = falsify(
            honest_learner(kind, epsilon, delta),
            Claim(epsilon=epsilon, delta=delta),
            pair=PAIR,
            runs=int(rng.integers(60, 300)),
            seed=int(rng.integers(2**31)),
            confidence=1 - ALPHA,
            stop=str(rng.choice(["budget", "early"])),
        )
        alarms += result.verdict is Verdict.FALSIFIED
    few_enough("honest learners", alarms, audits)


def honest_mechanism(epsilon):
    def respond(data, rng):
        return int((rng.random() < math.exp(epsilon) / (1 + math.exp(epsilon))) == bool(data[0]))

    return respond


@pytest.mark.slow(reason="30 audits")
def test_honest_mechanisms_are_falsified_no_more_than_alpha():
    """As for learners."""
    rng, alarms, audits = np.random.default_rng(1 if FACTOR == 1 else None), 0, 30 * FACTOR
    for _ in range(audits):
        epsilon = float(rng.choice([0.1, 0.5, 1.0, 2.0]))
        result = falsify_mechanism(
            honest_mechanism(epsilon),
            Claim(epsilon=epsilon),
            left=[0],
            right=[1],
            runs=int(rng.integers(200, 600)),
            seed=int(rng.integers(2**31)),
            confidence=1 - ALPHA,
        )
        alarms += result.verdict is Verdict.FALSIFIED
    few_enough("honest mechanisms", alarms, audits)


OUTPUTS = {
    **{name: make for name, make in ACTIONS.items() if name != "assertion"},
    "empty": lambda: [],
    "ragged": lambda: [[1], [1, 2]],
    "mixed": lambda: [1, "a", None],
    "complex": lambda: 1j,
    "inf": lambda: math.inf,
    "dict": lambda: {"a": 1},
    "bytes": lambda: b"ab",
    "datetime": lambda: np.datetime64("2020-01-01"),
}


MISBEHAVING = (
    st.sampled_from(list(OUTPUTS)),
    st.sampled_from([0.0, 0.5, 0.99]),
    values,
    values,
    st.integers(0, 10**6),
)


def misbehaves(output, rate, left, right, seed):
    def mechanism(data, rng):
        return OUTPUTS[output]() if rng.random() >= rate else 0

    settled(lambda: falsify_mechanism(mechanism, Claim(epsilon=1.0), left=left, right=right, runs=200, seed=seed))


@pytest.mark.few(8)
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_mechanism_that_misbehaves(output):
    misbehaves(output, 0.5, [0], {"a": None}, 0)


@pytest.mark.slow(reason="60 audits")
@cases(60)
@given(*MISBEHAVING)
def test_mechanisms_that_misbehave(output, rate, left, right, seed):
    misbehaves(output, rate, left, right, seed)
