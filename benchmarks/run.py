"""`make bench`: speed, tightness and start-up, measured here; written to benchmarks/results/ as Markdown and JSON.

Ratios against the committed results are printed, never asserted: machines differ and are noisy.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - after the threads are pinned

from overclaim.audit.exact import NotExactError, exact_epsilon  # noqa: E402
from overclaim.audit.falsify import falsify  # noqa: E402
from overclaim.audit.pairs import Pair  # noqa: E402
from overclaim.audit.play import BLOCK, play  # noqa: E402
from overclaim.learners import BatchedLaplace, Exp3  # noqa: E402
from overclaim.learners.catalogue import Entry, lookup  # noqa: E402
from overclaim.mechanisms.draws import Draws, Stage  # noqa: E402

RESULTS = Path(__file__).parent / "results"
REPEATS = 7


def speed() -> list[dict[str, Any]]:
    """Run-rounds per second of private batched EXP3, tau = 1, T = 64, on one core: median of several blocks."""
    rows = []
    for arms in (2, 8, 64):
        learner = BatchedLaplace(inner=Exp3(arms=arms, eta=0.05, gamma=0.1), epsilon=1.0, batch=1)
        left = np.ones((64, arms))
        right = left.copy()
        right[0] = 0
        pair = Pair(left, right)
        rates = []
        for block in range(REPEATS + 1):
            began = time.perf_counter()
            play(learner, pair, Draws(0, Stage.PILOT, 0, 0, block), BLOCK)
            rates.append(64 * BLOCK / (time.perf_counter() - began) / 1e6)
        rates = rates[1:]  # the first warms up
        row = {"arms": arms, "median": statistics.median(rates), "low": min(rates), "high": max(rates)}
        rows.append({"what": f"batched EXP3, K={arms}, million run-rounds/s", **row})
    return rows


def startup() -> list[dict[str, Any]]:
    """Whole-process seconds of the imports that everyone pays for."""
    rows = []
    for what, words in (
        ("import overclaim", ["-c", "import overclaim"]),
        ("overclaim --help", ["-m", "overclaim", "--help"]),
    ):
        seconds = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, capture_output=True)
            seconds.append(time.perf_counter() - began)
        rows.append(
            {"what": f"{what}, s", "median": statistics.median(seconds), "low": min(seconds), "high": max(seconds)}
        )
    return rows


SHARP = {"eta": 2.0, "gamma": 0.02}
#: The rows of the tightness table: entry, setting, parameters, neighbours, runs. The pair is always searched.
TIGHTNESS: list[tuple[str, dict[str, Any], dict[str, Any], str, str, int]] = [
    ("agarwal-singh/reduction-threshold", {"rounds": 2}, {}, "replace", "actions", 200_000),
    ("agarwal-singh/reduction-threshold", {"rounds": 2}, {}, "zero-out", "actions", 200_000),
    (
        "agarwal-singh/reduction-threshold",
        {"rounds": 2, "calibration": "corrected"},
        {},
        "replace",
        "actions",
        200_000,
    ),
    ("agarwal-singh/reduction-exp2", {"rounds": 4}, SHARP, "replace", "actions", 2_000_000),
    ("agarwal-singh/reduction-exp2", {"rounds": 4, "delta": 1e-3}, SHARP, "replace", "actions", 2_000_000),
    ("agarwal-singh/reduction-exp2", {"rounds": 4, "delta": 1e-2}, SHARP, "replace", "actions", 2_000_000),
    ("asi-raman-talwar/batched-exp3", {"rounds": 4}, {**SHARP, "batch": 1}, "replace", "actions", 2_000_000),
    (
        "asi-raman-talwar/batched-exp3",
        {"rounds": 8},
        {"eta": 0.5, "gamma": 0.1, "batch": 2},
        "replace",
        "actions",
        2_000_000,
    ),
    ("asi-raman-talwar/batched-threshold", {"rounds": 2}, {}, "replace", "actions", 2_000_000),
    ("asi-raman-talwar/batched-exp3", {"rounds": 4}, {**SHARP, "batch": 1}, "replace", "release", 2_000_000),
    ("agarwal-singh/ftrl-experts", {"rounds": 4}, {}, "replace", "release", 2_000_000),
    ("agarwal-singh/ftrl-experts", {"rounds": 4, "delta": 1e-3}, {}, "replace", "actions", 2_000_000),
    ("agarwal-singh/ftrl-experts", {"rounds": 4, "delta": 1e-2}, {}, "replace", "actions", 2_000_000),
    ("smith-thakurta/pftal", {"rounds": 4, "arms": 1}, {}, "replace", "release", 2_000_000),
    ("smith-thakurta/pftal", {"rounds": 8, "arms": 1}, {}, "replace", "release", 2_000_000),
    ("asi-raman-talwar/exp3", {"rounds": 8}, {"eta": 0.5, "gamma": 0.1}, "replace", "actions", 2_000_000),
    ("asi-raman-talwar/exp3", {"rounds": 100}, {}, "replace", "actions", 200_000),
]


def tightness() -> list[dict[str, Any]]:
    """Certified over exact epsilon, at 99 % confidence, seed 0, pairs found by the search."""
    rows = []
    for name, setting, parameters, neighbours, surface, runs in TIGHTNESS:
        entry: Entry = lookup(name)
        chosen = entry.setting(**setting)
        learner = entry.build(chosen, **parameters)
        claim = entry.claim(chosen, neighbours=neighbours, surface=surface)
        worlds = entry.worlds(chosen, claim) if entry.worlds else None
        pairs = [Pair(left, right) for left, right in worlds] if worlds is not None else None
        result = falsify(learner, claim, rounds=chosen.rounds, pairs=pairs, runs=runs)
        try:
            exact = exact_epsilon(learner, result.pair, surface=surface, deltas=(claim.delta,))[claim.delta]
        except NotExactError:
            exact = float("nan")
        detail = " ".join(f"{k}={v}" for k, v in {**setting, **parameters}.items())
        rows.append(
            {
                "what": f"{name} {detail} {surface} {neighbours}",
                "runs": runs,
                "certified": result.epsilon_lower,
                "exact": exact,
                "ratio": result.epsilon_lower / exact,
                "verdict": str(result.verdict),
                "seconds": result.seconds,
            }
        )
        print(markdown_row(rows[-1]), flush=True)
    return rows


def markdown_row(row: dict[str, Any]) -> str:
    """Return one row of a Markdown table."""
    cells = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()]
    return f"| {' | '.join(cells)} |"


def markdown_table(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table."""
    head = list(rows[0])
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *map(markdown_row, rows)])


def against(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the ratios of this machine's speeds to the committed ones."""
    before = {row["what"]: row["median"] for row in old.get("speed", []) + old.get("startup", [])}
    rows = new["speed"] + new["startup"]
    return [f"{r['what']}: {r['median'] / before[r['what']]:.2f} of committed" for r in rows if r["what"] in before]


def main() -> None:
    """Measure, compare, write."""
    path = RESULTS / "bench.json"
    old = json.loads(path.read_text()) if path.exists() else {}
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"
    )
    new = {
        "machine": machine,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "speed": speed(),
        "startup": startup(),
        "tightness": tightness(),
    }
    parts = [f"# Benchmarks\n\n{machine}. Medians of {REPEATS}.\n"]
    for title in ("speed", "startup", "tightness"):
        parts.append(f"## {title.capitalize()}\n\n{markdown_table(new[title])}\n")
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(new, indent=1) + "\n")
    (RESULTS / "bench.md").write_text("\n".join(parts))
    print("\n".join(parts))
    print("\n".join(against(old, new)))


if __name__ == "__main__":
    main()
