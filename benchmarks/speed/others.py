"""What installed packages offer beside ours. None of them audits a learner, so only the parts can be compared.

statsmodels has intervals for counts; NumPy and diffprivlib draw noise. Auditors: `peers.py`, from published figures.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from overclaim.audit.statistics.bounds import intervals, joint_bound
from overclaim.benchmarks.speed.speed import REPEATS, seconds
from overclaim.benchmarks.tables import Rows, row
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Laplace

ALPHA = 0.05
#: Of both worlds together; true epsilon of the randomised response that is counted.
RUNS, EPSILON = 20_000, 1.0
NUMBERS = 100_000


def bounds() -> Rows:
    """Lower bounds on epsilon from the counts to expect of randomised response: value, exactness and time."""
    half = RUNS // 2
    truth = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    hits, misses = round(half * truth), round(half * (1 - truth))

    def two(method: str) -> float:
        low = proportion_confint(hits, half, alpha=ALPHA, method=method)[0]
        high = proportion_confint(misses, half, alpha=ALPHA, method=method)[1]
        return math.log(low / high)

    def ratio() -> float:
        limits = confint_proportions_2indep(hits, half, misses, half, compare="ratio", method="log", alpha=2 * ALPHA)
        return math.log(limits[0])

    cases: dict[str, tuple[str, Any]] = {
        "ours, guess game": ("yes", lambda: intervals.epsilon_guess(2 * hits, RUNS, RUNS, alpha=ALPHA)),
        "ours, joint": ("yes", lambda: joint_bound.epsilon_joint(hits, half, misses, half, alpha=ALPHA)),
        "ours, two intervals": ("yes", lambda: intervals.epsilon_two_interval(hits, half, misses, half, alpha=ALPHA)),
        # Two-sided intervals at alpha are one-sided at alpha / 2 each, which makes alpha together.
        "statsmodels, two Clopper-Pearson intervals": ("yes", lambda: two("beta")),
        "statsmodels, two Wilson intervals": ("no", lambda: two("wilson")),
        "statsmodels, ratio of proportions": ("no", ratio),
    }
    return [
        row(f"{name}, ms", [1e3 * s for s in seconds(lambda _, b=bound: b())], exact=exact, bound=float(bound()))
        for name, (exact, bound) in cases.items()
    ]


def draws() -> Rows:
    """Laplace noise, million draws/s on one core."""
    source, generator = Draws(0), np.random.default_rng(0)
    cases: dict[str, tuple[int, Any]] = {
        "ours": (NUMBERS, lambda n: Laplace(1.0).sample((n,), source)),
        "NumPy, Generator.laplace": (NUMBERS, lambda n: generator.laplace(size=n)),
    }
    with suppress(ImportError):  # not installed, or not made for the scikit-learn that is
        from diffprivlib.mechanisms import Laplace as Theirs

        theirs = Theirs(epsilon=1.0, sensitivity=1.0, random_state=0)
        cases["diffprivlib, one number a call"] = (1000, lambda n: [theirs.randomise(0.0) for _ in range(n)])
    return [
        row(f"Laplace noise: {name}", [n / s / 1e6 for s in seconds(lambda _, d=draw, n=n: d(n), REPEATS)])
        for name, (n, draw) in cases.items()
    ]
