"""Baselines whose event cannot be counted any more, or does not show what grew: neither is silent."""

import contextlib
import json
import shutil
from pathlib import Path

import pytest

from overclaim.tests.reports.test_baseline import claim, counts, found_by, kinds, rerun
from overclaim.tests.support.command_line import overclaim

FORMS = {
    "text": "str(value)",
    "dict": "{'value': value}",
    "two columns": "(value, 0.0)",
    "rarely None": "None if rng.random() < 0.001 else value",
}


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """A folder with the accepted baseline of a mechanism, copied for every test."""
    folder = tmp_path_factory.mktemp("counting")
    with contextlib.chdir(folder):
        claim = '[[claims]]\ntarget = "mine.py:count"\nepsilon = 2\nleft = [0]\nright = [1]\nruns = 4000\n'
        Path("plan.toml").write_text(claim)
        write_count("value")
        assert overclaim("run", "plan.toml", "--jobs", 1, "--no-blind-spots").exit_code == 0
        assert overclaim("accept", "out/record.json").exit_code == 0
    return folder


def write_count(returned, *, sign="", scale=2):
    laws = f"value = {sign}sum(data) + rng.laplace(scale={scale})"
    Path("mine.py").write_text(f"def count(data, rng):\n    {laws}\n    return {returned}\n")


@pytest.fixture
def counted(counting, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(counting, tmp_path / "work"))


@pytest.mark.few(1)
@pytest.mark.parametrize("form", FORMS)
def test_an_output_of_another_form_fails_until_it_is_accepted(counted, form):
    write_count(FORMS[form])
    result, record = rerun("--no-blind-spots")
    assert (result.exit_code, [claim["verdict"] for claim in record["claims"]]) == (1, ["SURVIVED"]), result.output
    assert "Not compared with the baseline (1)\n  mine.py:count: " in result.output
    assert "    this fails until the record is accepted" in result.output
    assert [finding["fails"] for finding in record["baseline"]["findings"]] == [True]
    assert overclaim("accept", "out/record.json").exit_code == 0
    assert rerun("--no-blind-spots")[0].exit_code == 0


def test_a_leak_the_other_way_round_is_said(counted):
    """The baseline's event does not show it; the claim, of 2, holds still."""
    write_count("value", sign="-", scale=0.7)
    result, record = rerun("--no-blind-spots")
    assert result.exit_code == 0, result.output
    assert [finding["kind"] for finding in record["baseline"]["findings"]] == ["more certified"]
    assert "More certified than the baseline (1)\n  mine.py:count: epsilon is at least" in result.output
    assert "the baseline's event does not show it, another one does\n    overclaim check" in result.output


@pytest.mark.parametrize(("now", "then", "said"), [(1.1, 0.5, True), (0.9, 0.5, False), (0.2, 0.0, True)])
def test_a_bound_that_more_than_doubled_is_said_of_one_question_alone(now, then, said):
    new, old = claim(epsilon_lower=now), claim(epsilon_lower=then)
    assert [kind for kind, _ in kinds(found_by([new], [old], [counts(50, 100)]))] == ["more certified"] * said
    other = {"pair_given": True, "pair": {"left": 5, "right": 0}}
    assert [kind for kind, _ in kinds(found_by([{**new, **other}], [old]))] == ["not compared"]
    (regression,) = found_by([new], [old], [counts(100, 100)])["findings"]
    assert regression["kind"] == "regression"


def test_an_event_that_names_no_world_any_more_fails():
    """A leak without noise lies far beyond it, as outputs of another form do."""
    (finding,) = found_by([claim()], [claim()], [counts(0, 0, 10)])["findings"]
    assert (finding["kind"], finding["fails"]) == ("not compared", True)
    assert "the baseline's event names no world any more" in finding["message"]
    (finding,) = found_by([claim()], [claim(right=0, guesses=0)], [counts(0, 0, 10)])["findings"]
    assert (finding["kind"], finding.get("fails")) == ("not compared", None)


def test_an_event_that_names_worlds_at_last_is_compared():
    """It was not: of no guess there is no share of right ones."""
    old = claim(right=0, guesses=0)
    old["frozen"]["counts"] |= {"runs": 20_000, "runs_left": 10_000}
    assert kinds(found_by([claim()], [old], [counts(500, 500, 20_000)]))[0][0] == "regression"
    assert kinds(found_by([claim()], [old], [counts(250, 500, 20_000)])) == []


@pytest.mark.parametrize(
    ("frozen", "fails"), [({"kind": "none", "reason": "too many columns"}, False), ({"kind": "wave"}, True)]
)
def test_what_the_baseline_itself_lacks_is_a_remark(counted, frozen, fails):
    """It was accepted so. An event that is kept and cannot be counted is not."""
    base = json.loads(Path("overclaim-baseline.json").read_text())
    base["claims"][0]["frozen"] = frozen
    Path("overclaim-baseline.json").write_text(json.dumps(base))
    result, _ = rerun("--no-blind-spots")
    assert "Not compared with the baseline (1)\n  mine.py:count: " in result.output
    assert result.exit_code == int(fails), result.output
