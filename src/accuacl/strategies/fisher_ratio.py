"""Fisher ratio: AccuACL's objective, solved greedily for the batch instead of ranking examples one by one."""

from __future__ import annotations

import numpy as np

from accuacl.base.progress import portion
from accuacl.greedy import distinct, unit
from accuacl.strategies import ratio_parts
from accuacl.strategies.accuacl import weight_of_past
from accuacl.strategies.limits import check_fits, needs
from accuacl.strategies.margin import uncertainties
from accuacl.strategies.parts import PartsAnswer, PartsForm, PartsQuery, in_parts
from accuacl.strategies.query import Query, Selection, number
from accuacl.strategies.ratio import MOST, NOTHING, TIE, Ratio
from accuacl.strategies.smallest import Indices, Vector


def needed(n: int, d: int, K: int) -> int:
    """Bytes: two float64 copies of the embeddings, products of some rows with all, matrices of d x d or n x n."""
    return 16 * n * d + 64 * min(n, d) ** 2 + 8 * n * (2 * MOST + 64)


def from_parts(
    query: PartsQuery, *, ridge: float = 1.0, lam: float | None = None, uncertainty: bool = True
) -> PartsAnswer:
    """The same picks from a pool that is read in parts."""
    labelled, memory = query.labelled, query.memory
    lam = weight_of_past(lam, query.past, len(memory or ()), query.rows + len(labelled or ()))
    return ratio_parts.PartsRatio(query, _ridge(ridge), lam, uncertainty).choose()


@in_parts(PartsForm(from_parts, ratio_parts.needed))
@needs(needed)
def fisher_ratio(query: Query, *, ridge: float = 1.0, lam: float | None = None, uncertainty: bool = True) -> Selection:
    """Picks, one by one, the examples that most reduce the uncertainty about pool and memory.

    Embeddings h are scaled to length 1. M, the information available, is ridge * I plus the sum of h h^T over labelled
    examples, memory and picks. T, the information wanted, is (1 - lam) times the mean of u h h^T over the pool plus lam
    times that over the memory, where u = 1 - margin. Each pick is the example that lowers tr(M^-1 T) most: the ratio of
    Fisher information that AccuACL's scores approximate, here with full matrices over h and for the whole batch.
    Score: `gain`, by how much the pick lowered the trace.

    Options: `ridge`; `lam`, the weight of the past (default: past / (past + pool + labelled)); `uncertainty`:
    with False, u = 1, as it also is if the model is certain of everything (of all that has an embedding but zeros).

    Reference: Ash et al., "Gone Fishing: Neural Active Learning with Fisher Embeddings", NeurIPS 2021, for the forward
    step; here with one matrix for all classes, unit lengths and a term for the past.

    Cost: O(n d (d + budget)) in matrix products, in float64, and O(n) more for each pick; 16 n d bytes and 1,600 n.
    With d > n the same with matrices of n x n. Gains that agree to nine digits are ties.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], [[0.6, 0.4], [0.5, 0.5], [0.5, 0.5], [0.9, 0.1]])
    >>> picked = select("fisher-ratio", pool=pool, budget=2)
    >>> picked.indices, picked.scores["gain"].round(3)
    (array([1, 2]), array([0.227, 0.149]))
    """
    ridge = _ridge(ridge)
    n, d, labelled, memory = len(query.pool), query.pool.d, query.labelled, query.memory
    lam = weight_of_past(lam, query.past, len(memory or ()), n + len(labelled or ()))
    check_fits("fisher-ratio", needed(n, d, query.pool.K), n, d)
    if query.count == 0:
        return Selection(np.empty(0, np.int64), {"gain": np.empty(0)})
    x = unit(query.pool.embeddings)
    past = unit(memory.embeddings) if memory is not None else x[:0]
    known = np.concatenate([unit(labelled.embeddings), past]) if labelled is not None else past
    weights, past_weights = _weights(query, lam, uncertainty)
    first, group = distinct(x)
    rows = x[first] if len(first) < n else x
    target = [(rows, np.bincount(group, weights, len(first)).astype(np.float64)), (past, past_weights)]
    del x, rows
    return _greedy(query, Ratio(target, known, ridge, query.chunk), group)


def _greedy(query: Query, state: Ratio, group: Indices) -> Selection:
    tick = query.ticker(2 * query.count)
    state.compute(portion(tick, query.count, len(state.x)))
    members, sizes = np.argsort(group, kind="stable"), np.bincount(group)  # copies are picked in the order of indices
    start, taken = np.cumsum(sizes) - sizes, np.zeros(len(sizes), np.int64)
    picks: list[int] = []
    gains: list[float] = []
    while len(picks) < query.count:
        gain = state.gains(sizes - taken)
        top = float(gain.max())
        if top <= NOTHING * max(gains, default=0.0):
            rest = np.setdiff1d(np.arange(len(group)), picks)[: query.count - len(picks)]
            picks, gains = picks + rest.tolist(), gains + [0.0] * len(rest)
            tick(len(rest))
            break
        tied = np.flatnonzero(gain >= top - TIE * top)
        following = members[start[tied] + taken[tied]]
        row = int(tied[np.argmin(following)])
        picks.append(int(following.min()))
        gains.append(float(gain[row]))
        state.add(row, gain, sizes - taken)
        taken[row] += 1
        tick(1)
    return Selection(np.array(picks, np.int64), {"gain": np.array(gains)})


def _ridge(ridge: float) -> float:
    return number("ridge", ridge, 1e-6, 1e6, "a number from 1e-6, for float64 to hold the inverse, to 1e6")


def _weights(query: Query, lam: float, uncertainty: bool) -> tuple[Vector, Vector]:
    """What each example of the pool and of the memory weighs in the target."""
    n, m = len(query.pool), len(query.memory or ())
    shares = np.repeat([(1 - lam if m else 1.0) / max(n, 1), lam / max(m, 1)], [n, m])
    if uncertainty:
        sets = [some for some in (query.pool, query.memory) if some is not None]
        u = np.concatenate([uncertainties(some) * some.embeddings.any(axis=1) for some in sets])  # zeros inform nobody
        shares = shares * u if (shares * u).any() else shares
    return shares[:n], shares[n:]
