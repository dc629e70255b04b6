"""Tables: vectors in Parquet, texts in CSV and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.files import reading, reason
from accuacl.labeling.project.new_items import NewItems, task_column, there

LONGEST_TEXT = 100_000  # characters


def read_vectors(path: Path, tasks: str | None = "") -> NewItems:
    """Rows of a Parquet table: `id`, if it has one, and the list column `embedding`, or all columns of numbers.

    tasks: the column that names the task of each row, as in `task_column`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(there(path, "a Parquet file"))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({reason(error)}); write it again.") from error
    task = task_column(path, table.column_names, tasks)
    if "embedding" in table.column_names:
        kind = table.schema.field("embedding").type
        if not (_is_row(kind) and _is_number(kind.value_type)):
            raise InputError(f"{path}: the column `embedding` holds {kind}; give lists of numbers.")
        rows, columns = table.column("embedding"), None
        if rows.null_count or len(pc.unique(pc.list_value_length(rows))) > 1:
            raise InputError(f"{path}: the embeddings have different lengths; give one length for all rows.")
        vectors = np.asarray(pc.list_flatten(rows).to_numpy(), np.float32).reshape(len(rows) or 1, -1)
    else:
        columns = [f.name for f in table.schema if f.name not in ("id", task) and _is_number(f.type)]
        if not columns:
            raise InputError(f"{path} has neither a column `embedding` nor columns of numbers; give one or the other.")
        vectors = np.stack([np.asarray(table.column(c).to_numpy(), np.float32) for c in columns], axis=1)
    if vectors.ndim != 2 or not vectors.size:
        raise InputError(f"{path} has no vectors; give at least one row.")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise InputError(f"{path}: row {int(np.argmin(finite))} is not finite; drop or repair such rows.")
    named = table.column("id").to_pylist() if "id" in table.column_names else range(len(vectors))
    others = [f.name for f in table.schema if f.name not in ("id", "embedding", task) and not _is_list(f.type)]
    shown = table.select(others).to_pylist() if others else None
    arrived = table.column(task).to_pylist() if task else None
    named = unique_names(path, named)
    return NewItems(
        "vectors", str(path.resolve()), named, vectors=vectors, shown=shown, columns=columns, arrived=arrived
    )


def read_texts(path: Path, column: str, tasks: str | None = "") -> NewItems:
    """The texts in a column of a CSV file, or under that key in JSON lines; `id` names them if it is there.

    tasks: the column that names the task of each text, as in `task_column`.
    """
    rows = list(_csv(path, column) if there(path, "a file").suffix.lower() == ".csv" else _json_lines(path))
    texts = []
    for number, row in enumerate(rows):
        text = row.get(column)
        if not isinstance(text, str):
            raise InputError(f"{path}: row {number} has no text under {column!r}; give --column, or mend the row.")
        if not text.strip() or len(text) > LONGEST_TEXT:
            raise InputError(f"{path}: the text of row {number} is empty or longer than {LONGEST_TEXT} characters.")
        texts.append(encodable(path, number, text))
    if not texts:
        raise InputError(f"{path} has no texts; give at least one.")
    named = [row.get("id") for row in rows] if any("id" in row for row in rows) else range(len(rows))
    task = task_column(path, list(dict.fromkeys(name for row in rows for name in row)), tasks)
    arrived = [row.get(task) for row in rows] if task else None
    return NewItems("texts", str(path.resolve()), unique_names(path, named), texts=texts, arrived=arrived)


def _csv(path: Path, column: str) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(2**27)
    try:
        with reading(path), path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            if column not in (reader.fieldnames or ()):
                has = ", ".join(reader.fieldnames or ())
                raise InputError(f"{path} has the columns {has}; give the one with texts as --column.")
            yield from reader
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file in UTF-8 ({error}).") from None


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with reading(path), path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict):
                        raise InputError(f"{path}: line {number + 1} is not a JSON object.")
                    yield row
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is neither a .csv file nor JSON lines in UTF-8 ({error}).") from None


def unique_names(path: Path, given: Any) -> list[str]:
    given = list(given)
    if None in given:
        raise InputError(f"{path}: row {given.index(None)} has no id; give every row its own, or none to any.")
    names = [encodable(path, number, str(name)) for number, name in enumerate(given)]
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError(f"{path}: the id {twice!r} is there more than once; give every row its own.")
    return names


def encodable(path: Path, number: int, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair, which JSON lets through
        raise InputError(f"{path}: row {number} has characters that cannot be written as UTF-8; mend it.") from None
    return text


def _is_row(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_list(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_nested(kind) or types.is_binary(kind))
