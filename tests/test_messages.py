"""Sentences and loose ends that users stumbled over, each with what it says or does now."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys

import numpy as np
import pytest

from accuacl import pools
from accuacl.base.errors import InputError
from accuacl.base.files import Lock, write_text
from accuacl.experiments import journal, make, run, runner
from accuacl.experiments.data import table_files
from accuacl.labeling.project import Project, make as new_project
from commands import SMALL, accuacl

GAPS = {
    "x_train": np.eye(60, 4),
    "y_train": np.repeat([0, 2], 30),
    "x_test": np.eye(20, 4),
    "y_test": [0] * 10 + [2] * 10,
}


@pytest.fixture
def small(tmp_path):
    """The settings and the directory of a finished run."""
    settings, out = make(SMALL | {"tasks": 1}), tmp_path / "run"
    return settings, out, run(settings, out)


def test_a_finished_run_is_shown_where_nothing_can_be_written(small, monkeypatch):
    settings, out, result = small
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(runner, "Journal", None)  # opening one would need to write
    assert run(settings, out) == result
    with pytest.raises(TypeError):  # another run is not shown for it
        run(settings.model_copy(update={"seed": 7}), out)


def test_a_run_that_another_process_has_may_go_elsewhere_and_a_project_may_not(small, tmp_path):
    settings, out, _ = small
    with Lock(out / "lock", ""), pytest.raises(InputError, match="wait for it or choose another --out"):
        journal.Journal(out, settings, {})
    (tmp_path / "rows.csv").write_text("id,a\n" + "".join(f"{i},{i}\n" for i in range(9)))
    assert accuacl("project", "new", tmp_path / "p", "--table", tmp_path / "rows.csv").returncode == 0
    with Lock(tmp_path / "p" / "lock", ""):
        ended = accuacl("project", "train", tmp_path / "p")
    assert ended.returncode == 2
    assert ended.stderr.endswith("is working on {}; wait for it.\n".format(tmp_path / "p"))


def test_tasks_that_are_not_learned_may_be_empty(tmp_path):
    np.savez(tmp_path / "gaps.npz", **GAPS)
    settings = {"benchmark": str(tmp_path / "gaps.npz"), "classes_per_task": 1, "labels": 8, "rounds": 2, "epochs": 1}
    assert run(make(settings | {"tasks": 1}), tmp_path / "first")["average_accuracy"] == 100
    with pytest.raises(
        InputError, match=r"task 2 \(classes 1\) has 0 training and 0 test .*number the classes 0, 1, 2"
    ):
        run(make(settings), tmp_path / "all")


def test_decimal_commas_are_noticed_and_lists_of_words_are_not(tmp_path):
    (tmp_path / "a.csv").write_text('a;b\n"1,5";x\n2;"y,z"\n')
    with pytest.warns(UserWarning, match="the column 'a' of .*a.csv has numbers with decimal commas, such as '1,5'"):
        table_files.read_table(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text('a;b\n"1,5";x\nred;"y,z"\n')
    assert table_files.read_table(tmp_path / "b.csv").values("a") == ["1,5", "red"]


@pytest.mark.parametrize("header", ["2019,2020,2021", "0,1,2", "a,b,c", "5,b,c", "1,2,cat"])
def test_a_header_of_numbers_that_count_up_is_one(tmp_path, header):
    (tmp_path / "a.csv").write_text(f"{header}\n5,3,1\n4,8,1\n")
    assert table_files.read_table(tmp_path / "a.csv").names == header.split(",")


def test_a_run_does_not_take_the_place_of_a_project(tmp_path):
    (tmp_path / "rows.csv").write_text("id,a\n" + "".join(f"{i},{i}\n" for i in range(9)))
    assert accuacl("project", "new", tmp_path / "p", "--table", tmp_path / "rows.csv").returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()}
    for more in ((), ("--fresh",)):
        ended = accuacl("run", "--benchmark", "split-digits", "--out", tmp_path / "p", *more)
        assert ended.returncode == 2
        assert "holds a labelling project; choose another directory as --out." in ended.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*") if path.is_file()} == before


def test_lost_labels_are_reported_and_no_empty_file_takes_their_place(tmp_path):
    (tmp_path / "rows.csv").write_text("id,a\n" + "".join(f"{i},{i}\n" for i in range(9)))
    assert accuacl("project", "new", tmp_path / "p", "--table", tmp_path / "rows.csv").returncode == 0
    (tmp_path / "p" / "labels.sqlite").unlink()
    ended = accuacl("project", "status", tmp_path / "p")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "labels.sqlite is missing or empty; restore it from a copy." in ended.stderr
    assert not (tmp_path / "p" / "labels.sqlite").exists()


def test_lost_tasks_are_reported(tmp_path):
    project = tmp_path / "p"

    def status():
        ended = accuacl("project", "status", project)
        return ended.returncode, ended.stderr

    (tmp_path / "texts.txt").write_text("\n".join(f"text {i}" for i in range(9)))
    command = ("project", "new", project, "--texts", tmp_path / "texts.txt", "--model=none", "--first-round=uniform")
    assert accuacl(*command, "--per-round=4").returncode == 0
    (project / "tasks").rename(tmp_path / "aside")
    assert status() == (2, f"accuacl: {project / 'tasks'} is missing; restore it from a copy.\n")
    (tmp_path / "aside").rename(project / "tasks")
    with Project.open(project) as opened:
        opened.give_out_first()
    assert status() == (0, "")
    (project / "tasks" / "000").rename(tmp_path / "aside")
    lost = project / "tasks" / "000" / "task.json"
    assert status() == (2, f"accuacl: {lost} is missing; restore it from a copy.\n")


def test_a_project_without_data_opens_also_if_it_has_no_folder_for_tasks_yet(tmp_path):
    with Project.create(tmp_path / "p", new_project({"kind": "texts", "model": "none"})) as project:
        project.store.add_person("Ada", lead=True)
    (tmp_path / "p" / "tasks").rmdir()
    with Project.open(tmp_path / "p") as project:
        assert project.state().waiting == "data"


def test_a_project_is_not_copied_into_itself(tmp_path):
    (tmp_path / "rows.csv").write_text("id,a\n" + "".join(f"{i},{i}\n" for i in range(9)))
    assert accuacl("project", "new", tmp_path / "p", "--table", tmp_path / "rows.csv").returncode == 0
    ended = accuacl("project", "backup", tmp_path / "p", tmp_path / "p" / "copy")
    assert ended.returncode == 2
    assert "copy is inside the project; copy it to another place." in ended.stderr
    assert not (tmp_path / "p" / "copy").exists()


def test_wrong_settings_and_rows_in_python_end_in_a_sentence(tmp_path):
    with pytest.raises(InputError, match=r"the settings are \{1: 2\}; give a dict of them"):
        make({1: 2})
    with pytest.raises(InputError, match=r"the settings are a dict; give make\(\.\.\.\) of them\."):
        run(SMALL, tmp_path / "run")
    with pytest.raises(InputError, match="there are 2 ids, 3 embeddings and 3 probabilities; give each"):
        pools.write_pool(tmp_path / "pool.parquet", [0, 1], np.ones((3, 2)), np.full((3, 2), 0.5))
    assert not list(tmp_path.iterdir())
    pools.write_pool(str(tmp_path / "pool.parquet"), [0, 1, 2], np.ones((3, 2)), np.full((3, 2), 0.5))
    assert (tmp_path / "pool.parquet").is_file()


@pytest.mark.posix
def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(InputError, match=r"pipe\.html is a device or a pipe; give the name of a file\."):
        write_text(tmp_path / "pipe.html", "text")
    assert stat.S_ISFIFO((tmp_path / "pipe.html").stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.html"]
    write_text(tmp_path / "file.html", "text")
    write_text(tmp_path / "file.html", "other")
    assert (tmp_path / "file.html").read_text() == "other"


@pytest.mark.posix
@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("exec {} --version >&-", 0, ""),
        ("exec {} check nowhere.py 2>&-", 2, ""),
        ("COLUMNS=0 exec {} doctor", 0, "accuacl"),
        (
            "mkdir gone && cd gone && rmdir ../gone && exec {} doctor",
            2,
            "accuacl: the current folder is gone; change to",
        ),
    ],
)
def test_a_command_survives_odd_surroundings(line, code, says, tmp_path):
    command = line.format(f"{shlex.quote(sys.executable)} -m accuacl")
    ended = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False), ended.stderr
    assert says in ended.stdout + ended.stderr
