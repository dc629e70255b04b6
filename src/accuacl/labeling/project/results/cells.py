"""Cells of CSV files: none of ours is taken for a formula by a spreadsheet, and all can be read again as they were."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from accuacl.base.files import write_text

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what begins a formula


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows, the header first, with texts made inert."""
    text = io.StringIO()
    usual = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)  # the usual one forgets to quote \r
    for row in rows:
        cells = [inert(value) for value in row]
        writer = quoted if any("\r" in cell for cell in cells if isinstance(cell, str)) else usual
        writer.writerow(cells)
    write_text(path, text.getvalue())


def inert(value: Any) -> Any:
    """A cell with a ' before it where a spreadsheet would take it for a formula; numbers stay.

    What looks like that already gets another ', so that `plain` gives everything back.

    >>> inert("=1+1"), inert("'=1+1"), inert("-1.5"), inert("'tis")
    ("'=1+1", "''=1+1", '-1.5', "'tis")
    """
    if not isinstance(value, str) or not value.lstrip("'").startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def plain(cell: str) -> str:
    """The text that was made inert.

    >>> plain("'=1+1"), plain("''=1+1"), plain("-1.5"), plain("'tis")
    ('=1+1', "'=1+1", '-1.5', "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell
