"""Check, in bounded memory, that no id occurs twice.

If the ids increase within each shard, and the ranges of the shards do not overlap, all ids are different and nothing
more is read. Otherwise the id column is read once more, and a 64-bit key of every id is written to one of several
temporary files, chosen by its leading bits (8 bytes per id); each file is then sorted on its own.
"""

from __future__ import annotations

import functools
import itertools
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.pools import passes
from accuacl.pools.ids import Keys
from accuacl.pools.pool import Layout

FILE_BYTES = 64 << 20
SUSPECTS = 100  # equal keys that are checked together
Map = Callable[[Any, str], Iterator[Any]]  # a function over all shards; yields its results as they come


def rise(spans: Iterable[tuple[Any, Any] | None]) -> bool:
    """Whether the ranges of ids, one per shard, do not overlap; None stands for ids that do not increase."""
    known = list(spans)
    if any(span is None for span in known):
        return False
    ranges = sorted(span for span in known if span is not None)
    return all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


def check_unique(layout: Layout, rows: int, over_shards: Map) -> None:
    """Refuse a pool that has an id twice, naming both places."""
    bits = max(0, math.ceil(math.log2(max(1, 8 * rows / FILE_BYTES))))
    equal: list[Keys] = []
    with ExitStack() as stack:
        try:
            files = [stack.enter_context(tempfile.TemporaryFile(prefix="accuacl-ids-")) for _ in range(1 << bits)]
            for keys in over_shards(functools.partial(passes.sorted_keys, layout), "checking ids"):
                leading = (keys >> np.uint64(64 - bits)) if bits else np.zeros(len(keys), np.uint64)
                ends = np.searchsorted(leading, np.arange(len(files) + 1, dtype=np.uint64))
                for file, start, end in zip(files, ends, ends[1:], strict=False):
                    file.write(keys[start:end])
            for file in files:
                file.seek(0)
                keys = np.sort(np.frombuffer(file.read(), np.uint64))
                equal.append(np.unique(keys[1:][keys[1:] == keys[:-1]]))
        except OSError as error:
            raise InputError(
                f"the ids of {rows:,} rows could not be checked in {tempfile.gettempdir()} "
                f"({reason(error)}): that takes {8 * rows:,} bytes; make room there, set TMPDIR to another "
                "folder, or skip the check with --trust-ids if you know that no id occurs twice."
            ) from None
    suspects = np.concatenate(equal)
    for start in range(0, len(suspects), SUSPECTS):
        _refuse_equal_ids(layout, suspects[start : start + SUSPECTS], over_shards)


def _refuse_equal_ids(layout: Layout, keys: NDArray[np.uint64], over_shards: Map) -> None:
    """Refuse if rows with the same key also have the same id; different text may share a key by chance."""
    where: dict[Any, list[str]] = {}
    for found in over_shards(functools.partial(passes.places, layout, keys), "finding ids"):
        for id_, place in found:
            where.setdefault(id_, []).append(place)
    twice = {id_: sorted(places) for id_, places in where.items() if len(places) > 1}
    if twice:
        id_ = min(twice)
        raise InputError(f"id {id_!r} occurs twice: {twice[id_][0]}, and {twice[id_][1]}; give every row its own id.")
