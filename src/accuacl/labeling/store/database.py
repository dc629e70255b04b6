"""The SQLite file of a project's labels: durable, append-only, for many threads and processes at once."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, token TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS classes (id INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS rounds (
    task INTEGER NOT NULL, round INTEGER NOT NULL, PRIMARY KEY (task, round)
);
CREATE TABLE IF NOT EXISTS closed (
    task INTEGER NOT NULL, round INTEGER NOT NULL, snapshot TEXT NOT NULL, PRIMARY KEY (task, round),
    FOREIGN KEY (task, round) REFERENCES rounds (task, round)
);
CREATE TABLE IF NOT EXISTS picks (
    item INTEGER PRIMARY KEY, task INTEGER NOT NULL, round INTEGER NOT NULL, rank INTEGER NOT NULL,
    scores TEXT NOT NULL, guess INTEGER, confidence REAL,
    UNIQUE (task, round, rank), FOREIGN KEY (task, round) REFERENCES rounds (task, round)
);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL,
    person INTEGER REFERENCES people (id), item INTEGER REFERENCES picks (item),
    class INTEGER REFERENCES classes (id), until REAL, undoes INTEGER REFERENCES events (id),
    request TEXT, text TEXT
);
CREATE INDEX IF NOT EXISTS events_of_item ON events (item, id) WHERE item IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_of_kind ON events (kind, person, id);
CREATE UNIQUE INDEX IF NOT EXISTS undone_once ON events (undoes) WHERE undoes IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS requested_once ON events (request) WHERE request IS NOT NULL;
CREATE VIEW IF NOT EXISTS standing AS  -- what was said of items and not taken back
    SELECT * FROM events e WHERE kind IN ('label', 'skip', 'correct')
    AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id);
CREATE VIEW IF NOT EXISTS answers AS  -- the last of these for each item
    SELECT * FROM standing s
    WHERE NOT EXISTS (SELECT 1 FROM standing later WHERE later.item = s.item AND later.id > s.id);
CREATE VIEW IF NOT EXISTS holders AS  -- who has an item in hand, if the lease has not run out
    SELECT p.item, p.task, p.round, p.rank, e.id, e.person, e.until FROM picks p JOIN events e ON e.id = (
        SELECT id FROM events WHERE item = p.item AND kind IN ('lease', 'renew', 'release', 'label', 'skip')
        ORDER BY id DESC LIMIT 1
    ) WHERE e.kind IN ('lease', 'renew');
"""
WAIT = 60.0  # seconds for another process to finish its write
NOTHING_OVERWRITTEN = "".join(
    f"CREATE TRIGGER IF NOT EXISTS {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, 'nothing here is ever changed or removed'); END;\n"
    for table in ("people", "classes", "rounds", "closed", "picks", "events")
    for verb in ("UPDATE", "DELETE")
)


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

    def event(self, kind: str, **columns: Any) -> int:
        """Record that something happened now; its id."""
        names = ["time", "kind", *columns]
        statement = f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        return int(self._db.execute(statement, (self.now, kind, *columns.values())).lastrowid or 0)


class Database:
    """Connections to the file. Readers never wait; writers come one after another, each write synced to the disk."""

    def __init__(self, path: Path, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self.path, self._clock, self._steady = path, clock, steady
        self._idle: list[sqlite3.Connection] = []  # a connection is used by one thread at a time
        self._turn = threading.Lock()  # threads queue here: SQLite's own waiting is a lottery
        self._latest, self._seen = 0.0, steady()
        with self._clear_errors(), self._connection() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(f"BEGIN IMMEDIATE;\n{SCHEMA}\n{NOTHING_OVERWRITTEN}\nCOMMIT;")

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
        """A transaction that is on the disk when this returns, or has left no trace."""
        with self._turn, self._clear_errors(), self._connection() as db, self._within(db, "BEGIN IMMEDIATE"):
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
            if db.in_transaction:  # SQLite has rolled back by itself where the disk was full
                db.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        db = self._idle.pop() if self._idle else self._connect()
        try:
            yield db
        finally:
            self._idle.append(db)

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
            raise OSError(
                f"{self.path} cannot be read or written ({error}); nothing of this was kept, "
                "so mend that and do it again."
            ) from error
