"""Files that hold a table, in any format: Parquet, Arrow, CSV, TSV, JSON and JSON lines, compressed or not.

`read_table` reads a whole file, whose suffix says the format; `column_names` reads only what is needed for the names.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from accuacl.base.errors import InputError, listed, near
from accuacl.base.files import reading, reason

COMPRESSED: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
DELIMITERS = {".csv": ",", ".tsv": "\t"}
OTHER_DELIMITERS = ";\t|"  # that files called .csv may have
LINES = (".jsonl", ".ndjson")
COLUMNAR = (".parquet", ".pq", ".arrow")
TEXT_SUFFIXES = (*DELIMITERS, ".json", *LINES)
SUFFIXES = (*TEXT_SUFFIXES, *COLUMNAR, *(text + packed for text in TEXT_SUFFIXES for packed in COMPRESSED))
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
NUMBERED = re.compile(r"\d{1,5}")  # a number that may name a column: a year, or features counted from 0
ROW_NUMBERS = ("", "Unnamed: 0")  # what pandas calls its row numbers in a CSV file


@dataclass(frozen=True, eq=False)
class DataTable:
    """A table in memory: `columns` is pyarrow's. delimited: from CSV or TSV, so that all columns hold texts."""

    path: Path
    columns: Any
    lines: list[int] | None = None  # in which the rows begin
    delimited: bool = False

    @property
    def names(self) -> list[str]:
        return list(self.columns.column_names)

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def where(self, row: int) -> str:
        """What to call a row in an error: the line that it begins in, or its number in files without lines."""
        return f"{self.path}: line {self.lines[row]}" if self.lines else f"{self.path}: row {row}"

    def values(self, name: str) -> list[Any]:
        """A column as Python values; None where a value is missing or an empty text."""
        return [None if value == "" else value for value in self.columns.column(name).to_pylist()]


def read_table(path: Path) -> DataTable:
    """The whole table in a file; its suffix says the format, and other suffixes than .parquet, .csv, ... JSON lines.

    A .txt file has a text in each line, the column `text`, unless its first line is a JSON object.
    """
    import pyarrow as pa

    suffix = _format(path)
    if suffix in COLUMNAR:
        return read_columnar(path)
    if suffix in DELIMITERS:
        columns, lines = _read_delimited(path, DELIMITERS[suffix])
        return DataTable(path, pa.table({name: pa.array(columns[name], pa.string()) for name in columns}), lines, True)
    if suffix == ".txt":
        with _open_text(path) as file:
            texts = [line.rstrip("\r\n") for line in file]
        if texts and not texts[0].lstrip().startswith("{"):
            return DataTable(path, pa.table({"text": pa.array(texts, pa.string())}), list(range(1, len(texts) + 1)))
    rows, begins = (_read_json(path), None) if suffix == ".json" else _read_json_lines(path)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return DataTable(path, pa.table({name: _column(path, name, rows) for name in names}), begins)


def read_columnar(path: Path, without: str = "") -> DataTable:
    """The whole table in a Parquet file, or in an Arrow file if it ends in .arrow, but for a column."""
    import pyarrow as pa

    file = open_columnar(path)
    columns = [name for name in file.schema_arrow.names if name != without] if without else None
    try:
        table = file.read(columns=columns)
        table.validate(full=True)  # texts that are not UTF-8, say
        return DataTable(path, table)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is damaged ({reason(error)}); write it again.") from error


def open_columnar(path: Path) -> Any:
    """A Parquet or Arrow file as pyarrow's ParquetFile: `schema_arrow`, `read(columns=)`, `iter_batches`."""
    import pyarrow as pa  # only here: a start from the cache does without
    import pyarrow.parquet as pq

    kind = "Arrow" if path.suffix.lower() == ".arrow" else "Parquet"
    try:
        return _ArrowFile(path) if kind == "Arrow" else pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        to_do = "download it again"
        if path.suffix.lower() not in (".parquet", ".pq", ".arrow"):
            to_do = "convert it to Parquet, or give a table such as CSV with --table"
        raise InputError(f"{path} is not a readable {kind} file ({reason(error)}); {to_do}.") from error


class _ArrowFile:
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


def table_suffix(path: Path) -> str:
    """The suffix of a table's file, with that of its compression; "" for any other file.

    >>> table_suffix(Path("claims.CSV.xz")), table_suffix(Path("claims.txt"))
    ('.csv.xz', '')
    """
    return next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), "")


def column_names(path: Path) -> list[str]:
    """The names of the columns; only the beginning is read for most formats."""
    suffix = _format(path)
    if suffix in COLUMNAR:
        return list(open_columnar(path).schema_arrow.names)
    if suffix in DELIMITERS:
        return _header(path, DELIMITERS[suffix])
    return read_table(path).names


def check_column(path: Path, given: str, names: Sequence[str]) -> None:
    """Refuse the name of a column that a table does not have; "": none was given."""
    if given and given not in names:
        meant = near(given, names)
        hint = f"did you mean {meant}? It" if meant else "it"
        raise InputError(f"{path} has no column {given!r}; {hint} has {listed(names)}.")


def _format(path: Path) -> str:
    """The suffix that says the format."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in COMPRESSED else path.suffix.lower()


def _column(path: Path, name: str, rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    try:
        return pa.array([row.get(name) for row in rows])
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        # half of a pair of surrogates, which JSON lets through
        to_do = "remove that character" if isinstance(error, UnicodeEncodeError) else "give values of one kind"
        raise InputError(f"{path}: {name} cannot be a column ({reason(error)}); {to_do}.") from None


def _read_delimited(path: Path, delimiter: str) -> tuple[dict[str, list[str]], list[int]]:
    """The columns by name, and the line in which each row begins."""
    csv.field_size_limit(2**27)
    rows: list[list[str]] = []
    lines: list[tuple[int, int]] = []  # the first and the last of each row
    line = 0
    try:
        with _open_text(path) as file:
            reader = csv.reader(file, delimiter=_delimiter(file, delimiter), strict=True)
            for row in reader:
                begins, line = line + 1, reader.line_num
                if rows and row and len(row) != len(rows[0]):
                    raise InputError(
                        f"{path}: line {begins} has {len(row)} fields and the header {len(rows[0])}; put a text that "
                        "holds the delimiter in quotation marks, or fix the line."
                    )
                if row:
                    rows.append(row)
                    lines.append((begins, line))
    except csv.Error as error:
        raise InputError(
            f"{path}: a quotation mark in the row that begins in line {line + 1} is misplaced ({error}); close it, and "
            'write "" for one inside a quoted text.'
        ) from None
    header = rows[0] if rows else []
    columns = [[row[i] for row in rows[1:]] for i in range(len(header))]
    _check_header(path, header, columns)
    _warn_of_commas(path, header, columns)
    several = [(begins, ends) for begins, ends in lines if begins < ends]
    if several:
        warnings.warn(
            f"{path}: {len(several)} of {len(rows) - 1} rows run over several lines, first lines {several[0][0]} to "
            f"{several[0][1]}; if that is not intended, look for a stray quotation mark there.",
            stacklevel=4,
        )
    named = {name: column for name, column in zip(header, columns, strict=True) if name not in ROW_NUMBERS}
    return named, [begins for begins, _ in lines[1:]]


def _header(path: Path, delimiter: str) -> list[str]:
    """The names of the columns."""
    with _open_text(path, errors="replace") as file:
        return next(csv.reader(file, delimiter=_delimiter(file, delimiter)), [])


def _check_header(path: Path, header: list[str], columns: list[list[str]]) -> None:
    """Refuse a first line that is a row of the data: a header would be missing, and the row lost."""
    if _looks_like_data(header, columns):
        cells = [cell if len(cell) <= 20 else f"{cell[:17]}..." for cell in header[:5]]
        shown = ", ".join(cells + ["..."] * (len(header) > 5))
        raise InputError(f"the first line of {path} looks like data ({shown}); write a header line above it.")
    for name in header:
        if header.count(name) > 1:
            missing = ", or write a header line above it if there is none" if NUMBER.fullmatch(name) else ""
            raise InputError(f"{path} has two columns named {name!r}; give each its own name{missing}.")


def _looks_like_data(header: list[str], columns: list[list[str]]) -> bool:
    """Whether the first line is a row like the others.

    It has a number that cannot name a column; or whole numbers above numbers, and beside them texts that their columns
    have too, or nothing else. Numbers that count up by one, as years do, may be names.

    >>> _looks_like_data(["7", "5", "cat"], [["6", "2"], ["1", "9"], ["dog", "cat"]])
    True
    >>> _looks_like_data(["2019", "2020", "label"], [["6"], ["1"], ["dog"]])
    False
    """
    numbers, texts = [], []
    for name, cells in zip(header, columns, strict=True):
        if not NUMBER.fullmatch(name) or not all(NUMBER.fullmatch(cell) for cell in cells if cell.strip()):
            texts.append(name in cells)
        elif NUMBERED.fullmatch(name):
            numbers.append(int(name))
        else:
            return True
    if texts:
        return bool(numbers) and all(texts)
    return bool(header and columns[0]) and any(after - before != 1 for before, after in pairwise(numbers))


def _warn_of_commas(path: Path, header: list[str], columns: list[list[str]]) -> None:
    """Warn of a column of numbers that have a decimal comma, which are texts here."""
    for name, column in zip(header, columns, strict=True):
        cells = [cell for cell in column if cell.strip()]
        commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
        if commas and all(DECIMAL_COMMA.fullmatch(cell) or NUMBER.fullmatch(cell) for cell in cells):
            warnings.warn(
                f"the column {name!r} of {path} has numbers with decimal commas, such as {commas[0].strip()!r}, and is "
                "taken as text; write them with decimal points.",
                stacklevel=5,
            )
            return


def _delimiter(file: IO[str], usual: str) -> str:
    """What separates the fields, by the header."""
    header = file.readline()
    file.seek(0)

    def fields(delimiter: str) -> int:
        columns = next(csv.reader([header], delimiter=delimiter), [])
        return 0 if any('"' in field for field in columns) else len(columns)  # it cuts a quoted name

    return max(usual + OTHER_DELIMITERS, key=fields)  # the first of the best


def _read_json_lines(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """The objects, and the line of each."""
    rows, lines = [], []
    number = 0
    try:
        with _open_text(path) as file:
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


def _read_json(path: Path) -> list[dict[str, Any]]:
    """The objects in a list."""
    try:
        with _open_text(path) as file:
            content = json.load(file)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON in UTF-8 ({error}); name it .jsonl if each line is an object.") from None
    if not isinstance(content, list):
        raise InputError(f"{path} does not hold a list; write a list of objects, [{{...}}, {{...}}].")
    return [_object(row, f"{path}: row {i}") for i, row in enumerate(content)]


def _object(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f'{where} is not a JSON object; write {{"label": ..., ...}}.')
    return row


@contextmanager
def _open_text(path: Path, errors: str = "strict") -> Iterator[IO[str]]:
    """A text file, compressed or not; InputError if it is not text."""
    opener = COMPRESSED.get(path.suffix.lower(), open)
    try:
        with reading(path), opener(path, "rt", newline="", encoding="utf-8-sig", errors=errors) as file:
            yield file
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({reason(error)}); save it in UTF-8.") from None
    except (lzma.LZMAError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is damaged ({reason(error)}); write it again.") from None
