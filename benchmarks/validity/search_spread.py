"""What searches over inputs find of faults, and how far seeds spread.

    python benchmarks/validity/search_spread.py [SEEDS] [cases|columns] [TARGET ...]

Every target of `cases` is one of `tests/cases`, and wrong. A spread above a fifth of the mean is a search that finds
its pair by luck. `columns` are mechanisms whose outputs have several columns, beside the bound on their worst pair.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from overclaim import Claim, falsify
from overclaim.audit.spaces.schema import pairs_of
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
AGES = array(UNIT | {"maximum": 100}, 0, 4)
#: A target, and the words of its command.
CASES = (
    ("g1_distinct_before_bound.py:buggy", ["--neighbours", "user", "--inputs", array(PURCHASE, 0, 10)]),
    ("g2_type_limits.py:buggy", ["--neighbours", "replace", "--inputs", array(AMOUNT, 2, 2)]),
    ("g3_odd_row_dropped.py:buggy", ["--neighbours", "add-remove", "--inputs", array(UNIT, 0, 8)]),
    ("g4_running_maximum.py:Buggy", ["--rounds", "64"]),
    ("g4_running_maximum.py:Buggy", ["--rounds", "64", "--inputs", array(array(UNIT, 2, 2), 64, 64)]),
    ("g5_elimination_boundary.py:Buggy", ["--rounds", "32"]),
    ("g5_elimination_boundary.py:Buggy", ["--rounds", "32", "--inputs", array(array(UNIT, 2, 2), 32, 32)]),
    ("d4_loc_scale_and_items.py:buggy", ["--neighbours", "add-remove", "--inputs", AGES]),
    ("a1_ucb_fresh_noise.py:Buggy", ["--rounds", "8", "--global-random", "--set", "n_arms=2", "--set", "T=8"]),
)


def batched(mechanism):
    """Mark a mechanism as one of many runs at once."""
    mechanism.batched = True
    return mechanism


def noisy(draws, values, runs, scale):
    """Return values of (columns,) with Laplace noise, (columns, runs)."""
    return np.asarray(values)[:, None] + draws.generator.laplace(scale=scale, size=(len(values), runs))


@batched
def products(rows, draws, runs):
    """The sums of products that a regression needs: five columns, with the noise of two."""
    table = np.asarray(rows, dtype=float).reshape(-1, 3)
    squares = (table[:, :2].T @ table[:, :2])[np.triu_indices(2)]
    return noisy(draws, [*squares, *(table[:, :2].T @ table[:, 2])], runs, 2.0)


@batched
def quartiles(values, draws, runs):
    """Three quantiles, with the noise of three means."""
    return noisy(draws, np.quantile(values, [0.25, 0.5, 0.75]), runs, 3 / len(values))


@batched
def coefficients(rows, draws, runs):
    """The two coefficients of a ridge regression, with too little noise."""
    table = np.asarray(rows, dtype=float).reshape(-1, 3)
    features, labels = table[:, :2], table[:, 2]
    return noisy(draws, np.linalg.solve(features.T @ features + 0.3 * np.eye(2), features.T @ labels), runs, 0.6)


@batched
def moments(rows, draws, runs):
    """Means and deviations of four columns, with the noise of six means."""
    table = np.asarray(rows, dtype=float).reshape(-1, 4)
    return noisy(draws, [*table.mean(axis=0), *table.std(axis=0)], runs, 6 / len(rows))


ZEROS, ONES = [0.0] * 4, [1.0] * 4
SIGNED = UNIT | {"minimum": -1}
#: Mechanisms whose outputs have several columns, each with the schema of its data and the worst pair that we know.
COLUMNS = (
    (products, array(array(UNIT, 3, 3), 1, 6), ([[1, 1, 1]], [[0, 0, 0]])),
    (quartiles, array(UNIT, 4, 12), ([0.0] * 6 + [1.0] * 6, [0.0] * 5 + [1.0] * 7)),
    (coefficients, array(array(SIGNED, 3, 3), 2, 6), ([[0.5, 0.0, 1], [0, 0, 1]], [[0.5, 0.0, -1], [0, 0, 1]])),
    (moments, array(array(UNIT, 4, 4), 2, 8), ([ZEROS] * 8, [ZEROS] * 7 + [ONES])),
)


def cases(seeds: int, targets: list[str]) -> None:
    """Print the table of the cases."""
    os.chdir(CODE)
    sys.path.insert(0, str(CODE))
    print("| target | found | mean bound | deviation | share of the mean | CPU s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for target, words in CASES:
        name = f"{target}, --inputs" if "--inputs" in words and target.endswith("Buggy") else target
        if targets and name not in targets:
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
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n{tables.dated()}")


def columns(seeds: int, targets: list[str]) -> None:
    """Print the table of mechanisms whose outputs have several columns."""
    print("| mechanism | mean bound | deviation | share of the mean | on the worst pair | deviation | CPU s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for mechanism, schema, (left, right) in COLUMNS:
        if targets and mechanism.__name__ not in targets:
            continue

        def bounds(mechanism=mechanism, **inputs):
            claim = Claim(epsilon=1.0)
            how = {"runs": 20_000, "shrink": False, **inputs}
            return [falsify(mechanism, claim, seed=seed, **how).lower for seed in range(seeds)]

        began = time.process_time()
        found = bounds(inputs=pairs_of(schema, "replace"))
        spent = (time.process_time() - began) / seeds
        given = bounds(left=left, right=right)
        mean, deviation = float(np.mean(found)), float(np.std(found))
        cells = (f"{mean:.3f}", f"{deviation:.3f}", f"{deviation / mean:.0%}")
        known = (f"{np.mean(given):.3f}", f"{np.std(given):.3f}", f"{spent:.1f}")
        print(f"| {mechanism.__name__} | {' | '.join((*cells, *known))} |", flush=True)
    print(f"\n{tables.dated()}")


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    kind = sys.argv[2] if len(sys.argv) > 2 else "cases"
    {"cases": cases, "columns": columns}[kind](many, sys.argv[3:])
