"""The options that commands of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class Kind(click.ParamType):  # type: ignore[type-arg]
    """What the kinds of values here share: newer versions of click ask for a type argument, older ones take none."""


class Parameter(Kind):
    """A `NAME=VALUE` option."""

    name = "NAME=VALUE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first equals sign."""
        name, sign, text = value.partition("=")
        if not sign or not name:
            self.fail(f"expected NAME=VALUE, got {value!r}", param, ctx)
        try:
            value.encode()
        except UnicodeEncodeError as error:
            self.fail(f"expected text, got {value!r}: {error}", param, ctx)
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
            self.fail(f"expected ORDER:EPSILON, as in 8:1.5, got {value!r}", param, ctx)


#: The neighbour relations by name: of rounds, and of the records of a mechanism's input.
RELATIONS = ("replace", "zero-out", "add-remove", "substitute-feature", "user", "replace-losses", "user-losses")


class RelationName(Kind):
    """A neighbour relation by its name."""

    name = "NAME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        if value not in RELATIONS:
            from ...mechanisms.claim import user_rounds

            if user_rounds(value) is None:
                known = ", ".join(RELATIONS)
                self.fail(f"expected one of {known}, or user:3 with the rounds of a user, got {value!r}", param, ctx)
        return str(value)


class Json(Kind):
    """A value written as JSON, or a file that holds it: .json, .npy or .csv."""

    name = "JSON|FILE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Read the text."""
        from ...audit.inputs.files import InputFile, names_a_file
        from ...audit.inputs.json_text import parse_json

        if not isinstance(value, str):
            return value
        if names_a_file(value):
            return InputFile(Path(value))
        try:
            data = parse_json(value)
            json.dumps(data, ensure_ascii=False).encode()  # half of a character is none
            return data
        except (ValueError, RecursionError) as error:
            self.fail(f"expected JSON, as in '[0, 1]', got {value!r}: {error}", param, ctx)


class File(Kind):
    """A path."""

    name = "path"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Take any text but what no system has a file for."""
        if "\0" in str(value) or not str(value):
            self.fail(f"expected the name of a file, got {str(value)!r}", param, ctx)
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
        raise click.BadParameter(f"{twice} is given twice", ctx, param)
    return values


FILE = File()
SETTING = options(
    click.option("--arms", type=int, help="Arms, experts or coordinates.  [default: the target's own, or 2]"),
    click.option(
        "--losses",
        help="Loss set: unit, symmetric, l1-ball, l2-ball, lipschitz.  [default: the target's own, or unit]",
    ),
    click.option(
        "--set", "parameters", multiple=True, type=Parameter(), callback=_set_once, help="A parameter; repeatable."
    ),
)
GAME = options(
    click.option("--rounds", type=int, help="Horizon T.  [default: the target's own, or 8]"),
    SETTING,
)
NEIGHBOURS = click.option(
    "--neighbours",
    type=RelationName(),
    metavar="RELATION",
    help=f"{', '.join(RELATIONS)} or user:ROUNDS. All but the first two are for --inputs, or a learner's --left and "
    "--right; by user:3 a user has at most 3 rounds.  [default: replace]",
)
CALLED = options(
    click.option(
        "--os-random",
        is_flag=True,
        help="The mechanism's randomness cannot be seeded: nothing is played twice, no counts are replayed.",
    ),
    click.option(
        "--attributes",
        type=Names(),
        metavar="fitted|all|NAME[,NAME]",
        help="Of an object that the mechanism returns, such as a fitted model: what is the output.",
    ),
)
INPUTS = options(
    click.option(
        "--left", type=Json(), default=..., help="The left world: a mechanism's input, or a learner's rounds."
    ),
    click.option("--right", type=Json(), default=..., help="The right world."),
    click.option(
        "--inputs",
        "input_schema",
        type=Json(),
        help="A JSON Schema of inputs or rounds: neighbours are searched, and what falsifies is shrunk.",
    ),
    click.option("--bits", is_flag=True, help="Let the attack read the low-order bits of a mechanism's outputs."),
    click.option(
        "--call-limit",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Leave out inputs on which a call takes more processor time, while they are searched.",
    ),
    CALLED,
)
SURFACE = options(
    click.option(
        "--surface",
        type=click.Choice(["actions", "release", "publication"]),
        help="What is seen.  [default: actions, or what a catalogue name alone shows]",
    ),
    NEIGHBOURS,
)
EPSILON = (
    "Claimed epsilon, in nats. It also sets the noise of a catalogue target that has an epsilon, unless --set epsilon "
    "does, or it is 0.  [default: the target's own]"
)
DELTA = (
    "Claimed delta. It also sets the noise of a catalogue learner that has a delta, unless --set delta does.  "
    "[default: the catalogue's, or 0]"
)
CLAIMED = options(
    click.option("--epsilon", type=float, help=EPSILON),
    click.option("--delta", type=float, help=DELTA),
)
MEASURE = options(
    click.option("--gdp", type=float, metavar="MU", help="Claimed mu of Gaussian DP, in place of an epsilon."),
    click.option("--zcdp", type=float, metavar="RHO", help="Claimed rho of zero-concentrated DP."),
    click.option("--rdp", type=Rdp(), help="Claimed Renyi DP of one order."),
    click.option("--profile", type=FILE, metavar="FILE", help="Claimed points, JSON: a list of [epsilon, delta]."),
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and nothing else, to stdout.")
ROWS = click.option("--json", "as_json", is_flag=True, help="Print one JSON array, and nothing else, to stdout.")
JOBS = click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: all processors]")
WHERE = options(
    JOBS,
    click.option(
        "--engine",
        "workers",
        type=click.Choice(["local", "dask"]),
        default="local",
        show_default=True,
        help="Where runs are certified: here, or on the workers of a dask scheduler.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Of --engine dask: tcp://HOST:PORT."),
)
CONFIDENCE = click.option("--confidence", type=float, default=0.99, show_default=True, help="1 - alpha.")
#: Of `play.execution.LARGEST`, which takes NumPy to load.
SEEDS = click.IntRange(0, 2**53 - 1)
SEED = click.option("--seed", type=SEEDS, default=0, show_default=True)


def stop_option(decided: str) -> Callable[..., Any]:
    """Return the option that says when to end; `decided` says what ends it early."""
    return click.option(
        "--stop",
        type=click.Choice(["budget", "early"]),
        default="budget",
        show_default=True,
        help=f"When to end: after all runs, or as soon as {decided} (anytime-valid).",
    )


STOP = stop_option("the claim is falsified")
FAST = click.option("--fast", is_flag=True, help="Play on compiled kernels: pip install 'overclaim[fast]'.")
WEAKEN = click.option(
    "--weaken",
    metavar="[NAME]",
    type=click.UNPROCESSED,
    is_flag=False,
    flag_value=True,
    help="Measure the blind spot of a claim that survives: what is caught with the noise divided by up to 100. "
    "NAME is the parameter that sets the noise of a target of your own, multiplied by the factor; 1/NAME is divided.",
)
SHRINK = click.option(
    "--shrink/--no-shrink",
    default=None,
    help="Shrink a falsified claim's witness: about twice the time.  [default: with --inputs]",
)
TRACE = click.option(
    "--trace",
    is_flag=True,
    help="Replay runs with their noise frozen: a bound from above, leaks around it, the cause.",
)
PAIR = click.option("--pair", "pair_file", type=FILE, help="JSON: left and right losses; a file or the text.")
