"""How many threads work is given, and that the libraries get theirs back."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl
import torch

from accuacl import select
from accuacl.base import threads
from accuacl.base.threads import count, for_torch, shared_out, spread
from accuacl.strategies.facility import facility_location, unit
from problems import features

LARGE = 100 * threads.WORTH
assert scipy.linalg  # it brings a BLAS of its own, which is to be there from the start


POOL = features(np.random.default_rng(0), 30, 5, 3)


def blas() -> list[int]:
    return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture
def four():
    """The libraries may use four threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    with threadpoolctl.threadpool_limits(4, user_api="blas"):
        had = blas()
        yield
        assert blas() == had
        assert torch.get_num_threads() == 4
    torch.set_num_threads(before)


def test_the_libraries_have_one_thread_within_and_theirs_afterwards(four):
    with shared_out():
        assert set(blas()) == {1}
        assert torch.get_num_threads() == 1
        with shared_out():
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    with pytest.raises(ValueError, match="share is 2"):
        select("accuacl+uniform", pool=POOL, budget=3, share=2)  # the fixture looks whether all is as before


def test_two_threads_that_leave_in_another_order_than_they_came(four):
    inside, go = threading.Event(), threading.Event()
    had = blas()

    def other():
        with shared_out():
            inside.set()
            go.wait(60)
            assert set(blas()) == {1}

    thread = threading.Thread(target=other)
    with shared_out():
        thread.start()
        assert inside.wait(60)
    assert set(blas()) == {1}  # the other is still at work
    go.set()
    thread.join(60)
    assert blas() == had


def test_the_number_of_threads_follows_the_work(four):
    assert count(LARGE) == 1  # nobody has shared out any
    with shared_out():
        assert [count(work * threads.WORTH) for work in (0, 0.9, 1, 2.5, 4, 1e9)] == [1, 1, 1, 2, 4, 4]
    torch.set_num_threads(1)  # what one library may use the other may not exceed
    with shared_out():
        assert count(LARGE) == 1
    torch.set_num_threads(4)


def test_torch_gets_threads_for_large_products_only(four):
    with shared_out():
        with for_torch(LARGE):
            assert torch.get_num_threads() == 4
        with for_torch(threads.WORTH):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1


def test_items_are_shared_out_in_order_and_only_a_few_before_they_are_needed(four):
    at_once = threading.Barrier(4)
    taken = []

    def items():
        for item in range(40):
            taken.append(item)
            yield item

    def work(item):
        if item < 4:
            at_once.wait(60)  # passes only if four are at work together
        return 2 * item

    with shared_out():
        results = spread(work, items(), LARGE)
        assert next(results) == 0
        assert len(taken) <= 10
        assert list(results) == list(range(2, 80, 2))


@pytest.mark.parametrize("work", [0, LARGE])
def test_an_error_in_a_thread_comes_out(four, work):
    def fail(item):
        if item == 3:
            raise KeyError(item)

    with shared_out(), pytest.raises(KeyError):
        list(spread(fail, range(20), work))


@pytest.mark.parametrize("name", ["accuacl", "margin", "coverage", "fisher-ratio", "bait"])
def test_picks_are_the_same_however_the_work_is_shared_out(name, four, monkeypatch):
    rng = np.random.default_rng(0)
    n = 60 if name == "bait" else 700
    pool, memory = features(rng, n, 12, 4, 0.3), features(rng, 20, 12, 4)
    given = {"pool": pool, "budget": 40, "memory": memory, "past": 500, "chunk": 32}
    expected = select(name, **given)
    counted = []
    monkeypatch.setattr(threads, "WORTH", 1e-3)
    monkeypatch.setattr(threads, "count", lambda work: (counted.append(work), count(work))[1])
    got = select(name, **given)
    assert counted or name == "bait"
    np.testing.assert_array_equal(got.indices, expected.indices)
    for score in expected.scores:
        np.testing.assert_allclose(got.scores[score], expected.scores[score], rtol=1e-9)


def test_coverage_without_a_whole_kernel_is_the_same_however_the_work_is_shared_out(four, monkeypatch):
    x = unit(np.random.default_rng(1).normal(size=(300, 5)))
    expected, _ = facility_location(x.copy(), 0.3, 60, limit=0)
    monkeypatch.setattr(threads, "WORTH", 1e-3)
    with shared_out():
        picks, _ = facility_location(x, 0.3, 60, rows=16, limit=0)
    np.testing.assert_array_equal(picks, expected)
