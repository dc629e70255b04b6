"""Data sets, and streams of tasks made of them.

    from accuacl.experiments.data import benchmark_tasks, load, make_stream

    stream = make_stream(load("cifar100"), benchmark_tasks("split-cifar100", classes=100))
    for task in stream:
        images = stream.dataset.train.inputs[task.train]

A layout of images on disk is one module here that gives a `Source`; decoding and the cache are shared by all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.data.arrays import read_idx as read_idx
    from accuacl.experiments.data.arrival import *
    from accuacl.experiments.data.cache import *
    from accuacl.experiments.data.dataset import *
    from accuacl.experiments.data.folders import IMAGE_SUFFIXES as IMAGE_SUFFIXES
    from accuacl.experiments.data.loading import *
    from accuacl.experiments.data.streams import *
    from accuacl.experiments.data.table_data import *
    from accuacl.experiments.data.table_files import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    arrays="read_idx",
    arrival="BENCHMARKS benchmark_tasks dataset_of",
    cache="BadImage decode decode_all reading_image",
    dataset="Dataset InputRows RawImage Split fingerprint natural",
    folders="IMAGE_SUFFIXES",
    loading="PUBLISHED cache_home caches found holds_columns holds_tasks holds_vectors is_task load own_data",
    streams="ARRIVALS OWN_STREAMS Stream StreamOptions Task make_stream register",
    table_data="IMAGES LABELS LISTS list_column vectors_of",
    table_files="DataTable check_column read_columnar read_table table_suffix",
)
