"""The benchmarks by name."""

from __future__ import annotations

from typing import NamedTuple


class Benchmark(NamedTuple):
    """A published data set whose classes are shared out to tasks."""

    dataset: str
    tasks: int
    classes_per_task: int


BENCHMARKS = {
    "split-digits": Benchmark("digits", 5, 2),
    "split-cifar10": Benchmark("cifar10", 5, 2),
    "split-cifar100": Benchmark("cifar100", 10, 10),
    "split-tiny-imagenet": Benchmark("tiny-imagenet", 10, 20),
}


def dataset_of(benchmark: str) -> str:
    """The data set that a benchmark is made of; a folder with one's own data is its own."""
    return BENCHMARKS[benchmark].dataset if benchmark in BENCHMARKS else benchmark
