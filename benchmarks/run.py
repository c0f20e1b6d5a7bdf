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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - after the threads are pinned

from overclaim.audit import attacks  # noqa: E402
from overclaim.audit.exact import epsilon_from_laws, exact_epsilon  # noqa: E402
from overclaim.audit.exact_search import clipped_laws  # noqa: E402
from overclaim.audit.falsify import falsify  # noqa: E402
from overclaim.audit.pairs import Pair  # noqa: E402
from overclaim.audit.play import BLOCK, play  # noqa: E402
from overclaim.audit.search import candidates  # noqa: E402
from overclaim.learners import BatchedLaplace, Exp3  # noqa: E402
from overclaim.learners.catalogue import Entry, lookup  # noqa: E402
from overclaim.learners.pftal import Pftal  # noqa: E402
from overclaim.mechanisms.claim import Claim  # noqa: E402
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
FLAT = {"curvature": 1e-5}
RUNS = 2_000_000


@dataclass(frozen=True)
class Row:
    """One row of the tightness table. The pair is always searched."""

    entry: str
    setting: dict[str, Any]
    parameters: dict[str, Any] = field(default_factory=dict)
    neighbours: str = "replace"
    surface: str = "actions"
    runs: int = RUNS


def at_deltas(entry: str, rounds: int, parameters: dict[str, Any], surface: str = "actions") -> list[Row]:
    """Return an entry's rows at delta = 0, 1e-3 and 1e-2."""
    return [Row(entry, {"rounds": rounds, "delta": d}, parameters, surface=surface) for d in (0.0, 1e-3, 1e-2)]


REDUCTION, BATCHED = "agarwal-singh/reduction-threshold", "asi-raman-talwar/batched-exp3"
#: Every learner and surface with an exact value.
TIGHTNESS: list[Row] = [
    Row(REDUCTION, {"rounds": 2}),
    Row(REDUCTION, {"rounds": 2}, neighbours="zero-out"),
    Row(REDUCTION, {"rounds": 2, "calibration": "corrected"}),
    Row(REDUCTION, {"rounds": 2}, surface="release"),
    *at_deltas("agarwal-singh/reduction-exp2", 4, SHARP),
    *at_deltas(BATCHED, 4, {**SHARP, "batch": 1}),
    *at_deltas(BATCHED, 8, {"eta": 0.5, "gamma": 0.1, "batch": 2}),
    Row(BATCHED, {"rounds": 4}, {**SHARP, "batch": 1}, surface="release"),
    Row("asi-raman-talwar/batched-threshold", {"rounds": 2}),
    Row("asi-raman-talwar/exp4-local", {"rounds": 4}, SHARP),
    Row("asi-raman-talwar/batched-htinf", {"rounds": 8}, {"batch": 2}, surface="release"),
    *at_deltas("agarwal-singh/ftrl-experts", 4, {})[1:],
    *at_deltas("agarwal-singh/ftrl-experts", 4, {}, "release"),
    Row("agarwal-singh/ftrl-ball", {"rounds": 4}, surface="release"),
    Row("agarwal-singh/ftrl-cube", {"rounds": 4}, surface="release"),
    *(Row("agarwal-singh/ftpl-simplex", {"rounds": 4, "delta": d}, {"noise_delta": 1e-2}) for d in (1e-3, 1e-2)),
    *(
        Row(f"agarwal-singh/ftpl-{body}", {"rounds": 4, "delta": 1e-2}, surface="release")
        for body in ("simplex", "ball", "cube")
    ),
    *at_deltas("smith-thakurta/pftal", 4, FLAT),
    *at_deltas("smith-thakurta/pftal", 8, FLAT),
    *(Row("smith-thakurta/pftal", {"rounds": t}, surface="release") for t in (4, 8)),
    Row("smith-thakurta/pftal-lipschitz", {"rounds": 4}, FLAT),
    Row("smith-thakurta/pftal-lipschitz", {"rounds": 4}, FLAT, surface="release"),
    *at_deltas("asi-raman-talwar/exp3", 8, {"eta": 0.5, "gamma": 0.1}),
    Row("tossou-dimitrakakis/exp3-minibatch", {"rounds": 8, "delta": 1e-2}, {"batch": 1}),
]


def tightness() -> list[dict[str, Any]]:
    """Certified over exact epsilon, at 99 % confidence, seed 0, pairs found by the search."""
    rows = []
    for row in TIGHTNESS:
        entry: Entry = lookup(row.entry)
        chosen = entry.setting(**({"arms": 1} if row.entry.startswith("smith") else {}), **row.setting)
        learner = entry.build(chosen, **row.parameters)
        claim = entry.claim(chosen, neighbours=row.neighbours, surface=row.surface)
        began = time.perf_counter()
        (pair,) = candidates(
            learner, claim, rounds=chosen.rounds, runs=row.runs
        )  # one pair: it was found by exact epsilon
        searched = time.perf_counter() - began
        result = falsify(learner, claim, pair=pair, arms=chosen.arms, runs=row.runs)
        detail = " ".join(f"{k}={v}" for k, v in {**row.setting, **row.parameters}.items())
        rows.append(
            {
                "what": f"{row.entry} {detail} {row.surface} {row.neighbours}",
                "certified": result.epsilon_lower,
                "exact": (exact := true_epsilon(learner, claim, pair)),
                "ratio": result.epsilon_lower / exact if exact else float("nan"),
                "verdict": str(result.verdict),
                "search s": searched,
                "audit s": result.seconds,
            }
        )
        print(markdown_row(rows[-1]), flush=True)
    return rows


def true_epsilon(learner: Any, claim: Claim, pair: Pair) -> float:
    """Return the exact epsilon on a pair."""
    if isinstance(learner, Pftal) and claim.surface == "actions":
        laws = clipped_laws(learner, pair, points=512)
        assert laws is not None
        return epsilon_from_laws(*laws, claim.delta)
    return exact_epsilon(learner, pair, surface=claim.surface, deltas=(claim.delta,))[claim.delta]


def particles(runs: int = 60_000) -> list[dict[str, Any]]:
    """Bounds of the particle likelihood ratio and of classifiers: K = 8, T = 64 batched EXP3, tau = 1, epsilon = 1."""
    learner = BatchedLaplace(inner=Exp3(arms=8, eta=0.5, gamma=0.1), epsilon=1.0, batch=1)
    left = np.ones((64, 8))
    right = left.copy()
    right[0] = 0
    claim = Claim(epsilon=1.0, delta=1e-3)
    every, rows = attacks.RECIPES, []
    for recipe in (attacks.ParticleRatio, attacks.Trained, attacks.Boosted):
        attacks.RECIPES = (recipe,)
        began = time.process_time()
        result = falsify(learner, claim, pair=Pair(left, right), runs=runs)
        cost = time.process_time() - began
        rows.append({"what": result.attack, "runs": runs, "certified": result.epsilon_lower, "CPU s": cost})
        print(markdown_row(rows[-1]), flush=True)
    attacks.RECIPES = every
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
        "particles": particles(),
    }
    parts = [f"# Benchmarks\n\n{machine}. Medians of {REPEATS}.\n"]
    titles = ("speed", "startup", "tightness", "particles")
    parts += [f"## {title.capitalize()}\n\n{markdown_table(new[title])}\n" for title in titles]
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(new, indent=1) + "\n")
    (RESULTS / "bench.md").write_text("\n".join(parts))
    print("\n".join(parts))
    print("\n".join(against(old, new)))


if __name__ == "__main__":
    main()
