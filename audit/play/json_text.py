"""JSON that a user gives: a text that readers would take differently is refused."""

from __future__ import annotations

import json
from collections.abc import Callable


def parse_json(text: str, number: Callable[[str], object] | None = None) -> object:
    """Return what a JSON text holds; ValueError for what is no JSON, or has two values under one name in an object.

    Parameters
    ----------
    number : callable, optional
        What stands for NaN and the infinities, by their names; Python's floats by default.
    """
    data: object = json.loads(text, parse_constant=number, object_pairs_hook=_told_once)
    return data


def _told_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; of two values under one name readers would take different ones."""
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has two of {next(name for name in names if names.count(name) > 1)!r}")
    return data
