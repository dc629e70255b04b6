"""The journal: what has been done is recorded, once, and never done again.

`journal.once(key, fn)` returns the recorded result of a step, or runs it and records the result in one transaction.
A run that was killed goes on by running the same code again. Keys read `003/002/query`: task, round, kind; or
`003/memory`.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, write_text

SCHEMA = """
CREATE TABLE IF NOT EXISTS steps (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, result TEXT NOT NULL,
    seconds REAL NOT NULL, cpu REAL NOT NULL, finished TEXT NOT NULL
);
CREATE VIEW IF NOT EXISTS picks AS
    SELECT CAST(substr(s.key, 1, 3) AS INTEGER) AS task, CAST(substr(s.key, 5, 3) AS INTEGER) AS round,
           e.key AS rank, e.value AS id
    FROM steps s, json_each(s.result, '$.ids') e WHERE s.kind = 'query';
CREATE VIEW IF NOT EXISTS labels AS
    SELECT CAST(substr(s.key, 1, 3) AS INTEGER) AS task, CAST(substr(s.key, 5, 3) AS INTEGER) AS round,
           json_extract(e.value, '$[0]') AS id, json_extract(e.value, '$[1]') AS label
    FROM steps s, json_each(s.result, '$.labels') e WHERE s.kind = 'label';
CREATE VIEW IF NOT EXISTS metrics AS
    SELECT CAST(substr(s.key, 1, 3) AS INTEGER) AS task, e.key AS on_task, e.value AS accuracy
    FROM steps s, json_each(s.result, '$.accuracy') e WHERE s.kind = 'evaluate';
CREATE VIEW IF NOT EXISTS timings AS
    SELECT kind, SUM(seconds) AS seconds, SUM(cpu) AS cpu, COUNT(*) AS steps FROM steps GROUP BY kind;
"""
WEIGHTS = re.compile(r"\d{3}-\d{3}(-memory)?\.safetensors(\.[0-9a-f]+\.part)?")
MINE = ("config.json", "journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "result.json", "report.html")


class Journal:
    """The record of one run in its directory, held by one process at a time."""

    def __init__(
        self,
        directory: Path,
        config: dict[str, Any],
        environment: dict[str, Any],
        fresh: bool = False,
        defaults: dict[str, Any] | None = None,  # of settings that may be newer than the run
    ) -> None:
        self.directory = directory
        self.weights.mkdir(parents=True, exist_ok=True)
        self._db: sqlite3.Connection | None = None
        self._lock = Lock(
            directory / "lock",
            busy=f"another process (id {{holder}}) is working on {directory}; wait for it or choose another --out.",
        )
        try:
            if fresh:
                self._clear()
            self._check_config(config, defaults or {})
            with self._clear_errors():
                self._db = sqlite3.connect(directory / "journal.sqlite", isolation_level=None)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.executescript(SCHEMA)
            self.environment: dict[str, Any] = self.once("environment", lambda: environment)
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

    def once(self, key: str, step: Callable[..., Any], *arguments: Any) -> Any:
        """The result of the step, from the record or by doing it now; it must be JSON."""
        row = self._ask("SELECT result FROM steps WHERE key = ?", key)
        if row:
            return json.loads(row[0][0])
        start, cpu = time.perf_counter(), time.process_time()
        result = step(*arguments)
        text = json.dumps(result, allow_nan=False)
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
        finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._ask("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", key, key.rsplit("/")[-1], text, spent, cpu, finished)
        return json.loads(text)  # what a resumed run will see, to the bit

    def has(self, key: str) -> bool:
        """Whether the step has been done."""
        return bool(self._ask("SELECT 1 FROM steps WHERE key = ?", key))

    def seconds(self) -> dict[str, float]:
        """Time spent on each kind of step, over all the processes that worked on the run."""
        return dict(self._ask("SELECT kind, seconds FROM timings"))

    def cpu_seconds(self) -> float:
        """CPU time of all steps, whatever else the machine had to do."""
        return float(self._ask("SELECT SUM(cpu) FROM steps")[0][0])

    def _ask(self, statement: str, *values: Any) -> list[Any]:
        """One statement, one transaction."""
        assert self._db is not None, "the journal is closed"
        with self._clear_errors():
            return self._db.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(
                f"{self.directory / 'journal.sqlite'} cannot be read or written ({error}); "
                "mend that and run the same command again, or start over with --fresh."
            ) from error

    def close(self) -> None:
        """Let another process have the run."""
        if self._db is not None:
            self._db.close()
        self._lock.release()

    def _check_config(self, config: dict[str, Any], defaults: dict[str, Any]) -> None:
        path = self.directory / "config.json"
        if not path.exists():
            if (self.directory / "journal.sqlite").exists():
                raise InputError(
                    f"{self.directory} has a journal but no config.json; restore it or start over with --fresh."
                )
            write_text(path, json.dumps(config, indent=1) + "\n")
            return
        try:
            old = json.loads(path.read_text())
        except ValueError as error:
            raise InputError(f"{path} is not JSON ({error}); restore it or start over with --fresh.") from error
        if not isinstance(old, dict) or "learner" not in old:
            raise InputError(f"{path} is not that of a run; choose another --out.")
        old = defaults | old
        for key in sorted(old.keys() | config.keys()):
            if old.get(key) != config.get(key):
                raise InputError(
                    f"{self.directory} holds a run with {key} {old.get(key)!r}, not {config.get(key)!r}; "
                    "choose another --out, or start over with --fresh."
                )

    def _clear(self) -> None:
        """Remove what a run writes, and nothing else that may lie there."""
        config, journal = self.directory / "config.json", self.directory / "journal.sqlite"
        if config.exists() and not journal.exists() and '"learner"' not in config.read_text():
            raise InputError(f"{config} is not that of a run; choose another --out.")
        for path in [self.directory / name for name in MINE] + weight_files(self.weights):
            path.unlink(missing_ok=True)


def weight_files(folder: Path) -> list[Path]:
    """The files in `folder` that a run has written there, left-overs of killed ones among them."""
    return [path for path in sorted(folder.iterdir()) if WEIGHTS.fullmatch(path.name)]
