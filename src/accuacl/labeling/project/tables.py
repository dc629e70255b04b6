"""Tables: vectors in Parquet, texts in CSV, TSV, JSON, JSON lines and Parquet."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError
from accuacl.experiments import data
from accuacl.labeling.project.new_items import NewItems, TableOptions, task_column, there

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


ID = "id"  # the column that names the rows, where it is there and no other is given


def read_table(path: Path, options: TableOptions, later: bool = False) -> NewItems:
    """All rows of a table. Values of .csv and .tsv files stay as they are written there.

    later: the options are those of an earlier table; this one need not have the columns that were left out.
    """
    path = there(path, "a .csv, .tsv or Parquet file")
    table = data.read_table(path).columns
    names, rows = _columns(path, table)
    for name in (options.id, *(() if later else (options.label,))):
        data.check_column(path, name, names)
    if not later:
        _check_ignored(path, table.schema, names, options.ignored)
    if not rows:
        raise InputError(f"{path} has no rows; give at least one.")
    id = options.id or (ID if ID in names and ID not in (options.label, *options.ignored) else "")
    free = [name for name in names if name not in (id, options.label, *options.ignored)]
    task = None if later and options.task and options.task not in names else task_column(path, free, options.task)
    kept = [name for name in free if name != task]
    if not kept:
        raise InputError(f"{path} has no columns to learn from; give a table that has some.")
    for number, row in enumerate(rows):
        for value in row.values():
            _check_value(path, number, value)
    named = unique_names(path, [None if row[id] == "" else row[id] for row in rows] if id else range(len(rows)))
    labels = labels_in([row.get(options.label) for row in rows]) if options.label else None
    shown = [{name: row[name] for name in kept} for row in rows]
    used = TableOptions(id, options.label, options.ignored, task or options.task)
    arrived = [row[task] for row in rows] if task else None
    return NewItems("tables", str(path.resolve()), named, shown=shown, table=used, labels=labels, arrived=arrived)


def _check_value(path: Path, number: int, value: Any) -> None:
    if isinstance(value, str):
        encodable(path, number, value)
        if len(value) > LONGEST_TEXT:
            raise InputError(f"{path}: a value of row {number} is longer than {LONGEST_TEXT} characters; shorten it.")


def _check_ignored(path: Path, schema: Any, names: list[str], ignored: Sequence[str]) -> None:
    """Refuse names that are not there, and say which columns are left out though nobody asked for it."""
    for name in ignored:
        data.check_column(path, name, schema.names)
    left_out = [field for field in schema if field.name not in (*names, *ignored)]
    if left_out:
        hint = "; --vectors takes lists of numbers" if any(lists_of_numbers(f.type) for f in left_out) else ""
        columns = ", ".join(field.name for field in left_out)
        warnings.warn(f"{path}: left out, since rows cannot have lists or bytes: {columns}{hint}.", stacklevel=3)


def _columns(path: Path, table: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Names of columns, and rows. Dates become text; what is neither text, number, date nor truth is left out."""
    import pyarrow as pa

    kinds = pa.types
    binary = (kinds.is_nested, kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary)
    names = [field.name for field in table.schema if not any(test(field.type) for test in binary)]
    if len(set(names)) != len(names):
        raise InputError(f"{path} has two columns of one name; give each its own.")
    columns = [[_plain(value) for value in table.column(name).to_pylist()] for name in names]
    return names, [dict(zip(names, row, strict=True)) for row in _transposed(columns, len(table))]


def _transposed(columns: list[list[Any]], count: int) -> Iterator[tuple[Any, ...]]:
    return zip(*columns, strict=True) if columns else iter([()] * count)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if value == value else None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
