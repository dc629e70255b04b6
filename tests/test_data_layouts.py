"""Every layout a data set may have on disk gives the same pixels, labels and names."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.experiments import make, open_stream
from accuacl.experiments.data import PUBLISHED, folders, load


def pictures(count, classes, side=32, seed=0):
    """Random images and labels in which every class occurs if there is room."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, side, side, 3), np.uint8), rng.permutation(np.arange(count) % classes)


def encoded(pixels, kind="PNG"):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def write_parquet(path, images, labels, names=None, image="img", label="label"):
    data = [x if isinstance(x, bytes) or x is None else encoded(x) for x in images]
    struct_ = pa.StructArray.from_arrays(
        [pa.array(data, pa.binary()), pa.nulls(len(data), pa.string())], ["bytes", "path"]
    )
    table = pa.table({image: struct_, label: pa.array(labels, pa.int64())})
    if names:
        features = {image: {"_type": "Image"}, label: {"_type": "ClassLabel", "names": names}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=7)


def same(split, pixels, labels):
    np.testing.assert_array_equal(split.inputs, pixels)
    np.testing.assert_array_equal(split.labels, labels)
    assert split.inputs.dtype == np.uint8
    assert split.labels.dtype == np.int64


TRAIN, TEST = pictures(50, 10), pictures(20, 10, seed=1)
NAMES = [f"kind {i}" for i in range(10)]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("below", ["", "cifar10", "cifar10/data"])
@pytest.mark.parametrize("valid", ["test", "valid", "validation"])
def test_parquet_in_many_shards(tmp_path, below, valid):
    folder = tmp_path / "data" / below
    for i, rows in enumerate([slice(0, 11), slice(11, 30), slice(30, 50)]):
        write_parquet(folder / f"train-0000{i}-of-00003.parquet", TRAIN[0][rows], TRAIN[1][rows], NAMES)
    write_parquet(folder / f"{valid}-00000-of-00001.parquet", *TEST, NAMES)
    data = load("cifar10", tmp_path / "data")
    same(data.train, *TRAIN)
    same(data.test, *TEST)
    assert data.classes == tuple(NAMES)
    assert data.name == "cifar10"


def test_parquet_without_names_and_with_fine_labels(tmp_path):
    for split, (images, labels) in {"train": TRAIN, "test": TEST}.items():
        write_parquet(tmp_path / "own" / f"{split}.parquet", images, labels, image="image", label="fine_label")
        write_parquet(tmp_path / "d" / "cifar100" / f"{split}.parquet", images, labels)
    assert load(str(tmp_path / "own")).classes == tuple("0123456789")
    assert load("own", tmp_path).classes == tuple("0123456789")
    assert load("cifar100", tmp_path / "d").classes == tuple(str(c) for c in range(100))


@pytest.mark.parametrize(
    ("train", "test", "says"),
    [
        ({"labels": [*TRAIN[1][:-1], 10]}, {}, r"train: row 49 has the unknown class 10; the classes are 0 to 9"),
        ({}, {"labels": [-1] * 20}, r"test: row 0 has the unknown class -1"),
        ({"names": NAMES[:-1]}, {"names": NAMES[:-1]}, "has 9 classes and cifar10 has 10"),
        ({}, {"names": NAMES[::-1]}, "the shards name different classes"),
        ({"image": "picture"}, {}, "has the columns picture, label; expected one named img or image"),
        ({"label": "kind"}, {}, "has the columns kind; say which one has the classes with --label-column"),
        ({}, {"label": "kind"}, "has no column 'label', which the training split has; add it"),
        ({"labels": [None, *TRAIN[1][1:]]}, {}, "expected an integer in every row"),
        ({"images": pictures(50, 10, 16)[0]}, {}, r"row 0 is 16 x 16 pixels where 32 x 32 were expected"),
    ],
)
def test_wrong_parquet(tmp_path, train, test, says):
    usual = {"names": NAMES}
    write_parquet(tmp_path / "train.parquet", **{"images": TRAIN[0], "labels": TRAIN[1], **usual, **train})
    write_parquet(tmp_path / "test.parquet", **{"images": TEST[0], "labels": TEST[1], **usual, **test})
    with pytest.raises(InputError, match=says):
        load("cifar10", tmp_path)


def test_parquet_incomplete_or_damaged(tmp_path):
    write_parquet(tmp_path / "train-00000-of-00002.parquet", *TRAIN, NAMES)
    with pytest.raises(InputError, match="has 1 of the 2 shards"):
        load("cifar10", tmp_path)
    (tmp_path / "train-00000-of-00002.parquet").rename(tmp_path / "train.parquet")
    with pytest.raises(InputError, match="no test-"):
        load("cifar10", tmp_path)
    (tmp_path / "test.parquet").write_bytes((tmp_path / "train.parquet").read_bytes()[:500])
    with pytest.raises(InputError, match=r"test\.parquet is not a readable Parquet file"):
        load("cifar10", tmp_path)


def planes(images):
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


def python2_pickle(pixels, labels, key):
    """A batch as the authors' Python 2 wrote it, opcode by opcode."""
    text = lambda b: b"T" + struct.pack("<i", len(b)) + b  # noqa: E731
    number = lambda i: b"J" + struct.pack("<i", i)  # noqa: E731
    dtype = (
        b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN" + number(-1) * 2 + b"K\x00tb"
    )
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    shape = number(pixels.shape[0]) + number(pixels.shape[1]) + b"\x86"
    array += b"(K\x01" + shape + dtype + b"\x89" + text(pixels.tobytes()) + b"tb"
    listed = b"](" + b"".join(number(int(label)) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(key.encode()) + listed + b"u."


def python3_pickle(protocol):
    return lambda pixels, labels, key: pickle.dumps({"data": pixels, key: labels.tolist()}, protocol)


PICKLES = {"python2": python2_pickle, "protocol2": python3_pickle(2), "protocol4": python3_pickle(4)}


def cifar_files(name, version):
    """The files of the published archive, with the few images above."""
    ten = name == "cifar10"
    names = [f"kind_{i}" for i in range(10 if ten else 100)]
    rows = [slice(i, i + 10) for i in range(0, 50, 10)] if ten else [slice(0, 50)]
    parts = [(TRAIN[0][r], TRAIN[1][r]) for r in rows] + [TEST]
    if version == "binary":
        stems = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"] if ten else ["train.bin", "test.bin"]
        before = (lambda y: y[:, None]) if ten else (lambda y: np.stack([y // 5, y], 1))
        data = [np.hstack([before(y).astype(np.uint8), planes(x)]).tobytes() for x, y in parts]
        last = {"batches.meta.txt" if ten else "fine_label_names.txt": "\n".join([*names, ""]).encode()}
    else:
        stems = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"] if ten else ["train", "test"]
        data = [PICKLES[version](planes(x), y, "labels" if ten else "fine_labels") for x, y in parts]
        key = "label_names" if ten else "fine_label_names"
        last = {"batches.meta" if ten else "meta": pickle.dumps({key: names}, 2)}
    return dict(zip(stems, data, strict=True)) | last, tuple(names)


def official(name, version):
    kind = "binary" if version == "binary" else "python"
    number = name.removeprefix("cifar")
    folder = f"cifar-{number}-batches-{'bin' if kind == 'binary' else 'py'}" if number == "10" else f"cifar-100-{kind}"
    return f"cifar-{number}-{kind}.tar.gz", folder


def write_archive(path, folder, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for file, data in files.items():
            member = tarfile.TarInfo(f"{folder}/{file}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("version", ["binary", *PICKLES])
@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_official_cifar(tmp_path, name, version, packed):
    files, names = cifar_files(name, version)
    archive, folder = official(name, version)
    if packed:
        write_archive(tmp_path / archive, folder, files)
    else:
        (tmp_path / name / folder).mkdir(parents=True)
        for file, data in files.items():
            (tmp_path / name / folder / file).write_bytes(data)
    data = load(name, tmp_path)
    same(data.train, *TRAIN)
    same(data.test, *TEST)
    assert data.classes == names


class Evil:
    def __reduce__(self):
        return os.system, ("touch accuacl-was-here",)


class Numpy:
    def __reduce__(self):
        return np.load, ("x.npy",)


@pytest.mark.parametrize(
    ("forged", "says"),
    [
        (pickle.dumps({"data": Evil()}), r"data_batch_2.*system.*refused"),
        (pickle.dumps({"data": Numpy()}), "numpy.*refused"),
        (pickle.dumps({"data": np.array([Evil()], object)}, 2), "system.*refused|only bytes are allowed"),
        (pickle.dumps({"data": np.arange(3.0)}, 2), "only bytes are allowed"),
        (pickle.dumps({"data": np.zeros((10, 3), np.uint8), "labels": [0] * 10}, 2), "3072 bytes per image"),
        (pickle.dumps({"data": np.zeros((3, 3072), np.uint8), "labels": [0.5] * 3}, 2), "3072 bytes per image"),
        (pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [[0], [1, 2]]}, 2), "3072 bytes per image"),
        (pickle.dumps([1]), "holds a list, not CIFAR's dictionary"),
        (b"\x80\x02nonsense", "is not a CIFAR python file"),
        (b"", "is not a CIFAR python file"),
    ],
)
def test_a_pickle_that_is_not_cifar_is_refused(tmp_path, monkeypatch, forged, says):
    monkeypatch.chdir(tmp_path)
    files, _ = cifar_files("cifar10", "protocol2")
    write_archive(tmp_path / "cifar-10-python.tar.gz", "cifar-10-batches-py", {**files, "data_batch_2": forged})
    with pytest.raises(InputError, match=says):
        load("cifar10", tmp_path)
    assert not os.path.exists("accuacl-was-here")


def test_a_cifar_meta_file_that_names_no_classes(tmp_path):
    files, _ = cifar_files("cifar10", "protocol2")
    forged = {**files, "batches.meta": pickle.dumps({"label_names": 10}, 2)}
    write_archive(tmp_path / "cifar-10-python.tar.gz", "cifar-10-batches-py", forged)
    with pytest.raises(InputError, match=r"batches\.meta does not name the classes; download it again"):
        load("cifar10", tmp_path)


def test_damaged_cifar_archives(tmp_path):
    files, _ = cifar_files("cifar10", "binary")
    path = tmp_path / "cifar-10-binary.tar.gz"
    write_archive(path, "x", {**files, "data_batch_3.bin": files["data_batch_3.bin"][:-1]})
    with pytest.raises(InputError, match=r"data_batch_3.bin has 30729 bytes, not a multiple of 3073"):
        load("cifar10", tmp_path)
    write_archive(path, "x", {k: v for k, v in files.items() if k != "test_batch.bin"})
    with pytest.raises(InputError, match=r"has no test_batch\.bin in it"):
        load("cifar10", tmp_path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(InputError, match=r"cifar-10-binary.tar.gz is damaged"):
        load("cifar10", tmp_path)


WNIDS = [f"n{i:08}" for i in range(200)]


def tiny_files(listed):
    """tiny-imagenet-200 with one image a class and split; the first is grey, as some are."""
    words = {w: f"name of {w}" for w in WNIDS[:150]} | {WNIDS[7]: "crane", WNIDS[70]: "crane"}
    files = {"words.txt": "".join(f"{w}\t{name}\n" for w, name in words.items()).encode()}
    if listed:
        files["wnids.txt"] = "\n".join(WNIDS[::-1]).encode()  # sorted by nothing, as the published one
    notes = ""
    for i, wnid in enumerate(WNIDS):
        colour = Image.new("L" if i == 0 else "RGB", (64, 64), i if i == 0 else (i, 0, 200 - i))
        out = io.BytesIO()
        colour.save(out, "PNG")  # the reader goes by content; PNG keeps the numbers exact
        files[f"train/{wnid}/images/{wnid}_0.JPEG"] = files[f"val/images/val_{i}.JPEG"] = out.getvalue()
        files[f"train/{wnid}/{wnid}_boxes.txt"] = b""
        notes += f"val_{i}.JPEG\t{wnid}\t0\t0\t62\t62\n"
    files["val/val_annotations.txt"] = notes.encode()
    return files


def test_the_order_of_wnids_txt_is_the_one_that_the_page_prints(tmp_path):
    """The command in docs/your-data.md, run beside an archive in the official layout whose list is not sorted."""
    root = tmp_path / "tiny-imagenet-200"
    for file, content in tiny_files(listed=True).items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_bytes(content)
    page = Path(__file__).parents[1] / "docs" / "your-data.md"
    (line,) = re.findall(r"^(ids=.*wnids\.txt.*)$", page.read_text(), re.MULTILINE)
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    command = ["bash", "-c", f"{line}; echo $ids"]
    order = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    config = make({"benchmark": "split-tiny-imagenet", "order": order.strip()})
    stream = open_stream(config, tmp_path, skip_bad=False)
    listed = (root / "wnids.txt").read_text().split()
    assert [WNIDS[c] for task in stream for c in task.classes] == listed != WNIDS


def tiny_colour(label):
    return (label, 0, 200 - label) if label else (0, 0, 0)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("form", ["zip", "folder", "inside", "parquet"])
def test_tiny_imagenet_has_one_order_of_classes_in_every_layout(tmp_path, form, listed):
    files = tiny_files(listed)
    if form == "parquet":
        images = [np.broadcast_to(np.array(tiny_colour(i), np.uint8), (64, 64, 3)) for i in range(200)]
        for split in ("train", "valid"):
            write_parquet(tmp_path / f"{split}.parquet", images, range(200), WNIDS if listed else None, image="image")
    elif form == "zip":
        with zipfile.ZipFile(tmp_path / "tiny-imagenet-200.zip", "w") as archive:
            for file, content in files.items():
                archive.writestr(f"tiny-imagenet-200/{file}", content)
    else:
        root = tmp_path / ("tiny-imagenet-200" if form == "folder" else "tiny-imagenet")
        for file, content in files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(content)
    data = load("tiny-imagenet", tmp_path)
    for split in (data.train, data.test):
        assert split.inputs.shape == (200, 64, 64, 3)
        for pixels, label in zip(split.inputs[:, 5, 5], split.labels, strict=True):
            assert tuple(pixels) == tiny_colour(label)
    if form != "parquet":
        cranes = {w: f"crane ({w})" for w in (WNIDS[7], WNIDS[70])}  # two classes, so two names
        assert data.classes == tuple(cranes.get(w, f"name of {w}" if w < WNIDS[150] else w) for w in WNIDS)
    else:
        assert data.classes == tuple(WNIDS if listed else map(str, range(200)))


def test_a_cache_of_tiny_imagenet_in_another_order_is_not_used(tmp_path, monkeypatch):
    for file, content in tiny_files(True).items():
        (tmp_path / "tiny-imagenet-200" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tiny-imagenet-200" / file).write_bytes(content)
    with monkeypatch.context() as then:
        then.setattr(folders, "READING", "")
        then.setattr(folders, "sorted", list, raising=False)  # as it was: in the order of wnids.txt
        assert load("tiny-imagenet", tmp_path).classes[0] == "n00000199"
    assert load("tiny-imagenet", tmp_path).classes[0] == "name of n00000000"


def test_a_damaged_image_in_the_zip_is_named(tmp_path):
    files = tiny_files(True)
    path = tmp_path / "tiny-imagenet-200.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(f"tiny-imagenet-200/{file}", content)
        where = archive.getinfo("tiny-imagenet-200/train/n00000007/images/n00000007_0.JPEG").header_offset
    whole = path.read_bytes()
    path.write_bytes(whole[: where + 150] + bytes(9) + whole[where + 159 :])
    with pytest.raises(InputError, match=r"zip/train/n00000007/images/n00000007_0\.JPEG is not a readable image"):
        load("tiny-imagenet", tmp_path)
    path.write_bytes(whole[:-100])
    with pytest.raises(InputError, match=r"tiny-imagenet-200\.zip is damaged"):
        load("tiny-imagenet", tmp_path)


def test_missing_data_says_where_what_and_from_whom(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_DATA", str(tmp_path))
    for name, words in {"cifar10": "cifar-10-binary.tar.gz", "tiny-imagenet": "tiny-imagenet-200.zip"}.items():
        with pytest.raises(InputError, match=f"{name} is not in {tmp_path}/{name} nor in {tmp_path}; put {words}") as e:
            load(name)
        assert PUBLISHED[name].published in str(e.value)
        assert "--data-dir or in the environment variable ACCUACL_DATA" in str(e.value)
        assert "\n" not in str(e.value)
    monkeypatch.delenv("ACCUACL_DATA")
    with pytest.raises(InputError, match="cifar100 needs a data folder and none is set; put cifar-100") as e:
        load("cifar100")
    assert "--data-dir or in the environment variable ACCUACL_DATA" in str(e.value)
    with pytest.raises(
        InputError, match=f"no data set or folder 'cifar11' here or in {tmp_path}; did you mean cifar10"
    ):
        load("cifar11", tmp_path)
    with pytest.raises(InputError, match="'cifar11' here, and no data folder is named with --data-dir or in"):
        load("cifar11")
    with pytest.raises(InputError, match="holds no data set; put train/<class>/"):
        load(str(tmp_path))


def test_digits_never_change():
    data = load("digits")
    assert data.train.inputs.dtype == np.float32
    assert data.train.inputs.max() == 1
    share = np.bincount(data.test.labels) / (np.bincount(data.train.labels) + np.bincount(data.test.labels))
    np.testing.assert_allclose(share, 1 / 3, atol=0.005)
    whole = np.vstack([data.train.inputs, data.test.inputs])
    assert len(np.unique(whole, axis=0)) == 1797
    assert data.test.labels[:20].tolist() == [0, 1, 2, 3, 6, 8, 9, 2, 3, 4, 6, 9, 9, 9, 8, 8, 5, 0, 2, 3]
