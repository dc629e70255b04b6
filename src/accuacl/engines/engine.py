"""Engines by name; what they have in common; and the one that shares work among processes on this machine.

Each item of work ends with a value or a failure. Local processes have one thread each. A process that dies is replaced,
and its item is done again. When the parent dies, for whatever reason, its workers end too.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite
from accuacl.base.machine import cores, how_it_ended, ignore_interrupts, interrupts_held
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.userfile import load_file, loaded_files

Function = Callable[[Any, OnProgress], Any]
RETRIES = 2  # how often an item is tried again whose worker died
OnItemProgress = Callable[[int, Progress], None]  # which item, and how far it is


class BugInWorker(RuntimeError):
    """A bug in a worker, not a fault of the user's input; its message ends with the worker's traceback."""


@dataclass(frozen=True)
class Failure:
    """Why an item has no value.

    kind: "input", an InputError, which the user can fix; "full", an InputError about a full disk, which other items
    will meet too; "bug", any other exception; "death", of the worker itself.
    message: one sentence. traceback: for a bug, as the worker would have printed it.
    """

    kind: Literal["input", "full", "bug", "death"]
    message: str
    traceback: str = ""

    def error(self, item: str) -> Exception:
        """The exception to raise here; `item` says which item failed, unless the message does."""
        if self.kind == "bug":
            return BugInWorker(f"{item}: {self.message}\n\nIn the worker:\n\n{self.traceback.rstrip()}")
        return InputError(f"{item}: {self.message}" if self.kind == "death" else self.message)


@dataclass(frozen=True)
class Done:
    """The end of one item: its value, or why it failed."""

    index: int
    value: Any = None
    failure: Failure | None = None


class Engine(Protocol):
    """Something that processes items in parallel, in any order.

    In a `with` block, its workers stay from one `map` to the next.
    """

    workers: int
    cheap_progress: bool  # whether progress reports cost nothing

    def map(
        self, function: Function, items: Sequence[Any], on_progress: OnItemProgress | None = None
    ) -> Iterator[Done]:
        """`function(item, report)` for each item; results as they come. `items[i]` is read when i starts."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def get(name: str, workers: int = 0, address: str | None = None, gpus: float = 0.0) -> Engine:
    """The engine called `name`: local processes, or a Ray cluster at `address` (unset: one on this machine).

    gpus: the share of a GPU that each item takes, on Ray.
    """
    check(name, address, gpus)
    if name == "local":
        return Local(workers)
    from accuacl.engines.ray import Ray

    return Ray(workers, address, gpus=gpus)


def check(name: str, address: str | None = None, gpus: float = 0.0) -> None:
    """Refuse an engine that does not exist, and what the local one cannot do."""
    if name not in ("local", "ray"):
        raise InputError(f"there is no engine {name!r}; give local or ray.")
    if name == "local" and address:
        raise InputError(f"address is {address!r} but the engine is local; give --engine ray to use a cluster.")
    if name == "local" and gpus:
        raise InputError(f"gpus is {gpus:g} but the engine is local; give --engine ray to share GPUs.")


class KeepsWorkers:
    """What `with` does for an engine: its workers stay until the outermost block ends."""

    _blocks = 0

    def __enter__(self) -> Self:
        self._blocks += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._blocks -= 1
        if not self._blocks:
            self._release()

    def _release(self) -> None:
        """End the workers."""
        raise NotImplementedError


class UserFiles:
    """Sent to a worker before anything else, it makes the worker import the users' files that are imported here.

    Objects defined in those files, such as the ranking of a plugin's strategy, could not be unpickled otherwise,
    because the files are not on Python's path.
    """

    def __reduce__(self) -> tuple[Callable[[list[Path]], UserFiles], tuple[list[Path]]]:
        return _import_files, (loaded_files(),)


def _import_files(paths: list[Path]) -> UserFiles:
    for path in paths:
        load_file(path)
    return UserFiles()


def attempt(function: Function, item: Any, report: OnProgress) -> dict[str, Any]:
    """Process one item; returns the fields of its `Done`."""
    try:
        return {"value": function(item, report)}
    except InputError as error:
        full = isinstance(error, CannotWrite) and error.full
        return {"failure": Failure("full" if full else "input", str(error))}
    except Exception as error:
        return {"failure": Failure("bug", f"{type(error).__name__}: {error}", traceback.format_exc())}


ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


class Local(KeepsWorkers):
    """`map` over processes.

    The first `map` starts them. In a `with` block they stay until the block ends, otherwise until that `map` does.
    """

    cheap_progress = True

    def __init__(self, workers: int = 0) -> None:
        if workers < 0:
            raise InputError(f"workers is {workers}; give a number of processes, or 0 for as many as there are cores.")
        self.workers = workers or cores()
        self._processes: list[_Worker] = []

    def map(
        self, function: Function, items: Sequence[Any], on_progress: OnItemProgress | None = None
    ) -> Iterator[Done]:
        """`function(item, report)` for each item; results as they come. `function` must be importable."""
        waiting = deque((index, 0) for index in range(len(items)))
        try:
            while waiting or any(worker.item for worker in self._processes):
                for _ in range(min(len(waiting), self.workers) - len(self._processes)):
                    self._processes.append(_Worker())
                for worker in self._processes:
                    if waiting and worker.item is None:
                        worker.give(function, *waiting.popleft(), items)
                busy = {worker.pipe: worker for worker in self._processes if worker.item}
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # type: ignore[index]
                    try:
                        kind, value = worker.pipe.recv()
                    except (EOFError, OSError):  # it is dead
                        yield from self._replace(worker, waiting)
                        continue
                    if kind == "ready":
                        worker.ready = True
                    elif kind == "progress":
                        if on_progress:
                            on_progress(worker.item[0], value)
                    else:
                        index, worker.item = worker.item[0], None
                        yield Done(index, **value)
        finally:
            self._dismiss([worker for worker in self._processes if worker.item or not self._blocks])

    def _replace(self, worker: _Worker, waiting: deque[tuple[int, int]]) -> Iterator[Done]:
        """Take back the item of a worker that died; it has failed if it was tried too often."""
        self._processes.remove(worker)
        code = worker.end()
        if not worker.ready and code >= 0:  # nobody killed it
            raise InputError(
                f"a worker process could not start ({how_it_ended(code)}); a script that uses several processes must "
                "do so under `if __name__ == '__main__':`."
            )
        index, tried = worker.item
        if tried < RETRIES:
            waiting.appendleft((index, tried + 1))
        else:
            yield Done(index, failure=Failure("death", f"its process died {tried + 1} times ({how_it_ended(code)})."))

    def _release(self) -> None:
        self._dismiss(self._processes)

    def _dismiss(self, workers: list[_Worker]) -> None:
        for worker in list(workers):
            worker.close()
        for worker in list(workers):
            worker.end()
            self._processes.remove(worker)


class _Worker:
    """A process and the pipe to it."""

    def __init__(self) -> None:
        context = mp.get_context("spawn")
        self.pipe, their_end = context.Pipe()
        watched, self.lifeline = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(their_end, watched), daemon=True)
        if os.name == "posix":
            resource_tracker.ensure_running()  # starting it would unblock SIGINT, so start it first
        with _environment(ONE_THREAD), interrupts_held():
            self.process.start()
        their_end.close()
        watched.close()
        self.ready = False
        self.item: Any = None  # while it works: the item's index, and how often it was tried before
        self.function: Function | None = None

    def give(self, function: Function, index: int, tried: int, items: Sequence[Any]) -> None:
        self.item = index, tried
        with contextlib.suppress(OSError):  # a worker that died while idle is noticed when its pipe is read
            if function is not self.function:
                self.pipe.send(("function", (UserFiles(), function)))
                self.function = function
            self.pipe.send(("item", items[index]))

    def close(self) -> None:
        """Tell it to end; kill it if it is busy, because its result is no longer wanted."""
        if self.item:
            self.process.kill()
        self.pipe.close()

    def end(self) -> int:
        """Wait until it has ended, killing it if need be; returns its exit code, negative if a signal killed it."""
        self.process.join(2)
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.lifeline.close()
        return self.process.exitcode or 0


def _work(pipe: Connection, lifeline: Connection) -> None:
    """What a worker does: items come in, results go out, until the parent is gone."""
    ignore_interrupts()  # the parent decides
    threading.Thread(target=_until_parent_ends, args=(lifeline,), daemon=True).start()
    function: Function | None = None
    try:
        pipe.send(("ready", None))
        while True:
            kind, given = pipe.recv()
            if kind == "function":
                _, function = given
            elif function is not None:
                value = attempt(function, given, lambda progress: pipe.send(("progress", progress)))
                pipe.send(("done", value))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _until_parent_ends(lifeline: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)


@contextlib.contextmanager
def _environment(more: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes started within the block."""
    before = {key: os.environ.get(key) for key in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key)
            if value is not None:
                os.environ[key] = value
