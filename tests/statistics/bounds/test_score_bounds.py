"""Bounds from scores of canaries: exact on small cases, valid at tight nulls, and they see what is there."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from overclaim import bounds
from overclaim.audit.statistics.bounds import score_bounds
from overclaim.audit.statistics.bounds.score_bounds import epsilon_from_coins, fair_coins, log_money


def bound_of_guesses(right, alpha):
    """The bound that these guesses give, in the order in which they are made."""
    right = np.array(right)
    return max(score_bounds._by_shares(right, alpha / 2), score_bounds._by_bets(right, alpha / 2))


@pytest.mark.parametrize(("epsilon", "alpha"), [(0.0, 0.2), (0.5, 0.1), (1.0, 0.3), (2.0, 0.5)])
def test_all_outcomes_of_a_few_coins_at_the_worst_odds(epsilon, alpha):
    """Every guess is right with the largest chance that epsilon allows: the exact chance of a false alarm."""
    chance, wrong = float(special.expit(epsilon)), 0.0
    for right in itertools.product((False, True), repeat=8):
        if bound_of_guesses(right, alpha) > epsilon:
            wrong += math.prod(chance if one else 1 - chance for one in right)
    assert wrong <= alpha


def test_money_is_a_fair_game_at_its_epsilon_and_a_losing_one_below():
    """The mean over all outcomes of the money at the end, at the largest odds and at smaller ones."""
    outcomes = np.array(list(itertools.product((0, 1), repeat=6)))
    for epsilon, true in ((1.0, 1.0), (1.0, 0.3), (0.2, 0.2)):
        chance = special.expit(true)
        mean = 0.0
        for right in outcomes:
            money = log_money(
                np.array([right[0::2].sum()]), np.array([right[1::2].sum()]), np.array([3]), np.array([epsilon])
            )
            mean += math.exp(money[0, 0]) * chance ** right.sum() * (1 - chance) ** (6 - right.sum())
        assert mean <= 1 + 1e-12
        assert (mean == pytest.approx(1.0)) == (epsilon == true)


def randomised_response(rng, n):
    """Tight at epsilon 1: the score is the coin, flipped with probability 1 / (1 + e)."""
    coins = rng.random(n) < 0.5
    return coins ^ (rng.random(n) < special.expit(-1.0)), coins


def laplace(rng, n):
    coins = rng.random(n) < 0.5
    return coins + rng.laplace(size=n), coins


def tied(rng, n):
    scores, coins = laplace(rng, n)
    return np.where(np.abs(scores) > 2, np.copysign(np.inf, scores), np.round(scores)), coins


@pytest.mark.few(3)
@pytest.mark.parametrize("law", [randomised_response, laplace, tied])
@pytest.mark.parametrize("n", [20, 300])
def test_no_more_false_alarms_than_alpha_at_tight_nulls(law, n):
    """100 replicates at alpha .2: more than 47 false alarms have probability below 1e-6."""
    rng = np.random.default_rng(n)
    above = sum(epsilon_from_coins(*law(rng, n), alpha=0.2) > 1.0 for _ in range(100))
    assert stats.binom.sf(47, 100, 0.2) < 1e-6
    assert above <= 47


def test_independent_scores_of_tight_laplace_noise_are_not_above():
    rng, above = np.random.default_rng(5), 0
    for seed in range(60):
        drawn = fair_coins(rng.laplace(1, 1, 100), rng.laplace(0, 1, 120), seed=seed)
        above += drawn is not None and epsilon_from_coins(*drawn, alpha=0.1) > 1.0
    assert stats.binom.sf(22, 60, 0.1) < 1e-6
    assert above <= 22


def test_coins_of_two_samples_say_nothing_of_the_order_within_them():
    """All scores equal: coins that were written down first would be guessed right."""
    seen = [epsilon_from_coins(*fair_coins(np.zeros(500), np.zeros(500), seed=s), alpha=1e-6) for s in range(10)]
    assert seen == [0.0] * 10


def test_planted_leaks_are_seen_from_both_ends_or_one():
    rng = np.random.default_rng(0)
    coins = rng.random(2000) < 0.5
    assert epsilon_from_coins(coins + 0.0, coins) > 5.5  # all guesses are right
    upper = np.where(coins & (rng.random(2000) < 0.2), 9.0, rng.normal(size=2000))
    assert epsilon_from_coins(upper, coins) > 2.5
    assert epsilon_from_coins(-upper, ~coins) > 2.5
    assert epsilon_from_coins(-upper, coins) == 0.0  # a higher score must mean included
    noise = rng.normal(size=2000)
    assert epsilon_from_coins(noise, coins) < 0.3


def test_with_delta_the_bound_is_smaller():
    rng = np.random.default_rng(1)
    coins = rng.random(1000) < 0.5
    scores = 2 * coins + rng.normal(size=1000)
    without, small, large = (epsilon_from_coins(scores, coins, delta=delta) for delta in (0.0, 1e-5, 1e-2))
    assert without > 1.5
    assert small > large


def test_the_grid_is_dense_and_goes_up():
    grid = score_bounds.tested()
    assert grid[0] < 0.005
    assert (np.diff(grid) > 0).all()
    assert (np.diff(grid) <= 0.0041 * (1 + grid[1:])).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.epsilon_from_scores([1.0, np.nan], [0, 1], design="one-run"), "scores.*number 2 is nan"),
        (lambda: bounds.epsilon_from_scores([1.0], [0, 1], design="one-run"), "one value for each of 1 scores"),
        (lambda: bounds.epsilon_from_scores([1.0, 2.0], [0, 2], design="one-run"), "included must be 0 or 1, got.*2"),
        (lambda: bounds.epsilon_from_scores([], [], design="one-run"), "at least one number"),
        (lambda: bounds.epsilon_from_scores([1.0], [1], design="both"), "design must be.*got 'both'"),
        (lambda: bounds.epsilon_from_scores([1.0], [1], design=None), "design must be.*depend on each other"),
        (
            lambda: bounds.epsilon_from_scores([1.0], [1], design="one-run", delta=1.0),
            "delta must be in .0, 1., got 1",
        ),
        (lambda: bounds.gdp_from_scores([1.0, 2.0], [0, 1], design="one-run", alpha=2.0), "alpha must be"),
        (lambda: bounds.epsilon_from_scores(design="independent", inserted=[1.0]), "needs inserted and held_out"),
        (lambda: bounds.epsilon_from_scores("ab", [1], design="one-run"), "scores must be numbers"),
        (lambda: bounds.epsilon_from_guesses(3, 2), "guesses"),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_public_bounds_are_those_that_verdicts_rest_on():
    assert bounds.epsilon_from_counts(50, 100, 5, 100, delta=0.01) > 1.0
    assert bounds.epsilon_from_guesses(90, 100, delta=1e-4) == pytest.approx(1.626, abs=2e-3)
    rng = np.random.default_rng(2)
    ins, outs = rng.laplace(4, 1, 400), rng.laplace(0, 1, 400)
    independent = bounds.epsilon_from_scores(design="independent", inserted=ins, held_out=outs)
    assert 2.0 < independent < 4.0
    scores, included = np.concatenate([ins, outs]), np.repeat([1, 0], 400)
    assert bounds.epsilon_from_scores(scores, included, design="independent") == independent
