"""Work shared among the nodes of a Ray cluster. The only file that imports Ray.

A worker or node that dies is replaced by Ray and its item done again. Every node needs this package and the files that
items name, under the same paths.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from accuacl.base.errors import InputError, install, one_line
from accuacl.base.machine import cores
from accuacl.base.progress import Progress
from accuacl.engines.engine import RETRIES, Done, Failure, Function, KeepsWorkers, OnItemProgress, UserFiles, attempt

OFTEN = 0.5  # seconds between two reports of a worker, and between two readings of them


class Ray(KeepsWorkers):
    """`map` over a cluster: the connected one, the one at `address`, or else a new one on this machine."""

    cheap_progress = False

    def __init__(self, workers: int = 0, address: str | None = None, gpus: float = 0.0) -> None:
        if workers < 0:
            raise InputError(f"workers is {workers}; give a number of CPUs, or 0 for all that the cluster has.")
        if not 0 <= gpus < float("inf"):
            raise InputError(f"gpus is {gpus}; give the share of a GPU that each item takes, like 0.5.")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise InputError(f"the engine ray needs the extra `cluster`; {install('cluster')}.") from None
        self.ray, self.gpus = ray, gpus
        self.ours = not ray.is_initialized()
        if self.ours and address:
            try:
                _check_listens(address)
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
            except Exception as error:  # Ray has many ways to say that it cannot connect
                why = one_line(error)
                raise InputError(f"no Ray cluster answers at {address} ({why}); give the address of one.") from None
        elif self.ours:
            ray.init(
                "local",
                num_cpus=workers or cores(),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _node_ip_address="127.0.0.1",  # reachable from this machine only
            )
        there = ray.cluster_resources()
        if gpus > there.get("GPU", 0):
            self._release()
            raise InputError(
                f"gpus is {gpus:g} but the cluster has {there.get('GPU', 0):g}; give a smaller share, or 0."
            )
        cpus = int(there.get("CPU", 1))
        self.workers = max(1, min(workers or cpus, cpus, int(there["GPU"] / gpus) if gpus else cpus))

    def _release(self) -> None:
        if self.ours:
            self.ray.shutdown()

    def map(
        self, function: Function, items: Sequence[Any], on_progress: OnItemProgress | None = None
    ) -> Iterator[Done]:
        """`function(item, report)` for each item; results as they come.

        Give `on_progress` only for long items, since it needs an actor.
        """
        board: Any = self.ray.remote(num_cpus=0, max_restarts=-1)(_Board).remote() if on_progress else None
        asked: Any = None  # the latest request to the board, which is not waited for
        shared = self.ray.put((UserFiles(), function))  # sent once for all items
        task = self.ray.remote(num_cpus=1, num_gpus=self.gpus, max_retries=RETRIES)(_do_item)  # one CPU: one thread
        waiting = deque(range(len(items)))
        running: dict[Any, int] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers + 1:  # one is queued, so that no worker waits
                    index = waiting.popleft()
                    running[task.remote(shared, items[index], index, board)] = index
                ended = self.ray.wait(list(running), num_returns=1, timeout=OFTEN if on_progress else None)[0]
                if on_progress:
                    asked = asked or board.take.remote()
                    if self.ray.wait([asked], timeout=0)[0]:
                        for index, progress in self._news(asked).items():
                            if index in running.values():  # ignore progress that arrives after an item has ended
                                on_progress(index, progress)
                        asked = None
                for ref in ended:
                    index = running.pop(ref)
                    try:
                        yield Done(index, **self.ray.get(ref))
                    except self.ray.exceptions.RayTaskError as error:  # before the item was begun
                        why = f"its worker could not begin: {type(error.cause).__name__}: {error.cause}"
                        yield Done(index, failure=Failure("bug", why, str(error)))
                    except self.ray.exceptions.RayError as error:
                        first = one_line(error).split(". ")[0]
                        message = f"its worker died {RETRIES + 1} times ({first})."
                        yield Done(index, failure=Failure("death", message))
        finally:
            for ref in running:
                self.ray.cancel(ref, force=True)
            if board is not None:
                self.ray.kill(board)

    def _news(self, asked: Any) -> dict[int, Progress]:
        try:
            return dict(self.ray.get(asked))
        except self.ray.exceptions.RayError:  # the board died; Ray starts another, and lost progress does no harm
            return {}


def _check_listens(address: str) -> None:
    """Fail at once if nothing listens at the address; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


class _Board:
    """An actor to which workers report: the latest progress of each item since `take` was called."""

    def __init__(self) -> None:
        self.news: dict[int, Progress] = {}

    def note(self, index: int, progress: Progress) -> None:
        self.news[index] = progress

    def take(self) -> dict[int, Progress]:
        news, self.news = self.news, {}
        return news


def _do_item(sent: tuple[UserFiles, Function], item: Any, index: int, board: Any) -> dict[str, Any]:
    """What a worker does: process one item and report its progress to the board."""
    _, function = sent
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        if board is not None and time.monotonic() - last >= OFTEN:
            last = time.monotonic()
            board.note.remote(index, progress)

    return attempt(function, item, report)
