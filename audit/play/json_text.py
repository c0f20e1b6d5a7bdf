"""Files and JSON that a user gives: what is no file, and a text that readers would take differently, is refused."""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Callable
from pathlib import Path

from ...errors import hinted

#: The largest text that is read, and the largest file of scores or data, in bytes.
MAX_TEXT, MAX_DATA = 2**26, 2**30


def check_readable(path: Path, limit: int) -> None:
    """Raise ValueError for what is no regular file, which might never end, or has more bytes; OSError for nothing."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is no regular file")
    if status.st_size > limit:
        raise ValueError(f"it has {status.st_size:,} bytes, and at most {limit:,} are read")


def parse_json(text: str, number: Callable[[str], object] | None = None) -> object:
    """Return what a JSON text holds.

    Raises
    ------
    ValueError
        For what is no JSON, has two values under one name in an object, or a number beyond all floats.

    Parameters
    ----------
    number : callable, optional
        What stands for NaN and the infinities, by their names; Python's floats by default.
    """
    data: object = json.loads(text, parse_constant=number, parse_float=parse_float, object_pairs_hook=_unique_names)
    return data


def parse_float(text: str) -> float:
    """Return the number that a text writes; ValueError for one that no float holds, which would become infinity."""
    number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise hinted(ValueError(f"no float holds {text:.40}"), "write infinity as Infinity in JSON, as inf in TOML")
    return number


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; of two values under one name readers would take different ones."""
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has two of {next(name for name in names if names.count(name) > 1)!r}")
    return data


def digest_of(value: object) -> str:
    """Return a short hash of what JSON can hold, and of what else there is by how Python shows it."""
    return hashlib.sha256(canonical_text(value).encode(errors="replace")).hexdigest()[:16]


def canonical_text(value: object) -> str:
    """Return one text for equal values."""
    return json.dumps(value, sort_keys=True, default=repr)
