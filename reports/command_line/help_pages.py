"""The pages of `--help`: options in groups, one line each; those that are rarely used are on `--help-all` alone."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import click

from ...audit.plans.options import GROUPS, OPTIONS

#: Columns of the names of options and commands.
_NAMES = 22
#: The heading of options that are a command's own.
OTHER = "Options"
#: The commands, by what they are for.
COMMANDS = {
    "Test a claim": {
        "check": "Test one claim about a learner or a mechanism",
        "run": "Test all claims of a plan, or of the built-in catalogue",
        "scores": "Test a claim by the scores of a training's canaries",
    },
    "Understand a result": {
        "trace": "Show where noise is added and the epsilon that it costs",
        "exact": "Compute epsilon exactly for a small horizon",
        "power": "Show which violations a number of runs can detect",
        "account": "Compare a claimed epsilon with dp_accounting's for DP-SGD",
        "regret": "Measure the regret of a learner, and test its bound",
    },
    "Reports and CI": {
        "report": "Write HTML, Markdown, JUnit or SARIF from a record",
        "register": "Write a static site of audited claims from records",
        "accept": "Make a record the baseline of later runs",
    },
    "Set up": {
        "init": "Write a plan to start from",
        "list": "List the built-in learners, mechanisms and libraries",
        "selftest": "Check overclaim itself on planted faults",
    },
}
_MAIN = """\
Usage: {path} COMMAND [OPTIONS]

Test claims of differential privacy. overclaim runs your code many times on two neighbouring
inputs, lets an attack guess which input was used, and certifies a lower bound on epsilon from its guesses.

{commands}

Options: --version, -h/--help
TARGET is FILE.py:NAME, PACKAGE.MODULE:NAME or a name from `overclaim list`.
Exit codes: 0 survived, 1 falsified, 2 usage error, 3 underpowered, 4 target crashed.
"""


class Grouped(click.Option):
    """An option that belongs to a group of the page, and may be rare."""

    def __init__(self, *args: Any, group: str = OTHER, rare: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.group, self.rare = group, rare


def main_page(path: str) -> str:
    """Return the page of the program: its commands by what they are for."""
    parts = []
    for heading, commands in COMMANDS.items():
        rows = (f"  {name:<10}{purpose}" for name, purpose in commands.items())
        parts.append("\n".join([heading, *rows]))
    return _MAIN.format(path=path, commands="\n\n".join(parts))


def page(command: click.Command, ctx: click.Context, *, with_rare: bool) -> str:
    """Return a command's page, with every option or with those that are used often."""
    arguments = " ".join(param.make_metavar(ctx) for param in command.params if isinstance(param, click.Argument))
    usage = f"Usage: {ctx.command_path} {arguments} [OPTIONS]".replace("  ", " ")
    # Formatters of docstrings underline their headings.
    text = re.sub(r"^(Examples)\n-+$", r"\1:", inspect.cleandoc(command.help or ""), flags=re.MULTILINE)
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    options.sort(key=_place)
    visible = [param for param in options if with_rare or not getattr(param, "rare", False)]
    parts = [usage, text]
    for group in (OTHER, *GROUPS):
        rows = _rows([param for param in visible if getattr(param, "group", OTHER) == group], ctx)
        if rows:
            parts.append("\n".join([group, *rows]))
    last = [_row("-h, --help", "Show these options")]
    last += [_row("--help-all", "Show all options")] if len(visible) < len(options) else []
    return "\n\n".join([*parts, "\n".join(last)]) + "\n"


def _place(option: click.Option) -> int:
    """Return an option's place in the table; a command's own come last, as they are written."""
    keys = [entry.key for entry in OPTIONS.values()]
    return keys.index(str(option.name)) if option.name in keys else len(keys)


def _rows(options: Sequence[click.Option], ctx: click.Context) -> list[str]:
    """Return a line for each option; one without a text of its own stands beside the one before it."""
    rows: list[tuple[str, str]] = []
    for option in options:
        text = _text(option)
        if text or not rows:
            rows.append((_names(option, ctx), text))
        else:
            names, before = rows[-1]
            first, _, value = names.rpartition(" ")
            rows[-1] = f"{first}, {max(option.opts, key=len)} {value}", before
    return [_row(names, text) for names, text in rows]


def _row(names: str, text: str) -> str:
    return f"  {names:<{_NAMES - 1}} {text}".rstrip()


def _names(option: click.Option, ctx: click.Context) -> str:
    long = next(name for name in option.opts if name.startswith("--"))
    short = [name for name in option.opts if not name.startswith("--")]
    if option.secondary_opts:  # what is usual need not be asked for
        long = option.secondary_opts[0] if option.default else "/".join([long, *option.secondary_opts[:1]])
    names = ", ".join([*short, long])
    takes = not option.is_flag and not option.secondary_opts
    return f"{names} {option.make_metavar(ctx)}" if takes else names


def _text(option: click.Option) -> str:
    """Return an option's line, with its default where that is a number or a path."""
    text = option.help or ""
    default = option.default
    has_number = isinstance(default, int | float) and not isinstance(default, bool) and not option.is_flag
    return f"{text} [default: {default}]".strip() if has_number and "[default" not in text else text


def help_all_option() -> click.Option:
    """Return the option that shows all options."""

    def show(ctx: click.Context, _: click.Parameter, pressed: bool) -> None:
        if pressed:
            click.echo(page(ctx.command, ctx, with_rare=True), nl=False, color=ctx.color)
            ctx.exit()

    return click.Option(
        ["--help-all"], is_flag=True, expose_value=False, is_eager=True, hidden=True, callback=show, help="Show all"
    )
