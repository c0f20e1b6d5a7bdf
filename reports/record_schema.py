"""What every reader of a record relies on. Fields may be added, and older records lack some; what is there fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any, cast

from ..json_schema import BOOLEAN, COUNT, INSIDE, NUMBER, TEXT, Schema, array, each, maybe, table, table_of
from ..mechanisms.measures.stated import measure_from_json
from .record_parts import ERRORS, GAPS, NUMBERS, TALLY
from .record_types import ClaimRecord, RunRecord

_REGRET = table(
    **each(maybe(TEXT), "name", "sequence", "source", "interval_method", "verdict", "bound_verdict", "growth_verdict"),
    **each(maybe(NUMBER), "growth_lower", "growth_upper"),
    **each(maybe(NUMBER), "mean_regret", "bound", "exponent", "slope", "slope_lower", "slope_upper", "bound_slope"),
    **each(maybe(COUNT), "rounds", "runs", "binds_from"),
    **each(maybe(GAPS), "regrets", "price"),
    **each(maybe(NUMBERS), "horizons", "epsilons"),
    price_intervals=maybe(array(array(NUMBER, minItems=2, maxItems=2))),
    unnoticed=maybe(
        table(
            *("epsilon", "mean_regret", "interval"),
            **each(NUMBER, "epsilon", "mean_regret"),
            interval=array(NUMBER, minItems=2, maxItems=2),
        )
    ),
    by_sequence=maybe({"type": "object", "additionalProperties": NUMBER}),
    found=maybe(array({})),
    expected_losses=maybe(BOOLEAN),
    replay=maybe(TEXT),
    adaptive=maybe(array(table(adversary=TEXT, mean_regret=NUMBER, interval=array(NUMBER, minItems=2, maxItems=2)))),
    interval=maybe(array(NUMBER, minItems=2, maxItems=2)),
)
_SAID = ("kind", "name", "message")
_TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
RECORD = table(
    "claims",
    alpha=INSIDE,
    **each(maybe(TEXT), "overclaim", "created", "command", "folder", "protects"),
    versions=maybe(table()),
    audited=maybe(table(commit=maybe(TEXT), clean=maybe(BOOLEAN), **each(_TEXTS, "files", "versions"))),
    headline=maybe({"type": "object", "additionalProperties": COUNT}),
    ledger_of_tests=maybe(table(planned=COUNT)),
    processor=maybe(table(machine=TEXT, libc=TEXT, **each(array(TEXT), "numpy", "blas"))),
    baseline=maybe(table(findings=maybe(array(table(*_SAID, **each(TEXT, *_SAID, "claim", "label"), fails=BOOLEAN))))),
    errors=maybe(array(table(*_SAID, **each(TEXT, *_SAID, "replay", "where", "hint")))),
    skipped=maybe(array(table("name", "reason", **each(TEXT, "name", "reason")))),
    regret=maybe(array(_REGRET)),
    regret_not_measured=maybe(array(table(**each(TEXT, "name", "source", "reason")))),
    utility=maybe(array(table())),
    selftest=maybe(array(table("caught"))),
    claims=array(table_of(ClaimRecord)),
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
    if not set(TALLY) <= set(counts):
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
            ("tradeoff", ERRORS),
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
