"""Evidence: the data of the figures, against exact answers and against its own promises."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from overclaim.audit.attacks.learner_attacks import SequenceRatio
from overclaim.audit.evidence.evidence import deciding_runs, evidence
from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.tasks import Task
from overclaim.mechanisms.claim import Claim

RUNS, ALPHA = 40_000, 2e-7
BUDGET = Budget(runs=RUNS, confidence=1 - ALPHA)


@pytest.fixture(scope="module")
def threshold():
    """The bandit reduction with a threshold learner: exactly 2 epsilon on symmetric losses, in two rounds."""
    prepared = Task(target="agarwal-singh/reduction-threshold", losses="symmetric", budget=BUDGET).prepare()
    return prepared, prepared.audit()


def test_is_json_and_small(threshold):
    prepared, result = threshold
    assert len(json.dumps(evidence(prepared.target, result), allow_nan=False, indent=1)) < 20_000


def test_depends_on_the_seed_alone(threshold):
    prepared, result = threshold
    assert evidence(prepared.target, result) == evidence(prepared.target, result)


def test_band_contains_the_exact_errors(threshold):
    # One discrete score with two values. Each of the two errors at each of its two thresholds is checked at
    # 2e-7, seed 0: a false alarm has probability at most 8e-7.
    prepared, result = threshold
    attack = SequenceRatio(prepared.target, result.pair)
    table, p, q = attack.laws
    curve = evidence(prepared.target, result)["tradeoff"]
    for i, t in enumerate(curve["threshold"]):
        exact = {"false_positive": q[table >= t - 1e-4].sum(), "false_negative": p[table < t - 1e-4].sum()}
        for name, value in exact.items():
            assert curve[f"{name}_low"][i] - 1e-4 <= value <= curve[f"{name}_high"][i] + 1e-4


def test_profile_bound_stays_below_the_exact_delta(threshold):
    # 25 points, correlated, each at alpha / 2 on both sides; seed 0.
    prepared, result = threshold
    attack = SequenceRatio(prepared.target, result.pair)
    _, p, q = attack.laws
    profile = evidence(prepared.target, result)["profile"]
    for epsilon, lower in zip(profile["epsilon"], profile["lower"], strict=True):
        exact = max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())
        assert lower <= exact + 1e-4
    assert profile["lower"][0] > 0.3


def test_scores_count_every_run(threshold):
    prepared, result = threshold
    figures = evidence(prepared.target, result)
    for side in ("left", "right"):
        assert sum(figures["scores"][side]) + sum(figures["scores"][f"{side}_infinite"]) == figures["runs"][side]


def test_leakage_by_round_is_exact_and_grows():
    prepared = Task(
        target="agarwal-singh/reduction-exp2", rounds=4, losses="symmetric", budget=Budget(runs=RUNS)
    ).prepare()
    result = prepared.audit()
    leak = evidence(prepared.target, result)["by_round"]
    assert leak["kind"] == "exact"
    assert leak["epsilon"][0] == 0
    assert all(a <= b + 1e-9 for a, b in zip(leak["epsilon"], leak["epsilon"][1:], strict=False))


@pytest.mark.slow(reason="an audit by round")
def test_leakage_by_round_of_a_sampled_attack_is_a_lower_bound():
    # Plain EXP3 at T = 8: exactly 6.558 (spec). Six prefixes at alpha = 0.01 each, seed 0.
    parameters = {"eta": 0.5, "gamma": 0.1}
    prepared = Task(
        target="asi-raman-talwar/exp3", rounds=40, parameters=parameters, budget=Budget(runs=RUNS)
    ).prepare()
    result = prepared.audit()
    leak = evidence(prepared.target, result)["by_round"]
    assert leak["rounds"][-1] == 40
    assert leak["epsilon"][-1] > leak["epsilon"][1]


def test_telling_sequences_are_named_by_the_event(threshold):
    prepared, result = threshold
    telling = evidence(prepared.target, result)["telling"]
    assert {row["says"] for row in telling} <= {"left", "right"}
    for row in telling:
        assert (row["left"] > row["right"]) == (row["says"] == "left")


def test_growth_ends_at_the_certificate(threshold):
    prepared, result = threshold
    counts = result.certificate.counts
    figures = evidence(prepared.target, replace(result, blocks=()))
    assert figures["growth"]["source"] == "evidence runs"
    figures = evidence(prepared.target, result)
    assert figures["growth"]["source"] == "certification runs"
    assert figures["growth"]["runs"][-1] == counts.runs
    assert figures["growth"]["bound"][-1] == pytest.approx(result.epsilon_lower, rel=1e-4)


@pytest.mark.parametrize(("true", "some"), [(None, False), (0.5, False), (1.0, False), (1.1, True), (2.0, True)])
def test_deciding_runs_only_for_a_violation(true, some):
    runs = deciding_runs(Claim(epsilon=1.0), true, 0.01)
    assert (runs is not None) == some


def test_fewer_runs_decide_a_grosser_violation():
    claim = Claim(epsilon=1.0)
    assert deciding_runs(claim, 2.0, 0.01) < deciding_runs(claim, 1.1, 0.01)
