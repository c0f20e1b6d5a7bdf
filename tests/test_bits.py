"""The bit-level attack: double-precision Laplace noise falls, exact discrete noise stands."""

import numpy as np
import pytest

from overclaim.audit.bits import NO_BIT, PreimageRatio, lowest_bit, preimages
from overclaim.audit.blackbox import falsify_mechanism
from overclaim.audit.verdict import Verdict
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.tree import Tree
from overclaim.mechanisms.zoo import zoo

CLAIM = Claim(epsilon=1.0)


def test_lowest_bit():
    numbers = np.array([1.0, 3.0, 0.5, 12.0, -0.75, 5e-324, 0.0, np.nan, np.inf])
    np.testing.assert_array_equal(lowest_bit(numbers), [0, 0, -1, 2, -2, -1074, NO_BIT, NO_BIT, NO_BIT])


@pytest.mark.parametrize("scale", [1.0, 2.0, 0.37, 10.0])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_every_release_has_a_preimage_in_its_own_world(scale, value):
    """By construction in its own; in another world most have none."""
    released = Laplace(scale).sample((5000,), Draws(0)) + value
    assert np.mean(preimages(released, value, Laplace(scale)) > 0) > 0.99
    assert np.mean(preimages(released, value + 1.0, Laplace(scale)) > 0) < 0.5


def test_preimages_name_the_world():
    noise = Laplace(1.0)
    ratio = PreimageRatio(noise, 0.0, 1.0)
    assert np.mean(ratio(noise.sample((2000,), Draws(1))) == np.inf) > 0.5
    assert np.mean(ratio(noise.sample((2000,), Draws(1)) + 1.0) == -np.inf) > 0.5


@pytest.mark.parametrize(("left", "right"), [([0], [1]), ([0.1], [0.7])])
def test_naive_laplace_is_falsified_by_its_bits(left, right):
    mechanism = zoo()["mechanisms/laplace"].build(1.0)
    options = {"left": left, "right": right, "runs": 20_000}
    result = falsify_mechanism(mechanism, CLAIM, bits=True, **options)
    assert result.verdict is Verdict.FALSIFIED
    assert result.epsilon_lower > 5
    assert falsify_mechanism(mechanism, CLAIM, **options).verdict is Verdict.SURVIVED


def test_unknown_sampler_is_falsified_by_its_lowest_bits():
    """The sampler is numpy's and nothing is known about it: the pattern alone tells."""
    result = falsify_mechanism(
        lambda data, rng: data[0] + rng.laplace(), CLAIM, left=[0], right=[1], runs=8000, bits=True
    )
    assert result.epsilon_lower > 3


class TreeRelease:
    """The noisy prefix sums that FTRL composes: the tree counter with its Laplace noise."""

    batched = True

    def __call__(self, data, draws, runs):
        tree = Tree(Laplace(3.0), 8)
        state = tree.start(1, runs)
        released = []
        for value in data:
            tree.add(state, np.array([[float(value)]]), draws)
            released.append(state.noisy[0].copy())
        return np.stack(released)


def test_prefix_sums_of_ftrl_are_falsified_by_their_bits():
    """At most one loss in [0, 1] differs and reaches two of the nodes released here: 2/3-DP in real arithmetic."""
    options = {"left": [1, 0, 0], "right": [0, 0, 0], "runs": 20_000}
    assert falsify_mechanism(TreeRelease(), CLAIM, **options).verdict is Verdict.SURVIVED
    assert falsify_mechanism(TreeRelease(), CLAIM, bits=True, **options).epsilon_lower > 3


@pytest.mark.parametrize(("left", "right"), [([0], [1]), ([-3], [-2])])
def test_discrete_laplace_resists(left, right):
    """Certificate at 1 - 1e-6: the test's false-alarm probability."""
    mechanism = zoo()["mechanisms/discrete-laplace"].build(1.0)
    result = falsify_mechanism(mechanism, CLAIM, left=left, right=right, runs=40_000, bits=True, confidence=1 - 1e-6)
    assert result.verdict is Verdict.SURVIVED
    assert result.epsilon_lower > 0.8
