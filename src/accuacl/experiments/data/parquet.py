"""Parquet and Arrow in the Hugging Face layout: train-*.parquet and test-* or valid*-*, images as encoded bytes."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, listed
from accuacl.base.files import reason
from accuacl.experiments.data.dataset import COLUMNS, ColumnNames, RawDataset, RawImage, RawSplit, Source
from accuacl.experiments.data.splits import READING, TESTS, SplitFiles, shards, split_raw
from accuacl.experiments.data.table_files import check_column, open_columnar

IMAGE, LABEL = ("img", "image"), ("fine_label", "label")
USUAL = ColumnNames()
ROWS = 1024  # read at a time


def find(folder: Path) -> Source | None:
    """The shards in `folder` or its `data` subfolder, if there are any."""
    for inside in (folder, folder / "data"):
        train = shards(inside, "train", ".parquet")
        if train:
            test = shards(inside, TESTS[0], ".parquet") or shards(inside, TESTS[1], ".parquet")
            if not test:
                raise InputError(f"{inside} has train-*.parquet but no test-*.parquet or valid-*.parquet; add them.")
            return _source(SplitFiles(inside, tuple(train), tuple(test)), LABEL, "")
    return None


def find_own(files: SplitFiles, named: ColumnNames) -> Source:
    """The user's own Parquet or Arrow files, with those of COLUMNS that they have; no test: a fifth is held out."""
    names = open_columnar(files.train[0]).schema_arrow.names
    check_column(files.train[0], named.task, names)
    there = [named.of(name) for name in COLUMNS if named.of(name) in names]
    reading = [f"with {', '.join(there)}"] if there else []
    reading += [READING] if not files.test else []
    reading += [f"labels in {named.label}"] if named.label else []
    return _source(files, (named.label,) if named.label else LABEL, "; ".join(reading), named)


def _source(files: SplitFiles, label: tuple[str, ...], reading: str, named: ColumnNames = USUAL) -> Source:
    every = tuple(os.path.abspath(file) for file in (*files.train, *files.test))
    return Source(files.place, every, functools.partial(_open, files, label, named), reading)


def _open(files: SplitFiles, label: tuple[str, ...], named: ColumnNames) -> RawDataset:
    every = (*files.train, *files.test)
    known = [names for f in every if (names := class_names(f, _column(f, open_columnar(f).schema_arrow, label)))]
    if any(names != known[0] for names in known):
        raise InputError(f"{files.place}: the shards name different classes; take them from one data set.")
    train = _split(files.train, label, named)
    both = (train, _split(files.test, label, named)) if files.test else split_raw(train)
    return RawDataset(*both, known[0] if known else ())


def _split(files: Sequence[Path], label: tuple[str, ...], named: ColumnNames) -> RawSplit:
    labels = np.concatenate([_labels(file, label) for file in files])
    schemas = [open_columnar(file).schema_arrow for file in files]
    there = [name for name in COLUMNS if all(named.of(name) in schema.names for schema in schemas)]
    columns = {name: [value for file in files for value in _values(file, named.of(name))] for name in there}
    return RawSplit(labels, functools.partial(_images, files), columns)


def _values(path: Path, name: str) -> list[Any]:
    """The values of a column of whole numbers or texts."""
    values = open_columnar(path).read(columns=[name]).column(0)
    whole = str(values.type).lstrip("u").startswith("int") or str(values.type) in ("string", "large_string")
    if values.null_count or not whole:
        raise InputError(
            f"{path}: {name} holds {values.type}, some missing; give a whole number or a text in every row."
        )
    return list(values.to_pylist())


def _images(files: Sequence[Path]) -> Iterator[RawImage]:
    import pyarrow.compute as pc

    for path in files:
        file = open_columnar(path)
        column = _column(path, file.schema_arrow, IMAGE)
        row = 0
        try:
            for batch in file.iter_batches(ROWS, columns=[column]):
                encoded = batch.column(0)
                if encoded.type.num_fields:  # a struct; plain bytes are taken as they are
                    encoded = pc.struct_field(encoded, "bytes")
                for image in encoded.to_pylist():
                    yield f"{path}, row {row}", functools.partial(_present, image)
                    row += 1
        except OSError as error:
            raise InputError(f"{path} is damaged after row {row} ({reason(error)}); download it again.") from error


def _present(image: bytes | None) -> bytes:
    if image is None:
        raise InputError("the row has no image bytes")
    return image


def _labels(path: Path, label: tuple[str, ...]) -> NDArray[np.int64]:
    file = open_columnar(path)
    column = _column(path, file.schema_arrow, label)
    try:
        labels = file.read(columns=[column]).column(0)
    except OSError as error:
        raise InputError(f"{path} is damaged ({reason(error)}); download it again.") from error
    if labels.null_count or not str(labels.type).lstrip("u").startswith("int"):
        raise InputError(f"{path}: {column} holds {labels.type}, some missing; expected an integer in every row.")
    return np.asarray(labels.to_numpy(), np.int64)


def class_names(path: Path, label: str) -> tuple[str, ...]:
    """The names of the classes in the schema's metadata, if it has them."""
    try:
        features = json.loads((open_columnar(path).schema_arrow.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label]["names"])
    except (KeyError, TypeError, json.JSONDecodeError):
        return ()


def _column(path: Path, schema: Any, wanted: tuple[str, ...]) -> str:
    for name in wanted:
        if name in schema.names:
            return name
    raise InputError(f"{path} has the columns {listed(schema.names)}; expected one named {' or '.join(wanted)}.")
