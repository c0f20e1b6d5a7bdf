"""What scores say of the world, from few runs: log odds that are polynomials of rank, or those of guessed noise.

References
----------
.. [1] D. MacKay. The evidence framework applied to classification networks. Neural Computation 4, 1992 (the odds of
   new runs, averaged over what the weights may be).
.. [2] A. Ng, M. Jordan. On discriminative vs. generative classifiers. NIPS 14, 2001 (few runs teach more where the
   form of the noise is guessed).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import rounded
from .walks import FITTED


@dataclass(frozen=True)
class FitOptions:
    """How models of the odds are fitted.

    Attributes
    ----------
    degrees : tuple of int
        Of the polynomials of rank.
    normal_degree : int
        Of the polynomial of rank's normal score.
    weight_deviations : tuple of float
        Of the weights of powers from the first on, by the prior.
    constant_deviation : float
        Of the constant, by the prior.
    newton_steps : int
        At most.
    locations, scales : int
        Places that are tried around either world's median, and around the logarithm of its deviation.
    reach : float
        Standard errors from these to the last place.
    min_deviation : float
        Of a world, as a share of the deviation of all scores.
    max_log_odds : float
        Larger ones say nothing more.
    max_score, min_spread : float
        What is larger, or closer together, is nobody's noise.
    min_density : float
        What is added to a density, so that its logarithm is finite.
    """

    degrees: tuple[int, ...] = (2, 4)
    normal_degree: int = 2
    weight_deviations: tuple[float, ...] = (1.5, 1.5, 1.0, 1.0)
    constant_deviation: float = 0.22
    newton_steps: int = 20
    locations: int = 13
    scales: int = 7
    reach: float = 3.0
    min_deviation: float = 0.02
    max_log_odds: float = 30.0
    max_score: float = 1e150
    min_spread: float = 1e-150
    min_density: float = 1e-100


OPTIONS = FitOptions()
#: Models of noise: Laplace's or normal, worlds that differ in location, in scale, or in both.
NOISES = 6
#: A normal number's standard deviation in units of its mean distance from the middle.
_OF_DEVIATION = math.sqrt(math.pi / 2)


def polynomial_odds(in_left: NDArray[np.int64], in_right: NDArray[np.int64]) -> Floats:
    """Return the log odds of the left world in cells of neighbouring scores, from few runs whose labels were coins.

    They are polynomials of the rank, Legendre's, or of its normal score, Hermite's, with a normal prior on their
    weights; the odds are those of a new run, averaged over what the weights may be [1]_, and the polynomials count by
    their evidence (Laplace's approximation). So odds that a few runs suggest are small, and grow with the runs.

    Parameters
    ----------
    in_left, in_right : int array (cells,)
        The runs of either world, cells in order of the score.
    """
    runs = (in_left + in_right).astype(np.float64)
    share = (np.cumsum(runs) - runs / 2 + 0.5) / (runs.sum() + 1)
    bases = [np.polynomial.legendre.legvander(2 * share - 1, degree) for degree in OPTIONS.degrees]
    normal = np.polynomial.hermite_e.hermevander(special.ndtri(share), OPTIONS.normal_degree)
    bases.append(normal / np.sqrt(special.factorial(np.arange(OPTIONS.normal_degree + 1))))
    evidence, odds = zip(*(_by_weights(basis, in_left.astype(np.float64), runs) for basis in bases), strict=True)
    weights = special.softmax(rounded(evidence, FITTED))
    left = weights @ special.expit(np.stack(odds))
    return rounded(special.logit(left), FITTED)


def _by_weights(basis: Floats, left_runs: Floats, runs: Floats) -> tuple[float, Floats]:
    """Return the evidence for a polynomial, and the log odds of a new run in each cell."""
    precision = np.array([OPTIONS.constant_deviation, *OPTIONS.weight_deviations[: basis.shape[1] - 1]]) ** -2.0
    weights = np.zeros(basis.shape[1])
    for _ in range(OPTIONS.newton_steps):
        rate = special.expit(basis @ weights)
        curvature = (basis.T * (runs * rate * (1 - rate))) @ basis + np.diag(precision)
        move = np.linalg.solve(curvature, basis.T @ (left_runs - runs * rate) - precision * weights)
        weights += np.clip(move, -1, 1)
        if np.abs(move).max() < 1e-6:
            break
    line = basis @ weights
    log_posterior = left_runs @ line - runs @ np.logaddexp(0, line) - precision @ weights**2 / 2
    spread = np.einsum("ij,ij->i", basis @ np.linalg.inv(curvature), basis)
    evidence = log_posterior + np.log(precision).sum() / 2 - np.linalg.slogdet(curvature)[1] / 2
    return float(evidence), line / np.sqrt(1 + math.pi / 8 * spread)


def noise_odds(scores: Floats, left: NDArray[np.bool_], points: Floats) -> Floats:
    """Return the log odds of the left world at some scores, if each world's are noise of some location and scale.

    The noise is Laplace's or normal, and the worlds differ in its location, in its scale, or in both [2]_. The odds
    are those of a new run, averaged over what location and logarithm of the scale may be, which are equally likely
    around their estimates, at first. Wherever such noise is not what makes the scores, another model is better.

    Parameters
    ----------
    scores : array (runs,)
        Numbers, of runs whose labels were coins.
    left : bool array (runs,)
    points : array (places,)

    Returns
    -------
    array (NOISES, places)
        0 where a world has no runs, where a score is 1e150 or larger, and where their mean distance from the median is
        below 1e-150.
    """
    nothing = np.zeros((NOISES, points.size))
    if left.all() or not left.any() or not np.abs(scores).max() < OPTIONS.max_score:
        return nothing
    worlds = [np.sort(scores[left]), np.sort(scores[~left])]
    middle = float(np.median(scores))
    spread = float(np.mean(np.abs(scores - middle)))
    if spread < OPTIONS.min_spread:
        return nothing
    # In units of the spread, or squares of very large scores would not be finite.
    worlds, places = [(world - middle) / spread for world in worlds], (points - middle) / spread
    middles = [float(np.median(world)) for world in worlds]
    spreads = [max(OPTIONS.min_deviation, float(np.mean(np.abs(x - m)))) for x, m in zip(worlds, middles, strict=True)]
    errors = [OPTIONS.reach / math.sqrt(world.size) for world in worlds]
    grids = [
        _around(centres, errors_of_centres, n_places)
        for centres, errors_of_centres, n_places in (
            (middles, [s * e for s, e in zip(spreads, errors, strict=True)], OPTIONS.locations),
            ([math.log(s) for s in spreads], errors, OPTIONS.scales),
        )
    ]
    odds: list[Floats] = []
    for normal in (False, True):
        odds += _of_noise(worlds, places, grids, normal=normal)
    return rounded(np.stack(odds), FITTED)


def _around(centres: Sequence[float], reach: Sequence[float], n_places: int) -> Floats:
    """Return so many places around each centre, as far as they reach, in order."""
    offsets = np.linspace(-1, 1, n_places)
    return np.unique(rounded(np.concatenate([c + r * offsets for c, r in zip(centres, reach, strict=True)])))


def _of_noise(worlds: list[Floats], places: Floats, grids: list[Floats], *, normal: bool) -> list[Floats]:
    """Return the log odds at some places by noise of one family, of worlds that differ in location, scale, or both."""
    locations, scales = grids[0], np.exp(grids[1]) * (_OF_DEVIATION if normal else 1.0)
    # The places are not equally far apart: each counts for the way around it.
    log_widths = np.log(np.gradient(grids[0]))[:, None], np.log(np.gradient(grids[1]))[None, :]

    def log_density(distance: Floats, runs: Floats | float) -> Floats:
        """Return it, but for what is constant, from sums of distances or of half their squares."""
        density: Floats = -distance / (scales**2 if normal else scales) - runs * np.log(scales)
        return density

    likely = [log_density(_distances(world, locations, normal=normal)[:, None], world.size) for world in worlds]
    offsets = places[:, None] - locations
    density = log_density((offsets**2 / 2 if normal else np.abs(offsets))[..., None], 1)
    top = density.max(axis=(1, 2))
    density = np.exp(density - top[:, None, None]).reshape(places.size, -1)
    odds = []
    for shared in (1, 0, None):  # the axis of what both worlds share: the scale, the location, neither
        laws = []
        for log_likelihood, other in (likely, likely[::-1]):
            if shared is None:
                law = log_likelihood + log_widths[0] + log_widths[1]
            else:  # the other world tells of the shared parameter, whatever its own
                shared_evidence = np.logaddexp.reduce(other + log_widths[1 - shared], axis=1 - shared, keepdims=True)
                law = log_likelihood + log_widths[0] + log_widths[1] + shared_evidence
            law = np.exp(law - law.max())
            laws.append(density @ (law / law.sum()).ravel() + OPTIONS.min_density)
        odds.append(np.clip(np.log(laws[0]) - np.log(laws[1]), -OPTIONS.max_log_odds, OPTIONS.max_log_odds))
    return odds


def _distances(ordered: Floats, locations: Floats, *, normal: bool) -> Floats:
    """Return the sums of the distances of sorted numbers from each location, or of half their squares."""
    size = ordered.size
    if normal:
        mean = ordered.mean()
        squares: Floats = (((ordered - mean) ** 2).sum() + size * (locations - mean) ** 2) / 2
        return squares
    n_below, sums = np.searchsorted(ordered, locations), np.append(0.0, np.cumsum(ordered))
    distances: Floats = locations * (2 * n_below - size) + sums[-1] - 2 * sums[n_below]
    return distances
