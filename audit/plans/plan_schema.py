"""What a plan file may say: its JSON schema, and its commented example."""

from __future__ import annotations

import shlex

from ...addresses import schema_address
from .options import AT_TOP, IN_CLAIM, LOSSES, Schema, schemas_of

#: Of the schema: it grows where a plan may say more, and a plan that was right stays right.
VERSION = 1

CLAIM: Schema = {
    "type": "object",
    "anyOf": [{"required": ["target"]}, {"required": ["scores"]}, {"required": ["inserted", "held_out"]}],
    "additionalProperties": False,
    "properties": schemas_of(IN_CLAIM),
}

PLAN: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": schema_address("plan", VERSION),
    "title": "overclaim plan",
    "type": "object",
    "additionalProperties": False,
    "properties": {**schemas_of(AT_TOP), "claims": {"type": "array", "items": CLAIM}},
}

#: What the schema shows.
EXAMPLE = """\
#:schema {schema}
# The privacy claims of this repository, audited by: overclaim run {name}
# It exits 0 if every verdict is as expected, 1 if not, 3 if one is UNDERPOWERED, 4 if a learner crashed.

seed = 0        # the same seed gives the same record, on any number of processors
alpha = 0.01    # chance that any true claim of this report is called false (Holm across the claims)
protects = "one round of one learner"   # whom the claims protect, in your words: the report repeats them

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
# losses = "unit"              # {losses}; "box:-3:3", "finite" or "any"
# neighbours = "replace"       # one round's whole loss is replaced; or "zero-out": it becomes 0
# surface = "actions"          # what the adversary sees; or "release": the noisy quantities themselves, as far as
#                              # actions depend on them; or "publication": all of them, the last round's too
# runs = 100_000
# stop = "early"               # end as soon as the claim is falsified; or "budget"
# power = 5.0                  # too little noise that a survivor has to catch, 3.0 by default; or "off"
# weaken = "epsilon"           # the parameter that sets noise which the power test cannot reach; or "1/scale"
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
#                              # "l2:0.5": one round's loss moves by at most 0.5;
#                              # "user" or "user-losses", where rounds say whose they are

# [[claims]]
# target = "my_mechanism.py:noisy"   # a function of (data, rng) that answers once
# epsilon = 1.0
# left = [1]                   # its two neighbouring inputs, whatever TOML can hold but dates
# right = [0]
# bits = true                  # the attack reads the low-order bits of floating-point outputs
# attributes = ["coef_"]       # of a fitted model that it returns: these are the output; or "fitted", or "all"
# global_random = true         # it draws from np.random, random or unseeded generators; of learners too
# reseed = true                # the same, and each seed that the target sets itself differs from run to run
# os_random = true             # its randomness cannot be seeded: nothing is played twice, no counts are replayed;
#                              # of learners too
# raising = "outcome"          # an exception is an outcome like any other; of learners too

# [[claims]]
# target = "my_mechanism.py:noisy"   # the same, on the worst pair of inputs that a search finds
# epsilon = 1.0
# inputs = {{ type = "array", items = {{ type = "number", minimum = 0, maximum = 1 }} }}   # or "SCHEMA.json"
# neighbours = "add-remove"    # or "replace", "replace:3", "zero-out", "substitute-feature", "l1:1", "l2:1", "linf:1",
#                              # "user", "replace-user" (records [user, value] or with the key "user"), "near.py:near"
# call_limit = 0.5             # seconds of processor time: pairs on which a call takes more are left out, and counted

# [[claims]]
# scores = "canaries.csv"      # an attack's scores of canaries: columns score and included (0 or 1); .csv .tsv .npy
#                              # .npz .json. Or inserted = "in.npy" and held_out = "out.npy", of independent trainings
# design = "one-run"           # the canaries shared a training, each with a fair coin of its own; or "independent"
# epsilon = 8.0
# delta = 1e-5

# [[claims]]
# target = "train.py:training" # def training(included, rng) -> scores: coins of ours decide which canaries are in
# canaries = 1000
# trainings = 1
# epsilon = 8.0
"""


def example(name: str) -> str:
    """Return the text of a commented plan that will be called `name`."""
    file_name = shlex.quote(name) if name.isprintable() else "PLAN.toml"  # it stands in a comment
    return EXAMPLE.format(schema=PLAN["$id"], name=file_name, losses=", ".join(LOSSES))
