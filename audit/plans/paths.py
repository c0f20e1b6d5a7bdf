"""Files that a user names: whatever is wrong with a name is said in one line that has it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryFile

from ...errors import must_be
from ..play.json_text import MAX_TEXT, check_readable, parse_json


@contextmanager
def named(trouble: str, path: Path) -> Iterator[None]:
    """Raise ValueError for what the system says about a path: names too long, links in circles, no permission.

    Parameters
    ----------
    trouble : str
        What then cannot be done, as in "cannot read the plan".
    """
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # the last two: null characters, and links in circles
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{trouble} {str(path)!r}: {reason}") from None


def read_text(path: Path, subject: str) -> str:
    """Return the text of a file; `subject` names its kind in the message of the ValueError if it cannot be read."""
    with named(f"cannot read the {subject}", path):
        check_readable(path, MAX_TEXT)
        data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")  # some editors of Windows begin a file with a mark of its order of bytes
    except UnicodeDecodeError:
        raise ValueError(f"the {subject} {str(path)!r} is not UTF-8 text") from None


def read_json(path: Path, subject: str, begins: tuple[str, ...]) -> object:
    """Return the JSON of a file, or of the name itself where it begins as JSON does: so replay commands have it.

    Raises
    ------
    ValueError
        As `read_text`; or for what is no JSON.
    """
    name = str(path)
    text = name if name.lstrip().startswith(begins) else read_text(path, subject)
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the {subject} {name!r} is no JSON: {error}") from None


def mode(path: Path) -> int:
    """Return the mode of what is there, of a link's target; 0 where nothing is."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def exists(path: Path, trouble: str) -> bool:
    """Tell whether something is there; ValueError as in `named` where that cannot be told."""
    with named(trouble, path):
        return mode(path) != 0


def check_output(path: Path) -> None:
    """Raise ValueError if a file cannot be written there, or must not: a device or a pipe is never replaced."""
    with named("cannot write", path):
        kind = mode(path)
    if kind and not stat.S_ISREG(kind):
        raise ValueError(f"cannot write {str(path)!r}: it is no regular file")


def check_folder(path: Path, *files: str, read: Mapping[str, Path | None], ignored: bool = False) -> None:
    """Raise ValueError where these files cannot be written into a folder, which is made: before hours of work.

    Each must differ from the others and from the files in `read`, whose keys the message names. A new folder that is
    `ignored` gets a `.gitignore`.
    """
    with named("cannot write into the folder", path):
        kind = mode(path)
    if kind and not stat.S_ISDIR(kind):
        raise must_be("--out", "a folder", str(path))
    with named("cannot write into the folder", path):
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
        if ignored and not kind:
            (path / ".gitignore").write_text("*\n")
    for file in files:
        check_output(path / file)
    path_of_file = {file: path / file for file in files}
    check_distinct(path_of_file)
    for name, place in read.items():  # two that are read may be one file
        if place is not None:
            check_distinct({**path_of_file, name: place})


def check_distinct(files: Mapping[str, Path]) -> None:
    """Raise ValueError if two of these names lead to one file, through links or directly: one would be lost."""
    seen = {}
    for name, path in files.items():
        with named("cannot use", path):
            seen[name] = (os.path.realpath(path), os.stat(path) if mode(path) else None)
    for (option, first), (other, second) in combinations(files.items(), 2):
        (place, file), (place_of_other, file_of_other) = seen[option], seen[other]
        if place == place_of_other or (file and file_of_other and os.path.samestat(file, file_of_other)):
            raise ValueError(f"{option} {str(first)!r} and {other} {str(second)!r} are the same file")
