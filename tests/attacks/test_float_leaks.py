"""The bit-level attack: double-precision Laplace noise falls, exact discrete noise stands."""

import numpy as np
import pytest

from overclaim.audit.attacks.outputs.float_leaks import NO_BIT, PreimageRatio, lowest_bit, preimages
from overclaim.audit.pipeline.falsify import falsify_mechanism
from overclaim.audit.verdicts.verdict import Verdict
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.one_shot.tree_sums import TreeSumsDiscrete, TreeSumsNaive
from overclaim.mechanisms.one_shot.zoo import zoo
from overclaim.mechanisms.tree import Tree

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


@pytest.mark.few(1)
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


@pytest.mark.parametrize("losses", [[1, 0, 0], [0.25, 0.5, 1.0, 0.0, 0.75, 0.1, 1, 0]])
def test_tree_sums_are_those_of_the_tree_counter(losses):
    """Bit for bit: what FTRL releases before padding."""
    mechanism = zoo()["mechanisms/tree-sums"].build(0.5)
    tree, draws = Tree(Laplace(2.0 * len(losses).bit_length()), len(losses)), Draws(4)
    state = tree.start(1, 50)
    released = mechanism(losses, Draws(4), 50)
    for row, loss in zip(released, losses, strict=True):
        tree.add(state, np.array([[float(loss)]]), draws)
        np.testing.assert_array_equal(row, state.noisy[0])


@pytest.mark.parametrize("kind", [TreeSumsNaive, TreeSumsDiscrete])
@pytest.mark.parametrize("rounds", [1, 2, 7, 8, 13])
def test_a_loss_reaches_as_many_nodes_as_its_noise_is_scaled_for(kind, rounds):
    """Every prefix is the sum of disjoint nodes; each loss is in at most as many nodes as the scale says."""
    asked, drawn = [], []

    class Bits:
        def sample(self, shape, draws):
            drawn.append(shape)
            return np.full(shape, 2 ** len(drawn))  # node t has bit t

    class Counted(kind):
        def law(self, nodes):
            asked.append(nodes)
            return Bits()

    released = Counted()([0] * rounds, Draws(0), 1)[:, 0].astype(int)
    covered = np.zeros(rounds + 1, dtype=int)
    for t in range(1, rounds + 1):
        inside = [s for s in range(1, t + 1) if released[t - 1] >> s & 1]
        starts = [0, *inside[:-1]]
        assert inside[-1] == t
        assert all(s - start == s & -s for start, s in zip(starts, inside, strict=True))
        covered[starts[-1] + 1 : t + 1] += 1
    assert set(asked) == {covered.max()}


@pytest.mark.slow(reason="one leak of bits more")
def test_tree_sums_of_ftrl_are_falsified_by_their_bits():
    """And by nothing else: their claim is true in real arithmetic."""
    specimen = zoo()["mechanisms/tree-sums"]
    options = {"pairs": specimen.pairs, "runs": 20_000}
    assert falsify_mechanism(specimen.build(1.0), CLAIM, **options).verdict is Verdict.SURVIVED
    assert falsify_mechanism(specimen.build(1.0), CLAIM, bits=True, **options).epsilon_lower > 3
    assert specimen.bits


@pytest.mark.slow(reason="an audit of 40,000 runs")
def test_discrete_tree_sums_resist():
    """Certificate at 1 - 1e-6: the test's false-alarm probability."""
    specimen = zoo()["mechanisms/tree-sums-discrete"]
    options = {"pairs": specimen.pairs, "runs": 40_000, "bits": True, "confidence": 1 - 1e-6}
    result = falsify_mechanism(specimen.build(1.0), CLAIM, **options)
    assert result.verdict is Verdict.SURVIVED
    assert result.epsilon_lower > 0.5


@pytest.mark.parametrize(("left", "right"), [([0], [1]), ([-3], [-2])])
def test_discrete_laplace_resists(left, right):
    """Certificate at 1 - 1e-6: the test's false-alarm probability."""
    mechanism = zoo()["mechanisms/discrete-laplace"].build(1.0)
    result = falsify_mechanism(mechanism, CLAIM, left=left, right=right, runs=40_000, bits=True, confidence=1 - 1e-6)
    assert result.verdict is Verdict.SURVIVED
    assert result.epsilon_lower > 0.8


@pytest.mark.slow(reason="it is about power")
def test_reading_bits_that_tell_nothing_costs_little():
    """Bins within every lowest bit were chosen here, and certified 0.75, where 0.95 is certified without bits."""

    class OnGrid:
        batched = True

        def __call__(self, data, draws, runs):
            return data + np.rint(Laplace(1.0).sample((runs,), draws) * 2.0**40) / 2.0**40

    options = {"left": 0.0, "right": 1.0, "runs": 50_000, "seed": 1}
    bounds = [falsify_mechanism(OnGrid(), CLAIM, bits=bits, **options).epsilon_lower for bits in (True, False)]
    assert bounds[0] > bounds[1] - 0.05
