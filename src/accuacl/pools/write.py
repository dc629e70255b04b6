"""Writing pools in the form that is read fastest. A file is complete or absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accuacl.base.files import replacing
from accuacl.pools.files import GROUP_ROWS


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
