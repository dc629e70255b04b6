"""Data sets, and streams of tasks made of them.

    from accuacl.data import BENCHMARKS, class_incremental, load

    name, tasks, classes_per_task = BENCHMARKS["split-cifar100"]
    stream = class_incremental(load(name), tasks, classes_per_task)
    for task in stream:
        images = stream.dataset.train.inputs[task.train]

A layout on disk is one small file here that gives a `Source`; decoding and the cache are shared by all.
"""

from __future__ import annotations

from accuacl.data.dataset import Dataset, Rows, Split
from accuacl.data.loading import KNOWN, holds_vectors, load, own_folder
from accuacl.data.streams import BENCHMARKS, Stream, Task, class_incremental

__all__ = [
    "BENCHMARKS",
    "KNOWN",
    "Dataset",
    "Rows",
    "Split",
    "Stream",
    "Task",
    "class_incremental",
    "holds_vectors",
    "load",
    "own_folder",
]
