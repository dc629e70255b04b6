"""Journals are read wherever they are, and reading changes nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from accuacl.base.errors import InputError
from accuacl.experiments import Journal, make, read_steps
from accuacl.experiments.journal import weight_files
from journals import records
from scripted import answer, new_project

CONFIG = make({})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "lock"}


@pytest.mark.posix
@pytest.mark.parametrize("killed", [True, False])
def test_a_journal_is_read_without_the_right_to_write(killed):
    """Also one that SQLite itself could open only by writing beside it."""
    with tempfile.TemporaryDirectory() as place:  # one that others may look into
        os.chmod(place, 0o755)
        folder = Path(place) / "run"
        folder.mkdir()
        with Journal(folder, CONFIG, {}) as journal:
            journal.once("memory", lambda: 5, task=3)
        if killed:
            spoil(folder / "journal.sqlite")
        expected = {"environment": {}, "003/memory": 5}
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
def test_what_is_not_a_journal_is_refused(tmp_path, content):
    (tmp_path / "journal.sqlite").write_bytes(content)
    with pytest.raises(InputError, match=r"journal\.sqlite cannot be read"):
        read_steps(tmp_path / "journal.sqlite")
    assert contents(tmp_path) == {"journal.sqlite": content}


def test_steps_come_by_task_and_round_with_what_they_cost(tmp_path):
    with Journal(tmp_path, CONFIG, {}) as journal:
        for task, round in ((2, 1), (0, 1), (2, 0)):
            journal.once("query", lambda t=task, r=round: {"ids": [t, r]}, task=task, round=round)
        journal.once("memory", dict, task=2)
    steps = read_steps(tmp_path / "journal.sqlite", "query")
    assert [step.result["ids"] for step in steps] == [[0, 1], [2, 0], [2, 1]]
    assert [step.kind for step in read_steps(tmp_path / "journal.sqlite", task=2)] == ["memory", "query", "query"]
    assert all(step.seconds >= 0 and step.cpu >= 0 and step.finished.endswith("Z") for step in steps)


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


@pytest.mark.posix
def test_a_project_is_shown_without_the_right_to_write():
    """Its store of labels is copied aside, and the copy removed."""
    with tempfile.TemporaryDirectory() as place:  # one that others may look into
        os.chmod(place, 0o755)
        folder, aside = Path(place) / "p", Path(place) / "aside"
        with new_project(folder) as project:
            project.advance()
            answer(project, 3)
        aside.mkdir()
        os.chmod(aside, 0o777)  # where temporary files go
        before = contents(folder)
        every = [folder, *folder.rglob("*")]
        for path in every:
            path.chmod(0o444 if path.is_file() else 0o555)
        code = (
            "import os, sys; from commands import accuacl\n"
            "accuacl('project', 'status', sys.argv[1])  # loads all that it needs, which others may not read\n"
            "if os.geteuid() == 0: os.setuid(65534)  # root may write anywhere\n"
            "assert not os.access(sys.argv[1], os.W_OK)\n"
            "said = accuacl('project', 'status', sys.argv[1]); print(said.stdout, said.stderr)\n"
        )
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "TMPDIR": str(aside)}
        command = [sys.executable, "-c", code, folder]
        done = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "labels by person: Ada 3" in done.stdout
        assert contents(folder) == before
        assert list(aside.iterdir()) == []
        for path in every:
            path.chmod(0o755)
