"""The gate: how often chance turns it red in 200 changes, and after how many changes it finds a leak that grew.

    python benchmarks/validity/gate.py                  1,000 histories of each kind
    python benchmarks/validity/gate.py --histories 50   a quick look

Every history is one claim that is accepted and then changed 200 times. The gate's own code decides at each change
(`count_on`, `Evidence`, `decide`); only the target is a law, whose events are drawn from exact probabilities. The
exit code is 1 if more histories of true claims are red than 1 % and three standard errors.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from dataclasses import dataclass

from overclaim.reports.command_line.cli import ENVIRONMENT

for _name, _value in ENVIRONMENT.items():  # before NumPy is loaded
    os.environ.setdefault(_name, _value)

import numpy as np  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from scipy import special, stats  # noqa: E402

from overclaim.audit.statistics.bounds.binomial_bounds import clopper_pearson_lower  # noqa: E402
from overclaim.audit.statistics.change_evidence import (  # noqa: E402
    CHANGES,
    ERROR,
    Evidence,
    Guesses,
    Line,
    accepted_line,
    claimed_line,
)
from overclaim.benchmarks import tables  # noqa: E402
from overclaim.mechanisms.measures.approximate import ApproxDP  # noqa: E402
from overclaim.mechanisms.measures.gaussian_dp import GDP  # noqa: E402
from overclaim.reports.baseline import decide  # noqa: E402
from overclaim.reports.command_line.comparing import Comparison, Event, count_on  # noqa: E402


@dataclass(frozen=True)
class Law:
    """What an event says of a run: right, wrong or nothing, with exact probabilities."""

    right: float
    wrong: float

    def draw(self, runs: int, rng: np.random.Generator) -> Guesses:
        """Return what it names in so many runs."""
        right, wrong, _ = rng.multinomial(runs, [self.right, self.wrong, max(0.0, 1 - self.right - self.wrong)])
        return Guesses(int(right), int(wrong), runs)


def laplace(epsilon: float) -> Law:
    """Return the law of the best event on a count with Laplace noise: each output is attributed, or none is."""
    return Law(0.5, 0.5 * math.exp(-epsilon))  # outputs beyond both counts: there the odds are e^epsilon exactly


def gaussian(mu: float) -> Law:
    """Return the law of guessing by the sign of a Gaussian output in the middle of two means."""
    return Law(float(stats.norm.cdf(mu / 2)), float(stats.norm.cdf(-mu / 2)))


class DrawnEvent(Event):
    """An event whose batches are drawn from a law."""

    def __init__(self, law: Law, runs: int, line: Line, rng: np.random.Generator, *, counted: bool) -> None:
        super().__init__(None, None, line, law.draw(runs, rng) if counted else Guesses(0, 0, 0))
        self.law, self.runs, self.rng = law, runs, rng
        self.frozen = self  # type: ignore[assignment]

    def play(self, prepared: object, key: object, jobs: int) -> int:
        """Draw one more batch."""
        self.guesses += self.law.draw(self.runs, self.rng)
        return self.runs


@dataclass(frozen=True)
class Kind:
    """A kind of history: what is claimed, what was accepted, and what there is now."""

    name: str
    measure: object
    accepted: Law
    law: Law
    runs: int
    claims: int = 1


def history(kind: Kind, seed: int) -> tuple[int, int]:
    """Return the change at which a claim is red, 0 if none is, and the batches that were counted."""
    rng = np.random.default_rng([seed, kind.runs, kind.claims])
    counted = int(kind.runs * 0.8)
    then = kind.accepted.draw(10 * kind.runs, rng)
    claimed = claimed_line(kind.measure, then, 0.0)
    bound = accepted_line(claimed, then, ERROR / 2 / kind.claims)
    alpha, known, batches = 1 - 0.99, Evidence.none(2), 0
    question = {"question": {}, "verdict": "SURVIVED"}
    for number in range(1, CHANGES + 1):
        own = DrawnEvent(kind.law, counted, claimed, rng, counted=True)
        named = own.guesses.right + own.guesses.wrong
        share = float(clopper_pearson_lower(own.guesses.right, max(named, 1), alpha))
        false = claimed.delta == 0 and special.logit(share) > claimed.epsilon if 0 < share < 1 else False
        new = {**question, "verdict": "FALSIFIED" if false else "SURVIVED"}
        item = Comparison(None, new, {}, ["", "", str(number)], (), kind.claims, {})
        change = count_on(item, known, own, DrawnEvent(kind.law, kind.runs, bound, rng, counted=False), None, 1)
        known = known.after(change.log_growth)
        batches += change.batches
        if decide(known, change.limits(kind.claims), change, exceeded=bool(false)) in ("false", "worse"):
            return number, batches
    return 0, batches


def kinds(runs: int) -> list[Kind]:
    """Return the histories of one number of runs: true claims, then leaks that grew."""
    tight, small, normal = laplace(1.0), laplace(0.3), gaussian(1.0)
    pure, delta = ApproxDP(1.0, 0.0), ApproxDP(1.0, 1e-5)
    true = [
        Kind("exactly tight", pure, tight, tight, runs),
        Kind("exactly tight, delta 1e-5", delta, tight, tight, runs),
        Kind("exactly tight, GDP 1", GDP(1.0), normal, normal, runs),
        Kind("exactly tight, one of 20 claims", pure, tight, tight, runs, 20),
        Kind("far below the claim, unchanged", pure, small, small, runs),
    ]
    grown = [Kind(f"{factor} x the claim", pure, tight, laplace(factor), runs) for factor in (1.05, 1.1, 1.3)]
    grown += [Kind(f"below the claim, {f} x", pure, small, laplace(0.3 * f), runs) for f in (1.1, 1.3)]
    return true + grown


def main() -> int:
    """Print the table and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rows, failed = [], False
    most = ERROR * options.histories + 3 * math.sqrt(ERROR * options.histories)
    for runs in (2_000, 20_000):
        for kind in kinds(runs):
            found = Parallel(options.jobs)(delayed(history)(kind, seed) for seed in range(options.histories))
            red = [change for change, _ in found if change]
            known = ("below" not in kind.name and " x " not in kind.name) or "unchanged" in kind.name
            failed |= known and len(red) * kind.claims > most
            changes = sum(change or CHANGES for change, _ in found)
            delays = [change or CHANGES + 1 for change, _ in found]
            half, nine = (int(np.quantile(delays, q, method="higher")) for q in (0.5, 0.9))
            delay = "-" if known else " / ".join(f"> {CHANGES}" if d > CHANGES else str(d) for d in (half, nine))
            extra = sum(batches for _, batches in found) / changes
            rows.append(f"| {runs:,} | {kind.name} | {len(red)} of {len(found):,} | {delay} | {extra:.2f} |")
            print(rows[-1], flush=True)
    text = "\n".join(
        [
            "# The gate over histories of changes",
            "",
            "`python benchmarks/validity/gate.py`: histories of 200 changes of one claim, decided by the gate's code.",
            "The target is a law whose events are drawn from exact probabilities. Red: at any of the changes;",
            f"changes to red: median / 90 %. {tables.dated()}",
            "",
            "| runs | history | red | changes to red | extra batches per change |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )
    if options.histories >= 40:
        tables.write_page("gate", text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
