"""The be-the-leader lemma: a delay of one round, too little for a regret bound to see, breaks it.

For a noiseless learner that plays w_t, the sum of g_t(w_{t+1}) is at most the least sum of g_t(u), plus the range of
the regulariser over eta: with l_t for g_t (regularised leader), or `<gradient, w> + H / 2 ||w - w_t||^2` (approximate
leader, which has no regulariser).
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overclaim.audit.play.transcripts import play_rounds
from overclaim.learners import Ftrl, Pftal
from overclaim.learners.planted.planted_regret import Wrapped
from overclaim.learners.problems.domains import EntropySimplex, L2Ball
from overclaim.learners.problems.losses import feedback
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.noise import L2Laplace, Laplace
from overclaim.tests.regret.test_convex_properties import convex_losses

QUICK = settings(max_examples=8, deadline=None)
SEEDS = st.integers(0, 10**6)


class Delayed(Wrapped):
    """Planted: every loss is passed on one round late."""

    def start(self, runs, draws):
        state = super().start(runs, draws)
        state.late = None
        return state

    def update(self, state, actions, feedback, draws):
        if state.late is not None:
            self.inner.update(state.inner, *state.late, draws)
        state.late = actions.copy(), np.array(feedback)


def played(learner, losses):
    """Return the points of rounds 1..T+1 and the gradients there of rounds 1..T, each (., dim)."""
    points, gradients = [], []

    def told(t, actions):
        gradients.append(np.broadcast_to(feedback(losses[t], actions, "full"), actions.shape)[:, 0])
        return gradients[-1][:, None].copy()

    draws = Draws(0, Stage.REGRET)
    play_rounds(learner, draws, 1, len(losses) + 1, see=lambda t, w: points.append(w[:, 0].copy()), feed=told)
    return np.array(points), np.array(gradients)


def excess_of_hedge(losses, eta, fault=None):
    """Return by how much the left side exceeds the right one: above 0 where the lemma is broken."""
    rounds, arms = losses.shape
    learner = Ftrl(domain=EntropySimplex(arms), rounds=rounds + 1, eta=eta, noise=Laplace(0.0))
    points, _ = played(fault(learner, rounds + 1) if fault else learner, losses)
    return (losses * points[1:]).sum() - losses.sum(axis=0).min() - math.log(arms) / eta


def excess_of_leader(losses, dim, curvature, fault=None):
    rounds = len(losses) + 1
    learner = Pftal(domain=L2Ball(dim, 1.0), rounds=rounds, curvature=curvature, noise=L2Laplace(0.0, dim))
    points, gradients = played(fault(learner, rounds) if fault else learner, losses)
    past, following = points[:-1], points[1:]

    def surrogates(at):
        return ((gradients * at).sum(axis=1) + curvature / 2 * np.square(at - past).sum(axis=1)).sum()

    best = past.mean(axis=0) - gradients.mean(axis=0) / curvature
    return surrogates(following) - surrogates(best / max(1.0, math.hypot(*best)))


def hedge_losses(seed, rounds, arms):
    """Return three random vectors in random order, one of them more often than the others."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (3, arms))[rng.choice(3, rounds, p=rng.dirichlet([0.5] * 3))]


@QUICK
@given(seed=SEEDS, arms=st.integers(2, 6), rounds=st.integers(1, 60), eta=st.sampled_from([0.1, 0.5, 1.0]))
def test_noiseless_hedge_is_the_leader_one_round_ahead(seed, arms, rounds, eta):
    assert excess_of_hedge(hedge_losses(seed, rounds, arms), eta) <= 1e-9


@QUICK
@given(seed=SEEDS, dim=st.integers(1, 3), rounds=st.integers(1, 60), curvature=st.sampled_from([0.1, 0.5, 1.0]))
def test_noiseless_approximate_leaders_are_leaders_one_round_ahead(seed, dim, rounds, curvature):
    losses = convex_losses(seed, rounds, dim, curvature=curvature)
    assert excess_of_leader(losses, dim, curvature) <= 1e-9


def test_a_delay_of_one_round_is_seen():
    """The checks above, on 20 sequences that are theirs: Hedge under constant vectors, where its lemma is tight."""
    constant = np.tile([1.0, -1.0], (60, 1))
    assert excess_of_hedge(constant, 0.1) <= 1e-9 < 0.1 < excess_of_hedge(constant, 0.1, Delayed)
    caught = [excess_of_leader(convex_losses(s, 60, 2, curvature=0.5), 2, 0.5, Delayed) > 1e-6 for s in range(20)]
    assert sum(caught) >= 10


@pytest.mark.parametrize("eta", [0.1, 0.5, 1.0])
def test_the_regret_bound_does_not_see_a_delay(eta):
    """Why the lemma is needed: ln 2 / eta + eta T / 2 holds of delayed Hedge under constant vectors too."""
    losses = np.tile([1.0, -1.0], (60, 1))
    points, _ = played(Delayed(Ftrl(domain=EntropySimplex(2), rounds=61, eta=eta, noise=Laplace(0.0)), 61), losses)
    assert (losses * points[:-1]).sum() + 60 <= math.log(2) / eta + eta * 60 / 2 + 1e-9
