"""TypiClust: the most typical example of each cluster."""

from __future__ import annotations

import warnings

import numpy as np

from accuacl.base.progress import Tick
from accuacl.base.randomness import derive
from accuacl.strategies.api import Query, Selection, check_fits, embeddings_only, needs
from accuacl.strategies.facility import distinct, unit
from accuacl.strategies.ranking import Indices, Vector, round_off

MOST_CLUSTERS = 500
FEW_CLUSTERS = 50  # up to this many, k-means uses all rows at every step; beyond that, batches
NEAREST = 20
BLOCK = 1 << 21  # numbers in a block of distances


def needed(n: int, d: int, K: int) -> int:
    """Bytes: the embeddings in float64 and float32, the state of k-means, a few numbers per row."""
    return 20 * n * d + 4 * MOST_CLUSTERS * (n + d) + 128 * n + 24 * BLOCK


@embeddings_only
@needs(needed)
def typiclust(query: Query) -> Selection:
    """Picks the most typical example of each of as many clusters as there will be labels.

    k-means finds min(labelled + budget, 500) clusters among pool and labelled examples, scaled to length 1. The next
    pick comes from the cluster with the fewest labels, counting picks, and among those from the largest. It is the
    example with the smallest mean distance to its 20 nearest neighbours in the pool and the cluster. Score: `distance`,
    that mean.

    Reference: Hacohen, Dekel and Weinshall, "Active Learning on a Budget: Opposite Strategies Suit High and Low
    Budgets", ICML 2022.

    Cost: k-means, and the distances within each cluster; 20 n d + 2,000 n bytes. k-means runs on one thread, so that
    the clusters do not depend on the number of threads.

    >>> from accuacl import Features, select
    >>> pool = Features([[1, 0], [1, 0.1], [1, 0.2], [0, 1], [0.3, 1]], [[1.0]] * 5)
    >>> select("typiclust", pool=pool, budget=2).indices
    array([1, 3])
    """
    n, d, labelled, tick = len(query.pool), query.pool.d, query.labelled, query.ticker(2 * len(query.pool))
    check_fits("typiclust", needed(n, d, query.pool.K), n, d)
    if query.count == 0:
        return Selection(np.empty(0, np.int64), {"distance": np.empty(0)})
    x = unit(query.pool.embeddings)
    known = unit(labelled.embeddings) if labelled is not None else x[:0]
    everything = np.concatenate([x, known])
    count = min(len(known) + query.count, MOST_CLUSTERS, len(distinct(everything)[0]))
    clusters = clusters_of(everything.astype(np.float32), count, query.seed)
    tick(n)
    labels = np.bincount(clusters[n:], minlength=count)
    sizes, distance, rank = np.bincount(clusters[:n], minlength=count), np.empty(n), np.empty(n, np.int64)
    for cluster in np.flatnonzero(sizes).tolist():
        rows = np.flatnonzero(clusters[:n] == cluster)
        distance[rows] = mean_distance(x[rows], query.chunk, tick)
        rank[rows[np.argsort(round_off(distance[rows]), kind="stable")]] = np.arange(len(rows))
    mine = clusters[:n]
    order = np.lexsort((mine, -sizes[mine], labels[mine] + rank))[: query.count]
    return Selection(order.astype(np.int64), {"distance": distance[order]})


def clusters_of(x: Vector, count: int, seed: int) -> Indices:
    """The cluster of each row."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # here, for it takes a while to import
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    state = derive(seed, "typiclust") % 2**32
    means = (
        KMeans(count, n_init=1, random_state=state)
        if count <= FEW_CLUSTERS
        else MiniBatchKMeans(count, n_init=1, random_state=state, batch_size=5000)
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where rows are copies, there are fewer clusters
        return np.asarray(means.fit(x).labels_, np.int64)


def mean_distance(x: Vector, chunk: int = 0, tick: Tick = lambda more: None) -> Vector:
    """The mean distance of each row to its 20 nearest neighbours, found by a product, then computed exactly."""
    nearest = min(NEAREST, len(x) - 1)
    out, squares = np.zeros(len(x)), np.square(x).sum(axis=1)
    size = chunk or max(1, BLOCK // max(len(x), NEAREST * x.shape[1]))
    for i in range(0, len(x), size):
        block = x[i : i + size]
        if nearest:
            far = squares - 2 * (block @ x.T)
            far[np.arange(len(block)), np.arange(i, i + len(block))] = np.inf
            near = np.argpartition(far, nearest - 1, axis=1)[:, :nearest]
            exact = np.sqrt(np.square(x[near] - block[:, None]).sum(axis=2))
            out[i : i + size] = np.sort(exact, axis=1).sum(axis=1) / nearest
        tick(len(block))
    return out
