"""The kernel head in projects: whatever people do, it is the fit of the labels as they are; and its export."""

from __future__ import annotations

import json
import uuid
from importlib.util import find_spec

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import example, given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments import checkpoints, read_steps
from accuacl.labeling.project import export, loader, make
from accuacl.labeling.project.learned import difference_from_fit
from effort import examples
from scripted import answer, blobs, class_of, new_project

KERNEL = {"learner": "kernel", "strategy": "uniform", "per_round": 6}


def trained(project):
    handle = read_steps(project.journal, "train")[-1].result
    return checkpoints.load_tensors(project.directory / "weights", handle), handle["facts"]


ACTS = ["correct", "merge", "new", "forget"]


@pytest.mark.parametrize("way", ["off", "self"])
@given(acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 10**6)), max_size=5))
@example(acts=[(act, 7) for act in ACTS])
@examples(1, 40)
def test_whatever_was_corrected_merged_or_forgotten_it_is_the_fit_of_the_labels(tmp_path_factory, way, acts):
    with new_project(tmp_path_factory.mktemp("p") / "p", 2, **KERNEL, pool_learning=way) as project:
        store, acts = project.store, list(acts)
        person = store.people()[0]
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
                    assert (project.forget([str(item)]).difference or 0) < 1e-4
                elif act == "merge" and len(living) > 1:
                    store.merge_class(living[number % len(living)], living[(number + 1) % len(living)])
                else:
                    store.correct(person, items[0], class_of(project, f"new {number}"), uuid.uuid4().hex)
        assert difference_from_fit(project.directory, project.settings, project.tasks) < 1e-4
        assert ("pseudo_labels" in trained(project)[1]) == (way == "self")


@pytest.mark.parametrize("way", ["off", "self", "smooth"])
def test_the_export_predicts_what_the_project_predicts(tmp_path, way):
    with new_project(tmp_path / "p", 1, **KERNEL, pool_learning=way) as project:
        while not project.advance().finished:
            answer(project)
        onnx = all(find_spec(name) for name in ("onnxruntime", "onnxscript"))
        export(project, tmp_path / "out", None, "text", lambda progress: None, onnx)  # --onnx compares both itself
        if trained(project)[1].get("pseudo_labels"):
            card = (tmp_path / "out" / "MODEL_CARD.md").read_text()
            assert "also learned from its own predictions for" in card
            assert "items without a label" in project.estimates().calibration
        lines = (tmp_path / "out" / "unlabelled.csv").read_text().splitlines()[1:]
        vectors, names = blobs(0)
        model = loader.load(tmp_path / "out")
        classes, confidences = model.predict(list(vectors.vectors))
        assert np.mean([a == b for a, b in zip(classes, names, strict=True)]) > 0.9
        for line in lines[:20]:
            _, _, _, name, label, confidence = line.split(",")[:6]
            row = vectors.names.index(name)
            assert classes[row] == label
            assert confidences[row] == pytest.approx(float(confidence), abs=2e-3)
    about = json.loads((tmp_path / "out" / "model.json").read_text())
    assert [term[0] for term in about["kernel"]] == ["linear", "gaussian"]
    tensors = safetensors.torch.load_file(tmp_path / "out" / "model.safetensors")
    assert tensors["head.head.support"].dtype in (torch.float16, torch.float32)
    assert ("head.head.reference" in tensors) == (way == "smooth")


def test_held_out_items_and_labels_are_not_in_the_pool(tmp_path, monkeypatch):
    taught = []
    with new_project(tmp_path / "p", 2, **KERNEL, pool_learning="self", holdout=0.5) as project:
        from accuacl.experiments.checkpoints import Learning

        plain = Learning.train

        def spy(self, state, model, memory, on_epoch, pools=()):
            taught.append((state, [ids.tolist() for ids in pools]))
            return plain(self, state, model, memory, on_epoch, pools)

        monkeypatch.setattr(Learning, "train", spy)
        while not project.advance().finished:
            answer(project)
        for state, pools in taught:
            assert len(pools) == state.task.index + 1
            inside = {item for pool in pools for item in pool}
            assert not inside & {item for labels in (state.taught, *state.held) for item in labels}
            assert any(state.held)


def test_defaults_of_kinds_and_what_is_refused():
    assert make({"kind": "vectors", "learner": "kernel"}).pool_learning == "off"
    assert make({"kind": "vectors", "learner": "kernel"}, embeddings=True).pool_learning == "self"
    assert make({"kind": "tables", "learner": "kernel"}).pool_learning == "off"
    texts = make({"kind": "texts", "learner": "kernel"})
    assert texts.pool_learning == "self"
    assert texts.blocks in ((), ((0, 256), (256, 4352)))
    with pytest.raises(InputError, match="--pool-learning goes with --learner kernel, not ridge"):
        make({"kind": "vectors", "learner": "ridge", "pool_learning": "self"})
    with pytest.raises(InputError, match="kernel cannot train --head mlp"):
        make({"kind": "vectors", "learner": "kernel", "head": "mlp"})
    with pytest.raises(InputError, match="only --learner ridge with --head linear learns from sums"):
        make({"kind": "vectors", "learner": "kernel", "keep": "statistics"})
