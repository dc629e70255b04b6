"""TypiClust: which clusters come first, and which example of a cluster."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl import Features, select
from accuacl.strategies.facility import unit
from accuacl.strategies.typiclust import clusters_of
from effort import times

CENTRES = np.eye(6) * 10


def blobs(sizes, seed=0):
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(6), sizes)
    h = CENTRES[which] + rng.normal(size=(len(which), 6))
    return Features(h, np.ones((len(which), 1))), which


def test_one_of_each_cluster_the_largest_first_those_with_labels_last():
    pool, which = blobs([10, 60, 20, 50, 30, 40])
    known = Features(CENTRES[[1, 3]] + 0.1, np.ones((2, 1)))
    picks = select("typiclust", pool=pool, budget=4, labelled=known, seed=4).indices
    assert which[picks].tolist() == [5, 4, 2, 0]


@pytest.mark.parametrize("seed", range(times(100, 400)))
def test_by_the_definition_given_the_clusters(seed):
    rng = np.random.default_rng(seed)
    n, m, budget = int(rng.integers(3, 150)), int(rng.integers(0, 9)), int(rng.integers(1, 40))
    h = rng.normal(size=(n + m, 4)).astype(np.float32)
    h[: n // 3] = h[0]  # copies
    pool, known = (Features(part, np.ones((len(part), 1), np.float32)) for part in (h[:n], h[n:]))
    got = select("typiclust", pool=pool, budget=budget, labelled=known, seed=seed, chunk=seed)
    x = unit(h)
    count = min(m + min(budget, n), 500, len(np.unique(x, axis=0)))
    cluster = clusters_of(x.astype(np.float32), count, seed)
    labels, picks = np.bincount(cluster[n:], minlength=count), []
    sizes = np.bincount(cluster[:n], minlength=count)
    means = np.zeros(n)
    for row in range(n):
        others = np.flatnonzero((cluster[:n] == cluster[row]) & (np.arange(n) != row))
        nearest = np.sort(np.linalg.norm(x[others] - x[row], axis=1))[:20]
        means[row] = nearest.mean() if len(nearest) else 0
    while len(picks) < min(budget, n):
        left = np.setdiff1d(np.arange(n), picks)
        best = min(set(cluster[left].tolist()), key=lambda c: (labels[c], -sizes[c], c))
        mine = left[cluster[left] == best]
        picks.append(int(mine[np.argmin(means[mine].round(10))]))
        labels[best] += 1
    assert got.indices.tolist() == picks
    np.testing.assert_allclose(got.scores["distance"], means[picks], atol=1e-12)


def test_many_clusters_are_found_in_batches():
    pool = Features(np.random.default_rng(1).normal(size=(900, 5)), np.ones((900, 1)))
    picks = select("typiclust", pool=pool, budget=600, seed=1).indices
    assert len(np.unique(picks)) == 600
