"""The command line. Heavy modules are imported inside the commands, so that `--help` is instant."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ... import __version__
from ...audit.plans.paths import check_distinct, check_folder, exists
from ...errors import exclude, hinted
from ..formats import FORMATS
from ..reading import missing_words
from ..sanitise import json_text
from ..status import FALSIFIED, OK, status_of
from .accepting import accept
from .account import account
from .computed import exact, power
from .console import Commands, command, own_process, playing_command, say
from .options import (
    CLAIMED,
    FILE,
    GAME,
    INPUTS,
    JSON,
    LEVELS,
    MEASURE,
    ROWS,
    SURFACE,
    WHERE,
    check_levels,
    option,
    options,
    several,
)
from .register import register
from .regret import regret
from .running import audited, cluster_of, resumable
from .scores import scores, write_plot
from .task_options import check_canaries, check_shrink, task_of, warn_of_few
from .trace_command import trace

if TYPE_CHECKING:
    from ...audit.plans.plan import Plan
    from ...audit.record_types import RunRecord
    from .comparing import Gate


#: What `init` writes, and the hook and the action read.
PLAN = Path("overclaim.toml")
#: What `run` writes.
REPORTS = ("record.json", "report.html")
#: Of this process, before it loads NumPy, and of its workers. Workers are processes: threads inside them would only
#: fight for the same cores. And glibc shall keep what one block frees for the next one, as new pages are slow.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": str(2**26),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="overclaim")
def main() -> None:
    """Falsify the differential-privacy claims of online learners, from their action sequences."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


@main.command("list")
@click.argument("room", required=False, type=click.Choice(["papers", "mechanisms", "libraries"]))
@ROWS
@command
def list_catalogue(room: str | None, as_json: bool) -> None:
    """List the built-in learners and mechanisms with their claims, sources and faults; or those of libraries."""
    from ...learners.catalogue.entries import entries
    from ...mechanisms.libraries.catalogue import library_entries
    from ...mechanisms.one_shot.zoo import zoo
    from ..formats.terminal import catalogue_table, library_table, zoo_table

    papers, specimens = entries().values(), zoo().values()
    libraries = library_entries().values() if room == "libraries" else ()
    if as_json:
        rows: list[dict[str, object]] = [
            {
                "name": e.name,
                "claim": e.promise or None,
                "summary": e.summary,
                "source": e.source,
                "parameters": list(e.parameters),
                "rounds": e.rounds,
                "arms": e.arms,
                "cases": [case.to_json(e) for case in e.cases],
            }
            for e in (papers if room in (None, "papers") else ())
        ]
        rows += [
            {"name": s.name, "summary": s.fault, "source": s.source, "parameters": list(s.parameters)}
            for s in (specimens if room in (None, "mechanisms") else ())
        ]
        rows += [library.to_json() for library in libraries]
        say(json_text(rows, indent=1))
        return
    tables = [catalogue_table(papers)] if room in (None, "papers") else []
    tables += [zoo_table(specimens)] if room in (None, "mechanisms") else []
    tables += [library_table(libraries)] if room == "libraries" else []
    say("\n\n".join(tables))


@main.command()
@click.argument("target")
@CLAIMED
@MEASURE
@GAME
@SURFACE
@option("pair")
@INPUTS
@several("canaries", "trainings", "plot")
@several("runs", "seed", "confidence", "stop", "power", "weaken", "shrink", "trace")
@WHERE
@LEVELS
@JSON
@playing_command
def check(
    jobs: int | None,
    workers: str,
    scheduler: str | None,
    weaken: str | bool | None,
    shrink: bool | None,
    trace: bool,
    plot: Path | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    **choices: Any,
) -> int:
    """Test one claim about TARGET: FILE.py:NAME, PACKAGE.MODULE:NAME or a name from `overclaim list`.

    Examples
    --------
      overclaim check learner.py:MyLearner --epsilon 1
      overclaim check noisy.py:count --epsilon 1 --left '["ann", "bob"]' --right '["ann"]'
      overclaim check noisy.py:total --epsilon 1 --inputs schema.json

    Defaults are the target's own where it has any.
    """
    from ...audit.execution.execution import Execution
    from ...audit.execution.workers import cores
    from ..extras import with_shrunk
    from ..formats.claim_lines import claim_lines
    from ..record import claim_record, to_text

    check_levels(verbose=verbose, quiet=quiet)
    task = task_of(weaken=weaken, **choices)
    check_canaries(task, trace=trace, plot=plot)
    with own_process():
        prepared = task.prepare()
        if shrink:
            check_shrink(prepared)
        warn_of_few(prepared)
        where = Execution(jobs or cores(), progress=True, cluster=cluster_of(workers, scheduler))
        result = prepared.audit(where, shrink=shrink is not False)
        own_and_false = ":" in task.target and result.verdict.value == "FALSIFIED"
        record = claim_record(prepared, result, with_trace=trace or own_and_false)
        write_plot(plot, record)
        if shrink:
            from ...audit.plans.shrink import shrink_task

            record = with_shrunk(record, lambda: shrink_task(task, result))
    for line in () if as_json else missing_words(record):
        say(f"overclaim: {line}", err=True)
    lines = to_text(record) if as_json else claim_lines(record, quiet=quiet, verbose=verbose)
    say(lines, nl=not as_json, styled=not as_json)
    return status_of({"claims": [record]}).code


@main.command()
@click.argument("plan_file", metavar="[PLAN.toml]", type=FILE, default=PLAN)
@command
def init(plan_file: Path) -> None:
    """Write a commented plan to start from."""
    from ...audit.plans.plan_schema import example
    from ..record import write_atomically

    if exists(plan_file, "cannot write"):
        raise hinted(ValueError(f"{str(plan_file)!r} is there already"), "remove it, or name another file")
    write_atomically(plan_file, example(plan_file.name))
    say(f"wrote {plan_file}; audit it by: {shlex.join(['overclaim', 'run', str(plan_file)])}")


@main.command()
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=FILE)
@click.option("--out", type=FILE, default=Path("out"), help="Folder of the record and the report [default: out]")
@WHERE
@click.option("--catalogue", is_flag=True, help="Test the claims of papers, in place of a plan's")
@click.option("--libraries", is_flag=True, help="Test the claims of libraries, in place of a plan's")
@option("seed", default=None, help="Of --catalogue and --libraries [default: 0]")
@click.option(
    "--blind-spots/--no-blind-spots",
    default=True,
    help="Do not measure the power of audits whose claim survives",
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted run of this plan in this folder")
@click.option("--restart", is_flag=True, help="Remove what an interrupted run has left in this folder")
@click.option("--baseline", "baseline_file", type=FILE, help="Compare with this accepted record")
@LEVELS
@JSON
@playing_command
def run(
    plan_file: Path | None,
    out: Path,
    jobs: int | None,
    workers: str,
    scheduler: str | None,
    catalogue: bool,
    libraries: bool,
    seed: int | None,
    blind_spots: bool,
    resume: bool,
    restart: bool,
    baseline_file: Path | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Test every claim of a plan, by default ./overclaim.toml; or of the catalogue, or of the libraries.

    It writes record.json and report.html, and keeps what an interrupted run has finished in the same folder.

    Exit codes: 0 all as expected; 1 an unexpected verdict, an output without noise, a violated bound on regret, or a
    claim that is not as it was accepted; 3 an audit that is UNDERPOWERED, or a bound on regret that is undecided; 4 a
    target crashed.
    """
    from ...audit.execution.workers import cores
    from ...audit.plans.lock import owned
    from ..baseline import read_baseline
    from ..formats.html import render
    from ..formats.run_lines import run_lines
    from ..record import to_text, write_atomically

    check_levels(verbose=verbose, quiet=quiet)
    if resume and restart:
        raise exclude("--resume", "--restart", "one goes on with an interrupted run, the other removes it")
    base = None if baseline_file is None else read_baseline(baseline_file)
    _check_source(plan_file, catalogue=catalogue, libraries=libraries, seed=seed)
    plan_file = _plan_file(plan_file, built_in=catalogue or libraries)
    plan = _plan(plan_file, seed, libraries=libraries, blind_spots=blind_spots)
    gate = None if base is None else _gate(baseline_file, base, plan)
    plan = plan if gate is None else gate.fresh(plan)
    check_folder(out, *REPORTS, read={"the plan": plan_file, "--baseline": baseline_file}, ignored=True)
    folder = out.absolute()  # a target may leave the current one
    with owned(out):
        ledger, record = audited(plan, out, resume, restart, jobs, cluster_of(workers, scheduler))
        with resumable(ledger):
            if gate is not None:
                gate.compare(record, plan, jobs=jobs)
            record["status"] = status_of(record).name
            write_atomically(folder / "record.json", to_text(record))
            write_atomically(folder / "report.html", render(record, jobs=jobs or cores()))
        ledger.remove()
    files = f"Report: {out / 'report.html'}   Record: {out / 'record.json'}"
    if as_json:
        say(to_text(record), nl=False)
    else:
        say(run_lines(record, files=files, verbose=verbose, quiet=quiet), styled=True)
    return status_of(record).code


def _gate(baseline_file: Path | None, base: RunRecord, plan: Plan) -> Gate:
    """Return the comparison with a baseline: what it loads is loaded where there is one."""
    from .comparing import Gate

    assert baseline_file is not None
    return Gate.of(baseline_file, base, plan)


def _check_source(plan_file: Path | None, *, catalogue: bool, libraries: bool, seed: int | None) -> None:
    """Raise ValueError for several sources of claims, or a seed for a plan, which has its own."""
    sources = {"--catalogue": catalogue, "--libraries": libraries, "--seed": seed is not None}
    names = [name for name, on in sources.items() if on]
    if plan_file is not None and names:
        raise exclude(" and ".join(names), "a plan", "a plan has its own seed and claims")
    if catalogue and libraries:
        raise exclude("--catalogue", "--libraries")
    if names == ["--seed"]:
        raise hinted(ValueError("--seed is for --catalogue and --libraries"), "a plan has its own seed")


def _plan_file(plan_file: Path | None, *, built_in: bool) -> Path | None:
    """Return the plan that is named, or the one that lies here; None where our own claims are asked for."""
    if plan_file is not None or built_in:
        return plan_file
    if not exists(PLAN, "cannot read the plan"):
        error = ValueError(f"no plan is named, and there is no {PLAN} here")
        raise hinted(error, "overclaim init writes one", "overclaim run --catalogue audits the claims of papers")
    say(f"overclaim: this audits {PLAN}, which lies here", err=True)
    return PLAN


def _plan(plan_file: Path | None, seed: int | None, *, libraries: bool, blind_spots: bool) -> Plan:
    from ...audit.plans.plan import libraries_plan, literature, read_plan

    make = libraries_plan if libraries else literature
    plan = make(seed or 0) if plan_file is None else read_plan(plan_file)
    return plan if blind_spots else plan.without_blind_spots()


main.add_command(accept)


@main.command()
@click.argument("record_file", metavar="RECORD.json", type=FILE)
@options(*(click.option(f"--{name}", type=FILE, help=text) for name, text in FORMATS.items()))
@command
def report(record_file: Path, **files: Path | None) -> None:
    """Write reports from a record alone."""
    from importlib import import_module

    from ...audit.execution.progress import begin
    from ..consistency import check_consistent
    from ..record import read_record, write_atomically

    if not any(files.values()):
        *first, last = (f"--{name}" for name in FORMATS)
        raise hinted(ValueError("no file to write is named"), f"give {', '.join(first)} or {last} FILE")
    paths = {f"--{name}": path for name, path in files.items() if path is not None}
    check_distinct({"the record": record_file, **paths})
    begin()
    record = read_record(record_file)
    check_consistent(record, str(record_file))
    for name, path in files.items():
        if path is not None:
            write_atomically(path, import_module(f"..formats.{name}", __package__).render(record))
            say(f"wrote {path}")


main.add_command(power)
main.add_command(exact)
main.add_command(account)
main.add_command(register)
main.add_command(regret)
main.add_command(scores)


@main.command()
@several("seed", "jobs")
@JSON
@command
def selftest(seed: int, jobs: int | None, as_json: bool) -> int:
    """Plant known faults in overclaim's own learners and mechanisms; show that each is found, and nothing sound is.

    Exit codes: 0 every fault was found without a false alarm; 1 otherwise.
    """
    from ...audit.execution.execution import Execution
    from ...audit.execution.workers import cores
    from ...audit.plans.selftest import selftest as plant
    from .selftest_words import summary, table_of

    findings = plant(Execution(jobs or cores(), progress=True), seed=seed)
    if as_json:
        say(json_text({**summary(findings), "findings": [asdict(finding) for finding in findings]}, indent=1))
    else:
        say(table_of(findings), styled=True)
    return OK if all(finding.good for finding in findings) else FALSIFIED


main.add_command(trace)
