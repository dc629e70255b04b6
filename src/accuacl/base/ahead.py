"""Work on several threads at once, whose results come in the order of what was given."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    at_start: Callable[[], None] | None = None,
) -> Iterator[Result]:
    """The function's result for each item; a few are worked on ahead of the one that is asked for.

    Items are taken from the iterable shortly before use. at_start: called once in each thread.

    >>> list(in_order(lambda n: n * n, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers, "ahead", at_start)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
