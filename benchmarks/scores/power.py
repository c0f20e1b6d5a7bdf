"""What scores of canaries certify: beside an oracle, and beside jax_privacy on the same scores.

    python benchmarks/scores/power.py            200 seeds, some ten minutes of a processor
    python benchmarks/scores/power.py --seeds 5  a look

It writes benchmarks/results/scores.md. Where jax_privacy is installed its auditor has the first 40 of these seeds.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Callable

import numpy as np

from overclaim import bounds
from overclaim.audit.statistics.bounds.intervals import epsilon_guess
from overclaim.benchmarks.tables import spread, table, write_page

ALPHA, DELTA, SIZES = 0.05, 1e-5, (200, 1000, 5000)
#: Laws of a canary's score: noise, and how much being in the data adds.
LAWS: dict[str, tuple[Callable[..., np.ndarray], float]] = {
    "Gaussian, mu 1": (np.random.Generator.normal, 1.0),
    "Gaussian, mu 3": (np.random.Generator.normal, 3.0),
    "Laplace, epsilon 1": (np.random.Generator.laplace, 1.0),
    "Laplace, epsilon 4": (np.random.Generator.laplace, 4.0),
}
#: Seeds of the peer, and the best of its figures as reported of the version of 2026-08, means of 40 other seeds.
COMPARED = 40
REPORTED = {
    "Gaussian, mu 1": ((0.772, 1.391, 1.926), (0.969, 1.488, 2.066)),
    "Gaussian, mu 3": ((2.97, 4.21, 5.34), (3.03, 4.16, 5.25)),
    "Laplace, epsilon 1": ((0.527, 0.777, 0.892), (0.599, 0.794, 0.883)),
    "Laplace, epsilon 4": ((2.66, 3.30, None), (2.68, 3.32, None)),
}
#: What is asked for: shares of the oracle, independent at delta 0 and one run at `DELTA`.
GOALS = ((0.84, 0.90, 0.94), (0.82, 0.88, 0.85))
#: Shares of the scores among which the oracle has the best.
SHARES = np.geomspace(0.005, 1.0, 60)


def drawn(law: str, n: int, seed: int, design: str) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and coins: n canaries of each kind, or as many of both by fair coins."""
    noise, shift = LAWS[law]
    rng = np.random.default_rng(seed)
    coins = np.arange(2 * n) < n if design == "independent" else rng.random(2 * n) < 0.5
    return noise(rng, size=2 * n) + shift * coins, coins


def measured(law: str, n: int, seed: int, design: str) -> tuple[float, float, np.ndarray]:
    """Return the certified epsilon and mu of one seed, and what the oracle certifies by each share."""
    scores, coins = drawn(law, n, seed, design)
    delta = 0.0 if design == "independent" else DELTA
    epsilon = bounds.epsilon_from_scores(scores, coins, design=design, delta=delta, alpha=ALPHA)
    mu = bounds.gdp_from_scores(scores, coins, design=design, alpha=ALPHA)
    sides = coins[np.argsort(-scores)]
    right = np.cumsum(np.stack([sides[:n], ~sides[::-1][:n]], axis=1).ravel())
    made = np.maximum(1, (2 * n * SHARES).astype(int))
    return epsilon, mu, np.asarray(epsilon_guess(right[made - 1], made, made, alpha=ALPHA))


def peers(law: str, n: int, design: str, seeds: int) -> tuple[float, str] | None:
    """Return the best mean of the peer's valid bounds, and by which strategy; None where it is not installed."""
    try:
        from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, MultiSplit, Split
    except ImportError:
        return None
    means = {}
    for strategy in (Bonferroni(), Split(seed=0), MultiSplit(seed=0)):
        found = []
        for seed in range(seeds):
            scores, coins = drawn(law, n, seed, design)
            auditor = CanaryScoreAuditor(scores[coins], scores[~coins])
            if design == "independent":
                found.append(auditor.epsilon_clopper_pearson(ALPHA, threshold_strategy=strategy))
            else:
                found.append(auditor.epsilon_one_run(ALPHA, DELTA, threshold_strategy=strategy))
        means[type(strategy).__name__] = float(np.mean(found))
    name = max(means, key=lambda name: means[name])
    return means[name], name


def cell(law: str, n: int, design: str, seeds: int) -> dict[str, object]:
    """Return the row of a law, a number of canaries and a design."""
    of_seeds = [measured(law, n, seed, design) for seed in range(seeds)]
    epsilons, mus = (np.array([one[i] for one in of_seeds]) for i in (0, 1))
    oracle = float(np.mean([one[2] for one in of_seeds], axis=0).max())
    run, size = int(design != "independent"), SIZES.index(n)
    theirs, reported = peers(law, n, design, min(seeds, COMPARED)), REPORTED[law][run][size]
    share, goal = float(epsilons.mean()) / oracle, GOALS[run][size]
    most = max((one for one in (theirs and theirs[0], reported) if one is not None), default=0.0)
    return {
        "scores": law,
        "n": n,
        "design": design,
        "epsilon": f"{epsilons.mean():.3f}",
        "sd": f"{epsilons.std():.3f}",
        "oracle": f"{oracle:.3f}",
        "share": f"{share:.3f}",
        "goal": goal,
        "peer": "-" if theirs is None else f"{theirs[0]:.3f} ({theirs[1]})",
        "reported": "-" if reported is None else f"{reported:.3f}",
        "above": "yes" if share >= goal and epsilons.mean() > most else "NO",
        "mu": f"{mus.mean():.3f}",
        "sd of mu": f"{mus.std():.3f}",
    }


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    tasks = [(law, n, design, options.seeds) for design in ("independent", "one-run") for law in LAWS for n in SIZES]
    rows = []
    for row in spread(cell, tasks, options.jobs):
        rows.append(row)
        print(row, flush=True)
    write(rows, options.seeds)


def write(rows: list[dict[str, object]], seeds: int) -> None:
    """Write the page."""
    try:
        peer = f"jax_privacy {importlib.metadata.version('jax_privacy')}"
    except importlib.metadata.PackageNotFoundError:
        peer = "jax_privacy was not installed"
    write_page(
        "scores",
        f"""# Scores of canaries: what is certified

{1 - ALPHA:.0%} confidence, means of {seeds} seeds. Independent: n inserted and n held-out canaries, each score
from a training of its own, delta 0. One run: 2 n canaries, each in the data by a fair coin, delta {DELTA:g}.

Oracle: the best of {SHARES.size} fixed shares of the pooled scores, guessed on both sides, by the guess game at delta
0, on the same seeds. It knows which share is best, and so is no certificate. Mu: what the same scores certify of
Gaussian differential privacy; of one run that is a part of mu, whatever n is.

Peer: {peer}, `CanaryScoreAuditor` on the first {min(seeds, COMPARED)} seeds, the strategy with the best mean:
`epsilon_clopper_pearson` (independent), `epsilon_one_run` (one run). Its `epsilon_one_run_fdp` is left out: it says an
epsilon under the assumption that the mechanism is Gaussian. "reported": the best of its figures as reported of its
version of 2026-08, on 40 other seeds. "above": at least the goal's share, and above both.

{table(rows)}
""",
    )


if __name__ == "__main__":
    main()
