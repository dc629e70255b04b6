"""What the columns of a project's tables are, by its first task: `table.json` in that task's folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import reading, write_text
from accuacl.labeling.project.items import table_encoder
from accuacl.labeling.project.items.new_items import NewItems, TableOptions
from accuacl.labeling.project.items.table_encoder import BadTable, Column, Row

FILE = "table.json"
VERSION = 1
KINDS = {"number": "numbers", "category": "categories", "date": "dates", "text": "texts"}


@dataclass(frozen=True)
class TableSchema:
    """Which columns name and label the rows, and how the others are encoded."""

    options: TableOptions
    columns: list[Column]

    @classmethod
    def of(cls, items: NewItems) -> TableSchema:
        """Of the first task's rows."""
        assert items.table is not None
        columns = table_encoder.fit(items.shown or [])
        if not any(column["kind"] in KINDS for column in columns):
            raise InputError(f"{items.place} has no column to learn from: in each, every row has a value of its own.")
        return cls(items.table, columns)

    @classmethod
    def load(cls, folder: Path) -> TableSchema:
        path = folder / FILE
        with reading(path):
            content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] > VERSION:
            raise InputError(f"{path} was written by a newer version of accuacl; install that one.")
        given = content["options"]
        return cls(
            TableOptions(given["id"], given["label"], tuple(given["ignored"]), given.get("task")), content["columns"]
        )

    def save(self, folder: Path) -> None:
        content = {"version": VERSION, "options": asdict(self.options), "columns": self.columns}
        write_text(folder / FILE, json.dumps(content, indent=1) + "\n")

    def encode(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """A vector for each row."""
        return table_encoder.encode(self.columns, rows)

    def without_values(self, rows: Sequence[Row]) -> TableSchema:
        """The same without the categories, and words for missing values, that none of the rows has."""
        return replace(self, columns=table_encoder.without_values(self.columns, rows))

    def like(self, items: NewItems) -> NewItems:
        """The rows of a later table with the columns of the first; InputError where they do not fit."""
        rows = items.shown or []
        known, names = [column["name"] for column in self.columns], list(rows[0]) if rows else []
        try:
            table_encoder.check_names(self.columns, names)
            self.encode(rows)
        except BadTable as error:
            raise InputError(f"{items.place}: {error}") from None
        new = [name for name in names if name not in known]
        if new:
            warnings.warn(f"left out, since the first task does not have them: {', '.join(new)}", stacklevel=2)
        return replace(items, shown=[{name: row.get(name) for name in known} for row in rows], table=self.options)

    def inputs(self) -> list[str]:
        """The columns that the model learns from."""
        return [column["name"] for column in self.columns if column["kind"] in KINDS]

    def summary(self) -> list[str]:
        """How the columns are used, in a few lines."""
        lines = []
        for kind, title in KINDS.items():
            names = [column["name"] for column in self.columns if column["kind"] == kind]
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        unused = [f"{column['name']} ({column['why']})" for column in self.columns if column["kind"] == "unused"]
        return [*lines, f"shown, not learned from: {', '.join(unused)}"] if unused else lines
