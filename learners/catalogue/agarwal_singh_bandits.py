"""Agarwal & Singh 2017: the catalogue's entries of bandit reductions, with Laplace and with Gaussian noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...mechanisms.noise import Gaussian
from ..bandits.exp3 import Exp3
from ..checks import check_delta
from ..conversions.reduction import BanditReduction, GaussianReduction
from ..entry import Case, Entry, FalsifiedCase, RegretClaim, Setting, Shared, SurvivingCase
from ..leaders.ftpl import gaussian_sigma
from ..probes.ladder import Ladder
from ..probes.threshold import Threshold
from . import statements as said
from .agarwal_singh import (
    REPAIRED,
    WEAKER,
    reduction_exp2,
    reduction_exp2_actions,
    reduction_scrible,
    reduction_threshold,
)
from .bounds.agarwal_singh import exp2_bound, scrible_ball_bound, scrible_bound, scrible_simplex_bound


def gaussian_noise(setting: Setting) -> Gaussian:
    """Return the noise of version 1's reduction for losses of arms in [-1, 1]: sigma = ln(1 / delta) / epsilon.

    This is our reading. The abstract prints regret of order sqrt(T log T) / epsilon log(1 / delta), and the tree of
    both versions has noise ||Y|| / epsilon log T log(log T / delta): that for one release in place of log T, with the
    constant 1. Corrected, the least sigma that (epsilon, delta) needs for the range of the losses.
    """
    check_delta(setting.delta)
    if not setting.published:
        return Gaussian(gaussian_sigma(sensitivity=setting.range, epsilon=setting.epsilon, delta=setting.delta))
    return Gaussian(0.0 if math.isinf(setting.epsilon) else math.log(1 / setting.delta) / setting.epsilon)


def gaussian_threshold(setting: Setting, *, threshold: float | None = None) -> GaussianReduction:
    """Return the Gaussian reduction around the Threshold probe, or the Ladder with more than two arms.

    The log ratio of the two extreme losses is epsilon at sigma^2 epsilon / range above their middle. The rungs climb
    to there from the middle; the default threshold lies half-way, where it is met often enough.
    """
    noise = gaussian_noise(setting)
    middle = 0.5 if setting.losses == "unit" else 0.0
    reach = noise.sigma**2 * setting.epsilon / setting.range if noise.sigma else 0.0
    if setting.arms > 2 and reach:
        rungs = middle + reach * np.arange(1, setting.arms) / (setting.arms - 1)
        return GaussianReduction(Ladder(thresholds=tuple(rungs.tolist())), noise=noise)
    threshold = middle + reach / 2 if threshold is None else threshold
    return GaussianReduction(Threshold(arms=setting.arms, threshold=threshold), noise=noise)


def gaussian_exp2(setting: Setting, *, eta: float | None = None, gamma: float | None = None) -> GaussianReduction:
    """Return the Gaussian reduction around EXP2 over arms.

    Our choice where not given: Theorem 4.1's eta and gamma with the variance sigma^2 for 2 lambda^2.
    """
    n, t, noise = setting.arms, setting.rounds, gaussian_noise(setting)
    moment = 1 + noise.sigma**2 * math.log(n * t)
    if eta is None:
        eta = math.sqrt(math.log(max(n, 2)) / (2 * n * t * moment))
    gamma = min(1.0, eta * n * math.sqrt(moment)) if gamma is None else gamma
    return GaussianReduction(Exp3(arms=n, eta=eta, gamma=gamma), noise=noise)


def gaussian_exp2_bound(setting: Setting, learner: GaussianReduction) -> float:
    """Return a bound for exponential weights on noisy losses, from the second-order inequality.

    Where every |l + z| is at most b = gamma / (eta N), eta times an estimate is at least -1 and the regret is at most
    `ln N / eta + eta T N (1 + sigma^2) + 2 gamma T`; elsewhere, of probability at most 2 T exp(-(b - 1)^2 / (2
    sigma^2)), it is at most T times the range of the losses.
    """
    inner: Any = learner.inner
    n, t, sigma = setting.arms, setting.rounds, learner.noise.sigma
    radicand = math.log(max(n, 2)) / inner.eta + inner.eta * t * n * (1 + sigma**2) + 2 * inner.gamma * t
    excess = inner.gamma / (inner.eta * n) - 1
    if excess <= 0:
        return t * setting.range
    fail = 0.0 if sigma == 0 else min(1.0, 2 * t * math.exp(-(excess**2) / (2 * sigma**2)))
    return float(radicand + fail * t * setting.range)


def reduction_exp2_hypercube(
    setting: Setting, *, eta: float | None = None, gamma: float | None = None
) -> BanditReduction:
    """Return the reduction around EXP2 over the vertices of [-1, 1]^N: noise ||Y||_1 / epsilon."""
    return reduction_exp2_actions(setting, eta=eta, gamma=gamma, points="hypercube")


def reduction_scrible_ball(setting: Setting, *, eta: float | None = None) -> BanditReduction:
    """Return the reduction around SCRiBLe over the unit ball: noise ||Y||_1 / epsilon, eta of Theorem 4.5, nu = 1."""
    return reduction_scrible(setting, eta=eta, domain="ball")


def reduction_scrible_simplex(setting: Setting, *, eta: float | None = None) -> BanditReduction:
    """Return the reduction around SCRiBLe over the simplex: noise ||Y||_1 / epsilon, eta of Theorem 4.5, nu = N."""
    return reduction_scrible(setting, eta=eta, domain="simplex")


VERSION_1 = "Agarwal & Singh 2017, version 1 (arXiv:1701.07953v1), abstract: (epsilon, delta), sigma is our reading"
PROOF_4_1 = "Agarwal & Singh 2017, Theorem 4.1, with the constants of its proof"
PROOF_4_5 = "Agarwal & Singh 2017, Theorem 4.5, with the constants of its proof"
LEMMA = said.AS_LEMMA_4_2.source
EVERY_INNER: Shared = {"standing": "theorem", "statement": said.AS_LEMMA_4_2}
FED: Shared = {"standing": "proof", "statement": said.AS_PROOF_4_2}
OWN_STEP: Shared = {"standing": "theorem", "statement": said.AS_THEOREM_4_5}
SHARP = {"eta": 2.0, "gamma": 0.02}
STEEP = {"eta": 1.0, "gamma": 0.02}
READING = "sigma = ln(1 / delta) / epsilon with the constant 1 is ours: the text of version 1 that we have states none"


TOO_RARE = (
    "false here by a computed law: 1.047 on a path of probability 3e-8 (benchmarks/catalogue/corners.py), which no "
    "affordable number of runs sees"
)


#: The path is one arm for ever, though its loss is 1: likelier where the first loss was -1.
PUNISHED = [[1.0] * 2] * 19


def opposite_pair(arms: int) -> tuple[object, object]:
    """Return two rounds whose first losses are 1 or -1 for all arms, and whose last are 0."""
    return [[1.0] * arms, [0.0] * arms], [[-1.0] * arms, [0.0] * arms]


def axis_pair(rounds: int, *, zero: bool = False) -> tuple[object, object]:
    """Return worlds whose first losses are the first axis and its opposite, or 0; then it is the first axis."""
    axis = [1.0, 0.0]
    return [axis] * rounds, [[0.0 if zero else -1.0, 0.0]] + [axis] * (rounds - 1)


def scrible_cases() -> tuple[Case, ...]:
    """Return the audits of SCRiBLe with Theorem 4.5's own eta."""
    pair = axis_pair(2)
    return (
        FalsifiedCase(**OWN_STEP, pair=pair, runs=50_000),
        FalsifiedCase(**FED, pair=pair, surface="release", runs=50_000),
        SurvivingCase(pair=axis_pair(2, zero=True), surface="release", **WEAKER, runs=50_000),
        SurvivingCase(pair=pair, **REPAIRED, runs=50_000),
        SurvivingCase(pair=pair, surface="release", **REPAIRED, runs=50_000),
    )


ENTRIES = (
    Entry(
        name="agarwal-singh/reduction-threshold",
        summary="bandit reduction around the Threshold probe",
        source=LEMMA,
        build=reduction_threshold,
        rounds=2,
        losses="symmetric",
        cases=(
            FalsifiedCase(**EVERY_INNER),
            FalsifiedCase(**FED, surface="release"),
            SurvivingCase(**WEAKER),
            SurvivingCase(**EVERY_INNER, losses="unit"),
            SurvivingCase(**REPAIRED),
        ),
    ),
    Entry(
        name="agarwal-singh/reduction-exp2",
        summary="bandit reduction around EXP2 over arms",
        source="Agarwal & Singh 2017, Theorem 4.1; any rates: Lemma 4.2",
        build=reduction_exp2,
        rounds=4,
        losses="symmetric",
        regret=RegretClaim(bound=exp2_bound, exponent=0.5, source=PROOF_4_1),
        cases=(
            FalsifiedCase(**EVERY_INNER, parameters=SHARP),
            SurvivingCase(
                standing="computed",
                statement=said.AS_THEOREM_4_1,
                pair=([[-1.0] * 2, *PUNISHED], [[1.0] * 2, *PUNISHED]),
                rounds=20,
                runs=5_000,
                note=TOO_RARE,
                untested="allowed",
            ),
            SurvivingCase(**WEAKER, parameters=SHARP),
            SurvivingCase(**REPAIRED, parameters=SHARP),
        ),
        example=FalsifiedCase(**EVERY_INNER, parameters=SHARP),
    ),
    Entry(
        name="agarwal-singh/reduction-exp2-actions",
        summary="bandit reduction around EXP2 over a finite set of points",
        source=LEMMA,
        build=reduction_exp2_actions,
        rounds=2,
        losses="symmetric",
        regret=RegretClaim(
            bound=exp2_bound, exponent=0.5, source=f"{PROOF_4_1}, read for a set of points", measured=False
        ),
        cases=(
            FalsifiedCase(**FED, surface="release", runs=100_000),
            FalsifiedCase(**EVERY_INNER, arms=1, parameters={"eta": 8.0, "gamma": 0.02}, runs=100_000),
            SurvivingCase(**WEAKER, surface="release", runs=100_000),
            SurvivingCase(**REPAIRED, surface="release", runs=100_000),
            SurvivingCase(**REPAIRED, arms=1, parameters={"eta": 8.0, "gamma": 0.02}, runs=100_000),
        ),
        example=FalsifiedCase(**EVERY_INNER, arms=1, parameters={"eta": 8.0, "gamma": 0.02}),
    ),
    Entry(
        name="agarwal-singh/reduction-scrible",
        summary="bandit reduction around SCRiBLe",
        source=said.AS_THEOREM_4_5.source,
        build=reduction_scrible,
        rounds=2,
        losses="l1-ball",
        regret=RegretClaim(bound=scrible_bound, exponent=0.5, source=PROOF_4_5, measured=False),
        cases=(
            FalsifiedCase(**FED, surface="release", runs=100_000),
            FalsifiedCase(
                standing="theorem",
                statement=said.AS_THEOREM_4_5,
                arms=1,
                runs=100_000,
                note="with the theorem's own eta",
            ),
            SurvivingCase(**WEAKER, surface="release", runs=100_000),
            SurvivingCase(**REPAIRED, surface="release", runs=100_000),
            SurvivingCase(**REPAIRED, arms=1, runs=100_000),
        ),
    ),
    Entry(
        name="agarwal-singh/gaussian-threshold",
        summary="bandit reduction with Gaussian noise around the Threshold probe",
        source=VERSION_1,
        build=gaussian_threshold,
        rounds=2,
        delta=1e-2,
        losses="symmetric",
        cases=(
            SurvivingCase(standing="reading", epsilon=2.0, arms=5, pair=opposite_pair(5), runs=100_000, note=READING),
            SurvivingCase(standing="reading", epsilon=2.0, surface="release", runs=100_000, note=READING),
            FalsifiedCase(standing="reading", epsilon=2.0, delta=0.1, surface="release", runs=50_000, note=READING),
            SurvivingCase(epsilon=2.0, delta=0.1, **REPAIRED, runs=100_000),
        ),
        # Nearer to the losses than the default, which less noise than ours hardly ever meets.
        example=SurvivingCase(standing="reading", parameters={"threshold": 3.0}, note=READING),
    ),
    Entry(
        name="agarwal-singh/gaussian-exp2",
        summary="bandit reduction with Gaussian noise around EXP2 over arms",
        source=VERSION_1,
        build=gaussian_exp2,
        rounds=4,
        delta=1e-2,
        losses="symmetric",
        regret=RegretClaim(bound=gaussian_exp2_bound, exponent=0.5, source=f"{VERSION_1}; the constants are derived"),
        cases=(
            SurvivingCase(standing="reading", epsilon=2.0, parameters=SHARP, runs=100_000, note=READING),
            SurvivingCase(
                standing="reading", epsilon=2.0, surface="release", parameters=SHARP, runs=50_000, note=READING
            ),
            SurvivingCase(epsilon=2.0, **REPAIRED, parameters=SHARP, runs=100_000),
        ),
        example=SurvivingCase(standing="reading", parameters=SHARP, note=READING),
    ),
    Entry(
        name="agarwal-singh/reduction-exp2-hypercube",
        summary="bandit reduction around EXP2 over the vertices of the cube",
        source=LEMMA,
        build=reduction_exp2_hypercube,
        rounds=2,
        losses="l1-ball",
        regret=RegretClaim(
            bound=exp2_bound, exponent=0.5, source=f"{PROOF_4_1}, read for a set of points", measured=False
        ),
        cases=(
            FalsifiedCase(**FED, pair=axis_pair(2), surface="release", runs=50_000),
            FalsifiedCase(**EVERY_INNER, pair=axis_pair(4), rounds=4, parameters=STEEP, runs=100_000),
            SurvivingCase(
                pair=axis_pair(2, zero=True),
                surface="release",
                **WEAKER,
                runs=50_000,
            ),
            SurvivingCase(pair=axis_pair(2), surface="release", **REPAIRED, runs=50_000),
            SurvivingCase(
                pair=axis_pair(4),
                rounds=4,
                **REPAIRED,
                parameters=STEEP,
                runs=100_000,
            ),
        ),
        example=FalsifiedCase(**EVERY_INNER, rounds=4, parameters=STEEP),
    ),
    Entry(
        name="agarwal-singh/reduction-scrible-ball",
        summary="bandit reduction around SCRiBLe over the L2 ball",
        source=said.AS_THEOREM_4_5.source,
        build=reduction_scrible_ball,
        rounds=2,
        losses="l1-ball",
        regret=RegretClaim(bound=scrible_ball_bound, exponent=0.5, source=PROOF_4_5, measured=False),
        cases=scrible_cases(),
    ),
    Entry(
        name="agarwal-singh/reduction-scrible-simplex",
        summary="bandit reduction around SCRiBLe over the simplex",
        source=said.AS_THEOREM_4_5.source,
        build=reduction_scrible_simplex,
        rounds=2,
        losses="l1-ball",
        regret=RegretClaim(bound=scrible_simplex_bound, exponent=0.5, source=PROOF_4_5, measured=False),
        cases=scrible_cases(),
    ),
)
