"""The vectors in a table: a column of lists, or columns of numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError
from accuacl.data.table import DataTable

LISTS = ("embedding", "embeddings", "features", "vector")
TEXTS = ("text", "sentence", "content")


def vectors_of(
    table: DataTable, apart: Collection[str], columns: Sequence[str] | None = None, lists: Sequence[str] = LISTS
) -> tuple[NDArray[np.float32], list[str] | None]:
    """The rows as float32 (n, d), and the columns that they are made of; None for a column of lists.

    apart: columns that are no part of the vector. columns: those that it must be made of.
    lists: names that a column of lists may have.
    """
    if not len(table):
        raise InputError(f"{table.path} has no rows; give at least one.")
    found = list_column(table, lists)
    if found and columns is None:
        return _finite(table, _from_lists(table, found)), None
    numbers = [name for name in table.names if name not in apart and _is_number(table, name)]
    made_of = numbers if columns is None else list(columns)
    missing = [name for name in made_of if name not in table.names]
    if missing:
        raise InputError(
            f"{table.path} has no column of numbers {', '.join(missing)}, as the training split has; add it."
        )
    if not made_of:
        texts = [name for name in TEXTS if name in table.names]
        if texts:
            raise InputError(
                f"{table.path} holds texts, and a run learns from images or numbers; label them with `accuacl project "
                "new DIR --texts FILE`, or give a column `embedding` with a list of numbers for each text."
            )
        raise InputError(
            f"{table.path} has neither a column `embedding` nor columns of numbers; give one or the other."
        )
    return _finite(table, np.stack([_numbers(table, name) for name in made_of], axis=1)), made_of


def list_column(table: DataTable, names: Sequence[str] = LISTS) -> str:
    """The first of these names that is a column of lists in the table; "" if none is."""
    return next((name for name in names if name in table.names and is_lists(_type(table, name))), "")


def _from_lists(table: DataTable, name: str) -> NDArray[np.float32]:
    import pyarrow.compute as pc
    import pyarrow.types as types

    rows = table.columns.column(name)
    if rows.null_count or len(pc.unique(pc.list_value_length(rows))) > 1:
        raise InputError(f"{table.path}: the lists in {name} have different lengths; give one length for all rows.")
    flat = pc.list_flatten(rows)
    if not (types.is_integer(flat.type) or types.is_floating(flat.type)) or flat.null_count:
        raise InputError(f"{table.path}: the column {name} holds {rows.type}, some missing; give lists of numbers.")
    with np.errstate(over="ignore"):  # what becomes infinite is refused later
        return np.asarray(flat.to_numpy(), np.float32).reshape(len(rows), -1)


def _type(table: DataTable, name: str) -> Any:
    return table.columns.schema.field(name).type


def _is_number(table: DataTable, name: str) -> bool:
    """Whether a column holds numbers; in a table of texts, whether the first that is there is one."""
    import pyarrow.types as types

    if not types.is_string(_type(table, name)):
        return is_numbers(_type(table, name))
    first = next((value for value in table.values(name) if value is not None), "")
    return _number(first) is not None


def _numbers(table: DataTable, name: str) -> NDArray[np.float32]:
    """A column of numbers; a missing one is NaN."""
    import pyarrow.types as types

    column = table.columns.column(name)
    if not types.is_string(column.type):
        with np.errstate(over="ignore"):  # what becomes infinite is refused later
            return np.asarray(column.to_numpy(), np.float32)
    numbers: list[float] = []
    for row, value in enumerate(table.values(name)):
        number = _number(value) if value is not None else float("nan")
        if number is None:
            raise InputError(f"{table.where(row)} has {value!r} under {name!r}; give a number as in the rows before.")
        numbers.append(number)
    with np.errstate(over="ignore"):
        return np.array(numbers).astype(np.float32)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _finite(table: DataTable, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if not vectors.size:
        raise InputError(f"{table.path} has vectors without entries; give at least one number a row.")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{table.where(row)} has a number that is missing or not finite; drop or repair such rows.")
    return vectors
