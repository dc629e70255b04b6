"""The file of `select --exclude`: ids one a line, or a table such as `select` itself writes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.data import read_table

USUAL = "id"  # what the picks call the ids, whatever the pool calls them
TABLES = (".csv", ".jsonl", ".parquet")


def read_ids(path: Path, id_column: str) -> list[Any]:
    """The ids in a file: of a table those in the column `id_column`, or else `id`; of other text the lines.

    A .csv of one column without that header is a list too.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet" and path.is_file():
        return _of_parquet(path, id_column)
    lines = _lines(path)
    if suffix not in (".csv", ".jsonl") or not lines or (suffix == ".csv" and _is_list(lines[0], id_column)):
        return lines
    table = read_table(path)
    name = _name(path, id_column, table.names)
    return _present(path, name, table.values(name))


def _of_parquet(path: Path, id_column: str) -> list[Any]:
    from accuacl.pools import GROUP_ROWS, open_parquet, read  # only here: they load pyarrow

    file = str(path)
    parquet = open_parquet(file)
    name = _name(path, id_column, parquet.schema_arrow.names)
    ids: list[Any] = []
    for batch in read(file, parquet, None, [name], GROUP_ROWS):
        ids += batch.column(0).to_pylist()
    return _present(path, name, ids)


def _lines(path: Path) -> list[str]:
    tables = f"or a table that ends in {', '.join(TABLES)}"
    try:
        lines = [line.rstrip("\r") for line in path.read_text(encoding="utf-8-sig").split("\n")]
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; write the ids to leave out there, one a line.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}; give a text file of ids, {tables}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text; write the ids to leave out there, one a line, {tables}.") from None
    return [line for line in lines if line.strip()]


def _is_list(header: str, id_column: str) -> bool:
    """Whether the first line of a .csv is an id and not the names of columns."""
    by_delimiter = [next(csv.reader([header], delimiter=delimiter), []) for delimiter in ",;\t|"]
    return len(by_delimiter[0]) == 1 and not any({id_column, USUAL} & set(names) for names in by_delimiter)


def _name(path: Path, id_column: str, names: Sequence[str]) -> str:
    for name in (id_column, USUAL):
        if name in names:
            return name
    raise InputError(
        f"{path} has the columns {', '.join(names)} and none called {id_column!r}; call the one with the ids {USUAL!r}."
    )


def _present(path: Path, name: str, ids: list[Any]) -> list[Any]:
    missing = sum(id_ is None for id_ in ids)
    if missing:
        raise InputError(f"{path}: {missing:,} of {len(ids):,} rows have no {name}; fill it in or drop them.")
    return ids
