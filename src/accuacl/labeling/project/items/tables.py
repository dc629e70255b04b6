"""Tables: vectors in Parquet, texts in CSV, TSV, JSON, JSON lines and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accuacl import data
from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.base.names import near
from accuacl.labeling.project.items.new_items import NewItems, task_column, there

LONGEST_TEXT = 100_000  # characters


def read_vectors(path: Path, tasks: str | None = "", label_column: str = "") -> NewItems:
    """Rows of a Parquet table: `id`, if it has one, and the list column `embedding`, or all columns of numbers.

    tasks: the column that names the task of each row, as in `task_column`. label_column: one that has labels.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(there(path, "a Parquet file"))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({reason(error)}); write it again.") from error
    task = task_column(path, table.column_names, tasks)
    if label_column and label_column not in table.column_names:
        raise no_column(path, label_column, table.column_names)
    apart = ("id", task, label_column)
    if "embedding" in table.column_names:
        kind = table.schema.field("embedding").type
        if not (_is_row(kind) and _is_number(kind.value_type)):
            raise InputError(f"{path}: the column `embedding` holds {kind}; give lists of numbers.")
        rows, columns = table.column("embedding"), None
        if rows.null_count or len(pc.unique(pc.list_value_length(rows))) > 1:
            raise InputError(f"{path}: the embeddings have different lengths; give one length for all rows.")
        vectors = np.asarray(pc.list_flatten(rows).to_numpy(), np.float32).reshape(len(rows) or 1, -1)
    else:
        columns = [f.name for f in table.schema if f.name not in apart and _is_number(f.type)]
        if not columns:
            raise InputError(f"{path} has neither a column `embedding` nor columns of numbers; give one or the other.")
        vectors = np.stack([np.asarray(table.column(c).to_numpy(), np.float32) for c in columns], axis=1)
    if vectors.ndim != 2 or not vectors.size:
        raise InputError(f"{path} has no vectors; give at least one row.")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise InputError(f"{path}: row {int(np.argmin(finite))} is not finite; drop or repair such rows.")
    named = table.column("id").to_pylist() if "id" in table.column_names else range(len(vectors))
    others = [f.name for f in table.schema if f.name not in (*apart, "embedding") and not _is_list(f.type)]
    shown = table.select(others).to_pylist() if others else None
    arrived = table.column(task).to_pylist() if task else None
    labels = labels_in(table.column(label_column).to_pylist()) if label_column else None
    place, names = str(path.resolve()), unique_names(path, named)
    return NewItems("vectors", place, names, None, vectors, shown, columns, arrived=arrived, labels=labels)


def read_texts(path: Path, column: str, tasks: str | None = "", label_column: str = "") -> NewItems:
    """The texts in a column of a table; `id` names them if it is there. Blank texts are left out and named.

    tasks: the column that names the task of each text, as in `task_column`. label_column: one that has labels, of all
    texts or of some.
    """
    table = data.read_table(there(path, "a file"))
    if table.names and column not in table.names:
        raise InputError(f"{path} has the columns {', '.join(table.names)}; give the one with texts as --column.")
    if label_column and label_column not in table.names:
        raise no_column(path, label_column, table.names)
    task = task_column(path, table.names, tasks)
    given = table.values("id") if "id" in table.names else range(len(table))
    names = unique_names(path, given)
    kept, texts, bad = [], [], {}
    for row, text in enumerate(table.values(column) if len(table) else ()):
        if text is not None and not isinstance(text, str):
            raise InputError(f"{table.where(row)} has no text under {column!r}; give --column, or fix the row.")
        if text is None or not text.strip():
            bad[names[row]] = f"{table.where(row)} has a blank text"
        elif len(text) > LONGEST_TEXT:
            raise InputError(f"{table.where(row)} has a text longer than {LONGEST_TEXT} characters; shorten it.")
        else:
            kept.append(row)
            texts.append(encodable(path, row, text))
    if not texts:
        raise InputError(f"{path} has no texts; give at least one.")
    arrived = [table.values(task)[row] for row in kept] if task else None
    labels = labels_in([table.values(label_column)[row] for row in kept]) if label_column else None
    named = [names[row] for row in kept]
    return NewItems("texts", str(path.resolve()), named, texts, bad=bad, arrived=arrived, labels=labels)


def labels_in(values: Sequence[Any]) -> list[str | None]:
    """What a column of labels has: names of classes; None where a row has no label."""
    return [None if value is None or not str(value).strip() else str(value).strip() for value in values]


def no_column(path: Path, name: str, names: Sequence[str]) -> InputError:
    """What to say of a column that is not there."""
    meant = near(name, names)
    hint = f"did you mean {meant}? It has" if meant else "it has"
    return InputError(f"{path} has no column {name!r}; {hint} {', '.join(names)}.")


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
        raise InputError(f"{path}: row {number} has characters that cannot be written as UTF-8; fix it.") from None
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
