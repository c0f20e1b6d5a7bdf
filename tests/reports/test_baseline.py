"""Baselines: regressions by an exact test, weakened claims, lost power, and a baseline that is not there."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.statistics.sequential import Bets, first_crossing, log_excess, share_upper
from overclaim.reports.baseline import compare, failed, keyed, regression_p_value
from overclaim.tests.support.command_line import overclaim

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
        ("runs = 6000", "runs = 3000", "lost power: mine.py:Noisy: at best it catches"),
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


def early(share, epsilon=1.0, runs=4000, seed=0, **more):
    """An early audit of a mechanism whose guesses are right with probability `share`: every run is a guess."""
    right = np.cumsum(np.random.default_rng(seed).random(runs) < share)
    n = np.arange(1, runs + 1)
    end = first_crossing(Bets(epsilon, 0.0), right, n - right, n, 0.01)
    end = runs - 1 if end is None else end
    counts = {"right": int(right[end]), "guesses": end + 1, "runs": end + 1}
    facts = {"counts": counts, "method": "anytime", "runs": end + 1, "budget": runs, "seed": 0}
    return claim(0, 0, **facts, claimed={"epsilon": epsilon, "delta": 0.0}, **more)


def test_early_audits_are_compared_by_what_holds_whenever_they_stop():
    old = early(0.6)
    assert regression_p_value(early(0.6, seed=1), old) == 1.0
    assert regression_p_value(early(0.70, seed=1), old) < 1e-6  # survives too, but leaks more
    fast = early(0.9, seed=1)
    assert fast["runs"] < 100
    assert regression_p_value(fast, old) < 0.01  # falsified on the way
    assert regression_p_value(fast, early(0.9, seed=2)) == 1.0  # both were
    assert regression_p_value(early(0.6, seed=1), early(0.7)) == 1.0  # an improvement


def test_the_p_value_of_early_audits_is_the_least_alpha_at_which_the_limits_are_apart():
    new, old = early(0.70, seed=1), early(0.64)
    p = regression_p_value(new, old)
    assert 1e-9 < p < 0.5
    for alpha, apart in ((p * 1.01, True), (p * 0.99, False)):
        right, guesses = new["counts"]["right"], new["counts"]["guesses"]
        lower = Bets(1.0, 0.0).epsilon_lower(right, guesses - right, guesses, alpha / 2)
        most = share_upper(old["counts"]["right"], old["counts"]["guesses"], alpha / 2)
        assert (lower > np.log(most / (1 - most))) is np.bool_(apart)


@pytest.mark.slow
def test_the_error_of_the_test_of_early_audits():
    """300 comparisons of equal learners, near the claim and beyond, at alpha = 0.2: Bin(300, 0.2) > 95 has 1e-6."""
    wrong = 0
    for i in range(300):
        share = (0.6, 0.72, 0.8)[i % 3]
        wrong += regression_p_value(early(share, runs=600, seed=2 * i), early(share, runs=600, seed=2 * i + 1)) <= 0.2
    assert wrong <= 95


def test_the_limit_of_a_share_holds_at_all_times_together():
    """500 sequences whose probability drifts, 500 looks each, alpha = 0.1: Bin(500, 0.1) > 85 has 1e-6."""
    rng, n = np.random.default_rng(0), np.arange(1, 501)
    pi = 0.75 - 0.2 * np.cos(n / 150)
    right = np.cumsum(rng.random((500, n.size)) < pi, axis=1)
    mean = np.cumsum(pi) / n
    ever = (log_excess(right, n, mean) >= np.log(10)).any(axis=1)
    assert 5 < ever.sum() <= 85  # and not needlessly below
    limit = share_upper(int(right[0, -1]), n.size, 0.1)
    assert log_excess(right[0, -1], n.size, limit) == pytest.approx(np.log(10), abs=1e-6)
    assert limit - right[0, -1] / n.size < 0.08
    assert share_upper(3, 3, 0.01) == 1.0


@pytest.mark.parametrize("change", [{"seed": 1}, {"budget": 1000}, {"method": "guess"}])
def test_early_audits_that_changed_are_not_compared(change):
    old, new = early(0.6), {**early(0.9, seed=1), **change}
    found = compare([new], {"claims": [old]}, alpha=0.01)
    assert [finding["kind"] for finding in found["findings"]] == ["not compared"]
    del old["budget"]  # a baseline of an older version
    assert regression_p_value(early(0.9, seed=1), old) is None


def test_an_early_audit_against_its_baseline(accepted):
    plan = PLAN + 'stop = "early"\n'
    (accepted / "plan.toml").write_text(plan)
    assert "not compared: mine.py:Noisy" in rerun()[0].output
    assert overclaim("accept", "out/record.json").exit_code == 0
    result, record = rerun()
    assert result.exit_code == 0, result.output
    assert record["claims"][0]["baseline"]["p_value"] == 1.0
    (accepted / "mine.py").write_text(NOISY.replace("KEEP", "0.8"))
    result, record = rerun()
    assert result.exit_code == 1
    assert "regression: mine.py:Noisy: epsilon is at least" in result.output
    assert record["claims"][0]["method"] == "anytime"


def test_nothing_is_compared_without_guesses():
    assert regression_p_value(claim(0, 0), claim(1, 9)) is None
    (told,) = compare([claim(0, 0)], {"claims": [claim(1, 9)]}, alpha=0.01)["findings"]
    assert (told["kind"], told["message"]) == ("not compared", "one of the two audits made no guess")


def test_twins_are_told_apart_by_their_order():
    claims = [claim(1, 2), claim(3, 4)]
    assert len(keyed(claims)) == 2
    assert keyed(copy.deepcopy(claims)).keys() == keyed(claims).keys()


@pytest.mark.parametrize(
    ("now", "then", "lost"),
    [
        (None, 1.5, True),
        (5.0, 1.5, True),
        (2.0, 1.5, False),
        (1.5, 5.0, False),
        (None, None, False),
        (3.0, None, False),
    ],
)
def test_an_audit_that_sees_much_less_than_before_lost_power(now, then, lost):
    spots = [{"factor": factor, "tried": 100.0, "missed": None} for factor in (now, then)]
    new, old = (claim(70, 100, verdict="SURVIVED", blind_spot=spot) for spot in spots)
    findings = compare([new], {"claims": [old]}, alpha=0.01)["findings"]
    assert [f["kind"] for f in findings if f["kind"] == "lost power"] == ["lost power"] * lost
    if lost:
        assert "blind spot: " in findings[-1]["message"]
        assert "; before: with noise divided by 1.5 the claim is falsified" in findings[-1]["message"]


def test_a_claim_without_a_blind_spot_is_no_loss_of_power():
    old = claim(70, 100, verdict="SURVIVED", blind_spot={"factor": 1.5, "tried": 3.0})
    new = claim(70, 100, verdict="SURVIVED", blind_spot=None)
    assert not compare([new], {"claims": [old]}, alpha=0.01)["findings"]
