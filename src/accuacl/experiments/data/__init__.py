"""Data sets, and streams of tasks made of them.

    from accuacl.experiments.data import BENCHMARKS, class_incremental, load

    name, tasks, classes_per_task = BENCHMARKS["split-cifar100"]
    stream = class_incremental(load(name), tasks, classes_per_task)
    for task in stream:
        images = stream.dataset.train.inputs[task.train]

A layout of images on disk is one module here that gives a `Source`; decoding and the cache are shared by all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.data.arrays import read_idx as read_idx
    from accuacl.experiments.data.arrival import (
        BENCHMARKS as BENCHMARKS,
        benchmark_tasks as benchmark_tasks,
        dataset_of as dataset_of,
    )
    from accuacl.experiments.data.cache import (
        BadImage as BadImage,
        decode as decode,
        decode_all as decode_all,
        reading_image as reading_image,
    )
    from accuacl.experiments.data.columns import (
        IMAGES as IMAGES,
        LABELS as LABELS,
        LISTS as LISTS,
        list_column as list_column,
        vectors_of as vectors_of,
    )
    from accuacl.experiments.data.dataset import (
        Dataset as Dataset,
        InputRows as InputRows,
        RawImage as RawImage,
        Split as Split,
        fingerprint as fingerprint,
        natural as natural,
    )
    from accuacl.experiments.data.folders import IMAGE_SUFFIXES as IMAGE_SUFFIXES
    from accuacl.experiments.data.loading import (
        PUBLISHED as PUBLISHED,
        cache_home as cache_home,
        caches as caches,
        found as found,
        holds_columns as holds_columns,
        holds_tasks as holds_tasks,
        holds_vectors as holds_vectors,
        is_task as is_task,
        load as load,
        own_data as own_data,
    )
    from accuacl.experiments.data.streams import (
        ARRIVALS as ARRIVALS,
        OWN_STREAMS as OWN_STREAMS,
        Stream as Stream,
        StreamOptions as StreamOptions,
        Task as Task,
        class_incremental as class_incremental,
        make_stream as make_stream,
        register as register,
    )
    from accuacl.experiments.data.table_files import (
        DataTable as DataTable,
        check_column as check_column,
        read_columnar as read_columnar,
        read_table as read_table,
        table_suffix as table_suffix,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "arrays": ("read_idx",),
        "arrival": ("BENCHMARKS", "benchmark_tasks", "dataset_of"),
        "cache": ("BadImage", "decode", "decode_all", "reading_image"),
        "dataset": ("Dataset", "fingerprint", "InputRows", "natural", "RawImage", "Split"),
        "folders": ("IMAGE_SUFFIXES",),
        "loading": (
            "PUBLISHED",
            "cache_home",
            "caches",
            "found",
            "holds_columns",
            "holds_tasks",
            "holds_vectors",
            "is_task",
            "load",
            "own_data",
        ),
        "streams": (
            "ARRIVALS",
            "OWN_STREAMS",
            "class_incremental",
            "make_stream",
            "register",
            "Stream",
            "StreamOptions",
            "Task",
        ),
        "table_files": ("check_column", "DataTable", "read_columnar", "read_table", "table_suffix"),
        "columns": ("IMAGES", "LABELS", "LISTS", "list_column", "vectors_of"),
    },
)
