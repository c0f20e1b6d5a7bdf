"""Claims in other measures: false alarms at tight claims, power, and the share of the truth that is certified.

Run by `python benchmarks/measures.py`: some eight minutes of a processor; writes benchmarks/results/measures.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from overclaim import Claim, falsify_mechanism
from overclaim.audit.statistics.bounds import betting as betting_order
from overclaim.audit.statistics.bounds.measure_bounds import refuted
from overclaim.audit.statistics.bounds.variational import (
    StepFunction,
    betting,
    divergence_lower,
    empirical_bernstein,
    level_of,
)
from overclaim.audit.statistics.measure_choice import Cells, choose
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.divergences import bernoulli_divergence
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.mechanisms.one_shot.concentrated import GaussianMechanism

OUT = Path(__file__).parent / "results" / "measures.md"
ALPHA, REPLICATIONS, RUNS = 0.05, 20_000, 1000
#: Betting takes long, so all counts are enumerated: by the steps of a function, runs in each world.
ENUMERATED = {2: 200, 3: 40}
#: Counts that are less likely are not enumerated: they count as false alarms.
UNLIKELY = 1e-7
#: Replications of the power of claims of rho, and seeds of the order that betting puts counts into.
POWER, SEEDS = 20, 16
MUS, BUDGETS = (0.5, 1.0, 2.0), {20_000: 5, 200_000: 2, 2_000_000: 1}
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
    return rows + concentrated() + [row for order in (1.0, 4.0) for row in of_coins(order)] + of_three_steps()


def of_coins(order: float) -> list[list[str]]:
    """Return false alarms of functions on randomised response: drawn with Bernstein, exact with betting."""
    p = math.e / (1 + math.e)
    name, function = f"randomised response, order {order:g}", StepFunction((0.0,), (-1.0, 1.0), order)
    truth, rng = float(bernoulli_divergence(order, p, 1 - p)), np.random.default_rng(1)
    drawn = [rng.binomial(RUNS, share, REPLICATIONS).tolist() for share in (p, 1 - p)]
    wrong = sum(
        divergence_lower(function, [RUNS - i, i], [RUNS - j, j], alpha=ALPHA, limit=empirical_bernstein) > truth
        for i, j in zip(*drawn, strict=True)
    )
    rows = [_alarm(name, "function, empirical bernstein", wrong, REPLICATIONS)]
    return rows + enumerated(name, function, (1 - p, p), (p, 1 - p), truth)


def of_three_steps() -> list[list[str]]:
    """Return false alarms of betting on functions of three steps, at the exact rho of mechanisms."""
    rows = []
    for name, measure, law_of in mechanisms():
        edges = (0.0, 2.0) if "discrete" in name else (0.0, 1.0)
        p, q = law_of(edges, 1), law_of(edges, 0)
        function = StepFunction(edges, tuple(np.log(p / q).tolist()))
        rows += enumerated(f"{name}, zCDP", function, p, q, measure.rho)
    return rows


def enumerated(name: str, function: StepFunction, p: ArrayLike, q: ArrayLike, truth: float) -> list[list[str]]:
    """Return exact probabilities of false alarms with betting, from all counts of the steps, and of each limit."""
    runs, limit, laws = ENUMERATED[len(function.values)], remembered(betting), (np.asarray(p), np.asarray(q))
    every = _counts(len(function.values), runs)
    chances = [np.asarray(stats.multinomial.pmf(np.array(every), runs, law)) for law in laws]
    seen = [[every[i] for i in np.flatnonzero(chance > UNLIKELY).tolist()] for chance in chances]
    chances = [chance[chance > UNLIKELY] for chance in chances]
    alarm = [[divergence_lower(function, i, j, alpha=ALPHA, limit=limit) > truth for j in seen[1]] for i in seen[0]]
    rest = 1 - float(chances[0].sum() * chances[1].sum())
    chance = float(chances[0] @ np.array(alarm, dtype=float) @ chances[1]) + rest
    rows = [_exact(name, f"function of {len(function.values)} steps, betting", runs, chance, ALPHA)]
    for world, values, law, counts, weights in zip("PQ", means_of(function), laws, seen, chances, strict=True):
        missed = np.array([misses(values, law, count, limit) for count in counts], dtype=float)
        chance = float(weights @ missed) + 1 - float(weights.sum())
        rows.append(_exact(name, f"its limit of the mean in {world} alone", runs, chance, ALPHA / 2))
    return rows


def _counts(steps: int, runs: int) -> list[tuple[int, ...]]:
    if steps == 1:
        return [(runs,)]
    return [(k, *rest) for k in range(runs + 1) for rest in _counts(steps - 1, runs - k)]


def orders() -> list[list[str]]:
    """Return the error of one limit, 40 runs, where counts are put into the order of other seeds than the tool's."""
    _, _, law_of = mechanisms()[0]
    p, q = law_of((0.0, 1.0), 1), law_of((0.0, 1.0), 0)
    values = means_of(StepFunction((0.0, 1.0), tuple(np.log(p / q).tolist())))[1]
    every = _counts(3, ENUMERATED[3])
    chances = np.asarray(stats.multinomial.pmf(np.array(every), ENUMERATED[3], q))
    likely = np.flatnonzero(chances > 1e-5).tolist()
    found, kept = [], betting_order._ORDER
    for seed in (kept, *range(SEEDS)):
        betting_order._ORDER = seed
        found.append(float(chances[likely] @ np.array([misses(values, q, every[i], betting) for i in likely])))
    betting_order._ORDER = kept
    others = found[1:]
    return [
        ["the tool's", f"{found[0]:.4f}", "", ""],
        [f"{SEEDS} others", f"{np.mean(others):.4f}", f"{min(others):.4f}", f"{max(others):.4f}"],
    ]


def concentrated() -> list[list[str]]:
    """Return false alarms where rho is exactly the mechanism's: of the median event, and of a chosen function."""
    rows = []
    for name, measure, law_of in mechanisms():
        rng = np.random.default_rng(3)
        k_p, k_q = (rng.binomial(RUNS, law_of((0.5,), moved)[1], REPLICATIONS) for moved in (1, 0))
        wrong = sum(int(refuted(measure, *part, alpha=ALPHA).sum()) for part in _parts(k_p, k_q))
        rows.append(_alarm(f"{name}, zCDP", "one event", wrong, REPLICATIONS))
        function = chosen(measure, law_of, 2 * RUNS)
        drawn = [rng.multinomial(RUNS, law_of(function.edges, moved), REPLICATIONS) for moved in (1, 0)]
        wrong = sum(
            level_of(
                measure,
                function.order,
                divergence_lower(function, left, right, alpha=ALPHA, limit=empirical_bernstein),
            )
            > measure.rho
            for left, right in zip(*drawn, strict=True)
        )
        steps = f"function of {len(function.values)} steps, empirical bernstein"
        rows.append(_alarm(f"{name}, zCDP", steps, wrong, REPLICATIONS))
    return rows


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


def remembered(limit: Callable[..., float]) -> Callable[..., float]:
    """Return a limit that is computed once for each vector of counts: it depends on nothing else."""
    known = functools.cache(lambda values, counts, low, high, alpha: limit(values, counts, low, high, alpha=alpha))

    def of(values: np.ndarray, counts: tuple[int, ...], low: float, high: float, *, alpha: float) -> float:
        return float(known(tuple(values.tolist()), counts, low, high, alpha))

    return of


def means_of(function: StepFunction) -> tuple[np.ndarray, np.ndarray]:
    """Return the variables whose means `divergence_lower` bounds from below, in P and in Q."""
    f, a = np.array(function.values) - max(function.values), function.order
    return f if a == 1 else np.exp((a - 1) * f), -np.exp(a * f)


def misses(values: np.ndarray, law: np.ndarray, counts: tuple[int, ...], limit: Callable[..., float]) -> bool:
    """Tell whether the lower limit of a mean, with half of the error, exceeds it."""
    low, high = float(values.min()), float(values.max())
    return limit(values, counts, low, high, alpha=ALPHA / 2) > float(np.dot(law, values))


def _parts(k_p: np.ndarray, k_q: np.ndarray) -> list[tuple[np.ndarray, int, np.ndarray, int]]:
    return [(k_p[i : i + 2000], RUNS, k_q[i : i + 2000], RUNS) for i in range(0, REPLICATIONS, 2000)]


def _alarm(name: str, certificate: str, wrong: int, times: int, alpha: float = ALPHA) -> list[str]:
    most = alpha + 3 * math.sqrt(alpha * (1 - alpha) / times)
    within = "yes" if wrong / times <= most else "NO"
    return [name, certificate, f"{times:,}", f"{wrong / times:.4f}", f"{most:.4f}", within]


def _exact(name: str, certificate: str, runs: int, chance: float, alpha: float) -> list[str]:
    return [
        name,
        certificate,
        f"exact, {runs} runs",
        f"{chance:.4f}",
        f"{alpha:.4f}",
        "yes" if chance <= alpha else "NO",
    ]


def shares() -> list[list[str]]:
    """Return the shares of the true rho and mu that black-box audits certify, the pair being searched."""
    rows = []
    for mu in MUS:
        for i, (runs, seeds) in enumerate(BUDGETS.items()):
            found = []
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
                found.append(float(np.mean(bounds)) / truth)
            one, bernstein, of_mu = REPORTED[mu][i]
            rows.append([f"{mu:g}", f"{runs:,}", str(seeds), f"{found[0]:.2f}", f"{bernstein:.2f}", f"{one:.2f}"])
            rows[-1] += [f"{found[1]:.2f}", f"{of_mu:.2f}"]
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
            function = choose(cells, measure, alpha=0.01, runs=runs)[0].function
            assert function is not None
            laws = [law_of(np.array(function.edges), at) for at in (mu, 0.0)]
            found = [
                level_of(
                    measure,
                    function.order,
                    divergence_lower(function, *(rng.multinomial(runs // 2, law) for law in laws), alpha=0.01),
                )
                for _ in range(POWER)
            ]
            caught = [np.mean(np.array(found) > measure.rho * (1 - short)) for short in SHORT]
            rows.append([f"{mu:g}", f"{runs:,}", str(POWER), *(f"{share:.2f}" for share in caught)])
            rows[-1].append(f"{np.mean(found) / measure.rho:.3f}")
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

Betting, exact: all counts of fewer runs are enumerated and weighed by their probabilities; those less likely than
{UNLIKELY:g} are taken for false alarms. The order into which counts are put is seeded, so the certificate depends on
nothing but the counts. It is wrong only where one of its two limits of means is, by more than the other leaves: each
of them has half of alpha, and its own row. No certificate rests on it: see below; all rest on the empirical Bernstein
bound.

{table(["claim", "certificate", "replications", "false alarms", "allowed", "within"], alarms())}

### One order of the counts

The order is always the same, and a limit by betting is wrong with at most its alpha only on average over the orders
that might have been drawn: for one order it may be more. Below, the limit of the mean in Q of the Gaussian's three
steps, {ENUMERATED[3]} runs, by the seed of the order; {ALPHA / 2:g} is allowed. Counts less likely than 1e-5 are
left out, together less than 0.001.

{table(["seed", "error, or mean error", "least", "largest"], orders())}
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

Not run: when these figures were made, jax_privacy did not install in the 4 minutes that were set aside for it.
"""


def main() -> None:
    """Measure, and write the page."""
    text = f"""# Claims in other measures

{page_of_alarms()}
## Share of the true level that is certified

The Gaussian mechanism as a black box at 99 %, the best of three pairs searched: their inputs differ by 1, 1/4 and 1/2.
Total runs, means over the seeds. Beside ours, figures that other code gave: for rho a function of the score with the
empirical Bernstein bound, and one event; for mu one event.

{table(["mu", "runs", "seeds", "rho, ours", "rho, Bernstein", "rho, event", "mu, ours", "mu, event"], shares())}

{page_of_power()}"""
    OUT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
