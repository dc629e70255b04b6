"""Deletion on request: a project that forgot an item is one that never had it."""

from __future__ import annotations

import re
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from accuacl.base.errors import InputError
from accuacl.experiments import checkpoints, read_steps
from accuacl.experiments.heads import examples_of, fit_like, fit_ridge as fit, sums_of, without
from accuacl.labeling.project import Project, TableOptions, forgetting, make, read_like, read_texts, read_vectors
from commands import accuacl
from scripted import SMALL, answer, blobs, class_of, finish, new_project, records, truth
from test_keep_statistics import all_rows, held_items
from web_project import picture

RIDGE = {"learner": "ridge", "strategy": "badge"}
OWN = """
from torch import nn

def build():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
"""


def traces(project, item, name, vector):
    """Where anything of the item is left."""
    found = [kind for kind, step in records(project, "*").items() if _mentions(step, item)]
    found += ["labels"] if item in project.store.labels() or project.store.history(item) else []
    project.close()
    for path in project.directory.rglob("*"):
        if path.is_file() and (name.encode() + b'"' in path.read_bytes() or vector.tobytes() in path.read_bytes()):
            found.append(path.name)
    return found


def _mentions(step, item):
    """Whether a list of items, or of rows that begin with one, has it."""
    names = ("ids", "labels", "skipped", "held", "corrected", "summed", "predictions")
    lists = [value for name, value in step.items() if name in names] if isinstance(step, dict) else []
    return any(item == (entry[0] if isinstance(entry, list) else entry) for values in lists for entry in values)


def trained_items(project):
    return [i for i in sorted(project.store.labels()) if i > 10 and i not in held_items(project)]


@pytest.mark.parametrize("when", ["in the first task", "in the second", "at the end"])
def test_the_model_is_that_of_a_project_that_never_had_it(tmp_path, when):
    project = new_project(tmp_path / "p", 2, **RIDGE)
    while not project.advance().finished:
        if when == "in the first task" and len(read_steps(project.journal, "train")) == 1:
            break
        if when == "in the second" and len(read_steps(project.journal, "train")) == 3:
            break
        answer(project)
    before = len(project.store.labels())
    item = trained_items(project)[0]
    name, vector = project.item(item).name, blobs(0)[0].vectors[item]
    held = next(i for i in sorted(held_items(project)) if i > 10)
    assert project.forget([name, str(held)]).difference < 1e-5  # by its name and by its number
    assert len(project.store.labels()) == before - 2
    assert project.estimates().tasks
    finish(project)
    assert np.load(project.tasks.folder_of(0) / "inputs.npy")[item].tolist() == [0] * 6
    assert traces(project, item, name, vector) == []
    with Project.open(tmp_path / "p") as project:  # it all still fits together
        assert project.advance().finished
        assert project.item(item).name == "(forgotten)"


def vectors_project(folder, **more):
    """Like `new_project`, with its vectors in files."""
    project = Project.create(folder / "p", make(SMALL | more))
    project.store.add_person("Ada")
    for task in range(2):
        items, _ = blobs(task)
        pq.write_table(pa.table({"id": items.names, "embedding": list(items.vectors)}), folder / f"{task}.parquet")
        project.add(read_vectors(folder / f"{task}.parquet"))
    return project


def test_its_share_leaves_the_sums_of_a_class_that_was_merged_since(tmp_path):
    project = vectors_project(tmp_path, **RIDGE | {"keep": "statistics"})
    while project.advance().task < 1:
        answer(project)
    item = trained_items(project)[0]
    label = project.store.labels()[item]
    other = next(c.id for c in project.store.classes() if c.id != label)
    project.store.merge_class(label, other)
    finish(project)

    def counts():
        memories = [step.result["file"] for step in read_steps(project.journal, "memory")]
        sums = [forgetting.load_sums(project.directory / "weights", handle) for handle in memories]
        return [{id: value.count for id, value in each.items()} for each in sums]

    before = counts()
    assert label in before[0]
    assert label not in before[1]
    assert project.forget([f"t0-{item}"]).difference < 1e-5
    before[0][label] -= 1
    before[1][other] -= 1
    assert counts() == before
    project.close()


@pytest.mark.parametrize("tasks", [1, 2])
def test_its_share_leaves_the_sums(tmp_path, tasks):
    """While the second task goes on, and when all is done: then the model is made of the sums alone."""
    project = vectors_project(tmp_path, **RIDGE | {"keep": "statistics"})
    while project.advance().task < 1:
        answer(project)
    if tasks == 2:
        finish(project)
    else:
        answer(project)
        project.advance()
    item = trained_items(project)[0]
    assert item < 60
    facts, said = read_steps(project.journal, "train")[-1].result["facts"], project.estimates().calibration
    forgot = project.forget([f"t0-{item}"])
    assert forgot.difference < 1e-5
    assert forgot.as_before == (tasks == 2)
    labels = {i: label for i, label in project.store.labels().items() if i not in held_items(project)}
    closed = {i for step in read_steps(project.journal, "label") for i, _ in step.result["labels"]}
    ids = np.array(sorted(labels.keys() & closed))
    x, y = torch.from_numpy(all_rows(project)[ids]), torch.tensor([labels[i] for i in ids.tolist()])
    last = read_steps(project.journal, "train")[-1].result
    weights, count = checkpoints.load_tensors(project.directory / "weights", last), int(y.max()) + 1
    if tasks == 1:  # all is chosen anew, by the examples of the second task, as if the item had never been there
        head = fit(x, y, count, torch.from_numpy(ids >= 60))
        assert project.estimates().calibration.startswith("Calibration")
    else:
        head = fit_like(x, y, count, facts["ridge"], facts["sharpness"])
        assert said
        assert project.estimates().calibration == f"{said} That was before items were forgotten."
    assert last["facts"]["ridge"] == pytest.approx(head.ridge, rel=1e-5)
    assert last["facts"]["sharpness"] == pytest.approx(head.sharpness, rel=1e-3)
    torch.testing.assert_close(weights["head.weight"].double(), head.weight, rtol=1e-3, atol=1e-4)
    guesses = read_steps(project.journal, "evaluate")[-1].result["predictions"]
    seen = torch.tensor(last["seen"]) if tasks == 2 else torch.arange(count)
    for held, guess, confidence in guesses if tasks == 2 else ():  # held-out items have been tried with the new model
        p = torch.softmax(head.logits(torch.from_numpy(all_rows(project)[[held]]))[0, seen], 0)
        assert (int(seen[p.argmax()]), pytest.approx(float(p.max()), abs=1e-4)) == (guess, confidence)
    assert item not in dict(records(project, "000/memory")["000/memory"]["summed"])
    finish(project)
    (tmp_path / "0.parquet").rename(tmp_path / "gone")
    with pytest.raises(InputError, match=r"0\.parquet no longer has"):
        project.forget([str(trained_items(project)[0])])
    project.close()


@pytest.mark.parametrize("when", ["in the second task", "at the end"])
@pytest.mark.parametrize("keep", ["examples", "statistics"])
def test_all_that_was_learned_of_a_task_can_be_forgotten(tmp_path, keep, when):
    """The model is then that of the task before, which was learned with what is left."""
    project = vectors_project(tmp_path, **RIDGE | {"keep": keep})
    while not (state := project.advance()).finished:
        if when == "in the second task" and state.task == 1 and state.round == 1:
            break
        answer(project)
    gone = [item for item in project.store.labels() if item >= 60] + [trained_items(project)[0]]
    before = [step.result["facts"] for step in read_steps(project.journal, "train") if step.task == 0][-1]
    assert project.forget([str(item) for item in gone]).difference < 1e-5
    ids = np.array([item for item in sorted(project.store.labels()) if item not in held_items(project)])
    x, y = torch.from_numpy(all_rows(project)[ids]), torch.tensor([project.store.labels()[i] for i in ids.tolist()])
    last = read_steps(project.journal, "train")[-1]
    assert (last.task, last.result["seen"]) == (0, sorted(set(y.tolist())))
    weights, count = checkpoints.load_tensors(project.directory / "weights", last.result), int(y.max()) + 1
    by_sums = keep == "statistics"
    head = fit_like(x, y, count, before["ridge"], before["sharpness"]) if by_sums else fit(x, y, count)
    torch.testing.assert_close(weights["head.weight"][last.result["seen"]].double(), head.weight, rtol=1e-3, atol=1e-4)
    finish(project)
    project.add(blobs(2)[0])
    finish(project)
    assert set(read_steps(project.journal, "train")[-1].result["seen"]) > set(last.result["seen"])
    project.close()


def test_the_proof_counts_what_the_model_was_taught(tmp_path):
    """A label that came late is part of it, a correction that no training has seen yet is not."""
    project = new_project(tmp_path / "p", 1, **RIDGE | {"rounds": 3})
    person = project.store.people()[0]
    project.advance()
    skipped = answer(project, skip=lambda pick: pick.rank in (0, 1, 2))[:3]
    project.advance()
    for item in skipped:
        project.store.relabel(person, [item], class_of(project, truth(project, item)), uuid.uuid4().hex)
    answer(project)
    project.advance()
    late = read_steps(project.journal, "label")[-1].result["late"]
    assert late
    assert project.forget([str(trained_items(project)[0])]).difference < 1e-5
    item = trained_items(project)[-1]
    project.store.correct(person, item, class_of(project, "another"), uuid.uuid4().hex)
    assert project.forget([str(late[0][0])]).difference < 1e-5
    finish(project)
    assert project.forget([str(trained_items(project)[0])]).difference < 1e-5
    project.close()


def test_the_proof_of_a_model_with_a_single_class(tmp_path):
    project = new_project(tmp_path / "p", 1, **RIDGE)
    project.advance()
    answer(project, name=lambda project, item: "all")
    project.advance()
    assert project.forget([str(trained_items(project)[0])]).difference == 0
    project.close()


def test_killed_at_any_write_it_is_finished_later(tmp_path, monkeypatch):
    project = new_project(tmp_path / "p", 1, **RIDGE)
    while len(read_steps(project.journal, "train")) < 1:
        answer(project)
        project.advance()
    item = trained_items(project)[0]

    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed

    for name in ("write_text", "sync_folder", "forget_items"):  # before the plan is there, halfway, near the end
        with monkeypatch.context() as patch:
            patch.setattr(forgetting, name, killed)
            with pytest.raises(Killed):
                project.forget([str(item)])
        assert (item in project.store.labels()) == (name != "forget_items")
    finish(project)
    assert item not in project.store.labels()
    assert not (tmp_path / "p" / "forgetting.json").exists()
    assert np.load(project.tasks.folder_of(0) / "inputs.npy")[item].tolist() == [0] * 6
    project.close()


def test_the_command(tmp_path):
    with new_project(tmp_path / "p", 1, **RIDGE) as project:
        finish(project)
        item = trained_items(project)[0]
    said = accuacl("project", "forget", tmp_path / "p", f"t0-{item}")
    assert said.returncode == 0
    assert f"forgotten: item {item} (task 1, 't0-{item}')" in said.stdout
    assert "proof: the model differs from one fitted without them from scratch by" in said.stdout
    assert "there is no item 't0-99'" in accuacl("project", "forget", tmp_path / "p", "t0-99").stderr


def test_a_kernel_head_is_to_the_bit_one_that_never_knew_them(tmp_path):
    settings = {"learner": "kernel", "strategy": "uniform", "pool_learning": "self"}
    with new_project(tmp_path / "p", 1, **settings) as project:
        finish(project)
        report = project.forget([f"#{trained_items(project)[0]}"])
    assert report.difference == 0
    proof = "proof: the model gives to the bit what one fitted without them from scratch gives"
    assert report.sentences[0] == proof


def test_who_cannot_forget(tmp_path):
    with new_project(tmp_path / "p") as project:
        project.advance()
        with pytest.raises(InputError, match="er cannot take back what it has learned; only ridge and kernel forget"):
            project.forget(["t0-1"])


def numbered_texts(folder, *counts, labels=0, **more):
    """A project of texts without names, which are called 0, 1, ... in each of its tasks."""
    settings = make({"kind": "texts", "per_round": 8, "rounds": 1, "model": "none", "text_features": 64} | RIDGE | more)
    project = Project.create(folder / "p", settings)
    project.store.add_person("Ada")
    for task, count in enumerate(counts):
        rows = [f"{('open', 'close')[i % 2]} it {task} {i}" for i in range(count)]
        (folder / f"{task}.csv").write_text("text\n" + "\n".join(rows) + "\n")
        project.add(read_texts(folder / f"{task}.csv", "text"))
    for _ in range(labels):
        project.advance()
        answer(project, name=lambda project, item: project.item(item).text.split()[0])
    project.advance()
    return project


def test_a_number_that_is_another_items_name_is_refused(tmp_path):
    """Item 15 is called 9 and item 9 is called 3: neither is erased for the other."""
    project = numbered_texts(tmp_path, 6, 20)
    one, other = "'#9' is task 2, '3': close it 1 3", "'#15' is task 2, '9': close it 1 9"
    both = f"'9' can mean 2 items; give one with its #, in quotes: {one}; {other}."
    with pytest.raises(InputError, match=re.escape(both)):
        project.forget(["9"])
    with pytest.raises(InputError, match=re.escape("'1' can mean 2 items; give one with its #, in quotes: '#1' is")):
        project.forget(["1"])
    with pytest.raises(InputError, match="there is no item '26'; items have the numbers 0 to 25"):
        project.forget(["#26"])
    assert [item.id for item in project.forget(["2:9", "#9", "25"]).items] == [9, 15, 25]  # 25 is nobody's name
    assert [item for item in range(26) if project.item(item).name == "(forgotten)"] == [9, 15, 25]
    with pytest.raises(InputError, match="'15' can mean 2 items"):
        project.forget(["15"])  # item 15 is gone; another is called that
    for again in ("#9", "9", "25"):
        with pytest.raises(InputError, match=r"item .* has already been forgotten; leave it out"):
            project.forget([again])
    for nobody in ("2:9", "(forgotten)", "3:1", "#", "1:"):
        with pytest.raises(InputError, match="there is no item"):
            project.forget([nobody])
    project.close()


def test_without_a_model_there_is_nothing_to_compare(tmp_path):
    project = numbered_texts(tmp_path, 20)
    assert project.forget(["3"]).sentences[0] == (
        "proof: nothing has been learned yet, so there is no model that could know them"
    )
    project.close()


def test_a_projection_stands_before_the_head(tmp_path):
    project = new_project(tmp_path / "p", 1, **RIDGE | {"head": "projection", "width": 32})
    finish(project)
    assert project.forget([str(trained_items(project)[0])]).difference < 1e-5
    project.close()


def test_sums_alone_keep_how_the_model_was_regularised(tmp_path):
    """With two hundred examples one more or less chooses the same: then only the sharpness differs, a little."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(200, 300)))
    y = (x[:, :4].argmax(1) + (torch.arange(200) % 9 == 0)) % 4
    whole, never = fit(x, y, 4), fit(x[1:], y[1:], 4)
    rows, labels = examples_of(without(sums_of(x, y), x[0], int(y[0])))
    head = fit_like(rows, labels, 4, whole.ridge, whole.sharpness)
    assert head.ridge == pytest.approx(never.ridge)
    torch.testing.assert_close(head.weight / head.sharpness, never.weight / never.sharpness, rtol=1e-6, atol=1e-9)
    assert head.sharpness == pytest.approx(never.sharpness, rel=0.02)


@pytest.mark.parametrize("kind", ["texts", "tables", "images"])
def test_an_erased_item_is_read_again_from_where_it_came_from(tmp_path, kind):
    """And what is left of it is said; where it is there no longer, nothing is forgotten."""
    if kind == "images":
        (tmp_path / "data").mkdir()
        for i in range(20):
            picture(i).save(tmp_path / "data" / f"{i:02}.png")
    else:
        rows = [f"k{i},{('open', 'close')[i % 2]} it {i}\n" for i in range(20)]
        (tmp_path / "data.csv").write_text("id,text\n" + "".join(rows))
    place = tmp_path / ("data" if kind == "images" else "data.csv")
    own = {"texts": {"model": "none", "text_features": 64}, "images": {"model": f"{tmp_path / 'own.py'}:build"}}
    (tmp_path / "own.py").write_text(OWN)
    more = own.get(kind, {}) | ({"image_size": 8} if kind == "images" else {})
    settings = make({"kind": kind, "per_round": 8, "rounds": 1, "keep": "statistics"} | RIDGE | more)
    with Project.create(tmp_path / "p", settings) as project:
        project.store.add_person("Ada")
        project.add(read_like(None, kind, place, "text", TableOptions()))
        while not project.advance().finished:
            answer(project, name=lambda project, item: f"class {item % 2}")
        item, gone, *_ = [i for i in sorted(project.store.labels()) if i not in held_items(project)]
        unlabelled = next(i for i in range(20) if i not in project.store.labels())
        never = project.forget([f"#{unlabelled}"]).sentences
        assert never[0] == "proof: they were in no sums; the model is fitted to the sums and examples that are left"
        report = project.forget([f"#{item}"])
        assert report.difference < 1e-5
        proof, as_before, stays = report.sentences
        assert proof.startswith("proof: taken out of the sums and put back, they give the old sums up to ")
        assert as_before.startswith("not as if they had never been there: how strongly the model is regularised")
        what = {
            "texts": "how common words are",
            "tables": "names of categories",
            "images": "means and deviations of the",
        }
        assert stays.startswith(f"stays: {what[kind]}")
        assert stays == never[-1]
        if kind == "images":
            (place / f"{gone:02}.png").write_text("no image")
        else:
            place.write_text("".join(line + "\n" for line in place.read_text().splitlines() if f"k{gone}," not in line))
        with pytest.raises(
            InputError, match=r"no longer has '.*'; restore it, so that what was learned from it can be"
        ):
            project.forget([f"#{gone}"])
        assert gone in project.store.labels()
