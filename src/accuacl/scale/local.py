"""Work shared out to processes of this machine, one thread each.

A worker that dies is replaced and its item done again. When the parent dies, however it dies, its workers end too.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from accuacl.scale.work import Done, Function, Tell, attempt

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


class Local:
    """`map` over processes."""

    def __init__(self, workers: int = 0, retries: int = 2) -> None:
        if workers < 0:
            raise ValueError(f"workers is {workers}; give a number of processes, or 0 for as many as there are cores.")
        self.workers = workers or len(os.sched_getaffinity(0))
        self.retries = retries

    def map(self, function: Function, items: Sequence[Any], tell: Tell | None = None) -> Iterator[Done]:
        """`function(item, tell)` for each item, results as they come. `function` must be importable by its name."""
        waiting = deque((index, 0) for index in range(len(items)))
        workers: list[_Worker] = []
        try:
            while waiting or any(worker.busy for worker in workers):
                while waiting and len(workers) < self.workers:
                    workers.append(_Worker(function))
                for worker in workers:
                    if waiting and not worker.busy:
                        worker.give(*waiting.popleft(), items)
                for pipe in wait([worker.pipe for worker in workers if worker.busy]):
                    worker = next(worker for worker in workers if worker.pipe is pipe)
                    try:
                        kind, value = worker.pipe.recv()
                    except (EOFError, OSError):  # it is dead
                        workers.remove(worker)
                        index, tried = worker.item
                        how = worker.end()
                        if tried < self.retries:
                            waiting.appendleft((index, tried + 1))
                        else:
                            yield Done(index, error=f"its process died {tried + 1} times ({how}).")
                        continue
                    index = worker.item[0]
                    if kind == "progress":
                        if tell:
                            tell(index, *value)
                    else:
                        worker.busy = False
                        yield Done(index, **value)
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, function: Function) -> None:
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        held, self.lifeline = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(function, theirs, held))
        with _environment(ONE_THREAD):
            self.process.start()
        theirs.close()
        held.close()
        self.busy = False
        self.item = (-1, 0)  # which it has, and how often that was tried before

    def give(self, index: int, tried: int, items: Sequence[Any]) -> None:
        self.busy, self.item = True, (index, tried)
        with contextlib.suppress(OSError):  # a worker that died while idle is noticed when its pipe is read
            self.pipe.send(items[index])

    def end(self) -> str:
        """Stop it; how it ended, in words."""
        if self.process.is_alive() and not self.pipe.closed:
            self.process.join(0.2 if not self.busy else 0)
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.lifeline.close()
        code = self.process.exitcode or 0
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _work(function: Function, pipe: Connection, held: Connection) -> None:
    """A worker's life: items come in, results go out, until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_until_parent_ends, args=(held,), daemon=True).start()
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        value = attempt(function, item, lambda done, text: pipe.send(("progress", (done, text))))
        pipe.send(("done", value))


def _until_parent_ends(held: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        held.recv()
    os._exit(1)


@contextlib.contextmanager
def _environment(more: dict[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key)
            if value is not None:
                os.environ[key] = value
