"""How often a search for rare branches leads falsely on sound targets, and how often it finds planted ones.

python benchmarks/validity/rare_leads.py [SEEDS]: two counts. A lead on a sound target is false, and so is a survivor
with a hidden branch. Reached: at most 2 leads of 250, and 9 of 10 hidden branches found.
"""

import hashlib
import math
import sys
import time

import numpy as np

from overclaim import Claim, Verdict, falsify
from overclaim.tests.support import obvious_scores

ONE, RUNS = Claim(epsilon=1.0), 20_000
TWO = {"left": [1, 2], "right": [1]}


def box_muller(data, rng):
    return len(data) + 5 * math.sqrt(-2 * math.log(1 - rng.random())) * math.cos(2 * math.pi * rng.random())


def own_laplace(data, rng):
    u = rng.random() - 0.5
    return len(data) - math.copysign(math.log1p(-2 * abs(u)), u)


def subsampled(data, rng):
    return sum(rng.random() < 0.5 for _ in data) + rng.laplace()


def two_geometric(data, rng):
    return len(data) + int(rng.geometric(1 - math.exp(-1))) - int(rng.geometric(1 - math.exp(-1)))


def response(data, rng):
    return (len(data) == 2) ^ (rng.random() > math.e / (1 + math.e))


def coins(data, rng):
    return len(data) == 2 if rng.integers(2) else bool(rng.random() < 0.5)


def above(data, rng):
    bar = rng.laplace(scale=2)
    return next((i for i in range(4) if len(data) - 2 + i + rng.laplace(scale=4) > bar), 4)


def report_noisy_max(data, rng):
    return int(np.argmax(np.array([len(data), 1, 0]) + rng.laplace(scale=2, size=3)))


def by_choice(data, rng):
    weights = np.exp(np.array([len(data), 1, 0]) / 2)
    return int(rng.choice(3, p=weights / weights.sum()))


def by_gumbel(data, rng):
    return int(np.argmax(np.array([len(data), 1, 0]) / 2 + rng.gumbel(size=3)))


def named(law):
    return lambda data, rng: len(data) + law(rng)


LAWS = {
    "laplace": lambda rng: rng.laplace(),
    "laplace 3": lambda rng: rng.laplace(scale=3),
    "logistic": lambda rng: rng.logistic(),
    "exponentials": lambda rng: rng.exponential() - rng.exponential(),
    "rounded": lambda rng: round(rng.laplace(), 1),
    "clipped": lambda rng: min(3.0, max(-3.0, rng.laplace())),
    "two draws": lambda rng: rng.laplace(scale=2) + 0 * rng.laplace(),
    "restarted": lambda rng: next(x for x in iter(rng.laplace, None) if True),
    "signed": lambda rng: rng.exponential() * (1 if rng.random() < 0.5 else -1),
    "cauchy": lambda rng: 3 * rng.standard_cauchy(),
    "redrawn sign": lambda rng: rng.choice([-1, 1]) * rng.exponential(),
    "inverse": lambda rng: own_laplace([], rng),
}
HALF = {"left": 3, "right": 5}
SOUND = {
    **{name: (named(law), TWO, ONE) for name, law in LAWS.items()},
    **{
        one.__name__: (one, TWO, ONE)
        for one in (own_laplace, subsampled, two_geometric, response, above, report_noisy_max, by_choice, by_gumbel)
    },
    "coins": (coins, TWO, Claim(epsilon=math.log(3))),
    "box_muller": (box_muller, TWO, Claim(epsilon=1.0, delta=0.01)),
    **{name: (getattr(obvious_scores, name), HALF, Claim(epsilon=2.0)) for name in ("oue", "subset", "hadamard")},
}


def hidden(draw, branch):
    def target(data, rng):
        return branch(data) if draw(rng) else len(data) + rng.laplace()

    return target


DRAWS = {
    "u < 1e-3": lambda rng: rng.random() < 1e-3,
    "u < 1e-5": lambda rng: rng.random() < 1e-5,
    "u > 1 - 1e-8": lambda rng: rng.random() > 1 - 1e-8,
    "normal > 5": lambda rng: rng.normal() > 5,
    "normal < -6": lambda rng: rng.normal() < -6,
    "laplace > 15": lambda rng: rng.laplace() > 15,
    "exponential > 20": lambda rng: rng.exponential() > 20,
    "integers = 0": lambda rng: rng.integers(10**6) == 0,
    "geometric > 40": lambda rng: rng.geometric(0.5) > 40,
    "choice": lambda rng: rng.choice(2, p=[1e-6, 1 - 1e-6]) == 0,
}
BRANCHES = {
    "the data": lambda data: ("log", sorted(data)),
    "its digest": lambda data: hashlib.sha256(repr(data).encode()).hexdigest(),
}


def main(seeds):
    leads = 0
    for name, (target, sides, claim) in SOUND.items():
        for seed in range(seeds):
            rare = falsify(target, claim, **sides, runs=RUNS, seed=seed, power=3.0).rare
            leads += rare is not None
            print(*([name, seed, rare] if rare else []), end="\n" if rare else "", flush=True)
    print(f"{leads} leads of {seeds * len(SOUND)} audits of {len(SOUND)} sound targets", flush=True)
    found, slowest = 0, 0.0
    for name, draw in DRAWS.items():
        for branch, result in BRANCHES.items():
            target, start = hidden(draw, result), time.process_time()
            verdict = falsify(target, ONE, **TWO, runs=RUNS, power=3.0).verdict
            slowest = max(slowest, time.process_time() - start)
            found += verdict is not Verdict.SURVIVED
            print(*([name, branch, "SURVIVED"] if verdict is Verdict.SURVIVED else []), end="")
    print(f"{found} of {len(DRAWS) * len(BRANCHES)} hidden branches did not survive; slowest: {slowest:.1f} CPU s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
