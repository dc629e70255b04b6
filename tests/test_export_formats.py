"""The export where it is used: ONNX, the model card, skips, and cells that a spreadsheet could take for formulas."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from accuacl.base.errors import InputError
from accuacl.labeling.project import NewItems, Project, export, exporting, loader, make
from accuacl.labeling.store import Pick, Store
from commands import accuacl
from processes import run_alone
from scripted import SMALL, answer, blobs, finish, new_project, texts_project


def quiet(progress):
    pass


def test_onnx_says_the_same(tmp_path, capfd):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    with new_project(tmp_path / "p", 1, learner="ridge", head="projection", width=32, rounds=1) as project:
        finish(project)
        project.store.merge_class(0, 1)
        written = export(project, tmp_path / "e", None, "text", quiet, onnx=True)
    assert written[-1].name == "model.onnx"
    session = onnxruntime.InferenceSession(tmp_path / "e" / "model.onnx")
    vectors = blobs(0)[0].vectors
    (said,) = session.run(["probabilities"], {"inputs": vectors})
    np.testing.assert_allclose(said, loader.load(tmp_path / "e").probabilities(list(vectors)), atol=1e-5)
    assert said.shape == (60, 1)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == loader.load(tmp_path / "e").classes
    assert capfd.readouterr().err == ""  # torch has much to say


ONNX_ALONE = """
import sys
sys.modules.update(dict.fromkeys(("accuacl", "torch", "safetensors", "sklearn", "onnx")))  # as if not installed
import numpy, onnxruntime
session = onnxruntime.InferenceSession("model.onnx")
numpy.save("said.npy", session.run(["probabilities"], {"inputs": numpy.load("vectors.npy")})[0])
"""


def test_onnx_needs_onnxruntime_and_numpy_alone(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    with new_project(tmp_path / "p", 1, learner="ridge", rounds=1) as project:
        finish(project)
        export(project, tmp_path / "e", None, "text", quiet, onnx=True)
    vectors = blobs(0)[0].vectors
    np.save(tmp_path / "e" / "vectors.npy", vectors)
    done = subprocess.run([sys.executable, "-I", "-c", ONNX_ALONE], cwd=tmp_path / "e", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = loader.load(tmp_path / "e").probabilities(list(vectors))
    np.testing.assert_allclose(np.load(tmp_path / "e" / "said.npy"), expected, atol=1e-5)


MAIN = "import runpy; runpy.run_path('model.py', run_name='__main__')"


def test_the_exported_model_takes_vectors_from_a_shell(tmp_path):
    with new_project(tmp_path / "p", 1, learner="ridge", rounds=1) as project:
        finish(project)
        export(project, tmp_path / "e", None, "text", quiet)
    assert "`python model.py new.npy`" in (tmp_path / "e" / "MODEL_CARD.md").read_text()
    vectors = blobs(0)[0].vectors
    np.save(tmp_path / "e" / "new.npy", vectors)
    alone = run_alone(MAIN, "new.npy", cwd=tmp_path / "e")
    names, _ = loader.load(tmp_path / "e").predict(list(vectors))
    rows = [line.split("\t") for line in alone.stdout.splitlines()]
    assert [row[:2] for row in rows] == [[f"new.npy, row {i}", name] for i, name in enumerate(names)], alone.stderr
    np.save(tmp_path / "e" / "new.npy", vectors[:, 1:])
    alone = run_alone(MAIN, "new.npy", cwd=tmp_path / "e")
    assert alone.returncode == 1
    assert alone.stderr.startswith("model.py: ")
    assert "Traceback" not in alone.stderr


def test_onnx_of_vectors_that_an_own_network_embeds(tmp_path):
    """The network takes vectors as long as the project's, whatever it makes of them."""
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef make():\n    return torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Linear(9, 2))\n"
    )
    own = {"learner": "ridge", "head": "linear", "model": f"{tmp_path / 'net.py'}:make", "rounds": 1}
    with new_project(tmp_path / "p", 1, **own) as project:
        finish(project)
        export(project, tmp_path / "e", None, "text", quiet)
    assert exporting._example(loader.load(tmp_path / "e")).shape == (3, 6)


def test_onnx_that_is_not_the_model_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    with new_project(tmp_path / "p", 1, learner="ridge", rounds=1) as project:
        with pytest.raises(InputError, match="nothing has been learned yet, so there is no model to predict with"):
            export(project, tmp_path / "e", None, "text", quiet, onnx=True)
        finish(project)
        monkeypatch.setattr(exporting, "LARGEST_ERROR", -1.0)
        with pytest.raises(InputError, match="the ONNX model gives other probabilities"):
            export(project, tmp_path / "e", None, "text", quiet, onnx=True)


def test_skips_and_cells_that_begin_like_formulas(tmp_path):
    project = Project.create(tmp_path / "p", make(SMALL | {"rounds": 1}))
    project.store.add_person("@Ada")
    items = blobs(0)[0]
    names = [f"{'=+-@'[i % 4]}SUM({i})" for i in range(60)]
    project.add(NewItems("vectors", "=here", names, vectors=items.vectors))
    project.advance()
    skipped = answer(project, 2, skip=lambda pick: True, name=lambda project, item: "-class")
    while not project.advance().finished:
        answer(project, name=lambda project, item: "-class")
    export(project, tmp_path / "e", None, "text", quiet)
    project.close()
    with (tmp_path / "e" / "skipped.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["item"]) for row in rows] == sorted(skipped)
    assert {row["person"] for row in rows} == {"'@Ada"}
    with (tmp_path / "e" / "labels.csv").open() as file:
        rows += list(csv.DictReader(file))
    for row in rows:
        assert row["name"] == f"'{names[int(row['item'])]}"
        assert row["source"] == "'=here"
        assert row.get("class", "'-class") == "'-class"


def test_comments_and_flags_leave_too(tmp_path):
    with texts_project(tmp_path) as project:
        ada = project.store.people()[0]
        one, other = sorted(project.store.labels())[:2]
        project.store.comment(ada, [one], "=is this right?", "request-1")
        project.store.flag(ada, other, "", "request-2")
        export(project, tmp_path / "e", None, "text", quiet)
        texts = [project.item(item).text for item in (one, other)]
    with (tmp_path / "e" / "comments.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["item"]), row["kind"], row["comment"]) for row in rows] == [
        (one, "comment", "'=is this right?"),
        (other, "flag", ""),
    ]
    assert [row["text"] for row in rows] == texts
    assert {(row["person"], row["task"], row["round"]) for row in rows} == {("Ada", "1", "1")}


def test_every_answer_of_every_person_leaves(tmp_path):
    """With the time since the item was given out, the guess that was shown, and what was taken back."""
    now = [4e9]  # after all that has happened
    with new_project(tmp_path / "p") as project:
        project.advance()
    with Store(tmp_path / "p" / "labels.sqlite", clock=lambda: now[0], steady=lambda: 0.0) as store:
        eva, bob = (store.person_of(store.add_person(name)) for name in ("Eva", "Bob"))
        cat, dog = (store.add_class(name).id for name in ("cat", "dog"))
        item = store.lease(eva).item
        store.show_guess(eva, Pick(item, 0, {}, guess=dog))
        now[0] += 4.25
        store.label(eva, item, cat, "label-of-eva")
        store.undo(eva, "undo-of-eva")
        now[0] += 2
        store.skip(eva, item, "skip-of-eva")
        other = store.lease(eva).item
        now[0] += 60
        store.label(eva, other, dog, "other-of-eva")
        store.correct(bob, other, cat, "bob-corrects")
        store.merge_class(cat, dog)
    with Project.open(tmp_path / "p") as project:
        export(project, tmp_path / "e", None, "text", quiet)
        names = [project.item(each).name for each in (item, item, other, other)]
    with (tmp_path / "e" / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == names
    columns = ("kind", "class", "person", "seconds", "guess_shown", "undone")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("label", "dog", "Eva", "4.2", "dog", "True"),
        ("skip", "", "Eva", "2.0", "dog", "False"),
        ("label", "dog", "Eva", "60.0", "", "False"),
        ("correct", "dog", "Bob", "", "", "False"),
    ]
    assert {(row["task"], row["round"]) for row in rows} == {("1", "1")}
    assert all(row["time"].endswith("Z") for row in rows)


def test_items_without_a_label_leave_with_the_class_that_the_model_gives_them(tmp_path):
    with new_project(tmp_path / "p", 2) as project:
        finish(project)
        project.store.merge_class(0, 1)
        project.add(blobs(2)[0])  # not embedded yet
        export(project, tmp_path / "e", None, "text", quiet)
        labelled = project.store.labels()
    with (tmp_path / "e" / "unlabelled.csv").open() as file:
        rows = list(csv.DictReader(file))
    items = [int(row["item"]) for row in rows]
    assert sorted(items) == sorted(set(range(120)) - labelled.keys())
    vectors = np.concatenate([blobs(0)[0].vectors, blobs(1)[0].vectors])[items]
    classes, confidences = loader.load(tmp_path / "e").predict(vectors)
    assert [row["class"] for row in rows] == classes
    assert np.allclose([float(row["confidence"]) for row in rows], confidences, atol=1e-4)
    assert [float(row["confidence"]) for row in rows] == sorted(float(row["confidence"]) for row in rows)
    assert rows[0]["name"] == f"t{items[0] // 60}-{items[0] % 60}"


def test_the_model_card(tmp_path):
    with new_project(tmp_path / "p", 2, learner="ridge") as project:
        finish(project)
        project.store.rename_class(0, "a|b <script>")
    assert accuacl("project", "export", tmp_path / "p", "--out", tmp_path / "e").returncode == 0
    card = (tmp_path / "e" / "MODEL_CARD.md").read_text()
    assert "| 1 | vectors | 60 | 16 | blobs 0 |" in card
    assert r"| a\|b \<script\> |" in card
    assert "- learner: ridge" in card
    assert "Calibration: of the training examples, each left out in turn," in card
    table = card.split("## How good it is")[1].splitlines()
    assert sum(line.startswith(("| 1 | 2 |", "| 2 | 2 |")) for line in table) == 2
