"""The learner ridge in runs and projects: whatever people do, it is the fit of the labels as they are."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import example, given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments import checkpoints, make as make_run, read_steps, run as run_experiment
from accuacl.experiments.heads import fit_ridge as fit
from accuacl.labeling.project import Project, export, loader, make
from accuacl.labeling.project.task_inputs import open_task_inputs
from commands import accuacl
from effort import examples
from scripted import answer, blobs, class_of, new_project, records, truth

RIDGE = {"learner": "ridge", "strategy": "uniform"}


def learned(project):
    """The weights after the last training, and the classes that count."""
    handle = read_steps(project.journal, "train")[-1].result
    return checkpoints.load_tensors(project.directory / "weights", handle), handle["seen"], handle["facts"]


def from_scratch(project):
    """The fit of all labels of the project but the held-out ones, without any history."""
    labels = project.store.labels()
    held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
    ids = [item for item in sorted(labels, reverse=True) if item not in held]
    made = [step.result for step in read_steps(project.journal, "data")]
    x = torch.from_numpy(open_task_inputs(project.tasks, made, project.settings)[np.array(ids)])
    classes = torch.tensor([labels[item] for item in ids])
    return fit(x, classes, int(classes.max()) + 1)


ACTS = ["correct", "merge", "new", "forget"]


@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 10**6)), max_size=5))
@example([(act, 7) for act in ACTS])
@examples(1, 60)
def test_whatever_was_corrected_merged_or_forgotten_it_is_the_fit_of_the_labels(tmp_path_factory, acts):
    with new_project(tmp_path_factory.mktemp("p") / "p", 2, **RIDGE, per_round=6) as project:
        store = project.store
        person = store.people()[0]
        acts = list(acts)
        while not project.advance().finished:
            items = answer(project)
            if acts:
                act, number = acts.pop()
                living = [label.id for label in store.classes() if label.merged_into is None]
                if act == "correct":
                    item = sorted(store.labels())[number % len(store.labels())]
                    store.correct(person, item, living[number % len(living)], uuid.uuid4().hex)
                elif act == "forget":
                    item = sorted(store.labels())[number % len(store.labels())]
                    assert (project.forget([str(item)]).difference or 0) < 1e-5
                elif act == "merge" and len(living) > 1:
                    store.merge_class(living[number % len(living)], living[(number + 1) % len(living)])
                else:
                    store.correct(person, items[0], class_of(project, f"new {number}"), uuid.uuid4().hex)
        weights, seen, facts = learned(project)
        head = from_scratch(project)
        assert seen == sorted(set(seen))
        torch.testing.assert_close(weights["head.weight"][seen].double(), head.weight[seen], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(weights["head.bias"][seen].double(), head.bias[seen], rtol=1e-4, atol=1e-4)
        assert facts["ridge"] == pytest.approx(head.ridge)
        kept = records(project, "001/memory")["001/memory"]["ids"]
        held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
        assert set(kept) == store.labels().keys() - held  # all of them, whatever --memory says
        assert len(kept) > project.settings.memory


def test_a_random_projection_is_the_same_in_every_round_and_in_the_export(tmp_path):
    with new_project(tmp_path / "p", 1, **RIDGE, head="projection", width=50) as project:
        seen = []
        while not project.advance().finished:
            seen += [learned(project)[0]["embed.0.weight"]] if read_steps(project.journal, "train") else []
            answer(project)
        assert torch.equal(seen[0], learned(project)[0]["embed.0.weight"])
        vectors, names = blobs(0)
        export(project, tmp_path / "out", None, "text", lambda progress: None)
        said, _ = loader.load(tmp_path / "out").predict(list(vectors.vectors))
        assert np.mean([a == b for a, b in zip(said, names, strict=True)]) > 0.9
        assert truth(project, 0) in said
    assert make({"kind": "vectors", "head": "projection"}).width == 2048
    assert make({"kind": "vectors", "head": "projection", "width": 64}).width == 64


@pytest.mark.parametrize("model", ["linear", "projection"])
def test_a_run_with_vectors(tmp_path, model):
    config = make_run({"learner": "ridge", "strategy": "uniform", "labels": 30, "model": model, "tasks": 2})
    result = run_experiment(config, tmp_path)
    assert result["average_accuracy"] > 80
    assert result["forgetting"] < 15
    assert result["calibration_error"] < 20


def test_ridge_is_refused_where_features_do_not_stay():
    assert make_run({"learner": "ridge"}).model == "linear"
    with pytest.raises(InputError, match="not with --model conv3; give --model pretrained for images, linear"):
        make_run({"learner": "ridge", "benchmark": "split-cifar10", "model": "conv3"})
    assert make_run({"learner": "ridge", "benchmark": "split-cifar10"}).model == "pretrained"
    with pytest.raises(InputError, match="leave out --finetune, and for images install"):
        make({"kind": "images", "learner": "ridge", "model": "conv4"})
    with pytest.raises(InputError, match="ridge cannot train --head mlp; give --head linear or projection"):
        make({"kind": "vectors", "learner": "ridge", "head": "mlp"})


@pytest.mark.parametrize(
    ("given", "learner", "head"),
    [
        ({}, "er", "mlp"),
        ({"learner": "ridge"}, "ridge", "linear"),
        ({"keep": "statistics"}, "ridge", "linear"),
        ({"learner": "der++"}, "der++", "linear"),
        ({"kind": "tables"}, "er", "mlp"),
        ({"head": "linear"}, "er", "linear"),
        ({"kind": "texts"}, "kernel", "linear"),
        ({"kind": "texts", "keep": "statistics"}, "ridge", "linear"),
        ({"kind": "texts", "learner": "er"}, "er", "linear"),
    ],
)
def test_vectors_are_learned_by_a_small_network_unless_another_is_asked_for(given, learner, head):
    made = make({"kind": "vectors"} | given)
    assert (made.learner, made.head) == (learner, head)
    assert made.lr == (0.02 if head == "mlp" else 0.05)


def test_a_column_of_embeddings_is_learned_as_those_of_images_are(tmp_path):
    rows = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    listed = pa.table({"id": [str(i) for i in range(12)], "embedding": list(rows)})
    numbers = pa.table({"id": listed["id"], "a": rows[:, 0], "b": rows[:, 1]})
    chosen = []
    for name, table in (("listed", listed), ("numbers", numbers)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        assert accuacl("project", "new", tmp_path / name, "--vectors", tmp_path / f"{name}.parquet").returncode == 0
        with Project.open(tmp_path / name) as project:
            s = project.settings
            chosen.append((s.learner, s.head, s.strategy, s.first_round))
    assert chosen == [("kernel", "linear", "coverage", "coverage"), ("er", "mlp", "uncertain-coverage", "coverage")]


@pytest.mark.parametrize(("batch", "epochs"), [(8, 4), (32, 50)])
def test_what_is_easy_does_not_diverge(tmp_path, batch, epochs):
    """Classes far apart, learned by what projects of vectors take by themselves."""
    with new_project(tmp_path / "p", 2, batch=batch, epochs=epochs, strategy="uniform") as project:
        assert project.settings.head == "mlp"
        while not project.advance().finished:
            answer(project)
