"""BAIT: greedy optimal design on the last layer's full Fisher information."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np

from accuacl.base.errors import InputError, install
from accuacl.base.threads import for_torch
from accuacl.strategies.accuacl import Oversample
from accuacl.strategies.api import Query, Selection, check_fits, needs
from accuacl.strategies.fisher_ratio import RidgeOption
from accuacl.strategies.registry import Option

if TYPE_CHECKING:
    from accuacl.strategies.design import Design

TIE = 1e-9  # gains this close, relatively, are a tie


def needed(n: int, d: int, K: int) -> int:
    """Bytes: the large matrices, two K x K matrices per row, the features in float64, the products of a block."""
    return 40 * (d * K) ** 2 + 16 * n * K**2 + 8 * n * (d + 4 * K) + 24 * block_rows(d, K) * K * max(d, K)


def block_rows(d: int, K: int) -> int:
    """Examples processed at a time, so that their K x K and K x d products take about 16 MB."""
    return max(16, 2_000_000 // (K * max(d, K)))


@needs(needed)
def bait(
    query: Query,
    *,
    ridge: RidgeOption = 0.01,
    oversample: Oversample = 2.0,
    memory_limit: Annotated[int | None, Option("bytes that it may take; unset: what is free", least=0)] = None,
) -> Selection:
    """Picks the batch whose Fisher information best covers that of pool and labelled examples together.

    Greedy: `oversample * budget` examples are added, each lowering tr(M^-1 F) most, then the least useful are dropped
    again; F is the Fisher information of all, M that of the labelled and picked plus `ridge` times the identity.
    Score: `gain`, by how much the pick lowered the trace.

    Reference: Ash et al., "Gone Fishing: Neural Active Learning with Fisher Embeddings", NeurIPS 2021.

    Options: `ridge`, `oversample`, and `memory_limit` in bytes (default: what the machine has free).

    Cost: 40 (d K)^2 + 16 n K^2 bytes and a little more, and, a pick, O(n K^2 (d + K)) time after
    O((d K)^3 + n (d K)^2) once, all in float64. M^-1, M^-1 F M^-1 and every example's K x K products with them are
    updated by rank-K terms. Where these updates have lost digits that could decide a pick, everything is computed
    again; that happens when entries of embeddings are in the tens and there are many copies.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> pool = Features(rng.normal(size=(100, 4)), rng.dirichlet(np.ones(3), 100))
    >>> select("bait", pool=pool, budget=3).indices
    array([61, 41, 67])
    """
    n, d, K = len(query.pool), query.pool.d, query.pool.K
    instead = " or narrower embeddings, or use accuacl, which needs no such matrices"
    check_fits("bait", needed(n, d, K), n, d, instead, memory_limit)
    if query.count == 0:
        return Selection(np.empty(0, np.int64), {"gain": np.empty(0)})
    try:
        from accuacl.strategies.design import Design, LinAlgError  # it imports torch, which takes a second
    except ModuleNotFoundError as error:
        raise InputError(f"bait needs the extra `train` ({error}); {install('train')}.") from None
    try:
        with for_torch(float(d * K) ** 3):
            return _greedy(query, Design(query, ridge), math.ceil(min(n, oversample * query.count)))
    except LinAlgError:
        largest = max(float(np.abs(block.embeddings).max()) for _, block in query.pool.blocks(4096))
        raise InputError(
            f"bait's matrices are singular in float64 with embeddings up to {largest:.3g} and ridge={ridge:g}; "
            "scale the embeddings down or give a larger ridge."
        ) from None


def _greedy(query: Query, state: Design, wanted: int) -> Selection:
    tick = query.ticker(2 * wanted - query.count)
    picks: list[int] = []
    gains: list[float] = []
    for _ in range(wanted):
        gain = state.gains(picks, +1)
        best = int(np.flatnonzero(gain >= gain.max() - TIE * abs(gain.max()))[0])
        picks.append(best)
        gains.append(float(gain[best]))
        state.update(best, +1)
        tick(1)
    state.narrow(picks)
    kept = list(range(wanted))
    gone: list[int] = []
    for _ in range(wanted - query.count):
        loss = -state.gains(gone, -1)[kept]
        tied = np.flatnonzero(loss <= loss.min() + TIE * abs(loss.min()))
        worst = max(tied.tolist(), key=lambda i: picks[kept[i]])  # of equals, the one with the smaller index stays
        gone.append(kept.pop(worst))
        state.update(gone[-1], -1)
        tick(1)
    return Selection(np.array(picks, np.int64)[kept], {"gain": np.array(gains)[kept]})
