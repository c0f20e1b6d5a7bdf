"""Intervals by betting: how often they miss in 20,000 samples, and their length beside the normal interval's.

    python benchmarks/validity/intervals.py [--quick]

A limit misses only if the cell that the mean lies in is refuted, alone or with its group: that is counted, for every
sample at once. So the rates are upper bounds of the limits' own. Without --quick the tables go to benchmarks/results.
"""

import json
import math
import sys
import time
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from overclaim.audit.statistics.bounds import betting
from overclaim.audit.statistics.bounds.betting import anytime_mean_interval, mean_interval
from overclaim.benchmarks import tables

SIZES, ALPHAS = (120, 500), (0.1, 0.01)
#: A count of misses above what has this chance under the nominal rate is a fault.
FALSE_ALARM = 1e-6


@dataclass(frozen=True)
class Points:
    """A law on few points."""

    points: tuple
    chances: tuple

    def draw(self, rng, shape):
        return rng.choice(self.points, size=shape, p=self.chances)

    def below(self, floor):
        """Return the probability below a floor, and the part of the mean that comes from there."""
        here = np.asarray(self.points) < np.asarray(floor)[..., None]
        return here @ np.asarray(self.chances), here @ (np.asarray(self.points) * self.chances)

    def mirrored(self):
        return Points(tuple(1 - np.asarray(self.points)), self.chances)


@dataclass(frozen=True)
class Beta:
    """A beta law, or that of one minus it."""

    a: float
    b: float

    def draw(self, rng, shape):
        return rng.beta(self.a, self.b, shape)

    def below(self, floor):
        at = np.minimum(floor, 1.0)
        mean = self.a / (self.a + self.b)
        return special.betainc(self.a, self.b, at), mean * special.betainc(self.a + 1, self.b, at)

    def mirrored(self):
        return Beta(self.b, self.a)


LAWS = {
    "fair coin": Points((0.0, 1.0), (0.5, 0.5)),
    "rare coin": Points((0.0, 1.0), (0.97, 0.03)),
    "two points": Points((0.45, 1.0), (0.9, 0.1)),
    "skewed": Beta(0.3, 3.0),
    "nearly deterministic": Points((0.0, 0.7), (0.002, 0.998)),
    "narrow, rarely 0": Points((0.0, 0.69, 0.7, 0.71), (0.004, 0.332, 0.332, 0.332)),
}


def misses(law, n, samples, alpha, seed):
    """Return in how many samples the lower limit may exceed the mean."""
    x = law.draw(np.random.default_rng(seed), (n, samples))
    pilot, x = np.split(x, [betting._first(n)])
    floor = betting._floors(pilot, len(x))
    surprised = x.min(axis=0) < floor
    split = (floor > 0) & ~surprised
    floor[surprised] = 0.0
    chance, part = law.below(floor)
    mean = law.below(np.array(2.0))[1]
    error = np.where(split, 1 - betting._SURPRISED, np.where(surprised, betting._SURPRISED, 1.0)) * alpha
    with np.errstate(divide="ignore"):
        rest = np.floor(-len(x) * np.log1p(-chance) / betting._STEP) * betting._STEP
    least = np.floor(rest / (betting._GROUP_SHARES * betting._STEP) + 1e-9) * betting._GROUP_SHARES * betting._STEP
    fine, coarse = ((np.where(split, np.exp(np.minimum(r, 700)), 1.0) * error) for r in (rest, least))
    fine *= 1 - betting._GROUP_ERROR
    target = np.where(split, ((mean - part) / (1 - chance) - floor) / (1 - floor), mean)
    pilot, x = ((rows - floor) / (1 - floor) for rows in (pilot, x))
    cells = [betting._cells(*moments, len(x)) for moments in zip(*betting._mean_and_spread(pilot), strict=True)]
    blocks = betting._in_order(np.concatenate([pilot, x]))
    at = [min(np.searchsorted(c, m, side="right"), c.size - 1) for c, m in zip(cells, target, strict=True)]
    own = np.array([c[i] for c, i in zip(cells, at, strict=True)])
    # Cells in front of the last whole group alone are skipped together with others.
    step = betting._GROUP
    ends = [-(-i // step) * step for i in at]
    group = np.array([c[i] if i < c.size else math.inf for c, i in zip(cells, ends, strict=True)])
    every = np.arange(samples)
    refuted = betting._refuted(blocks, every, own, np.minimum(fine, 1.0)) | (fine >= 1)
    coarse = np.minimum(betting._GROUP_ERROR * coarse, 1.0)
    skipped = betting._refuted(blocks, every, np.minimum(group, 1e9), coarse) & np.isfinite(group)
    return int((refuted | skipped).sum())


def anytime_misses(law, n, samples, alpha, seed):
    """Return in how many samples the lower limit exceeds the mean at any size up to n."""
    x = law.draw(np.random.default_rng(seed), (n, samples))
    return int(betting._ever_refuted(x, float(law.below(np.array(2.0))[1]), alpha).sum())


def bernstein(x, low, high, alpha):
    """The twin: Maurer & Pontil 2009, Theorem 4, both sides."""
    log = math.log(4 / alpha)
    width = math.sqrt(2 * x.var(ddof=1) * log / x.size) + (high - low) * 7 * log / (3 * (x.size - 1))
    return x.mean() - width, x.mean() + width


def coverage(samples):
    """Return the rates of misses of both limits together, at most."""
    rows = []
    for name, law in LAWS.items():
        for n in SIZES:
            for alpha in ALPHAS:
                missed = [
                    sum(count(side, n, samples, alpha / 2, seed) for seed, side in enumerate((law, law.mirrored())))
                    for count in (misses, anytime_misses)
                ]
                limit = int(stats.binom.isf(FALSE_ALARM, samples, alpha))
                row = {"law": name, "n": n, "nominal": alpha, "samples": samples, "limit": limit}
                row |= {"misses, at most": missed[0], "anytime": missed[1], "rate, at most": missed[0] / samples}
                rows.append(row)
                tables.show(rows)
    return rows


def normal(sd):
    return lambda rng, n: np.clip(rng.normal(0.5, sd, n), 0, 1)


#: Draws, by what the range is in standard deviations.
SHAPES = {
    "fair coin, range 2 sd": lambda rng, n: (rng.random(n) < 0.5).astype(float),
    "normal, range 10 sd": normal(0.1),
    "normal, range 20 sd": normal(0.05),
    "normal, range 50 sd": normal(0.02),
    "Laplace, range 50 sd": lambda rng, n: np.clip(0.5 + rng.laplace(0, 0.02 / math.sqrt(2), n), 0, 1),
    "normal, range 50 sd, 1 in 1000 anywhere": lambda rng, n: np.where(
        rng.random(n) < 0.001, rng.random(n), normal(0.02)(rng, n)
    ),
}


def widths(samples, alpha=0.01):
    """Return mean lengths over that of the normal interval."""
    rows = []
    for n in (400, 5000):
        for name, draw in SHAPES.items():
            rng, ratios = np.random.default_rng(0), []
            for _ in range(samples):
                x = draw(rng, n)
                size = 2 * stats.norm.isf(alpha / 2) * x.std(ddof=1) / math.sqrt(n)
                limits = [of(x, 0.0, 1.0, alpha=alpha) for of in (mean_interval, anytime_mean_interval, bernstein)]
                ratios.append([(high - low) / size for low, high in limits])
            means = np.mean(ratios, axis=0)
            row = {"law": name, "n": n, "betting": means[0], "anytime": means[1], "empirical Bernstein": means[2]}
            rows.append({k: float(v) if isinstance(v, np.floating) else v for k, v in row.items()})
            tables.show(rows)
    return rows


def shortest_by_betting(leverage, alpha=0.005, cells=400):
    """Return where a hypothesis, in normal intervals, is refuted with probability 1/2 by the best gambler.

    In the limit of many observations log-wealth is a diffusion; no stake exceeds `leverage` over all of them. The best
    stakes solve a Hamilton-Jacobi-Bellman equation, here by explicit differences.
    """

    def power(drift):
        k = np.linspace(math.log(alpha) - 9, 0, cells)
        step = k[1] - k[0]
        value = (k >= 0).astype(float)
        moments = math.ceil(leverage**2 / step**2 * 1.05) + 200
        for _ in range(moments):
            slope, bend = np.zeros(cells), np.zeros(cells)
            slope[1:-1] = (value[2:] - value[:-2]) / (2 * step)
            bend[1:-1] = (value[2:] - 2 * value[1:-1] + value[:-2]) / step**2
            gain, cost = drift * slope, (bend - slope) / 2
            stake = np.where(cost < 0, np.clip(-gain / (2 * np.where(cost < 0, cost, -1)), 0, leverage), leverage)
            value = value + np.maximum(stake * gain + stake**2 * cost, 0) / moments
            value[0], value[-1] = 0, 1
        return np.interp(math.log(alpha), k, value)

    z = stats.norm.isf(alpha)
    low, high = z, 1.4 * z
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < 0.5 else (low, middle)
    return (low + high) / 2 / z


def write(covered, wide, best, seconds):
    text = f"""# Intervals by betting

`python benchmarks/validity/intervals.py`, {seconds:.0f} s of CPU. {tables.dated()}

Misses of both limits together, at most; more than the limit has a chance of {FALSE_ALARM:g} at the nominal rate.
"misses, at most" counts the samples in which the cell of the mean is refuted, alone or with its group.

{tables.table(covered)}

Mean lengths over that of the normal interval, at 99 %:

{tables.table(wide)}

No stake against a mean of 1/2 exceeds 2. At n = 5000 and a range of 50 standard deviations the best gambler against
that hypothesis, who knows the law and stakes by the Hamilton-Jacobi-Bellman equation of the limit, has even chances at
{best:.3f} normal intervals: 1.1 needs more than bets on single observations, here the share of the law below a floor.
Rare observations far below it cost what the last row of each size shows.
"""
    tables.write_page("intervals", text)
    report = {"coverage": covered, "widths": wide, "best gambler, range 50 sd": best}
    (tables.RESULTS / "intervals.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    began, quick = time.process_time(), "--quick" in sys.argv
    results = coverage(500 if quick else 20_000), widths(2 if quick else 10), shortest_by_betting(math.sqrt(5000) / 25)
    if not quick:
        write(*results, time.process_time() - began)
    print(results[2])
    sys.exit(any(row["misses, at most"] > row["limit"] or row["anytime"] > row["limit"] for row in results[0]))
