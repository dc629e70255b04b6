"""A row strategy from a user's own file: the same picks from arrays and from Parquet, in workers too; bugs shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accuacl import pools, select
from accuacl.base.userfile import load_file
from accuacl.engines import BugInWorker, Local
from accuacl.strategies import REGISTRY, Context, Ranking, Rows, register, row_strategy
from pool_files import Inline, write
from problems import features, with_copies
from processes import start_command

PLUGIN = '''
from __future__ import annotations

import functools

import numpy as np

from accuacl.base.errors import InputError
from accuacl.strategies import Context, Query, Ranking, Rows, Selection, register, row_strategy


@register("accuacl-mine")  # named so, it must still be given no options of accuacl's
@row_strategy("embedding", "probability")
def mine(context: Context, *, power: int = 2, per_pick: int = 3) -> Ranking:
    """Of the examples with the smallest norms those with the largest probability of the first class."""
    return Ranking(
        exact=functools.partial(norm, power),
        rough=functools.partial(rough_norm, power),
        candidates=functools.partial(candidates, per_pick),
        final=first_class,
        scores=functools.partial(scores, power),
    )


def norm(power: int, rows: Rows) -> np.ndarray:
    return (np.abs(rows.embeddings.astype(np.float64)) ** power).sum(axis=1)


def rough_norm(power: int, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """So rough that many rows must be computed again."""
    value = norm(power, rows)
    return value * 1.01, 0.02 * value


def candidates(per_pick: int, count: int, n: int) -> int:
    return per_pick * count + n // 100


def first_class(rows: Rows) -> np.ndarray:
    return -rows.probabilities[:, 0].astype(np.float64)


def scores(power: int, rows: Rows) -> dict[str, np.ndarray]:
    return {"norm": norm(power, rows), "first": -first_class(rows)}


@register("wrong-shapes")
@row_strategy("probability")
def wrong_shapes(context: Context) -> Ranking:
    return Ranking(exact=three_too_many, scores=three_too_many)


def three_too_many(rows: Rows) -> np.ndarray:
    return rows.probabilities[:, 0] + np.ones(len(rows) + 3)


@register("wrong-shapes-of-sets")
def wrong_shapes_of_sets(query: Query) -> Selection:
    return Selection(np.arange(len(query.pool)) + np.ones(len(query.pool) + 3), {})


@register("picky")
@row_strategy("probability")
def picky(context: Context) -> Ranking:
    return Ranking(exact=refused, scores=refused)


def refused(rows: Rows) -> np.ndarray:
    raise InputError("picky wants at least ten classes; give such a model.")
'''
MINE = ("accuacl-mine", "wrong-shapes", "wrong-shapes-of-sets", "picky")
POOL = with_copies(np.random.default_rng(1), features(np.random.default_rng(0), 900, 5, 4))


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "mine.py"
    path.write_text(PLUGIN)
    load_file(path)
    yield path
    for name in MINE:
        del REGISTRY[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    for i, rows in enumerate(np.array_split(np.random.default_rng(2).permutation(900), 2)):
        write(folder / f"{i}.parquet", rows, POOL.rows(rows), 100)
    return folder


@pytest.mark.parametrize("options", [{}, {"power": 4, "per_pick": 1}])
@pytest.mark.parametrize("budget", [0, 7, 300, 1000])
def test_arrays_and_parquet_give_the_same_picks(plugin, folder, options, budget):
    expected = select("accuacl-mine", pool=POOL, budget=budget, **options)
    found = pools.select(folder, "accuacl-mine", budget=budget, engine=Inline(), shard_rows=150, **options)
    assert found.ids.tolist() == expected.indices.tolist()
    assert found.scores.keys() == {"norm", "first"} == expected.scores.keys()
    for name in found.scores:
        np.testing.assert_array_equal(found.scores[name], expected.scores[name])


def test_rows_left_out_are_no_candidates(plugin, folder):
    gone = np.arange(0, 900, 3)
    left = np.setdiff1d(np.arange(900), gone)
    expected = select("accuacl-mine", pool=POOL.rows(left), budget=20)
    found = pools.select(folder, "accuacl-mine", budget=20, exclude=gone.tolist(), engine=Inline(), shard_rows=150)
    assert found.ids.tolist() == left[expected.indices].tolist()


def test_workers_import_the_file_and_what_goes_wrong_there_is_shown(plugin, folder):
    with Local(2) as engine:
        found = pools.select(folder, "accuacl-mine", budget=20, engine=engine, shard_rows=300)
        assert found.ids.tolist() == select("accuacl-mine", pool=POOL, budget=20).indices.tolist()
        with pytest.raises(ValueError, match=r"^picky wants at least ten classes; give such a model\.$"):
            pools.select(folder, "picky", budget=20, engine=engine)
        with pytest.raises(BugInWorker, match=r"parquet, row group \d: ValueError: operands could not") as bug:
            pools.select(folder, "wrong-shapes", budget=20, engine=engine)
    assert "in three_too_many" in str(bug.value)
    assert "rows.probabilities[:, 0] + np.ones(len(rows) + 3)" in str(bug.value)


def test_one_that_reads_ids_alone(folder):
    @register("last-ids")
    @row_strategy("id")
    def last_ids(context: Context) -> Ranking:
        return Ranking(exact=minus_id, scores=lambda rows: {"id": rows.ids.astype(float)})

    try:
        assert pools.select(folder, "last-ids", budget=3, engine=Inline()).ids.tolist() == [899, 898, 897]
        assert select("last-ids", pool=POOL, budget=3).indices.tolist() == [899, 898, 897]
    finally:
        del REGISTRY["last-ids"]


def test_the_example_of_the_manual(folder, tmp_path):
    manual = (Path(__file__).parents[1] / "docs" / "pools.md").read_text()
    code = next(part for part in manual.split("```python\n")[1:] if "@row_strategy" in part).split("```")[0]
    (tmp_path / "my_strategy.py").write_text(code)
    load_file(tmp_path / "my_strategy.py")
    try:
        expected = select("largest-norm", pool=POOL, budget=9)
        assert pools.select(folder, "largest-norm", budget=9, workers=1).ids.tolist() == expected.indices.tolist()
        assert expected.scores["norm"][0] == pytest.approx(np.linalg.norm(POOL.embeddings, axis=1).max())
    finally:
        del REGISTRY["largest-norm"]


def minus_id(rows: Rows):
    return np.uint64(2**64 - 1) - rows.ids  # numbers that float64 could not tell apart


@pytest.mark.parametrize("strategy", ["wrong-shapes", "wrong-shapes-of-sets"])
def test_the_command_shows_where_a_bug_happened(plugin, folder, tmp_path, strategy):
    """In a worker, and in the process itself."""
    more = ["--strategy", strategy, "--plugin", str(plugin), "--workers", "1", "--budget", "5", "--out", "picked.csv"]
    done = start_command("select", "--pool", folder, *more, cwd=tmp_path).wait()
    assert done.returncode == 1, done.stderr
    assert f'{plugin}", line ' in done.stderr
    assert "operands could not be broadcast together" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_shows_where_a_bug_happened(plugin, tmp_path):
    settings = ["--benchmark", "split-digits", "--scale", "smoke", "--tasks", "1", "--epochs", "1"]
    more = ["--strategy", "wrong-shapes", "--plugin", plugin, "--out", "run"]
    done = start_command("run", *settings, *more, cwd=tmp_path).wait()
    assert done.returncode == 1, done.stderr
    assert f'{plugin}", line ' in done.stderr
    assert "operands could not be broadcast together" in done.stderr
