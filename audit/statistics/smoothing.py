"""What scores say of the world, from few runs: log odds that walk at random, polynomials of rank, or noise's own.

References
----------
.. [1] L. Fahrmeir, S. Lang. Bayesian inference for generalized additive mixed models based on Markov random field
   priors. Applied Statistics 50, 2001 (random walks as priors of curves).
.. [2] D. MacKay. The evidence framework applied to classification networks. Neural Computation 4, 1992 (the odds of
   new runs, averaged over what the weights may be).
.. [3] A. Ng, M. Jordan. On discriminative vs. generative classifiers. NIPS 14, 2001 (few runs teach more where the
   form of the noise is guessed).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray
from scipy import special

from ...mechanisms.draws import Floats
from .bounds.rounding import rounded

#: The variances per unit of distance that are tried for the random walk, from smooth to free.
STEPS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
#: The polynomials: of rank, up to these degrees, and of its normal score; the deviations of their weights, and of the
#: constant, by the prior; and the steps of Newton's method.
DEGREES, NORMAL_DEGREE, DEVIATIONS, OF_CONSTANT, NEWTON = (2, 4), 2, (1.5, 1.5, 1.0, 1.0), 0.22, 20
#: Noise of some location and scale: places tried around either world's median and deviation, how many standard errors
#: they reach, the least deviation of a world in shares of all, and how many models there are.
_LOCATIONS, _SCALES, _ERRORS, _LEAST_SPREAD, NOISES = 13, 7, 3.0, 0.02, 6
#: Log odds that are larger say nothing more; larger scores, and smaller deviations, are nobody's noise.
_FAR, _LARGEST, _SMALLEST, _TINY = 30.0, 1e150, 1e-150, 1e-100
#: A normal number's standard deviation in units of its mean distance from the middle.
_OF_DEVIATION = math.sqrt(math.pi / 2)
#: Curves that stand for all likely ones, and how far one may be from the likeliest in log odds.
CURVES, MOST_AWAY = 32, 5.0
#: The variances of a slope per unit of distance that are tried, the least distance of cells, and the fewest cells.
TREND_STEPS, _NARROW, _FEWEST_OF_TREND = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0), 0.02, 6
#: Decimals of what is fitted, whose sums depend on the processor; and the least evidence (nats) that counts.
FITTED, NEARLY = 6, 1e-6


def smoothed(
    in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the runs of each world to be expected in cells of neighbouring scores, given those of all cells.

    The log odds of the cells walk at random, from zero or around a line in the guess, over the log odds of rank [1]_;
    how far, is what makes the runs most likely (empirical Bayes, Laplace's approximation). So a cell of few runs is
    like its neighbours, and the best of many events owes less to luck than by the counts themselves.

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
    expected = curve.expected(np.zeros(curve.odds.size))
    return expected, in_left + in_right - expected


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
    away = scipy.linalg.solve_banded((0, 1), curve.factor, normal[1:], check_finite=False).T
    away += normal[0][:, None] * curve.error
    left = curve.expected(np.clip(np.concatenate([away, -away]), -MOST_AWAY, MOST_AWAY))
    return left, in_left + in_right - left


def doubt_by_curves(
    odds: tuple[Sequence[Floats], Sequence[Floats]], guesses: Sequence[tuple[Floats, Floats]], unseen: Floats
) -> tuple[Floats, Floats]:
    """Return the variances of ln(right) and of ln(wrong) where the shares of each world follow one of some curves."""
    above, below = ([np.pad(runs, ((0, 0), (0, 1))) for runs in side] for side in odds)
    right = above[0][:, :, None] + below[1][:, None, :]
    wrong = above[1][:, :, None] + below[0][:, None, :] + unseen
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.log(wrong / right).var(axis=0)
        of_right, of_wrong = (sum(pair) for pair in zip(*guesses, strict=True))
        return 1 / of_right, np.nan_to_num(apart, nan=np.inf) + unseen / of_wrong**2


def trended(
    in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the runs of each world to be expected in cells of neighbouring scores, if a trend of their odds goes on.

    As `smoothed`, but the slope of the log odds walks at random, and not the log odds: in a tail whose rarer runs say
    ever more of the world they are expected to go on so, and to stay where they stayed; around a line in the guess.
    """
    full = in_left + in_right > 0
    mine, runs = in_left[full].astype(np.float64), (in_left + in_right)[full].astype(np.float64)
    of_left, of_right = float(mine.sum()), float((runs - mine).sum())
    if runs.size < _FEWEST_OF_TREND or not of_left or not of_right:
        return in_left.astype(np.float64), in_right.astype(np.float64)
    base = np.full(runs.size, math.log(of_left / of_right))
    if guess is not None:
        base += _line(guess[full], mine, runs, base)[0]
    way = np.maximum(np.diff(special.logit(_ranks(mine, runs))), _NARROW)
    walk, best, fitted = np.zeros(runs.size), -math.inf, base
    for step in TREND_STEPS:
        tied, pulled = _bends(way, step)
        walk, factor = _settled(walk, mine, runs, base, tied, pulled)
        fit = mine @ walk - runs @ np.logaddexp(0, walk + base) - walk @ pulled(walk) / 2
        evidence = float(fit - (runs.size - 2) * math.log(step) / 2 - np.log(factor[-1]).sum())
        if evidence > best + NEARLY:
            best, fitted = evidence, walk + base
    expected = np.zeros(full.size)
    expected[full] = rounded(runs * special.expit(fitted), FITTED)
    return expected, in_left + in_right - expected


def _ranks(mine: Floats, runs: Floats) -> Floats:
    """Return the middle rank of every cell, where either world has half of the weight."""
    weight = mine / mine.sum() + (runs - mine) / (runs - mine).sum()
    rank: Floats = (np.cumsum(weight) - weight / 2) / 2
    return rank


def _bends(way: Floats, step: float) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the inverse covariance of a walk whose slope walks at random, and its product with one.

    Parameters
    ----------
    way : array (cells - 1,)
        The distances of neighbouring cells.
    step : float
        The variance of the slope per unit of distance.

    Returns
    -------
    array (3, cells)
        The second upper diagonal, the first, and the diagonal.
    callable
    """
    parts = 1 / way[:-1], -1 / way[:-1] - 1 / way[1:], 1 / way[1:]
    weight = 2 / (way[:-1] + way[1:]) / step
    bands, last = np.zeros((3, way.size + 1)), way.size - 1
    for i, one in enumerate(parts):
        for j, other in enumerate(parts[i:], start=i):
            bands[2 - (j - i), j : j + last] += weight * one * other

    def product(walk: Floats) -> Floats:
        bend = weight * np.sum([part * walk[i : i + last] for i, part in enumerate(parts)], axis=0)
        total: Floats = np.zeros(walk.size)
        for i, part in enumerate(parts):
            total[i : i + last] += part * bend
        return total

    return bands, product


@dataclass(frozen=True)
class _Curve:
    """A fitted walk: the cells with runs, these runs, their log odds, the Cholesky factor, and the error of a line."""

    full: NDArray[np.bool_]
    runs: Floats
    odds: Floats
    factor: Floats
    error: Floats

    @classmethod
    def of(cls, in_left: NDArray[np.int64], in_right: NDArray[np.int64], guess: Floats | None) -> _Curve | None:
        """Return the likeliest; None where no curve can be told."""
        full = in_left + in_right > 0
        mine, runs = in_left[full].astype(np.float64), (in_left + in_right)[full].astype(np.float64)
        of_left, of_right = float(mine.sum()), float((runs - mine).sum())
        if runs.size < 2 or not of_left or not of_right:
            return None
        base, error = np.full(runs.size, math.log(of_left / of_right)), np.zeros(runs.size)
        if guess is not None:
            line, error = _line(guess[full], mine, runs, base)
            base += line
        way = np.diff(special.logit(_ranks(mine, runs)))
        walk, best, fitted = np.zeros(runs.size), -math.inf, (base, np.ones((2, runs.size)))
        for step in STEPS:
            stiff = 1 / (step * way)
            walk, factor = _walk(walk, mine, runs, base, stiff)
            fit = mine @ walk - runs @ np.logaddexp(0, walk + base) - stiff @ np.diff(walk) ** 2 / 2
            evidence = float(fit + np.log(stiff).sum() / 2 - np.log(factor[1]).sum())
            if evidence > best + NEARLY:  # every step may fit equally well
                best, fitted = evidence, (walk + base, factor)
        return cls(full, runs, *fitted, error)

    def expected(self, away: Floats) -> Floats:
        """Return the left world's runs in all cells, by log odds so far away from the likeliest: (..., cells)."""
        expected = np.zeros((*away.shape[:-1], self.full.size))
        expected[..., self.full] = rounded(self.runs * special.expit(self.odds + away), FITTED)
        return expected


def _line(guess: Floats, mine: Floats, runs: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Return the guess times what makes the runs most likely (logistic regression), from 0 to 1.5, and its error.

    The error is that of the slope alone: the walk has a level of its own.
    """
    basis = np.stack([guess, np.ones(guess.size)])
    weights = np.zeros(2)
    for _ in range(20):
        rate = special.expit(weights @ basis + base)
        curvature = (basis * (runs * rate * (1 - rate))) @ basis.T + 1e-6 * np.eye(2)
        move = np.clip(np.linalg.solve(curvature, basis @ (mine - runs * rate) - 1e-6 * weights), -1, 1)
        weights += move
        if np.abs(move).max() < 1e-4:
            break
    line: Floats = rounded(np.clip(weights[0], 0, 1.5), FITTED) * guess
    middle = curvature[0, 1] / curvature[1, 1]
    error: Floats = (guess - middle) / np.sqrt(curvature[0, 0] - middle * curvature[0, 1])
    return line, error


def _walk(walk: Floats, mine: Floats, runs: Floats, base: Floats, stiff: Floats) -> tuple[Floats, Floats]:
    """Return the most likely walk around the base, and the curvature's Cholesky factor there, by Newton's steps."""
    tied = np.zeros((2, runs.size))  # the upper diagonal, and the diagonal
    tied[0, 1:] = -stiff
    tied[1, :-1] += stiff
    tied[1, 1:] += stiff

    def pulled(walk: Floats) -> Floats:
        bent = np.diff(walk) * stiff
        product: Floats = np.append(0.0, bent) - np.append(bent, 0.0)
        return product

    return _settled(walk, mine, runs, base, tied, pulled)


def _settled(
    walk: Floats, mine: Floats, runs: Floats, base: Floats, tied: Floats, pulled: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Return as `_walk`; `tied` are the upper diagonals of the walk's inverse covariance, `pulled` its product."""
    for _ in range(30):
        rate = special.expit(walk + base)
        slope = mine - runs * rate - pulled(walk)
        curvature = tied.copy()
        curvature[-1] += runs * rate * (1 - rate) + 1e-9
        factor = scipy.linalg.cholesky_banded(curvature, check_finite=False)
        move = scipy.linalg.cho_solve_banded((factor, False), slope, check_finite=False)
        walk = walk + np.clip(move, -2, 2)
        if np.abs(move).max() < 1e-3:
            break
    return walk, factor


def polynomial_odds(in_left: NDArray[np.int64], in_right: NDArray[np.int64]) -> Floats:
    """Return the log odds of the left world in cells of neighbouring scores, from few runs whose labels were coins.

    They are polynomials of the rank, Legendre's, or of its normal score, Hermite's, with a normal prior on their
    weights; the odds are those of a new run, averaged over what the weights may be [2]_, and the polynomials count by
    their evidence (Laplace's approximation). So odds that a few runs suggest are small, and grow with the runs.

    Parameters
    ----------
    in_left, in_right : int array (cells,)
        The runs of either world, cells in order of the score.
    """
    runs = (in_left + in_right).astype(np.float64)
    share = (np.cumsum(runs) - runs / 2 + 0.5) / (runs.sum() + 1)
    bases = [np.polynomial.legendre.legvander(2 * share - 1, degree) for degree in DEGREES]
    normal = np.polynomial.hermite_e.hermevander(special.ndtri(share), NORMAL_DEGREE)
    bases.append(normal / np.sqrt(special.factorial(np.arange(NORMAL_DEGREE + 1))))
    evidence, odds = zip(*(_by_weights(basis, in_left.astype(np.float64), runs) for basis in bases), strict=True)
    weights = special.softmax(rounded(evidence, FITTED))
    left = weights @ special.expit(np.stack(odds))
    return rounded(special.logit(left), FITTED)


def _by_weights(basis: Floats, mine: Floats, runs: Floats) -> tuple[float, Floats]:
    """Return the evidence for a polynomial, and the log odds of a new run in each cell."""
    precision = np.array([OF_CONSTANT, *DEVIATIONS[: basis.shape[1] - 1]]) ** -2.0
    weights = np.zeros(basis.shape[1])
    for _ in range(NEWTON):
        rate = special.expit(basis @ weights)
        curvature = (basis.T * (runs * rate * (1 - rate))) @ basis + np.diag(precision)
        move = np.linalg.solve(curvature, basis.T @ (mine - runs * rate) - precision * weights)
        weights += np.clip(move, -1, 1)
        if np.abs(move).max() < 1e-6:
            break
    line = basis @ weights
    fit = mine @ line - runs @ np.logaddexp(0, line) - precision @ weights**2 / 2
    spread = np.einsum("ij,ij->i", basis @ np.linalg.inv(curvature), basis)
    evidence = fit + np.log(precision).sum() / 2 - np.linalg.slogdet(curvature)[1] / 2
    return float(evidence), line / np.sqrt(1 + math.pi / 8 * spread)


def noise_odds(scores: Floats, left: NDArray[np.bool_], at: Floats) -> Floats:
    """Return the log odds of the left world at some scores, if each world's are noise of some location and scale.

    The noise is Laplace's or normal, and the worlds differ in its location, in its scale, or in both [3]_. The odds
    are those of a new run, averaged over what location and logarithm of the scale may be, which are equally likely
    around their estimates, at first. Wherever such noise is not what makes the scores, another model is better.

    Parameters
    ----------
    scores : array (runs,)
        Numbers, of runs whose labels were coins.
    left : bool array (runs,)
    at : array (places,)

    Returns
    -------
    array (NOISES, places)
        0 where a world has no runs, where a score is 1e150 or larger, and where their mean distance from the median is
        below 1e-150.
    """
    nothing = np.zeros((NOISES, at.size))
    if left.all() or not left.any() or not np.abs(scores).max() < _LARGEST:
        return nothing
    worlds = [np.sort(scores[left]), np.sort(scores[~left])]
    middle = float(np.median(scores))
    spread = float(np.mean(np.abs(scores - middle)))
    if spread < _SMALLEST:
        return nothing
    # In units of the spread, or squares of very large scores would not be finite.
    worlds, places = [(world - middle) / spread for world in worlds], (at - middle) / spread
    middles = [float(np.median(world)) for world in worlds]
    spreads = [max(_LEAST_SPREAD, float(np.mean(np.abs(x - m)))) for x, m in zip(worlds, middles, strict=True)]
    errors = [_ERRORS / math.sqrt(world.size) for world in worlds]
    grids = [
        _around(centres, errors_of_centres, many)
        for centres, errors_of_centres, many in (
            (middles, [s * e for s, e in zip(spreads, errors, strict=True)], _LOCATIONS),
            ([math.log(s) for s in spreads], errors, _SCALES),
        )
    ]
    odds: list[Floats] = []
    for normal in (False, True):
        odds += _of_noise(worlds, places, grids, normal=normal)
    return rounded(np.stack(odds), FITTED)


def _around(centres: Sequence[float], reach: Sequence[float], many: int) -> Floats:
    """Return so many places around each centre, as far as they reach, in order."""
    way = np.linspace(-1, 1, many)
    return np.unique(rounded(np.concatenate([c + r * way for c, r in zip(centres, reach, strict=True)])))


def _of_noise(worlds: list[Floats], places: Floats, grids: list[Floats], *, normal: bool) -> list[Floats]:
    """Return the log odds at some places by noise of one family, of worlds that differ in location, scale, or both."""
    locations, scales = grids[0], np.exp(grids[1]) * (_OF_DEVIATION if normal else 1.0)
    # The places are not equally far apart: each counts for the way around it.
    ways = np.log(np.gradient(grids[0]))[:, None], np.log(np.gradient(grids[1]))[None, :]

    def log_density(far: Floats, runs: Floats | float) -> Floats:
        """Return it, but for what is constant, from sums of distances or of half their squares."""
        density: Floats = -far / (scales**2 if normal else scales) - runs * np.log(scales)
        return density

    likely = [log_density(_distances(world, locations, normal=normal)[:, None], world.size) for world in worlds]
    apart = places[:, None] - locations
    density = log_density((apart**2 / 2 if normal else np.abs(apart))[..., None], 1)
    top = density.max(axis=(1, 2))
    density = np.exp(density - top[:, None, None]).reshape(places.size, -1)
    odds = []
    for shared in (1, 0, None):  # the axis of what both worlds share: the scale, the location, neither
        laws = []
        for mine, other in (likely, likely[::-1]):
            if shared is None:
                law = mine + ways[0] + ways[1]
            else:  # the other world tells of the shared parameter, whatever its own
                law = (
                    mine
                    + ways[0]
                    + ways[1]
                    + special.logsumexp(other + ways[1 - shared], axis=1 - shared, keepdims=True)
                )
            law = np.exp(law - law.max())
            laws.append(density @ (law / law.sum()).ravel() + _TINY)
        odds.append(np.clip(np.log(laws[0]) - np.log(laws[1]), -_FAR, _FAR))
    return odds


def _distances(ordered: Floats, locations: Floats, *, normal: bool) -> Floats:
    """Return the sums of the distances of sorted numbers from each location, or of half their squares."""
    size = ordered.size
    if normal:
        mean = ordered.mean()
        squares: Floats = (((ordered - mean) ** 2).sum() + size * (locations - mean) ** 2) / 2
        return squares
    below, sums = np.searchsorted(ordered, locations), np.append(0.0, np.cumsum(ordered))
    distances: Floats = locations * (2 * below - size) + sums[-1] - 2 * sums[below]
    return distances
