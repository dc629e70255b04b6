"""Pools on disk, and an engine that works here and now."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from accuacl import Features
from accuacl.base.progress import ignore
from accuacl.engines import Done, attempt


class Inline:
    """An engine without processes; items in any order."""

    workers, cheap_progress = 1, True

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, function, items, on_progress=None):
        for index in self.rng.permutation(len(items)).tolist():
            report = (lambda progress, index=index: on_progress(index, progress)) if on_progress else ignore
            yield Done(index, **attempt(function, items[index], report))


def lists(array, kind="fixed"):
    values = pa.array(np.ascontiguousarray(array).reshape(-1))
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(values, array.shape[1])
    return pa.ListArray.from_arrays(pa.array(np.arange(len(array) + 1, dtype=np.int32) * array.shape[1]), values)


def table(ids, features: Features, kind="fixed") -> pa.Table:
    columns = {"id": pa.array(ids), "embedding": lists(features.embeddings, kind)}
    return pa.table(columns | {"probability": lists(features.probabilities, kind)})


def write(path: Path, ids, features: Features, group_rows: int = 1000, kind="fixed") -> str:
    pq.write_table(table(ids, features, kind), path, row_group_size=group_rows)
    return str(path)
