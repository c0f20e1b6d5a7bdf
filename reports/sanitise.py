"""Texts that may come from anywhere, shown with nothing hidden in them."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import TypeVar, cast

_Json = TypeVar("_Json")
#: What is not plain ASCII.
_UNUSUAL = re.compile("[^ -~]")


def visible(value: _Json) -> _Json:
    """Return the value with control characters and those that reorder text written out, in all of its strings."""
    return cast(_Json, _visible(value))


def _visible(value: object) -> object:
    if isinstance(value, str):
        return _UNUSUAL.sub(lambda match: _written(match[0]), value)
    if isinstance(value, Mapping):
        return {_visible(k): _visible(v) for k, v in value.items()}
    return [_visible(v) for v in value] if isinstance(value, list | tuple) else value


def visible_line(text: object) -> str:
    """Return the text on one line, with characters that steer a terminal or reorder text written out."""
    return str(visible(" ".join(str(text).split())))


def json_text(value: object, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """Return a value as JSON that any file and terminal can take: hidden characters are escaped, none is changed.

    Raises RuntimeError for a number that JSON has not: whoever made the value should have written it otherwise.
    """
    try:
        text = json.dumps(value, indent=indent, sort_keys=sort_keys, allow_nan=False, ensure_ascii=False)
    except ValueError as error:
        raise RuntimeError(f"a record has a value that JSON has not: {error}") from error
    return _UNUSUAL.sub(lambda match: json.dumps(match[0])[1:-1] if _hidden(match[0]) else match[0], text)


def _hidden(character: str) -> bool:
    """Tell whether a character steers, reorders or breaks text, or is half of one."""
    return character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _written(character: str) -> str:
    if character in "\n\t":
        return " "
    code = ord(character)
    return character if not _hidden(character) else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def finite(value: float) -> float | None:
    """Return the value, or None where JSON has no number for it."""
    return value if math.isfinite(value) else None
