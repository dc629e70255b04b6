"""`embed` reads the tables that `run` reads: vectors and images in CSV, TSV, JSON and Arrow files."""

from __future__ import annotations

import csv
import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accuacl import InputError
from accuacl.experiments import Config, run
from accuacl.experiments.data import load
from accuacl.experiments.embed import ReadOptions, open_for_run, open_inputs

ROWS = np.random.default_rng(0).normal(size=(40, 3)).round(3)
NAMES = ["width", "height", "weight"]
IDS = [f"r{i}" for i in range(len(ROWS))]


def write(path, columns):
    """A table of these columns, in the format that the name ends in."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if path.suffix in (".json", ".jsonl"):
        path.write_text(json.dumps(rows) if path.suffix == ".json" else "\n".join(map(json.dumps, rows)))
    elif path.suffix == ".arrow":
        table = pa.table(columns)
        with pa.ipc.new_stream(str(path), table.schema) as file:
            file.write_table(table)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, delimiter="\t" if ".tsv" in path.name else ",")
        writer.writeheader()
        writer.writerows(rows)
        path.write_bytes(gzip.compress(text.getvalue().encode()) if path.suffix == ".gz" else text.getvalue().encode())
    return str(path)


def numbers(order=(0, 1, 2)):
    return {NAMES[i]: ROWS[:, i].tolist() for i in order}


def read_all(inputs):
    """What is read in parts that do not end where the table does."""
    parts = [inputs.read(start, start + 7) for start in range(0, len(inputs), 7)]
    return [id for ids, _ in parts for id in ids], np.concatenate([rows for _, rows in parts])


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.json", "a.jsonl", "a.arrow"])
def test_columns_of_numbers_without_those_of_labels_and_ids(tmp_path, name):
    columns = {"id": IDS, **numbers(), "note": ["x"] * 40, "label": ["a", "b"] * 20, "split": ["train"] * 40}
    ids, rows = read_all(open_inputs(write(tmp_path / name, columns), ReadOptions()))
    assert ids == IDS
    np.testing.assert_array_equal(rows, ROWS.astype(np.float32))


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.arrow"])
def test_lists_of_numbers(tmp_path, name):
    file = write(tmp_path / name, {"embedding": ROWS.tolist(), "other": (-ROWS).tolist(), "label": [0, 1] * 20})
    ids, rows = read_all(open_inputs(file, ReadOptions()))
    assert ids == list(range(40))  # without a column of ids: row numbers
    np.testing.assert_array_equal(rows, ROWS.astype(np.float32))
    _, rows = read_all(open_inputs(file, ReadOptions(column="other", id_column="")))
    np.testing.assert_array_equal(rows, -ROWS.astype(np.float32))


def test_images_by_their_paths_and_by_their_bytes(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (9, 5, 5, 3), np.uint8)
    (tmp_path / "photos").mkdir()
    for i, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / "photos" / f"{i}.png")
    names = [f"photos/{i}.png" for i in range(9)]
    contents = [{"bytes": (tmp_path / name).read_bytes(), "path": None} for name in names]
    by_path = open_inputs(write(tmp_path / "a.csv", {"file_name": names, "label": [0] * 9}), ReadOptions())
    by_bytes = open_inputs(write(tmp_path / "a.arrow", {"id": list(range(9)), "image": contents}), ReadOptions())
    for inputs in (by_path, by_bytes):
        ids, rows = read_all(inputs)
        assert ids == list(range(9))
        np.testing.assert_array_equal(rows, pixels)
    assert str(tmp_path / "photos" / "3.png") in by_path.files  # so that a pool notices that an image has changed
    (tmp_path / "photos" / "3.png").write_bytes(b"no image")
    assert read_all(open_inputs(by_path.files[0], ReadOptions(skip_bad=True)))[0] == [0, 1, 2, 4, 5, 6, 7, 8]
    with pytest.raises(InputError, match=r"photos/3.png is not a readable image"):
        read_all(open_inputs(by_path.files[0], ReadOptions()))


@pytest.mark.parametrize(
    ("columns", "given", "says"),
    [
        ({"id": ["a", "b", "a"], "x": [1, 2, 3]}, {}, r"line 4 has the id 'a', which .*line 2 has too"),
        ({"id": ["a", "", "b"], "x": [1, 2, 3]}, {}, r"line 3 has None under 'id'; give a whole number or a text"),
        ({"x": [1, 2, "three"]}, {}, r"line 4 has 'three' under 'x'; give a number"),
        ({"x": [1, "", 3]}, {}, r"line 3 has a number that is missing or not finite"),
        ({"x": [1, 2, 3]}, {"column": "y"}, r"has no column 'y'"),
        ({"x": [1, 2, 3]}, {"id_column": "key"}, r"has the columns x and no 'key'; give another --id-column"),
        ({"text": ["a", "b", "c"]}, {}, r"holds texts"),
    ],
)
def test_what_is_odd_is_named(tmp_path, columns, given, says):
    with pytest.raises(InputError, match=says):
        open_inputs(write(tmp_path / "a.csv", columns), ReadOptions(**given))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that has learned from columns of a table."""
    folder = tmp_path_factory.mktemp("run")
    labels = ["abcd"[i % 4] for i in range(len(ROWS))]
    data = write(folder / "data.csv", numbers() | {"label": labels, "split": ["train"] * 32 + ["test"] * 8})
    run(Config(benchmark=data, classes_per_task=2, strategy="uniform", memory=8, labels=12, rounds=2), folder / "run")
    return folder / "run"


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_run_finds_its_columns_by_their_names(finished, tmp_path, name):
    columns = {"price": [7.0] * 40, **numbers((2, 0, 1)), "id": IDS}  # another order, and one more
    inputs, checkpoint = open_for_run(finished, write(tmp_path / name, columns), ReadOptions())
    assert checkpoint.columns == tuple(NAMES)
    ids, rows = read_all(inputs)
    assert ids == IDS
    np.testing.assert_array_equal(rows, ROWS.astype(np.float32))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_column_that_is_missing_is_named(finished, tmp_path, name):
    with pytest.raises(InputError, match=r"has no column of numbers weight, which the model learned from; add it"):
        open_for_run(finished, write(tmp_path / name, numbers((0, 1))), ReadOptions())


def test_files_of_tasks_have_the_same_columns_in_the_same_order(tmp_path):
    rest = {"label": ["abcd"[i % 4] for i in range(40)], "split": ["train"] * 32 + ["test"] * 8}
    write(tmp_path / "task-1.csv", numbers() | rest)
    write(tmp_path / "task-2.csv", numbers((1, 0, 2)) | rest)
    with pytest.raises(InputError, match=r"task-1 has .* width, height, weight, and task-2 height, width, weight"):
        load(tmp_path)
