"""Parquet that `embed` reads: each row once, in bounded memory, and what is odd about it named by file and row."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accuacl.cli import main
from accuacl.experiments.embed import ReadOptions, open_inputs, parquet_inputs as parquet

NET = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear({inputs}, 5), nn.ReLU(), nn.Linear(5, 3))

def fixes():
    return build(), lambda x: x.nan_to_num()
"""
VECTORS = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


@pytest.fixture
def embed(monkeypatch, capsys, tmp_path):
    """The command on `data` in `tmp_path`; (exit code, what it wrote)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "net.py").write_text(NET.format(inputs=4))
    (tmp_path / "data").mkdir()

    def run(*arguments, data="data", model="net.py:build"):
        given = ["--data", data, "--model", model, "--out", "pool", *arguments]
        monkeypatch.setattr(sys, "argv", ["accuacl", "embed", *map(str, given)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return end.value.code or 0, (said.out + said.err).strip()

    return run


@pytest.fixture
def counted(monkeypatch):
    """How many rows each batch had that was read."""
    seen = []

    def read(*arguments):
        for batch in real(*arguments):
            seen.append(len(batch))
            yield batch

    real = parquet.read
    monkeypatch.setattr(parquet, "read", read)
    return seen


def png(i, side=2):
    out = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), i, np.uint8)).save(out, "png")
    return out.getvalue()


def pool(folder):
    whole = pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet")))
    return whole.column("id").to_pylist(), np.array(whole.column("embedding").to_pylist())


def test_a_large_row_group_is_read_once(embed, counted, tmp_path):
    n = 3000
    pq.write_table(pa.table({"vector": list(np.ones((n, 4), np.float32))}), tmp_path / "data" / "a.parquet")
    assert embed("--shard-rows", 100, "--batch", 10)[0] == 0
    assert sum(counted) <= n + 2 * parquet.READ_ROWS  # and a look at the first rows
    counted.clear()
    (tmp_path / "pool" / "000025.parquet").unlink()  # it goes on in the middle of the row group
    assert embed("--shard-rows", 100, "--batch", 10)[0] == 0
    assert sum(counted) <= n + parquet.READ_ROWS
    assert pool(tmp_path / "pool")[0] == list(range(n))


def test_parts_of_any_kind_are_what_is_there(tmp_path):
    rng = np.random.default_rng(1)
    vectors, first = rng.normal(size=(700, 3)).astype(np.float32), 0
    for i, (rows, group) in enumerate([(0, 1), (300, 7), (1, 1), (399, 400)]):
        part = pa.table(
            {"id": [f"k{first + j}" for j in range(rows)], "vector": vectors[first : first + rows].tolist()}
        )
        pq.write_table(part, tmp_path / f"{i}.parquet", row_group_size=group)
        first += rows
    inputs = open_inputs(str(tmp_path), ReadOptions())
    assert len(inputs) == 700
    at = 0
    for _ in range(300):  # most go on where the last one ended
        at = int(rng.integers(700)) if rng.random() < 0.3 or at == 700 else at
        stop = int(rng.integers(at + 1, 701))
        ids, found = inputs.read(at, stop)
        assert ids == [f"k{i}" for i in range(at, stop)]
        np.testing.assert_array_equal(found, vectors[at:stop])
        at = stop
    assert inputs.where(0).endswith("1.parquet, row group 0, row 0")
    assert inputs.where(299).endswith("1.parquet, row group 42, row 299")
    assert inputs.where(310).endswith("3.parquet, row group 0, row 9")


def test_large_images_are_read_a_few_at_a_time(tmp_path, counted, monkeypatch):
    noise = [np.random.default_rng(i).integers(0, 256, (32, 32, 3), np.uint8) for i in range(40)]
    encoded = []
    for pixels in noise:
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "png")
        encoded.append({"bytes": out.getvalue(), "path": None})
    pq.write_table(pa.table({"image": encoded}), tmp_path / "a.parquet")
    monkeypatch.setattr(parquet, "READ_BYTES", 10 * max(len(one["bytes"]) for one in encoded))
    inputs = open_inputs(str(tmp_path / "a.parquet"), ReadOptions())
    np.testing.assert_array_equal(inputs.read(0, 40)[1], np.stack(noise))
    assert max(counted) <= 10
    assert sum(counted) == 40


def test_a_stretch_of_bad_images_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "READ_ROWS", 4)
    images = [b"no"] * 5 + [png(i) for i in range(5, 9)] + [None] * 5 + [png(i) for i in range(14, 20)]
    pq.write_table(pa.table({"image": images}), tmp_path / "a.parquet")
    ids, pixels = open_inputs(str(tmp_path / "a.parquet"), ReadOptions(skip_bad=True)).read(0, 20)
    assert ids == [*range(5, 9), *range(14, 20)]
    assert pixels[:, 0, 0, 0].tolist() == ids
    with pytest.raises(ValueError, match=r"a\.parquet, row group 0, row 9 is not a readable image \(the row has no"):
        open_inputs(str(tmp_path / "a.parquet"), ReadOptions()).read(9, 10)


@pytest.mark.parametrize("first", [2, 5])
def test_bad_images_at_the_beginning_with_ones_own_model(embed, tmp_path, first):
    (tmp_path / "net.py").write_text(NET.format(inputs=12))
    images = [b"no"] * first + [png(i) for i in range(first, 9)]
    pq.write_table(pa.table({"image": images}), tmp_path / "data" / "a.parquet")
    code, said = embed("--skip-bad")
    assert code == 0, said
    assert pool(tmp_path / "pool")[0] == list(range(first, 9))
    pq.write_table(pa.table({"image": [b"no"] * 4}), tmp_path / "data" / "a.parquet")
    code, said = embed("--skip-bad", "--fresh")
    assert (code, said) == (2, "accuacl: none of the images in data can be read; give some that can.")


WORKS = {
    "lists of whole numbers": pa.array((VECTORS * 100).astype(int).tolist(), pa.list_(pa.int16())),
    "fixed lists of bytes": pa.array((VECTORS * 10).astype(np.uint8).tolist(), pa.list_(pa.uint8(), 4)),
    "float64": pa.array(VECTORS.tolist(), pa.large_list(pa.float64())),
    "float16": pa.array(list(VECTORS.astype(np.float16)), pa.list_(pa.float16(), 4)),
}


@pytest.mark.parametrize("name", WORKS)
def test_lists_of_every_type_of_number(tmp_path, name):
    pq.write_table(pa.table({"vector": WORKS[name]}), tmp_path / "a.parquet", row_group_size=7)
    _, found = open_inputs(str(tmp_path / "a.parquet"), ReadOptions()).read(0, 30)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(WORKS[name].to_pylist(), np.float32))


@pytest.mark.parametrize("type_", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_ids_of_every_type_of_text(embed, tmp_path, type_):
    ids = pa.array([f"k{i}" for i in range(30)])
    ids = ids.dictionary_encode() if pa.types.is_dictionary(type_) else ids.cast(type_)
    pq.write_table(pa.table({"id": ids, "vector": list(VECTORS)}), tmp_path / "data" / "a.parquet")
    assert embed()[0] == 0
    assert pool(tmp_path / "pool")[0] == [f"k{i}" for i in range(30)]


def test_row_numbers_instead_of_an_odd_id_column_and_empty_files_among_others(embed, tmp_path):
    pq.write_table(pa.table({"id": pa.array([], pa.null())}), tmp_path / "data" / "0.parquet")
    pq.write_table(pa.table({"id": [0.5] * 30, "vector": list(VECTORS)}), tmp_path / "data" / "1.parquet")
    code, said = embed("--id-column", "")
    assert code == 0, said
    assert pool(tmp_path / "pool")[0] == list(range(30))


def at(row, value):
    """The vectors as lists, one of them something else."""
    rows = VECTORS.tolist()
    rows[row] = value
    return rows


def ids(row, value):
    return [value if i == row else i for i in range(30)]


FINE = VECTORS.tolist()
NUMBERS = pa.list_(pa.float32())
ODD = {
    "no id": ({"id": ids(23, None), "vector": FINE}, r"b\.parquet, row group 2, row 23 has no id; fill it in"),
    "a large id": (
        {"id": pa.array(ids(23, 2**63), pa.uint64()), "vector": FINE},
        r"row 23: id 9\d+ does not fit into int64",
    ),
    "ids of floats": ({"id": [0.5] * 30, "vector": FINE}, r"b\.parquet: id holds double; give whole numbers or text"),
    "text and numbers": ({"id": ["a"] * 30, "vector": FINE}, r"b\.parquet has vectors in vector and ids of text, but "),
    "ids and none": ({"vector": FINE}, r"b\.parquet has vectors in vector and no ids, but .* and ids of numbers; make"),
    "no vector": ({"id": ids(0, 0), "vector": at(23, None)}, r"b\.parquet, row group 2, row 23 has no vector; fill"),
    "a missing number": (
        {"id": ids(0, 0), "vector": at(23, [1.0, None, 1.0, 1.0])},
        r"b\.parquet, row group 2, row 23: its vector has a missing number; fill it in or drop the row",
    ),
    "NaN": ({"id": ids(0, 0), "vector": at(23, [np.nan] * 4)}, r"row group 2, row 23: its vector has a number that is"),
    "beyond float32": ({"id": ids(0, 0), "vector": at(23, [1e300] * 4)}, r"row 23: its vector has .* not finite; fix"),
    "shorter": (
        {"id": ids(0, 0), "vector": at(23, [1.0, 2.0])},
        r"b\.parquet, row group 2, row 23: its vector has 2 numbers where 4 were expected; make all lists equally long",
    ),
    "wider": ({"id": ids(0, 0), "vector": [[1.0] * 5] * 30}, r"row 0: its vector has 5 numbers where 4 were"),
    "one number": ({"id": ids(0, 0), "vector": [1.0] * 30}, r"b\.parquet: vector holds double; give images \(their by"),
    "lists of text": ({"id": ids(0, 0), "vector": [["a"]] * 30}, r"b\.parquet: vector holds list<.*string>; give im"),
    "a struct": ({"id": ids(0, 0), "vector": [{"path": "a"}] * 30}, r"b\.parquet: vector holds struct<.*; give images"),
    "images": ({"id": ids(0, 0), "vector": [b"x"] * 30}, r"b\.parquet has images in vector .*a\.parquet has vectors"),
    "no column": ({"id": ids(0, 0), "x": FINE}, r"b\.parquet has the columns id, x; say with --column which one"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_named(embed, tmp_path, name):
    columns, says = ODD[name]
    pq.write_table(pa.table({"id": range(100, 130), "vector": pa.array(FINE, NUMBERS)}), tmp_path / "data/a.parquet")
    pq.write_table(pa.table(columns), tmp_path / "data" / "b.parquet", row_group_size=10)
    code, said = embed()
    assert (code, len(said.splitlines())) == (2, 1), said
    assert re.search(says, said), said
    assert not list(tmp_path.glob("pool/*.parquet"))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"vector": pa.array([], NUMBERS)}, "accuacl: data has no rows; give images or vectors to embed."),
        ({"id": pa.array([], pa.null())}, "accuacl: data has no rows; give images or vectors to embed."),
        ({"vector": [[]] * 3}, "vector holds list<"),
        ({"vector": pa.array([[]] * 3, NUMBERS)}, "vector holds empty lists; every row needs at least one number."),
        ({"vector": pa.array([None] * 3, NUMBERS)}, "a.parquet, row group 0, row 0 has no vector; fill it in"),
        ({"id": [1], "key": [1], "vector": [[1.0] * 4]}, "has the columns id, key, vector and no 'name'; give another"),
    ],
)
def test_nothing_to_embed(embed, tmp_path, columns, says):
    pq.write_table(pa.table(columns), tmp_path / "data" / "a.parquet")
    code, said = embed(*(["--id-column", "name"] if "key" in columns else []))
    assert (code, len(said.splitlines())) == (2, 1), said
    assert says in said
    assert not list(tmp_path.glob("pool/*.parquet"))


def test_npy_files(embed, tmp_path):
    np.save("x.npy", np.empty((0, 4)))
    assert embed(data="x.npy") == (2, "accuacl: x.npy has no rows; give images or vectors to embed.")
    vectors = VECTORS.copy()
    vectors[17, 2] = np.nan
    np.save("x.npy", vectors)
    says = "accuacl: x.npy, row 17: its vector has a number that is not finite; fix or drop the row."
    assert embed("--batch", 4, data="x.npy") == (2, says)
    code, said = embed(data="x.npy", model="net.py:fixes")  # a model that takes what is missing for 0
    assert code == 0, said


def test_a_file_that_changes_is_refused(tmp_path):
    pq.write_table(pa.table({"vector": list(VECTORS)}), tmp_path / "a.parquet")
    inputs = open_inputs(str(tmp_path / "a.parquet"), ReadOptions())
    pq.write_table(pa.table({"vector": list(VECTORS[:5])}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet was changed while it was being read"):
        inputs.read(0, 30)


@pytest.mark.parametrize("ids", [[7, 8, 9, 8], ["a", "b", "c", "b"]])
def test_two_rows_with_the_same_id_are_refused_before_anything_is_embedded(embed, ids):
    for part in range(2):
        rows = {"id": ids[2 * part : 2 * part + 2], "vector": list(VECTORS[2 * part : 2 * part + 2])}
        pq.write_table(pa.table(rows), f"data/{part}.parquet")
    code, said = embed()
    assert code == 2
    assert f"data/1.parquet, row group 0, row 1 has the id {ids[1]!r}, which data/0.parquet, row group 0, row 1" in said
    assert embed("--id-column", "")[0] == 0  # row numbers instead
