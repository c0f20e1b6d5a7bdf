"""The options that commands of the command line share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ...audit.plans.options import OPTIONS, Option
from ...errors import exclude
from ...mechanisms.measures.kinds import KINDS as MEASURES
from .help_pages import Grouped


class Reader(click.ParamType):  # type: ignore[type-arg]
    """A value that a function reads: its ValueError says what is wrong.

    Newer versions of click ask for a type argument, older ones take none.
    """

    def __init__(self, name: str, read: Callable[[Any], object]) -> None:
        self.name, self.read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Read the value."""
        try:
            return self.read(value)
        except (ValueError, RecursionError) as error:
            self.fail(str(error), param, ctx)


def _read_parameter(value: str) -> tuple[str, str]:
    """Split at the first equals sign."""
    name, sign, text = value.partition("=")
    if not sign or not name:
        raise ValueError(f"must be NAME=VALUE, got {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"must be text, got {value!r}: {error}") from None
    return name, text


def _read_rdp(value: object) -> tuple[float, float]:
    """Split at the colon."""
    order, _, epsilon = str(value).partition(":")
    try:
        return float(order), float(epsilon)
    except ValueError:
        raise ValueError(f"must be ORDER:EPSILON, as in 8:1.5, got {value!r}") from None


def _read_power(value: object) -> float | str:
    from ...audit.plans.options import OFF, fits

    with suppress(ValueError):
        number = OFF if value == OFF else float(str(value))
        if fits(number, OPTIONS["power"].schema) and number != math.inf:
            return number
    raise ValueError(f"must be a factor of at least 1.1, or off, got {value!r}")


def _read_configuration(value: object) -> object:
    from ...mechanisms.dp_sgd import read_configuration

    return read_configuration(value) if isinstance(value, str) else value


def _read_relation(value: object) -> str:
    """Check the words of a relation, where it is no function that says which inputs are neighbours."""
    from ...mechanisms.relations import Relation

    text = str(value)
    if ".py:" not in text:
        Relation.parse(text)
    return text


def _read_json(value: object) -> object:
    """Read JSON, or name a file that holds it: .json, .npy or .csv."""
    from ...audit.play.json_text import parse_json
    from ...audit.spaces.files import InputFile, names_a_file

    if not isinstance(value, str):
        return value
    if names_a_file(value):
        return InputFile(Path(value))
    try:
        data = parse_json(value)
        json.dumps(data, ensure_ascii=False).encode()  # half of a character is none
        return data
    except (ValueError, RecursionError) as error:
        raise ValueError(f"must be JSON, as in '[0, 1]', got {value!r}: {error}") from None


def _read_path(value: object) -> Path:
    """Take any text but what no system has a file for."""
    if "\0" in str(value) or not str(value):
        raise ValueError(f"must be the name of a file, got {str(value)!r}")
    return Path(str(value))


def options(*decorators: Callable[..., object]) -> Callable[..., Any]:
    """Join several options into one decorator, first on top of the help."""

    def apply(function: Callable[..., object]) -> Callable[..., object]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def _set_once(
    ctx: click.Context, param: click.Parameter, values: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    names = [name for name, _ in values]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.BadParameter(f"gives {twice} twice", ctx, param)
    return values


def _range(option: Option) -> click.IntRange | click.FloatRange:
    """Return the type of a number between the bounds of an option's schema."""
    schema = option.schema
    if schema["type"] == "integer":
        return click.IntRange(schema["minimum"], schema.get("maximum"))
    return click.FloatRange(schema["exclusiveMinimum"], min_open=True)


FILE = Reader("path", _read_path)
JSON_OR_FILE = Reader("JSON|FILE", _read_json)
#: How each kind of the table of options is read, as click has it.
KINDS: dict[str, Callable[[Option], dict[str, Any]]] = {
    "text": lambda _: {},
    "int": lambda _: {"type": int},
    "float": lambda _: {"type": float},
    "range": lambda option: {"type": _range(option)},
    "choice": lambda option: {"type": click.Choice(option.schema["enum"])},
    "flag": lambda _: {"is_flag": True},
    "switch": lambda _: {"default": None},
    "file": lambda _: {"type": FILE},
    "json": lambda _: {"type": JSON_OR_FILE},
    "input": lambda _: {"type": JSON_OR_FILE, "default": ...},
    # Words, or names with commas between them.
    "names": lambda _: {"type": Reader("NAME[,NAME]", lambda v: v if v in ("fitted", "all") else v.split(","))},
    "rdp": lambda _: {"type": Reader("ORDER:EPSILON", _read_rdp)},
    "dp_sgd": lambda _: {"type": Reader("NAME=VALUE", _read_configuration)},
    "relation": lambda _: {"type": Reader("NAME", _read_relation)},
    "setting": lambda _: {"multiple": True, "type": Reader("NAME=VALUE", _read_parameter), "callback": _set_once},
    "power": lambda _: {"type": Reader("FACTOR", _read_power)},
    "weaken": lambda _: {"type": click.UNPROCESSED, "is_flag": False, "flag_value": True},
}


def option(name: str, **changes: Any) -> Callable[..., Any]:
    """Return the click option of a name in the table, with another help text or default where a command says so."""
    row = replace(OPTIONS[name], **changes)
    word = name.replace("_", "-")
    flags = f"--{word}/--no-{word}" if row.kind == "switch" else f"--{word}"
    value = {} if row.default is None else {"default": row.default, "show_default": True}
    text = {"help": row.help or None, "metavar": row.metavar}
    letters = [f"-{row.short}"] if row.short else []
    alias = ["--neighbors"] if name == "neighbours" else []  # the page shows the first name alone
    place = {"cls": Grouped, "group": row.group, "rare": row.rare}
    return click.option(*letters, flags, *alias, row.key, **{**KINDS[row.kind](row), **value, **text, **place})


def several(*names: str) -> Callable[..., Any]:
    """Return the click options of several names in the table."""
    return options(*map(option, names))


SETTING = several("arms", "losses", "set")
GAME = options(option("rounds"), SETTING)
NEIGHBOURS = option("neighbours")
CALLS = several("os_random", "global_random", "reseed", "attributes", "python", "stub")
INPUTS = options(several("left", "right", "inputs", "bits", "call_limit", "raising", "score"), CALLS)
SURFACE = options(option("surface"), NEIGHBOURS)
CLAIMED = several("epsilon", "delta")
MEASURE = several(*MEASURES, "dp_sgd")
LEVELS = several("verbose", "quiet")
JSON = option("json")
ROWS = option("json", help="Print one JSON array")
WHERE = several("jobs", "engine", "scheduler")


def check_levels(*, verbose: bool = False, quiet: bool = False) -> None:
    """Raise ValueError where a command is asked for both more and less than its usual lines."""
    if verbose and quiet:
        raise exclude("-v", "-q", "one adds lines, the other leaves line 1 alone")
