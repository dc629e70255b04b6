"""Facility location: exact however little of the kernel is kept, and however many rows are dealt with at a time."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl.strategies.facility import Coverage, Kernel, distinct, facility_location, sample, squared_width, unit


def plain(x, width, count, weights, start, first=()):
    """Greedy by the definition, with the whole kernel."""

    def kernel(a, b):
        return np.exp(-np.square(a[:, None] - b[None]).sum(axis=2) / width)

    K, best = kernel(x, x), kernel(x, start).max(axis=1, initial=0)
    picks, gains = [], []
    for i in range(count):
        gain = weights @ np.maximum(K - best[:, None], 0)
        gain[picks] = -1
        picks.append(first[i] if i < len(first) else int(np.argmax(gain >= gain.max() * (1 - 1e-12))))
        gains.append(gain[picks[-1]])
        best = np.maximum(best, K[:, picks[-1]])
    return picks, gains


def clusters(rng, n, d, k=12, spread=0.5):
    return unit(rng.normal(size=(k, d))[rng.integers(0, k, n)] + spread * rng.normal(size=(n, d)))


@pytest.mark.parametrize("limit", [0, 20_000, 600_000, 1 << 30])
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_picks_do_not_depend_on_what_is_kept(limit, rows):
    rng = np.random.default_rng(limit + rows)
    x, start = clusters(rng, 400, 10), clusters(rng, 5, 10)
    weights, width = rng.random(400), squared_width(x, 1 / 40)
    expected = plain(x, width, 40, weights, start)
    picks, gains = facility_location(x.copy(), width, 40, weights=weights, start=start, rows=rows, limit=limit)
    assert picks.tolist() == expected[0]
    np.testing.assert_allclose(gains, expected[1], rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1, 30])
def test_picks_for_narrow_and_wide_kernels(scale):
    rng = np.random.default_rng(7)
    x = clusters(rng, 300, 6, spread=0.2)
    width = scale * squared_width(x, 1 / 30)
    picks, _ = facility_location(x.copy(), width, 30)
    assert picks.tolist() == plain(x, width, 30, np.ones(300), x[:0])[0]


@pytest.mark.parametrize("offset", [0, 1e4])
def test_picks_where_float32_cannot_tell_the_gains_apart(offset, monkeypatch):
    rng = np.random.default_rng(3)
    x = unit(rng.normal(size=(500, 3000)) + offset)  # nearly the same distance between all
    width = squared_width(x, 1 / 20)
    monkeypatch.setattr("accuacl.strategies.facility.MANY", 1)
    levels = []
    bound = Coverage._bound
    monkeypatch.setattr(Coverage, "_bound", lambda *given: (levels.append(given[-1]), bound(*given))[1])
    picks, _ = facility_location(x.copy(), width, 20)
    assert 2 in levels  # some gains were bounded in float64 too
    product = x - x.mean(axis=0)
    K = 2 * product @ product.T - np.square(product).sum(axis=1)[:, None] - np.square(product).sum(axis=1)
    K, best, expected = np.exp(K / width), np.zeros(500), []
    for _ in range(20):
        expected.append(int(np.argmax(np.maximum(K - best[:, None], 0).sum(axis=0))))
        best = np.maximum(best, K[:, expected[-1]])
    assert picks.tolist() == expected


def test_rows_that_are_picked_first_are_covered_and_never_picked_again():
    rng = np.random.default_rng(5)
    x = clusters(rng, 200, 8)
    x[50] = x[3]  # a copy of one that is given
    width = squared_width(x, 1 / 20)
    first = [7, 3, 120]
    picks, gains = facility_location(x.copy(), width, 200, first=first)
    assert picks[:3].tolist() == first
    assert sorted(picks.tolist()) == list(range(200))
    expected = plain(x, width, 60, np.ones(200), x[:0], first)
    assert picks[:60].tolist() == expected[0]
    np.testing.assert_allclose(gains[:60], expected[1], rtol=1e-9)
    assert gains[-1] == 0
    assert gains.sum() == pytest.approx(200)


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("width", [1e-6, 1e-2, 1, 100])
def test_the_kernel_from_above_is_never_below_the_exact_one(width, fine):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 200))
        x = unit(rng.normal(size=(60, d)) + 10.0 ** rng.uniform(-3, 4))
        kernel = Kernel(x, width)
        above = kernel.above(kernel.x, fine)
        for row in range(60):
            assert (above[row] >= kernel.exact(kernel.x[row], np.arange(60))).all()


def test_width_of_a_large_set_is_that_of_a_fixed_sample_of_a_thousand():
    rng = np.random.default_rng(0)
    x = clusters(rng, 3000, 5)
    width = squared_width(x, 0.05)
    everything = np.quantile(np.square(x[:, None] - x[None]).sum(axis=2), 0.05, axis=1)
    assert 0.8 < width / np.median(everything) < 1.25
    assert width == squared_width(x, 0.05)
    tail = np.concatenate([x[:1000], x[:1000]])
    assert squared_width(x[:1000], 0.05) == pytest.approx(
        np.median(np.quantile(np.square(x[:1000, None] - x[None, :1000]).sum(axis=2), 0.05, axis=1)), rel=1e-12
    )
    assert len(distinct(tail)[0]) == 1000


def test_width_of_copies():
    x = unit(np.array([[1.0, 0.0]] * 9 + [[0.0, 1.0]]))
    assert squared_width(x, 0.1) == pytest.approx(2 * 18 / 100)  # the mean of all squared distances
    assert squared_width(x[:9], 0.1) == 1
    assert squared_width(x[:1], 0.1) == 1
    assert squared_width(x[:0], 0.1) == 1


def test_lengths():
    rows = np.array([[3e-200, 4e-200], [0, 0], [3e60, 4e60]])
    np.testing.assert_allclose(unit(rows), [[0.6, 0.8], [0, 0], [0.6, 0.8]], rtol=1e-15)
    np.testing.assert_array_equal(unit(np.asfortranarray(rows)), unit(rows))


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("n", [16, 40])
def test_ties_are_decided_by_gains_and_not_by_bounds(n, rows):
    """The first pick, at 0, lowers all gains alike; those that follow differ by less than a tie."""
    start = np.full((1, n), (1 + np.sqrt(1 + n / 2)) / n)  # at the same distance from all
    for seed in range(5):
        weights = 1 - 5e-13 * np.random.default_rng(seed).random(n + 1)
        x = np.concatenate([np.zeros((1, n)), np.eye(n)])
        picks, _ = facility_location(x, 0.2, n + 1, weights=weights, start=start, rows=rows)
        assert picks.tolist() == list(range(n + 1))


@pytest.mark.parametrize("seed", range(5))
def test_gains_that_are_equal_but_for_rounding_tie(seed):
    rng = np.random.default_rng(seed)
    rows = np.eye(40)[rng.permutation(40)] + 1e-9 * rng.normal(size=(40, 40))
    picks, _ = facility_location(unit(np.concatenate([np.zeros((1, 40)), rows])), 0.2, 41)
    assert picks.tolist() == list(range(41))


@pytest.mark.parametrize("share", [0.5, 1 / 40, 1 / 200])
@pytest.mark.parametrize(("n", "d"), [(2, 3), (3, 1), (40, 200), (1100, 12)])
def test_the_width_is_that_of_the_definition_to_the_bit(n, d, share):
    """Only the rows in the middle are computed by the definition; which these are is told from a product."""
    from scipy.spatial.distance import pdist, squareform

    rng = np.random.default_rng(n)
    for x in (rng.normal(size=(n, d)), np.round(rng.normal(size=(n, d))), np.repeat(rng.normal(size=(n, d)), 3, 0)[:n]):
        x = unit(x)
        squares = squareform(pdist(x[sample(len(x))], "sqeuclidean"))
        median = float(np.median(np.quantile(squares, share, axis=1)))
        if median > 1e-20:
            assert squared_width(x, share) == median


def test_columns_of_zeros_change_nothing():
    """They are left out of products, but what covers from the start may have something in them."""
    rng = np.random.default_rng(5)
    x, start = rng.normal(size=(300, 40)), rng.normal(size=(6, 40))
    x[:, 5:35] = 0
    x, start = unit(x), unit(start)
    width = squared_width(x, 1 / 30)
    assert Kernel(x.copy(), width).rough.shape == (300, 10)
    expected = plain(x, width, 30, np.ones(300), start)
    picks, gains = facility_location(x.copy(), width, 30, start=start)
    assert picks.tolist() == expected[0]
    np.testing.assert_allclose(gains, expected[1], rtol=1e-9)
