"""The gate: how often it fails an unchanged learner, and how often it catches one whose noise became smaller.

    python benchmarks/validity/gate.py                     1,000 comparisons of each kind (half an hour of CPU)
    python benchmarks/validity/gate.py --comparisons 50    a quick look

Every comparison has a seed of its own: a baseline is audited, something changes, and what there is now is held against
the baseline as `overclaim run --baseline` does, its event counted again on the changed target. The new audit of each
kind of change is done once: of it the gate compares only what its plan fixes, what it asks and could catch. An
unchanged learner fails if anything fails the run: a regression, a claim taken for weaker or left out, lost power. The
tables go to benchmarks/results; the exit code is 1 if a kind of change fails more often than alpha and three standard
errors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from overclaim.reports.command_line.cli import ENVIRONMENT

for _name, _value in ENVIRONMENT.items():  # before NumPy is loaded
    os.environ.setdefault(_name, _value)

from joblib import Parallel, delayed  # noqa: E402
from scipy import stats  # noqa: E402
from tqdm import tqdm  # noqa: E402

from overclaim.audit.execution.execution import Budget  # noqa: E402
from overclaim.audit.plans.plan import Plan  # noqa: E402
from overclaim.audit.plans.tasks import Task  # noqa: E402
from overclaim.audit.play.pairs import Pair  # noqa: E402
from overclaim.benchmarks import tables  # noqa: E402
from overclaim.reports.baseline import compare, failed  # noqa: E402
from overclaim.reports.command_line.comparing import count_again  # noqa: E402
from overclaim.reports.extras import frozen_event  # noqa: E402
from overclaim.reports.record import claim_record  # noqa: E402

ALPHA = 0.01
RUNS = 2000
#: The noise that is left.
KEPT = (0.9, 0.8, 0.5)
REGRESSION_RUNS, EARLY_RUNS = (2_000, 20_000, 50_000), (20_000,)
#: Claims of a plan of 20 that are new: no comparison looks at them.
OTHERS = tuple(4.0 + i for i in range(10, 29))
SUBJECTS = '''
import numpy as np


class Follower:
    """Plays the arm that was told to be better, through Laplace noise: epsilon is the reciprocal of its scale."""

    feedback = "full"
    arms = 2

    def __init__(self, scale=1.0, mirrored=False):
        self.scale, self.mirrored = scale, mirrored

    def start(self, runs, draws):
        return np.full((2, runs), 0.5)

    def act(self, state, draws):
        u = draws.uniform(state.shape[1])
        return ((1 - u if self.mirrored else u) < state[1]).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        u = draws.uniform(actions.shape[0]) - 0.5
        noise = self.scale * np.sign(u) * np.log1p(-2 * np.abs(u)) * (1 if self.mirrored else -1)
        state[1] = np.where(feedback[0] + noise > 0.5, 0.95, 0.05)
        state[0] = 1 - state[1]


class Chance:
    """Plays arm 1 with a probability that depends on the losses so far: the noise is that of its choice."""

    feedback = "full"
    arms = 2

    def start(self, runs, draws):
        return np.zeros(runs)

    def act(self, state, draws):
        return (draws.uniform(state.size) < 1 / (1 + np.exp(-state))).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        state += 0.8 * (feedback[0] - feedback[1])


class Told(Chance):
    def probabilities(self, state):
        chance = 1 / (1 + np.exp(-state))
        return np.stack([1 - chance, chance])


def mechanism(scale):
    def laplace(data, draws, runs):
        u = draws.uniform(runs) - 0.5
        return data - scale * np.sign(u) * np.log1p(-2 * np.abs(u))

    laplace.batched = True
    return laplace


laplace = mechanism(1.0)
laplace_90, laplace_80, laplace_50 = mechanism(0.9), mechanism(0.8), mechanism(0.5)
follower, mirrored, chance, told = Follower(), Follower(mirrored=True), Chance(), Told()
follower_90, follower_80, follower_50 = Follower(0.9), Follower(0.8), Follower(0.5)
'''


PAIR = Pair([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]])
OTHER = Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])


def learner(name: str, **more: Any) -> Task:
    """Return a claim about a learner, on a pair of losses that is given: the search costs most of an audit."""
    return Task(target=f"subjects.py:{name}", **{"epsilon": 3.0, "pair": PAIR, "budget": Budget(RUNS), **more})


def mechanism(name: str, **more: Any) -> Task:
    """Return a claim about a mechanism, on two inputs."""
    return Task(
        target=f"subjects.py:{name}", **{"epsilon": 3.0, "left": 0, "right": 1, "budget": Budget(RUNS), **more}
    )


def spending(task: Task, **changes: Any) -> Task:
    """Return a claim with another budget."""
    return replace(task, budget=replace(task.budget, **changes))


@dataclass(frozen=True)
class Change:
    """What a plan was, and what it is; `renamed` targets are the code of the file that changed."""

    what: str
    before: tuple[Task, ...]
    after: tuple[Task, ...]
    renamed: str | None = None


def changes() -> list[Change]:
    """Return the changes that leave every learner's law as it is."""
    one, two, noise = learner("follower"), learner("follower", epsilon=2.5), mechanism("laplace")
    others = [learner("follower", epsilon=epsilon) for epsilon in OTHERS]
    delta = {"delta": 0.2}
    return [
        Change("nothing", (one, noise), (one, noise)),
        Change("claims reordered", (two, one), (one, two)),
        Change("delta .2 to .05", (learner("follower", **delta),), (learner("follower", delta=0.05),)),
        Change("confidence .99999 to .9", (spending(one, confidence=0.99999),), (spending(one, confidence=0.9),)),
        Change("another left", (noise,), (replace(noise, left=0.5),)),
        Change("bits", (noise,), (replace(noise, bits=True),)),
        Change("another pair of losses", (one,), (replace(one, pair=OTHER),)),
        Change("1 to 20 claims", (one,), tuple(spending(t, confidence=1 - ALPHA / 20) for t in (*others, one))),
        Change("probabilities added", (learner("chance"),), (learner("told"),), "chance"),
        Change("u < p to 1 - u < p", (one,), (learner("mirrored"),), "follower"),
        Change("another seed", (one, noise), tuple(spending(t, seed=10**6) for t in (one, noise))),
        Change("runs doubled", (one, noise), tuple(spending(t, runs=2 * RUNS) for t in (one, noise))),
        Change(
            "stop early",
            tuple(spending(t, stop="early") for t in (one, noise)),
            tuple(spending(t, stop="early", seed=10**6) for t in (one, noise)),
        ),
    ]


Records = dict[str, dict[str, Any]]


def record_of(task: Task, known: Records) -> dict[str, Any]:
    """Return the record of a claim with its frozen event; audits are functions of the task, so each is done once."""
    text = repr(task)
    if text not in known:
        prepared = task.prepare()
        result = prepared.audit()
        known[text] = {**claim_record(prepared, result), "frozen": frozen_event(prepared, result, 1)}
    return dict(known[text])


def compared(change: Change, number: int, known: Records) -> tuple[bool, list[str]]:
    """Return whether a comparison failed, and the kinds of its findings."""
    before = [spending(task, seed=task.budget.seed + number) for task in change.before]
    base, claims = ([record_of(task, known) for task in tasks] for tasks in (before, change.after))
    if change.renamed is not None:  # the file changed, and not what the plan calls it
        for claim in claims:
            claim["name"] = f"subjects.py:{change.renamed}"
    comparison = compare(claims, {"claims": base}, alpha=ALPHA, again=partial(count_again, Plan(change.after), jobs=1))
    assert not comparison["errors"], comparison["errors"]
    return failed({"baseline": comparison}), sorted({finding["kind"] for finding in comparison["findings"]})


def outcomes(folder: str, changes_made: list[Change], number: int, fixed: Records) -> list[tuple[bool, list[str]]]:
    """Return one comparison of every change."""
    os.chdir(folder)
    known = dict(fixed)
    return [compared(change, number, known) for change in changes_made]


Found = list[tuple[bool, list[str]]]


def of_all(folder: str, changes_made: list[Change], numbers: range, jobs: int) -> list[Found]:
    """Return the comparisons of every change, numbered by the seeds that they add to a baseline's."""
    fixed: Records = {}
    for task in (task for change in changes_made for task in change.after):
        record_of(task, fixed)
    shown = tqdm(numbers, leave=False, disable=not sys.stderr.isatty())
    by_number = Parallel(jobs)(delayed(outcomes)(folder, changes_made, number, fixed) for number in shown)
    return list(map(list, zip(*by_number, strict=True)))


def unchanged(changes_made: list[Change], compared: list[Found]) -> tuple[tables.Rows, bool]:
    """Return the table of false failures, and whether it is as it must be."""
    rows: tables.Rows = []
    for change, outcomes_of in zip(changes_made, compared, strict=True):
        comparisons = len(outcomes_of)
        most = comparisons * ALPHA + 3 * math.sqrt(comparisons * ALPHA * (1 - ALPHA))
        kinds = Counter(kind for _, kinds in outcomes_of for kind in kinds)
        wrong = sum(fails for fails, _ in outcomes_of)
        said = ", ".join(f"{kind} {times}" for kind, times in sorted(kinds.items()))
        rows.append({"change": change.what, "comparisons": comparisons, "failed": wrong, "most": round(most, 1)})
        rows[-1]["said"] = said
        tables.show(rows)
    return rows, all(row["failed"] <= row["most"] for row in rows)


def regressions(folder: str, comparisons: int, jobs: int) -> tables.Rows:
    """Return the table of what is caught."""
    rows: tables.Rows = []
    stops = [(stop, runs) for stop, many in (("budget", REGRESSION_RUNS), ("early", EARLY_RUNS)) for runs in many]
    for name, make in (("follower", learner), ("laplace", mechanism)):
        for stop, runs in stops:
            how = {"budget": Budget(runs, stop=stop), "epsilon": 5.0}
            shortened = [
                Change("", (make(name, **how),), (make(f"{name}_{round(100 * kept)}", **how),), name) for kept in KEPT
            ]
            for kept, outcomes_of in zip(
                KEPT, of_all(folder, shortened, range(1, comparisons + 1), jobs), strict=True
            ):
                caught = sum("regression" in kinds for _, kinds in outcomes_of)
                low, high = stats.binomtest(caught, comparisons).proportion_ci(0.95)
                less = f"{round(100 * (1 - kept))} %"
                rows.append({"learner": name, "runs": runs, "stop": stop, "noise less by": less})
                rows[-1] |= {"comparisons": comparisons}
                rows[-1] |= {"caught": caught / comparisons, "from": round(low, 3), "to": round(high, 3)}
                tables.show(rows)
    return rows


PAGE = """# The gate on unchanged and on changed learners

`python benchmarks/validity/gate.py`: every row's comparisons have seeds of their own, {runs:,} runs for each audit,
alpha = {alpha:g} for the gate. "most" is alpha and three standard errors of as many comparisons.
{dated}

{unchanged}

## Real regressions

Less Laplace noise behind an unchanged claim that stays true. "caught" is the share of comparisons that report a
regression, with its 95 % interval.

{caught}
"""


def write(out: Path, rows: tables.Rows, caught: tables.Rows) -> None:
    """Write the page and its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    page = PAGE.format(
        runs=RUNS, alpha=ALPHA, dated=tables.dated(), unchanged=tables.table(rows), caught=tables.table(caught)
    )
    tables.write_page("gate", page, out)
    tables_of = {"alpha": ALPHA, "runs": RUNS, "unchanged": rows, "regressions": caught}
    (out / "gate.json").write_text(json.dumps(tables_of, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Measure both, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--regressions", type=int, default=200, help="comparisons for each changed learner")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=tables.RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "subjects.py").write_text(SUBJECTS, encoding="utf-8")
        os.chdir(folder)

        every, numbers = changes(), range(1, options.comparisons + 1)
        rows, good = unchanged(every, of_all(folder, every, numbers, options.jobs))
        caught = regressions(folder, options.regressions, options.jobs)
        os.chdir("/")
    write(options.out, rows, caught)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
