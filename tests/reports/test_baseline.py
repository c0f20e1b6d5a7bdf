"""Baselines: regressions by an exact test, weakened claims, lost power, and a baseline that is not there."""

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.statistics.events import Counts
from overclaim.reports.baseline import Again, compare, digest, failed, regression_p_value
from overclaim.tests.support.command_line import overclaim, refused

PLAN = """
alpha = 0.01
[[claims]]
target = "mine.py:Noisy"
epsilon = 2
rounds = 2
runs = 4000
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


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder with an accepted baseline: audited once, copied for every test."""
    folder = tmp_path_factory.mktemp("accepted")
    with contextlib.chdir(folder):
        Path("plan.toml").write_text(PLAN)
        Path("mine.py").write_text(NOISY.replace("KEEP", "0.65"))
        assert overclaim("run", "plan.toml", "--jobs", 1).exit_code == 0
        assert overclaim("accept", "out/record.json").exit_code == 0
    return folder


@pytest.fixture
def accepted(original, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(original, tmp_path / "work"))
    return Path.cwd()


def rerun(*words):
    result = overclaim("run", "plan.toml", "--jobs", 1, "--baseline", "overclaim-baseline.json", *words)
    record = json.loads(Path("out/record.json").read_text()) if result.exit_code in (0, 1, 3) else None
    return result, record


def test_an_unchanged_learner_passes(accepted):
    result, record = rerun()
    assert result.exit_code == 0, result.output
    assert record["baseline"]["findings"] == []
    assert record["claims"][0]["baseline"]["epsilon_lower"] == record["claims"][0]["epsilon_lower"]
    beside = record["claims"][0]["baseline"]
    assert 0.001 < beside["p_value"] < 0.999
    assert beside["counts"] != beside["counts_before"]  # the same learner, the same seed, other draws
    assert beside["counts"]["runs"] == beside["counts_before"]["runs"] > 2000


def test_a_leak_that_grew_fails_though_the_claim_still_holds(accepted):
    (accepted / "mine.py").write_text(NOISY.replace("KEEP", "0.75"))
    result, record = rerun()
    assert result.exit_code == 1
    assert record["claims"][0]["verdict"] == "SURVIVED"
    assert "Worse than the baseline (1)\n  mine.py:Noisy: epsilon is at least" in result.output
    assert "overclaim check mine.py:Noisy" in result.output
    accepted = overclaim("accept", "out/record.json").output
    assert accepted.startswith("accepted: regression: mine.py:Noisy")
    assert accepted.endswith("Baseline: overclaim-baseline.json has 1 claim (0 removed, 0 weaker)\n")
    assert rerun()[0].exit_code == 0


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilon = 2", "epsilon = 3", "Weaker claim (1)\n  mine.py:Noisy: claims epsilon 3, was 2"),
        ("epsilon = 2", "epsilon = 2\ndelta = 0.01", "Weaker claim (1)\n  mine.py:Noisy: claims delta 0.01, was 0"),
        ("runs = 4000", "runs = 2000", "Less power than the baseline (1)\n  mine.py:Noisy: at best it catches"),
        (
            "rounds = 2",
            "rounds = 3",
            "Missing from this run (1)\n  mine.py:Noisy: in the baseline, but not",
        ),
    ],
)
def test_a_weaker_gate_fails(accepted, old, new, message):
    (accepted / "plan.toml").write_text(PLAN.replace(old, new))
    result, _ = rerun()
    assert result.exit_code == 1
    assert message in result.output


@pytest.mark.slow(reason="it loads a library")
def test_a_claim_of_a_library_is_compared(tmp_path, monkeypatch):
    """Its entry says how it is called, and for how long; its replay, by which it is found again, says that too."""
    pytest.importorskip("opendp")
    monkeypatch.chdir(tmp_path)
    claim = '[[claims]]\ntarget = "libraries/opendp/make_randomized_response_bool"\nruns = 2000\n'
    Path("plan.toml").write_text(f"confidence = 0.999999\n{claim}")  # its draws are new ones every time
    assert overclaim("run", "plan.toml", "--jobs", 1, "--no-blind-spots").exit_code == 0
    assert overclaim("accept", "out/record.json").exit_code == 0
    result, record = rerun("--no-blind-spots")
    assert result.exit_code == 0, result.output
    assert record["claims"][0]["baseline"]["not_compared"] is None


def test_a_new_claim_is_a_remark(accepted):
    (accepted / "plan.toml").write_text(PLAN + PLAN.replace("alpha = 0.01", "").replace("rounds = 2", "rounds = 3"))
    result, _ = rerun()
    assert result.exit_code == 0, result.output
    assert "New (1)\n  mine.py:Noisy epsilon 2 (unit, actions, replace) T=3: not in the baseline" in result.output


def test_a_baseline_that_is_not_there_is_an_error(accepted):
    refused(overclaim("run", "plan.toml", "--baseline", "nowhere.json"), "there is no baseline 'nowhere.json'")
    (accepted / "broken.json").write_text("{}")
    assert overclaim("run", "plan.toml", "--baseline", "broken.json").exit_code == 2


def test_a_record_with_errors_is_not_accepted(accepted):
    record = json.loads((accepted / "out" / "record.json").read_text())
    record["errors"] = [{"kind": "crashed", "name": "x", "message": "oops", "replay": ""}]
    (accepted / "bad.json").write_text(json.dumps(record))
    refused(overclaim("accept", "bad.json"), "were not audited: oops")


def counts(right, guesses, runs=None):
    """Counts of an event that names the left world, whose runs are half of all."""
    runs = 2 * guesses if runs is None else runs
    return Counts(runs, runs // 2, right, guesses - right, 0, 0)


def claim(number=1, *, right=50, guesses=100, **more):
    """A claim of a record, its event frozen with these counts."""
    frozen = {"kind": "sequences", "arms": 2, "batch": 1, "says": "l-", "share": 0.5}
    tally = {**vars(counts(right, guesses)), "right": right, "guesses": guesses}
    return {
        "name": "x", "method": "guess", "counts": {"right": right, "guesses": guesses}, "epsilon_lower": 0.5,
        "claimed": {"epsilon": number, "delta": 0.0}, "detectable_epsilon": number + 0.1, "confidence": 0.99,
        "runs": 100, "budget": 100, "replay": f"overclaim check x --epsilon {number}",
        "frozen": {**frozen, "counts": tally}, **more,
    }  # fmt: skip


def found_by(new, old, tallies=(), alpha=0.01):
    """Compare, the events counted again with these results, in order; return the comparison."""
    results = iter(tallies)
    return compare(new, {"claims": old}, alpha=alpha, again=lambda pairs: [Again(next(results)) for _ in pairs])


def kinds(comparison):
    return [(finding["kind"], finding["message"]) for finding in comparison["findings"]]


def test_the_p_value_is_the_hypergeometric_tail():
    p_value = regression_p_value(counts(70, 100), counts(110, 200))
    assert p_value == pytest.approx(stats.hypergeom(300, 180, 100).sf(69))


def test_the_error_of_the_gate(monkeypatch):
    """400 comparisons of equal learners at alpha = .1, two of three with a delta: Bin(400, .1) > 72 has 1e-6."""
    monkeypatch.setattr("gc.collect", lambda: 0)  # statsmodels' Holm collects garbage each time
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(400):
        first, second = rng.binomial(300, 0.7, size=(2, 3)).tolist()
        deltas = (0.0, 0.1, 0.01)
        new, old = (
            [
                claim(right=right, guesses=300, name=str(i), claimed={"epsilon": 1.0, "delta": deltas[i]})
                for i, right in enumerate(draw)
            ]
            for draw in (first, second)
        )
        wrong += failed({"baseline": found_by(new, old, [counts(right, 300) for right in first], alpha=0.1)})
    assert 1 <= wrong <= 72


def test_a_leak_within_delta_is_found_though_the_odds_of_a_guess_stay():
    """Outcomes that only one world has: every guess is right, and there are ten times as many."""
    old, new = counts(40, 40, 100_000), counts(400, 400, 100_000)
    assert regression_p_value(new, old) == 1.0
    assert regression_p_value(new, old, epsilon=1.0, delta=1e-3) < 1e-9
    assert regression_p_value(old, new, epsilon=1.0, delta=1e-3) == 1.0  # an improvement


def test_the_p_value_of_the_excess_is_valid():
    """300 comparisons of equal laws at alpha = .1: Bin(300, .1) > 60 with probability 1e-7."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(300):
        tallies = []
        for runs in (4000, 6000):
            right, wrong_guesses = rng.binomial(runs, [0.02, 0.005])
            tallies.append(Counts(runs, runs // 2, int(right), int(wrong_guesses), 0, 0))
        wrong += regression_p_value(*tallies, epsilon=1.0, delta=0.01) <= 0.1
    assert wrong <= 60


def test_the_order_of_claims_means_nothing():
    """Matched by position, epsilon 1 was compared with epsilon 2: p = 8e-16."""
    old = [claim(1, right=600, guesses=1000), claim(2, right=900, guesses=1000)]
    new = [claim(2, right=900, guesses=1000), claim(1, right=600, guesses=1000)]
    findings = found_by(new, old, [counts(905, 1000), counts(595, 1000)])
    assert kinds(findings) == []
    assert [c["baseline"]["counts_before"]["left_upper"] for c in new] == [900, 600]


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (1, 1.0),
        ("1", 1),
        ("1e2", 100.0),
        (0.5, "0.5"),
        ("None", "None"),
        ([1, 2], "[1, 2]"),
        (True, "True"),
        ("1j", "1j"),
    ],
)
def test_a_parameter_written_in_another_way_is_the_same(now, then):
    """A plan's `scale = 1` that became 1.0 was another claim: one was missing, and that failed the run."""
    old, new = (claim(parameters={"scale": value}) for value in (then, now))
    assert kinds(found_by([new], [old], [counts(50, 100)])) == []


@pytest.mark.parametrize(("now", "then"), [(1, 2.0), (True, 1), ("1", "one"), (2**53 + 1, float(2**53))])
def test_another_parameter_is_another_claim(now, then):
    old, new = (claim(parameters={"scale": value}) for value in (then, now))
    assert {kind for kind, _ in kinds(found_by([new], [old]))} == {"new", "missing"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"claimed": {"epsilon": 1, "delta": 0.05}}, "delta changed (0.05, was 0.2)"),
        ({"pair_given": True, "pair": {"left": 1, "right": 0}}, "left changed (1, was 5)"),
        ({"pair_given": True, "pair": {"left": 5, "right": 2}}, "right changed (2, was 0)"),
        ({"pair_given": True, "pair": {"left": 6, "right": 2}}, "left and right changed"),
        ({"bits": True}, "bits changed (true, was false)"),
        ({"inputs": {"type": "number"}}, 'inputs changed ({"type": "number"}, was null)'),
        ({"measure": {"kind": "gdp", "mu": 1.0}}, "measure changed (gdp, was approximate)"),
    ],
)
def test_another_question_is_not_compared(change, message):
    alike = {"claimed": {"epsilon": 1, "delta": 0.2}, "pair_given": True, "pair": {"left": 5, "right": 0}}
    new = claim(right=900, guesses=1000, **{**alike, **change})
    findings = found_by([new], [claim(right=100, guesses=1000, **alike)])
    assert kinds(findings) == [("not compared", message)]
    assert not failed({"baseline": findings})
    assert (new["baseline"]["p_value"], new["baseline"]["not_compared"]) == (None, message)


def test_a_larger_delta_is_a_weaker_claim_as_well():
    new = claim(claimed={"epsilon": 1, "delta": 0.2})
    findings = found_by([new], [claim()])
    assert kinds(findings)[1] == ("weakened", "claims delta 0.2, was 0")


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ({"kind": "gdp", "mu": 1.0}, {"kind": "gdp", "mu": 1.5}, "weakened"),
        ({"kind": "zcdp", "rho": 0.5}, {"kind": "zcdp", "rho": 0.6}, "weakened"),
        ({"kind": "rdp", "order": 2, "epsilon": 1.0}, {"kind": "rdp", "order": 2, "epsilon": 1.1}, "weakened"),
        ({"kind": "rdp", "order": 2, "epsilon": 1.0}, {"kind": "rdp", "order": 4, "epsilon": 1.1}, "not compared"),
        ({"kind": "profile", "points": [[1, 0]]}, {"kind": "profile", "points": [[2, 0]]}, "not compared, weakened"),
        ({"epsilon": 1, "delta": 0.0}, {"kind": "gdp", "mu": 100.0}, "not compared, weakened"),
        ({"epsilon": 1, "delta": 0.0}, {"kind": "gdp", "mu": 1.25}, "not compared, weakened"),
        ({"epsilon": 1, "delta": 0.0}, {"kind": "gdp", "mu": 0.8}, "not compared"),
        ({"kind": "gdp", "mu": 1.0}, {"kind": "profile", "points": [[5, 0.5]]}, "not compared, weakened"),
        ({"kind": "zcdp", "rho": 0.5}, {"kind": "rdp", "order": 2, "epsilon": 9.0}, "not compared, weakened"),
        (
            {"kind": "rdp", "order": 4, "epsilon": 1.0},
            {"kind": "rdp", "order": 2, "epsilon": 1.0},
            "not compared, weakened",
        ),
        ({"kind": "gdp", "mu": 1.0}, {"kind": "tomorrow", "level": 9.0}, "not compared"),
        ({"kind": "gdp", "mu": 1.5}, {"kind": "gdp", "mu": 1.0}, None),
        ({"epsilon": 1, "delta": 0.0}, {"kind": "approx", "epsilon": 1.0, "delta": 0}, None),
    ],
)
def test_every_measure_is_held_to_its_own_level(old, new, kind):
    findings = found_by([claim(measure=new)], [claim(measure=old)], [counts(50, 100)])
    assert [k for k, _ in kinds(findings)] == (kind.split(", ") if kind else [])


def test_another_confidence_changes_no_share_and_no_power_is_compared():
    """From 1 to 20 claims under one alpha every audit catches less: "lost power" 40 times in 40."""
    new = claim(right=60, confidence=0.9995, detectable_epsilon=1.4)
    findings = found_by([new], [claim()], [counts(60, 100)])
    assert kinds(findings) == [("not compared", "the power of its audit: confidence changed (0.9995, was 0.99)")]
    assert new["baseline"]["p_value"] == pytest.approx(regression_p_value(counts(60, 100), counts(50, 100)))
    lost = found_by([claim(detectable_epsilon=1.4)], [claim()], [counts(50, 100)])
    assert [kind for kind, _ in kinds(lost)] == ["lost power"]


def test_of_an_early_audit_the_runs_are_named_that_it_could_spend():
    new, old = (claim(method="anytime", runs=62, budget=many) for many in (500, 9000))
    (lost,) = found_by([{**new, "detectable_epsilon": 1.4}], [old], [counts(50, 100)])["findings"]
    assert "(500 runs, were 9,000)" in lost["message"]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "measure", [{"kind": "gdp", "mu": 1.0}, {"kind": "zcdp", "rho": 0.5}, {"kind": "profile", "points": [[1, 0]]}]
)
@pytest.mark.parametrize(("now", "then", "lost"), [(40, 3000, True), (2700, 3000, True), (2800, 3000, False)])
def test_where_no_smallest_violation_is_known_fewer_runs_are_lost_power(measure, now, then, lost):
    """From 3000 runs to 40 was no finding."""
    new, old = (claim(measure=measure, detectable_epsilon=None, budget=many, runs=many) for many in (now, then))
    findings = kinds(found_by([new], [old], [counts(50, 100)]))
    assert findings == [("lost power", f"its audit has {now:,} runs, it had {then:,}")] * lost
    for later in ({**new, "budget": 9000, "runs": 9000}, {**new, "detectable_epsilon": 1.1}):
        assert kinds(found_by([later], [old], [counts(50, 100)])) == []
    unknown = claim(measure=measure, detectable_epsilon=None, budget=None, runs=None)
    assert kinds(found_by([unknown], [old], [counts(50, 100)])) == []


def test_another_attack_seed_or_budget_is_compared_by_the_baselines_event():
    changes = {"attack": "b", "event": {"upper": 2.0}, "seed": 5, "budget": 90, "engine": "numba"}
    assert kinds(found_by([claim(right=99, **changes)], [claim()], [counts(52, 100)])) == []
    ((kind, message),) = kinds(found_by([claim(right=50, **changes)], [claim()], [counts(95, 100)]))
    assert kind == "regression"
    rates = "true positives 95.0% (was 50.0%), false positives 5.0% (was 50.0%), p-value "
    assert f"; the baseline's event: {rates}" in message


def test_what_could_not_be_counted_again_is_said():
    new = claim()
    comparison = compare(
        [new], {"claims": [claim()]}, alpha=0.01, again=lambda pairs: [Again(None, "no event was kept")]
    )
    assert kinds(comparison) == [("not compared", "no event was kept")]
    crash = Again(None, "it raised OSError", crashed=True)
    comparison = compare([new], {"claims": [claim()]}, alpha=0.01, again=lambda pairs: [crash])
    assert (comparison["findings"], [e["kind"] for e in comparison["errors"]]) == ([], ["crashed"])


def test_nothing_is_compared_without_guesses():
    assert regression_p_value(counts(0, 0, 10), counts(1, 9)) is None
    assert kinds(found_by([claim()], [claim()], [counts(0, 0, 10)]))[0][0] == "not compared"


def test_a_claim_that_is_left_out_is_missing_whatever_the_order():
    one, two = claim(1), claim(2)
    assert kinds(found_by([claim(2)], [one, two], [counts(50, 100)])) == [
        ("missing", "in the baseline, but not in this record")
    ]
    assert [k for k, _ in kinds(found_by([claim(2), claim(1), claim(1)], [one, two], [counts(50, 100)] * 2))] == [
        "new"
    ]


def test_a_record_says_against_which_baseline_it_was_made(accepted):
    _, record = rerun()
    base = json.loads((accepted / "overclaim-baseline.json").read_text())
    assert record["baseline"]["digest"] == digest(base)
    other = json.loads((accepted / "out" / "record.json").read_text())
    other["baseline"]["digest"] = "another"
    (accepted / "other.json").write_text(json.dumps(other))
    assert "not compared: mine.py:Noisy: the learner was not played" in overclaim("accept", "other.json").output


@pytest.mark.slow(reason="several whole runs")
def test_an_early_audit_against_its_baseline(accepted):
    plan = PLAN + 'stop = "early"\n'
    (accepted / "plan.toml").write_text(plan)
    assert "the power of its audit: stop changed (early, was budget)" in rerun()[0].output
    assert overclaim("accept", "out/record.json").exit_code == 0
    result, record = rerun()
    assert result.exit_code == 0, result.output
    assert record["baseline"]["findings"] == []
    (accepted / "mine.py").write_text(NOISY.replace("KEEP", "0.8"))
    result, record = rerun()
    assert result.exit_code == 1
    assert "Worse than the baseline (1)\n  mine.py:Noisy: epsilon is at least" in result.output
    assert record["claims"][0]["method"] == "anytime"


def test_a_baseline_without_its_event_is_not_compared(accepted):
    """Of an older version: guesses of two audits of one seed depend on each other, and their events differ."""
    base = json.loads((accepted / "overclaim-baseline.json").read_text())
    del base["claims"][0]["frozen"]
    (accepted / "overclaim-baseline.json").write_text(json.dumps(base))
    result, record = rerun()
    assert result.exit_code == 0, result.output
    assert (
        "Not compared with the baseline (1)\n  mine.py:Noisy: the baseline is of a version that kept no event"
        in result.output
    )
    assert record["claims"][0]["baseline"]["p_value"] is None


@pytest.mark.few(1)
@pytest.mark.parametrize("frozen", [{"kind": "sequences"}, {"kind": "wave"}, {"kind": "linear", "arms": "x"}])
def test_a_baseline_with_a_broken_event_is_not_compared(accepted, frozen):
    base = json.loads((accepted / "overclaim-baseline.json").read_text())
    base["claims"][0]["frozen"] = frozen
    (accepted / "overclaim-baseline.json").write_text(json.dumps(base))
    assert "Not compared with the baseline (1)\n  mine.py:Noisy: the baseline's event" in rerun()[0].output


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
    new, old = (claim(verdict="SURVIVED", blind_spot=spot) for spot in spots)
    findings = found_by([new], [old], [counts(50, 100)])["findings"]
    assert [f["kind"] for f in findings if f["kind"] == "lost power"] == ["lost power"] * lost
    if lost:
        assert "blind spot: " in findings[-1]["message"]
        assert "; before: with noise divided by 1.5 the claim is falsified" in findings[-1]["message"]
    asked_otherwise = found_by([{**new, "confidence": 0.9}], [old], [counts(50, 100)])
    assert [kind for kind, _ in kinds(asked_otherwise)] == ["not compared"]


def test_a_claim_without_a_blind_spot_is_no_loss_of_power():
    old = claim(verdict="SURVIVED", blind_spot={"factor": 1.5, "tried": 3.0})
    new = claim(verdict="SURVIVED", blind_spot=None)
    assert not found_by([new], [old], [counts(50, 100)])["findings"]
