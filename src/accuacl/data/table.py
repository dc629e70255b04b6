"""Tables as files: CSV, TSV, JSON, JSON lines, Parquet, Arrow, texts by the line. Rows in are rows out, or the line is
named.

Files of text may be compressed: .csv.xz, .jsonl.gz, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.base.names import near
from accuacl.data.columnar import open_columnar
from accuacl.data.delimited import header_of, read_delimited
from accuacl.data.jsons import read_json, read_json_lines
from accuacl.data.textfile import COMPRESSED, read_lines

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
COLUMNAR = (".parquet", ".pq", ".arrow")
TEXTS = (*DELIMITERS, ".json", *LINES)
SUFFIXES = (*TEXTS, *COLUMNAR, *(text + packed for text in TEXTS for packed in COMPRESSED))


class DataTable:
    """Columns by name, as pyarrow has them; those of CSV and TSV, which are delimited, hold texts."""

    def __init__(self, path: Path, columns: Any, lines: list[int] | None = None, delimited: bool = False) -> None:
        self.path, self.columns, self.lines, self.delimited = path, columns, lines, delimited

    @property
    def names(self) -> list[str]:
        return list(self.columns.column_names)

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def where(self, row: int) -> str:
        """What to call a row in an error: by the line that it begins in, where there are lines."""
        return f"{self.path}: line {self.lines[row]}" if self.lines else f"{self.path}: row {row}"

    def values(self, name: str) -> list[Any]:
        """A column as Python values; None where a value is missing or an empty text."""
        return [None if value == "" else value for value in self.columns.column(name).to_pylist()]


def check_column(path: Path, given: str, names: Sequence[str]) -> None:
    """Refuse the name of a column that a table does not have; "": none was given."""
    if given and given not in names:
        meant = near(given, names)
        hint = f"did you mean {meant}? It" if meant else "it"
        raise InputError(f"{path} has no column {given!r}; {hint} has {', '.join(names)}.")


def read_table(path: Path) -> DataTable:
    """The whole table in a file, which its suffix says the format of; what is not .parquet, .csv, ... is JSON lines.

    A .txt file has a text in each line, the column `text`, unless its first line is a JSON object.
    """
    import pyarrow as pa

    suffix = _format(path)
    if suffix in COLUMNAR:
        return read_columnar(path)
    if suffix in DELIMITERS:
        texts, lines = read_delimited(path, DELIMITERS[suffix])
        return DataTable(path, pa.table({name: pa.array(texts[name], pa.string()) for name in texts}), lines, True)
    plain = read_lines(path) if suffix == ".txt" else []
    if plain and not plain[0].lstrip().startswith("{"):
        return DataTable(path, pa.table({"text": pa.array(plain, pa.string())}), list(range(1, len(plain) + 1)))
    rows, begins = (read_json(path), None) if suffix == ".json" else read_json_lines(path)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return DataTable(path, pa.table({name: _column(path, name, rows) for name in names}), begins)


def read_columnar(path: Path) -> DataTable:
    """The whole table in a Parquet file, or in an Arrow file if it ends in .arrow."""
    import pyarrow as pa

    try:
        return DataTable(path, open_columnar(path).read())
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is damaged ({reason(error)}); write it again.") from error


def table_suffix(path: Path) -> str:
    """How the name of a table's file ends, or "" if it is none.

    >>> table_suffix(Path("claims.CSV.xz")), table_suffix(Path("claims.txt"))
    ('.csv.xz', '')
    """
    return next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), "")


def column_names(path: Path) -> list[str]:
    """The names of the columns; of most formats only the beginning is read."""
    suffix = _format(path)
    if suffix in COLUMNAR:
        return list(open_columnar(path).schema_arrow.names)
    if suffix in DELIMITERS:
        return header_of(path, DELIMITERS[suffix])
    return read_table(path).names


def _format(path: Path) -> str:
    """The suffix that says the format."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in COMPRESSED else path.suffix.lower()


def _column(path: Path, name: str, rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    try:
        return pa.array([row.get(name) for row in rows])
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise InputError(f"{path}: {name} is no column ({reason(error)}); give values of one kind.") from None
