"""Regret measured until its bound is decided."""

from dataclasses import replace

import numpy as np
import pytest

from overclaim.audit.execution.execution import Budget
from overclaim.audit.regret import measurement
from overclaim.audit.regret.measurement import ANYTIME
from overclaim.audit.regret.regret_audit import FIRST_LOOK, RegretRequest, audit_regret
from overclaim.audit.regret.verdicts import HOLDS, UNDECIDED, VIOLATED
from overclaim.learners import Exp3
from overclaim.learners.entry import RegretClaim, Setting

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
    audit = audit_regret(RegretRequest(UNIFORM, GAME, sequences=gap, claim=bound(value)), EARLY)
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
    audit_regret(RegretRequest(UNIFORM, GAME, sequences=gap, claim=bound(32.0)), replace(EARLY, runs=1000))
    assert len(seen) == len(set(seen)) > len({(rounds, label) for rounds, label, _ in seen})


def test_an_early_measurement_needs_something_to_decide():
    with pytest.raises(ValueError, match="stop early needs a bound on regret"):
        audit_regret(RegretRequest(UNIFORM, GAME), EARLY)
