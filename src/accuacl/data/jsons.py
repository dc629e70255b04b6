"""JSON and JSON lines: objects with the same names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.data.textfile import opened


def read_json_lines(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """The objects, and the line of each."""
    rows, lines = [], []
    number = 0
    try:
        with opened(path) as file:
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


def read_json(path: Path) -> list[dict[str, Any]]:
    """The objects in a list."""
    try:
        with opened(path) as file:
            content = json.load(file)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON in UTF-8 ({error}); name it .jsonl if it has an object a line.") from None
    if not isinstance(content, list):
        raise InputError(f"{path} holds no list; write a list of objects, [{{...}}, {{...}}].")
    return [_object(row, f"{path}: row {i}") for i, row in enumerate(content)]


def _object(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f'{where} is not a JSON object; write {{"label": ..., ...}}.')
    return row
