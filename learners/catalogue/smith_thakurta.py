"""Smith & Thakurta 2013, (Nearly) Optimal Algorithms for Private Online Learning: the catalogue's entries."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...errors import must_be
from ...mechanisms.noise import L2Laplace, Laplace
from ...mechanisms.parameters import check_positive
from ...mechanisms.tree import depth
from ..entry import Entry, FalsifiedCase, RegretClaim, Setting, Shared, SurvivingCase
from ..leaders.ftrl import Ftrl
from ..leaders.pftal import BanditPftal, Pftal
from ..problems.domains import Ball, L2Ball
from ..problems.losses import TOLERANCE
from . import statements as said

#: The strong convexity of the adversary's losses. Small: all but the sign of a noisy sum is then clipped away, but the
#: gradients at the start come near the Lipschitz bound.
FLAT = 1e-5


def node_scale(setting: Setting, norm: float, change: float) -> float:
    """Return the scale of a node's noise.

    Parameters
    ----------
    norm : float
        mu, the bound on what a round adds: as published the scale is mu (ceil(lg T) + 1) / epsilon.
    change : float
        By how much replace-one changes what a round adds: corrected, the scale is that times the ceil(lg T) released
        nodes that a round reaches before the last prefix, over epsilon.
    """
    levels = depth(setting.rounds)
    sensitivity = norm * (levels + 1) if setting.published else change * max(levels, 1)
    return 0.0 if math.isinf(setting.epsilon) else sensitivity / setting.epsilon


def curved_ball(dim: int, radius: float, curvature: float) -> L2Ball:
    """Return the ball; raise ValueError if no 1-Lipschitz loss on it is as strongly convex as `curvature` says."""
    domain = L2Ball(dim, radius)
    if curvature * radius > 1 + TOLERANCE:
        raise must_be("curvature", f"at most 1 / radius, {1 / radius:g}, for 1-Lipschitz losses", curvature)
    return domain


def pftal(setting: Setting, *, curvature: float = FLAT, radius: float = 1.0) -> Pftal:
    """Return PFTAL (Algorithm 1) on the ball, for H-strongly convex losses that are 1-Lipschitz there."""
    p = setting.arms
    noise = L2Laplace(node_scale(setting, 1.0, 2.0), p)
    domain = curved_ball(p, radius, curvature)
    return Pftal(domain=domain, rounds=setting.rounds, curvature=curvature, noise=noise)


def pftal_lipschitz(setting: Setting, *, curvature: float | None = None, radius: float = 1.0) -> Pftal:
    """Return PFTAL on `f + H / 2 ||w||^2` (Appendix C), for 1-Lipschitz losses.

    H = sqrt(p lg^2.5 T / (epsilon T)) by default (Theorem 11). Algorithm 1 is told the Lipschitz constant of the
    regularised losses, 1 + H radius; the regulariser does not differ between worlds, so replace-one needs 2.
    """
    p, t = setting.arms, setting.rounds
    if curvature is None:
        epsilon = 1.0 if math.isinf(setting.epsilon) else setting.epsilon
        curvature = math.sqrt(p * max(math.log2(t), 1.0) ** 2.5 / (epsilon * t))
    check_positive("curvature", curvature)
    domain = L2Ball(p, radius)
    noise = L2Laplace(node_scale(setting, 1 + curvature * radius, 2.0), p)
    return Pftal(domain=domain, rounds=t, curvature=curvature, noise=noise, regulariser=curvature)


def pftal_bandit(
    setting: Setting,
    *,
    curvature: float = FLAT,
    radius: float = 1.0,
    bound: float = 1.0,
    adaptive: bool = False,
    beta: float | None = None,
) -> BanditPftal:
    """Return bandit PFTAL (Algorithm 3) on the ball, for |f| <= `bound`.

    `beta` is p / T^(1/3) against oblivious adversaries and p / T^(1/4) against adaptive ones (Theorem 6).
    """
    p, t = setting.arms, setting.rounds
    beta = p / t ** (1 / 4 if adaptive else 1 / 3) if beta is None else beta
    check_positive("beta", beta)
    check_positive("bound", bound)
    norm = p * bound / beta
    noise = L2Laplace(node_scale(setting, norm, 2 * norm), p)
    domain = curved_ball(p, radius, curvature)
    return BanditPftal(domain=domain, rounds=t, curvature=curvature, noise=noise, beta=beta, bound=bound)


def tree_aggregation(setting: Setting) -> Ftrl:
    """Return the tree of Section 2.1 for vectors of L2 norm at most 1, each node (epsilon / log2 T)-private.

    That is noise for the diameter 2. The tree is read off a leader over the ball, which publishes its partial sums.
    Corrected, each of the floor(log2 T) + 1 nodes of a vector has its share of epsilon.
    """
    t, p = setting.rounds, setting.arms
    nodes = math.log2(t) if setting.published else t.bit_length()
    scale = 0.0 if math.isinf(setting.epsilon) else 2 * nodes / setting.epsilon
    noise = Laplace(scale) if p == 1 else L2Laplace(scale, p)
    return Ftrl(domain=Ball(p), rounds=t, eta=1.0, noise=noise)


def regret_bound(setting: Setting, learner: Pftal) -> float:
    """Return `2 G^2 (1 + ln T) / H + 8 p G^2 lg^2.5 T / (epsilon H)`, G = 1 + H ||C||: Theorem 4, constants derived.

    1 + ln T bounds the sum of 1 / t: the theorem's ln T is of its order, but 0 for one round.
    """
    h, p, t = learner.curvature, setting.arms, setting.rounds
    g = 1 + h * learner.domain.outer_radius
    private = 0.0 if math.isinf(setting.epsilon) else 8 * p * math.log2(t) ** 2.5 / setting.epsilon
    return g**2 * (2 * (1 + math.log(t)) + private) / h


def lipschitz_regret_bound(setting: Setting, learner: Pftal) -> float:
    """Return Theorem 4's bound for the regularised losses plus H T ||C||^2 / 2 (equation 16)."""
    excess = learner.curvature * setting.rounds * learner.domain.outer_radius**2 / 2
    return regret_bound(setting, learner) + excess


def bandit_regret_bound(setting: Setting, learner: BanditPftal, *, adaptive: bool = False) -> float:
    """Return the last display of the proof of Theorem 6 with the constants printed there, L = 1 and ||C|| = R.

    `3 beta L T + xi R L T + 2 (H R + p B / beta)^2 / H ln T + 2 p (p B / beta + H R)^2 lg^2.5 T / (beta epsilon H) +
    gamma`, gamma = 2 p B R sqrt(T) / beta against adaptive adversaries and 0 else. With a regulariser h (Appendix C) L
    is 1 + h R, B is more by h R^2 / 2, and h T R^2 / 2 comes on top. For ln T, 0 for one round, 1 stands at least.
    """
    p, t, beta, domain = setting.arms, setting.rounds, learner.beta, learner.domain
    r, outer, extra = domain.inner_radius, domain.outer_radius, learner.regulariser
    h, lipschitz, max_value = learner.curvature, 1 + extra * outer, learner.bound + extra * outer**2 / 2
    private = 0.0 if math.isinf(setting.epsilon) else 2 * p * math.log2(t) ** 2.5 / (beta * setting.epsilon)
    steep = (h * outer + p * max_value / beta) ** 2 / h * (2 * max(math.log(t), 1.0) + private)
    gamma = 2 * p * max_value * outer * math.sqrt(t) / beta if adaptive else 0.0
    return (3 * beta + beta / r * outer) * lipschitz * t + steep + gamma + extra * t * outer**2 / 2


PAPER = "Smith & Thakurta 2013"
#: With beta = p / T^(1/3) it grows as T lg^2.5 T, not as the theorem's T^(2/3): it says nothing at any horizon.
PROOF_6 = f"{PAPER}, Theorem 6; the bound is the last display of its proof"
OUTPUTS: Shared = {"standing": "theorem", "statement": said.ST_THEOREM_3}
SUMS: Shared = {"standing": "proof", "statement": said.ST_PROOF_3}
WHOLE_SUMS: Shared = {**SUMS, "surface": "publication"}
BANDIT_OUTPUTS: Shared = {"standing": "theorem", "statement": said.ST_THEOREM_5}
#: The proof of Theorem 5 is “exactly the same as of Theorem 3”.
BANDIT_SUMS = SUMS
NODES: Shared = {"standing": "proof", "statement": said.ST_NODES, "surface": "publication"}
REPAIRED: Shared = {"standing": "control", "calibration": "corrected"}
WEAKER: Shared = {"standing": "variant", "neighbours": "zero-out"}

SMALL = {"radius": 0.1}
#: beta = p / T^(1/3) must be less than the radius.
IN_THE_PLANE: dict[str, Any] = {"arms": 2, "rounds": 8, "parameters": {"radius": 2.0}, "runs": 100_000}
OWN_CURVATURE = "with the regulariser's H of Theorem 11, on a small ball, where H ‖C‖ adds little to the noise"

_entry = partial(Entry, arms=1, losses="lipschitz", fixed_losses=True)

ENTRIES = (
    _entry(
        name="smith-thakurta/pftal",
        summary="private follow the approximate leader, strongly convex losses",
        source=f"{PAPER}, Theorem 3",
        build=pftal,
        rounds=4,
        regret=RegretClaim(bound=regret_bound, exponent=0.0, source=f"{PAPER}, Theorem 4; the constants are derived"),
        cases=(
            FalsifiedCase(**OUTPUTS),
            FalsifiedCase(**SUMS, surface="release"),
            FalsifiedCase(**OUTPUTS, rounds=8, runs=60_000),
            FalsifiedCase(**SUMS, rounds=8, surface="release"),
            FalsifiedCase(**WHOLE_SUMS),
            SurvivingCase(**WEAKER, surface="release"),
            SurvivingCase(**WEAKER),
            SurvivingCase(**REPAIRED, surface="release"),
            SurvivingCase(**REPAIRED),
            FalsifiedCase(**SUMS, surface="release", arms=2, rounds=8, runs=100_000),
            SurvivingCase(**REPAIRED, surface="release", arms=2, rounds=8, runs=100_000),
        ),
    ),
    _entry(
        name="smith-thakurta/pftal-lipschitz",
        summary="private follow the approximate leader on regularised Lipschitz losses",
        source=f"{PAPER}, Theorem 3 and Appendix C",
        build=pftal_lipschitz,
        rounds=4,
        regret=RegretClaim(
            bound=lipschitz_regret_bound, exponent=0.5, source=f"{PAPER}, Theorem 11; the constants are derived"
        ),
        cases=(
            FalsifiedCase(**OUTPUTS, parameters=SMALL, note=OWN_CURVATURE),
            FalsifiedCase(**SUMS, surface="release", parameters=SMALL, note=OWN_CURVATURE),
            SurvivingCase(**SUMS, surface="release", note="at this T the regulariser doubles the noise"),
            SurvivingCase(**REPAIRED, surface="release"),
            SurvivingCase(**WEAKER, surface="release", parameters=SMALL),
            SurvivingCase(**REPAIRED, surface="release", arms=2, parameters=SMALL, runs=100_000),
        ),
    ),
    _entry(
        name="smith-thakurta/pftal-bandit",
        summary="private follow the approximate leader, bandit feedback",
        source=f"{PAPER}, Theorem 5",
        build=pftal_bandit,
        rounds=4,
        regret=RegretClaim(bound=bandit_regret_bound, exponent=2 / 3, source=PROOF_6),
        cases=(
            FalsifiedCase(**BANDIT_OUTPUTS),
            FalsifiedCase(**BANDIT_SUMS, surface="release"),
            FalsifiedCase(**BANDIT_SUMS, rounds=8, surface="release"),
            SurvivingCase(**WEAKER, surface="release"),
            SurvivingCase(**REPAIRED, surface="release"),
            SurvivingCase(**REPAIRED),
            FalsifiedCase(**BANDIT_SUMS, surface="release", **IN_THE_PLANE),
            SurvivingCase(**REPAIRED, surface="release", **IN_THE_PLANE),
        ),
    ),
    Entry(
        name="smith-thakurta/tree-aggregation",
        summary="tree-based aggregation of vectors, log2 T nodes paid for",
        source=said.ST_NODES.source,
        build=tree_aggregation,
        rounds=2,
        arms=1,
        losses="l2-ball",
        fixed_losses=True,
        cases=(
            FalsifiedCase(**NODES, runs=20_000),
            SurvivingCase(**REPAIRED, surface="publication", runs=50_000),
        ),
    ),
)
