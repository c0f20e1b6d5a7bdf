"""Audits of claims in other measures than epsilon, of mechanisms and learners whose truth is known."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import special

from overclaim import Claim, falsify, falsify_mechanism
from overclaim.audit.execution.execution import Execution
from overclaim.audit.laws.exact import NotExactError
from overclaim.audit.laws.exact_levels import exact_level, level_of_gaussian
from overclaim.audit.pipeline.blind_spot_search import Weakening
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.play.pairs import Pair
from overclaim.audit.statistics.multiplicity import p_value
from overclaim.learners import BatchedLaplace, Threshold
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.measure import Measure, directed
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.mechanisms.view import RELEASE


class Gaussian:
    """Release one number with normal noise: exactly 1/sigma-Gaussian DP."""

    batched = True

    def __init__(self, sigma):
        self.sigma = sigma

    def __call__(self, data, draws, runs):
        return data[0] + self.sigma * draws.normal((runs,))


def audit(claim, *, runs=20_000, mu=1.0, **options):
    return falsify_mechanism(Gaussian(1 / mu), Claim(measure=claim), left=[0], right=[1], runs=runs, **options)


#: Claims of the Gaussian mechanism at mu = 1: the true one, and one that is a little too small.
TRUTH = [
    (GDP(1.0), GDP(0.9)),
    (ZCDP(0.5), ZCDP(0.35)),
    (RDP(1.5, 0.75), RDP(1.5, 0.55)),
    (ApproxDP(0.0, 0.3829249), ApproxDP(0.0, 0.35)),
    (Profile(((0.0, 0.3829249), (1.0, 0.1269368))), Profile(((0.0, 0.35), (1.0, 0.1269368)))),
]


@pytest.mark.parametrize(("true", "false"), TRUTH, ids=lambda claim: claim.kind)
def test_what_is_true_survives_and_what_is_too_small_is_falsified(true, false):
    """Two audits of 20,000 runs at 99.9999 %: each is wrong about the true claim with probability 1e-6 at most."""
    survived = audit(true, confidence=1 - 1e-6)
    assert survived.verdict.value == "SURVIVED"
    assert survived.lower <= true.level
    assert math.isnan(survived.detectable_epsilon)
    caught = audit(false)
    assert caught.verdict.value == "FALSIFIED"
    assert false.level < caught.lower
    assert p_value(caught.claim, caught.event, caught.certificate) <= caught.certificate.alpha
    assert str(caught).startswith("FALSIFIED: claimed ")
    assert "at best" not in str(caught)


def test_too_few_runs_decide_nothing():
    assert audit(GDP(8.0), runs=100).verdict.value == "UNDERPOWERED"


def test_an_exact_law_is_audited_without_a_pilot_by_the_claims_own_measure():
    """A threshold bandit fed losses with Laplace noise: its actions are randomised response, whose mu is known."""
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    game = {"rounds": 2, "runs": 40_000, "seed": 1}
    keep = 1 - 0.5 * math.exp(-0.5)  # of Laplace noise beyond half its range
    mu = float(GDP(1.0).needed(keep, 1 - keep))
    result = falsify(learner, Claim(measure=GDP(0.9 * mu)), **game)
    assert result.verdict.value == "FALSIFIED"
    assert 0.93 * mu < result.lower <= mu
    assert falsify(learner, Claim(measure=GDP(1.02 * mu)), **game).verdict.value == "SURVIVED"


@pytest.mark.parametrize(
    "measure", [GDP(1.0), ZCDP(1.0), RDP(2.0, 1.0), ApproxDP(0.0, 0.5), Profile(((1.0, 0.1),))], ids=str
)
def test_an_exact_law_that_shows_nothing_certifies_nothing(measure):
    """In one round the first arm is played: the other is impossible in both worlds, and its score nan."""
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    result = falsify(learner, Claim(measure=measure), rounds=1, runs=2_000)
    assert (result.verdict.value, result.reason) == ("UNDERPOWERED", "hidden by the exact law")
    assert result.lower == 0


def test_the_blind_spot_is_found_in_the_claims_own_measure():
    how = Weakening(lambda factor: Gaussian(1.25 / factor))
    result = audit(GDP(1.0), mu=0.8, weaken=how, runs=8_000)
    assert result.verdict.value == "SURVIVED"
    assert 1.25 < result.blind_spot.factor <= 2.0
    assert dict(result.blind_spot.bounds)[result.blind_spot.factor] > 1.0


def test_what_is_not_done_in_other_measures_is_refused_in_one_line_before_a_run_is_played():
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    with pytest.raises(ValueError, match="stop must be budget for a claim in another measure than epsilon"):
        falsify(learner, Claim(measure=GDP(1.0)), rounds=2, runs=1000, stop="early")


@pytest.mark.slow(reason="several whole audits")
def test_the_counts_of_a_function_are_kept_and_an_interrupted_audit_ends_alike(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text('[[claims]]\ntarget = "mechanisms/gaussian"\nzcdp = 0.4\nruns = 3000\n')
    plan = read_plan(file)
    page = Ledger.begin(tmp_path / "out", plan, resume=False).page(0)
    fresh = plan.tasks[0].prepare().audit()
    for _ in range(2):
        kept = plan.tasks[0].prepare().audit(Execution(memory=page))
        assert kept.certificate == fresh.certificate
        assert kept.event == fresh.event
    assert fresh.event.method == "variational"
    page.close()


@dataclass(frozen=True)
class Odds(Measure):
    """What an event needs and no more: how much its odds differ between the worlds, in nats."""

    kind: ClassVar[str] = "odds"
    nats: float

    def needed(self, p, q):
        with np.errstate(divide="ignore", invalid="ignore"):
            return directed(p, q, special.logit(p) - special.logit(q))

    def approximate(self, delta):
        return self.nats


def test_a_measure_that_says_no_more_than_what_an_event_needs_is_certified_by_two_intervals():
    """Randomised response of epsilon 1 moves the odds by 2; of a true claim that is said with 1e-6 at most."""

    def answer(data, rng):
        return data[0] ^ (rng.random() < 1 / (1 + math.e))

    for nats, verdict in ((1.5, "FALSIFIED"), (2.0, "SURVIVED")):
        claim = Claim(measure=Odds(nats))
        result = falsify_mechanism(answer, claim, left=[0], right=[1], runs=20_000, confidence=0.999999)
        assert (result.verdict.value, result.certificate.method) == (verdict, "joint")
        assert 1.6 < result.lower < 2.0


def test_no_exact_level_is_said_in_a_measure_of_which_none_is_known():
    """It was half the square of mu, as if rho were meant."""
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    pair = Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(NotExactError, match="not known of Odds"):
        exact_level(learner, pair, Odds(1.0), view=RELEASE)
    with pytest.raises(NotExactError, match="not known of Odds"):
        level_of_gaussian(Odds(1.0), 1.0)


def test_constant_outputs_certify_nothing():
    def silent(data, rng):
        return 0

    result = falsify_mechanism(silent, Claim(measure=ZCDP(0.1)), left=[0], right=[1], runs=2000)
    assert result.lower == 0
    assert (result.verdict.value, result.reason) == ("UNDERPOWERED", "no difference seen")
    assert np.isfinite(result.certificate.two_interval_bound)
