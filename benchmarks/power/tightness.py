"""Tightness: certified over exact epsilon, and what it costs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from overclaim.audit.attacks import learner_attacks as attacks
from overclaim.audit.laws.exact import epsilon_from_laws, exact_epsilon
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.search.pair_search import candidates
from overclaim.audit.statistics.events import Counts, certify
from overclaim.audit.verdicts.verdict import Result
from overclaim.benchmarks import tables
from overclaim.benchmarks.speed.speed import one_differs
from overclaim.benchmarks.tables import Rows
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.entry import Entry
from overclaim.learners.leaders.pftal import Pftal
from overclaim.learners.leaders.pftal_law import clipped_laws
from overclaim.mechanisms.claim import Claim

SHARP = {"eta": 2.0, "gamma": 0.02}
FLAT = {"curvature": 1e-5}
RUNS = 2_000_000
#: One audit certifies more or less than it is expected to by chance: means over so many seeds are shown.
SEEDS = 16


@dataclass(frozen=True)
class Row:
    """One row of the tightness table. The pair is always searched."""

    entry: str
    setting: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    neighbours: str = "replace"
    surface: str = "actions"
    runs: int = RUNS


def at_deltas(entry: str, rounds: int, parameters: dict[str, Any], surface: str = "actions") -> list[Row]:
    """Return an entry's rows at delta = 0, 1e-3 and 1e-2."""
    return [Row(entry, {"rounds": rounds, "delta": d}, parameters, surface=surface) for d in (0.0, 1e-3, 1e-2)]


REDUCTION, BATCHED = "agarwal-singh/reduction-threshold", "asi-raman-talwar/batched-exp3"
#: Every learner and surface with an exact value.
TIGHTNESS: list[Row] = [
    Row(REDUCTION, {"rounds": 2}),
    Row(REDUCTION, {"rounds": 2}, neighbours="zero-out"),
    Row(REDUCTION, {"rounds": 2, "calibration": "corrected"}),
    Row(REDUCTION, {"rounds": 2}, surface="release"),
    *at_deltas("agarwal-singh/reduction-exp2", 4, SHARP),
    *at_deltas(BATCHED, 4, {**SHARP, "batch": 1}),
    *at_deltas(BATCHED, 8, {"eta": 0.5, "gamma": 0.1, "batch": 2}),
    Row(BATCHED, {"rounds": 4}, {**SHARP, "batch": 1}, surface="release"),
    Row("asi-raman-talwar/batched-threshold", {"rounds": 2}),
    Row("asi-raman-talwar/exp4-local", {"rounds": 4}, SHARP),
    Row("asi-raman-talwar/batched-htinf", {"rounds": 8}, {"batch": 2}, surface="release"),
    *at_deltas("agarwal-singh/ftrl-experts", 4, {})[1:],
    *at_deltas("agarwal-singh/ftrl-experts", 4, {}, "release"),
    Row("agarwal-singh/ftrl-ball", {"rounds": 4}, surface="release"),
    Row("agarwal-singh/ftrl-cube", {"rounds": 4}, surface="release"),
    *(Row("agarwal-singh/ftpl-simplex", {"rounds": 4, "delta": d}, {"noise_delta": 1e-2}) for d in (1e-3, 1e-2)),
    *(
        Row(f"agarwal-singh/ftpl-{body}", {"rounds": 4, "delta": 1e-2}, surface="release")
        for body in ("simplex", "ball", "cube")
    ),
    *at_deltas("smith-thakurta/pftal", 4, FLAT),
    *at_deltas("smith-thakurta/pftal", 8, FLAT),
    *(Row("smith-thakurta/pftal", {"rounds": t}, surface="release") for t in (4, 8)),
    Row("smith-thakurta/pftal-lipschitz", {"rounds": 4}, FLAT),
    Row("smith-thakurta/pftal-lipschitz", {"rounds": 4}, FLAT, surface="release"),
    *at_deltas("asi-raman-talwar/exp3", 8, {"eta": 0.5, "gamma": 0.1}),
    Row("tossou-dimitrakakis/exp3-minibatch", {"rounds": 8, "delta": 1e-2}, {"batch": 1}),
]


def tightness() -> Rows:
    """Certified over exact epsilon, 99 %, mean and sd over seeds from 0 on; attainable: at the mean counts.

    P(worst): of the worst outcomes. Pairs are found by the search. nan where no table of outcomes has the laws.
    """
    rows: Rows = []
    for row in TIGHTNESS:
        rows.append(measure(row))
        tables.show(rows)
    return rows


def measure(row: Row) -> dict[str, Any]:
    """Audit one row of the table on one core."""
    entry: Entry = lookup(row.entry)
    chosen = entry.setting(**({"arms": 1} if row.entry.startswith("smith") else {}), **row.setting)
    learner = entry.build(chosen, **row.parameters)
    claim = entry.claim(chosen, neighbours=row.neighbours, surface=row.surface)
    began, spent = time.perf_counter(), time.process_time()
    # One pair: it was found by exact epsilon.
    (pair,) = candidates(learner, claim, rounds=chosen.rounds, runs=row.runs)
    searched = time.perf_counter() - began
    results = [falsify(learner, claim, pair=pair, arms=chosen.arms, runs=row.runs, seed=seed) for seed in range(SEEDS)]
    cost, result = (time.process_time() - spent) / SEEDS, results[0]
    exact = true_epsilon(learner, claim, pair)
    certified = [result_of_seed.epsilon_lower for result_of_seed in results]
    ratio = float(np.mean(certified)) / exact if exact else float("nan")
    detail = " ".join(f"{k}={v}" for k, v in {**row.setting, **row.parameters}.items())
    return {
        "what": f"{row.entry} {detail} {row.surface} {row.neighbours}",
        "runs": row.runs,
        "seeds": len(results),
        "certified": float(np.mean(certified)),
        "exact": exact,
        "ratio": ratio,
        "sd": float(np.std(certified)) / exact if exact else float("nan"),
        "goal": goal(claim, worst(result)),
        "attainable": attainable(result) / exact if exact else float("nan"),
        "P(worst)": worst(result),
        "verdict": str(result.verdict),
        "search s": searched,
        "audit s": result.seconds,
        "CPU s": cost,
        "ratio per CPU s": ratio / cost,
    }


def goal(claim: Claim, worst: float) -> float:
    """Return the share to reach: less where delta hides rare outcomes or the worst ones are rare themselves."""
    return 0.9 if claim.delta or worst < 1e-3 else 0.97


def attainable(result: Result) -> float:
    """Return the bound at the counts that the best event is expected to have; nan where its laws are not known.

    No attack is expected to certify more: what is missing to the exact epsilon is the price of finitely many runs.
    """
    if not isinstance(result.scorer, attacks.SequenceRatio):
        return float("nan")
    scores, p, q = result.scorer.laws
    event, certificate = result.event, result.certificate
    runs, left = certificate.counts.runs, round(event.share * certificate.counts.runs)
    with np.errstate(invalid="ignore"):
        tails = [
            round(played * float(law[tail].sum()))
            for tail in (scores >= event.upper, scores <= event.lower)
            for law, played in ((p, left), (q, runs - left))
        ]
    expected = Counts(runs, left, *tails)
    return certify(event, expected, delta=certificate.delta, alpha=certificate.alpha).epsilon_lower


def worst(result: Result) -> float:
    """Return the probability, where they are rarer, of the outcomes whose ratio is epsilon at delta = 0.

    Where it is below 1e-3 even 2 million runs show few of them, which costs some of the ratio whatever the attack is.
    nan where no table has the laws.
    """
    if not isinstance(result.scorer, attacks.SequenceRatio):
        return float("nan")
    scores, p, q = result.scorer.laws
    finite = np.abs(scores[np.isfinite(scores)]).max()
    return max(float(law[side * scores >= finite - 1e-6].sum()) for law, side in ((q, 1), (p, -1)))


def true_epsilon(learner: Any, claim: Claim, pair: Pair) -> float:
    """Return the exact epsilon on a pair."""
    if isinstance(learner, Pftal) and claim.surface == "actions":
        laws = clipped_laws(learner, pair, points=512)
        return epsilon_from_laws(*laws, claim.delta)
    return exact_epsilon(learner, pair, view=claim.view, deltas=(claim.delta,))[claim.delta]


#: Claims whose bounds are followed over budgets.
FOLLOWED = (
    Row(REDUCTION, {"rounds": 2}),
    Row(BATCHED, {"rounds": 4}, {**SHARP, "batch": 1}),
    Row("agarwal-singh/ftrl-experts", {"rounds": 4}, surface="release"),
)


def budgets() -> Rows:
    """The certified share of exact epsilon, and its CPU seconds, as runs grow."""
    rows = []
    for runs in (20_000, 200_000, 2_000_000):
        for row in FOLLOWED:
            measured = measure(replace(row, runs=runs))
            rows.append({name: measured[name] for name in ("what", "runs", "ratio", "CPU s", "ratio per CPU s")})
            tables.show(rows)
    return rows


def particles(runs: int = 60_000) -> Rows:
    """Bounds of the particle likelihood ratio and of classifiers: K = 8, T = 64 batched EXP3, tau = 1, epsilon = 1."""
    learner = BatchedLaplace(inner=Exp3(arms=8, eta=0.5, gamma=0.1), epsilon=1.0, batch=1)
    claim = Claim(epsilon=1.0, delta=1e-3)
    every, rows = attacks.ATTACKS, []
    for attack in (attacks.ParticleRatio, attacks.Trained, attacks.Boosted):
        attacks.ATTACKS = (attack,)
        began = time.process_time()
        result = falsify(learner, claim, pair=one_differs(64, 8), runs=runs)
        cost = time.process_time() - began
        rows.append({"what": result.attack, "runs": runs, "certified": result.epsilon_lower, "CPU s": cost})
        tables.show(rows)
    attacks.ATTACKS = every
    return rows
