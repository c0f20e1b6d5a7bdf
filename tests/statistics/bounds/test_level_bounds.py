"""Bounds in any measure from the scores of canaries: the worst mechanism by linear programming, exact laws, draws."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from overclaim import bounds
from overclaim.audit.statistics.bounds.one_run import (
    epsilon_one_run,
    least_allowed,
    level_one_run,
    one_run_p_value,
    refuted_in_one_run,
)
from overclaim.audit.statistics.bounds.rank_bounds import level_from_samples, refuted_by_ranks
from overclaim.audit.statistics.bounds.score_bounds import epsilon_from_coins, level_from_coins
from overclaim.audit.statistics.score_certificates import score_certificate
from overclaim.benchmarks.scores import alarms
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP, gaussian_delta
from overclaim.mechanisms.measures.renyi import RDP, ZCDP

#: A profile that nearly is GDP of level 1: every mechanism that has it has nearly that.
NEARLY_GAUSSIAN = Profile(tuple((epsilon, gaussian_delta(1.0, epsilon)) for epsilon in np.arange(0.0, 4.1, 0.5)))
MEASURES = [
    GDP(1.0),
    ApproxDP(1.0),
    ApproxDP(0.5, 0.001),
    ApproxDP(0.0, 0.2),
    NEARLY_GAUSSIAN,
    ZCDP(0.5),
    RDP(2.0, 0.5),
]


def most_likely(points, guesses, canaries, right):
    """The largest chance of so many right guesses under claims of (epsilon, delta), over all mechanisms.

    Averaged over all orders and flips of the coins a mechanism is the law of its number of right guesses: a guess of
    one canary is right, beside v - 1 others, with v P(V = v) / m, and once its coin is turned with the chance that it
    is wrong beside v - 1 right ones. A claim bounds the sum of what the first exceed e^epsilon times the second by.
    """
    v = np.arange(guesses + 1)
    size, claims = guesses + 1, len(points)
    right_is, wrong_is = v / canaries, (guesses - v) / canaries
    rows, limits = [], []
    for i, (epsilon, delta) in enumerate(points):
        excess = size * (1 + 2 * i)  # variables: the law, and for each claim what each outcome exceeds
        total = np.zeros(size * (1 + 2 * claims))
        for k in range(guesses + 1):
            first, second = np.zeros_like(total), np.zeros_like(total)
            first[k], first[excess + k] = right_is[k], -1
            if k:
                first[k - 1] = -math.exp(epsilon) * wrong_is[k - 1]
            second[k], second[excess + size + k] = wrong_is[k], -1
            if k < guesses:
                second[k + 1] = -math.exp(epsilon) * right_is[k + 1]
            rows += [first, second]
            limits += [0.0, 0.0]
        total[excess : excess + 2 * size] = 1
        rows.append(total)
        limits.append(delta)
    law = np.zeros(size * (1 + 2 * claims))
    law[:size] = 1
    aim = np.zeros_like(law)
    aim[right:size] = -1
    found = optimize.linprog(aim, np.array(rows), limits, law[None], [1.0], method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.few(3)
@pytest.mark.parametrize("guesses", [4, 9])
@pytest.mark.parametrize("canaries", [9, 20])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize("measure", [ApproxDP(0.5, 0.1), NEARLY_GAUSSIAN, ApproxDP(1.0), ApproxDP(0.0, 0.2)])
def test_no_mechanism_at_all_is_refuted_more_often_than_alpha(measure, alpha, canaries, guesses):
    points = measure.points if isinstance(measure, Profile) else [measure.stated]
    few = [k for k in range(guesses + 1) if refuted_in_one_run(measure, k, guesses, canaries, alpha=alpha)]
    assert few == list(range(guesses + 1 - len(few), guesses + 1))  # a tail
    if few:
        assert most_likely(points, guesses, canaries, few[0]) <= alpha + 1e-9


def test_the_worst_mechanism_of_a_few_coins_is_nearly_refuted():
    """The recursion may not be so wide that it never refutes: at twice alpha the worst mechanism would be."""
    worst = most_likely(NEARLY_GAUSSIAN.points, 9, 9, 9)
    assert not refuted_in_one_run(NEARLY_GAUSSIAN, 9, 9, 9, alpha=0.99 * worst)
    assert refuted_in_one_run(NEARLY_GAUSSIAN, 9, 9, 9, alpha=1.3 * worst)


@pytest.mark.parametrize("measure", [*MEASURES, GDP(3.0), RDP(30.0, 2.0), ZCDP(4.0)], ids=str)
def test_what_a_claim_allows_is_concave_as_the_proof_for_one_run_asks(measure):
    q = np.linspace(0.0, 1.0, 101)
    allowed = measure.allowed(q)
    assert (np.diff(allowed) >= 0).all()
    assert (np.diff(allowed, 2) <= 1e-6).all()
    least = 1 - least_allowed(measure, 1 - q)
    assert (least >= allowed - 1e-12).all()  # it errs towards what is allowed
    np.testing.assert_allclose(least, allowed, atol=1e-5)


@pytest.mark.few(5)
@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.kind)
def test_levels_are_refuted_up_to_the_bound_and_not_above(measure):
    game = (80, 100, 150)
    lower = level_one_run(measure, *game, alpha=0.05)
    assert lower > 0
    assert refuted_in_one_run(measure.at(0.5 * lower), *game, alpha=0.05)
    assert not refuted_in_one_run(measure.at(1.001 * lower), *game, alpha=0.05)


def test_a_leak_of_all_coins_with_probability_alpha_is_allowed_by_the_mu_that_is_certified():
    """Why one run certifies a part of mu: this mechanism has that mu, and shows as much with probability alpha."""
    alpha, share = 0.05, 0.85
    p, q = alpha * share, alpha * (1 - share)
    mu = float(GDP(1.0).needed(p, q))
    lowers = [level_one_run(GDP(1.0), round(share * n), n, n, alpha=alpha) for n in (200, 2000, 20_000)]
    assert lowers == sorted(lowers)
    assert 0.99 * mu < lowers[-1] < mu


def test_lags_that_are_not_looked_at_do_not_change_the_p_value():
    """The slow twin looks at every lag: 10^7 guesses took it a minute."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        guesses = int(10 ** rng.uniform(0, 3.5))
        right, canaries = int(rng.integers(1, guesses + 1)), guesses * int(rng.integers(1, 20))
        epsilon, delta = rng.uniform(0, 5), 10 ** rng.uniform(-9, -1)
        law, lags = stats.binom(guesses, special.expit(epsilon)), np.arange(1, right + 1)
        worst = np.max(np.cumsum(law.pmf(right - lags)) / lags)
        slow = min(1.0, law.sf(right - 1) + 2 * canaries * delta * worst)
        assert one_run_p_value(right, guesses, canaries, epsilon, delta) == pytest.approx(slow, rel=1e-12)


def test_a_large_delta_loses_less_than_by_the_other_theorem():
    by_theorem = epsilon_one_run(950, 1000, 10**6, delta=1e-5)
    assert level_one_run(ApproxDP(1.0, 1e-5), 950, 1000, 10**6) > by_theorem + 2
    assert bounds.epsilon_from_guesses(950, 1000, canaries=10**6, delta=1e-5) > by_theorem + 2
    # And pure claims lose little beside the exact binomial tail.
    assert level_one_run(ApproxDP(1.0), 850, 1000, 1000) > 0.99 * bounds.epsilon_from_guesses(850, 1000)


@pytest.mark.few(6)
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.kind)
def test_exact_false_alarms_of_ranks_at_the_tight_law(measure, rank):
    """Inserted scores have just what the claim allows at every threshold: all counts by quadrature."""
    inserted, held_out, alpha = 12, 8, 0.1
    few = [k for k in range(inserted + 1) if refuted_by_ranks(measure, k, inserted, rank, held_out, alpha=alpha)]
    assert few == list(range(inserted + 1 - len(few), inserted + 1))
    # The law of the rank by its quantiles, many more than the bound uses.
    q = special.betaincinv(rank, held_out + 1 - rank, (np.arange(4000) + 0.5) / 4000)
    allowed = measure.allowed(q)
    chances = [float(stats.binom.sf(k - 1, inserted, allowed).mean()) for k in range(inserted + 1)]
    assert not few or chances[few[0]] <= alpha + 1e-4
    least = next((k for k, chance in enumerate(chances) if chance <= alpha), inserted + 1)
    assert (few[0] if few else inserted + 1) - least in (0, 1)  # and hardly less is refuted than may be


def test_ranks_of_ties_constants_and_infinities():
    ties = np.zeros(200)
    assert [level_from_samples(GDP(1.0), ties, ties, alpha=1e-6, seed=seed) for seed in range(5)] == [0.0] * 5
    apart = level_from_samples(GDP(1.0), np.full(200, np.inf), np.full(200, -np.inf))
    assert apart > 3
    assert level_from_samples(GDP(1.0), np.full(200, -np.inf), np.full(200, np.inf)) == 0.0
    assert level_from_samples(GDP(1.0), np.ones(1), np.zeros(1), alpha=0.05) == 0.0


def test_independent_trainings_certify_mu_and_one_run_a_part_of_it():
    rng = np.random.default_rng(0)
    coins = rng.random(2000) < 0.5
    scores = 2 * coins + rng.normal(size=2000)
    independent, one_run = (
        bounds.gdp_from_scores(scores, coins, design=design) for design in ("independent", "one-run")
    )
    assert 1.7 < independent < 2.0
    assert 1.0 < one_run < 1.4
    samples = {"inserted": scores[coins], "held_out": scores[~coins]}
    assert bounds.gdp_from_scores(**samples, design="independent") == pytest.approx(independent, abs=1e-6)


@pytest.mark.few(4)
@pytest.mark.parametrize("design", ["independent", "one-run"])
@pytest.mark.parametrize("measure", [*MEASURES, ApproxDP(1.0, 1e-5)], ids=lambda m: m.kind)
def test_every_measure_has_a_certificate_in_both_designs(measure, design):
    rng = np.random.default_rng(1)
    coins = rng.random(600) < 0.5
    certificate = score_certificate(design, measure)
    assert certificate.method
    assert certificate.source
    assert bool(certificate.limit) == (design == "one-run" and measure != ApproxDP(1.0))
    lower = certificate.lower(6 * coins + rng.normal(size=600), coins)
    assert lower > 0
    assert lower > certificate.lower(rng.normal(size=600), coins)
    assert lower > 0.4 * measure.level or (certificate.limit and not measure.is_epsilon)


def test_the_certificate_of_pure_claims_is_that_of_coins():
    rng = np.random.default_rng(2)
    coins = rng.random(500) < 0.5
    scores = coins + rng.laplace(size=500)
    assert score_certificate("one-run", ApproxDP(3.0)).lower(scores, coins) == epsilon_from_coins(scores, coins)
    with_delta = score_certificate("one-run", ApproxDP(3.0, 1e-4)).lower(scores, coins)
    assert with_delta == pytest.approx(epsilon_from_coins(scores, coins, delta=1e-4), abs=1e-4)
    assert with_delta == level_from_coins(ApproxDP(3.0, 1e-4), scores, coins)


def test_one_run_certifies_nothing_where_delta_is_a_leak_of_everything_with_probability_alpha():
    coins = np.random.default_rng(3).random(1000) < 0.5
    claims = [ApproxDP(1.0, delta) for delta in (0.05, 1e-3)]
    assert [score_certificate("one-run", claim).lower(coins, coins, alpha=0.05) > 4 for claim in claims] == [
        False,
        True,
    ]
    assert score_certificate("one-run", claims[0]).lower(coins, coins, alpha=0.05) == 0.0
    assert score_certificate("independent", claims[0]).lower(coins, coins, alpha=0.05) > 2


def assert_few(rows, replications):
    """More alarms have a probability of at most 1e-8, of each claim that is exactly true."""
    most = stats.binom.isf(1e-8, replications, alarms.ALPHA)
    assert rows
    assert [row for row in rows if round(float(row["false alarms"]) * replications) > most] == []


@pytest.mark.slow(reason="two hundred replications, and the certificates themselves")
@pytest.mark.parametrize("name", alarms.LAWS)
def test_false_alarms_at_true_claims_are_rare_and_certificates_are_as_they_are_counted(name):
    for design in ("independent", "one-run") if alarms.LAWS[name].independent else ("one-run",):
        assert_few(alarms.alarms(name, design, 60, 200), 200)


@pytest.mark.nightly(reason="20,000 replications of each law")
@pytest.mark.parametrize("n", alarms.SIZES)
@pytest.mark.parametrize("design", ["independent", "one-run"])
@pytest.mark.parametrize("name", alarms.LAWS)
def test_no_more_false_alarms_than_alpha_at_claims_that_are_exactly_true(name, design, n):
    if alarms.LAWS[name].independent or design == "one-run":
        assert_few(alarms.alarms(name, design, n, 20_000), 20_000)
