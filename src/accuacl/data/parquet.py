"""Parquet in the Hugging Face layout: train-*.parquet and test-* or valid*-*, images as encoded bytes."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.data.dataset import COLUMNS
from accuacl.data.source import RawDataset, RawImage, RawSplit, Source

IMAGE, LABEL = ("img", "image"), ("fine_label", "label")
ROWS = 1024  # read at a time


def find(folder: Path, columns: bool = False) -> Source | None:
    """The shards in `folder` or its `data` subfolder, if there are any. columns: also read those of COLUMNS."""
    for inside in (folder, folder / "data"):
        train = _shards(inside, r"train")
        if train:
            test = _shards(inside, r"test") or _shards(inside, r"val(id|idation)?")
            if not test:
                raise InputError(f"{inside} has train-*.parquet but no test-*.parquet or valid-*.parquet; add them.")
            files = tuple(os.path.abspath(file) for file in (*train, *test))
            source = Source(inside, files, functools.partial(_open, train, test))
            there = [name for name in COLUMNS if columns and has_column(source, name)]
            return replace(source, reading=f"with {', '.join(there)}") if there else source
    return None


def has_column(source: Source, name: str) -> bool:
    """Whether the first shard has the column; only its schema is read."""
    return name in _parquet(Path(source.files[0])).schema_arrow.names


def _shards(folder: Path, split: str) -> list[Path]:
    files = sorted(p for p in folder.glob("*.parquet") if re.fullmatch(rf"{split}(-.*)?", p.stem))
    for file in files:
        of = re.fullmatch(r".*-\d+-of-(\d+)", file.stem)
        if of and int(of[1]) != len(files):
            raise InputError(f"{folder} has {len(files)} of the {int(of[1])} shards of {file.name}; add the others.")
    return files


def _open(train: list[Path], test: list[Path]) -> RawDataset:
    names = [_class_names(file) for file in (*train, *test)]
    said = [n for n in names if n]
    if any(n != said[0] for n in said):
        raise InputError(f"{train[0].parent}: the shards name different classes; take them from one data set.")
    return RawDataset(_split(train), _split(test), said[0] if said else ())


def _split(files: list[Path]) -> RawSplit:
    labels = np.concatenate([_labels(file) for file in files])
    there = [name for name in COLUMNS if all(name in _parquet(file).schema_arrow.names for file in files)]
    columns = {name: [value for file in files for value in _values(file, name)] for name in there}
    return RawSplit(labels, functools.partial(_images, files), columns)


def _values(path: Path, name: str) -> list[Any]:
    """The column as numbers or texts."""
    values = _parquet(path).read(columns=[name]).column(0)
    whole = str(values.type).lstrip("u").startswith("int") or str(values.type) in ("string", "large_string")
    if values.null_count or not whole:
        raise InputError(
            f"{path}: {name} holds {values.type}, some missing; give a whole number or a text in every row."
        )
    return list(values.to_pylist())


def _images(files: list[Path]) -> Iterator[RawImage]:
    import pyarrow.compute as pc

    for path in files:
        file = _parquet(path)
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


def _labels(path: Path) -> NDArray[np.int64]:
    file = _parquet(path)
    column = _column(path, file.schema_arrow, LABEL)
    try:
        labels = file.read(columns=[column]).column(0)
    except OSError as error:
        raise InputError(f"{path} is damaged ({reason(error)}); download it again.") from error
    if labels.null_count or not str(labels.type).lstrip("u").startswith("int"):
        raise InputError(f"{path}: {column} holds {labels.type}, some missing; expected an integer in every row.")
    return np.asarray(labels.to_numpy(), np.int64)


def _class_names(path: Path) -> tuple[str, ...]:
    """The names in the schema's metadata, if it has them."""
    schema = _parquet(path).schema_arrow
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[_column(path, schema, LABEL)]["names"])
    except (KeyError, TypeError, json.JSONDecodeError):
        return ()


def _column(path: Path, schema: Any, wanted: tuple[str, ...]) -> str:
    for name in wanted:
        if name in schema.names:
            return name
    raise InputError(f"{path} has the columns {', '.join(schema.names)}; expected one named {' or '.join(wanted)}.")


def _parquet(path: Path) -> Any:
    import pyarrow as pa  # only here: a start from the cache does without
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({reason(error)}); download it again.") from error
