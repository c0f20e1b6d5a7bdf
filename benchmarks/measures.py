"""Claims in other measures: false alarms at tight claims, power, and the share of the truth that is certified.

Run by `python benchmarks/measures.py`: some three minutes of a processor; writes benchmarks/results/measures.md.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy import stats

from overclaim import Claim, falsify_mechanism
from overclaim.audit.statistics.measure_bounds import refuted
from overclaim.audit.statistics.variational import StepFunction, betting, divergence_lower, empirical_bernstein
from overclaim.mechanisms.divergences import bernoulli_divergence
from overclaim.mechanisms.measures import GDP, RDP, ZCDP, ApproxDP, Profile
from overclaim.mechanisms.one_shot.concentrated import GaussianMechanism

OUT = Path(__file__).parent / "results" / "measures.md"
ALPHA, REPLICATIONS, RUNS = 0.05, 20_000, 1000
#: Betting takes long for each replication: so many, of so many runs in each world.
FEWER, FEWER_RUNS = 200, 200
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
    for order in (1.0, 4.0):
        truth, function = float(bernoulli_divergence(order, p, 1 - p)), StepFunction((0.0,), (-1.0, 1.0), order)
        for limit, times, n in ((empirical_bernstein, REPLICATIONS, RUNS), (betting, FEWER, FEWER_RUNS)):
            rng = np.random.default_rng(1)
            a, b = rng.binomial(n, p, times), rng.binomial(n, 1 - p, times)
            wrong = sum(
                divergence_lower(function, [n - i, i], [n - j, j], alpha=ALPHA, limit=limit) > truth
                for i, j in zip(a.tolist(), b.tolist(), strict=True)
            )
            name = f"randomised response, order {order:g}"
            rows.append(_alarm(name, f"function, {limit.__name__.replace('_', ' ')}", wrong, times))
    return rows


def _parts(k_p: np.ndarray, k_q: np.ndarray) -> list[tuple[np.ndarray, int, np.ndarray, int]]:
    return [(k_p[i : i + 2000], RUNS, k_q[i : i + 2000], RUNS) for i in range(0, REPLICATIONS, 2000)]


def _alarm(name: str, certificate: str, wrong: int, times: int) -> list[str]:
    most = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / times)
    return [
        name,
        certificate,
        f"{times:,}",
        f"{wrong / times:.4f}",
        f"{most:.4f}",
        "yes" if wrong / times <= most else "NO",
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


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def main() -> None:
    """Measure, and write the page."""
    text = f"""# Claims in other measures

## False alarms at claims that are exactly tight

alpha = {ALPHA:g}; {RUNS:,} runs in each world ({FEWER_RUNS} with betting). Allowed: alpha + 3 sigma.

{table(["claim", "certificate", "replications", "false alarms", "allowed", "within"], alarms())}

## Share of the true level that is certified

The Gaussian mechanism as a black box at 99 %, the best of three pairs searched: their inputs differ by 1, 1/4 and 1/2.
Total runs, means over the seeds. Beside ours, figures that other code gave: for rho a function of the score with the
empirical Bernstein bound, and one event; for mu one event.

{table(["mu", "runs", "seeds", "rho, ours", "rho, Bernstein", "rho, event", "mu, ours", "mu, event"], shares())}

## Power: how often a claim of mu that is too small is falsified

400 simulated certificates of the median event, all runs certifying, 99 %.

{table(["mu", "runs", *(f"{short:.0%} too small" for short in SHORT)], power())}
"""
    OUT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
