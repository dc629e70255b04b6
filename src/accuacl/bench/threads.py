"""What the choice of threads costs: one thread against as many as a strategy takes by itself."""

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

LEAST, MOST, SECONDS = 2, 7, 4  # how often each way is measured: until it has taken so long


def compare(cases: list[Case]) -> Iterator[list[Threads]]:
    """Each case quiet and beside a busy process; none of a case that is too large."""
    for case in cases:
        yield in_fresh_process(both, case, threads=None)


def both(case: Case) -> list[Threads]:
    """Measure in this process, one way after the other in turn, so that both meet the same neighbours."""
    try:
        ask = query(case, *problem(case))
    except TooLarge:
        return []
    results = [Threads(case, False, *_in_turn(ask))]
    with _busy_process():
        results.append(Threads(case, True, *_in_turn(ask)))
    return results


def _in_turn(ask: Callable[[], Any]) -> tuple[float, float, float, float]:
    """CPU and wall seconds with one thread, and by itself; the best of some."""
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
