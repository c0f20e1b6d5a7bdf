"""The claims of libraries that were first falsified by hand, each found again from the strategy of its data alone.

    python benchmarks/catalogue/libraries.py [SEEDS]

It needs the environment of `make libraries`. Every row is what `overclaim check` says with 20,000 runs and no pair
given, once for each seed (a repetition, of OpenDP, which cannot be seeded). Seconds are of processor time, start and
shrinking included. With three seeds eight minutes on one core; the table is in benchmarks/results/libraries.md.
"""

import json
import resource
import subprocess
import sys

from overclaim.audit.play.data import shown
from overclaim.benchmarks import tables

RUNS, SEEDS = 20_000, 3
#: What was falsified with a pair that was made by hand, its entry, and what else the command says.
ROWS = (
    ("OpenDP `make_laplace_threshold`, integers", "opendp/make_laplace_threshold-int", ()),
    ("diffprivlib `LogisticRegression`, data_norm 100", "diffprivlib/LogisticRegression-norm-100", ()),
    ("diffprivlib `LinearRegression`", "diffprivlib/LinearRegression", ()),
    ("diffprivlib `tools.nanmean`", "diffprivlib/nanmean", ()),
    ("diffprivlib `Geometric`, beyond 2^53", "diffprivlib/Geometric", ()),
    ("diffprivlib `Laplace`, `--bits`", "diffprivlib/Laplace", ("--bits",)),
    ("diffprivlib `tools.histogram`, replace", "diffprivlib/histogram", ("--neighbours", "replace")),
)


def check(entry, more, seed):
    """Return the claim of a record that a command prints, and the seconds of processor time that it took."""
    command = [sys.executable, "-m", "overclaim", "check", f"libraries/{entry}", *more]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, "--runs", str(RUNS), "--seed", str(seed), "--json"], check=False, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not done.stdout:
        raise SystemExit(done.stderr)
    spent = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return json.loads(done.stdout), spent


def main(seeds):
    """Print the table."""
    print("| claim | neighbours | falsified | epsilon at least | smallest data | seconds |")
    print("| --- | --- | ---: | --- | --- | --- |", flush=True)
    for what, entry, more in ROWS:
        claims, seconds = zip(*(check(entry, more, seed) for seed in range(seeds)), strict=True)
        found = [claim for claim in claims if claim["verdict"] == "FALSIFIED"]
        cells = (
            f"{what} ({claims[0]['claimed']['epsilon']:g}, {claims[0]['claimed']['delta']:g})",
            claims[0]["neighbours"],
            f"{len(found)} of {len(claims)}",
            ", ".join(f"{claim['epsilon_lower']:.2f}" for claim in claims),
            smallest(found) if found else "-",
            ", ".join(f"{spent:.0f}" for spent in seconds),
        )
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{tables.dated()}")


def smallest(claims):
    """Return the shortest pair that some claims were falsified on, in words."""
    pairs = [(claim["smallest_inputs"] or claim)["pair"] for claim in claims]
    return min((" and ".join(shown(pair[side]) for side in ("left", "right")) for pair in pairs), key=len)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
