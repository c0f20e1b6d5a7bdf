"""`make regret`: the regret of the catalogue's entries at long horizons, with every verdict, and the memory it takes.

    python benchmarks/catalogue/regret.py [--longest T] [--runs N] [--again] [ENTRY ...]
    python benchmarks/catalogue/regret.py --memory

Entries are played at T = 2^14, or --longest; the table goes to benchmarks/results/regret.md and regret.json. Rows that
are there already, of as many rounds and runs or more, are kept unless --again: a killed run goes on. Beside each
verdict stands what a search found against the listed sequences, at T = 256. --memory measures the largest memory of a
process by its horizon.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace

from overclaim.audit.execution.execution import Budget
from overclaim.audit.regret.adversaries import regret_losses
from overclaim.audit.regret.measurement import play_sequences
from overclaim.audit.regret.regret_audit import SEARCH_RESULT, RegretRequest, audit_regret
from overclaim.benchmarks import tables
from overclaim.learners.catalogue.entries import entries, lookup

LONG, SEARCHED = 2**14, 256
#: What memory is measured of: an entry, and horizons.
MEMORY = (
    ("agarwal-singh/ftrl-experts", (2**8, 2**11, 2**14)),
    ("smith-thakurta/pftal", (2**8, 2**11, 2**14)),
)


def row(entry, rounds, runs):
    """Return an entry's verdicts at a horizon."""
    began = time.process_time()
    setting = entry.setting(rounds=rounds)
    audit = audit_regret(RegretRequest(entry, setting), Budget(runs=runs))
    searched = audit_regret(
        RegretRequest(entry, replace(setting, rounds=SEARCHED), search=True), Budget(runs=100)
    ).means
    low, high = audit.regret.interval
    return {
        "entry": entry.name,
        "T": rounds,
        "runs": runs,
        "worst": audit.sequence,
        "regret": audit.regret.mean,
        "from": low,
        "to": high,
        "bound": audit.bound,
        "largest": audit.regret.largest,
        "binds from": audit.binds_from,
        "bound verdict": audit.bound_verdict,
        "growth": audit.growth.slope,
        "growth verdict": audit.growth_verdict,
        "found by search": searched[SEARCH_RESULT],
        "listed, at most": max(mean for name, mean in searched.items() if name != SEARCH_RESULT),
        "CPU s": round(time.process_time() - began, 1),
    }


def peak(name, rounds):
    """Return the largest memory in MiB of a process that plays an entry on one sequence."""
    command = [sys.executable, __file__, "--one", name, "--longest", str(rounds)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def play_one(name, rounds):
    """Play 100 runs on a constant gap, and print the largest memory of this process in MiB."""
    entry = lookup(name)
    setting = entry.setting(rounds=rounds)
    learner = entry.build(setting)
    losses = next(iter(regret_losses(entry, setting, learner, 0).values()))
    play_sequences(learner, [losses], Budget(runs=100))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def memory():
    """Return the rows of the table of memory."""
    return [
        {"entry": name, "T": rounds, "MiB": round(peak(name, rounds), 1)}
        for name, horizons in MEMORY
        for rounds in horizons
    ]


def write(rows, used):
    left = sorted(name for name, entry in entries().items() if entry.regret and name not in {r["entry"] for r in rows})
    missing = f"Not measured so far, they take longest: {', '.join(left)}.\n\n" if left else ""
    text = f"""# Regret at long horizons

`make regret`: T = 2^14. Rows at 2^17 were played on the compiled kernels of versions before 0.3.0. HOLDS is about
the sequences played.

Intervals at 99 %, over all sequences of a row together. An interval is never shorter than about ln(1 / error) / runs
of the range, "largest": so much a rare run could cost that none of these was. "found by search" and "listed, at most"
are mean regrets at T = {SEARCHED}, 100 runs each. Rows are not measured
again with every change of the code.

{tables.table(rows)}

{missing}The largest memory of a process that plays 100 runs, all imports included; the losses themselves take 8 bytes
an arm and round, 2 MiB at 2^17:

{tables.table(used)}
"""
    tables.write_page("regret", text)
    (tables.RESULTS / "regret.json").write_text(json.dumps({"rows": rows, "memory": used}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    of_entries = tables.one_of(entries())
    parser.add_argument("--longest", type=int, default=LONG)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--one", type=of_entries)
    parser.add_argument("entries", nargs="*", type=of_entries)
    asked = parser.parse_args()
    if asked.first:
        play_one(asked.first, asked.longest)
        return
    kept = tables.RESULTS / "regret.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    rows, used = {row["entry"]: row for row in known.get("rows", [])}, known.get("memory", [])
    if asked.memory or not used:
        used = memory()
    for name, entry in entries().items() if not asked.memory else ():
        if not entry.regret or (asked.entries and name not in asked.entries):
            continue
        measured = name in rows and rows[name]["T"] >= asked.longest and rows[name]["runs"] >= asked.runs
        if measured and not asked.again:
            continue
        rows[name] = row(entry, asked.longest, asked.runs)
        print(rows[name], flush=True)
        write([rows[other] for other in entries() if other in rows], used)
    write([rows[other] for other in entries() if other in rows], used)


if __name__ == "__main__":
    main()
