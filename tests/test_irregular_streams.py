"""Irregular streams: blurry, long-tailed, noisy, recurring, by domain; each as defined, and in any combination."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments.data import Dataset, Split, StreamOptions, make_stream
from accuacl.experiments.data.corruptions import CORRUPTIONS, class_means
from effort import examples


def dataset(counts, tests=2, columns=None):
    """So many training rows of each class, shuffled; an input is its class and a random number."""
    rng = np.random.default_rng(sum(counts))

    def split(numbers, columns):
        labels = rng.permutation(np.repeat(np.arange(len(numbers)), numbers)).astype(np.int64)
        inputs = np.stack([labels, rng.random(len(labels))], axis=1).astype(np.float32)
        return Split(inputs, labels, columns or {})

    names = tuple(f"c{i}" for i in range(len(counts)))
    return Dataset("made", split(counts, columns), split([tests] * len(counts), None), names)


def images(count, classes=2, side=8):
    rng = np.random.default_rng(count)
    labels = np.arange(count, dtype=np.int64) % classes
    splits = [Split(rng.integers(0, 256, (count, side, side, 3), np.uint8), labels) for _ in range(2)]
    return Dataset("pictures", *splits, tuple(f"c{i}" for i in range(classes)))


def groups(tasks, each):
    return [list(range(t * each, (t + 1) * each)) for t in range(tasks)]


options = st.builds(
    StreamOptions,
    blur=st.sampled_from([0.0, 0.1, 0.4]),
    imbalance=st.sampled_from([1.0, 0.3, 0.05]),
    label_noise=st.sampled_from([0.0, 0.3]),
    noise=st.sampled_from(["uniform", "alike"]),
    recurring=st.integers(0, 2),
    seed=st.integers(0, 2**40),
)


@examples(30, 500)
@given(st.integers(2, 4), st.integers(1, 3), options)
def test_every_combination_is_a_stream(tasks, each, how):
    data = dataset([60] * (tasks * each + 1))  # one class that never comes
    stream, again = (make_stream(data, groups(tasks, each), how) for _ in range(2))
    assert len(stream) == tasks * (1 + how.recurring)
    assert stream.order == tuple(range(tasks * each))
    rows = np.concatenate([task.train for task in stream])
    assert len(np.unique(rows)) == len(rows)
    assert set(data.train.labels[rows]) == set(stream.order)
    for task, same in zip(stream, again, strict=True):
        np.testing.assert_array_equal(task.train, same.train)
        assert (np.diff(task.train) > 0).all()
        assert set(data.test.labels[task.test]) == set(task.classes)
        assert len(task.test) == 2 * len(task.classes)
    np.testing.assert_array_equal(stream.answers, again.answers)
    assert stream.pools().sum() == len(rows)
    assert how.imbalance < 1 or len(rows) == 60 * tasks * each
    outside = np.setdiff1d(np.arange(len(data.train)), rows)
    np.testing.assert_array_equal(stream.answers[outside], data.train.labels[outside])


def test_other_seeds_are_other_streams():
    data, how = dataset([40] * 4), StreamOptions(blur=0.2, imbalance=0.5, label_noise=0.2, recurring=1)
    streams = [make_stream(data, groups(2, 2), replace(how, seed=seed)) for seed in range(4)]
    assert len({tuple(stream[0].train) for stream in streams}) == 4
    assert len({stream.answers.tobytes() for stream in streams}) == 4
    assert len({tuple(task.classes for task in stream) for stream in streams}) > 1


@pytest.mark.parametrize("blur", [0.1, 0.25, 0.5])
def test_blur_moves_its_share_of_each_class_evenly_to_the_other_tasks(blur):
    data = dataset([80, 40, 80, 40, 80, 40])
    pools = make_stream(data, groups(3, 2), StreamOptions(blur=blur)).pools()
    for c, count in enumerate([80, 40] * 3):
        home, moved = c // 2, round(blur * count)
        assert pools[home, c] == count - moved
        others = np.delete(pools[:, c], home)
        assert others.sum() == moved
        assert np.ptp(others) <= 1


def test_blur_alone_moves_nothing_else():
    data = dataset([20] * 4)
    regular, blurry = (make_stream(data, groups(2, 2), StreamOptions(blur=blur)) for blur in (0.0, 0.1))
    for a, b in zip(regular, blurry, strict=True):
        np.testing.assert_array_equal(a.test, b.test)
        assert a.classes == b.classes
        assert len(np.setdiff1d(a.train, b.train)) == 4
    with pytest.raises(InputError, match="only one; leave it out"):
        make_stream(data, groups(1, 4), StreamOptions(blur=0.1))


@examples(20, 200)
@given(st.integers(2, 8), st.sampled_from([0.01, 0.1, 0.5]), st.integers(0, 99))
def test_the_long_tail_falls_from_the_commonest_to_its_share(classes, share, seed):
    counts = make_stream(
        dataset([100] * classes), groups(1, classes), StreamOptions(imbalance=share, seed=seed)
    ).pools()[0]
    expected = [max(1, round(100 * share ** (i / (classes - 1)))) for i in range(classes)]
    assert sorted(counts, reverse=True) == expected


def test_a_long_tail_follows_the_one_that_is_there_and_invents_nothing():
    counts = make_stream(dataset([5, 100, 3, 50]), groups(2, 2), StreamOptions(imbalance=0.1)).pools().sum(axis=0)
    # the commonest is class 1, then 3, 0, 2: 100, 46, 22, 10 are wanted
    assert counts.tolist() == [5, 100, 3, 46]


def test_which_class_is_rare_depends_on_the_seed():
    rarest = {
        int(make_stream(dataset([9] * 5), groups(1, 5), StreamOptions(imbalance=0.1, seed=s)).pools()[0].argmin())
        for s in range(30)
    }
    assert rarest == set(range(5))


def test_everything_comes_back_with_other_examples_in_other_company():
    data = dataset([30, 31, 32, 33, 34, 35])
    stream = make_stream(data, groups(3, 2), StreamOptions(recurring=2, seed=1))
    assert [task.classes for task in stream][:3] == [(0, 1), (2, 3), (4, 5)]
    for time in range(3):
        assert sorted(c for task in stream.tasks[3 * time : 3 * time + 3] for c in task.classes) == list(range(6))
    assert {task.classes for task in stream} > {(0, 1), (2, 3), (4, 5)}
    pools = stream.pools()
    for c, count in enumerate([30, 31, 32, 33, 34, 35]):
        visits = pools[:, c][pools[:, c] > 0]
        assert len(visits) == 3
        assert visits.sum() == count
        assert np.ptp(visits) <= 1
    same = [task.test for task in stream if 0 in task.classes]
    zeros = [rows[data.test.labels[rows] == 0] for rows in same]
    for rows in zeros:
        np.testing.assert_array_equal(rows, zeros[0])


@pytest.mark.parametrize("noise", ["uniform", "alike"])
def test_wrong_answers_are_as_many_as_asked_for_and_name_classes_that_have_come(noise):
    data = dataset([400] * 6)
    stream = make_stream(data, groups(3, 2), StreamOptions(label_noise=0.25, noise=noise))
    labels = data.train.labels
    for t, task in enumerate(stream):
        wrong = stream.answers[task.train] != labels[task.train]
        assert abs(wrong.mean() - 0.25) < 0.06  # four standard deviations
        given = stream.answers[task.train][wrong]
        assert given.max() < 2 * t + 2
        if noise == "alike":  # class c has its mean at c
            np.testing.assert_array_equal(np.abs(given - labels[task.train][wrong]), 1)
        elif t == 2:
            assert np.bincount(given).min() > 10
    assert class_means(stream)[:, 0] == pytest.approx(np.arange(6))


def test_while_one_class_is_all_there_is_no_answer_is_wrong():
    data = dataset([50, 50])
    stream = make_stream(data, groups(2, 1), StreamOptions(label_noise=0.5))
    first, second = stream
    np.testing.assert_array_equal(stream.answers[first.train], 0)
    assert 10 < (stream.answers[second.train] == 0).sum() < 40


def test_domains_are_all_different_and_the_first_is_unchanged():
    data = images(60)
    stream = make_stream(data, None, StreamOptions(domains=len(CORRUPTIONS), seed=3))
    inputs = stream.dataset.train.inputs
    assert inputs.shape == data.train.inputs.shape
    assert len(inputs) == 60
    np.testing.assert_array_equal(inputs[stream[0].train], data.train.inputs[stream[0].train])
    for task in stream.tasks[1:]:
        seen = inputs[task.train]
        assert seen.dtype == np.uint8
        assert np.abs(seen.astype(int) - data.train.inputs[task.train]).mean() > 10
    # a row reads the same alone, in any company, and by a slice
    everything = inputs[:]
    np.testing.assert_array_equal(inputs[np.array([59, 0, 7])], everything[[59, 0, 7]])
    np.testing.assert_array_equal(inputs[7], everything[7])
    np.testing.assert_array_equal(inputs[::9], everything[::9])
    np.testing.assert_array_equal(
        make_stream(data, None, StreamOptions(domains=9, seed=3)).dataset.train.inputs[:], everything
    )
    np.testing.assert_array_equal(data.train.inputs, images(60).train.inputs)  # nothing was written into the data


def test_each_domain_has_all_classes_and_its_own_tests():
    data = images(44, classes=4)
    stream = make_stream(data, None, StreamOptions(domains=3))
    assert [task.classes for task in stream] == [(0, 1, 2, 3)] * 3
    for split in ("train", "test"):
        rows = np.sort(np.concatenate([getattr(task, split) for task in stream]))
        np.testing.assert_array_equal(rows, np.arange(44))
    assert np.ptp(stream.pools(), axis=0).max() <= 1
    twice = make_stream(data, None, StreamOptions(domains=3, recurring=1, blur=0.2))
    assert len(twice) == 6
    assert (twice.pools() > 0).all()


def test_corruptions_by_hand():
    white = np.full((1, 4, 4, 3), 255, np.float32)
    half = np.zeros((1, 4, 4, 3), np.float32)
    half[:, :, 2:] = 90
    rows = np.array([0])
    assert CORRUPTIONS["dark"](white, 0, rows).max() == pytest.approx(89.25)
    assert CORRUPTIONS["negative"](white, 0, rows).max() == 0
    assert CORRUPTIONS["grey"](half * [1, 0, 0], 0, rows)[0, 0, 3].tolist() == pytest.approx([30, 30, 30])
    assert CORRUPTIONS["coarse"](half, 0, rows).max() == 0
    once = np.array([0, 30, 60, 90])  # the means of three neighbours in a row, the border repeated
    twice = np.convolve(np.pad(once, 1, mode="edge"), np.ones(3) / 3, "valid")
    np.testing.assert_allclose(CORRUPTIONS["smooth"](half, 0, rows)[0, 1, :, 0], twice, rtol=1e-5)
    a, b, c = (CORRUPTIONS["noisy"](half, seed, np.array([row])) for seed, row in ((0, 0), (0, 0), (0, 1)))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 1


def with_columns(train, test=None):
    data = dataset([6, 6, 6], tests=3)
    more = {} if test is None else {"test": replace(data.test, columns=test)}
    return replace(data, train=replace(data.train, columns=train), **more)


def test_domains_by_a_column():
    column, tested = np.array(["web", "app", "app"] * 6), np.array(["app", "web", "web"] * 3)
    stream = make_stream(with_columns({"domain": column}, {"domain": tested}), None, StreamOptions(domains=2))
    assert [task.train.tolist() for task in stream] == [
        np.flatnonzero(column == name).tolist() for name in ("app", "web")
    ]
    assert [task.test.tolist() for task in stream] == [
        np.flatnonzero(tested == name).tolist() for name in ("app", "web")
    ]


def test_tasks_as_the_data_name_them():
    column = np.array([10, 2, 2] * 6)
    data = with_columns({"task": column})
    stream = make_stream(data, None)
    assert [task.train.tolist() for task in stream] == [np.flatnonzero(column == t).tolist() for t in (2, 10)]
    for task in stream:  # without a column in the test split: the test rows of its classes
        classes = set(data.train.labels[task.train])
        assert set(task.classes) == classes
        assert task.test.tolist() == np.flatnonzero(np.isin(data.test.labels, list(classes))).tolist()
    tested = np.array(["2", "10", "10"] * 3)
    named = make_stream(with_columns({"task": column.astype(str)}, {"task": tested}), None)
    assert [task.train.tolist() for task in named] == [task.train.tolist() for task in stream]
    assert [task.test.tolist() for task in named] == [np.flatnonzero(tested == t).tolist() for t in ("2", "10")]


def test_a_class_that_is_only_tested_has_a_place_in_the_model():
    data = dataset([6, 6, 6], tests=3)
    column = np.zeros(18, int)
    rows = data.train.labels < 2
    train = Split(data.train.inputs[rows], data.train.labels[rows], {"task": column[rows]})
    stream = make_stream(replace(data, train=train, test=replace(data.test, columns={"task": np.zeros(9, int)})), None)
    assert stream.order == (0, 1, 2)
    assert stream.pools().tolist() == [[6, 6, 0]]


@pytest.mark.parametrize(
    ("data", "how", "says"),
    [
        (dataset([4, 4]), StreamOptions(domains=2), "made holds vectors, and --domains can corrupt images only"),
        (images(8), StreamOptions(domains=99), "domains is 99; there are 9 kinds of corruption"),
        (dataset([4, 4]), StreamOptions(), "made does not say which task an example is of"),
        (
            with_columns({"domain": np.arange(18) % 3}, {"domain": np.arange(9) % 3}),
            StreamOptions(domains=2),
            "give --domains 3",
        ),
        (
            with_columns({"domain": np.arange(18) % 2}),
            StreamOptions(domains=2),
            "a column domain only in the training split",
        ),
        (
            with_columns({"task": np.arange(18) % 2}, {"task": np.arange(9)}),
            StreamOptions(),
            "has the task '2', which has no",
        ),
        (with_columns({"task": np.arange(18) % 2}, {"task": np.zeros(9, int)}), StreamOptions(), "0 test examples"),
    ],
)
def test_streams_that_cannot_be_made_are_refused(data, how, says):
    with pytest.raises(InputError, match=says):
        make_stream(data, None, how)
