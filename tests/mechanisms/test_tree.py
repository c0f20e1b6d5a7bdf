"""The tree counter: its draws, its padding, its memory, and a textbook tree as twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.tree import Tree, depth, lowest_bit, nodes_holding, parent


class Counting:
    """Not random: every draw is `mark`, so that the noise of a prefix counts its draws."""

    mark = 1.0

    def sample(self, shape, draws):
        return np.full(shape, self.mark)


class Recording:
    """Normal draws, kept in order."""

    def __init__(self):
        self.drawn = []

    def sample(self, shape, draws):
        self.drawn.append(draws.normal(shape))
        return self.drawn[-1].copy()


def textbook_prefix(nodes, t):
    """Sum the nodes (level, index) of a binary tree over rounds 1..2^levels that make up rounds 1..t."""
    total, start = 0.0, 0
    for level in range(t.bit_length() - 1, -1, -1):
        if t >> level & 1:
            total = total + nodes[level, start >> level]
            start += 1 << level
    assert start == t
    return total


@given(horizon=st.integers(1, 300))
def test_every_prefix_carries_exactly_depth_draws(horizon):
    tree = Tree(Counting(), horizon)
    draws, state = Draws(0), tree.start(1, 1)
    for t in range(horizon + 1):
        if t:
            tree.add(state, np.ones((1, 1)), draws)
        assert state.total[0, 0] == t
        assert state.noisy[0, 0] - t == t.bit_count()
        # Only T = 1 has a prefix of more nodes than the depth, which no action uses.
        assert tree.pad(state, draws)[0, 0] - t == max(depth(horizon), t.bit_count())


@given(horizon=st.integers(1, 200))
def test_padding_never_enters_a_later_round(horizon):
    noise = Counting()
    tree = Tree(noise, horizon)
    draws, state = Draws(0), tree.start(1, 1)
    for t in range(1, horizon + 1):
        noise.mark = 1.0
        tree.add(state, np.zeros((1, 1)), draws)
        noise.mark = 1e6
        padded = tree.pad(state, draws)[0, 0]
        assert padded == t.bit_count() + 1e6 * max(0, depth(horizon) - t.bit_count())
        assert state.noisy[0, 0] == t.bit_count()


def test_padding_is_fresh_at_every_call():
    tree = Tree(Laplace(1.0), 8)
    draws, state = Draws(1), tree.start(2, 3)
    assert (tree.pad(state, draws) != tree.pad(state, draws)).all()
    bare = Tree(Laplace(1.0), 8, padding=False)
    assert (bare.pad(state, draws) == 0).all()


@pytest.mark.few(40)
@pytest.mark.parametrize("horizon", range(1, 201))
def test_the_counter_is_the_textbook_tree(horizon):
    noise = Recording()
    tree = Tree(noise, horizon, padding=False)
    draws, state = Draws(horizon), tree.start(2, 2)
    values = Draws(horizon, 1).normal((horizon, 2, 2))
    nodes = {}
    for t in range(1, horizon + 1):
        tree.add(state, values[t - 1], draws)
        # The node that ends at t: the draw made there, and the values that it covers.
        level = next(i for i in range(20) if t % 2 ** (i + 1))
        nodes[level, (t >> level) - 1] = values[t - 2**level : t].sum(axis=0) + noise.drawn[t - 1]
        np.testing.assert_allclose(state.noisy, textbook_prefix(nodes, t), rtol=0, atol=1e-12)
    assert len(noise.drawn) == horizon


@given(horizon=st.integers(2, 300), data=st.data())
def test_a_value_reaches_at_most_depth_nodes_before_the_last_prefix(horizon, data):
    t0 = data.draw(st.integers(1, horizon))
    assert sum(parent(t) < t0 <= t for t in range(1, horizon)) <= depth(horizon)
    assert sum(parent(t) < 1 <= t for t in range(1, horizon)) == depth(horizon)


@given(horizon=st.integers(1, 10**6))
def test_memory_grows_with_the_logarithm(horizon):
    state = Tree(Laplace(1.0), horizon).start(3, 5)
    size = sum(a.size for a in (state.total, *state.level, state.noisy))
    assert size <= (depth(horizon) + 3) * 15


@pytest.mark.parametrize(("noise", "horizon"), [(Laplace(1.0), 6), (Gaussian(2.0), 8)])
def test_every_prefix_noise_has_the_one_shot_law(noise, horizon):
    """Kolmogorov-Smirnov, seed 3, 40,000 runs a prefix; false-alarm probability 1e-6 over all prefixes."""
    runs = 40_000
    tree, draws = Tree(noise, horizon), Draws(3)
    state = tree.start(1, runs)
    for t in range(horizon):
        if t:
            tree.add(state, np.full((1, 1), 0.5), draws)
        shot = sum(noise.sample((runs,), draws) for _ in range(depth(horizon)))
        got = tree.pad(state, draws)[0] - 0.5 * t
        assert stats.ks_2samp(got, shot).pvalue > 1e-6 / horizon


@settings(max_examples=30)
@given(horizon=st.integers(1, 64), seed=st.integers(0, 99))
def test_means_recover_the_noise_of_every_node(horizon, seed):
    noise = Recording()
    tree = Tree(noise, horizon)
    draws, state = Draws(seed), tree.start(2, 3)
    values = list(Draws(seed, 1).normal((horizon, 2, 1)))
    releases = []
    for value in values:
        tree.add(state, value, draws)
        releases.append(state.noisy.copy())
    recovered = np.stack(releases) - tree.means(np.stack(releases), values)
    np.testing.assert_allclose(recovered, np.stack(noise.drawn), atol=1e-9)


def test_means_are_the_earlier_release_and_the_values_since():
    """Written out for four rounds: nodes 1, 1-2, 3, 1-4."""
    releases, values = np.arange(4.0).reshape(4, 1, 1) + 10, [np.full((1, 1), 2.0**k) for k in range(4)]
    means = Tree(Laplace(1.0), 4).means(releases, values)
    np.testing.assert_array_equal(means[:, 0, 0], [1, 1 + 2, 11 + 4, 1 + 2 + 4 + 8])


def test_lowest_bit_and_parent_take_a_round_apart():
    assert [lowest_bit(t) for t in range(1, 9)] == [0, 1, 0, 2, 0, 1, 0, 3]
    assert [parent(t) for t in range(1, 9)] == [0, 0, 2, 0, 4, 4, 6, 0]
    assert [depth(t) for t in range(1, 10)] == [0, 1, 2, 2, 3, 3, 3, 3, 4]


def test_one_value_too_many_is_named():
    tree = Tree(Laplace(1.0), 1)
    state = tree.start(1, 1)
    tree.add(state, np.ones((1, 1)), Draws(0))
    with pytest.raises(ValueError, match="at most horizon = 1"):
        tree.add(state, np.ones((1, 1)), Draws(0))
    with pytest.raises(ValueError, match="horizon must be at least 1, got 0"):
        Tree(Laplace(1.0), 0)


def test_nodes_that_hold_a_round_end_where_its_value_is_released():
    assert [nodes_holding(t0, 4) for t0 in range(4)] == [[1, 2, 4], [2, 4], [3, 4], [4]]
    assert nodes_holding(0, 3) == [1, 2]


def test_a_trace_is_told_each_node_and_the_prefix_that_its_noise_is_for():
    """The sum so far, with the noise that the earlier prefix has: what is released before the node's own noise."""

    class Watched(Draws):
        told = ()

        def noise(self, law, shape, value, name=""):
            self.told = (*self.told, (name, float(value()[0, 0])))
            return np.full(shape, 10.0 ** len(self.told))

    tree, draws = Tree(Counting(), 4), Watched(0)
    state = tree.start(1, 1)
    for value in (1.0, 2.0, 3.0, 4.0):
        tree.add(state, np.full((1, 1), value), draws)
    # The third node extends the prefix of two rounds, whose noise was 100.
    assert draws.told == (("node [1,1]", 1.0), ("node [1,2]", 3.0), ("node [3,3]", 106.0), ("node [1,4]", 10.0))
