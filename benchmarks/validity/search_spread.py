"""What searches over inputs find of the faults in `tests/cases`, and how far seeds spread.

    python benchmarks/validity/search_spread.py [SEEDS] [TARGET ...]

Every target is wrong. A spread above a fifth of the mean is a search that finds its pair by luck.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from overclaim.benchmarks import tables
from overclaim.reports.command_line.cli import main as command

CODE = Path(__file__).resolve().parents[2] / "tests" / "cases" / "code"
UNIT = {"type": "number", "minimum": 0, "maximum": 1}
AMOUNT = {"type": "integer", "minimum": 0, "maximum": 2_000_000_000}


def array(items, low, high):
    """Return the schema of an array."""
    return {"type": "array", "items": items, "minItems": low, "maxItems": high}


PURCHASE = array(True, 2, 2) | {
    "prefixItems": [{"enum": ["a", "b", "c", "d", "x"]}, {"type": "integer", "minimum": 1, "maximum": 4}]
}
#: Target: the words of its command.
CASES = {
    "g1_distinct_before_bound.py:buggy": ["--neighbours", "user", "--inputs", array(PURCHASE, 0, 10)],
    "g2_type_limits.py:buggy": ["--neighbours", "replace", "--inputs", array(AMOUNT, 2, 2)],
    "g3_odd_row_dropped.py:buggy": ["--neighbours", "add-remove", "--inputs", array(UNIT, 0, 8)],
    "g4_running_maximum.py:Buggy": ["--rounds", "64"],
    "g5_elimination_boundary.py:Buggy": ["--rounds", "32"],
    "d4_loc_scale_and_items.py:buggy": [
        "--neighbours",
        "add-remove",
        "--inputs",
        array(UNIT | {"maximum": 100}, 0, 4),
    ],
}


def main(seeds: int, targets: list[str]) -> None:
    """Print the table."""
    os.chdir(CODE)
    sys.path.insert(0, str(CODE))
    print("| target | found | mean bound | deviation | share of the mean | CPU s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for target, words in CASES.items():
        if targets and target not in targets:
            continue
        began, records = time.process_time(), []
        said = [word if isinstance(word, str) else json.dumps(word) for word in words]
        for seed in range(seeds):
            how = ["--epsilon", "1", "--runs", "20000", "--jobs", "1", "--seed", str(seed), "--no-shrink", "--json"]
            records.append(json.loads(CliRunner().invoke(command, ["check", target, *said, *how]).stdout))
        spent, bounds = (time.process_time() - began) / seeds, [record["lower"] for record in records]
        found = sum(record["verdict"] == "FALSIFIED" for record in records)
        mean, deviation = float(np.mean(bounds)), float(np.std(bounds))
        cells = (f"{found} of {seeds}", f"{mean:.3f}", f"{deviation:.3f}", f"{deviation / mean:.0%}", f"{spent:.1f}")
        print(f"| {target} | {' | '.join(cells)} |", flush=True)
    print(f"\n{tables.dated()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, sys.argv[2:])
