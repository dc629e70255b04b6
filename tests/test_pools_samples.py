"""Pools that do not fit into memory: fisher-ratio picks the same from parts, coverage covers a sample if asked to."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl import Features, pools, select
from accuacl.strategies import REGISTRY, Selection, TooLarge
from effort import times
from pool_files import write
from problems import features

RNG = np.random.default_rng(0)
POOL, MEMORY = features(RNG, 400, 6, 4, scale=3), features(RNG, 30, 6, 4)
TEXT = np.array([f"{i:03d}é" for i in range(400)], object)


@pytest.fixture
def too_large(monkeypatch):
    """Nothing fits into memory as a whole."""
    monkeypatch.setattr("accuacl.pools.selecting.bytes_needed", lambda *given: 1 << 60)


def on_disk(folder, ids, pool=POOL, order=None):
    """Two files, in any order of rows."""
    order = np.random.default_rng(1).permutation(len(pool)) if order is None else order
    for name, rows in (("a", order[:150]), ("b", order[150:])):
        write(folder / f"{name}.parquet", ids[rows], pool.rows(rows), 47)
    return str(folder)


@pytest.mark.parametrize("ids", [np.arange(400), TEXT, np.arange(-200, 200) * 10**12], ids=["rows", "text", "numbers"])
@pytest.mark.parametrize("left_out", [(), range(5, 90)])
def test_fisher_ratio_in_parts_picks_what_it_picks_in_memory(ids, left_out, tmp_path, too_large):
    pool, memory = on_disk(tmp_path, ids), write(tmp_path.parent / "memory.parquet", np.arange(30), MEMORY, 7)
    told = []
    got = pools.select(
        pool, "fisher-ratio", budget=60, memory=memory, past=900, exclude=ids[list(left_out)].tolist(), ridge=0.3,
        progress=lambda progress: told.append(progress.share),
    )  # fmt: skip
    left = np.setdiff1d(np.arange(400), left_out)
    known = POOL.rows(np.array(left_out, np.int64)) if len(left_out) else None
    expected = select(
        "fisher-ratio", pool=POOL.rows(left), budget=60, labelled=known, memory=MEMORY, past=900, ridge=0.3
    )
    np.testing.assert_array_equal(got.ids, ids[left[expected.indices]])
    np.testing.assert_allclose(got.scores["gain"], expected.scores["gain"], rtol=1e-9)
    assert (got.rows, got.excluded) == (400 - len(left_out), len(left_out))
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize("name", ["coverage", "uncertain-coverage"])
@pytest.mark.parametrize("sample", [40, 123, 400, 10**6])
def test_coverage_of_a_sample_is_the_same_in_parts_and_in_memory(name, sample, tmp_path, too_large):
    pool = on_disk(tmp_path, np.arange(400))
    got = pools.select(pool, name, budget=30, sample=sample)
    expected = select(name, pool=POOL, budget=30, sample=sample)
    np.testing.assert_array_equal(got.ids, expected.indices)
    np.testing.assert_array_equal(got.scores["gain"], expected.scores["gain"])


@pytest.mark.parametrize("ids", [TEXT, np.arange(-200, 200) * 10**12], ids=["text", "numbers"])
@pytest.mark.parametrize("left_out", [0, 90])
@pytest.mark.parametrize("sample", [60, 350, 400])
def test_the_picks_of_a_sample_do_not_depend_on_the_memory_that_is_free(ids, left_out, sample, tmp_path, monkeypatch):
    pool, given = on_disk(tmp_path, ids), {"exclude": ids[:left_out].tolist(), "sample": sample}
    roomy = pools.select(pool, "coverage", budget=30, **given)
    monkeypatch.setattr("accuacl.pools.selecting.bytes_needed", lambda *sizes: 1 << 60)
    narrow = pools.select(pool, "coverage", budget=30, **given)
    np.testing.assert_array_equal(roomy.ids, narrow.ids)
    np.testing.assert_array_equal(roomy.scores["gain"], narrow.scores["gain"])
    assert (roomy.rows, roomy.excluded) == (narrow.rows, narrow.excluded) == (400 - left_out, left_out)


def test_a_sample_that_is_no_number_is_refused(tmp_path):
    pool = write(tmp_path / "a.parquet", np.arange(400), POOL, 100)
    with pytest.raises(ValueError, match="sample is 'many'; give a whole number of at least 1"):
        pools.select(pool, "coverage", budget=5, sample="many")


def test_a_strategy_of_ones_own_may_mean_something_else_by_a_sample(tmp_path, monkeypatch):
    def mine(query, *, sample=0.5):
        return Selection(np.arange(int(query.count * sample)), {})

    monkeypatch.setitem(REGISTRY, "mine", mine)
    with pytest.raises(ValueError, match=r"mine .*picked 1 rows; pick query\.count of them, here 4"):  # it was asked
        pools.select(write(tmp_path / "a.parquet", np.arange(400), POOL, 100), "mine", budget=4, sample=0.25)


def test_fisher_ratio_in_parts_looks_at_no_uncertainty_where_that_of_rows_of_zeros_is_all(tmp_path, too_large):
    h, p = POOL.embeddings.copy(), np.eye(4, dtype=np.float32)[np.arange(400) % 4]
    h[::7], p[::7] = 0, 0.25
    pool = Features(h, p)
    got = pools.select(on_disk(tmp_path, np.arange(400), pool), "fisher-ratio", budget=20)
    expected = select("fisher-ratio", pool=pool, budget=20)
    np.testing.assert_array_equal(got.ids, expected.indices)
    assert expected.scores["gain"].min() > 0
    np.testing.assert_array_equal(
        expected.indices, select("fisher-ratio", pool=pool, budget=20, uncertainty=False).indices
    )


@pytest.mark.parametrize("seed", range(times(10, 50)))
def test_coverage_of_a_sample_is_coverage_of_these_rows(seed):
    rng = np.random.default_rng(seed)
    pool, known = features(rng, 200, 5, 3), features(rng, 9, 5, 3)
    got = select("coverage", pool=pool, budget=20, labelled=known, sample=80)
    in_sample = np.sort(select("coverage", pool=pool, budget=80, sample=80).indices)
    expected = select("coverage", pool=pool.rows(in_sample), budget=20, labelled=known)
    np.testing.assert_array_equal(got.indices, in_sample[expected.indices])
    np.testing.assert_allclose(got.scores["gain"], expected.scores["gain"] * 200 / 80, rtol=1e-12)


def test_rows_left_out_are_covered_and_not_picked(tmp_path, too_large):
    pool = on_disk(tmp_path, TEXT)
    got = pools.select(pool, "coverage", budget=300, sample=400, exclude=TEXT[:100].tolist())
    expected = select("coverage", pool=POOL.rows(slice(100, None)), budget=300, labelled=POOL.rows(slice(0, 100)))
    np.testing.assert_array_equal(got.ids, TEXT[100:][expected.indices])
    np.testing.assert_array_equal(got.scores["gain"], expected.scores["gain"])


@pytest.mark.parametrize(("name", "options"), [("fisher-ratio", {}), ("coverage", {"sample": 50})])
def test_bad_rows_and_repeated_ids_are_named(name, options, tmp_path, too_large):
    h = POOL.embeddings.copy()
    h[333, 2] = np.nan
    bad = write(tmp_path / "bad.parquet", np.arange(400), Features.trusted(h, POOL.probabilities), 100)
    with pytest.raises(ValueError, match=r"bad\.parquet, row group 3, row 333: embeddings: column 2 is nan"):
        pools.select(bad, name, budget=5, **options)
    twice = write(tmp_path / "twice.parquet", np.append(np.arange(399), 7), POOL, 100)
    with pytest.raises(ValueError, match="id 7 occurs twice"):
        pools.select(twice, name, budget=5, **options)


@pytest.mark.parametrize(("name", "options"), [("fisher-ratio", {}), ("coverage", {"sample": 50})])
def test_a_pool_of_nothing(name, options, tmp_path, too_large):
    pool = write(tmp_path / "a.parquet", np.arange(0), POOL.rows(slice(0, 0)))
    assert len(pools.select(pool, name, budget=5, **options)) == 0


def test_what_does_not_fit_is_refused_and_a_sample_proposed(tmp_path):
    pool = write(tmp_path / "a.parquet", np.arange(400), POOL, 100)
    with pytest.raises(
        TooLarge, match=r"coverage needs the whole pool at once: [\d,]+ bytes.* small --sample"
    ) as error:
        pools.select(pool, "coverage", budget=5, memory_limit=100_000)
    assert error.value.bytes > 100_000
    assert len(pools.select(pool, "coverage", budget=5, memory_limit=100_000, sample=20)) == 5
    with pytest.raises(TooLarge, match=r"coverage needs [\d,]+ bytes for 400 rows"):
        pools.select(pool, "coverage", budget=5, memory_limit=100_000, sample=200)
    with pytest.raises(TooLarge, match=r"fisher-ratio needs [\d,]+ bytes for 400 rows"):
        pools.select(pool, "fisher-ratio", budget=5, memory_limit=100_000)


def test_a_sample_smaller_than_the_budget_is_refused():
    with pytest.raises(ValueError, match="sample is 10, but 20 are to be picked from it; give several times as many"):
        select("coverage", pool=POOL, budget=20, sample=10)
    with pytest.raises(ValueError, match="sample is 0; give a whole number"):
        select("coverage", pool=POOL, budget=20, sample=0)
