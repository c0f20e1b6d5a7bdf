"""`make regret`: the regret of the catalogue's entries at long horizons, with every verdict.

    python benchmarks/regret.py [--longest T] [--runs N] [ENTRY ...]

Entries with a kernel are played at T = 2^17, others at 2^14, unless --longest is smaller; the table goes to
benchmarks/results/regret.md and regret.json. Beside each verdict stands what a search found against the listed
sequences, at T = 256.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import tables

from overclaim.audit.play.execution import Budget, Execution
from overclaim.audit.play.kernel_totals import has_kernel_for
from overclaim.audit.regret.adversaries import regret_losses
from overclaim.audit.regret.regret_audit import FOUND, audit_regret
from overclaim.learners.catalogue.entries import entries

RESULTS = Path(__file__).parent / "results"
LONG, SLOW, SEARCHED = 2**17, 2**14, 256


def row(entry, longest, runs):
    """Return an entry's verdicts at its longest horizon."""
    began = time.process_time()
    setting = entry.setting(rounds=64)
    learner = entry.build(setting)
    kernel = has_kernel_for(learner, next(iter(regret_losses(entry, setting, learner, 0).values())))
    rounds = min(longest, LONG if kernel else SLOW)
    found = audit_regret(entry, replace(setting, rounds=rounds), Budget(runs=runs), Execution(fast=kernel))
    searched = audit_regret(entry, replace(setting, rounds=SEARCHED), Budget(runs=runs), search=True).means
    low, high = found.regret.interval
    return {
        "entry": entry.name,
        "T": rounds,
        "kernel": "yes" if kernel else "no",
        "worst": found.sequence,
        "regret": found.regret.mean,
        "from": low,
        "to": high,
        "bound": found.bound,
        "largest": found.regret.largest,
        "binds from": found.binds_from,
        "bound verdict": found.bound_verdict,
        "growth": found.growth.slope,
        "growth verdict": found.growth_verdict,
        "found by search": searched[FOUND],
        "listed, at most": max(mean for name, mean in searched.items() if name != FOUND),
        "CPU s": round(time.process_time() - began, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longest", type=int, default=LONG)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("entries", nargs="*")
    asked = parser.parse_args()
    rows = []
    for name, entry in entries().items():
        if entry.regret and (name in asked.entries or (not asked.entries and entry.regret.measured)):
            rows.append(row(entry, asked.longest, asked.runs))
            tables.show(rows)
    text = f"""# Regret at long horizons

`python benchmarks/regret.py --longest {asked.longest} --runs {asked.runs} {" ".join(asked.entries)}`

Intervals at 99 %, over all sequences of a row together. "found by search" and "listed, at most" are mean regrets at
T = {SEARCHED}.

{tables.table(rows)}
"""
    (RESULTS / "regret.md").write_text(text)
    (RESULTS / "regret.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
