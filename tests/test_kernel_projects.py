"""The kernel head in projects: whatever people do, it is the fit of the labels as they are; and its export."""

from __future__ import annotations

import json
import signal
import uuid
from importlib.util import find_spec

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import example, given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments import Learning, checkpoints, read_steps
from accuacl.experiments.heads import Term, fit
from accuacl.experiments.models import KernelLayer
from accuacl.labeling.project import NewItems, Project, export, loader, make
from accuacl.labeling.project.erasing import FORGOTTEN
from accuacl.labeling.project.exporting import _in_half_precision
from accuacl.labeling.project.learned import difference_from_fit, rows_of
from accuacl.labeling.project.rounds import taught_by
from dying import project_until
from effort import examples
from processes import Running
from scripted import answer, blobs, class_of, new_project, outcome, truth

ROUNDING = 1e-6  # of logits
KERNEL = {"learner": "kernel", "strategy": "uniform", "per_round": 6}


def trained(project):
    handle = read_steps(project.journal, "train")[-1].result
    return checkpoints.load_tensors(project.directory / "weights", handle), handle["facts"]


ACTS = ["correct", "merge", "new", "forget", "forget unlabelled", "skip"]
BOTH = ((0, 256), (256, 320))  # token vectors, words


def texts_of(task):
    """Texts of two classes, each with words of its own and others, and the name of the class of each."""
    rng = np.random.default_rng(task)
    names = [f"class {2 * task + i % 2}" for i in range(40)]
    words = [[*rng.integers(5, size=3) + 5 * int(name[-1]), *rng.integers(20, 50, size=12)] for name in names]
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    return NewItems("texts", f"texts {task}", list(texts), texts=texts), names


def project_of(folder, kind, **more):
    """Two tasks, of vectors or of texts, which have two blocks of columns."""
    if kind == "vectors":
        return new_project(folder, 2, **KERNEL, **more)
    project = Project.create(folder, make({"kind": "texts", "rounds": 2, "text_features": 64} | KERNEL | more))
    project.store.add_person("Ada")
    for task in range(2):
        project.add(texts_of(task)[0])
    return project


def name_of(project, item):
    task = project.tasks.find(item)
    return texts_of(task.index)[1][item - task.first] if task.kind == "texts" else truth(project, item)


def brute_force(x, labels, blocks, ridge):
    """Logits over the sharpness for rows x themselves, of a fit by dense equations, a block at length 1 at a time."""
    gram = np.zeros((len(x), len(x)))
    for first, end in blocks:
        unit = x[:, first:end] / np.maximum(np.linalg.norm(x[:, first:end], axis=1, keepdims=True), 1e-30)
        there = unit.any(axis=1).astype(float)
        cosines = unit @ unit.T
        if (first, end) == BOTH[0]:
            gram += np.exp(2 * cosines - there[:, None] - there)
        elif (first, end) == BOTH[1]:
            gram += 0.3 * cosines
        else:
            gram += cosines + np.exp(2 * cosines - there[:, None] - there)
    seen, own = np.unique(labels, return_inverse=True)
    weights, n = (len(x) / (len(seen) * np.bincount(own)))[own], len(x)
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n], matrix[:n, n] = weights[:, None] * gram + ridge * np.eye(n), weights
    matrix[n, :n], matrix[n, n] = weights @ gram, weights.sum()
    y = 2.0 * (own[:, None] == np.arange(len(seen))) - 1
    both = np.linalg.solve(matrix, np.vstack([weights[:, None] * y, weights @ y]))
    return seen, gram @ both[:n] + both[n]


def check_by_brute_force(project, labels):
    """The model that is saved gives its taught items what the equations give."""
    items = np.array(sorted(labels))
    weights, facts = trained(project)
    x, blocks = rows_of(project.settings, project.tasks, items.tolist()), project.settings.blocks
    seen, expected = brute_force(
        x.astype(np.float64), np.array([labels[i] for i in items]), blocks or [(0, x.shape[1])], facts["ridge"]
    )
    layer = KernelLayer({name.removeprefix("head."): value for name, value in weights.items() if name[:5] == "head."})
    logits = layer(torch.from_numpy(x)).numpy()[:, seen]
    np.testing.assert_allclose(logits, facts["sharpness"] * expected, atol=1e-4 * np.abs(logits).max())


@pytest.mark.parametrize("kind", ["vectors", "texts"])
@pytest.mark.parametrize("way", ["off", "self", "smooth"])
@given(acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 10**6)), max_size=5))
@example(acts=[(act, 7) for act in ACTS[:4]])
@example(acts=[("forget unlabelled", 3), ("skip", 5), ("forget unlabelled", 11), ("correct", 2)])
@example(acts=[("skip", 86), ("correct", 196)])
@example(acts=[("forget unlabelled", 0), ("correct", 0), ("forget", 1)])  # the lowest ridge, and large weights
@example(acts=[("correct", 42), ("new", 0), ("correct", 0)])
@examples(3, 40)
def test_whatever_was_corrected_merged_or_forgotten_it_is_the_fit_of_the_labels(tmp_path_factory, kind, way, acts):
    with project_of(tmp_path_factory.mktemp("p") / "p", kind, pool_learning=way) as project:
        if kind == "texts" and not project.settings.blocks:
            pytest.skip("needs the token vectors of the extra `label`")
        store, acts, skips = project.store, list(acts), 0
        person = store.people()[0]
        while not project.advance().finished:
            turns, skips = iter(skips * [True]), 0
            items = answer(project, skip=lambda _, turns=turns: next(turns, False), name=name_of)
            if acts:
                act, number = acts.pop()
                living = [label.id for label in store.classes() if label.merged_into is None]
                if act == "correct":
                    item = sorted(store.labels())[number % len(store.labels())]
                    store.correct(person, item, living[number % len(living)], uuid.uuid4().hex)
                elif act == "forget":
                    item = sorted(store.labels())[number % len(store.labels())]
                    assert (project.forget([f"#{item}"]).difference or 0) < ROUNDING
                elif act == "forget unlabelled":
                    ids = [item for task in project.tasks.all() for item in task.ids.tolist()]
                    free = [item for item in ids if item not in store.labels()]
                    item = free[number % len(free)]
                    if project.item(item).name != FORGOTTEN:
                        assert (project.forget([f"#{item}"]).difference or 0) < ROUNDING
                elif act == "skip":
                    skips = 1 + number % 3
                elif act == "merge" and len(living) > 1:
                    store.merge_class(living[number % len(living)], living[(number + 1) % len(living)])
                else:
                    store.correct(person, items[-1], class_of(project, f"new {number}"), uuid.uuid4().hex)
        assert difference_from_fit(project) < ROUNDING
        facts = trained(project)[1]
        assert ("pseudo_labels" in facts, "smoothed_by" in facts) == (way == "self", way == "smooth")
        if way == "off":
            check_by_brute_force(project, taught_by(read_steps(project.journal, "label")))


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
        elif way == "smooth":
            count = int(trained(project)[1]["smoothed_by"])
            said = f"It moves each item towards its nearest of {count} items without a label."
            assert said in (tmp_path / "out" / "MODEL_CARD.md").read_text()
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


def test_onnx_of_texts_has_both_blocks_of_columns(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    with project_of(tmp_path / "p", "texts", pool_learning="self") as project:
        while not project.advance().finished:
            answer(project, name=name_of)
        export(project, tmp_path / "out", None, "text", lambda progress: None, onnx=True)
    model = loader.load(tmp_path / "out")
    assert [term[:3] for term in model.about["kernel"]] == [["gaussian", *BOTH[0]], ["linear", *BOTH[1]]]
    texts = texts_of(0)[0].texts
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    (said,) = session.run(["probabilities"], {"inputs": model.texts(texts)})
    np.testing.assert_allclose(said, model.probabilities(texts), atol=1e-5)
    assert said.shape == (40, 4)


def kernel_head(sharpness, spread):
    """A head of two classes with support rows far from each other, its terms, and rows between them."""
    rng = np.random.default_rng(0)
    sides = np.sign(np.arange(40) - 19.5)
    support = np.stack([sides, *spread * rng.normal(size=(5, 40))], axis=1).astype(np.float32)
    layer = KernelLayer.of(fit(support, (sides > 0).astype(int), candidates=[(Term("gaussian", (0, 6)),)]))
    tensors = {f"head.{name}": tensor for name, tensor in layer.state_dict().items()}
    tensors |= {f"head.{name}": sharpness * tensors[f"head.{name}"] for name in ("weight", "bias")}
    return (
        [("gaussian", 0, 6, 1.0)],
        tensors,
        torch.from_numpy(np.float32(rng.normal(size=(300, 6)) * [0.01, *[1] * 5])),
    )


def test_half_precision_is_tried_on_items_of_the_pool_too():
    terms, tensors, between = kernel_head(sharpness=20, spread=0.3)
    alone = _in_half_precision(terms, tensors, between[:0], [0, 1])["head.support"]
    with_pool = _in_half_precision(terms, tensors, between, [0, 1])["head.support"]
    assert (alone.dtype, with_pool.dtype) == (torch.float16, torch.float32)
    one_class = _in_half_precision(terms, tensors, between, [0, 0])["head.support"]  # merged, so nothing can change
    assert one_class.dtype == torch.float16


def test_what_people_skip_teaches_nothing(tmp_path, monkeypatch):
    taught = spied_pools(monkeypatch)
    with new_project(tmp_path / "p", 2, **KERNEL, pool_learning="self") as project:
        skipped = []
        while not project.advance().finished:
            turns = iter([True, True])
            items = answer(project, skip=lambda _, turns=turns: next(turns, False))
            skipped += [item for item in items if item not in project.store.labels()]
        assert len(skipped) > 4
        recorded = {item for step in read_steps(project.journal, "label") for item in step.result["skipped"]}
        assert recorded == set(skipped)
        seen = set()
        for state, pools in taught:
            seen |= state.skipped
            assert not {item for pool in pools for item in pool} & seen
        assert seen == recorded
        assert difference_from_fit(project) < ROUNDING


def spied_pools(monkeypatch):
    """The state and the pools of each training from now on."""
    taught, plain = [], Learning.train

    def spy(self, state, model, memory, on_epoch, pools=()):
        taught.append((state, [ids.tolist() for ids in pools]))
        return plain(self, state, model, memory, on_epoch, pools)

    monkeypatch.setattr(Learning, "train", spy)
    return taught


def test_what_was_learned_from_the_pool_is_said(tmp_path, monkeypatch):
    def wrong(outputs, _):
        return np.arange(len(outputs)), (outputs.argmax(axis=1) + 1) % outputs.shape[1]

    def said(name):
        with new_project(tmp_path / name, 1, **KERNEL, pool_learning="self") as project:
            while not project.advance().finished:
                answer(project)
            return project.estimates().calibration

    assert " That was before it also learned from its own predictions for " in said("taught")
    with monkeypatch.context() as then:
        then.setattr("accuacl.experiments.heads.pool._pseudo_labels", wrong)
        then.setattr("accuacl.experiments.heads.pool.WEIGHT", 20.0)
        assert said("refused").endswith(" Its own predictions were not used: left-out labels spoke against it.")


def test_held_out_items_and_labels_are_not_in_the_pool(tmp_path, monkeypatch):
    taught = spied_pools(monkeypatch)
    with new_project(tmp_path / "p", 2, **KERNEL, pool_learning="self", holdout=0.5) as project:
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


@pytest.mark.posix
def test_a_project_that_was_killed_goes_on_to_the_same_bytes(tmp_path):
    """Killed before, in and after a training, and before, in and after the step that follows it."""
    settings = KERNEL | {"pool_learning": "self", "per_round": 8}
    places = [f"{when} 0/1/{kind}" for kind in ("train", "test") for when in ("before", "after")]
    for folder in ("whole", "killed"):
        new_project(tmp_path / folder, 0, **settings).close()
    project_until(tmp_path / "whole")
    for where in (*places, "before 1/0/train", "after 1/0/train", "file not yet in place", "between file and record"):
        killed = Running(project_until, tmp_path / "killed", 0, 0.0, where).wait()
        assert killed.returncode == -signal.SIGKILL, (where, killed.stderr)
    project_until(tmp_path / "killed")
    with Project.open(tmp_path / "whole") as whole, Project.open(tmp_path / "killed") as killed:
        assert "pseudo_labels" in trained(whole)[1]
        assert killed.estimates() == whole.estimates()
        assert outcome(killed) == outcome(whole)
