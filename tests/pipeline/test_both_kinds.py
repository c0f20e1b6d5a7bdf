"""`falsify` of a mechanism, and `falsify_mechanism` of a learner: who takes one for the other is answered, or told."""

from functools import partial

import pytest

from overclaim import Claim, Pair, check_learner, falsify, falsify_mechanism
from overclaim.learners import Exp3


def count(data, rng):
    return len(data) + rng.laplace(scale=1.0)


def other_names(records, noise):
    return len(records) + noise.laplace(scale=1.0)


class Called:
    def __call__(self, data, rng):
        return len(data) + rng.laplace(scale=1.0)


WORLDS = {"left": [0, 0], "right": [0]}
CLAIM = Claim(epsilon=1.0)


@pytest.mark.parametrize(
    "mechanism",
    [count, other_names, partial(count), Called()],
    ids=["function", "names", "partial", "object"],
)
def test_falsify_of_a_mechanism_audits_it(mechanism):
    """It was told that it "takes rng, so it makes the object of one run", or to say `--set d=...`."""
    both = [audit(mechanism, CLAIM, **WORLDS, runs=400, seed=3) for audit in (falsify, falsify_mechanism)]
    assert both[0].certificate == both[1].certificate


def test_pairs_of_a_mechanism_are_inputs_too():
    assert falsify(count, CLAIM, pairs=[([0, 0], [0])], runs=400).inputs.left == [0, 0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "two neighbouring inputs must be given: left and right"),
        (
            {**WORLDS, "rounds": 2, "arms": 2},
            "count is a mechanism: it takes no rounds, arms; its inputs are left and",
        ),
        ({"pair": Pair([[1.0, 1.0]], [[0.0, 1.0]])}, "count is a mechanism: it takes no pair"),
        ({**WORLDS, "fast": True}, "count is a mechanism: it takes no fast"),
    ],
)
def test_what_a_mechanism_does_not_take_is_named(options, told):
    with pytest.raises(ValueError, match=told):
        falsify(count, CLAIM, runs=400, **options)


def test_a_claim_about_losses_is_no_mechanisms():
    with pytest.raises(ValueError, match="a mechanism's claim takes no losses, got 'symmetric'"):
        falsify(count, Claim(epsilon=1.0, losses="symmetric"), **WORLDS)


def test_other_checks_name_what_audits_a_mechanism():
    with pytest.raises(ValueError, match=r"count is a mechanism, .* and no learner: audit it by falsify_mechanism"):
        check_learner(count)


class Own:
    feedback = "full"

    def __init__(self, arms, rounds, rng):
        self.arm = 0

    def act(self):
        return self.arm

    def update(self, feedback):
        pass


@pytest.mark.parametrize("learner", [Exp3(arms=2, eta=0.1, gamma=0.1), Exp3, Own], ids=["built", "class", "own"])
def test_falsify_mechanism_of_a_learner_names_falsify(learner):
    """A class was told that its constructor missed an argument, an object that it was not callable."""
    with pytest.raises(ValueError, match="is a learner, and no mechanism: audit it by falsify"):
        falsify_mechanism(learner, CLAIM, **WORLDS)
