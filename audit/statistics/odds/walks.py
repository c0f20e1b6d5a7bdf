"""What scores say of the world: log odds that walk at random from cell to cell, or whose slope does.

References
----------
.. [1] L. Fahrmeir, S. Lang. Bayesian inference for generalized additive mixed models based on Markov random field
   priors. Applied Statistics 50, 2001 (random walks as priors of curves).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import rounded

#: The variances per unit of distance that are tried for the random walk, from smooth to free.
STEPS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
#: Curves that stand for all likely ones, and how far one may be from the likeliest in log odds.
CURVES, MAX_DEVIATION = 32, 5.0
#: The variances of a slope per unit of distance that are tried, the least distance of cells, and the fewest cells.
TREND_STEPS, _MIN_DISTANCE, _MIN_TREND_CELLS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0), 0.02, 6
#: The ranks that a tail reaches to: its slope has a variance of its own.
TAILS = (0.25, 0.75)
#: Decimals of what is fitted, whose sums depend on the processor; and the least evidence (nats) that counts.
FITTED, MIN_EVIDENCE = 6, 1e-6


def smoothed(
    in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the runs of each world to be expected in cells of neighbouring scores, given those of all cells.

    The log odds of the cells walk at random, from zero or around a line in the guess, over the log odds of rank [1]_;
    how far, is what makes the runs most likely (empirical Bayes, Laplace's approximation). So a cell of few runs is
    like its neighbours, and the best of many events owes less to luck than by the counts themselves. Or they jump
    once, as where a record is in few batches: a walk that is smooth elsewhere would hide it. Both count as much as the
    runs say.

    Parameters
    ----------
    in_left, in_right : int array (cells,)
        The runs of either world, cells in order of the score.
    guess : array (cells,), optional
        Log odds as a model says them.
    """
    curve = _Curve.of(in_left, in_right, guess)
    if curve is None:
        return in_left.astype(np.float64), in_right.astype(np.float64)
    jump, evidence = _jumping(in_left, in_right)
    share = float(rounded(special.expit(evidence - curve.evidence), FITTED))
    expected = rounded(share * jump + (1 - share) * curve.expected(np.zeros(curve.odds.size)), FITTED)
    return expected, in_left + in_right - expected


def _jumping(in_left: NDArray[np.int64], in_right: NDArray[np.int64]) -> tuple[Floats, float]:
    """Return the left world's runs to be expected if its share jumps once, anywhere as likely, and the evidence.

    Either level has a beta distribution before anything is seen (Jeffreys' prior).
    """
    left_before, right_before = (np.cumsum(runs)[:-1] + 0.5 for runs in (in_left, in_right))
    left_after, right_after = in_left.sum() + 1 - left_before, in_right.sum() + 1 - right_before
    evidence = (
        special.betaln(left_before, right_before) + special.betaln(left_after, right_after) - 2 * math.log(math.pi)
    )
    weights = special.softmax(rounded(evidence, FITTED))
    lower, upper = (
        weights * left_before / (left_before + right_before),
        weights * left_after / (left_after + right_after),
    )
    share = np.append(0.0, np.cumsum(upper)) + np.append(np.cumsum(lower[::-1])[::-1], 0.0)
    return (in_left + in_right) * share, float(special.logsumexp(evidence)) - math.log(evidence.size)


def likely(
    in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return what `smoothed` does, by `CURVES` curves that the runs make likely: two arrays (curves, cells).

    They are drawn from the posterior of the walk by Laplace's approximation, in pairs on either side of its mode, with
    lines whose slopes have the standard error of the slope.
    """
    curve = _Curve.of(in_left, in_right, guess)
    if curve is None:
        left, right = (np.tile(cells.astype(np.float64), (CURVES, 1)) for cells in (in_left, in_right))
        return left, right
    normal = np.random.Generator(np.random.SFC64(0)).normal(size=(curve.odds.size + 1, CURVES // 2))
    deviation = scipy.linalg.solve_banded((0, 1), curve.factor, normal[1:], check_finite=False).T
    deviation += normal[0][:, None] * curve.error
    left = curve.expected(np.clip(np.concatenate([deviation, -deviation]), -MAX_DEVIATION, MAX_DEVIATION))
    return left, in_left + in_right - left


def doubt_by_curves(
    odds: tuple[Sequence[Floats], Sequence[Floats]], guesses: Sequence[tuple[Floats, Floats]], unseen: Floats
) -> tuple[Floats, Floats]:
    """Return the variances of ln(right) and of ln(wrong) where the shares of each world follow one of some curves."""
    upper_tails, lower_tails = ([np.pad(runs, ((0, 0), (0, 1))) for runs in side] for side in odds)
    rights = upper_tails[0][:, :, None] + lower_tails[1][:, None, :]
    wrongs = upper_tails[1][:, :, None] + lower_tails[0][:, None, :] + unseen
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio_variance = np.log(wrongs / rights).var(axis=0)
        of_right, of_wrong = (sum(pair) for pair in zip(*guesses, strict=True))
        return 1 / of_right, np.nan_to_num(log_ratio_variance, nan=np.inf) + unseen / of_wrong**2


def trended(
    in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None = None
) -> tuple[Floats, Floats] | None:
    """Return the runs of each world to be expected in cells of neighbouring scores, if a trend of their odds goes on.

    As `smoothed`, but the slope of the log odds walks at random, and not the log odds: in a tail whose rarer runs say
    ever more of the world they are expected to go on so, and to stay where they stayed; around a line in the guess.
    Without a guess either tail has a variance of its own: a bend in the middle says nothing of the ends.

    None where no trend can be told: there are few cells, or the largest variance is the likeliest. The log odds of
    worlds that hardly overlap jump from one end to the other, and no slope goes on.
    """
    full, runs, parts = _trends(in_left, in_right, guess, by_tails=guess is None)
    if not parts or any(part.likeliest == len(TREND_STEPS) - 1 for part in parts):
        return None
    expected = _expected(full, runs, np.concatenate([part.odds[part.likeliest] for part in parts]))
    return expected, in_left + in_right - expected


def likely_trends(in_left: NDArray[np.int64], in_right: NDArray[np.int64]) -> tuple[Floats, Floats] | None:
    """Return what `trended` does, by `CURVES` curves that the runs make likely: two arrays (curves, cells).

    They are drawn from the posterior by Laplace's approximation, in pairs on either side of its mode; each variance of
    the slope, which few runs tell of all cells together, has as many as its evidence says. None as in `trended`, but
    where the largest variance is the likeliest its curves take part.
    """
    full, runs, parts = _trends(in_left, in_right, by_tails=False)
    if not parts:
        return None
    left = _expected(full, runs, parts[0].curves(np.random.Generator(np.random.SFC64(0))))
    return left, in_left + in_right - left


def _trends(
    in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None = None, *, by_tails: bool
) -> tuple[NDArray[np.bool_], Floats, list[_Trend]]:
    """Return which cells have runs, how many, and their trends: of all, or of either tail and of what is between."""
    full = in_left + in_right > 0
    left_runs, runs = in_left[full].astype(np.float64), (in_left + in_right)[full].astype(np.float64)
    all_cells = slice(0, runs.size)
    if not _can_trend(left_runs, runs, all_cells):
        return full, runs, []
    ranks, parts = _ranks(left_runs, runs), [all_cells]
    if by_tails:
        tails = [slice(*cuts) for cuts in itertools.pairwise([0, *np.searchsorted(ranks, TAILS).tolist(), runs.size])]
        parts = tails if all(_can_trend(left_runs, runs, part) for part in tails) else parts
    trends = []
    for part in parts:
        base = np.full(runs[part].size, math.log(left_runs[part].sum() / (runs - left_runs)[part].sum()))
        if guess is not None:
            base += _line(guess[full], left_runs, runs, base)[0]
        distances = np.maximum(np.diff(special.logit(ranks[part])), _MIN_DISTANCE)
        trends.append(_Trend.of(left_runs[part], runs[part], base, distances))
    return full, runs, trends


def _can_trend(left_runs: Floats, runs: Floats, part: slice) -> bool:
    """Tell whether some cells are enough, and have runs of both worlds."""
    return runs[part].size >= _MIN_TREND_CELLS and 0 < left_runs[part].sum() < runs[part].sum()


@dataclass(frozen=True)
class _Trend:
    """Walks of the slope over some cells: for each step its evidence, log odds and Cholesky factor."""

    evidence: list[float]
    odds: list[Floats]
    factors: list[Floats]

    @classmethod
    def of(cls, left_runs: Floats, runs: Floats, base: Floats, distances: Floats) -> _Trend:
        """Fit them to the left world's runs and all; `distances` are the distances of neighbouring cells."""
        walk, trend = np.zeros(runs.size), cls([], [], [])
        for step in TREND_STEPS:
            tied, pulled = _bends(distances, step)
            walk, factor = _settled(walk, left_runs, runs, base, tied, pulled)
            log_posterior = left_runs @ walk - runs @ np.logaddexp(0, walk + base) - walk @ pulled(walk) / 2
            trend.evidence.append(
                float(log_posterior - (runs.size - 2) * math.log(step) / 2 - np.log(factor[-1]).sum())
            )
            trend.odds.append(walk + base)
            trend.factors.append(factor)
        return trend

    @property
    def likeliest(self) -> int:
        """The step that has most evidence; of those that have as much the smallest."""
        best = 0
        for i, evidence in enumerate(self.evidence):
            if evidence > self.evidence[best] + MIN_EVIDENCE:
                best = i
        return best

    def curves(self, generator: np.random.Generator) -> Floats:
        """Return the log odds of likely curves, (curves, cells)."""
        weights = special.softmax(rounded(np.array(self.evidence), FITTED))
        pairs = np.diff(np.rint(np.cumsum(rounded(weights, FITTED)) * CURVES / 2).astype(np.int64), prepend=0)
        curves = []
        for count, odds, factor in zip(pairs.tolist(), self.odds, self.factors, strict=True):
            normal = generator.normal(size=(odds.size, count))
            deviation = scipy.linalg.solve_banded((0, 2), factor, normal, check_finite=False).T
            curves += [odds + deviation, odds - deviation]
        return np.concatenate(curves)


def _ranks(left_runs: Floats, runs: Floats) -> Floats:
    """Return the middle rank of every cell, where either world has half of the weight."""
    weight = left_runs / left_runs.sum() + (runs - left_runs) / (runs - left_runs).sum()
    rank: Floats = (np.cumsum(weight) - weight / 2) / 2
    return rank


def _bends(distances: Floats, step: float) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the inverse covariance of a walk whose slope walks at random, and its product with one.

    Parameters
    ----------
    distances : array (cells - 1,)
        The distances of neighbouring cells.
    step : float
        The variance of the slope per unit of distance.

    Returns
    -------
    array (3, cells)
        The second upper diagonal, the first, and the diagonal.
    callable
    """
    parts = 1 / distances[:-1], -1 / distances[:-1] - 1 / distances[1:], 1 / distances[1:]
    weight = 2 / (distances[:-1] + distances[1:]) / step
    bands, last = np.zeros((3, distances.size + 1)), distances.size - 1
    for i, first in enumerate(parts):
        for j, second in enumerate(parts[i:], start=i):
            bands[2 - (j - i), j : j + last] += weight * first * second
    bands[2] += 1e-12 * bands[2].max()  # or rounding leaves no factor where runs say nothing

    def product(walk: Floats) -> Floats:
        bend = weight * np.sum([part * walk[i : i + last] for i, part in enumerate(parts)], axis=0)
        total: Floats = np.zeros(walk.size)
        for i, part in enumerate(parts):
            total[i : i + last] += part * bend
        return total

    return bands, product


@dataclass(frozen=True)
class _Curve:
    """A fitted walk: the cells with runs, these runs, their log odds, the Cholesky factor, and the error of a line.

    Its evidence is the log likelihood of the runs; before anything is seen the level has the density of a log odds
    whose share is anywhere as likely, in its middle.
    """

    full: NDArray[np.bool_]
    runs: Floats
    odds: Floats
    factor: Floats
    error: Floats
    evidence: float

    @classmethod
    def of(cls, in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None) -> _Curve | None:
        """Return the likeliest; None where no curve can be told."""
        full = in_left + in_right > 0
        left_runs, runs = in_left[full].astype(np.float64), (in_left + in_right)[full].astype(np.float64)
        of_left, of_right = float(left_runs.sum()), float((runs - left_runs).sum())
        if runs.size < 2 or not of_left or not of_right:
            return None
        base, error = np.full(runs.size, math.log(of_left / of_right)), np.zeros(runs.size)
        if guess is not None:
            line, error = _line(guess[full], left_runs, runs, base)
            base += line
        distances = np.diff(special.logit(_ranks(left_runs, runs)))
        walk, best, fitted = np.zeros(runs.size), -math.inf, (base, np.ones((2, runs.size)))
        for step in STEPS:
            stiff = 1 / (step * distances)
            walk, factor = _walk(walk, left_runs, runs, base, stiff)
            log_posterior = left_runs @ walk - runs @ np.logaddexp(0, walk + base) - stiff @ np.diff(walk) ** 2 / 2
            evidence = float(log_posterior + np.log(stiff).sum() / 2 - np.log(factor[1]).sum())
            if evidence > best + MIN_EVIDENCE:  # every step may fit equally well
                best, fitted = evidence, (walk + base, factor)
        level = float(left_runs @ base) + math.log(2 * math.pi) / 2 - math.log(4)
        return cls(full, runs, *fitted, error, best + level)

    def expected(self, deviation: Floats) -> Floats:
        """Return the left world's runs in all cells, by log odds so far away from the likeliest: (..., cells)."""
        return _expected(self.full, self.runs, self.odds + deviation)


def _expected(full: NDArray[np.bool_], runs: Floats, odds: Floats) -> Floats:
    """Return the left world's runs in all cells, by the log odds of those that have runs: (..., cells)."""
    expected = np.zeros((*odds.shape[:-1], full.size))
    expected[..., full] = rounded(runs * special.expit(odds), FITTED)
    return expected


def _line(guess: Floats, left_runs: Floats, runs: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Return the guess times what makes the runs most likely (logistic regression), from 0 to 1.5, and its error.

    The error is that of the slope alone: the walk has a level of its own.
    """
    basis = np.stack([guess, np.ones(guess.size)])
    weights = np.zeros(2)
    for _ in range(20):
        rate = special.expit(weights @ basis + base)
        curvature = (basis * (runs * rate * (1 - rate))) @ basis.T + 1e-6 * np.eye(2)
        move = np.clip(np.linalg.solve(curvature, basis @ (left_runs - runs * rate) - 1e-6 * weights), -1, 1)
        weights += move
        if np.abs(move).max() < 1e-4:
            break
    line: Floats = rounded(np.clip(weights[0], 0, 1.5), FITTED) * guess
    middle = curvature[0, 1] / curvature[1, 1]
    error: Floats = (guess - middle) / np.sqrt(curvature[0, 0] - middle * curvature[0, 1])
    return line, error


def _walk(walk: Floats, left_runs: Floats, runs: Floats, base: Floats, stiff: Floats) -> tuple[Floats, Floats]:
    """Return the most likely walk around the base, and the curvature's Cholesky factor there, by Newton's steps."""
    tied = np.zeros((2, runs.size))  # the upper diagonal, and the diagonal
    tied[0, 1:] = -stiff
    tied[1, :-1] += stiff
    tied[1, 1:] += stiff

    def pulled(walk: Floats) -> Floats:
        bent = np.diff(walk) * stiff
        product: Floats = np.append(0.0, bent) - np.append(bent, 0.0)
        return product

    return _settled(walk, left_runs, runs, base, tied, pulled)


def _settled(
    walk: Floats, left_runs: Floats, runs: Floats, base: Floats, tied: Floats, pulled: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Return as `_walk`; `tied` are the upper diagonals of the walk's inverse covariance, `pulled` its product."""
    for _ in range(30):
        rate = special.expit(walk + base)
        slope = left_runs - runs * rate - pulled(walk)
        curvature = tied.copy()
        curvature[-1] += runs * rate * (1 - rate) + 1e-9
        factor = scipy.linalg.cholesky_banded(curvature, check_finite=False)
        move = scipy.linalg.cho_solve_banded((factor, False), slope, check_finite=False)
        walk = walk + np.clip(move, -2, 2)
        if np.abs(move).max() < 1e-3:
            break
    return walk, factor
