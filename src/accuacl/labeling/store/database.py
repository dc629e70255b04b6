"""The SQLite file of a project's labels: durable, append-only, for many threads and processes at once."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from accuacl.base.databases import DAMAGED, UNWRITABLE, database_trouble, error_code
from accuacl.labeling.store.errors import StoreUnavailable
from accuacl.labeling.store.schema import WAIT, upgrade
from accuacl.labeling.store.writers import Writers

AT_ONCE = 100  # rows in a statement: SQLite has taken 999 values since ever


class Transaction:
    """What can be asked and added within one transaction; `now` is its time."""

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self._db, self.now = db, now

    def all(self, statement: str, *values: Any) -> list[Any]:
        """All rows."""
        return self._db.execute(statement, values).fetchall()

    def one(self, statement: str, *values: Any) -> Any:
        """The first row, or None."""
        return self._db.execute(statement, values).fetchone()

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows, many in a statement: between two statements, other threads may have their turn."""
        for start in range(0, len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            places = ", ".join(f"({', '.join('?' * len(row))})" for row in part)
            self._db.execute(f"INSERT INTO {table} VALUES {places}", [value for row in part for value in row])

    def event(self, kind: str, **columns: Any) -> int:
        """Record that something happened now; its id."""
        names = ["time", "kind", *columns]
        statement = f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        return int(self._db.execute(statement, (self.now, kind, *columns.values())).lastrowid or 0)


class Database:
    """Connections to the file. Readers never wait; writers come one after another, and each write is synced."""

    def __init__(self, path: Path, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self.path, self._clock, self._steady = path, clock, steady
        self._idle: list[sqlite3.Connection] = []  # a connection is used by one thread at a time
        self._writers = Writers(self._take, self._idle.append)
        self._latest, self._seen = 0.0, steady()
        try:
            with self._clear_errors(), self._connection() as db:
                upgrade(db, path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections; none may be in use."""
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """One consistent view of everything."""
        with self._clear_errors(), self._connection() as db, self._within(db, "BEGIN"):
            yield Transaction(db, self._now(db))

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """A change that is on the disk when this returns, or has left no trace."""
        with self._clear_errors(), self._writers.turn() as db:
            yield Transaction(db, self._now(db))

    def _now(self, db: sqlite3.Connection) -> float:
        """The time, which never goes backwards, and never stands still either, whatever happens to the clock."""
        row = db.execute("SELECT time FROM events ORDER BY id DESC LIMIT 1").fetchone()
        if row and row[0] > self._latest:
            self._latest, self._seen = float(row[0]), self._steady()
        return max(self._clock(), self._latest + (self._steady() - self._seen) if row else 0.0)

    @contextlib.contextmanager
    def _within(self, db: sqlite3.Connection, begin: str) -> Iterator[None]:
        db.execute(begin)
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        db = self._take()
        try:
            yield db
        finally:
            self._idle.append(db)

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = FULL")
        return db

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if error_code(error) not in UNWRITABLE | DAMAGED:
                raise  # wrong SQL or a broken constraint: a bug
            trouble = database_trouble(self.path, error)
            raise StoreUnavailable(self.path, trouble.reason, trouble.full) from error
