"""Strategies that read a pool too large for memory in parts, several times, in this process."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from accuacl.pools import ids
from accuacl.pools.chunks import chunks
from accuacl.pools.duplicates import check_unique
from accuacl.pools.in_memory import here
from accuacl.pools.pool import Pool
from accuacl.strategies import Part


class PartsReader:
    """Reads a pool from start to end. The first time it checks every row, and that no id occurs twice."""

    def __init__(self, pool: Pool, left_out: ids.Excluded, trust_ids: bool) -> None:
        self.pool, self.left_out, self.trust_ids = pool, left_out, trust_ids
        self.checked, self.excluded = False, 0

    def __call__(self) -> Iterator[Part]:
        layout, rising, first, excluded = self.pool.layout, ids.Rising(), 0, 0
        for chunk in chunks(layout, self.pool.groups, layout.wanted):
            features, gone = chunk.features(check=not self.checked), self.left_out.among(chunk.ids)
            if not self.checked:
                rising.add(chunk.ids)
            yield Part(
                first,
                features,
                gone,
                functools.partial(ids.take, chunk.ids),
                functools.partial(ids.as_uint64, chunk.ids),
            )
            first, excluded = first + len(chunk), excluded + int(gone.sum())
        if not self.checked and not self.trust_ids and not rising.holds:
            check_unique(layout, self.pool.rows, lambda function, what: here(function, self.pool))
        self.checked, self.excluded = True, excluded
