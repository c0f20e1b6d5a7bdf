"""Ene, Nguyen & Vladu 2021: the catalogue's entries of NoisyOCO, its oracles, scaling, doubling, and the tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...errors import must_be
from ...mechanisms.draws import Floats
from ...mechanisms.noise import Gaussian, Laplace, scale_of
from ...mechanisms.parameters import check_positive
from ...mechanisms.tree import depth
from ..entry import Case, Entry, FalsifiedCase, RegretClaim, Setting, Shared, SurvivingCase
from ..leaders.doubling import Doubling
from ..leaders.ftpl import Ftpl, gaussian_sigma, least_sigma
from ..leaders.ftrl import Ftrl
from ..leaders.private_bandit import NoisyOco, PrivateBandit, sampling_radius
from ..problems.assignments import Assignments
from ..problems.combinatorial import MOST_ELEMENTS, BasePolytope, Paths, SpanningTrees
from ..problems.domains import Cube, L2Ball, LinearOracle
from ..protocol import Learner
from . import statements as said
from .ene_nguyen_vladu import PAPER, REPAIRED, private_bandit_laplace, regret_laplace, released_levels, slope_pair

#: In diameters: a response may take 4 / precision^2 calls of the oracle.
LEAST_PRECISION = 1e-2


def noisy_oco(setting: Setting, oracle: LinearOracle, eta: float | None, precision: float) -> NoisyOco:
    """Return NoisyOCO (Algorithm 2) told gradients of L1 norm at most 1, with Theorem 4's noise Y_1 log2 T / epsilon.

    The paper runs it inside PrivateBandit only; as a learner of its own, and in what is private about it, it is our
    reading. eta = D / sqrt(T) is line 1 of Algorithm 2 with kappa = 1 and D_omega = D. Corrected, the noise is the L1
    diameter 2 times the nodes that a round reaches.
    """
    check_positive("precision", precision, minimum=LEAST_PRECISION)
    t = setting.rounds
    size = math.log2(max(t, 2)) if setting.published else 2.0 * max(depth(t), 1)
    noise = Laplace(0.0 if math.isinf(setting.epsilon) else size / setting.epsilon)
    eta = oracle.diameter / math.sqrt(t) if eta is None else eta
    return NoisyOco(oracle=oracle, rounds=t, eta=eta, noise=noise, precision=precision * oracle.diameter)


def oco_ball(setting: Setting, *, eta: float | None = None, precision: float = 0.25) -> NoisyOco:
    """Return NoisyOCO over the unit ball; `precision` is in diameters."""
    return noisy_oco(setting, L2Ball(setting.arms), eta, precision)


def oco_spanning_trees(setting: Setting, *, eta: float | None = None, precision: float = 0.25) -> NoisyOco:
    """Return NoisyOCO over the spanning trees of a cycle of `arms` edges: a matroid base polytope."""
    n = setting.arms
    if n < 2:
        raise must_be("arms", "at least 2, the edges of a cycle", n)
    return noisy_oco(setting, SpanningTrees(n, tuple((i, (i + 1) % n) for i in range(n))), eta, precision)


def oco_paths(setting: Setting, *, eta: float | None = None, precision: float = 0.25) -> NoisyOco:
    """Return NoisyOCO over the paths through `arms` / 2 stages of two parallel edges: a flow polytope."""
    if setting.arms % 2:
        raise must_be("arms", "even, two edges for each stage", setting.arms)
    stages = setting.arms // 2
    edges = tuple((i, i + 1) for i in range(stages) for _ in range(2))
    return noisy_oco(setting, Paths(stages + 1, edges), eta, precision)


def oco_assignments(setting: Setting, *, eta: float | None = None, precision: float = 0.25) -> NoisyOco:
    """Return NoisyOCO over the assignments of sqrt(`arms`) tasks: the Birkhoff polytope."""
    size = math.isqrt(setting.arms)
    if size**2 != setting.arms or size == 1:
        raise must_be("arms", "4, 9, 16, ..., the entries of a permutation matrix", setting.arms)
    return noisy_oco(setting, Assignments(size), eta, precision)


def oco_rankings(setting: Setting, *, eta: float | None = None, precision: float = 0.25) -> NoisyOco:
    """Return NoisyOCO over the rankings of `arms` items, from 1 for the first to 0 for the last: a base polytope.

    Its submodular function is the sum of the |S| largest ranks.
    """
    n = setting.arms
    if not 2 <= n <= MOST_ELEMENTS:
        raise must_be("arms", f"from 2 to {MOST_ELEMENTS}, the items of a ranking", n)
    largest = [math.fsum(1 - k / (n - 1) for k in range(size)) for size in range(n + 1)]
    return noisy_oco(setting, BasePolytope(tuple(largest[s.bit_count()] for s in range(2**n))), eta, precision)


@dataclass(frozen=True)
class Shrunken:
    """A domain that contains the origin, multiplied by a factor below 1."""

    oracle: LinearOracle
    factor: float

    @property
    def shrunk_from(self) -> LinearOracle:
        """The whole domain."""
        return self.oracle

    @property
    def outer_radius(self) -> float:
        """The radius of a ball around 0 that holds it."""
        return self.factor * float(getattr(self.oracle, "outer_radius", self.oracle.diameter))

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return self.oracle.dim

    @property
    def diameter(self) -> float:
        """The domain's times the factor."""
        return self.factor * self.oracle.diameter

    def minimise(self, linear: Floats) -> Floats:
        """Return the domain's minimisers times the factor."""
        return self.factor * self.oracle.minimise(linear)


def private_bandit_scaled(setting: Setting) -> PrivateBandit:
    """Return PrivateBandit on the unit ball with the scaling trick: it plays inside the domain.

    Responses come from the ball of radius 1 - a with a = zeta, so that what is played stays in the unit ball and |f|
    is at most L D there. The paper leaves the details to its full version, so they are our reading: the noise is
    Lemma 7's times 1 / (1 - a), as M = L D n / zeta grows by that.
    Corrected, a node's L1 sensitivity, 2 n^1.5 L D / zeta, times the nodes that a round reaches.
    """
    n, t = setting.arms, setting.rounds
    body = L2Ball(n)
    ratio = sampling_radius(t, n, body.diameter)
    share = 1 / (1 + ratio)  # zeta = kept * ratio = 1 - kept
    if setting.published:
        scale = math.sqrt(t) * n * math.log2(max(t, 2)) / share
    else:
        scale = 2 * math.sqrt(n) * body.diameter * n / (share * ratio) * released_levels(t)
    noise = Laplace(0.0 if math.isinf(setting.epsilon) else scale / setting.epsilon)
    return PrivateBandit(oracle=Shrunken(body, share), rounds=t, noise=noise)


def _of_horizon(setting: Setting, horizon: int) -> PrivateBandit:
    return private_bandit_laplace(replace(setting, rounds=horizon))


def private_bandit_doubling(setting: Setting, *, first: int = 16) -> Doubling:
    """Return PrivateBandit with Laplace noise, run afresh for 16 rounds, then 32, and so on."""
    return Doubling(build=partial(_of_horizon, setting), first=first)


def oco_bound(setting: Setting, learner: NoisyOco) -> float:
    """Return `sqrt(T) kappa D + T kappa gamma`: Lemma 6 without its unknown constant, kappa = 1.

    gamma = eta sqrt(2 n ceil(lg T)) lambda plus the precision bounds how far noise and approximation move a response.
    """
    t, n, d = setting.rounds, setting.arms, learner.oracle.diameter
    scale = scale_of(learner.noise)
    gamma = learner.eta * math.sqrt(2 * n * depth(t)) * scale + learner.precision
    return math.sqrt(t) * d + t * gamma


def scaled_bound(setting: Setting, learner: PrivateBandit) -> float:
    """Return Lemma 8's bound, without its unknown constant, plus L D T times the share that the domain lost."""
    shrinkage = 1 - learner.oracle.diameter / 2
    return regret_laplace(setting, learner) / (1 - shrinkage) + 2 * shrinkage * setting.rounds


def doubling_bound(setting: Setting, learner: Doubling) -> float:
    """Return the sum of Lemma 8's bounds over the runs."""
    total, horizon, left = 0.0, learner.first, setting.rounds
    while left > 0:
        total += regret_laplace(replace(setting, rounds=horizon), learner)
        left, horizon = left - horizon, 2 * horizon
    return total


def gradient_pair(rounds: int, dim: int) -> tuple[object, object]:
    """Return worlds of linear losses: the first axis or its opposite in round 1, then 0."""
    axis = [1.0, *[0.0] * (dim - 1)]
    rest = [[0.0] * dim] * (rounds - 1)
    return [axis, *rest], [[-x for x in axis], *rest]


WHOLE_SUMS: Shared = {"standing": "theorem", "statement": said.ENE_THEOREM_4, "surface": "publication"}
WHOLE_GAUSSIAN: Shared = {**WHOLE_SUMS, "statement": said.ENE_THEOREM_4_GAUSSIAN}
GAUSSIAN = {"noise": "gaussian"}
LARGE_EPSILON: dict[str, Any] = {"epsilon": 3.0, "delta": 0.1, "parameters": GAUSSIAN, "runs": 50_000}
ALONE_NOTE = (
    "the paper states no privacy of NoisyOCO alone: its noise is read off Theorem 4, for gradients of L1 norm 1"
)
SLACK = "slack T^(1/4): one round of a batch changes"
SCALED = f"the full version has the details of the scaling trick, ours are a reading; {SLACK}"
ONE_RUN_NOTE = (
    f"a round belongs to one run, so we claim the learner's epsilon, where the paper allows log T times it; {SLACK}"
)
READING: Shared = {"standing": "reading", "note": ALONE_NOTE}
#: Responses mostly inside the domain, where they show what they answer.
INTERIOR = {"eta": 0.1, "precision": 0.02}


def tree_aggregation(setting: Setting, *, noise: str = "laplace") -> Ftrl | Ftpl:
    """Return the counter of Theorem 4 for vectors in the L1 ball, Y_1 = Y_2 = 1: noise log2 T / epsilon.

    With `noise` "gaussian", sigma = log2 T log2(log2 T / delta) / epsilon: base 2, our reading, makes it largest. The
    counter is that of Agarwal & Singh, so it is read off their leaders over the cube, which publish it. Corrected, the
    noise is for the diameter 2 and the floor(log2 T) + 1 nodes that a vector reaches.
    """
    t, nodes, epsilon = setting.rounds, setting.rounds.bit_length(), setting.epsilon
    if noise not in ("laplace", "gaussian"):
        raise must_be("noise", "laplace or gaussian", noise)
    if noise == "laplace":
        size = math.log2(t) if setting.published else 2.0 * nodes
        law = Laplace(0.0 if math.isinf(epsilon) else size / epsilon)
        return Ftrl(domain=Cube(setting.arms), rounds=t, eta=1.0, noise=law)
    if setting.published:
        sigma = least_sigma(rounds=t, size=1.0, epsilon=epsilon, delta=setting.delta, base="2")
    else:
        sigma = gaussian_sigma(sensitivity=2 * math.sqrt(nodes), epsilon=epsilon, delta=setting.delta)
    return Ftpl(domain=Cube(setting.arms), rounds=t, noise=Gaussian(sigma))


def oco_cases(dim: int, inside: Mapping[str, object], runs: int = 20_000) -> tuple[Case, ...]:
    """Return the audits of NoisyOCO over one of its oracles.

    `inside` are the parameters where actions are seen, `runs` those that falsify from them.
    """
    short, pair = gradient_pair(2, dim), gradient_pair(4, dim)
    return (
        FalsifiedCase(**READING, pair=short, rounds=2, parameters=inside, runs=runs),
        FalsifiedCase(**READING, pair=pair, surface="release", runs=20_000),
        SurvivingCase(**REPAIRED, pair=short, rounds=2, parameters=inside, runs=50_000),
        SurvivingCase(**REPAIRED, pair=pair, surface="release", runs=20_000),
    )


def oco_entry(
    name: str, summary: str, build: Callable[..., Learner], dim: int, cases: tuple[Case, ...], *, slow: bool = False
) -> Entry:
    """Return the entry of NoisyOCO over an oracle; its regret is left out of `run` where that is slow."""
    source = f"{PAPER}, Lemma 6 without its constant"
    return Entry(
        name=f"ene-nguyen-vladu/{name}",
        summary=summary,
        source=f"{PAPER}, Algorithm 2 with the noise of Theorem 4 (our reading)",
        build=build,
        rounds=4,
        arms=dim,
        losses="l1-ball",
        fixed_losses=True,
        regret=RegretClaim(bound=oco_bound, exponent=0.5, source=source, constant=False, measured=not slow),
        cases=cases,
        example=replace(cases[0], pair=None),
    )


ENTRIES = (
    oco_entry(
        "noisy-oco",
        "noisy online convex optimisation over the L2 ball, Laplace tree",
        oco_ball,
        2,
        oco_cases(2, INTERIOR),
    ),
    oco_entry(
        "oco-spanning-trees",
        "NoisyOCO over spanning trees, a matroid",
        oco_spanning_trees,
        3,
        oco_cases(3, {"precision": 0.1}),
        slow=True,
    ),
    oco_entry("oco-paths", "NoisyOCO over paths, a flow polytope", oco_paths, 4, oco_cases(4, INTERIOR), slow=True),
    oco_entry(
        "oco-assignments",
        "NoisyOCO over assignments",
        oco_assignments,
        4,
        oco_cases(4, INTERIOR, runs=100_000),
        slow=True,
    ),
    oco_entry(
        "oco-rankings",
        "NoisyOCO over rankings, a submodular base polytope",
        oco_rankings,
        3,
        oco_cases(3, INTERIOR),
        slow=True,
    ),
    Entry(
        name="ene-nguyen-vladu/private-bandit-scaled",
        summary="projection-free bandit that plays inside the domain, by the scaling trick",
        source=f"{PAPER}, Lemma 7 with the scaling trick of the preliminaries (our reading)",
        build=private_bandit_scaled,
        rounds=16,
        arms=1,
        losses="lipschitz",
        fixed_losses=True,
        regret=RegretClaim(
            bound=scaled_bound, exponent=0.75, source=f"{PAPER}, Lemma 8; the rest is derived", constant=False
        ),
        cases=(
            SurvivingCase(standing="reading", pair=slope_pair(16, 1), surface="release", runs=50_000, note=SCALED),
            SurvivingCase(**REPAIRED, pair=slope_pair(16, 1), surface="release", runs=50_000),
            SurvivingCase(**REPAIRED, pair=slope_pair(16, 2), surface="release", arms=2, runs=50_000),
        ),
        example=SurvivingCase(**REPAIRED, surface="release"),
    ),
    Entry(
        name="ene-nguyen-vladu/private-bandit-doubling",
        summary="projection-free bandit of unknown horizon, by doubling",
        source=f"{PAPER}, Lemma 7 with the doubling trick of the preliminaries (our reading)",
        build=private_bandit_doubling,
        rounds=24,
        arms=1,
        losses="lipschitz",
        fixed_losses=True,
        regret=RegretClaim(
            bound=doubling_bound, exponent=0.75, source=f"{PAPER}, Lemma 8, summed over the runs", constant=False
        ),
        cases=(
            SurvivingCase(
                standing="reading", pair=slope_pair(24, 1), surface="release", runs=50_000, note=ONE_RUN_NOTE
            ),
            SurvivingCase(**REPAIRED, pair=slope_pair(24, 1), surface="release", runs=50_000),
        ),
        example=SurvivingCase(**REPAIRED, surface="release"),
    ),
    Entry(
        name="ene-nguyen-vladu/tree-aggregation",
        summary="tree-based aggregation of vectors, Laplace or Gaussian noise",
        source=said.ENE_THEOREM_4.source,
        build=tree_aggregation,
        rounds=2,
        arms=1,
        losses="l1-ball",
        fixed_losses=True,
        cases=(
            FalsifiedCase(**WHOLE_SUMS, rounds=4, runs=50_000, note="without the root of the tree exactly 2"),
            FalsifiedCase(**WHOLE_SUMS, neighbours="zero-out", runs=50_000),
            SurvivingCase(**REPAIRED, surface="publication", rounds=4, runs=50_000),
            FalsifiedCase(**WHOLE_GAUSSIAN, **LARGE_EPSILON),
            SurvivingCase(**WHOLE_GAUSSIAN, rounds=4, delta=1e-2, parameters=GAUSSIAN, runs=100_000),
            SurvivingCase(**REPAIRED, surface="publication", **LARGE_EPSILON),
        ),
    ),
)
