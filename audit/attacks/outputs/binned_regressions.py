"""Regressions on codes: on the bins and special values of columns together, smooth where neighbours are alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import scipy  # its parts load when first used
from scipy import special

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import rounded
from ...encoding.columns import equal
from ...encoding.features import Columns, LabelledColumns, Labels
from ...statistics.coupling import Codes, Places
from .count_tables import REPEATED, kinds_of
from .learned import SCREENED, OutputAttack, nothing
from .regressions import WEIGHT_DIGITS

#: Bins of a number of equal width, the share of its values beyond them on either side, and how far edges lie from
#: those numbers in units of bins.
UNIFORM, FAR_TAIL, NUDGE = 48, 5e-4, 6e-10
#: The most runs of a regression on bins.
MOST_REGRESSED = 1_000_000
#: The most steps of a regression on codes, the move at which it ends, and the share of the runs' mean curvature
#: below which it is taken again.
MOST_STEPS, TOLERANCE, STALE = 20, 1e-5, 0.9
#: How much less is said of a curve's steps than of their changes.
WEAKER = 0.01
#: How much less is said of the step in the middle of a column, where noise around a value has its step or kink.
FREER = 0.03
#: What stands for the share of draws whose codes differ, where fewer do.
LEAST_APART = 0.01
#: Runs that are looked at together: what is computed of them stays near the processor.
STRETCH = 2**14


@dataclass(frozen=True)
class Coded:
    """A part of a regression on codes.

    Attributes
    ----------
    codes : int array (runs,)
        From 0 to size - 1.
    weights : array (runs,) or None
        How much each code counts, if not 1.
    size : int
    ordered : bool
        Whether neighbouring codes are alike; the last one stands for what has no place among the others.
    smooth : bool
        Whether of ordered codes the steps between neighbours are alike too, as those of a curve are.
    jump : int
        Where the step from one code less to this one is freer than others, unless the codes are smooth; 0 for nowhere.
    """

    codes: Codes
    weights: Floats | None
    size: int
    ordered: bool
    smooth: bool = False
    jump: int = 0

    def weighted(self, values: Floats) -> Floats:
        """Return the runs' values by how much their codes count."""
        return values if self.weights is None else values * self.weights

    def total(self, values: Floats) -> Floats:
        """Return the sum of the runs' values by code."""
        return np.bincount(self.codes, self.weighted(values), self.size).astype(np.float64)

    def odds(self, table: Floats) -> Floats:
        """Return what a table of log odds by code adds to every run."""
        return self.weighted(table.take(self.codes))

    def part(self, runs: slice) -> Coded:
        """Return the part of some of the runs, its codes of the type that tables are read by."""
        codes, weights = self.codes[runs].astype(np.intp), None if self.weights is None else self.weights[runs]
        return replace(self, codes=codes, weights=weights)

    def prior(self) -> Floats:
        """Return the inverse covariance, before anything is seen, of the log odds in steps of neighbouring codes.

        What is not ordered is worth three steps; of a curve, a change from step to step is worth one, and a step ten.
        In coupled runs the chance of those draws cancels that show the same code in both worlds, so the prior says as
        much less as there are more of them.
        """
        left, right = np.split(self.codes, 2)
        precision = np.eye(self.size) / 9
        if self.ordered:
            steps = np.diff(np.eye(self.size), axis=0)[:-1]
            if self.jump and not self.smooth:
                steps[self.jump - 1] *= FREER
            smoothness = WEAKER * steps.T @ steps + np.diff(steps, axis=0).T @ np.diff(steps, axis=0)
            level = np.full(self.size - 1, 1e-3 * (WEAKER if self.smooth else 1.0))
            precision = np.diag(np.append(level, 1 / 9)) + (smoothness if self.smooth else steps.T @ steps)
        return precision * max(LEAST_APART, float(np.mean(left != right)))


class CodedRuns:
    """Coupled runs by their codes, for logistic regressions: the log odds that each code of each part adds.

    Steps are Newton's. The curvature is that of even odds, which is never less than it is [1]_: so each of them is for
    the better, whatever codes a handful of runs have. It is taken again once the odds are far from even.

    Parameters
    ----------
    parts : sequence of Coded
    left : bool array
        True for the left world's runs, which come first; then those of the right one with the same draws.

    References
    ----------
    .. [1] D. Böhning, B. Lindsay. Monotonicity of quadratic-approximation algorithms. Annals of the Institute of
       Statistical Mathematics 40, 1988.
    """

    def __init__(self, parts: Sequence[Coded], left: Labels) -> None:
        self.parts, self.left = parts, left
        ends = np.cumsum([0, *(part.size for part in parts)])
        self.places = [slice(low, high) for low, high in pairwise(ends)]

    @cached_property
    def prior(self) -> Floats:
        """The inverse covariance of all log odds before anything is seen, for a step of 1."""
        return np.asarray(scipy.linalg.block_diag(*(part.prior() for part in self.parts)))

    @cached_property
    def even(self) -> Floats:
        """The curvature at even odds, which regressions of all steps begin with."""
        return self._curvature(np.zeros(len(self.prior)))

    def tables(self, step: float) -> list[Floats]:
        """Return the log odds by code, of each part.

        Parameters
        ----------
        step : float
            Standard deviation, before anything is seen, of the difference of neighbouring codes that are ordered.
        """
        prior, weights, spread = self.prior / step**2, np.zeros(len(self.prior)), 0.25
        factor = scipy.linalg.cho_factor(prior + self.even)
        for _ in range(MOST_STEPS):
            slope, rates = self._slope(weights)
            if rates < STALE * spread:
                factor, spread = scipy.linalg.cho_factor(prior + self._curvature(weights)), rates
            move = np.clip(scipy.linalg.cho_solve(factor, slope - prior @ weights), -2, 2)
            weights += move
            if np.abs(move).max() < TOLERANCE:
                break
        return [rounded(weights[columns], WEIGHT_DIGITS) for columns in self.places]

    def _stretches(self, weights: Floats, size: int = STRETCH) -> Iterator[tuple[list[Coded], Labels, Floats]]:
        """Yield the parts of so many runs, their labels, and the chances of the left world by these log odds."""
        for start in range(0, self.left.size, size):
            runs = slice(start, start + size)
            parts = [part.part(runs) for part in self.parts]
            odds = sum(part.odds(weights[columns]) for part, columns in zip(parts, self.places, strict=True))
            yield parts, self.left[runs], special.expit(odds)

    def _slope(self, weights: Floats) -> tuple[Floats, float]:
        """Return the likelihood's slope, and the mean of its curvature over the runs."""
        slope, curved = np.zeros(weights.size), 0.0
        for parts, left, rate in self._stretches(weights):
            residuals = left - rate
            for part, columns in zip(parts, self.places, strict=True):
                slope[columns] += part.total(residuals)
            curved += float(np.sum(rate * (1 - rate)))
        return slope, curved / self.left.size

    def _curvature(self, weights: Floats) -> Floats:
        """Return the sums of the runs' curvatures by every two codes."""
        sums, diagonal = np.zeros((weights.size, weights.size)), np.zeros(weights.size)
        for parts, _, rate in self._stretches(weights, max(STRETCH, *(8 * part.size**2 for part in self.parts))):
            for i, (part, rows) in enumerate(zip(parts, self.places, strict=True)):
                values = part.weighted(rate * (1 - rate))
                diagonal[rows] += part.total(values)
                for other, columns in zip(parts[i + 1 :], self.places[i + 1 :], strict=True):
                    codes, size = part.codes * other.size + other.codes, part.size * other.size
                    joint = np.bincount(codes, other.weighted(values), size)
                    sums[rows, columns] += joint.reshape(part.size, other.size)
        return np.asarray(sums + sums.T + np.diag(diagonal))


@dataclass(frozen=True)
class BinnedRegression(OutputAttack):
    """Log odds of a logistic regression on what the columns show, in bins, and on special values together [1]_.

    Special values, and the categories of discrete columns, are counted together where their patterns are few; ordinary
    numbers in bins, whose weights differ the less the nearer they are, save a step at the median, where noise around
    a value changes sides. Among special values, as in the answers of sparse vectors, the least number may count, with
    how many of each there are, in place of each column's: numbers that were compared before they were released say so
    most, fresh ones each alone.

    Coupled runs: what both worlds do with the same draws cancels, and weak evidence is left.

    Parameters
    ----------
    step : float
        Standard deviation, before anything is seen, of the difference of neighbouring bins' weights.
    least : bool
        Whether the least number counts in place of each column's, where several columns have special values.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani. Generalized additive models. Statistical Science 1, 1986.
    """

    step: float
    least: bool = False

    log_odds = True

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return "regression on bins of the least" if self.least else "regression on bins"

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Fit the weights."""
        parts = train.once(("parts", self.least), lambda: list(_parts(train, of_least=self.least)))
        if not parts or train.of_one_world:
            return nothing
        runs = train.thinned(MOST_REGRESSED)

        def coded() -> CodedRuns:
            codings = [Coded(*part.of(runs), part.size, part.ordered, self.least, part.jump) for part in parts]
            return CodedRuns(codings, runs.left)

        tables = runs.once(("coded", self.least), coded).tables(self.step)
        read = [(part, table) for part, table in zip(parts, tables, strict=True) if table.any()]

        def score(view: Columns) -> Floats:
            total = np.zeros(view.columns.shape[1])
            for part, table in read:
                codes, weights = part.of(view)
                odds = table.take(codes)
                total += odds if weights is None else odds * weights
            return rounded(total)

        return score


@dataclass(frozen=True)
class _Part:
    """What is read of a run: see `Coded`. `times` is a value whose share of the columns is the weight."""

    codes: Callable[[Columns], Codes]
    size: int
    ordered: bool
    times: float | None = None
    jump: int = 0

    def of(self, view: Columns) -> tuple[Codes, Floats | None]:
        """Return the codes of runs, and their weights if they are not 1."""
        codes = view.once(self.codes, lambda: self.codes(view))
        if self.times is None:
            return codes, None
        repeats = equal(view.columns, self.times)
        return codes, repeats.sum(axis=0, dtype=np.int32) / len(repeats)


def _parts(train: LabelledColumns, *, of_least: bool) -> Iterator[_Part]:
    columns, special = train.features.columns, train.features.with_specials
    sample = train.thinned(SCREENED)
    for group in ([i for i, column in enumerate(columns) if column.discrete], special):
        if group:
            kinds, times = np.unique(kinds_of(group, sample), return_counts=True)
            if kinds.size * REPEATED <= times.sum():
                places = Places.of(kinds, math.prod(columns[i].values.size + 1 for i in group))
                yield _Part(partial(_place, group, places), kinds.size + 1, ordered=False)
                continue
            yield from (_Part(partial(_kind, i), columns[i].values.size + 1, ordered=False) for i in group)
    numbers = [i for i, column in enumerate(columns) if not column.discrete and not (of_least and i in special)]
    sources: list[Callable[[Columns], Floats]] = [partial(_numbers, i) for i in numbers]
    if of_least:
        sources.append(_least)
    elif len(numbers) == len(columns) > 1 and not special:
        sources += [partial(_step, i) for i in range(1, len(columns))]
    for source in sources:
        row = source(sample)
        row = row[np.isfinite(row)]
        low, middle, high = np.quantile(row, [FAR_TAIL, 0.5, 1 - FAR_TAIL]).tolist() if row.size else (0.0, 0.0, 0.0)
        if high > low:
            width = (high - low) / UNIFORM
            jump = min(max(math.ceil((middle - low) / width), 1), UNIFORM - 1)
            bins = partial(_bins, source, middle - jump * width, 1 / width)
            yield _Part(bins, UNIFORM + 1, ordered=True, jump=jump)
    if of_least:  # the bins are those of the least
        values = sorted({float(v) for i in special for v in columns[i].values if not math.isnan(v)})
        yield from (_Part(bins, UNIFORM + 1, ordered=True, times=value) for value in (*values[:2], math.nan))


def _numbers(index: int, view: Columns) -> Floats:
    return view.numbers(index)


def _least(view: Columns) -> Floats:
    return view.least


def _step(index: int, view: Columns) -> Floats:
    """Return the difference of a column from the one before it."""
    difference: Floats = view.columns[index] - view.columns[index - 1]
    return difference


def _kind(index: int, view: Columns) -> Codes:
    return view.kinds(index)


def _place(group: Sequence[int], places: Places, view: Columns) -> Codes:
    """Return the place of the special values of some columns among the patterns that are known."""
    return places(kinds_of(group, view))


def _bins(source: Callable[[Columns], Floats], low: float, per_unit: float, view: Columns) -> Codes:
    """Return the bin of each number, all of the same width, the outermost without end; one more than all for none."""
    numbers = source(view)
    codes = np.empty(numbers.size, dtype=np.uint8)
    for start in range(0, numbers.size, STRETCH):
        stretch = slice(start, start + STRETCH)
        with np.errstate(invalid="ignore", over="ignore"):  # the last bits of numbers at an edge decide nothing
            place = numbers[stretch] - low
            place *= per_unit
            place += NUDGE
            codes[stretch] = np.clip(place, 0, UNIFORM - 1, out=place)
        finite = np.isfinite(numbers[stretch])
        if not finite.all():
            codes[stretch] *= finite
            codes[stretch] += ~finite * np.uint8(UNIFORM)
    return codes
