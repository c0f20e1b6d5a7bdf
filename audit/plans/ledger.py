"""The ledger of an unfinished run: finished blocks and claims on disk, so that a kill loses only what was in hand.

One sqlite file in write-ahead mode: each block of runs and every claim is one transaction. Blocks are integer
counts keyed by everything that fixed them, so a resumed run adds up to the same record.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..play.provenance import digest, packages
from ..play.transcripts import BLOCK, MOST_TOGETHER
from ..statistics.events import Counts
from .plan import Plan
from .tasks import Task

NAME = "ledger.sqlite"
#: Seconds that a writer waits for another process.
PATIENCE = 60.0
_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE blocks (
    claim INTEGER, stage TEXT, block INTEGER, counts TEXT NOT NULL, PRIMARY KEY (claim, stage, block)
);
CREATE TABLE claims (claim INTEGER PRIMARY KEY, outcome TEXT NOT NULL);
"""


class LedgerError(Exception):
    """The ledger cannot be used: of another plan or version, damaged, or on a disk that is full or read-only."""


def versions(plan: Plan) -> str:
    """Return what the draws of a block depend on besides the plan."""
    return packages(fast=any(task.fast for task in plan.tasks))


def fingerprint(plan: Plan) -> str:
    """Return the hash of a plan: its tasks, seeds and pairs, the text of users' files, and the sizes of blocks."""
    tasks = [_task_facts(task) for task in plan.tasks]
    facts = {"tasks": tasks, "seed": plan.seed, "confidence": plan.confidence, "alpha": plan.report_alpha}
    facts |= {"block": [BLOCK, MOST_TOGETHER], "regret": [vars(task) for task in plan.regret]}
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=repr).encode()).hexdigest()


def _task_facts(task: Task) -> dict[str, Any]:
    facts = {name: value for name, value in vars(task).items() if name != "pair"}
    facts["parameters"] = dict(task.parameters)
    facts["pair"] = None if task.pair is None else task.pair.to_json()
    place = task.target.rpartition(":")[0]
    facts["text"] = digest(place) if place else ""
    return facts


@dataclass(frozen=True)
class Ledger:
    """The ledger of one run, by its path: it travels to worker processes, which open connections of their own."""

    path: Path

    @classmethod
    def begin(cls, folder: Path, plan: Plan, *, resume: bool) -> Ledger:
        """Return the ledger of a plan's run in a folder: a new one, or with `resume` what a killed run has left.

        Raises
        ------
        LedgerError
            If there is an unfinished run and `resume` is false, if it is of another plan or version, or if the file
            cannot be written.
        """
        ledger = cls(folder / NAME)
        facts = {"plan": fingerprint(plan), "versions": versions(plan)}
        if ledger.path.exists():
            found, blocks, claims = ledger._summary()
            if not resume and blocks + claims:
                raise LedgerError(
                    f"{ledger.path} holds {claims} finished claims and {blocks} finished blocks of an unfinished run: "
                    "add --resume to go on with it, or remove the file to start over"
                )
            if resume and found:
                ledger._check(found, facts)
                return ledger
            ledger.remove()  # nothing was finished
        with ledger._open(create=True) as connection:
            connection.executescript("BEGIN;" + _TABLES)
            connection.executemany("INSERT INTO about VALUES (?, ?)", list(facts.items()))
            connection.commit()
        return ledger

    def _summary(self) -> tuple[dict[str, str], int, int]:
        with self._open() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'claims'").fetchone():
                return {}, 0, 0  # killed while it was made
            about = dict(connection.execute("SELECT key, value FROM about").fetchall())
            counts = [connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("blocks", "claims")]
        return about, counts[0], counts[1]

    def _check(self, found: dict[str, str], wanted: dict[str, str]) -> None:
        if found.get("versions") != wanted["versions"]:
            raise LedgerError(
                f"{self.path} is of {found.get('versions')}, this is {wanted['versions']}: its blocks would not fit; "
                "resume it there, or remove the file to start over"
            )
        if found.get("plan") != wanted["plan"]:
            raise LedgerError(
                f"{self.path} is of another plan, or a target's file has changed: give that plan, "
                "or remove the file to start over"
            )

    def remove(self) -> None:
        """Remove the file: its run is finished and its record written."""
        for suffix in ("-wal", "-shm", "-journal", ""):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def outcomes(self) -> dict[int, Any]:
        """Return what was kept of finished claims, by their index."""
        with self._open() as connection:
            rows = connection.execute("SELECT claim, outcome FROM claims").fetchall()
        return {claim: json.loads(text) for claim, text in rows}

    def keep_outcome(self, claim: int, outcome: Any) -> None:
        """Keep a finished claim; its blocks are no longer needed."""
        with self._open() as connection:
            connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (claim, json.dumps(outcome)))
            connection.execute("DELETE FROM blocks WHERE claim = ?", (claim,))
            connection.commit()

    def page(self, claim: int) -> Page:
        """Return the page of one claim."""
        return Page(self, claim)

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection; every trouble of sqlite or of the disk becomes one clear line."""
        try:
            if create:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # Only `begin` creates the file: a worker that outlives its killed parent must not.
            with closing(connect(self.path, "rwc" if create else "rw")) as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise self.trouble(error) from None

    def trouble(self, error: Exception) -> LedgerError:
        """Return what to tell the user about an error of sqlite."""
        told = getattr(error, "strerror", None) or str(error)
        return LedgerError(f"cannot use {self.path}: {told}; nothing that was finished is lost, --resume goes on")


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
        return connect(self.ledger.path, "rw")

    def recall(self, stage: str) -> dict[int, Counts]:
        """Return the finished blocks of a stage; the stage's name tells everything that fixed its counts."""
        return {block: Counts(*map(int, found)) for block, found in self.recall_totals(stage).items()}

    def keep(self, stage: str, block: int, counts: Counts) -> None:
        """Keep one finished block: one transaction."""
        self.keep_totals(stage, block, astuple(counts))

    def recall_totals(self, stage: str) -> dict[int, list[float]]:
        """Return the finished blocks of a stage that kept numbers of its own."""
        query = "SELECT block, counts FROM blocks WHERE claim = ? AND stage = ?"
        try:
            rows = self._connection.execute(query, (self.claim, stage)).fetchall()
        except sqlite3.Error as error:
            raise self.ledger.trouble(error) from None
        return {block: json.loads(text) for block, text in rows}

    def keep_totals(self, stage: str, block: int, totals: Sequence[float]) -> None:
        """Keep one finished block of a stage by its numbers, every digit of them: one transaction."""
        row = (self.claim, stage, block, json.dumps(totals))
        try:
            with self._connection:
                self._connection.execute("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?)", row)
        except sqlite3.Error as error:
            raise self.ledger.trouble(error) from None

    def close(self) -> None:
        """Close the connection."""
        if "_connection" in self.__dict__:
            self._connection.close()
            del self.__dict__["_connection"]
