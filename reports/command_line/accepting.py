"""`overclaim accept`: make a record the baseline, and say what that changes."""

from __future__ import annotations

import inspect
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from ...audit.plans.paths import check_distinct, check_output, exists
from ..status import claims_text
from .console import Once, own_process, playing_command, say
from .options import FILE

if TYPE_CHECKING:
    from ...audit.plans.tasks import Task
    from ...audit.record_types import AcceptedRecord, ClaimRecord, RunRecord
    from ..history import History
    from ..identity import Matching

#: How often the runs of an accepted event are counted when it is accepted, and runs that are enough.
TIMES, MAX_RUNS = 10, 10**6


@click.command(cls=Once)
@click.argument("record_file", metavar="RECORD.json", type=FILE)
@click.option("--baseline", "baseline_file", type=FILE, help="File to write [default: overclaim-baseline.json]")
@playing_command
def accept(record_file: Path, baseline_file: Path | None) -> None:
    """Make a record the baseline of later runs, and show what that changes.

    Each accepted event is counted over ten times the runs of its audit, if the files that were audited are the same
    still.
    """
    from ...audit.execution.progress import begin
    from .. import baseline
    from ..history import History
    from ..record import to_text, write_atomically

    path = baseline_file or baseline.DEFAULT
    check_distinct({"the record": record_file, "--baseline": path})
    check_output(path)
    begin()
    record = baseline.read_comparable(record_file)
    if record["errors"]:
        raise ValueError(f"{str(record_file)!r} has claims that were not audited: {record['errors'][0]['message']}")
    matching = _matching(record, path)
    for line in changed_lines(matching):
        say(line)
    with own_process():
        _count_accepted(record, matching)
    history = History.beside(path)
    _drop(history, record, matching)
    text = to_text(baseline.slim(record), sort_keys=True)
    write_atomically(path, text)
    say(f"Baseline: {path} has {claims_text(len(record['claims']))}")


def _matching(record: RunRecord, path: Path) -> Matching:
    """Return how the claims of a record continue those of the baseline that it replaces, if that can be read."""
    from ..baseline import read_comparable
    from ..identity import matched

    before: list[ClaimRecord] = []
    if exists(path, "cannot write"):
        try:
            before = read_comparable(path)["claims"]
        except ValueError as error:
            say(f"overclaim: the old baseline is replaced unread: {error}", err=True)
    return matched(record["claims"], before)


def changed_lines(matching: Matching) -> list[str]:
    """Return what accepting a record changes: `- accepted`, `+ asked` of each field."""
    lines = []
    for new, old, differences in matching.pairs:
        if differences or new["verdict"] != old["verdict"]:
            lines.append(f"accepted: changed: {new['name']}")
        for difference in differences:
            lines += [f"{sign} {difference.field} = {text}" for sign, text in zip("-+", difference[1:], strict=True)]
        if new["verdict"] != old["verdict"]:
            lines += [f"- verdict = {old['verdict']}", f"+ verdict = {new['verdict']}"]
    lines += [f"accepted: new: {claim['name']}" for claim in matching.added]
    return lines + [f"accepted: missing: {claim['name']}" for claim in matching.missing]


def is_red(claim: ClaimRecord) -> bool:
    """Tell whether the evidence over changes says that a claim is false, or leaks more than was accepted."""
    before = claim.get("baseline")
    return isinstance(before, dict) and before.get("decision") in ("false", "worse")


def _count_accepted(record: RunRecord, matching: Matching) -> None:
    """Count the accepted events anew; those of claims that did not change, and passed, stay as they were accepted."""
    from ...audit.execution.progress import steps
    from ...audit.execution.provenance import hashes_now
    from .comparing import files_of

    for new, old, differences in matching.pairs:
        if not differences and not is_red(new) and "accepted" in old and not new.get("scores"):
            new["accepted"] = old["accepted"]
    files = files_of(record)
    edited = [name for name, digest in hashes_now(files).items() if digest != files[name]]
    start, runs = time.monotonic(), 0
    for claim in steps(record["claims"], "counting the accepted events"):
        if "accepted" not in claim:
            claim.setdefault("frozen", {"kind": "none", "reason": "the record kept no event"})
            runs += _count(claim, edited)
    if edited and not runs:
        trouble = f"{edited[0]!r} has changed since the audit, or does not lie here"
        say(f"overclaim: {trouble}: the record's own counts are accepted", err=True)
    if runs:
        say(f"counted {runs:,} runs of the accepted events in {time.monotonic() - start:.1f} s", err=True)


def _count(claim: ClaimRecord, edited: list[str]) -> int:
    """Put into a claim its event with what it shows in many fresh runs, or in those of the record; return how many."""
    from ...audit.evidence.frozen import Frozen
    from ..identity import mark
    from .comparing import counts_of

    frozen, runs = None if claim["frozen"].get("kind") == "none" else Frozen.from_json(claim["frozen"]), 0
    counts = claim["counts"] if frozen is None else frozen.counts.to_json()
    if frozen is not None and not edited:
        try:
            prepared = task_of_command(claim["replay"]).prepare()
            n_runs = min(MAX_RUNS, TIMES * frozen.counts.runs)
            counts = counts_of(frozen, prepared, claim["pair"], ["accept", mark(claim)], n_runs, 1).to_json()
            runs = n_runs
        except (ValueError, click.ClickException) as error:
            say(f"overclaim: {claim['name']}: the record's own counts are accepted: {error}", err=True)
    accepted = {"frozen": claim["frozen"], "pair": claim["pair"], "method": claim["method"], "counts": counts}
    claim["accepted"] = cast("AcceptedRecord", accepted)
    return runs


def task_of_command(text: str) -> Task:
    """Return the task that a command `overclaim check ...` describes."""
    from .task_options import task_of

    program = click.get_current_context().find_root().command
    assert isinstance(program, click.Group)
    check = program.commands["check"]
    context = check.make_context("check", shlex.split(text)[2:])
    function: Any = inspect.unwrap(check.callback)  # type: ignore[arg-type]
    keys = [name for name, arg in inspect.signature(function).parameters.items() if arg.kind is not arg.VAR_KEYWORD]
    choices = {name: value for name, value in context.params.items() if name not in keys or name == "weaken"}
    return task_of(**choices)


def _drop(history: History, record: RunRecord, matching: Matching) -> None:
    """Drop the evidence of claims that changed, and say how much that is."""
    from ..identity import mark

    marks = {mark(new) for new, _, differences in matching.pairs if not differences and not is_red(new)}
    changes = [change for change in history.changes if change.claim in marks]
    if len(changes) < len(history.changes):
        say(f"dropped the evidence of {len(history.changes) - len(changes)} audits of claims that changed")
        history.write(changes)
