"""`overclaim trace`: the noisy calls of one run in both worlds."""

from __future__ import annotations

from typing import Any

import click

from ..sanitise import json_text
from .console import FALSIFIED, OK, Once, own_process, playing_command, say
from .options import CALLED, CLAIMED, GAME, JSON, PAIR, SEED, SURFACE, Json
from .task_options import task_of


@click.command(cls=Once)
@click.argument("target")
@CLAIMED
@GAME
@SURFACE
@PAIR
@click.option("--left", type=Json(), default=..., help="A mechanism's input in the left world.")
@click.option("--right", type=Json(), default=..., help="Its input in the right world.")
@CALLED
@SEED
@JSON
@playing_command
def trace(target: str, as_json: bool, **choices: Any) -> int:
    """Print the noisy calls of one run of TARGET in both worlds, and what leaks around them or bounds them.

    A run in the left world is replayed in the right one with every noisy output frozen and all other randomness the
    same. Without a pair it is that of the standard ones which leaks, or costs the most.

    Exits 1 if something leaks around the noise: a fact about the two runs, no verdict on the claim. 2 for bad input
    and for a target whose noise is not watched, 4 if it crashed.
    """
    from ...audit.plans.tracing import trace_task
    from ..formats.trace_table import trace_lines

    task = task_of(target=target, **choices)
    with own_process():
        summary = trace_task(task)
    say(json_text(summary, indent=1) if as_json else trace_lines(summary), styled=not as_json)
    return FALSIFIED if summary["leak"] else OK
