"""The outcome of a sweep."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from accuacl.experiment import Row, canonical, read_csv, row_settings, settings_key

ERROR_FILE = "error.txt"  # in a run's directory: the traceback of its failure


@dataclass
class Outcome:
    """The rows of the runs that finished and, by name, why the others failed."""

    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def rows_by_key(table: Path) -> dict[tuple[str, ...], Row]:
    """The rows of a results table, if there is one, by the keys of their runs."""
    return {settings_key(canonical(row_settings(row))): row for row in (read_csv(table) if table.exists() else [])}
