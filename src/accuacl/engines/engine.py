"""What engines have in common: items of work, each of which ends with a value or a failure; engines by name."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.userfile import load_file, loaded_files

Function = Callable[[Any, OnProgress], Any]
OnItemProgress = Callable[[int, Progress], None]  # which item, and how far it is


class BugInWorker(RuntimeError):
    """A bug in a worker, not a fault of the user's input; its message ends with the worker's traceback."""


@dataclass(frozen=True)
class Failure:
    """Why an item has no value.

    kind: "input", an InputError, which the user can fix; "full", one of a full disk, which other items will meet too;
    "bug", any other exception; "death", of the worker itself.
    message: one sentence. traceback: for a bug, as the worker would have printed it.
    """

    kind: Literal["input", "full", "bug", "death"]
    message: str
    traceback: str = ""

    def error(self, place: str) -> Exception:
        """The exception to raise here; `place` says which item failed, unless the message does."""
        if self.kind == "bug":
            return BugInWorker(f"{place}: {self.message}\n\nIn the worker:\n\n{self.traceback.rstrip()}")
        return InputError(f"{place}: {self.message}" if self.kind == "death" else self.message)


@dataclass(frozen=True)
class Done:
    """The end of one item: its value, or why it failed."""

    index: int
    value: Any = None
    failure: Failure | None = None


class Engine(Protocol):
    """Something that processes items in parallel, in any order.

    Used with `with`, its workers stay from one `map` to the next.
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
        from accuacl.engines.local import Local

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
        raise InputError(f"gpus is {gpus:g} but the engine is local; give --engine ray to share GPUs out.")


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
