"""Sequences played side by side, and losses that are expected under what a learner states."""

import math
from dataclasses import replace

import numpy as np
import pytest

from overclaim.audit.execution.execution import Budget
from overclaim.audit.regret.measurement import play_sequences, shares
from overclaim.audit.regret.side_by_side import SideBySide, counted
from overclaim.learners import BatchedLaplace, Exp3, Ftrl
from overclaim.learners.bandits.htinf import Htinf
from overclaim.learners.catalogue.entries import entries, lookup
from overclaim.learners.next_arm import states_next_arm
from overclaim.learners.problems.domains import Ball
from overclaim.learners.problems.losses import Absolute, Linear, Quadratic, feedback
from overclaim.mechanisms.noise import Laplace
from overclaim.tests.support.regret import play_runs

FEW = Budget(runs=4)
VECTORS = [np.random.default_rng(i).choice([-1.0, 0.5, 1.0], (12, 3)) for i in range(3)]
STEEP, BOWL = Linear(slope=(1.0, 0.0, 0.0)), Quadratic(curvature=0.5, centre=(0.2, 0.0, 0.1))
CONVEX = [[STEEP] * 12, [STEEP, BOWL] * 6, [BOWL] * 11 + [Absolute(slope=(0.0, 1.0, 0.0))]]


@pytest.mark.parametrize("worlds", [VECTORS, CONVEX], ids=["vectors", "convex"])
def test_each_sequence_costs_what_it_costs_alone(worlds):
    """Nothing is drawn: gradient steps without noise."""
    learner = Ftrl(domain=Ball(3), rounds=12, eta=0.3, noise=Laplace(0.0))
    together = play_sequences(learner, worlds, FEW)
    alone = [play_runs(learner, world, FEW) for world in worlds]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.totals, other.totals, atol=1e-12)
        assert (one.bounds, one.comparator, one.rounds) == (other.bounds, other.comparator, other.rounds)
    assert len({one.totals[0] for one in together}) == 3


@pytest.mark.parametrize("kind", ["bandit", "full"])
@pytest.mark.parametrize("actions", [np.array([0, 1, 2, 2, 1, 0]), np.random.default_rng(0).random((3, 6))])
@pytest.mark.parametrize("worlds", [VECTORS, CONVEX])
def test_runs_are_told_the_losses_of_their_own_sequence(kind, actions, worlds):
    if actions.ndim == 1 and worlds is CONVEX:
        worlds = [[STEEP] * 12, [STEEP, Linear(slope=(0.0, 1.0, 0.0))] * 6, [STEEP] * 12]
    together = SideBySide(worlds, 2).told(3, actions, kind)
    for i, world in enumerate(worlds):
        mine = slice(2 * i, 2 * i + 2)
        alone = feedback(world[3], actions[..., mine], kind)
        np.testing.assert_allclose(together[..., mine], np.broadcast_to(alone, together[..., mine].shape))


def test_blocks_hold_all_runs():
    learner = Exp3(arms=2, eta=0.1)
    assert sum(size for _, size in shares(learner, 20_000, 3)) == 20_000
    assert shares(learner, 5, 10_000) == [(i, 1) for i in range(5)]
    played = play_sequences(learner, [np.ones((2, 2)), np.zeros((2, 2))], Budget(runs=5000))
    assert [(one.totals.size, one.mean) for one in played] == [(5000, 0.0), (5000, 0.0)]


LEARNERS = [
    Exp3(arms=2, eta=0.3, gamma=0.1),
    BatchedLaplace(Htinf(arms=2), epsilon=1.0, batch=3),
    *(lookup(name).build(lookup(name).setting(rounds=20)) for name in ("asi-raman-talwar/experts-batched-htinf",)),
    *(
        lookup(f"asi-raman-talwar/{name}").build(lookup(f"asi-raman-talwar/{name}").setting(rounds=20, delta=0.01))
        for name in ("exp4-local", "exp4-batched")
    ),
    lookup("agarwal-singh/reduction-exp2").build(lookup("agarwal-singh/reduction-exp2").setting(rounds=20)),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_expected_losses_have_the_mean_of_those_played_and_vary_less(learner, monkeypatch):
    """4000 runs each way, totals in [0, 20]: means differ by more than 6 standard errors with probability 1e-8."""
    worlds = [np.tile([[1.0, 0.0], [0.0, 1.0], [0.0, 0.7]], (7, 1))[:20], np.tile([0.0, 1.0], (20, 1))]
    expected = play_sequences(learner, worlds, Budget(runs=4000))
    monkeypatch.setattr("overclaim.audit.regret.measurement.counted", lambda *_, **__: "played")
    played = play_sequences(learner, worlds, Budget(runs=4000, seed=1))
    for one, other in zip(expected, played, strict=True):
        assert one.expected
        assert not other.expected
        error = math.hypot(one.totals.std(), other.totals.std()) / math.sqrt(4000)
        assert abs(one.mean - other.mean) <= 6 * error
    assert expected[0].totals.std() < 0.8 * played[0].totals.std()


class Liar(Exp3):
    """States what EXP3 states and plays the first arm."""

    def act(self, state, draws):
        return np.zeros(state.total.shape, dtype=np.intp)


def test_a_learner_that_states_other_probabilities_than_it_plays_is_judged_by_what_it_plays():
    liar, losses = Liar(arms=2, eta=0.3, gamma=0.1), np.tile([1.0, 0.0], (40, 1))
    assert play_runs(liar, losses, FEW).mean == 40
    assert not play_runs(liar, losses, FEW).expected
    wrapped = BatchedLaplace(liar, epsilon=1.0, batch=1)
    assert not states_next_arm(wrapped)
    assert play_runs(wrapped, losses, FEW).mean == 40
    replaced = Exp3(arms=2, eta=0.3, gamma=0.1)
    object.__setattr__(replaced, "act", lambda state, draws: np.zeros(state.total.shape, dtype=np.intp))
    assert play_runs(replaced, losses, FEW).mean == 40


def test_what_is_expected_is_known_of_arms_under_vectors_alone():
    exp3 = Exp3(arms=3, eta=0.1)
    assert counted(exp3, VECTORS) == "expected"
    assert counted(exp3, CONVEX) == "played"
    stating = {name for name, entry in entries().items() if states_next_arm(entry.build(entry.setting(rounds=16)))}
    assert {"asi-raman-talwar/batched-exp3", "agarwal-singh/gaussian-exp2", "asi-raman-talwar/exp4-batched"} <= stating
    assert not {"agarwal-singh/ftrl-experts", "asi-raman-talwar/batched-ftpl", "smith-thakurta/pftal"} & stating


def test_losses_expected_within_a_batch_are_those_of_its_start():
    """An arm is held for 4 rounds: of the first batch of uniform play every loss is expected to be the arms' mean."""
    learner = replace(
        lookup("asi-raman-talwar/batched-exp3").build(lookup("asi-raman-talwar/batched-exp3").setting(rounds=4)),
        batch=4,
    )
    losses = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0], [0.25, 0.25]])
    played = play_runs(learner, losses, FEW)
    np.testing.assert_allclose(played.totals, losses.mean(axis=1).sum())
