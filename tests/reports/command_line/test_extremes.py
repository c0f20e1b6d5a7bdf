"""Extreme numbers: a verdict, or one line with exit code 2; never a traceback, and never a fault of our own."""

import json
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from overclaim.audit.statistics.bounds.power import ceiling_epsilon, detectable_epsilon
from overclaim.reports import baseline
from overclaim.reports.formats import html, junit, markdown, sarif
from overclaim.tests.support.command_line import error_lines, overclaim

LEARNER = ("check", "agarwal-singh/reduction-threshold", "--rounds", 2, "--set", "epsilon=1")
TINY = (5e-324, 1e-300, 1e-160, 1e-17)
LARGE = (700.0, 710.0, 1e3, 1e308, 1.7976931348623157e308)
NEAR_ONE = (0.9999999999999999, 1 - 1e-15)
FINE = {0, 1, 2, 3}


def fine(*words):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", RuntimeWarning)
        result = overclaim(*words)
    assert result.exit_code in FINE, (words, result.output)
    assert error_lines(result.stderr) == (result.exit_code == 2), (words, result.output)
    assert not [w for w in warned if issubclass(w.category, RuntimeWarning)], words
    assert "math domain" not in result.output
    return result


@pytest.mark.few(9)
@pytest.mark.parametrize("stop", ["budget", "early"])
@pytest.mark.parametrize("epsilon", [*TINY, *LARGE])
def test_a_claim_of_any_epsilon_has_a_verdict(epsilon, stop):
    run = fine(*LEARNER, "--epsilon", epsilon, "--runs", 100, "--stop", stop, "--jobs", 1)
    assert run.exit_code == (1 if epsilon < 1 else 3)


@pytest.mark.parametrize("epsilon", [1e-300, LARGE[-1]])
@pytest.mark.parametrize("target", ["ftrl-experts", "gaussian-threshold", "reduction-threshold"])
def test_noise_that_cannot_be_computed_with_is_refused(target, epsilon):
    """Its scale follows from epsilon; what is computed of it would overflow."""
    words = ("check", f"agarwal-singh/{target}", "--rounds", 2, "--epsilon", epsilon, "--runs", 100, "--jobs", 1)
    assert fine(*words).exit_code == 2


@pytest.mark.few(2)
@pytest.mark.parametrize("epsilon", [1e-300, 1e-160, 1e-10, 1e308])
def test_a_mechanism_of_any_claim_has_a_verdict(epsilon):
    words = ("check", "mechanisms/laplace", "--epsilon", epsilon, "--set", "epsilon=1", "--runs", 2000, "--jobs", 1)
    assert fine(*words).exit_code == (1 if epsilon < 1 else 3)


@pytest.mark.few(4)
@pytest.mark.parametrize("stop", ["budget", "early"])
@pytest.mark.parametrize("option", ["--confidence", "--delta"])
@pytest.mark.parametrize("value", [*TINY, *NEAR_ONE])
def test_any_confidence_and_delta(option, value, stop):
    words = (*LEARNER, "--epsilon", 1, option, value, "--runs", 100, "--stop", stop, "--jobs", 1)
    run = fine(*words)
    assert run.exit_code != 2 or (option == "--confidence" and value < 1e-16)


def test_a_run_with_an_extreme_claim_has_a_record_that_can_be_read(tmp_path):
    (tmp_path / "plan.toml").write_text(
        "confidence = 0.9999999999999999\n"
        + "".join(
            f'[[claims]]\ntarget = "agarwal-singh/reduction-threshold"\nrounds = 2\nruns = 100\nepsilon = {epsilon}\n'
            "set = { epsilon = 1 }\n"
            for epsilon in (1e-300, 1e300)
        )
    )
    fine("run", tmp_path / "plan.toml", "--out", tmp_path, "--jobs", 1)
    record = json.loads((tmp_path / "record.json").read_text())
    assert len(record["claims"]) == 2
    assert record["claims"][0]["confidence"] == 0.9999999999999999
    for form in ("html", "markdown", "junit", "sarif"):
        assert fine("report", tmp_path / "record.json", f"--{form}", tmp_path / form).exit_code == 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "words",
    [
        ("check", "agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 2000, "--shrink"),
        ("check", "asi-raman-talwar/batched-threshold", "--rounds", 2, "--runs", 2000, "--weaken"),
        ("regret", "asi-raman-talwar/batched-exp3", "--rounds", 64, "--runs", 20, "--search"),
    ],
)
def test_the_largest_seed_serves_what_seeds_audits_of_its_own(words):
    assert fine(*words, "--seed", 2**53 - 1, "--jobs", 1).exit_code != 2


def test_a_record_with_the_largest_seed_is_one(tmp_path):
    """Its shrunk witness has a seed of its own; no record holds one beyond 2^53."""
    claim = (
        'target = "agarwal-singh/reduction-threshold"\nrounds = 2\nruns = 2000\nepsilon = 1.0\nexpect = "falsified"\n'
    )
    (tmp_path / "plan.toml").write_text(f"seed = {2**53 - 1}\n[[claims]]\n{claim}")
    assert fine("run", tmp_path / "plan.toml", "--out", tmp_path, "--jobs", 1).exit_code == 0
    record = tmp_path / "record.json"
    assert json.loads(record.read_text())["claims"][0]["shrunk"]
    assert fine("report", record, "--markdown", tmp_path / "page.md").exit_code == 0


def test_an_alpha_that_rounds_away_is_refused(tmp_path):
    (tmp_path / "plan.toml").write_text('alpha = 1e-17\n[[claims]]\ntarget = "mechanisms/laplace"\n')
    assert "plan.toml:1: alpha must be farther from 0 and 1" in fine("run", tmp_path / "plan.toml").stderr


@pytest.mark.slow(reason="drawn budgets")
@settings(max_examples=15, deadline=None, database=None, derandomize=True)
@example(1e-300, 0.0, 1, 1e-16)
@example(1e308, 1e-300, 2**50, 1e-16)
@given(
    st.floats(5e-324, 1.7e308),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 2**40),
    st.floats(1e-16, 1, exclude_max=True),
)
def test_power_is_a_number_for_any_budget(epsilon, delta, runs, alpha):
    assert ceiling_epsilon(runs, delta=delta, alpha=alpha) >= 0
    assert detectable_epsilon(epsilon, runs, delta=delta, alpha=alpha) >= epsilon


def claim(**fields):
    counts = {"runs": 100, "runs_left": 50, "left_upper": 20, "left_lower": 0, "right_upper": 2, "right_lower": 0}
    return {
        "name": "a/b",
        "claimed": {"epsilon": 1.0, "delta": None},
        "verdict": "FALSIFIED",
        "epsilon_lower": 1.5,
        "method": "guess",
        "counts": {**counts, "right": 20, "guesses": 22},
        "runs": 100,
        "replay": "",
        **fields,
    }


def written(path, *claims):
    path.write_text(json.dumps({"schema": 1, "alpha": 0.01, "claims": claims}))
    return path


def test_a_baseline_without_delta_is_one_line(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be compared: claims\[0\] has no question, claimed.delta"):
        baseline.read_baseline(written(tmp_path / "base.json", claim()))


@pytest.mark.parametrize("upper", [0, 20])
def test_a_joint_event_without_p_value_renders(tmp_path, upper):
    """One that names no world, or both, is odd and no error of a report; its record contradicts itself."""
    counts = {"runs": 100, "runs_left": 50, "left_upper": upper, "right_upper": 0}
    record = written(
        tmp_path / "record.json",
        *(
            claim(method="joint", counts={**counts, "left_lower": low, "right_lower": 0, "right": 0, "guesses": 0})
            for low in (0, 3)
        ),
    )
    data = json.loads(record.read_text())
    assert all(render(data) for render in (html.render, markdown.render, junit.render, sarif.render))
    done = fine("report", record, "--html", tmp_path / "html")
    assert (done.exit_code, "contradicts itself" in done.stderr) == (2, True)
