"""The fields of a claim's record: one table of types, schemas and defaults."""

from jsonschema import Draft202012Validator

from overclaim.json_schema import REQUIRED, Default, defaults_of, table_of
from overclaim.reports.record_types import ClaimRecord

#: Fields whose content nobody reads by a form of its own.
FREE = {"parameters", "baseline"}


def test_every_field_has_a_schema():
    assert ClaimRecord.__annotations__.keys() - table_of(ClaimRecord)["properties"].keys() == FREE


def test_every_default_fits_its_schema():
    schemas, defaults = table_of(ClaimRecord)["properties"], defaults_of(ClaimRecord)
    assert defaults
    for name, value in defaults.items():
        Draft202012Validator(schemas[name]).validate(value)


def test_what_is_required_has_no_default():
    table = table_of(ClaimRecord)
    assert table["required"] == ["name", "claimed", "verdict"]
    facts = {name: getattr(one, "__metadata__", ()) for name, one in ClaimRecord.__annotations__.items()}
    assert not [name for name, said in facts.items() if REQUIRED in said and any(isinstance(s, Default) for s in said)]
