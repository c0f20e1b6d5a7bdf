"""Learners at long horizons: what is certified, of the best lower bound on epsilon that is known, and what it costs.

    python benchmarks/power/horizon.py [--runs 1000000] [--only arms|releases|equal] [--as before --to FILE]

The claim is epsilon = 1 at delta = 0, which bounds all of it from above. The worlds differ in the first round: losses
of 1 that become 0. Times are CPU times of one process; set OMP_NUM_THREADS=1. Each table that is measured is put into
benchmarks/results/horizon.json beside the others; rows named `before` are those of older code, run with `--as before`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overclaim.audit.attacks import learner_attacks as attacks
from overclaim.audit.blackbox.learners import falsify
from overclaim.audit.laws.exact import exact_epsilon
from overclaim.benchmarks import tables
from overclaim.benchmarks.speed.speed import one_differs
from overclaim.benchmarks.tables import RESULTS, Rows
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.catalogue.entries import lookup
from overclaim.mechanisms.claim import Claim

ARMS, ROUNDS = (2, 8, 64), (64, 1024)
ETA, GAMMA = 0.5, 0.1
#: Runs of the rows that are compared with older code: a filter of all rounds is dear.
EQUAL = {64: 20_000, 1024: 4000}
#: Rounds that the leader of `constant_sequence` is kept, quantiles of the noise, and the grid of its log-weight.
LONGEST, QUANTILES = 12, 1000
#: Rounds whose sequences of two arms are all enumerated.
ENUMERATED = 12
GRID = np.linspace(-40.0, 40.0, 3201)
SEED = 0

Floats = NDArray[np.float64]


def exp3(arms: int) -> BatchedLaplace:
    """Return batched EXP3 with tau = 1 and rates under which actions tell much: eta 0.5, gamma 0.1."""
    return BatchedLaplace(inner=Exp3(arms=arms, eta=ETA, gamma=GAMMA), epsilon=1.0, batch=1)


def constant_sequence(arms: int) -> tuple[float, int]:
    """Return the largest |ln P(a) / P'(a)| of a = the first arm in rounds 1 to n, n up to `LONGEST` + 1, and that n.

    On these sequences one log-weight alone moves, so their law is an integral over one noise after the other, on a
    grid. They are actions of a prefix: no horizon from n on has a smaller epsilon.
    """
    u = (np.arange(QUANTILES) + 0.5) / QUANTILES - 0.5
    noise = -np.sign(u) * np.log1p(-2 * np.abs(u))
    p = (1 - GAMMA) / (1 + (arms - 1) * np.exp(-GRID)) + GAMMA / arms
    later = np.ones_like(GRID)  # the probability of playing on in the same way, from each log-weight
    best = (0.0, 1)
    for n in range(2, LONGEST + 2):
        stayed = [np.interp(x - ETA / q * (1 + noise), GRID, later).mean() for x, q in zip(GRID, p, strict=True)]
        later = p * (np.array(stayed) if n > 2 else 1.0)
        left, right = (np.interp(-ETA * arms * (loss + noise), GRID, later).mean() for loss in (1.0, 0.0))
        best = max(best, (abs(math.log(left / right)), n))
    return best


def audit(arms: int, rounds: int, runs: int) -> dict[str, Any]:
    """Return what the particle attack certifies, compiled, and its CPU seconds."""
    every, attacks.ATTACKS = attacks.ATTACKS, (attacks.ParticleRatio,)
    pair, learner, claim = one_differs(rounds, arms), exp3(arms), Claim(epsilon=1.0)
    falsify(learner, claim, pair=pair, runs=200, fast=True)  # compiles
    began = time.process_time()
    result = falsify(learner, claim, pair=pair, runs=runs, seed=SEED, fast=True)
    cost = time.process_time() - began
    attacks.ATTACKS = every
    lag = getattr(result.scorer, "lag", None)
    return {"runs": runs, "lag": "all" if lag is None else lag, "certified": result.epsilon_lower, "CPU s": cost}


def of_arms(runs: int) -> Rows:
    """Batched EXP3, its arms alone: certified against the exact law of a constant sequence."""
    rows: Rows = []
    for arms in ARMS:
        bound, n = constant_sequence(arms)
        source = f"the first arm {n} times"
        if arms == 2:
            bound = exact_epsilon(exp3(2), one_differs(ENUMERATED, 2), deltas=(0.0,))[0.0]
            source = f"all sequences of {ENUMERATED} rounds"
        for rounds in ROUNDS:
            found = audit(arms, rounds, runs)
            known = {"arms": arms, "rounds": rounds, "known": bound, "from": source}
            rows.append({**known, **found, "share": found["certified"] / bound})
            tables.show(rows)
    return rows


def equal(runs: int) -> Rows:
    """The same audits with few runs, which older code can pay for."""
    rows: Rows = []
    for rounds in ROUNDS:
        for arms in ARMS:
            rows.append({"arms": arms, "rounds": rounds, **audit(arms, rounds, min(runs, EQUAL[rounds]))})
            tables.show(rows)
    return rows


def of_releases(runs: int) -> Rows:
    """What is released beside the arms: certified against the closed form, K = 8."""
    rows: Rows = []
    for name, parameters in (
        ("asi-raman-talwar/batched-htinf", {"batch": 1}),
        ("asi-raman-talwar/exp4-local", {"eta": 0.5, "gamma": 0.1}),
    ):
        for rounds in ROUNDS:
            entry, few = lookup(name), runs // (5 if rounds == ROUNDS[0] else 50)
            setting = entry.setting(rounds=rounds, arms=8)
            learner, pair = entry.build(setting, **parameters), one_differs(rounds, 8)
            claim = entry.claim(setting, surface="release")
            known = exact_epsilon(learner, pair, surface="release", deltas=(0.0,))[0.0]
            began = time.process_time()
            result = falsify(learner, claim, pair=pair, runs=few, seed=SEED, fast=True)
            cost, found = time.process_time() - began, result.epsilon_lower
            what = {"learner": name, "rounds": rounds, "known": known, "runs": few}
            rows.append({**what, "certified": found, "CPU s": cost, "share": found / known})
            tables.show(rows)
    return rows


TABLES = {"arms": of_arms, "releases": of_releases, "equal": equal}


def page(measured: dict[str, Any]) -> str:
    """Return the page of all tables."""
    parts = ["# Learners at long horizons\n", f"{measured['dated']} Seed {SEED}, one process, compiled.\n"]
    parts.append(
        "epsilon = 1 at delta = 0 is what is claimed, and true: no bound exceeds 1. `known` is a lower bound on the "
        "pair's epsilon from an exact law, `lag` the actions after the differing one that the filter looks at.\n"
    )
    for name, rows in measured.items():
        if isinstance(rows, list):
            kind, _, before = name.partition(" ")
            remark = (TABLES[kind].__doc__ or "").splitlines()[0]
            parts.append(f"## {name.capitalize()}\n\n{remark}{' Before: the code of 7ada82d.' if before else ''}\n")
            parts.append(tables.table(rows) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--only", choices=TABLES, action="append")
    parser.add_argument("--as", dest="when", choices=["before", "now"], default="now")
    parser.add_argument("--to", type=Path, default=RESULTS / "horizon.json")
    chosen = parser.parse_args()
    measured = json.loads(chosen.to.read_text(encoding="utf-8")) if chosen.to.exists() else {}
    for name in chosen.only or TABLES:
        key = name if chosen.when == "now" else f"{name} before"
        measured = {**measured, "dated": tables.dated(), key: TABLES[name](chosen.runs)}
        chosen.to.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        chosen.to.with_suffix(".md").write_text(page(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
