"""BADGE: k-means++ on the gradients that the predicted labels would give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import numpy_generator
from accuacl.features import Features
from accuacl.strategies.api import Query, Selection
from accuacl.strategies.ranking import round_off

Matrix = NDArray[np.float64]
ROWS = 1024
EPS32 = float(np.finfo(np.float32).eps)


def badge(query: Query) -> Selection:
    """Picks examples whose gradients, taken as if the predicted label were right, are large and unlike each other.

    The first is the one with the largest gradient; each next one is drawn in proportion to its squared distance from
    the nearest pick (k-means++). Score: `distance` to the nearest pick at the time; for the first, its gradient's norm.

    Reference: Ash et al., "Deep Batch Active Learning by Diverse, Uncertain Gradient Lower Bounds", ICLR 2020.

    Cost: budget times one read of an n x K matrix, and the inner products of embeddings for the few rows whose
    distance can fall; memory 4 n K and about 80 n bytes. The n x K d gradients, (onehot(argmax p) - p) (x) h, are never
    built.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> pool = Features(rng.normal(size=(300, 8)), rng.dirichlet(np.ones(4), 300))
    >>> select("badge", pool=pool, budget=4, seed=0).indices
    array([254,  80,  14,   5])
    """
    return _sample(query, None)


def badge_memory(query: Query) -> Selection:
    """BADGE that also keeps its distance from the replay memory: gradients that replay provides need no new labels.

    The memory's examples are centres from the start, so the first pick is drawn too. Score: `distance`.

    Reference and cost: as badge, plus O(n m (d + K)) for a memory of m.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> pool = Features(rng.normal(size=(300, 8)), rng.dirichlet(np.ones(4), 300))
    >>> select("badge+memory", pool=pool, budget=4, memory=pool.rows(slice(0, 50)), seed=0).indices
    array([213, 118,  58,  53])
    """
    return _sample(query, query.memory)


def _sample(query: Query, centres: Features | None) -> Selection:
    pool, n, tick = query.pool, len(query.pool), query.ticker(query.count)
    gradients = _Gradients(pool, query.chunk or ROWS)
    draws = numpy_generator(query.seed).random(query.count)
    squared = np.full(n, np.inf)  # distance to the nearest centre
    if centres is not None and len(centres):
        gradients.nearest(squared, centres)
    picks: list[int] = []
    distances: list[float] = []
    for draw in draws:
        if not picks and np.isinf(squared).all():
            squared = np.square(gradients.norm)
            row = int(np.argmax(round_off(squared)))
            distance, squared = float(squared[row]), np.full(n, np.inf)
        else:
            total = np.cumsum(squared)
            if total[-1] == 0:  # all rows left are copies of centres: take them by index
                left = np.setdiff1d(np.arange(n), picks)[: query.count - len(picks)].tolist()
                picks, distances = picks + left, distances + [0.0] * len(left)
                tick(len(left))
                break
            row = int(np.searchsorted(total, draw * total[-1], side="right"))
            row = min(row, int(np.flatnonzero(squared)[-1]))  # where rounding made the draw reach the end
            distance = float(squared[row])
        picks.append(row)
        distances.append(distance)
        gradients.closer(squared, row)
        squared[picks] = 0
        tick(1)
    return Selection(np.array(picks, np.int64), {"distance": np.sqrt(np.array(distances, float))})


class _Gradients:
    """Squared distances between outer products a (x) h, from inner products of their factors."""

    def __init__(self, pool: Features, rows: int) -> None:
        self.pool, self.rows = pool, rows
        self.unit = np.empty((len(pool), pool.K), np.float32)  # a / |a|, because a itself may be too small for float32
        self.a_norm, self.h_norm = np.empty(len(pool)), np.empty(len(pool))
        for start, block in pool.blocks(rows):
            a, h = _factors(block)
            part = slice(start, start + len(block))
            self.a_norm[part], self.h_norm[part] = _norms(a), _norms(h)
            self.unit[part] = a / np.where(self.a_norm[part] > 0, self.a_norm[part], 1)[:, None]
        self.norm = self.a_norm * self.h_norm

    def nearest(self, squared: NDArray[np.float64], centres: Features) -> None:
        """Lower `squared` to the distance from the nearest of many centres."""
        for start, block in self.pool.blocks(self.rows):
            out = squared[start : start + len(block)]
            for _, chunk in centres.blocks(ROWS):
                np.minimum(out, _squares(*_factors(block), *_factors(chunk)).min(axis=1), out=out)

    def closer(self, squared: NDArray[np.float64], row: int) -> None:
        """Lower `squared` to the distance from one row of the pool, where that is smaller.

        By Cauchy-Schwarz on h the distance is at least |g|^2 + |g_c|^2 - 2 |a.a_c| |h| |h_c|. That bound needs only the
        n x K factors, in float32 less its error; the few rows whose bound is smaller are computed exactly.
        """
        alike = np.abs(self.unit @ self.unit[row]).astype(np.float64)
        alike += (self.pool.K + 8) * EPS32
        alike *= 2 * self.norm[row] * self.norm
        least = np.square(self.norm)
        least += self.norm[row] ** 2
        least *= 1 - 1e-12
        least -= alike
        near = np.flatnonzero(least < squared)
        centre = _factors(self.pool.rows(np.array([row])))
        for i in range(0, len(near), ROWS):
            chunk = near[i : i + ROWS]
            exact = _squares(*_factors(self.pool.rows(chunk)), *centre)[:, 0]
            squared[chunk] = np.minimum(squared[chunk], exact)


def _factors(block: Features) -> tuple[Matrix, Matrix]:
    """a = onehot(argmax p) - p, and h, in float64."""
    a = -block.probabilities.astype(np.float64)
    a[np.arange(len(a)), block.probabilities.argmax(axis=1)] += 1
    return a, block.embeddings.astype(np.float64)


def _norms(x: Matrix) -> NDArray[np.float64]:
    return np.sqrt(np.square(x).sum(axis=1))


def _squares(a: Matrix, h: Matrix, ca: Matrix, ch: Matrix) -> Matrix:
    """|a (x) h - ca (x) ch|^2 for every pair (rows x centres)."""
    both = np.square(_norms(a) * _norms(h))[:, None] + np.square(_norms(ca) * _norms(ch))
    out = both - 2 * (a @ ca.T) * (h @ ch.T)
    # Where that cancels, expand a (x) (h - ch) + (a - ca) (x) ch instead: exactly 0 for copies.
    rows, centres = np.nonzero(out < 1e-6 * both)
    for start in range(0, len(rows), ROWS):
        i, j = rows[start : start + ROWS], centres[start : start + ROWS]
        da, dh = a[i] - ca[j], h[i] - ch[j]
        cross = (a[i] * da).sum(axis=1) * (dh * ch[j]).sum(axis=1)
        out[i, j] = np.square(_norms(a[i]) * _norms(dh)) + 2 * cross + np.square(_norms(da) * _norms(ch[j]))
    return np.maximum(out, 0)
