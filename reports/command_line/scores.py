"""`overclaim scores`: test a claim about a training by the scores of its canaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...audit.plans.paths import check_distinct, check_output
from ...errors import hinted
from ..status import status_of
from .console import Once, command, own_process, say
from .options import FILE, JSON, LEVELS, MEASURE, check_levels, option, several

if TYPE_CHECKING:
    from ...audit.record_types import ClaimRecord


@click.command(cls=Once)
@click.argument("scores", metavar="[FILE]", required=False, type=FILE)
@several("inserted", "held_out", "design")
@option("epsilon", help="Claimed epsilon")
@option("delta", help="Claimed delta [default: 0]")
@MEASURE
@several("seed", "confidence")
@option("plot")
@LEVELS
@JSON
@command
def scores(
    scores: Path | None,
    inserted: Path | None,
    held_out: Path | None,
    plot: Path | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    **choices: Any,
) -> int:
    """Test a claim by an attack's scores of the canaries of a training.

    FILE has the columns score and included (0 or 1), and training where there were several; .csv, .tsv, .npy, .npz or
    .json. A higher score means included. Scores of independent trainings may be in two files, --inserted and
    --held-out.

    --design one-run: the canaries shared a training, and a fair coin of its own decided on each. --design independent:
    each score comes from a training of its own. There is no default, because scores that shared a training depend on
    each other.
    """
    from ...audit.execution.execution import Budget
    from ...audit.execution.progress import stage
    from ...audit.plans.request import named_files
    from ...audit.plans.tasks import Task
    from ..formats.claim_lines import claim_lines
    from ..record import claim_record, to_text
    from .claimed import claimed_measure

    check_levels(verbose=verbose, quiet=quiet)
    files = {"scores": scores, "inserted": inserted, "held_out": held_out}
    paths: dict[str, Any] = {name: str(file) for name, file in files.items() if file is not None}
    if not paths:
        raise hinted(ValueError("the scores are missing"), "give a FILE of scores, or --inserted and --held-out")
    check_plot(plot, files)
    budget = Budget(**{name: choices.pop(name) for name in ("seed", "confidence")})
    measure = claimed_measure(choices)
    task = Task(target=named_files(*files.values()), **paths, **choices, measure=measure, budget=budget)
    with own_process():
        prepared = task.prepare()
        with stage("comparing scores"):
            record = claim_record(prepared, prepared.audit())
        write_plot(plot, record)
    lines = to_text(record) if as_json else claim_lines(record, quiet=quiet, verbose=verbose)
    say(lines, nl=not as_json, styled=not as_json)
    return status_of({"claims": [record]}).code


def write_plot(plot: Path | None, record: ClaimRecord) -> None:
    """Write the ROC curve of a claim's scores, where that is asked for."""
    if plot is not None:
        from ..formats.roc import plot as drawn
        from ..record import write_atomically

        write_atomically(plot, drawn(record))


def check_plot(plot: Path | None, files: Mapping[str, Path | None]) -> None:
    """Raise ValueError where a picture cannot be written: before hours of work."""
    if plot is None:
        return
    if plot.suffix.lower() != ".svg":
        raise ValueError(f"--plot must name a file that ends with .svg, got {str(plot)!r}")
    check_output(plot)
    for name, file in files.items():
        if file is not None:
            check_distinct({"--plot": plot, name: file})
