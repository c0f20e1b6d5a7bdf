"""The Birkhoff polytope, the hull of the assignments, with its linear minimisation oracle."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...mechanisms.draws import Floats
from ..checks import check_arms

#: Largest assignments minimised by enumeration, and by dynamic programming.
SMALL_ASSIGNMENT, MIDDLE_ASSIGNMENT = 5, 8


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
        """Return the cheapest assignments: up to n = 8 all runs at once, else run by run with SciPy."""
        if self.size <= SMALL_ASSIGNMENT:
            best = (self._permutations @ linear).argmin(axis=0)
            return np.ascontiguousarray(self._permutations[best].T)
        if self.size <= MIDDLE_ASSIGNMENT:
            return self._by_sets(linear)
        from scipy.optimize import linear_sum_assignment

        x = np.zeros(linear.shape)
        for run in range(linear.shape[1]):
            rows, columns = linear_sum_assignment(linear[:, run].reshape(self.size, self.size))
            x[rows * self.size + columns, run] = 1.0
        return x

    def _by_sets(self, linear: Floats) -> Floats:
        """Return the cheapest assignments: the first rows go to a set of columns, one row more to one column more."""
        n, (_, runs) = self.size, linear.shape
        costs, everyone = linear.reshape(n, n, runs), np.arange(runs)
        min_costs = np.full((2**n, runs), math.inf)
        min_costs[0] = 0.0
        for columns in range(2**n - 1):
            for j in range(n):
                if not columns >> j & 1:
                    candidate = min_costs[columns | 1 << j]
                    np.minimum(candidate, min_costs[columns] + costs[columns.bit_count(), j], out=candidate)
        x, columns_left = np.zeros((n, n, runs)), np.full(runs, 2**n - 1)
        for i in reversed(range(n)):
            best, seated = min_costs[columns_left, everyone], np.zeros(runs, bool)
            for j in range(n):
                without = columns_left & ~(1 << j)
                is_best = min_costs[without, everyone] + costs[i, j] == best
                is_best &= (without != columns_left) & ~seated
                seated |= is_best
                columns_left = np.where(is_best, without, columns_left)
                x[i, j] = is_best
        return x.reshape(linear.shape)
