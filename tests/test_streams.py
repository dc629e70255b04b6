"""Streams: every class arrives once, every example in one task, labels go to the model and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments.data import (
    BENCHMARKS,
    PUBLISHED,
    Dataset,
    Split,
    benchmark_tasks,
    dataset_of,
    load,
    make_stream,
)


def dataset(classes, each=3):
    """A data set whose inputs say which class they are of."""

    def split(rows, seed):
        labels = np.random.default_rng(seed).permutation(np.arange(rows) % classes)
        return Split(labels[:, None].astype(np.float32), labels)

    return Dataset("made", split(classes * each, 0), split(classes * 2, 1), tuple(f"c{i}" for i in range(classes)))


def class_incremental(data, tasks, each=None, order="fixed", seed=0):
    """The first tasks, of `each` classes, by default of as many as share all classes evenly."""
    order = order if isinstance(order, str) else ",".join(map(str, order))
    return make_stream(
        data, benchmark_tasks("made", len(data.classes), each or len(data.classes) // tasks, order, seed)[:tasks]
    )


orders = st.sampled_from(["fixed", "tasks", "classes"])


@given(st.integers(1, 6), st.integers(1, 5), orders, st.integers(0, 2**40))
def test_every_class_and_every_example_comes_once(tasks, each, order, seed):
    data = dataset(tasks * each)
    stream = class_incremental(data, tasks, order=order, seed=seed)
    assert len(stream) == len(list(stream)) == tasks
    assert sorted(stream.order) == list(range(tasks * each))
    assert stream.order == tuple(c for task in stream for c in task.classes)
    assert [task.index for task in stream] == list(range(tasks))
    for split in ("train", "test"):
        rows = [getattr(task, split) for task in stream]
        np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(len(getattr(data, split))))
        for task, some in zip(stream, rows, strict=True):
            assert some.dtype == np.int64
            assert (np.diff(some) > 0).all()
            assert set(getattr(data, split).labels[some]) == set(task.classes)
            assert len(task.classes) == each


@given(st.integers(1, 6), st.integers(1, 5), orders, st.integers(0, 2**40), st.data())
def test_labels_go_to_the_model_and_back(tasks, each, order, seed, draw):
    stream = class_incremental(dataset(tasks * each + 1), tasks, each, order, seed)
    labels = np.array(draw.draw(st.lists(st.sampled_from(stream.order), max_size=9)), np.int64)
    ids = stream.to_model(labels)
    assert [stream.order[i] for i in ids] == labels.tolist()
    assert ids.dtype == np.int64
    np.testing.assert_array_equal(stream.to_model(stream.order), np.arange(tasks * each))
    for task in stream:  # task t has the model's ids t * each up to the next
        np.testing.assert_array_equal(stream.to_model(task.classes) // each, task.index)
    unknown = set(range(tasks * each + 1)) - set(stream.order)
    for c in unknown:
        with pytest.raises(InputError, match=f"class {c} is unknown"):
            stream.to_model([stream.order[0], c])


@given(st.permutations(range(6)))
def test_a_given_order_is_kept(order):
    for given_ in (order, tuple(order), np.array(order)):
        stream = class_incremental(dataset(6), 3, order=given_)
        assert stream.order == tuple(order)
        assert [task.classes for task in stream] == [tuple(order[i : i + 2]) for i in (0, 2, 4)]


def test_orders_by_seed():
    data = dataset(40, 1)
    fixed = class_incremental(data, 20)
    assert fixed.order == tuple(range(40))
    for order in ("tasks", "classes"):
        streams = [class_incremental(data, 20, order=order, seed=seed) for seed in range(5)]
        assert len({stream.order for stream in streams} | {fixed.order}) == 6
        assert class_incremental(data, 20, order=order, seed=3).order == streams[3].order
    tasks = class_incremental(data, 20, order="tasks", seed=1)
    assert sorted(task.classes for task in tasks) == [task.classes for task in fixed]
    mixed = class_incremental(data, 20, order="classes", seed=1)
    assert sum(task.classes in [t.classes for t in fixed] for task in mixed) < 5


def test_orders_never_change():
    """Runs recorded years ago must mean the same classes."""
    data = dataset(10)
    assert class_incremental(data, 5, order="tasks", seed=1).order == (2, 3, 0, 1, 6, 7, 8, 9, 4, 5)
    assert class_incremental(data, 5, order="classes", seed=1).order == (6, 2, 0, 3, 4, 9, 5, 8, 7, 1)


def test_every_class_comes_first_about_as_often():
    data = dataset(5, 1)
    first = [class_incremental(data, 5, order="classes", seed=seed).order[0] for seed in range(500)]
    assert np.bincount(first, minlength=5).min() > 65  # 100 expected, 9 the standard deviation


def test_fewer_tasks_than_there_are_classes_for():
    data = dataset(10)
    assert [task.classes for task in class_incremental(data, 2, 3)] == [(0, 1, 2), (3, 4, 5)]
    several = {class_incremental(data, 1, 5, "tasks", seed).order for seed in range(9)}
    assert several == {(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)}


def test_unknown_classes():
    stream = class_incremental(dataset(6), 2, 2)
    with pytest.raises(InputError, match=r"class 5 is unknown; the classes of this stream are \[0, 1, 2, 3\]"):
        stream.to_model([0, 5])
    for wrong in (-1, 6, 2**40):
        with pytest.raises(InputError, match=f"class {wrong} is unknown"):
            stream.to_model(wrong)


def test_a_task_without_examples_is_refused():
    data = dataset(4)
    rows = np.flatnonzero(data.test.labels < 2)
    empty = Dataset("x", data.train, Split(data.test.inputs[rows], data.test.labels[rows]), data.classes)
    with pytest.raises(InputError, match=r"task 2 \(classes c2, c3\) has 6 training and 0 test examples"):
        class_incremental(empty, 2)


def test_benchmarks_share_out_all_classes():
    for name, tasks, each in BENCHMARKS.values():
        assert PUBLISHED[name].classes == tasks * each
    stream = make_stream(load("digits"), benchmark_tasks("split-digits", 10))
    assert [task.classes for task in stream] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert stream[4].classes == (8, 9)


@pytest.mark.parametrize(
    ("benchmark", "given", "tasks"),
    [
        ("split-digits", {}, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]),
        ("split-digits", {"classes_per_task": 3}, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
        ("split-digits", {"order": "8, 3,0,1"}, [[8, 3], [0, 1]]),
        ("split-digits", {"order": "8,3,0", "classes_per_task": 1}, [[8], [3], [0]]),
        ("split-digits", {"order": "tasks", "seed": 1}, [[2, 3], [0, 1], [6, 7], [8, 9], [4, 5]]),
        ("my/folder", {"classes_per_task": 4}, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("my/folder", {"classes_per_task": 5, "order": "classes", "seed": 1}, [[6, 2, 0, 3, 4], [9, 5, 8, 7, 1]]),
    ],
)
def test_tasks_by_the_settings_of_a_run(benchmark, given, tasks):
    assert benchmark_tasks(benchmark, 10, **given) == tasks


def test_more_classes_in_a_task_than_there_are():
    with pytest.raises(InputError, match="classes_per_task is 11; made has 10 in all, so give at most 10"):
        benchmark_tasks("made", 10, 11)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ("random", "order is 'random'; give fixed, tasks, classes or class ids like 3,1,2"),
        ("0,1,,2", "order is '0,1,,2'; give"),
        ("0,10", "class 10 is unknown; the classes are 0 to 9"),
        ("0,-1", "class -1 is unknown"),
        ("0,3,1,3", "order names class 3 more than once"),
        ("0,1,2", "order names 3 classes, and a task has 2; name a multiple of that, or change classes_per_task"),
    ],
)
def test_wrong_orders(order, says):
    with pytest.raises(InputError, match=says):
        benchmark_tasks("split-digits", 10, order=order)


def test_the_data_set_of_a_benchmark():
    assert dataset_of("split-tiny-imagenet") == "tiny-imagenet"
    assert dataset_of("my/folder") == "my/folder"
