"""What goes wrong over a pool on disk: retried, or refused with the file, row group and row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accuacl import Features, pools, select
from accuacl.engines import Local
from accuacl.pools import passes, write_pool
from accuacl.strategies import TooLarge
from engine_items import always_dies
from pool_files import Inline, lists, table, write
from problems import features

resource = pytest.importorskip("resource", reason="Windows has none")
pytestmark = pytest.mark.posix

RNG = np.random.default_rng(0)
POOL = features(RNG, 400, 6, 4)
IDS = np.arange(400)


class Deadly(Local):
    """Whatever its workers are given, they are killed by it."""

    def map(self, function, items, on_progress=None):
        return super().map(always_dies, items, on_progress)


def ask(pool, strategy="accuacl", **options):
    return pools.select(pool, strategy, **({"budget": 10, "engine": Inline()} | options))


def refused(pool, says, strategy="accuacl", **options):
    with pytest.raises(ValueError, match=says) as error:
        ask(pool, strategy, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_worker_killed_in_the_middle_of_a_scan_is_replaced(tmp_path):
    pool = write(tmp_path / "a.parquet", IDS, POOL, 20)
    expected = select("accuacl", pool=POOL, budget=10)
    killed = []
    with Local(2) as engine:

        def kill(rows):
            if rows.done > 100 * len(killed) and len(killed) < 3 and engine._processes:
                killed.append(engine._processes[0].process.pid)
                os.kill(killed[-1], signal.SIGKILL)

        found = ask(pool, engine=engine, shard_rows=20, progress=kill)
    assert len(killed) == 3
    np.testing.assert_array_equal(found.ids, expected.indices)


def test_a_scan_that_kills_its_workers_is_given_up_with_its_place(tmp_path):
    pool = write(tmp_path / "a.parquet", IDS, POOL, 100)
    with Deadly(1) as engine:
        refused(pool, r"a\.parquet, row group \d: its process died 3 times", engine=engine)


def test_not_a_parquet_file_and_a_cut_one(tmp_path):
    pool = write(tmp_path / "a.parquet", IDS, POOL, 100)
    (tmp_path / "b.parquet").write_bytes(Path(pool).read_bytes()[:-50])
    refused(tmp_path, r"b\.parquet is not a readable Parquet file \(.*\); write it again")
    (tmp_path / "b.parquet").write_text("hello")
    refused(tmp_path, r"b\.parquet is not a readable Parquet file")


def test_a_damaged_page_is_named(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(table(IDS, POOL), file, row_group_size=100, compression="zstd", use_dictionary=False)
    start = pq.ParquetFile(file).metadata.row_group(2).column(1).data_page_offset
    data = bytearray(file.read_bytes())
    data[start + 60 : start + 400] = bytes(340)
    file.write_bytes(data)
    refused(file, r"a\.parquet, row group 2 cannot be read \(")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (features(RNG, 50, 7, 4), r"b\.parquet has .*embeddings of 7 float32.*, but .*a\.parquet has .*of 6 float32"),
        (features(RNG, 50, 6, 3), r"b\.parquet has .*probabilities of 3 float32, but .*probabilities of 4 float32"),
        (
            Features(POOL.embeddings.astype(np.float16), POOL.probabilities),
            r"b\.parquet has .*6 float16, .*but .*6 float32",
        ),
    ],
)
def test_a_file_unlike_the_first(tmp_path, other, says):
    write(tmp_path / "a.parquet", IDS, POOL)
    write(tmp_path / "b.parquet", 1000 + np.arange(len(other)), other)
    refused(tmp_path, says)


def test_columns_of_another_type_or_none(tmp_path):
    write(tmp_path / "a.parquet", IDS, POOL)
    file = tmp_path / "b.parquet"
    whole = table(IDS + 1000, POOL)
    pq.write_table(whole.set_column(0, "id", pa.array([f"{i}" for i in IDS])), file)
    refused(tmp_path, r"b\.parquet has ids of text, .* has ids of numbers")
    pq.write_table(whole.set_column(0, "id", pa.array(IDS.astype(float))), file)
    refused(tmp_path, r"b\.parquet: id holds double; give whole numbers or text")
    pq.write_table(whole.set_column(1, "embedding", pa.array(IDS)), file)
    refused(tmp_path, r"b\.parquet: embedding holds int64; give lists of float32 or float16, all of one length")
    pq.write_table(whole.drop_columns("probability"), file)
    refused(tmp_path, r"b\.parquet has no column 'probability' \(columns: id, embedding\); say which")
    assert len(ask(file, "uniform")) == 10  # which needs ids alone


def test_lists_of_several_lengths(tmp_path):
    ragged = pa.array([[1.0] * 6] * 150 + [[1.0] * 5] + [[1.0] * 6] * 249, pa.list_(pa.float32()))
    whole = table(IDS, POOL).set_column(1, "embedding", ragged)
    pq.write_table(whole, tmp_path / "a.parquet", row_group_size=100)
    refused(tmp_path, r"a\.parquet, row group 1, row 150: its embedding has 5 numbers where 6 were expected")


@pytest.mark.parametrize("strategy", ["accuacl", "kcenter"])
@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("embedding", np.nan, r"row group 2, row 234: embeddings: column 1 is nan; all must be finite"),
        ("embedding", -np.inf, r"row group 2, row 234: embeddings: column 1 is -inf"),
        ("probability", np.nan, r"row group 2, row 234: probabilities: column 1 is nan; the model"),
        ("probability", 0.9, r"row group 2, row 234: probabilities: sums to .*, not to 1; give softmax outputs"),
        ("probability", -0.1, r"row group 2, row 234: probabilities: column 1 is -0.1, not in \[0, 1\]"),
    ],
)
def test_a_bad_number_is_named(tmp_path, strategy, column, value, says):
    h, p = POOL.embeddings.copy(), POOL.probabilities.copy()
    (h if column == "embedding" else p)[234, 1] = value
    bad = Features.trusted(h, p)
    write(tmp_path / "a.parquet", IDS - 1000, POOL)
    write(tmp_path / "b.parquet", IDS, bad, 100)
    if column == "probability" and strategy == "kcenter":
        assert len(ask(tmp_path, strategy)) == 10  # it does not look at probabilities
    else:
        refused(tmp_path, rf"b\.parquet, {says}", strategy)
    if column == "probability":
        refused(tmp_path, rf"b\.parquet, {says}", "margin")
    else:
        assert len(ask(tmp_path, "margin")) == 10  # it does not look at embeddings


def test_nan_in_row_7654321(tmp_path):
    n = 7_700_000
    h = np.ones((n, 1), np.float32)
    h[7_654_321] = np.nan
    write_pool(tmp_path / "a.parquet", np.arange(n), h, np.ones((n, 1), np.float32))
    refused(tmp_path, r"a\.parquet, row group 116, row 7654321: embeddings: column 0 is nan")


@pytest.mark.parametrize("column", ["id", "embedding", "probability"])
def test_missing_values_are_named(tmp_path, column):
    whole = table(IDS, POOL)
    values = whole.column(column).to_pylist()
    values[321] = None
    place = whole.schema.get_field_index(column)
    whole = whole.set_column(place, column, pa.array(values, whole.schema.field(place).type))
    pq.write_table(whole, tmp_path / "a.parquet", row_group_size=100)
    refused(tmp_path, rf"a\.parquet, row group 3, row 321 has no {column}; fill it in or drop the row")
    if column != "id":
        values[321] = [None, *values[0][1:]]
        whole = whole.set_column(place, column, pa.array(values, whole.schema.field(place).type))
        pq.write_table(whole, tmp_path / "a.parquet", row_group_size=100)
        refused(tmp_path, rf"a\.parquet, row group 3, row 321: its {column} has a missing number")


@pytest.mark.parametrize("strategy", ["accuacl", "uniform", "entropy", "kcenter"])
@pytest.mark.parametrize("kind", ["in order", "shuffled", "text"])
@pytest.mark.parametrize("rows", [(17, 18), (17, 350)])
def test_ids_that_come_twice(tmp_path, monkeypatch, strategy, kind, rows):
    monkeypatch.setattr(passes, "PART_BYTES", 300)  # several parts
    ids = IDS.copy() if kind == "in order" else RNG.permutation(400)
    ids[rows[1]] = ids[rows[0]]
    names = [f"image-{'x' * (i % 11)}{i}.jpg" for i in ids] if kind == "text" else ids.tolist()
    pool = write(tmp_path / "a.parquet", names, POOL, 100)
    places = [rf"a\.parquet, row group {row // 100}, row {row}" for row in rows]
    refused(
        pool,
        rf"id {names[rows[0]]!r} occurs twice: .*{places[0]}, and .*{places[1]}; give every",
        strategy,
        shard_rows=150,
    )
    assert len(ask(pool, strategy, trust_ids=True)) == 10


def test_keys_that_are_equal_by_chance_are_no_fault(tmp_path, monkeypatch):
    from accuacl.pools import ids

    monkeypatch.setattr(passes, "SUSPECTS", 7)
    keys = ids.keys
    pool = write(tmp_path / "a.parquet", [f"{i}" for i in RNG.permutation(400)], POOL, 100)
    expected = ask(pool, "margin").ids.tolist()
    monkeypatch.setattr(ids, "keys", lambda column: keys(column) % np.uint64(64))
    assert ask(pool, "margin").ids.tolist() == expected


def test_ids_beyond_int64(tmp_path):
    pool = write(tmp_path / "a.parquet", pa.array([*range(399), 2**63], pa.uint64()), POOL, 100)
    refused(pool, r"a\.parquet, row group 3, row 399: id 9223372036854775808 does not fit into int64")


def test_a_file_that_changes_on_the_way(tmp_path):
    pool = write(tmp_path / "a.parquet", IDS, POOL, 100)

    def change(rows):
        if rows.done == 400:
            write(tmp_path / "a.parquet", IDS, POOL, 99)

    refused(pool, r"a\.parquet was changed while it was being read", progress=change)


def test_strategies_that_need_everything_say_how_much(tmp_path):
    pool = write(tmp_path / "a.parquet", IDS, POOL, 100)
    for name in ("kcenter", "kcenter+memory", "badge", "badge+memory", "bait"):
        with pytest.raises(
            TooLarge, match=rf"{name.replace('+', '.')} needs the whole pool at once: [\d,]+ bytes for 400 rows"
        ) as error:
            ask(pool, name, memory_limit=1000)
        assert error.value.bytes > 400 * 40
        assert len(ask(pool, name, memory_limit=error.value.bytes)) == 10


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"budget": -1}, "budget is -1; give a whole number"),
        ({"strategy": "accuacle"}, "there is no strategy 'accuacle'; did you mean accuacl?"),
        ({"strategy": "entropy", "lam": 0.5}, "entropy has no option 'lam'; it has no options"),
        ({"memory": POOL}, "memory was given without past or lam"),
        ({"memory": features(RNG, 9, 5, 4), "past": 1}, "6 numbers and 4 classes, but memory has 5 and 4"),
        ({"labelled": features(RNG, 9, 6, 3)}, "6 numbers and 4 classes, but labelled has 6 and 3"),
        ({"exclude": ["a"]}, "'a' is to be left out, but the pool's ids are whole numbers"),
        ({"exclude": [2**70]}, "is to be left out, but the pool's ids are whole numbers"),
        ({"variant": "new"}, "variant is 'new'; give 'released' or 'paper'"),
        ({"oversample": 0.2}, "oversample is 0.2"),
        ({"total_classes": 2}, "total_classes is 2; give a whole number of at least 4"),
        ({"shard_rows": 0}, "shard_rows is 0"),
        ({"engine": "spark"}, "there is no engine 'spark'"),
        ({"memory_limit": -1, "strategy": "badge"}, "memory_limit is -1"),
        ({"memory": "nowhere.parquet", "past": 1}, "memory: there is no file or folder nowhere.parquet"),
    ],
)
def test_wrong_input(tmp_path, options, says):
    refused(write(tmp_path / "a.parquet", IDS, POOL), says, options.pop("strategy", "accuacl"), **options)


def test_no_pool(tmp_path):
    refused(tmp_path / "a.parquet", r"pool: there is no file or folder .*a\.parquet; give one, or a pattern")
    refused(tmp_path, r"pool: .* holds no Parquet files; give a file, a folder or a pattern")
    refused(f"{tmp_path}/*.parquet", "holds no Parquet files")
    refused(7, "pool is an int; give a path, several, or a pyarrow dataset")
    refused(np.ones((3, 2)), "pool is an ndarray; give a path, several, or a pyarrow dataset.")
    for name in ("memory", "labelled"):
        says = rf"{name} is an ndarray; give a path, several, or a pyarrow dataset, or Features\("
        refused(write(tmp_path / "a.parquet", IDS, POOL), says, **{name: np.ones((3, 2))})


def limited(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where no file may grow beyond 4 KiB, as if the disk were full."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    return subprocess.run(
        [sys.executable, "-c", code, *arguments], preexec_fn=limit, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_disk_that_fills_leaves_the_old_picks_or_none(tmp_path, ending):
    code = (
        "import sys, numpy as np\nfrom pathlib import Path\nfrom accuacl.pools import Picked, write_picks\n"
        "r = np.random.default_rng(0)\n"
        "write_picks(Path(sys.argv[1]), Picked(r.integers(0, 2**60, 5000), {'draw': r.random(5000)}, 5000, 0))\n"
    )
    out = tmp_path / f"picked.{ending}"
    done = limited(code, str(out))
    assert "cannot be written: file too large; fix that" in done.stderr
    assert list(tmp_path.iterdir()) == []
    out.write_text("older")
    limited(code, str(out))
    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(out, "older")]


def test_a_full_disk_leaves_no_half_of_a_pool(tmp_path):
    code = (
        "import sys, numpy as np\nfrom pathlib import Path\nfrom accuacl.pools import write_pool\n"
        "write_pool(Path(sys.argv[1]), range(5000), np.ones((5000, 2), 'f4'), np.ones((5000, 1), 'f4'))\n"
    )
    done = limited(code, str(tmp_path / "a.parquet"))
    assert "file too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_lists_helper_gives_both_kinds():
    assert lists(np.ones((2, 3)), "list").to_pylist() == lists(np.ones((2, 3))).to_pylist()
