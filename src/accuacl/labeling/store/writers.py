"""Threads that write at the same time share one transaction, and so one sync of the disk.

Each has its turn, with a savepoint of its own: what it does is kept or undone apart from the others. The last of those
who wait commits for all, and none returns before that.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator

TOGETHER = 50  # turns in a transaction, at most
PATIENCE = 1.0  # seconds after which somebody else commits, if whoever should have done so was interrupted


class _Group:
    """An open transaction, and why it failed, once it has."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db, self.turns = db, 0
        self.error: BaseException | None = None
        self.done = threading.Event()


class Writers:
    """The queue of threads that write. take, give: get a connection, and put it back."""

    def __init__(self, take: Callable[[], sqlite3.Connection], give: Callable[[sqlite3.Connection], None]) -> None:
        self._take, self._give = take, give
        self._lock = threading.Lock()  # whoever has it has their turn: SQLite's own waiting is a lottery
        self._waiting, self._counting = 0, threading.Lock()
        self._group: _Group | None = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """A connection within a transaction; what is done with it is on the disk when this returns."""
        group = self._enter()
        try:
            with _savepoint(group.db):
                yield group.db
        except BaseException as error:
            if not group.db.in_transaction:  # SQLite has rolled all of it back, because the disk is full, say
                group.error = error
            self._leave(group)
            raise
        self._leave(group)
        while not group.done.wait(PATIENCE):
            with self._lock:
                self._commit(group)
        if group.error is not None:
            raise group.error

    def _enter(self) -> _Group:
        with self._counting:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1
        try:
            if self._group is None:
                self._group = self._begin()
        except BaseException:
            self._lock.release()
            raise
        self._group.turns += 1
        return self._group

    def _begin(self) -> _Group:
        db = self._take()
        try:
            db.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._give(db)
            raise
        return _Group(db)

    def _leave(self, group: _Group) -> None:
        """End one's turn; commit unless somebody waits, who will."""
        try:
            if not self._waiting or group.turns >= TOGETHER or group.error is not None:
                self._commit(group)
        finally:
            self._lock.release()

    def _commit(self, group: _Group) -> None:
        """In one's turn: commit what all have done. If that fails, it has failed for each of them."""
        if self._group is not group:
            return
        self._group = None
        try:
            if group.error is None:
                group.db.execute("COMMIT")
        except BaseException as error:
            group.error = error
            if group.db.in_transaction:
                group.db.execute("ROLLBACK")
        finally:
            self._give(group.db)
            group.done.set()


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
