"""Parquet and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.files import reason


def open_columnar(path: Path) -> Any:
    """A Parquet or Arrow file as pyarrow's ParquetFile: `schema_arrow`, `read(columns=)`, `iter_batches`."""
    import pyarrow as pa  # only here: a start from the cache does without
    import pyarrow.parquet as pq

    kind = "Arrow" if path.suffix.lower() == ".arrow" else "Parquet"
    try:
        return ArrowFile(path) if kind == "Arrow" else pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        to_do = "download it again"
        if path.suffix.lower() not in (".parquet", ".pq", ".arrow"):
            to_do = "convert it to Parquet, or give a table such as CSV with --table"
        raise InputError(f"{path} is not a readable {kind} file ({reason(error)}); {to_do}.") from error


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
