"""JSON Schemas of inputs: what they draw fits them, and what they cannot say is one line."""

import math

import pytest
from jsonschema import Draft202012Validator

from overclaim.audit.inputs.data import to_json
from overclaim.audit.inputs.drawing import draw
from overclaim.audit.inputs.schema import SchemaError, pairs_of

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


def test_a_relation_goes_with_it():
    for left, right in draw(pairs_of(SCHEMAS[0], "add-remove"), 20, seed=0):
        assert abs(len(left) - len(right)) == 1
        assert min(len(left), len(right)) >= 1


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (3, "the schema of inputs is none"),
        ({"type": "float"}, "the schema of inputs is none"),
        ({"minimum": 1}, "must say its type"),
        ({"type": "number", "minimum": 1, "maximum": 0}, "nothing fits the schema of inputs: no number is at least 1"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "nothing fits"),
        ({"type": "array", "minItems": 2, "maxItems": 1}, "nothing fits the schema of inputs: minItems is 2"),
        ({"type": "array", "items": False, "minItems": 1}, "nothing fits"),
        (False, "nothing fits"),
        ({"type": "string", "format": "date"}, "says 'format', which is not known for the type string"),
        ({"type": "number", "anyOf": [NUMBER]}, "says 'type', which is not known beside anyOf"),
        ({"$ref": "other.json"}, "refer to its own parts alone"),
        ({"$ref": "#/$defs/none"}, "has no part"),
        ({"type": "array", "items": {"$ref": "#"}}, "nests, or refers to itself"),
        ({"type": "integer", "multipleOf": 0.5}, "multipleOf of inputs must be a whole number"),
    ],
)
def test_what_it_cannot_say_is_refused_in_one_line(schema, message):
    with pytest.raises(ValueError, match=message) as error:
        pairs_of(schema)
    assert "\n" not in str(error.value)


def test_a_schema_that_is_refused_is_bad_input():
    assert issubclass(SchemaError, ValueError)
