"""Tree aggregation: private prefix sums with noise that grows with log T."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import must_be
from .draws import Draws, Floats
from .noise import Gaussian, Laplace, Noise


def depth(horizon: int) -> int:
    """Return ceil(log2 T), the number of noise draws a padded prefix sum carries (0 for T = 1).

    Raises
    ------
    ValueError
        If the horizon is below 1.

    Examples
    --------
    >>> [depth(horizon) for horizon in (1, 2, 8, 9)]
    [0, 1, 3, 4]
    """
    if horizon < 1:
        raise must_be("horizon", "at least 1", horizon)
    return (horizon - 1).bit_length()


def lowest_bit(t: int) -> int:
    """Return the index of the lowest set bit of t >= 1: the level of the dyadic node that ends at round t."""
    return (t & -t).bit_length() - 1


def parent(t: int) -> int:
    """Return t without its lowest set bit: the round whose prefix sum is extended by the node that ends at t."""
    return t & (t - 1)


def children(t: int, last: int) -> list[int]:
    """Return the rounds up to `last` whose prefix sums extend the one at t by one node."""
    return [t + (1 << i) for i in range(lowest_bit(t)) if t + (1 << i) <= last]


def roots(last: int) -> list[int]:
    """Return the rounds up to `last` whose prefix sum is a single node: the powers of two."""
    return [1 << i for i in range(last.bit_length())]


def nodes_of(t: int) -> set[int]:
    """Return the rounds at which the nodes that make up the prefix sum at t end."""
    nodes = set()
    while t:
        nodes.add(t)
        t = parent(t)
    return nodes


def nodes_holding(t0: int, last: int) -> list[int]:
    """Return the rounds up to `last` at which the nodes end that hold the value of round t0, counted from 0."""
    return [t for t in range(1, last + 1) if parent(t) <= t0 < t]


@dataclass
class TreeState:
    """The open path: `level[i]` is the noise of the last prefix whose lowest node has level i.

    Memory is (floor(lg T) + 3) * dim * runs numbers.
    """

    t: int
    total: Floats  # (dim, runs): the exact prefix sum
    level: list[Floats]  # (dim, runs) each
    noisy: Floats  # (dim, runs): the prefix sum with its nodes' noise, before padding


@dataclass(frozen=True)
class Tree:
    """The binary counter for noisy prefix sums of vectors.

    The prefix sum at t is the sum of the popcount(t) dyadic nodes of its binary expansion, each released once with
    one draw of `noise`. With `padding` (Agarwal & Singh 2017, Algorithm 2) it carries ceil(lg T) - popcount(t) more
    draws, fresh at every round, so that every prefix has the same noise law; without it, Smith & Thakurta 2013,
    Algorithm 2.

    Only the nodes that some prefix uses (left children; the root counts as one) ever draw noise, so a round's value
    reaches at most one released node per level: `depth(T)` of them before the last prefix.

    Parameters
    ----------
    noise : Noise
        The law of one node's noise.
    horizon : int
        T, the number of values that may be added.
    padding : bool
        Whether prefixes are padded to ceil(lg T) draws.
    """

    noise: Noise
    horizon: int
    padding: bool = True

    def __post_init__(self) -> None:
        depth(self.horizon)

    def start(self, dim: int, runs: int) -> TreeState:
        """Return the empty counter for vectors (dim, runs)."""
        shape = (dim, runs)
        levels = self.horizon.bit_length()
        return TreeState(0, np.zeros(shape), [np.zeros(shape)] * levels, np.zeros(shape))

    def pad(self, state: TreeState, draws: Draws) -> Floats:
        """Return the released prefix sum at the current round, (dim, runs): with padding, fresh at every call.

        At t = 0 this is pure noise: ceil(lg T) draws.
        """
        if not self.padding:
            return state.noisy
        missing = depth(self.horizon) - state.t.bit_count()
        if missing <= 0:
            return state.noisy.copy()
        law, shape = self.noise, state.noisy.shape
        if isinstance(law, Gaussian):  # one draw has the law of their sum
            law, missing = law.total(missing), 1
        if isinstance(law, Laplace):
            padded = law.sample_sums(missing, shape, draws)
            padded += state.noisy
            return padded
        padded = state.noisy + law.sample(shape, draws)
        for _ in range(missing - 1):
            padded += law.sample(shape, draws)
        return padded

    def add(self, state: TreeState, value: Floats, draws: Draws) -> None:
        """Add one round's value, (dim, runs) or (dim, 1), in place: one noise draw and one sum whatever T.

        The node that ends at t has level i = ctz(t); it extends the prefix at `parent(t)`, whose noise is kept at
        the next set bit above i.
        """
        if state.t >= self.horizon:
            raise ValueError(f"at most horizon = {self.horizon} values can be added, got one more")
        state.t += 1
        i = lowest_bit(state.t)
        parent_node = parent(state.t)
        state.total += value
        before = state.level[lowest_bit(parent_node)] if parent_node else 0.0
        # Given what was released before, the node's noise is that of the prefix sum.
        prefix = partial(np.add, state.total, before)
        noise = draws.noise(self.noise, state.total.shape, prefix, f"node [{parent_node + 1},{state.t}]")
        if parent_node:
            noise += before
        state.level[i] = noise
        np.add(state.total, noise, out=state.noisy)

    def means(self, releases: Floats, values: list[Floats]) -> Floats:
        """Return the noiseless value of every noisy prefix sum, given the earlier noisy prefix sums.

        Parameters
        ----------
        releases : array (rounds, dim, runs)
            The prefix sums before padding, `state.noisy` after rounds 1, 2, ...
        values : list of arrays, (dim, runs) or (dim, 1)
            The values added at rounds 1, 2, ...

        Returns
        -------
        array (rounds, dim, runs)
            `releases[t - 1]` minus this is the noise of the node that ends at t.
        """
        means = np.empty_like(releases)
        for t in range(1, len(releases) + 1):
            parent_node = parent(t)
            means[t - 1] = sum(values[parent_node:t], start=releases[parent_node - 1] if parent_node else 0.0)
        return means
