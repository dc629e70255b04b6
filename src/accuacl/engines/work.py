"""What engines have in common: items of work, each with a result or a sentence saying why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress

Function = Callable[[Any, OnProgress], Any]
Tell = Callable[[int, Progress], None]  # which item, and how far it is


@dataclass(frozen=True)
class Done:
    """The end of one item: its value, or why it failed."""

    index: int
    value: Any = None
    error: str = ""


class Engine(Protocol):
    """Something that works through items, in any order, in several places at once.

    Used with `with`, its workers stay from one `map` to the next.
    """

    workers: int
    near: bool  # whether it costs nothing to be told how far an item is

    def map(self, function: Function, items: Sequence[Any], tell: Tell | None = None) -> Iterator[Done]:
        """`function(item, report)` for each item, results as they come. An item is looked up when its turn comes."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Staying:
    """What `with` does for an engine: its workers stay until the outermost block ends."""

    _inside = 0

    def __enter__(self) -> Self:
        self._inside += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside -= 1
        if not self._inside:
            self._leave()

    def _leave(self) -> None:
        """Let the workers go."""
        raise NotImplementedError


def attempt(function: Function, item: Any, report: OnProgress) -> dict[str, Any]:
    """Do one item: its value, or the error in a sentence. Wrong input is said as it is, faults with their kind."""
    try:
        return {"value": function(item, report)}
    except InputError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
