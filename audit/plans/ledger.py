"""The ledger of an unfinished run: finished blocks and claims on disk, so that a kill loses only what was in hand.

One sqlite file in write-ahead mode: each block of runs, each stage of a search or a training and every claim is one
transaction. They are numbers keyed by everything that fixed them, so a resumed run adds up to the same record. Every
row bears the key of its run: what a process of another run may write is never read.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import hinted
from ..execution import file_reads
from ..execution.execution import Json
from ..execution.provenance import environment, hash_of, own_code, packages
from ..play.transcripts import BLOCK, MAX_TOGETHER
from ..statistics.events import Counts
from .audited_files import file_of, files_of
from .lock import LedgerError
from .plan import Plan
from .tasks import Task

NAME = "ledger.sqlite"
#: The version of the tables below: a ledger of another one is refused.
SCHEMA = "3"
#: Seconds that a writer waits for another process.
PATIENCE = 60.0
_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE blocks (
    run TEXT, claim INTEGER, stage TEXT, block INTEGER, counts TEXT NOT NULL, PRIMARY KEY (run, claim, stage, block)
);
CREATE TABLE stages (run TEXT, claim INTEGER, stage TEXT, value TEXT NOT NULL, PRIMARY KEY (run, claim, stage));
CREATE TABLE files (run TEXT, claim INTEGER, path TEXT, hash TEXT NOT NULL, PRIMARY KEY (run, claim, path));
CREATE TABLE claims (run TEXT, claim INTEGER, outcome TEXT NOT NULL, PRIMARY KEY (run, claim));
"""
#: The errors of sqlite after which a retry cannot help: no database, a damaged one, or one without our tables.
_DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH)


def versions() -> str:
    """Return what the draws of a block depend on besides the plan."""
    return f"{packages()}, code {own_code()}"


def fingerprint(plan: Plan) -> str:
    """Return the hash of a plan: its tasks, seeds and pairs, and the sizes of blocks; files are compared by claim.

    Raises
    ------
    ValueError
        If the plan holds what no JSON can.
    """
    plan_data = {"tasks": [*map(_task_facts, plan.tasks)], "seed": plan.seed, "confidence": plan.confidence}
    plan_data |= {
        "alpha": plan.report_alpha,
        "block": [BLOCK, MAX_TOGETHER],
        "regret": [vars(task) for task in plan.regret],
    }
    return hashlib.sha256(json.dumps(plan_data, sort_keys=True, default=repr).encode()).hexdigest()


def _task_facts(task: Task) -> dict[str, object]:
    task_data = {name: value for name, value in vars(task).items() if name != "pair"}
    pair = None if task.pair is None else task.pair.to_json()
    return task_data | {"parameters": dict(task.parameters), "pair": pair}


def _current() -> Path:
    """Return the current folder, or nothing where it is gone: an absolute path does not need it."""
    try:
        return Path.cwd()
    except OSError:
        return Path()


@dataclass(frozen=True)
class Ledger:
    """The ledger of one run, by its path: it travels to worker processes, which open connections of their own.

    Attributes
    ----------
    path : Path
    key : str
        Of the run: everything that its results depend on. All its rows bear it, and no others are read.
    kept : int or None
        Finished claims that a resumed run goes on from; None of a run that begins.
    edited : tuple of (int, str)
        Claims that a resumed run begins anew, each with a file of theirs that was changed.
    folder : Path
        That a relative path starts from.
    """

    path: Path
    key: str = ""
    kept: int | None = None
    edited: tuple[tuple[int, str], ...] = ()
    folder: Path = field(default_factory=_current)

    @property
    def file(self) -> Path:
        """The same wherever a target has gone meanwhile."""
        return self.folder / self.path

    @classmethod
    def begin(cls, folder: Path, plan: Plan, *, resume: bool) -> Ledger:
        """Return the ledger of a plan's run in a folder: a new one, or with `resume` what a killed run has left.

        Raises
        ------
        LedgerError
            If there is an unfinished run and `resume` is false, if it is of another plan or version, or if the file
            cannot be read or written.
        """
        entries = {"schema": SCHEMA, "plan": fingerprint(plan), "versions": versions()}
        entries["environment"] = json.dumps(environment(), sort_keys=True)
        key = hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()[:16]
        ledger = cls(folder / NAME, key)
        if ledger.file.exists() and not ledger.file.is_file():
            raise ledger.damaged("it is no file")
        if ledger.file.exists():
            present, finished = ledger._summary()
            if not resume and any(finished.values()):
                raise hinted(
                    LedgerError(f"{ledger.path} holds {_finished_words(finished)} of an unfinished run"),
                    "add --resume to go on with it, or --restart to start over",
                )
            if resume and present:
                ledger._check(present, entries)
                return ledger._without_edited(plan)
            ledger.remove()  # nothing was finished
        with ledger._open(create=True) as connection:
            connection.executescript("BEGIN;" + _TABLES)
            connection.executemany("INSERT INTO about VALUES (?, ?)", list(entries.items()))
            ledger._keep_named(connection, plan)
            connection.commit()
        return ledger

    def _keep_named(self, connection: sqlite3.Connection, plan: Plan) -> None:
        """Keep what the files are now that each task names."""
        paths = [*map(files_of, plan.tasks), *(file_of(task.target) for task in plan.regret)]
        for claim, files in enumerate(paths):
            self.keep_files(connection, claim, {path: hash_of(path) for path in map(str, files)})

    def _without_edited(self, plan: Plan) -> Ledger:
        """Forget the claims that read a file which is another now; return the ledger with the others."""
        files = self.files()
        hash_of_path = {path: hash_of(path) for path in {path for hashes in files.values() for path in hashes}}
        edited = {
            claim: path
            for claim, hashes in files.items()
            for path, digest in hashes.items()
            if hash_of_path[path] != digest
        }
        with self._open() as connection:
            for table in ("claims", "blocks", "stages", "files"):
                query = f"DELETE FROM {table} WHERE run = ? AND claim = ?"
                connection.executemany(query, [(self.key, claim) for claim in edited])
            self._keep_named(connection, plan)
            connection.commit()
        return replace(self, kept=len(self.outcomes()), edited=tuple(sorted(edited.items())))

    def files(self) -> dict[int, dict[str, str]]:
        """Return the hashes of the files that each claim read."""
        with self._open() as connection:
            rows = connection.execute("SELECT claim, path, hash FROM files WHERE run = ?", (self.key,)).fetchall()
        files: dict[int, dict[str, str]] = {}
        for claim, path, digest in rows:
            files.setdefault(claim, {})[path] = digest
        return files

    def held(self) -> AbstractContextManager[object]:
        """Keep the file open: who closes it last writes all of it back to the disk, else after every page.

        Raises
        ------
        LedgerError
            If it cannot be opened.
        """
        with self.clear_errors():
            connection = connect(self.file, "rw")
            connection.execute("SELECT key FROM about").fetchone()
        return closing(connection)

    def _summary(self) -> tuple[dict[str, str], dict[str, int]]:
        """Return what the file says of itself, and how much of it is finished."""
        with self._open() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                return {}, {}  # killed while it was made
            if (fault := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise self.damaged(str(fault))
            entries = dict(connection.execute("SELECT key, value FROM about").fetchall())
            if entries.get("schema") != SCHEMA:
                raise self.damaged("it is a ledger of another schema")
            counts = {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("claims", "blocks", "stages")
            }
        return entries, counts

    def _check(self, present: dict[str, str], expected: dict[str, str]) -> None:
        if present.get("versions") != expected["versions"]:
            raise LedgerError(
                f"{self.path} is of {present.get('versions')}, this is {expected['versions']}: its blocks would not "
                "fit; resume it there, or remove the file to start over"
            )
        if present.get("plan") != expected["plan"]:
            raise hinted(
                LedgerError(f"{self.path} is of another plan, or has another baseline or code beside it"),
                "give that plan, or remove the file to start over",
            )
        packages = json.loads(expected["environment"])
        earlier_packages = self.parsed(present.get("environment", "{}"), "what was installed")
        if present.get("environment") != expected["environment"]:
            other = ", ".join(
                sorted(
                    name
                    for name in {**packages, **earlier_packages}
                    if packages.get(name) != earlier_packages.get(name)
                )
            )
            raise LedgerError(
                f"{self.path} is of another environment ({other} changed): resume it there, or remove the file to "
                "start over"
            )

    @classmethod
    def discard(cls, folder: Path) -> str:
        """Remove what an interrupted run has left in a folder, damaged or of any plan; return what that was.

        Raises
        ------
        LedgerError
            If it cannot be removed.
        """
        ledger = cls(folder / NAME)
        if not ledger.file.is_file():
            return ""
        try:
            contents = f"{_finished_words(ledger._summary()[1])} of an interrupted run"
        except LedgerError:
            contents = "an interrupted run that cannot be read"
        with ledger.clear_errors():
            ledger.remove()
        return f"removed {ledger.path}, with {contents}"

    def remove(self) -> None:
        """Remove the file: its run is finished and its record written."""
        for suffix in ("-wal", "-shm", "-journal", ""):
            Path(f"{self.file}{suffix}").unlink(missing_ok=True)

    def outcomes(self) -> dict[int, Any]:
        """Return what was kept of finished claims, by their index.

        Raises
        ------
        LedgerError
            If a row is damaged. Whether an outcome fits its claim is its reader's to tell.
        """
        with self._open() as connection:
            rows = connection.execute("SELECT claim, outcome FROM claims WHERE run = ?", (self.key,)).fetchall()
        return {claim: self.parsed(text, f"the outcome of claim {claim}") for claim, text in rows}

    def parsed(self, text: str | bytes, subject: str) -> Any:
        """Return the JSON of a row."""
        try:
            return json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise self.damaged(f"{subject} is no JSON") from None

    def keep_outcome(self, claim: int, outcome: object) -> None:
        """Keep a finished claim; its blocks and stages are no longer needed."""
        with self._open() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (self.key, claim, json.dumps(outcome))
            )
            for table in ("blocks", "stages"):
                connection.execute(f"DELETE FROM {table} WHERE run = ? AND claim = ?", (self.key, claim))
            if (reads := file_reads.current()) is not None:
                self.keep_files(connection, claim, reads.hashes)
            connection.commit()

    def keep_files(self, connection: sqlite3.Connection, claim: int, hashes: Mapping[str, str | None]) -> None:
        """Keep the hash of each file that a claim read first; forget the files that it wrote."""
        new = [(self.key, claim, path, digest) for path, digest in hashes.items() if digest is not None]
        connection.executemany("INSERT OR IGNORE INTO files VALUES (?, ?, ?, ?)", new)
        written_rows = [(self.key, claim, path) for path, digest in hashes.items() if digest is None]
        connection.executemany("DELETE FROM files WHERE run = ? AND claim = ? AND path = ?", written_rows)

    def page(self, claim: int) -> Page:
        """Return the page of one claim."""
        return Page(self, claim)

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection, under `clear_errors`."""
        with self.clear_errors():
            if create:
                self.file.parent.mkdir(parents=True, exist_ok=True)
            # Only `begin` creates the file: a worker that outlives its killed parent must not.
            with closing(connect(self.file, "rwc" if create else "rw")) as connection:
                yield connection

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """Turn an error of sqlite or of the disk into a LedgerError of one line."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._trouble(error) from None

    def _trouble(self, error: Exception) -> LedgerError:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _DAMAGED:
            return self.damaged(reason)
        return LedgerError(f"cannot use {self.path}: {reason}; nothing that was finished is lost, --resume goes on")

    def damaged(self, subject: str) -> LedgerError:
        """Return what to tell the user about a file that cannot be gone on with."""
        return LedgerError(f"cannot use {self.path}: {subject}; it cannot be resumed: remove the file to start over")


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection to an sqlite file: write-ahead, so that a kill leaves whole transactions."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", timeout=PATIENCE, uri=True)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


@dataclass(frozen=True)
class Page:
    """The blocks of one claim, as its audit sees them; those of a measurement of regret come after the claims'."""

    ledger: Ledger
    claim: int

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        return connect(self.ledger.file, "rw")

    @cached_property
    def _files(self) -> list[dict[str, str | None]]:
        """The files that were read when they were last kept."""
        return [{}]

    def recall(self, stage: str) -> dict[int, Counts]:
        """Return the finished blocks of a stage; the stage's name tells everything that fixed its counts."""
        block_counts = {}
        for block, numbers in self.recall_totals(stage).items():
            counts = Counts.of_numbers([int(number) for number in numbers]) if len(numbers) >= 6 else None
            if counts is None or not _possible(counts) or list(counts.numbers) != numbers:
                raise self.ledger.damaged(f"block {block} of claim {self.claim} holds no counts")
            block_counts[block] = counts
        return block_counts

    def keep(self, stage: str, block: int, counts: Counts) -> None:
        """Keep one finished block: one transaction."""
        self.keep_totals(stage, block, counts.numbers)

    def recall_totals(self, stage: str) -> dict[int, list[float]]:
        """Return the finished blocks of a stage that kept numbers of its own."""
        query = "SELECT block, counts FROM blocks WHERE run = ? AND claim = ? AND stage = ?"
        rows = self._execute(query, stage).fetchall()
        totals = {}
        for block, text in rows:
            numbers = self.ledger.parsed(text, f"block {block} of claim {self.claim}")
            if not isinstance(numbers, list) or not all(type(x) in (int, float) for x in numbers):
                raise self.ledger.damaged(f"block {block} of claim {self.claim} holds no numbers")
            totals[block] = numbers
        return totals

    def keep_totals(self, stage: str, block: int, totals: Sequence[float]) -> None:
        """Keep one finished block of a stage by its numbers, every digit of them: one transaction."""
        self._execute("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)", stage, block, json.dumps(totals))

    def once(self, stage: str, compute: Callable[[], Json]) -> Json:
        """Return the JSON that a stage came to: what an earlier attempt has kept, or what `compute` returns now."""
        text = self.recall_stage(stage)
        if text is None:
            self.keep_stage(stage, text := json.dumps(compute()))
        value: Json = self.ledger.parsed(text, f"{stage} of claim {self.claim}")
        return value

    def recall_stage(self, stage: str) -> str | bytes | None:
        """Return the text or the bytes that were kept of a stage; None where nothing was."""
        query = "SELECT value FROM stages WHERE run = ? AND claim = ? AND stage = ?"
        text: str | bytes | None = (self._execute(query, stage).fetchone() or [None])[0]
        return text

    def keep_stage(self, stage: str, value: str | bytes) -> None:
        """Keep a text or bytes that a stage came to: one transaction."""
        self._execute("INSERT OR REPLACE INTO stages VALUES (?, ?, ?, ?)", stage, value)

    def _execute(self, query: str, *values: object) -> sqlite3.Cursor:
        """Run a query about this claim, a change and what it says of the user's files as one transaction."""
        with self.ledger.clear_errors(), self._connection:
            rows = self._connection.execute(query, (self.ledger.key, self.claim, *values))
            reads = file_reads.current()
            if not query.startswith("SELECT") and reads is not None and reads.hashes != self._files[0]:
                self._files[0] = dict(reads.hashes)
                self.ledger.keep_files(self._connection, self.claim, reads.hashes)
            return rows

    def close(self) -> None:
        """Close the connection."""
        if "_connection" in self.__dict__:
            self._connection.close()
            del self.__dict__["_connection"]


def _finished_words(finished: dict[str, int]) -> str:
    return " and ".join(f"{finished.get(name, 0)} finished {name}" for name in ("claims", "blocks"))


def _possible(counts: Counts) -> bool:
    """Tell whether counts can be those of runs."""
    numbers = counts.numbers
    return min(numbers) >= 0 and counts.runs_left <= counts.runs and counts.guesses <= counts.runs
