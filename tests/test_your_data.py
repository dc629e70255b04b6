"""Every layout that docs/your-data.md names is read, and gives the same data set."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.experiments import make, open_stream, run
from accuacl.experiments.data import holds_tasks, holds_vectors, load
from commands import accuacl as command
from test_data_layouts import encoded

PAGE = Path(__file__).parent.parent / "docs" / "your-data.md"
NAMES = ["ant", "bee", "cow"]
LABELS = {"train": np.arange(15) % 3, "test": np.arange(6) % 3}
VECTORS = {split: np.stack([y * 10.0, np.arange(len(y))], 1).astype(np.float32) for split, y in LABELS.items()}
IMAGES = {
    split: [np.full((6, 6, 3), (y * 10, i, 7), np.uint8) for i, y in enumerate(labels)]
    for split, labels in LABELS.items()
}


def rows(split, label=NAMES):
    named = [label[y] for y in LABELS[split]]
    return [{"label": y, "size": float(a), "age": float(b)} for y, (a, b) in zip(named, VECTORS[split], strict=True)]


def both():
    return [row | {"split": split} for split in ("train", "test") for row in rows(split)]


def write_csv(path, content, delimiter=","):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(content[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(content)


def save_images(folder, split):
    for i, pixels in enumerate(IMAGES[split]):
        path = folder / NAMES[LABELS[split][i]] / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)


def saved(folder, table):
    """As `datasets` saves a split: a stream of Arrow batches, and the list of its files."""
    folder.mkdir(parents=True)
    with pa.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_fingerprint": "0", "_split": folder.name}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def hugging_face(split):
    features = {"label": {"_type": "ClassLabel", "names": NAMES}}
    table = pa.table({"embedding": list(map(list, VECTORS[split])), "label": LABELS[split]})
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def hugging_face_images(split):
    bytes_ = pa.array([encoded(pixels) for pixels in IMAGES[split]], pa.binary())
    image = pa.StructArray.from_arrays([bytes_, pa.nulls(len(bytes_), pa.string())], ["bytes", "path"])
    table = pa.table({"image": image, "label": LABELS[split]})
    return table.replace_schema_metadata(hugging_face(split).schema.metadata)


def image_folders(tmp):
    for split in ("train", "test"):
        save_images(tmp / "data" / split, split)
    return tmp / "data"


def class_folders(tmp):
    save_images(tmp / "data", "train")
    return tmp / "data"


def image_table(tmp):
    content = []
    for split in ("train", "test"):
        save_images(tmp / "photos" / split, split)
        for i, y in enumerate(LABELS[split]):
            content.append({"file_name": f"{split}/{NAMES[y]}/{i:02}.png", "label": NAMES[y], "split": split})
    write_csv(tmp / "photos" / "photos.csv", content)
    return tmp / "photos" / "photos.csv"


def image_parquet(tmp):
    for split in ("train", "test"):
        pq.write_table(hugging_face_images(split), tmp / f"{split}-00000-of-00001.parquet")
    return tmp


def npz(tmp):
    arrays = {f"{letter}_{split}": what[split] for split in LABELS for letter, what in (("x", VECTORS), ("y", LABELS))}
    np.savez(tmp / "data.npz", **arrays)
    (tmp / "classes.txt").write_text("\n".join(NAMES))
    return tmp / "data.npz"


def npy(tmp):
    np.save(tmp / "pool.npy", VECTORS["train"])
    np.save(tmp / "pool_labels.npy", LABELS["train"])
    (tmp / "classes.txt").write_text("\n".join(NAMES))
    return tmp / "pool.npy"


def array_folder(tmp):
    for split in LABELS:
        np.save(tmp / f"x_{split}.npy", VECTORS[split])
        np.save(tmp / f"y_{split}.npy", LABELS[split])
    (tmp / "classes.txt").write_text("\n".join(NAMES))
    return tmp


def one_csv(tmp):
    write_csv(tmp / "data.csv", both())
    return tmp / "data.csv"


def two_tsv(tmp):
    for split in LABELS:
        write_csv(tmp / f"{split}.tsv", rows(split), "\t")
    return tmp


def json_list(tmp):
    (tmp / "data.json").write_text(json.dumps(both(), indent=2))
    return tmp / "data.json"


def json_lines(tmp):
    lines = [{"embedding": [row["size"], row["age"]], "label": row["label"], "split": row["split"]} for row in both()]
    (tmp / "data.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return tmp / "data.jsonl"


def vector_parquet(tmp):
    pq.write_table(pa.Table.from_pylist(both()), tmp / "data.parquet")
    return tmp / "data.parquet"


def saved_dict(tmp):
    for split in LABELS:
        saved(tmp / "data" / split, hugging_face(split))
    (tmp / "data" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    return tmp / "data"


def saved_split(tmp):
    saved(tmp / "data", hugging_face_images("train"))
    return tmp / "data"


def for_each_task(tmp):
    for number in (1, 2):
        here = [row for row in both() if (row["label"] == "cow") == (number == 2)]
        write_csv(tmp / f"task-{number}.csv", here)
    return tmp


# By its name in the page: what writes it, whether it is of images, whether its test split is held out.
LAYOUTS = {
    "Folders of images": (image_folders, True, False),
    "Folders of images without a test split": (class_folders, True, True),
    "A table of image files": (image_table, True, False),
    "Parquet with images": (image_parquet, True, False),
    "One .npz file": (npz, False, False),
    "One .npy file": (npy, False, True),
    "A folder of arrays": (array_folder, False, False),
    "One CSV file": (one_csv, False, False),
    "Two TSV files": (two_tsv, False, False),
    "A JSON list": (json_list, False, False),
    "JSON lines": (json_lines, False, False),
    "Parquet with vectors": (vector_parquet, False, False),
    "A data set saved by Hugging Face `datasets`": (saved_dict, False, False),
    "One split saved by Hugging Face `datasets`": (saved_split, True, True),
    "A file or folder for each task": (for_each_task, False, False),
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))


def content(split, images):
    """Inputs with labels, in a fixed order."""
    inputs = [x[0, 0].tolist() if images else x.tolist() for x in split.inputs]
    return sorted(zip(inputs, split.labels.tolist(), strict=True))


def expected(split, images):
    inputs = [x[0, 0].tolist() for x in IMAGES[split]] if images else VECTORS[split].tolist()
    return sorted(zip(inputs, LABELS[split].tolist(), strict=True))


def test_the_page_names_these_layouts():
    assert re.findall(r"^### (.*)$", PAGE.read_text(), re.MULTILINE) == list(LAYOUTS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_read(layout, tmp_path):
    write, images, held = LAYOUTS[layout]
    (tmp_path / "own").mkdir()
    place = write(tmp_path / "own")
    assert holds_vectors(place) != images
    if held:
        with pytest.warns(UserWarning, match=f"{place} has no test split; .*, 3 of 15 examples, is held out"):
            data = load(str(place))
        assert content(data.train, images) + content(data.test, images) != expected("train", images)  # drawn
        assert sorted(content(data.train, images) + content(data.test, images)) == expected("train", images)
        assert np.bincount(data.test.labels).tolist() == [1, 1, 1]
    else:
        data = load(str(place))
        assert content(data.train, images) == expected("train", images)
        assert content(data.test, images) == expected("test", images)
    assert data.classes == tuple(NAMES)
    assert holds_tasks(place) == ("each task" in layout)


@pytest.mark.parametrize(("packed", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)])
@pytest.mark.parametrize("write", [one_csv, two_tsv, json_list, json_lines, for_each_task])
def test_tables_of_text_may_be_compressed(write, packed, pack, tmp_path):
    place = write(tmp_path)
    plain = load(str(place))
    for file in (place,) if place.is_file() else list(place.iterdir()):
        file.with_name(file.name + packed).write_bytes(pack(file.read_bytes()))
        file.unlink()
    place = place.with_name(place.name + packed) if place != tmp_path else place
    data = load(str(place))
    assert holds_vectors(place)
    assert holds_tasks(place) == (write is for_each_task)
    np.testing.assert_array_equal(data.train.inputs, plain.train.inputs)
    np.testing.assert_array_equal(data.test.labels, plain.test.labels)
    assert {name: values.tolist() for name, values in data.train.columns.items()} == {
        name: values.tolist() for name, values in plain.train.columns.items()
    }


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    content = head + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.parametrize("names", ["{}-{}-idx{}-ubyte", "{}-{}-idx{}-ubyte.gz", "{}-{}.idx{}-ubyte"])
def test_idx_files_as_they_are_published(names, tmp_path):
    grey = {split: np.arange(len(y) * 30).reshape(len(y), 6, 5) % 256 for split, y in LABELS.items()}
    for split, prefix in (("train", "train"), ("test", "t10k")):
        write_idx(tmp_path / names.format(prefix, "images", 3), grey[split])
        write_idx(tmp_path / names.format(prefix, "labels", 1), LABELS[split])
    data = load(str(tmp_path))
    assert data.classes == ("0", "1", "2")
    for split, found in (("train", data.train), ("test", data.test)):
        assert found.inputs.shape == (len(LABELS[split]), 6, 5, 3)
        np.testing.assert_array_equal(found.inputs, np.repeat(grey[split][..., None], 3, axis=3))
        np.testing.assert_array_equal(found.labels, LABELS[split])
    path = tmp_path / names.format("t10k", "images", 3)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=rf"{path.name} (is not a complete idx file|cannot be read .*)"):
        load(str(tmp_path))


@pytest.mark.parametrize("write", [class_folders, saved_split])
def test_a_held_out_part_is_said_and_the_same_from_the_cache_too(write, tmp_path):
    place = write(tmp_path)
    read = []
    for _ in range(2):
        with pytest.warns(UserWarning, match="is held out"):
            read.append(load(str(place)))
    np.testing.assert_array_equal(read[0].test.inputs, read[1].test.inputs)


def test_columns_by_other_names(tmp_path):
    write_csv(tmp_path / "a.csv", [{"": i, "id": i, "kind": "x" if i % 2 else "y", "n": i} for i in range(10)])
    with pytest.warns(UserWarning, match="held out"):
        data = load(str(tmp_path / "a.csv"), label_column="kind")
    assert data.classes == ("x", "y")
    assert data.train.inputs.shape == (8, 1)  # neither pandas' row numbers nor ids are part of a vector
    with pytest.raises(InputError, match="has the columns id, kind, n; say which one has the classes with --label-col"):
        load(str(tmp_path / "a.csv"))
    with pytest.raises(InputError, match=r"no column 'kinds'; did you mean kind\?"):
        load(str(tmp_path / "a.csv"), label_column="kinds")
    np.savez(tmp_path / "a.npz", x=np.ones((4, 2)), y=np.arange(4) % 2)
    with pytest.raises(InputError, match="is not a table, so it has no column 'kind'"):
        load(str(tmp_path / "a.npz"), label_column="kind")


SPLITS = ("train", "test")


def months(folder, image=False):
    """A table of vectors or of images, whose tasks are called months."""
    months = ("2024-1", "2024-2")
    rows = [{"n": i, "month": months[i // 4], "label": "ab"[i % 2], "split": SPLITS[i % 4 > 1]} for i in range(8)]
    if not image:
        write_csv(folder / "months.csv", rows)
        return folder / "months.csv"
    for row in rows:
        Image.new("RGB", (4, 4), (row["n"], 0, 0)).save(folder / f"{row['n']}.png")
    write_csv(folder / "months.csv", [row | {"file": f"{row['n']}.png"} for row in rows])
    return folder / "months.csv"


@pytest.mark.parametrize("image", [False, True])
def test_the_column_of_tasks_by_another_name(image, tmp_path):
    place = months(tmp_path, image)
    data = load(str(place), task_column="month", cache_dir=tmp_path / "cache")
    assert data.train.columns["task"].tolist() == ["2024-1"] * 2 + ["2024-2"] * 2
    assert image or data.train.inputs.shape == (4, 1)  # the month is no part of the vector
    config = make({"benchmark": str(place), "task_column": "month"})
    assert config.arrival == "given"
    assert len(list(open_stream(config, None, skip_bad=False))) == 2


def test_the_column_of_tasks_in_parquet_with_images(tmp_path):
    columns = {
        "image": [encoded(np.zeros((4, 4, 3), np.uint8))] * 8,
        "label": [0, 1] * 4,
        "month": [1, 1, 1, 1, 2, 2, 2, 2],
    }
    for split in ("train", "test"):
        pq.write_table(pa.table(columns), tmp_path / f"{split}-0.parquet")
    data = load(str(tmp_path), task_column="month", cache_dir=tmp_path / "cache")
    assert data.test.columns["task"].tolist() == columns["month"]
    with pytest.raises(InputError, match=r"no column 'moth'; did you mean month\?"):
        load(str(tmp_path), task_column="moth", cache_dir=tmp_path / "cache")


def test_classes_in_words_and_a_column_of_splits_in_parquet_with_images(tmp_path):
    images = [encoded(np.full((4, 4, 3), i, np.uint8)) for i in range(6)]
    columns = {"image": images, "label": ["b", "a"] * 3, "split": ["train"] * 4 + ["test"] * 2}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    data = load(str(tmp_path / "a.parquet"), cache_dir=tmp_path / "cache")
    assert data.classes == ("a", "b")
    assert data.train.inputs[:, 0, 0, 0].tolist() == [0, 1, 2, 3]
    assert data.test.inputs[:, 0, 0, 0].tolist() == [4, 5]
    assert data.test.labels.tolist() == [1, 0]


def test_a_column_of_tasks_that_says_nothing_is_refused(tmp_path):
    place = str(months(tmp_path))
    with pytest.raises(InputError, match=r"no column 'mont'; did you mean month\?"):
        load(place, task_column="mont")
    with pytest.raises(InputError, match="says what arrives when; leave it out, or --classes-per-task"):
        make({"benchmark": place, "task_column": "month", "classes_per_task": 1})
    with pytest.raises(InputError, match="leave out --task-column"):
        make({"benchmark": "split-digits", "task_column": "month"})


def test_looks_of_data_in_a_file_for_each_task_are_kept(tmp_path):
    for task in (1, 2):
        looks = [{"n": i, "domain": f"look {i // 4}"} for i in range(8)]
        rows = [row | {"label": "ab"[row["n"] % 2], "split": SPLITS[row["n"] % 4 > 1]} for row in looks]
        write_csv(tmp_path / f"task-{task}.csv", rows)
    data = load(str(tmp_path))
    assert data.train.columns["domain"].tolist() == (["look 0"] * 2 + ["look 1"] * 2) * 2
    config = make({"benchmark": str(tmp_path), "domains": 2})
    assert [len(task.train) for task in open_stream(config, None, skip_bad=False)] == [4, 4]


def test_classes_that_are_numbers_are_ordered_as_numbers(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"x": 1.5, "label": y} for y in [10, 9, 2] * 5]))
    with pytest.warns(UserWarning, match="held out"):
        assert load(str(tmp_path / "a.json")).classes == ("2", "9", "10")


def test_texts_that_hold_no_numbers_are_said(tmp_path):
    content = [{"n": i, "city": "Ulm", "label": "ab"[i % 2], "split": ["train", "test"][i > 4]} for i in range(8)]
    write_csv(tmp_path / "a.csv", content)
    with pytest.warns(UserWarning, match=r"a\.csv: columns that are not numbers are left out: city"):
        assert load(str(tmp_path / "a.csv")).train.inputs.shape == (5, 1)


WRONG = {
    "ragged": ("a.csv", "n,label\n1,a\n2,b,c\n", r"a\.csv: line 3 has 3 fields and the header 2"),
    "short": ("a.csv", "n,label\n1\n", "line 2 has 1 fields and the header 2"),
    "open quote": (
        "a.csv",
        'n,label\n1,a\n2,"b\n3,c\n',
        "mark in the row that begins in line 3 is misplaced",
    ),
    "two quotes": ("a.csv", 'n,label\n1,"a\n2,b\n3,"c"\n', "quotation mark in the row that begins in line 2"),
    "no label": ("a.csv", "n,label\n1,a\n2,\n", "line 3 has the label None; fix it or leave the row out"),
    "no number": ("a.csv", "n,label\n1,a\ntwo,b\n", "line 3 has 'two' under 'n'; give a number"),
    "missing": ("a.csv", "n,label\n1,a\n,b\n", "line 3 has a number that is missing or not finite"),
    "huge": ("a.csv", "n,label\n1,a\n1e99,b\n", "line 3 has a number that is missing or not finite"),
    "twice": ("a.csv", "n,n,label\n1,2,a\n", "two columns named 'n'"),
    "headless": (
        "a.csv",
        "0.134,a,no\n0.5,b,no\n",
        r"first line of .*a\.csv looks like data \(0\.134, a, no\); write a",
    ),
    "negative": ("a.csv", "a,-3\nb,4\n", r"looks like data \(a, -3\); write a header line above it"),
    "wide": ("a.csv", "1,1,2.5,3,4,a\n1,2,3,4,5,a\n", r"looks like data \(1, 1, 2\.5, 3, 4, \.\.\.\); write"),
    "same numbers": (
        "a.csv",
        "1,1,a\n2,3,b\n",
        "two columns named '1'; give each its own name, or write a header line",
    ),
    "empty": ("a.csv", "", "a.csv is empty; give a table"),
    "header": ("a.csv", "n,label\n", r"a\.csv has no rows"),
    "split": ("a.csv", "n,label,split\n1,a,train\n2,a,exam\n", "line 3 has the split 'exam'; give train or test"),
    "one split": ("a.csv", "n,label,split\n1,a,train\n2,a,train\n", "names only one split"),
    "texts": ("a.csv", "text,label\nhello,a\nyou,b\n", "holds texts, and a run learns from images or numbers"),
    "nothing": ("a.csv", "city,label\nUlm,a\nRom,b\n", "neither a column `embedding` nor columns of numbers"),
    "no object": ("a.jsonl", '{"label": 1}\n[2]\n', "line 2 is not a JSON object"),
    "no json": ("a.jsonl", '{"label": 1}\n{"label": \n', "line 2 is not JSON"),
    "lines": ("a.json", '{"label": 1}\n{"label": 2}\n', r"is not JSON in UTF-8 \(.*name it \.jsonl"),
    "no list": ("a.json", '{"label": 1}', "does not hold a list"),
    "mixed": ("a.json", '[{"label": 1}, {"label": "a"}]', "label cannot be a column"),
    "lengths": ("a.json", '[{"label": 1, "embedding": [1]}, {"label": 2, "embedding": [1, 2]}]', "different lengths"),
    "words": ("a.json", '[{"label": 1, "embedding": ["a"]}]', "give lists of numbers"),
    "widths": ("a.json", '[{"label": 1, "embedding": []}]', "give lists of numbers"),
    "fraction": ("a.json", '[{"label": 1.5, "n": 1}]', "row 0 has the label 1.5"),
    "no task": ("a.csv", "n,label,task\n1,a,1\n2,b,\n", "line 3 has no task; give a whole number or a text"),
    "half a task": ("a.json", '[{"label": 1, "n": 1, "task": 1.5}]', "row 0 has 1.5 under 'task'; give a whole number"),
    "utf16": ("a.csv", "n,label\n1,a\n".encode("utf-16"), "is not text in UTF-8"),
    "no parquet": ("a.parquet", "n", "is not a readable Parquet file"),
    "no arrow": ("a.arrow", "n", "is not a readable Arrow file"),
    "image": ("a.csv", "image,label\nno.png,a\nno.png,a\n", r"no\.png is not a readable image"),
    "no image": ("a.csv", "image,label\n,a\nno.png,a\n", "line 2 names no file under 'image'"),
    "a text": ("a.txt", "hello", r"a\.txt is not a data set that can be read; give a folder, or a file \.npz"),
    "no labels": ("a.npy", b"", r"a\.npy has no labels beside it; write them to a_labels\.npy"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_with_a_table_is_said(wrong, tmp_path):
    name, text, says = WRONG[wrong]
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError, match=says):
        load(str(tmp_path / name))


def test_rows_over_several_lines_are_said(tmp_path):
    (tmp_path / "a.csv").write_text('n,note,label\n1,"one\ntwo",a\n2,x,a\n3,y,b\n4,z,b\n')
    with warnings.catch_warnings(record=True, action="always") as said:
        load(str(tmp_path / "a.csv"))
    assert "1 of 4 rows run over several lines, first lines 2 to 3" in str(said[0].message)


def test_vectors_of_two_lengths_are_said(tmp_path):
    for split, width in (("train", 2), ("test", 3)):
        (tmp_path / f"{split}.json").write_text(json.dumps([{"embedding": [0.0] * width, "label": 1}]))
    with pytest.raises(InputError, match="training vectors have 2 entries and test vectors 3; make them alike"):
        load(str(tmp_path))


def broken_disk(path):
    raise OSError(5, "Input/output error", str(path))


def test_a_saved_data_set_that_is_not_whole(tmp_path, monkeypatch):
    place = saved_dict(tmp_path)
    state = json.loads((place / "train" / "state.json").read_text())
    (place / "train" / "state.json").write_text(json.dumps(state | {"_indices_data_files": [{"filename": "i.arrow"}]}))
    with pytest.raises(InputError, match=r"call flatten_indices\(\) and save it again"):
        load(str(place))
    (place / "train" / "state.json").write_text("{}")
    with pytest.raises(InputError, match=r"state\.json is not that of a saved data set"):
        load(str(place))
    (place / "train" / "state.json").write_text(json.dumps(state))
    with monkeypatch.context() as broken:
        broken.setattr(Path, "read_bytes", broken_disk)
        with pytest.raises(InputError, match=r"^\S*state\.json cannot be read: input/output error; fix that"):
            load(str(place))
    (place / "train" / "data-00000-of-00001.arrow").unlink()
    with pytest.raises(InputError, match=r"has no data-00000-of-00001\.arrow; save the data set again"):
        load(str(place))


def test_a_run_says_what_it_leaves_out_and_cannot_test(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(70, 4)), np.arange(70) % 7
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, x_test=x[:5], y_test=y[:5])
    settings = {"benchmark": str(tmp_path / "a.npz"), "classes_per_task": 3, "labels": 6, "rounds": 2, "tasks": 0}
    with warnings.catch_warnings(record=True, action="always") as said:
        run(make(settings), tmp_path / "run")
    assert [str(warning.message) for warning in said] == [
        "7 classes do not make whole tasks of 3; left out: 6; --order names those to take.",
        "classes without test examples: 5; accuracy says nothing about them.",
    ]
    with warnings.catch_warnings(record=True, action="always") as said:
        run(make(settings | {"memory": 12}), tmp_path / "b")
    assert "a memory of 12 keeps all 12 labels of the 2 tasks" in str(said[-1].message)


def test_the_memory_of_own_data_is_as_large_as_the_labels_of_a_task(tmp_path):
    place = str(npz(tmp_path))
    for scale, labels in (("smoke", 24), ("cpu", 100), ("paper", 100)):
        settings = make({"benchmark": place, "classes_per_task": 1, "scale": scale})
        assert (settings.memory, settings.labels) == (labels, labels)
    assert make({"benchmark": place, "classes_per_task": 1, "labels": 7}).memory == 7
    assert make({"benchmark": place, "classes_per_task": 1, "labels": 7, "memory": 3}).memory == 3


def test_a_file_can_be_given_on_the_command_line(tmp_path):
    one_csv(tmp_path)
    options = "--classes-per-task 1 --labels 4 --rounds 2 --epochs 1 --tasks 2 --out out"
    ended = command("run", "--benchmark", "data.csv", *options.split(), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "out" / "result.json").read_text())["stream"]["pools"] == [[5, 0, 0], [0, 5, 0]]
