"""The files that code under audit reads: each that is opened or imported is known by its hash at the first opening.

Python's audit events name them, in this process and in workers, which send theirs with their results. What
subprocesses and libraries in C open by themselves is not seen.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from .provenance import changed, hash_of, is_installed_source, is_users

#: Folders of the system: what it tells of itself, and its own settings, time zones and libraries.
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/lib/", "/usr/share/")


@dataclass
class FileReads:
    """What was read while this was collected.

    Attributes
    ----------
    hashes : dict
        From the path of a file to its SHA-256 when it was first opened; None of one that the run wrote itself.
    updated : set of str
        Paths that were opened to read and write: a change of them may be the run's own.
    """

    hashes: dict[str, str | None] = field(default_factory=dict)
    updated: set[str] = field(default_factory=set)

    def add(self, other: FileReads) -> None:
        """Add what another process, or an inner block, has read."""
        for path, digest in other.hashes.items():
            self.hashes[path] = None if digest is None else self.hashes.get(path, digest)
        self.updated |= other.updated

    def compared(self) -> dict[str, str]:
        """Return the hashes of files that the run did not write."""
        return {path: digest for path, digest in self.hashes.items() if digest is not None}

    def changed(self) -> list[str]:
        """Return the files that others changed after they were opened; forget those that the run itself changed."""
        edited = changed(self.compared())
        self.hashes |= dict.fromkeys(self.updated & set(edited))
        return [path for path in edited if path not in self.updated]


#: What is being collected, innermost last.
_collecting: list[FileReads] = []
#: What any block of this process has read in a run, by a name of that run.
_of_run: dict[str, FileReads] = {}
#: A thread that hashes a file opens it.
_hashing = threading.local()


@contextmanager
def collected(run: str = "") -> Iterator[FileReads]:
    """Collect the files that this process and its workers read, and the files of all loaded modules.

    Where a user's module stays loaded, so may what an earlier block of the run has read: it belongs to this one too.

    Parameters
    ----------
    run : str
        The name of the run that this process works for; where nothing is collected yet, none begins a new run.
    """
    _watch()
    if not _collecting and (not run or run not in _of_run):
        _of_run.clear()
        _of_run[run or os.urandom(8).hex()] = FileReads()
    (before,) = _of_run.values()
    modules = {path for module in list(sys.modules.values()) if isinstance(path := _file_of(module), str)}
    paths = before.hashes.keys() if any(map(is_users, modules)) else before.hashes.keys() & modules
    reads = FileReads({path: before.hashes[path] for path in paths}, set(before.updated))
    _collecting.append(reads)
    try:
        yield reads
    finally:
        _collecting.pop()
        for outer in (before, *_collecting[-1:]):
            outer.add(reads)


def run_name() -> str:
    """Return the name of the run whose files are collected; empty where none are."""
    return next(iter(_of_run)) if _collecting else ""


def receive(reads: FileReads | None) -> None:
    """Add what another process has read to what is collected here."""
    if reads is not None and _collecting:
        _collecting[-1].add(reads)


def current() -> FileReads | None:
    """Return what is collected now; None where nothing is."""
    return _collecting[-1] if _collecting else None


def _file_of(module: object) -> object:
    try:
        return getattr(module, "__file__", None)
    except Exception:  # a module may be any object
        return None


@cache
def _watch() -> None:
    sys.addaudithook(_note)


def _note(event: str, args: tuple[object, ...]) -> None:
    """Note what Python is about to do to a file; never raise, which would forbid it."""
    if event not in ("open", "import", "os.rename") or getattr(_hashing, "on", False):
        return
    if event == "open":
        note_opened(args[0], args[2])
    elif event == "import":
        note_opened(args[1], os.O_RDONLY)
    elif _collecting and (path := _path(args[1])) is not None:
        _collecting[-1].hashes[path] = None


def note_opened(file: object, flags: object) -> None:
    """Note a file that is opened, here or by a process of the target's own, with the flags of `os.open`."""
    if not _collecting or not isinstance(flags, int) or (path := _path(file)) is None:
        return
    reads = _collecting[-1]
    if flags & os.O_WRONLY or (flags & os.O_RDWR and flags & (os.O_CREAT | os.O_TRUNC)):
        reads.hashes[path] = None
        return
    if flags & os.O_RDWR:
        reads.updated.add(path)
    path = _source(path)
    if path not in reads.hashes and (is_users(path) or is_installed_source(path)):
        _hashing.on = True
        try:
            if digest := hash_of(path):
                reads.hashes[path] = digest
        finally:
            _hashing.on = False


def _path(file: object) -> str | None:
    """Return the absolute path of what is opened; None of a descriptor, and of what the system tells of itself."""
    if not isinstance(file, str | bytes | os.PathLike):
        return None
    try:
        path = os.path.abspath(os.fsdecode(file))
    except (OSError, ValueError, TypeError):  # the current folder may be gone
        return None
    return None if path.startswith(_SYSTEM) else path


def _source(path: str) -> str:
    """Return the source of bytecode that is kept."""
    if not path.endswith(".pyc"):
        return path
    try:
        return importlib.util.source_from_cache(path)
    except (ValueError, NotImplementedError):
        return path
