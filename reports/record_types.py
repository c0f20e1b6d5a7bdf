"""The types of a record's parts. They are JSON: `record_schema` checks their form when a record is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

#: A record, a claim or another object of a record, to be read.
Fields: TypeAlias = Mapping[str, Any]
#: The same, to be written to.
JsonObject: TypeAlias = dict[str, Any]
