"""The power of an audit by planted faults, the verdict that rests on it, and rare branches."""

import math

import numpy as np
import pytest

from overclaim import Claim, Verdict, falsify
from overclaim.audit.canaries.score_audit import audit_scores
from overclaim.audit.execution.execution import Budget
from overclaim.audit.pipeline.mechanism_stages import MechanismAudit
from overclaim.audit.pipeline.power_test import PowerTest, planted
from overclaim.audit.pipeline.rare_paths import Look
from overclaim.audit.play.mechanism_runs import DataPair
from overclaim.audit.verdicts.blind_spot import LOW_POWER, RARE, UNMEASURED
from overclaim.learners import BatchedLaplace, Threshold
from overclaim.mechanisms.faults import Fault
from overclaim.tests.support import greens, obvious_scores

ONE = Claim(epsilon=1.0)
SIDES = {"left": [1, 2], "right": [1]}


def count(data, rng):
    return len(data) + rng.laplace()


def slack(data, rng):
    return len(data) + rng.laplace(scale=30.0)


def constant_noise(data, rng):
    return len(data) + np.random.Generator(np.random.PCG64(rng.bytes(8)[0])).laplace()


class Recommender:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.rng, self.total = rng, np.zeros(arms)

    def act(self):
        self.arm = int(np.argmin(self.total))
        return self.arm

    def update(self, loss):
        self.total[self.arm] += loss + self.rng.laplace(0, 1.0)


def test_a_tight_count_survives_and_says_what_its_audit_catches():
    result = falsify(count, ONE, **SIDES, runs=6_000, power=3.0)
    spot = result.blind_spot.to_json()
    assert (result.verdict, spot["kind"]) == (Verdict.SURVIVED, "nearer")
    assert 1.25 <= spot["factor"] <= 2.0
    assert [(site["kind"], site["caught"]) for site in spot["sites"]] == [("missing", True)]
    assert spot["sites"][0]["place"].startswith("tests/pipeline/test_power_test.py:")
    assert all(bound > 1.0 for factor, bound in spot["bounds"] if factor >= spot["factor"])


def test_thirty_times_the_noise_is_low_power_unless_less_is_asked_for():
    result = falsify(slack, ONE, **SIDES, runs=4_000, power=3.0)
    assert (result.verdict, result.reason) == (Verdict.UNDERPOWERED, LOW_POWER)
    accepted = falsify(slack, ONE, **SIDES, runs=4_000, power=100.0)
    assert (accepted.verdict, accepted.blind_spot.limit) == (Verdict.SURVIVED, 100.0)


def test_without_a_power_test_a_third_of_the_claim_has_to_be_certified():
    assert falsify(count, ONE, **SIDES, runs=4_000, power="off").verdict is Verdict.SURVIVED
    assert falsify(slack, ONE, **SIDES, runs=4_000, power="off").reason == UNMEASURED


def test_where_no_fault_changes_the_output_nothing_is_measured():
    result = falsify(constant_noise, ONE, **SIDES, runs=2_000, power=3.0)
    assert result.blind_spot is None


def test_no_run_of_a_faulty_target_enters_the_certificate():
    plain = falsify(count, ONE, **SIDES, runs=3_000, power="off")
    assert falsify(count, ONE, **SIDES, runs=3_000, power=3.0).certificate == plain.certificate


def test_the_power_test_does_not_depend_on_the_number_of_workers():
    one, two = (falsify(count, ONE, **SIDES, runs=3_000, power=3.0, jobs=jobs) for jobs in (1, 2))
    assert one.blind_spot == two.blind_spot


def test_tests_have_random_numbers_and_shares_of_the_error_of_their_own():
    audit = MechanismAudit(mechanism=count, claim=ONE, budget=Budget(1_000))
    test = PowerTest(audit, count, DataPair([1, 2], [1]), 3.0)
    faults = [Fault(factor, kind) for factor in (1.1, 1.25, 1.5, 2.0, 3.0) for kind in ("nearer", "low")]
    numbers = [test._number(fault, share) for fault in faults for share in (1 / 8, 1 / 2, 1 / 4)]
    numbers += [test._number(Fault(math.inf, "nearer", place), 0.0) for place in test.places]
    assert len(set(numbers)) == len(numbers)
    assert test.tests == 1 + 1 + 3 + 2


def test_a_plain_learner_and_its_batched_twin_are_given_faults():
    learner = planted(BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1), Fault(2.0))
    assert learner.arms == 2
    result = falsify(Recommender, ONE, rounds=2, runs=6_000, power=3.0)
    assert result.verdict is Verdict.SURVIVED
    assert result.blind_spot.factor <= 3.0
    assert {site.kind for site in result.blind_spot.sites} <= {"missing", "reused"}


@pytest.mark.slow(reason="boosted trees on the reports, at every fault")
def test_olh_is_no_green():
    result = falsify(greens.olh, ONE, left=3, right=5, runs=4_000, power=3.0)
    assert (result.verdict, result.reason) == (Verdict.UNDERPOWERED, LOW_POWER)


def test_given_scores_of_canaries_keep_their_rule():
    rng = np.random.default_rng(0)
    coins = rng.random(1_000) < 0.5
    result = audit_scores(rng.normal(size=1_000), included=coins, design="one-run", claim=ONE)
    assert result.verdict is Verdict.SURVIVED


@pytest.mark.parametrize(("noise", "verdict"), [(1.0, Verdict.SURVIVED), (1e4, Verdict.UNDERPOWERED)])
def test_trainings_are_run_again_with_weaker_noise(noise, verdict):
    def training(included, rng):
        return included + rng.laplace(scale=noise, size=included.size)

    result = falsify(training, ONE, canaries=4_000, power=3.0)
    assert result.verdict is verdict
    assert result.blind_spot.kind == "nearer"


def test_a_rare_branch_is_found_with_its_line_and_how_often():
    result = falsify(greens.rare, ONE, **SIDES, runs=16_000, power=3.0)
    assert (result.verdict, result.reason) == (Verdict.UNDERPOWERED, RARE)
    assert result.rare.probability == pytest.approx(5e-6, rel=0.5)
    assert result.rare.place.startswith("tests/support/greens.py:")
    assert 1e6 < result.rare.runs < 2e7
    assert result.certificate == falsify(greens.rare, ONE, **SIDES, runs=16_000, power="off").certificate


def often(data, rng):
    return len(data) + 1000 if rng.random() < 1e-3 else len(data) + rng.laplace()


def test_a_rare_branch_is_certified_where_the_runs_suffice_and_reported_where_they_do_not():
    audit = MechanismAudit(mechanism=often, claim=ONE, budget=Budget(16_000))
    choice, _ = audit.choose([DataPair([1, 2], [1])])
    chosen, rare = Look(audit, choice).led(10**6)
    assert (chosen.attack.name, chosen.event.direction, rare.input) == ("rare outputs", "left", "left")
    assert rare.probability == pytest.approx(1e-3, rel=0.5)
    counts = audit.counter(chosen)((0, 16_384))
    assert 1 <= counts.left_upper <= 30  # binomial of 8,192 runs and 1e-3: more has probability below 1e-8
    assert counts.right_upper == 0
    assert Look(audit, choice).led(100)[0] is choice


def test_a_pilot_that_promised_too_much_hides_no_rare_branch():
    result = falsify(often, ONE, **SIDES, runs=20_000, power=3.0)
    assert result.verdict is not Verdict.SURVIVED


@pytest.mark.few("olh", "oue")
@pytest.mark.parametrize("name", ["olh", "oue", "subset", "hadamard"])
def test_an_obvious_score_shows_what_local_reports_tell(name):
    mechanism, score = getattr(obvious_scores, name), getattr(obvious_scores, f"{name}_score")
    result = falsify(mechanism, ONE, left=3, right=5, runs=4_000, score=score, power="off")
    assert result.verdict is Verdict.FALSIFIED
    assert result.epsilon_lower < 2.0
