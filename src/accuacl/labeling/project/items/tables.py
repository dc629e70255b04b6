"""Tables: vectors in Parquet, texts in CSV, TSV, JSON, JSON lines and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuacl import data
from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError
from accuacl.labeling.project.items.new_items import NewItems, task_column, there

LONGEST_TEXT = 100_000  # characters
EMBEDDING = "embedding"  # the column of lists


def read_vectors(
    path: Path, tasks: str | None = "", label_column: str = "", columns: Sequence[str] | None = None
) -> NewItems:
    """Rows of a Parquet table: `id`, if it has one, and a column of lists such as `embedding`, or all of numbers.

    tasks: the column that names the task of each row, as in `task_column`. label_column: one that has labels. columns:
    the columns of numbers that the first task has; a table that has them may have any lists beside them.
    """
    table = data.read_columnar(there(path, "a Parquet file"))
    schema = table.columns.schema
    task = task_column(path, table.names, tasks)
    data.check_column(path, label_column, table.names)
    apart = ("id", task or "", label_column)
    if EMBEDDING in table.names and not is_lists(schema.field(EMBEDDING).type):
        kind = schema.field(EMBEDDING).type
        raise InputError(f"{path}: the column `{EMBEDDING}` holds {kind}; give lists of numbers.")
    texts = [field.name for field in schema if not is_numbers(field.type)]
    lists = data.list_column(table)
    if columns is not None and all(name in table.names and name not in texts for name in columns):
        lists = ""
    elif not lists and columns is None:
        _refuse_lists(path, [field for field in schema if field.name not in apart])
    vectors, made_of = data.vectors_of(table, (*apart, *texts), lists=(lists,))
    named = table.values("id") if "id" in table.names else range(len(vectors))
    others = [f.name for f in schema if f.name not in apart and not _is_nested(f.type)]
    shown = table.columns.select(others).to_pylist() if others else None
    arrived = table.columns.column(task).to_pylist() if task else None
    labels = labels_in(table.values(label_column)) if label_column else None
    place, names = str(path.resolve()), unique_names(path, named)
    return NewItems("vectors", place, names, None, vectors, shown, made_of, {}, None, labels, arrived, lists)


def _refuse_lists(path: Path, fields: Sequence[Any]) -> None:
    """InputError: a column has lists of numbers, under a name that does not say that they are the vectors."""
    for field in fields:
        if lists_of_numbers(field.type):
            known = ", ".join(f"`{name}`" for name in data.LISTS)
            raise InputError(
                f"{path}: the column `{field.name}` has lists of numbers, which are taken from {known}; "
                f"call it `{EMBEDDING}`, or leave it out of the file."
            )


def read_texts(path: Path, column: str, tasks: str | None = "", label_column: str = "") -> NewItems:
    """The texts in a column of a table; `id` names them if it is there. Blank texts are left out and named.

    tasks: the column that names the task of each text, as in `task_column`. label_column: one that has labels, of all
    texts or of some.
    """
    table = data.read_table(there(path, "a file"))
    if table.names and column not in table.names:
        raise InputError(f"{path} has the columns {', '.join(table.names)}; give the one with texts as --column.")
    data.check_column(path, label_column, table.names)
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


def lists_of_numbers(kind: Any) -> bool:
    """Whether a column has lists that vectors can be made of."""
    import pyarrow.types as types

    return is_lists(kind) and bool(types.is_integer(kind.value_type) or types.is_floating(kind.value_type))


def _is_nested(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_nested(kind) or types.is_binary(kind))
