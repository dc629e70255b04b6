"""A function mapped over all shards by an engine, with progress; the first failure is raised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accuacl.base.progress import OnProgress, Progress
from accuacl.engines import Engine, Function
from accuacl.pools.pool import Shard


class ShardMap:
    """Maps functions over shards with one engine, and reports how many of the expected rows are done."""

    def __init__(self, engine: Engine, progress: OnProgress | None) -> None:
        self.engine, self.progress = engine, progress
        self.done, self.total = 0.0, 0  # rows of all passes

    def expect(self, rows: int) -> None:
        """Expect more rows."""
        self.total += rows

    def over(
        self, function: Function, shards: Sequence[Shard], what: str, items: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """The function's results, as they come, for one item per shard (unset: the shard itself)."""
        rows = [sum(group.rows for group in shard) for shard in shards]
        shares = [0.0] * len(shards)

        def tell(index: int, progress: Progress) -> None:
            self.done += (progress.share - shares[index]) * rows[index]
            shares[index] = progress.share
            if self.progress:
                self.progress(Progress(round(self.done), self.total, what))

        watched = tell if self.progress and self.engine.cheap_progress else None
        for end in self.engine.map(function, shards if items is None else items, watched):
            if end.failure:
                raise end.failure.error(str(shards[end.index][0]))
            tell(end.index, Progress(1.0))
            yield end.value
