"""Load a data set by its name or path: the published ones, and the user's own in any layout that can be read.

`load` finds the layout and reads vectors at once; images are decoded once into a cache and memory-mapped from there.
The modules cifar, folders, arrays and table_data know one kind of layout each.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, near
from accuacl.base.progress import OnProgress, check_progress
from accuacl.base.randomness import rank
from accuacl.experiments.data import arrays, cifar, folders, table_data
from accuacl.experiments.data.cache import DecodeOptions, build_cache, read_cache
from accuacl.experiments.data.dataset import (
    ColumnNames,
    Dataset,
    LazyImages,
    RawDataset,
    Source,
    Split,
    check_labels,
    fingerprint,
    natural,
)
from accuacl.experiments.data.splits import HELD_OUT, SplitFiles, find_tables
from accuacl.experiments.data.table_files import COLUMNAR, COMPRESSED, TEXT_SUFFIXES, table_suffix


@dataclass(frozen=True)
class Published:
    """A published data set: how many classes it has, how large its images are, which files to get and from whom."""

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
ARRAYS = (".npz", ".npy")
TASK = re.compile(r"task(-.+|[_ ]?\d+.*)", re.IGNORECASE)


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
    (train/<class>/*, test/<class>/*), NumPy arrays (see `arrays`), tables (CSV, TSV, JSON, JSON lines,
    Parquet, Arrow; see `table_data`); or a folder with such a file or folder for each task: task-1, task-2, ...
    Without a test split, a fifth of each class is held out, with a warning.
    data_dir: the folder with the published data sets, in subfolders or not; default: $ACCUACL_DATA.
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
        return _digits()
    if name not in PUBLISHED:
        options = DecodeOptions(image_size, None, skip_bad, progress)
        return _load_own(name, own_data(name, data_dir), cache_dir, options, ColumnNames(label_column, task_column))
    source = _find_published(name, data_dir)
    if label_column or task_column:
        option = "--label-column" if label_column else "--task-column"
        raise InputError(f"{name} is not a table of your own, which {option} is for; leave it out.")
    side = PUBLISHED[name].side if image_size is None else None
    return _load_images(name, source, cache_dir, DecodeOptions(image_size, side, skip_bad, progress))


def found(data_dir: Path | None = None) -> dict[str, str]:
    """The file or folder from which each published data set would be read, by name; "" if there is none.

    >>> found()["digits"]
    'embedded'
    """
    places = {}
    for name in PUBLISHED:
        try:
            places[name] = "embedded" if name == "digits" else str(_find_published(name, data_dir).path)
        except InputError:
            places[name] = ""
    return places


def caches() -> dict[Path, int]:
    """The bytes of each cache of decoded images, by folder."""
    home = cache_home()
    folders = sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    return {folder: sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) for folder in folders}


def own_data(name: str, data_dir: Path | None = None, what: str = "data set", known: Iterable[str] = PUBLISHED) -> Path:
    """The user's file or folder `name`, here or in data_dir; if there is none, the error names the `known` ones."""
    data_dir = _data_folder(data_dir)
    for path in (Path(name).expanduser(), *([data_dir / name] if data_dir else [])) if name else ():
        if path.is_dir() or (path.is_file() and (path.suffix.lower() in ARRAYS or table_suffix(path))):
            return path
        if path.is_file():
            raise InputError(
                f"{path} is not a data set that can be read; give a folder, or a file "
                f"{', '.join((*ARRAYS, *COLUMNAR, *TEXT_SUFFIXES))} (these also with {', '.join(COMPRESSED)})."
            )
    where = f"here or in {data_dir}" if data_dir else f"here, and no data folder is named {NAME_IT}"
    meant = near(name, known)
    hint = f"did you mean {meant}? The" if meant else "the"
    raise InputError(f"there is no {what} or folder {name!r} {where}; {hint} {what}s are {', '.join(known)}.")


def holds_vectors(path: Path) -> bool:
    """Whether the user's own data are vectors and not images; only a header is read."""
    fields, files = _arrays_or_tables(path)
    return arrays.are_vectors(fields) if fields else files is not None and not table_data.image_column(files)


def holds_columns(path: Path) -> bool:
    """Whether the user's own vectors are columns of a table, and not embeddings; only a header is read."""
    _, files = _arrays_or_tables(path)
    return files is not None and not set(table_data.LISTS) & set(files.columns)


def holds_tasks(path: Path) -> bool:
    """Whether the user's own data say which task an example is of, by a column or by a folder or file each."""
    if _task_paths(path):
        return True
    fields, files = _arrays_or_tables(path)
    return "train_task" in fields if fields else files is not None and "task" in files.columns


def _arrays_or_tables(path: Path) -> tuple[arrays.Fields | None, SplitFiles | None]:
    """The arrays or tables that the user's own data, or those of the first task, consist of."""
    first = next(iter(_task_paths(path)), path)
    fields = arrays.find(first)
    return fields, None if fields else find_tables(first)


def is_task(path: Path) -> bool:
    """Whether a file or folder is called task-1, Task 2, task_3.csv, ..."""
    return TASK.fullmatch(path.stem) is not None


def _digits() -> Dataset:
    """Vectors of 64 numbers in [0, 1]; a third of every class is the test split, always the same one."""
    from sklearn.datasets import load_digits  # takes a second, and nothing else here needs it

    vectors, labels = load_digits(return_X_y=True)
    test = np.zeros(len(labels), bool)
    for c in range(10):
        rows = sorted(np.flatnonzero(labels == c), key=lambda row: rank("digits", int(row)))
        test[rows[: len(rows) // 3]] = True
    inputs, labels = (vectors / 16).astype(np.float32), labels.astype(np.int64)
    train, tested = (Split(inputs[rows], labels[rows]) for rows in (~test, test))
    return Dataset("digits", train, tested, classes=tuple("0123456789"))


def _find_published(name: str, data_dir: Path | None = None) -> Source:
    """Where a published data set lies: in a folder of its name in the data folder, or in that itself."""
    known, data_dir = PUBLISHED[name], _data_folder(data_dir)
    if data_dir is None:
        raise InputError(
            f"{name} needs a data folder and none is set; put {known.files} (published on {known.published}) "
            f"in a folder and name it {NAME_IT}."
        )
    for folder in (data_dir / name, data_dir):
        source = folders.find_tiny(folder) if name == "tiny-imagenet" else cifar.find(name, folder)
        if source:
            return source
        if files := find_tables(folder, (".parquet",)):
            if not files.test:
                raise InputError(f"{files.place} has train-*.parquet but no test-* or valid-*.parquet; add them.")
            return table_data.find_images(files)
    raise InputError(
        f"{name} is not in {data_dir / name} nor in {data_dir}; put {known.files} there, "
        f"as published on {known.published}, or name another folder {NAME_IT}."
    )


def _data_folder(given: Path | None) -> Path | None:
    from_environment = os.environ.get("ACCUACL_DATA")
    return given if given is not None or not from_environment else Path(from_environment)


def _load_own(name: str, path: Path, cache_dir: Path | None, options: DecodeOptions, named: ColumnNames) -> Dataset:
    """The data set in the user's file or folder, or in those that it has for each task."""
    paths = _task_paths(path)
    if paths:
        if named.task:
            raise InputError(f"{path} has a file or folder for each task, so leave out --task-column.")
        return _joined(name, [(_task_name(p), _load_own(str(p), p, cache_dir, options, named)) for p in paths])
    fields, files = _arrays_or_tables(path)
    if any(named) and (fields or not files):
        option = "--label-column" if named.label else "--task-column"
        column = named.label or named.task
        raise InputError(f"{path} is not a table, so it has no column {column!r}; leave out {option}.")
    if fields:
        data, held_out = arrays.read(name, path, fields), arrays.held_out(fields)
    elif files and not table_data.image_column(files):
        data, held_out = table_data.read_vectors(name, files, named), files.held_out
    else:
        source = table_data.find_images(files, named) if files else folders.find_tiny(path) or folders.find(path)
        if source is None:
            raise InputError(
                f"{path} holds no data set; put train/<class>/ and test/<class>/ with images there, {PARQUET}, "
                "train.csv and test.csv, or the arrays x_train, y_train, x_test and y_test as .npy or .npz."
            )
        data, held_out = _load_images(name, source, cache_dir, options), HELD_OUT in source.reading
    if options.size is not None and (fields or data.train.inputs.ndim == 2):
        raise InputError(f"{path} holds arrays and --image-size is for files of images; leave it out.")
    if held_out:
        warnings.warn(
            f"{path} has no test split; a fifth of each class, {len(data.test)} of "
            f"{len(data.train) + len(data.test)} examples, is held out to test with.",
            stacklevel=3,
        )
    return data


def _load_images(name: str, source: Source, cache_dir: Path | None, options: DecodeOptions) -> Dataset:
    home = _cache_folder(name, source, cache_dir, options.size)
    made_from = fingerprint(source.files, source.reading)
    cached = read_cache(name, home, made_from)
    if cached is None or (cached[1] and not options.skip_bad):  # then decoding again names what is bad
        cached = build_cache(name, home, _open(name, source), made_from, options)
    data, skipped = cached
    if skipped:
        warnings.warn(f"{name}: {skipped} images could not be read and were left out.", stacklevel=3)
    return data


def _open(name: str, source: Source) -> RawDataset:
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
    check_labels(raw.train.labels, raw.test.labels, len(classes), source.path)
    return replace(raw, classes=classes)


def cache_home(cache_dir: Path | None = None) -> Path:
    """Where what is made from data is kept: the folder that is given, $ACCUACL_CACHE, or ~/.cache/accuacl."""
    return cache_dir or Path(os.environ.get("ACCUACL_CACHE") or Path.home() / ".cache" / "accuacl")


def _cache_folder(name: str, source: Source, cache_dir: Path | None, image_size: int | None) -> Path:
    readable = re.sub(r"[^\w-]+", "-", Path(name).name).strip("-") or "data"
    key = hashlib.sha256(f"{os.path.abspath(source.path)}\0{image_size}".encode("utf-8", "surrogateescape"))
    return cache_home(cache_dir) / f"{readable}-{key.hexdigest()[:12]}"


# A file or folder for each task


def _task_paths(folder: Path) -> list[Path]:
    """The folders, .npz files or tables of the tasks, in order: by the numbers in their names, else by name."""
    named = [path for path in folder.iterdir() if is_task(path)] if folder.is_dir() else []
    paths = [path for path in named if path.is_dir() or path.suffix == ".npz" or table_suffix(path)]
    return sorted(paths, key=lambda path: natural(_task_name(path)))


def _task_name(path: Path) -> str:
    """What a task is called after its file or folder.

    >>> _task_name(Path("task-1.csv.xz")), _task_name(Path("Task 2"))
    ('task-1', 'Task 2')
    """
    return path.name[: -len(suffix)] if (suffix := table_suffix(path)) else path.stem


def _joined(name: str, tasks: Sequence[tuple[str, Dataset]]) -> Dataset:
    """The tasks' data sets as one; its column `task` says which each row is of. Classes are the same by their names."""
    first, like = tasks[0]
    shape = like.train.inputs.shape[1:]
    for task, data in tasks:
        other = data.train.inputs.shape[1:]
        if other != shape:
            raise InputError(
                f"{name}: inputs of {first} have the shape {shape}, those of {task} {other}; make them alike, images "
                "with --image-size."
            )
        if data.made_of != like.made_of:
            raise InputError(
                f"{name}: {first} has the columns of numbers {', '.join(like.made_of)}, and {task} "
                f"{', '.join(data.made_of)}; give them the same names and the same order."
            )
    classes = tuple(sorted({c for _, data in tasks for c in data.classes}, key=natural))
    ids = {c: i for i, c in enumerate(classes)}
    to_ids = [np.array([ids[c] for c in data.classes], np.int64) for _, data in tasks]

    def join(splits: list[Split]) -> Split:
        columns = {"task": np.repeat([task for task, _ in tasks], [len(split) for split in splits])}
        if all("domain" in split.columns for split in splits):
            columns["domain"] = np.concatenate([split.columns["domain"] for split in splits])
        inputs: Any = [split.inputs for split in splits]
        labels = [table[split.labels] for table, split in zip(to_ids, splits, strict=True)]
        inputs = _joined_images(inputs) if len(shape) == 3 else np.concatenate(inputs)
        return Split(inputs, np.concatenate(labels), columns)

    train, test = join([data.train for _, data in tasks]), join([data.test for _, data in tasks])
    return Dataset(name, train, test, classes, like.made_of)


def _joined_images(parts: Sequence[NDArray[Any]]) -> LazyImages:
    """Several arrays of images as one, each read as its rows are asked for."""
    ends = np.cumsum([len(part) for part in parts])

    def read(rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        which = np.searchsorted(ends, rows, side="right")
        images = np.empty((len(rows), *parts[0].shape[1:]), np.uint8)
        for i in np.unique(which):
            images[which == i] = parts[i][rows[which == i] - (ends[i] - len(parts[i]))]
        return images

    return LazyImages((int(ends[-1]), *parts[0].shape[1:]), read)
