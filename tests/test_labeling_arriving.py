"""Projects whose data name their tasks: a folder or file for each, or a column."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from typer.testing import CliRunner

from accuacl.base.errors import InputError
from accuacl.cli import app
from accuacl.labeling.project import Project, Tasks, read_like

SMALL = ["--per-round", "2", "--rounds", "1"]


def project(*words):
    """What a command of projects prints."""
    ran = CliRunner().invoke(app, ["project", *map(str, words)], env={"COLUMNS": "200"})
    assert ran.exit_code == 0, ran.output
    return ran.output


def refused(*words):
    """Why a command is refused."""
    ran = CliRunner().invoke(app, ["project", *map(str, words)])
    assert isinstance(ran.exception, InputError)
    return str(ran.exception)


def names(directory):
    tasks = Tasks(directory)
    return [tasks.table(task.index)["name"] for task in tasks.all()]


def images(folder, *files):
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (len(file), 0, 0)).save(folder / file)


def test_a_folder_of_images_for_each_task(tmp_path):
    images(tmp_path / "all", "task-10/c.png", "task-2/b/x.png", "task-2/y.png")
    said = project("new", tmp_path / "p", "--images", tmp_path / "all", *SMALL)
    assert "task 1: 2 images" in said
    assert "task 2: 1 images" in said
    assert names(tmp_path / "p") == [["b/x.png", "y.png"], ["c.png"]]
    images(tmp_path / "all", "task-2/z.png", "task-11/d.png")  # the next time the same folder has more
    project("add", tmp_path / "p", "--images", tmp_path / "all")
    assert names(tmp_path / "p")[2:] == [["z.png"], ["d.png"]]
    assert "nothing new to label" in refused("add", tmp_path / "p", "--images", tmp_path / "all")
    assert len(names(tmp_path / "p")) == 4


def test_folders_beside_others_or_beside_images_are_one_task(tmp_path):
    images(tmp_path / "a", "task-1/x.png", "other/y.png")
    images(tmp_path / "b", "task-1/x.png", "y.png")
    (tmp_path / "b" / "notes.txt").write_text("not an image")
    for folder in ("a", "b"):
        project("new", tmp_path / f"p-{folder}", "--images", tmp_path / folder, *SMALL)
        assert len(names(tmp_path / f"p-{folder}")) == 1


def test_texts_by_a_column(tmp_path):
    (tmp_path / "t.csv").write_text("id,text,task\n1,open it,May 10\n2,close it,May 9\n3,open that,May 10\n")
    said = project("new", tmp_path / "p", "--texts", tmp_path / "t.csv", "--model", "none", *SMALL)
    assert said.startswith("task 1 (May 9): 1 texts\ntask 2 (May 10): 2 texts\n")
    assert names(tmp_path / "p") == [["2"], ["1", "3"]]
    project("new", tmp_path / "one", "--texts", tmp_path / "t.csv", "--model", "none", "--task-column", "", *SMALL)
    assert names(tmp_path / "one") == [["1", "2", "3"]]
    (tmp_path / "t.jsonl").write_text(
        "\n".join(json.dumps({"text": f"say {i}", "month": 12 - i % 3}) for i in range(5)) + "\n"
    )
    said = project("add", tmp_path / "one", "--texts", tmp_path / "t.jsonl", "--task-column", "month")
    assert said.startswith("task 2 (10): 1 texts\ntask 3 (11): 2 texts\ntask 4 (12): 2 texts\nnext: ")
    assert names(tmp_path / "one")[1:] == [["2"], ["1", "4"], ["0", "3"]]
    said = refused("add", tmp_path / "one", "--texts", tmp_path / "t.jsonl", "--task-column", "week")
    assert "no column 'week'" in said
    (tmp_path / "gap.csv").write_text("text,task\nopen it,1\nclose it,\n")
    assert "the row 1 names no task" in refused("add", tmp_path / "one", "--texts", tmp_path / "gap.csv")


def test_a_file_of_texts_for_each_task(tmp_path):
    (tmp_path / "all").mkdir()
    for number in (2, 1, 10):
        (tmp_path / "all" / f"task-{number}.csv").write_text(f"id,text\n{number},say {number}\n")
    project("new", tmp_path / "p", "--texts", tmp_path / "all", "--model", "none", *SMALL)
    assert names(tmp_path / "p") == [["1"], ["2"], ["10"]]
    (tmp_path / "empty").mkdir()
    said = refused("add", tmp_path / "p", "--texts", tmp_path / "empty")
    assert "a folder without files called task-1" in said


def test_vectors_by_a_column_that_is_then_no_feature(tmp_path):
    columns = {"a": np.arange(6.0), "b": np.arange(6.0) ** 2, "task": [3, 1, 2] * 2}
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    project("new", tmp_path / "p", "--vectors", tmp_path / "v.parquet", *SMALL)
    assert names(tmp_path / "p") == [["1", "4"], ["2", "5"], ["0", "3"]]
    assert Tasks(tmp_path / "p").all()[0].columns == ["a", "b"]
    assert np.load(Tasks(tmp_path / "p").folder_of(2) / "vectors.npy").tolist() == [[0, 0], [3, 9]]
    # where the first task has it as a feature, as in projects of older versions, it stays one
    project("new", tmp_path / "old", "--vectors", tmp_path / "v.parquet", "--task-column", "", *SMALL)
    assert Tasks(tmp_path / "old").all()[0].columns == ["a", "b", "task"]
    project("add", tmp_path / "old", "--vectors", tmp_path / "v.parquet")
    assert [len(part) for part in names(tmp_path / "old")] == [6, 6]


def test_tables_by_a_column(tmp_path):
    (tmp_path / "t.csv").write_text("amount,where,year\n1,a,1995\n2,b,1994\n3,a,1995\n4,b,1994\n")
    project("new", tmp_path / "p", "--table", tmp_path / "t.csv", "--task-column", "year", *SMALL)
    assert names(tmp_path / "p") == [["1", "3"], ["0", "2"]]
    assert Tasks(tmp_path / "p").rows(1, slice(2)) == [{"amount": "1", "where": "a"}, {"amount": "3", "where": "a"}]
    with Project.open(tmp_path / "p") as opened, warnings.catch_warnings(action="error"):  # predictions do not need it
        assert read_like(opened.tasks, "tables", tmp_path / "t.csv", "text").names == ["0", "1", "2", "3"]
    (tmp_path / "u.csv").write_text("amount,where,year\n5,c,1997\n6,b,1996\n")
    project("add", tmp_path / "p", "--table", tmp_path / "u.csv")  # the column is known
    (tmp_path / "v.csv").write_text("amount,where\n7,c\n")
    project("add", tmp_path / "p", "--table", tmp_path / "v.csv")  # and may be missing
    assert names(tmp_path / "p")[2:] == [["1"], ["0"], ["0"]]


def test_all_tasks_are_there_or_none(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("text,task\nopen it,1\nclose it,2\n")
    add, added = Tasks.add, []

    def fails_at_the_second(self, items):
        if added:
            raise OSError("the disk is gone")
        added.append(items)
        return add(self, items)

    monkeypatch.setattr(Tasks, "add", fails_at_the_second)
    CliRunner().invoke(app, ["project", "new", str(tmp_path / "p"), "--texts", str(tmp_path / "t.csv"), *SMALL])
    assert added
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_images_have_no_columns(tmp_path):
    images(tmp_path / "a", "x.png")
    assert "images have no columns" in refused("new", tmp_path / "p", "--images", tmp_path / "a", "--task-column", "x")


def test_the_tasks_are_labelled_one_after_another(tmp_path):
    (tmp_path / "t.csv").write_text("text,task\n" + "".join(f"say {i},{i % 2}\n" for i in range(12)))
    project("new", tmp_path / "p", "--texts", tmp_path / "t.csv", "--model", "none", "--classes", "a,b", *SMALL)
    with Project.open(tmp_path / "p") as opened:
        ada = opened.store.person_of(opened.store.add_person("Ada"))
        asked = []
        while not opened.advance().finished:
            while (pick := opened.store.lease(ada)) is not None:
                asked.append(opened.tasks.find(pick.item).index)
                opened.store.label(ada, pick.item, 0, f"request-{len(asked):04}")
        assert asked == sorted(asked)
        assert set(asked) == {0, 1}
