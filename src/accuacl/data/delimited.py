"""CSV and TSV files."""

from __future__ import annotations

import csv
import re
import warnings
from pathlib import Path
from typing import IO

from accuacl.base.errors import InputError
from accuacl.data.textfile import opened

OTHER_DELIMITERS = ";\t|"  # in files that are called .csv all the same
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
NUMBERED = re.compile(r"\d{1,5}")  # a number that may name a column: a year, or features counted from 0
INDEX = ("", "Unnamed: 0")  # what pandas calls its row numbers in a CSV file


def header_of(path: Path, delimiter: str) -> list[str]:
    """The names of the columns."""
    with opened(path, errors="replace") as file:
        return next(csv.reader(file, delimiter=_delimiter(file, delimiter)), [])


def read_delimited(path: Path, delimiter: str) -> tuple[dict[str, list[str]], list[int]]:
    """The columns by name, and the line in which each row begins."""
    csv.field_size_limit(2**27)
    rows: list[list[str]] = []
    lines: list[int] = []
    several: list[tuple[int, int]] = []  # first and last line of rows that have several
    line = 0
    try:
        with opened(path) as file:
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
    _check_header(path, header, rows[1:])
    if several:
        warnings.warn(
            f"{path}: {len(several)} of {len(rows) - 1} rows run over several lines, first lines {several[0][0]} to "
            f"{several[0][1]}; if that is not meant, a quotation mark is astray there.",
            stacklevel=4,
        )
    return {n: [row[i] for row in rows[1:]] for i, n in enumerate(header) if n not in INDEX}, lines[1:]


def _check_header(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """Refuse a first line that is a row of the data: a header would be missing, and the row lost."""
    for i, name in enumerate(header):
        if NUMBER.fullmatch(name) and not NUMBERED.fullmatch(name) and _are_numbers([row[i] for row in rows]):
            cells = [cell if len(cell) <= 20 else f"{cell[:17]}..." for cell in header[:5]]
            shown = ", ".join(cells + ["..."] * (len(header) > 5))
            raise InputError(f"the first line of {path} looks like data ({shown}); write a header line above it.")
    for name in header:
        if header.count(name) > 1:
            missing = ", or write a header line above it if there is none" if NUMBER.fullmatch(name) else ""
            raise InputError(f"{path} has two columns named {name!r}; give each its own name{missing}.")


def _are_numbers(cells: list[str]) -> bool:
    """Whether all cells that are not empty are numbers.

    >>> _are_numbers(["1", "", "-2.5e3"]), _are_numbers(["1", "no"])
    (True, False)
    """
    return all(NUMBER.fullmatch(cell) for cell in cells if cell.strip())


def _delimiter(file: IO[str], usual: str) -> str:
    """What separates the fields, by the header."""
    header = file.readline()
    file.seek(0)

    def fields(delimiter: str) -> int:
        found = next(csv.reader([header], delimiter=delimiter), [])
        return 0 if any('"' in field for field in found) else len(found)  # it cuts a quoted name

    return max(usual + OTHER_DELIMITERS, key=fields)  # the first of the best
