"""False alarms of audits of weak claims, whose pilot shares its draws: mechanisms that keep their claim exactly.

    python benchmarks/validity/weak_claim_alarms.py [SEEDS]

A million runs make a claim of epsilon .1 a weak one, so `audit.blackbox.weak_claims` chooses pair, attack and event.
Every audit is an error with probability at most 1 - confidence = 0.05, whatever it chooses.
"""

from __future__ import annotations

import sys
import time

from overclaim import Verdict
from overclaim.benchmarks import tables
from overclaim.benchmarks.power import peers
from overclaim.mechanisms.one_shot.zoo import zoo

EPSILON, RUNS, CONFIDENCE, FIRST, SEEDS = 0.1, 1_000_000, 0.95, 2000, 36
SOUND = (
    "laplace",
    "truncated-geometric",
    "noisy-histogram-1",
    "noisy-max-1",
    "noisy-max-2",
    "svt1",
    "svt2",
    "numerical-svt",
)


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    began, rows = time.process_time(), []
    for name in SOUND:
        claim = zoo()[f"mechanisms/{name}"].claimed(EPSILON)
        budget = {"runs": RUNS, "confidence": CONFIDENCE}
        verdicts = [peers.audit(name, EPSILON, claim, seed=FIRST + seed, **budget).verdict for seed in range(seeds)]
        rows.append({"mechanism": name, "audits": seeds, "false alarms": verdicts.count(Verdict.FALSIFIED)})
        tables.show(rows)
    audits, alarms = (sum(row[what] for row in rows) for what in ("audits", "false alarms"))
    spent = time.process_time() - began
    note = (
        f"{alarms} of {audits} audits, of {RUNS:,} runs each at {CONFIDENCE} confidence from seed {FIRST} on; at most "
        f"{audits * (1 - CONFIDENCE):.1f} are expected.\n{spent:.0f} s of processor time. {tables.dated()}"
    )
    text = f"# False alarms of audits of weak claims\n\n{tables.table(rows)}\n\n{note}\n"
    (tables.RESULTS / "weak_claim_alarms.md").write_text(text)


if __name__ == "__main__":
    main()
