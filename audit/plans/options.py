"""The table of options, from which command line, plan and pytest plugin derive theirs.

It imports the standard library alone, so that `--help` and pytest start at once. `tests/plans/test_options.py`
compares it with the signatures that are written out, and with the names that other rooms know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]

#: The largest number of runs, and seed.
LARGEST = 2**53 - 1
#: What a plan says of a claim whose audit catches too little to be called a test.
ALLOWED = "allowed"
#: The words of neighbour relations, as `mechanisms.relation` has them.
RELATIONS = (
    *("replace", "zero-out", "add-remove", "substitute-feature", "user", "replace-user", "zero-out-user"),
    *("replace-losses", "user-losses", "l1:D", "l2:D", "linf:D"),
)
#: How the scores of canaries came to be, as `statistics.canary_scores` has them.
DESIGNS = ("independent", "one-run")
LOSSES = ("unit", "symmetric", "l1-ball", "l2-ball", "lipschitz")
SURFACES = ("actions", "release", "publication", "joint", "reports", "model")
STOPS = ("budget", "early")
EXPECTATIONS = ("falsified", "survived")
RAISING = ("error", "outcome")

#: Where a plan has an option: in each claim, at its top, or nowhere.
IN_CLAIM, AT_TOP, NOWHERE = "claim", "top", ""

_ANY: Schema = {}
_FLAG: Schema = {"type": "boolean"}
_TEXT: Schema = {"type": "string"}
_NAME: Schema = {"type": "string", "minLength": 1}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_RUNS: Schema = {"type": "integer", "minimum": 20}
_POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
_PROBABILITY: Schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_SEED: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}
_REGRET: Schema = {
    "type": "object",
    "required": ["bound"],
    "additionalProperties": False,
    "properties": {
        "bound": {"type": "number", "minimum": 0},
        "horizon": _COUNT,
        "runs": _RUNS,
        "stop": {"enum": list(STOPS)},
    },
}


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name : str
        In Python and in plans; the command line writes it with hyphens.
    schema : dict
        Of its value, as JSON.
    kind : str
        How the command line reads it (`KINDS` in `command_line/options.py`); empty if no command has it.
    help : str
        One line of `--help`.
    metavar : str
        What stands for the value in `--help`, if not what its kind says.
    default : object
        Shown in `--help`; None if nothing said is something else than every value.
    plan : str
        `IN_CLAIM`, `AT_TOP` or `NOWHERE`.
    field : str
        Of a `Request` or a `Budget`, if it has another name there.
    marker : str
        What the pytest marker takes, in words; empty if it does not take the option.
    short : str
        Its letter on the command line, if it has one.
    """

    name: str
    schema: Schema
    kind: str = ""
    help: str = ""
    metavar: str | None = None
    default: object = None
    plan: str = IN_CLAIM
    field: str = ""
    marker: str = ""
    short: str = ""

    @property
    def key(self) -> str:
        """Its name in a `Request` or a `Budget`."""
        return self.field or self.name


#: Every option of an audit, once: the command line, plans and the plugin derive theirs.
_TABLE = (
    Option("target", _NAME),
    Option(
        "epsilon",
        {"type": "number", "minimum": 0},
        "float",
        "Claimed epsilon, in nats. It also sets the noise of a catalogue target that has an epsilon, unless --set "
        "epsilon does, or it is 0.  [default: the target's own]",
    ),
    Option(
        "delta",
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
        "float",
        "Claimed delta. It also sets the noise of a catalogue learner that has a delta, unless --set delta does.  "
        "[default: the catalogue's, or 0]",
    ),
    Option("gdp", _POSITIVE, "float", "Claimed mu of Gaussian DP, in place of an epsilon.", "MU"),
    Option("zcdp", _POSITIVE, "float", "Claimed rho of zero-concentrated DP.", "RHO"),
    Option("rdp", {"type": "array"}, "rdp", "Claimed Renyi DP of one order."),
    Option("profile", {"type": "array"}, "file", "Claimed points, JSON: a list of [epsilon, delta].", "FILE"),
    Option(
        "dp_sgd",
        {"type": "object"},
        "dp_sgd",
        "Claim the (epsilon, delta) of a DP-SGD configuration, as dp_accounting computes it: noise_multiplier=1.1,"
        "sampling=poisson:0.01,steps=1000,delta=1e-5, and relation=add-remove, zero-out or replace.",
    ),
    Option("rounds", _COUNT, "int", "Horizon T.  [default: the target's own, or 8]"),
    Option("arms", _COUNT, "int", "Arms, experts or coordinates.  [default: the target's own, or 2]"),
    Option(
        "losses",
        _NAME,
        "text",
        f"Loss set: {', '.join(LOSSES)}; or one of your own: box:LOW:HIGH, finite, any.  [default: the target's own, "
        "or unit]",
    ),
    Option(
        "neighbours",
        _NAME,
        "relation",
        f"{', '.join(RELATIONS)}, or FILE.py:NAME, a function near(data, rng). replace:3, add-remove:3 and user:3 "
        "allow up to 3. All but the first two need --inputs, or --left and --right.  [default: replace]",
        "RELATION",
    ),
    Option(
        "surface",
        {"enum": list(SURFACES)},
        "choice",
        "What the adversary sees: actions; release and publication, the noisy quantities too; joint, the actions of "
        "all but whoever differs; reports and model, what report() or model() returns after each update.  [default: "
        "actions, or what a catalogue name alone shows]",
    ),
    Option(
        "runs",
        _RUNS,
        "range",
        "All runs, pilot included.",
        default=100_000,
        marker="a whole number of at least 20",
    ),
    Option("seed", _SEED, "range", default=0, plan=AT_TOP, marker="a whole number of at least 0"),
    Option("alpha", _PROBABILITY, plan=AT_TOP),
    Option(
        "confidence",
        _PROBABILITY,
        "float",
        "1 - alpha.",
        default=0.99,
        plan=AT_TOP,
        marker="a number between 0 and 1",
    ),
    Option(
        "stop",
        {"enum": list(STOPS)},
        "choice",
        "When to end: after all runs, or as soon as the claim is falsified (anytime-valid).",
        default="budget",
        marker="'budget' or 'early'",
    ),
    Option(
        "fast",
        _FLAG,
        "flag",
        "Play on compiled kernels: pip install 'overclaim[fast]'.",
        marker="True or False",
    ),
    Option("expect", {"enum": list(EXPECTATIONS)}, field="expected"),
    Option(
        "weaken",
        {"anyOf": [_FLAG, _NAME]},
        "weaken",
        "Measure the blind spot of a claim that survives: what is caught with the noise divided by up to 100. NAME is "
        "the parameter that sets the noise of a target of your own, multiplied by the factor; 1/NAME is divided.",
        "[NAME]",
        marker="the name of a parameter, a function, True or False",
    ),
    Option("untested", {"enum": [ALLOWED]}),
    Option("note", _TEXT),
    Option("set", {"type": "object"}, "setting", "A parameter; repeatable.", field="parameters"),
    Option("left", _ANY, "input", "The left world: a mechanism's input, or a learner's rounds."),
    Option("right", _ANY, "input", "The right world."),
    Option(
        "inputs",
        {"anyOf": [{"type": "object"}, _NAME]},
        "json",
        "A JSON Schema of inputs or rounds: neighbours are searched, and what falsifies is shrunk.",
        field="input_schema",
    ),
    Option("bits", _FLAG, "flag", "Let the attack read the low-order bits of a mechanism's outputs."),
    Option(
        "os_random",
        _FLAG,
        "flag",
        "The mechanism's randomness cannot be seeded: nothing is played twice, no counts are replayed.",
    ),
    Option(
        "global_random",
        _FLAG,
        "flag",
        "The target draws from np.random, random or unseeded generators: seed them for every run.",
    ),
    Option(
        "raising",
        {"enum": list(RAISING)},
        "choice",
        "What an exception of the target is: no output, or an outcome like any other, its type without its message.  "
        "[default: error]",
    ),
    Option(
        "call_limit",
        _POSITIVE,
        "range",
        "Leave out inputs on which a call takes more processor time, while they are searched.",
        "SECONDS",
    ),
    Option(
        "attributes",
        {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]},
        "names",
        "Of an object that the mechanism returns, such as a fitted model: what is the output.",
        "fitted|all|NAME[,NAME]",
    ),
    Option("scores", _NAME),
    Option("inserted", _NAME, "file", "Scores of inserted canaries, each of a training of its own.", "FILE"),
    Option("held_out", _NAME, "file", "Scores of held-out canaries, each of a training of its own.", "FILE"),
    Option(
        "design",
        {"enum": list(DESIGNS)},
        "choice",
        "Whether each score comes from a training of its own, or many canaries shared one: it must be said.",
    ),
    Option(
        "canaries",
        _COUNT,
        "range",
        "TARGET is a training, def training(included, rng) -> scores, with so many canaries: coins decide on each.",
    ),
    Option("trainings", _COUNT, "range", "Trainings, each with canaries of its own.", default=1),
    Option("regret", _REGRET),
    Option("pair", _ANY, "file", "JSON: left and right losses; a file or the text.", plan=NOWHERE, field="pair_file"),
    Option(
        "shrink",
        _FLAG,
        "switch",
        "Shrink a falsified claim's witness: about twice the time.  [default: with --inputs]",
        plan=NOWHERE,
    ),
    Option(
        "trace",
        _FLAG,
        "flag",
        "Replay runs with their noise frozen: a bound from above, leaks around it, the cause.",
        plan=NOWHERE,
    ),
    Option(
        "plot",
        _NAME,
        "file",
        "File to write: the ROC curve of the scores of canaries, with claim and bound.",
        "FILE.svg",
        plan=NOWHERE,
    ),
    Option("jobs", _COUNT, "range", "Processes.  [default: all processors]", plan=NOWHERE),
    Option(
        "engine",
        {"enum": ["local", "dask"]},
        "choice",
        "Where runs are certified: here, or on the workers of a dask scheduler.",
        default="local",
        plan=NOWHERE,
        field="workers",
    ),
    Option("scheduler", _TEXT, "text", "Of --engine dask: tcp://HOST:PORT.", "ADDRESS", plan=NOWHERE),
    Option(
        "verbose", _FLAG, "flag", "Add counts, the attack, exact values and other measures.", plan=NOWHERE, short="v"
    ),
    Option("quiet", _FLAG, "flag", "Print one line.", plan=NOWHERE, short="q"),
    Option(
        "json", _FLAG, "flag", "Print one JSON object, and nothing else, to stdout.", plan=NOWHERE, field="as_json"
    ),
)
#: The options by name.
OPTIONS = {option.name: option for option in _TABLE}


def schemas_of(place: str) -> dict[str, Schema]:
    """Return the schemas of the options that a plan has at a place, by name."""
    return {option.name: option.schema for option in _TABLE if option.plan == place}


def fits(value: object, schema: Schema) -> bool:
    """Return whether a Python value fits the schema of a marker's option: a number, a boolean, a text or a choice."""
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds: dict[str, type | tuple[type, ...]] = {"integer": int, "number": float, "boolean": bool, "string": str}
    if not isinstance(value, kinds[schema["type"]]) or isinstance(value, bool) != (schema["type"] == "boolean"):
        return False
    if isinstance(value, int | float):
        above = value > schema.get("exclusiveMinimum", -float("inf"))
        below = value < schema.get("exclusiveMaximum", float("inf"))
        return bool(above and below and value >= schema.get("minimum", value))
    return True
