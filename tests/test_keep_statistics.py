"""Projects that keep no example of finished tasks: sums alone, and the same regression as with all examples."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
import torch

from accuacl.base.errors import InputError
from accuacl.experiments import checkpoints, read_steps
from accuacl.experiments.heads import fit_ridge as fit
from accuacl.labeling.project import Project, make, task_inputs as inputs
from scripted import answer, blobs, class_of, finish, new_project, records

SUMS = {"learner": "ridge", "keep": "statistics"}


def all_rows(project):
    """The scaled vectors of all tasks as they were before anything was erased."""
    scale = inputs.load_scale(project.tasks)
    return inputs.scaled(np.concatenate([blobs(task.index)[0].vectors for task in project.tasks.all()]), scale)


def held_items(project):
    return {item for step in read_steps(project.journal, "label") for item in step.result["held"]}


def check_model(project):
    """The head is the fit of all labels but the held-out ones, of which those of the last task are real."""
    last = read_steps(project.journal, "train")[-1]
    labels = {item: label for item, label in project.store.labels().items() if item not in held_items(project)}
    ids = np.array(sorted(labels))
    x, y = torch.from_numpy(all_rows(project)[ids]), torch.tensor([labels[item] for item in ids.tolist()])
    head = fit(x, y, int(y.max()) + 1, torch.from_numpy(ids >= project.tasks.all()[last.task].first))
    weights, seen = checkpoints.load_tensors(project.directory / "weights", last.result), last.result["seen"]
    torch.testing.assert_close(weights["head.weight"][seen].double(), head.weight[seen], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(weights["head.bias"][seen].double(), head.bias[seen], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("strategy", ["fisher-ratio", "accuacl"])
def test_no_example_of_a_finished_task_is_left_and_the_model_is_that_of_all(tmp_path, strategy):
    with new_project(tmp_path / "p", 3, **SUMS, strategy=strategy) as project:
        finish(project)
        check_model(project)
        held = held_items(project)
        for task in project.tasks.all():
            for name in ("inputs.npy", "vectors.npy"):
                rows = np.load(project.tasks.folder_of(task.index) / name)
                left = {task.first + row for row in np.flatnonzero(rows.any(axis=1)).tolist()}
                assert left == {item for item in held if item in task.ids}
        assert project.estimates().accuracy.value > 50
        assert all(step["ids"] == [] for step in records(project, "*/memory").values())


def test_merges_reach_the_sums_and_corrections_end_with_the_task(tmp_path):
    with new_project(tmp_path / "p", 2, **SUMS, strategy="uniform") as project:
        person = project.store.people()[0]
        while project.advance().task == 0:
            items = answer(project)
        with pytest.raises(InputError, match="of a finished task, of which only sums are kept; its label has"):
            project.store.correct(person, items[0], 0, uuid.uuid4().hex)
        answer(project)
        one, other = class_of(project, "class 0"), class_of(project, "class 2")
        project.store.merge_class(one, other)
        finish(project)
        assert one not in read_steps(project.journal, "train")[-1].result["seen"]
        check_model(project)


def test_a_correction_before_the_task_ends_is_in_the_sums(tmp_path):
    with new_project(tmp_path / "p", 2, **SUMS, strategy="uniform", rounds=1) as project:
        project.advance()
        items = answer(project)
        item = next(item for item in items if item not in held_items(project))
        project.store.correct(project.store.people()[0], item, class_of(project, "another"), uuid.uuid4().hex)
        finish(project)
        assert [item, class_of(project, "another")] in records(project, "000/memory")["000/memory"]["summed"]
        check_model(project)


@pytest.mark.parametrize("skipped", [0, 1])
def test_a_task_of_which_everything_is_skipped_leaves_the_sums_as_they_were(tmp_path, skipped):
    """Its sums have a file of their own, though no model was trained with it."""
    with new_project(tmp_path / "p", 2, **SUMS, strategy="uniform") as project:
        while not (state := project.advance()).finished:
            answer(project, skip=lambda _, task=state.task: task == skipped)
        summed = [step.result["summed"] for step in read_steps(project.journal, "memory")]
        assert [bool(items) for items in summed] == [skipped == 1, skipped == 0]
        project.add(blobs(2)[0])
        finish(project)
        check_model(project)


def test_texts_are_erased_and_the_page_says_so(tmp_path):
    from accuacl.labeling.project import NewItems

    project = Project.create(
        tmp_path / "p", make(SUMS | {"kind": "texts", "per_round": 4, "rounds": 1, "text_features": 16, "holdout": 0.5})
    )
    project.store.add_person("Ada")
    texts = [f"{word} number {i}" for i in range(12) for word in ("yes", "no")]
    for half in (texts[:12], texts[12:]):
        project.add(NewItems("texts", "here", [str(i) for i in range(12)], texts=half))
    finish_texts(project)
    held = held_items(project)
    assert len(held) == 4
    for item in range(24):
        assert (project.item(item).text == "(erased)") == (item not in held)
    project.close()
    with Project.open(tmp_path / "p") as project:
        assert project.item(next(iter(held))).text in texts
        assert project.advance().finished


def finish_texts(project):
    while not project.advance().finished:
        answer(project, name=lambda project, item: project.item(item).text.split()[0])


def test_who_can_keep_sums_only():
    for wrong in ({"learner": "er"}, {"head": "projection"}):
        with pytest.raises(InputError, match="only --learner ridge with --head linear learns from sums"):
            make({"kind": "vectors"} | SUMS | wrong)
    with pytest.raises(InputError, match="accuacl-full looks at all past examples"):
        make({"kind": "vectors", "strategy": "accuacl-full"} | SUMS)


def test_rows_that_stand_for_examples_are_not_scaled(monkeypatch):
    """Whatever lies in memory that is not filled yet."""
    scale = {"mean": np.zeros(2, np.float32), "std": np.full(2, 0.1, np.float32), "each": np.ones(1, np.float32)}
    rows = inputs.TaskInputs([np.ones((3, 2), np.float32)], scale)
    rows.sums = np.array([[5.0, 6.0]], np.float32)
    monkeypatch.setattr(np, "empty", lambda shape, kind: np.full(shape, 3e38, kind))
    with np.errstate(all="raise"):
        assert rows[np.array([1, -1])].tolist() == [[10, 10], [5, 6]]
