"""Work on all cores at once, whose results come in the order of what was given."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def in_order(function: Callable[[A], B], given: Iterable[A], workers: int, torch_threads: int = 0) -> Iterator[B]:
    """The function's results, one for each of those given; a few are worked on ahead of the one that is asked for.

    torch_threads: how many threads torch uses in each worker, which a result may depend on in its last bits.

    >>> list(in_order(lambda n: n * n, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """

    def begin() -> None:
        if torch_threads:
            import torch

            torch.set_num_threads(torch_threads)

    waiting: deque[Future[B]] = deque()
    pool = ThreadPoolExecutor(workers, "ahead", begin)
    try:
        for one in given:
            waiting.append(pool.submit(function, one))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
