"""Domains by what a learner may ask of them: a linear minimisation oracle, or a Euclidean projection."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ..checks import check_arms, check_positive

Bools = NDArray[np.bool_]

#: Largest set on which submodularity is checked by enumeration, and largest assignment minimised by enumeration.
SMALL_SET, SMALL_ASSIGNMENT = 10, 5


class LinearOracle(Protocol):
    """A convex domain that can minimise linear functions."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    @property
    def diameter(self) -> float:
        """An upper bound on the L2 distance of two points."""

    def minimise(self, linear: Floats) -> Floats:
        """Return a point of the domain with the least <linear, x>, for every run: (dim, runs)."""


class Projection(Protocol):
    """A convex domain that can project."""

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    @property
    def outer_radius(self) -> float:
        """The largest L2 norm of a point."""

    @property
    def inner_radius(self) -> float:
        """The radius of the largest L2 ball around 0 inside; 0 if there is none."""

    def project(self, x: Floats) -> Floats:
        """Return the nearest points of the domain, (dim, runs)."""


@dataclass(frozen=True)
class _Ball:
    """A ball around 0 of a norm, with its dimension and radius."""

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_arms(self.dim)
        check_positive("radius", self.radius)


class L1Ball(_Ball):
    """The cross-polytope, ||x||_1 <= radius."""

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2 * self.radius

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertex against the largest coordinate."""
        runs = np.arange(linear.shape[1])
        largest = np.abs(linear).argmax(axis=0)
        x = np.zeros(linear.shape)
        x[largest, runs] = -np.copysign(self.radius, linear[largest, runs])
        return x


class L2Ball(_Ball):
    """The Euclidean ball, ||x||_2 <= radius."""

    @property
    def diameter(self) -> float:
        """Twice the radius."""
        return 2 * self.radius

    @property
    def outer_radius(self) -> float:
        """The radius."""
        return self.radius

    @property
    def inner_radius(self) -> float:
        """The radius."""
        return self.radius

    def minimise(self, linear: Floats) -> Floats:
        """Return the point opposite to `linear`; where that is 0, the one opposite to the first axis."""
        norms = np.sqrt(np.square(linear).sum(axis=0))
        point: Floats = linear * (-self.radius / np.where(norms > 0, norms, 1.0))
        point[0] = np.where(norms > 0, point[0], -self.radius)
        return point

    def project(self, x: Floats) -> Floats:
        """Return x, scaled to the radius where it is longer."""
        if self.dim == 1:
            return np.clip(x, -self.radius, self.radius)  # exact at the ends
        norms = np.sqrt(np.square(x).sum(axis=0))
        nearest: Floats = x * (self.radius / np.maximum(norms, self.radius))
        return nearest


class LInfBall(_Ball):
    """The cube, ||x||_inf <= radius."""

    @property
    def diameter(self) -> float:
        """Its diagonal."""
        return 2 * self.radius * math.sqrt(self.dim)

    @property
    def outer_radius(self) -> float:
        """Half the diagonal."""
        return self.radius * math.sqrt(self.dim)

    @property
    def inner_radius(self) -> float:
        """The radius."""
        return self.radius

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertex of opposite signs."""
        return -np.copysign(self.radius, linear)

    def project(self, x: Floats) -> Floats:
        """Return x with every coordinate clipped."""
        return np.clip(x, -self.radius, self.radius)


@dataclass(frozen=True)
class Simplex:
    """The probability simplex."""

    dim: int

    def __post_init__(self) -> None:
        check_arms(self.dim)

    @property
    def diameter(self) -> float:
        """The square root of 2 (0 for one point)."""
        return math.sqrt(2) if self.dim > 1 else 0.0

    @property
    def outer_radius(self) -> float:
        """1."""
        return 1.0

    @property
    def inner_radius(self) -> float:
        """0: no ball around the origin fits."""
        return 0.0

    def minimise(self, linear: Floats) -> Floats:
        """Return the vertex of the least coordinate."""
        x = np.zeros(linear.shape)
        x[linear.argmin(axis=0), np.arange(linear.shape[1])] = 1.0
        return x

    def project(self, x: Floats) -> Floats:
        """Return max(x - tau, 0) with tau such that it sums to 1 (Held, Wolfe & Crowder 1974)."""
        descending = -np.sort(-x, axis=0)
        count = np.arange(1, self.dim + 1)[:, None]
        tau = (descending.cumsum(axis=0) - 1) / count
        support = (descending > tau).sum(axis=0)
        nearest: Floats = np.maximum(x - tau[support - 1, np.arange(x.shape[1])], 0.0)
        return nearest


def _check_edges(vertices: int, edges: tuple[tuple[int, int], ...]) -> None:
    if not edges:
        raise ValueError("edges must not be empty")
    for u, v in edges:
        if not (0 <= u < vertices and 0 <= v < vertices) or u == v:
            raise ValueError(f"an edge must join two different vertices of 0..{vertices - 1}, got {(u, v)}")


@dataclass(frozen=True)
class SpanningTrees:
    """The convex hull of the spanning trees of a graph, one coordinate per edge: a matroid base polytope.

    Parameters
    ----------
    vertices : int
    edges : tuple of pairs
        Ends in 0..vertices - 1; parallel edges are allowed.

    Raises
    ------
    ValueError
        If the graph is disconnected or an edge is none.
    """

    vertices: int
    edges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        _check_edges(self.vertices, self.edges)
        found = int(self.minimise(np.zeros((self.dim, 1))).sum())
        if found != self.vertices - 1:
            raise ValueError(f"the graph must be connected, got {self.vertices - found} components")

    @property
    def dim(self) -> int:
        """The number of edges."""
        return len(self.edges)

    @property
    def diameter(self) -> float:
        """Two trees differ in at most min(n - 1, m - n + 1) edges each way."""
        return math.sqrt(2 * min(self.vertices - 1, self.dim - self.vertices + 1))

    def minimise(self, linear: Floats) -> Floats:
        """Return the cheapest spanning trees by Kruskal's greedy rule, all runs in step."""
        ends = np.array(self.edges)
        order = linear.argsort(axis=0, kind="stable")
        runs = np.arange(linear.shape[1])
        component = np.repeat(np.arange(self.vertices)[:, None], runs.size, axis=1)
        x = np.zeros(linear.shape)
        for edge in order:
            a, b = component[ends[edge, 0], runs], component[ends[edge, 1], runs]
            x[edge, runs] = a != b
            component = np.where(component == b, a, component)
        return x


@dataclass(frozen=True)
class SubmodularBase:
    """The base polytope of a submodular function F: x(S) <= F(S) for every S, with equality for the whole set.

    Parameters
    ----------
    dim : int
        The size of the ground set.
    function : callable
        From membership (dim, runs), booleans, to F of each column, (runs,); F of the empty set is 0.

    Raises
    ------
    ValueError
        If F(empty) is not 0, or F is seen not to be submodular (checked up to 10 elements).
    """

    dim: int
    function: Callable[[Bools], Floats]

    def __post_init__(self) -> None:
        check_arms(self.dim)
        empty = float(self.function(np.zeros((self.dim, 1), bool))[0])
        if empty != 0:
            raise ValueError(f"the set function must be 0 on the empty set, got {empty:g}")
        if self.dim <= SMALL_SET:
            self._check_submodular()

    def _check_submodular(self) -> None:
        sets = np.array(list(itertools.product([False, True], repeat=self.dim))).T
        values = self.function(sets)
        weight = 1 << np.arange(self.dim)[::-1]  # column number of a set
        index = weight @ sets
        for i, j in itertools.combinations(range(self.dim), 2):
            without = index[~sets[i] & ~sets[j]]
            both = without + weight[i] + weight[j]
            gap = values[without + weight[i]] + values[without + weight[j]] - values[both] - values[without]
            if (gap < -1e-9 * (1 + np.abs(values).max())).any():
                raise ValueError(f"the set function must be submodular, it is not at elements {i} and {j}")

    @cached_property
    def diameter(self) -> float:
        """The diagonal of the box F(V) - F(V - i) <= x_i <= F({i})."""
        single = np.eye(self.dim, dtype=bool)
        high = self.function(single)
        whole = self.function(np.ones((self.dim, 1), bool))
        low = whole - self.function(~single)
        return float(np.sqrt(np.square(high - low).sum()))

    def minimise(self, linear: Floats) -> Floats:
        """Return the greedy vertices: marginal values in increasing order of cost (Edmonds 1970)."""
        order = linear.argsort(axis=0, kind="stable")
        runs = np.arange(linear.shape[1])
        chosen = np.zeros(linear.shape, bool)
        x = np.zeros(linear.shape)
        before = np.zeros(runs.size)
        for element in order:
            chosen[element, runs] = True
            after = self.function(chosen)
            x[element, runs] = after - before
            before = after
        return x


@dataclass(frozen=True)
class Paths:
    """The flow polytope of an acyclic graph: the hull of the paths from source to sink, a coordinate per edge.

    Parameters
    ----------
    vertices : int
    edges : tuple of pairs
        (tail, head), both in 0..vertices - 1.
    source, sink : int
        By default the first and the last vertex.

    Raises
    ------
    ValueError
        If the graph has a cycle, or no path joins source and sink.
    """

    vertices: int
    edges: tuple[tuple[int, int], ...]
    source: int = 0
    sink: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sink", self.sink % self.vertices)
        _check_edges(self.vertices, self.edges)
        if not 0 <= self.source < self.vertices or self.source == self.sink:
            raise ValueError(f"source and sink must be two vertices, got {self.source} and {self.sink}")
        order = self._order
        reached = {self.source}
        for v in order:
            if v in reached:
                reached |= {head for _, head in self._out[v]}
        if self.sink not in reached:
            raise ValueError(f"no path leads from {self.source} to {self.sink}")

    @property
    def dim(self) -> int:
        """The number of edges."""
        return len(self.edges)

    @cached_property
    def _out(self) -> list[list[tuple[int, int]]]:
        """For every vertex, its outgoing edges as (edge, head)."""
        out: list[list[tuple[int, int]]] = [[] for _ in range(self.vertices)]
        for edge, (tail, head) in enumerate(self.edges):
            out[tail].append((edge, head))
        return out

    @cached_property
    def _order(self) -> list[int]:
        """The vertices in topological order (Kahn 1962)."""
        indegree = [0] * self.vertices
        for _, head in self.edges:
            indegree[head] += 1
        order = [v for v in range(self.vertices) if indegree[v] == 0]
        for v in order:
            for _, head in self._out[v]:
                indegree[head] -= 1
                if indegree[head] == 0:
                    order.append(head)
        if len(order) < self.vertices:
            cyclic = [v for v in range(self.vertices) if indegree[v] > 0]
            raise ValueError(f"the graph must be acyclic, a cycle passes among vertices {cyclic}")
        return order

    @cached_property
    def diameter(self) -> float:
        """Two paths differ in at most twice the longest path's edges, and in at most all edges."""
        longest = -self._distances(-np.ones((self.dim, 1)))[self.source, 0]
        return math.sqrt(min(2 * float(longest), self.dim))

    def _distances(self, linear: Floats) -> Floats:
        """Return the least cost from every vertex to the sink, (vertices, runs)."""
        distance = np.full((self.vertices, linear.shape[1]), np.inf)
        distance[self.sink] = 0.0
        for v in reversed(self._order):
            if v != self.sink:
                for edge, head in self._out[v]:
                    np.minimum(distance[v], linear[edge] + distance[head], out=distance[v])
        return distance

    def minimise(self, linear: Floats) -> Floats:
        """Return the shortest paths by dynamic programming, all runs at once; costs may be negative."""
        distance = self._distances(linear)
        at = np.zeros((self.vertices, linear.shape[1]), bool)
        at[self.source] = True
        x = np.zeros(linear.shape)
        for v in self._order:
            if v == self.sink:
                break
            for edge, head in self._out[v]:
                taken = at[v] & (linear[edge] + distance[head] == distance[v])
                x[edge] = taken
                at[head] |= taken
                at[v] &= ~taken
        return x


@dataclass(frozen=True)
class Assignments:
    """The Birkhoff polytope: the convex hull of permutation matrices of size n, rows laid end to end (dim n^2)."""

    size: int

    def __post_init__(self) -> None:
        check_arms(self.size)

    @property
    def dim(self) -> int:
        """n^2."""
        return self.size**2

    @property
    def diameter(self) -> float:
        """Two permutations differ in at most n entries each way."""
        return math.sqrt(2 * self.size) if self.size > 1 else 0.0

    @cached_property
    def _permutations(self) -> Floats:
        """All permutation matrices, (n!, dim)."""
        eye = np.eye(self.size)
        return np.array([eye[list(p)].ravel() for p in itertools.permutations(range(self.size))])

    def minimise(self, linear: Floats) -> Floats:
        """Return the cheapest assignments: by enumeration up to n = 5, else run by run with SciPy."""
        if self.size <= SMALL_ASSIGNMENT:
            best = (self._permutations @ linear).argmin(axis=0)
            return np.ascontiguousarray(self._permutations[best].T)
        from scipy.optimize import linear_sum_assignment

        x = np.zeros(linear.shape)
        for run in range(linear.shape[1]):
            rows, columns = linear_sum_assignment(linear[:, run].reshape(self.size, self.size))
            x[rows * self.size + columns, run] = 1.0
        return x
