"""Learning from the unlabelled pool.

`self`: the head predicts a sample of each task's pool; rows with the largest margins count as if they were labelled so,
with a small weight, classes are balanced again, and the head is solved once more. Whether that helps is judged on true
labels alone: in each of five folds the head is fitted, and taught by the pool, without the fold's labels. Pseudo-labels
are not used if they lose more left-out labels (right without the pool, wrong with it) than they gain, by more than
one standard deviation of such a difference, the root of both together.
The head that the pool has taught is as confident in rows of the pool, on average, as the head was before. A row that
has taught it is left out when its confidence in that row is measured.

`smooth`: rows move towards their neighbours in the pool, before the head, when it is fitted and when it predicts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import no_such
from accuacl.base.randomness import derive, hash_ids
from accuacl.experiments.heads.calibration import Floats, Ints, best_sharpness, sharpness_for, softmax
from accuacl.experiments.heads.kernel import (
    KernelHead,
    LandmarkProblem,
    Problem,
    fit,
    gram_of,
    widened,
)
from accuacl.experiments.heads.kernels import Blocks, Smoothing, Terms, kernel
from accuacl.experiments.heads.rows import checked, order_of, table_of

OFF, SELF, SMOOTH = POOL_LEARNING = ("off", "self", "smooth")
SAMPLED = 1200  # rows of each task's pool
AT_MOST = 3600  # rows of all pools; more tasks have fewer rows each
SHARE = 0.8  # of the sample that is used, those with the largest margins
WEIGHT = 0.2  # of a pseudo-label; a true label counts 1
UP_TO = 1000  # labels; with more, pseudo-labels add nothing that could be measured
SUPPORT = 1000  # rows of the pool that may be support rows
FOLDS = 5
JUDGED_BY = 4  # one in this many sampled rows trains the heads of the folds, which serve only to judge


def sample_ids(ids: Ints, tasks: int, seed: int) -> Ints:
    """The items of a task's pool from which a head learns, ascending: those with the smallest hashes.

    tasks: how many pools there are in all.
    """
    hashes = hash_ids(derive(seed, "pool learning"), ids)
    return np.sort(ids[np.argsort(hashes, kind="stable")[: sample_size(tasks)]])


def sample_rows(rows: NDArray[Any], pools: int) -> NDArray[Any]:
    """The rows without ids from which a head learns: those whose contents have the smallest hashes.

    Neither they nor their order depend on the order of the pool. pools: how many there are in all.
    """
    times: dict[bytes, int] = {}
    hashes = []
    for row in rows:
        content = np.asarray(row, np.float64).tobytes()
        times[content] = times.get(content, 0) + 1  # so that equal rows are not taken all together
        hashes.append(hashlib.blake2b(content + b"/%d" % times[content], digest_size=16).digest())
    return rows[sorted(range(len(rows)), key=hashes.__getitem__)[: sample_size(pools)]]


def sample_size(pools: int) -> int:
    """From how many rows of each pool a head learns, if there are this many pools."""
    return min(SAMPLED, AT_MOST // max(1, pools))


def check_mode(mode: str) -> None:
    """Refuse an unknown mode of learning from the pool."""
    if mode not in POOL_LEARNING:
        raise no_such("pool-learning mode", mode, POOL_LEARNING)


def looks_at_pool(mode: str, labels: int) -> bool:
    """Whether a head with this many labels learns from the pool; if not, the pool need not be read."""
    return mode == SMOOTH or (mode == SELF and labels <= UP_TO)


def fit_with_pool(
    x: NDArray[Any],
    labels: Ints,
    pools: Sequence[NDArray[Any]],
    classes: int = 0,
    *,
    mode: str = SELF,
    candidates: Sequence[Terms] = (),
    blocks: Blocks = (),
    ids: Ints | None = None,
    ridge: float = 0.0,
) -> KernelHead:
    """The head for labelled rows x and samples of unlabelled rows, one of each task (`sample_ids`).

    Held-out rows must not be among either. The head's `learned` says how many pseudo-labels it has learned from, and
    how many left-out labels were `gained` and `lost` by them. blocks: the columns that `smooth` treats apart. ridge:
    used as given if it is above 0, chosen otherwise.
    """
    check_mode(mode)
    x, labels, _, classes = checked(x, labels, None, classes, ids)
    pools = [table_of(pool, "rows of a pool", x.shape[1]) for pool in pools if len(pool)]
    if mode == SMOOTH and pools:
        smoothing = Smoothing(np.concatenate(pools), tuple(blocks) or ((0, x.shape[1]),))
        head = fit(smoothing(x), labels, classes, candidates=candidates, ids=ids, ridge=ridge)
        return replace(head, smoothing=smoothing, learned={"smoothed_by": float(len(smoothing.reference))})
    head = fit(x, labels, classes, candidates=candidates, ids=ids, ridge=ridge)
    if not looks_at_pool(mode, len(x)) or not pools or len(np.unique(labels)) < 2:
        return head
    order = order_of(x, labels, np.ones(len(x)), ids)
    return _self_trained(head, x[order], labels[order], pools)


def _self_trained(head: KernelHead, rows: NDArray[Any], labels: Ints, pools: Sequence[NDArray[Any]]) -> KernelHead:
    """The head taught by its own predictions, unless it loses left-out labels by them."""
    classes, n = len(head.bias), len(rows)
    left_out = _left_out_by_folds(head, rows, labels, [pool[::JUDGED_BY] for pool in pools])
    known = ~np.isnan(left_out[0]).any(axis=1)
    before, after = (outputs[known].argmax(axis=1) == labels[known] for outputs in left_out)
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    learned = {"pseudo_labels": 0.0, "gained": float(gained), "lost": float(lost)}
    if not known.any() or lost - gained > np.sqrt(lost + gained):
        return replace(head, learned=learned)
    sample = np.concatenate(pools)
    outputs = head.logits(sample) / head.sharpness
    kept, guesses = _pseudo_labels(outputs, [len(pool) for pool in pools])
    every = np.concatenate([rows, sample[kept]])
    seen, own = np.unique(np.append(labels, guesses), return_inverse=True)
    given = np.append(np.ones(n), np.full(len(kept), WEIGHT))
    step = max(1, -(-len(kept) // SUPPORT))
    landmarks = np.append(np.arange(n), np.arange(n, len(every), step))
    problem = LandmarkProblem(every, head.terms, landmarks, own, given)
    support, coefficients, bias = problem.solution(head.ridge)
    # As sure of the pool as the head was before, which left-out labels have calibrated: those that a taught head leaves
    # out have neighbours in the pool that it has taken for something else, so they would make it too modest.
    counts = np.bincount(labels[known])
    judged = np.arange(0, len(sample), JUDGED_BY)
    inside, others = np.intersect1d(kept, judged), np.setdiff1d(judged, kept)
    now = np.concatenate(
        [
            problem.left_out(head.ridge, n + np.searchsorted(kept, inside)),
            kernel(head.terms, sample[others], every[support]) @ coefficients + bias,
        ]
    )
    then = best_sharpness(left_out[0][known], labels[known], 1 / counts[labels[known]]) * outputs[:, seen]
    there = ~np.isnan(now).any(axis=1)
    beta = sharpness_for(now[there], float(softmax(then[np.append(inside, others)[there]]).max(axis=1).mean()))
    return replace(
        head,
        support=every[support],
        coefficients=beta * widened(coefficients, seen, classes, 0.0),
        bias=beta * widened(bias[None], seen, classes, -1.0)[0],
        sharpness=beta,
        learned=learned | {"pseudo_labels": float(len(kept))},
    )


def _pseudo_labels(outputs: Floats, counts: Sequence[int]) -> tuple[NDArray[np.intp], Ints]:
    """(the rows with the largest margins in their pool, their predicted classes). counts: rows of each pool."""
    two = np.partition(outputs, -2, axis=1)[:, -2:]
    found = [np.empty(0, np.intp)]
    for start, stop in pairwise(np.cumsum([0, *counts])):
        order = np.argsort((two[:, 0] - two[:, 1])[start:stop], kind="stable")
        found.append(start + np.sort(order[: round(SHARE * (stop - start))]))
    kept = np.concatenate(found)
    return kept, outputs[kept].argmax(axis=1)


def _left_out_by_folds(
    head: KernelHead, rows: NDArray[Any], labels: Ints, pools: Sequence[NDArray[Any]]
) -> tuple[Floats, Floats]:
    """Outputs for labelled rows from heads that have not seen their labels, without and with the pool; NaN if alone."""
    n, classes = len(rows), len(head.bias)
    gram = gram_of(np.concatenate([rows, *pools]), head.terms)
    alone = np.bincount(labels)[labels] == 1
    fold = np.empty(n, np.int64)
    for c in np.unique(labels):  # each class is spread over the folds
        mine = np.flatnonzero(labels == c)
        fold[mine] = (np.arange(len(mine)) + c) % FOLDS
    before, after = (np.full((n, classes), np.nan) for _ in range(2))
    for f in range(FOLDS):
        left, tested = np.flatnonzero(fold != f), np.flatnonzero((fold == f) & ~alone)
        if not len(tested):
            continue
        outputs = _outputs(gram, left, labels[left], np.ones(len(left)), head.ridge, classes)
        before[tested] = outputs[tested]
        kept, guesses = _pseudo_labels(outputs[n:], [len(pool) for pool in pools])
        taught, own = np.append(left, n + kept), np.append(labels[left], guesses)
        given = np.append(np.ones(len(left)), np.full(len(kept), WEIGHT))
        outputs = _outputs(gram, taught, own, given, head.ridge, classes)
        after[tested] = outputs[tested]
    return before, after


def _outputs(gram: Floats, rows: NDArray[np.intp], labels: Ints, given: Floats, ridge: float, classes: int) -> Floats:
    """The outputs for all rows of a head fitted to some of them."""
    seen, own = np.unique(labels, return_inverse=True)
    _, coefficients, bias = Problem(gram[np.ix_(rows, rows)], own, given).solution(ridge)
    return widened(gram[:, rows] @ coefficients + bias, seen, classes, -1.0)
