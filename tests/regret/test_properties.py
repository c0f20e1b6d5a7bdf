"""Properties of regret, for random losses: bounds that hold for certain where nothing is drawn, and symmetries."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overclaim.audit.execution.execution import Budget
from overclaim.learners import Exp3, Ftrl
from overclaim.learners.bandits.htinf import Htinf
from overclaim.learners.catalogue.entries import entries, lookup
from overclaim.learners.problems.domains import Ball, Cube, EntropySimplex
from overclaim.learners.problems.losses import LOSS_SETS
from overclaim.mechanisms.noise import Laplace
from overclaim.tests.support.regret import play_runs

ONE = Budget(runs=2)
QUICK = settings(max_examples=8, deadline=None)
#: The catalogue's learners that take loss vectors and say a bound; under convex losses: test_convex_properties.
VECTORS = sorted(name for name, entry in entries().items() if entry.regret and entry.losses != "lipschitz")


def signs(seed, rounds, arms):
    return np.random.default_rng(seed).choice([-1.0, 0.0, 0.5, 1.0], (rounds, arms))


@QUICK
@given(seed=st.integers(0, 10**6), arms=st.integers(2, 6), rounds=st.integers(1, 60))
def test_noiseless_experts_keep_the_textbook_bound_on_every_sequence(seed, arms, rounds):
    """ln N / eta + eta T / 2 for |l| <= 1 (Hedge): no sampling, the learner plays one point."""
    eta = math.sqrt(2 * math.log(arms) / rounds)
    learner = Ftrl(domain=EntropySimplex(arms), rounds=rounds, eta=eta, noise=Laplace(0.0))
    assert play_runs(learner, signs(seed, rounds, arms), ONE).mean <= math.sqrt(2 * rounds * math.log(arms)) + 1e-9


@QUICK
@given(seed=st.integers(0, 10**6), dim=st.integers(1, 4), rounds=st.integers(1, 60), cube=st.booleans())
def test_noiseless_gradient_steps_keep_the_textbook_bound_on_every_sequence(seed, dim, rounds, cube):
    """R(x) = ||x||^2, lazy: sum of (R(u) - min R) / eta and eta / 4 ||l_t||^2, with ||u||^2 at most 1, or dim."""
    losses = signs(seed, rounds, dim)
    domain = Cube(dim) if cube else Ball(dim)
    eta = 0.3
    mean = play_runs(Ftrl(domain=domain, rounds=rounds, eta=eta, noise=Laplace(0.0)), losses, ONE).mean
    assert mean <= (dim if cube else 1.0) / eta + eta * np.square(losses).sum() + 1e-9


@QUICK
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)), scale=st.sampled_from([0.25, 0.5, 2.0]))
def test_order_and_units_of_the_losses_do_not_matter_to_noiseless_experts(seed, order, scale):
    losses = signs(seed, 30, 4)
    learner = Ftrl(domain=EntropySimplex(4), rounds=30, eta=0.2, noise=Laplace(0.0))
    regret = play_runs(learner, losses, ONE).mean
    assert play_runs(learner, losses[:, order], ONE).mean == pytest.approx(regret, abs=1e-9)
    scaled = play_runs(replace(learner, eta=0.2 / scale), scale * losses, ONE).mean
    assert scaled == pytest.approx(scale * regret, abs=1e-9)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6), flip=st.booleans())
def test_bandits_do_not_prefer_an_arm(seed, flip):
    """1000 runs each way, |regret| <= 20: means differ by more than 6 standard errors of at most 0.64 never here."""
    losses = np.abs(signs(seed, 20, 2))
    for learner in (Exp3(arms=2, eta=0.3, gamma=0.1), Htinf(arms=2)):
        one, two = (play_runs(learner, rows, Budget(runs=1000)).mean for rows in (losses, losses[:, ::-1]))
        assert one == pytest.approx(two, abs=6 * 0.64)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", VECTORS)
def test_no_sequence_makes_regret_exceed_what_is_possible_or_printed(name):
    """Random vectors of its loss set, T = 24, 30 runs: the mean stays below the largest regret and, by the interval of
    error 1e-6, below the printed bound."""
    entry = lookup(name)
    setting = entry.setting(rounds=24)
    learner, kind = entry.build(setting), LOSS_SETS[setting.losses]
    u = np.random.default_rng(len(name)).random((24, setting.arms))
    losses = (kind.low + (kind.high - kind.low) * u) * kind.scale(setting.arms)
    played = play_runs(learner, losses, Budget(runs=30))
    assert played.largest is None or played.mean <= played.largest + 1e-9
    assert played.regret(1 - 1e-6).interval[0] <= entry.regret.bound(setting, learner)


@pytest.mark.parametrize("name", ["agarwal-singh/ftrl-experts", "asi-raman-talwar/batched-exp3"])
def test_more_privacy_does_not_help_beyond_the_interval(name):
    """600 runs on a constant gap, at 1 - 1e-6: noise for epsilon = 0.1 against next to none."""
    entry, losses = lookup(name), None
    low = {}
    for epsilon in (0.1, 1e6):
        setting = entry.setting(rounds=64, epsilon=epsilon)
        kind = LOSS_SETS[setting.losses]
        losses = np.tile([kind.high, kind.low], (64, 1)) * kind.scale(2)
        low[epsilon] = play_runs(entry.build(setting), losses, Budget(runs=600)).regret(1 - 1e-6).interval
    assert low[1e6][0] <= low[0.1][1]
