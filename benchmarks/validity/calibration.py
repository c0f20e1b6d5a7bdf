"""Calibration: complete audits of true claims, over the whole catalogue and the zoo, and the power beside it.

    python benchmarks/validity/calibration.py                     10,000 audits, 95 % confidence, then the power curve
    python benchmarks/validity/calibration.py --audits 500        a quick look

Every audit is complete (search or a pair found by it, pilot, choice, certification) and has a seed of its own. Where
an exact epsilon is known the claim is *that* value, so that the null hypothesis is at its edge; other claims are the
catalogue's own true ones. The tables go to benchmarks/results, as Markdown and JSON; the exit code is 1 if more
audits are wrong than 95 % confidence explains (chance of that below 1e-6 for each table row).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from overclaim.reports.command_line.cli import ENVIRONMENT

for _name, _value in ENVIRONMENT.items():  # before NumPy is loaded
    os.environ.setdefault(_name, _value)

from joblib import Parallel, delayed  # noqa: E402
from scipy import stats  # noqa: E402
from tqdm import tqdm  # noqa: E402

from overclaim.audit.laws.exact import exact_epsilon  # noqa: E402
from overclaim.audit.pipeline.falsify import falsify, falsify_mechanism  # noqa: E402
from overclaim.audit.plans.plan import literature  # noqa: E402
from overclaim.audit.plans.tasks import Prepared  # noqa: E402
from overclaim.audit.search.pair_search import candidates  # noqa: E402
from overclaim.audit.verdicts.verdict import Result, Verdict  # noqa: E402
from overclaim.benchmarks import tables  # noqa: E402
from overclaim.mechanisms.claim import Claim  # noqa: E402
from overclaim.mechanisms.one_shot.zoo import zoo  # noqa: E402

ALPHA = 0.05
RUNS = 4000
DELTAS = (0.0, 1e-3, 1e-2)
#: Claims that survive at the literature's budget for want of runs, not because they are true.
UNDECIDED = {
    ("agarwal-singh/reduction-exp2", 8),
    ("tossou-dimitrakakis/exp3-minibatch", 100),
    ("agarwal-singh/ftpl-simplex", 4, 0.0),
}
#: Claimed over exact epsilon.
POWER_RATIOS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)
POWER_RUNS = (2_000, 20_000, 200_000)


@dataclass(frozen=True)
class Cell:
    """One true claim, to be audited under many seeds."""

    what: str
    kind: str  # "sharp": the claim is the exact epsilon; "own": the catalogue's claim
    delta: float
    audit: Callable[[int, int, float], Result]  # (seed, runs, share of the claimed epsilon)


def learner_cells() -> list[Cell]:
    """Return the catalogue's true claims, and sharp ones on every pair that the search finds by exact epsilon."""
    cells, seen = [], set()
    for task in literature().tasks:
        prepared = task.prepare()
        assert not prepared.is_mechanism
        what = f"{task.target} T={prepared.rounds} {prepared.claim.surface} {prepared.claim.neighbours}"
        facts = {(task.target, prepared.rounds), (task.target, prepared.rounds, prepared.claim.delta)}
        if task.expected == "survived" and not facts & UNDECIDED:
            cells.append(Cell(what, "own", prepared.claim.delta, _Own(prepared)))
        for delta in DELTAS:
            key = (what, repr(prepared.target), delta)
            if key in seen or prepared.rounds > 8:
                continue
            seen.add(key)
            claim = replace(prepared.claim, delta=delta)
            sharp = _sharpened(prepared, claim)
            if sharp is not None:
                cells.append(Cell(what, "sharp", delta, sharp))
                if delta != DELTAS[1]:
                    cells.append(Cell(f"{what} early", "sharp", delta, replace(sharp, stop="early")))
    return cells


@dataclass(frozen=True)
class _Own:
    """The catalogue's own claim, pairs searched."""

    prepared: Prepared

    def __call__(self, seed: int, runs: int, share: float) -> Result:
        p = self.prepared
        claim = replace(p.claim, epsilon=p.claim.epsilon * share)
        return falsify(p.learner, claim, rounds=p.rounds, pairs=p.pairs, runs=runs, seed=seed, confidence=1 - ALPHA)


@dataclass(frozen=True)
class _Sharp:
    """The exact epsilon of the pair that the search finds, claimed."""

    learner: Any
    claim: Claim
    pair: Any
    stop: str = "budget"

    def __call__(self, seed: int, runs: int, share: float) -> Result:
        claim = replace(self.claim, epsilon=self.claim.epsilon * share)
        return falsify(self.learner, claim, pair=self.pair, runs=runs, seed=seed, confidence=1 - ALPHA, stop=self.stop)


def _sharpened(prepared: Prepared, claim: Claim) -> _Sharp | None:
    try:
        options = list(candidates(prepared.target, claim, rounds=prepared.rounds, runs=RUNS))
        if len(options) != 1:
            return None
        exact = exact_epsilon(prepared.target, options[0], view=claim.view, deltas=(claim.delta,))[claim.delta]
    except ValueError:  # no exact method covers it
        return None
    if not 0 < exact < float("inf"):
        return None
    return _Sharp(prepared.target, replace(claim, epsilon=exact), options[0])


@dataclass(frozen=True)
class _Mechanism:
    name: str
    delta: float

    def __call__(self, seed: int, runs: int, share: float) -> Result:
        specimen = zoo()[self.name]
        claim = Claim(epsilon=specimen.claimed(1.0) * share, delta=self.delta)
        options = {"pairs": specimen.pairs, "runs": runs, "seed": seed, "confidence": 1 - ALPHA}
        return falsify_mechanism(specimen.build(1.0), claim, **options)


def mechanism_cells() -> list[Cell]:
    """Return the sound mechanisms of the zoo, at their own epsilon."""
    sound = [name for name, specimen in zoo().items() if not specimen.fault]
    return [Cell(name, "own", delta, _Mechanism(name, delta)) for name in sound for delta in (0.0, 1e-2)]


def one(cell: Cell, seed: int, runs: int, share: float = 1.0) -> dict[str, Any]:
    """Return the facts of one audit."""
    began = time.process_time()
    result = cell.audit(seed, runs, share)
    return {
        "method": result.attack.partition(" (")[0],
        "delta": cell.delta,
        "kind": f"{cell.kind}{', early' if cell.what.endswith('early') else ''}",
        "room": "zoo" if cell.what.startswith("mechanisms/") else "catalogue",
        "wrong": result.verdict is Verdict.FALSIFIED,
        "what": cell.what,
        "seconds": time.process_time() - began,
    }


def false_alarms(facts: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the false alarms in all, by method, by delta, by kind of claim and by room."""
    tables_of = {"all": [_row("all", facts)]}
    for key in ("method", "delta", "kind", "room"):
        values = sorted({fact[key] for fact in facts})
        tables_of[key] = [_row(f"{value}", [f for f in facts if f[key] == value]) for value in values]
    return tables_of


def _row(what: str, facts: list[dict[str, Any]]) -> dict[str, Any]:
    wrong, n = sum(f["wrong"] for f in facts), len(facts)
    low, high = stats.binomtest(wrong, n).proportion_ci(0.95)
    return {
        "what": what,
        "audits": n,
        "false alarms": wrong,
        "rate": round(wrong / n, 4),
        "from": round(float(low), 4),
        "to": round(float(high), 4),
        "limit": int(stats.binom.isf(1e-6, n, ALPHA)),
    }


def power_curve(cells: list[Cell], audits: int, jobs: int) -> list[dict[str, Any]]:
    """Return the share of audits that falsify a claim of a given share of the exact epsilon."""
    picked: dict[tuple[str, float], Cell] = {}
    for cell in cells:
        if cell.kind == "sharp" and cell.delta in (0.0, 1e-2) and not cell.what.endswith("early"):
            picked.setdefault((cell.what.partition(" T=")[0], cell.delta), cell)
    chosen = list(picked.values())[:: max(1, len(picked) // 12)]
    rows = []
    for runs in POWER_RUNS:
        for share in POWER_RATIOS:
            many = max(1, audits // len(chosen))
            work = [(cell, seed) for cell in chosen for seed in range(many)]
            audits_made = Parallel(n_jobs=jobs)(delayed(one)(cell, seed, runs, share) for cell, seed in work)
            hits = sum(f["wrong"] for f in audits_made)
            row = {
                "runs": runs,
                "claimed / exact": share,
                "audits": len(audits_made),
                "falsified": round(hits / len(audits_made), 3),
            }
            rows.append(row)
            print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=10_000)
    parser.add_argument("--power", type=int, default=240, help="audits for each point of the power curve")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    choices = parser.parse_args()
    cells = learner_cells() + mechanism_cells()
    each = -(-choices.audits // len(cells))
    print(f"{len(cells)} claims, {each} audits of each", flush=True)
    # No two audits share a seed: cells of one learner would draw the same runs, and err together.
    work = [(cell, index * each + i) for index, cell in enumerate(cells) for i in range(each)]
    parts = Parallel(n_jobs=choices.jobs, return_as="generator", batch_size=8)(
        delayed(one)(cell, seed, RUNS) for cell, seed in work
    )
    facts = list(tqdm(parts, total=len(work), disable=not sys.stderr.isatty()))
    alarms = false_alarms(facts)
    power = power_curve(cells, choices.power, choices.jobs)
    slowest = {what: sum(f["seconds"] for f in facts if f["what"] == what) for what in {f["what"] for f in facts}}
    print("slowest, CPU s:", sorted(slowest.items(), key=lambda item: -item[1])[:5])
    note = (
        f"{len(facts)} complete audits of {len(cells)} true claims, each with a seed of its own, {RUNS} runs each, "
        f"{1 - ALPHA:.0%} confidence, {sum(f['seconds'] for f in facts):.0f} s of CPU. Sharp claims are at the exact "
        "epsilon of the pair. from, to: 95 % interval of the rate. limit: more false alarms have a chance of 1e-6."
    )
    parts_text = [f"# Calibration\n\n{note} {tables.dated()}\n"]
    titles = {"all": "All", "method": "By attack", "delta": "By delta", "kind": "By claim", "room": "By room"}
    parts_text += [f"## {title}\n\n{tables.table(alarms[key])}\n" for key, title in titles.items()]
    parts_text.append(
        "## Power\n\nThe share of audits that falsify a claim of so much of the exact epsilon, over learners and "
        f"deltas 0 and 0.01.\n\n{tables.table(power)}\n"
    )
    tables.RESULTS.mkdir(exist_ok=True)
    tables.write_page("calibration", "\n".join(parts_text))
    (tables.RESULTS / "calibration.json").write_text(
        json.dumps({"note": note, "tables": alarms, "power": power}, indent=1) + "\n"
    )
    print("\n".join(parts_text))
    sys.exit(any(row["false alarms"] > row["limit"] for rows in alarms.values() for row in rows))


if __name__ == "__main__":
    main()
