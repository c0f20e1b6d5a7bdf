"""JSON Schemas of inputs: what they draw fits them, and what they cannot say is one line."""

import math
import subprocess
import sys

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from overclaim.audit.play.data import to_json
from overclaim.audit.spaces.drawing import draw
from overclaim.audit.spaces.schema import SchemaError, pairs_of

NUMBER = {"type": "number", "minimum": 0, "maximum": 1}
SCHEMAS = [
    {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 4},
    {"type": "array", "items": {"anyOf": [NUMBER, {"const": {"$float": "nan"}}]}, "maxItems": 4},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 2},
    {
        "type": "array",
        "items": {"type": "array", "prefixItems": [NUMBER, {"enum": [0, 1]}], "items": False, "minItems": 2},
    },
    {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
    {"type": "integer", "exclusiveMinimum": 2, "maximum": 30, "multipleOf": 3},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": ["integer", "null", "boolean"]},
    {"type": "string", "pattern": "^[ab]{2,3}$"},
    {"type": "object", "properties": {"age": {"type": "integer"}, "name": {"type": "string"}}, "required": ["age"]},
    {
        "type": "object",
        "additionalProperties": {"type": "integer", "minimum": 1},
        "minProperties": 1,
        "maxProperties": 3,
    },
    {
        "$ref": "#/$defs/row",
        "$defs": {"row": {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 1}, "x": NUMBER},
    },
    {"oneOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}], "title": "either"},
]


@pytest.mark.few(4)
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_both_worlds_fit(schema):
    validator = Draft202012Validator(schema)
    pairs = draw(pairs_of(schema), 15, seed=0)
    assert len(pairs) > 3
    for pair in pairs:
        for side in pair:
            validator.validate(to_json(side))


def test_nan_is_drawn_as_a_number():
    sides = [x for pair in draw(pairs_of(SCHEMAS[1]), 60, seed=0) for side in pair for x in side]
    assert any(isinstance(x, float) and math.isnan(x) for x in sides)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("schema", "drawn"),
    [
        ({"enum": [0, NAN]}, {"0", "nan"}),
        ({"type": "number", "enum": [0.0, -INF]}, {"0.0", "-inf"}),
        ({"anyOf": [{"const": 0}, {"const": NAN}]}, {"0", "nan"}),
        ({"type": "number", "minimum": 0, "maximum": 0, "nan": True}, {"0.0", "nan"}),
        ({"type": "number", "minimum": 0, "maximum": 1, "infinite": True}, {"0.0"}),
        ({"type": ["number", "null"], "minimum": 0, "infinite": True}, {"None", "inf"}),
        ({"type": "array", "maxItems": 1, "items": {"type": "number", "nan": True}}, {"[]", "[nan]"}),
    ],
)
def test_numbers_that_are_not_finite_are_drawn_if_they_are_said(schema, drawn):
    """NaN as a number of a schema was accepted and never drawn."""
    pairs = draw(pairs_of({"type": "array", "items": schema, "minItems": 1, "maxItems": 2}), 80, seed=0)
    seen = {repr(x) for pair in pairs for side in pair for x in side}
    assert drawn <= seen
    assert not {"nan", "inf", "-inf"} & (seen - drawn)


def test_a_distance_passes_over_data_without_finite_numbers():
    schema = {"type": "array", "items": {"type": "number", "maximum": 9, "minimum": 0, "nan": True}, "minItems": 2}
    for left, right in draw(pairs_of(schema | {"maxItems": 2}, "linf:1"), 40, seed=0):
        assert all(math.isnan(a) == math.isnan(b) for a, b in zip(left, right, strict=True))


def test_a_relation_goes_with_it():
    for left, right in draw(pairs_of(SCHEMAS[0], "add-remove"), 20, seed=0):
        assert abs(len(left) - len(right)) == 1
        assert min(len(left), len(right)) >= 1


@pytest.mark.parametrize(
    ("schema", "message", "place"),
    [
        (3, "the schema of inputs is invalid: 3 is not", "$"),
        ({"type": "float"}, "the schema of inputs is invalid: 'float' is not", "$.type"),
        ({"type": "string", "pattern": "["}, "the schema of inputs is invalid: '[' is not", "$.pattern"),
        ({"properties": {"items": {"type": "list"}}}, "invalid: 'list' is not", "$.properties.items.type"),
        ({"type": "array", "items": [NUMBER, {"type": "float"}]}, "invalid: 'float' is not", "$.items[1].type"),
        ({"minimum": 1}, "must say its type", "$"),
        ({"type": "number", "nan": 1}, "nan of a number must be true or false, got 1", "$"),
        ({"type": "number", "infinite": "yes"}, "infinite of a number must be true or false, got 'yes'", "$"),
        ({"type": "integer", "nan": True}, "says 'nan', which is not known for the type integer", "$"),
        ({"anyOf": [NUMBER, {"type": "number", "const": "x"}]}, "its value 'x' is refused beside it", "$.anyOf[1]"),
        ({"enum": [1, 30], "maximum": 9}, "its value 30 is refused beside it", "$"),
        ({"type": "number", "minimum": 1, "maximum": 0}, "nothing fits the schema of inputs: no number is at", "$"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "nothing fits", "$"),
        ({"type": "array", "minItems": 2, "maxItems": 1}, "nothing fits the schema of inputs: minItems is 2", "$"),
        ({"type": "array", "items": False, "minItems": 1}, "nothing fits", "$"),
        ({"type": "string", "format": "date"}, "says 'format', which is not known for the type string", "$"),
        ({"type": "number", "anyOf": [NUMBER]}, "says 'type', which is not known beside anyOf", "$"),
        ({"$ref": "other.json"}, "refer to its own parts alone", "$"),
        ({"$ref": "#/$defs/none"}, "has no part", "$"),
        ({"type": "array", "items": {"$ref": "#"}}, "nests, or refers to itself", "$.items"),
        ({"type": "integer", "multipleOf": 0.5}, "multipleOf of inputs must be a whole number", "$"),
        ({"enum": [{"$float": "one"}]}, "has a value that is no data", "$"),
        ({"type": "array", "items": [NUMBER, {"minimum": 1}]}, "type", "$.items[1]"),
        ({"type": "array", "items": [NUMBER], "additionalItems": {"minimum": 1}}, "type", "$.additionalItems"),
        ({"type": "array", "prefixItems": [{"minimum": 1}]}, "type", "$.prefixItems[0]"),
        ({"type": "array", "prefixItems": [NUMBER], "items": {"minimum": 1}}, "type", "$.items"),
        ({"type": "object", "properties": {"a b": {"minimum": 1}}}, "type", "$.properties['a b']"),
        ({"type": "object", "additionalProperties": {"minimum": 1}}, "type", "$.additionalProperties"),
        ({"oneOf": [NUMBER, {"anyOf": [{"minimum": 1}]}]}, "type", "$.oneOf[1].anyOf[0]"),
        ({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"minimum": 1}}}, "type", "$.$defs.x"),
        (
            {"$ref": "#/definitions/x", "definitions": {"x": {"type": "array", "items": [{"minimum": 1}]}}},
            "type",
            "$.definitions.x.items[0]",
        ),
    ],
)
def test_what_it_cannot_say_is_refused_in_one_line_with_its_place(schema, message, place):
    with pytest.raises(SchemaError) as error:
        pairs_of(schema)
    assert message in str(error.value)
    assert str(error.value).endswith(f" (at {place})")
    assert "\n" not in str(error.value)


def test_nothing_fits_false():
    with pytest.raises(ValueError, match="nothing fits"):
        pairs_of(False)


def test_no_tuple_is_longer_than_its_most_items():
    schema = {"type": "array", "prefixItems": [NUMBER, NUMBER], "maxItems": 1}
    assert all(len(side) == 1 for pair in draw(pairs_of(schema), 5, seed=0) for side in pair)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": [NUMBER, {"enum": [0, 1]}], "minItems": 2, "additionalItems": False},
        {"type": "array", "items": [{"type": "integer"}], "minItems": 1, "additionalItems": NUMBER},
        {"type": "array", "items": [NUMBER, {"type": "string"}], "minItems": 2, "maxItems": 2},
        {"type": "array", "items": [], "additionalItems": NUMBER, "maxItems": 3},
        {"type": "array", "items": NUMBER, "additionalItems": False, "maxItems": 3},
        {"type": "object", "properties": {"items": {"type": "array", "items": [NUMBER]}}, "required": ["items"]},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/row",
            "definitions": {"row": {"type": "array", "items": [NUMBER, {"type": "integer"}], "minItems": 2}},
        },
        {"enum": [{"items": [1]}, {"items": [2]}]},
    ],
    ids=["closed", "more", "as many", "empty", "no tuple", "named items", "reference", "values"],
)
def test_tuples_of_draft_7_are_drawn(schema):
    validator = Draft7Validator(schema)
    pairs = draw(pairs_of(schema), 10, seed=0)
    assert len(pairs) > 1
    for side in (side for pair in pairs for side in pair):
        validator.validate(to_json(side))


def test_a_schema_that_is_refused_is_bad_input():
    assert issubclass(SchemaError, ValueError)


def test_drawing_texts_leaves_nothing_behind(tmp_path):
    """In a process of its own: Hypothesis keeps its tables of characters once, in the folder it was imported in."""
    code = (
        "import hypothesis.strategies as st\n"
        "from overclaim.audit.spaces.drawing import draw, simplest\n"
        "assert draw(st.text(), 20, 0) and simplest(st.text()) == ''\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert not list(tmp_path.iterdir())
