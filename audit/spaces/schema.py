"""JSON Schema as a Hypothesis strategy: the part of draft 2020-12 that describes inputs, and tuples of draft 7.

Our own, and small: hypothesis-jsonschema was last released in February 2024, and draws nothing from schemas with
`prefixItems`. Neighbours of what is drawn are held against the schema itself, by jsonschema.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...learners.blame import said
from ..play.data import from_json, to_json
from .drawing import import_hypothesis
from .neighbours import Domain, neighbours

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: A part of a schema that is an object: its keywords and what they say.
Schema = Mapping[str, Any]
#: Keywords that say nothing of which data fits, or that are read where they are needed.
_SILENT = {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples"}
#: Keywords whose value is a schema or a list of them, and those whose value is an object of schemas by name.
_SCHEMAS = {"items", "prefixItems", "additionalItems", "additionalProperties", "anyOf", "oneOf"}
_NAMED_SCHEMAS = {"properties", "$defs", "definitions"}
#: What draft 7 calls the keywords of a tuple.
_DRAFT_7 = {"prefixItems": "items", "items": "additionalItems"}
_OF_TYPES: dict[str, set[str]] = {
    "null": set(),
    "boolean": set(),
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "nan", "infinite"},
    "string": {"minLength", "maxLength", "pattern"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
}
#: What a number may be beside finite, by the keyword of ours that allows it. No other reader knows them.
_NOT_FINITE = {"nan": (math.nan,), "infinite": (math.inf, -math.inf)}
#: How many finite numbers are drawn for one that is not: all others of a list shall be finite, more often than not.
_FINITE = 3
#: How far beyond its limits a number is tried, in distances between these.
REACH = 10
#: The most levels of references and nesting.
_DEEPEST = 20


class SchemaError(ValueError):
    """A schema that is none, or that says what is not known here; its message names the place, as a JSON path."""


def pairs_of(schema: Any, relation: str | Callable[..., object] = "replace") -> SearchStrategy[tuple[object, object]]:
    """Return the strategy of neighbouring inputs that fit a schema.

    Parameters
    ----------
    schema : dict
        Of draft 2020-12, or of draft 7, where `"items": [...]` is a tuple. Values of `enum` and `const` may have the
        tags of `data`, as `{"$float": "nan"}`, or be NaN and infinities themselves. A number with `"nan": true` may be
        NaN, one with `"infinite": true` infinite.
    relation : str or callable
        As in `neighbours`.

    Raises
    ------
    SchemaError
        For a schema that is none, or says what is not known here.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError as Invalid

    try:
        Draft202012Validator.check_schema(modern := _modern(schema))
    except Invalid as error:
        reason, place = " ".join(error.message.split())[:200], _json_path(schema, error.absolute_path)
        raise SchemaError(f"the schema of inputs is invalid: {reason} (at {place})") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"the schema of inputs is invalid: {said(error)} (at $)") from None
    checked = Draft202012Validator(_checked(modern))
    strategy = _Reader(schema, modern, checked).strategy(modern)
    return neighbours(strategy, relation, where=Domain(lambda data: checked.is_valid(to_json(data))))


def fits(schema: Any, data: object) -> bool:
    """Tell whether data fit a schema that `pairs_of` has read."""
    from jsonschema import Draft202012Validator

    return bool(Draft202012Validator(_checked(_modern(schema))).is_valid(to_json(data)))


def widened(schema: Any) -> Any:
    """Return a schema whose numbers may lie `REACH` times the distance of their limits beyond these."""
    if isinstance(schema, list):
        return [widened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {word: part if word in ("enum", "const") else widened(part) for word, part in schema.items()}
    low, high = (schema.get(word) for word in ("minimum", "maximum"))
    if isinstance(low, int | float) and isinstance(high, int | float):
        parts |= {"minimum": low - REACH * (high - low), "maximum": high + REACH * (high - low)}
    return parts


def _checked(modern: Any) -> Any:
    """Return a schema for jsonschema, to which a number that is not finite is an object: see `data`."""
    if isinstance(modern, list):
        return [_checked(part) for part in modern]
    if not isinstance(modern, dict):
        return modern
    checked_parts = {word: _checked(part) if word in _SCHEMAS else part for word, part in modern.items()}
    for word in _NAMED_SCHEMAS & checked_parts.keys():
        checked_parts[word] = {name: _checked(part) for name, part in checked_parts[word].items()}
    kinds = modern.get("type", ())
    if "number" not in ([kinds] if isinstance(kinds, str) else kinds):
        return checked_parts
    values = _values(modern)
    if values is None:
        tags = [to_json(number) for number in _not_finite(modern)]
    else:
        tags = [value for value in values if isinstance(value, dict) and "$float" in value]
    return {"anyOf": [checked_parts, {"enum": tags}]} if tags else checked_parts


def _values(schema: Schema) -> list[Any] | None:
    """Return the values of `enum` or `const`; None where a schema has neither."""
    if "enum" in schema:
        return list(schema["enum"])
    return [schema["const"]] if "const" in schema else None


def _not_finite(schema: Schema) -> list[float]:
    """Return what a number may be that is not finite: NaN, and infinities within its bounds."""
    low, high = _bounds(schema)
    numbers = [number for word, values in _NOT_FINITE.items() if schema.get(word) is True for number in values]
    return [
        number
        for number in numbers
        if not (low is not None and number < low) and not (high is not None and number > high)
    ]


def _modern(schema: Any) -> Any:
    """Return a schema with the tuples of draft 7, `items` and `additionalItems`, as those of draft 2020-12."""
    if isinstance(schema, list):
        return [_modern(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    modern = {word: _modern(part) if word in _SCHEMAS else part for word, part in schema.items()}
    for word in {"enum", "const"} & schema.keys():
        modern[word] = _tagged(schema[word])
    for word in _NAMED_SCHEMAS & schema.keys():
        if isinstance(schema[word], dict):
            modern[word] = {name: _modern(part) for name, part in schema[word].items()}
    rest = modern.pop("additionalItems", True)  # which says nothing where items are no tuple
    if isinstance(first := modern.get("items"), list) and "prefixItems" not in modern:
        del modern["items"]
        modern |= {"prefixItems": first, "items": rest} if first else {"items": rest}
    return modern


def _tagged(value: Any) -> Any:
    """Return a value of a schema with tags in the place of numbers that are not finite."""
    if isinstance(value, list):
        return [_tagged(part) for part in value]
    if isinstance(value, dict):
        return {key: _tagged(part) for key, part in value.items()}
    return to_json(value) if isinstance(value, float) else value


def _json_path(schema: Any, place: Iterable[str | int]) -> str:
    """Return the JSON path of a place in `_modern(schema)`, by the words of the schema itself."""
    path = "$"
    for step in place:
        if isinstance(schema, dict) and isinstance(schema.get("items"), list):
            step = _DRAFT_7.get(str(step), step)
        checked_parts = isinstance(step, str) and step.removeprefix("$").isidentifier()
        path += f".{step}" if checked_parts else f"[{step!r}]"
        try:
            schema = schema[step]
        except (KeyError, IndexError, TypeError):  # what is missing has a place too
            schema = None
    return path


class _Reader:
    def __init__(self, full_schema: object, modern: object, checked: Any) -> None:
        self.whole, self.modern, self.st = full_schema, modern, import_hypothesis().strategies
        self.checked = checked
        #: Where in the schema the part lies that is read.
        self.place: tuple[str | int, ...] = ()

    def error(self, message: str) -> SchemaError:
        """Return an error of the part that is read."""
        return SchemaError(f"{message} (at {_json_path(self.whole, self.place)})")

    @contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Read what lies at a place, from the root of the schema."""
        before, self.place = self.place, place
        yield
        self.place = before

    def part(self, schema: Any, depth: int, *steps: str | int) -> Any:
        """Return the strategy of a part that lies so many steps below the one that is read."""
        with self.at(*self.place, *steps):
            return self.strategy(schema, depth)

    def strategy(self, schema: Any, depth: int = 0) -> Any:
        """Return the strategy of what fits a part of the schema."""
        if depth > _DEEPEST:
            raise self.error(f"the schema of inputs nests, or refers to itself, more than {_DEEPEST} times")
        if schema is True or schema == {}:
            return (
                self.st.none()
                | self.st.booleans()
                | self.st.integers()
                | self.st.floats(allow_nan=False)
                | self.st.text()
            )
        if schema is False:
            return self.st.nothing()
        if "$ref" in schema:
            place, part = self._referred(schema["$ref"])
            with self.at(*place):
                return self.strategy(part, depth + 1)
        if (values := _values(schema)) is not None:
            is_valid = self.checked.evolve(schema=_checked(schema)).is_valid
            if unfit := [value for value in values if not is_valid(value)]:
                raise self.error(f"nothing fits the schema of inputs: its value {unfit[0]!r:.80} is refused beside it")
            try:
                return self.st.sampled_from([from_json(value) for value in values])
            except ValueError as error:
                raise self.error(f"the schema of inputs has a value that is no data: {error}") from None
        for word in ("anyOf", "oneOf"):
            if word in schema:
                self._check(schema, {word}, "beside anyOf or oneOf")
                return self.st.one_of([self.part(part, depth + 1, word, i) for i, part in enumerate(schema[word])])
        kinds = schema.get("type")
        if kinds is None:
            raise self.error(
                f"a schema of inputs must say its type, enum, const, anyOf, oneOf or $ref, got {schema!r:.80}"
            )
        kinds = kinds if isinstance(kinds, list) else [kinds]
        keywords = {word for kind in kinds for word in _OF_TYPES[kind]}
        self._check(schema, keywords | {"type"}, f"for the type {' or '.join(kinds)}")
        strategy_of: dict[str, Callable[[Schema, int], object]] = {
            "null": lambda schema, depth: self.st.none(),
            "boolean": lambda schema, depth: self.st.booleans(),
            "integer": self._integers,
            "number": self._numbers,
            "string": self._texts,
            "array": self._arrays,
            "object": self._objects,
        }
        return self.st.one_of([strategy_of[kind](schema, depth + 1) for kind in kinds])

    def _check(self, schema: Mapping[str, object], keywords: set[str], where: str) -> None:
        for word in schema:
            if word not in keywords | _SILENT:
                expected = ", ".join(sorted(keywords - {"type"})) or "nothing else"
                raise self.error(
                    f"the schema of inputs says {word!r}, which is not known {where}: expected {expected}"
                )

    def _referred(self, place: object) -> tuple[list[str | int], object]:
        if not isinstance(place, str) or not place.startswith("#"):
            raise self.error(f"a schema of inputs may refer to its own parts alone, as #/$defs/NAME, got {place!r}")
        part, steps = self.modern, list[str | int](filter(None, place[1:].split("/")))
        for name in steps:
            if not isinstance(part, dict) or name not in part:
                raise self.error(f"the schema of inputs has no part {place!r}")
            part = part[name]
        return steps, part

    def _integers(self, schema: Schema, depth: int) -> object:
        low, high = _bounds(schema)
        low = None if low is None else math.ceil(low) + (schema.get("exclusiveMinimum") == math.ceil(low))
        high = None if high is None else math.floor(high) - (schema.get("exclusiveMaximum") == math.floor(high))
        step = schema.get("multipleOf", 1)
        if step == 1:
            return self._between(self.st.integers, low, high)
        if not isinstance(step, int):
            raise self.error(f"multipleOf of inputs must be a whole number, got {step!r}")
        low, high = (None if low is None else -(-low // step)), (None if high is None else high // step)
        return self._between(self.st.integers, low, high).map(lambda number: number * step)

    def _numbers(self, schema: Schema, depth: int) -> object:
        low, high = _bounds(schema)
        for word in _NOT_FINITE:
            if not isinstance(schema.get(word, False), bool):
                raise self.error(f"{word} of a number must be true or false, got {schema[word]!r:.80}")
        finite = self._between(
            self.st.floats,
            low,
            high,
            exclude_min=low is not None and schema.get("exclusiveMinimum") == low,
            exclude_max=high is not None and schema.get("exclusiveMaximum") == high,
            allow_nan=False,
            allow_infinity=False,
        )
        other_values = _not_finite(schema)
        return self.st.one_of(*[finite] * _FINITE, self.st.sampled_from(other_values)) if other_values else finite

    def _between(self, make: Callable[..., Any], low: float | None, high: float | None, **options: object) -> Any:
        if low is not None and high is not None and low > high:
            raise self.error(f"nothing fits the schema of inputs: no number is at least {low} and at most {high}")
        return make(low, high, **options)

    def _texts(self, schema: Schema, depth: int) -> object:
        low, high = self._sizes(schema, "minLength", "maxLength")
        if "pattern" not in schema:
            return self.st.text(min_size=low, max_size=high)
        texts = self.st.from_regex(schema["pattern"])
        return texts.filter(lambda text: low <= len(text) and (high is None or len(text) <= high))

    def _arrays(self, schema: Schema, depth: int) -> object:
        low, high = self._sizes(schema, "minItems", "maxItems")
        places = schema.get("prefixItems", ())[:high]
        first = [self.part(part, depth, "prefixItems", i) for i, part in enumerate(places)]
        items = schema.get("items", not first)
        if items is False:
            if low > len(first):
                raise self.error(
                    f"nothing fits the schema of inputs: {low} items are too many for {len(first)} places"
                )
            return self.st.tuples(*first).map(list)
        tail = self.st.lists(
            self.part(items, depth, "items"),
            min_size=max(0, low - len(first)),
            max_size=None if high is None else high - len(first),
            unique_by=_text if schema.get("uniqueItems") else None,
        )
        return (
            self.st.tuples(self.st.tuples(*first), tail).map(lambda parts: [*parts[0], *parts[1]]) if first else tail
        )

    def _objects(self, schema: Schema, depth: int) -> object:
        properties = {
            name: self.part(part, depth, "properties", name) for name, part in schema.get("properties", {}).items()
        }
        required = set(schema.get("required", ()))
        rest = schema.get("additionalProperties", not properties)
        low, high = self._sizes(schema, "minProperties", "maxProperties")
        for name in required - properties.keys():
            properties[name] = self.part(rest if isinstance(rest, dict) else True, depth, "additionalProperties")
        fixed = self.st.fixed_dictionaries(
            {name: part for name, part in properties.items() if name in required},
            optional={name: part for name, part in properties.items() if name not in required},
        )
        if rest is False or (rest is True and properties):
            objects = fixed
        else:
            other_values = self.st.dictionaries(
                self.st.text(),
                self.part(rest, depth, "additionalProperties"),
                min_size=max(0, low - len(properties)),
                max_size=high,
            )
            objects = self.st.tuples(other_values, fixed).map(lambda parts: {**parts[0], **parts[1]})
        return objects.filter(lambda data: low <= len(data) and (high is None or len(data) <= high))

    def _sizes(self, schema: Schema, min_word: str, max_word: str) -> tuple[int, int | None]:
        low, high = int(schema.get(min_word, 0)), schema.get(max_word)
        if high is not None and low > high:
            raise self.error(f"nothing fits the schema of inputs: {min_word} is {low}, and {max_word} {high}")
        return low, None if high is None else int(high)


def _bounds(schema: Schema) -> tuple[float | None, float | None]:
    low = [schema[word] for word in ("minimum", "exclusiveMinimum") if word in schema]
    high = [schema[word] for word in ("maximum", "exclusiveMaximum") if word in schema]
    return max(low, default=None), min(high, default=None)


def _text(item: object) -> str:
    return repr(to_json(item))
