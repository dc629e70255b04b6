"""The journal: what has been done is recorded, once, and never done again.

    picked = journal.once("query", choose, pool, task=3, round=2)

returns the recorded result of a step, or runs it and records the result in one transaction. A killed run continues when
the same code runs again. A step is known by its kind, task and round; steps of a whole task have no round, those of the
whole run no task either.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import accuacl
from accuacl.base.databases import UNWRITABLE, database_trouble, error_code, table_version
from accuacl.base.errors import InputError
from accuacl.base.files import Lock, make_folder, making, reason
from accuacl.base.machine import cpu_name, device_of
from accuacl.experiments.config import Settings, default_settings, read_config, what_to_do, write_config
from accuacl.experiments.strategy_options import OPTIONS, flat_options

VERSION = 1  # of the tables, in `PRAGMA user_version`
WAIT = 60.0  # seconds for another process to finish its write
TABLES = (
    "CREATE TABLE steps (task INTEGER, round INTEGER, kind TEXT NOT NULL, result TEXT NOT NULL, "
    "seconds REAL NOT NULL, cpu REAL NOT NULL, finished TEXT NOT NULL)",
    "CREATE UNIQUE INDEX each_step_once ON steps (kind, ifnull(task, -1), ifnull(round, -1))",
    "CREATE VIEW picks AS SELECT s.task, s.round, e.key AS rank, e.value AS id "
    "FROM steps s, json_each(s.result, '$.ids') e WHERE s.kind = 'query'",
    "CREATE VIEW labels AS SELECT s.task, s.round, "
    "json_extract(e.value, '$[0]') AS id, json_extract(e.value, '$[1]') AS label "
    "FROM steps s, json_each(s.result, '$.labels') e WHERE s.kind = 'label'",
    "CREATE VIEW metrics AS SELECT s.task, e.key AS on_task, e.value AS accuracy "
    "FROM steps s, json_each(s.result, '$.accuracy') e WHERE s.kind = 'evaluate'",
    "CREATE VIEW timings AS "
    "SELECT kind, SUM(seconds) AS seconds, SUM(cpu) AS cpu, COUNT(*) AS steps FROM steps GROUP BY kind",
)
INSERT = "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)"
FIND = (
    "SELECT result FROM steps WHERE kind = ? AND ifnull(task, -1) = ifnull(?, -1) AND ifnull(round, -1) = ifnull(?, -1)"
)
WEIGHTS = re.compile(r"\d{3,}-\d{3,}(-memory)?\.safetensors(\.[0-9a-f]+\.part)?")
DATABASE = tuple(f"journal.sqlite{end}" for end in ("", "-journal", "-wal", "-shm"))
DIVERGED = "diverged"  # the step that records that training produced non-finite values
WRITTEN = ("config.json", *DATABASE, "result.json", "report.html")


class Journal:
    """The record of one run in its directory, held by one process at a time."""

    def __init__(
        self,
        directory: Path,
        settings: Settings,
        environment: dict[str, Any] | None = None,
        fresh: bool = False,
        patience: float = 0,
    ) -> None:
        """settings: those that the run began with. environment: what else its last bits depend on; None: this machine.

        fresh: remove the run that is there. patience: seconds to wait for another process.
        """
        self.directory, self.path = directory, directory / "journal.sqlite"
        if environment is None:
            environment = environment_of(getattr(settings, "device", "auto"))
        self.environment = environment
        self._db: sqlite3.Connection | None = None
        self.on_step: Callable[[Step], None] | None = None  # called with each step that is recorded from now on
        instead = "" if "kind" in type(settings).model_fields else " or choose another --out"  # of a run
        busy = f"another process (id {{holder}}) is working on {directory}; wait for it{instead}."
        with making(directory, "weights", "lock"):
            make_folder(self.weights)
            self._lock = Lock(directory / "lock", busy, patience=patience)
            try:
                if fresh:
                    self._clear()
                self._check_settings(settings)
                with self._clear_errors():
                    self._db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
                    _prepare(self._db, self.path)
                self._begun_in: dict[str, Any] = self.once("environment", lambda: environment)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def weights(self) -> Path:
        return self.directory / "weights"

    @property
    def environment_change(self) -> str:
        """Describe how the environment differs from the one in which the run began; "" if it does not."""
        return difference(self._begun_in, self.environment)

    def once(
        self,
        kind: str,
        step: Callable[..., Any],
        *arguments: Any,
        task: int | None = None,
        round: int | None = None,
    ) -> Any:
        """The result of the step, from the record or by doing it now; it must be JSON."""
        row = self._ask(FIND, kind, task, round)
        if row:
            return json.loads(row[0][0])
        start, cpu = time.perf_counter(), time.process_time()
        result = step(*arguments)
        text = json.dumps(result, allow_nan=False)
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
        finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._ask(INSERT, task, round, kind, text, spent, cpu, finished)
        recorded = json.loads(text)  # what a resumed run will see, to the bit
        if self.on_step:
            self.on_step(Step(task, round, kind, recorded, spent, cpu, finished))
        return recorded

    def has(self, kind: str, task: int | None = None, round: int | None = None) -> bool:
        """Whether the step has been done."""
        return bool(self._ask(FIND, kind, task, round))

    def rewrite(self, change: Callable[[int | None, int | None, str, Any], Any]) -> None:
        """Change what is recorded, all of it in one transaction: for what must be forgotten, and nothing else.

        change: from (task, round, kind, result) to the result without it, or None for a step to be done again.
        """
        self._ask("PRAGMA secure_delete = ON")
        self._ask("BEGIN IMMEDIATE")
        try:
            for row, task, round, kind, text in self._ask("SELECT rowid, task, round, kind, result FROM steps"):
                result = change(task, round, kind, json.loads(text))
                if result is None:
                    self._ask("DELETE FROM steps WHERE rowid = ?", row)
                elif (now := json.dumps(result, allow_nan=False)) != text:
                    self._ask("UPDATE steps SET result = ? WHERE rowid = ?", now, row)
            self._ask("COMMIT")
        except BaseException:
            self._ask("ROLLBACK")
            raise

    def seconds(self) -> dict[str, float]:
        """Time spent on each kind of step, over all the processes that worked on the run."""
        return dict(self._ask("SELECT kind, seconds FROM timings"))

    def cpu_seconds(self) -> float:
        """CPU time of all steps, whatever else the machine had to do."""
        return float(self._ask("SELECT SUM(cpu) FROM steps")[0][0])

    def _ask(self, statement: str, *values: Any) -> list[Any]:
        """Execute one statement in a transaction of its own."""
        assert self._db is not None, "the journal is closed"
        with self._clear_errors():
            return self._db.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if error_code(error) in UNWRITABLE:
                raise database_trouble(self.path, error) from error
            raise InputError(f"{self.path} cannot be read ({error}); {what_to_do(self.directory)}.") from error

    def close(self) -> None:
        """Release the run, so that another process can open it."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA journal_mode = DELETE")  # so that no empty journal.sqlite-journal stays
            self._db.close()
        self._lock.release()

    def _check_settings(self, settings: Settings) -> None:
        """Write config.json, or compare with the one that is there."""
        path = self.directory / "config.json"
        if not path.exists():
            if self.path.exists():
                raise InputError(f"{self.directory} has a journal but no config.json; {what_to_do(self.directory)}.")
            write_config(path, settings)
            return
        old = flat_options(read_config(path, type(settings)))
        now = flat_options(default_settings(type(settings)) | settings.model_dump(mode="json"))
        changed = sorted(name for name in old.keys() | now.keys() if old.get(name) != now.get(name))
        if not changed:
            return
        if self._is_dead():
            self._clear()
            write_config(path, settings)
            return
        name = changed[0]
        what = name.replace(f"{OPTIONS}.", "the option ", 1)
        before, after = ("unset" if (each := of.get(name)) is None else repr(each) for of in (old, now))
        raise InputError(
            f"{self.directory} holds a run with {what} {before}, not {after}; choose another --out, or start over "
            "with --fresh."
        )

    def _is_dead(self) -> bool:
        """Whether the recorded run can never be finished with its settings."""
        return [step.kind for step in read_steps(self.path, DIVERGED, "result")] == [DIVERGED]

    def _clear(self) -> None:
        """Remove the files that a run writes, and no others."""
        config = self.directory / "config.json"
        if config.exists() and not self.path.exists() and b'"learner"' not in config.read_bytes():
            raise InputError(f"{config} does not belong to a run; choose another --out.")
        for path in [self.directory / name for name in WRITTEN] + weight_files(self.weights):
            path.unlink(missing_ok=True)


def weight_files(folder: Path) -> list[Path]:
    """The files in `folder` that a run has written there, left-overs of killed ones among them."""
    return [path for path in sorted(folder.iterdir()) if WEIGHTS.fullmatch(path.name)]


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new journal, in one transaction."""
    version = table_version(db, path, VERSION)
    # A rollback journal, not SQLite's WAL: runs of a sweep on Ray are in a directory that machines share, where WAL is
    # not supported. A step costs about 3 ms more.
    db.execute("PRAGMA journal_mode = TRUNCATE")
    db.execute("PRAGMA synchronous = FULL")
    if version == VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    for statement in TABLES:
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def environment_of(device: str) -> dict[str, Any]:
    """What the last bits of a result depend on, apart from the settings. device: as in the settings."""
    import torch  # slow to load

    return {
        "accuacl": accuacl.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
        "device": device_of(device),
        "processor": cpu_name(),
    }


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Describe how an environment has changed; what was not recorded before counts as unchanged.

    >>> difference({"torch": "2.9", "cpu": "AVX2"}, {"torch": "2.13", "cpu": "AVX2", "processor": "x"})
    'torch 2.9 (now 2.13)'
    """
    return ", ".join(
        f"{key} {before[key]} (now {value})" for key, value in now.items() if before.get(key, value) != value
    )


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


def _rows(journal: Path, kinds: Sequence[str]) -> list[tuple[Any, ...]]:
    """(task, round, kind, result, ...) in the order in which they were recorded."""
    try:
        try:
            return _select(journal, kinds)
        except sqlite3.OperationalError:
            if os.access(journal.parent, os.W_OK):
                raise
        # SQLite must write beside a journal that was left by a kill. Where that is not allowed, a copy is read.
        with tempfile.TemporaryDirectory() as folder:
            for path in journal.parent.glob("journal.sqlite*"):
                shutil.copyfile(path, Path(folder) / path.name)
            return _select(Path(folder) / journal.name, kinds)
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{journal} cannot be read ({reason(error)}); fix that or restore it from a copy.") from error


def _select(journal: Path, kinds: Sequence[str]) -> list[tuple[Any, ...]]:
    # mode=rw creates no file, and lets SQLite clean up what a killed process left; as_uri quotes #, ?, % and spaces.
    db = sqlite3.connect(f"{journal.resolve().as_uri()}?mode=rw", uri=True, timeout=WAIT)
    try:
        wanted = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        table_version(db, journal, VERSION)
        return db.execute(
            f"SELECT task, round, kind, result, seconds, cpu, finished FROM steps {wanted} ORDER BY rowid", kinds
        ).fetchall()
    finally:
        db.close()


def _number(index: int | None) -> int:
    return -1 if index is None else index
