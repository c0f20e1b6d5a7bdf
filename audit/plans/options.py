"""The table of options, from which command line, plan and pytest plugin derive theirs.

Nothing that it imports loads more than the standard library, so that `--help` and pytest start at once.
`tests/plans/test_options.py` compares it with the signatures that are written out, and with the names that other
rooms know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from ...mechanisms.measures.kinds import KINDS

Schema = dict[str, Any]

#: The largest number of runs, and seed.
LARGEST = 2**53 - 1
#: What a plan says of a claim whose audit catches too little to be called a test.
ALLOWED = "allowed"
#: What leaves the power test of a claim out.
OFF = "off"
#: The words of neighbour relations, as `mechanisms.relations` has them.
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

_ANY_VALUE: Schema = {}
_FLAG: Schema = {"type": "boolean"}
_TEXT: Schema = {"type": "string"}
_NAME: Schema = {"type": "string", "minLength": 1}
_NAMES: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
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
    group : str
        Its group in `--help`.
    rare : bool
        Whether `--help-all` alone shows it.
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
    group: str = ""
    rare: bool = False

    @property
    def key(self) -> str:
        """Its name in a `Request` or a `Budget`."""
        return self.field or self.name


#: The groups of `--help`, in their order.
CLAIM, GAME, INPUTS, UNUSUAL, BUDGET, RESULT, EXECUTION, OUTPUT = GROUPS = (
    "The claim",
    "The game (learners)",
    "The inputs",
    "Unusual targets",
    "The budget",
    "Understand the result",
    "Execution",
    "Output",
)

# The options of a group, with what they share.
_of_claim, _of_game, _of_inputs = (partial(Option, group=group) for group in (CLAIM, GAME, INPUTS))
_of_budget, _of_result = (partial(Option, group=group) for group in (BUDGET, RESULT))
_of_unusual = partial(Option, group=UNUSUAL, rare=True)
_of_execution = partial(Option, group=EXECUTION, plan=NOWHERE, rare=True)
_of_output = partial(Option, group=OUTPUT, plan=NOWHERE)

#: Every option of an audit, once: the command line, plans and the plugin derive theirs.
_TABLE = (
    Option("target", _NAME, help="FILE.py:NAME, PACKAGE.MODULE:NAME or a name from overclaim list"),
    _of_claim(
        "epsilon",
        {"type": "number", "minimum": 0},
        "float",
        "Claimed epsilon; in the catalogue it also sets the noise",
        "NUMBER",
    ),
    _of_claim(
        "delta",
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
        "float",
        "Claimed delta [default: 0]",
        "NUMBER",
    ),
    *(
        _of_claim(name, kind.schema, kind.reader, kind.help, kind.metavar, rare=kind.rare)
        for name, kind in KINDS.items()
    ),
    _of_claim(
        "dp_sgd",
        {"type": "object"},
        "dp_sgd",
        "Claim what dp_accounting computes: noise_multiplier=1.1,sampling=poisson:0.01,steps=1000,...",
        "NAME=VALUE,...",
    ),
    _of_game("rounds", _COUNT, "int", "Rounds that are played [default: 8]", "N"),
    _of_game("arms", _COUNT, "int", "Arms, experts or coordinates [default: 2]", "N"),
    _of_game(
        "losses",
        _NAME,
        "text",
        f"{', '.join(LOSSES[:-1])} or {LOSSES[-1]}; box:LOW:HIGH, finite or any [default: unit]",
        "SET",
    ),
    _of_game(
        "surface",
        {"enum": list(SURFACES)},
        "choice",
        f"What the adversary sees: {', '.join(SURFACES)} [default: actions]",
        "VIEW",
        rare=True,
    ),
    _of_budget(
        "runs",
        _RUNS,
        "range",
        "Runs of both inputs together",
        "N",
        default=100_000,
        marker="a whole number of at least 20",
    ),
    _of_budget(
        "stop",
        {"enum": list(STOPS)},
        "choice",
        "Stop as soon as the claim is falsified",
        "early",
        default="budget",
        marker="'budget' or 'early'",
    ),
    _of_budget("seed", _SEED, "range", "[default: 0]", "N", 0, AT_TOP, marker="a whole number of at least 0"),
    Option("protects", _NAME, help="Whom the claims protect, in your words", plan=AT_TOP),
    Option("alpha", _PROBABILITY, help="Chance that any true claim is called false [default: 0.01]", plan=AT_TOP),
    _of_claim(
        "confidence",
        _PROBABILITY,
        "float",
        "Probability that the bound holds, 1 - alpha",
        "NUMBER",
        default=0.99,
        plan=AT_TOP,
        marker="a number between 0 and 1",
        rare=True,
    ),
    Option("expect", {"enum": list(EXPECTATIONS)}, help="The expected verdict [default: survived]", field="expected"),
    _of_result(
        "power",
        {"anyOf": [{"type": "number", "minimum": 1.1}, {"enum": [OFF]}]},
        "power",
        "Too little noise that a survivor has to catch, by a factor; off: no power test [default: 3]",
        "FACTOR",
        marker="a factor of at least 1.1, or 'off'",
    ),
    _of_result(
        "weaken",
        {"anyOf": [_FLAG, _NAME]},
        "weaken",
        "The parameter that sets noise which the power test cannot reach (1/NAME: inversely)",
        "[NAME]",
        marker="the name of a parameter, a function, True or False",
        rare=True,
    ),
    Option("untested", {"enum": [ALLOWED]}, help="An UNDERPOWERED verdict is as expected, too"),
    Option("note", _TEXT, help="Words that are printed beside the verdict"),
    _of_game(
        "set", {"type": "object"}, "setting", "A parameter of the target; repeatable", field="parameters", rare=True
    ),
    _of_inputs("left", _ANY_VALUE, "input", "Two neighbouring inputs, or files that hold them", "JSON"),
    _of_inputs("right", _ANY_VALUE, "input", "", "JSON"),
    _of_inputs(
        "inputs",
        {"anyOf": [{"type": "object"}, _NAME]},
        "json",
        "A JSON Schema: search for the worst neighbours, then simplify them",
        "SCHEMA",
        field="input_schema",
    ),
    _of_inputs(
        "neighbours",
        _NAME,
        "relation",
        "How inputs may differ: replace, zero-out, add-remove, user, ... [default: replace]",
        "RELATION",
    ),
    _of_unusual("bits", _FLAG, "flag", "Let the attack read the low-order bits of a mechanism's outputs"),
    _of_unusual("os_random", _FLAG, "flag", "The target's randomness cannot be seeded: no seed repeats its counts"),
    _of_unusual(
        "global_random",
        _FLAG,
        "flag",
        "The target draws from np.random, random or unseeded generators: seed them for every run",
    ),
    _of_unusual(
        "reseed",
        _FLAG,
        "flag",
        "Audit the calibration of code that seeds itself: as --global-random, with fresh seeds",
    ),
    _of_unusual(
        "raising",
        {"enum": list(RAISING)},
        "choice",
        "Let an exception of the target be an output, by its type",
        "outcome",
    ),
    _of_inputs(
        "call_limit",
        _POSITIVE,
        "range",
        "Leave out inputs on which a call takes longer, while they are searched",
        "SECONDS",
        rare=True,
    ),
    _of_unusual(
        "attributes",
        _NAMES,
        "names",
        "Of an object that the target returns, such as a model: fitted, all or NAME[,NAME]",
        "NAMES",
    ),
    _of_inputs(
        "score",
        {"type": "string", "pattern": r"^.+\.py:.+$"},
        "text",
        "Your attack, def score(output, left, right): larger where left explains it better",
        "FILE.py:NAME",
        marker="a function of (output, left, right)",
        rare=True,
    ),
    _of_unusual(
        "python",
        _NAME,
        "text",
        "The interpreter that plays TARGET, a mechanism: a Python 3.8 or newer with NumPy",
        "PATH/python",
    ),
    _of_unusual(
        "stub", _NAMES, "names", "Modules that TARGET imports and does not need: each may be missing", "NAME[,NAME]"
    ),
    Option("scores", _NAME, help="A file with the scores of canaries, in place of a target"),
    _of_inputs("inserted", _NAME, "file", "Scores of inserted canaries, each of a training of its own", "FILE"),
    _of_inputs("held_out", _NAME, "file", "Scores of held-out canaries, each of a training of its own", "FILE"),
    _of_inputs(
        "design",
        {"enum": list(DESIGNS)},
        "choice",
        "independent: each score has a training of its own; one-run: canaries shared one",
        "DESIGN",
    ),
    _of_inputs(
        "canaries",
        _COUNT,
        "range",
        "TARGET is a training, def training(included, rng) -> scores, with so many canaries",
        "N",
    ),
    _of_unusual("trainings", _COUNT, "range", "Trainings, each with canaries of its own", "N", default=1),
    Option("regret", _REGRET, help="A bound on the learner's regret, tested beside the claim"),
    _of_game(
        "pair",
        _ANY_VALUE,
        "file",
        "Left and right losses, JSON or a file",
        "JSON",
        plan=NOWHERE,
        field="pair_file",
        rare=True,
    ),
    _of_inputs(
        "shrink",
        _FLAG,
        "switch",
        "Simplify the counterexample of a false claim [default: with --inputs]",
        plan=NOWHERE,
        rare=True,
    ),
    _of_result(
        "trace", _FLAG, "flag", "Bound epsilon from above, and name the line with too little noise", plan=NOWHERE
    ),
    _of_output("plot", _NAME, "file", "Write the ROC curve of the scores of canaries", "FILE.svg", rare=True),
    _of_execution("jobs", _COUNT, "range", "Processes [default: all processors]", "N"),
    _of_execution(
        "engine",
        {"enum": ["local", "dask"]},
        "choice",
        "Count runs on the workers of a scheduler",
        "dask",
        default="local",
        field="workers",
    ),
    _of_execution("scheduler", _TEXT, "text", "Of --engine dask: tcp://HOST:PORT", "ADDRESS"),
    _of_output("verbose", _FLAG, "flag", "Add counts, the attack, exact values and other measures", short="v"),
    _of_output("quiet", _FLAG, "flag", "Print one line", short="q"),
    _of_output("json", _FLAG, "flag", "Print one JSON object", field="as_json"),
)
#: Options of earlier versions, and what an error says of each.
REMOVED = {"fast": "kernels were removed in 0.3.0: every audit plays on NumPy"}
#: The options by name.
OPTIONS = {option.name: option for option in _TABLE}


def schemas_of(place: str) -> dict[str, Schema]:
    """Return the schemas of the options that a plan has at a place, by name."""
    return {option.name: option.schema for option in _TABLE if option.plan == place}


def fits(value: object, schema: Schema) -> bool:
    """Return whether a Python value fits the schema of a marker's option: a number, a boolean, a text or a choice."""
    if "anyOf" in schema:
        return any(fits(value, alternative) for alternative in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds: dict[str, type | tuple[type, ...]] = {"integer": int, "number": float, "boolean": bool, "string": str}
    if not isinstance(value, kinds[schema["type"]]) or isinstance(value, bool) != (schema["type"] == "boolean"):
        return False
    if isinstance(value, int | float):
        above_minimum = value > schema.get("exclusiveMinimum", -float("inf"))
        below_maximum = value < schema.get("exclusiveMaximum", float("inf"))
        return bool(above_minimum and below_maximum and value >= schema.get("minimum", value))
    return True
