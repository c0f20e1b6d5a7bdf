"""The laws of the outputs of mechanisms of the zoo, by quadrature.

A law is a table (2, outcomes) of probabilities, in the left world and in the right one. Continuous outputs are cut
into cells, so each law is that of an output which tells a little less than the mechanism's own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid

from overclaim.mechanisms.one_shot import classic, sparse_vector
from overclaim.mechanisms.one_shot.randomised_response import OneTimeRappor, Rappor

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Inputs = tuple[Sequence[Any], Sequence[Any]]

#: Scales of noise beyond which nothing is looked at: e^-45 is far below one run in all.
FAR = 45.0
#: Cells of a released number, and of each of two; the width of a cell of the log ratio of several outputs together.
CELLS, CELLS_OF_TWO, STEP = 20_000, 500, 2e-5


def law(mechanism: Any, pair: Inputs) -> Floats:
    """Return the law of the outputs on a pair of inputs."""
    for kind, find in LAWS.items():
        if type(mechanism) is kind:
            table = find(mechanism, pair)
            return table / table.sum(axis=1, keepdims=True)
    raise ValueError(f"no law is known of {type(mechanism).__name__}")


# ----------------------------------------------------------------------------------------------------
# Noise, numbers and products
# ----------------------------------------------------------------------------------------------------


def below(x: Floats, scale: float) -> Floats:
    """Return the probability that Laplace noise is at most x."""
    small = 0.5 * np.exp(-np.abs(x) / scale)
    return np.where(x < 0, small, 1 - small)


def above(x: Floats, scale: float) -> Floats:
    """Return the probability that Laplace noise is at least x, exact in the tail."""
    return below(-x, scale)


def density(x: Floats, scale: float) -> Floats:
    """Return the density of Laplace noise."""
    return np.exp(-np.abs(x) / scale) / (2 * scale)


def nodes(kinks: Sequence[float], scale: float, order: int = 16, pieces: int = 40) -> tuple[Floats, Floats]:
    """Return the points and weights of Gauss-Legendre quadrature between the kinks, and `FAR` scales beyond."""
    low, high = min(kinks), max(kinks)
    beyond = scale * FAR * np.linspace(0, 1, pieces + 1) ** 2
    edges = np.unique([*kinks, *(low - beyond), *(high + beyond)])
    x, w = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()


def cells(centres: Sequence[float], scale: float, count: int = CELLS) -> Floats:
    """Return edges of cells of equal width, the outermost of which are infinite."""
    inner = np.linspace(min(centres) - FAR * scale / 2, max(centres) + FAR * scale / 2, count)
    return np.concatenate([[-np.inf], np.unique([*inner, *centres]), [np.inf]])


def number(mean: Sequence[float], scale: float) -> Floats:
    """Return the law of a number with Laplace noise; `mean` is that of either world."""
    edges = cells(mean, scale)
    return np.stack([masses(edges, m, scale) for m in mean])


def masses(edges: Floats, mean: float, scale: float) -> Floats:
    """Return the probabilities of cells; the difference is taken on the side where it loses no digits."""
    x = edges - mean
    return np.where(x[1:] <= 0, np.diff(below(x, scale)), -np.diff(above(x, scale)))


def product(tables: Sequence[Floats]) -> Floats:
    """Return the law of independent outputs together, by cells of the log ratio."""
    return reduce(_together, (_by_log_ratio(table) for table in tables))[1] if len(tables) > 1 else tables[0]


def _by_log_ratio(table: Floats) -> tuple[int, Floats]:
    """Return the lowest cell, and the law over the cells."""
    table = table[:, (table > 0).all(axis=0)]
    cell = np.rint((np.log(table[0]) - np.log(table[1])) / STEP).astype(np.int64)
    low = int(cell.min())
    return low, np.stack([np.bincount(cell - low, weights=row) for row in table])


def _together(one: tuple[int, Floats], other: tuple[int, Floats]) -> tuple[int, Floats]:
    from scipy.signal import fftconvolve

    both = np.stack([fftconvolve(a, b) for a, b in zip(one[1], other[1], strict=True)])
    low = one[0] + other[0]
    # The transform leaves rounding errors of 1e-17; the ratio of what is left is known from the cell.
    ratio = np.exp(STEP * (low + np.arange(both.shape[1])))
    p = np.maximum(both[0], 0)
    q = np.maximum(both[1], 0)
    top = ratio > 1
    p, q = np.where(top, p, q * ratio), np.where(top, p / ratio, q)
    return low, np.stack([p, q])


# ----------------------------------------------------------------------------------------------------
# Mechanisms
# ----------------------------------------------------------------------------------------------------


def of_laplace(mechanism: Any, pair: Inputs) -> Floats:
    """Laplace noise on a number."""
    return number([data[0] for data in pair], mechanism.noise.scale)


def of_copies(mechanism: Any, pair: Inputs) -> Floats:
    """The same number several times."""
    return product([number([data[0] for data in pair], mechanism.copies / mechanism.epsilon)] * mechanism.copies)


def of_numbers(scale: Callable[[Any], float]) -> Callable[[Any, Inputs], Floats]:
    """Return the law of noise on every answer; those that are equal in both worlds tell nothing."""

    def find(mechanism: Any, pair: Inputs) -> Floats:
        return product([number(means, scale(mechanism)) for means in zip(*pair, strict=True) if means[0] != means[1]])

    return find


def of_geometric(mechanism: Any, pair: Inputs) -> Floats:
    """A truncated geometric count."""
    laws = [mechanism.cumulative(int(data[0])) for data in pair]
    return np.stack([np.diff(np.array(law, dtype=np.float64), prepend=0.0) / d for law, d in laws])


def noise_of_max(mechanism: Any) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats], float]:
    """Return the distribution function of the noise on an answer, its density, and its scale."""
    scale = 2 / mechanism.epsilon
    if isinstance(mechanism, classic.NoisyMax2):
        return lambda x: -np.expm1(-np.maximum(x, 0) / scale), lambda x: (x >= 0) * np.exp(-x / scale) / scale, scale
    return lambda x: below(x, scale), lambda x: density(x, scale), scale


def of_argmax(mechanism: Any, pair: Inputs) -> Floats:
    """The index of the largest noisy answer."""
    distribution, dense, scale = noise_of_max(mechanism)
    x, w = nodes(sorted({*pair[0], *pair[1]}), scale)
    table = []
    for data in pair:
        others = [[distribution(x - b) for j, b in enumerate(data) if j != i] for i in range(len(data))]
        table.append([float(np.sum(w * dense(x - a) * np.prod(o, axis=0))) for a, o in zip(data, others, strict=True)])
    return np.array(table)


def of_maximum(mechanism: Any, pair: Inputs) -> Floats:
    """The largest noisy answer."""
    distribution, _, scale = noise_of_max(mechanism)
    edges = cells([*pair[0], *pair[1]], scale)
    return np.diff([np.prod([distribution(edges - a) for a in data], axis=0) for data in pair], axis=1)


def of_rappor(mechanism: Any, pair: Inputs) -> Floats:
    """Bits of two Bloom filters; those that are equal tell nothing."""
    filters = [mechanism.filter(data[0]) for data in pair]
    low, high = mechanism.rates()
    rates = [(high, low) if a else (low, high) for a, b in zip(*filters, strict=True) if a != b]
    return product([np.array([[a, 1 - a], [b, 1 - b]]) for a, b in rates])


# ----------------------------------------------------------------------------------------------------
# Sparse vectors
# ----------------------------------------------------------------------------------------------------


def thresholds(mechanism: Any, pair: Inputs) -> tuple[Floats, Floats]:
    """Return noisy thresholds, and their weights."""
    scale = mechanism.scales[0]
    t, w = nodes(sorted({mechanism.threshold, *pair[0], *pair[1]}), max(mechanism.scales))
    return t, w * density(t - mechanism.threshold, scale)


def comparisons(mechanism: Any, data: Sequence[float], t: Floats) -> tuple[Floats, Floats]:
    """Return the probability that each answer is below, and above, each threshold: (answers, thresholds)."""
    gaps = t - np.array(data, dtype=np.float64)[:, None]
    if mechanism.scales[1] == 0:
        return (gaps > 0).astype(np.float64), (gaps <= 0).astype(np.float64)
    return below(gaps, mechanism.scales[1]), above(gaps, mechanism.scales[1])


def stops(dimension: int, limit: int) -> list[tuple[int, ...]]:
    """Return the places of the answers above, for every outcome of a sparse vector with a limit."""
    return [places for many in range(limit + 1) for places in itertools.combinations(range(dimension), many)]


def chances(mechanism: Any, data: Sequence[float], places: tuple[int, ...], t: Floats) -> Floats:
    """Return the probability of these answers above, and of those before them below, at every threshold."""
    last = places[-1] + 1 if len(places) == mechanism.limit else len(data)
    under, over = comparisons(mechanism, data[:last], t)
    return np.prod([over[i] if i in places else under[i] for i in range(last)], axis=0)


def of_places(mechanism: Any, pair: Inputs) -> Floats:
    """Which answers are above, until the limit."""
    if mechanism.limit != 1 and isinstance(mechanism, sparse_vector.SparseVector2):
        raise ValueError("the law is known where the threshold is drawn once")
    t, w = thresholds(mechanism, pair)
    every = stops(len(pair[0]), mechanism.limit)
    return np.array([[float(np.sum(w * chances(mechanism, data, places, t))) for places in every] for data in pair])


def of_counts(mechanism: Any, pair: Inputs) -> Floats:
    """How many answers are above among those equal in both worlds: there is no limit, and their order says nothing."""
    t, w = thresholds(mechanism, pair)
    kinds: dict[tuple[float, float], int] = {}
    for both in zip(*pair, strict=True):
        kinds[both] = kinds.get(both, 0) + 1
    table = []
    for world in (0, 1):
        under, over = comparisons(mechanism, [both[world] for both in kinds], t)
        counts = [
            [math.comb(many, k) * over[i] ** k * under[i] ** (many - k) for k in range(many + 1)]
            for i, many in enumerate(kinds.values())
        ]
        table.append([float(np.sum(w * np.prod(factors, axis=0))) for factors in itertools.product(*counts)])
    return np.array(table)


def of_fresh_numbers(mechanism: Any, pair: Inputs) -> Floats:
    """Which answers are above, and fresh numbers for these."""
    pattern = of_places(mechanism, pair)
    scale = 3 * mechanism.limit / mechanism.epsilon
    parts = []
    for places, chance in zip(stops(len(pair[0]), mechanism.limit), pattern.T, strict=True):
        means = [(pair[0][i], pair[1][i]) for i in places if pair[0][i] != pair[1][i]]
        values = product([number(m, scale) for m in means]) if means else np.ones((2, 1))
        parts.append(chance[:, None] * values)
    return np.concatenate(parts, axis=1)


def of_compared_numbers(mechanism: Any, pair: Inputs) -> Floats:
    """Which answers are above, and the very numbers that were compared: the threshold was below the least of them."""
    scale, widest = mechanism.scales[1], max(mechanism.scales)
    t = cells([*pair[0], *pair[1]], widest)[1:-1]
    w = density(t - mechanism.threshold, mechanism.scales[0])
    edges = cells([*pair[0], *pair[1]], widest, CELLS if mechanism.limit == 1 else CELLS_OF_TWO)
    middle = np.clip((edges[1:] + edges[:-1]) / 2, edges[1], edges[-2])
    least = np.minimum.outer(np.arange(middle.size), np.arange(middle.size)) if mechanism.limit > 1 else None
    parts = []
    for places in stops(len(pair[0]), mechanism.limit):
        last = places[-1] + 1 if len(places) == mechanism.limit else len(pair[0])
        worlds = []
        for data in pair:
            under, _ = comparisons(mechanism, data[:last], t)
            lower = cumulative_trapezoid(
                w * np.prod([under[i] for i in range(last) if i not in places], axis=0), t, initial=0
            )
            values = [masses(edges, data[i], scale) for i in places]
            upto = np.interp(middle, t, lower) if places else lower[-1:]
            if len(places) == 2:
                worlds.append((upto[least] * np.multiply.outer(*values)).ravel())
            else:
                worlds.append(upto * np.prod(values, axis=0))
        parts.append(np.stack(worlds))
    return np.concatenate(parts, axis=1)


def of_parallel(mechanism: Any, pair: Inputs) -> Floats:
    """Variants 3 and 4 on the same data."""
    kinds = (sparse_vector.SparseVector3ReleasesValue, sparse_vector.SparseVector4UnscaledNoise)
    return product([law(kind(mechanism.epsilon, mechanism.limit, mechanism.threshold), pair) for kind in kinds])


LAWS: dict[type[Any], Callable[[Any, Inputs], Floats]] = {
    classic.LaplaceMechanism: of_laplace,
    classic.LaplaceHalfScale: of_laplace,
    classic.LaplaceParallel: of_copies,
    classic.NoisyHistogram1: of_numbers(lambda m: 1 / m.epsilon),
    classic.NoisyHistogram2WrongScale: of_numbers(lambda m: m.epsilon),
    classic.PrefixSum: of_numbers(lambda m: 1 / m.epsilon),  # the steps between the sums
    classic.TruncatedGeometric: of_geometric,
    classic.NoisyMax1: of_argmax,
    classic.NoisyMax2: of_argmax,
    classic.NoisyMax3ReleasesValue: of_maximum,
    classic.NoisyMax4ReleasesValue: of_maximum,
    sparse_vector.SparseVector1: of_places,
    sparse_vector.SparseVector2: of_places,
    sparse_vector.SparseVector3ReleasesValue: of_compared_numbers,
    sparse_vector.SparseVector4UnscaledNoise: of_places,
    sparse_vector.SparseVector5NoQueryNoise: of_counts,
    sparse_vector.SparseVector6NoLimit: of_counts,
    sparse_vector.NumericalSparseVector: of_fresh_numbers,
    sparse_vector.SparseVector34Parallel: of_parallel,
    OneTimeRappor: of_rappor,
    Rappor: of_rappor,
}
