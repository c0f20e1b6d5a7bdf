"""What differs between outputs, in words that fresh runs show; and noise that no generator draws."""

import html
import random
import re
import types
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from numpy.random import RandomState

from overclaim import Claim, Verdict, falsify, falsify_mechanism
from overclaim.audit.pipeline.remarks import FIXED_NOISE, differences
from overclaim.reports.formats.html import render
from overclaim.reports.formats.sentences import cause, meaning
from overclaim.reports.reading import remark_lines

RUNS = 400
RNG = np.random.default_rng(0)
NOISE = RNG.laplace(size=(4, RUNS))


def told(left, right, **how):
    return list(differences(np.array(left), np.array(right), **how))


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ([NOISE[0], NOISE[1]], [NOISE[2], NOISE[3]], []),
        ([NOISE[0], 0 * NOISE[0] + 5], [NOISE[2], 0 * NOISE[0] + 4], ["output[1] has no noise: 5 on the left, 4 on"]),
        ([NOISE[0], 0 * NOISE[0] + 5], [NOISE[2], 0 * NOISE[0] + 5], []),
        (
            [NOISE[0], 2.5 * NOISE[0] + 1],
            [NOISE[2], 2.5 * NOISE[2] + 3],
            ["output[0] - 0.4 x output[1] has no noise: -0.4 on the left, -1.2 on the right, in all 400 runs of each"],
        ),
        ([NOISE[0], NOISE[0] + 1], [NOISE[2], NOISE[2] + 1], []),
        ([NOISE[0], 3 * NOISE[1]], [NOISE[2], NOISE[3]], ["the spread of output[1] differs: "]),
        ([NOISE[0] > 0, NOISE[1] > 2], [NOISE[2] > 0, NOISE[3] > 0], []),
    ],
    ids=["alike", "constant", "same constant", "combined", "same combined", "scale", "truth values"],
)
def test_what_differs_is_told(left, right, words):
    """A logistic regression named no column."""
    said = told(left, right)
    assert len(said) == len(words), said
    assert all(line.startswith(word) for line, word in zip(said, words, strict=True))


def test_several_sums_without_noise_are_told_one_by_one():
    tree = [NOISE[0], NOISE[1], NOISE[0] + NOISE[1], NOISE[0] - NOISE[1]]
    right = [row + shift for row, shift in zip(tree, (0, 0, 1, 2), strict=True)]
    said = told(tree, right)
    assert len(said) == 2
    assert all(line.count("output") == 3 for line in said)


def test_the_clearest_column_is_told_where_no_event_is():
    (line,) = told([NOISE[0], NOISE[1] + 5], [NOISE[2], NOISE[3]], single=True)
    assert line.startswith("output[1] alone is above")
    assert told([NOISE[0], NOISE[1]], [NOISE[2], NOISE[3]], single=True) == []


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ([1.5, None], [1.5, 3.5], "output[1] is None on the left and a number on the right"),
        (None, 1.5, "the output is None on the left and a number on the right"),
        (["big", 1.5], ["small", 1.5], 'output[0] is "big" on the left and "small" on the right'),
        ({"n": 1.5, "big": 1}, {"n": 1.5}, 'key "big" is present on the left and missing on the right'),
        ([1.5, 0, 0], [1.5, 0], "the size of the output has no noise: 3 on the left, 2 on the right"),
        (["same", 1.5], ["same", None], "output[1] is a number on the left and None on the right"),
    ],
)
def test_what_is_no_number_has_a_cause_too(left, right, said):
    """Of constants one was named, of None, keys and categories none."""
    assert list(differences([left] * 50, [right] * 50)) == [f"{said}, in all 50 runs of each"]


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ([["a"], ["b"]], [["b"], ["b"]], 'output[0] is "a" in 50 of 100 runs on the left, in none on the other side'),
        ([3, 7], [3, 9], "the output is 9 in 50 of 100 runs on the right, in none on the other side"),
        ([{"n": 1.5}, {}], [{}, {}], 'key "n" is present in 50 of 100 runs on the left, in none on the other side'),
        (["a", "b"], ["b", "a"], ""),
    ],
)
def test_a_category_of_one_side_alone_is_a_cause(left, right, said):
    """Of a noisy maximum among the categories of the data nothing was said."""
    assert list(differences(left * 50, right * 50)) == [said] * bool(said)
    assert list(differences(left + right * 49, right * 50)) == []  # too rare to be told from chance


def test_noise_that_is_drawn_for_one_input_is_not_fixed():
    """The left input was asked alone: "it took no random number from its generator" was false."""

    def missing(data, rng):
        return None if sum(data) > 1 else rng.laplace(sum(data), 1.0)

    result = falsify_mechanism(missing, Claim(epsilon=1.0), left=[1, 1], right=[1], runs=2_000)
    assert result.remarks == ("the output is None on the left and a number on the right, in all 100 runs of each",)


def test_texts_and_missing_values_are_passed_over():
    left = [{"a": 1.0, "b": "x", "c": None}, {"a": 1.0, "b": "y"}]
    assert list(differences(left, left)) == []


def correlated(data, rng):
    noise = rng.laplace(scale=100.0)
    return [len(data) + noise, 2 * noise]


def test_a_falsified_result_says_it_and_a_sound_one_says_nothing():
    result = falsify_mechanism(correlated, Claim(epsilon=1.0), left=[1], right=[], runs=2_000)
    assert result.verdict is Verdict.FALSIFIED
    assert result.remarks == (
        "output[0] - 0.5 x output[1] has no noise: 1 on the left, 0 on the right, in all 100 runs of each",
    )
    sound = falsify_mechanism(lambda data, rng: rng.laplace(scale=3.0), Claim(epsilon=1.0), left=1, right=0, runs=400)
    assert sound.remarks == ()


#: The remark on code that seeds itself, in a line of this file.
LINE = "LINE"
SEEDED = "it seeds itself with {} (LINE): the noise from that seed is the same in every run"
default_rng = np.random.default_rng


class DefaultSeed:
    """Broken: the noise is the same in every run."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng, seed=10):
        self.rng, self.best = np.random.default_rng(seed), 0

    def act(self):
        return self.best

    def update(self, loss):
        self.best = int(loss + self.rng.laplace() > 0.5)


class Drawing(DefaultSeed):
    def __init__(self, arms, rounds, rng):
        self.rng, self.best = rng, 0


class Constant(DefaultSeed):
    def __init__(self, arms, rounds, rng):
        self.rng, self.best = types.SimpleNamespace(laplace=lambda: 0.25), 0


def of_data(data, rng):
    return len(data) + np.random.default_rng(5).laplace()


def constant(data, rng):
    return len(data) + 0.25


@pytest.mark.parametrize(
    ("learner", "remarks"), [(DefaultSeed, (SEEDED.format(10),)), (Constant, (FIXED_NOISE,)), (Drawing, ())]
)
def test_fixed_noise_of_a_learner_is_told(learner, remarks):
    """It was FALSIFIED, or nothing was seen, without a word why."""
    found = falsify(learner, Claim(epsilon=1.0), rounds=2, arms=2, runs=1_000).remarks
    assert [re.sub(r"\(test_remarks.py:\d+\)", f"({LINE})", remark) for remark in found] == [*remarks]


def test_what_raises_in_every_run_is_told():
    """A typo in the target looked like a sound one: no difference was seen, exit code 3."""
    claim = Claim(epsilon=1.0, raising="outcome")
    result = falsify_mechanism(lambda data, rng: missing_name, claim, left=1, right=0, runs=200)  # noqa: F821
    assert "it raised NameError in all 8 runs of each input" in result.remarks
    sometimes = falsify_mechanism(lambda data, rng: 1 // int(2 * rng.random()), claim, left=1, right=0, runs=200)
    assert sometimes.remarks == ()


def test_fixed_noise_of_a_mechanism_is_told():
    result = falsify_mechanism(constant, Claim(epsilon=1.0), left=[1], right=[], runs=400)
    assert result.remarks[0] == FIXED_NOISE
    own = falsify_mechanism(constant, Claim(epsilon=1.0), left=[1], right=[], runs=400, os_random=True)
    assert FIXED_NOISE not in own.remarks


def legacy(data, rng):
    np.random.seed(5)
    return len(data) + np.random.laplace()


def imported_state(data, rng):
    own = RandomState(seed=5)
    assert isinstance(own, np.random.RandomState)
    return len(data) + own.laplace()


def standard(data, rng):
    return len(data) + random.Random(5).gauss(0, 1)


@pytest.mark.parametrize("target", [of_data, legacy, imported_state, standard])
def test_a_seed_of_its_own_is_told_with_its_line(target):
    result = falsify_mechanism(target, Claim(epsilon=1.0), left=[1], right=[], runs=400)
    first = target.__code__.co_firstlineno
    assert result.remarks[0] == SEEDED.format(5).replace(LINE, f"test_remarks.py:{first + 1}")


def test_a_seed_that_is_drawn_is_none_of_its_own():
    def drawn(data, rng):
        return len(data) + np.random.default_rng(int(rng.integers(2**31))).laplace()

    result = falsify_mechanism(drawn, Claim(epsilon=1.0), left=[1], right=[], runs=400)
    assert result.remarks == ()
    assert np.random.default_rng is default_rng


def test_every_report_shows_remarks_and_the_pair_that_raises():
    claim = {
        "name": "mine.py:total",
        "claimed": {"epsilon": 1.0, "delta": 0.0},
        "verdict": "FALSIFIED",
        "mechanism": True,
        "remarks": ["the output has no noise"],
        "searched": {
            **{"tried": 2, "refused": 1, "slow": 0, "reason": "total raised ValueError"},
            "one_sided": {
                **{"left": [None], "right": [0], "left_raised": 50, "right_raised": 0, "runs": 50},
                "said": "ValueError: x",
            },
        },
    }
    lines = remark_lines(claim)
    assert lines == [
        "the output has no noise",
        "raised on one side alone: ValueError: x; in 50 of 50 runs on [null], in 0 of 50 runs on [0]",
    ]
    assert (cause(claim), meaning(claim)) == tuple(lines)  # an exception on another pair is no cause
    page = html.unescape(render({"schema": 1, "claims": [claim]}))
    assert all(f"Remark: <bdi>{line}</bdi>" in page for line in lines)


def told_of(target, epsilon, **worlds):
    return falsify(target, Claim(epsilon=epsilon), runs=400, **worlds).remarks


def of_one(data, rng, epsilon=1.0):
    return data[0] + rng.laplace(scale=1 / epsilon)


class OfEps:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng, eps=1.0):
        self.rng = rng

    def act(self):
        return int(self.rng.integers(2))

    def update(self, loss):
        pass


@dataclass
class OfField:
    epsilon: float = 1.0
    batched = True

    def __call__(self, data, draws, runs):
        return data[0] + draws.generator.laplace(scale=1 / self.epsilon, size=runs)


DATA = {"left": [1], "right": [0]}


@pytest.mark.parametrize(
    ("target", "worlds", "name"),
    [
        (of_one, DATA, "epsilon"),
        (partial(of_one, epsilon=1.0), DATA, "epsilon"),
        (OfField(), DATA, "epsilon"),
        (OfEps, {"rounds": 2}, "eps"),
        (OfEps, {"rounds": 2, "left": [[1, 1], [0, 0]], "right": [[0, 0], [0, 0]]}, "eps"),
    ],
    ids=["function", "partial", "object", "class", "class on rounds"],
)
def test_an_epsilon_of_its_own_that_is_not_the_claims_is_told(target, worlds, name):
    """A claim of .2 about code whose default is 1 was falsified, and nothing said why."""
    assert told_of(target, 1.0, **worlds) == ()
    (line,) = told_of(target, 2.0, **worlds)
    assert line == f"its own {name} is 1, and the claim's epsilon 2 does not change it: --set {name}=2 does"
