"""The SQLite file of a project's labels: durable, append-only, for many threads and processes at once.

Readers never wait. Threads that write at the same time share one transaction, and so one sync of the disk: each has its
turn, with a savepoint of its own, so that its changes are kept or undone apart from the others'; the last thread that
waits commits for all, and none returns before that.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from accuacl.base.databases import DAMAGED, UNWRITABLE, database_trouble, error_code
from accuacl.base.files import CannotWrite
from accuacl.labeling.store.schema import WAIT, create_tables

ROWS_AT_ONCE = 100  # rows that one INSERT adds: older versions of SQLite take at most 999 values in a statement
TURNS_TOGETHER = 50  # the most turns of threads that share a transaction
CHECKPOINT = 5.0  # seconds for others to finish reading; meanwhile nobody can write
PATIENCE = 1.0  # seconds after which a waiting thread commits, in case the thread that should have was interrupted


class StoreUnavailable(CannotWrite):
    """The file at `path` cannot be read or written: the disk is full, say, or the file is damaged."""

    def __str__(self) -> str:
        return f"{self.path} cannot be read or written ({self.reason}); nothing was saved, so fix that and try again."


class Transaction:
    """The queries and changes that are possible within one transaction; `now` is its time."""

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self._db, self.now = db, now

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Return all rows of the query's result."""
        return self._db.execute(statement, values).fetchall()

    def row(self, statement: str, *values: Any) -> Any:
        """Return the first row of the query's result, or None."""
        return self._db.execute(statement, values).fetchone()

    def execute(self, statement: str, *values: Any) -> None:
        """Run a statement that changes the database."""
        self._db.execute(statement, values)

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows to a table, many with each statement, because other threads may run between two statements."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            marks = ", ".join(f"({', '.join('?' * len(row))})" for row in part)
            self._db.execute(f"INSERT INTO {table} VALUES {marks}", [value for row in part for value in row])

    def event(
        self,
        kind: str,
        *,
        person: int | None = None,
        item: int | None = None,
        class_id: int | None = None,
        until: float | None = None,
        undoes: int | None = None,
        request: str | None = None,
        text: str | None = None,
    ) -> int:
        """Record an event now and return its id. The triggers of `schema` update the tables that follow from events."""
        cursor = self._db.execute(
            "INSERT INTO events (time, kind, person, item, class, until, undoes, request, text) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self.now, kind, person, item, class_id, until, undoes, request, text),
        )
        return int(cursor.lastrowid or 0)


class Database:
    """Connections to the file, each used by one thread at a time."""

    def __init__(self, path: Path, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self.path, self._clock, self._steady = path, clock, steady
        self._idle: list[sqlite3.Connection] = []
        self._writers = Writers(self._take, self._idle.append)
        self._latest, self._seen = 0.0, steady()
        try:
            with self._clear_errors(), self._connection() as db:
                create_tables(db, path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections; none may be in use."""
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction that reads one consistent state of the database."""
        with self._clear_errors(), self._connection() as db:
            db.execute("BEGIN")
            try:
                yield Transaction(db, self._now(db))
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that writes: at its end all changes are on the disk, or, if it fails, none are made."""
        with self._clear_errors(), self._writers.turn() as db:
            yield Transaction(db, self._now(db))

    def checkpoint(self) -> None:
        """Move all that was written from the write-ahead log into the file, and empty the log.

        If another process keeps reading an older state, the next checkpoint does it.
        """
        with self._clear_errors(), self._connection() as db:
            db.execute(f"PRAGMA busy_timeout = {1000 * CHECKPOINT:.0f}")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute(f"PRAGMA busy_timeout = {1000 * WAIT:.0f}")

    def backup(self, path: Path) -> None:
        """Write a copy of everything to a new file, as of one moment, while others continue to read and write."""
        with self._clear_errors(), self._connection() as db, contextlib.closing(sqlite3.connect(path)) as copy:
            db.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # no log beside the copy: the one file is complete

    def _now(self, db: sqlite3.Connection) -> float:
        """Return the time: it never goes back and never stands still, even if the system clock does."""
        row = db.execute("SELECT time FROM events ORDER BY id DESC LIMIT 1").fetchone()
        if row and row[0] > self._latest:
            self._latest, self._seen = float(row[0]), self._steady()
        return max(self._clock(), self._latest + (self._steady() - self._seen) if row else 0.0)

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
            db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None, check_same_thread=False)
            try:
                db.execute("PRAGMA foreign_keys = ON")
                db.execute("PRAGMA synchronous = FULL")
            except BaseException:  # for example, if the file is damaged
                db.close()
                raise
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


class _SharedTransaction:
    """An open transaction of several writers, and why it failed, once it has."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db, self.turns = db, 0
        self.error: BaseException | None = None
        self.done = threading.Event()


class Writers:
    """The queue of threads that write. take, give_back: functions that get a connection and put it back."""

    def __init__(self, take: Callable[[], sqlite3.Connection], give_back: Callable[[sqlite3.Connection], None]) -> None:
        self._take, self._give_back = take, give_back
        self._lock = threading.Lock()  # held during a turn, because SQLite does not serve waiting threads in order
        self._waiting, self._counting = 0, threading.Lock()
        self._shared: _SharedTransaction | None = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """Give this thread its turn with a connection in a transaction; at the end its changes are on the disk."""
        shared = self._enter()
        try:
            with _savepoint(shared.db):
                yield shared.db
        except BaseException as error:
            if not shared.db.in_transaction:  # SQLite has rolled all of it back, because the disk is full, say
                shared.error = error
            self._leave(shared)
            raise
        self._leave(shared)
        while not shared.done.wait(PATIENCE):
            with self._lock:
                self._commit(shared)
        if shared.error is not None:
            raise shared.error

    def _enter(self) -> _SharedTransaction:
        with self._counting:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1
        try:
            if self._shared is None:
                self._shared = self._begin()
        except BaseException:
            self._lock.release()
            raise
        self._shared.turns += 1
        return self._shared

    def _begin(self) -> _SharedTransaction:
        db = self._take()
        try:
            db.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._give_back(db)
            raise
        return _SharedTransaction(db)

    def _leave(self, shared: _SharedTransaction) -> None:
        """End this thread's turn, and commit, unless another thread waits, which then commits for both."""
        try:
            if not self._waiting or shared.turns >= TURNS_TOGETHER or shared.error is not None:
                self._commit(shared)
        finally:
            self._lock.release()

    def _commit(self, shared: _SharedTransaction) -> None:
        """Commit the changes of all threads that share the transaction; a failure is raised in each of them."""
        if self._shared is not shared:
            return
        self._shared = None
        try:
            if shared.error is None:
                shared.db.execute("COMMIT")
        except BaseException as error:
            shared.error = error
            if shared.db.in_transaction:
                shared.db.execute("ROLLBACK")
        finally:
            self._give_back(shared.db)
            shared.done.set()


@contextlib.contextmanager
def _savepoint(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("SAVEPOINT turn")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK TO turn")
            db.execute("RELEASE turn")
        raise
    db.execute("RELEASE turn")
