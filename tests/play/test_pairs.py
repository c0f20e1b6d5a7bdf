"""Pairs: what a neighbour is, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair, differing_losses
from overclaim.audit.play.rounds import as_sequence
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.loss_choices import linear_alphabet
from overclaim.learners import Exp3
from overclaim.learners.problems.losses import Linear, Switch, from_json
from overclaim.mechanisms.claim import LOSS_SET_NAMES, NEIGHBOURS, Claim


def claim(**values):
    return Claim(epsilon=1.0, **values)


FLAT, TILTED, VECTOR = Linear(slope=(0.0, 0.0)), Linear(slope=(1.0, 0.0)), np.ones(2)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([[0, 0]], [[0, 0]], "differ in: none"),
        ([[1, 0], [1, 0]], [[0, 0], [0, 0]], "differ in: 1, 2"),
        ([[1, 0]], [[0, 0, 0]], "same shape"),
        ([], [], "at least one round"),
        ([[1, float("nan")]], [[0, 0]], "finite, got nan"),
        ([["a"]], [["b"]], "must be numbers"),
        ([1, 0], [0, 0], "shape"),
        ([[1, 0], [1]], [[0, 0], [1]], "rows of equal length"),
        (
            [FLAT, [1.0, 0.0]],
            [TILTED, [1.0, 0.0]],
            r"left loss of round 2 must be a convex function .* got \[1.0, 0.0\]",
        ),
        ([FLAT, FLAT], [TILTED, 1.0], r"right loss of round 2 must be .* got 1.0"),
        ([FLAT, VECTOR * np.inf], [TILTED, VECTOR * np.inf], r"left loss of round 2 must be .* finite numbers"),
        ([FLAT, VECTOR[:1]], [TILTED, VECTOR[:1]], "of one length, got 1 and 2"),
        ([FLAT, FLAT], [Linear(slope=(1.0,)), FLAT], "of one length, got 1 and 2"),
        ([FLAT], [Switch(below=FLAT, above=Linear(slope=(1.0,)))], "of one length, got 1 and 2"),
    ],
)
def test_what_is_no_pair(left, right, message):
    with pytest.raises(ValueError, match=message):
        Pair(left, right)


def test_losses_outside_the_claims_set():
    outside = Pair([[2.0, 0]], [[0, 0]])
    with pytest.raises(ValueError, match=r"left loss of round 1 must lie in \[0, 1\] \(unit\), got 2"):
        outside.check(claim())
    with pytest.raises(ValueError, match="L1 norm at most 1"):
        Pair([[1.0, 1.0]], [[0, 0]]).check(claim(losses="l1-ball"))
    Pair([[0.5, -0.5]], [[0, 0]]).check(claim(losses="l1-ball"))


def test_vectors_beside_convex_losses_lie_in_the_set():
    pair = Pair([FLAT, VECTOR], [TILTED, VECTOR])
    with pytest.raises(ValueError, match=r"left loss of round 2 must .* L2 norm at most 1"):
        pair.check(claim(losses="lipschitz"))
    Pair([FLAT, VECTOR / 2], [TILTED, VECTOR / 2]).check(claim(losses="lipschitz"))


def test_convex_losses_are_as_long_as_the_learner_has_arms():
    short = Pair([Linear(slope=(1.0,))], [Linear(slope=(0.0,))])
    with pytest.raises(ValueError, match="losses have length 1, but the learner has 2 arms"):
        falsify(Exp3(arms=2, eta=0.5), claim(), pair=short, runs=100)


def test_zero_out_needs_a_zero():
    both = Pair([[1.0]], [[0.5]])
    with pytest.raises(ValueError, match="one loss of round 1 must be 0"):
        both.check(claim(neighbours="zero-out"))


@pytest.mark.few(4)
@pytest.mark.parametrize("losses", LOSS_SET_NAMES)
@pytest.mark.parametrize("relation", NEIGHBOURS)
@given(rounds=st.integers(1, 9), arms=st.integers(1, 4), batch=st.integers(1, 3))
@settings(deadline=None, max_examples=20)
def test_families_are_neighbours_in_the_set(losses, relation, rounds, arms, batch):
    promised = claim(losses=losses, neighbours=relation)
    pairs = first_round(linear_alphabet(promised, arms), rounds, batch)
    assert pairs
    for pair in pairs:
        pair.check(promised)
        assert (pair.rounds, pair.arms, pair.t0) == (rounds, arms, 0)


def test_extreme_neighbours_reach_the_diameter():
    widest = {"unit": 1.0, "symmetric": 2.0}
    for losses, width in widest.items():
        differences = [np.abs(a - b).max() for a, b in differing_losses(claim(losses=losses), 3)]
        assert max(differences) == width
    l1 = [np.abs(a - b).sum() for a, b in differing_losses(claim(losses="l1-ball"), 3)]
    assert max(l1) == pytest.approx(2.0)


def test_convex_losses_are_neighbours_too():
    """Replacing a loss is two steps of zeroing one out: an audit on such a pair falsified true claims."""
    up, down, zero = (Linear(slope=(slope,)) for slope in (1.0, -1.0, 0.0))
    promised = {"losses": "lipschitz", "neighbours": "zero-out"}
    with pytest.raises(ValueError, match="one loss of round 1 must be 0"):
        Pair([up, up], [down, up]).check(claim(**promised))
    Pair([up, up], [zero, up]).check(claim(**promised))
    Pair([up, up], [down, up]).check(claim(losses="lipschitz"))


def test_json_round_trip():
    pair = Pair([[1.0, 0.5], [0, 0]], [[0.25, 0.5], [0, 0]])
    again = Pair.from_json(json.loads(json.dumps(pair.to_json())))
    assert np.array_equal(again.left, pair.left)
    assert np.array_equal(again.right, pair.right)
    assert pair.to_json()["round"] == 1
    for wrong in ([], {"left": [[1]]}, {"left": 3, "right": 4}, {"left": [], "right": []}):
        with pytest.raises(ValueError, match="must be"):
            Pair.from_json(wrong)


def test_feedback_differs_only_in_the_differing_round():
    pair = Pair([[1.0, 0.0], [0.3, 0.4]], [[0.0, 0.5], [0.3, 0.4]])
    left = np.array([True, False, True])
    arms = np.array([0, 0, 1])
    assert pair.feedback(0, arms, "bandit", left).tolist() == [1.0, 0.0, 0.0]
    assert pair.feedback(1, arms, "bandit", left).tolist() == [0.3, 0.3, 0.4]
    assert pair.feedback(0, arms, "full", left).tolist() == [[1.0, 0.0, 1.0], [0.0, 0.5, 0.0]]
    points = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    assert pair.feedback(0, points, "bandit", left).tolist() == [1.0, 0.25, 0.0]


def test_losses_beyond_all_floats_are_named():
    with pytest.raises(ValueError, match="the left losses must be finite, got a number beyond all floats"):
        Pair([[10**400, 0.0]], [[0.0, 0.0]])
    with pytest.raises(ValueError, match="a loss vector must be finite, got a number beyond all floats"):
        from_json([10**400, 0.0])
    with pytest.raises(ValueError, match="round 1 of an input must be finite, got a number beyond all floats"):
        as_sequence([[10**400, 0.0]])
