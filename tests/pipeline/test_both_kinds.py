"""`falsify` takes learners and mechanisms alike, and says what either does not take."""

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
    "mechanism", [count, other_names, partial(count), Called()], ids=["function", "names", "partial", "object"]
)
def test_falsify_of_a_mechanism_audits_it(mechanism):
    assert falsify(mechanism, CLAIM, **WORLDS, runs=400, seed=3).certificate.counts.runs == 320


def test_pairs_of_a_mechanism_are_inputs_too():
    assert falsify(count, CLAIM, pairs=[([0, 0], [0])], runs=400).inputs.left == [0, 0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "the two neighbouring inputs are missing"),
        (
            {**WORLDS, "rounds": 2, "arms": 2},
            "count is a mechanism: it takes no `rounds`, `arms`\nhint: its inputs are `left` and",
        ),
        ({"pair": Pair([[1.0, 1.0]], [[0.0, 1.0]])}, "count is a mechanism: it takes no `pair`"),
    ],
)
def test_what_a_mechanism_does_not_take_is_named(options, told):
    with pytest.raises(ValueError, match=told):
        falsify(count, CLAIM, runs=400, **options)


def test_a_claim_about_losses_is_no_mechanisms():
    with pytest.raises(ValueError, match='it takes no `losses="symmetric"`'):
        falsify(count, Claim(epsilon=1.0, losses="symmetric"), **WORLDS)


def test_other_checks_name_what_audits_a_mechanism():
    with pytest.raises(ValueError, match=r"count is a mechanism, .* and no learner: audit it by falsify"):
        check_learner(count)


def test_the_name_that_audits_of_mechanisms_had_stays():
    assert falsify_mechanism is falsify


@pytest.mark.parametrize("option", [{"bits": True}, {"attributes": "fitted"}, {"call_limit": 1.0}], ids=str)
def test_what_a_learner_does_not_take_is_named(option):
    with pytest.raises(
        ValueError, match=rf"is a learner: it takes no `{next(iter(option))}`\nhint: they are for mechanisms"
    ):
        falsify(Exp3(arms=2, eta=0.1, gamma=0.1), CLAIM, rounds=2, runs=400, **option)
