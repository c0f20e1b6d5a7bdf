"""`overclaim run`: plans, their records, exit codes and processes."""

import io
import json
import os
import sys

import pytest

from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.execution.progress import begin, with_bar
from overclaim.audit.plans.plan import Plan
from overclaim.audit.plans.tasks import Prepared, Task
from overclaim.reports.command_line.running import run_plan as run
from overclaim.tests.support.command_line import FIELDS, PLAN, overclaim, refused, run_plan


def test_run_writes_a_record_and_a_report(tmp_path):
    result = run_plan(tmp_path, PLAN)
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert record["schema"] == 1
    assert record["seed"] == 1
    assert record["alpha"] == pytest.approx(0.05)
    assert [claim["verdict"] for claim in record["claims"]] == ["FALSIFIED", "SURVIVED"]
    assert all(claim.keys() >= FIELDS for claim in record["claims"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "agarwal-singh/reduction-threshold" in page
    assert sorted(os.listdir(tmp_path / "out")) == [".gitignore", "record.json", "report.html"]
    again = overclaim("report", tmp_path / "out" / "record.json", "--html", tmp_path / "again.html")
    assert again.exit_code == 0
    assert (tmp_path / "again.html").read_text() == page


def test_the_same_record_for_any_number_of_workers(tmp_path):
    """With a power test: other processes make one by default, and this one by what is asked alone."""
    plan = PLAN.replace('expect = "survived"', 'expect = "survived"\npower = 3')

    def claims(jobs):
        result = run_plan(tmp_path, plan, "--json") if jobs == 1 else None
        if result is None:
            result = overclaim("run", tmp_path / "plan.toml", "--out", tmp_path / "two", "--jobs", jobs, "--json")
        return [{k: v for k, v in claim.items() if k != "seconds"} for claim in json.loads(result.stdout)["claims"]]

    assert claims(1) == claims(2)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.slow(reason="whole runs")
@pytest.mark.parametrize("jobs", [1, 2])
def test_verdicts_are_on_the_terminal_as_they_come_the_long_audits_begun_first(monkeypatch, jobs):
    runs = {"agarwal-singh/reduction-threshold": 3000, "asi-raman-talwar/batched-threshold": 9000}
    tasks = [Task(target=name, epsilon=1.0, rounds=2, budget=Budget(runs=many)) for name, many in runs.items()]
    short = Task(target="tossou-dimitrakakis/exp3-minibatch", rounds=2, budget=Budget(runs=1000))
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    record = run(Plan((*tasks, short)), Execution(jobs), command="")
    written = screen.getvalue()
    names = [claim["name"] for claim in record["claims"]]
    assert names == [*runs, short.target]  # in the plan's order
    width = max(map(len, names))
    lines = [f"{claim['verdict']:<12}  {claim['name']:<{width}}  " for claim in record["claims"]]
    assert all(line in written for line in lines)
    if jobs == 1:
        assert sorted(lines, key=written.index) == [lines[2], lines[1], lines[0]]


def test_the_bar_counts_results_that_come_at_once(monkeypatch):
    """Drawn ten times a second, it stood at 0 of 3 until the next result came, minutes later."""
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    begin()
    for place, one in enumerate(with_bar(iter("abc"), 3, "{}/3".format, str, lambda _: (0.5, 1.0)), start=1):
        assert f"{one}\n" in screen.getvalue()
        assert f"{place}/3" in screen.getvalue()


@pytest.mark.parametrize("given", ["left = [1]\nright = [0]", 'inputs = {type = "array"}'])
def test_no_regret_of_a_mechanism(tmp_path, given):
    """It was built as a learner, which "needs a value for data, rng", after its audit."""
    refused(
        run_plan(tmp_path, f'[[claims]]\ntarget = "own.py:f"\nepsilon = 1\n{given}\nregret = {{ bound = 3.0 }}\n'),
        "plan.toml:1: regret is measured on loss sequences: a claim with",
    )


def test_a_surprise_fails_the_run(tmp_path):
    result = run_plan(tmp_path, PLAN.replace('"falsified"', '"survived"'))
    assert result.exit_code == 1
    assert "Unexpected (1)\n  agarwal-singh/reduction-threshold: FALSIFIED, but the plan expects" in result.output
    assert "    simplest: round 1 of 2: left [1, 0], right " in result.output
    assert "Report: " in result.output


def test_an_undecided_claim_fails_the_run_otherwise(tmp_path):
    result = run_plan(tmp_path, PLAN.replace("epsilon = 1", "epsilon = 40"))
    assert result.exit_code == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 1", "seed = ", "line 2"),
        ("seed = 1", "seeds = 1", "plan.toml:2: unknown key 'seeds'"),
        ("confidence = 0.95", "confidence = 1.5", "plan.toml:3: confidence must be in (0, 1), got 1.5"),
        (
            'rounds = 2\nruns = 4000\nexpect = "survived"',
            "rounds = 'two'\nruns = 4000",
            "plan.toml:14: rounds must be an integer",
        ),
        ('"falsified"', '"maybe"', "plan.toml:10: expect must be one of falsified, survived; got 'maybe'"),
        ("batch = 1", "bath = 1", "plan.toml:17: asi-raman-talwar/batched-threshold has no parameter 'bath'"),
        ("agarwal-singh/reduction-threshold", "agarwal/reduction", "plan.toml:6: unknown target"),
        ('target = "agarwal-singh/reduction-threshold"', "", "plan.toml:5: a claim needs a target"),
        (
            "epsilon = 1",
            f"epsilon = 1{'0' * 400}",
            "plan.toml:7: epsilon must be finite, got a number beyond all floats",
        ),
        ("epsilon = 1", f"epsilon = 1{'0' * 5000}", "plan.toml: Exceeds the limit"),
        (
            "batch = 1",
            f"threshold = 1{'0' * 400}",
            "plan.toml:17: threshold must be finite, got a number beyond all floats",
        ),
        (
            'expect = "survived"',
            f"regret = {{ bound = 1{'0' * 400} }}",
            "plan.toml:16: regret: bound must be finite, got a number beyond all floats",
        ),
        (
            'expect = "survived"',
            f"regret = {{ bound = 1, runs = 1{'0' * 400} }}",
            "plan.toml:16: regret: runs must be below 2^53, got 1000",
        ),
        ("seed = 1", f"seed = {'[' * 100_000}", "plan.toml: "),
    ],
)
def test_malformed_plans_name_their_line(tmp_path, old, new, message):
    refused(run_plan(tmp_path, PLAN.replace(old, new, 1)), message)
    assert not (tmp_path / "out").exists()


def test_plans_that_are_none(tmp_path):
    for name, content, message in (
        ("missing.toml", None, "cannot read the plan"),
        ("binary.toml", b"\xff\xfe\x00", "not UTF-8"),
        ("empty.toml", b"", "a [[claims]] table is missing\n  hint:  overclaim init"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        refused(overclaim("run", path, "--out", tmp_path / "out"), message)


def test_an_unwritable_output_is_found_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    refused(overclaim("run", "--catalogue", "--out", tmp_path / "file" / "out"), "cannot write")


@pytest.mark.few(1)
@pytest.mark.parametrize(("claims", "jobs", "each"), [(1, 2, 2), (1, 1, 1), (2, 3, 3)])
def test_few_claims_have_every_process_to_themselves(monkeypatch, claims, jobs, each):
    """One long audit must not leave cores idle."""

    used, audit = [], Prepared.audit

    def watched(self, execution, **more):
        used.append(execution.jobs)
        return audit(self, execution, **more)

    monkeypatch.setattr(Prepared, "audit", watched)
    task = Task(target="agarwal-singh/reduction-threshold", rounds=2, budget=Budget(runs=2000))
    run(Plan((task,) * claims), Execution(jobs), command="")
    assert used[:claims] == [each] * claims
