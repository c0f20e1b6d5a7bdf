"""Baselines: regressions by an exact test, weakened claims, lost power, and a baseline that is not there."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from overclaim.reports.baseline import compare, failed, keyed, regression_p_value
from overclaim.reports.cli import main

PLAN = """
alpha = 0.01
[[claims]]
target = "mine.py:Noisy"
epsilon = 2
rounds = 2
runs = 6000
"""
NOISY = """
class Noisy:
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.rng, self.arm = rng, 0
    def act(self):
        return self.arm if self.rng.random() < KEEP else 1 - self.arm
    def update(self, feedback):
        self.arm = int(feedback[0] > 0.5)
"""


def overclaim(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "mine.py").write_text(NOISY.replace("KEEP", "0.65"))
    assert overclaim("run", "plan.toml", "--jobs", 1).exit_code == 0
    assert overclaim("accept", "out/record.json").exit_code == 0
    return tmp_path


def rerun(*words):
    result = overclaim("run", "plan.toml", "--jobs", 1, "--baseline", "overclaim-baseline.json", *words)
    record = json.loads(Path("out/record.json").read_text()) if result.exit_code in (0, 1, 3) else None
    return result, record


def test_an_unchanged_learner_passes(accepted):
    result, record = rerun()
    assert result.exit_code == 0, result.output
    assert record["baseline"]["findings"] == []
    assert record["claims"][0]["baseline"]["epsilon_lower"] == record["claims"][0]["epsilon_lower"]
    assert record["claims"][0]["baseline"]["p_value"] > 0.4


def test_a_leak_that_grew_fails_though_the_claim_still_holds(accepted):
    (accepted / "mine.py").write_text(NOISY.replace("KEEP", "0.75"))
    result, record = rerun()
    assert result.exit_code == 1
    assert record["claims"][0]["verdict"] == "SURVIVED"
    assert "regression: mine.py:Noisy: epsilon is at least" in result.output
    assert "overclaim check mine.py:Noisy" in result.output
    assert overclaim("accept", "out/record.json").output.startswith("accepted: regression: mine.py:Noisy")
    assert rerun()[0].exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 2", "epsilon = 3", "weakened: mine.py:Noisy: the claimed epsilon is 3, it was 2"),
        ("epsilon = 2", "epsilon = 2\ndelta = 0.01", "weakened: mine.py:Noisy: the claimed delta is 0.01, it was 0"),
        ("runs = 6000", "runs = 3000", "lost power: mine.py:Noisy: it would catch"),
        ("rounds = 2", "rounds = 3", "missing: mine.py:Noisy: in the baseline, but not in this record"),
    ],
)
def test_a_weaker_gate_fails(accepted, old, new, message):
    (accepted / "plan.toml").write_text(PLAN.replace(old, new))
    result, _ = rerun()
    assert result.exit_code == 1
    assert message in result.output


def test_a_new_claim_is_a_remark(accepted):
    (accepted / "plan.toml").write_text(PLAN + PLAN.replace("alpha = 0.01", "").replace("rounds = 2", "rounds = 3"))
    result, _ = rerun()
    assert result.exit_code == 0, result.output
    assert "new: mine.py:Noisy: not in the baseline" in result.output


def test_a_baseline_that_is_not_there_is_an_error(accepted):
    result = overclaim("run", "plan.toml", "--baseline", "nowhere.json")
    assert result.exit_code == 2
    assert "there is no baseline 'nowhere.json'" in result.stderr
    (accepted / "broken.json").write_text("{}")
    assert overclaim("run", "plan.toml", "--baseline", "broken.json").exit_code == 2


def test_a_record_with_errors_is_not_accepted(accepted):
    record = json.loads((accepted / "out" / "record.json").read_text())
    record["errors"] = [{"kind": "crashed", "name": "x", "message": "oops", "replay": ""}]
    (accepted / "bad.json").write_text(json.dumps(record))
    result = overclaim("accept", "bad.json")
    assert result.exit_code == 2
    assert "were not audited: oops" in result.stderr


def claim(right, guesses, **more):
    return {
        "name": "x", "method": "guess", "counts": {"right": right, "guesses": guesses}, "epsilon_lower": 0.5,
        "claimed": {"epsilon": 1, "delta": 0}, "detectable_epsilon": 1.1, "attack": "a", "event": {}, "pair": {},
        "runs": 100, "replay": "",
        **more,
    }  # fmt: skip


def test_the_p_value_is_the_hypergeometric_tail():
    found = regression_p_value(claim(70, 100), claim(110, 200))
    assert found == pytest.approx(stats.hypergeom(300, 180, 100).sf(69))


def test_the_error_of_the_test():
    """400 comparisons of equal learners at alpha = 0.1: Bin(400, 0.1) exceeds 66 with probability 3e-5."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        new, old = ([claim(int(rng.binomial(300, 0.7)), 300, name=str(i)) for i in range(3)] for _ in range(2))
        wrong += failed({"baseline": compare(new, {"claims": old}, alpha=0.1)})
    assert wrong <= 66


@pytest.mark.parametrize("change", [{"seed": 1}, {"runs": 1000}])
def test_an_audit_with_another_seed_or_budget_and_event_is_not_compared(change):
    """One learner shows another share at another threshold: other seeds made 12 % of unchanged ones fail."""
    old, new = claim(700, 1000, seed=0), claim(800, 1000, **{"seed": 0, **change})
    moved = {**new, "event": {"upper": 1.5}}
    for changed, kinds in ((new, ["regression"]), (moved, ["not compared"])):
        found = compare([changed], {"claims": [old]}, alpha=0.01)
        assert [finding["kind"] for finding in found["findings"]] == kinds
        assert failed({"baseline": found}) is (kinds == ["regression"])
    same_audit = claim(800, 1000, seed=0, event={"upper": 1.5})
    assert failed({"baseline": compare([same_audit], {"claims": [old]}, alpha=0.01)})


def test_early_audits_are_not_tested():
    assert regression_p_value(claim(9, 9, method="anytime"), claim(1, 9)) is None
    assert regression_p_value(claim(0, 0), claim(1, 9)) is None


def test_twins_are_told_apart_by_their_order():
    claims = [claim(1, 2), claim(3, 4)]
    assert len(keyed(claims)) == 2
    assert keyed(copy.deepcopy(claims)).keys() == keyed(claims).keys()
