"""Tables as files: CSV, TSV, JSON, JSON lines, Parquet, Arrow. Rows in are rows out, or the line is named.

Files of text may be compressed: .csv.xz, .jsonl.gz, ...
"""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from accuacl.base.errors import InputError
from accuacl.base.files import reading, reason
from accuacl.base.names import near

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
COLUMNAR = (".parquet", ".pq", ".arrow")
OTHER_DELIMITERS = ";\t|"  # in files that are called .csv all the same
COMPRESSED: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
TEXTS = (*DELIMITERS, ".json", *LINES)
SUFFIXES = (*TEXTS, *COLUMNAR, *(text + packed for text in TEXTS for packed in COMPRESSED))
INDEX = ("", "Unnamed: 0")  # what pandas calls its row numbers in a CSV file


class DataTable:
    """Columns by name, as pyarrow has them; those of CSV and TSV hold texts."""

    def __init__(self, path: Path, columns: Any, lines: list[int] | None = None) -> None:
        self.path, self.columns, self.lines = path, columns, lines

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
    """The whole table in a file, which its suffix says the format of; what is not .parquet, .csv, ... is JSON lines."""
    import pyarrow as pa

    suffix = _format(path)
    if suffix in COLUMNAR:
        try:
            return DataTable(path, open_columnar(path).read())
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} is damaged ({reason(error)}); write it again.") from error
    if suffix in DELIMITERS:
        return _delimited(path, DELIMITERS[suffix])
    rows, lines = _json(path) if suffix == ".json" else _json_lines(path)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column(path, name, [row.get(name) for row in rows]) for name in names}
    return DataTable(path, pa.table(columns), lines)


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
        with _opened(path, errors="replace") as file:
            return next(csv.reader(file, delimiter=_delimiter(file, DELIMITERS[suffix])), [])
    return read_table(path).names


def open_columnar(path: Path) -> Any:
    """A Parquet or Arrow file as pyarrow's ParquetFile: `schema_arrow`, `read(columns=)`, `iter_batches`."""
    import pyarrow as pa  # only here: a start from the cache does without
    import pyarrow.parquet as pq

    kind = "Arrow" if path.suffix.lower() == ".arrow" else "Parquet"
    try:
        return ArrowFile(path) if kind == "Arrow" else pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a readable {kind} file ({reason(error)}); download it again.") from error


class ArrowFile:
    """An Arrow file as Hugging Face `datasets` saves them (a stream), or as Feather does; mapped, not read."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        try:
            self.table = pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
        except pa.ArrowInvalid:
            self.table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        self.schema_arrow = self.table.schema

    def read(self, columns: list[str] | None = None) -> Any:
        return self.table if columns is None else self.table.select(columns)

    def iter_batches(self, size: int, columns: list[str]) -> Iterator[Any]:
        return iter(self.read(columns).to_batches(max_chunksize=size))


def _format(path: Path) -> str:
    """The suffix that says the format."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in COMPRESSED else path.suffix.lower()


@contextmanager
def _opened(path: Path, errors: str = "strict") -> Iterator[IO[str]]:
    """A file of text, compressed or not; InputError where it is not."""
    opener = COMPRESSED.get(path.suffix.lower(), open)
    try:
        with reading(path), opener(path, "rt", newline="", encoding="utf-8-sig", errors=errors) as file:
            yield file
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({reason(error)}); save it in UTF-8.") from None
    except (lzma.LZMAError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is damaged ({reason(error)}); write it again.") from None


def _delimiter(file: IO[str], usual: str) -> str:
    """What separates the fields, by the header."""
    header = file.readline()
    file.seek(0)

    def fields(delimiter: str) -> int:
        found = next(csv.reader([header], delimiter=delimiter), [])
        return 0 if any('"' in field for field in found) else len(found)  # it cuts a quoted name

    return max(usual + OTHER_DELIMITERS, key=fields)  # the first of the best


def _delimited(path: Path, delimiter: str) -> DataTable:
    import pyarrow as pa

    csv.field_size_limit(2**27)
    rows: list[list[str]] = []
    lines: list[int] = []
    several: list[tuple[int, int]] = []  # first and last line of rows that have several
    line = 0
    try:
        with _opened(path) as file:
            reader = csv.reader(file, delimiter=_delimiter(file, delimiter), strict=True)
            for row in reader:
                begins, line = line + 1, reader.line_num
                if not row:
                    continue
                if rows and len(row) != len(rows[0]):
                    raise InputError(
                        f"{path}: line {begins} has {len(row)} fields and the header {len(rows[0])}; put a text that "
                        "holds the delimiter in quotation marks, or fix the line."
                    )
                if line > begins:
                    several.append((begins, line))
                rows.append(row)
                lines.append(begins)
    except csv.Error as error:
        raise InputError(
            f"{path}: a quotation mark in the row that begins in line {line + 1} does not fit ({error}); close it, and "
            'write "" for one inside a quoted text.'
        ) from None
    header = rows[0] if rows else []
    for name in header:
        if header.count(name) > 1:
            raise InputError(f"{path} has two columns named {name!r}; give each its own name.")
    if several:
        warnings.warn(
            f"{path}: {len(several)} of {len(rows) - 1} rows run over several lines, first lines {several[0][0]} to "
            f"{several[0][1]}; if that is not meant, a quotation mark is astray there.",
            stacklevel=4,
        )
    columns = {n: pa.array([row[i] for row in rows[1:]], pa.string()) for i, n in enumerate(header) if n not in INDEX}
    return DataTable(path, pa.table(columns), lines[1:])


def _json_lines(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    rows, lines = [], []
    number = 0
    try:
        with _opened(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    rows.append(_object(json.loads(line), f"{path}: line {number}"))
                    lines.append(number)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: line {number} is not JSON ({error}); write one object a line, or name the file .csv, .tsv or "
            ".json if it is that."
        ) from None
    return rows, lines


def _json(path: Path) -> tuple[list[dict[str, Any]], None]:
    try:
        with _opened(path) as file:
            content = json.load(file)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON in UTF-8 ({error}); name it .jsonl if it has an object a line.") from None
    if not isinstance(content, list):
        raise InputError(f"{path} holds no list; write a list of objects, [{{...}}, {{...}}].")
    return [_object(row, f"{path}: row {i}") for i, row in enumerate(content)], None


def _object(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f'{where} is not a JSON object; write {{"label": ..., ...}}.')
    return row


def _column(path: Path, name: str, values: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise InputError(f"{path}: {name} is no column ({reason(error)}); give values of one kind.") from None
