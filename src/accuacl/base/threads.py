"""How many threads numerical work takes.

The threads of BLAS wait for work and for each other by spinning: beside a busy process they burn several times the CPU
time of one thread and finish later than it. So within `shared_out` BLAS and torch have one thread, and work that is
large enough is cut into blocks, which threads of our own take one after the other; one that has none left sleeps.
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

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH = 2 * 10**9  # floating-point operations, a twentieth of a second, that are worth a thread
LIBRARIES = ("torch", "scipy.linalg", "sklearn")  # those that bring a BLAS of their own
_allowed: ContextVar[int] = ContextVar("threads", default=1)


@contextlib.contextmanager
def shared_out() -> Iterator[None]:
    """Within this, BLAS and torch have one thread, and `spread` may use as many as they had before."""
    token = _allowed.set(_limit.enter())
    try:
        yield
    finally:
        _allowed.reset(token)
        _limit.leave()


def spread(function: Callable[[Item], Result], items: Iterable[Item], work: float) -> Iterator[Result]:
    """The function of each item, in the order of the items, on as many threads as the work is worth.

    `work`: floating-point operations of all together. Few items are taken before they are needed.

    >>> list(spread(lambda item: item * item, range(4), 1e12))
    [0, 1, 4, 9]
    """
    threads = count(work)
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def count(work: float) -> int:
    """How many threads so many floating-point operations are worth, of those that may be used."""
    return max(1, min(_allowed.get(), int(work / WORTH)))


@contextlib.contextmanager
def for_torch(work: float) -> Iterator[None]:
    """Within this, torch has as many threads as the work is worth: for products too large to be cut into blocks."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count(work))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Limit:
    """Holds the libraries at one thread for as long as anybody is inside, in whichever of our threads."""

    def __init__(self) -> None:
        self.lock, self.inside, self.threads = threading.Lock(), 0, 1
        self.controllers: dict[tuple[bool, ...], Any] = {}  # by what was loaded: to look for libraries takes long
        self.blas: Any = None
        self.torch: int | None = None  # the threads that it had

    def enter(self) -> int:
        """How many threads the libraries had."""
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
        """Give them back. Each of our threads has its own number of torch's, so each sets that."""
        with self.lock:
            self.inside -= 1
            if self.torch:
                sys.modules["torch"].set_num_threads(self.torch)
            if self.inside == 0:
                controller = self._controller()
                _free_control(controller)  # the thread that came first may not be the last
                self.blas.restore_original_limits()
                _free_control(controller)

    def _controller(self) -> Any:
        loaded = tuple(name in sys.modules for name in LIBRARIES)
        if loaded not in self.controllers:
            from threadpoolctl import ThreadpoolController

            self.controllers[loaded] = ThreadpoolController().select(user_api="blas")
        return self.controllers[loaded]


def _free_control(controller: Any) -> None:
    """Let any thread set the number of BLAS's: newer versions of threadpoolctl leave that to the first that does."""
    for library in controller.lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_limit = _Limit()
