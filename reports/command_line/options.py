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
from .help_pages import Grouped


class Kind(click.ParamType):  # type: ignore[type-arg]
    """What the kinds of values here share: newer versions of click ask for a type argument, older ones take none."""


class Parameter(Kind):
    """A `NAME=VALUE` option."""

    name = "NAME=VALUE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first equals sign."""
        name, sign, text = value.partition("=")
        if not sign or not name:
            self.fail(f"must be NAME=VALUE, got {value!r}", param, ctx)
        try:
            value.encode()
        except UnicodeEncodeError as error:
            self.fail(f"must be text, got {value!r}: {error}", param, ctx)
        return name, text


class Names(Kind):
    """A word, or names with commas between them."""

    name = "NAME[,NAME]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Split at the commas; `fitted` and `all` are words."""
        return value if value in ("fitted", "all") else value.split(",")


class Rdp(Kind):
    """An `ORDER:EPSILON` option."""

    name = "ORDER:EPSILON"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Split at the colon."""
        order, _, epsilon = str(value).partition(":")
        try:
            return float(order), float(epsilon)
        except ValueError:
            self.fail(f"must be ORDER:EPSILON, as in 8:1.5, got {value!r}", param, ctx)


class Power(Kind):
    """The factor that a power test has to catch, or off."""

    name = "FACTOR"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Read the number."""
        from ...audit.plans.options import OFF, OPTIONS, fits

        with suppress(ValueError):
            number = OFF if value == OFF else float(str(value))
            if fits(number, OPTIONS["power"].schema) and number != math.inf:
                return number
        self.fail(f"must be a factor of at least 1.1, or off, got {value!r}", param, ctx)


class Configuration(Kind):
    """Values of a configuration, `NAME=VALUE` with commas between them."""

    name = "NAME=VALUE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Split at the commas, and at the equals signs."""
        from ...mechanisms.dp_sgd import read_configuration

        try:
            return read_configuration(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class RelationName(Kind):
    """A neighbour relation by its words, or a function that says which inputs are neighbours."""

    name = "NAME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the words."""
        from ...mechanisms.relations import Relation, RelationError

        text = str(value)
        if ".py:" not in text:
            try:
                Relation.parse(text)
            except RelationError as error:
                self.fail(str(error), param, ctx)
        return text


class Json(Kind):
    """A value written as JSON, or a file that holds it: .json, .npy or .csv."""

    name = "JSON|FILE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Read the text."""
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
            self.fail(f"must be JSON, as in '[0, 1]', got {value!r}: {error}", param, ctx)


class File(Kind):
    """A path."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Take any text but what no system has a file for."""
        if "\0" in str(value) or not str(value):
            self.fail(f"must be the name of a file, got {str(value)!r}", param, ctx)
        return Path(value)


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


FILE = File()
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
    "json": lambda _: {"type": Json()},
    "input": lambda _: {"type": Json(), "default": ...},
    "names": lambda _: {"type": Names()},
    "rdp": lambda _: {"type": Rdp()},
    "dp_sgd": lambda _: {"type": Configuration()},
    "relation": lambda _: {"type": RelationName()},
    "setting": lambda _: {"multiple": True, "type": Parameter(), "callback": _set_once},
    "power": lambda _: {"type": Power()},
    "weaken": lambda _: {"type": click.UNPROCESSED, "is_flag": False, "flag_value": True},
}


def option(name: str, **changes: Any) -> Callable[..., Any]:
    """Return the click option of a name in the table, with another help text or default where a command says so."""
    said = replace(OPTIONS[name], **changes)
    word = name.replace("_", "-")
    flags = f"--{word}/--no-{word}" if said.kind == "switch" else f"--{word}"
    shown = {} if said.default is None else {"default": said.default, "show_default": True}
    more = {"help": said.help or None, "metavar": said.metavar}
    letters = [f"-{said.short}"] if said.short else []
    also = ["--neighbors"] if name == "neighbours" else []  # the page shows the first name alone
    place = {"cls": Grouped, "group": said.group, "rare": said.rare}
    return click.option(*letters, flags, *also, said.key, **{**KINDS[said.kind](said), **shown, **more, **place})


def several(*names: str) -> Callable[..., Any]:
    """Return the click options of several names in the table."""
    return options(*map(option, names))


SETTING = several("arms", "losses", "set")
GAME = options(option("rounds"), SETTING)
NEIGHBOURS = option("neighbours")
CALLED = several("os_random", "global_random", "attributes")
INPUTS = options(several("left", "right", "inputs", "bits", "call_limit", "raising", "score"), CALLED)
SURFACE = options(option("surface"), NEIGHBOURS)
CLAIMED = several("epsilon", "delta")
MEASURE = several("gdp", "zcdp", "rdp", "profile", "dp_sgd")
LEVELS = several("verbose", "quiet")
JSON = option("json")
ROWS = option("json", help="Print one JSON array")
WHERE = several("jobs", "engine", "scheduler")


def check_levels(*, verbose: bool = False, quiet: bool = False) -> None:
    """Raise ValueError where a command is asked for both more and less than its usual lines."""
    if verbose and quiet:
        raise exclude("-v", "-q", "one adds lines, the other leaves line 1 alone")
