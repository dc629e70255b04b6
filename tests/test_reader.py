"""Journals of every version are read, wherever they lie, and reading changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from accuacl.base.errors import InputError
from accuacl.experiments import Journal, read_steps
from accuacl.experiments.journal import weight_files
from journals import key, records

CONFIG = {"seed": 0, "learner": "er"}
OLD_TABLES = """
CREATE TABLE steps (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, result TEXT NOT NULL,
    seconds REAL NOT NULL, cpu REAL NOT NULL, finished TEXT NOT NULL
);
CREATE VIEW picks AS
    SELECT CAST(substr(s.key, 1, 3) AS INTEGER) AS task, CAST(substr(s.key, 5, 3) AS INTEGER) AS round,
           e.key AS rank, e.value AS id
    FROM steps s, json_each(s.result, '$.ids') e WHERE s.kind = 'query';
CREATE VIEW timings AS
    SELECT kind, SUM(seconds) AS seconds, SUM(cpu) AS cpu, COUNT(*) AS steps FROM steps GROUP BY kind;
"""
OLD_STEPS = {
    "environment": {"torch": "x"},
    "data": {"classes": ["a"]},
    "002/001/query": {"ids": [7, 9]},
    "1000/1001/query": {"ids": [5]},
    "002/memory": {"ids": []},
    "999/000/query": {"ids": [4]},
}
IN_ORDER = ["environment", "data", "002/memory", "002/001/query", "999/000/query", "1000/1001/query"]


def old_journal(folder: Path, open_still: bool = False) -> sqlite3.Connection:
    """As the version before the first with a number wrote it: in WAL mode, steps by their keys."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    db = sqlite3.connect(folder / "journal.sqlite", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(OLD_TABLES)
    for name, result in OLD_STEPS.items():
        row = (name, name.rsplit("/")[-1], json.dumps(result), 1.5, 0.5, "2026-01-02T03:04:05Z")
        db.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", row)
    if not open_still:
        db.close()
    return db


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"}


def test_an_old_journal_is_read_as_it_is(tmp_path):
    old_journal(tmp_path)
    before = contents(tmp_path)
    steps = read_steps(tmp_path / "journal.sqlite")
    assert [key(step) for step in steps] == IN_ORDER
    assert records(tmp_path / "journal.sqlite") == OLD_STEPS
    assert [step.result["ids"] for step in read_steps(tmp_path / "journal.sqlite", "query", task=2)] == [[7, 9]]
    assert {(step.seconds, step.cpu, step.finished) for step in steps} == {(1.5, 0.5, "2026-01-02T03:04:05Z")}
    assert contents(tmp_path) == before


def test_an_old_journal_that_is_opened_for_work_becomes_a_new_one(tmp_path):
    old_journal(tmp_path)
    old = read_steps(tmp_path / "journal.sqlite")
    with Journal(tmp_path, CONFIG, {"torch": "y"}) as journal:
        assert journal.environment == {"torch": "x"}
        assert journal.has("query", task=1000, round=1001)
        assert not journal.has("query", task=1000)
        assert journal.once("memory", list, task=2) == {"ids": []}
        assert journal.once("memory", lambda: 5, task=3) == 5
    assert [step for step in read_steps(tmp_path / "journal.sqlite") if (step.task, step.kind) != (3, "memory")] == old
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    picks = db.execute("SELECT * FROM picks ORDER BY task, rank").fetchall()
    assert picks == [(2, 1, 0, 7), (2, 1, 1, 9), (999, 0, 0, 4), (1000, 1001, 0, 5)]
    assert db.execute("SELECT seconds, steps FROM timings WHERE kind = 'query'").fetchall() == [(4.5, 3)]
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # not WAL, which shared disks do not support
    db.close()
    assert sorted(contents(tmp_path)) == ["config.json", "journal.sqlite"]


def test_what_a_killed_process_left_in_its_wal_is_read_and_kept(tmp_path):
    db = old_journal(tmp_path / "live", open_still=True)
    for name in ("a", "b"):
        shutil.copytree(tmp_path / "live", tmp_path / name)  # as a kill would have left it
        assert (tmp_path / name / "journal.sqlite-wal").stat().st_size > 0
    db.close()
    assert records(tmp_path / "a" / "journal.sqlite") == OLD_STEPS
    (tmp_path / "b" / "journal.sqlite-shm").unlink()
    with Journal(tmp_path / "b", CONFIG, {}):
        pass
    assert records(tmp_path / "b" / "journal.sqlite") == OLD_STEPS
    assert sorted(contents(tmp_path / "b")) == ["config.json", "journal.sqlite"]


def test_a_migration_that_fails_leaves_the_journal_as_it_was(tmp_path):
    old_journal(tmp_path)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    db.execute("INSERT INTO steps VALUES ('x/y/query', 'query', '{}', 0, 0, '')")
    db.commit()
    before = db.execute("SELECT * FROM steps").fetchall()
    db.close()
    with pytest.raises(ValueError, match="invalid literal"):
        Journal(tmp_path, CONFIG, {})
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    assert db.execute("SELECT * FROM steps").fetchall() == before
    db.close()


@pytest.mark.parametrize("what", ["wal", "killed in a transaction", "new"])
def test_a_journal_is_read_without_the_right_to_write(what):
    """Also one that SQLite itself could open only by writing beside it."""
    with tempfile.TemporaryDirectory() as place:  # one that others may look into
        os.chmod(place, 0o755)
        folder = Path(place) / "run"
        if what == "wal":
            db = old_journal(Path(place) / "live", open_still=True)
            shutil.copytree(Path(place) / "live", folder)
            db.close()
        else:
            folder.mkdir()
            with Journal(folder, CONFIG, {}) as journal:
                journal.once("memory", lambda: 5, task=3)
        if what == "killed in a transaction":
            spoil(folder / "journal.sqlite")
        expected = OLD_STEPS if what == "wal" else {"environment": {}, "003/memory": 5}
        before = contents(folder)
        folder.chmod(0o555)
        for path in folder.iterdir():
            path.chmod(0o444 if path.is_file() else 0o555)
        code = (
            "import json, os, sys; from pathlib import Path; from journals import records\n"
            "if os.geteuid() == 0: os.setuid(65534)  # root may write anywhere\n"
            "print(json.dumps(records(Path(sys.argv[1]))))"
        )
        command = [sys.executable, "-c", code, folder / "journal.sqlite"]
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == expected
        assert contents(folder) == before
        folder.chmod(0o755)


def spoil(path: Path) -> None:
    """Leave the file as a process does that was killed after it had written part of a transaction to it."""
    code = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA cache_size = 1'); db.execute('BEGIN'); db.execute('UPDATE steps SET kind = ?', ('x',))\n"
        "for i in range(200): db.execute('INSERT INTO steps VALUES (?, 0, ?, ?, 0, 0, ?)', (i, 'y', 'z' * 500, ''))\n"
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], timeout=60).returncode == 9
    assert path.with_name("journal.sqlite-journal").stat().st_size > 0


def test_a_transaction_that_a_kill_cut_short_never_happened(tmp_path):
    with Journal(tmp_path, CONFIG, {}) as journal:
        journal.once("memory", lambda: 5, task=3)
    spoil(tmp_path / "journal.sqlite")
    assert records(tmp_path / "journal.sqlite") == {"environment": {}, "003/memory": 5}
    assert sorted(contents(tmp_path)) == ["config.json", "journal.sqlite"]


@pytest.mark.parametrize("name", ["a#b", "what?x", "100% %41", "space in it", "ä;'\"&mode=memory"])
def test_a_journal_is_read_whatever_its_directory_is_called(tmp_path, name):
    folder = tmp_path / name
    with Journal(folder, CONFIG, {"torch": "x"}) as journal:
        journal.once("memory", lambda: 5, task=3)
        assert records(folder / "journal.sqlite") == {"environment": {"torch": "x"}, "003/memory": 5}
    assert records(folder / "journal.sqlite", "*/memory") == {"003/memory": 5}
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert sorted(contents(folder)) == ["config.json", "journal.sqlite"]


def test_no_journal_has_no_steps_and_none_is_made(tmp_path):
    assert read_steps(tmp_path / "journal.sqlite") == []
    assert read_steps(tmp_path / "no" / "journal.sqlite", "train") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be looked at" * 50])
def test_what_is_no_journal_is_said(tmp_path, content):
    (tmp_path / "journal.sqlite").write_bytes(content)
    with pytest.raises(InputError, match=r"journal\.sqlite cannot be read"):
        read_steps(tmp_path / "journal.sqlite")
    assert contents(tmp_path) == {"journal.sqlite": content}


def test_a_journal_of_a_newer_version_is_refused_and_kept(tmp_path):
    with Journal(tmp_path, CONFIG, {}) as journal:
        journal.once("memory", lambda: 5, task=3)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    db.execute("PRAGMA user_version = 2")
    db.close()
    before = contents(tmp_path)
    for read in (lambda: read_steps(tmp_path / "journal.sqlite"), lambda: Journal(tmp_path, CONFIG, {})):
        with pytest.raises(InputError, match=r"written by a newer version of accuacl .*; upgrade accuacl\.$"):
            read()
    assert contents(tmp_path) == before


def test_a_thousand_tasks_and_rounds(tmp_path):
    with Journal(tmp_path, CONFIG, {}) as journal:
        for task, round in ((1000, 2), (999, 1234), (2, 0)):
            journal.once("query", lambda t=task: {"ids": [t]}, task=task, round=round)
        db = sqlite3.connect(tmp_path / "journal.sqlite")
        assert db.execute("SELECT * FROM picks ORDER BY task").fetchall() == [
            (2, 0, 0, 2), (999, 1234, 0, 999), (1000, 2, 0, 1000)
        ]  # fmt: skip
        db.close()
        names = ["002-000", "999-1234", "1000-002", "1000-1234-memory"]
        for name in names:
            (journal.weights / f"{name}.safetensors").write_bytes(b"x")
        (journal.weights / "1000.safetensors").write_bytes(b"mine")
        assert {path.stem for path in weight_files(journal.weights)} == set(names)
    assert [step.task for step in read_steps(tmp_path / "journal.sqlite", "query")] == [2, 999, 1000]
