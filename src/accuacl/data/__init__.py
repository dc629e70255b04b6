"""Data sets, and streams of tasks made of them.

    from accuacl.data import BENCHMARKS, class_incremental, load

    name, tasks, classes_per_task = BENCHMARKS["split-cifar100"]
    stream = class_incremental(load(name), tasks, classes_per_task)
    for task in stream:
        images = stream.dataset.train.inputs[task.train]

A layout on disk is one small file here that gives a `Source`; decoding and the cache are shared by all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.data.arrival import natural
    from accuacl.data.benchmarks import BENCHMARKS, dataset_of
    from accuacl.data.dataset import Dataset, InputRows, Split
    from accuacl.data.folders import IMAGE_SUFFIXES
    from accuacl.data.images import BadImage, decode, decode_all, reading_image
    from accuacl.data.inventory import caches, found
    from accuacl.data.joined import is_task
    from accuacl.data.loading import load
    from accuacl.data.making import Untidiness, class_incremental, make_stream
    from accuacl.data.orders import benchmark_tasks
    from accuacl.data.own import holds_tasks, holds_vectors, own_data
    from accuacl.data.published import PUBLISHED
    from accuacl.data.registry import ARRIVALS, register
    from accuacl.data.registry import REGISTRY as OWN_STREAMS
    from accuacl.data.source import RawImage, fingerprint
    from accuacl.data.streams import Stream, Task
    from accuacl.data.table import DataTable, check_column, read_columnar, read_table
    from accuacl.data.tables import LABELS
    from accuacl.data.vectors import LISTS, list_column, vectors_of

__all__ = [
    "ARRIVALS",
    "BENCHMARKS",
    "IMAGE_SUFFIXES",
    "LABELS",
    "LISTS",
    "OWN_STREAMS",
    "PUBLISHED",
    "BadImage",
    "DataTable",
    "Dataset",
    "InputRows",
    "RawImage",
    "Split",
    "Stream",
    "Task",
    "Untidiness",
    "benchmark_tasks",
    "caches",
    "check_column",
    "class_incremental",
    "dataset_of",
    "decode",
    "decode_all",
    "fingerprint",
    "found",
    "holds_tasks",
    "holds_vectors",
    "is_task",
    "list_column",
    "load",
    "make_stream",
    "natural",
    "own_data",
    "read_columnar",
    "read_table",
    "reading_image",
    "register",
    "vectors_of",
]

__getattr__ = front_door(__name__)
