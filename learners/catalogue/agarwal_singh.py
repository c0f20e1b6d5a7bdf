"""Agarwal & Singh 2017, The Price of Differential Privacy for Online Learning: the catalogue's entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...errors import must_be, must_be_one_of
from ...mechanisms.noise import Gaussian, Laplace
from ...mechanisms.tree import depth
from ..bandits.exp2 import Exp2, hypercube, signed_axes
from ..bandits.exp2_hypercube import HypercubeExp2
from ..bandits.exp3 import Exp3
from ..bandits.scrible import Scrible
from ..conversions.reduction import BanditReduction
from ..entry import Case, Entry, FalsifiedCase, RegretClaim, Setting, Shared, SurvivingCase
from ..leaders.ftpl import LOGARITHMS, Ftpl, gaussian_sigma, least_sigma, published_sigma, read_in, regret_sigma
from ..leaders.ftrl import Ftrl
from ..probes.threshold import Threshold
from ..problems.barriers import BallBarrier, Barrier, BoxBarrier, SimplexBarrier
from ..problems.domains import Ball, Cube, EntropySimplex, Minimiser, Simplex
from ..protocol import Learner
from . import statements as said
from .bounds.agarwal_singh import (
    ball_bound,
    cube_bound,
    experts_bound,
    l1_norm,
    l2_norm,
    perturbed_bound,
    scrible_sizes,
)


def reached(setting: Setting, whole: bool) -> int:
    """Return how many noisy nodes hold a round: ceil(log2 T) before the last prefix; `whole`, floor(log2 T) + 1."""
    return setting.rounds.bit_length() if whole else depth(setting.rounds)


def node_noise(setting: Setting, whole: bool = False, base: str = "2") -> Laplace:
    """Return Theorem 3.1's noise of a node: ||Y||_1 log T / epsilon, without a ceiling; `base` is the logarithm's.

    Corrected, the L1 diameter in place of the norm, and the nodes that hold a round in place of log2 T: before the
    last prefix, or in the `whole` sequence of Lemma 3.3.
    """
    log = read_in(base, LOGARITHMS)
    if math.isinf(setting.epsilon):
        return Laplace(0.0)
    if setting.published:
        return Laplace(l1_norm(setting) * log(setting.rounds) / setting.epsilon)
    return Laplace(l1_norm(setting) * setting.range * reached(setting, whole) / setting.epsilon)


def ftrl_experts(setting: Setting, *, eta: float | None = None, whole: bool = False, base: str = "2") -> Ftrl:
    """Return FTRL over experts: noise N log2 T / epsilon (Corollary 3.2.1); eta = sqrt(2 ln N / T) is our choice.

    `base` is how the published log T is read: 2, e or 10.
    """
    n, t = setting.arms, setting.rounds
    eta = math.sqrt(2 * math.log(max(n, 2)) / t) if eta is None else eta
    return Ftrl(domain=EntropySimplex(n), rounds=t, eta=eta, noise=node_noise(setting, whole, base))


def ftrl_ball(setting: Setting, *, eta: float | None = None, whole: bool = False) -> Ftrl:
    """Return FTRL over the L2 ball: noise sqrt(N) log2 T / epsilon (Corollary 3.2.2).

    eta = 2 / sqrt(T), our choice, balances D_R / eta = 1 / eta with the stability term eta T / 4.
    """
    t = setting.rounds
    eta = 2 / math.sqrt(t) if eta is None else eta
    return Ftrl(domain=Ball(setting.arms), rounds=t, eta=eta, noise=node_noise(setting, whole))


def ftrl_cube(setting: Setting, *, eta: float | None = None, whole: bool = False) -> Ftrl:
    """Return FTRL over the cube: noise log2 T / epsilon for losses in the L1 ball (Corollary 3.2.3).

    eta = 2 sqrt(N / T), our choice, balances D_R / eta = N / eta with the stability term eta T / 4.
    """
    n, t = setting.arms, setting.rounds
    eta = 2 * math.sqrt(n / t) if eta is None else eta
    return Ftrl(domain=Cube(n), rounds=t, eta=eta, noise=node_noise(setting, whole))


def ftpl_over(domain: Callable[[int], Minimiser]) -> Callable[..., Ftpl]:
    """Return what builds FTPL over a domain: sigma of Theorem 3.5, or the least that Theorem A.1 allows.

    `noise_delta` calibrates the noise where the claim's delta is another, such as 0; `theorem` is whose sigma it is,
    3.5 or A.1; `base` is how the logarithms are read (`BASES`); `whole` is what the corrected noise pays for.
    Corrected, sigma is the least that (epsilon, delta) needs: the L2 diameter of the losses times the root of the
    nodes that hold a round, before the last prefix or in the `whole` sequence; but never less than low regret wants.
    """

    def ftpl(
        setting: Setting,
        *,
        noise_delta: float | None = None,
        theorem: str = "3.5",
        base: str = "mixed",
        whole: bool = False,
    ) -> Ftpl:
        t, n, delta = setting.rounds, setting.arms, setting.delta if noise_delta is None else noise_delta
        epsilon = setting.epsilon
        if noise_delta is not None and not 0 < noise_delta < 1:
            raise must_be("noise_delta", "in (0, 1)", noise_delta)
        if theorem not in ("3.5", "A.1"):
            raise must_be("theorem", "3.5 or A.1", theorem)
        if theorem == "3.5":
            sigma = published_sigma(dim=n, norm=l2_norm(setting), rounds=t, epsilon=epsilon, delta=delta, base=base)
        else:
            sigma = least_sigma(size=l2_norm(setting), rounds=t, epsilon=epsilon, delta=delta, base=base)
        if not setting.published and sigma > 0:
            sensitivity = l2_norm(setting) * setting.range * math.sqrt(reached(setting, whole))
            exact_sigma = gaussian_sigma(sensitivity=sensitivity, epsilon=setting.epsilon, delta=delta)
            sigma = max(exact_sigma, regret_sigma(rounds=t, dim=n, norm=l2_norm(setting)))
        return Ftpl(domain=domain(n), rounds=t, noise=Gaussian(sigma))

    return ftpl


def reduction(setting: Setting, inner: Learner, bound: float = 1.0) -> BanditReduction:
    """Return Algorithm 4 around `inner`: noise B / epsilon; corrected, the diameter, B times the range of the losses.

    `bound` is B = max |<l, x>| / ||x||_inf.
    """
    sensitivity = bound * (1.0 if setting.published else setting.range)
    return BanditReduction(inner=inner, epsilon=setting.epsilon, sensitivity=sensitivity)


def reduction_threshold(setting: Setting, *, threshold: float = 1.0) -> BanditReduction:
    """Return the reduction around the Threshold probe; c = 1, the largest loss, leaks most."""
    return reduction(setting, Threshold(arms=setting.arms, threshold=threshold))


def exp2_rates(setting: Setting, choices: int) -> tuple[float, float]:
    """Return Theorem 4.1's eta and gamma; with |S| other than N points inside its first logarithm, our choice."""
    n, t = setting.arms, setting.rounds
    lam = 0.0 if math.isinf(setting.epsilon) else 1 / setting.epsilon
    moment = 1 + 2 * lam**2 * math.log(n * t)
    eta = math.sqrt(math.log(max(choices, 2)) / (2 * n * t * moment))
    return eta, min(1.0, eta * n * math.sqrt(moment))


def reduction_exp2(setting: Setting, *, eta: float | None = None, gamma: float | None = None) -> BanditReduction:
    """Return the reduction around EXP2 over arms, which is EXP3 with mixing; Theorem 4.1's eta and gamma."""
    rates = exp2_rates(setting, setting.arms)
    inner = Exp3(arms=setting.arms, eta=rates[0] if eta is None else eta, gamma=rates[1] if gamma is None else gamma)
    return reduction(setting, inner)


def reduction_exp2_actions(
    setting: Setting, *, eta: float | None = None, gamma: float | None = None, points: str = "axes"
) -> BanditReduction:
    """Return the reduction around EXP2 over a finite set S of points.

    `points` is "axes", the 2N points +-e_i, where B = ||Y||_inf = 1; or "hypercube", the vertices of [-1, 1]^N, where
    B = ||Y||_1.
    """
    if points not in ("axes", "hypercube"):
        raise must_be("points", "axes or hypercube", points)
    algorithm: Callable[..., Exp2] = Exp2 if points == "axes" else HypercubeExp2
    actions = signed_axes(setting.arms) if points == "axes" else hypercube(setting.arms)
    rates = exp2_rates(setting, actions.shape[1])
    inner = algorithm(
        actions=actions, eta=rates[0] if eta is None else eta, gamma=rates[1] if gamma is None else gamma
    )
    return reduction(setting, inner, 1.0 if points == "axes" else l1_norm(setting))


def reduction_scrible(setting: Setting, *, eta: float | None = None, domain: str = "cube") -> BanditReduction:
    """Return the reduction around SCRiBLe: noise ||Y||_1 / epsilon, eta of Theorem 4.5.

    `domain` is "cube" (nu = N), "ball" (nu = 1) or "simplex" (nu = N).
    """
    barriers: dict[str, Callable[[int], Barrier]] = {
        "cube": BoxBarrier,
        "ball": BallBarrier,
        "simplex": SimplexBarrier,
    }
    if domain not in barriers:
        raise must_be_one_of("domain", barriers, domain)
    n, t = setting.arms, max(setting.rounds, 2)
    barrier = barriers[domain](n)
    if eta is None:
        lam = 0.0 if math.isinf(setting.epsilon) else l1_norm(setting) / setting.epsilon
        largest, squared = scrible_sizes(setting, domain)
        eta = math.sqrt(barrier.nu * math.log(t) / (2 * n**2 * t * (largest**2 + lam**2 * n * squared)))
    return reduction(setting, Scrible(barrier=barrier, eta=eta), l1_norm(setting))


THEOREM_3_1 = "Agarwal & Singh 2017, Theorem 3.1 and Corollary 3.2"
THEOREM_A_1 = "Agarwal & Singh 2017, Theorem A.1"
#: The theorem itself is stated with O().
PROOF_3_5 = "Agarwal & Singh 2017, Theorem 3.5, with the constants of its proof"

NO_CEILING = (
    "log T of the noise read without a ceiling, as it is printed; with the ceiling that Algorithm 2 has, epsilon is 1"
)
NATURAL = (
    "log T of the noise read as a natural logarithm; that Algorithm 2 pads every sum to ceil(log T) noises takes base "
    "2, and with that epsilon is 1"
)

#: The standing of a case: the words that it audits, or none.
ACTIONS: Shared = {"standing": "theorem", "statement": said.AS_THEOREM_3_1}
SUMS: Shared = {"standing": "proof", "statement": said.AS_PROOF_3_3}
REPAIRED: Shared = {"standing": "control", "calibration": "corrected"}
WEAKER: Shared = {"standing": "variant", "neighbours": "zero-out"}


#: The cases of FTRL over a symmetric body; in one dimension eta = sqrt 2 at T = 2.
FTRL_CASES = (
    FalsifiedCase(**SUMS, surface="release", runs=100_000),
    FalsifiedCase(**ACTIONS, arms=1, rounds=2, runs=20_000),
    FalsifiedCase(
        standing="reading", surface="release", neighbours="zero-out", rounds=3, runs=200_000, note=NO_CEILING
    ),
    SurvivingCase(**WEAKER, surface="release", runs=100_000),
    SurvivingCase(**REPAIRED, surface="release", runs=100_000),
    SurvivingCase(**REPAIRED, arms=1, rounds=2, runs=100_000),
)


PUBLISHED_SUMS: Shared = {"standing": "theorem", "statement": said.AS_LEMMA_3_3, "surface": "publication"}
GAUSSIAN_SUMS: Shared = {"standing": "theorem", "statement": said.AS_THEOREM_A_1, "surface": "publication"}
REPAIRED_SUMS: dict[str, Any] = {**REPAIRED, "surface": "publication", "parameters": {"whole": True}}
LEAST_SIGMA = {"theorem": "A.1"}
LARGE_EPSILON: dict[str, Any] = {"arms": 1, "rounds": 2, "epsilon": 3.0, "delta": 0.1, "runs": 50_000}
#: Theorem A.1 with its own sigma; by Theorem 3.5's, which the builders take, half of all seeds certify nothing.
PUBLISHED_LEAST = SurvivingCase(**GAUSSIAN_SUMS, parameters=LEAST_SIGMA, runs=100_000)


def ftpl_cases(note: str, pure: Mapping[str, object]) -> tuple[Case, ...]:
    """Return the cases of FTPL: Theorem A.1 with its own sigma, and Theorem 3.5's pure claim with its own."""
    return (
        PUBLISHED_LEAST,
        SurvivingCase(
            standing="proof", statement=said.AS_PROOF_A_1, surface="release", parameters=LEAST_SIGMA, runs=100_000
        ),
        SurvivingCase(**REPAIRED, surface="release", runs=100_000),
        FalsifiedCase(
            standing="theorem",
            statement=said.AS_THEOREM_3_5,
            rounds=2,
            delta=0.0,
            parameters=pure,
            runs=100_000,
            note=note,
        ),
    )


_ftrl_entry = partial(Entry, source=THEOREM_3_1, rounds=4)
_ftpl_entry = partial(Entry, source=THEOREM_A_1, rounds=4, delta=1e-2)

ENTRIES = (
    _ftrl_entry(
        name="agarwal-singh/ftrl-experts",
        summary="follow the regularised leader over experts, Laplace tree",
        build=ftrl_experts,
        losses="symmetric",
        regret=RegretClaim(bound=experts_bound, exponent=0.5, source=f"{THEOREM_3_1}, its constant mended"),
        cases=(
            FalsifiedCase(**ACTIONS, delta=1e-3, runs=400_000),
            FalsifiedCase(**SUMS, surface="release"),
            FalsifiedCase(standing="reading", surface="release", losses="unit", rounds=3, note=NO_CEILING),
            FalsifiedCase(
                standing="reading", surface="release", losses="unit", parameters={"base": "e"}, note=NATURAL
            ),
            SurvivingCase(**WEAKER, surface="release"),
            SurvivingCase(**SUMS, losses="unit", surface="release"),
            SurvivingCase(**REPAIRED, surface="release"),
            SurvivingCase(**REPAIRED, delta=1e-3),
            FalsifiedCase(**PUBLISHED_SUMS, losses="unit", rounds=2, runs=50_000),
        ),
    ),
    _ftrl_entry(
        name="agarwal-singh/ftrl-ball",
        summary="follow the regularised leader over the L2 ball, Laplace tree",
        build=ftrl_ball,
        losses="l2-ball",
        regret=RegretClaim(bound=ball_bound, exponent=0.5, source=f"{THEOREM_3_1}, its constant mended"),
        cases=FTRL_CASES,
    ),
    _ftrl_entry(
        name="agarwal-singh/ftrl-cube",
        summary="follow the regularised leader over the cube, Laplace tree",
        build=ftrl_cube,
        losses="l1-ball",
        regret=RegretClaim(bound=cube_bound, exponent=0.5, source=f"{THEOREM_3_1}, its constant mended"),
        cases=(
            *FTRL_CASES,
            FalsifiedCase(**PUBLISHED_SUMS, arms=1, rounds=2, runs=50_000),
            FalsifiedCase(**PUBLISHED_SUMS, arms=1, rounds=2, neighbours="zero-out", runs=50_000),
            SurvivingCase(**REPAIRED_SUMS, arms=1, rounds=2, runs=50_000),
        ),
    ),
    _ftpl_entry(
        name="agarwal-singh/ftpl-simplex",
        summary="follow the perturbed leader over experts, Gaussian tree",
        build=ftpl_over(Simplex),
        losses="symmetric",
        regret=RegretClaim(bound=perturbed_bound, exponent=0.5, source=PROOF_3_5),
        cases=(
            *ftpl_cases("exactly 1.142 in base e, 0.743 in base 10", {"noise_delta": 0.5}),
            FalsifiedCase(
                standing="theorem",
                statement=said.AS_THEOREM_3_5,
                epsilon=0.5,
                rounds=2,
                delta=0.0,
                parameters={"noise_delta": 0.5, "base": "10"},
                runs=20_000,
                note="base 10, in which this game has least: exactly 0.743",
            ),
            FalsifiedCase(**GAUSSIAN_SUMS, parameters={**LEAST_SIGMA, "base": "2"}, **LARGE_EPSILON),
            SurvivingCase(**REPAIRED_SUMS, **LARGE_EPSILON),
        ),
        example=PUBLISHED_LEAST,
    ),
    _ftpl_entry(
        name="agarwal-singh/ftpl-ball",
        summary="follow the perturbed leader over the L2 ball, Gaussian tree",
        build=ftpl_over(Ball),
        losses="l2-ball",
        regret=RegretClaim(bound=perturbed_bound, exponent=0.5, source=PROOF_3_5),
        cases=ftpl_cases("base 2; base e gives a sigma larger by 1 %", {"noise_delta": 0.5, "base": "2"}),
        example=PUBLISHED_LEAST,
    ),
    _ftpl_entry(
        name="agarwal-singh/ftpl-cube",
        summary="follow the perturbed leader over the cube, Gaussian tree",
        build=ftpl_over(Cube),
        losses="l1-ball",
        regret=RegretClaim(bound=perturbed_bound, exponent=0.5, source=PROOF_3_5),
        cases=ftpl_cases("base 2; base e gives a sigma larger by 1 %", {"noise_delta": 0.5, "base": "2"}),
        example=PUBLISHED_LEAST,
    ),
)
