"""HTINF against its definition, and inside the private conversion against a slow twin on the same draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq

from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners.bandits.htinf import PRECISION, SIGMA, THETA, Htinf, tsallis_weights
from overclaim.learners.conversions.batched import BatchedLaplace
from overclaim.mechanisms.draws import Draws
from overclaim.tests.support.tapes import Tape


def laplace(u, scale):
    u += 2.0**-54 - 0.5
    return math.copysign(scale * math.log(2 * abs(u)), u)


def naive_weights(losses):
    low = min(losses)
    z = brentq(lambda z: sum((x - z) ** -2 for x in losses) - 1, low - math.sqrt(len(losses)) - 1, low - 1 + 1e-12)
    return [(x - z) ** -2 for x in losses]


def naive_conversion(uniforms, losses, arms, batch, epsilon):
    """Algorithm 1 around Algorithm 1 of Huang, Dai & Huang, one run, as printed."""
    estimates, step, played = [0.0] * arms, 1, []
    for start in range(0, len(losses), batch):
        rate = 1 / (SIGMA * math.sqrt(step))
        x = naive_weights([rate * value for value in estimates])
        u, arm = next(uniforms), 0
        while arm < arms - 1 and u >= sum(x[: arm + 1]):
            arm += 1
        rounds = losses[start : start + batch]
        played += [arm] * len(rounds)
        if len(rounds) == batch and start + batch < len(losses):
            y = sum(row[arm] for row in rounds) / batch + laplace(next(uniforms), 1 / (batch * epsilon))
            if abs(y) <= THETA * math.sqrt(x[arm]) / rate:
                estimates[arm] += y / x[arm]
            step += 1
    return played


@settings(deadline=None, max_examples=60)
@given(
    losses=arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=st.floats(-1e4, 1e4)),
    start=st.floats(0, 1),
)
def test_tsallis_weights_minimise(losses, start):
    arms, runs = losses.shape
    guess = np.full(runs, 1 + start * (math.sqrt(arms) - 1))
    x, w = tsallis_weights(losses, guess)
    assert np.abs(x.sum(axis=0) - 1).max() <= PRECISION
    assert ((w >= 1) & (w <= math.sqrt(arms))).all()
    for run in range(runs):
        np.testing.assert_allclose(x[:, run], naive_weights(losses[:, run].tolist()), rtol=1e-7)


def test_tsallis_weights_do_not_depend_on_the_chunk():
    losses = np.random.default_rng(0).normal(size=(40, 3000)) * 30
    x, _ = tsallis_weights(losses, np.ones(3000))
    alone, _ = tsallis_weights(losses[:, 2990:], np.ones(10))
    np.testing.assert_allclose(x[:, 2990:], alone, rtol=1e-12)


@pytest.mark.parametrize(("arms", "batch", "epsilon"), [(2, 1, 1.0), (3, 2, 4.0), (4, 3, 50.0)])
def test_conversion_equals_its_twin_on_the_same_draws(arms, batch, epsilon):
    rounds, runs = 25, 30
    losses = np.random.default_rng(1).random((rounds, arms))
    draws = Tape(2)
    pair = Pair(losses, np.concatenate([losses[:-1], 1 - losses[-1:]]))
    actions = play(BatchedLaplace(inner=Htinf(arms=arms), epsilon=epsilon, batch=batch), pair, draws, runs).actions
    for run in range(runs):
        twin = naive_conversion(iter([float(row[run]) for row in draws.rows]), losses.tolist(), arms, batch, epsilon)
        assert actions[:, run].tolist() == twin


def test_large_losses_of_either_sign_are_skipped():
    learner, draws = Htinf(arms=2), Draws(0)
    edge = THETA * SIGMA * math.sqrt(0.5)
    fed = np.array([edge * 0.999, -edge * 0.999, edge * 1.001, -edge * 1.001])
    state = learner.start(4, draws)
    learner.update(state, np.array([0, 0, 0, 1]), fed, draws)
    np.testing.assert_allclose(state.losses[0], [2 * fed[0], 2 * fed[1], 0, 0])
    assert not state.losses[1].any()
    np.testing.assert_allclose(state.p[0, 2:], 0.5, rtol=1e-12)
    assert state.p[0, 0] < 0.5 < state.p[0, 1]


def test_rates_follow_the_round_and_arms_the_law():
    learner, draws = Htinf(arms=3, sigma=2.0), Draws(0)
    runs = 60_000
    state = learner.start(runs, draws)
    for t in range(1, 9):
        learner.update(state, np.zeros(runs, dtype=np.intp), np.full(runs, 0.1), draws)
        expected = naive_weights((state.losses[:, 0] / (2.0 * math.sqrt(t + 1))).tolist())
        np.testing.assert_allclose(learner.probabilities(state)[:, 0], expected, rtol=1e-9)
    counts = np.bincount(learner.act(state, draws), minlength=3)
    # Seed 0; five standard errors of each share: a false alarm has probability below 2e-6.
    np.testing.assert_allclose(counts / runs, state.p[:, 0], atol=5 * math.sqrt(0.25 / runs))


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="sigma must be positive and finite, got 0"):
        Htinf(arms=2, sigma=0.0)
    with pytest.raises(ValueError, match="arms must be an integer of at least 1, got 0"):
        Htinf(arms=0)
