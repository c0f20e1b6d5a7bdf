"""Locks: one run at a time writes into a folder of results, and one process at a time a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import hinted

NAME = ".overclaim.lock"


class LedgerError(Exception):
    """The ledger cannot be used: of another plan or version, damaged, or on a disk that is full or read-only."""

    ends_run = True


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Be the only run that writes into a folder, by a lock that dies with this process.

    Raises
    ------
    LedgerError
        If another run is writing there.
    ValueError
        If nothing can be written there.
    """
    path = (folder / NAME).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    except OSError as error:
        reason = "it is no folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise ValueError(f"cannot write to --out {str(folder)!r}: {reason}") from None
    if file is None:
        raise hinted(
            LedgerError(f"another run is writing to {str(folder)!r}"),
            "wait until it has ended, or name another folder by --out",
        )
    with _ended(path, file):
        yield


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until a lock file, which is made, is ours; then have it, and remove it."""
    file = _locked(path, wait=True)
    assert file is not None
    with _ended(path, file):
        yield


@contextmanager
def _ended(path: Path, file: int) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(file)


def _locked(path: Path, *, wait: bool = False) -> int | None:
    """Return the descriptor of a lock file that is ours now, or None if it is another's, unless we `wait`."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _lock(file, wait)
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        except BlockingIOError:
            os.close(file)
            return None
        except FileNotFoundError:
            pass
        os.close(file)  # whoever had it has just removed it


def _lock(file: int, wait: bool) -> None:
    """Wait for the lock, or raise BlockingIOError if another has it. Where files cannot be locked, nobody has."""
    try:
        import fcntl
    except ImportError:
        import msvcrt  # of Windows

        try:
            mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # type: ignore[attr-defined]
            msvcrt.locking(file, mode, 1)  # type: ignore[attr-defined]
        except OSError:
            raise BlockingIOError from None
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return
