"""The comparison with a baseline: fresh draws for its claims, whose events are counted on the targets of now.

Only a run with a baseline imports it: it loads what audits do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ...audit.evidence.frozen import Frozen
from ...audit.execution.provenance import hashes_now, named_from_here
from ...audit.execution.workers import DeadWorkerError, alone, cores, in_parallel
from ...audit.plans.audited_files import files_of as named_files
from ...audit.plans.ledger import versions
from ...audit.plans.plan import Plan
from ...audit.plans.tasks import Prepared, Task
from ...audit.play.data import DataPair
from ...audit.play.json_text import digest_of
from ...audit.play.pairs import Pair
from ...audit.record_types import ClaimRecord, RunRecord
from ...audit.statistics.change_evidence import (
    ERROR,
    MAX_BATCHES,
    Evidence,
    Guesses,
    Line,
    accepted_line,
    claimed_line,
    evidence_of,
    log_e_value,
)
from ...audit.statistics.events import Counts
from ...audit.statistics.sequential import AnytimeBets
from ...mechanisms.measures.stated import measure_from_json
from ..baseline import Recount, compare
from ..history import Change, Count, History
from ..identity import mark, measure
from ..reading import due_verdict
from .console import own_process
from .running import unaudited


@dataclass(frozen=True)
class Gate:
    """A baseline with its history, and the change that is audited.

    Attributes
    ----------
    file : Path
    base : dict
    digest : str
        The hash of what was accepted: draws are keyed by it, not by the time of day.
    change : str
        The hash of the files that claims are known to read, and of the versions; of an audit that is in the history,
        and whose files are still the same, what it has there.
    """

    file: Path
    base: RunRecord
    digest: str
    change: str

    @classmethod
    def of(cls, file: Path, base: RunRecord, plan: Plan) -> Gate:
        """Hash what a baseline is compared with."""
        past = History.beside(file).changes
        files = {name: name for read in (files_of(base), *(change.read for change in past)) for name in read}
        files |= {named_from_here(path): str(path) for task in plan.tasks for path in named_files(task)}
        hashes, of_code = hashes_now(files), digest_of(versions())
        digests = (c.change for c in past if c.change.endswith(of_code) and c.read.items() <= hashes.items())
        change = next(digests, f"{digest_of(hashes)}{of_code}")
        return cls(file, base, digest_of([[claim["question"], claim["accepted"]] for claim in base["claims"]]), change)

    def fresh(self, plan: Plan) -> Plan:
        """Return a plan whose claims draw anew for each change; the plan's own seed is mixed in."""
        seen: dict[str, int] = {}
        tasks = []
        for task in plan.tasks:
            fields = {name: value for name, value in vars(task).items() if name not in ("note", "pair")}
            text = digest_of(fields | {"pair": None if task.pair is None else task.pair.to_json()})
            seen[text] = seen.get(text, 0) + 1
            seed = int(digest_of([self.digest, self.change, text, seen[text]])[:12], 16)
            tasks.append(replace(task, budget=replace(task.budget, seed=seed)))
        return replace(plan, tasks=tuple(tasks))

    def compare(self, record: RunRecord, plan: Plan, *, jobs: int | None) -> None:
        """Put the comparison into a record; targets that crash in it are errors of the record."""
        history, read = History.beside(self.file), files_of(record)
        gate = self
        if any(past.change == self.change and past.read != read for past in history.changes):
            gate = replace(
                self, change=digest_of([self.change, read])
            )  # a file that no name tells from here is another
        with own_process():
            count = partial(gate._recounts, plan, history, read=read, jobs=jobs or cores())
            compared = compare(record["claims"], self.base, count=count, history=history)
        record["errors"] += compared.pop("errors")
        record["baseline"] = {"file": named_from_here(self.file), "torn": history.torn, **compared}

    def _recounts(
        self,
        plan: Plan,
        history: History,
        pairs: Sequence[tuple[ClaimRecord, ClaimRecord]],
        *,
        read: dict[str, str],
        jobs: int,
    ) -> list[Recount]:
        """Return what came of counting the events of (claim, its baseline) each."""
        tasks = {task.completed().command(): task for task in plan.tasks}  # as the record's replay says it
        recounts: dict[int, Recount] = {}
        items: dict[int, Comparison] = {}
        for i, (new, old) in enumerate(pairs):
            past = history.of(mark(new))
            if new.get("scores"):
                recounts[i] = Recount(None, "scores of canaries are compared as they are")
            elif change := next((change for change in past if change.change == self.change), None):
                recounts[i] = Recount(change)  # the same code again: the same draws
            else:
                growths = tuple(change.log_growth for change in past)
                key = [self.digest, mark(new), self.change]
                items[i] = Comparison(tasks[new["replay"]], new, old, key, growths, len(self.base["claims"]), read)
        on_all = len(items) < jobs
        count = partial(_recount, jobs=jobs if on_all else 1)
        results: list[Recount] = []
        try:
            results.extend(in_parallel(count, [*items.values()], jobs=1 if on_all else jobs, progress="baseline"))
        except DeadWorkerError:  # nobody knows which of them it was
            results += [_recount_alone(count, item) for item in [*items.values()][len(results) :]]
        recounts |= dict(zip(items, results, strict=True))
        return [recounts[i] for i in range(len(pairs))]


def files_of(record: RunRecord) -> dict[str, str]:
    """Return the hashes of the files that the claims of a record read, by their names."""
    audited = record.get("audited")
    return audited["files"] if audited else {}


@dataclass(frozen=True)
class Comparison:
    """One claim to be counted beside its baseline: its task, both records, the key of its draws, its history."""

    task: Task
    new: ClaimRecord
    old: ClaimRecord
    key: list[str]
    past: tuple[Any, ...]
    claims: int
    read: dict[str, str]


def _recount_alone(count: Callable[[Comparison], Recount], item: Comparison) -> Recount:
    """Return what came of counting in a process of its own, which the target may end."""
    try:
        recount: Recount = alone(count, item)
    except DeadWorkerError as error:
        return Recount(None, str(error), crashed=True)
    return recount


def _recount(item: Comparison, *, jobs: int) -> Recount:
    """Return the counts of a claim's own event and of the accepted one, counted on while they leave it in doubt."""
    try:
        return Recount(_counted_on(item, jobs))
    except BaseException as error:
        failed = unaudited(item.task, error)
        return Recount(None, failed["message"], crashed=failed["kind"] != "bad input")


@dataclass
class Event:
    """An event that is counted on: the rule that is played, the line that it is tested against, and its counts."""

    frozen: Frozen | None
    pair: Any
    line: Line
    guesses: Guesses
    log_e: float = 0.0

    @property
    def count(self) -> Count:
        """What was counted so far."""
        return Count(self.line, self.guesses, self.log_e)

    def play(self, prepared: Prepared, key: object, jobs: int) -> int:
        """Count it in one more batch; return the runs."""
        if self.frozen is None:
            return 0
        runs = self.frozen.counts.runs
        self.guesses += Guesses.of(counts_of(self.frozen, prepared, self.pair, key, runs, jobs))
        return runs


def counts_of(frozen: Frozen, prepared: Prepared, worlds: Any, key: object, runs: int, jobs: int) -> Counts:
    """Return the counts of an event that is kept as data in fresh runs."""
    pair = DataPair.of_json(worlds) if prepared.is_mechanism or prepared.of_sequences else Pair.from_json(worlds)
    return frozen.again(prepared.played, pair, prepared.claim.view, key=key, runs=runs, jobs=jobs)


def _counted_on(item: Comparison, jobs: int) -> Change:
    """Return a change with its counts: after the first ones, batches until it is red, cleared, or their number is."""
    prepared = item.task.prepare()
    claimed, accepted = _own_event(item), _accepted_event(item)
    if claimed is None and accepted is None:
        raise ValueError("neither its own event nor the accepted one can be counted")
    first, second = (None if event is None else event.count for event in (claimed, accepted))
    limits = Change("", "", "", first, second).limits(item.claims)
    return count_on(item, evidence_of(item.past, 2, limits).started(limits), claimed, accepted, prepared, jobs)


def count_on(
    item: Comparison, before: Evidence, claimed: Event | None, accepted: Event | None, prepared: Any, jobs: int
) -> Change:
    """Return a change with the counts of its events: the accepted one's are first, and both go on while in doubt."""
    if accepted is not None:
        accepted.play(prepared, [*item.key, "accepted", 0], jobs)
    time = datetime.now(UTC).isoformat(timespec="seconds")

    def change(batches: int, runs: int) -> Change:
        counts = [None if event is None else event.count for event in (claimed, accepted)]
        return Change(time, mark(item.new), item.key[-1], counts[0], counts[1], batches, runs, item.read)

    limits = change(0, 0).limits(item.claims)

    def mean(batches: int) -> float:
        growth: Evidence = before.after(change(batches, 0).log_growth)
        return growth.log_mean()

    batches = runs = 0
    doubted = (claimed is not None and item.new["verdict"] == "FALSIFIED") or mean(0) >= limits.log_doubt
    events = {name: event for name, event in (("own", claimed), ("accepted", accepted)) if event is not None}
    countable = any(event.frozen is not None for event in events.values())
    while doubted and countable and batches < MAX_BATCHES and mean(batches) < limits.log_red:
        batches += 1
        runs += sum(event.play(prepared, [*item.key, name, batches], jobs) for name, event in events.items())
        doubted = mean(batches) >= 0
    return change(batches, runs)


def _own_event(item: Comparison) -> Event | None:
    """Return the event of the new audit with its counts; none of a claim that is expected to be false."""
    new = item.new
    if due_verdict(new) == "FALSIFIED":
        return None
    claimed, counts = measure_from_json(measure(new)), Counts.of_json(new["counts"])
    frozen = None if (new.get("frozen") or {}).get("kind") == "none" else Frozen.from_json(new["frozen"])
    share = float((new.get("event") or {}).get("share") or 0.5)
    line = claimed_line(claimed, Guesses.of(counts), log_odds_of(counts, share, new["method"]))
    if new["method"] in ("guess", "joint") and claimed.is_epsilon:
        return Event(frozen, new["pair"], line, Guesses.of(counts))
    if new["method"] == "anytime":
        epsilon, delta = claimed.stated
        log_e = AnytimeBets(epsilon, delta).log_wealth_of(counts, epsilon)
    else:
        log_e = log_e_value(1.0 if new["p_value"] is None else float(new["p_value"]))
    if frozen is not None:  # the batches count another event, whose line its own counts choose
        odds = log_odds_of(frozen.counts, frozen.share, new["method"], frozen.rule)
        line = claimed_line(claimed, Guesses.of(frozen.counts), odds)
    return Event(frozen, new["pair"], line, Guesses(0, 0, 0), log_e)


def _accepted_event(item: Comparison) -> Event | None:
    """Return the accepted event with nothing counted yet, and the line that it is tested against."""
    old = item.old
    event = old["accepted"]
    if event["frozen"].get("kind") == "none":
        return None
    frozen, counts = Frozen.from_json(event["frozen"]), Counts.of_json(event["counts"])
    odds = log_odds_of(frozen.counts, frozen.share, event["method"], frozen.rule)
    line = claimed_line(measure_from_json(measure(item.new)), Guesses.of(counts), odds)
    if due_verdict(old) == "FALSIFIED":
        line = Line(700.0, line.delta)
    bound = accepted_line(line, Guesses.of(counts), ERROR / 2 / item.claims)
    return Event(frozen, event["pair"], bound, Guesses(0, 0, 0))


def log_odds_of(counts: Counts, share: float, method: str, rule: object = None) -> float:
    """Return the log odds of the input that an event names, in runs of which this share is left; the larger of two."""
    odds = math.log(share / (1 - share))
    two_sided = all(not math.isnan(getattr(rule, name, math.nan)) for name in ("lower", "upper"))
    if method != "joint" or two_sided:
        return abs(odds)
    return odds if counts.left_upper + counts.right_upper >= counts.left_lower + counts.right_lower else -odds
