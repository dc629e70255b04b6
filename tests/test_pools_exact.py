"""A pool on disk gives the picks of the same pool in memory, however it is stored and shared out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from accuacl import Features, pools, select, strategy_names
from accuacl.engines import Local
from accuacl.pools import Columns, RowGroup, write_pool
from accuacl.pools.pool import Layout, Pool
from accuacl.strategies import REGISTRY, RowStrategy
from effort import LONG, examples
from pool_files import Inline, table, write
from problems import features, random_problem

VARIANTS = [(name, variant) for name in strategy_names() for variant in ("released", "paper") if "accuacl" in name] + [
    (name, None) for name in strategy_names() if "accuacl" not in name
]


def same(disk, memory, ids):
    """The same picks in the same order, with the same scores to the last bit."""
    np.testing.assert_array_equal(disk.ids, ids[memory.indices])
    assert disk.scores.keys() == memory.scores.keys()
    for name, scores in memory.scores.items():
        np.testing.assert_array_equal(disk.scores[name], scores)


def ids_for(rng, kind, n):
    """Distinct ids in the order that decides ties."""
    if kind == "row numbers":
        return np.arange(n)
    if kind == "numbers":
        return np.sort(rng.choice(10**9, n, replace=False) - 5 * 10**8)
    words = {"".join(rng.choice(list("abé日𝄞z"), int(rng.integers(0, 12)))) + f"{i}" for i in range(n)}
    out = np.empty(n, object)
    out[:] = sorted(words, key=str.encode)
    return out


@given(seed=st.integers(0, 10**6), data=st.data())
@examples(8, 40)
@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_equal_to_memory(name, variant, seed, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    problem, rng = random_problem(seed, largest_scale=30, most=120), np.random.default_rng(seed)
    pool, n = problem.pool, len(problem.pool)
    if data.draw(st.booleans(), "float16"):
        pool = Features(pool.embeddings.astype(np.float16), pool.probabilities.astype(np.float16))
    kind = data.draw(st.sampled_from(["row numbers", "numbers", "text"]), "ids")
    if name in ("uniform", "accuacl+uniform") and kind != "row numbers":
        kind = "row numbers"  # in memory the id is the row number
    ids = ids_for(rng, kind, n)
    order = rng.permutation(n) if data.draw(st.booleans(), "shuffled") else np.arange(n)
    files, type_ = data.draw(st.integers(1, 3), "files"), pa.string() if kind == "text" else pa.int64()
    for i, rows in enumerate(np.array_split(order, files)):
        width = data.draw(st.sampled_from([1, 2, 7, 1000]), "rows in a group")
        write(folder / f"{i}.parquet", pa.array(ids[rows].tolist(), type_), pool.rows(rows), width)
    if data.draw(st.booleans(), "an empty file"):
        write(folder / "empty.parquet", pa.array([], type_), pool.rows(order[:0]))
    options = {"variant": variant} if variant else {}
    if variant and data.draw(st.booleans(), "options"):
        options |= {"keep": int(rng.integers(1, 9)), "lam": float(rng.random()), "total_classes": 2 * pool.K}
    given = {"labelled": problem.labelled, "memory": problem.memory, "past": int(rng.integers(0, 1000))}
    expected = select(name, pool=pool, budget=problem.budget, seed=seed, **given, **options)
    if len(problem.memory) and data.draw(st.booleans(), "memory on disk"):
        memory = write(
            tmp_path_factory.mktemp("memory") / "m.parquet", np.zeros(len(problem.memory)), problem.memory, 5
        )
        given["memory"] = memory
    found = pools.select(
        folder,
        name,
        budget=problem.budget,
        seed=seed,
        engine=Inline(seed),
        shard_rows=data.draw(st.sampled_from([1, 10, 50, 10**6]), "rows in a shard"),
        **given,
        **options,
    )
    same(found, expected, ids)
    assert found.rows == n


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    return features(rng, 3000, 16, 6, 0.5), features(rng, 40, 16, 6, 0.5)


@pytest.fixture(scope="module")
def folder(problem, tmp_path_factory):
    """Shuffled, in several files."""
    place = tmp_path_factory.mktemp("pool")
    for i, rows in enumerate(np.array_split(np.random.default_rng(0).permutation(3000), 3)):
        write(place / f"{i}.parquet", rows, problem[0].rows(rows), 300)
    return place


@pytest.mark.parametrize("workers", [1, 2] if LONG else [2])
def test_processes_and_their_number_do_not_matter(problem, folder, workers):
    with Local(workers) as engine:
        for name in [name for name in strategy_names() if isinstance(REGISTRY[name], RowStrategy)]:
            expected = select(name, pool=problem[0], budget=77, memory=problem[1], past=9000, seed=5)
            found = pools.select(
                folder, name, budget=77, memory=problem[1], past=9000, seed=5, engine=engine, shard_rows=700
            )
            same(found, expected, np.arange(3000))


def test_ways_to_name_a_pool(problem, folder, monkeypatch):
    expected = select("margin", pool=problem[0], budget=9)
    files = sorted(str(file) for file in folder.iterdir())
    (folder / "_not_data.parquet").write_text("")
    for source in (folder, f"{folder}/[0-9].parquet", files, [files[2], *files], pyarrow.dataset.dataset(files)):
        same(pools.select(source, "margin", budget=9, engine=Inline()), expected, np.arange(3000))
    monkeypatch.chdir(folder)
    same(pools.select("[0-9].parquet", "margin", budget=9, engine=Inline()), expected, np.arange(3000))


def test_other_column_names_lists_and_number_types(problem, tmp_path):
    some = problem[0].rows(slice(0, 200))
    expected = select("accuacl", pool=some, budget=9)
    columns = pools.Columns("key", "h", "softmax")
    for i, kind in enumerate((pa.int8(), pa.uint64(), pa.large_string())):
        ids = pa.array(range(100, 300) if i else range(-100, 100)).cast(kind)
        whole = table(ids, some, "list").rename_columns(["key", "h", "softmax"])
        pq.write_table(whole, tmp_path / f"{i}.parquet", row_group_size=30)
        found = pools.select(tmp_path / f"{i}.parquet", budget=9, columns=columns, engine=Inline())
        same(found, expected, np.array(ids.to_pylist(), object if i == 2 else np.int64))


@pytest.mark.parametrize("name", ["accuacl", "uniform", "kcenter"])
@pytest.mark.parametrize("kind", ["large_string", "string_view", "dictionary", "dictionary of large_string"])
def test_every_type_of_text_is_text(problem, tmp_path, name, kind):
    some, words = problem[0].rows(slice(0, 200)), pa.array([f"{'é' * (i % 5)}{i}" for i in range(200)])
    if "large_string" in kind:
        ids = words.cast(pa.large_string())
    else:
        ids = words.cast(pa.string_view()) if kind == "string_view" else words
    ids = ids.dictionary_encode() if "dictionary" in kind else ids
    options = {"budget": 9, "engine": Inline(), "exclude": ["0", "éé7"], "shard_rows": 50}
    expected = pools.select(write(tmp_path / "plain.parquet", words, some, 30), name, **options)
    found = pools.select(write(tmp_path / "other.parquet", ids, some, 30), name, **options)
    assert (found.ids.tolist(), found.excluded) == (expected.ids.tolist(), 2)
    for score in expected.scores:
        np.testing.assert_array_equal(found.scores[score], expected.scores[score])


def test_a_missing_or_repeated_id_in_a_dictionary_is_named(problem, tmp_path):
    words = [f"a{i}" for i in range(100)]
    for wrong, says in ((None, r"row group 1, row 42 has no id"), ("a7", r"id 'a7' occurs twice: .*row 7, .*row 42")):
        ids = pa.array([*words[:42], wrong, *words[43:]]).dictionary_encode()
        pool = write(tmp_path / "a.parquet", ids, problem[0].rows(slice(0, 100)), 30)
        with pytest.raises(ValueError, match=says):
            pools.select(pool, "margin", budget=3, engine=Inline())


def test_rows_left_out_count_as_labelled(problem, folder, tmp_path):
    pool, memory = problem
    gone = np.random.default_rng(1).choice(3000, 500, replace=False)
    left = np.setdiff1d(np.arange(3000), gone)
    for name in ("accuacl", "entropy", "kcenter"):
        expected = select(
            name, pool=pool.rows(left), budget=30, labelled=pool.rows(np.sort(gone)), memory=memory, past=5000
        )
        for exclude in (gone.tolist(), [str(i) for i in gone], [*gone.tolist(), 10**7]):
            found = pools.select(
                folder, name, budget=30, exclude=exclude, memory=memory, past=5000, engine=Inline(), shard_rows=400
            )
            same(found, expected, left)
            assert (found.rows, found.excluded, found.unknown) == (2500, 500, len(exclude) - 500)
    words = write(tmp_path / "words.parquet", [f"a{i:04}" for i in range(3000)], pool)
    found = pools.select(words, "margin", budget=30, exclude=[f"a{i:04}" for i in gone], engine=Inline())
    expected = select("margin", pool=pool.rows(left), budget=30)
    same(found, expected, np.array([f"a{i:04}" for i in left], object))


def test_uniform_of_text_is_spread_evenly_and_does_not_depend_on_the_files(problem, tmp_path):
    ids = [f"{'x' * (i % 20)}{i}" for i in range(3000)]
    picks = []
    for rows in (100, 3000):
        pool = write(tmp_path / f"{rows}.parquet", ids, problem[0], rows)
        picks.append(
            [pools.select(pool, "uniform", budget=300, seed=s, engine=Inline()).ids.tolist() for s in range(30)]
        )
    assert picks[0] == picks[1]
    where = np.array([[ids.index(id_) for id_ in some] for some in picks[0]])
    counts = np.histogram(where, 10, (0, 3000))[0]
    assert ((counts - 900) ** 2 / 900).sum() < 27.9  # the 99.9 % point of chi-square with 9 degrees
    few = pools.select(pool, "uniform", budget=10, seed=0, engine=Inline()).ids.tolist()
    assert few == picks[0][0][:10]


@pytest.mark.parametrize("name", strategy_names())
def test_budgets_of_nothing_and_of_everything(problem, tmp_path, name):
    pool = write(tmp_path / "a.parquet", np.arange(50), problem[0].rows(slice(0, 50)), 7)
    for budget in (0, 50, 1000):
        expected = select(name, pool=problem[0].rows(slice(0, 50)), budget=budget)
        same(pools.select(pool, name, budget=budget, engine=Inline(), shard_rows=9), expected, np.arange(50))
    empty = write(tmp_path / "empty.parquet", np.arange(0), problem[0].rows(slice(0, 0)))
    assert len(pools.select(empty, name, budget=5, engine=Inline())) == 0
    nobody = pools.select(pool, name, budget=5, exclude=range(50), engine=Inline())
    assert (len(nobody), nobody.rows, nobody.excluded) == (0, 0, 50)


def test_progress_rises_to_the_end(folder):
    told = []
    pools.select(
        folder, budget=9, engine=Inline(), progress=lambda p: told.append((p.text, p.done, p.total)), shard_rows=500
    )
    assert told[-1][1] == told[-1][2] == 3 * 3000  # two passes, and one over the ids, which are in no order
    assert {what for what, _, _ in told} == {"adding up", "checking ids", "scoring"}
    assert all(0 <= done <= total for _, done, total in told)


def test_row_groups_are_joined_to_shards():
    groups = tuple(RowGroup("a", 0, 0, i, 0, rows) for i, rows in enumerate([5, 5, 20, 1, 1, 1]))
    pool = Pool(Layout(Columns(), ("id",)), groups)
    assert [[group.rows for group in shard] for shard in pool.shards(10)] == [[5, 5], [20], [1, 1, 1]]


@pytest.mark.parametrize("strategy", ["kcenter", "badge", "accuacl"])
def test_text_ids_are_left_out_of_every_strategy(tmp_path, strategy):
    rng = np.random.default_rng(0)
    h, p = rng.normal(size=(20, 4)).astype(np.float32), rng.dirichlet(np.ones(3), 20).astype(np.float32)
    for names in ([str(i) for i in range(20)], [f"img{i:02}" for i in range(20)]):
        write_pool(tmp_path / "pool.parquet", names, h, p)
        picked = pools.select(tmp_path / "pool.parquet", strategy, budget=18, exclude=names[3:5], engine=Inline())
        assert (picked.rows, picked.excluded) == (18, 2)
        assert not {*names[3:5]} & {*picked.ids}


def test_many_tiny_row_groups_do_not_fill_a_pipe(tmp_path):
    n = 3000
    rng = np.random.default_rng(0)
    h, p = rng.normal(size=(n, 2)).astype(np.float32), rng.dirichlet(np.ones(2), n).astype(np.float32)
    columns = {"id": pa.array(range(n)), "embedding": pa.array(h.tolist(), pa.list_(pa.float32(), 2))}
    columns["probability"] = pa.array(p.tolist(), pa.list_(pa.float32(), 2))
    pq.write_table(pa.table(columns), tmp_path / "pool.parquet", row_group_size=1)
    picked = pools.select(tmp_path / "pool.parquet", "entropy", budget=5, workers=1)
    assert picked.ids.tolist() == select("entropy", pool=Features(h, p), budget=5).indices.tolist()


@pytest.mark.parametrize("name", strategy_names())
def test_a_pool_of_nothing_whose_lists_could_have_any_length(tmp_path, name):
    kinds = {"id": pa.int64(), "embedding": pa.list_(pa.float32()), "probability": pa.list_(pa.float32())}
    pq.write_table(pa.table([pa.array([], kind) for kind in kinds.values()], names=list(kinds)), tmp_path / "0.parquet")
    assert len(pools.select(tmp_path, name, budget=3, engine=Inline())) == 0


def test_empty_files_and_missing_lists(tmp_path):
    h, p = [[1.0, 2.0], [3.0, 4.0]], [[0.5, 0.5], [0.1, 0.9]]
    kinds = {"id": pa.int64(), "embedding": pa.list_(pa.float32()), "probability": pa.list_(pa.float32())}
    for name, rows in (("0.parquet", ([], [], [])), ("1.parquet", ([1, 2], h, p))):
        arrays = [pa.array(values, kind) for values, kind in zip(rows, kinds.values(), strict=True)]
        pq.write_table(pa.table(arrays, names=list(kinds)), tmp_path / name)
    assert pools.select(tmp_path, "entropy", budget=1, engine=Inline()).ids.tolist() == [1]
    arrays = [pa.array(values, kind) for values, kind in zip(([3, 4], [None, h[0]], p), kinds.values(), strict=True)]
    pq.write_table(pa.table(arrays, names=list(kinds)), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet, row group 0, row 0"):
        pools.select(tmp_path, "accuacl", budget=1, engine=Inline())
