"""Speed, memory and power of audits of wide outputs: vectors of noise in which little differs.

    python benchmarks/speed/wide_outputs.py [COLUMNS] [RUNS] [SEEDS]

Each target is one run of many columns. Bounds are of an audit of a given pair, whose claim is too large to matter.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from overclaim import Claim, falsify
from overclaim.benchmarks import tables

CLAIM = Claim(epsilon=1.5)


def one_shifts(data, rng):
    """Laplace noise of scale 1, one column moved by 1: epsilon 1."""
    noise = rng.laplace(size=data[0])
    noise[data[0] // 3] += data[1]
    return noise


def one_adds_up(data, rng):
    """The running sums of these."""
    return np.cumsum(one_shifts(data, rng))


def all_shift(data, rng):
    """Normal noise, all columns moved by the same: mu 2."""
    return rng.normal(2 * data[1] / np.sqrt(data[0]), size=data[0])


def all_shift_somehow(data, rng):
    """Normal noise, each column moved this way or that: mu 2."""
    return all_shift(data, rng) * np.where(np.arange(data[0]) * 2654435761 % 97 < 48, 1, -1)


def thirty_shift(data, rng):
    """Normal noise, thirty columns moved by the same: mu 2."""
    noise = rng.normal(size=data[0])
    noise[np.arange(30) * (data[0] // 30)] += 2 * data[1] / np.sqrt(30)
    return noise


def bits(data, rng):
    """Randomised responses, one of them another: epsilon ln 3."""
    truth = np.zeros(data[0])
    truth[data[0] // 2] = data[1]
    return np.where(rng.random(data[0]) < 0.25, 1 - truth, truth)


def counts(data, rng):
    """Geometric noise, one count moved by 1: epsilon 1."""
    noise = rng.geometric(1 - np.exp(-1), data[0]) - rng.geometric(1 - np.exp(-1), data[0])
    noise[data[0] // 5] += data[1]
    return noise


TARGETS = (one_shifts, one_adds_up, all_shift, all_shift_somehow, thirty_shift, bits, counts)


def main(columns: int = 1000, runs: int = 20_000, seeds: int = 8) -> None:
    """Print the table."""
    print("| target | columns | runs | seeds | mean bound | deviation | CPU s | peak MB so far |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for target in TARGETS:
        began, bounds = time.process_time(), []
        for seed in range(seeds):
            result = falsify(target, CLAIM, left=[columns, 0], right=[columns, 1], runs=runs, seed=seed)
            bounds.append(result.epsilon_lower)
        spent = (time.process_time() - began) / seeds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        mean, deviation = f"{np.mean(bounds):.3f}", f"{np.std(bounds):.3f}"
        cells = (target.__name__.replace("_", " "), columns, runs, seeds, mean, deviation, f"{spent:.1f}", peak)
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(f"\n{tables.dated()}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
