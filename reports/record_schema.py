"""What every reader of a record relies on. Fields may be added, and older records lack some; what is there fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Sized
from functools import cache
from typing import Any, cast

import msgspec

from ..audit.record_types import ERRORS, SIDES, ClaimRecord, RunRecord
from ..mechanisms.measures.stated import measure_from_json

#: Counts that stand together.
_TALLY = ("runs", "runs_left", "left_upper", "left_lower", "right_upper", "right_lower")
#: What msgspec says is wrong, and where.
_MESSAGE = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
#: Steps of a place: a field, or an element of a list. An element of a table has no name there.
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]")
#: Its words, and ours.
_KINDS = {"float": "a number", "int": "a whole number", "str": "text", "bool": "true or false", "array": "a list"}
_KINDS |= {"object": "a table", "null": "null"}
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    return msgspec.json.schema(RunRecord)


def fault(record: Mapping[str, object]) -> str | None:
    """Return the first thing in a record that does not fit, with its place; None if all fits."""
    try:
        msgspec.convert(record, RunRecord)
    except msgspec.ValidationError as error:
        return _fault(record, str(error))
    claims = cast(RunRecord, record)["claims"]
    return next((f"claims[{i}].{misfit}" for i, claim in enumerate(claims) for misfit in _unfit(claim)), None)


def _fault(record: object, message: str) -> str:
    """Return in our words what msgspec says of a record: where, what was expected, and what is there."""
    match = _MESSAGE.fullmatch(message)
    problem, place = (match[1], match[2] or "") if match else (message, "")
    value, schema = record, json_schema()
    for field, number, _ in _STEP.findall(place):
        schema = _inside(schema, field)
        value = value[field] if field and isinstance(value, dict) else value[int(number)] if number else ...  # type: ignore[index]
    text = "null" if value is None else f"{value!r:.80}"
    actual = "" if value is ... or isinstance(value, dict | list) else f", got {text}"
    return f"{place.removesuffix('[...]') or 'the record'}: {_expected(problem, schema)}{actual}"


def _expected(problem: str, schema: Mapping[str, Any]) -> str:
    """Return what was expected, of a message of msgspec's and the schema of its place."""
    if problem.startswith("Invalid enum"):
        choices = [value for part in _parts(schema) for value in part.get("enum", ())]
        return f"expected one of {', '.join('null' if value is None else str(value) for value in choices)}"
    if missing := re.search(r"missing required field `(.*)`", problem):
        return f"expected a field {missing[1]}"
    if bound := re.search(r"(of length )?([<>]=?) (\S+)$", problem):
        return f"expected {bound[1] or ''}{_BOUNDS[bound[2]]} {float(bound[3]):g}"
    if kinds := re.match(r"Expected `([\w |]+)`, got", problem):
        return f"expected {' or '.join(_KINDS.get(kind, kind) for kind in kinds[1].split(' | '))}"
    return problem[:1].lower() + problem[1:]


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema, or those that it joins, where they stand."""
    if "$ref" in schema:
        schema = json_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" not in schema:
        yield schema
    for part in schema.get("anyOf", ()):
        yield from _parts(part)


def _inside(schema: Mapping[str, Any], field: str) -> dict[str, Any]:
    for part in _parts(schema):
        if field in part.get("properties", ()):
            return dict(part["properties"][field])
        if not field and ("items" in part or "additionalProperties" in part):
            return dict(part.get("items") or part["additionalProperties"])
    return {}


def _unfit(claim: ClaimRecord) -> Iterator[str]:
    """Yield what no schema says of a claim: a measure that is none, and figures that do not fit together."""
    if claim.get("measure") is not None:
        try:
            measure_from_json(claim["measure"])
        except ValueError as error:
            yield f"measure: {error}"
    losses, smallest = (claim.get("shrunk") or {}).get("pair") or {}, claim.get("smallest_inputs")
    yield from (f"shrunk.pair.{side}: expected a list" for side in SIDES if not isinstance(losses.get(side, []), list))
    if smallest and not set(SIDES) <= set(smallest.get("pair") or ()):
        yield "smallest_inputs.pair: expected the fields left and right"
    yield from (f"evidence.{misfit}" for misfit in _uneven(claim))
    frozen = cast("Mapping[str, Any]", claim.get("frozen") or {})
    places = (("counts", claim.get("counts")), ("frozen.counts", frozen.get("counts")))
    yield from (f"{place}: {misfit}" for place, counts in places for misfit in _impossible(counts or {}))


def _impossible(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield which counts lack others, or are more than what they are part of."""
    lacking = [name for name in _TALLY if name not in counts] if set(_TALLY[2:]) & set(counts) else []
    lacking += (
        [name for name in ("right", "guesses") if name not in counts] if {"right", "guesses"} & set(counts) else []
    )
    if lacking:
        yield f"expected a field {lacking[0]}"
        return
    if counts.get("right", 0) > counts.get("guesses", 0):
        yield f"right must be at most guesses, {counts['guesses']}, got {counts['right']}"
    if not set(_TALLY) <= set(counts):
        return
    runs, left = counts["runs"], counts["runs_left"]
    for world, among in (("left", left), ("right", runs - left)):
        decided = counts[f"{world}_upper"] + counts[f"{world}_lower"]
        if decided > among or among < 0:
            yield f"the {world} world must have at least {decided} of {runs} runs, got {among}"


def _uneven(claim: ClaimRecord) -> Iterator[str]:
    """Yield the figures whose lists are not of one length."""
    evidence = claim.get("evidence") or {}
    if evidence.get("tradeoff") and "alpha" not in evidence:
        yield "alpha: expected a number"
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
