"""Runs on irregular streams: any learner and strategy, resumed to the bit, and their metrics by class."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure as MatplotlibFigure
from PIL import Image

from accuacl import strategy_names
from accuacl.base.errors import InputError, LabelsPending
from accuacl.experiments import Config, canonical, learners, make, metrics, read_steps, run, run_row
from accuacl.experiments.data import OWN_STREAMS, holds_tasks, load
from accuacl.experiments.embed.checkpoint import of_run
from accuacl.experiments.report import documents, run_figures
from accuacl.experiments.report.document import Figure, Points, Table
from accuacl.experiments.report.measures import labels_spent
from accuacl.experiments.sweeps import runs_of
from test_run import outcome

SMALL = {"benchmark": "split-digits", "tasks": 3, "labels": 12, "rounds": 2, "epochs": 1, "memory": 8, "pool": 60}
EVERYTHING = {"blur": 0.2, "imbalance": 0.05, "label_noise": 0.2, "noise": "alike", "recurring": 1}


@pytest.mark.parametrize(("learner", "variant"), [(n, v) for n in learners.NAMES for v in learners.REGISTRY[n]])
def test_every_learner_learns_with_all_irregularities_at_once(tmp_path, learner, variant):
    settings = SMALL | EVERYTHING | {"learner": learner, "learner_variant": variant, "tasks": 0}
    result = run(make(settings | {"classes_per_task": 5}), tmp_path)
    assert len(result["accuracy_matrix"]) == 4
    assert set(result["recall"]) == set("0123456789")


def test_lwf_is_not_fine_tuning_where_all_classes_come_back(tmp_path):
    domain = np.arange(60) % 3
    data = vectors(tmp_path / "data", domain_train=domain, domain_test=domain[:20])
    common = data | {"domains": 3, "tasks": 2, "labels": 12, "rounds": 1, "strategy": "uniform"}
    first, second = {}, {}
    for learner in ({"learner": "finetune"}, {"learner": "lwf"}, {"learner": "lwf", "alpha": 50.0}):
        out = tmp_path / str(learner)
        run(make(common | learner), out)
        weights = outcome(out)["weights"]
        first[out.name], second[out.name] = weights["000-000.safetensors"], weights["001-000.safetensors"]
    assert len(set(first.values())) == 1  # nothing was seen before the first task
    assert len(set(second.values())) == 3


@pytest.mark.parametrize("strategy", [*strategy_names(), "full"])
def test_every_strategy_picks_with_classes_in_pool_and_memory(tmp_path, strategy):
    """Some classes of the pool have no label yet, others are in the memory too."""
    run(make(SMALL | EVERYTHING | {"strategy": strategy, "tasks": 2, "classes_per_task": 5}), tmp_path)
    picked = [step.result["ids"] for step in read_steps(tmp_path / "journal.sqlite", "query")]
    rows = [row for ids in picked for row in ids]
    assert len(set(rows)) == len(rows)
    assert strategy == "full" or len(rows) == 24


@pytest.mark.parametrize("how", [{name: value} for name, value in EVERYTHING.items() if name != "noise"] + [EVERYTHING])
def test_every_stream_resumes_to_the_same_bytes(tmp_path, how):
    resumes(SMALL | how | {"learner": "der++", "tasks": 2}, tmp_path)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_streams_that_the_data_name_resume_to_the_same_bytes(tmp_path, noise):
    task, domain = np.where(np.arange(60) < 24, 1, 2), np.arange(60) % 3
    domains = {"domain_train": domain, "domain_test": domain[:20]}
    for name, settings in (
        ("given", vectors(tmp_path / "given-data", task_train=task)),
        ("domains", vectors(tmp_path / "domains-data", **domains) | {"domains": 3}),
    ):
        resumes(settings | {"label_noise": noise}, tmp_path / name)


def test_a_stream_of_ones_own_resumes_to_the_same_bytes_and_is_known_again(tmp_path, monkeypatch):
    rows = len(load("digits").train)
    monkeypatch.setitem(OWN_STREAMS, "thirds", lambda dataset, seed: np.arange(rows) * 3 // rows)
    settings = SMALL | {"arrival": "thirds", "blur": 0.1}
    resumes(settings, tmp_path)

    def stops(task, round, ids):
        raise LabelsPending("later")

    with pytest.raises(LabelsPending):
        run(make(settings), tmp_path / "c", oracle=stops)
    monkeypatch.setitem(OWN_STREAMS, "thirds", lambda dataset, seed: np.arange(rows) % 3)
    with pytest.raises(InputError, match="the same --plugin, or start over with --fresh"):
        run(make(settings), tmp_path / "c")


def test_corrupted_images_resume_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))
    parquet_images(tmp_path / "own", 18)
    settings = {"labels": 4, "rounds": 2, "memory": 4, "model": "conv4", "epochs": 1, "domains": 3}
    resumes({"benchmark": str(tmp_path / "own")} | settings, tmp_path)


def parquet_images(folder, count, **columns):
    """Images of two classes in the Hugging Face layout, with more columns."""
    folder.mkdir()
    for split in ("train", "test"):
        images = []
        for i in range(count):
            Image.new("RGB", (16, 16), (14 * i, 90 * (i % 2), 7)).save(png := io.BytesIO(), "PNG")
            images.append({"bytes": png.getvalue()})
        table = {"image": images, "label": [i % 2 for i in range(count)]} | columns
        pq.write_table(pa.table(table), folder / f"{split}-00000-of-00001.parquet")


def test_parquet_names_the_tasks_and_domains(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))
    parquet_images(tmp_path / "own", 12, task=["b"] * 4 + ["a"] * 8, domain=[3, 1, 2] * 4)
    settings = {"benchmark": str(tmp_path / "own"), "labels": 2, "rounds": 1, "memory": 4, "model": "conv4"}
    settings |= {"epochs": 1, "learner": "er"}
    given = make(settings | {"arrival": "given"})
    with pytest.warns(UserWarning, match="the tasks come in the order of their names: a, b; give numbers to them"):
        assert run(given, tmp_path / "given")["stream"]["pools"] == [[4, 4], [2, 2]]
    domains = run(make(settings | {"domains": 3}), tmp_path / "domains")
    assert domains["stream"]["pools"] == [[2, 2]] * 3
    assert np.array_equal(load(str(tmp_path / "own")).train.labels, np.arange(12) % 2)


def resumes(given, tmp_path):
    """A run that stops in its second task and is given again ends as one that did not stop."""
    settings = make(given)
    run(settings, tmp_path / "a")
    steps = read_steps(tmp_path / "a" / "journal.sqlite", "label")
    answers = {row: label for step in steps for row, label in step.result["labels"]}

    def stops(task, round, ids):
        if (task, round) == (1, 1):
            raise LabelsPending("later")
        return np.array([answers[row] for row in ids.tolist()])

    with pytest.raises(LabelsPending):
        run(settings, tmp_path / "b", oracle=stops)
    run(settings, tmp_path / "b")
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")


def test_tasks_that_have_changed_since_are_reported(tmp_path):
    """The same rows in other tasks: picks that are recorded would be of tasks that do not have them."""
    task = np.where(np.arange(60) < 24, 1, 2)
    settings = make(vectors(tmp_path / "data", task_train=task))

    def stops(task, round, ids):
        raise LabelsPending("later")

    with pytest.raises(LabelsPending):
        run(settings, tmp_path / "run", oracle=stops)
    arrays = dict(np.load(tmp_path / "data" / "data.npz"))
    np.savez(tmp_path / "data" / "data.npz", **arrays | {"task_train": 3 - task})
    with pytest.raises(InputError, match=r"the data \(tasks\) are not .*; give the same data and the same --plugin"):
        run(settings, tmp_path / "run")
    np.savez(tmp_path / "data" / "data.npz", **arrays)
    assert run(settings, tmp_path / "run")["stream"]["pools"] == [[6] * 4, [9] * 4]


def test_the_stream_is_drawn_by_its_own_seed_or_else_by_that_of_the_run(tmp_path):
    results = {}
    for name, more in {"a": {}, "b": {"seed": 1}, "c": {"seed": 1, "stream_seed": 0}}.items():
        settings = SMALL | {"imbalance": 0.05, "tasks": 1, "rounds": 1, "pool": 0} | more
        results[name] = run(make(settings), tmp_path / name)["stream"]["pools"]
    assert results["a"] == results["c"] != results["b"]


def test_answers_are_wrong_in_the_journal_and_classes_are_counted_by_the_truth(tmp_path):
    result = run(make(SMALL | {"label_noise": 0.6, "labels": 40, "rounds": 2, "pool": 0}), tmp_path)
    truth = load("digits").train.labels
    pairs = [pair for step in read_steps(tmp_path / "journal.sqlite", "label") for pair in step.result["labels"]]
    wrong = np.mean([truth[row] != label for row, label in pairs])
    assert 0.4 < wrong < 0.8
    rarest = int(result["rarest_class"])
    assert result["rarest_labels"][-1][-1] == sum(truth[row] == rarest for row, _ in pairs)
    assert sum(map(sum, run_row(tmp_path)["picked"])) == 120


def test_metrics_by_class_by_hand(tmp_path):
    result = run(make(SMALL | {"imbalance": 0.02, "labels": 9, "pool": 0, "tasks": 2, "classes_per_task": 5}), tmp_path)
    data, steps = load("digits"), read_steps(tmp_path / "journal.sqlite", "label", "evaluate")
    evaluations = [step.result for step in steps if step.kind == "evaluate"]
    recall = evaluations[-1]["recall"]
    assert result["class_accuracy"] == pytest.approx(np.mean(list(recall.values())))
    right = sum(recall[str(c)] * (data.test.labels == c).sum() for c in range(10))
    assert result["example_accuracy"] == pytest.approx(right / len(data.test.labels))
    fallen = {str(c): evaluations[0]["recall"][str(c)] - recall[str(c)] for c in range(5)}
    assert result["forgetting_by_class"] == pytest.approx(fallen)
    assert result["class_forgetting"] == pytest.approx(np.mean(list(fallen.values())))
    seen: set[int] = set()
    for step in steps:
        if step.kind == "label":
            seen |= {label for _, label in step.result["labels"]}
            assert result["found"][step.task][step.round] == pytest.approx(100 * len(seen) / (5 * step.task + 5))
    pools = np.array(result["stream"]["pools"])
    assert pools.sum(axis=0).min() == pools.sum(axis=0)[int(result["rarest_class"])]


def test_forgetting_of_a_class_that_several_tasks_test():
    after = [
        {"recall": {"a": 80.0}, "recall_by_task": [{"a": 80.0}]},
        {"recall": {"a": 75.0}, "recall_by_task": [{"a": 60.0}, {"a": 90.0}]},
        {"recall": {"a": 50.0, "b": 70.0}, "recall_by_task": [{"a": 50.0}, {"a": 50.0}, {"a": 50.0, "b": 70.0}]},
    ]
    assert metrics.forgetting_by_class(after) == {"a": (80 - 50 + 90 - 50) / 2}
    assert metrics.forgetting_by_class(after[:1]) == {}


def test_a_class_that_several_tasks_test_has_a_recall_for_each(tmp_path):
    result = run(make(SMALL | {"recurring": 1, "tasks": 0, "classes_per_task": 5, "test": 40}), tmp_path)
    last = [step.result for step in read_steps(tmp_path / "journal.sqlite", "evaluate")][-1]
    assert [len(part) for part in last["recall_by_task"]] == [5, 5, 5, 5]
    for accuracy, part in zip(last["accuracy"], last["recall_by_task"], strict=True):
        assert min(part.values()) <= accuracy <= max(part.values())
    assert set(result["forgetting_by_class"]) == set("0123456789")


def vectors(folder, **more):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)).astype(np.float32), np.arange(60) % 4
    folder.mkdir(parents=True)
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=x[:20], y_test=y[:20], **more)
    return {"benchmark": str(folder), "labels": 6, "rounds": 2, "memory": 4, "tasks": 0}


def test_tasks_by_a_column(tmp_path):
    task = np.where(np.arange(60) < 24, 1, 2)
    settings = make(vectors(tmp_path / "data", task_train=task))
    assert (settings.arrival, settings.classes_per_task) == ("given", 0)
    result = run(settings, tmp_path / "run")
    assert result["stream"]["pools"] == [[6] * 4, [9] * 4]
    assert of_run(tmp_path / "run").seen == [0, 1, 2, 3]
    # the classes may still be shared out as usual
    assert (
        len(
            run(make(settings.model_dump() | {"arrival": "classes", "classes_per_task": 2}), tmp_path / "b")[
                "accuracy_matrix"
            ]
        )
        == 2
    )
    (only,) = runs_of({"benchmark": str(tmp_path / "data"), "blur": 0.1})
    assert only.config.arrival == "given"


def test_domains_by_a_column(tmp_path):
    look = np.array(["day", "night", "dusk"])[np.arange(60) % 3]
    settings = vectors(tmp_path / "data", domain_train=look, domain_test=look[:20])
    result = run(make(settings | {"domains": 3}), tmp_path / "run")
    assert len(result["accuracy_matrix"]) == 3
    assert result["stream"]["pools"] == [[5] * 4] * 3
    several = runs_of({"benchmark": str(tmp_path / "data"), "domains": 3, "recurring": [0, 1], "strategy": "uniform"})
    assert [run.name.partition("-s0")[2] for run in several] == ["-domains=3", "-domains=3-recurring=1"]


@pytest.mark.parametrize("files", [False, True])
def test_a_file_or_folder_for_each_task(tmp_path, files):
    root = tmp_path / "data"
    rng = np.random.default_rng(0)
    for number, classes in ((2, [0, 1]), (10, [1, 3]), (1, [2, 0])):  # class 0 comes back, 3 comes last
        y = np.array(classes * 6)
        arrays = {"x_train": rng.normal(size=(12, 3)), "y_train": y, "x_test": rng.normal(size=(4, 3)), "y_test": y[:4]}
        place = root if files else root / f"task-{number}"
        place.mkdir(parents=True, exist_ok=True)
        np.savez(place / (f"task-{number}.npz" if files else "all.npz"), **arrays)
    assert holds_tasks(root)
    data = load(str(root))
    assert data.classes == ("0", "1", "2", "3")
    result = run(make({"benchmark": str(root), "labels": 4, "rounds": 2, "memory": 4, "tasks": 0}), tmp_path / "run")
    assert result["config"]["model"] == "mlp"
    assert result["stream"] == {"order": [0, 2, 1, 3], "pools": [[6, 6, 0, 0], [6, 0, 6, 0], [0, 0, 6, 6]]}
    for task, classes in enumerate([(0, 2), (0, 1), (1, 3)]):
        rows = data.test.columns["task"] == f"task-{(1, 2, 10)[task]}"
        assert set(data.test.labels[rows]) == set(classes)


def test_folders_of_images_for_each_task(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))
    for number, classes in ((1, ["ant", "cow"]), (2, ["bee", "cow"])):
        for c in classes:
            for split in ("train", "test"):
                for i in range(3):
                    place = tmp_path / "own" / f"task {number}" / split / c
                    place.mkdir(parents=True, exist_ok=True)
                    Image.new("RGB", (9, 9), (number, ord(c[0]), i)).save(place / f"{i}.png")
    data = load(str(tmp_path / "own"))
    assert data.classes == ("ant", "bee", "cow")
    rows = np.array([11, 0, 6])
    assert data.train.inputs[rows][:, 0, 0].tolist() == [[2, ord("c"), 2], [1, ord("a"), 0], [2, ord("b"), 0]]
    assert data.train.inputs[3][0, 0].tolist() == [1, ord("c"), 0]
    assert data.train.labels[rows].tolist() == [2, 0, 1]
    assert data.train.inputs[:].shape == data.train.inputs.shape == (12, 9, 9, 3)
    assert load(str(tmp_path / "own"), image_size=4).train.inputs.shape == (12, 4, 4, 3)
    settings = {"labels": 4, "rounds": 2, "memory": 3, "model": "conv4", "epochs": 1, "tasks": 0, "image_size": 16}
    resumes({"benchmark": str(tmp_path / "own")} | settings, tmp_path)


def test_tasks_of_different_shapes_are_reported(tmp_path):
    for number in (1, 2):
        place = tmp_path / "own" / f"task-{number}"
        place.mkdir(parents=True)
        x, y = np.zeros((4, number)), np.arange(4)
        np.savez(place / "all.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    with pytest.raises(InputError, match=r"inputs of task-1 have the shape \(1,\), those of task-2 \(2,\)"):
        load(str(tmp_path / "own"))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"domains": 1}, "domains is 1; give at least 2"),
        ({"domains": 3, "classes_per_task": 2}, "has all classes, so leave out --classes-per-task"),
        ({"domains": 3, "order": "tasks"}, "so leave out --order"),
        ({"domains": 3}, "digits holds vectors, and --domains can corrupt images only"),
        ({"arrival": "given"}, "split-digits names no tasks; --arrival given is for your own data"),
        ({"blur": 1.0}, "blur is 1.0"),
        ({"imbalance": 0.0}, "imbalance is 0.0"),
        ({"label_noise": -0.1}, "label_noise is -0.1"),
        ({"label_noise": 50}, r"label_noise is 50; give less than 1"),
        ({"device": "gpu"}, r"device is 'gpu'; give cpu, cuda, cuda:1 or auto\."),
        ({"noise": "wild"}, "noise is 'wild'"),
        ({"classes_per_task": 10, "blur": 0.1}, "only one; leave it out"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path, settings, says):
    with pytest.raises(InputError, match=says):
        run(make({"benchmark": "split-digits"} | settings), tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"arrival": "given"}, "does not say which task an example is of"),
        ({}, "needs --classes-per-task, how many classes arrive with each task"),
        ({"arrival": "given", "recurring": 1, "classes_per_task": 2}, "leave out --classes-per-task and --recurring"),
    ],
)
def test_settings_that_own_data_do_not_have(tmp_path, settings, says):
    with pytest.raises(InputError, match=says):
        run(make(vectors(tmp_path / "data") | settings), tmp_path / "a")


@pytest.mark.parametrize("column", [np.zeros(59, int), np.zeros((60, 1), int), np.zeros(60)])
def test_a_column_of_the_wrong_shape_or_type(tmp_path, column):
    with pytest.raises(InputError, match=r"task_train is .*; give a whole number or a text for each of the 60 rows"):
        run(make(vectors(tmp_path / "data", task_train=column)), tmp_path / "a")


def test_settings_that_a_regular_stream_does_not_use_do_not_distinguish_runs():
    plain = canonical(Config().model_dump())
    assert canonical(Config(stream_seed=3, noise="alike").model_dump()) == plain
    assert canonical(Config(stream_seed=3, blur=0.1).model_dump())["stream_seed"] == 3
    assert canonical(Config(label_noise=0.1, noise="alike").model_dump())["noise"] == "alike"


def test_a_result_says_all_of_it_in_json(tmp_path):
    run(make(SMALL | EVERYTHING), tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    row = run_row(tmp_path)
    for name in ("class_accuracy", "example_accuracy", "class_forgetting", "found", "rarest_labels"):
        assert row[name] == result[name]


def test_a_result_has_the_recall_of_a_class_in_each_task_that_tests_it(tmp_path):
    look = np.arange(60) % 3
    settings = vectors(tmp_path / "data", domain_train=look, domain_test=look[:20]) | {"domains": 3}
    result = run(make(settings), tmp_path / "domains")
    tested = load(settings["benchmark"]).test
    for task, recall in enumerate(result["recall_by_task"]):
        counts = np.bincount(tested.labels[look[:20] == task])
        assert sum(recall[str(c)] * n for c, n in enumerate(counts) if n) / counts.sum() == pytest.approx(
            result["accuracy_matrix"][-1][task]
        )
    assert "recall_by_task" not in run(make(SMALL), tmp_path / "tidy")


def test_pools_that_are_labelled_to_the_last_example_are_reported(tmp_path):
    how = {"imbalance": 0.02, "labels": 60, "pool": 0, "strategy": "uniform"}
    with pytest.warns(UserWarning, match="of 5 tasks have no more than 60 examples, so that all of these are labelled"):
        run(make(SMALL | {"tasks": 5} | how), tmp_path / "a")
    run(make(SMALL | {"tasks": 5, "pool": 0} | how | {"labels": 12, "imbalance": 0.5}), tmp_path / "b")


def test_curves_end_where_the_labels_do(tmp_path):
    """A pool that is used up gives no more labels, whatever the budget was."""
    run(make(SMALL | {"imbalance": 0.02, "labels": 60, "pool": 0, "strategy": "uniform"}), tmp_path)
    row = run_row(tmp_path)
    counts = np.cumsum([len(step.result["labels"]) for step in read_steps(tmp_path / "journal.sqlite", "label")])
    assert labels_spent(row) == counts.tolist()
    assert counts[-1] < 3 * 60


def test_a_report_of_many_runs_compares_classes_where_the_stream_is_irregular(tmp_path):
    rows = []
    for strategy in ("uniform", "margin"):
        run(make(SMALL | EVERYTHING | {"strategy": strategy}), tmp_path / strategy)
        rows.append(run_row(tmp_path / strategy))
    (table,) = [
        t for t in documents.many_runs(rows).blocks if isinstance(t, Table) and t.caption.startswith("By class")
    ]
    assert [column.name for column in table.columns] == ["class A ↑", "example A ↑", "class F ↓", "found ↑", "rarest"]
    shown = {row.heads[0]: [cell.text for cell in row.cells] for group in table.groups for row in group.rows}
    for row in rows:
        found = np.mean([share for task in row["found"] for share in task])
        assert shown[row["strategy"]] == [
            *(f"{row[name]:.1f}" for name in ("class_accuracy", "example_accuracy", "class_forgetting")),
            f"{found:.1f}",
            f"{row['rarest_labels'][-1][-1]:.1f}",
        ]
    tidy = [row | {"blur": 0.0, "imbalance": 1.0, "label_noise": 0.0, "recurring": 0} for row in rows]
    for gap, tables in (
        (0.5, 0),
        (3.0, 1),
    ):  # points between the means over classes and examples: long tails of one's own
        uneven = [row | {"example_accuracy": row["class_accuracy"] + gap} for row in tidy]
        blocks = documents.many_runs(uneven).blocks
        assert sum(isinstance(block, Table) and block.caption.startswith("By class") for block in blocks) == tables


def test_a_report_draws_the_stream_and_how_soon_classes_are_found(tmp_path):
    run(make(SMALL | EVERYTHING), tmp_path)
    blocks = documents.one_run(tmp_path, run_row(tmp_path)).blocks
    captions = [block.caption for block in blocks if isinstance(block, Figure)]
    assert sum(caption.startswith("The stream: examples of each class") for caption in captions) == 1
    assert sum(caption.startswith("How soon classes are found") for caption in captions) == 1
    assert "Recall at the end, classes in order of arrival." in captions
    assert sum(caption.startswith("Recall at the end of each class in the tests of each task") for caption in captions)
    assert sum(caption.startswith("Forgetting of each class since its task was learned") for caption in captions)
    said = [point for block in blocks if isinstance(block, Points) for point in block.texts]
    assert any(point.startswith("Labels of the rarest class, ") for point in said)


def test_figures_by_class_have_every_class_and_task():
    tasks = [{"ant": 80.0}, {"ant": 40.0, "bee": 70.0}, {"cow": 0.0}]
    ((panel,), axes) = run_figures.recall_by_task(tasks).panels, MatplotlibFigure().add_subplot()
    panel.draw(axes)
    shown = {text.get_position(): text.get_text() for text in axes.texts}  # (task, class), in the middle of its cell
    assert shown == {(0.5, 0.5): "80", (1.5, 0.5): "40", (1.5, 1.5): "70", (2.5, 2.5): "0"}
    assert panel.alt.endswith("mean over the classes of each task: 80, 55, 0.")
    many = {f"class {i}": float(i - 10) for i in range(40)}
    (panel,), axes = run_figures.forgetting(many).panels, MatplotlibFigure().add_subplot()
    panel.draw(axes)
    assert [bar.get_height() for bar in axes.patches] == list(many.values())
    assert panel.alt == "Forgetting of 40 classes: lowest -10, median 10, highest 29 points."
