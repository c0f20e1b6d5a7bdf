"""Exact laws of falsified rows, and the runs that they need: writes `learners/catalogue/exact_laws.py`.

    python benchmarks/catalogue/exact_laws.py

No run is played: the pair is the one that the audit itself takes, by exact laws alone. Of the event A that tells most
at the claim, the exact profile has d = P(A) - e^epsilon Q(A), and by its slope Q(A). A count of A in n / 2 runs of
each input then exceeds what (epsilon, delta) allows by d - delta, in standard errors of
sqrt(2 (P (1 - P) + e^(2 epsilon) Q (1 - Q)) / n): `needed` is the n at which that is the quantile of the certificate's
error plus the quantile of `MISS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.plans.plan import MISS, REPORT_ALPHA, case_task
from overclaim.audit.search.exact_search import find_exactly
from overclaim.audit.spaces.loss_choices import alphabet_of
from overclaim.learners.catalogue.entries import entries
from overclaim.learners.catalogue.exact_laws import key_of
from overclaim.learners.entry import Case, Entry

MODULE = Path(__file__).resolve().parents[2] / "learners" / "catalogue" / "exact_laws.py"
#: The deltas of a profile, the largest first: its epsilons increase.
DELTAS = np.geomspace(0.99, 1e-3, 80)
#: Nats on each side of the claim between which the slope is taken.
STEP = 0.02


def falsified() -> Iterator[tuple[Entry, Case]]:
    """Yield the rows that are expected to be falsified."""
    for entry in entries().values():
        yield from ((entry, case) for case in entry.cases if case.expected == "falsified")


def law_of(entry: Entry, case: Case, alpha: float) -> tuple[float, int] | None:
    """Return d - delta and the runs that a row needs; None where no exact profile reaches beyond its claim."""
    prepared = case_task(entry, case, 0, 1 - alpha).prepare()
    learner, claim = prepared.target, prepared.claim
    pair = prepared.pairs[0] if prepared.pairs else None
    pair = pair or find_exactly(learner, claim, alphabet_of(learner, claim), prepared.rounds, runs=case.runs)
    if pair is None:
        return None
    try:
        known = exact_epsilon(learner, pair, view=claim.view, deltas=tuple(DELTAS.tolist()))
    except NotExactError:
        return None
    epsilons = np.array([known[delta] for delta in DELTAS.tolist()])
    deltas, epsilons = DELTAS[np.isfinite(epsilons)], epsilons[np.isfinite(epsilons)]
    if not epsilons.size or epsilons[-1] < claim.epsilon + STEP:
        return None
    here, before, after = np.interp(claim.epsilon + np.array([0, -STEP, STEP]), epsilons, deltas)
    right = (before - after) / (2 * STEP) * math.exp(-claim.epsilon)
    left, excess = here + math.exp(claim.epsilon) * right, here - claim.delta
    if not excess > 0:
        return None
    variance = 2 * (left * (1 - left) + math.exp(2 * claim.epsilon) * right * (1 - right))
    return round(float(excess), 4), math.ceil((ndtri(alpha) + ndtri(MISS)) ** 2 * variance / excess**2)


def main() -> None:
    """Write the table."""
    rows = list(falsified())
    alpha = REPORT_ALPHA / sum(len(entry.cases) for entry in entries().values())
    laws = {key_of(entry, case): law_of(entry, case, alpha) for entry, case in rows}
    head = MODULE.read_text(encoding="utf-8").partition("EXACT_LAWS:")[0]
    lines = [f'    "{key}": {law},\n' for key, law in laws.items() if law is not None]
    MODULE.write_text(f"{head}EXACT_LAWS: dict[str, tuple[float, int]] = {{\n{''.join(lines)}}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
