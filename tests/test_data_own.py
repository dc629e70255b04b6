"""One's own data: image folders of any size and mode, bad images among them, and NumPy arrays."""

from __future__ import annotations

import io
import os
import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.experiments.data import holds_vectors, load
from test_data_layouts import encoded, pictures


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCUACL_CACHE", str(tmp_path / "cache"))


def save(path, image, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)


@pytest.fixture
def folder(tmp_path):
    """train/{ant,bee,cow} with three images each and val with one, each of one colour: (class, number, 0)."""
    root = tmp_path / "own"
    for c, name in enumerate(["ant", "bee", "cow"]):
        for split, count in (("train", 3), ("val", 1)):
            for i in range(count):
                save(root / split / name / f"{i}.png", Image.new("RGB", (12, 8), (c, i, 0)))
    return root


def test_image_folder(folder):
    (folder / "train" / "ant" / "notes.txt").write_text("not an image")
    (folder / "train" / "ant" / "._0.png").write_bytes(b"what macOS leaves behind")
    (folder / "train" / ".hidden").mkdir()
    data = load(str(folder))
    assert data.classes == ("ant", "bee", "cow")
    assert data.train.inputs.shape == (9, 8, 12, 3)
    np.testing.assert_array_equal(data.train.labels, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(data.test.labels, [0, 1, 2])
    np.testing.assert_array_equal(data.train.inputs[:, 0, 0, :2], [[c, i] for c in range(3) for i in range(3)])


def test_modes_and_orientation_become_rgb(folder):
    palette = Image.new("P", (12, 8), 1)
    palette.putpalette([9, 9, 9, 30, 40, 50])
    save(folder / "train" / "ant" / "3.png", palette, transparency=b"\xff\x00")
    save(folder / "train" / "ant" / "4.png", Image.new("L", (12, 8), 77))
    save(folder / "train" / "ant" / "5.png", Image.new("RGBA", (12, 8), (1, 2, 3, 0)))
    exif = Image.Exif()
    exif[0x0112] = 6  # held upright: stored lying on its side
    save(folder / "train" / "ant" / "6.png", Image.new("RGB", (8, 12), (4, 5, 6)), exif=exif)
    data = load(str(folder))
    np.testing.assert_array_equal(data.train.inputs[3:7, 2, 2], [[30, 40, 50], [77, 77, 77], [1, 2, 3], [4, 5, 6]])


def test_numbers_without_a_range_are_not_cut_to_eight_bits(folder):
    Image.fromarray(np.full((8, 12), 0.5, np.float32)).save(folder / "train" / "cow" / "9.tiff")
    with pytest.raises(InputError, match=r"cow/9\.tiff is not a readable image \(its mode is F; expected 8 or 16 bits"):
        load(str(folder))


def test_images_of_several_sizes_need_image_size(folder):
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 200  # the centre square
    save(folder / "train" / "bee" / "9.jpg", Image.fromarray(wide), quality=95)
    with pytest.raises(InputError, match=r"bee/9.jpg is 60 x 20 pixels where 12 x 8 were expected; .*--image-size"):
        load(str(folder), skip_bad=True)
    data = load(str(folder), image_size=10)
    assert data.train.inputs.shape == (10, 10, 10, 3)
    assert data.train.inputs[6, 2:-2, 2:-2].min() > 190
    assert load(str(folder), image_size=4).test.inputs.shape == (3, 4, 4, 3)
    with pytest.raises(InputError, match="image_size is 0"):
        load(str(folder), image_size=0)


def truncated(image):
    return encoded(image)[:-200]


@pytest.mark.parametrize(
    "broken", [b"", b"not an image", truncated(pictures(1, 1)[0][0]), encoded(pictures(1, 1)[0][0], "JPEG")[:300]]
)
def test_a_corrupt_image_is_named_and_skipped_only_on_demand(folder, broken):
    bad = folder / "train" / "bee" / "1.png"
    bad.write_bytes(broken)
    with pytest.raises(InputError, match=r"own/train/bee/1\.png is not a readable image \(.*--skip-bad"):
        load(str(folder))
    for _ in range(2):  # decoded, then from the cache
        with pytest.warns(UserWarning, match="1 images could not be read and were left out"):
            data = load(str(folder), skip_bad=True)
        np.testing.assert_array_equal(data.train.labels, [0, 0, 0, 1, 1, 2, 2, 2])
        np.testing.assert_array_equal(data.train.inputs[:, 0, 0, 1], [0, 1, 2, 0, 2, 0, 1, 2])
    with pytest.raises(InputError, match=r"bee/1\.png"):  # a cache without it does not hide it
        load(str(folder))


@pytest.mark.posix
def test_a_broken_link_is_a_corrupt_image(folder):
    (folder / "val" / "ant" / "1.png").symlink_to("nowhere.png")
    with pytest.raises(InputError, match=r"val/ant/1\.png is not a readable image \(no such file or directory\);"):
        load(str(folder))


def test_classes_whose_names_are_not_utf8(folder):
    odd = os.fsdecode(os.fsencode(folder) + b"/train/\xff")
    os.rename(folder / "train" / "cow", odd)
    os.rename(folder / "val" / "cow", odd.replace("/train/", "/val/"))
    for _ in range(2):  # decoded, then from the cache
        assert load(str(folder)).classes == ("ant", "bee", "\udcff")


def test_wrong_image_folders(folder):
    save(folder / "val" / "zebra" / "0.png", Image.new("RGB", (12, 8)))
    with pytest.raises(InputError, match=r"zebra/0\.png is of the unknown class zebra; the classes are the folders in"):
        load(str(folder))
    shutil.rmtree(folder / "val")
    (folder / "test").mkdir()
    with pytest.raises(InputError, match="the test split has no image that can be read"):
        load(str(folder))


VECTORS = {
    "x_train": np.random.default_rng(0).normal(size=(12, 5)),
    "y_train": np.arange(12) % 3,
    "x_test": np.ones((3, 5)),
    "y_test": np.arange(3),
}


@pytest.mark.parametrize("form", ["npy", "one npz", "two npz"])
def test_arrays(tmp_path, form):
    if form == "npy":
        for key, value in VECTORS.items():
            letter, split = key.split("_")
            np.save(tmp_path / f"{split}_{'inputs' if letter == 'x' else 'labels'}.npy", value)
    elif form == "one npz":
        np.savez(tmp_path / "mine.npz", **VECTORS)
    else:
        for split in ("train", "test"):
            np.savez_compressed(tmp_path / f"{split}.npz", x=VECTORS[f"x_{split}"], y=VECTORS[f"y_{split}"])
    data = load(str(tmp_path))
    assert data.train.inputs.dtype == np.float32
    np.testing.assert_array_equal(data.train.inputs, VECTORS["x_train"].astype(np.float32))
    np.testing.assert_array_equal(data.train.labels, VECTORS["y_train"])
    np.testing.assert_array_equal(data.test.inputs, np.ones((3, 5)))
    assert data.classes == ("0", "1", "2")
    (tmp_path / "classes.txt").write_text("a\nb\nc\nd\n")
    assert load(str(tmp_path)).classes == ("a", "b", "c", "d")


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1), (4, 6, 3)])
def test_image_arrays_become_rgb(tmp_path, shape):
    images = np.random.default_rng(0).integers(0, 256, (12, *shape), np.uint8)
    np.savez(tmp_path / "a.npz", **{**VECTORS, "x_train": images, "x_test": images[:3]})
    data = load(str(tmp_path))
    expected = images if shape[2:] == (3,) else np.stack([images.reshape(12, 4, 6)] * 3, axis=3)
    np.testing.assert_array_equal(data.train.inputs, expected)


def test_a_float32_file_is_mapped_not_read(tmp_path):
    for key, value in VECTORS.items():
        np.save(tmp_path / f"{key}.npy", value.astype(np.float32) if key[0] == "x" else value)
    assert isinstance(load(str(tmp_path)).train.inputs, np.memmap)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y_test": np.array([0, 1, 3])}, "test: row 2 has the unknown class 3; the classes are 0 to 2"),
        ({"y_train": np.arange(12) % 3 - 1}, "train: row 0 has the unknown class -1"),
        ({"y_train": np.arange(11) % 3}, "train has 12 inputs and 11 labels"),
        ({"y_train": np.ones(12)}, r"train labels are float64 of shape \(12,\); give one integer per input"),
        ({"x_test": np.ones((3, 4))}, r"training inputs have shape \(5,\) and test inputs \(4,\)"),
        ({"x_test": np.ones((3, 4, 4, 3))}, r"test inputs are float64 of shape \(3, 4, 4, 3\); give uint8 images"),
        ({"x_test": np.full((3, 5), np.nan)}, "test inputs: row 0 is not finite"),
        ({"x_test": np.array([[None] * 5] * 3)}, r"a\.npz cannot be read \(.*it does not hold plain arrays"),
    ],
)
def test_wrong_arrays(tmp_path, change, says):
    np.savez(tmp_path / "a.npz", **{**VECTORS, **change})
    with pytest.raises(InputError, match=says):
        load(str(tmp_path))


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed, "npy"])
@pytest.mark.parametrize(("shape", "vectors"), [((5,), True), ((4, 6), False), ((4, 6, 3), False)])
def test_vectors_are_told_from_images_by_the_header_alone(tmp_path, write, shape, vectors):
    x = np.zeros((12, *shape), np.uint8)
    contents = {**VECTORS, "x_train": x, "x_test": x[:3]}
    if write == "npy":
        for key, value in contents.items():
            np.save(tmp_path / f"{key}.npy", value)
    else:
        write(tmp_path / "a.npz", **contents)
    assert holds_vectors(tmp_path) == vectors
    assert (load(str(tmp_path)).train.inputs.ndim == 2) == vectors


def test_image_folders_and_broken_arrays_hold_no_vectors(folder, tmp_path):
    assert not holds_vectors(folder)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for key in VECTORS:
            archive.writestr(f"{key}.npy", b"no array")
    with pytest.raises(InputError, match=r"a\.npz cannot be read \(.*\); write plain arrays with numpy\.save"):
        holds_vectors(tmp_path)


def test_arrays_have_their_size(tmp_path):
    np.savez(tmp_path / "a.npz", **VECTORS)
    with pytest.raises(InputError, match="holds arrays and --image-size is for files of images"):
        load(str(tmp_path), image_size=8)
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    with pytest.raises(InputError, match=r"a\.npz is not a readable \.npz file"):
        load(str(tmp_path))


def test_a_large_jpeg_keeps_its_picture_when_made_small(folder):
    ramp = np.broadcast_to(np.arange(0, 256, dtype=np.uint8).repeat(8)[None, :, None], (2048, 2048, 3))
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(ramp)).save(out, "JPEG")
    (folder / "train" / "ant" / "0.png").write_bytes(out.getvalue())  # goes by content, not by name
    small = load(str(folder), image_size=16).train.inputs[0]
    np.testing.assert_allclose(small[..., 0], np.broadcast_to(np.arange(16) * 16 + 7.5, (16, 16)), atol=4)


def test_names_of_classes_that_are_not_text(tmp_path):
    np.savez(tmp_path / "a.npz", **VECTORS)
    (tmp_path / "classes.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(InputError, match=r"classes\.txt cannot be read \(.*\); write one class per line in UTF-8"):
        load(str(tmp_path))


@pytest.mark.parametrize("name", [None, 3, ["digits"]])
def test_a_data_set_has_a_name(name):
    with pytest.raises(InputError, match="give its name, such as digits, or a file or folder"):
        load(name)
