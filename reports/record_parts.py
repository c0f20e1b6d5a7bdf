"""The schemas of a claim's parts, whose types other rooms declare."""

from __future__ import annotations

from ..json_schema import (
    BOOLEAN,
    COUNT,
    INSIDE,
    LEVEL,
    NUMBER,
    ROUND,
    SHARE,
    TEXT,
    Schema,
    array,
    choice,
    each,
    maybe,
    table,
)

NUMBERS, GAPS, _TALLIES = array(NUMBER), array(maybe(NUMBER)), array(COUNT)
ERRORS = [f"false_{side}{end}" for side in ("positive", "negative") for end in ("", "_low", "_high")]
_SIDES = ("left", "right", "left_infinite", "right_infinite")
TALLY = ("runs", "runs_left", "left_upper", "left_lower", "right_upper", "right_lower")
COUNTS = {
    **table(**each(COUNT, *TALLY, "right", "guesses")),
    "dependentRequired": {**{key: list(TALLY) for key in TALLY[2:]}, "right": ["guesses"], "guesses": ["right"]},
}
_TELLING = table("arms", "says", "left", "right", arms=array({}), says=TEXT, **each(SHARE, "left", "right"))
EVIDENCE = {
    **table(
        alpha=INSIDE,
        tradeoff=maybe(table(*ERRORS, **each(array(SHARE), *ERRORS))),
        profile=maybe(
            table(
                *("epsilon", "estimate", "lower"),
                epsilon=NUMBERS,
                **each(GAPS, "estimate", "lower"),
                exact=maybe(table("epsilon", "delta", **each(GAPS, "epsilon", "delta"))),
            )
        ),
        scores=maybe(table(*_SIDES, **each(_TALLIES, *_SIDES), **each(NUMBERS, "values", "edges"))),
        by_round=maybe(table("rounds", "epsilon", rounds=array(ROUND), epsilon=GAPS)),
        growth=maybe(table("runs", "bound", runs=array(ROUND), bound=GAPS, decides=maybe(ROUND))),
        telling=maybe(array(_TELLING)),
    ),
    "dependentRequired": {"tradeoff": ["alpha"]},
}
_FACTOR: Schema = {"type": "number", "minimum": 1, "maximum": 1e300}
BLIND_SPOT = table(
    "factor",
    **each(maybe(_FACTOR), "factor", "missed", "tried", "true_to", "false_at"),
    bounds=maybe(array(array(NUMBER, minItems=2, maxItems=2))),
    runs=maybe(COUNT),
    alpha=maybe(INSIDE),
    parameter=maybe(TEXT),
)
MEASURE = table(
    **each(LEVEL, "epsilon", "delta", "mu", "rho", "order"),
    kind=TEXT,
    points=array(array(LEVEL, minItems=2, maxItems=2)),
)
TRANSLATION = table(
    *("epsilon", "mu", "rho", "delta"),
    **each(maybe(LEVEL), "mu", "rho", "delta"),
    epsilon=array(array(LEVEL, minItems=2, maxItems=2)),
)
LOSSES = table(**each(maybe(array({})), "left", "right"), round=maybe(ROUND))
SHRUNK = {
    **LOSSES,
    "properties": {
        **LOSSES["properties"],
        "pair": maybe(LOSSES),
        "runs": maybe(COUNT),
        "lower": maybe(LEVEL),
        "measure": maybe(MEASURE),
    },
}
SMALLEST = table(
    "pair",
    pair=table("left", "right"),
    replay=TEXT,
    **each(NUMBER, "epsilon_lower", "claimed"),
    lower=maybe(LEVEL),
    measure=maybe(MEASURE),
)
FROZEN = table("kind", kind=TEXT, share=INSIDE, counts=COUNTS, reason=TEXT)
PAIR = table(round=maybe(ROUND))  # the inputs of a mechanism are anything
CLAIMED = table("epsilon", epsilon=LEVEL, delta=maybe(SHARE))
ONE_SIDED = table(
    *("left", "right", "left_raised", "right_raised", "runs", "said"),
    said=TEXT,
    **each(COUNT, "left_raised", "right_raised", "runs"),
)
SEARCHED = table(**each(COUNT, "tried", "refused", "slow"), reason=maybe(TEXT), one_sided=maybe(ONE_SIDED))

_COINS: Schema = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
SCORES = table(
    *("canaries", "inserted", "trainings", "assumes", "roc"),
    **each(COUNT, "canaries", "inserted", "trainings"),
    **each(BOOLEAN, "reversed", "halves"),
    assumes=array(TEXT),
    coins=maybe(_COINS),
    **each(TEXT, "digest", "limit"),
    needed=maybe(COUNT),
    roc=table("inserted", "held_out", **each(array(COUNT), "inserted", "held_out")),
)


def standings() -> Schema:
    """Return the schema of whose claim it is: the catalogue's words, which take NumPy to load."""
    from ..learners.entry import STANDINGS

    return choice(*STANDINGS, "documented", None)
