"""`load`: a data set by name, or from a folder of one's own."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from dataclasses import replace
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, check_progress
from accuacl.data import arrays, holdout, tables
from accuacl.data.cache import DecodeOptions, build_cache, read_cache
from accuacl.data.dataset import ColumnNames, Dataset, check_labels
from accuacl.data.digits import digits
from accuacl.data.joined import join, task_name, task_parts
from accuacl.data.own import find_images, names_images, own_data
from accuacl.data.published import PUBLISHED, find_known
from accuacl.data.source import RawDataset, Source
from accuacl.data.splits import find_tables


def load(
    name: str | os.PathLike[str],
    data_dir: Path | None = None,
    *,
    cache_dir: Path | None = None,
    skip_bad: bool = False,
    image_size: int | None = None,
    label_column: str = "",
    task_column: str = "",
    progress: OnProgress | None = None,
) -> Dataset:
    """The data set called `name`, or the one in the file or folder `name`.

    name: digits (always there), cifar10, cifar100, tiny-imagenet; or a file or folder, here or in data_dir: images
    (train/<class>/*, test/<class>/*), NumPy arrays (see accuacl.data.arrays), tables (CSV, TSV, JSON, JSON lines,
    Parquet, Arrow; see accuacl.data.tables); or a folder with such a file or folder for each task: task-1, task-2, ...
    Of data without a test split a fifth of each class is held out, with a warning.
    data_dir: where published data sets lie, each in a folder of its name or not; default: $ACCUACL_DATA.
    cache_dir: where decoded images are kept for the next start; default: $ACCUACL_CACHE or ~/.cache/accuacl.
    skip_bad: leave out images that cannot be read, with a warning that counts them, instead of raising BadImage.
    image_size: make images square with this side; without it they must all have the same size.
    label_column: of a table, the column with the classes, if it is not called label, class, target or y.
    task_column: of a table, the column that says in which task a row arrived, if it is not called task.
    progress: called while images are decoded.

    >>> data = load("digits")
    >>> data.train.inputs.shape, data.test.inputs.shape, len(data.classes)
    ((1201, 64), (596, 64), 10)
    """
    if not isinstance(name, str | os.PathLike):
        raise InputError(f"the data set is {name!r}; give its name, such as digits, or a file or folder.")
    name = os.fspath(name)
    check_progress(progress)
    if image_size is not None and image_size < 1:
        raise InputError(f"image_size is {image_size}; give the side of an image in pixels, at least 1.")
    if name == "digits":
        return digits()
    if name in PUBLISHED:
        source = find_known(name, data_dir)
    else:
        options = DecodeOptions(image_size, None, skip_bad, progress)
        return _own(name, own_data(name, data_dir), cache_dir, options, ColumnNames(label_column, task_column))
    if label_column or task_column:
        option = "--label-column" if label_column else "--task-column"
        raise InputError(f"{name} is no table of your own, which {option} is for; leave it out.")
    side = PUBLISHED[name].side if image_size is None else None
    return _images(name, source, cache_dir, DecodeOptions(image_size, side, skip_bad, progress))


def _own(name: str, place: Path, cache_dir: Path | None, options: DecodeOptions, named: ColumnNames) -> Dataset:
    """The data set in a file or folder of one's own, or in those that it has for each task."""
    parts = task_parts(place)
    if parts:
        if named.task:
            raise InputError(f"{place} has a file or folder for each task, so leave out --task-column.")
        return join(name, [(task_name(p), _own(str(p), p, cache_dir, options, named)) for p in parts])
    fields, files = arrays.find(place), find_tables(place)
    if any(named) and (fields or not files):
        option = "--label-column" if named.label else "--task-column"
        raise InputError(f"{place} is no table, so it has no column {named.label or named.task!r}; leave out {option}.")
    if fields:
        data, held = arrays.read(name, place, fields), arrays.held_out(fields)
    elif files and not names_images(files):
        data, held = tables.read_vectors(name, files, named)
    else:
        source = find_images(place, files, named)
        data, held = _images(name, source, cache_dir, options), holdout.READING in source.reading
    if options.size is not None and (fields or data.train.inputs.ndim == 2):
        raise InputError(f"{place} holds arrays and --image-size is for files of images; leave it out.")
    if held:
        holdout.tell(place, len(data.train), len(data.test))
    return data


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


def cache_home(cache_dir: Path | None = None) -> Path:
    """The folder that holds all caches of decoded images."""
    return cache_dir or Path(os.environ.get("ACCUACL_CACHE") or Path.home() / ".cache" / "accuacl")


def _cache_folder(name: str, source: Source, cache_dir: Path | None, image_size: int | None) -> Path:
    readable = re.sub(r"[^\w-]+", "-", Path(name).name).strip("-") or "data"
    key = hashlib.sha256(f"{os.path.abspath(source.path)}\0{image_size}".encode("utf-8", "surrogateescape"))
    return cache_home(cache_dir) / f"{readable}-{key.hexdigest()[:12]}"
