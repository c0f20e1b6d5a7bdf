"""The least noise that explains a difference: z with A z = d, least in |z / sigma|_2 or in |z / b|_1.

What is released is A x noise + shift, with A and the scales of the noise the same for both inputs, and d is the
difference of the shifts. Noise and noise moved by z then give the same, so the release is as private as noise that
moves by z. For normal noise the least |z / sigma|_2 is mu exactly: it is that of N(0, A S A') moved by d. For Laplace
noise each |z / b|_1 bounds epsilon, at every point of the release; the least is found by linear programming.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....mechanisms.draws import Floats, Law
from ....mechanisms.noise import Laplace

#: Factors of words differ by rounding up to this share; and what is left of a difference by this one of the largest
#: number beside it, where it was computed of numbers that no form has seen.
ROUNDED, _UNSEEN = 1e-9, 1e-12
#: So many units in the last place are rounding: as a share of a number.
ULPS = 64 * float(np.finfo(float).eps)
#: Rounding that is no more than this share of the noise beside it says nothing of it.
_SMALL_ROUNDING = 1e-6
#: Singular values below this share of the largest are 0 but for rounding; and so are parts of a solution.
_RANK, _DUST = 1e-13, 1e-11
#: The most numbers of a matrix that is solved.
_MOST_CELLS = 2**21


@dataclass(frozen=True)
class Row:
    """A released number: factors of noise variables, and its shift for both inputs.

    Attributes
    ----------
    event : int
        Which event of the tape released it.
    number : int
        Its number in what was shown, from 1; 0 where it was released inside.
    largest : float
        The largest number that it was computed of.
    """

    factors: dict[int, float]
    left: float
    right: float
    event: int = 0
    number: int = 0
    largest: float = 0.0

    @property
    def size(self) -> float:
        """The size of the shifts, and of what they were computed of."""
        return max(abs(self.left), abs(self.right), self.largest)

    @property
    def moved(self) -> float:
        """By how much the shift moves: 0 where both are the same, numbers or not."""
        is_same = self.left == self.right or (math.isnan(self.left) and math.isnan(self.right))
        gap = 0.0 if is_same else self.right - self.left
        return math.inf if math.isnan(gap) else gap


@dataclass(frozen=True)
class Explained:
    """What noise explains rows: by how much every variable moves, and a level from which it is counted.

    Attributes
    ----------
    level, moved : dict of float
        Of every variable: it is noise for `level` on the left and for `level + moved` on the right.
    unexplained : int or None
        The place of the first row that no noise explains together with those before it.
    rest : float
        What is left over of its difference.
    rounded : float or None
        The largest number beside noise, where its rounding may be what no noise explains: that is neither said nor
        ruled out.
    """

    level: dict[int, float]
    moved: dict[int, float]
    unexplained: int | None = None
    rest: float = 0.0
    rounded: float | None = None


def explained(rows: Sequence[Row], laws: Sequence[Law], operations: int = 1) -> Explained:
    """Return the least noise that explains rows.

    Parameters
    ----------
    laws : sequence of Law
        Those of the variables.
    operations : int
        How many sums and products rounded: each by no more than `ULPS` of the largest number.
    """
    level: dict[int, float] = {}
    moves: dict[int, float] = {}
    first: tuple[int, float] | None = None
    rounded: list[float] = []
    largest = max((row.size for row in rows if math.isfinite(row.size)), default=0.0)
    for part in _parts(rows):
        part_rows = [rows[place] for place in part]
        if not all(map(math.isfinite, (number for row in part_rows for number in (row.size, *row.factors.values())))):
            moves.update(_infinite(part_rows))
            continue
        if len(part_rows) == len(part_rows[0].factors) == 1 and all(part_rows[0].factors.values()):
            ((key, factor),) = part_rows[0].factors.items()
            level[key], moves[key] = part_rows[0].left / factor, part_rows[0].moved / factor
            continue
        system = _Part.of(part_rows, laws, operations, largest)
        failure = system.first_unexplained()
        if failure is not None:
            candidate = (part[failure[0]], failure[1])
            first = candidate if first is None or candidate < first else first
            continue
        if system.is_rounded:
            rounded.append(system.size)
        level.update(zip(system.keys, system.solved(np.array([row.left for row in part_rows])).tolist(), strict=True))
        moves.update(zip(system.keys, system.least().tolist(), strict=True))
    place, rest = first or (None, 0.0)
    return Explained(level, moves, place, rest, max(rounded, default=None))


def in_span(rows: Sequence[Row], spanning: Sequence[Row]) -> bool:
    """Tell whether rows are combinations of others."""
    all_rows = [*spanning, *rows]
    keys = sorted({key for row in all_rows for key in row.factors})
    if not keys:
        return True
    if len(all_rows) * len(keys) > _MOST_CELLS:
        return False
    matrix = _matrix(all_rows, keys, np.ones(len(keys)))
    ranks = [_Factored.of(part).values.size for part in (matrix, matrix[: len(spanning)])]
    return ranks[0] == ranks[1]


def combination(row: Row, spanning: Sequence[Row]) -> dict[int, float]:
    """Return factors of other rows, few of them, that make up the noise of a row; none where nothing does."""
    keys = sorted({key for each_row in (row, *spanning) for key in each_row.factors})
    if not spanning or len(spanning) * len(keys) > _MOST_CELLS:
        return {}
    columns, right = (_factors(some_rows, keys).T for some_rows in (spanning, [row]))
    factors = _least_sum(_Factored.of(columns), right[:, 0])
    if np.abs(columns @ factors - right[:, 0]).max(initial=0.0) > ROUNDED * np.abs(right).max(initial=0.0):
        return {}
    return {place: factor for place, factor in enumerate(_cleaned(factors).tolist()) if factor}


def _parts(rows: Sequence[Row]) -> list[list[int]]:
    """Return the places of rows that share variables, directly or by others."""
    parent: dict[int, int] = {}

    def root(key: int) -> int:
        while parent.setdefault(key, key) != key:
            parent[key] = key = parent[parent[key]]
        return key

    for row in rows:
        first, *more_keys = row.factors or [-1]
        for key in more_keys:
            parent[root(key)] = root(first)
    parts: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        parts[root(next(iter(row.factors))) if row.factors else -1 - place].append(place)
    return list(parts.values())


def _infinite(rows: Sequence[Row]) -> dict[int, float]:
    """Return how much variables move for rows some of which are no numbers: without end where such a one differs."""
    return {
        key: math.inf if row.moved else 0.0
        for row in sorted(rows, key=lambda row: row.moved != 0)
        for key in list(row.factors)[:1]
    }


def _matrix(rows: Sequence[Row], keys: Sequence[int], scales: Floats) -> Floats:
    """Return the factors in scales of the noise, each row of length 1."""
    matrix = _factors(rows, keys) * scales
    lengths = np.sqrt(np.square(matrix).sum(axis=1, keepdims=True))
    return matrix / np.where(lengths > 0, lengths, 1.0)


def _factors(rows: Sequence[Row], keys: Sequence[int]) -> Floats:
    column = {key: place for place, key in enumerate(keys)}
    matrix = np.zeros((len(rows), len(keys)))
    for i, row in enumerate(rows):
        for key, factor in row.factors.items():
            matrix[i, column[key]] = factor
    return matrix


@dataclass(frozen=True)
class _Part:
    """Rows that share variables, as a matrix: A in scales of the noise, its rows divided by their lengths."""

    rows: Sequence[Row]
    keys: list[int]
    laplace: NDArray[np.bool_]
    scales: Floats
    matrix: Floats
    lengths: Floats
    size: float
    rounding: float
    unsure: float

    @classmethod
    def of(cls, rows: Sequence[Row], laws: Sequence[Law], operations: int, largest: float) -> _Part:
        keys = sorted({key for row in rows for key in row.factors})
        if len(rows) * len(keys) > _MOST_CELLS:
            raise MemoryError(
                f"{len(rows):,} numbers with {len(keys):,} noise variables are more than a trace solves at once"
            )
        scales = np.array([scale_of_law(laws[key]) for key in keys])
        laplace = np.array([isinstance(laws[key], Laplace) for key in keys], dtype=bool)
        lengths = np.array(
            [math.hypot(*(factor * scale_of_law(laws[key]) for key, factor in row.factors.items())) for row in rows]
        )
        lengths = np.where(lengths > 0, lengths, 1.0)
        size = max(row.size for row in rows) if keys else largest
        rounding = ULPS * max(operations, 1) * size
        return cls(
            rows,
            keys,
            laplace,
            scales,
            _matrix(rows, keys, scales),
            lengths,
            size,
            rounding,
            max(rounding, _UNSEEN * size),
        )

    @property
    def moved(self) -> Floats:
        return np.array([row.moved for row in self.rows])

    @cached_property
    def whole(self) -> _Factored:
        """The matrix, to be solved."""
        return _Factored.of(self.matrix)

    @property
    def right(self) -> Floats:
        """By how much the rows move, in the matrix's units."""
        return self.moved / self.lengths

    @property
    def is_free(self) -> bool:
        """Whether noise explains any difference: no row is a combination of others."""
        return self.whole.values.size == len(self.rows)

    @property
    def is_rounded(self) -> bool:
        """Whether rounding is not small beside the noise, or may be all that is left over."""
        if self.is_free:
            return False
        if not self.keys:
            return not self._explains(np.zeros(0), ULPS * max(abs(self.rows[0].left), abs(self.rows[0].right)))
        loud = self.rounding > _SMALL_ROUNDING * float(self.lengths.min())
        return loud or not self._explains(self.whole.solved(self.right), self.rounding)

    def first_unexplained(self) -> tuple[int, float] | None:
        """Return the first row that no noise explains with those before it, and what is left over; None if none."""
        if self.is_free or self._explains(self.whole.solved(self.right), self.unsure):
            return None
        low, high = 0, len(self.rows)
        while high - low > 1:  # the first `low` rows are explained
            middle = (low + high) // 2
            solution = _Factored.of(self.matrix[:middle]).solved(self.right[:middle])
            low, high = (middle, high) if self._explains(solution, self.unsure, middle) else (low, middle)
        before = _Factored.of(self.matrix[:low]).solved(self.right[:low])
        return low, float(self.moved[low] - self.matrix[low] @ before * self.lengths[low])

    def _explains(self, solution: Floats, tolerance: float, count: int | None = None) -> bool:
        """Tell whether noise explains the first rows, but for rounding."""
        rest = np.abs(self.right[:count] - self.matrix[:count] @ solution) * self.lengths[:count]
        return bool(rest.max(initial=0.0) <= tolerance)

    def solved(self, shifts: Floats) -> Floats:
        """Return levels of the variables that make up shifts, as far as they can."""
        return _cleaned(self.whole.solved(shifts / self.lengths)) * self.scales

    def least(self) -> Floats:
        """Return the least noise that explains the rows: of one kind alone where that will do, else of both."""
        if not self.moved.any():
            return np.zeros(len(self.keys))
        return _cleaned(self._of_kinds()) * self.scales

    def _of_kinds(self) -> Floats:
        for of_kind, solve in ((self.laplace, _least_sum), (~self.laplace, _Factored.solved)):
            if of_kind.any():
                part = self.whole if of_kind.all() else _Factored.of(self.matrix[:, of_kind])
                solution = np.zeros(len(self.keys))
                solution[of_kind] = solve(part, self.right)
                if self._explains(solution, max(self.rounding, _DUST * float(np.abs(self.moved).max()))):
                    return solution
        return self.whole.solved(self.right)


@dataclass(frozen=True)
class _Factored:
    """A matrix by its singular values, those that are 0 but for rounding left out."""

    matrix: Floats
    left: Floats
    values: Floats
    right: Floats

    @classmethod
    def of(cls, matrix: Floats) -> _Factored:
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        rank = int((values > _RANK * values.max(initial=0.0)).sum())
        return cls(matrix, left[:, :rank], values[:rank], right[:rank])

    @property
    def is_regular(self) -> bool:
        """Whether there is one solution at most."""
        return bool(self.values.size == self.matrix.shape[1])

    def solved(self, right: Floats) -> Floats:
        """Return the solution of least squares whose own squares are least."""
        solution: Floats = self.right.T @ (self.left.T @ right / self.values)
        return solution


def scale_of_law(law: Law) -> float:
    """Return the scale or standard deviation of a law's noise."""
    return float(getattr(law, "scale", getattr(law, "sigma", 1.0)))


def _cleaned(solution: Floats) -> Floats:
    """Return a solution without what rounding left in it."""
    return np.where(np.abs(solution) > _DUST * np.abs(solution).max(initial=0.0), solution, 0.0)


def _least_sum(part: _Factored, right: Floats) -> Floats:
    """Return the solution with the least sum of sizes: by linear programming, where there are several."""
    least_squares = part.solved(right)
    if part.is_regular:
        return least_squares
    from scipy.optimize import linprog  # slow to load, and few need it

    matrix = part.matrix
    sides = np.hstack([matrix, -matrix])
    program = linprog(np.ones(sides.shape[1]), A_eq=sides, b_eq=matrix @ least_squares, method="highs-ds")
    if program.x is None:
        return least_squares
    positive, negative = np.split(program.x, 2)
    support = np.abs(positive - negative) > _DUST * np.abs(least_squares).max()
    better = np.zeros_like(least_squares)
    better[support] = _Factored.of(matrix[:, support]).solved(right)  # the programme's tolerance leaves out digits
    exact = np.allclose(matrix @ better, matrix @ least_squares, rtol=0.0, atol=1e-12 * np.abs(right).max())
    return better if exact and np.abs(better).sum() < np.abs(least_squares).sum() else least_squares
