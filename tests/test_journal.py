"""The journal: a step happens once, is durable, belongs to one config and to one process at a time."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys

import pytest
import torch

from accuacl.base import files
from accuacl.base.errors import InputError
from accuacl.experiments import Journal, checkpoints, make

FIRST = {"task": 0, "round": 0}
CONFIG = make({})


def opened(path, config=CONFIG, **more):
    return Journal(path, config, {"torch": "x"}, **more)


def test_a_step_is_done_once_and_remembered(tmp_path):
    journal = opened(tmp_path)
    calls = []
    for _ in range(2):
        assert journal.once("query", lambda: calls.append(1) or {"ids": [3, 1]}, **FIRST) == {"ids": [3, 1]}
    journal.close()
    again = opened(tmp_path)
    assert again.once("query", lambda: calls.append(1), **FIRST) == {"ids": [3, 1]}
    assert calls == [1]
    assert again.has("query", **FIRST)
    assert not again.has("query", task=0, round=1)
    again.close()


def test_a_failed_step_leaves_no_trace(tmp_path):
    journal = opened(tmp_path)

    def fails():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        journal.once("memory", fails, task=0)
    assert journal.once("memory", lambda: 5, task=0) == 5
    journal.close()


def test_results_must_be_json_and_finite(tmp_path):
    journal = opened(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        journal.once("a", lambda: float("nan"))
    assert not journal.has("a")
    journal.close()


def test_views_show_picks_labels_metrics_and_timings(tmp_path):
    journal = opened(tmp_path)
    journal.once("query", lambda: {"ids": [7, 9], "scores": {}}, task=2, round=1)
    journal.once("label", lambda: {"labels": [[7, 1], [9, 0]]}, task=2, round=1)
    journal.once("evaluate", lambda: {"accuracy": [50.0, 60.0, 70.0]}, task=2)
    db = sqlite3.connect(tmp_path / "journal.sqlite")
    assert db.execute("SELECT * FROM picks").fetchall() == [(2, 1, 0, 7), (2, 1, 1, 9)]
    assert db.execute("SELECT * FROM labels").fetchall() == [(2, 1, 7, 1), (2, 1, 9, 0)]
    assert db.execute("SELECT * FROM metrics").fetchall() == [(2, 0, 50.0), (2, 1, 60.0), (2, 2, 70.0)]
    assert {kind for kind, *_ in db.execute("SELECT * FROM timings")} == {"environment", "query", "label", "evaluate"}
    db.close()
    journal.close()


def test_another_config_is_told_what_differs_and_nothing_is_touched(tmp_path):
    journal = opened(tmp_path)
    journal.once("memory", lambda: 1, task=0)
    journal.close()
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file() and p.name != "lock"}
    with pytest.raises(ValueError, match="holds a run with learner 'er', not 'gss'"):
        opened(tmp_path, make({"learner": "gss"}))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file() and p.name != "lock"} == before
    opened(tmp_path).close()  # and the refusal has let go of the run


def test_a_journal_says_where_its_environment_has_changed(tmp_path):
    with opened(tmp_path) as journal:
        assert journal.environment_change == ""
    with Journal(tmp_path, CONFIG, {"torch": "y", "processor": "z"}) as journal:
        assert journal.environment_change == "torch x (now y)"


def test_fresh_removes_the_run_and_nothing_else(tmp_path):
    journal = opened(tmp_path)
    journal.once("memory", lambda: 1, task=0)
    (journal.weights / "000-000.safetensors").write_bytes(b"x")
    (journal.weights / "000-000-memory.safetensors.12ab.part").write_bytes(b"left by a kill")
    (journal.weights / "mine.safetensors").write_bytes(b"mine")
    (tmp_path / "notes.txt").write_text("mine")
    journal.close()
    journal = opened(tmp_path, make({"learner": "gss"}), fresh=True)
    assert not journal.has("memory", task=0)
    assert [path.name for path in journal.weights.iterdir()] == ["mine.safetensors"]
    assert (tmp_path / "notes.txt").read_text() == "mine"
    journal.close()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("config.json", "{", "config.json is not JSON"),
        ("config.json", "[]", "config.json does not belong to a run"),
        ("config.json", None, "has a journal but no config.json"),
        ("journal.sqlite", "not a database, but long enough to be looked at" * 50, "journal.sqlite cannot be read"),
    ],
)
def test_damaged_files_are_named_and_kept(tmp_path, name, content, says):
    opened(tmp_path).close()
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=says):
        opened(tmp_path)
    assert content is None or (tmp_path / name).read_text() == content


def test_somebody_elses_config_is_kept_even_by_fresh(tmp_path):
    (tmp_path / "config.json").write_text('{"architectures": ["ViT"]}')
    for fresh in (False, True):
        with pytest.raises(ValueError, match="does not belong to a run"):
            opened(tmp_path, fresh=fresh)
    assert (tmp_path / "config.json").read_text() == '{"architectures": ["ViT"]}'


def test_a_journal_that_cannot_grow_says_so(tmp_path):
    journal = opened(tmp_path)
    journal._db.execute("PRAGMA max_page_count = 1")
    with pytest.raises(ValueError, match=r"journal\.sqlite cannot be written: no space left on device; fix that"):
        journal.once("memory", lambda: "x" * 100_000, task=0)
    journal.close()
    journal = opened(tmp_path)
    assert not journal.has("memory", task=0)
    journal.close()


@pytest.mark.parametrize(("beside", "advice"), [("result.json", "--fresh"), ("labels.sqlite", "from a copy")])
def test_a_damaged_journal_of_a_project_is_not_to_be_started_over(tmp_path, beside, advice):
    opened(tmp_path).close()
    (tmp_path / "journal.sqlite").write_bytes(b"no journal" * 500)
    (tmp_path / beside).touch()
    with pytest.raises(InputError, match=f"journal.sqlite cannot be read .*; restore it .*{advice}"):
        opened(tmp_path)


def test_what_is_written_can_be_read_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        files.write_text(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_a_second_process_is_told_who_holds_the_run(tmp_path):
    journal = opened(tmp_path)
    code = (
        "import sys; from pathlib import Path; from accuacl.experiments import Journal, make\n"
        "try: Journal(Path(sys.argv[1]), make({}), {})\n"
        "except ValueError as error: print(error); sys.exit(2)"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=120)
    assert run.returncode == 2, run.stderr
    assert f"another process (id {os.getpid()}) is working on" in run.stdout
    journal.close()
    assert subprocess.run([sys.executable, "-c", code, tmp_path], timeout=120).returncode == 0


def test_tensors_come_back_and_damage_is_noticed(tmp_path):
    handle = checkpoints.save_tensors(tmp_path / "a.safetensors", {"w": torch.arange(6.0).view(2, 3).T})
    json.dumps(handle)
    assert torch.equal(checkpoints.load_tensors(tmp_path, handle)["w"], torch.arange(6.0).view(2, 3).T)
    whole = (tmp_path / "a.safetensors").read_bytes()
    (tmp_path / "a.safetensors").write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"a\.safetensors is damaged"):
        checkpoints.load_tensors(tmp_path, handle)
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(ValueError, match=r"a\.safetensors is missing"):
        checkpoints.load_tensors(tmp_path, handle)


def test_a_full_disk_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    files.write_text(tmp_path / "a", "old")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="no space left"):
        files.write_text(tmp_path / "a", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"
