"""What a plan file may say: its JSON schema, and its commented example."""

from __future__ import annotations

import shlex
from typing import Any

from ...mechanisms.claim import EXPECTATIONS, LOSS_SET_NAMES, ROUND_NEIGHBOURS, SURFACES
from ..inputs.neighbours import RELATIONS
from ..play.execution import LARGEST, STOPS

#: What a plan says of a claim whose audit catches too little to be called a test.
ALLOWED = "allowed"

_PROBABILITY = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
#: The neighbour relations of rounds and records by name; `user:3` beside them says how many rounds a user has.
RELATION_NAMES = list(dict.fromkeys((*ROUND_NEIGHBOURS, *RELATIONS)))
_COUNT = {"type": "integer", "minimum": 1}

CLAIM: dict[str, Any] = {
    "type": "object",
    "required": ["target"],
    "additionalProperties": False,
    "properties": {
        "target": {"type": "string", "minLength": 1},
        "epsilon": {"type": "number", "minimum": 0},
        "delta": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
        "gdp": {"type": "number", "exclusiveMinimum": 0},
        "zcdp": {"type": "number", "exclusiveMinimum": 0},
        "rdp": {"type": "array"},
        "profile": {"type": "array"},
        "rounds": _COUNT,
        "arms": _COUNT,
        "losses": {"enum": list(LOSS_SET_NAMES)},
        "neighbours": {"anyOf": [{"enum": RELATION_NAMES}, {"type": "string", "pattern": "^user(-losses)?:[1-9]"}]},
        "surface": {"enum": list(SURFACES)},
        "runs": {"type": "integer", "minimum": 20},
        "stop": {"enum": list(STOPS)},
        "expect": {"enum": list(EXPECTATIONS)},
        "weaken": {"anyOf": [{"type": "boolean"}, {"type": "string", "minLength": 1}]},
        "untested": {"enum": [ALLOWED]},
        "note": {"type": "string"},
        "set": {"type": "object"},
        "left": {},
        "right": {},
        "inputs": {"anyOf": [{"type": "object"}, {"type": "string", "minLength": 1}]},
        "bits": {"type": "boolean"},
        "os_random": {"type": "boolean"},
        "call_limit": {"type": "number", "exclusiveMinimum": 0},
        "attributes": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
        "fast": {"type": "boolean"},
        "regret": {
            "type": "object",
            "required": ["bound"],
            "additionalProperties": False,
            "properties": {
                "bound": {"type": "number", "minimum": 0},
                "horizon": _COUNT,
                "runs": {"type": "integer", "minimum": 20},
                "stop": {"enum": list(STOPS)},
            },
        },
    },
}

PLAN: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "overclaim plan",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "seed": {"type": "integer", "minimum": 0, "maximum": LARGEST},
        "alpha": _PROBABILITY,
        "confidence": _PROBABILITY,
        "claims": {"type": "array", "items": CLAIM},
    },
}

EXAMPLE = """\
# The privacy claims of this repository, audited by: overclaim run {name}
# It exits 0 if every verdict is as expected, 1 if not, 3 if one is UNDERPOWERED, 4 if a learner crashed.

seed = 0        # the same seed gives the same record, on any number of processors
alpha = 0.01    # chance that any true claim of this report is called false (Holm across the claims)

# One table for each claim. Only `target` is required, and `epsilon` for a learner of your own.
[[claims]]
target = "asi-raman-talwar/batched-threshold"   # from overclaim list, or file.py:Name, or package.module:Name
epsilon = 1.0           # the claim, in nats
expect = "survived"     # the default; or "falsified": a surprise fails the run
runs = 20_000           # all runs of this audit, pilot included
set = {{ batch = 1 }}     # parameters of the target

# [[claims]]
# target = "my_learner.py:MyLearner"   # a class with act() and update(feedback), built as MyLearner(arms, rounds, rng)
# epsilon = 1.0                # or gdp = 1.0 (mu), zcdp = 0.5 (rho), rdp = [8, 2.0] (order, epsilon),
# delta = 0.0                  # or profile = [[0.5, 0.1], [1.0, 0.01]] (points, claimed together)
# rounds = 8
# arms = 2
# losses = "unit"              # {losses}
# neighbours = "replace"       # one round's whole loss is replaced; or "zero-out": it becomes 0
# surface = "actions"          # what the adversary sees; or "release": the noisy quantities themselves, as far as
#                              # actions depend on them; or "publication": all of them, the last round's too
# runs = 100_000
# stop = "early"               # end as soon as the claim is falsified; or "budget"
# fast = true                  # compiled kernels, with draws of their own: pip install 'overclaim[fast]'
# weaken = "epsilon"           # the parameter that sets its noise, to see what this audit would catch; or "1/scale"
# untested = "allowed"         # or an UNDERPOWERED audit ends with 3, whatever its runs
# regret = {{ bound = 60.0, horizon = 512 }}   # of the same learner, on adversarial losses: above it the run fails,
#                              # undecided, or where nothing could exceed it, it ends with 3
# expect = "survived"
# note = "printed beside the verdict"

# [[claims]]
# target = "my_learner.py:MyLearner"   # the same, on the worst sequences of its rounds that a search finds
# epsilon = 1.0
# inputs = "ROUNDS.json"       # a schema of arrays of loss vectors, or of objects with "losses", "context" and "user"
# neighbours = "user:3"        # up to 3 rounds of one user replaced; or "replace", "replace-losses", "zero-out";
#                              # "user" or "user-losses", where rounds say whose they are

# [[claims]]
# target = "my_mechanism.py:noisy"   # a function of (data, rng) that answers once
# epsilon = 1.0
# left = [1]                   # its two neighbouring inputs, whatever TOML can hold but dates
# right = [0]
# bits = true                  # the attack reads the low-order bits of floating-point outputs
# attributes = ["coef_"]       # of a fitted model that it returns: these are the output; or "fitted", or "all"
# os_random = true             # its randomness cannot be seeded: nothing is played twice, no counts are replayed

# [[claims]]
# target = "my_mechanism.py:noisy"   # the same, on the worst pair of inputs that a search finds
# epsilon = 1.0
# inputs = {{ type = "array", items = {{ type = "number", minimum = 0, maximum = 1 }} }}   # or "SCHEMA.json"
# neighbours = "add-remove"    # or "replace", "substitute-feature", "user" (lists of [user, value])
# call_limit = 0.5             # seconds of processor time: pairs on which a call takes more are left out, and counted
"""


def example(name: str) -> str:
    """Return the text of a commented plan that will be called `name`."""
    shown = shlex.quote(name) if name.isprintable() else "PLAN.toml"  # it stands in a comment
    return EXAMPLE.format(name=shown, losses=", ".join(LOSS_SET_NAMES))
