"""The user's own data as NumPy arrays: .npy or .npz files, or a folder with them, of two splits or one.

The arrays are called x_train, y_train, x_test and y_test, or train_inputs, train_labels, test_inputs and test_labels:
as .npy files or in one .npz of any name; or inputs (or x) and labels (or y) in train.npz and test.npz. Inputs are uint8
images (n, H, W), (n, H, W, 1) or (n, H, W, 3), or vectors (n, d). classes.txt may name the classes, one per line.
task_train and task_test, or domain_train and domain_test, may give each row's task or domain, as numbers or texts.
Without a test split (x_train and y_train alone, or inputs and labels, or x and y) a fifth is held out. A .npy file that
is given itself has its labels beside it: NAME_labels.npy, labels.npy or y.npy. The idx files of MNIST and sets like it
are read by their published names.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import BROKEN_ARRAYS, reason
from accuacl.experiments.data.dataset import COLUMNS, Dataset, Split, check_labels
from accuacl.experiments.data.splits import in_two

Fields = dict[str, tuple[Path, str | None]]  # of each array: its file, and in an .npz its key
# What arrays may be called, and what they are called here. Of two spellings of one field the last is taken.
SPLITS = {
    spelling: f"{split}_{kind}"
    for split in ("train", "test")
    for kind, short in (("inputs", "x"), ("labels", "y"), *zip(COLUMNS, COLUMNS, strict=True))
    for spelling in (f"{split}_{kind}", f"{short}_{split}", f"{split}_{short}")
}
WHOLE = (
    dict.fromkeys(("inputs", "x", "embeddings", "features"), "train_inputs")
    | dict.fromkeys(("labels", "y"), "train_labels")
    | {column: f"train_{column}" for column in COLUMNS}
)
# The files of MNIST, with a hyphen or a dot before idx, compressed or not.
IDX = {
    f"{split}_{kind}": f"{prefix}-{what}[-.]idx{dimensions}-ubyte"
    for split, prefix in (("train", "train"), ("test", "t10k"))
    for kind, what, dimensions in (("inputs", "images", 3), ("labels", "labels", 1))
}
WRITE = "write plain arrays with numpy.save"


def find(path: Path) -> Fields | None:
    """Where each array is, in this folder or file; None unless inputs and labels are there."""
    if path.suffix == ".npy" and path.is_file():
        return _beside(path)
    there: Fields = {}
    for field, name in IDX.items():
        if files := [*path.glob(name), *path.glob(f"{name}.gz")]:
            there[field] = files[0], None
    there |= _plain_arrays(path)
    for archive in [path] if path.suffix == ".npz" and path.is_file() else sorted(path.glob("*.npz")):
        prefix = f"{archive.stem}_" if archive.stem in ("train", "test") else ""
        there |= {prefix + key: (archive, key) for key in _keys(archive)}
    return _fields(there)


def _beside(place: Path) -> Fields:
    """The arrays that belong to a .npy file: those of its folder, or labels beside it."""
    fields = _fields(_plain_arrays(place.parent))
    if fields and (place, None) in fields.values():
        return fields
    names = (f"{place.stem}_labels", f"{place.stem}-labels", "labels", "y")
    labels = next((path for name in names if (path := place.with_name(f"{name}.npy")).is_file()), None)
    if labels is None or labels == place:
        raise InputError(
            f"{place} has no labels beside it; write them to {names[0]}.npy in the same folder, one integer per row."
        )
    return {"train_inputs": (place, None), "train_labels": (labels, None)}


def _plain_arrays(folder: Path) -> Fields:
    return {path.stem: (path, None) for path in sorted(folder.glob("*.npy"))}


def _fields(there: Fields) -> Fields | None:
    """Inputs, labels and other known arrays; None unless inputs and labels are there."""
    for names in (SPLITS, WHOLE):
        fields = {field: there[spelling] for spelling, field in names.items() if spelling in there}
        if {"train_inputs", "train_labels"} <= fields.keys():
            return fields
    return None


def held_out(fields: Fields) -> bool:
    """Whether there is no test split; half a test split is none."""
    return not {"test_inputs", "test_labels"} <= fields.keys()


def are_vectors(fields: Fields) -> bool:
    """Whether the inputs are vectors, by their header."""
    path, key = fields["train_inputs"]
    if key is None:
        return _load(path).ndim == 2  # mapped, not read
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as file:
            old = np.lib.format.read_magic(file) == (1, 0)
            shape, *_ = (np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0)(file)
    except BROKEN_ARRAYS as error:
        raise InputError(f"{path} cannot be read ({reason(error)}); {WRITE}.") from error
    return len(shape) == 2


def read(name: str, path: Path, fields: Fields) -> Dataset:
    """The data set in these arrays of a file or folder, checked."""
    train, test = in_two(
        [_split(path, fields, name) for name in (("train",) if held_out(fields) else ("train", "test"))]
    )
    if train.inputs.shape[1:] != test.inputs.shape[1:] or train.inputs.dtype != test.inputs.dtype:
        raise InputError(
            f"{path}: training inputs have shape {train.inputs.shape[1:]} and test inputs {test.inputs.shape[1:]}; "
            "make them alike."
        )
    names = (path if path.is_dir() else path.parent) / "classes.txt"
    last, rows = int(train.labels.max()), len(train) + len(test)
    if names.is_file():
        try:
            classes = tuple(names.read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{names} cannot be read ({reason(error)}); write one class per line in UTF-8.") from error
    elif last > rows:  # a hash, say: names for all numbers up to it would fill the memory
        raise InputError(
            f"{path}: row {int(train.labels.argmax())} of train has the class {last}, but there are only {rows} rows; "
            "number the classes 0, 1, 2, ... without gaps."
        )
    else:
        classes = tuple(str(c) for c in range(max(0, last) + 1))
    check_labels(train.labels, test.labels, len(classes), path)
    return Dataset(name, train, test, classes)


def _split(path: Path, fields: Fields, name: str) -> Split:
    split = Split(
        _inputs(_load(*fields[f"{name}_inputs"]), f"{path}: {name}"),
        _labels(_load(*fields[f"{name}_labels"]), f"{path}: {name}"),
        {c: _load(*fields[f"{name}_{c}"]) for c in COLUMNS if f"{name}_{c}" in fields},
    )
    if len(split.inputs) != len(split.labels) or not len(split):
        raise InputError(
            f"{path}: {name} has {len(split.inputs)} inputs and {len(split.labels)} labels; "
            "give each input one label, and at least one input."
        )
    for column, values in split.columns.items():
        if values.shape != (len(split),) or values.dtype.kind not in "iuUS":
            raise InputError(
                f"{path}: {column}_{name} is {values.dtype} of shape {values.shape}; give a whole number or a "
                f"text for each of the {len(split)} rows."
            )
    return split


def _inputs(array: NDArray[Any], split: str) -> NDArray[Any]:
    if array.dtype == np.uint8 and (array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3))):
        grey = array[..., None] if array.ndim == 3 else array
        return grey if grey.shape[3] == 3 else np.repeat(grey, 3, axis=3)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{split} inputs are {array.dtype} of shape {array.shape}; "
            "give uint8 images (n, H, W, 3) or vectors of numbers (n, d)."
        )
    vectors = array if array.dtype == np.float32 else array.astype(np.float32)
    for start in range(0, len(vectors), 4096):
        finite = np.isfinite(vectors[start : start + 4096]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise InputError(f"{split} inputs: row {row} is not finite; drop or repair such rows.")
    return vectors


def _labels(array: NDArray[Any], split: str) -> NDArray[np.int64]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{split} labels are {array.dtype} of shape {array.shape}; give one integer per input.")
    return np.array(array, np.int64)


def _keys(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path} is not a readable .npz file ({reason(error)}); write it again.") from error


def _load(path: Path, key: str | None = None) -> NDArray[Any]:
    if path.name.endswith(("-ubyte", "-ubyte.gz")):
        return read_idx(path)
    try:
        if key is None:  # "c": writable, as torch wants it, but never written back
            return np.load(path, mmap_mode="c", allow_pickle=False)
        with np.load(path, allow_pickle=False) as archive:
            return archive[key]
    except BROKEN_ARRAYS as error:
        raise InputError(f"{path} cannot be read ({reason(error)}); {WRITE}.") from error


def read_idx(path: Path) -> NDArray[Any]:
    """The array of a file in the format of MNIST: two zeros, 8 for bytes, how many dimensions, and these."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            zeros, kind, dimensions = int.from_bytes(stream.read(2)), stream.read(1), int.from_bytes(stream.read(1))
            shape = [int.from_bytes(stream.read(4)) for _ in range(dimensions)]
            content = stream.read()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({reason(error)}); download it again.") from None
    if zeros or kind != b"\x08" or len(content) != np.prod(shape):
        raise InputError(f"{path} is not a complete idx file of bytes; download it again.")
    return np.frombuffer(content, np.uint8).reshape(shape)
