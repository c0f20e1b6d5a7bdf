"""Printed statements about regret that are false, each with numbers that show it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .measurement import play_block


@dataclass(frozen=True, kw_only=True)
class UtilityClaim:
    """A printed statement about utility that is false, with the numbers that show it.

    Attributes
    ----------
    name, paper, statement : str
        What is printed, and where.
    truth : str
        What is true instead.
    witness : mapping
        Numbers computed by this module: `claimed` is below `found`.
    verdict : str
    """

    name: str
    paper: str
    statement: str
    truth: str
    witness: Mapping[str, float] = field(default_factory=dict)
    verdict: str = "FALSIFIED"

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "witness": dict(self.witness)}


def false_utility_claims() -> list[UtilityClaim]:
    """Return the false utility statements of the papers, each with a freshly computed witness."""
    return [_constant_of_theorem_3_1(), _condition_of_theorem_4_1(), _trivial_bound()]


def expected_maximum_of_walks(walks: int, steps: int) -> float:
    """Return E[max of independent fair +-1 walks] exactly, from binomial tails.

    No learner has less expected regret against random signs: its own expected loss is 0.
    """
    from scipy.stats import binom

    # max S = 2 max B - steps, and E max B is the sum of P(max B > k).
    below = binom.cdf(np.arange(steps), steps, 0.5)
    return 2 * float((1 - below**walks).sum()) - steps


def _constant_of_theorem_3_1(arms: int = 9, rounds: int = 2**16, epsilon: float = 1e6) -> UtilityClaim:
    levels = math.ceil(math.log2(rounds))
    scale = arms * levels / epsilon
    # max Z - min Z <= 2 max |Z|, and E max |Laplace| over N coordinates is the harmonic number.
    noise = 2 * levels * scale * sum(1 / i for i in range(1, arms + 1))
    claimed = math.sqrt(rounds * math.log(arms)) + noise
    return UtilityClaim(
        name="agarwal-singh/ftrl-experts",
        paper="Agarwal & Singh 2017, Theorem 3.1",
        statement="Regret <= sqrt(D_R sum_t max_x (||l_t||*)^2) + D_Lap; over experts, sqrt(T ln N) + D_Lap",
        truth=(
            "the constant 1 is impossible for N >= 9: on random signs every learner's expected regret is the expected "
            "maximum of N fair walks; with eta = sqrt(2 ln N / T), sqrt(2 T ln N) + D_Lap holds"
        ),
        witness={
            "arms": arms,
            "rounds": rounds,
            "epsilon": epsilon,
            "claimed": claimed,
            "found": expected_maximum_of_walks(arms, rounds),
        },
    )


def _condition_of_theorem_4_1(arms: int = 10, rounds: int = 10_000, epsilon: float = 1.0) -> UtilityClaim:
    lam, log = 1 / epsilon, math.log(arms * rounds)
    eta = math.sqrt(math.log(arms) / (2 * arms * rounds * (1 + 2 * lam**2 * log)))
    gamma = eta * arms * math.sqrt(1 + 2 * lam**2 * log)
    needed = eta * arms * (1 + 4 * lam * log)
    return UtilityClaim(
        name="agarwal-singh/reduction-exp2",
        paper="Agarwal & Singh 2017, proof of Theorem 4.1",
        statement="eta N (1 + 4 lambda ln NT) <= gamma holds by the choice of these parameters",
        truth=f"gamma is too small by a factor of {needed / gamma:.1f} here, and for every lambda > 0",
        witness={"arms": arms, "rounds": rounds, "epsilon": epsilon, "claimed": gamma, "found": needed},
    )


def _trivial_bound(rounds: int = 8) -> UtilityClaim:
    from ...learners.bandits.exp3 import Exp3

    losses = np.tile([1.0, -1.0], (rounds, 1))
    # Uniform exploration alone plays the worse arm throughout with probability 2^-T: the largest regret of a run.
    totals, _ = play_block(Exp3(arms=2, eta=1e-9, gamma=1.0), losses, 0, 0, False, (0, 64 * 2**rounds))
    return UtilityClaim(
        name="agarwal-singh/reduction-exp2",
        paper="Agarwal & Singh 2017, proofs of Theorems 4.1 and 4.5",
        statement="the regret is always bounded by T (losses in [-1, 1])",
        truth="it is bounded by 2T, and a run can have exactly that; the bad event's term is at most 2, not 1",
        witness={"rounds": rounds, "claimed": rounds, "found": float(totals.max()) - float(losses.sum(axis=0).min())},
    )
