"""Domains of combinatorial problems, as hulls of their vertices, with their linear minimisation oracles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ...mechanisms.draws import Floats

#: The most coordinates of a base polytope, whose function is a table: its sets are numbers of 16 bits. The share of
#: the largest value that is taken for rounding.
MOST_ELEMENTS, ROUNDING = 16, 1e-9


def _check_edges(vertices: int, edges: tuple[tuple[int, int], ...]) -> None:
    if not edges:
        raise ValueError("edges must not be empty")
    for u, v in edges:
        if not (0 <= u < vertices and 0 <= v < vertices) or u == v:
            raise ValueError(f"an edge must join two different vertices of 0..{vertices - 1}, got {(u, v)}")


def _named(linear: Floats) -> tuple[Floats, int]:
    """Return costs of which no two of a run are equal, and the bits of them that are the number of their row.

    Costs that agree but for these last bits count as equal.
    """
    last = (1 << (len(linear) - 1).bit_length()) - 1
    costs = linear + 0.0  # 0 has one sign
    bits = costs.view(np.int64)
    bits &= ~last
    bits |= np.arange(len(linear))[:, None]
    return costs, last


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
        tree_edges = int(self.minimise(np.zeros((self.dim, 1))).sum())
        if tree_edges != self.vertices - 1:
            raise ValueError(f"the graph must be connected, got {self.vertices - tree_edges} components")

    @property
    def dim(self) -> int:
        """The number of edges."""
        return len(self.edges)

    @property
    def diameter(self) -> float:
        """Two trees differ in at most min(n - 1, m - n + 1) edges each way."""
        return math.sqrt(2 * min(self.vertices - 1, self.dim - self.vertices + 1))

    @cached_property
    def _steps(self) -> list[tuple[int, list[int], bool]] | None:
        """The number of each new edge, the edges that become it, and whether that is instead of vertices between them.

        Edges in parallel are one, as dear as the cheapest; vertices with two edges are left out, and the edges in a
        row are one, as dear as the dearest. The new edge has the next number. A step that goes on with a new edge in
        the same way takes its edges over, and leaves none there. A vertex with one edge stands as that edge alone.
        None where that does not reach the end, as in a complete graph of four vertices.
        """
        neighbours: list[dict[int, int]] = [{} for _ in range(self.vertices)]
        steps: list[tuple[list[int], bool]] = []

        def become_one(edges: Iterable[int], vertex: bool) -> int:
            parts: list[int] = []
            for edge in edges:
                previous, reversed_edge = steps[edge - self.dim] if edge >= self.dim else ([], not vertex)
                parts += previous if reversed_edge is vertex else [edge]
                if reversed_edge is vertex:
                    steps[edge - self.dim] = [], vertex
            steps.append((parts, vertex))
            return self.dim + len(steps) - 1

        def join(u: int, v: int, edge: int) -> None:
            neighbours[u][v] = neighbours[v][u] = (
                become_one((neighbours[u][v], edge), False) if v in neighbours[u] else edge
            )

        for edge, (u, v) in enumerate(self.edges):
            join(u, v, edge)
        left = set(range(self.vertices))
        while left:
            left.remove(vertex := min(left, key=lambda v: (len(neighbours[v]), v)))
            if len(incident := neighbours[vertex]) > 2:
                return None
            for u in incident:
                del neighbours[u][vertex]
            if len(incident) == 1:
                steps.append((list(incident.values()), True))
            if len(incident) == 2:
                u, v = incident
                join(u, v, become_one(incident.values(), True))
        return [(number, *step) for number, step in enumerate(steps, start=self.dim) if step[0]]

    def minimise(self, linear: Floats) -> Floats:
        """Return the cheapest spanning trees; costs that agree but for their last bits count as equal."""
        costs, last = _named(linear)
        return self._eliminated(costs, last) if self._steps is None else self._reduced(costs, self._steps)

    def _reduced(self, costs: Floats, steps: list[tuple[int, list[int], bool]]) -> Floats:
        """Return the trees where edges become one: then each is in the tree or not, from the last one back."""
        edges = dict(enumerate(costs))
        for number, parts, vertex in steps:
            edges[number] = reduce(np.maximum if vertex else np.minimum, [edges[i] for i in parts])
        selected: dict[int, NDArray[np.bool_]] = {}
        for number, parts, vertex in reversed(steps):
            if len(parts) == 1:  # the only edge that a vertex has left
                selected[parts[0]] = np.ones(costs.shape[1], bool)
                continue
            cost, row = edges[number], selected[number]
            for i in parts:  # in a row only the dearest may be left out, in parallel only the cheapest be taken
                selected[i] = row | (edges[i] < cost) if vertex else row & (edges[i] == cost)
        return np.array([selected[i] for i in range(len(costs))], dtype=np.float64)

    def _eliminated(self, costs: Floats, last: int) -> Floats:
        """Return the trees where vertices are eliminated, the same one in all runs.

        Of its edges the cheapest is in the tree (the cut property), and each two of them join its neighbours like one
        edge as dear as the dearer of both. Kruskal's greedy rule comes to the same, but would have to sort every run's
        edges.
        """
        neighbours: list[dict[int, Floats]] = [{} for _ in range(self.vertices)]

        def join(u: int, v: int, cost: Floats) -> None:
            neighbours[u][v] = neighbours[v][u] = np.minimum(neighbours[u][v], cost) if v in neighbours[u] else cost

        for (u, v), cost in zip(self.edges, costs, strict=True):
            join(u, v, cost)
        runs, left = costs.shape[1], set(range(self.vertices))
        selected, all_runs = np.zeros(self.dim * runs, bool), np.arange(runs)
        while left:
            left.remove(vertex := min(left, key=lambda v: (len(neighbours[v]), v)))
            if incident := neighbours[vertex]:
                edge = reduce(np.minimum, incident.values()).view(np.int64) & last
                selected[edge * runs + all_runs] = True
            for u in incident:
                del neighbours[u][vertex]
            for u, v in itertools.combinations(incident, 2):
                join(u, v, np.maximum(incident[u], incident[v]))
        return selected.reshape(costs.shape).astype(float)


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
        if not self._ways:
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
    def _ways(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """The vertices on paths, from the source on, each with its outgoing edges on paths, as (edge, head)."""
        leading = {self.sink}
        for v in reversed(self._order):
            if any(head in leading for _, head in self._out[v]):
                leading.add(v)
        edges_by_vertex, reached = [], {self.source} & leading
        for v in self._order:
            if v in reached and v != self.sink:
                edges_by_vertex.append((v, [(edge, head) for edge, head in self._out[v] if head in leading]))
                reached |= {head for _, head in edges_by_vertex[-1][1]}
        return edges_by_vertex

    @cached_property
    def diameter(self) -> float:
        """Two paths differ in at most twice the longest path's edges, and in at most all edges."""
        longest = -self._distances(-np.ones((self.dim, 1)))[0][self.source][0]
        return math.sqrt(min(2 * float(longest), self.dim))

    def _distances(self, linear: Floats) -> tuple[dict[int, Floats], dict[int, Floats]]:
        """Return the least cost to the sink of every vertex, and of every edge and what is behind it: (runs,) each."""
        distance: dict[int, Floats] = {}
        through: dict[int, Floats] = {}
        for v, out in reversed(self._ways):
            for edge, head in out:
                through[edge] = linear[edge] if head == self.sink else linear[edge] + distance[head]
            distance[v] = reduce(np.minimum, [through[edge] for edge, _ in out])
        return distance, through

    def minimise(self, linear: Floats) -> Floats:
        """Return the shortest paths by dynamic programming, all runs at once; costs may be negative."""
        distance, through = self._distances(linear)
        no = np.zeros(linear.shape[1], bool)
        runs_at, selected = {self.source: ~no}, [no] * self.dim
        for v, out in self._ways:
            runs_here = runs_at[v]
            for edge, head in out:
                selected[edge] = runs_here  # those still there have no other way than the last
                if edge != out[-1][0]:
                    selected[edge] = runs_here & (through[edge] == distance[v])
                    runs_here = runs_here ^ selected[edge]
                runs_at[head] = runs_at[head] | selected[edge] if head in runs_at else selected[edge]
        return np.array(selected, dtype=np.float64)


@dataclass(frozen=True)
class BasePolytope:
    """The base polytope of a submodular function f: the x with x(S) <= f(S) on every set S, and equality on all.

    Its vertices are found greedily [1]_: in some order of the coordinates, each is what it adds to those before it.

    Parameters
    ----------
    values : tuple of float
        f of all 2^dim sets; the set's number is the sum of 2^i over its coordinates i. Of the empty set it is 0.

    Raises
    ------
    ValueError
        If there are not so many values, one is not finite, the first is not 0, or f is not submodular.

    References
    ----------
    .. [1] J. Edmonds. Submodular functions, matroids, and certain polyhedra. Combinatorial Structures and Their
       Applications, 1970.
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        count = len(self.values)
        if count < 2 or count & (count - 1) or self.dim > MOST_ELEMENTS:
            raise must_be("values", f"those of all 2^dim sets, dim from 1 to {MOST_ELEMENTS}", count)
        f = self._table
        if not np.isfinite(f).all():
            raise must_be("values", "finite", f[~np.isfinite(f)][0])
        if f[0] != 0:
            raise ValueError(f"values must begin with 0, that of the empty set, got {f[0]}")
        sets, slack = np.arange(count), ROUNDING * np.abs(f).max()
        for i, j in itertools.combinations(range(self.dim), 2):
            without = sets[sets & (1 << i | 1 << j) == 0]
            excess = f[without | 1 << i | 1 << j] - f[without | 1 << j] - f[without | 1 << i] + f[without]
            if excess.max() > slack:
                members = [k for k in range(self.dim) if without[excess.argmax()] >> k & 1]
                larger = sorted([*members, j])
                raise ValueError(f"values must be submodular, but {i} adds more to {larger} than to {members}")

    @cached_property
    def _table(self) -> Floats:
        return np.array(self.values, dtype=np.float64)

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.values).bit_length() - 1

    @cached_property
    def _gains(self) -> Floats:
        """What each coordinate adds to each set: (dim, 2^dim)."""
        f, sets = self._table, np.arange(len(self.values))
        return np.array([f[sets | 1 << i] - f for i in range(self.dim)])

    @cached_property
    def diameter(self) -> float:
        """A coordinate is at most what it adds to nothing, and at least what it adds to all others."""
        f, single = self._table, 1 << np.arange(self.dim)
        spread: Floats = f[single] - (f[-1] - f[len(f) - 1 - single])
        return math.sqrt(float(np.sum(np.square(spread))))

    def minimise(self, linear: Floats) -> Floats:
        """Return the greedy vertices, the cheapest coordinate first."""
        costs, _ = _named(linear)
        sets = np.min_scalar_type(len(self.values) - 1)
        itself = (1 << np.arange(self.dim)).astype(sets)[:, None]
        cheaper = np.zeros(linear.shape, sets)  # the set of those before each coordinate
        for i in range(self.dim - 1):
            first = (costs[i] < costs[i + 1 :]).view(np.uint8)
            cheaper[i + 1 :] |= first * itself[i]
            cheaper[i] |= np.bitwise_or.reduce(first * itself[i + 1 :]) ^ itself[i + 1 :].sum(dtype=sets)
        rows = np.arange(0, self._gains.size, len(self.values))[:, None]
        vertices: Floats = self._gains.take(cheaper + rows)
        return vertices
