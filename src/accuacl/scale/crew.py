"""An engine at work on shards: passes over them, how far they are, and the first thing that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from accuacl.scale.pool import Shard
from accuacl.scale.work import Engine, Function

Progress = Callable[[str, int, int], None]  # what is being done; rows dealt with in all passes, of how many


class Crew:
    """Passes over shards with one engine."""

    def __init__(self, engine: Engine, progress: Progress | None) -> None:
        self.engine, self.progress = engine, progress
        self.done, self.total = 0.0, 0  # rows

    def expect(self, rows: int) -> None:
        """More rows are to come."""
        self.total += rows

    def over(
        self, function: Function, shards: Sequence[Shard], what: str, items: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """What the function gives for each item, as it comes: an item for each shard (unset: the shard itself)."""
        rows = [sum(piece.rows for piece in shard) for shard in shards]
        parts = [0.0] * len(shards)

        def tell(index: int, part: float, text: str) -> None:
            self.done += (part - parts[index]) * rows[index]
            parts[index] = part
            if self.progress:
                self.progress(what, round(self.done), self.total)

        watched = tell if self.progress and self.engine.near else None
        for end in self.engine.map(function, shards if items is None else items, watched):
            if end.error:
                piece = shards[end.index][0]
                named = end.error if piece.file in end.error else f"{piece.file}, row group {piece.group}: {end.error}"
                raise ValueError(named)
            tell(end.index, 1.0, "")
            yield end.value
