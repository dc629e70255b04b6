"""Rows of finished runs as one tidy table: CSV that can be committed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, reason, write_text
from accuacl.experiment.config import Config
from accuacl.experiment.configfile import settings_before
from accuacl.experiment.record import BY_ROUND, CLASS_METRICS, METRICS, Row

NESTED = ("accuracy_matrix", "picked", "round_accuracy", *BY_ROUND)  # JSON in the table
FIRST = ("benchmark", "memory", "learner", "strategy")  # rows are sorted by these, then by all other settings
ABSENT = object()


def row_settings(row: Row) -> dict[str, Any]:
    """The row's config; settings that did not exist when it was written are as they were before they existed."""
    before = settings_before(Config)
    return {name: row.get(name, before[name]) for name in Config.model_fields}


def read_csv(path: Path) -> list[Row]:
    """The rows of a table, with numbers as numbers and lists as lists."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {reason(error)}; fix that or give another table.") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text; give a results.csv or a directory of runs.") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if not reader.fieldnames or not {*FIRST, *METRICS[:2]} <= set(reader.fieldnames):
        raise InputError(f"{path} is not a table of results; it needs columns {', '.join(FIRST)} and the metrics.")
    try:
        return [_typed_row(line) for line in reader]
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; fix or remove it.") from None


def settings_key(settings: dict[str, Any]) -> tuple[str, ...]:
    """What a result depends on, as text: numbers in a table are what they were."""
    return tuple(f"{name}={settings[name]!r}" for name in sorted(settings))


def add_to_csv(path: Path, rows: Iterable[Row]) -> None:
    """Put rows into the table, in place of those of the same runs; others may be adding theirs at the same time."""
    with Lock(path.with_name(f".{path.name}.lock"), wait=True):
        known = read_csv(path) if path.exists() else []
        write_csv(path, {settings_key(row_settings(row)): row for row in [*known, *rows]}.values())


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows, sorted by what was run, whole or not at all."""
    rows = sorted((row_settings(row) | row for row in rows), key=_place)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: json.dumps(value) if name in NESTED else value for name, value in row.items()})
    write_text(path, text.getvalue())


def _place(row: Row) -> tuple[Any, ...]:
    what = row_settings(row)
    return tuple(str(what[name]) for name in FIRST), [str(value) for value in what.values()]


def _typed_row(line: dict[str, Any]) -> Row:
    """Settings that are empty did not exist when the row was written, and are left out."""
    return {name: value for name, text in line.items() if name and (value := _typed(name, text)) is not ABSENT}


def _typed(name: str, text: str | None) -> Any:
    if text is None:
        raise InputError("it has fewer fields than the table has columns")
    if name in NESTED:
        return json.loads(text) if text else None
    if name in (*METRICS, *CLASS_METRICS) or name.startswith("seconds_"):
        return float(text) if text else None
    field = Config.model_fields.get(name)
    if field is None:
        return text
    kinds = get_args(field.annotation) or (field.annotation,)
    if text == "":
        return None if type(None) in kinds else ABSENT
    return next((kind(text) for kind in kinds if kind in (int, float)), text)
