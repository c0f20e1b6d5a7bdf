"""The worst corner of each published statement: its free parameters over their range, by exact laws where possible.

    python benchmarks/catalogue/corners.py

The table goes to benchmarks/results/corners.{md,json}. A ratio above 1 is the exact (or certified) epsilon over the
claimed one: the statement is false there. At most 1: it holds in every corner tried. Two minutes on one core.
"""

import itertools
import json
import math

import numpy as np
from scipy.special import expit, log_ndtr, ndtr

from overclaim import Claim, falsify
from overclaim.audit.execution.execution import Budget
from overclaim.audit.laws.exact import exact_epsilon
from overclaim.audit.plans.tasks import Task
from overclaim.audit.play.pairs import Pair
from overclaim.benchmarks import tables
from overclaim.learners.catalogue.agarwal_singh import exp2_rates
from overclaim.learners.catalogue.ene_nguyen_vladu import released_levels
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.leaders.ftpl import BASES, LOGARITHMS, published_sigma
from overclaim.learners.leaders.ftrl_law import supremum
from overclaim.learners.leaders.private_bandit import batch_rounds
from overclaim.learners.problems.losses import Linear
from overclaim.mechanisms.tree import depth
from overclaim.mechanisms.view import PUBLICATION, RELEASE

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 8.0)
DELTAS = (1e-6, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9)
POWERS = tuple(2**k for k in range(1, 13))
#: Half the width of the grid of a log-weight difference, and its points.
REACH, POINTS = 8.0, 1201
#: Paths that are followed at once.
PATHS = 16


def built(name, rounds, *, arms=None, epsilon=1.0, delta=None, losses=None, **own):
    """Return a learner of the catalogue."""
    entry = lookup(name)
    given = {"arms": arms, "delta": delta, "losses": losses}
    setting = entry.setting(rounds=rounds, epsilon=epsilon, **{k: v for k, v in given.items() if v is not None})
    return entry.build(setting, **own)


def differing(rounds, left, right, later=0.0):
    """Return the pair that differs in round 1 and has one loss vector in all later rounds."""
    rest = [np.full(len(left), later).tolist()] * (rounds - 1)
    return Pair([list(left), *rest], [list(right), *rest])


def worst(corners):
    """Return the corner with the largest ratio of epsilon to the claim."""
    return max(corners, key=lambda corner: round(corner[0] / corner[1], 9))


def row(statement, searched, method, corners, note=""):
    """Return the table's row of the worst of some corners: (epsilon, claimed, where)."""
    epsilon, claimed, where = worst(corners)
    facts = {"statement": statement, "worst ratio": round(epsilon / claimed, 4), "epsilon": round(epsilon, 4)}
    return {**facts, "claimed": claimed, "where": where, "searched": searched, "method": method, "note": note}


def theorem_3_1():
    """Actions of two experts at any horizon; the ratio does not depend on epsilon."""
    corners = []
    for t in range(2, 65):
        learner = built("agarwal-singh/ftrl-experts", t)
        epsilon = supremum(differing(t, (1, -1), (-1, 1)), learner.noise.scale)
        # As Algorithm 2 has it: log T rounded up.
        corners.append((epsilon * math.log2(t) / depth(t), 1.0, f"T={t}, N=2, losses [-1, 1]"))
    return row("Agarwal & Singh 2017, Theorem 3.1", "T = 2..64, N = 2, any epsilon", "exact, actions", corners)


def lemma_3_3(neighbours):
    """The whole sequence of one coordinate; the ratio does not depend on epsilon."""
    corners = []
    for t in range(2, 65):
        learner = built("agarwal-singh/ftrl-cube", t, arms=1)
        pair = differing(t, (1,), (-1,) if neighbours == "replace" else (0,))
        epsilon = exact_epsilon(learner, pair, view=PUBLICATION, deltas=(0.0,))[0.0]
        corners.append((epsilon * math.log2(t) / depth(t), 1.0, f"T={t}, N=1, {neighbours}"))
    searched = f"T = 2..64, N = 1, {neighbours}, any epsilon"
    return row("Agarwal & Singh 2017, Lemma 3.3; Ene et al. 2021, Theorem 4", searched, "exact, publication", corners)


def theorem_3_5():
    """Actions of two experts: delta is free in the claim of pure epsilon; the base of the logarithm is the kindest."""
    corners = []
    for t, epsilon, delta in itertools.product((2, 4, 6), EPSILONS, DELTAS):
        epsilons = []
        for base in BASES:
            learner = built("agarwal-singh/ftpl-simplex", t, epsilon=epsilon, delta=0.0, noise_delta=delta, base=base)
            pairs = [differing(t, (1, -1), (-1, 1), later) for later in (0.0,)]
            pairs.append(Pair([[1, -1], *[[1, -1]] * (t - 1)], [[-1, 1], *[[1, -1]] * (t - 1)]))
            epsilons.append(max(exact_epsilon(learner, pair, deltas=(0.0,))[0.0] for pair in pairs))
        corners.append((min(epsilons), epsilon, f"T={t}, delta={delta:g}, epsilon={epsilon:g}"))
    searched = "T = 2, 4, 6, N = 2, epsilon 0.01..8, delta 1e-6..0.9, the kindest base"
    rows = [row("Agarwal & Singh 2017, Theorem 3.5", searched, "exact, actions", corners)]
    for epsilon in (0.5, 1.0):
        usual = [c for c in corners if "delta=0.5" in c[2] and c[1] == epsilon]
        words = f"the same at epsilon {epsilon:g}, delta 0.5"
        rows.append(row("Agarwal & Singh 2017, Theorem 3.5", words, "exact, actions", usual))
    late = [_late(epsilon, delta) for epsilon, delta in ((1.0, 0.01), (1.0, 1e-6), (0.5, 0.01))]
    return [*rows, *late, *wide_losses()]


def late_action(rounds, epsilon, delta, base):
    """Return the epsilon of one late action of two experts, and the log of its event's probability.

    All losses favour the first expert but in round 1, where the worlds differ; the second is played in round T. A
    sum has ceil(log T) draws in the base of all logarithms, as line 2 of Algorithm 3 and Theorem A.1 have it.
    """
    sigma = published_sigma(rounds=rounds, dim=2, norm=math.sqrt(2), epsilon=epsilon, delta=delta, base=base)
    draws = math.ceil(round(BASES[base][0](rounds), 9))
    deviation = sigma * math.sqrt(2 * draws)
    low, high = (float(log_ndtr(-(2 * (rounds - 2) + change) / deviation)) for change in (2, -2))
    return high - low, low


def _late(epsilon, delta):
    """Return the first horizon, a power of two, at which one late action exceeds epsilon in every base."""
    for power in range(1, 40):  # beyond, the difference of the two logarithms is lost in rounding
        found = {base: late_action(2**power, epsilon, delta, base) for base in BASES}
        least, low = min(found.values())
        if least > epsilon:
            each = ", ".join(f"{value:.3f} in base {base}" for base, (value, _) in found.items())
            return row(
                "Agarwal & Singh 2017, Theorem 3.5",
                f"powers of two, delta {delta:g}, epsilon {epsilon:g}, each of the bases {', '.join(BASES)}",
                "exact, one action",
                [(least, epsilon, f"T=2^{power}, delta={delta:g}, epsilon={epsilon:g}")],
                f"{each}; on an event of probability e^{low:.3g}: exact, never seen",
            )
    raise AssertionError(delta)


#: Half the width of the losses at which Theorem 3.5 is tested as (epsilon, delta), and delta.
WIDTH, SMALL_DELTA = 100, 1e-5


def epsilon_of_wide_losses(epsilon, base):
    """Return the exact epsilon at `SMALL_DELTA` of two rounds' actions, losses in [-C, C]^2, C = `WIDTH`.

    The second action is the sign of a normal number with a mean of +-2 C: either loss favours one of two experts.
    """
    sigma = published_sigma(rounds=2, dim=2, norm=WIDTH * math.sqrt(2), epsilon=epsilon, delta=SMALL_DELTA, base=base)
    right, wrong = ndtr(np.array([2, -2]) * WIDTH / (sigma * math.sqrt(2)))
    return math.log((right - SMALL_DELTA) / wrong)


def decide(losses, rng):
    """Play two rounds of Algorithm 3 on the simplex with the sigma of Theorem 3.5, claiming (1, `SMALL_DELTA`)."""
    sigma = published_sigma(rounds=2, dim=2, norm=WIDTH * math.sqrt(2), epsilon=1.0, delta=SMALL_DELTA, base="2")
    sums = np.zeros(2), np.array(losses[0], dtype=float)
    return [int(np.argmin(total + rng.normal(0.0, sigma, 2))) for total in sums]


def wide_losses():
    """Theorem 3.5 as (epsilon, delta): sigma has sqrt(N) where Theorem A.1 has the 2-norm of Y."""
    rows = []
    for epsilon in (0.5, 1.0):
        found = {base: epsilon_of_wide_losses(epsilon, base) for base in BASES}
        where = ", ".join(f"{value:.3f} in base {base}" for base, value in found.items())
        searched = f"T = 2, Y = [-{WIDTH}, {WIDTH}]^2, claim ({epsilon:g}, {SMALL_DELTA:g})"
        corner = [(min(found.values()), epsilon, where)]
        rows.append(row("Agarwal & Singh 2017, Theorem 3.5 as (ε, δ)", searched, "exact, actions", corner))
    pair = {"left": [[WIDTH, -WIDTH], [0, 0]], "right": [[-WIDTH, WIDTH], [0, 0]]}
    certified = falsify(decide, Claim(epsilon=1.0, delta=SMALL_DELTA), runs=20_000, **pair).epsilon_lower
    corner = [(certified, 1.0, "base 2")]
    return [*rows, row(rows[0]["statement"], rows[1]["searched"], "certified, 20,000 runs", corner)]


def theorem_a_1():
    """The whole sequence, with the least sigma of logarithms of base 2, the largest of the readings."""
    corners = []
    for t, epsilon, delta in itertools.product(POWERS, EPSILONS, DELTAS):
        learner = built("agarwal-singh/ftpl-simplex", t, epsilon=epsilon, delta=delta, theorem="A.1", base="2")
        exact = exact_epsilon(learner, differing(t, (1, 1), (-1, -1)), view=PUBLICATION, deltas=(delta,))[delta]
        corners.append((exact, epsilon, f"T={t}, delta={delta:g}, epsilon={epsilon:g}"))
    small = [c for c in corners if c[1] <= 1 and not any(f"delta={d:g}," in c[2] for d in DELTAS if d > 0.1)]
    usual = [c for c in corners if "T=2," in c[2] and "delta=0.1" in c[2] and c[1] == 3.0]
    searched, how = "T = 2..4096, powers of two; epsilon 0.01..8; delta 1e-6..0.9; base 2", "exact, publication"
    return [
        row("Agarwal & Singh 2017, Theorem A.1", searched, how, corners),
        row("Agarwal & Singh 2017, Theorem A.1", "the same at T = 2, epsilon 3, delta 0.1", how, usual),
        row("Agarwal & Singh 2017, Theorem A.1", "the same, epsilon at most 1, delta at most 0.1", how, small),
    ]


def lemma_4_2():
    """The Threshold probe as inner algorithm."""
    corners = []
    for t, epsilon in itertools.product((2, 3, 6), EPSILONS):
        learner = built("agarwal-singh/reduction-threshold", t, epsilon=epsilon)
        exact = exact_epsilon(learner, differing(t, (1, 1), (-1, -1)), deltas=(0.0,))[0.0]
        corners.append((exact, epsilon, f"T={t}, epsilon={epsilon:g}"))
    return row("Agarwal & Singh 2017, Lemma 4.2", "T = 2, 3, 6, epsilon 0.01..8", "exact, actions", corners)


def theorem_4_1():
    """Two arms at the theorem's own rates, along the path of actions and losses whose ratio is largest."""
    corners, crossing = [], {}
    for epsilon in (0.1, 1.0, 4.0):
        for t in (4, 8, 12, 16, 20, 24, 32, 48):
            ratio, log_probability = worst_path(t, epsilon)
            corners.append(
                (ratio, epsilon, f"T={t}, epsilon={epsilon:g}, a path of probability e^{log_probability:.3g}")
            )
            if ratio > epsilon and epsilon not in crossing:
                crossing[epsilon] = (
                    f"above 1 from T={t} on at epsilon {epsilon:g}, probability e^{log_probability:.3g}"
                )
    note = "; ".join(crossing.values()) or "at most 1 on all paths tried"
    searched = "N = 2, T = 4..48, epsilon 0.1, 1, 4; greedy paths"
    return row("Agarwal & Singh 2017, Theorem 4.1", searched, "numerical law of one path", corners, note)


def worst_path(rounds, epsilon):
    """Return the largest log ratio found over paths of two arms, and the log probability of that path.

    The state is the difference d of the two log weights. Given the arms, only the first round's noisy loss differs
    between the worlds; densities of d in both are carried on a grid, and the paths of the largest ratios are kept.
    """
    entry = lookup("agarwal-singh/reduction-exp2")
    eta, gamma = exp2_rates(entry.setting(rounds=rounds, epsilon=epsilon), 2)
    scale = 1 / epsilon
    grid = np.linspace(-REACH, REACH, POINTS)
    edges = np.concatenate([[-np.inf], (grid[1:] + grid[:-1]) / 2, [np.inf]])
    plays = np.stack([(1 - gamma) * expit(grid) + gamma / 2, (1 - gamma) * expit(-grid) + gamma / 2])

    def kernel(arm, loss, at, chance):
        """Return the cell masses of d after an arm is played from each point, rows, times the chance to play it."""
        sign = -1.0 if arm == 0 else 1.0
        centre, width = at + sign * eta * loss / chance, eta * scale / chance
        x = (edges[None] - centre[:, None]) / width[:, None]
        below = np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))
        return np.diff(below, axis=1) * chance[:, None]

    start = [kernel(0, loss, np.zeros(1), np.full(1, 0.5))[0] for loss in (1.0, -1.0)]
    paths = np.stack([start, start[::-1]])  # (paths, worlds, points)
    moves = [kernel(arm, loss, grid, plays[arm]) for arm in (0, 1) for loss in (-1.0, 1.0)]
    for _ in range(rounds - 2):
        paths = np.concatenate([paths @ move for move in moves])
        ratios = np.log(paths[:, 0].sum(axis=1) / paths[:, 1].sum(axis=1))
        paths = paths[np.argsort(-ratios)[:PATHS]]
    ends = np.concatenate([paths @ plays[arm] for arm in (0, 1)])  # the last arm is chosen, and nothing is learnt
    best = ends[np.argmax(np.log(ends[:, 0] / ends[:, 1]))]
    return math.log(best[0] / best[1]), math.log(best[1])


def theorem_4_5():
    """The theorem's own step parameter, certified: its actions have no law in closed form here."""
    corners = []
    for arms, rounds in ((1, 2), (1, 3), (2, 2)):
        task = Task(
            target="agarwal-singh/reduction-scrible", epsilon=1.0, rounds=rounds, arms=arms, budget=Budget(runs=60_000)
        )
        corners.append((task.prepare().audit().epsilon_lower, 1.0, f"N={arms}, T={rounds}"))
    return row("Agarwal & Singh 2017, Theorem 4.5", "N = 1, 2, T = 2, 3", "certified, 60,000 runs", corners)


def smith_thakurta():
    """The sums that the outputs depend on: m = ceil(lg T) nodes of gradients that differ by 2 (1 - H ||C||) or 2."""
    corners = [(2 * depth(t) / (depth(t) + 1), 1.0, f"T={t}, H ‖C‖ to 0") for t in POWERS]
    rows = [
        row(
            f"Smith & Thakurta 2013, Theorem {n} (its sums)",
            "T = 2..4096, powers of two; H ‖C‖ to 0, p = 1",
            "exact, release",
            corners,
        )
        for n in (3, 5)
    ]
    rows += map(first_horizon, (1.0, 2.0, 4.0, 8.0, 16.0))
    for radius in (1.0, 0.1, 0.01):
        corners = []
        for t in POWERS:
            learner = built("smith-thakurta/pftal-lipschitz", t, radius=radius)
            flat = [Linear(slope=[0.0])] * (t - 1)
            pair = Pair([Linear(slope=[1.0]), *flat], [Linear(slope=[-1.0]), *flat])
            corners.append((exact_epsilon(learner, pair, view=RELEASE, deltas=(0.0,))[0.0], 1.0, f"T={t}"))
        least = next((where for epsilon, _, where in corners if epsilon > 1), "nowhere")
        searched = f"T = 2..4096, powers of two; Theorem 11's own H, a ball of radius {radius:g}"
        worst = row("Smith & Thakurta 2013, Theorem 3 (its sums)", searched, "exact, release", corners)
        rows.append({**worst, "note": f"of these above 1 from {least} on"})
    return rows


def first_horizon(epsilon):
    """Return the first horizon at which the sums on the unit ball exceed epsilon with Theorem 11's own H, p = 1."""
    for t in range(2, 5000):
        m, h = depth(t), math.sqrt(math.log2(t) ** 2.5 / (epsilon * t))
        ratio = 2 * m / ((m + 1) * (1 + h))
        if ratio > 1:
            corner = [(ratio * epsilon, epsilon, f"T={t}, epsilon={epsilon:g}")]
            return row("Smith & Thakurta 2013, Theorem 3 (its sums)", "the first T, unit ball", "formula", corner)
    raise AssertionError(epsilon)


def lemma_7():
    """PrivateBandit's sums: |f| up to L D, as the paper assumes, or up to L (D + zeta) where it plays outside D."""
    rows = []
    for outside, surface in ((False, "release"), (False, "publication"), (True, "release")):
        corners = []
        for t, n in itertools.product((4, 16, 64, 256, 1024, 4096, 65536), (1, 2, 8, 64)):
            radius = math.sqrt(n) / t**0.25  # zeta, in diameters
            change = 2 * n * ((1 + radius) if outside else 1.0) / radius * math.sqrt(n)
            levels = (-(-t // batch_rounds(t))).bit_length() if surface == "publication" else released_levels(t)
            corners.append((change * levels / (math.sqrt(t) * n * math.log2(t)), 1.0, f"T={t}, n={n}"))
        size = "L (D + zeta)" if outside else "L D"
        searched = f"T = 4..65536, n = 1..64, f up to {size} in size; any epsilon"
        rows.append(row("Ene et al. 2021, Lemma 7 (its sums)", searched, f"upper bound, {surface}", corners))
    return [*rows, proof_of_lemma_7(), *outside_of_the_domain()]


def factor_of_lemma_7(rounds, levels, outside, base):
    """Return what Lemma 7's proof bounds the sums' epsilon by, over epsilon: a vector on so many levels of the tree.

    At n = 1. `outside` is how far a point leaves D, in diameters: |f| is at most L D times 1 + `outside`.
    """
    return 2 * levels * (1 + outside) / (rounds**0.25 * LOGARITHMS[base](rounds))


def sums_of_lemma_7(rounds, levels, base):
    """Return the exact epsilon of those sums at n = 1 where a point is an end of D, for a claim of 1.

    A vector is 1 + u a / zeta, u a fair coin and a in [0, D] how far the zero of the loss is; that of the other loss
    is at least as far below where it is -1 for both u. The farthest zero is worst: a / zeta = T^(1/4).
    """
    scale = math.sqrt(rounds) * LOGARITHMS[base](rounds)
    return levels * 2 / scale + math.log(math.cosh(levels * rounds**0.25 / scale))


def outside_of_the_domain():
    """PrivateBandit's sums where |f_t(x_t)| exceeds L D, as at a point zeta outside D: a bound, and the exact law."""
    rows, name = [], "Ene et al. 2021, Lemma 7 (its sums), n = 1, f up to L (D + zeta)"
    for base in LOGARITHMS:
        for how, epsilon_of in (
            ("the proof's bound", lambda t, k, b: factor_of_lemma_7(t, k, t**-0.25, b)),
            ("exact, release", sums_of_lemma_7),
        ):
            corners = [(epsilon_of(t, released_levels(t), base), 1.0, f"T={t}") for t in (4, 16, 64, 256, 1024)]
            late = [corner for corner in corners if corner[2] != "T=4"]
            rows.append(row(name, f"T = 16..1024, base {base}", how, late, f"T=4: {corners[0][0]:.3f}"))
    whole = sums_of_lemma_7(4, 2, "2")
    return [*rows, row(name, "T = 4, base 2, the last sum too", "exact, publication", [(whole, 1.0, "T=4")])]


def proof_of_lemma_7():
    """All of PrivateBandit's sums, the last too, at T = 4 on [-1, 1]: the direction u = +-1 is a fair coin of its own.

    Losses are +-(x - z), at most 2 in size where they are played, at +-zeta: F u is -(zeta - z) / zeta or -(zeta + z)
    / zeta on the left, the opposite with another z on the right. The leaf and the root have noise of scale 4 each, so
    where both are far below all means the ratio is that of the two mixtures of e^(2 F u / 4).
    """
    zeta, scale = math.sqrt(2), 4.0
    zeros = np.linspace(zeta - 2, 2 - zeta, 201)
    ends = [sum(math.exp(2 * (zeta + sign * z) / zeta / scale) for sign in (1, -1)) for z in zeros]
    opposite = [sum(math.exp(-2 * (zeta + sign * z) / zeta / scale) for sign in (1, -1)) for z in zeros]
    epsilon = math.log(max(ends) / min(opposite))
    where = "T=4, n=1, without the root at most 1"
    searched = "T = 4, n = 1, f up to L D in size"
    corner = [(epsilon, 1.0, where)]
    return row("Ene et al. 2021, proof of Lemma 7 (all its sums)", searched, "exact, publication", corner)


def lemma_3():
    """The Threshold probe in the batched conversion, over epsilon, batch and horizon."""
    corners = []
    for batch, epsilon in itertools.product((1, 2, 4), EPSILONS):
        learner = built("asi-raman-talwar/batched-threshold", 2 * batch, epsilon=epsilon, batch=batch, threshold=1.0)
        pair = differing(2 * batch, (1, 1), (0, 0), 1.0)
        exact = exact_epsilon(learner, pair, deltas=(0.0,))[0.0]
        corners.append((exact, epsilon, f"batch={batch}, epsilon={epsilon:g}"))
    return row("Asi, Raman & Talwar 2025, Lemma 3", "batch 1, 2, 4, epsilon 0.01..8", "exact, actions", corners)


def main():
    searches = (
        theorem_3_1, lambda: lemma_3_3("replace"), lambda: lemma_3_3("zero-out"), theorem_3_5, theorem_a_1, lemma_4_2,
        theorem_4_1, theorem_4_5, smith_thakurta, lemma_7, lemma_3,
    )  # fmt: skip
    rows = []
    for search in searches:
        rows_found = search()
        for one in rows_found if isinstance(rows_found, list) else [rows_found]:
            rows.append(one)
            tables.show(rows)
    title = "The worst corner of each published statement"
    intro = (
        "Exact or certified epsilon over the claimed one. Above 1 the statement is false there; at most 1 it holds in "
        "every corner tried."
    )
    content = {"title": title, "note": intro, "rows": rows}
    (tables.RESULTS / "corners.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    tables.write_page("corners", f"# {title}\n\n{intro} {tables.dated()}\n\n{tables.table(rows)}\n")


if __name__ == "__main__":
    main()
