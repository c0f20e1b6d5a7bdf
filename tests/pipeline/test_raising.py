"""Exceptions: no output by default, and never dropped in silence; outcomes like any other where that is asked for."""

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from overclaim import Claim, Verdict, falsify, falsify_mechanism
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.raising import Outcomes, outcome_of
from overclaim.audit.search.one_sided import one_sided
from overclaim.learners.protocol import LearnerError
from overclaim.reports.command_line.cli import main
from overclaim.testing import neighbours

OUTCOME = Claim(epsilon=1.0, raising="outcome")
CODE = """
def mean(data, rng):
    known = [v for v in data if v is not None]
    sum(known) / len(known)
    return sum(known) + rng.laplace(scale=1.0)

def both(data, rng):
    if None in data:
        raise ValueError("a record is missing" + chr(10) + "which one is a secret")
    return len(data), sum(data)

def silent(data, rng):
    raise KeyError(data)
"""
RECORDS = json.dumps(
    {"type": "array", "minItems": 2, "maxItems": 2, "items": {"anyOf": [{"type": "null"}, {"enum": [0, 1]}]}}
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "raises.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)


def check(target, *words):
    words = ["check", target, "--epsilon", 1, "--runs", 2000, "--jobs", 1, *words]
    return CliRunner().invoke(main, [str(word) for word in words])


def test_a_pair_on_which_one_side_alone_raises_is_an_error_with_its_rates(folder):
    """It was left out: SURVIVED, exit code 0."""
    done = check("raises.py:mean", "--inputs", RECORDS)
    assert done.exit_code == 4, done.output
    (line,) = [line for line in done.stderr.splitlines() if "raised" in line]
    assert "mean raised ZeroDivisionError: division by zero, on one of two neighbours alone" in line
    assert "in 100 of 100 runs on [null, null], in 0 of 100 on [" in line
    assert "--raising outcome" in done.stderr.splitlines()[-1]


def test_the_pair_stands_beside_another_that_falsifies(folder):
    done = check("raises.py:both", "--inputs", RECORDS, "--json")
    assert done.exit_code == 1, done.output
    one = json.loads(done.stdout)["searched"]["one_sided"]
    assert one["said"] == "ValueError: a record is missing"
    assert {one["left_raised"], one["right_raised"]} == {0, one["runs"]}
    assert "raised on one side alone: ValueError" in check("raises.py:both", "--inputs", RECORDS).stdout


def test_what_raises_on_all_pairs_is_the_same_error_as_before(folder):
    done = check("raises.py:silent", "--inputs", RECORDS)
    assert (done.exit_code, "raised on every pair" in done.stderr) == (4, True), done.output


def test_a_given_pair_names_the_option_that_takes_an_exception(folder):
    done = check("raises.py:mean", "--left", "[null]", "--right", "[1]")
    assert (done.exit_code, "--raising outcome" in done.stderr) == (4, True), done.output
    told = check("raises.py:mean", "--left", "[null]", "--right", "[1]", "--raising", "outcome", "-v")
    assert (told.exit_code, 'the output is "raised ZeroDivisionError"' in told.stdout) == (1, True), told.output
    (again,) = [line for line in told.stdout.splitlines() if line.startswith("Reproduce")]
    assert "--raising outcome" in again


def sometimes(chance):
    def mechanism(data, rng):
        if rng.random() < chance[data]:
            raise ValueError(f"input {data}")
        return 0

    return mechanism


@pytest.mark.parametrize("mechanism", ["plain", "os_random"])
def test_how_often_it_raises_is_certified(mechanism):
    """The rates differ by a factor of 9: epsilon is 2.197. Their message, which names the input, is no outcome."""
    how = {"os_random": True} if mechanism == "os_random" else {}
    broken = falsify_mechanism(sometimes([0.1, 0.9]), OUTCOME, left=0, right=1, runs=4_000, **how)
    assert broken.verdict is Verdict.FALSIFIED
    assert 1.5 < broken.epsilon_lower < 2.2
    sound = falsify_mechanism(sometimes([0.5, 0.5]), OUTCOME, left=0, right=1, runs=4_000, **how)
    assert sound.verdict is not Verdict.FALSIFIED


@pytest.mark.slow(reason="1,000 audits")
def test_audits_of_a_sound_target_at_its_edge_are_within_alpha():
    """Alpha is 1%, and 3 sigma of 1,000 audits are 9.4. The seeds are fixed; others would exceed 19 once in 500."""
    at_edge = sometimes([1 / (1 + np.e), 1 - 1 / (1 + np.e)])
    alarms = [
        falsify_mechanism(at_edge, OUTCOME, left=0, right=1, runs=400, seed=seed).verdict is Verdict.FALSIFIED
        for seed in range(1_000)
    ]
    assert sum(alarms) <= 19


class OfOurs:
    """Called wrongly, out of memory, interrupted, or an error of ours: no outcome."""

    def __init__(self, error):
        self.error = error

    def __call__(self, data, rng):
        raise self.error


@pytest.mark.parametrize("error", [MemoryError(), SystemExit(1), LearnerError("ours"), KeyboardInterrupt()])
def test_what_is_no_outcome_is_raised(error):
    assert outcome_of(error) is None
    with pytest.raises(type(error)):
        Outcomes(OfOurs(error))(0, np.random.default_rng())


def test_a_wrong_call_is_no_outcome():
    with pytest.raises(LearnerError, match="cannot be called as mechanism"):
        falsify_mechanism(lambda data: data, OUTCOME, left=0, right=1, runs=200)
    assert Outcomes(lambda data, rng: len(5))(0, None) == "raised TypeError"


def test_a_batched_mechanism_has_no_outcome_for_one_run():
    def batched(data, draws, runs):
        return np.zeros(runs)

    batched.batched = True
    with pytest.raises(ValueError, match="raising is for"):
        falsify_mechanism(batched, OUTCOME, left=0, right=1, runs=200)


def test_rates_are_of_both_sides_by_turns():
    pair = DataPair(0, 1)
    assert one_sided(sometimes([0.5, 0.5]), pair, 0, 0, 100) is None
    assert one_sided(sometimes([0.0, 0.0]), pair, 0, 0, 100) is None
    found = one_sided(sometimes([0.0, 0.5]), pair, 0, 0, 100)
    assert (found.left_raised, found.runs) == (0, 100)
    assert 20 < found.right_raised < 80


class Raises:
    """Broken: a large loss stops it, sometimes."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.rng = rng

    def act(self):
        return 0

    def update(self, loss):
        if loss > 0.5 and self.rng.random() < 0.5:
            raise ValueError(f"loss {loss}")


class FromSystem:
    """Follows the first losses, with noise that no seed replays."""

    feedback = "bandit"
    scale = 0.05

    def __init__(self, arms, rounds):
        self.system, self.best = random.SystemRandom(), 0

    def act(self):
        return self.best

    def update(self, loss):
        self.best = int(loss + self.scale * (self.system.random() - 0.5) > 0.5)


class Flips(FromSystem):
    """Sound: in 3 of 10 runs it follows the other arm."""

    def update(self, loss):
        self.best = int(loss > 0.5) ^ (self.system.randrange(10) < 3)


@pytest.mark.parametrize("worlds", [{"rounds": 2}, {"left": [[1, 0], [0, 0]], "right": [[0, 1], [0, 0]]}])
@pytest.mark.parametrize(
    ("learner", "claim", "how", "verdict"),
    [
        (Raises, OUTCOME, {}, Verdict.FALSIFIED),
        (FromSystem, Claim(epsilon=1.0), {"os_random": True}, Verdict.FALSIFIED),
        (Flips, Claim(epsilon=1.0), {"os_random": True}, Verdict.SURVIVED),
    ],
)
def test_plain_classes_are_played_run_by_run(worlds, learner, claim, how, verdict):
    result = falsify(learner, claim, runs=1_000, arms=2, **worlds, **how)
    assert result.verdict is verdict
    assert result.pair.places == [0]


def test_a_learner_that_raises_on_one_side_alone_is_an_error():
    inputs = neighbours(st.lists(st.sampled_from([[0.0, 0.0], [1.0, 1.0]]), min_size=2, max_size=2))
    with pytest.raises(LearnerError, match=r"Raises raised ValueError: loss 1\.0, on one of two neighbours alone"):
        falsify(Raises, Claim(epsilon=1.0), inputs=inputs, runs=2000)


@pytest.mark.parametrize(("how", "claim"), [({"os_random": True}, Claim(epsilon=1.0)), ({}, OUTCOME)])
def test_a_batched_learner_is_refused(how, claim):
    from overclaim.learners import BatchedLaplace, Threshold

    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=2.0, batch=1)
    with pytest.raises(ValueError, match="is for plain classes, and BatchedLaplace plays many runs at once"):
        falsify(learner, claim, rounds=2, runs=200, **how)
