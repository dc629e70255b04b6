"""Tables with columns of any kind: .csv, .tsv and Parquet, also compressed, as the rows that people label."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from accuacl import data
from accuacl.base.errors import InputError
from accuacl.labeling.project.items.new_items import NewItems, TableOptions, task_column, there
from accuacl.labeling.project.items.tables import LONGEST_TEXT, encodable, labels_in, lists_of_numbers, unique_names

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
