"""The target is a function of the set of rows alone: sums settled where rounding could decide."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from accuacl import Features, fisher, pools, select
from accuacl.fisher import POINT, FisherSum, as_floats, exact_entries, may_be_below, mix, round_mean, settle
from pool_files import Inline, write
from problems import features


def exact_of(some: Features) -> list[list[Fraction]]:
    """The sums of the products as they are in float64, in fractions."""
    p, h = some.probabilities.astype(np.float64), some.embeddings.astype(np.float64)
    a, g = p - p**2, h * h
    return [
        [sum((Fraction(float(x)) for x in a[:, c] * g[:, j]), Fraction(0)) for j in range(some.d)]
        for c in range(some.K)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_exact_sums_are_exact_and_bounds_hold(seed):
    rng = np.random.default_rng(seed)
    some = features(rng, int(rng.integers(1, 300)), 3, 2, 0.5, 10.0 ** rng.uniform(-15, 15))
    truth = exact_of(some)
    entries = np.argwhere(np.ones((2, 3)))
    found = exact_entries(some, entries)
    assert [Fraction(value, 1 << POINT) for value in found] == [truth[c][j] for c, j in entries]
    np.testing.assert_array_equal(as_floats(found), [float(truth[c][j]) for c, j in entries])
    half = exact_entries(some.rows(slice(0, 9)), entries), exact_entries(some.rows(slice(9, None)), entries)
    assert [a + b for a, b in zip(*half, strict=True)] == found
    for total in (
        FisherSum.of(some),
        FisherSum.of(some, 7),
        FisherSum.of(some.rows(slice(0, 5))) + FisherSum.of(some.rows(slice(5, None)), 3),
    ):
        for c, j in entries:
            assert total.off(-1).mean[c, j] * total.count <= truth[c][j] * (1 + 1e-15)
            assert total.off(+1).mean[c, j] * total.count >= truth[c][j] * (1 - 1e-15)


def on_the_edge(rng, n=64) -> Features:
    """Rows whose mean is as near to a rounding boundary of float32 as can be: another order crosses it."""
    h = rng.random((n, 1)) + 0.5
    p = np.full((n, 2), 0.5)
    want = FisherSum.of(Features(h, p)).mean[0, 0]
    grid = 2.0**-24 * 2.0 ** np.floor(np.log2(want))  # half of the distance between neighbours
    boundary = (2 * np.floor(want / (2 * grid)) + 1) * grid
    for _ in range(60):  # Newton's steps on the last row
        off = boundary - float(sum(Fraction(float(x)) for x in (0.25 * h[:, 0] ** 2)) / n)
        h[-1, 0] += off * n / (0.25 * 2 * h[-1, 0])
    return Features(h, p)


def test_the_mean_is_rounded_the_same_in_every_order():
    """Made so that plain float64 sums would round to different targets."""
    plain, asked = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        some = on_the_edge(rng)
        means, naive = set(), set()
        for _ in range(20):
            rows = some.rows(rng.permutation(len(some)))

            def exact(entries, rows=rows):
                nonlocal asked
                asked += 1
                return exact_entries(rows, entries), []

            total = FisherSum.of(rows, int(rng.integers(1, 64)))
            means.add(settle(total, None, 0.0, exact)[0, 0])
            naive.add(round_mean(mix(total, None, 0.0))[0, 0])
        assert len(means) == 1
        plain += len(naive) > 1
    assert asked > 300
    assert plain > 5


def test_settling_asks_for_nothing_where_nothing_is_near():
    some = features(np.random.default_rng(0), 500, 8, 4)

    def never(entries):
        raise AssertionError

    total, memory = FisherSum.of(some), FisherSum.of(some.rows(slice(0, 20)))
    np.testing.assert_array_equal(settle(total, memory, 0.3, never), round_mean(mix(total, memory, 0.3)))
    zero = Features(np.zeros((4, 3)), np.full((4, 2), 0.5))
    assert (settle(FisherSum.of(zero), None, 0.0, never) == 0).all()


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_pool_on_the_edge_gives_one_answer_in_memory_and_on_disk(tmp_path, monkeypatch, on_disk):
    """As if every entry were near a boundary: then all are added up exactly, in memory and over shards."""
    monkeypatch.setattr(fisher, "UNIT", 2.0**-20)
    rng = np.random.default_rng(1)
    pool, memory = features(rng, 300, 6, 4), features(rng, 30, 6, 4)
    given = {"memory": memory, "past": 100}
    expected = select("accuacl", pool=pool, budget=20, **given)
    if on_disk:
        given["memory"] = write(tmp_path / "m.parquet", np.arange(30), memory, 11)
    order = rng.permutation(300)
    told = []
    found = pools.select(
        write(tmp_path / "a.parquet", order, pool.rows(order), 37),
        budget=20,
        engine=Inline(),
        shard_rows=50,
        progress=lambda p: told.append((p.text, p.done, p.total)),
        exclude=[],
        **given,
    )
    np.testing.assert_array_equal(found.ids, expected.indices)
    assert "adding up exactly" in {what for what, _, _ in told}
    assert told[-1][1] == told[-1][2]


@pytest.mark.parametrize("seed", range(60))
def test_rows_that_are_filtered_away_are_far(seed):
    """may_be_below never drops a row whose exact divergence is at most the cut, and drops most of the others."""
    rng = np.random.default_rng(seed)
    some = features(rng, 400, int(rng.integers(1, 40)), int(rng.integers(1, 12)), 10.0 ** rng.uniform(-2, 1), 3)
    target = fisher.Target.of(FisherSum.of(some).mean, int(rng.integers(1, 8)), scaled=bool(rng.random() < 0.7))
    exact = fisher.distribution(some, target)
    for cut in (-np.inf, 0.0, *np.quantile(exact, [0.01, 0.2, 0.9]), np.inf):
        rows = may_be_below(some, target, cut)
        assert set(np.flatnonzero(exact <= cut)) <= set(rows)


def test_the_filter_is_tight_enough_to_be_of_use():
    some = features(np.random.default_rng(0), 5000, 64, 20, 0.5)
    target = fisher.Target.of(FisherSum.of(some).mean, 5)
    cut = np.quantile(fisher.distribution(some, target), 0.01)
    assert len(may_be_below(some, target, cut)) < 400
