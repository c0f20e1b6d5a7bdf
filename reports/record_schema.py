"""What every reader of a record relies on. Fields may be added, and older records lack some; what is there fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, cast, get_args

from ..audit.certification.blind_spot import Reason
from ..audit.traces.trace_types import TraceResult
from ..learners.catalogue.statements import STANDINGS
from ..mechanisms.measures.stated import measure_from_json
from .record_types import ClaimRecord, RunRecord

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number", "minimum": -1e300, "maximum": 1e300}  # JSON reads 1e999 as infinite
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
INSIDE: Schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
ROUND: Schema = {"type": "integer", "minimum": 1, "maximum": 2**53 - 1}


def _maybe(schema: Schema) -> Schema:
    """Return a schema of the same type, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def _list(items: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": items, **limits}


def _table(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _all(schema: Schema, *names: str) -> dict[str, Schema]:
    return dict.fromkeys(names, schema)


NUMBERS, GAPS, COUNTS = _list(NUMBER), _list(_maybe(NUMBER)), _list(COUNT)
_ERRORS = [f"false_{side}{end}" for side in ("positive", "negative") for end in ("", "_low", "_high")]
_SIDES = ("left", "right", "left_infinite", "right_infinite")
_TALLY = ("runs", "runs_left", "left_upper", "left_lower", "right_upper", "right_lower")
_COUNTS = {
    **_table(**_all(COUNT, *_TALLY, "right", "guesses")),
    "dependentRequired": {**{key: list(_TALLY) for key in _TALLY[2:]}, "right": ["guesses"], "guesses": ["right"]},
}
_TELLING = _table("arms", "says", "left", "right", arms=_list({}), says=TEXT, **_all(SHARE, "left", "right"))
_EVIDENCE = {
    **_table(
        alpha=INSIDE,
        tradeoff=_maybe(_table(*_ERRORS, **_all(_list(SHARE), *_ERRORS))),
        profile=_maybe(
            _table(
                *("epsilon", "estimate", "lower"),
                epsilon=NUMBERS,
                **_all(GAPS, "estimate", "lower"),
                exact=_maybe(_table("epsilon", "delta", **_all(GAPS, "epsilon", "delta"))),
            )
        ),
        scores=_maybe(_table(*_SIDES, **_all(COUNTS, *_SIDES), **_all(NUMBERS, "values", "edges"))),
        by_round=_maybe(_table("rounds", "epsilon", rounds=_list(ROUND), epsilon=GAPS)),
        growth=_maybe(_table("runs", "bound", runs=_list(ROUND), bound=GAPS, decides=_maybe(ROUND))),
        telling=_maybe(_list(_TELLING)),
    ),
    "dependentRequired": {"tradeoff": ["alpha"]},
}
_FACTOR: Schema = {"type": "number", "minimum": 1, "maximum": 1e300}
_BLIND_SPOT = _table(
    "factor",
    **_all(_maybe(_FACTOR), "factor", "missed", "tried", "true_to", "false_at"),
    bounds=_maybe(_list(_list(NUMBER, minItems=2, maxItems=2))),
    runs=_maybe(COUNT),
    alpha=_maybe(INSIDE),
    parameter=_maybe(TEXT),
)
_LEVEL: Schema = {**NUMBER, "minimum": 0}
_MEASURE = _table(
    **_all(_LEVEL, "epsilon", "delta", "mu", "rho", "order"),
    kind=TEXT,
    points=_list(_list(_LEVEL, minItems=2, maxItems=2)),
)
_TRANSLATION = _table(
    *("epsilon", "mu", "rho", "delta"),
    **_all(_maybe(_LEVEL), "mu", "rho", "delta"),
    epsilon=_list(_list(_LEVEL, minItems=2, maxItems=2)),
)
_LOSSES = _table(**_all(_maybe(_list({})), "left", "right"), round=_maybe(ROUND))
_PLACE = _table("file", "line", file=TEXT, line=ROUND)
_CAUSE = _table(
    *("text", "kind"),
    text=TEXT,
    kind={"enum": ["leak", "calls", "law"]},
    place=_maybe(_PLACE),
    **_all(_maybe(ROUND), "call", "calls"),
    **_all(_maybe(NUMBER), "differs", "calibrated_for"),
)
_CLAIM = _table(
    *("name", "claimed", "verdict"),
    name=TEXT,
    claimed=_table("epsilon", epsilon={**NUMBER, "minimum": 0}, delta=_maybe(SHARE)),
    verdict={"enum": ["FALSIFIED", "SURVIVED", "UNDERPOWERED"]},
    reason={"enum": [*get_args(Reason), None]},
    expected={"enum": ["falsified", "survived", None]},
    confidence=_maybe(INSIDE),
    p_value=_maybe(SHARE),
    counts=_maybe(_COUNTS),
    frozen=_maybe(_table("kind", kind=TEXT, share=INSIDE, counts=_COUNTS, reason=TEXT)),
    measure=_maybe(_MEASURE),
    translation=_maybe(_TRANSLATION),
    holm=_maybe(_table("p_value", "level", **_all(SHARE, "p_value", "level"))),
    event=_maybe(_table(**_all(_maybe(NUMBER), "lower", "upper"), share=INSIDE)),
    where=_maybe(_PLACE),
    evidence=_maybe(_EVIDENCE),
    shrunk=_maybe(
        {**_LOSSES, "properties": {**_LOSSES["properties"], "pair": _maybe(_LOSSES), "runs": _maybe(COUNT)}}
    ),
    blind_spot=_maybe(_BLIND_SPOT),
    pair=_maybe(_table(round=_maybe(ROUND))),  # the inputs of a mechanism are anything
    **_all(
        _maybe({"type": "boolean"}),
        *("exact_infinite", "mechanism", "published", "untested", "untested_allowed", "alike", "unread_bits"),
    ),
    inputs=_maybe(_table()),
    searched=_maybe(_table(**_all(COUNT, "tried", "refused", "slow"), reason=_maybe(TEXT))),
    smallest_inputs=_maybe(
        _table("pair", pair=_table("left", "right"), replay=TEXT, **_all(NUMBER, "epsilon_lower", "claimed"))
    ),
    **_all(_maybe({"type": "boolean"}), "replayable", "bits", "pair_given", "attack_exact", "platform_dependent"),
    **_all(_maybe(NUMBER), "epsilon_lower", "exact_epsilon", "detectable_epsilon", "two_interval_bound", "seconds"),
    **_all(_maybe(NUMBER), "lower", "exact_level", "exact_mu", "exact_rho"),
    **_all(_maybe(COUNT), "rounds", "arms", "runs", "budget", "pilot_runs", "paired_runs", "seed"),
    **_all(_maybe(TEXT), "calibration", "surface", "neighbours", "losses", "method", "attack", "engine", "stop"),
    **_all(_maybe(TEXT), "source", "note", "replay", "attack_reads", "event_in_words", "false", "answer", "repair"),
    relation=_maybe(TEXT),
    **_all(_maybe(NUMBER), "epsilon_upper", "epsilon_upper_pair", "upper"),
    upper_scope={"enum": ["pair", "claim", None]},
    upper_how={"enum": ["maximised", "bounded", "sampled", None]},
    upper_rests_on=_maybe(_list(TEXT)),
    untraced=_maybe(TEXT),
    missing=_maybe(_list(_table("what", "reason", **_all(TEXT, "what", "reason")))),
    leak=_maybe(_table("text", text=TEXT, what=TEXT, round=COUNT)),
    trace_result={"enum": [*get_args(TraceResult), None]},
    cause=_maybe(_CAUSE),
    outputs_digest=_maybe(TEXT),
    standing={"enum": [*STANDINGS, "documented", None]},
    quotation=_maybe(_table("text", "where", **_all(TEXT, "text", "where"))),
)
_REGRET = _table(
    **_all(
        _maybe(TEXT), "name", "sequence", "source", "interval_method", "verdict", "bound_verdict", "growth_verdict"
    ),
    **_all(_maybe(NUMBER), "growth_lower", "growth_upper"),
    **_all(_maybe(NUMBER), "mean_regret", "bound", "exponent", "slope", "slope_lower", "slope_upper", "bound_slope"),
    **_all(_maybe(COUNT), "rounds", "runs", "binds_from"),
    **_all(_maybe(GAPS), "regrets", "price"),
    **_all(_maybe(NUMBERS), "horizons", "epsilons"),
    price_intervals=_maybe(_list(_list(NUMBER, minItems=2, maxItems=2))),
    unnoticed=_maybe(
        _table(
            *("epsilon", "mean_regret", "interval"),
            **_all(NUMBER, "epsilon", "mean_regret"),
            interval=_list(NUMBER, minItems=2, maxItems=2),
        )
    ),
    by_sequence=_maybe({"type": "object", "additionalProperties": NUMBER}),
    found=_maybe(_list({})),
    expected_losses={"type": ["boolean", "null"]},
    replay=_maybe(TEXT),
    adaptive=_maybe(_list(_table(adversary=TEXT, mean_regret=NUMBER, interval=_list(NUMBER, minItems=2, maxItems=2)))),
    interval=_maybe(_list(NUMBER, minItems=2, maxItems=2)),
)
_SAID = ("kind", "name", "message")
RECORD = _table(
    "claims",
    alpha=INSIDE,
    **_all(_maybe(TEXT), "overclaim", "created", "command", "folder"),
    versions=_maybe(_table()),
    headline=_maybe({"type": "object", "additionalProperties": COUNT}),
    ledger_of_tests=_maybe(_table(planned=COUNT)),
    processor=_maybe(_table(machine=TEXT, libc=TEXT, **_all(_list(TEXT), "numpy", "blas"))),
    baseline=_maybe(
        _table(
            findings=_maybe(_list(_table(*_SAID, **_all(TEXT, *_SAID, "claim", "label"), fails={"type": "boolean"})))
        )
    ),
    errors=_maybe(_list(_table(*_SAID, **_all(TEXT, *_SAID, "replay")))),
    skipped=_maybe(_list(_table("name", "reason", **_all(TEXT, "name", "reason")))),
    regret=_maybe(_list(_REGRET)),
    regret_not_measured=_maybe(_list(_table(**_all(TEXT, "name", "source", "reason")))),
    utility=_maybe(_list(_table())),
    selftest=_maybe(_list(_table("caught"))),
    claims=_list(_CLAIM),
)


def fault(record: Mapping[str, object]) -> str | None:
    """Return the first thing in a record that does not fit, with its place; None if all fits."""
    from jsonschema import Draft202012Validator

    wrong = next(Draft202012Validator(RECORD).iter_errors(record), None)
    if wrong is None:
        claims = cast(RunRecord, record)["claims"]
        return next((f"claims[{i}].{misfit}" for i, claim in enumerate(claims) for misfit in _unfit(claim)), None)
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in wrong.absolute_path).lstrip(".")
    return f"{place or 'the record'}: {' '.join(wrong.message.split())[:200]}"


def _unfit(claim: ClaimRecord) -> Iterator[str]:
    """Yield what no schema says of a claim: a measure that is none, and figures that do not fit together."""
    if claim.get("measure") is not None:
        try:
            measure_from_json(claim["measure"])
        except ValueError as error:
            yield f"measure: {error}"
    yield from (f"evidence.{misfit}" for misfit in _uneven(claim))
    frozen = cast("Mapping[str, Any]", claim.get("frozen") or {})
    places = (("counts", claim.get("counts")), ("frozen.counts", frozen.get("counts")))
    yield from (f"{place}: {misfit}" for place, counts in places for misfit in _impossible(counts or {}))


def _impossible(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield which counts are more than what they are part of."""
    if counts.get("right", 0) > counts.get("guesses", 0):
        yield f"right must be at most guesses, {counts['guesses']}, got {counts['right']}"
    if not set(_TALLY) <= set(counts):
        return
    runs, left = counts["runs"], counts["runs_left"]
    for world, among in (("left", left), ("right", runs - left)):
        said = counts[f"{world}_upper"] + counts[f"{world}_lower"]
        if said > among or among < 0:
            yield f"the {world} world must have at least {said} of {runs} runs, got {among}"


def _uneven(claim: ClaimRecord) -> Iterator[str]:
    """Yield the figures whose lists are not of one length."""
    evidence = claim.get("evidence") or {}
    profile, scores = evidence.get("profile") or {}, evidence.get("scores") or {}
    places: dict[str, tuple[Mapping[str, Sized], Sequence[str]]] = {
        name: (cast("Mapping[str, Sized]", evidence.get(name) or {}), names)
        for name, names in (
            ("tradeoff", _ERRORS),
            ("profile", ("epsilon", "estimate", "lower")),
            ("scores", ("left", "right", "values")),
            ("by_round", ("rounds", "epsilon")),
            ("growth", ("runs", "bound")),
        )
    }
    places["profile.exact"] = cast("Mapping[str, Sized]", profile.get("exact") or {}), ("epsilon", "delta")
    for place, (data, names) in places.items():
        if len({len(data[name]) for name in names if name in data}) > 1:
            yield f"{place}: {', '.join(names)} must be of one length"
    if scores and "values" not in scores and len(scores.get("edges", ())) != len(scores["left"]) + 1:
        yield "scores: edges must be one more than left"
