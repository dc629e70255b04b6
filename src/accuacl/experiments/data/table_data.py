"""Data sets in tables: vectors as columns of numbers or as lists; images by their paths, or encoded as in Parquet of
the Hugging Face layout.

The column `label` has each row's class, as a text or a number; `split` may say which rows test; `task` and `domain` may
give each row's task and domain.
"""

from __future__ import annotations

import functools
import json
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError, listed
from accuacl.base.files import reason
from accuacl.experiments.data.dataset import (
    COLUMNS,
    TESTS,
    ColumnNames,
    Dataset,
    RawDataset,
    RawImage,
    RawSplit,
    Source,
    Split,
    check_labels,
    natural,
)
from accuacl.experiments.data.splits import HELD_OUT, SplitFiles, in_two
from accuacl.experiments.data.table_files import (
    COLUMNAR,
    DataTable,
    check_column,
    open_columnar,
    read_columnar,
    read_table,
)

LABELS = ("label", "labels", "class", "target", "y", "fine_label")
IMAGES = ("image", "img", "file_name", "filename", "file", "path")
LISTS = ("embedding", "embeddings", "features", "vector")
TEXTS = ("text", "sentence", "content")
ROWS = 1024  # encoded images that are read at a time
USUAL = ColumnNames()


def image_column(files: SplitFiles) -> str:
    """The column with images or with the paths of image files; "" if there is none."""
    return next((name for name in IMAGES if name in files.columns), "")


def read_vectors(name: str, files: SplitFiles, named: ColumnNames) -> Dataset:
    """The data set of vectors in these tables."""
    label, classes, parts = _read(files, named)
    apart = {label, "id", "split", *COLUMNS, named.of("task")}
    columns: list[str] | None = None
    splits: list[Split] = []
    for rows in parts:
        vectors, columns = vectors_of(rows.table, apart, columns)
        splits.append(Split(vectors, rows.labels, rows.columns))
    if columns is not None:
        left_out = [column for column in parts[0].table.names if column not in {*apart, *columns}]
        if left_out:
            names = ", ".join(left_out)
            warnings.warn(f"{files.place}: columns that are not numbers are left out: {names}.", stacklevel=4)
    widths = [split.inputs.shape[1] for split in splits]
    if widths[0] != widths[-1]:
        raise InputError(
            f"{files.place}: training vectors have {widths[0]} entries and test vectors {widths[1]}; make them alike."
        )
    train, test = in_two(splits, parts[0].tests)
    check_labels(train.labels, test.labels, len(classes), files.place)
    return Dataset(name, train, test, classes, tuple(columns or ()))


def find_images(files: SplitFiles, named: ColumnNames = USUAL) -> Source:
    """The images in the tables, or those that they name by paths from the folder of each table."""
    column = image_column(files)
    if not column:
        has = listed(files.columns)
        raise InputError(f"{files.train[0]} has the columns {has}; expected one named img or image.")
    encoded, every = _is_encoded(files.train[0], column), [*files.train, *files.test]
    if not encoded:
        every += dict.fromkeys(path for file in every for path in _paths(read_table(file), file.parent, column))
    reading = [HELD_OUT] if files.held_out else []
    reading += [f"{of} in {name}" for of, name in named._asdict().items() if name]
    open_ = functools.partial(_open_images, files, column, encoded, named)
    return Source(files.place, tuple(map(os.path.abspath, every)), open_, "; ".join(reading))


def vectors_of(
    table: DataTable, apart: Collection[str], columns: Sequence[str] | None = None, lists: Sequence[str] = LISTS
) -> tuple[NDArray[np.float32], list[str] | None]:
    """The rows as float32 (n, d), and the columns that they are made of; None for a column of lists.

    apart: columns that are no part of the vector. columns: those that it must be made of.
    lists: names that a column of lists may have.
    """
    if not len(table):
        raise InputError(f"{table.path} has no rows; give at least one.")
    lists_in = list_column(table, lists)
    if lists_in and columns is None:
        return _finite(table, _from_lists(table, lists_in)), None
    numbers = [name for name in table.names if name not in apart and _is_number(table, name)]
    made_of = numbers if columns is None else list(columns)
    missing = [name for name in made_of if name not in table.names]
    if missing:
        raise InputError(
            f"{table.path} has no column of numbers {', '.join(missing)}, which the training split has; add it."
        )
    if not made_of:
        if any(name in table.names for name in TEXTS):
            raise InputError(
                f"{table.path} holds texts, and a run learns from images or numbers; label them with `accuacl project "
                "new DIR --texts FILE`, or give a column `embedding` with a list of numbers for each text."
            )
        raise InputError(
            f"{table.path} has neither a column `embedding` nor columns of numbers; give one or the other, and "
            "numbers with decimal points."
        )
    return _finite(table, np.stack([_numbers(table, name) for name in made_of], axis=1)), made_of


def list_column(table: DataTable, names: Sequence[str] = LISTS) -> str:
    """The first of these names that is a column of lists in the table; "" if none is."""
    return next((name for name in names if name in table.names and is_lists(_type(table, name))), "")


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of tables with their classes. tests: which of them test, if the column `split` says so."""

    table: DataTable
    labels: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]
    tests: NDArray[np.bool_] | None


def _open_images(files: SplitFiles, column: str, encoded: bool, named: ColumnNames) -> RawDataset:
    _, classes, parts = _read(files, named, column if encoded else "")
    splits = [
        RawSplit(
            rows.labels,
            functools.partial(_encoded, shards, column) if encoded else _named(rows.table, shards[0].parent, column),
            rows.columns,
        )
        for rows, shards in zip(parts, (files.train, files.test), strict=False)
    ]
    return RawDataset(*in_two(splits, parts[0].tests), classes)


def _is_encoded(path: Path, column: str) -> bool:
    """Whether a column has the bytes of images, and not their paths."""
    import pyarrow.types as types

    if path.suffix.lower() not in COLUMNAR:
        return False
    kind = open_columnar(path).schema_arrow.field(column).type
    return bool(types.is_struct(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def _encoded(files: Sequence[Path], column: str) -> Iterator[RawImage]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for path in files:
        row = 0
        try:
            for batch in open_columnar(path).iter_batches(ROWS, columns=[column]):
                images = batch.column(0)
                if images.type.num_fields:  # a struct; plain bytes are taken as they are
                    images = pc.struct_field(images, "bytes")
                for image in images.to_pylist():
                    yield f"{path}, row {row}", functools.partial(bytes, image or b"")
                    row += 1
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} is damaged after row {row} ({reason(error)}); download it again.") from error


def _named(table: DataTable, folder: Path, column: str) -> Callable[[], Iterable[RawImage]]:
    images = [(str(path), path.read_bytes) for path in _paths(table, folder, column)]
    return lambda: images


def _paths(table: DataTable, folder: Path, column: str) -> list[Path]:
    values = table.values(column)
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise InputError(f"{table.where(row)} names no file under {column!r}; give the path of an image.")
    return [folder / value for value in values]


def _read(files: SplitFiles, named: ColumnNames, encoded: str = "") -> tuple[str, tuple[str, ...], list[_Rows]]:
    """The column of labels, the classes, and the rows of the training and, if it has files, of the test split.

    encoded: a column of images, which is not read; the labels beside it may be numbers of classes without names, (),
    as in data sets of images.
    """
    tables = [_joined(part, encoded) for part in (files.train, files.test) if part]
    label = _label_column(tables[0], named.label)
    check_column(tables[0].path, named.task, tables[0].names)
    names = {names for file in (*files.train, *files.test) if (names := _class_names(file, label))}
    if len(names) > 1:
        raise InputError(f"{files.place}: the shards name different classes; take them from one data set.")
    classes, numbered = next(iter(names), ()), bool(names) or (bool(encoded) and _is_integer(tables[0], label))
    if not numbered:  # the classes are the values themselves, in order: numbers by size
        classes = tuple(sorted({str(value) for value in tables[0].values(label) if value is not None}, key=natural))
    parts: list[_Rows] = []
    for table in tables:
        if label not in table.names:
            raise InputError(f"{table.path} has no column {label!r}, which the training split has; add it.")
        labels = _numbers_of_classes(table, label) if numbered else _places(table, label, classes, bool(parts))
        if not len(labels):
            raise InputError(f"{table.path} has no rows; give at least one.")
        columns = {name: _given(table, named.of(name)) for name in COLUMNS if named.of(name) in table.names}
        parts.append(_Rows(table, labels, columns, None if files.test else _tests(table)))
    return label, classes, parts


def _joined(paths: Sequence[Path], without: str) -> DataTable:
    """The rows of all shards of a split, without a column."""
    import pyarrow as pa

    tables = [read_columnar(path, without) if without else read_table(path) for path in paths]
    if len(tables) == 1:
        return tables[0]
    try:
        together = pa.concat_tables([table.columns for table in tables])
    except pa.ArrowInvalid:
        raise InputError(f"the shards of {paths[0]} have different columns; write them alike.") from None
    return DataTable(paths[0].parent, together)


def _label_column(table: DataTable, given: str) -> str:
    check_column(table.path, given, table.names)
    if not table.names:
        raise InputError(f"{table.path} is empty; give a table with a column of classes and others of numbers.")
    label = given or next((name for name in LABELS if name in table.names), "")
    if not label:
        raise InputError(
            f"{table.path} has the columns {listed(table.names)}; say which one has the classes with --label-column "
            "(in Python: label_column)."
        )
    return label


def _class_names(path: Path, label: str) -> tuple[str, ...]:
    """The names of the classes in the schema's metadata, if it has them."""
    if path.suffix.lower() not in COLUMNAR:
        return ()
    try:
        features = json.loads((open_columnar(path).schema_arrow.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label]["names"])
    except (KeyError, TypeError, json.JSONDecodeError):
        return ()


def _is_integer(table: DataTable, name: str) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(_type(table, name)))


def _numbers_of_classes(table: DataTable, label: str) -> NDArray[np.int64]:
    column = table.columns.column(label)
    if column.null_count or not _is_integer(table, label):
        raise InputError(f"{table.path}: {label} holds {column.type}, some missing; expected an integer in every row.")
    return np.asarray(column.to_numpy(), np.int64)


def _places(table: DataTable, label: str, classes: tuple[str, ...], is_test: bool) -> NDArray[np.int64]:
    """The place of each label among the classes."""
    ids = {name: i for i, name in enumerate(classes)}
    labels = []
    for row, value in enumerate(table.values(label)):
        if value is None or isinstance(value, float) or str(value) not in ids:
            what = f"{value!r}, which has no training example" if is_test and value is not None else repr(value)
            raise InputError(f"{table.where(row)} has the label {what}; fix it or leave the row out.")
        labels.append(ids[str(value)])
    return np.array(labels, np.int64)


def _given(table: DataTable, name: str) -> NDArray[Any]:
    """The tasks or domains of the rows."""
    values = table.values(name)
    for row, value in enumerate(values):
        if not isinstance(value, int | str):
            has = f"no {name}" if value is None else f"{value} under {name!r}"
            raise InputError(f"{table.where(row)} has {has}; give a whole number or a text in every row.")
    return np.array(values)


def _tests(table: DataTable) -> NDArray[np.bool_] | None:
    """Which rows test, by the column `split`."""
    if "split" not in table.names:
        return None
    tests = []
    for row, value in enumerate(table.values("split")):
        if str(value).lower() not in ("train", "training", *TESTS):
            raise InputError(f"{table.where(row)} has the split {value!r}; give train or test.")
        tests.append(str(value).lower() in TESTS)
    if all(tests) or not any(tests):
        raise InputError(f"{table.path}: the column split names only one split; give rows of train and of test.")
    return np.array(tests)


def _from_lists(table: DataTable, name: str) -> NDArray[np.float32]:
    import pyarrow.compute as pc
    import pyarrow.types as types

    rows = table.columns.column(name)
    if rows.null_count or len(pc.unique(pc.list_value_length(rows))) > 1:
        raise InputError(f"{table.path}: the lists in {name} have different lengths; give lists of one length.")
    flat = pc.list_flatten(rows)
    if not (types.is_integer(flat.type) or types.is_floating(flat.type)) or flat.null_count:
        raise InputError(f"{table.path}: the column {name} holds {rows.type}, some missing; give lists of numbers.")
    with np.errstate(over="ignore"):  # what becomes infinite is refused later
        return np.asarray(flat.to_numpy(), np.float32).reshape(len(rows), -1)


def _type(table: DataTable, name: str) -> Any:
    return table.columns.schema.field(name).type


def _is_number(table: DataTable, name: str) -> bool:
    """Whether a column holds numbers; in a table of texts, whether the first that is there is one."""
    import pyarrow.types as types

    if not types.is_string(_type(table, name)):
        return is_numbers(_type(table, name))
    first = next((value for value in table.values(name) if value is not None), "")
    return _number(first) is not None


def _numbers(table: DataTable, name: str) -> NDArray[np.float32]:
    """A column of numbers; a missing one is NaN."""
    import pyarrow.types as types

    column = table.columns.column(name)
    if types.is_string(column.type):
        numbers: Any = []
        for row, text in enumerate(table.values(name)):
            number = _number(text) if text is not None else float("nan")
            if number is None:
                raise InputError(
                    f"{table.where(row)} has {text!r} under {name!r}; give a number as in the earlier rows."
                )
            numbers.append(number)
    else:
        numbers = column.to_numpy()
    with np.errstate(over="ignore"):  # what becomes infinite is refused later
        return np.asarray(numbers).astype(np.float32)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _finite(table: DataTable, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if not vectors.size:
        raise InputError(f"{table.path} has vectors without entries; give at least one number per row.")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{table.where(row)} has a number that is missing or not finite; drop or repair such rows.")
    return vectors
