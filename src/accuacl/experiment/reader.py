"""Reading journals: what a run or a project has recorded, whatever version wrote it, while others may be at work on it.

    for step in read_steps(Path("runs/a/journal.sqlite"), "query"):
        print(step.task, step.round, step.result["ids"])

All of the package reads journals through here. Reading makes no file, and needs no right to write.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuacl.base.databases import table_version
from accuacl.base.errors import InputError
from accuacl.base.files import reason

VERSION = 1  # of the tables, in `PRAGMA user_version`; 0: steps had keys such as 003/002/query, 003/memory or data
COLUMNS = "result, seconds, cpu, finished"
WAIT = 60.0  # seconds for another process to finish its write


@dataclass(frozen=True)
class Step:
    """One row of a journal."""

    task: int | None  # None: of the whole run
    round: int | None  # None: of the whole task
    kind: str
    result: Any
    seconds: float
    cpu: float
    finished: str


def read_steps(journal: Path, *kinds: str, task: int | None = None) -> list[Step]:
    """The steps of these kinds (of every kind if none is given) by task and round; none if there is no journal."""
    if not journal.exists():
        return []
    rows = [row for row in _rows(journal, kinds) if task is None or row[0] == task]
    steps = [Step(t, r, kind, json.loads(result), *rest) for t, r, kind, result, *rest in rows]
    return sorted(steps, key=lambda step: (_number(step.task), _number(step.round)))


def split_key(key: str) -> tuple[int | None, int | None, str]:
    """(task, round, kind) of a key in tables of version 0.

    >>> split_key("003/002/query"), split_key("1000/memory"), split_key("data")
    ((3, 2, 'query'), (1000, None, 'memory'), (None, None, 'data'))
    """
    *numbers, kind = key.split("/")
    task, round, *_ = [*map(int, numbers), None, None]
    return task, round, kind


def _rows(journal: Path, kinds: Sequence[str]) -> list[tuple[Any, ...]]:
    """(task, round, kind, result, ...) in the order in which they were recorded."""
    try:
        try:
            return _select(journal, kinds)
        except sqlite3.OperationalError:
            if os.access(journal.parent, os.W_OK):
                raise
        # SQLite must write beside a journal that was left by a kill, and beside every one in WAL mode, in which older
        # versions wrote them. Where that is not allowed, a copy is read.
        with tempfile.TemporaryDirectory() as folder:
            for path in journal.parent.glob("journal.sqlite*"):
                shutil.copyfile(path, Path(folder) / path.name)
            return _select(Path(folder) / journal.name, kinds)
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{journal} cannot be read ({reason(error)}); fix that or restore it from a copy.") from error


def _select(journal: Path, kinds: Sequence[str]) -> list[tuple[Any, ...]]:
    # mode=rw makes no file, and lets SQLite clean up what a killed process left; as_uri quotes #, ?, % and spaces.
    db = sqlite3.connect(f"{journal.resolve().as_uri()}?mode=rw", uri=True, timeout=WAIT)
    try:
        wanted = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        if table_version(db, journal, VERSION) == 0:
            rows = db.execute(f"SELECT key, {COLUMNS} FROM steps {wanted} ORDER BY rowid", kinds).fetchall()
            return [(*split_key(key), *rest) for key, *rest in rows]
        return db.execute(f"SELECT task, round, kind, {COLUMNS} FROM steps {wanted} ORDER BY rowid", kinds).fetchall()
    finally:
        db.close()


def _number(index: int | None) -> int:
    return -1 if index is None else index
