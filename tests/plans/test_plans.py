"""Plans: the schema with line numbers, the commented example, one alpha for a whole report."""

import json
import math
import shlex
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from scipy import stats

from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.plan import Plan, read_plan
from overclaim.audit.plans.plan_schema import PLAN, example
from overclaim.audit.plans.regret_tasks import RegretTask
from overclaim.audit.regret import regret_audit
from overclaim.audit.regret.block_sequences import BlockSequence
from overclaim.audit.statistics.events import Counts, Event, certify
from overclaim.audit.statistics.multiplicity import holm, p_value
from overclaim.audit.statistics.sequential import Bets
from overclaim.mechanisms.claim import Claim
from overclaim.reports.command_line.running import decide_together
from overclaim.tests.support.command_line import overclaim, refused

TEXT = """\
seed = 3
alpha = 0.05

[[claims]]
target = "agarwal-singh/reduction-threshold"
rounds = 2
runs = 4000
stop = "early"

[[claims]]
target = "asi-raman-talwar/batched-threshold"
runs = 4000
set = { batch = 1 }
"""


def test_the_schema_is_one():
    Draft202012Validator.check_schema(PLAN)


def test_a_plan_is_read(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(TEXT)
    plan = read_plan(path)
    assert plan.report_alpha == 0.05
    assert plan.confidence == 0.975
    assert [task.budget.stop for task in plan.tasks] == ["early", "budget"]
    assert plan.tasks[1].parameters == {"batch": 1}
    assert all(task.budget.seed == 3 for task in plan.tasks)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alpha = 0.05", "alpha = 0", ":2: alpha must be in (0, 1), got 0"),
        ("alpha = 0.05", "alpha = 'small'", ":2: alpha must be a number, got 'small'"),
        ("alpha = 0.05", "alpha = 0.05\nconfidence = 0.9", ":2: alpha is for the whole report"),
        ("seed = 3", "seed = -3", ":1: seed must be at least 0, got -3"),
        ("seed = 3", "seed = true", ":1: seed must be an integer, got True"),
        ("seed = 3", "seed = 9007199254740992", ":1: seed must be at most 9007199254740991, got 9007199254740992"),
        ("seed = 3", "confidence = nan", ":1: confidence must be a number, got nan"),
        ("seed = 3", "sead = 3", ":1: unknown key 'sead'\nhint: did you mean seed?"),
        ("rounds = 2", "fast = true", ":6: fast: kernels were removed in 0.3.0: every audit plays on NumPy"),
        ("runs = 4000\nstop", "runs = 5\nstop", ":7: runs must be at least 20, got 5"),
        ('"early"', '"soon"', ":8: stop must be one of budget, early; got 'soon'"),
        ("rounds = 2", "rounds = 2.5", ":6: rounds must be an integer, got 2.5"),
        ("rounds = 2", "epsilon = 0", ":6: epsilon must be above 0, got 0"),
        ("rounds = 2", "delta = 1", ":6: delta must be below 1, got 1"),
        ("rounds = 2", "neighbours = 'all'", ":6: neighbours must be one of replace, zero-out"),
        ("set = { batch = 1 }", "set = 1", ":13: set must be a table, got 1"),
        ("set = { batch = 1 }", "[claims.sett]\nbatch = 1", ":13: unknown key 'sett'\nhint: did you mean set?"),
        ('target = "asi-raman-talwar/batched-threshold"\n', "", ":10: a claim needs a target"),
        ('target = "asi-raman-talwar/batched-threshold"', 'target = ""', ":11: target must be of length 1"),
    ],
)
def test_what_the_schema_forbids_is_named_with_its_line(tmp_path, old, new, message):
    path = tmp_path / "plan.toml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"plan\.toml") as caught:
        read_plan(path)
    assert f"plan.toml{message}" in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


@pytest.mark.parametrize("value", ["1979-05-27", "[1979-05-27T07:32:00]", "{ at = 07:32:00 }"])
@pytest.mark.parametrize("key", ["left", "set", "inputs"])
def test_dates_are_refused(tmp_path, key, value):
    """TOML has them and a record has not: they ended a run with an internal error."""
    path = tmp_path / "plan.toml"
    value = value if key == "left" else f"{{ a = {value} }}"
    path.write_text(f'[[claims]]\ntarget = "own.py:f"\nepsilon = 1\n{key} = {value}\n')
    with pytest.raises(ValueError, match=f"plan.toml:4: {key} has a date or a time"):
        read_plan(path)


def test_a_parameter_that_json_has_not_is_recorded_and_replayed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "class One:\n    feedback = 'full'\n"
    text += "    def __init__(self, arms, rounds, rng, a=1.0): self.p = 1 / (2 + (a > 1)); self.rng = rng\n"
    text += "    def act(self): return int(self.rng.random() < self.p)\n    def update(self, losses): pass\n"
    (tmp_path / "own.py").write_text(text)
    head = '[[claims]]\ntarget = "own.py:One"\nepsilon = 1\nrounds = 2\nruns = 400\n'
    (tmp_path / "plan.toml").write_text(f"{head}set = {{ a = inf }}\n{head}set = {{ a = nan }}\n")
    done = overclaim("run", "plan.toml", "--jobs", 1, "--json")
    assert done.exit_code == 3, done.stderr  # it ignores its losses: no difference is seen
    for claim, value in zip(json.loads(done.stdout)["claims"], ("inf", "nan"), strict=True):
        assert claim["parameters"] == {"a": {"$float": value}}
        again = overclaim(*shlex.split(claim["replay"])[1:], "--jobs", 1)
        assert again.exit_code == 3, again.stderr  # the text "inf" is above no number


def test_claims_must_be_tables(tmp_path):
    path = tmp_path / "plan.toml"
    for text in ("claims = 1", "claims = [1]", "[claims]\ntarget = 'x'"):
        path.write_text(text)
        with pytest.raises(ValueError, match="claims must be tables"):
            read_plan(path)


def test_init_writes_a_plan_that_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert overclaim("init").exit_code == 0
    assert overclaim("run", "overclaim.toml", "--jobs", 1).exit_code == 0
    refused(overclaim("init"), "is there already")


def test_a_plan_that_is_not_named_is_not_passed_over_without_a_word(tmp_path, monkeypatch):
    """A hook with arguments of its own and no plan among them audits the one that lies here."""

    def catalogue(seed):
        raise ValueError("the catalogue is audited")

    monkeypatch.setattr("overclaim.audit.plans.plan.literature", catalogue)
    monkeypatch.chdir(tmp_path)
    refused(overclaim("run", "--jobs", 1), "no plan is named, and there is no overclaim.toml here")
    (tmp_path / "overclaim.toml").touch()
    done = overclaim("run", "--jobs", 1)
    assert done.exit_code == 2
    assert "this audits overclaim.toml, which lies here" in done.stderr
    assert "a [[claims]] table is missing" in done.stderr
    done = overclaim("run", "--catalogue", "--jobs", 1, "--seed", 0)
    assert "the catalogue is audited" in done.stderr
    assert "overclaim.toml" not in done.stderr


def test_every_commented_key_of_the_example_is_allowed():
    text = example("plan.toml")
    lines = [
        line.removeprefix("# ") if line.startswith(("# [[", "# ")) and "=" in line else line
        for line in text.splitlines()
    ]
    lines = ["[[claims]]" if line == "# [[claims]]" else line for line in lines]
    Draft202012Validator(PLAN).validate(tomllib.loads("\n".join(lines)))


@pytest.fixture(scope="module")
def uncollected():
    """Statsmodels' Holm collects garbage each time, of all that is loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gc.collect", lambda: 0)
        yield


@pytest.mark.usefixtures("uncollected")
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_is_the_closed_test(p_values, alpha):
    """A slow twin: reject i iff Bonferroni rejects every set of hypotheses that holds i."""
    rejected = [test.rejected for test in holm(p_values, alpha)]
    m = len(p_values)
    for i in range(m):
        # The worst set of each size that holds i takes the largest other p-values.
        others = sorted((p for j, p in enumerate(p_values) if j != i), reverse=True)
        closed = all(min([p_values[i], *others[:k]]) <= alpha / (k + 1) for k in range(m))
        assert rejected[i] == closed


@pytest.mark.usefixtures("uncollected")
def test_adjusted_p_values_are_the_smallest_alphas():
    p_values = [0.001, 0.04, 0.012, 0.8]
    for i, test in enumerate(holm(p_values, 0.05)):
        if test.adjusted < 0.9:
            assert holm(p_values, test.adjusted * 1.0001)[i].rejected
            assert not holm(p_values, test.adjusted * 0.9999)[i].rejected


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_holm_refuses(alpha):
    with pytest.raises(ValueError, match="alpha must be in"):
        holm([0.5], alpha)


def test_the_p_value_of_a_guess_game_is_its_binomial_tail():
    counts = Counts(runs=1000, runs_left=500, left_upper=400, right_upper=130)
    event = Event(math.nan, 1.0, "guess")
    certificate = certify(event, counts, delta=0.0, alpha=0.01)
    expected = stats.binom.sf(399, 530, 1 / (1 + math.exp(-0.9)))
    assert p_value(Claim(epsilon=0.9), event, certificate) == pytest.approx(expected, rel=1e-4)
    assert p_value(Claim(epsilon=5.0), event, certificate) == pytest.approx(1.0)
    assert p_value(Claim(epsilon=0.9), event, certify(event, Counts(runs=10), delta=0.0, alpha=0.01)) == 1.0


@pytest.mark.few(2)
@pytest.mark.parametrize("method", ["guess", "joint"])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_p_value_and_the_certificate_agree(method, delta):
    event = Event(math.nan, 1.0, method)
    counts = Counts(runs=2000, runs_left=1010, left_upper=700, right_upper=230)
    for alpha in (0.2, 0.05, 1e-4):
        certificate = certify(event, counts, delta=delta, alpha=alpha)
        for epsilon in (0.8, 0.95, 1.05):
            p = p_value(Claim(epsilon=epsilon, delta=delta), event, certificate)
            assert (p <= alpha) == (certificate.epsilon_lower > epsilon)


def test_the_p_value_of_an_anytime_certificate():
    from overclaim.audit.statistics.events import Certificate
    from overclaim.audit.statistics.graded_bets import SIZES

    counts = Counts(runs=100, runs_left=50, left_upper=45, right_upper=5, tally=(0,) * (2 * SIZES.size))
    certificate = Certificate(1.0, "anytime", 0.0, 0.01, counts, 0.0)
    guesses = math.exp(float(Bets(1.0, 0.0).log_wealth(45, 5, 100, 1.0)))  # a fifth of all wealth; no grade was bet on
    p = p_value(Claim(epsilon=1.0), Event(math.nan, 0.0, "guess"), certificate)
    assert p == pytest.approx(1 / (0.8 + 0.2 * guesses))


def claim(p, verdict="SURVIVED"):
    return {"name": "x", "claimed": {"epsilon": 1.0, "delta": 0.0}, "p_value": p, "verdict": verdict}


def test_holm_decides_a_report_with_an_alpha():
    claims = [claim(0.001, "FALSIFIED"), claim(0.016), claim(0.9)]
    decisions = decide_together(claims, Plan((None,) * 3, confidence=1 - 0.04 / 3, report_alpha=0.04))
    assert [c["verdict"] for c in claims] == ["FALSIFIED", "FALSIFIED", "SURVIVED"]  # 0.016 <= 0.04 / 2
    assert decisions["method"] == "Holm"
    assert decisions["family_wise_error"] == 0.04
    assert [test["rejected"] for test in decisions["tests"]] == [True, True, False]


def test_a_claim_that_crashed_still_costs_its_share():
    claims = [claim(0.015), claim(0.016)]
    decide_together(claims, Plan((None,) * 4, report_alpha=0.04))
    assert [c["verdict"] for c in claims] == ["SURVIVED", "SURVIVED"]


@pytest.mark.slow(reason="whole runs")
def test_without_an_alpha_each_claim_stands_for_itself(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(TEXT.replace("alpha = 0.05\n", ""))
    record = json.loads(overclaim("run", path, "--out", tmp_path / "out", "--jobs", 1, "--json").stdout)
    decisions = record["ledger_of_tests"]
    assert decisions["method"] == "each for itself"
    assert decisions["family_wise_error"] == pytest.approx(0.02)
    assert [t["claim"] for t in decisions["tests"]] == [c["name"] for c in record["claims"]]
    assert record["alpha"] == pytest.approx(0.01)


@pytest.mark.usefixtures("uncollected")
def test_the_family_wise_error_is_kept():
    """200 reports of 5 true claims at alpha = 0.2: false-alarm probability at most 1e-6."""
    rng = np.random.default_rng(0)
    wrong = sum(any(t.rejected for t in holm(rng.random(5).tolist(), 0.2)) for _ in range(200))
    assert wrong <= stats.binom.isf(1e-6, 200, 0.2)


def test_the_literature_shares_one_alpha():
    from overclaim.audit.plans.plan import literature
    from overclaim.learners.catalogue.entries import entries

    plan = literature()
    assert {task.target for task in plan.tasks} == set(entries())
    assert plan.report_alpha == 0.01
    assert plan.alpha * len(plan.tasks) == pytest.approx(0.01)
    claimed = {entry.name: entry.regret.measured for entry in entries().values() if entry.regret}
    assert {task.target for task in plan.regret} == {name for name, measured in claimed.items() if measured}
    slow = ("agarwal-singh/", "ene-nguyen-vladu/oco-")
    assert all(name.startswith(slow) for name, measured in claimed.items() if not measured)


def test_a_bound_on_regret_is_replayed_on_the_sequence_that_is_named(monkeypatch):
    """What a search found was played again beside the mean on another, listed sequence."""
    for worst in ([1.0, -1.0], [0.0, 0.0]):
        found = BlockSequence((8,), (np.array(worst),))
        monkeypatch.setattr(regret_audit, "find_adversary", lambda *_, found=found: found)
        measured = RegretTask("agarwal-singh/ftrl-experts", rounds=32, budget=Budget(runs=20)).measure()
        assert (measured["sequence"] == "found by search") == ("--sequence" in measured["replay"])
        assert measured["found"]
    assert measured["sequence"] != "found by search"


def test_the_command_of_a_regret_task_stops_as_it_does():
    """Of one that stops early the command that is shown beside an error asked for all runs."""
    stopping = RegretTask("asi-raman-talwar/exp3", budget=Budget(runs=100, stop="early"))
    assert "--stop early" in stopping.command()
    assert "--stop" not in RegretTask("asi-raman-talwar/exp3").command()


def test_a_regret_task_measures_the_price_of_privacy():
    measured = RegretTask("asi-raman-talwar/batched-exp3", rounds=32, budget=Budget(runs=40)).measure()
    assert measured["name"] == "asi-raman-talwar/batched-exp3"
    assert measured["epsilons"] == sorted(measured["epsilons"])
    assert len(measured["price"]) == len(measured["epsilons"])
    # Regret at a horizon of 8 lies between none and every round's.
    assert all(0 <= price <= 8 for price in measured["price"])
