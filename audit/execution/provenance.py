"""What results depend on besides a plan: versions, our own code, users' files, and their names."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import stat
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, distributions, version
from pathlib import Path

from ... import __version__

#: Our own package's folder, and its only room whose code plays and chooses nothing.
_ROOT, _SHOWS = Path(__file__).resolve().parents[2], "reports"
#: The distribution that a RECORD is of, by the folder that each has of its own.
_OF_DISTRIBUTION = re.compile(r"^([^/\n,]+)-[^-/\n,]+\.dist-info/", re.MULTILINE)
#: Folders of what is installed.
_INSTALLED = {"site-packages", "dist-packages"}


def versions() -> dict[str, str]:
    """Return the versions of what plays a block and of what chooses its pair."""
    names = ("numpy", "scipy", "scikit-learn", "optuna")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def packages() -> str:
    """Return these versions, and our own, as one text."""
    return ", ".join(f"{name} {version}" for name, version in {"overclaim": __version__, **versions()}.items())


@cache
def own_code() -> str:
    """Return the hash of our own code that plays and chooses."""
    files = sorted(path for room in _rooms() if room.name != _SHOWS for path in room.glob("**/*.py"))
    files += sorted(_ROOT.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]


def environment() -> dict[str, str]:
    """Return the interpreter, and the hash of every installed distribution's RECORD by its name.

    Of a distribution without one it is the hash of its metadata. Of two with one name, the first on the path is
    imported: both are named, in that order.
    """
    hashes: dict[str, list[str]] = {}
    for distribution in distributions():
        record = _text_of(distribution, "RECORD")
        match = _OF_DISTRIBUTION.search(record)
        text = record or _text_of(distribution, "METADATA") or _text_of(distribution, "PKG-INFO")
        name = match[1] if match else next(iter(re.findall(r"^Name: *(\S+)", text, re.MULTILINE)), "without a name")
        hashes.setdefault(name, []).append(hashlib.sha256(text.encode()).hexdigest())
    installed = {name: " ".join(digests) for name, digests in sorted(hashes.items())}
    return {"the interpreter": f"{sys.implementation.name} {sys.version}", **installed}


def _text_of(distribution: Distribution, name: str) -> str:
    """Return a file of a distribution's metadata; nothing where there is none that can be read."""
    try:
        return distribution.read_text(name) or ""
    except (OSError, ValueError):  # no UTF-8
        return ""


def _rooms() -> list[Path]:
    """Return the folders of our own package: tests, examples and benchmarks, which lie beside them, are none."""
    return sorted(path.parent for path in _ROOT.glob("*/__init__.py"))


def work_tree() -> Path | None:
    """Return the root of the git work tree that the current folder lies in; None where it lies in none.

    In a work tree that was added, and in a submodule, `.git` is a file.
    """
    current = Path.cwd()
    return next((folder for folder in (current, *current.parents) if os.path.exists(folder / ".git")), None)


def folder_in_tree() -> str:
    """Return the current folder as its work tree names it; empty at its root, and where there is none."""
    tree = work_tree()
    current = Path.cwd()
    return "" if tree is None or tree == current else current.relative_to(tree).as_posix()


def named_from_here(path: Path) -> str:
    """Return a file's name from the current folder, where it lies there or in the same work tree; else its last part.

    A record names no folder of a machine: of ours and of what is installed it has the name from the package on.
    """
    current, path = Path.cwd(), path.resolve()
    if path.is_relative_to(current):
        return path.relative_to(current).as_posix()
    tree = work_tree()
    in_tree = tree is not None and path.is_relative_to(tree)
    if in_tree:
        return Path(os.path.relpath(path, current)).as_posix()
    installed = [i for i, part in enumerate(path.parts) if part in _INSTALLED]
    if path.is_relative_to(_ROOT) or not installed:
        return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name
    return Path(*path.parts[installed[-1] + 1 :]).as_posix()


def target_from_here(target: str) -> str:
    """Return a target whose file is named by all of its path, as it is named from here where it lies here."""
    place, colon, name = target.rpartition(":")
    if not colon or not os.path.isabs(place):
        return target
    short_name = named_from_here(Path(place))
    return target if short_name == Path(place).name and Path(place).parent != Path.cwd() else f"{short_name}:{name}"


def digest(place: str) -> str:
    """Return the hash of the file that a user's target lies in; empty where there is none."""
    path: str | None = place
    if not place.endswith(".py"):
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError):
            return ""
        path = spec.origin if spec is not None else None
    try:
        return hashlib.sha256(Path(path or "").read_bytes()).hexdigest()
    except (OSError, ValueError):  # a plan may name what no system has a file for
        return ""


def hashes_now(names: Iterable[str]) -> dict[str, str]:
    """Return the hash of each file, by its name from the current folder; empty of one that is not there."""
    return {name: hash_of(name) for name in sorted(names)}


def changed(files: dict[str, str]) -> list[str]:
    """Return those of some files, by their paths, whose hashes are others now."""
    return sorted(path for path, old_digest in files.items() if hash_of(path) != old_digest)


def hash_of(path: str) -> str:
    """Return the SHA-256 of a regular file; empty where there is none that can be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait
            return ""
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


@cache
def _of_others() -> tuple[Path, ...]:
    """Return the folders of what is installed, whose versions tell what it is."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    return tuple({Path(paths[name]).resolve() for name in names})


def _real(path: Path) -> Path:
    """Return a path without links; as it is where that cannot be told, as of links in circles."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path


@cache  # a worker asks for every module that it has loaded, before every task
def is_users(name: str) -> bool:
    """Tell whether a file is the user's own: neither Python's, nor ours, nor installed."""
    path = _real(Path(name))
    if _INSTALLED & set(path.parts) or any(map(path.is_relative_to, _of_others())):
        return False
    return not _is_ours(path)


@cache
def is_installed_source(name: str) -> bool:
    """Tell whether a file is the source of an installed module: no RECORD tells that it was edited."""
    path = _real(Path(name))
    return path.suffix == ".py" and bool(_INSTALLED & set(path.parts)) and not _is_ours(path)


def _is_ours(path: Path) -> bool:
    return path.parent == _ROOT or any(map(path.is_relative_to, _rooms()))
