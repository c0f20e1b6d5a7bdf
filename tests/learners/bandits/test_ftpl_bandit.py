"""FTPL with geometric resampling against its definition and a slow twin."""

import math

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners.bandits.ftpl_bandit import FtplBandit
from overclaim.learners.conversions.batched import BatchedLaplace
from overclaim.mechanisms.draws import Draws

#: Every statistical test here accuses a right implementation with at most this probability.
FALSE_ALARM = 1e-6


def naive_run(rng, losses, eta, cap, scale):
    """Algorithm 4 of Asi, Raman & Talwar with Exp(1) perturbations, one run, fed Laplace-noisy losses."""
    arms = len(losses[0])
    estimates, played = [0.0] * arms, []

    def leader():
        perturbed = [eta * value - rng.exponential() for value in estimates]
        return perturbed.index(min(perturbed))

    for loss in losses:
        arm = leader()
        played.append(arm)
        y = loss[arm] + rng.laplace(scale=scale)
        count = 1
        while count < cap and leader() != arm:
            count += 1
        estimates[arm] += count * y
    return played


def test_sequences_have_the_twins_law():
    """Chi-square over all 81 sequences: seed 0, 100,000 runs against 20,000 of the twin; cells of at least 20."""
    arms, rounds, eta, cap, epsilon = 3, 4, 0.7, 5, 2.0
    losses = np.array([[1.0, 0.2, 0.5], [0.0, 1.0, 0.3], [0.9, 0.9, 0.0], [0.5, 0.5, 0.5]])
    learner = BatchedLaplace(inner=FtplBandit(arms=arms, eta=eta, cap=cap), epsilon=epsilon, batch=1)
    pair = Pair(losses, np.concatenate([losses[:-1], [[0.0, 0.0, 0.0]]]))
    weights = arms ** np.arange(rounds)
    ours = np.bincount(weights @ play(learner, pair, Draws(0), 100_000).actions, minlength=arms**rounds)
    rng = np.random.default_rng(0)
    twin = np.bincount(
        [int(weights @ naive_run(rng, losses.tolist(), eta, cap, 1 / epsilon)) for _ in range(20_000)],
        minlength=arms**rounds,
    )
    full = (ours + twin) >= 120  # at least 20 expected of the twin
    table = np.array([[*ours[full], ours[~full].sum()], [*twin[full], twin[~full].sum()]])
    table = table[:, table.sum(axis=0) > 0]
    assert full.sum() > 40
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_leader_of_two_arms_has_the_laplace_law():
    """Exp(1) minus Exp(1) is Laplace(1). Seed 1, 200,000 runs, exact binomial test."""
    learner, draws, runs = FtplBandit(arms=2, eta=0.5, cap=10), Draws(1), 200_000
    state = learner.start(runs, draws)
    state.shift_at(state.places(np.zeros(runs, dtype=np.intp)), np.full(runs, -0.5 * 3.0))
    played = int((learner.act(state, draws) == 0).sum())
    assert stats.binomtest(played, runs, 0.5 * math.exp(-1.5)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("cap", [2, 7, 20])
def test_count_is_a_capped_geometric_variable(cap):
    """Chi-square on all values of the count: seed 2, 100,000 runs."""
    learner, draws, runs = FtplBandit(arms=2, eta=1.0, cap=cap), Draws(2), 100_000
    state = learner.start(runs, draws)
    state.shift_at(state.places(np.zeros(runs, dtype=np.intp)), np.full(runs, -1.0))
    p = 0.5 * math.exp(-1.0)
    counts = learner.count(state, np.zeros(runs, dtype=np.intp), draws)
    law = [p * (1 - p) ** (m - 1) for m in range(1, cap)] + [(1 - p) ** (cap - 1)]
    assert (
        stats.chisquare(np.bincount(counts.astype(int), minlength=cap + 1)[1:], runs * np.array(law)).pvalue
        > FALSE_ALARM
    )
    expected = (1 - (1 - p) ** cap) / p
    assert counts.mean() == pytest.approx(expected, abs=5 * cap / math.sqrt(runs))


@pytest.mark.parametrize("arms", [2, 3, 8, pytest.param(17, marks=pytest.mark.slow)])
def test_leading_probabilities(arms):
    """They sum to 1, and the chance of each arm is its frequency: seed 3, 200,000 runs, chi-square."""
    learner, draws, runs = FtplBandit(arms=arms, eta=1.0, cap=3), Draws(3), 200_000
    state = learner.start(runs, draws)
    for arm in range(arms):
        state.shift_at(state.places(np.full(runs, arm)), np.full(runs, -0.3 * arm))
    p = np.array([learner.leading_probability(state, np.full(runs, arm))[0] for arm in range(arms)])
    assert p.sum() == pytest.approx(1, abs=1e-12)
    played = np.bincount(learner.act(state, draws), minlength=arms)
    assert stats.chisquare(played, runs * p).pvalue > FALSE_ALARM


def test_hopeless_arms_are_counted_to_the_cap():
    learner, draws = FtplBandit(arms=2, eta=1.0, cap=9), Draws(4)
    state = learner.start(50, draws)
    state.shift_at(state.places(np.zeros(50, dtype=np.intp)), np.full(50, -2000.0))
    assert (learner.act(state, draws) == 1).all()
    assert (learner.count(state, np.zeros(50, dtype=np.intp), draws) == 9).all()
    assert (learner.count(state, np.ones(50, dtype=np.intp), draws) == 1).all()


def test_a_cap_of_one_counts_one():
    learner, draws = FtplBandit(arms=3, eta=1.0, cap=1), Draws(0)
    assert (learner.count(learner.start(9, draws), np.arange(9) % 3, draws) == 1).all()


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="cap must be an integer of at least 1, got 0"):
        FtplBandit(arms=2, eta=0.1, cap=0)
    with pytest.raises(ValueError, match="eta must be positive"):
        FtplBandit(arms=2, eta=-1.0, cap=3)
