"""Tables as the data of a project: vectors in Parquet; texts and rows in CSV, TSV, JSON, JSON lines and Parquet.

`TableSchema` says how the columns of a project's tables are encoded, as fixed by the first task.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError, listed
from accuacl.base.files import read_json, write_text
from accuacl.experiments import data
from accuacl.labeling.project import table_encoder
from accuacl.labeling.project.new_items import NewItems, TableOptions, check_exists, task_column

LONGEST_TEXT = 100_000  # the most characters that a text may have
EMBEDDING = "embedding"  # the usual name of the column of lists
ID = "id"  # the column that names the rows if no other is given and the table has it
FILE = "table.json"
VERSION = 1  # the version of the format of `table.json`
TITLES = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}  # kinds of columns


def read_vectors(
    path: Path, tasks: str | None = "", label_column: str = "", columns: Sequence[str] | None = None
) -> NewItems:
    """Rows of a Parquet table: `id`, if it has one, and a column of lists such as `embedding`, or all of numbers.

    tasks: the column that names the task of each row, as in `task_column`. label_column: the column of labels.
    columns: the columns of numbers that the first task has; a table that has them may have any lists beside them.
    """
    check_exists(path, "a Parquet file")
    table = data.read_columnar(path)
    task = task_column(path, table.names, tasks)
    data.check_column(path, label_column, table.names)
    apart = (ID, task or "", label_column)
    fields = [field for field in table.columns.schema if field.name not in apart]
    if EMBEDDING in table.names and not is_lists(table.columns.schema.field(EMBEDDING).type):
        kind = table.columns.schema.field(EMBEDDING).type
        raise InputError(f"{path}: the column `{EMBEDDING}` holds {kind}; give lists of numbers.")
    numbers = {field.name for field in fields if is_numbers(field.type)}
    lists = data.list_column(table)
    if columns is not None and numbers.issuperset(columns):
        lists = ""
    elif not lists and columns is None and (unknown := [f.name for f in fields if _lists_of_numbers(f.type)]):
        raise InputError(
            f"{path}: the column `{unknown[0]}` has lists of numbers, which are taken from "
            f"{', '.join(f'`{name}`' for name in data.LISTS)}; call it `{EMBEDDING}`, or leave it out of the file."
        )
    vectors, made_of = data.vectors_of(table, set(table.names) - numbers, lists=(lists,))
    others = [field.name for field in fields if not _is_nested(field.type)]
    return NewItems(
        "vectors",
        str(path.resolve()),
        _unique_names(path, table.values(ID) if ID in table.names else range(len(vectors))),
        vectors=vectors,
        shown=table.columns.select(others).to_pylist() if others else None,
        columns=made_of,
        labels=_labels(table.values(label_column)) if label_column else None,
        arrived=table.columns.column(task).to_pylist() if task else None,
        lists=lists,
    )


def read_texts(path: Path, column: str, tasks: str | None = "", label_column: str = "") -> NewItems:
    """Return the texts in a column of a table; `id` names them if it is there. Blank texts are left out and named.

    tasks: the column that names the task of each text, as in `task_column`. label_column: the column of labels, which
    may be empty for some texts.
    """
    check_exists(path, "a file")
    table = data.read_table(path)
    if table.names and column not in table.names:
        raise InputError(f"{path} has the columns {listed(table.names)}; give the one with texts as --column.")
    data.check_column(path, label_column, table.names)
    task = task_column(path, table.names, tasks)
    names = _unique_names(path, table.values(ID) if ID in table.names else range(len(table)))
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
            texts.append(text)
    if not texts:
        raise InputError(f"{path} has no texts; give at least one.")
    return NewItems(
        "texts",
        str(path.resolve()),
        [names[row] for row in kept],
        texts,
        bad=bad,
        labels=_labels([table.values(label_column)[row] for row in kept]) if label_column else None,
        arrived=[table.values(task)[row] for row in kept] if task else None,
    )


def read_table(path: Path, options: TableOptions, later: bool = False) -> NewItems:
    """Return all rows of a table. Values of .csv and .tsv files stay as they are written there.

    later: the options are those of an earlier table; this one need not have the columns that were left out.
    """
    check_exists(path, "a .csv, .tsv or Parquet file")
    table = data.read_table(path).columns
    names, rows = _rows(path, table)
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
        for value in filter(lambda value: isinstance(value, str), row.values()):
            if len(value) > LONGEST_TEXT:
                raise InputError(f"{path}: row {number} has a value longer than {LONGEST_TEXT} characters; shorten it.")
    return NewItems(
        "tables",
        str(path.resolve()),
        _unique_names(path, [None if row[id] == "" else row[id] for row in rows] if id else range(len(rows))),
        shown=[{name: row[name] for name in kept} for row in rows],
        table=TableOptions(id, options.label, options.ignored, task or options.task),
        labels=_labels([row.get(options.label) for row in rows]) if options.label else None,
        arrived=[row[task] for row in rows] if task else None,
    )


@dataclass(frozen=True)
class TableSchema:
    """The columns that name and label the rows, and the encoding of the others."""

    options: TableOptions
    columns: list[table_encoder.Column]

    @classmethod
    def of(cls, items: NewItems) -> TableSchema:
        """Return the schema of the first task's rows."""
        assert items.table is not None
        columns = table_encoder.fit(items.shown or [])
        if not any(column["kind"] in TITLES for column in columns):
            raise InputError(f"{items.place} has no column to learn from: in each, every row has a value of its own.")
        return cls(items.table, columns)

    @classmethod
    def load(cls, folder: Path) -> TableSchema:
        content = read_json(folder / FILE)
        if content["version"] > VERSION:
            raise InputError(f"{folder / FILE} was written by a newer version of accuacl; install that one.")
        given = content["options"]
        return cls(TableOptions(**given | {"ignored": tuple(given["ignored"])}), content["columns"])

    def save(self, folder: Path) -> None:
        content = {"version": VERSION, "options": asdict(self.options), "columns": self.columns}
        write_text(folder / FILE, json.dumps(content, indent=1) + "\n")

    def encode(self, rows: Sequence[table_encoder.Row]) -> NDArray[np.float32]:
        """Return a vector for each row."""
        return table_encoder.encode(self.columns, rows)

    def without_values(self, rows: Sequence[table_encoder.Row]) -> TableSchema:
        """Return the schema without the categories, and words for missing values, that none of the rows has."""
        return replace(self, columns=table_encoder.without_values(self.columns, rows))

    def like(self, items: NewItems) -> NewItems:
        """Return the rows of a later table with the columns of the first; InputError where they do not fit."""
        rows = items.shown or []
        known, names = [column["name"] for column in self.columns], list(rows[0]) if rows else []
        try:
            table_encoder.check_names(self.columns, names)
            self.encode(rows)
        except table_encoder.BadTable as error:
            raise InputError(f"{items.place}: {error}") from None
        new = [name for name in names if name not in known]
        if new:
            warnings.warn(f"left out, since the first task does not have them: {', '.join(new)}", stacklevel=2)
        return replace(items, shown=[{name: row.get(name) for name in known} for row in rows], table=self.options)

    def inputs(self) -> list[str]:
        """Return the columns that the model learns from."""
        return [column["name"] for column in self.columns if column["kind"] in TITLES]

    def summary(self) -> list[str]:
        """Return how the columns are used, in a few lines."""
        lines = {title: [c["name"] for c in self.columns if c["kind"] == kind] for kind, title in TITLES.items()}
        unused = [f"{c['name']} ({c['why']})" for c in self.columns if c["kind"] == "unused"]
        lines |= {"shown, not learned from": unused}
        return [f"{title}: {', '.join(names)}" for title, names in lines.items() if names]


def _labels(values: Sequence[Any]) -> list[str | None]:
    """Return the class names in a column of labels; None for a row without a label."""
    return [None if value is None or not str(value).strip() else str(value).strip() for value in values]


def _unique_names(path: Path, given: Any) -> list[str]:
    given = list(given)
    if None in given:
        raise InputError(f"{path}: row {given.index(None)} has no id; give every row an id, or none of them.")
    names = [str(name) for name in given]
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise InputError(f"{path}: the id {name!r} occurs more than once; give every row its own.")
    return names


def _check_ignored(path: Path, schema: Any, names: list[str], ignored: Sequence[str]) -> None:
    """Refuse names that the table does not have, and warn of columns that are left out though nobody asked for it."""
    for name in ignored:
        data.check_column(path, name, schema.names)
    left_out = [field for field in schema if field.name not in (*names, *ignored)]
    if left_out:
        hint = "; --vectors takes lists of numbers" if any(_lists_of_numbers(f.type) for f in left_out) else ""
        columns = ", ".join(field.name for field in left_out)
        warnings.warn(f"{path}: left out, since rows cannot have lists or bytes: {columns}{hint}.", stacklevel=3)


def _rows(path: Path, table: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names of a table's columns, and its rows. Dates become text; nested values and bytes are left out."""
    names = [field.name for field in table.schema if not _is_nested(field.type)]
    if len(set(names)) != len(names):
        raise InputError(f"{path} has two columns with the same name; rename one of them.")
    columns = [[_as_json(value) for value in table.column(name).to_pylist()] for name in names]
    rows = zip(*columns, strict=True) if columns else [()] * len(table)
    return names, [dict(zip(names, row, strict=True)) for row in rows]


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if value == value else None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _lists_of_numbers(kind: Any) -> bool:
    import pyarrow.types as types

    return is_lists(kind) and bool(types.is_integer(kind.value_type) or types.is_floating(kind.value_type))


def _is_nested(kind: Any) -> bool:
    """Return whether a column has lists, structures or bytes, which people cannot be shown."""
    import pyarrow.types as types

    tests = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return any(test(kind) for test in tests)
