"""Threads: how many numerical work uses, and a map over threads that keeps the order.

The threads of BLAS spin while they wait for work and for each other: beside a busy process they burn several times the
CPU time of one thread and finish later. So within `shared_out` BLAS and torch have one thread, and work that is large
enough is cut into blocks, which threads of our own take one after the other; a thread without work sleeps.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

Element = TypeVar("Element")
Result = TypeVar("Result")

WORTH = 2 * 10**9  # floating-point operations (a twentieth of a second) from which another thread pays off
LIBRARIES = ("torch", "scipy.linalg", "sklearn")  # libraries that bring their own BLAS
_allowed: ContextVar[int] = ContextVar("threads", default=1)


@contextlib.contextmanager
def shared_out() -> Iterator[None]:
    """Within the block, BLAS and torch have one thread, and `spread` may use as many as they had before."""
    token = _allowed.set(_limit.enter())
    try:
        yield
    finally:
        _allowed.reset(token)
        _limit.leave()


def spread(function: Callable[[Element], Result], items: Iterable[Element], work: float) -> Iterator[Result]:
    """The results of the function for each item, in order, on as many threads as pay off.

    `work`: floating-point operations of all items together. Items are taken from the iterable shortly before use.

    >>> list(spread(lambda item: item * item, range(4), 1e12))
    [0, 1, 4, 9]
    """
    threads = count(work)
    return map(function, items) if threads == 1 else ordered_thread_map(function, items, threads)


def count(work: float) -> int:
    """How many of the allowed threads pay off for this many floating-point operations."""
    return max(1, min(_allowed.get(), int(work / WORTH)))


@contextlib.contextmanager
def for_torch(work: float) -> Iterator[None]:
    """Within the block, torch has as many threads as pay off: for work that cannot be cut into blocks."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count(work))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Limit:
    """Keeps the libraries at one thread as long as any of our threads is inside."""

    def __init__(self) -> None:
        self.lock, self.inside, self.threads = threading.Lock(), 0, 1
        self.controllers: dict[tuple[bool, ...], Any] = {}  # by the libraries loaded: looking for them takes long
        self.blas: Any = None
        self.torch: int | None = None  # the threads that it had

    def enter(self) -> int:
        """Limit the libraries to one thread; returns how many they had."""
        with self.lock:
            torch = sys.modules.get("torch")
            if self.inside == 0:
                controller = self._controller()
                threads = [library.num_threads for library in controller.lib_controllers]
                self.torch = torch.get_num_threads() if torch is not None else None
                self.threads = min(threads + ([self.torch] if self.torch else []), default=1)
                _free_control(controller)
                self.blas = controller.limit(limits=1)
            self.inside += 1
            if torch is not None and self.torch:
                torch.set_num_threads(1)
            return self.threads

    def leave(self) -> None:
        """Restore them. torch has a number of threads for each of our threads, so each restores its own."""
        with self.lock:
            self.inside -= 1
            if self.torch:
                sys.modules["torch"].set_num_threads(self.torch)
            if self.inside == 0:
                controller = self._controller()
                _free_control(controller)  # the first thread inside may not be the last
                self.blas.restore_original_limits()
                _free_control(controller)

    def _controller(self) -> Any:
        loaded = tuple(name in sys.modules for name in LIBRARIES)
        if loaded not in self.controllers:
            from threadpoolctl import ThreadpoolController

            self.controllers[loaded] = ThreadpoolController().select(user_api="blas")
        return self.controllers[loaded]


def _free_control(controller: Any) -> None:
    """Let any thread set the number of BLAS threads; newer versions of threadpoolctl allow only the first."""
    for library in controller.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_limit = _Limit()


def ordered_thread_map(
    function: Callable[[Element], Result],
    items: Iterable[Element],
    workers: int,
    at_start: Callable[[], None] | None = None,
) -> Iterator[Result]:
    """The function's results in the order of the items, computed by threads a few items ahead of the caller.

    Items are taken from the iterable shortly before use. at_start: called once in each thread.

    >>> list(ordered_thread_map(lambda n: n * n, range(5), workers=2))
    [0, 1, 4, 9, 16]
    """
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers, "accuacl", at_start)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
