"""Where the CPU time of `overclaim run` goes: by claim and by stage, in one process.

    python benchmarks/speed/run_profile.py [FIRST LAST]

Without numbers every claim of the literature is audited, and the page is written; with them only those claims, counted
from 0, and the tables are printed. A stage's time is its own: a stage inside it is not counted twice.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from overclaim.reports.command_line.cli import ENVIRONMENT

for _name, _value in ENVIRONMENT.items():  # before NumPy is loaded
    os.environ.setdefault(_name, _value)

from overclaim.audit.execution.execution import Execution  # noqa: E402
from overclaim.audit.pipeline import audited, blind_spot_search, frame, given_losses  # noqa: E402
from overclaim.audit.pipeline import learner_stages as stages  # noqa: E402
from overclaim.audit.plans import shrink  # noqa: E402
from overclaim.audit.plans.plan import literature  # noqa: E402
from overclaim.audit.plans.selftest import selftest  # noqa: E402
from overclaim.benchmarks.tables import dated, table, write_page  # noqa: E402
from overclaim.reports import extras, record  # noqa: E402
from overclaim.reports.command_line import running  # noqa: E402
from overclaim.reports.formats.html import render  # noqa: E402

#: Whose functions are stages, and what they are called.
STAGES: list[tuple[Any, str, str]] = [
    (given_losses, "check_fresh", "checks of the learner"),
    (given_losses, "as_watched", "checks of the learner"),
    (given_losses, "check_pairs", "search by exact laws"),
    (stages.LearnerAudit, "find_pair", "search by runs"),
    (stages.LearnerAudit, "_pilot", "pilot"),
    (stages, "choose_by_labels", "choice of the event"),
    (frame.Audit, "certification_blocks", "certification"),
    (frame, "certify_claim", "bounds"),
    (audited, "with_blind_spot", "blind spots"),
    (blind_spot_search, "true_to", "exact laws of weaker learners"),
    (extras, "exact_epsilons", "exact epsilon"),
    (extras, "traced", "traces"),
    (extras, "translation", "translation"),
    (extras, "claim_evidence", "evidence"),
    (extras, "frozen_event", "frozen events"),
    (record, "p_value", "p-values"),
    (shrink, "shrink", "shrinking"),
]


class Clock:
    """CPU seconds of stages, each without those inside it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.inside = [0.0]  # seconds of the stages in each that is open

    def watch(self, holder: Any, name: str, stage: str) -> None:
        """Time every call of a function."""
        real: Callable[..., Any] = getattr(holder, name)

        @functools.wraps(real)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.stage(stage):
                return real(*args, **kwargs)

        setattr(holder, name, timed)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done within."""
        self.inside.append(0.0)
        began = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - began
            self.seconds[name] += spent - self.inside.pop()
            self.inside[-1] += spent


def main() -> None:
    """Audit, and write or print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("range", nargs="*", type=int, metavar="CLAIM", help="the first, and the one after the last")
    chosen = parser.parse_args().range
    plan, clock, claims = literature(), Clock(), []
    for holder, name, stage in STAGES:
        clock.watch(holder, name, stage)
    outcomes = []
    for i, task in enumerate(plan.tasks[slice(*chosen) if chosen else slice(None)]):
        began = time.process_time()
        with clock.stage("all else"):
            outcomes.append(running._audit_task(Execution(), (task, i, None)))
        claims.append({"claim": task.target, "runs": task.budget.runs, "CPU s": time.process_time() - began})
    if not chosen:
        with clock.stage("regret"):
            rows = [task.measure() for task in plan.regret]
        with clock.stage("self-test"):
            selftest(sound=False)
        audited = [claim for claim, _ in outcomes if claim is not None]
        whole = record.run_record(audited, seed=0, alpha=0.01, command="", regret=rows)
        with clock.stage("report"):
            render(whole)
    total = sum(clock.seconds.values())
    parts: list[dict[str, Any]] = [
        {"stage": stage, "CPU s": seconds, "share": seconds / total} for stage, seconds in clock.seconds.most_common()
    ]
    claims.sort(key=lambda row: -row["CPU s"])
    text = (
        f"# The CPU time of `overclaim run`\n\nOne process: {total:.1f} s. {dated()}\n\n"
        f"{table(parts)}\n\n"
        f"## The longest claims\n\n{table(claims[:25])}\n"
    )
    if chosen:
        print(text)
    else:
        write_page("run_profile", text)


if __name__ == "__main__":
    main()
