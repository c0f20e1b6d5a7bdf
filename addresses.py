"""The addresses that overclaim prints, once: where its pages and schemas are published."""

from __future__ import annotations

from typing import Final

#: The project's home: `[project.urls]` of pyproject.toml says the same.
HOME: Final = "https://overclaim.readthedocs.io"
#: The pages of this documentation.
PAGES: Final = f"{HOME}/en/latest"


def schema_address(name: str, version: int) -> str:
    """Return the address of a published JSON Schema, such as that of a plan: its `$id`."""
    return f"{PAGES}/schemas/{name}-{version}.json"
