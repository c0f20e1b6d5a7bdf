"""Regret measured until its bound is decided, and on compiled kernels."""

import math
from dataclasses import replace

import numpy as np
import pytest

from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.regret import measurement, side_by_side
from overclaim.audit.regret.adversaries import adversaries
from overclaim.audit.regret.measurement import ANYTIME, BETTING
from overclaim.audit.regret.regret_audit import FIRST_LOOK, audit_regret
from overclaim.audit.regret.verdicts import HOLDS, UNDECIDED, VIOLATED
from overclaim.learners import Exp3, Ftrl, Threshold
from overclaim.learners.catalogue.entries import RegretClaim, Setting
from overclaim.learners.problems.domains import Ball
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.philox import CounterDraws
from overclaim.tests.support.regret import measure, play_runs

UNIFORM = Exp3(arms=2, eta=1e-12, gamma=1.0)
EARLY = Budget(runs=2000, stop="early")
#: At this horizon uniform play pays exactly 32 where one arm costs nothing.
GAME = Setting(rounds=64)


def gap(rounds):
    return {"gap": np.tile([1.0, 0.0], (rounds, 1))}


def bound(value):
    return RegretClaim(bound=lambda setting, _: value * setting.rounds / 64, exponent=1.0, source="ours")


@pytest.mark.few(2)
@pytest.mark.parametrize(("value", "verdict"), [(40.0, HOLDS), (25.0, VIOLATED), (32.0, UNDECIDED)])
def test_an_early_measurement_ends_where_the_bound_is_decided(value, verdict):
    audit = audit_regret(UNIFORM, GAME, EARLY, sequences=gap, claim=bound(value))
    assert audit.bound_verdict == verdict
    assert audit.regret.interval_method == ANYTIME
    assert audit.regret.interval[0] < 32 < audit.regret.interval[1]
    assert audit.regret.runs == (EARLY.runs if verdict == UNDECIDED else FIRST_LOOK)


def test_the_runs_of_an_early_measurement_are_new_ones_at_every_look(monkeypatch):
    """The planted fault: the same block again at each look repeats its runs."""
    seen = []
    real = measurement.play_block

    def note(learner, worlds, seed, label, how, block):
        seen.append((len(worlds[0]), label, block[0]))
        return real(learner, worlds, seed, label, how, block)

    monkeypatch.setattr(measurement, "play_block", note)
    audit_regret(UNIFORM, GAME, replace(EARLY, runs=1000), sequences=gap, claim=bound(32.0))
    assert len(seen) == len(set(seen)) > len({(rounds, label) for rounds, label, _ in seen})


def test_an_early_measurement_needs_something_to_decide():
    with pytest.raises(ValueError, match="stop early needs a bound on regret"):
        audit_regret(UNIFORM, GAME, EARLY)


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="each case compiles a kernel")
@pytest.mark.parametrize(
    "learner",
    [Exp3(arms=3, eta=0.2, gamma=0.1), Ftrl(domain=Ball(3), rounds=20, eta=0.1, noise=Laplace(2.0))],
    ids=["arms, their own losses", "points, whole losses"],
)
def test_a_kernel_pays_what_the_protocol_pays(learner, monkeypatch):
    """It takes the time of a compilation."""
    pytest.importorskip("numba")
    losses = adversaries("symmetric", rounds=20, arms=3)["random signs"]
    fast = play_runs(learner, losses, Budget(runs=300), Execution(fast=True))
    monkeypatch.setattr(side_by_side, "Draws", CounterDraws)
    monkeypatch.setattr(measurement, "counted", lambda *_, **__: "played")
    slow = play_runs(learner, losses, Budget(runs=300))
    np.testing.assert_allclose(fast.totals, slow.totals, atol=1e-9)
    assert (fast.bounds, fast.comparator) == (slow.bounds, slow.comparator)
    assert np.unique(fast.totals).size > 5


@pytest.mark.slow(reason="it loads numba")
def test_what_has_no_kernel_is_played_without():
    pytest.importorskip("numba")
    learner = Threshold(arms=2, threshold=0.5)
    losses = np.tile([1.0, 0.0], (8, 1))
    fast, slow = (measure(learner, losses, Budget(runs=20), Execution(fast=fast)) for fast in (True, False))
    assert fast.mean == slow.mean
    assert slow.interval_method == BETTING
    assert math.isfinite(fast.mean)
