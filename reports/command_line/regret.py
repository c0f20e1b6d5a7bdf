"""`overclaim regret`: a learner's regret on adversarial losses, beside what is printed about it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import click

from ...errors import exclude
from ..sanitise import json_text
from ..status import FALSIFIED, OK
from .console import Once, own_process, playing_command, say
from .options import JSON, JSON_OR_FILE, LEVELS, SETTING, check_levels, option, several

SEARCH = click.option(
    "--search", is_flag=True, help="Search for worse losses first, and play adaptive adversaries too"
)
SEQUENCE = click.option(
    "--sequence", type=JSON_OR_FILE, help="Losses in blocks, a list of [ROUNDS, LOSS], in place of the listed ones"
)


@click.command(cls=Once)
@click.argument("target")
@option("rounds", help="Horizon T [default: that of --sequence, or 1024]")
@SETTING
@option("runs", default=2000, help="Runs for each sequence of losses")
@several("seed", "confidence")
@option("stop", help="Stop as soon as the bound is decided")
@SEARCH
@SEQUENCE
@option("jobs")
@LEVELS
@JSON
@playing_command
def regret(
    target: str,
    rounds: int | None,
    arms: int | None,
    losses: str | None,
    parameters: tuple[tuple[str, str], ...],
    search: bool,
    sequence: object,
    jobs: int | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    **budget: Any,
) -> int:
    """Measure the regret of the learner TARGET on adversarial losses, and test its bound and its growth.

    With --search and -v, the losses that were found come with the command that plays them again.

    Exit codes: 0; 1 if a bound or a rate of growth is violated.
    """
    from ...audit.execution.execution import Budget, Execution
    from ...audit.execution.workers import cores
    from ...audit.plans.regret_tasks import regret_setting
    from ...audit.regret.block_sequences import BlockSequence
    from ...audit.regret.regret_audit import RegretRequest, audit_regret
    from ..formats.regret_lines import regret_lines

    check_levels(verbose=verbose, quiet=quiet)
    blocks = BlockSequence.from_json(getattr(sequence, "data", sequence)) if sequence is not None else None
    if blocks is not None and search:
        raise exclude("--search", "--sequence")
    with own_process():
        if rounds is None and blocks is not None:
            rounds = blocks.rounds
        entry, setting, values = regret_setting(target, rounds, arms, losses, dict(parameters))
        sequences = None if blocks is None else (lambda rounds: {"given": blocks.at(rounds)})
        audit = audit_regret(
            RegretRequest(entry, setting, parameters=values, sequences=sequences, search=search),
            Budget(**budget),
            Execution(jobs or cores(), progress=True),
        ).to_json()
    arguments = _words({"rounds": setting.rounds, "arms": arms, "losses": losses, **_unusual(budget)})
    arguments += [word for name, value in parameters for word in ("--set", f"{name}={value}")]
    arguments = ["overclaim", "regret", target, *arguments]
    played = [] if blocks is None else ["--sequence", json.dumps(blocks.to_json())]
    audit["command"] = shlex.join([*arguments, *(["--search"] if search else []), *played])
    if audit["found"]:
        audit["replay"] = shlex.join([*arguments, "--sequence", json.dumps(audit["found"])])
    lines = json_text(audit, indent=1) if as_json else regret_lines(target, audit, quiet=quiet, verbose=verbose)
    say(lines, styled=not as_json)
    return FALSIFIED if audit["verdict"] == "VIOLATED" else OK


def _words(options: Mapping[str, object]) -> list[str]:
    return [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]


def _unusual(budget: Mapping[str, object]) -> dict[str, object]:
    """Return a budget without a confidence and a stop that are those of every command."""
    from ...audit.execution.execution import Budget

    defaults = {"confidence": Budget.confidence, "stop": Budget.stop}
    return {name: value for name, value in budget.items() if value != defaults.get(name)}
