"""Traces: every row of the catalogue certified from below, exactly, and from above; and what recording costs.

python benchmarks/catalogue/traces.py [RUNS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from overclaim import falsify
from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.plans.plan import literature
from overclaim.audit.plans.tasks import Prepared
from overclaim.audit.spaces.families import standard_pairs
from overclaim.audit.traces.causes import cause
from overclaim.audit.traces.upper import tracing
from overclaim.benchmarks import tables
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Laplace

#: Of one row: no certificate of two hundred is wrong by chance, but for one in a million repetitions.
CONFIDENCE = 1 - 5e-9
#: Rows with more rounds are traced, but not audited here.
LONG = 100


def rows(runs: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield every learner's row of the catalogue on its pair, or on the first of the standard ones."""
    for task in literature(seed).tasks:
        prepared = task.prepare()
        if not prepared.is_mechanism:
            yield row_of(prepared, runs, seed)


def row_of(prepared: Prepared, runs: int, seed: int) -> dict[str, Any]:
    """Return one row: lower <= exact <= upper, each computed for itself."""
    learner, claim, rounds = prepared.target, prepared.claim, prepared.rounds
    pair = (prepared.pairs or standard_pairs(learner, claim, rounds))[0]
    traced = tracing(learner, pair, claim, seed=seed)
    on_pair, on_all = traced.pair_upper, traced.claim_upper
    costly = traced.leak is not None or (on_pair is not None and on_pair.epsilon > claim.epsilon * (1 + 1e-9))
    why = cause(traced, claim) if costly else None
    try:
        exact = exact_epsilon(learner, pair, view=claim.view, deltas=(claim.delta,))[claim.delta]
    except NotExactError:
        exact = None
    lower = None
    if rounds <= LONG:
        audit = falsify(learner, claim, pair=pair, runs=runs, seed=seed, confidence=CONFIDENCE)
        lower = audit.epsilon_lower
    return {
        "name": prepared.task.target,
        "calibration": prepared.setting.calibration if prepared.setting else "",
        "game": f"{claim.losses} {claim.neighbours} {claim.surface} T={rounds}",
        "delta": claim.delta,
        "claimed": claim.epsilon,
        "lower": lower,
        "exact": exact,
        "upper": None if on_pair is None else on_pair.epsilon,
        "how": "" if on_pair is None else on_pair.how,
        "every pair": None if on_all is None else on_all.epsilon,
        "why": "" if why is None else why.text,
    }


def recording(repeats: int = 2000) -> dict[str, Any]:
    """Return what asking for noise costs when nobody watches, over drawing it, for a block of 8192 runs."""
    law, shape, draws = Laplace(1.0), (8192,), Draws(0)
    value = np.zeros(shape)
    times: dict[str, list[float]] = {"sample": [], "noise": []}
    for _ in range(repeats):
        for name, call in (
            ("sample", lambda: law.sample(shape, draws)),
            ("noise", lambda: draws.noise(law, shape, value, "loss")),
        ):
            began = time.process_time_ns()
            call()
            times[name].append(time.process_time_ns() - began)
    plain, asked = (float(np.median(times[name])) for name in ("sample", "noise"))
    return {"what": "noise asked for, 8192 runs", "share of the draw": (asked - plain) / plain}


def main() -> None:
    """Print the table, and the cost of recording."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print(tables.table(list(rows(runs))))
    print(tables.table([recording()]))


if __name__ == "__main__":
    main()
