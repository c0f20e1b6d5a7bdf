"""Measures against their definitions: both directions, monotone corners, and what they translate to."""

import json
import math
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from overclaim import Claim
from overclaim.audit.statistics.measure_words import claimed_words
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.divergences import bernoulli_divergence
from overclaim.mechanisms.measures.gaussian_dp import GDP, gaussian_delta
from overclaim.mechanisms.measures.measure import DELTA
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.mechanisms.measures.stated import measure_from_json
from overclaim.tests.support.refusals import refusals

MEASURES = [
    ApproxDP(1.0),
    ApproxDP(0.5, 0.1),
    ApproxDP(0.0, 0.2),
    GDP(0.7),
    ZCDP(0.3),
    RDP(1.5, 0.4),
    RDP(20.0, 1.0),
    Profile(((0.0, 0.3), (0.5, 0.1), (2.0, 1e-3))),
]
INNER = np.linspace(0.02, 0.98, 25)


def divergence(order, p, q):
    """From the definition, in plain Python."""
    if order == 1:
        return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    return math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)


@pytest.mark.parametrize("order", [1.0, 1.1, 2.0, 7.0])
def test_the_divergence_of_two_coins_is_its_definition(order):
    for p in (0.1, 0.5, 0.8):
        for q in (0.2, 0.5, 0.9):
            assert bernoulli_divergence(order, p, q) == pytest.approx(divergence(order, p, q), abs=1e-12)


def test_what_one_world_excludes_is_infinitely_far():
    assert bernoulli_divergence(2.0, 0.5, 0.0) == math.inf
    assert bernoulli_divergence(2.0, 0.0, 0.5) == pytest.approx(math.log(2))
    assert [float(m.needed(0.5, 0.0)) for m in (GDP(1.0), ZCDP(1.0), RDP(2.0, 1.0))] == [math.inf] * 3


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_needed_grows_with_p_and_falls_with_q(measure):
    p, q = np.meshgrid(INNER, INNER, indexing="ij")
    needed = measure.needed(p, q)
    assert np.all(np.diff(needed, axis=0) >= -1e-9)
    assert np.all(np.diff(needed, axis=1) <= 1e-9)
    assert np.all(needed[p <= q] == 0)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_an_event_and_its_complement_need_the_same(measure):
    p, q = np.meshgrid(INNER, INNER, indexing="ij")
    np.testing.assert_allclose(measure.needed(p, q), measure.needed(1 - q, 1 - p), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_allowed_is_the_inverse_of_needed(measure):
    q = np.linspace(0.01, 0.9, 15)
    most = measure.allowed(q)
    assert np.all(measure.needed(most - 1e-9, q) <= measure.level * (1 + 1e-9))
    inside = most < 1 - 1e-6
    assert inside.any()
    assert np.all(measure.needed(most + 1e-6, q)[inside] > measure.level)
    assert np.all(np.diff(np.diff(most)) <= 1e-9)  # what is allowed is a convex region


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_levels_scale_and_records_read_back(measure):
    assert measure.at(measure.level) == measure
    assert measure_from_json(measure.to_json()) == measure
    assert hash(measure) == hash(measure_from_json(measure.to_json()))
    doubled, q = measure.at(2 * measure.level), 0.1
    assert doubled.allowed(q) > measure.allowed(q)


def test_the_gaussian_needs_exactly_its_own_mu_at_every_threshold():
    t = np.linspace(-3, 4, 50)
    np.testing.assert_allclose(GDP(1.3).needed(stats.norm.sf(t - 1.3), stats.norm.sf(t)), 1.3, rtol=1e-9)


def test_randomised_response_needs_exactly_its_epsilon_and_its_divergence():
    p = math.e / (1 + math.e)
    assert ApproxDP(9.0).needed(p, 1 - p) == pytest.approx(1.0)
    assert RDP(3.0, 9.0).needed(p, 1 - p) == pytest.approx(divergence(3.0, p, 1 - p))
    fine = max(divergence(1 + a, p, 1 - p) / (1 + a) for a in np.geomspace(1e-4, 100, 20_000))
    assert ZCDP(9.0).needed(p, 1 - p) == pytest.approx(max(fine, divergence(1, p, 1 - p)), rel=2e-4)


def test_rho_is_the_largest_share_of_an_order_not_only_its_limit():
    """A rare event weighs at large orders: its divergence over the order is largest far from 1."""
    p, q = 1e-2, 1e-9
    fine = max(max(divergence(a, p, q), divergence(a, q, p)) / a for a in 1 + np.geomspace(1e-3, 9, 5_000))
    needed = float(ZCDP(1.0).needed(p, q))
    assert needed == pytest.approx(fine, rel=1e-4)
    assert needed > 1.5 * divergence(1, p, q)


@pytest.mark.parametrize(("p", "q"), [(0.9946, 0.97787), (7.4e-6, 3.5e-6), (8.8e-4, 3.2e-6), (0.9955, 0.8953)])
def test_rho_is_within_1e_4_of_itself_also_near_order_1_and_between_orders(p, q):
    orders = 1 + np.geomspace(1e-5, 300, 20_000)
    with np.errstate(invalid="ignore"):
        both = np.maximum(bernoulli_divergence(orders, p, q), bernoulli_divergence(orders, q, p))
    fine = np.max(both / orders)
    assert fine * (1 - 1e-4) < float(ZCDP(1.0).needed(p, q)) < fine * (1 + 1e-6)


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 5.0, 1e3, 1e6])
def test_the_epsilon_that_rho_implies_is_that_of_the_best_order(rho):
    a = 1 + np.geomspace(1e-5, 1e5, 400_000)
    least = np.min(rho * a + np.log1p(-1 / a) - (math.log(DELTA) + np.log(a)) / (a - 1))
    assert least <= ZCDP(rho).approximate(DELTA) < 1.001 * least
    assert ZCDP(1e100).approximate(DELTA) < 1.001e100


def test_the_least_epsilon_of_a_small_rho_lies_at_a_large_order():
    """Beyond the orders that were looked at: rho = 1e-9 was said to imply an epsilon 2.5 times too large."""
    with np.errstate(all="ignore"):
        for rho, delta in ((1e-9, 1e-5), (1e-12, 1e-300), (1e-30, 1e-300)):
            a = 1 + np.geomspace(1e-3, 1e20, 400_000)
            least = np.min(rho * a + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1))
            assert least * 0.9999 <= ZCDP(rho).approximate(delta) < 1.001 * least


def test_translations_are_implied_by_the_claim():
    """The Gaussian mechanism of mu is mu^2/2-zCDP, and every translation of that must allow it."""
    mu = 0.8
    rho = mu**2 / 2
    for delta in (1e-3, DELTA):
        exact = GDP(mu).approximate(delta)
        assert gaussian_delta(mu, exact) == pytest.approx(delta, rel=1e-6)
        assert exact < ZCDP(rho).approximate(delta) < 1.5 * exact
        assert ZCDP(rho).approximate(delta) <= RDP(8.0, 8 * rho).approximate(delta)
    assert Profile(((1.0, 1e-3), (2.0, 1e-6))).approximate(1e-4) == 2.0
    assert ApproxDP(1.0, 0.1).approximate(0.01) == math.inf


def test_a_profile_is_refuted_where_one_of_its_points_is():
    profile = Profile(((0.0, 0.3), (1.0, 0.05)))
    assert profile.needed(0.65, 0.31) > 1 > ApproxDP(1.0, 0.05).needed(0.65, 0.31)  # the first point alone
    assert profile.needed(0.3, 0.08) > 1 > ApproxDP(0.0, 0.3).needed(0.3, 0.08)  # the second
    assert profile.needed(0.5, 0.25) < 1


@pytest.mark.filterwarnings("error")
def test_an_epsilon_whose_exponential_is_infinite_allows_nothing_of_what_cannot_be_but_for_delta():
    for delta in (0.0, 0.1):
        measure = ApproxDP(800.0, delta)
        assert measure.allowed([0.0, 1e-300, 0.5]).tolist() == [delta, 1.0, 1.0]
        assert measure.slope([0.0, 0.5])[0] == math.inf
    assert Profile(((1e-300, 0.0), (1e10, 0.1))).at(1e300).points == ((1.0, 0.0), (sys.float_info.max, 0.1))


@pytest.mark.parametrize("half", [np.float32(0.5), np.float64(0.5), Fraction(1, 2)], ids=repr)
@pytest.mark.filterwarnings("error")
def test_numbers_of_every_type_are_claimed_as_what_they_are(half):
    for measure in (ApproxDP(half, half), GDP(half), ZCDP(half), RDP(1 + half, half), Profile(((half, half),))):
        data = measure.to_json()
        assert json.loads(json.dumps(data)) == data
        assert measure_from_json(data) == measure
        assert measure.kind == "profile" or claimed_words(data).split()[1] == "0.5"
    assert claimed_words(ApproxDP(0, half).to_json()) == "delta 0.5 at epsilon 0"
    assert RDP(np.int64(8), half).to_json() == {"kind": "rdp", "order": 8.0, "epsilon": 0.5}


def test_the_short_form_and_replacements_of_a_claim():
    assert Claim(epsilon=1.0, delta=0.1) == Claim(measure=ApproxDP(1.0, 0.1))
    assert replace(Claim(epsilon=1.0, delta=0.1), epsilon=2.0).measure == ApproxDP(2.0, 0.1)
    assert replace(Claim(epsilon=1.0), measure=GDP(2.0)).measure == GDP(2.0)
    assert replace(Claim(measure=GDP(2.0)), source="x").measure == GDP(2.0)
    assert Claim(measure=GDP(1.0)).epsilon == pytest.approx(GDP(1.0).approximate(DELTA))


test_what_is_no_claim_is_refused_by_name = refusals(
    (lambda: Profile((("1", 0.1),)), "epsilon must be at least 0 and finite, got '1'"),
    (lambda: Profile(((True, 0.1),)), "epsilon must be at least 0 and finite, got True"),
    (lambda: GDP(1e308), "mu must be at most 1e.100, got 1e.308"),
    (lambda: ZCDP(1e308), "rho must be at most 1e.100, got 1e.308"),
    (lambda: GDP(0.0), "mu must be positive and finite, got 0.0"),
    (lambda: ZCDP(math.nan), "rho must be positive and finite, got nan"),
    (lambda: RDP(1.0, 1.0), "order must be above 1 and finite, got 1.0"),
    (lambda: RDP(1e308, 1.0), "order must be at most 1e.100, got 1e.308"),
    (lambda: RDP(2.0, 1e308), "epsilon must be at most 1e.100, got 1e.308"),
    (lambda: RDP(2.0, -1.0), "epsilon must be positive and finite, got -1.0"),
    (lambda: ApproxDP(0.0), "epsilon must be positive and finite, got 0.0"),
    (lambda: Claim(epsilon=10**400), "epsilon must be positive and finite, got 1000"),
    (lambda: GDP(10**400), "mu must be positive and finite, got 1000"),
    (lambda: ApproxDP(-1.0, 0.1), "epsilon must be at least 0 and finite, got -1.0"),
    (lambda: ApproxDP(1.0, 1.0), r"delta must be in \[0, 1\), got 1.0"),
    (lambda: Profile(()), "at least one point"),
    (lambda: Profile((1.0, 2.0)), "list of pairs"),
    (lambda: Claim(), "a claim needs an epsilon or a measure"),
    (lambda: Claim(epsilon=1.0, measure=GDP(1.0)), "got both"),
    (lambda: Claim(measure=1.0), r"measure must be a Measure, such as GDP\(1.0\), got 1.0"),
    (lambda: measure_from_json({"kind": "x"}), "one of approximate, gdp"),
    (lambda: measure_from_json({"kind": "gdp", "rho": 1}), "no measure of kind 'gdp'"),
)
