"""Claims in other measures: false alarms at tight claims, power, and the share of the truth that is certified.

Run by `python benchmarks/power/measures.py`: some eight minutes of a processor; writes benchmarks/results/measures.md.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from overclaim import Claim, falsify_mechanism
from overclaim.audit.statistics.bounds.joint_wealth import AT_RISK
from overclaim.audit.statistics.bounds.measure_bounds import refuted
from overclaim.audit.statistics.bounds.variational import StepFunction, divergence_lower, divergence_of
from overclaim.audit.statistics.measure_choice import Cells, _best_function, choose
from overclaim.benchmarks.tables import write_page
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.divergences import bernoulli_divergence
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.mechanisms.one_shot.concentrated import GaussianMechanism

ALPHA, REPLICATIONS, RUNS = 0.05, 20_000, 1000
#: All counts are enumerated: by the steps of a function, runs in each world.
ENUMERATED = {2: 500, 3: 40}
#: Replications of the power of claims of rho.
POWER = 100
#: Replications of the comparison with jax_privacy, and its delta.
COMPARED, DELTA = 200, 1e-5
MUS, BUDGETS = (0.5, 1.0, 2.0), {20_000: 10, 200_000: 10, 2_000_000: 3}
#: The same shares as other code gave them: one event and the empirical Bernstein bound for rho; for mu.
REPORTED = {
    0.5: ((0.48, 0.68, 0.87), (0.62, 0.92, 0.96), (0.71, 0.97, 0.99)),
    1.0: ((0.56, 0.79, 0.93), (0.67, 0.94, 0.98), (0.74, 0.98, 0.99)),
    2.0: ((0.60, 0.82, 0.96), (0.68, 0.94, 0.99), (0.74, 0.98, 1.00)),
}
SHORT = (0.05, 0.10, 0.20)


def alarms() -> list[list[str]]:
    """Return false alarms at claims that are exactly tight: of randomised response, and of the Gaussian mechanism."""
    rows, p = [], math.e / (1 + math.e)
    tight = {
        "Gaussian, mu = 1, GDP": (GDP(1.0), 0.5, float(stats.norm.sf(1.0))),
        "randomised response, GDP": (GDP(float(GDP(1.0).needed(p, 1 - p))), p, 1 - p),
        "randomised response, zCDP": (ZCDP(float(ZCDP(1.0).needed(p, 1 - p))), p, 1 - p),
        "randomised response, Renyi order 4": (RDP(4.0, float(RDP(4.0, 1.0).needed(p, 1 - p))), p, 1 - p),
        "randomised response, (0, delta)": (ApproxDP(0.0, 2 * p - 1), p, 1 - p),
        "randomised response, profile": (Profile(((0.0, 2 * p - 1), (1.0, 1e-3))), p, 1 - p),
    }
    for name, (measure, of_p, of_q) in tight.items():
        rng = np.random.default_rng(0)
        k_p, k_q = rng.binomial(RUNS, of_p, REPLICATIONS), rng.binomial(RUNS, of_q, REPLICATIONS)
        wrong = sum(int(refuted(measure, *part, alpha=ALPHA).sum()) for part in _parts(k_p, k_q))
        rows.append(_alarm(name, "one event", wrong, REPLICATIONS))
    return rows + concentrated() + of_coins() + of_three_steps()


def concentrated() -> list[list[str]]:
    """Return false alarms where rho is exactly the mechanism's: of the median event, and of a chosen function."""
    rows = []
    for name, measure, law_of in mechanisms():
        rng = np.random.default_rng(3)
        k_p, k_q = (rng.binomial(RUNS, law_of((0.5,), moved)[1], REPLICATIONS) for moved in (1, 0))
        wrong = sum(int(refuted(measure, *part, alpha=ALPHA).sum()) for part in _parts(k_p, k_q))
        rows.append(_alarm(f"{name}, zCDP", "one event", wrong, REPLICATIONS))
        function = chosen(measure, law_of, 2 * RUNS)
        laws = [law_of(function.edges, moved) for moved in (1, 0)]
        rows += drawn(f"{name}, zCDP", function, laws, divergence_of(measure, function.order))
    return rows


def of_coins() -> list[list[str]]:
    """Return false alarms on randomised response of the functions that are tight for it."""
    rows, law = [], np.array([1.0, math.e]) / (1 + math.e)
    laws = [law, law[::-1]]
    for order in (1.0, 4.0):
        truth = float(bernoulli_divergence(order, law[1], law[0]))
        function = best_function(RDP(order, truth) if order > 1 else ZCDP(truth), laws, 2 * RUNS)
        name = f"randomised response, order {function.order:g}"
        truth = float(bernoulli_divergence(function.order, law[1], law[0]))
        rows += drawn(name, function, laws, truth)
        rows.append(enumerated(name, function, laws))
    return rows


def of_three_steps() -> list[list[str]]:
    """Return false alarms of functions of three steps, at the exact rho of mechanisms."""
    rows = []
    for name, measure, law_of in mechanisms():
        edges = (0.0, 2.0) if "discrete" in name else (0.0, 1.0)
        laws = [law_of(edges, moved) for moved in (1, 0)]
        rows.append(enumerated(f"{name}, zCDP", best_function(measure, laws, 2 * ENUMERATED[3]), laws))
    return rows


def best_function(measure: RDP | ZCDP, laws: list[np.ndarray], runs: int) -> StepFunction:
    """Return the function, with its bets, that the tool chooses from exact laws of its steps."""
    cells = Cells(np.arange(1.0, laws[0].size), laws[0], laws[1], (math.inf, math.inf))
    return _best_function(cells, measure, ALPHA, runs, 0.0)[0]


def drawn(name: str, function: StepFunction, laws: list[np.ndarray], truth: float) -> list[list[str]]:
    """Return false alarms in counts that are drawn, and how often the region misses the true means.

    A certificate is wrong only where its region misses them: only there is it computed.
    """
    rng = np.random.default_rng(1)
    counts = [rng.multinomial(RUNS, law, REPLICATIONS) for law in laws]
    missed = np.flatnonzero(misses(function, laws, counts, RUNS))
    wrong = sum(divergence_lower(function, counts[0][i], counts[1][i], alpha=ALPHA) > truth for i in missed.tolist())
    kind = f"function of {len(function.values)} steps"
    return [
        _alarm(name, kind, wrong, REPLICATIONS),
        _alarm(name, f"{kind}: its region of both means", missed.size, REPLICATIONS),
    ]


def misses(function: StepFunction, laws: list[np.ndarray], counts: list[np.ndarray], runs: int) -> np.ndarray:
    """Tell for which counts, (samples, steps) of each world, the wealth against the true means reaches 1 / alpha."""
    scale = math.sqrt(function.runs / (2 * runs))
    total = np.log(np.array(function.bets.weights))[:, None]
    sides = list(zip(laws, counts, strict=True))
    if function.towards == "right":
        sides.reverse()
    for (law, many), x, stakes in zip(
        sides, (function.in_p, function.in_q), (function.bets.first, function.bets.second), strict=True
    ):
        mean, used = float(law @ x), np.array(stakes)[:, None] * scale
        allowed = used * mean <= AT_RISK
        logs = np.log1p(np.where(allowed, used, 0.0) * (x - mean)) @ many.T
        total = total + np.where(allowed, logs, -np.inf)
    missed: np.ndarray = special.logsumexp(total, axis=0) >= -math.log(ALPHA)
    return missed


def enumerated(name: str, function: StepFunction, laws: list[np.ndarray]) -> list[str]:
    """Return the exact probability that the region misses the true means, from all counts of the steps."""
    runs = ENUMERATED[len(function.values)]
    every = np.array(_counts(len(function.values), runs))
    chances = [np.asarray(stats.multinomial.pmf(every, runs, law)) for law in laws]
    chance = 0.0
    for i in range(len(every)):
        pair = [np.repeat(every[i : i + 1], len(every), axis=0), every]
        chance += float(chances[0][i] * (chances[1] @ misses(function, laws, pair, runs)))
    steps = f"function of {len(function.values)} steps: its region of both means"
    return [name, steps, f"exact, {runs} runs", f"{chance:.4f}", f"{ALPHA:.4f}", "yes" if chance <= ALPHA else "NO"]


def _counts(steps: int, runs: int) -> list[tuple[int, ...]]:
    if steps == 1:
        return [(runs,)]
    return [(k, *rest) for k in range(runs + 1) for rest in _counts(steps - 1, runs - k)]


def mechanisms() -> list[tuple[str, ZCDP, Callable[..., np.ndarray]]]:
    """Return mechanisms whose rho is exact: names, claims, and the laws of steps of what is released for 1 or 0."""

    def normal(edges: tuple[float, ...], moved: int) -> np.ndarray:
        return np.diff(np.concatenate([[0.0], stats.norm.cdf(np.array(edges) - moved), [1.0]]))

    integers = np.arange(-40, 41)
    weights = np.exp(-np.square(integers.astype(float)))  # sigma^2 = 1 / (2 rho) = 1/2

    def discrete(edges: tuple[float, ...], moved: int) -> np.ndarray:
        steps = np.searchsorted(edges, integers + moved, side="right")
        return np.bincount(steps, weights=weights / weights.sum(), minlength=len(edges) + 1)

    return [("Gaussian, rho = 1/2", ZCDP(0.5), normal), ("discrete Gaussian, rho = 1", ZCDP(1.0), discrete)]


def chosen(measure: ZCDP, law_of: Callable[..., np.ndarray], runs: int) -> StepFunction:
    """Return the function that the tool chooses from exact laws of fine cells."""
    edges = np.arange(-800, 901) / 100  # the integers are among them
    cells = Cells(edges, law_of(tuple(edges), 1), law_of(tuple(edges), 0), (math.inf, math.inf))
    event, _ = choose(cells, measure, alpha=ALPHA, runs=runs)
    assert event.function is not None
    return event.function


def _parts(k_p: np.ndarray, k_q: np.ndarray) -> list[tuple[np.ndarray, int, np.ndarray, int]]:
    return [(k_p[i : i + 2000], RUNS, k_q[i : i + 2000], RUNS) for i in range(0, REPLICATIONS, 2000)]


def _alarm(name: str, certificate: str, wrong: int, times: int, alpha: float = ALPHA) -> list[str]:
    most = alpha + 3 * math.sqrt(alpha * (1 - alpha) / times)
    within = "yes" if wrong / times <= most else "NO"
    return [name, certificate, f"{times:,}", f"{wrong / times:.4f}", f"{most:.4f}", within]


def shares() -> list[list[str]]:
    """Return the shares of the true rho and mu that black-box audits certify, the pair being searched."""
    rows = []
    for mu in MUS:
        for i, (runs, seeds) in enumerate(BUDGETS.items()):
            means = []
            for measure, truth in ((ZCDP(mu**2 / 2), mu**2 / 2), (GDP(mu), mu)):
                bounds = [
                    falsify_mechanism(
                        GaussianMechanism(mu**2 / 2),
                        Claim(measure=measure),
                        pairs=[([1.0], [0.0]), ([1.0], [1.25]), ([0.0], [0.5])],
                        runs=runs,
                        seed=seed,
                    ).lower
                    for seed in range(seeds)
                ]
                means.append(float(np.mean(bounds)) / truth)
            one, bernstein, of_mu = REPORTED[mu][i]
            rows.append([f"{mu:g}", f"{runs:,}", str(seeds), f"{means[0]:.2f}", f"{bernstein:.2f}", f"{one:.2f}"])
            rows[-1] += [f"{means[1]:.2f}", f"{of_mu:.2f}"]
    return rows


def power() -> list[list[str]]:
    """Return how often claims that are too small are falsified by a Gaussian mechanism's median event, all runs."""
    rows = []
    for mu in MUS:
        for runs in BUDGETS:
            rng, n = np.random.default_rng(2), runs // 2
            p, q = stats.norm.sf(-mu / 2), stats.norm.sf(mu / 2)
            k_p, k_q = rng.binomial(n, p, 400), rng.binomial(n, q, 400)
            caught = [refuted(GDP(mu * (1 - short)), k_p, n, k_q, n, alpha=0.01).mean() for short in SHORT]
            rows.append([f"{mu:g}", f"{runs:,}", *(f"{share:.2f}" for share in caught)])
    return rows


def power_of_rho() -> list[list[str]]:
    """Return how often claims of rho that are too small are falsified by a function chosen from the exact laws."""
    rows = []
    for mu in MUS:
        measure = ZCDP(mu**2 / 2)
        for runs in BUDGETS:
            rng, edges = np.random.default_rng(5), np.arange(-8.0, 8.0 + mu, 0.01)

            def law_of(edges: np.ndarray, at: float) -> np.ndarray:
                return np.diff(np.concatenate([[0.0], stats.norm.cdf(edges - at), [1.0]]))

            cells = Cells(edges, law_of(edges, mu), law_of(edges, 0.0), (math.inf, math.inf))
            event = choose(cells, measure, alpha=0.01, runs=runs)[0]
            function = event.function
            assert function is not None
            laws = [law_of(np.array(function.edges), at) for at in (mu, 0.0)]
            left = round(runs * event.share)
            bounds = [
                divergence_lower(
                    function,
                    *(rng.multinomial(n, law) for n, law in zip((left, runs - left), laws, strict=True)),
                    alpha=0.01,
                )
                / divergence_of(ZCDP(1.0), function.order)
                for _ in range(POWER)
            ]
            caught = [np.mean(np.array(bounds) > measure.rho * (1 - short)) for short in SHORT]
            rows.append([f"{mu:g}", f"{runs:,}", str(POWER), *(f"{share:.2f}" for share in caught)])
            rows[-1].append(f"{np.mean(bounds) / measure.rho:.3f}")
    return rows


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def page_of_alarms() -> str:
    """Return the section of false alarms."""
    return f"""## False alarms at claims that are exactly tight

alpha = {ALPHA:g}; {RUNS:,} runs in each world, but where stated. Allowed: alpha + 3 sigma.

Gaussian and discrete Gaussian for zCDP: rho is exactly that of the law, of which an event or a function of few steps
shows only a part. Counts are drawn from the exact laws, not from the samplers.

A function's region misses the true means with a probability that is exact where all counts of fewer runs are
enumerated. The certificate is wrong no more often: where the region holds the true means, the bound is below the
truth.

{table(["claim", "certificate", "replications", "false alarms", "allowed", "within"], alarms())}
"""


def page_of_power() -> str:
    """Return the sections after the shares."""
    return f"""## Power: how often a claim of mu that is too small is falsified

400 simulated certificates of the median event, all runs certifying, 99 %.

{table(["mu", "runs", *(f"{short:.0%} too small" for short in SHORT)], power())}

## Power: how often a claim of rho that is too small is falsified

{POWER} simulated certificates, 99 %, all runs certifying, of the function chosen from the exact laws; the last column
is the mean share of the true rho that they certify.

{table(["mu", "runs", "certificates", *(f"{short:.0%} too small" for short in SHORT), "share"], power_of_rho())}

## Beside jax_privacy

{beside_text()}
"""


def beside() -> tuple[str, list[list[str]]]:
    """Return the version of jax_privacy, and how often its estimate, its lower bound and our test say too much."""
    try:
        from jax_privacy.auditing import CanaryScoreAuditor
    except ImportError:
        return "not installed", []
    rows = []
    for mu in (0.0, 1.0):
        rng, theirs, bounds, ours = np.random.default_rng(6), [], [], []
        epsilon = GDP(mu).approximate(DELTA) if mu else 0.0
        for _ in range(COMPARED):
            left, right = rng.normal(mu, 1.0, RUNS), rng.normal(0.0, 1.0, RUNS)
            auditor = CanaryScoreAuditor(left, right)
            theirs.append(float(auditor.epsilon_from_gdp(ALPHA, DELTA)))
            bounds.append(float(auditor.epsilon_clopper_pearson(ALPHA, DELTA)))
            ours.append(counts_of_ours(mu or 1e-3, left, right))
        (k_p, k_q), n = np.array(ours).T, RUNS - RUNS // 5
        of_ours = float(refuted(GDP(mu or 1e-3), k_p, n, k_q, n, alpha=ALPHA).mean())
        shares = [cell for each in (theirs, bounds) for cell in (np.mean(np.array(each) > epsilon), np.median(each))]
        rows.append([f"{mu:g}", str(COMPARED), *(f"{cell:.3f}" for cell in (epsilon, *shares, of_ours))])
    return importlib.metadata.version("jax_privacy"), rows


def beside_text() -> str:
    """Return what the page says of jax_privacy."""
    version, rows = beside()
    if not rows:
        return "jax_privacy was not installed."
    head = ["true mu", "replications", "true epsilon", "estimate: above it", "median", "bound: above it", "median"]
    head.append("ours: refuted")
    said = f"({ALPHA:g}, {DELTA:g})"
    return f"""jax_privacy {version}, `jax_privacy.auditing.CanaryScoreAuditor(left, right)`, of {RUNS:,} normal scores
in each world whose means are mu apart. Estimate: `epsilon_from_gdp{said}`, which is documented to return "The
estimated epsilon" with "Allowed probability of failure (one minus confidence)": an estimate, where other methods of
the class are documented to return a "lower bound". Bound: one of these, `epsilon_clopper_pearson{said}`.
How often each is above the epsilon of mu-Gaussian DP at that delta (0 at mu = 0), and its median.

The estimate is no lower bound: from upper limits of both error rates it takes the largest *absolute* mu, which is
positive also where the limits add up to more than 1 and so exclude nothing. Ours: a fifth of the same scores choose
an event, and the others refute that mu (0.001 at mu = 0), at {1 - ALPHA:.0%}.

{table(head, rows)}"""


def counts_of_ours(mu: float, left: np.ndarray, right: np.ndarray) -> list[int]:
    """Return how often an event that the first fifth of the scores chose happens among the others."""
    first = RUNS // 5
    pilot = np.concatenate([left[:first], right[:first]])
    cells = Cells.of_scores(pilot, np.arange(2 * first) < first)
    threshold = choose(cells, GDP(mu), alpha=ALPHA, runs=2 * (RUNS - first))[0].upper
    return [int((scores[first:] >= threshold).sum()) for scores in (left, right)]


def main() -> None:
    """Measure, and write the page."""
    text = f"""# Claims in other measures

{page_of_alarms()}
## Share of the true level that is certified

The Gaussian mechanism as a black box at 99 %, the best of three pairs searched: their inputs differ by 1, 1/4 and 1/2.
Total runs, means over the seeds. Beside ours, figures that were reported of other code, which is not run here:
for rho a function of the score with the empirical Bernstein bound, and one event; for mu one event.

{table(["mu", "runs", "seeds", "rho, ours", "rho, Bernstein", "rho, event", "mu, ours", "mu, event"], shares())}

{page_of_power()}"""
    write_page("measures", text)
    print(text)


if __name__ == "__main__":
    main()
