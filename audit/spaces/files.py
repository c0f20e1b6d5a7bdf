"""Inputs in files: JSON, one array of NumPy, or a table of comma-separated values as a data frame."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...learners.blame import said
from ..play.data import from_json, import_pandas
from ..play.json_text import check_readable, parse_float, parse_json

#: What a file may be, by its suffix, and the largest one in bytes: a record holds the inputs.
SUFFIXES, LARGEST = (".json", ".npy", ".csv"), 2**23
#: How a plan names a file.
FILE_TAG = "$file"


@dataclass(frozen=True)
class InputFile:
    """A file that holds an input, or the schema of inputs."""

    path: Path

    @cached_property
    def data(self) -> object:
        """What it holds; ValueError where it cannot be read."""
        path = self.path
        if path.suffix not in SUFFIXES:
            raise ValueError(f"a file of inputs must end with {', '.join(SUFFIXES)}, got {str(path)!r}")
        try:
            check_readable(path, LARGEST)
            return self._read()
        except OSError as error:
            raise ValueError(f"cannot read the input {str(path)!r}: {error.strerror or error}") from None
        except (ValueError, RecursionError, EOFError) as error:
            raise ValueError(f"cannot read the input {str(path)!r}: {said(error)}") from None

    def _read(self) -> object:
        if self.path.suffix == ".npy":
            return np.load(self.path, allow_pickle=False)
        if self.path.suffix == ".csv":
            return _read_table(self.path)
        return parse_json(self.path.read_text(encoding="utf-8-sig"))


def _read_table(path: Path) -> Any:
    """Return a table; ValueError where a number in it is beyond all floats, which pandas reads as infinity."""
    table = import_pandas().read_csv(path)
    infinite = [name for name in table.select_dtypes("float") if np.isinf(table[name]).any()]
    if infinite:
        texts = import_pandas().read_csv(path, usecols=infinite, dtype=str)
        for name in infinite:
            for text in texts[name][np.isinf(table[name])]:
                parse_float(text)
    return table


def read_input(value: object) -> object:
    """Return the data that an option or a plan gives: from a file, or written out."""
    return from_json(_read(value))


def read_schema(value: object) -> object:
    """Return the schema that an option or a plan gives: from a file, or written out."""
    return _read(InputFile(Path(value)) if isinstance(value, str) else value)


def _read(value: object) -> object:
    if isinstance(value, dict) and FILE_TAG in value:
        value = of_plan(value)
    return value.data if isinstance(value, InputFile) else value


def of_plan(value: object) -> object:
    """Return the input that a plan gives: the file that a table or a text names, if there is one, or what it says.

    A text in quotes of its own is never a file, as on the command line.
    """
    if isinstance(value, dict) and FILE_TAG in value:
        if len(value) > 1:
            other_key = next(name for name in value if name != FILE_TAG)
            raise ValueError(f"{FILE_TAG!r} names a file and stands alone, got {other_key!r} beside it")
        return InputFile(Path(str(value[FILE_TAG])))
    if isinstance(value, str) and names_a_file(value) and Path(value).is_file():
        return InputFile(Path(value))
    quoted = isinstance(value, str) and value.startswith('"') and names_a_file(value[1:-1])
    return parse_json(value) if quoted and isinstance(value, str) else value


def names_a_file(text: str) -> bool:
    """Tell whether an option's text is the name of a file of data, and not JSON that ends like one."""
    return text.endswith(SUFFIXES) and not text.lstrip().startswith(("{", "[", '"'))


def written_schema(value: object) -> str:
    """Return how `--inputs` gives a schema again: of a plan, text is always the name of a file."""
    return value if isinstance(value, str) and names_a_file(value) else written(value)


def written(value: object) -> str:
    """Return how an option gives this again."""
    return str(value.path) if isinstance(value, InputFile) else json.dumps(value)
