"""Which bound audits certify where faults are planted in the noise of targets: `mechanisms.faults`, section by draw.

python benchmarks/power/faults.py [RUNS]: one row a target, its bounds at the factors 1, 1.25, 2 and 3 in the kind
that shows most, and the exact value of linear noise. Linear noise has to be within 15 % of factor x bound.
"""

import math
import sys

import numpy as np

from overclaim import Claim, falsify
from overclaim.audit.pipeline.power_test import planted
from overclaim.mechanisms.faults import KINDS, Fault
from overclaim.tests.support import greens

FACTORS = (1.0, 1.25, 2.0, 3.0)
UTILITIES = {"left": [1.0, 0.0, 0.0], "right": [0.0, 1.0, 0.0]}
SIDES = {"left": [1, 2], "right": [1]}


def count(data, rng):
    return len(data) + rng.laplace()


def response(data, rng):
    truth = len(data) == 2
    return truth if rng.random() < math.e / (1 + math.e) else not truth


def by_gumbel(data, rng):
    return int(np.argmax(np.array(data) / 2 + rng.gumbel(size=3)))


def by_searchsorted(data, rng):
    weights = np.cumsum(np.exp(np.array(data) / 2))
    return int(np.searchsorted(weights, rng.random() * weights[-1]))


def by_choice(data, rng):
    weights = np.exp(np.array(data) / 2)
    return int(rng.choice(3, p=weights / weights.sum()))


def geometric(data, rng):
    return len(data) + int(rng.geometric(1 - math.exp(-1))) - int(rng.geometric(1 - math.exp(-1)))


def own_laplace(data, rng):
    u = rng.random() - 0.5
    return len(data) - math.copysign(math.log1p(-2 * abs(u)), u)


#: Targets, their inputs, delta, and whether the noise is added to a number.
TARGETS = {
    "count": (count, SIDES, 0.0, True),
    "u < p": (response, SIDES, 0.0, True),
    "exponential mechanism, gumbel": (by_gumbel, UTILITIES, 0.0, False),
    "by searchsorted": (by_searchsorted, UTILITIES, 0.0, False),
    "by choice(p=)": (by_choice, UTILITIES, 0.0, False),
    "geometric": (geometric, SIDES, 0.0, False),
    "own Laplace of random()": (own_laplace, SIDES, 0.0, False),
    "OLH": (greens.olh, {"left": 3, "right": 5}, 0.0, False),
}


def bound(target, sides, delta, fault, runs):
    faulty = planted(target, fault)
    return falsify(faulty, Claim(epsilon=1.0, delta=delta), **sides, runs=runs, power="off").epsilon_lower


def main(runs):
    print("| target | kind | " + " | ".join(f"/ {factor:g}" for factor in FACTORS) + " |\n|-|-|" + "-|" * len(FACTORS))
    for name, (target, sides, delta, linear) in TARGETS.items():
        kind = max(KINDS, key=lambda kind: bound(target, sides, delta, Fault(3.0, kind), runs // 4))
        bounds = [bound(target, sides, delta, Fault(factor, kind), runs) for factor in FACTORS]
        off = (
            max(abs(b / (factor * bounds[0]) - 1) for b, factor in zip(bounds, FACTORS, strict=True)) if linear else 0
        )
        print(
            f"| {name} | {kind} | " + " | ".join(f"{b:.2f}" for b in bounds) + f" |{' OFF' * (off > 0.15)}", flush=True
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
