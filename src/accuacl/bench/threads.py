"""The cost of threads: one thread compared with as many as a strategy uses by default."""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from accuacl.bench.cases import Case, Threads
from accuacl.bench.measuring import in_fresh_process, problem, query
from accuacl.strategies import TooLarge

LEAST, MOST, SECONDS = 2, 7, 4  # each is measured LEAST to MOST times, until it has taken so many seconds


def compare(cases: list[Case]) -> Iterator[list[Threads]]:
    """Measure each case alone and beside a busy process; a case that is too large is left out."""
    for case in cases:
        yield in_fresh_process(both, case, threads=None)


def both(case: Case) -> list[Threads]:
    """Measure in this process, the two ways in turn, so that other processes disturb both alike."""
    try:
        ask = query(case, *problem(case))
    except TooLarge:
        return []
    results = [Threads(case, False, *_in_turn(ask))]
    with _busy_process():
        results.append(Threads(case, True, *_in_turn(ask)))
    return results


def _in_turn(ask: Callable[[], Any]) -> tuple[float, float, float, float]:
    """CPU and wall-clock seconds with one thread and by default; the best of several."""
    ones: list[tuple[float, float]] = []
    own: list[tuple[float, float]] = []
    while len(own) < LEAST or (len(own) < MOST and sum(wall for _, wall in ones + own) < SECONDS):
        with _one_thread():
            ones.append(_seconds(ask))
        own.append(_seconds(ask))
    one_cpu, one_wall, cpu, wall = (min(values) for pairs in (ones, own) for values in zip(*pairs, strict=True))
    return one_cpu, one_wall, cpu, wall


def _seconds(ask: Callable[[], Any]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    ask()
    return time.process_time() - cpu, time.perf_counter() - wall


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _busy_process() -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=_spin, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _spin() -> None:
    while True:
        pass
