"""False alarms of audits of weak claims, whose pilot shares its draws: mechanisms that keep their claim exactly.

    python benchmarks/validity/weak_claim_alarms.py [--seeds 63]

A million runs make a claim of epsilon .1 a weak one, so `audit.pipeline.weak_claims` chooses pair, attack and event.
Every audit is an error with probability at most 1 - confidence = 0.05, whatever it chooses.
"""

from __future__ import annotations

import argparse
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


def audit(name, seed):
    """Return the verdict on a claim that is kept exactly, and the seconds of processor time."""
    began, claim = time.process_time(), zoo()[f"mechanisms/{name}"].claimed(EPSILON)
    verdict = peers.audit(name, EPSILON, claim, seed=FIRST + seed, runs=RUNS, confidence=CONFIDENCE).verdict
    return verdict, time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1, help="processes; they slow each other down")
    choices = parser.parse_args()
    rows, spent = [], 0.0
    measured = tables.spread(audit, [(name, seed) for name in SOUND for seed in range(choices.seeds)], choices.jobs)
    for name in SOUND:
        verdicts, seconds = zip(*(next(measured) for _ in range(choices.seeds)), strict=True)
        spent += sum(seconds)
        rows.append({"mechanism": name, "audits": choices.seeds, "false alarms": verdicts.count(Verdict.FALSIFIED)})
        tables.show(rows)
    audits, alarms = (sum(row[what] for row in rows) for what in ("audits", "false alarms"))
    note = (
        f"{alarms} of {audits} audits, of {RUNS:,} runs each at {CONFIDENCE} confidence from seed {FIRST} on; at most "
        f"{audits * (1 - CONFIDENCE):.1f} are expected.\n{spent:.0f} s of processor time. {tables.dated()}"
    )
    text = f"# False alarms of audits of weak claims\n\n{tables.table(rows)}\n\n{note}\n"
    tables.write_page("weak_claim_alarms", text)


if __name__ == "__main__":
    main()
