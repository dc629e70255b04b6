"""The cache of decoded images: made once, checked, never trusted when anything is amiss, harmed by nobody."""

from __future__ import annotations

import errno
import functools
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from accuacl.base.errors import InputError
from accuacl.experiments.data import BadImage, InputRows, cache, load
from effort import PATIENCE, times
from test_data_layouts import NAMES, TEST, TRAIN, same, write_parquet


@pytest.fixture
def place(tmp_path):
    """A data folder with a small cifar10, and a cache folder."""
    write_parquet(tmp_path / "data" / "train.parquet", *TRAIN, NAMES)
    write_parquet(tmp_path / "data" / "test.parquet", *TEST, NAMES)
    return tmp_path


@pytest.fixture
def decoded(monkeypatch):
    """How many images were decoded so far."""
    seen = []
    plain = cache.decode
    monkeypatch.setattr(cache, "decode", lambda *args: seen.append(1) or plain(*args))
    return lambda: len(seen)


def again(place, **options):
    return load("cifar10", place / "data", cache_dir=place / "cache", **options)


def home(place):
    (found,) = (place / "cache").iterdir()
    return found


def test_the_second_start_decodes_nothing(place, decoded):
    same(again(place).train, *TRAIN)
    assert decoded() == 70
    data = again(place)
    assert decoded() == 70
    same(data.train, *TRAIN)
    same(data.test, *TEST)
    assert data.classes == tuple(NAMES)
    assert isinstance(data.train.inputs, np.memmap)


def test_torch_takes_the_images_and_writing_to_them_leaves_the_file_alone(place):
    images = torch.from_numpy(again(place).train.inputs)  # warns, here an error, if it were read-only
    images.zero_()
    same(again(place).train, *TRAIN)


def test_rows_are_read_from_the_file_a_slice_at_a_time(place):
    rows = InputRows(again(place).train.inputs, np.array([7, 3, 3, 40, 0]))
    assert len(rows) == 5
    part = rows[1:4]
    assert type(part) is np.ndarray  # in memory, and torch takes it
    torch.from_numpy(part).zero_()
    np.testing.assert_array_equal(rows[1:], TRAIN[0][[3, 3, 40, 0]])


def test_progress_is_reported_to_the_end(place):
    seen = []
    again(place, progress=lambda p: seen.append((p.text, p.done, p.total)))
    assert ("decoding train", 50, 50) in seen
    assert seen[-1] == ("decoding test", 20, 20)
    seen.clear()
    again(place, progress=lambda p: seen.append((p.text, p.done, p.total)))
    assert seen == []


def truncate(path):
    os.truncate(path, path.stat().st_size - 1)


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"\0")


def blank(path):
    path.write_bytes(path.read_bytes()[:128] + bytes(path.stat().st_size - 128))


def reshape(path):
    np.save(path, np.load(path).reshape(-1, 16, 64, 3))


def rewrite_index(**changes):
    def damage(path):
        index = path.with_name("index.json")
        index.write_text(json.dumps({**json.loads(index.read_text()), **changes}))

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        lengthen,
        blank,
        reshape,
        os.remove,
        lambda path: truncate(path.with_name("index.json")),
        lambda path: path.with_name("index.json").unlink(),
        lambda path: path.with_name("index.json").write_text("[]"),
        lambda path: path.with_name("index.json").write_bytes(b"\xff\xfe"),
        rewrite_index(version=0),
        rewrite_index(train=None),
        rewrite_index(test={"file": "../x", "shape": [1], "spots": 0, "labels": []}),
    ],
)
def test_a_damaged_cache_is_made_again(place, decoded, damage):
    again(place)
    damage(next(home(place).glob("train-*.npy")))
    same(again(place).train, *TRAIN)
    assert decoded() == 140
    again(place)
    assert decoded() == 140


def test_a_changed_source_is_decoded_again_and_the_old_cache_goes(place, decoded):
    mapped = again(place).train
    write_parquet(place / "data" / "train.parquet", TRAIN[0][::-1], TRAIN[1][::-1], NAMES)
    same(again(place).train, TRAIN[0][::-1], TRAIN[1][::-1])
    same(mapped, *TRAIN)  # who had it open keeps it
    os.utime(place / "data" / "test.parquet", (1, 1))
    again(place)
    assert decoded() == 210
    assert sorted(p.suffix for p in home(place).iterdir()) == [".json", ".npy", ".npy"]


def test_another_image_size_has_a_cache_of_its_own(place, decoded):
    assert again(place, image_size=16).train.inputs.shape == (50, 16, 16, 3)
    assert again(place).train.inputs.shape == (50, 32, 32, 3)
    assert again(place, image_size=16).train.inputs.shape == (50, 16, 16, 3)
    assert decoded() == 140


def test_corrupt_rows_are_named_and_skipped_only_on_demand(place):
    rows = [*TRAIN[0]]
    rows[13], rows[40] = b"no image", None
    write_parquet(place / "data" / "train.parquet", rows, TRAIN[1], NAMES)
    with pytest.raises(
        InputError, match=r"train\.parquet, row 13 is not a readable image .* --skip-bad \(in Python: skip_bad"
    ) as raised:
        again(place)
    assert isinstance(raised.value, BadImage)
    assert raised.value.place.endswith("train.parquet, row 13")
    assert raised.value.reason == "unknown format"  # Pillow would name an object in memory
    with pytest.warns(UserWarning, match="cifar10: 2 images could not be read"):
        data = again(place, skip_bad=True)
    keep = np.delete(np.arange(50), [13, 40])
    same(data.train, TRAIN[0][keep], TRAIN[1][keep])


def test_decoding_in_parallel_keeps_the_order(monkeypatch):
    """The first image of every other chunk is decoded only after the next chunk has been."""
    monkeypatch.setattr(cache, "cores", lambda: 2)
    count = cache.CHUNK * 9 + 1  # more than may wait at once
    last_of_chunk = {i: threading.Event() for i in range(cache.CHUNK - 1, count, cache.CHUNK)}

    def decoded(i):
        if i % (2 * cache.CHUNK) == 0 and i + 2 * cache.CHUNK - 1 in last_of_chunk:
            assert last_of_chunk[i + 2 * cache.CHUNK - 1].wait(PATIENCE)
        if i in last_of_chunk:
            last_of_chunk[i].set()
        return np.full((1, 1, 3), i % 251, np.uint8)

    items = ((str(i), functools.partial(decoded, i)) for i in range(count))
    done = [pixels for chunk in cache.decode_all(items) for pixels in chunk]
    assert [int(pixels[0, 0, 0]) for pixels in done] == [i % 251 for i in range(count)]


def test_a_bad_image_keeps_its_facts_on_the_way_between_processes():
    bad = pickle.loads(pickle.dumps(BadImage("a.png", "it is empty", "drop it")))  # noqa: S301
    assert (bad.place, bad.reason) == ("a.png", "it is empty")
    assert str(bad) == "a.png is not a readable image (it is empty); drop it."


def test_many_at_once_do_not_harm_each_other(place):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: again(place), range(4)))
    for data in found:
        same(data.train, *TRAIN)
    assert sorted(p.suffix for p in home(place).iterdir()) == [".json", ".npy", ".npy"]


def test_a_full_disk_is_said_and_leaves_nothing(place, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    again(place)
    before = sorted(home(place).iterdir())
    os.utime(place / "data" / "test.parquet", (1, 1))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"the cache .* cannot be written \(no space left on device\); make room"):
        again(place)
    assert sorted(home(place).iterdir()) == before


def test_a_cache_folder_that_cannot_be_made(place):
    (place / "cache").write_text("a file is in the way")
    with pytest.raises(InputError, match=r"the cache .* cannot be written .* set ACCUACL_CACHE"):
        again(place)


def test_what_a_killed_process_left_is_cleared_away_but_not_what_is_being_written(place):
    again(place)
    for name, age in (("old.part", 7200), ("new.part", 0)):
        (home(place) / name).write_bytes(b"x")
        os.utime(home(place) / name, (time.time() - age,) * 2)
    os.utime(place / "data" / "test.parquet", (1, 1))
    again(place)
    assert [p.name for p in home(place).glob("*.part")] == ["new.part"]


START = """
import sys
from pathlib import Path
from accuacl.experiments.data import load, loading
loading.build_cache = None  # nothing is decoded a second time
data = load(sys.argv[1], cache_dir=Path(sys.argv[2]))
print(len(data.train), len(data.test), len(data.classes), data.train.inputs.mean() / 255)
"""


# Mean over all pixels, as the papers' normalisation has it for CIFAR-100; measured for the part of TinyImageNet here.
REAL = [("cifar100", (0.5071 + 0.4865 + 0.4409) / 3), ("tiny-imagenet", 0.442)]


@pytest.mark.parametrize(("name", "mean"), REAL[: times(1, 2)])
def test_real_data_is_there_at_once_the_second_time(name, mean, tmp_path):
    if not os.path.isdir(os.path.join(os.environ.get("ACCUACL_DATA", "/nowhere"), name)):
        pytest.skip(f"$ACCUACL_DATA has no {name}")
    data = load(name, cache_dir=tmp_path)
    assert data.train.inputs.mean() / 255 == pytest.approx(mean, abs=2e-3)
    assert set(data.train.labels) == set(data.test.labels) == set(range(len(data.classes)))
    assert list(data.classes) == sorted(data.classes)  # TinyImageNet's wnids: the order that its other layouts follow
    result = subprocess.run(
        [sys.executable, "-c", START, name, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [int(n) for n in result[:3]] == [len(data.train), len(data.test), len(data.classes)]
    assert float(result[3]) == data.train.inputs.mean() / 255
