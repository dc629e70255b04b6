"""The user's own data in tables: vectors as columns of numbers or as lists, images by their paths.

The column `label` has each row's class, as a text or a number; `split` may say which rows test; `task` and `domain` may
give each row's task and domain.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError, listed
from accuacl.experiments.data.dataset import (
    COLUMNS,
    ColumnNames,
    Dataset,
    RawDataset,
    RawImage,
    RawSplit,
    Source,
    Split,
    natural,
)
from accuacl.experiments.data.parquet import class_names
from accuacl.experiments.data.splits import READING, SplitFiles, split_raw, split_rows
from accuacl.experiments.data.table_files import (
    COLUMNAR,
    DataTable,
    check_column,
    column_names,
    open_columnar,
    read_table,
)

LABELS = ("label", "labels", "class", "target", "y", "fine_label")
IMAGES = ("image", "img", "file_name", "filename", "file", "path")
LISTS = ("embedding", "embeddings", "features", "vector")
TEXTS = ("text", "sentence", "content")
TRAINS, TESTS = ("train", "training"), ("test", "val", "valid", "validation")


def hold_images(files: SplitFiles) -> bool:
    """Whether Parquet or Arrow tables have the bytes of images; only the schema is read."""
    import pyarrow.types as types

    first = files.train[0]
    if first.suffix.lower() not in COLUMNAR:
        return False
    schema = open_columnar(first).schema_arrow
    kinds = [schema.field(name).type for name in ("img", "image") if name in schema.names]
    return any(types.is_struct(kind) or types.is_binary(kind) or types.is_large_binary(kind) for kind in kinds)


def name_images(files: SplitFiles) -> bool:
    """Whether tables have images, or a column with the paths of image files."""
    return hold_images(files) or bool(_path_column(files))


def has_column(files: SplitFiles, name: str) -> bool:
    return name in column_names(files.train[0])


def read_vectors(name: str, files: SplitFiles, named: ColumnNames) -> tuple[Dataset, bool]:
    """The data set of vectors in these tables, and whether its test split was held out."""
    train, test, classes = _read(files, named)
    apart = {train.label, "id", "split", *COLUMNS, named.of("task")}
    inputs, columns = vectors_of(train.table, apart)
    if columns is not None:
        left_out = [column for column in train.table.names if column not in {*apart, *columns}]
        if left_out:
            names = ", ".join(left_out)
            warnings.warn(f"{files.place}: columns that are not numbers are left out: {names}.", stacklevel=4)
    both, made_of = Split(inputs, train.labels, train.columns), tuple(columns or ())
    if test is not None:
        other = Split(vectors_of(test.table, apart, columns)[0], test.labels, test.columns)
        if other.inputs.shape[1] != inputs.shape[1]:
            raise InputError(
                f"{files.place}: training vectors have {inputs.shape[1]} entries and test vectors "
                f"{other.inputs.shape[1]}; make them alike."
            )
        return Dataset(name, both, other, classes, made_of), False
    if train.tests is None:
        return Dataset(name, *split_rows(both), classes, made_of), True
    return Dataset(name, _only(both, ~train.tests), _only(both, train.tests), classes, made_of), False


def find_images(files: SplitFiles, named: ColumnNames) -> Source:
    """The images that the tables name, by paths from the folder of each table."""
    column = _path_column(files)
    tables = [read_table(file) for file in (*files.train, *files.test)]
    paths = {os.path.abspath(table.path.parent / str(value)) for table in tables for value in table.values(column)}
    every = (*(os.path.abspath(table.path) for table in tables), *paths)
    held = not files.test and not has_column(files, "split")
    reading = f"{READING if held else ''} {named.label}" + (f"; tasks in {named.task}" if named.task else "")
    return Source(files.place, tuple(every), functools.partial(_open_images, files, column, named), reading)


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
        texts = [name for name in TEXTS if name in table.names]
        if texts:
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
class _Labelled:
    """Rows of tables with their classes. tests: which of them test, if the column `split` says it."""

    table: DataTable
    label: str
    labels: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]
    tests: NDArray[np.bool_] | None


def _path_column(files: SplitFiles) -> str:
    """The column that names image files, or ""."""
    names = column_names(files.train[0])
    return next((name for name in IMAGES if name in names), "")


def _open_images(files: SplitFiles, column: str, named: ColumnNames) -> RawDataset:
    train, test, classes = _read(files, named)
    raw = _raw(train, column)
    if test is not None:
        return RawDataset(raw, _raw(test, column), classes)
    if train.tests is None:
        return RawDataset(*split_raw(raw), classes)
    return RawDataset(_raw(train, column, ~train.tests), _raw(train, column, train.tests), classes)


def _raw(rows: _Labelled, column: str, chosen: NDArray[np.bool_] | None = None) -> RawSplit:
    where = np.arange(len(rows.labels)) if chosen is None else np.flatnonzero(chosen)
    values = rows.table.values(column)
    folder = rows.table.path.parent
    for row in where.tolist():
        if not isinstance(values[row], str):
            raise InputError(f"{rows.table.where(row)} names no file under {column!r}; give the path of an image.")

    def images() -> Iterator[RawImage]:
        for row in where.tolist():
            file = folder / values[row]
            yield str(file), file.read_bytes

    columns = {name: column_[where].tolist() for name, column_ in rows.columns.items()}
    return RawSplit(rows.labels[where], images, columns)


def _read(files: SplitFiles, named: ColumnNames) -> tuple[_Labelled, _Labelled | None, tuple[str, ...]]:
    tables = [_joined(part) for part in (files.train, files.test) if part]
    label = _label_column(tables[0], named.label)
    check_column(tables[0].path, named.task, tables[0].names)
    names = class_names(files.train[0], label) if files.train[0].suffix.lower() in COLUMNAR else ()
    known = _classes(tables[0], label, names)
    classes = names or known
    read = [_labelled(table, label, named, known, i > 0) for i, table in enumerate(tables)]
    return read[0], read[1] if len(read) > 1 else None, classes


def _joined(paths: Sequence[Path]) -> DataTable:
    import pyarrow as pa

    tables = [read_table(path) for path in paths]
    if len(tables) == 1:
        return tables[0]
    try:
        together = pa.concat_tables([table.columns for table in tables])
    except pa.ArrowInvalid:
        raise InputError(f"the shards of {paths[0]} have different columns; write them alike.") from None
    return DataTable(paths[0].parent, together)


def _label_column(table: DataTable, given: str) -> str:
    check_column(table.path, given, table.names)
    label = given or next((name for name in LABELS if name in table.names), "")
    if not table.names:
        raise InputError(f"{table.path} is empty; give a table with a column of classes and others of numbers.")
    if not label:
        raise InputError(
            f"{table.path} has the columns {listed(table.names)}; say which one has the classes with --label-column "
            "(in Python: label_column)."
        )
    return label


def _classes(table: DataTable, label: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The values of the label column, in order: numbers by size. Those of `names` are numbers from 0."""
    if names:
        return tuple(str(i) for i in range(len(names)))
    return tuple(sorted({str(value) for value in table.values(label) if value is not None}, key=natural))


def _labelled(table: DataTable, label: str, named: ColumnNames, classes: tuple[str, ...], test: bool) -> _Labelled:
    if label not in table.names:
        raise InputError(f"{table.path} has no column {label!r}, which the training split has; add it.")
    ids = {name: i for i, name in enumerate(classes)}
    labels = []
    for row, value in enumerate(table.values(label)):
        if value is None or isinstance(value, float) or str(value) not in ids:
            what = f"{value!r}, which has no training example" if test and value is not None else repr(value)
            raise InputError(f"{table.where(row)} has the label {what}; fix it or leave the row out.")
        labels.append(ids[str(value)])
    if not labels:
        raise InputError(f"{table.path} has no rows; give at least one.")
    columns = {name: _given(table, named.of(name)) for name in COLUMNS if named.of(name) in table.names}
    return _Labelled(table, label, np.array(labels, np.int64), columns, None if test else _tests(table))


def _given(table: DataTable, name: str) -> NDArray[Any]:
    values = table.values(name)
    for row, value in enumerate(values):
        if not isinstance(value, int | str):
            raise InputError(f"{table.where(row)} has no {name}; give a whole number or a text in every row.")
    return np.array(values)


def _tests(table: DataTable) -> NDArray[np.bool_] | None:
    """Which rows test, by the column `split`."""
    if "split" not in table.names:
        return None
    tests = []
    for row, value in enumerate(table.values("split")):
        if str(value).lower() not in (*TRAINS, *TESTS):
            raise InputError(f"{table.where(row)} has the split {value!r}; give train or test.")
        tests.append(str(value).lower() in TESTS)
    if all(tests) or not any(tests):
        raise InputError(f"{table.path}: the column split names only one split; give rows of train and of test.")
    return np.array(tests)


def _only(split: Split, rows: NDArray[np.bool_]) -> Split:
    return Split(split.inputs[rows], split.labels[rows], {name: v[rows] for name, v in split.columns.items()})


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
    if not types.is_string(column.type):
        with np.errstate(over="ignore"):  # what becomes infinite is refused later
            return np.asarray(column.to_numpy(), np.float32)
    numbers: list[float] = []
    for row, value in enumerate(table.values(name)):
        number = _number(value) if value is not None else float("nan")
        if number is None:
            raise InputError(f"{table.where(row)} has {value!r} under {name!r}; give a number as in the earlier rows.")
        numbers.append(number)
    with np.errstate(over="ignore"):
        return np.array(numbers).astype(np.float32)


def _number(text: Any) -> float | None:
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
