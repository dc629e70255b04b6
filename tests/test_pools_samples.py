"""Pools that do not fit into memory: coverage of a random sample, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accuacl import Features, pools, select
from accuacl.strategies import REGISTRY, Selection, TooLarge
from effort import times
from pool_files import write
from problems import features

RNG = np.random.default_rng(0)
POOL, MEMORY = features(RNG, 400, 6, 4, scale=3), features(RNG, 30, 6, 4)
TEXT = np.array([f"{i:03d}é" for i in range(400)], object)


def on_disk(folder, ids, pool=POOL, order=None):
    """Two files, in any order of rows."""
    order = np.random.default_rng(1).permutation(len(pool)) if order is None else order
    for name, rows in (("a", order[:150]), ("b", order[150:])):
        write(folder / f"{name}.parquet", ids[rows], pool.rows(rows), 47)
    return str(folder)


@pytest.mark.parametrize("name", ["coverage", "coverage+memory", "uncertain-coverage"])
@pytest.mark.parametrize("sample", [40, 123, 400, 10**6])
def test_coverage_of_a_sample_is_the_same_from_disk_and_in_memory(name, sample, tmp_path):
    pool = on_disk(tmp_path, np.arange(400))
    memory = write(tmp_path.parent / "memory.parquet", np.arange(30), MEMORY, 7)
    got = pools.select(pool, name, budget=30, sample=sample, memory=memory)
    expected = select(name, pool=POOL, budget=30, sample=sample, memory=MEMORY)
    np.testing.assert_array_equal(got.ids, expected.indices)
    np.testing.assert_array_equal(got.scores["gain"], expected.scores["gain"])


@pytest.mark.parametrize("ids", [TEXT, np.arange(-200, 200) * 10**12], ids=["text", "numbers"])
@pytest.mark.parametrize("left_out", [0, 90])
@pytest.mark.parametrize("sample", [60, 350, 400])
def test_the_picks_of_a_sample_do_not_depend_on_order_and_files(ids, left_out, sample, tmp_path):
    given = {"budget": 30, "exclude": ids[:left_out].tolist(), "sample": sample}
    picked = []
    for name, order in (("one", None), ("other", np.arange(400)[::-1])):
        (tmp_path / name).mkdir()
        picked.append(pools.select(on_disk(tmp_path / name, ids, order=order), "coverage", **given))
    np.testing.assert_array_equal(picked[0].ids, picked[1].ids)
    np.testing.assert_array_equal(picked[0].scores["gain"], picked[1].scores["gain"])
    assert {(each.rows, each.excluded) for each in picked} == {(400 - left_out, left_out)}


def test_a_sample_that_is_no_number_is_refused(tmp_path):
    pool = write(tmp_path / "a.parquet", np.arange(400), POOL, 100)
    with pytest.raises(ValueError, match="sample is 'many'; give a whole number of at least 0"):
        pools.select(pool, "coverage", budget=5, sample="many")


def test_a_strategy_of_ones_own_may_mean_something_else_by_a_sample(tmp_path, monkeypatch):
    def mine(query, *, sample=0.5):
        return Selection(np.arange(int(query.count * sample)), {})

    monkeypatch.setitem(REGISTRY, "mine", mine)
    with pytest.raises(ValueError, match=r"mine .*picked 1 rows; pick query\.count of them, here 4"):  # it was asked
        pools.select(write(tmp_path / "a.parquet", np.arange(400), POOL, 100), "mine", budget=4, sample=0.25)


@pytest.mark.parametrize("seed", range(times(10, 50)))
def test_coverage_of_a_sample_is_coverage_of_these_rows(seed):
    rng = np.random.default_rng(seed)
    pool, known = features(rng, 200, 5, 3), features(rng, 9, 5, 3)
    got = select("coverage", pool=pool, budget=20, labelled=known, sample=80)
    in_sample = np.sort(select("coverage", pool=pool, budget=80, sample=80).indices)
    expected = select("coverage", pool=pool.rows(in_sample), budget=20, labelled=known)
    np.testing.assert_array_equal(got.indices, in_sample[expected.indices])
    np.testing.assert_allclose(got.scores["gain"], expected.scores["gain"] * 200 / 80, rtol=1e-12)


def test_rows_left_out_are_covered_and_not_picked(tmp_path):
    pool = on_disk(tmp_path, TEXT)
    got = pools.select(pool, "coverage", budget=300, sample=399, exclude=TEXT[:100].tolist())
    expected = select("coverage", pool=POOL.rows(slice(100, None)), budget=300, labelled=POOL.rows(slice(0, 100)))
    np.testing.assert_array_equal(got.ids, TEXT[100:][expected.indices])
    np.testing.assert_array_equal(got.scores["gain"], expected.scores["gain"])


@pytest.mark.parametrize(("name", "options"), [("fisher-ratio", {}), ("coverage", {"sample": 50})])
def test_bad_rows_and_repeated_ids_are_named(name, options, tmp_path):
    h = POOL.embeddings.copy()
    h[333, 2] = np.nan
    bad = write(tmp_path / "bad.parquet", np.arange(400), Features.trusted(h, POOL.probabilities), 100)
    with pytest.raises(ValueError, match=r"bad\.parquet, row group 3, row 333: embeddings: column 2 is nan"):
        pools.select(bad, name, budget=5, **options)
    twice = write(tmp_path / "twice.parquet", np.append(np.arange(399), 7), POOL, 100)
    with pytest.raises(ValueError, match="id 7 occurs twice"):
        pools.select(twice, name, budget=5, **options)


@pytest.mark.parametrize(("name", "options"), [("fisher-ratio", {}), ("coverage", {"sample": 50})])
def test_a_pool_of_nothing(name, options, tmp_path):
    pool = write(tmp_path / "a.parquet", np.arange(0), POOL.rows(slice(0, 0)))
    assert len(pools.select(pool, name, budget=5, **options)) == 0


def test_what_does_not_fit_is_refused_and_a_sample_proposed(tmp_path):
    pool = write(tmp_path / "a.parquet", np.arange(400), POOL, 100)
    with pytest.raises(
        TooLarge, match=r"coverage needs the whole pool at once: [\d,]+ bytes.* sample represent the pool with --sample"
    ) as error:
        pools.select(pool, "coverage", budget=5, memory_limit=100_000)
    assert error.value.bytes > 100_000
    assert len(pools.select(pool, "coverage", budget=5, memory_limit=100_000, sample=20)) == 5
    with pytest.raises(TooLarge, match=r"coverage needs [\d,]+ bytes for a sample of 200 rows.*; .* or give a smaller"):
        pools.select(pool, "coverage", budget=5, memory_limit=100_000, sample=200)
    with pytest.raises(TooLarge, match=r"fisher-ratio needs the whole pool.*accuacl, or coverage with --sample"):
        pools.select(pool, "fisher-ratio", budget=5, memory_limit=100_000)


def test_a_sample_smaller_than_the_budget_is_refused():
    with pytest.raises(ValueError, match="sample is 10, but 20 are to be picked from it; give several times as many"):
        select("coverage", pool=POOL, budget=20, sample=10)
    with pytest.raises(ValueError, match="sample is -1; give a whole number"):
        select("coverage", pool=POOL, budget=20, sample=-1)


def without_probabilities(path, ids, rows):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel().astype(np.float32)), rows.shape[1])
    pq.write_table(pa.table({"id": ids, "embedding": lists}), path)
    return str(path)


@pytest.mark.parametrize("name", ["coverage", "coverage+memory", "kcenter", "kcenter+memory", "typiclust"])
@pytest.mark.parametrize("options", [{}, {"sample": 50}])
def test_strategies_that_look_at_embeddings_alone_need_no_probabilities(name, options, tmp_path):
    if options and name not in ("coverage", "coverage+memory"):
        return
    rows = POOL.embeddings.astype(np.float32)
    pool = without_probabilities(tmp_path / "pool.parquet", np.arange(400), rows)
    memory = without_probabilities(tmp_path / "memory.parquet", np.arange(30), MEMORY.embeddings)
    expected = select(name, pool=Features(rows, POOL.probabilities), budget=9, memory=MEMORY, **options)
    for given in (memory, MEMORY):
        got = pools.select(pool, name, budget=9, memory=given, exclude=(), **options)
        np.testing.assert_array_equal(got.ids, expected.indices)
    with pytest.raises(ValueError, match="of 6 numbers, but memory has 4;"):
        pools.select(pool, name, budget=9, memory=Features(np.eye(4), np.full((4, 2), 0.5)))
    with pytest.raises(ValueError, match="has no column 'probability'"):
        pools.select(pool, "badge", budget=9)
