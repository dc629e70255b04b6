"""The official CIFAR-10 and CIFAR-100: binary or python version, as archive or unpacked.

The python version, the commonest download, is pickled. It is read by an unpickler that knows five names and makes
nothing but arrays of bytes of them; the last part of this module is the only place that unpickles anything.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, a_type
from accuacl.base.files import reading, reason
from accuacl.experiments.data.dataset import Pixels, RawDataset, RawImage, RawSplit, Source

PIXELS = 3 * 32 * 32


class Version(NamedTuple):
    """The names of its files and folder, and where labels are.

    label: of the binary version, the bytes before the pixels, the last of which is the label; of the python version,
    the keys of the labels and of the names.
    """

    archive: str
    folder: str
    train: tuple[str, ...]
    test: str
    names: str
    label: int | tuple[str, str]


BATCHES = tuple(f"data_batch_{i}" for i in range(1, 6))
BINARY = tuple(f"{batch}.bin" for batch in BATCHES)
KEYS, FINE_KEYS = ("labels", "label_names"), ("fine_labels", "fine_label_names")
VERSIONS = {
    "cifar10": (
        Version("cifar-10-binary.tar.gz", "cifar-10-batches-bin", BINARY, "test_batch.bin", "batches.meta.txt", 1),
        Version("cifar-10-python.tar.gz", "cifar-10-batches-py", BATCHES, "test_batch", "batches.meta", KEYS),
    ),
    "cifar100": (
        Version("cifar-100-binary.tar.gz", "cifar-100-binary", ("train.bin",), "test.bin", "fine_label_names.txt", 2),
        Version("cifar-100-python.tar.gz", "cifar-100-python", ("train",), "test", "meta", FINE_KEYS),
    ),
}


def find(name: str, folder: Path) -> Source | None:
    """The first official version of `name` that lies in `folder`."""
    for version in VERSIONS.get(name, ()):
        for unpacked in (folder / version.folder, folder):
            paths = [unpacked / file for file in (*version.train, version.test, version.names)]
            if all(path.is_file() for path in paths):
                open_ = functools.partial(_open, version, unpacked, _read_folder)
                return Source(unpacked, tuple(map(os.path.abspath, paths)), open_)
        archive = folder / version.archive
        if archive.is_file():
            open_ = functools.partial(_open, version, archive, _read_archive)
            return Source(archive, (os.path.abspath(archive),), open_)
    return None


def _open(version: Version, path: Path, read: Callable[[Path, Sequence[str]], dict[str, bytes]]) -> RawDataset:
    data = read(path, (*version.train, version.test, version.names))
    train, test = (
        _split([(f"{path}: {file}", *_batch(version, data[file], f"{path}: {file}")) for file in files])
        for files in (version.train, (version.test,))
    )
    return RawDataset(train, test, _class_names(version, data[version.names], f"{path}: {version.names}"))


def _split(batches: list[tuple[str, NDArray[np.int64], Pixels]]) -> RawSplit:
    """The split made of these places, labels and images."""

    def images() -> Iterator[RawImage]:
        for place, _, pixels in batches:
            for row in range(len(pixels)):
                yield f"{place}, row {row}", functools.partial(pixels.__getitem__, row)

    return RawSplit(np.concatenate([labels for _, labels, _ in batches]), images)


def _batch(version: Version, data: bytes, place: str) -> tuple[NDArray[np.int64], Pixels]:
    """Labels and images of one file, whose images are stored one colour after the other."""
    if isinstance(version.label, int):
        if len(data) % (version.label + PIXELS):
            raise InputError(
                f"{place} has {len(data)} bytes, not a multiple of {version.label + PIXELS}; download it again."
            )
        records = np.frombuffer(data, np.uint8).reshape(-1, version.label + PIXELS)
        labels, pixels = records[:, version.label - 1].astype(np.int64), records[:, version.label :]
    else:
        batch = read_batch(data, place)
        pixels, classes = batch.get("data", ()), batch.get(version.label[0], ())
        numbers = isinstance(classes, list) and all(isinstance(c, int) and 0 <= c < 256 for c in classes)
        if not numbers or not isinstance(pixels, np.ndarray) or pixels.shape != (len(classes), PIXELS):
            raise InputError(f"{place} does not hold one label and {PIXELS} bytes per image; download it again.")
        labels = np.array(classes, np.int64)
    return labels, pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def _class_names(version: Version, data: bytes, place: str) -> tuple[str, ...]:
    names = data.split() if isinstance(version.label, int) else read_batch(data, place).get(version.label[1])
    if not isinstance(names, list):
        raise InputError(f"{place} does not name the classes; download it again.")
    return tuple(map(_text, names))


def _read_folder(folder: Path, files: Sequence[str]) -> dict[str, bytes]:
    contents = {}
    for file in files:
        with reading(folder / file):
            contents[file] = (folder / file).read_bytes()
    return contents


def _read_archive(path: Path, files: Sequence[str]) -> dict[str, bytes]:
    """The wanted files, straight from the archive: nothing is unpacked to disk."""
    contents = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                file = member.name.rsplit("/", 1)[-1]
                stream = archive.extractfile(member) if file in files else None
                if stream is not None:
                    contents[file] = stream.read()
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is damaged ({reason(error)}); download it again.") from error
    for file in files:
        if file not in contents:
            raise InputError(f"{path} has no {file} in it; download it again.")
    return contents


# The python version: no pickle but CIFAR's is admitted


def read_batch(data: bytes, place: str) -> dict[str, Any]:
    """The dictionary in a CIFAR python file, with arrays of uint8, lists, numbers and text."""
    try:
        batch = _CifarUnpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # a damaged or forged pickle makes the unpickler raise nearly anything
        raise InputError(f"{place} is not a CIFAR python file ({reason(error)}); download it again.") from error
    if not isinstance(batch, dict):
        raise InputError(f"{place} holds {a_type(batch)}, not CIFAR's dictionary; download it again.")
    return {_text(key): value.pixels if isinstance(value, _Array) else value for key, value in batch.items()}


class _Dtype:
    def __init__(self, kind: Any, *_: Any) -> None:
        if _text(kind) != "u1":
            raise InputError(f"it holds an array of {kind!r}, and only bytes are allowed")

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment: nothing to a single byte."""


class _Array:
    pixels: Pixels

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        if not isinstance(dtype, _Dtype):
            raise InputError("it holds an array without a type")
        self.pixels = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")


def _reconstruct(kind: Any, *_: Any) -> _Array:
    if kind is not _Array:
        raise InputError("it holds a subclass of an array")
    return _Array()


def _encode(text: str, encoding: str) -> bytes:
    return text.encode("latin1" if encoding in ("latin1", b"latin1") else "ascii")


ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
}


class _CifarUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise InputError(f"it refers to {module}.{name}, which CIFAR files never contain; refused")
        return ADMITTED[module, name]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
