"""Targets that draw from global generators: learners and mechanisms, seeded, refused, traced."""

import random

import numpy as np
import pytest
from click.testing import CliRunner

from overclaim import Claim, Verdict, falsify, falsify_mechanism
from overclaim.audit.plans.tasks import Task
from overclaim.learners.protocol import LearnerError
from overclaim.reports.command_line.cli import main
from overclaim.tests.support.command_line import refused

UCB = """
import random
import numpy as np

class Ucb:
    feedback = "bandit"
    def __init__(self, n_arms, T):
        self.totals = np.zeros(n_arms)
        self.rng = np.random.default_rng()
    def act(self):
        noise = np.random.laplace(0, 0.2, len(self.totals)) + self.rng.normal(0, 1e-9) + random.random() * 1e-9
        return int(np.argmin(self.totals + noise))
    def update(self, loss):
        self.totals[0] += loss

def count(data):
    return len(data) + np.random.laplace(scale=0.5)

def fixed(data):
    np.random.seed(7)
    return len(data) + np.random.laplace(scale=0.5)

def picks(data, rng):
    return len(data) + random.gauss(0, 1) + rng.laplace(scale=0.5)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "ucb.py").write_text(UCB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*words):
    return CliRunner().invoke(main, ["check", *map(str, words), "--jobs", "1"])


class Follower:
    """Broken: its noise, from the global generator, is for a claim five times as large."""

    feedback = "full"

    def __init__(self, arms, rounds):
        self.totals = np.zeros(arms)

    def act(self):
        return int(np.argmin(self.totals + np.random.laplace(0, 0.4, len(self.totals))))

    def update(self, losses):
        self.totals += losses


def test_a_learner_on_global_generators_is_falsified_and_nothing_of_it_stays():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    options = {"rounds": 2, "arms": 2, "runs": 4000, "global_random": True}
    result = falsify(Follower, Claim(epsilon=1.0), **options)
    assert result.verdict is Verdict.FALSIFIED  # its epsilon is 5 for losses in [0, 1]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert falsify(Follower, Claim(epsilon=1.0), **options).certificate == result.certificate


def test_without_it_the_refusal_names_the_cure(folder):
    for words in (("ucb.py:Ucb",), ("ucb.py:Ucb", "--set", "n_arms=2", "--set", "T=4")):
        done = check(*words, "--epsilon", 1, "--rounds", 4, "--runs", 400)
        assert done.exit_code in (2, 4)
        assert "--global-random" in done.output
    done = check("ucb.py:picks", "--epsilon", 1, "--left", "[0]", "--right", "[]", "--runs", 400)
    assert done.exit_code == 4
    assert "--global-random" in done.output
    done = check("ucb.py:count", "--epsilon", 1, "--left", "[0]", "--right", "[]", "--runs", 400)
    assert "--global-random" in done.output


@pytest.mark.slow(reason="a whole audit by a plain class")
def test_parameters_may_stand_for_arms_and_rounds(folder):
    done = check("ucb.py:Ucb", "--epsilon", 1, "--rounds", 4, "--runs", 4000, "--global-random", *SETS)
    assert done.exit_code == 1, done.output
    assert "--global-random" in done.output.rpartition("replay")[2]


SETS = ("--set", "n_arms=2", "--set", "T=4")


@pytest.mark.parametrize(("name", "code"), [("count", 1), ("picks", 1)])
def test_mechanisms_may_take_the_data_alone(folder, name, code):
    words = ("--epsilon", 0.5, "--left", "[0]", "--right", "[]", "--runs", 4000, "--global-random")
    first, again = check(f"ucb.py:{name}", *words), check(f"ucb.py:{name}", *words)
    assert first.exit_code == code, first.output
    assert first.output == again.output


def test_noise_of_a_fixed_seed_is_told_apart(folder):
    done = check("ucb.py:fixed", "--epsilon", 1, "--left", "[0]", "--right", "[]", "--runs", 1000, "--global-random")
    assert done.exit_code in (1, 4)


@pytest.mark.slow(reason="it starts processes")
def test_jobs_change_nothing(folder):
    task = Task(target="ucb.py:count", epsilon=0.5, left=[0], right=[], global_random=True)
    one, two = (task.prepare().audit(execution) for execution in _executions())
    assert one.certificate == two.certificate


def _executions():
    from overclaim.audit.execution.execution import Execution

    return Execution(jobs=1), Execution(jobs=2)


def test_what_cannot_be_is_refused(folder):
    with pytest.raises(ValueError, match="`os_random` cannot go with `global_random`"):
        falsify_mechanism(lambda data: 0, Claim(epsilon=1.0), left=[0], right=[1], os_random=True, global_random=True)
    done = check("mechanisms/laplace", "--global-random")
    assert done.exit_code == 2
    assert "draws from its generator only" in done.output
    refused(check("asi-raman-talwar/exp3", "--global-random"), "--global-random is for")


def test_a_trace_watches_global_generators(folder):
    words = ("ucb.py:count", "--epsilon", "2", "--left", "[0]", "--right", "[]", "--global-random")
    done = CliRunner().invoke(main, ["trace", *words])
    assert done.exit_code == 0, done.output
    assert "epsilon is at most 2.00 for these inputs" in done.output
    assert "ucb.py:17" in done.output


def test_a_learner_that_raises_inside_is_told(folder):
    class Raises(Follower):
        def act(self):
            raise KeyError(np.random.rand())

    with pytest.raises(LearnerError, match=r"Raises\.act raised KeyError"):
        falsify(Raises, Claim(epsilon=1.0), rounds=2, arms=2, runs=400, global_random=True)
