"""An engine at work on shards: passes over them, how far they are, and the first thing that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.engines.work import Engine, Function
from accuacl.pools.pool import Shard


class Crew:
    """Passes over shards with one engine."""

    def __init__(self, engine: Engine, progress: OnProgress | None) -> None:
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

        def tell(index: int, progress: Progress) -> None:
            self.done += (progress.share - parts[index]) * rows[index]
            parts[index] = progress.share
            if self.progress:
                self.progress(Progress(round(self.done), self.total, what))  # rows of all passes

        watched = tell if self.progress and self.engine.near else None
        for end in self.engine.map(function, shards if items is None else items, watched):
            if end.error:
                piece = shards[end.index][0]
                named = end.error if piece.file in end.error else f"{piece.file}, row group {piece.group}: {end.error}"
                raise InputError(named)
            tell(end.index, Progress(1.0))
            yield end.value
