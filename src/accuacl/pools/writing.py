"""Writing pools in the form that is read fastest. A file is complete or absent."""

from __future__ import annotations

import csv
import fnmatch
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accuacl.base.errors import InputError, alternatives
from accuacl.base.files import check_new_file, replacing, write_bytes
from accuacl.pools.pool import GROUP_ROWS, files_of
from accuacl.pools.selecting import Picked


def write_pool(path: Path, ids: Any, embeddings: NDArray[Any], probabilities: NDArray[Any]) -> None:
    """A Parquet file with the columns id, embedding and probability.

    The outputs of a network do not compress, so they are stored uncompressed. The columns are declared without missing
    values, which makes reading a quarter faster.
    """
    columns = {"id": pa.array(ids), "embedding": _lists(embeddings), "probability": _lists(probabilities)}
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    table = pa.Table.from_arrays(list(columns.values()), schema=schema)
    with replacing(path) as file:
        pq.write_table(table, file, GROUP_ROWS, compression="none", use_dictionary=False, write_statistics=["id"])


def _lists(matrix: NDArray[Any]) -> pa.Array:
    values = pa.array(matrix.reshape(-1))
    type_ = pa.list_(pa.field("element", values.type, nullable=False), matrix.shape[1])
    return pa.FixedSizeListArray.from_arrays(values, type=type_)


ENDINGS = (".parquet", ".csv", ".jsonl")


def check_place(path: Path, others: Sequence[Path] = (), **sources: Sequence[str]) -> None:
    """Refuse a name that could not be written to, before any work is done.

    sources: files, folders and patterns of Parquet that are read, by what they are; others: other files. The picks may
    neither overwrite one of these nor be matched by a folder or pattern the next time.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file, such as {path / 'picked.csv'}.")
    if path.suffix not in ENDINGS:
        has = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise InputError(f"{path} {has}; give a name that ends in {alternatives(ENDINGS)}.")
    check_new_file(path)
    read = {file.resolve() for file in others}
    places = [(source, name) for name, several in sources.items() for source in several]
    read |= {Path(file).resolve() for source, name in places for file in files_of(source, name)}
    if path.resolve() in read or any(_would_find(source, path) for source, _ in places):
        raise InputError(f"{path} is among the files that are read; give another --out.")


def write_picks(path: Path, picked: Picked) -> None:
    """id, rank (from 1) and scores, one row a pick, in selection order."""
    check_place(path)
    if not picked.rows and not picked.excluded:
        raise InputError("the pool has no rows, so there is nothing to pick; give another pool.")
    columns = {"id": pa.array(picked.ids.tolist(), pa.string() if picked.ids.dtype == object else pa.int64())}
    columns |= {"rank": pa.array(range(1, len(picked) + 1), pa.int64())}
    columns |= {name: pa.array(scores) for name, scores in picked.scores.items()}
    table = pa.table(columns)
    text = {".csv": _csv, ".jsonl": _json_lines}.get(path.suffix)
    write_bytes(path, text(table.to_pydict()).encode() if text else _parquet(table))


def _would_find(source: str, path: Path) -> bool:
    """Whether a folder or pattern would match the file, once it is written."""
    target, pattern = path.resolve(), Path(source).resolve()
    if pattern.is_dir():
        return path.suffix == ".parquet" and target.is_relative_to(pattern)
    if "**" in pattern.parts:
        return fnmatch.fnmatch(str(target), str(pattern).replace("**/", "*"))
    pairs = zip(target.parts, pattern.parts, strict=False)
    return len(target.parts) == len(pattern.parts) and all(fnmatch.fnmatch(part, wanted) for part, wanted in pairs)


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
