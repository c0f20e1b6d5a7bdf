"""Audits in which no difference was seen are UNDERPOWERED, unless a trace or an exact law bounds the claim from above.

No test here relies on chance: what gives the same output for both inputs does so whatever it draws.
"""

import json

import pytest

from overclaim import Claim, Pair, Verdict, falsify, falsify_mechanism
from overclaim.audit.verdicts.blind_spot import NOT_SEEN, TOO_FEW, UNMEASURED
from overclaim.audit.verdicts.verdict import UnderpoweredError
from overclaim.learners import Exp3
from overclaim.reports.consistency import of_claim
from overclaim.tests.support.command_line import overclaim

OWN = """
def ignores(data, rng):
    return rng.random()


def batched(data, draws, runs):
    return draws.uniform(runs)


batched.batched = True


def rarely(data, rng):
    return sum(data) if rng.random() < 0.01 else rng.normal()


def rounds_away(data, rng):
    return int(abs(sum(data) + rng.laplace(0, 1.0)) > 1e9)


def in_sight(data, rng):
    return sum(data) + rng.laplace(0, 20.0)


class Ignores:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng): self.rng = rng
    def act(self): return int(self.rng.integers(2))
    def update(self, loss): pass


class Noisy:
    feedback = "full"
    def __init__(self, arms, rounds, rng): self.rng, self.arm = rng, 0
    def act(self): return self.arm
    def update(self, losses): self.arm = int(losses[0] + self.rng.laplace(0, 30.0) > 0)
"""
INPUTS = ("--left", "[1]", "--right", "[0]")
SEEN = "; no difference was seen (nothing certified)"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


@pytest.mark.few(1)
@pytest.mark.parametrize("stop", [[], ["--stop", "early"]], ids=["budget", "early"])
@pytest.mark.parametrize(
    "target",
    [["own.py:ignores", *INPUTS], ["own.py:batched", *INPUTS], ["own.py:Ignores", "--rounds", 3]],
    ids=["mechanism", "batched", "learner"],
)
def test_what_ignores_its_input_is_no_test(here, target, stop):
    """Its outputs differ from run to run, and in no run between the inputs: it had exit code 0."""
    result = overclaim("check", *target, *stop, "--epsilon", 1, "--runs", 2000)
    assert result.exit_code == 3
    said = " ".join(result.stdout.split())
    assert said.startswith("UNDERPOWERED own.py:")
    assert SEEN in said or "claimed epsilon 1;" in said
    record = json.loads(overclaim("check", *target, *stop, "--epsilon", 1, "--runs", 2000, "--json").stdout)
    assert (record["verdict"], record["reason"], record["untested"]) == ("UNDERPOWERED", NOT_SEEN, True)
    words = f"both inputs gave the same output in all {record['paired_runs']:,} paired runs (same random numbers)"
    assert words in said or "the attack made no guess" in said


def test_no_guess_is_no_test(here):
    """Its one-sided event never happened in the counted runs: an attack that names nothing passed the gate."""
    result = overclaim("check", "own.py:rounds_away", *INPUTS, "--epsilon", 1, "--runs", 2000)
    assert result.exit_code == 3
    assert "Meaning     no difference seen" in result.stdout or "made no guess" in result.stdout


def test_a_rare_difference_in_paired_runs_is_seen(here):
    result = overclaim("check", "own.py:rarely", *INPUTS, "--epsilon", 8, "--runs", 20_000, "--json")
    record = json.loads(result.stdout)
    assert record["paired_runs"] is None
    assert record["reason"] != NOT_SEEN


@pytest.mark.parametrize(
    "target", [["own.py:in_sight", *INPUTS], ["own.py:Noisy", "--rounds", 2]], ids=["mechanism", "learner"]
)
def test_less_than_a_third_of_the_claim_is_no_test_without_a_power_test(here, target):
    """Paired runs differ, so a difference there is; nothing says that this audit could have seen a larger one."""
    result = overclaim("check", *target, "--epsilon", 3, "--runs", 1000, "--power", "off", "--json")
    record = json.loads(result.stdout)
    assert (result.exit_code, record["verdict"], record["reason"]) == (3, "UNDERPOWERED", UNMEASURED)
    assert record["paired_runs"] is None
    assert list(of_claim(record)) == []


def test_a_search_leaves_a_pair_on_which_nothing_differs(here):
    """Equal losses of both arms move no leader: such a pair was audited where noise hid the others."""
    (here / "far.py").write_text(
        "import numpy as np\n\n\nclass Far:\n    feedback = 'full'\n"
        "    def __init__(self, arms, rounds, rng): self.rng, self.total = rng, np.zeros(arms)\n"
        "    def act(self): return int(np.argmin(self.total + self.rng.laplace(0, 60.0, self.total.size)))\n"
        "    def update(self, feedback): self.total += feedback\n"
    )
    record = json.loads(
        overclaim("check", "far.py:Far", "--epsilon", 1, "--rounds", 8, "--runs", 6000, "--json").stdout
    )
    left, right = (record["pair"][side] for side in ("left", "right"))
    moved = [[a - b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]
    assert any(move[0] != move[1] for move in moved)
    assert (record["verdict"], record["reason"]) == ("UNDERPOWERED", UNMEASURED)


def test_an_exact_law_that_bounds_the_claim_is_a_test():
    """The last arm hardly depends on the losses: nothing is certified, and by its law epsilon is at most the claim."""
    pair = Pair([[0.01, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    result = falsify(Exp3(arms=2, eta=0.01, gamma=0.5), Claim(epsilon=1.0), pair=pair, runs=2000)
    assert 0 < result.exact < 0.01
    assert (result.verdict, result.reason, result.bounded) == (Verdict.SURVIVED, None, True)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("how", "upper", "verdict"),
    [
        ("maximised", 1.0, "SURVIVED"),
        ("bounded", 1.0 + 5e-10, "SURVIVED"),
        ("maximised", 1.0 + 2e-9, "UNDERPOWERED"),
        ("sampled", 0.5, "UNDERPOWERED"),
        (None, None, "UNDERPOWERED"),
    ],
)
def test_a_trace_that_bounds_the_claim_is_a_test(here, monkeypatch, how, upper, verdict):
    """A sample bounds nothing, and rounding is no excess."""
    traced = {"epsilon_upper": upper, "epsilon_upper_pair": upper, "upper_scope": "pair", "upper_how": how}
    monkeypatch.setattr("overclaim.reports.record.traces_of", lambda prepared, result: traced)
    words = ["own.py:ignores", *INPUTS, "--epsilon", 1, "--runs", 500, "--trace", "--json"]
    result = overclaim("check", *words)
    record = json.loads(result.stdout)
    assert record["verdict"] == verdict
    assert result.exit_code == {"SURVIVED": 0, "UNDERPOWERED": 3}[verdict]
    assert record["untested"] == (verdict == "UNDERPOWERED")


def test_python_says_the_reason_and_requires_a_test():
    result = falsify_mechanism(lambda data, rng: rng.normal(), Claim(epsilon=1.0), left=[1], right=[0], runs=500)
    assert (result.verdict, result.reason, result.untested) == (Verdict.UNDERPOWERED, NOT_SEEN, True)
    with pytest.raises(UnderpoweredError, match="no difference seen: "):
        result.require_survived()
    few = falsify_mechanism(lambda data, rng: rng.normal(), Claim(epsilon=30.0), left=[1], right=[0], runs=500)
    assert (few.verdict, few.reason, few.untested) == (Verdict.UNDERPOWERED, TOO_FEW, False)


@pytest.mark.parametrize(("allowed", "code"), [("", 3), ('untested = "allowed"\n', 0)], ids=["asked", "allowed"])
def test_a_plan_allows_what_shows_no_difference(here, allowed, code):
    claims = (
        f'target = "own.py:ignores"\nleft = [1]\nright = [0]\n{allowed}',
        f'target = "own.py:Ignores"\nrounds = 2\n{allowed}',
    )
    plan = "".join(f"[[claims]]\nepsilon = 1\nruns = 500\n{claim}" for claim in claims)
    (here / "plan.toml").write_text(plan)
    result = overclaim("run", "plan.toml", "--jobs", 1)
    assert result.exit_code == code, result.stdout
    record = json.loads((here / "out" / "record.json").read_text())
    assert [claim["reason"] for claim in record["claims"]] == [NOT_SEEN] * 2
    assert "2 underpowered" in result.stdout


def test_too_few_runs_are_not_allowed_by_a_plan(here):
    claim = 'target = "own.py:in_sight"\nleft = [1]\nright = [0]\nepsilon = 30\nruns = 100\nuntested = "allowed"\n'
    (here / "plan.toml").write_text(f"[[claims]]\n{claim}")
    assert overclaim("run", "plan.toml", "--jobs", 1).exit_code == 3


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ({}, None),
        ({"reason": None}, "reason"),
        ({"reason": "too few runs"}, "reason"),
        ({"untested": False}, "verdict"),
        ({"verdict": "SURVIVED"}, "verdict"),
    ],
    ids=str,
)
def test_a_reason_that_its_verdict_does_not_have_is_refused(here, edit, field):
    words = ["own.py:ignores", *INPUTS, "--epsilon", 1, "--runs", 500, "--json"]
    record = json.loads(overclaim("check", *words).stdout)
    found = [contradiction.field for contradiction in of_claim({**record, **edit})]
    assert found[:1] == ([] if field is None else [field])
