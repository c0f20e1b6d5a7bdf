"""Oracles against enumeration, projections against their optimality condition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from overclaim.learners.problems.assignments import Assignments
from overclaim.learners.problems.combinatorial import BasePolytope, Paths, SpanningTrees
from overclaim.learners.problems.domains import L1Ball, L2Ball, LInfBall, ProbabilitySimplex, sorted_down
from overclaim.tests.support.refusals import refusals

EDGES = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3), (0, 1))
DAG = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (0, 4), (5, 4), (1, 5))


#: Of these graphs two edges become one until none is left: with a chord and edges in parallel, a cycle, a tree.
SMALLER = (
    ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 0), (2, 3)),
    ((0, 1), (1, 2), (2, 0)),
    ((2, 0), (1, 2), (2, 3)),
)


def trees(edges=EDGES, vertices=4):
    for chosen in itertools.combinations(range(len(edges)), vertices - 1):
        component = list(range(vertices))
        for edge in chosen:
            a, b = (component[v] for v in edges[edge])
            component = [a if c == b else c for c in component]
        if len(set(component)) == 1:
            yield np.isin(np.arange(len(edges)), chosen).astype(float)


def paths(at=0, used=()):
    if at == 4:
        yield np.isin(np.arange(len(DAG)), used).astype(float)
    for edge, (tail, head) in enumerate(DAG):
        if tail == at:
            yield from paths(head, (*used, edge))


def permutations(n):
    return [np.eye(n)[list(p)].ravel() for p in itertools.permutations(range(n))]


def covered(owned):
    """How much of some things the sets own, by their numbers: a submodular function."""
    of_set = [set().union(*(own for i, own in enumerate(owned) if s >> i & 1)) for s in range(2 ** len(owned))]
    return tuple(float(sum(1.5**thing for thing in one)) for one in of_set)


def greedy(values):
    """The vertices by every order, one coordinate after another."""
    for order in itertools.permutations(range(len(values).bit_length() - 1)):
        before, x = 0, np.empty(len(order))
        for i in order:
            x[i] = values[before | 1 << i] - values[before]
            before |= 1 << i
        yield x


#: What three or four own of some things, a matroid's rank, ranks from 2 to 0, and a function that falls.
SUBMODULAR = [
    covered([{0, 1}, {1, 2, 3}, {3}, {0, 4}]),
    covered([{0}, {1}, {0, 1}]),
    tuple(float(min(2, s.bit_count())) for s in range(2**4)),
    tuple(float((0, 2, 3, 3)[s.bit_count()]) for s in range(2**3)),
    (0.0, -1.0, 2.0, -0.5),
]

POLYTOPES = [
    *((BasePolytope(values), list(greedy(values))) for values in SUBMODULAR),
    (L1Ball(3, 2.0), [s * 2.0 * e for e in np.eye(3) for s in (1, -1)]),
    (LInfBall(3, 2.0), [2.0 * np.array(s) for s in itertools.product((1, -1), repeat=3)]),
    (ProbabilitySimplex(4), list(np.eye(4))),
    (SpanningTrees(4, EDGES), list(trees())),
    (SpanningTrees(4, SMALLER[0]), list(trees(SMALLER[0]))),
    (SpanningTrees(3, SMALLER[1]), list(trees(SMALLER[1], 3))),
    (SpanningTrees(4, SMALLER[2]), list(trees(SMALLER[2]))),
    (Paths(6, DAG, sink=4), list(paths())),
    # Behind the sink, and from vertex 3, no way leads there.
    (Paths(4, ((2, 3), (0, 1), (1, 3), (1, 2), (0, 2)), sink=2), [np.array([0, 1, 0, 1, 0]), np.eye(5)[4]]),
    (Assignments(3), permutations(3)),
    (Assignments(6), permutations(6)),
]


@pytest.mark.few(5)
@pytest.mark.parametrize(("oracle", "vertices"), POLYTOPES, ids=lambda v: type(v).__name__)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), whole=st.booleans())
def test_minimise_is_a_best_vertex(oracle, vertices, seed, whole):
    rng = np.random.default_rng(seed)
    linear = rng.normal(size=(oracle.dim, 5))
    linear = np.round(linear) if whole else linear  # ties
    x, vertices = oracle.minimise(linear), np.array(vertices)
    np.testing.assert_allclose((linear * x).sum(axis=0), (vertices @ linear).min(axis=0), atol=1e-9)
    for run in range(5):
        assert np.abs(vertices - x[:, run]).max(axis=1).min() < 1e-9


@pytest.mark.parametrize("size", [2, 5, 6, 9])
def test_assignments_are_the_same_by_every_way(size):
    """By enumeration, by sets of columns, and run by run."""
    linear = np.random.default_rng(5413).normal(size=(size**2, 40))
    assignments = Assignments(size)
    np.testing.assert_array_equal(assignments._by_sets(linear), assignments.minimise(linear))
    for run, x in enumerate(assignments.minimise(linear).T):
        costs = linear[:, run].reshape(size, size)
        np.testing.assert_array_equal(x.reshape(size, size).argmax(axis=1), linear_sum_assignment(costs)[1])


def test_the_base_polytope_of_a_graphs_rank_is_that_of_its_spanning_trees():
    """The rank of a set of edges: how many of them some forest has."""
    every = [frozenset(np.flatnonzero(tree).tolist()) for tree in trees()]
    sets = [frozenset(i for i in range(len(EDGES)) if s >> i & 1) for s in range(2 ** len(EDGES))]
    rank = BasePolytope(tuple(float(max(len(one & tree) for tree in every)) for one in sets))
    linear = np.random.default_rng(0).integers(0, 4, (len(EDGES), 500)).astype(float)
    np.testing.assert_array_equal(rank.minimise(linear), SpanningTrees(4, EDGES).minimise(linear))


@pytest.mark.parametrize("items", [8, 9])
def test_rankings_have_the_cheapest_item_first(items):
    """Sets of nine are numbers of more than eight bits."""
    ranks = np.linspace(1.0, 0.0, items)
    oracle = BasePolytope(tuple(float(ranks[: s.bit_count()].sum()) for s in range(2**items)))
    linear = np.random.default_rng(0).normal(size=(items, 200))
    np.testing.assert_allclose(oracle.minimise(linear), ranks[linear.argsort(axis=0).argsort(axis=0)], atol=1e-12)


@pytest.mark.parametrize(
    "oracle",
    [BasePolytope(SUBMODULAR[3]), SpanningTrees(3, SMALLER[1]), L1Ball(3), LInfBall(3)],
    ids=lambda oracle: type(oracle).__name__,
)
def test_the_sign_of_zero_decides_nothing(oracle):
    linear = np.zeros((3, 8))
    signed = np.array([*itertools.product((0.0, -0.0), repeat=3)]).T
    np.testing.assert_array_equal(oracle.minimise(signed), oracle.minimise(linear))


@pytest.mark.parametrize("edges", SMALLER, ids=len)
def test_edges_in_twos_come_to_the_trees_of_vertices_one_by_one(edges):
    """The same trees, also where costs are equal; a complete graph of four vertices does not shrink by twos."""
    oracle = SpanningTrees(max(map(max, edges)) + 1, edges)
    linear = np.random.default_rng(0).integers(0, 3, (oracle.dim, 200)).astype(float)
    costs = (linear.view(np.int64) & ~7 | np.arange(oracle.dim)[:, None]).view(np.float64)
    np.testing.assert_array_equal(oracle._reduced(costs, oracle._steps), oracle._eliminated(costs, 7))
    assert SpanningTrees(4, EDGES)._steps is None


@pytest.mark.parametrize(("oracle", "vertices"), POLYTOPES[:-1], ids=lambda v: type(v).__name__)
def test_diameter_bounds_all_distances(oracle, vertices):
    largest = max((math.dist(a, b) for a, b in itertools.combinations(vertices, 2)), default=0.0)
    assert largest <= oracle.diameter + 1e-9


@given(seed=st.integers(0, 2**32 - 1))
def test_l2_ball_minimises(seed):
    linear = np.random.default_rng(seed).normal(size=(3, 4))
    linear[:, 0] = 0.0
    x = L2Ball(3, 2.0).minimise(linear)
    np.testing.assert_allclose(np.sqrt(np.square(x).sum(axis=0)), 2.0)
    np.testing.assert_allclose((linear * x).sum(axis=0), -2.0 * np.sqrt(np.square(linear).sum(axis=0)))


@pytest.mark.parametrize("domain", [L2Ball(3, 0.7), L2Ball(1), LInfBall(3, 0.7), ProbabilitySimplex(3)], ids=str)
@given(seed=st.integers(0, 2**32 - 1))
def test_projection_is_optimal(domain, seed):
    """x is the projection of y iff <y - x, z - x> <= 0 for all z: checked at the maximiser of the left side."""
    y = 2 * np.random.default_rng(seed).normal(size=(domain.dim, 6))
    x = domain.project(y)
    z = domain.minimise(-(y - x))
    assert ((y - x) * (z - x)).sum(axis=0).max() <= 1e-9
    np.testing.assert_allclose(domain.project(x), x, atol=1e-12)
    assert np.sqrt(np.square(x).sum(axis=0)).max() <= domain.outer_radius + 1e-12


test_impossible_domains_are_named = refusals(
    (lambda: BasePolytope((0.0, 1.0, 1.0)), r"all 2\^dim sets, dim from 1 to 16, got 3"),
    (lambda: BasePolytope((0.0,) * 2**17), r"dim from 1 to 16, got 131072"),
    (lambda: BasePolytope((0.0,)), r"dim from 1 to 16, got 1$"),
    (lambda: BasePolytope((1.0, 1.0)), "begin with 0, that of the empty set, got 1.0"),
    (lambda: BasePolytope((0.0, math.inf)), "finite, got inf"),
    (lambda: BasePolytope((0.0,) * 6 + (1.0, 2.0)), r"submodular, but 0 adds more to \[1, 2\] than to \[2\]"),
    (lambda: SpanningTrees(4, ((0, 1), (2, 3))), "connected, got 2 components"),
    (lambda: SpanningTrees(2, ((0, 2),)), r"0\.\.1, got \(0, 2\)"),
    (lambda: SpanningTrees(2, ()), "edges must not be empty"),
    (lambda: Paths(3, ((0, 1), (1, 2), (2, 1))), r"acyclic.*\[1, 2\]"),
    (lambda: Paths(3, ((0, 1), (2, 1))), "no path leads from 0 to 2"),
    (lambda: Paths(2, ((0, 1),), source=1), "source and sink"),
    (lambda: L2Ball(0), "arms must be"),
    (lambda: L1Ball(2, -1.0), "radius must be positive"),
)


@pytest.mark.parametrize("dim", range(1, 19))
def test_the_network_sorts(dim):
    """Any network that sorts all columns of zeros and ones sorts everything (Knuth); with ties, and in between."""
    columns = np.indices((2,) * min(dim, 12)).reshape(min(dim, 12), -1)
    zeros_and_ones = np.repeat(columns, -(-dim // len(columns)), axis=0)[:dim].astype(float)
    for x in (zeros_and_ones, np.random.default_rng(dim).normal(size=(dim, 500))):
        before = x.copy()
        np.testing.assert_array_equal(sorted_down(x), -np.sort(-x, axis=0))
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 17])
def test_the_simplex_is_projected_onto_as_by_its_support(dim):
    """Against Held, Wolfe & Crowder's threshold, that of the largest support: to the last bit."""
    rng = np.random.default_rng(dim)
    x = rng.normal(size=(dim, 2000)) * rng.choice([0.01, 1.0, 10.0], size=2000)
    descending = -np.sort(-x, axis=0)
    tau = (descending.cumsum(axis=0) - 1) / np.arange(1, dim + 1)[:, None]
    support = (descending > tau).sum(axis=0)
    expected = np.maximum(x - tau[support - 1, np.arange(x.shape[1])], 0.0)
    np.testing.assert_array_equal(ProbabilitySimplex(dim).project(x), expected)
