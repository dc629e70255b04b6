"""Picks as a file: Parquet, CSV or JSON lines, by the ending of its name. It is whole or absent."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from accuacl.base.errors import InputError
from accuacl.base.files import write_bytes
from accuacl.pools.select import Picked

ENDINGS = (".parquet", ".csv", ".jsonl")


def check_place(path: Path) -> None:
    """Refuse a name that could not be written to, before any work is done."""
    if path.suffix not in ENDINGS:
        raise InputError(f"{path} ends in {path.suffix or 'nothing'!r}; give a name that ends in {', '.join(ENDINGS)}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file in it.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder} to write {path.name} to; make it first.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} may not be written to; give another --out.")


def write_picks(path: Path, picked: Picked) -> None:
    """id, rank (from 1) and scores, one row a pick, in selection order."""
    check_place(path)
    columns = {"id": pa.array(picked.ids.tolist(), pa.string() if picked.ids.dtype == object else pa.int64())}
    columns |= {"rank": pa.array(range(1, len(picked) + 1), pa.int64())}
    columns |= {name: pa.array(scores) for name, scores in picked.scores.items()}
    table = pa.table(columns)
    text = {".csv": _csv, ".jsonl": _json_lines}.get(path.suffix)
    write_bytes(path, text(table.to_pydict()).encode() if text else _parquet(table))


def _csv(columns: dict[str, list[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def _json_lines(columns: dict[str, list[Any]]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)


def _parquet(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return out.getvalue().to_pybytes()
