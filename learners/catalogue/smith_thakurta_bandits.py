"""Smith & Thakurta 2013: the catalogue's entries of Appendix E.3, adaptive adversaries, and experts on the simplex."""

from __future__ import annotations

import math
from functools import partial

from ...mechanisms.noise import L2Laplace
from ...mechanisms.parameters import check_positive
from ..entry import Entry, FalsifiedCase, RegretClaim, Setting, Shared, SurvivingCase
from ..leaders.pftal import BanditPftal, Pftal
from ..problems.centred_simplex import CentredSimplex
from ..problems.domains import L2Ball, ProbabilitySimplex, Projection
from ..problems.losses import Adaptive, Linear, Loss, Quadratic, Switch
from .bounds.agarwal_singh import l2_norm
from .smith_thakurta import (
    BANDIT_OUTPUTS,
    BANDIT_SUMS,
    FLAT,
    PAPER,
    PROOF_6,
    REPAIRED,
    bandit_regret_bound,
    node_scale,
    pftal_bandit,
)


def regularised_bandit(setting: Setting, domain: Projection, bound: float) -> BanditPftal:
    """Return Algorithm 3 on `f + H / 2 ||w||^2` with Theorem 17's H = 1 / T^(1/4) and beta = p / T^(1/4).

    The algorithm is told the bound of what it is run on, B + H ||C||^2 / 2. The regulariser does not differ between
    worlds: replace-one needs 2 p B / beta.
    """
    p, t = domain.dim, setting.rounds
    curvature, beta = t**-0.25, p / t**0.25
    norm = p * (bound + curvature * domain.outer_radius**2 / 2) / beta
    noise = L2Laplace(node_scale(setting, norm, 2 * p * bound / beta), p)
    parameters = {"curvature": curvature, "regulariser": curvature, "beta": beta, "bound": bound}
    return BanditPftal(domain=domain, rounds=t, noise=noise, **parameters)


def pftal_bandit_lipschitz(setting: Setting, *, radius: float = 1.0, bound: float = 1.0) -> BanditPftal:
    """Return bandit PFTAL for Lipschitz losses on the ball (Appendix E.3, Theorem 17), for |f| <= `bound`."""
    check_positive("bound", bound)
    return regularised_bandit(setting, L2Ball(setting.arms, radius), bound)


def pftal_bandit_experts(setting: Setting, *, bound: float = 1.0) -> BanditPftal:
    """Return the same over the simplex of `arms` + 1 experts (Table 2), in coordinates of its hull: our reading.

    A linear loss c is `<basis^T c, z> + mean(c)` there.
    """
    check_positive("bound", bound)
    return regularised_bandit(setting, CentredSimplex(setting.arms), bound)


def pftal_bandit_adaptive(
    setting: Setting,
    *,
    curvature: float = FLAT,
    radius: float = 1.0,
    bound: float = 1.0,
    beta: float | None = None,
) -> BanditPftal:
    """Return bandit PFTAL with Theorem 6's beta = p / T^(1/4) for adaptive adversaries."""
    return pftal_bandit(setting, curvature=curvature, radius=radius, bound=bound, adaptive=True, beta=beta)


def pftal_experts(setting: Setting, *, curvature: float | None = None) -> Pftal:
    """Return PFTAL over the simplex of `arms` experts (Table 1): Appendix C's regulariser with Theorem 11's H.

    Losses of experts are L-Lipschitz with L their largest L2 norm, sqrt(p) in [0, 1] and in [-1, 1]. Replace-one
    changes a gradient by at most L times their range.
    """
    p, t = setting.arms, setting.rounds
    if curvature is None:
        epsilon = 1.0 if math.isinf(setting.epsilon) else setting.epsilon
        curvature = math.sqrt(p * max(math.log2(t), 1.0) ** 2.5 / (epsilon * t))
    check_positive("curvature", curvature)
    size = l2_norm(setting)
    noise = L2Laplace(node_scale(setting, size + curvature, size * setting.range), p)
    return Pftal(domain=ProbabilitySimplex(p), rounds=t, curvature=curvature, noise=noise, regulariser=curvature)


def adaptive_bound(setting: Setting, learner: BanditPftal) -> float:
    """Return the bound that holds against adaptive adversaries too."""
    return bandit_regret_bound(setting, learner, adaptive=True)


def experts_regret_bound(setting: Setting, learner: Pftal) -> float:
    """Return Theorem 4's bound (see `smith_thakurta.regret_bound`) for the losses' L, plus H T / 2 (equation 16)."""
    h, p, t = learner.curvature, setting.arms, setting.rounds
    private = 0.0 if math.isinf(setting.epsilon) else 8 * p * math.log2(t) ** 2.5 / setting.epsilon
    return (l2_norm(setting) + h) ** 2 * (2 * (1 + math.log(t)) + private) / h + h * t / 2


def flat_pair(
    rounds: int, dim: int = 1, *, curvature: float = 0.0, radius: float = 1.0, answers: bool = False
) -> tuple[object, object]:
    """Return worlds of flat losses: the largest or the least in round 1, then both in turn.

    With `answers` the later losses are an adaptive adversary's: the least where the last action was positive, else the
    largest.
    """

    def flat(offset: float) -> Linear | Quadratic:
        if curvature == 0:
            return Linear(slope=(0.0,) * dim, offset=offset)
        return Quadratic(curvature=curvature, centre=(0.0,) * dim, offset=offset)

    high, low = flat(1.0 - curvature * radius**2 / 2), flat(-1.0)
    later_losses: list[Loss | Adaptive] = [(high, low)[t % 2] for t in range(rounds - 1)]
    if answers:
        later_losses = [Switch(below=high, above=low, lag=1)] * (rounds - 1)
    return [high, *later_losses], [low, *later_losses]


def opposite_experts(rounds: int) -> tuple[object, object]:
    """Return worlds over two experts whose first losses are opposed, 1 and -1; then all are 0."""
    rest = [[0.0, 0.0]] * (rounds - 1)
    return [[1.0, -1.0], *rest], [[-1.0, 1.0], *rest]


PROOF_6_FOR_17 = f"{PAPER}, Theorem 17; the bound is the last display of the proof of Theorem 6 with its H and beta"
#: A ball hardly larger than beta = 5^(-1/4): the regulariser then adds little to B.
TIGHT = {"radius": 0.68}
ANSWERED: Shared = {
    "standing": "reading",
    "note": "the later losses answer the actions: footnote 1 says that the proofs hold for such adversaries too",
}
ANSWERING = flat_pair(4, curvature=FLAT, answers=True)
ANSWERING_PLANE = flat_pair(8, 2, curvature=FLAT, radius=2.0, answers=True)
SQUARE_ROOT = "for experts' losses in [-1, 1] L is sqrt(p), which we read into Table 1's linear functions"
HULL = "the simplex in R^p holds no ball, as Algorithm 3 needs: run in coordinates of its hull, which is our reading"

_entry = partial(Entry, arms=1, losses="lipschitz", fixed_losses=True)

ENTRIES = (
    _entry(
        name="smith-thakurta/pftal-bandit-lipschitz",
        summary="private follow the approximate leader, bandit feedback, regularised Lipschitz losses",
        source=f"{PAPER}, Theorem 5 and Appendix E.3 with the H and beta of Theorem 17",
        build=pftal_bandit_lipschitz,
        rounds=5,
        regret=RegretClaim(bound=adaptive_bound, exponent=0.75, source=PROOF_6_FOR_17),
        cases=(
            FalsifiedCase(**BANDIT_OUTPUTS, pair=flat_pair(5), parameters=TIGHT, runs=100_000),
            FalsifiedCase(**BANDIT_SUMS, pair=flat_pair(5), parameters=TIGHT, surface="release", runs=50_000),
            SurvivingCase(pair=flat_pair(5), **REPAIRED, parameters=TIGHT, runs=100_000),
            SurvivingCase(
                pair=flat_pair(5),
                surface="release",
                **REPAIRED,
                parameters=TIGHT,
                runs=50_000,
            ),
        ),
    ),
    _entry(
        name="smith-thakurta/pftal-bandit-experts",
        summary="private follow the approximate leader over the simplex of experts, bandit feedback",
        source=f"{PAPER}, Theorem 5, Appendix E.3 and Table 2",
        build=pftal_bandit_experts,
        rounds=5,
        regret=RegretClaim(bound=adaptive_bound, exponent=0.75, source=PROOF_6_FOR_17),
        cases=(
            FalsifiedCase(standing="reading", pair=flat_pair(5), surface="release", runs=100_000, note=HULL),
            SurvivingCase(
                pair=flat_pair(5),
                surface="release",
                **REPAIRED,
                runs=100_000,
                note=HULL,
            ),
        ),
    ),
    _entry(
        name="smith-thakurta/pftal-bandit-adaptive",
        summary="private follow the approximate leader, bandit feedback, adaptive adversaries",
        source=f"{PAPER}, Theorem 5 with the beta of Theorem 6",
        build=pftal_bandit_adaptive,
        rounds=4,
        regret=RegretClaim(bound=adaptive_bound, exponent=0.75, source=PROOF_6),
        cases=(
            FalsifiedCase(**ANSWERED, pair=ANSWERING, runs=100_000),
            FalsifiedCase(**ANSWERED, pair=ANSWERING, surface="release", runs=50_000),
            FalsifiedCase(
                **ANSWERED,
                pair=ANSWERING_PLANE,
                surface="release",
                rounds=8,
                arms=2,
                parameters={"radius": 2.0},
                runs=100_000,
            ),
            SurvivingCase(pair=ANSWERING, **REPAIRED, runs=100_000),
            SurvivingCase(
                pair=ANSWERING_PLANE,
                surface="release",
                **REPAIRED,
                rounds=8,
                arms=2,
                parameters={"radius": 2.0},
                runs=100_000,
            ),
        ),
    ),
    Entry(
        name="smith-thakurta/pftal-experts",
        summary="private follow the approximate leader over the simplex of experts",
        source=f"{PAPER}, Theorem 3, Appendix C and Table 1",
        build=pftal_experts,
        rounds=4,
        losses="symmetric",
        regret=RegretClaim(
            bound=experts_regret_bound,
            exponent=0.5,
            source=f"{PAPER}, Table 1 and Theorem 11; the constants are derived",
        ),
        cases=(
            SurvivingCase(
                standing="reading", note=SQUARE_ROOT, pair=opposite_experts(4), surface="release", runs=100_000
            ),
            SurvivingCase(standing="reading", note=SQUARE_ROOT, pair=opposite_experts(4), runs=100_000),
            SurvivingCase(
                pair=opposite_experts(4),
                surface="release",
                **REPAIRED,
                runs=100_000,
            ),
        ),
        example=SurvivingCase(standing="reading", surface="release", note=SQUARE_ROOT),
    ),
)
