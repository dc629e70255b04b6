"""`load`: a data set by name, or from a folder of one's own."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.names import near
from accuacl.base.progress import OnProgress
from accuacl.data import arrays, cifar, folders, parquet
from accuacl.data.cache import DecodeOptions, build_cache, read_cache
from accuacl.data.dataset import Dataset, check_labels
from accuacl.data.digits import digits
from accuacl.data.joined import join, task_parts
from accuacl.data.source import RawDataset, Source


@dataclass(frozen=True)
class Published:
    """A published data set: how many classes it has, how large its images are, what to get and from whom."""

    classes: int
    side: int
    files: str
    published: str


PARQUET = "train-*.parquet and test-*.parquet in the Hugging Face layout"
NAME_IT = "with --data-dir or in the environment variable ACCUACL_DATA"
TORONTO = "Alex Krizhevsky's CIFAR page at the University of Toronto"
PUBLISHED = {
    "digits": Published(10, 8, "nothing", "scikit-learn"),
    "cifar10": Published(10, 32, f"cifar-10-binary.tar.gz, cifar-10-python.tar.gz or {PARQUET}", TORONTO),
    "cifar100": Published(100, 32, f"cifar-100-binary.tar.gz, cifar-100-python.tar.gz or {PARQUET}", TORONTO),
    "tiny-imagenet": Published(
        200, 64, f"tiny-imagenet-200.zip, unpacked or not, or {PARQUET}", "Stanford's course CS231n on its web pages"
    ),
}


def load(
    name: str,
    data_dir: Path | None = None,
    *,
    cache_dir: Path | None = None,
    skip_bad: bool = False,
    image_size: int | None = None,
    progress: OnProgress | None = None,
) -> Dataset:
    """The data set called `name`, or the one in the folder `name`.

    name: digits (always there), cifar10, cifar100, tiny-imagenet; or a folder, here or in data_dir, with Parquet files
    or images (train/<class>/*, test/<class>/*) or NumPy arrays (see accuacl.data.arrays); or with such a folder, or an
    .npz file, for each task: task-1, task-2, ...
    data_dir: where published data sets lie, each in a folder of its name or not; default: $ACCUACL_DATA.
    cache_dir: where decoded images are kept for the next start; default: $ACCUACL_CACHE or ~/.cache/accuacl.
    skip_bad: leave out images that cannot be read, with a warning that counts them, instead of raising BadImage.
    image_size: make images square with this side; without it they must all have the same size.
    progress: called while images are decoded.

    >>> data = load("digits")
    >>> data.train.inputs.shape, data.test.inputs.shape, len(data.classes)
    ((1201, 64), (596, 64), 10)
    """
    if image_size is not None and image_size < 1:
        raise InputError(f"image_size is {image_size}; give the side of an image in pixels, at least 1.")
    if name == "digits":
        return digits()
    if name in PUBLISHED:
        source = find_known(name, data_dir)
    else:
        return _own(name, own_folder(name, data_dir), cache_dir, DecodeOptions(image_size, None, skip_bad, progress))
    side = PUBLISHED[name].side if image_size is None else None
    return _images(name, source, cache_dir, DecodeOptions(image_size, side, skip_bad, progress))


def _own(name: str, folder: Path, cache_dir: Path | None, options: DecodeOptions) -> Dataset:
    """The data set in a folder of one's own, or in the folders or files that it has for each task."""
    parts = task_parts(folder) if folder.is_dir() else []
    if parts:
        return join(name, [(part.stem, _own(str(part), part, cache_dir, options)) for part in parts])
    fields = arrays.find(folder)
    if fields is None:
        return _images(name, _find_own(folder), cache_dir, options)
    if options.size is not None:
        raise InputError(f"{folder} holds arrays and --image-size is for files of images; leave it out.")
    return arrays.read(name, folder if folder.is_dir() else folder.parent, fields)


def own_folder(
    name: str, data_dir: Path | None = None, what: str = "data set", known: Iterable[str] = PUBLISHED
) -> Path:
    """The folder `name`, here or in data_dir. If there is none, the sentence says so and names the `known` ones."""
    data_dir = _data_dir(data_dir)
    for folder in (Path(name).expanduser(), *([data_dir / name] if data_dir else [])):
        if folder.is_dir():
            return folder
    where = f"here or in {data_dir}" if data_dir else f"here, and no data folder is named {NAME_IT}"
    meant = near(name, known)
    hint = f"did you mean {meant}? The" if meant else "the"
    raise InputError(f"there is no {what} or folder {name!r} {where}; {hint} {what}s are {', '.join(known)}.")


def holds_vectors(folder: Path) -> bool:
    """Whether a folder of one's own holds vectors and not images; only a header is read."""
    fields = arrays.find(next(iter(task_parts(folder)), folder))
    return fields is not None and arrays.are_vectors(fields)


def holds_tasks(folder: Path) -> bool:
    """Whether a folder of one's own says which task an example is of, by a column or by a folder or file each."""
    if task_parts(folder):
        return True
    fields = arrays.find(folder)
    if fields is not None:
        return "train_task" in fields
    source = parquet.find(folder)
    return source is not None and parquet.has_column(source, "task")


def _images(name: str, source: Source, cache_dir: Path | None, options: DecodeOptions) -> Dataset:
    home = _cache_folder(name, source, cache_dir, options.size)
    fingerprint = source.fingerprint()
    cached = read_cache(home, fingerprint)
    if cached is None or (cached.skipped and not options.skip_bad):  # then decoding again names what is bad
        cached = build_cache(home, _checked(name, source), fingerprint, options)
    if cached.skipped:
        warnings.warn(f"{name}: {cached.skipped} images could not be read and were left out.", stacklevel=3)
    return Dataset(name, cached.train, cached.test, cached.classes)


def _checked(name: str, source: Source) -> RawDataset:
    """What the source holds, with a name for every class and no label beyond them."""
    raw = source.open()
    classes = raw.classes
    if not classes:
        count = PUBLISHED[name].classes if name in PUBLISHED else int(raw.train.labels.max(initial=0)) + 1
        classes = tuple(str(c) for c in range(count))
    if name in PUBLISHED and len(classes) != PUBLISHED[name].classes:
        raise InputError(
            f"{source.path} has {len(classes)} classes and {name} has {PUBLISHED[name].classes}; "
            f"put {PUBLISHED[name].files} there instead, or give the folder itself as the name of the data set."
        )
    check_labels(raw.train.labels, len(classes), f"{source.path}, train")
    check_labels(raw.test.labels, len(classes), f"{source.path}, test")
    return replace(raw, classes=classes)


def find_known(name: str, data_dir: Path | None = None) -> Source:
    """Where a published data set lies: in a folder of its name in the data folder, or in that itself."""
    known, data_dir = PUBLISHED[name], _data_dir(data_dir)
    if data_dir is None:
        raise InputError(
            f"{name} needs a data folder and none is set; put {known.files} (published on {known.published}) "
            f"in a folder and name it {NAME_IT}."
        )
    for folder in (data_dir / name, data_dir):
        source = cifar.find(name, folder)
        if source is None and name == "tiny-imagenet":
            source = folders.find_tiny(folder)
        source = source or parquet.find(folder)
        if source:
            return source
    raise InputError(
        f"{name} is not in {data_dir / name} nor in {data_dir}; put {known.files} there, "
        f"as published on {known.published}, or name another folder {NAME_IT}."
    )


def _data_dir(given: Path | None) -> Path | None:
    set_ = os.environ.get("ACCUACL_DATA")
    return given if given is not None or not set_ else Path(set_)


def _find_own(folder: Path) -> Source:
    source = parquet.find(folder, columns=True) or folders.find_tiny(folder) or folders.find(folder)
    if source is None:
        raise InputError(
            f"{folder} holds no data set; put train/<class>/ and test/<class>/ with images there, "
            f"{PARQUET}, or the arrays x_train, y_train, x_test and y_test as .npy or .npz."
        )
    return source


def cache_home(cache_dir: Path | None = None) -> Path:
    """The folder that holds all caches of decoded images."""
    return cache_dir or Path(os.environ.get("ACCUACL_CACHE") or Path.home() / ".cache" / "accuacl")


def _cache_folder(name: str, source: Source, cache_dir: Path | None, image_size: int | None) -> Path:
    readable = re.sub(r"[^\w-]+", "-", Path(name).name).strip("-") or "data"
    key = hashlib.sha256(f"{os.path.abspath(source.path)}\0{image_size}".encode("utf-8", "surrogateescape"))
    return cache_home(cache_dir) / f"{readable}-{key.hexdigest()[:12]}"
