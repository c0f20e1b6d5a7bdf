"""The words of JSON schemas, and the schema and the defaults of a typed dictionary.

A field is `name: Annotated[type, schema]`. Behind the schema may stand `REQUIRED`, or `Default(value)`: readers take
that value where a record lacks the field. A schema that takes long to import is a function without parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
NUMBER: Final[Schema] = {"type": "number", "minimum": -1e300, "maximum": 1e300}  # JSON reads 1e999 as infinite
LEVEL: Final[Schema] = {**NUMBER, "minimum": 0}
SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
INSIDE: Final[Schema] = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
ROUND: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 2**53 - 1}


class Default(NamedTuple):
    """What a reader takes for a field that a record lacks."""

    value: object


#: A record without this field is none.
REQUIRED: Final = "required"


def maybe(schema: Schema) -> Schema:
    """Return a schema of the same type, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def array(items: Schema, **limits: int) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **limits}


def table(*required: str, **properties: Schema) -> Schema:
    """Return the schema of an object: the names of fields that it must have, and the schemas of fields."""
    return {"type": "object", "required": list(required), "properties": properties}


def each(schema: Schema, *names: str) -> dict[str, Schema]:
    """Return one schema for several names."""
    return dict.fromkeys(names, schema)


def choice(*values: str | None) -> Schema:
    """Return the schema of one of some values."""
    return {"enum": [*values]}


def table_of(record_type: type) -> Schema:
    """Return the schema of a typed dictionary, from what its fields are annotated with."""
    fields = list(_annotated(record_type))
    required = [name for name, metadata in fields if REQUIRED in metadata]
    schemas = (
        (name, fact) for name, metadata in fields for fact in metadata if isinstance(fact, dict) or callable(fact)
    )
    return table(*required, **{name: schema() if callable(schema) else schema for name, schema in schemas})


def defaults_of(record_type: type) -> dict[str, Any]:
    """Return the defaults of a typed dictionary's fields that have one, by name."""
    return {
        name: fact.value
        for name, metadata in _annotated(record_type)
        for fact in metadata
        if isinstance(fact, Default)
    }


def _annotated(record_type: type) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each field with what stands behind its type."""
    return (
        (name, getattr(annotation, "__metadata__", ())) for name, annotation in record_type.__annotations__.items()
    )
