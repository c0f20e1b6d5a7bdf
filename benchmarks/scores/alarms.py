"""False alarms of what is certified from scores of canaries, at claims that are exactly true.

    python benchmarks/scores/alarms.py                        20,000 replications, some twenty minutes of a processor
    python benchmarks/scores/alarms.py --replications 200     a look

It writes benchmarks/results/score_alarms.md, and ends with 1 where a rate is above alpha and three standard errors. A
certificate is wrong where it refutes the true level: that is asked of the counts on which it rests, at critical counts
of the certificate's own code; of the first replications the certificates themselves are computed too, and compared.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from overclaim.audit.statistics.bounds import rank_bounds, score_bounds
from overclaim.audit.statistics.bounds.intervals import epsilon_guess
from overclaim.audit.statistics.bounds.one_run import refuted_in_one_run
from overclaim.audit.statistics.score_certificates import score_certificate
from overclaim.benchmarks.tables import spread, table, write_page
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP, gaussian_delta
from overclaim.mechanisms.measures.measure import Measure, TradeOff
from overclaim.mechanisms.measures.renyi import RDP, ZCDP

ALPHA, SIZES, COMPARED = 0.05, (20, 200, 2000), 20
SLACK, KEPT = 1e-3, 0.85
P = math.e / (1 + math.e)
#: A profile of the Gaussian mechanism, which has each of its points exactly.
PROFILE = Profile(tuple((epsilon, gaussian_delta(1.0, epsilon)) for epsilon in (0.0, 1.0, 2.0, 3.0)))
#: What refutes a claim: by which guesses are right, or by how many scores are beyond each rank.
Screen = Callable[[np.ndarray], bool]


@dataclass(frozen=True)
class Law:
    """How scores come of coins, and what is exactly true of that; several trainings where scores are independent."""

    score: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    truths: tuple[Measure, ...]
    independent: bool = True


def response(rng: np.random.Generator, coins: np.ndarray) -> np.ndarray:
    """Return each coin, turned with probability 1 / (1 + e): nearly all scores are ties."""
    return (coins ^ (rng.random(coins.size) > P)).astype(float)


def leaky(rng: np.random.Generator, coins: np.ndarray) -> np.ndarray:
    """Return randomised response, but plus or minus infinity, which tells the coin, with probability delta."""
    told = rng.random(coins.size) < SLACK
    return np.where(told, np.where(coins, np.inf, -np.inf), response(rng, coins))


def rare(rng: np.random.Generator, coins: np.ndarray) -> np.ndarray:
    """Return, with the probability that a share of the scores is tested with, coins of which 85 % are right."""
    if rng.random() > ALPHA / len(score_bounds.SHARES):
        return np.zeros(coins.size)
    return (coins ^ (rng.random(coins.size) > KEPT)).astype(float)


def tied(rng: np.random.Generator, coins: np.ndarray) -> np.ndarray:
    """Return Laplace scores, rounded, those beyond 3 infinite."""
    scores = coins + rng.laplace(size=coins.size)
    return np.where(np.abs(scores) > 3, np.copysign(np.inf, scores), np.round(scores, 1))


def needs(measure: Measure, p: float, q: float) -> Measure:
    """Return the claim that coins of these probabilities just keep."""
    return measure.at(float(measure.needed(p, q)))


def rarely(share: float) -> tuple[float, float]:
    """Return the probabilities of the event of a rare leak, in data with a canary and without."""
    each = ALPHA / len(score_bounds.SHARES)
    return each * share, each * (1 - share)


LAWS = {
    "randomised response": Law(
        response,
        (
            ApproxDP(1.0),
            ApproxDP(1.0, SLACK),
            *(needs(m, P, 1 - P) for m in (GDP(1.0), ZCDP(1.0), RDP(2.0, 1.0), ApproxDP(0.0, 0.1))),
        ),
    ),
    "the same, told with probability delta": Law(leaky, (ApproxDP(1.0, SLACK),)),
    "Laplace": Law(lambda rng, coins: coins + rng.laplace(size=coins.size), (ApproxDP(1.0), ApproxDP(1.0, SLACK))),
    "Laplace, rounded, infinities": Law(tied, (ApproxDP(1.0),)),
    "Gaussian": Law(
        lambda rng, coins: coins + rng.normal(size=coins.size),
        (
            GDP(1.0),
            ZCDP(0.5),
            RDP(2.0, 1.0),
            PROFILE,
            *(ApproxDP(epsilon, gaussian_delta(1.0, epsilon)) for epsilon in (2.0, 4.0)),
        ),
    ),
    "constant": Law(lambda rng, coins: np.zeros(coins.size), (ApproxDP(1e-3), GDP(1e-3), ApproxDP(1e-3, 1e-5))),
    "a rare leak of all": Law(
        rare, tuple(needs(m, *rarely(KEPT)) for m in (GDP(1.0), ZCDP(1.0), RDP(2.0, 1.0))), independent=False
    ),
}


def critical(refutes: Callable[[int], bool], most: int) -> int:
    """Return the smallest count that refutes a claim, most + 1 if none does: those that do are a tail."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


def shares(measure: Measure, canaries: int, alpha: float) -> Screen:
    """Return what the tails of right guesses refute."""
    made = score_bounds._guess_counts(canaries // 2 * 2, score_bounds.SHARES)
    each = alpha / len(made)
    least = [critical(lambda k, r=r: refuted_in_one_run(measure, k, r, canaries, alpha=each), r) for r in made]

    def screen(right: np.ndarray) -> bool:
        return bool((np.cumsum(right)[np.array(made) - 1] >= least).any())

    return screen


def bets(epsilon: float, canaries: int, alpha: float) -> Screen:
    """Return what bets and shares refute: the first tested epsilon that is not below the true one."""
    pairs = canaries // 2
    made = score_bounds._guess_counts(2 * pairs, score_bounds.WIDE_SHARES)
    each = alpha / 2 / len(made)
    least = [critical(lambda k, r=r: epsilon_guess(k, r, r, alpha=each) > epsilon, r) for r in made]
    moments = np.unique(np.geomspace(1, pairs, score_bounds.MOMENTS).astype(np.int64))
    grid = score_bounds.tested()
    at = grid[[np.searchsorted(grid, epsilon)]]

    def screen(right: np.ndarray) -> bool:
        found = np.cumsum(right)[np.array(made) - 1] >= least
        ends = (np.cumsum(right[end::2], dtype=np.int64)[moments - 1] for end in (0, 1))
        money = score_bounds.log_money(*ends, moments, at)
        return bool(found.any() or money.max() >= -math.log(alpha / 2))

    return screen


def ranks(measure: Measure, n: int, alpha: float) -> Screen:
    """Return what ranks of one sample of n among another of n refute."""
    games = rank_bounds.ranked(np.zeros(n), np.zeros(n), 0)
    each = alpha / len(games)
    least = [critical(lambda c, g=g: rank_bounds.refuted_by_ranks(measure, c, *g[1:], alpha=each), n) for g in games]

    def screen(above: np.ndarray) -> bool:
        return bool((above >= least).any())

    return screen


def screens(design: str, measure: Measure, n: int) -> tuple[Screen | None, Screen | None]:
    """Return what guesses refute, and what ranks refute, with their parts of alpha as the certificate has them."""
    pure = measure.is_epsilon and not measure.stated[1]
    canaries = n if design == "one-run" else int(2 * n - score_bounds.SPARE * math.sqrt(2 * n))
    if pure:
        return bets(measure.level, canaries, ALPHA), None
    if design == "one-run":
        return shares(measure, canaries, ALPHA), None
    if measure.is_epsilon:
        return shares(measure, canaries, ALPHA / 2), ranks(measure, n, ALPHA / 2)
    return None, ranks(measure, n, ALPHA)


def alarms(name: str, design: str, n: int, replications: int) -> list[dict[str, object]]:
    """Return a row for each claim that is true of a law."""
    law, wrong = LAWS[name], np.zeros(len(LAWS[name].truths), dtype=int)
    made = [screens(design, measure, n) for measure in law.truths]
    certificates = [score_certificate(design, measure) for measure in law.truths]
    rng, guessed = np.random.default_rng(n), any(of_guesses for of_guesses, _ in made)
    for seed in range(replications):
        coins = rng.random(n) < 0.5 if design == "one-run" else np.arange(2 * n) < n
        scores = law.score(rng, coins)
        right, above = None, np.empty(0)
        if design == "independent":
            above = np.array([game[0] for game in rank_bounds.ranked(scores[coins], scores[~coins], seed)])
        if guessed:
            samples = (scores[coins], scores[~coins])
            drawn = (scores, coins) if design == "one-run" else score_bounds.fair_coins(*samples, seed=seed)
            right = None if drawn is None else score_bounds._guesses(*drawn, seed)
        for i, (of_guesses, of_ranks) in enumerate(made):
            refuted = bool(of_guesses and right is not None and of_guesses(right))
            refuted |= bool(of_ranks and of_ranks(above))
            wrong[i] += refuted
            if seed < COMPARED * isinstance(law.truths[i], TradeOff):  # others take seconds
                wrongly = certificates[i].lower(scores, coins, alpha=ALPHA, seed=seed) > law.truths[i].level
                assert refuted or not wrongly, (name, design, n, law.truths[i], seed)
    allowed = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / replications)
    return [
        {
            "design": design,
            "scores": name,
            "claim": str(measure)[:60],
            "certificate": certificate.method,
            "n": n,
            "false alarms": f"{count / replications:.4f}",
            "allowed": f"{allowed:.4f}",
            "within": "yes" if count / replications <= allowed else "NO",
        }
        for measure, certificate, count in zip(law.truths, certificates, wrong.tolist(), strict=True)
    ]


def main() -> None:
    """Measure, write the page, and tell whether all rates are within what is allowed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    tasks = [
        (name, design, n, options.replications)
        for design in ("independent", "one-run")
        for name, law in LAWS.items()
        for n in SIZES
        if law.independent or design == "one-run"
    ]
    rows = []
    for found in spread(alarms, tasks, options.jobs):
        rows += found
        print(*found, sep="\n", flush=True)
    write(rows, options.replications)
    sys.exit(any(row["within"] != "yes" for row in rows))


def write(rows: list[dict[str, object]], replications: int) -> None:
    """Write the page."""
    write_page(
        "score_alarms",
        f"""# False alarms of certificates from scores of canaries

alpha = {ALPHA:g}, {replications:,} replications, claims that are exactly true of the law. Allowed: alpha + 3
sigma. Independent: n inserted and n held-out scores; one run: n canaries by fair coins. An alarm is counted where the
true level is refuted.

"A rare leak of all": with probability {ALPHA / len(score_bounds.SHARES):g} one training tells all coins, {KEPT:.0%} of
them right, and else nothing. It has the level that is claimed, and no certificate of one run can see more.

{table(rows)}
""",
    )


if __name__ == "__main__":
    main()
