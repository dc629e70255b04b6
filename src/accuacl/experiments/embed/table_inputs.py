"""Vectors or images in a table of any format that `accuacl run` reads: CSV, TSV, JSON, JSON lines and Arrow.

The table is read whole. Parquet, which may be larger than memory, has a reader of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError
from accuacl.experiments import data
from accuacl.experiments.embed.reading import Batch, Decoding, ReadOptions, check_numbers, check_unique

APART = ("id", "split", "task", "domain")  # columns that are no part of a vector, beside that of the labels


class TableInputs:
    """Rows of a table; the id is what its id column has, or else the row number.

    A row's vector is a list of numbers, or made of the columns `numbers`; if none are given, of all columns of numbers
    but for those that `accuacl run` leaves out. An image is given by its path from the table's folder, or by its bytes.
    """

    def __init__(self, file: str, options: ReadOptions, numbers: Sequence[str]) -> None:
        self.table = data.read_table(Path(file))
        data.check_column(Path(file), options.column, self.table.names)
        self.files, self.ids = [file], self._ids(options.id_column)
        self.reading: list[Any] = [options.column, options.id_column if self.ids else ""]
        self.images = self._image_column(options, numbers)
        if self.images:
            self.decoding = Decoding(options.image_size, options.skip_bad)
            self.reading += [options.image_size, options.skip_bad]
            paths = map(self._path, range(len(self)))
            self.files += [str(path) for path in paths if path]
            return
        lists = (options.column,) if options.column else options.usual or data.LISTS
        if options.column and not data.list_column(self.table, lists):
            raise InputError(
                f"{file}: {options.column} holds neither lists of numbers nor images; give another --column."
            )
        label = next((name for name in data.LABELS if name in self.table.names), "")
        made_of = list(numbers) if numbers and not options.column else None
        check_numbers(file, made_of or (), self.table.names)
        self.vectors, columns = data.vectors_of(self.table, (*APART, options.id_column, label), made_of, lists)
        self.reading += columns or []

    def __len__(self) -> int:
        return len(self.table)

    def where(self, row: int) -> str:
        return self.table.where(row)

    def read(self, start: int, stop: int) -> Batch:
        rows = range(start, min(stop, len(self)))
        ids = [row if self.ids is None else self.ids[row] for row in rows]
        if not self.images:
            return ids, np.array(self.vectors[start:stop])
        images = ((str(self._path(row) or self.where(row)), functools.partial(self._image, row)) for row in rows)
        kept, pixels = self.decoding(images)
        return [ids[i] for i in kept], pixels

    def _image_column(self, options: ReadOptions, numbers: Sequence[str]) -> str:
        """The column of images, found by its name if none is given; "": the rows are vectors."""
        if not options.column and (numbers or data.list_column(self.table, options.usual)):
            return ""
        names = (options.column,) if options.column else data.IMAGES
        column = next((name for name in names if name in self.table.names), "")
        kind = self.table.columns.schema.field(column).type if column else None
        return "" if kind is None or is_lists(kind) or is_numbers(kind) else column

    def _cell(self, row: int) -> Any:
        """The image of a row: a path, or bytes."""
        cell = self.table.columns.column(self.images)[row].as_py()
        return cell.get("bytes") if isinstance(cell, dict) else cell  # a dictionary: as Hugging Face writes them

    def _path(self, row: int) -> Path | None:
        cell = self._cell(row)
        return self.table.path.parent / cell if isinstance(cell, str) else None

    def _image(self, row: int) -> bytes:
        if path := self._path(row):
            return path.read_bytes()
        content = self._cell(row)
        if not isinstance(content, bytes):
            raise InputError("the row has no image")
        return content

    def _ids(self, column: str) -> list[Any] | None:
        if column not in self.table.names:
            if column in ("", "id"):
                return None
            named = ", ".join(self.table.names)
            raise InputError(f"{self.table.path} has the columns {named} and no {column!r}; give another --id-column.")
        ids = self.table.values(column)
        for row, id in enumerate(ids):
            if not isinstance(id, int | str) or isinstance(id, bool):
                raise InputError(
                    f"{self.where(row)} has {id!r} under {column!r}; give a whole number or a text, or --id-column '' "
                    "for row numbers."
                )
        check_unique(lambda: [ids], self.where)
        return ids
