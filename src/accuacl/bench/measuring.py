"""Measure cases, each in a process of its own."""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.machine import cpu_name
from accuacl.bench.cases import Case, Measurement
from accuacl.bench.timing import timed
from accuacl.bench.yardsticks import dense, floor
from accuacl.features import Features
from accuacl.strategies import Selection, TooLarge, select

Result = TypeVar("Result")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run(cases: list[Case], threads: int = 1, dense_limit: int = 6 << 30) -> Iterator[Measurement]:
    """Measure each case in a fresh process; the dense definition only where it takes at most `dense_limit` bytes."""
    for case in cases:
        yield in_fresh_process(measure, case, dense_limit, threads=threads)


def in_fresh_process(function: Callable[..., Result], case: Case, *arguments: Any, threads: int | None) -> Result:
    """The function's result for a case, in a process whose libraries have so many threads (None: their own choice)."""
    saved = {name: os.environ.pop(name, None) for name in THREAD_VARIABLES}
    if threads:
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(function, case, *arguments).result()
    except BrokenProcessPool:
        raise InputError(f"{case} was killed, most likely for lack of memory; give a smaller case.") from None
    finally:
        for name, value in saved.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def machine(threads: int | None = 1) -> str:
    """The machine and libraries of this measurement, in a line; with so many threads (None: their own choice)."""
    import torch

    used = f", {threads} thread(s)" if threads else ""
    return f"{cpu_name()}, {os.cpu_count()} cores{used}, numpy {np.__version__}, torch {torch.__version__}"


def measure(case: Case, dense_limit: int) -> Measurement:
    """Run one case in this process."""
    pool, memory, labelled = problem(case)
    try:
        cpu, wall, extra = timed(query(case, pool, memory, labelled))
    except TooLarge as refusal:
        return Measurement(case, needs=refusal.bytes)
    floor_cpu = floor(case, pool)
    dense_cpu, dense_extra = dense(case, pool, memory, labelled, dense_limit) or (None, None)
    return Measurement(case, cpu, wall, extra, floor_cpu, dense_cpu, dense_extra)


def query(case: Case, pool: Features, memory: Features | None, labelled: Features | None) -> Callable[[], Selection]:
    """The case's query, ready to be measured: what it imports has been imported."""
    arguments: dict[str, Any] = {"pool": pool, "budget": case.b, "labelled": labelled}
    if memory is not None:
        arguments |= {"memory": memory, "past": 9 * case.n}
    select(case.strategy, **(arguments | {"pool": pool.rows(slice(0, 2)), "budget": 1}))
    return functools.partial(select, case.strategy, **arguments)


def problem(case: Case) -> tuple[Features, Features | None, Features | None]:
    """Clustered, rectified embeddings and the softmax of a linear model on them, like those of a trained network."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(case.K, case.d)).astype(np.float32)
    weights = (centres - centres.mean(axis=0)) / np.float32(case.d)

    def draw(n: int) -> Features:
        h, p = np.empty((n, case.d), np.float32), np.empty((n, case.K), np.float32)
        for i in range(0, n, 4096):
            size = min(4096, n - i)
            block = rng.standard_normal((size, case.d), np.float32)
            block += centres[rng.integers(case.K, size=size)]
            np.maximum(block, 0, out=h[i : i + size])
            logits = 8 * (block @ weights.T)
            e = np.exp(logits - logits.max(axis=1, keepdims=True))
            p[i : i + size] = e / e.sum(axis=1, keepdims=True)
        return Features(h, p)

    return draw(case.n), draw(case.m) if case.m else None, draw(case.labelled) if case.labelled else None
