"""Bounds in any measure: validity at exactly tight claims, corners, twins, and what a planted fault does to them."""

import math

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.statistics.bounds import measure_bounds
from overclaim.audit.statistics.bounds.intervals import epsilon_two_interval
from overclaim.audit.statistics.bounds.measure_bounds import corner, level_lower, refuted
from overclaim.audit.statistics.bounds.variational import StepFunction, divergence_lower, divergence_p_value, level_of
from overclaim.audit.statistics.certificates import ceiling, certify_claim, refutes, translation
from overclaim.audit.statistics.events import UNUSED, Counts, Event, count
from overclaim.audit.statistics.measure_choice import Cells, choose
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.divergences import bernoulli_divergence
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.renyi import RDP, ZCDP

TIGHT = [
    (GDP(1.0), 0.3),
    (ApproxDP(0.0, 0.2), 0.3),
    (Profile(((0.0, 0.3), (1.0, 0.05))), 0.1),
    (ZCDP(0.3), 0.2),
    (RDP(4.0, 0.5), 0.2),
]
N = 500


@pytest.mark.parametrize(
    ("measure", "q"),
    [
        pytest.param(*case, marks=pytest.mark.slow if number else (), id=str(case[0]))
        for number, case in enumerate(TIGHT)
    ],
)
def test_a_claim_that_is_exactly_tight_is_refuted_no_more_often_than_alpha(measure, q):
    """2,000 samples of 500 runs in each world at alpha 0.1; the chance of a false alarm is at most 1e-6."""
    rng, p = np.random.default_rng(0), float(measure.allowed(q))
    k_p, k_q = rng.binomial(N, p, 2000), rng.binomial(N, q, 2000)
    assert refuted(measure, k_p, N, k_q, N, alpha=0.1).sum() <= stats.binom.isf(1e-6, 2000, 0.1)


def test_a_planted_fault_loses_validity(monkeypatch):
    """Limits that forget to share alpha, and that take the wrong tail of q."""
    rng, measure = np.random.default_rng(0), ZCDP(0.3)
    k_p, k_q = rng.binomial(N, float(measure.allowed(0.2)), 2000), rng.binomial(N, 0.2, 2000)

    def wrong(k_p, n_p, k_q, n_q, *, alpha):
        return corner(k_p, n_p, k_q, n_q, alpha=alpha)[0], np.asarray(k_q) / n_q

    monkeypatch.setattr(measure_bounds, "corner", wrong)
    assert refuted(measure, k_p, N, k_q, N, alpha=0.02).sum() > stats.binom.isf(1e-6, 2000, 0.02)


@pytest.mark.parametrize(("measure", "q"), TIGHT, ids=str)
def test_the_bound_is_the_largest_level_that_is_refuted(measure, q):
    counts = (round(10_000 * float(measure.at(1.3 * measure.level).allowed(q))), 10_000, round(10_000 * q), 10_000)
    bound = level_lower(measure, *counts, alpha=0.01)
    assert measure.level < bound < 1.3 * measure.level
    assert refuted(measure.at(bound * (1 - 1e-6)), *counts, alpha=0.01)
    assert not refuted(measure.at(bound * 1.005), *counts, alpha=0.01)  # steps are shorter than that
    assert level_lower(measure, counts[2], 10_000, counts[0], 10_000, alpha=0.01) == 0  # named the wrong world


@pytest.mark.parametrize(
    "measure",
    [GDP(1.0), GDP(0.1), ApproxDP(0.0, 0.2), ApproxDP(0.7, 0.05), Profile(((0.0, 0.3), (1.0, 0.05)))],
    ids=str,
)
@pytest.mark.parametrize(
    "counts", [(300, 400, 200, 500), (3, 400, 1, 500), (400, 400, 370, 500), (9000, 10000, 7, 90)]
)
def test_no_point_of_a_cell_has_a_smaller_sum_than_the_cell(measure, counts):
    """60 cells, 40 points in each."""
    edges = np.linspace(1e-6, 1 - 1e-6, 61)
    data = tuple(np.array([[k]]) for k in counts)
    least = measure_bounds._least_of_cells(measure, data, edges[None])[0]
    q = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0, 1, 40)
    p = measure.allowed(q)
    k_p, n_p, k_q, n_q = counts
    with np.errstate(all="ignore"):
        of_p = -stats.norm.ppf(stats.binom.sf(k_p - 1, n_p, p))
        of_q = -stats.norm.ppf(stats.binom.cdf(k_q, n_q, q))
        angle = np.arctan2(np.sqrt(q * (1 - q) / n_q) * measure.slope(q), np.sqrt(p * (1 - p) / n_p))
        total = np.cos(angle) * of_p + np.sin(angle) * of_q
    total = np.where(np.isfinite(of_p) & np.isfinite(of_q), total, np.inf)
    assert (total >= least[:, None] - 1e-6 * (1 + np.abs(total))).all()


def test_slopes_are_those_of_what_is_allowed():
    q = np.linspace(0.01, 0.6, 50)
    for measure in (GDP(1.0), ApproxDP(0.7, 0.05), Profile(((0.0, 0.3), (1.0, 0.05)))):
        slope = (measure.allowed(q + 1e-7) - measure.allowed(q)) / 1e-7
        np.testing.assert_allclose(measure.slope(q), slope, rtol=1e-4)
        assert (np.diff(measure.slope(q)) <= 1e-12).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("measure", [GDP(1.0), ZCDP(0.5), RDP(3.0, 1.0), ApproxDP(0.0, 0.1)], ids=str)
def test_more_evidence_bounds_more(measure):
    bounds = [level_lower(measure, k, 1000, 200, 1000, alpha=0.01) for k in (100, 250, 400, 700, 1000)]
    assert bounds == sorted(bounds)
    assert bounds[0] == 0
    assert math.isfinite(bounds[-1])
    assert level_lower(measure, 400, 1000, 0, 1000, alpha=0.01) > level_lower(measure, 400, 1000, 50, 1000, alpha=0.01)
    assert level_lower(measure, 0, 1000, 1000, 1000, alpha=0.01) == 0


def test_the_weighted_sum_beats_the_corner_and_the_corner_is_the_known_one():
    counts = (6_000, 10_000, 4_000, 10_000)
    p, q = corner(*counts, alpha=0.01)
    assert math.log(p / q) == pytest.approx(float(epsilon_two_interval(*counts, alpha=0.01)))
    assert level_lower(GDP(1.0), *counts, alpha=0.01) > GDP(1.0).needed(p, q)
    assert level_lower(ZCDP(1.0), *counts, alpha=0.01) == ZCDP(1.0).needed(p, q)


def gaussian(mu, n, seed):
    """Scores and labels of the Gaussian mechanism: its exact log-likelihood ratio."""
    rng = np.random.default_rng(seed)
    left = np.arange(n) % 2 == 0
    return mu * (rng.normal(np.where(left, mu, 0.0)) - mu / 2), left


def test_donsker_varadhan_and_renyi_bound_the_divergence_of_coins_from_below():
    p, q = 0.7, 0.2
    values = (math.log((1 - p) / (1 - q)), math.log(p / q))
    counts = np.array([30_000, 70_000]), np.array([80_000, 20_000])
    for order in (1.0, 1.5, 4.0):
        truth = float(bernoulli_divergence(order, p, q))
        function = StepFunction((0.0,), values, order)
        assert 0.9 * truth < divergence_lower(function, *counts, alpha=0.01) < truth
        assert bernstein(function, *counts, alpha=0.01) < truth
        shifted = StepFunction((0.0,), tuple(value + 7 for value in values), order)  # a constant cancels
        assert divergence_lower(shifted, *counts, alpha=0.01) == pytest.approx(
            divergence_lower(function, *counts, alpha=0.01), abs=1e-9
        )
        other = StepFunction((0.0,), tuple(-value for value in values), order, "right")
        assert divergence_lower(other, *counts, alpha=0.01) <= float(bernoulli_divergence(order, q, p))


@pytest.mark.slow(reason="100 samples")
def test_variational_p_values_are_at_most_alpha_with_probability_alpha():
    """Randomised response, 100 samples of 100, f its exact ratio, bounds and p-values. False alarms: at most 1e-6."""
    p, n = math.e / (1 + math.e), 100
    truth, function = float(bernoulli_divergence(3.0, p, 1 - p)), StepFunction((0.0,), (-1.0, 1.0), 3.0)
    rng, samples = np.random.default_rng(1), []
    for _ in range(100):
        a, b = rng.binomial(n, p), rng.binomial(n, 1 - p)
        counts = [n - a, a], [n - b, b]
        samples.append((divergence_p_value(function, *counts, truth), divergence_lower(function, *counts, alpha=0.1)))
    values, bounds = np.array(samples).T
    assert (values <= 0.1).sum() == (bounds > truth).sum() <= stats.binom.isf(1e-6, 100, 0.1)
    assert divergence_p_value(function, [10, 90], [90, 10], truth) < 1e-3  # and it tells how strong evidence is


def bernstein(function, left, right, *, alpha):
    """The simple twin: Maurer & Pontil 2009, Theorem 4, each mean with half of the error."""
    limits = []
    for x, counts in ((function.in_p, left), (function.in_q, right)):
        many, n = np.asarray(counts), np.sum(counts)
        mean, log = many @ x / n, math.log(4 / alpha)
        variance = many @ (x - mean) ** 2 / (n - 1)
        limits.append(max(0.0, mean - math.sqrt(2 * variance * log / n) - 7 * log / (3 * (n - 1))))
    return float(function.bound(*limits))


def test_bets_beat_bernstein_and_both_beat_one_event_for_rho():
    """The Gaussian mechanism at mu = 1 in 20,000 runs, rho = 1/2; what the pilot chose, on fresh runs."""
    measure = ZCDP(0.5)
    event, promised = choose(Cells.of_scores(*gaussian(1.0, 6000, 0), log_odds=True), measure, alpha=0.01, runs=20_000)
    assert event.method == "variational"
    counts = count(event, *gaussian(1.0, 20_000, 1))
    certified = level_of(measure, event.function.order, divergence_lower(event.function, *counts.tallies, alpha=0.01))
    twin = level_of(measure, event.function.order, bernstein(event.function, *counts.tallies, alpha=0.01))
    one = Event(event.lower, event.upper, "joint")
    assert 0.5 > certified > twin + 0.03 > twin > certify_claim(measure, one, counts, alpha=0.01).lower
    assert certified == certify_claim(measure, event, counts, alpha=0.01).lower
    assert promised == pytest.approx(certified, rel=0.2)  # less the doubt of the pilot


def test_the_best_event_depends_on_the_measure():
    """Laplace at epsilon 2: any event beyond both modes is best for epsilon, one near the middle for mu."""
    rng = np.random.default_rng(0)
    left = np.arange(40_000) % 2 == 0
    x = rng.laplace(np.where(left, 1.0, 0.0), 0.5)
    scores = 2 * (np.abs(x) - np.abs(x - 1))
    event, level = choose(Cells.of_scores(scores, left, log_odds=True), GDP(1.0), alpha=0.01, runs=200_000)
    p, q = (float(np.mean(scores[side] >= event.upper)) for side in (left, ~left))
    assert level == pytest.approx(float(GDP(1.0).needed(p, q)), rel=0.1)
    at_the_end = GDP(1.0).needed(np.mean(scores[left] >= 1.999), np.mean(scores[~left] >= 1.999))
    assert GDP(1.0).needed(p, q) > 1.05 * at_the_end


def test_a_world_that_shows_nothing_gets_runs_that_say_so():
    """It got the least that it can, since none of its runs in the pilot varied; so few may hide one of .6 %."""
    measure = ApproxDP(0.0, 0.001)

    def certified(share):
        of_left = round(share * 7000)
        counts = Counts(runs=7000, runs_left=of_left, left_upper=round(0.01 * of_left))
        return certify_claim(measure, Event(UNUSED, 0.5, "joint"), counts, alpha=0.01).lower

    cells = Cells(np.array([0.5]), np.array([0.99, 0.01]), np.array([1.0, 0.0]), (1000, 1000))
    event, _ = choose(cells, measure, alpha=0.01, runs=7000)
    assert certified(event.share) >= 0.6 * max(certified(share / 10) for share in range(1, 10)) > 0


def test_laws_are_a_pilot_without_doubt():
    p = math.e / (1 + math.e)
    cells = Cells.of_laws([-1.0, 1.0], [1 - p, p], [p, 1 - p])
    event, level = choose(cells, GDP(1.0), alpha=0.01, runs=100_000)
    assert event.upper == 1.0
    assert 0.97 < level / float(GDP(1.0).needed(p, 1 - p)) < 1
    nothing = choose(Cells.of_laws([0.0], [1.0], [1.0]), GDP(1.0), alpha=0.01, runs=100)
    assert nothing[1] < 0


def test_shares_that_sum_to_a_little_more_than_1_warn_of_nothing():
    right = np.array([11, 12, 7, 7, 0]) / 37  # every run of it is in steps where the other world never is
    assert right @ np.ones(5) > 1
    event, promise = choose(
        Cells(np.arange(4.0), np.array([0.0, 0, 0, 0, 1]), right, (500, 500)), ZCDP(0.5), alpha=0.01, runs=1000
    )
    assert (event.upper, promise > 1) == (3.0, True)


def test_counts_of_a_function_sum_and_read_back():
    function = StepFunction((-1.0, 1.0), (-0.5, 0.0, 0.5))
    event = Event(UNUSED, 0.0, "variational", function=function)
    scores, left = gaussian(1.0, 1000, 0)
    scores[:3] = math.nan, math.inf, -math.inf
    whole = count(event, scores, left)
    assert sum(whole.tally) == 1000
    halves = count(event, scores[:500], left[:500]) + count(event, scores[500:], left[500:])
    assert halves == whole == Counts.of_numbers(whole.numbers) == Counts.of_json(whole.to_json())
    assert Event.of_json(event.to_json()) == event
    with pytest.raises(ValueError, match="a variational event, and no other, has a function"):
        Event(UNUSED, 0.0, "variational")


def test_one_region_in_all_measures_is_below_the_truth_and_below_the_certificate():
    event = Event(UNUSED, 0.5, "joint")
    scores, left = gaussian(1.0, 100_000, 2)
    counts = count(event, scores, left)
    levels = translation(event, counts, alpha=0.01)
    assert 0.9 < levels["mu"] < certify_claim(GDP(1.0), event, counts, alpha=0.01).lower < 1.0
    assert levels["rho"] < 0.5
    assert levels["delta"] < 2 * stats.norm.cdf(0.5) - 1
    assert [delta for delta, _ in levels["epsilon"]] == [0.0, 1e-5, 1e-2]


def test_refutations_agree_with_certificates_and_nothing_is_certified_of_one_world():
    event = Event(UNUSED, 0.5, "joint")
    counts = count(event, *gaussian(1.0, 4000, 3))
    for measure in (GDP(0.5), GDP(1.2), ZCDP(0.1), ApproxDP(0.0, 0.2), ApproxDP(0.5), Profile(((0.0, 0.2),))):
        above = certify_claim(measure, event, counts, alpha=0.01).lower > measure.level
        assert refutes(measure, event, counts, alpha=0.01) == above
    alone = Counts(runs=10, runs_left=10, left_upper=10)
    assert certify_claim(GDP(1.0), event, alone, alpha=0.01).lower == 0
    assert certify_claim(GDP(1.0), Event(UNUSED, UNUSED, "guess"), counts, alpha=0.01).lower == 0
    assert ceiling(GDP(3.0), 20, alpha=0.01) == 3 < ceiling(GDP(3.0), 2000, alpha=0.01)


def test_a_perfect_attack_may_share_the_runs_as_an_audit_does():
    """Of 3,200 runs, 400 in the world of the event refute a rho that 1,600 in each do not."""
    assert not refuted(ZCDP(6.0), 1600, 1600, 0, 1600, alpha=0.01)
    assert refuted(ZCDP(6.0), 400, 400, 0, 2800, alpha=0.01)
    assert ceiling(ZCDP(6.0), 3200, alpha=0.01) > 6
    assert ceiling(ZCDP(6.2), 3200, alpha=0.01) == 6.2


def test_of_a_large_order_counts_that_show_nothing_bound_nothing():
    """The least value e^(-16 * 99) is 0 in floating point: the limit of the mean may be that."""
    function = StepFunction(edges=(0.0,), values=(-8.0, 8.0), order=100.0)
    assert divergence_lower(function, [1000, 0], [1000, 0], alpha=0.01) == 0.0


@pytest.mark.parametrize("level", [1e13, 1e20, 1e100])
def test_a_claim_beside_which_a_step_would_not_be_seen_is_tested_all_the_same(level):
    assert 0.8 < level_lower(GDP(level), 5_000, 10_000, 1_587, 10_000, alpha=0.01) < 1
