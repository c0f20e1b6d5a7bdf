"""`overclaim trace`: the noisy calls of one run in both worlds."""

from __future__ import annotations

from typing import Any

import click

from ..sanitise import json_text
from ..status import FALSIFIED, OK, UNDERPOWERED
from .console import Once, own_process, playing_command, say
from .options import CALLS, CLAIMED, GAME, JSON, LEVELS, MEASURE, SURFACE, check_levels, option, several
from .task_options import task_of


@click.command(cls=Once)
@click.argument("target")
@CLAIMED
@MEASURE
@GAME
@SURFACE
@option("pair")
@several("left", "right", "inputs")
@CALLS
@option("seed")
@LEVELS
@JSON
@playing_command
def trace(target: str, verbose: bool, quiet: bool, as_json: bool, **choices: Any) -> int:
    """Show where TARGET adds noise, and the epsilon that it costs.

    A run on the left input is paired with a run on the right input, with the same random numbers. Without inputs,
    TARGET is traced on the standard pairs, or on pairs by a schema: the first with a bypass, or the costliest.

    Exit codes: 0 BOUNDED by the claim; 1 BYPASS, an output depends on the inputs without noise; 3 BOUNDED by more,
    NOT BOUNDED (another run may cost more, or the trace has lost track) or NOT TRACED (no noise is watched).
    """
    from ...audit.plans.tracing import trace_task
    from ..formats.trace_table import trace_lines

    check_levels(verbose=verbose, quiet=quiet)
    task = task_of(target=target, **choices)
    with own_process():
        summary = trace_task(task)
    lines = json_text(summary, indent=1) if as_json else trace_lines(summary, quiet=quiet, verbose=verbose)
    say(lines, styled=not as_json)
    if summary["trace_result"] == "BYPASS":
        return FALSIFIED
    return OK if summary["within_claim"] else UNDERPOWERED
