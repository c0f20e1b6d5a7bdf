"""Losses that are no numbers or lie outside of their set: refused with the value and its round, never measured."""

from dataclasses import dataclass

import numpy as np
import pytest

from overclaim.audit.execution.execution import Budget
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.regret.regret_audit import RegretRequest, audit_regret
from overclaim.learners import Exp3
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.entry import Setting
from overclaim.learners.problems.losses import LOSS_SETS, Linear, Switch
from overclaim.learners.protocol import LearnerError
from overclaim.mechanisms.claim import Claim
from overclaim.tests.support.command_line import check, refused
from overclaim.tests.support.regret import measure

NOT_FINITE = [np.nan, np.inf, -np.inf]
REGRET = lookup("smith-thakurta/pftal-lipschitz")


@dataclass(frozen=True)
class Own:
    """A user's convex loss: linear, but for what it says of its last runs."""

    slope: float
    wrong: float | None = None
    where: str = "both"

    def value(self, x):
        return self._spoiled(self.slope * x[0], "value")

    def gradient(self, x):
        return self._spoiled(np.full_like(x, self.slope / len(x)), "gradient")

    def _spoiled(self, told, where):
        if self.wrong is not None and self.where in ("both", where):
            told[..., -1] = self.wrong
        return told


@dataclass(frozen=True)
class Adversary:
    """A user's adaptive adversary."""

    loss: object

    def given(self, actions):
        return self.loss


def ball(rounds=4):
    return REGRET.build(Setting(arms=2, rounds=rounds, losses="lipschitz"))


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", sorted(LOSS_SETS))
def test_no_set_holds_what_is_no_number(name, value):
    with pytest.raises(ValueError, match=rf"the loss must .* \({name}\), got .*(nan|inf)"):
        LOSS_SETS[name].check(np.array([0.1, value]), "the loss")


@pytest.mark.parametrize("value", NOT_FINITE)
def test_vectors_of_a_measurement(value):
    losses = np.zeros((16, 2))
    losses[9, 1] = value
    learner = Exp3(arms=2, eta=0.1, gamma=0.1)
    with pytest.raises(ValueError, match=f"the loss of round 10 must be finite, got {value}"):
        measure(learner, losses, Budget(runs=20))
    with pytest.raises(ValueError, match="comparator must be finite"):
        measure(learner, np.zeros((4, 2)), Budget(runs=20), comparator=value)


@pytest.mark.parametrize("value", [*NOT_FINITE, 1.5])
def test_sequences_of_a_regret_audit(value):
    def sequences(rounds):
        losses = np.zeros((rounds, 2))
        losses[3, 1] = value
        return {"mine": losses}

    entry = lookup("agarwal-singh/reduction-threshold")
    with pytest.raises(ValueError, match=rf"the loss of round 4 of 'mine' must lie in \[-1, 1\] .*, got {value}"):
        audit_regret(
            RegretRequest(entry, Setting(arms=2, rounds=32, losses="symmetric"), sequences=sequences), Budget(runs=20)
        )


@pytest.mark.parametrize("wrong", NOT_FINITE)
@pytest.mark.parametrize("where", ["value", "gradient"])
def test_convex_losses_of_a_measurement(wrong, where):
    losses = [Own(0.5), Own(0.5, wrong, where), Own(0.5), Own(0.5)]
    with pytest.raises(ValueError, match=f"the loss of round 2 must be finite, got {wrong}"):
        measure(ball(), losses, Budget(runs=20), comparator=0.0)


def test_points_that_are_no_numbers():
    """Then no loss is a number either, and it is the learner's fault."""

    class Nowhere:
        feedback, arms = "full", 2

        def start(self, runs, draws):
            return runs

        def act(self, state, draws):
            return np.full((2, state), np.nan)

        def update(self, state, actions, feedback, draws):
            pass

    with pytest.raises(LearnerError, match=r"finite points.* in round 1"):
        measure(Nowhere(), np.zeros((4, 2)), Budget(runs=20))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        *((Own(0.5, wrong), f"must be finite, got {wrong}") for wrong in NOT_FINITE),
        (Own(3.0), "must be 1-Lipschitz, got a gradient of norm 2.12"),
        *((Adversary(Own(0.5, wrong)), f"must be finite, got {wrong}") for wrong in NOT_FINITE),
        (Adversary(Own(0.5, 7.0)), "must be 1-Lipschitz, got a gradient of norm 9.899"),
        (Adversary(np.array([np.nan, 0.0])), "must be finite, got nan"),
    ],
)
def test_losses_of_a_users_own_kind_in_an_audit(loss, message):
    pair = Pair([loss, Own(0.1), Own(0.1)], [Own(-0.5), Own(0.1), Own(0.1)])
    claim = Claim(epsilon=1.0, losses="lipschitz")
    with pytest.raises(ValueError, match=f"the left loss of round 1 {message}"):
        falsify(ball(3), claim, pair=pair, runs=2000)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("threshold", "NaN", "threshold must be finite, got nan"),
        ("lag", "0.5", "lag must be a whole number of at least 0, got 0.5"),
        ("coordinate", "-1", "coordinate must be a whole number of at least 0, got -1"),
        ("coordinate", "2", "coordinate must be less than 2, got 2"),
    ],
)
def test_a_switch_in_a_users_file(tmp_path, field, value, message):
    linear = '{"loss": "linear", "slope": [0.5, 0.0]}'
    switch = f'{{"loss": "switch", "below": {linear}, "above": {linear}, "{field}": {value}}}'
    (tmp_path / "pair.json").write_text(f'{{"left": [{switch}, {linear}], "right": [{linear}, {linear}]}}')
    refused(check("smith-thakurta/pftal", "--pair", tmp_path / "pair.json", "--runs", 1000), message)


def test_a_switch_is_as_before():
    below, above = Linear(slope=(0.5, 0.0)), Linear(slope=(0.0, 0.5))
    assert Switch(below=below, above=above, coordinate=1, lag=2).to_json()["coordinate"] == 1
