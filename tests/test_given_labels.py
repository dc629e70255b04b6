"""Labels that are there before anybody is asked: files of labels, and columns of the data."""

from __future__ import annotations

import csv
import itertools
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments.data import read_table
from accuacl.labeling.project import (
    NewItems,
    Project,
    describe_given,
    export,
    make,
    read_texts,
    read_vectors,
    take_label_file,
)
from accuacl.labeling.project.exported_tables import without_escape, write_answers, write_csv
from accuacl.labeling.project.given_labels import _keep, take_given
from commands import accuacl as command
from effort import examples
from scripted import answer, blobs, finish, new_project, records, texts_project


@pytest.fixture
def project(tmp_path):
    with new_project(tmp_path / "p") as project:
        yield project


def write(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def rows_of(task, items):
    names = blobs(task)[1]
    return [{"name": f"t{task}-{i}", "class": names[i]} for i in items]


def test_given_labels_are_learned_and_cost_nothing(project, tmp_path):
    project.advance()
    asked = {pick.item for pick in project.store.picks(0, 0)}
    others = [i for i in range(60) if i not in asked][:30]
    taken = take_label_file(project, write(tmp_path / "l.csv", rows_of(0, others)), "Bob", new_classes=True)
    assert (taken.labels, taken.waiting, taken.known, taken.refused) == (30, 0, 0, ())
    state = project.state()
    assert (state.used, state.left, state.status.total, state.status.left) == (0, 16, 8, 8)
    assert {answer.person for answer in project.store.answers()} == {1}  # Bob, a new person
    assert not project.store.people()[1].lead
    answer(project)
    state = project.advance()
    assert (state.round, state.used, state.status.total) == (1, 8, 8)  # the second round is as large as ever
    again = {pick.item for pick in project.store.picks(0, 1)}
    assert not again & (asked | set(others))
    label = next(value for key, value in records(project).items() if "label" in key)
    assert sorted(label["given"]) == others
    assert len(label["labels"]) == 38
    finish(project)
    assert len(project.store.labels()) == 46


def test_the_same_file_again_changes_nothing(project, tmp_path):
    project.advance()
    path = write(tmp_path / "l.csv", rows_of(0, range(60)))  # those that are asked for, too
    assert take_label_file(project, path, "Bob", new_classes=True).labels == 60
    events = [len(project.store.history(item)) for item in range(60)]
    again = take_label_file(project, path, "Bob")
    assert (again.labels, again.known, again.refused) == (0, 60, ())
    assert events == [len(project.store.history(item)) for item in range(60)]
    assert project.advance().finished  # every round is answered already, and all of it is learned
    assert sum(len(value["labels"]) for key, value in records(project).items() if "label" in key) == 60


def test_labels_of_a_task_that_has_not_begun_wait_for_it(project, tmp_path):
    project.add(blobs(1)[0])
    project.advance()
    taken = take_label_file(project, write(tmp_path / "l.csv", rows_of(1, range(5))), "Bob", new_classes=True)
    assert (taken.labels, taken.waiting) == (0, 5)
    assert not project.store.answers()
    while project.state().task == 0:
        answer(project)
        project.advance()
    assert {60, 61, 62, 63, 64} <= project.store.labels().keys()


def test_labels_after_the_last_round_are_learned_with_the_next_task(project, tmp_path):
    finish(project)
    asked = project.store.labels().keys()
    late = [i for i in range(60) if i not in asked][:4]
    assert take_label_file(project, write(tmp_path / "l.csv", rows_of(0, late)), "Bob").labels == 4
    project.add(blobs(1)[0])
    project.advance()
    answer(project)
    project.advance()
    steps = [value for key, value in records(project).items() if "label" in key]
    assert sorted(item for item, _ in steps[-1]["late"]) == late


def test_rows_that_cannot_be_taken_are_named_and_the_others_taken(project, tmp_path):
    project.advance()
    project.store.add_class("class 0")
    right = {"name": "t0-0", "class": "class 0"}
    wrong = [
        {"name": "nobody", "class": "class 0"},
        {"name": "t0-1", "class": "clas 0"},
        {"name": "t0-2", "class": ""},
        {"name": "t0-0", "class": "class 9"},
        {"name": "", "class": "class 0"},
    ]
    taken = take_label_file(project, write(tmp_path / "l.csv", [right, *wrong]), "Bob")
    assert taken.labels == 1
    assert [sentence.removeprefix(f"{tmp_path}/") for sentence in taken.refused] == [
        "l.csv: line 3: there is no item 'nobody' in this project; fix it or leave the row out.",
        "l.csv: line 4: there is no class 'clas 0'; did you mean class 0? Else give --new-classes to add it.",
        "l.csv: line 5: it has no class; give one or leave the row out.",
        "l.csv: line 6: there is no class 'class 9'; did you mean class 0? Else give --new-classes to add it.",
        "l.csv: line 7: there is no item '' in this project; fix it or leave the row out.",
    ]
    taken = take_label_file(project, write(tmp_path / "l.csv", [{"name": "t0-0", "class": "class 9"}]), "Bob", True)
    assert "'t0-0' is labelled 'class 0' and not 'class 9'" in taken.refused[0]
    with pytest.raises(InputError, match=r"has the columns a; give `name`"):
        take_label_file(project, write(tmp_path / "l.csv", [{"a": 1}]), "Bob")
    (tmp_path / "l.csv").write_text("")
    with pytest.raises(InputError, match=r"l\.csv is empty; give `name`"):
        take_label_file(project, tmp_path / "l.csv", "Bob")
    project.store.add_person("Eve")
    project.store.revoke("Eve")
    with pytest.raises(InputError, match="'Eve' has lost access"):
        take_label_file(project, write(tmp_path / "l.csv", rows_of(0, [5])), "Eve", True)


def test_an_export_can_be_taken_into_another_project(project, tmp_path):
    finish(project)
    export(project, tmp_path / "out", None, "text", lambda _: None)
    with new_project(tmp_path / "q") as other:
        other.advance()
        taken = take_label_file(other, tmp_path / "out" / "labels.csv", "Bob", new_classes=True)
        assert (taken.labels, taken.refused) == (16, ())
        assert {p.name for p in other.store.people()} == {"Ada"}  # the column `person` says whose they are


def test_what_is_forgotten_is_not_given_again(tmp_path):
    with texts_project(tmp_path) as project:
        left = [f"k{i}" for i in range(20) if i not in project.store.labels()]
        rows = [{"id": name, "label": "open" if int(name[1:]) % 2 == 0 else "close"} for name in left]
        take_label_file(project, write(tmp_path / "l.csv", rows), "Bob")
        item = int(left[0][1:])
        assert item in project.store.labels()
        project.forget([left[0]])
        assert item not in project.store.labels()
        assert str(item) not in json.loads((project.directory / "tasks" / "000" / "given.json").read_text())
        project.advance()
        assert item not in project.store.labels()


def test_texts_are_found_by_what_they_say_and_exports_hold_them(tmp_path):
    rows = "text\nopen it\nclose it\nopen it\nshut it\n"
    (tmp_path / "t.csv").write_text(rows)
    settings = make({"kind": "texts", "per_round": 2, "rounds": 1, "text_features": 64, "model": "none"})
    with Project.create(tmp_path / "p", settings) as project:
        project.store.add_person("Ada")
        project.add(read_texts(tmp_path / "t.csv", "text"))
        project.advance()
        labels = [{"text": "open it", "class": "open"}, {"text": "close it", "class": "close"}]
        labels += [{"text": "shut it", "class": "close"}]
        assert take_label_file(project, write(tmp_path / "l.csv", labels), "Bob", new_classes=True).labels == 4
        project.advance()
        export(project, tmp_path / "out", tmp_path / "t.csv", "text", lambda _: None)
    for name in ("labels.csv", "predictions.csv"):
        with (tmp_path / "out" / name).open(newline="") as file:
            texts = [row["text"] for row in csv.DictReader(file)]
        assert texts == ["open it", "close it", "open it", "shut it"]
    assert pq.read_table(tmp_path / "out" / "labels.parquet")["text"].to_pylist() == texts


def test_labels_in_a_column_of_texts_or_vectors(tmp_path):
    lines = [f"{verb} it {i},{verb if i < 3 else ''}" for i in range(6) for verb in ("open", "close")]
    (tmp_path / "t.csv").write_text("text,verdict\n" + "\n".join(lines) + "\n")
    options = ["--label-column", "verdict", "--per-round", "2", "--rounds", "1", "--model", "none"]
    ended = command("project", "new", "p", "--texts", "t.csv", *options, cwd=tmp_path, width=200)
    assert ended.returncode == 0, ended.stderr
    with Project.open(tmp_path / "p") as project:
        assert not project.store.classes()
    shown = command("project", "status", "p", cwd=tmp_path, width=200).stdout
    assert "6 labels given for tasks that have not begun will be taken when these begin." in shown
    again = ["project", "label", "p", "--from", "t.csv", "--label-column", "verdict"]
    (tmp_path / "t.csv").write_text("text,verdict\n" + "\n".join(lines[:6]) + "\n")
    ended = command(*again, cwd=tmp_path, width=200)  # classes and labels are known before the task begins
    assert (ended.returncode, "0 labels taken, 6 were there already" in ended.stdout) == (0, True), ended.stdout
    assert not list(tmp_path.glob("p/tasks/*/given.json"))
    with Project.open(tmp_path / "p") as project:
        project.store.add_person("Ada")
        project.advance()
        asked = len(project.store.picks(0, 0))
        free = 6 - sum(item < 6 for item in (pick.item for pick in project.store.picks(0, 0)))
        assert describe_given(project.store, project.tasks, 0) == [
            f"task 1 has {free} more labels, given before anybody was asked, which cost none of the budget."
        ]
        assert asked == 2
        assert {c.name for c in project.store.classes()} == {"open", "close"}
        assert set(project.store.labels()) == {0, 1, 2, 3, 4, 5}
        assert {p.name for p in project.store.people()} == {"Ada", "given with the data"}
    vectors = pa.table({"a": [0.0, 1.0, 2.0], "b": [5, 6, 7], "kind": ["x", None, "y"]})
    pq.write_table(vectors, tmp_path / "v.parquet")
    items = read_vectors(tmp_path / "v.parquet", label_column="kind")
    assert (items.columns, items.labels, items.shown[0]) == (["a", "b"], ["x", None, "y"], {"a": 0.0, "b": 5})
    for wrong in (["--images", "."], ["--vectors", "v.parquet"], ["--texts", "t.csv"]):
        ended = command("project", "new", "q", *wrong, "--label-column", "nothing", cwd=tmp_path, width=300)
        assert ended.returncode == 2
        assert "project label --from" in ended.stderr or "no column 'nothing'" in ended.stderr


def test_a_file_still_corrects_what_was_given_with_the_data(tmp_path):
    (tmp_path / "t.csv").write_text("text,verdict\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(6)))
    settings = make({"kind": "texts", "per_round": 2, "rounds": 1, "text_features": 16, "model": "none"})
    with Project.create(tmp_path / "p", settings) as project:
        project.add(read_texts(tmp_path / "t.csv", "text", label_column="verdict"))
        rows = [{"text": "text 0", "class": "b"}, {"text": "text 1", "class": "b"}, {"text": "text 2", "class": "c"}]
        taken = take_label_file(project, write(tmp_path / "l.csv", rows), "Bob")
        assert (taken.labels, taken.waiting, taken.known, len(taken.refused)) == (0, 1, 1, 1)
        assert "there is no class 'c'" in taken.refused[0]
        project.advance()
        names = {c.id: c.name for c in project.store.classes()}
        assert [names[project.store.labels()[item]] for item in range(6)] == ["b", "b", "a", "b", "a", "b"]


def test_the_command(tmp_path):
    with new_project(tmp_path / "p") as project:
        project.advance()
    write(tmp_path / "l.csv", [*rows_of(0, range(12)), {"name": "x", "class": "y"}])
    ended = command("project", "label", "p", "--from", "l.csv", "--new-classes", "--by", "Bob", cwd=tmp_path, width=200)
    assert ended.returncode == 2
    assert "refused: l.csv: line 14: there is no item 'x' in this project" in ended.stderr
    assert "refused" not in ended.stdout
    assert "12 labels taken, 0 were there already" in ended.stdout
    write(tmp_path / "l.csv", rows_of(0, range(60)))
    ended = command("project", "label", "p", "--from", "l.csv", cwd=tmp_path, width=200)
    assert "48 labels taken, 12 were there already" in ended.stdout
    assert "Next: accuacl project train p\n" in ended.stdout
    ended = command("project", "label", "p", "--from", "l.csv", "--train", cwd=tmp_path, width=200)
    assert ended.returncode == 0, ended.stderr
    assert "everything is labelled and learned" in ended.stdout


SIGNS = ["", "'", "''", "=", "+", "-", "@", "'=", "''-", "-1", "'-1", "+1e5", '"', "\r", "a\rb", "\n", "\t", ","]
CELLS = st.builds(str.__add__, st.sampled_from(SIGNS), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6))
@examples(40, 2000)
def test_cells_can_be_read_as_they_were_and_none_is_a_formula(rows):
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        write_csv(Path(folder) / "a.csv", [("one", "two"), *rows])
        columns = read_table(Path(folder) / "a.csv").columns
    cells = list(zip(columns["one"].to_pylist(), columns["two"].to_pylist(), strict=True))
    assert [(without_escape(a), without_escape(b)) for a, b in cells] == rows
    for cell in itertools.chain(*cells):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")) or float(cell) is not None


@pytest.mark.parametrize("kind", ["texts", "vectors"])  # found by the text, and by the name
def test_an_export_says_the_same_when_it_is_taken_again(tmp_path, kind):
    texts = sorted({sign + more for sign in SIGNS for more in ("", "a", "1") if (sign + more).strip()})
    names = list(dict.fromkeys(" ".join(text.split()) for text in texts))
    rows = [(text, names[i % len(names)]) for i, text in enumerate(texts)]
    with (
        warnings.catch_warnings(action="ignore"),
        strange(tmp_path / "p", kind, rows, names) as project,
        strange(tmp_path / "q", kind, rows, names) as other,
    ):
        _keep(project.tasks, {item: (name, "+Bob") for item, (_, name) in enumerate(rows)})
        take_given(project.store, project.tasks, 0)
        csv_file, parquet_file = write_answers(project, tmp_path)[:2]
        taken = take_label_file(other, csv_file, "Eve")
        assert (taken.labels, taken.refused) == (len(rows), ())
        assert {p.name for p in other.store.people()} == {"+Bob"}
        assert said(other) == said(project) == [name for _, name in rows]
        for path in (csv_file, parquet_file):
            taken = take_label_file(other, path, "Eve")
            assert (taken.labels, taken.known, taken.refused) == (0, len(rows), ())


def strange(folder, kind, rows, classes=()):
    settings = {"texts": {"text_features": 16}, "vectors": {}}[kind]
    project = Project.create(folder, make({"kind": kind, "per_round": 1, "rounds": 1, "model": "none"} | settings))
    for name in classes:
        project.store.add_class(name)
    texts = [text for text, _ in rows]
    vectors = np.eye(len(rows), 2, dtype=np.float32)
    shown = {"texts": {"texts": texts}, "vectors": {"vectors": vectors, "shown": [{} for _ in rows]}}[kind]
    project.add(NewItems(kind, "here", texts, **shown))
    project.advance()
    return project


def said(project):
    names = {c.id: c.name for c in project.store.classes()}
    return [names[class_id] for _, class_id in sorted(project.store.labels().items())]


def test_a_new_class_is_added_as_it_was_called(tmp_path):
    rows = [("-one", "+plus"), ("=two", "minus")]
    with strange(tmp_path / "p", "texts", rows) as project:
        path = write(tmp_path / "l.csv", [{"text": "'-one", "class": "'+plus"}, {"text": "=two", "class": "minus"}])
        assert (
            take_label_file(project, path, "Bob")
            .refused[0]
            .endswith("line 2: there is no class '+plus'; fix it, or give --new-classes to add it.")
        )
        taken = take_label_file(project, path, "Bob", new_classes=True)
        assert (taken.labels, taken.refused) == (2, ())
        assert [c.name for c in project.store.classes()] == ["+plus", "minus"]
