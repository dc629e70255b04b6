"""Strategies for pools in which some classes are rare: DIRECT and AnchorAL.

DIRECT looks, for each class, for the threshold that separates it from all others, and labels around it. AnchorAL lets
any strategy pick from the part of the pool that is most like what is labelled of each class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import derive, hash_ids
from accuacl.strategies.api import Query, Selection, get_strategy, needs
from accuacl.strategies.facility import unit
from accuacl.strategies.ranking import Indices, round_off
from accuacl.strategies.registry import Option

Search = Annotated[float, Option("share of the picks that search for rare classes", least=0, most=1)]


def needed(n: int, d: int, K: int) -> int:
    """Bytes: the probabilities in float64, and one class's order."""
    return 8 * n * K + 128 * n


@needs(needed)
def direct(query: Query, *, search: Search = 0.5) -> Selection:
    """Picks as many examples around the decision threshold of each class, and searches for classes that are rare.

    For a class k, pool and labelled examples are sorted by p_k - max p, descending, those predicted as k by p_k. The
    threshold of k is the position with the most labels of k before it and of other classes after it; of several equal
    positions, the middle one. The share `search` of the picks is drawn at random between the last of the leading labels
    of k and the first of the trailing labels of others, in turn for each class that has less than an even share of the
    labels. The other picks lie next to the thresholds, in turn on both sides of each and for each class. Classes
    without a label in this task are not looked for, unless there is no label at all. Scores: `class`, the column of the
    class for which an example was picked; `behind`, its max p - p_k.

    The classes of the labelled examples are the query's `classes`; without these, the model's predictions.

    Option: `search`, the share of the picks that search.

    Reference: Nuggehalli, Zhang, Jain and Nowak, "DIRECT: Deep Active Learning under Imbalance and Label Noise", ICML
    2025.

    Cost: a sort of n rows for each class, O(K n log n) time; 8 n K bytes.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0]] * 5, [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.1, 0.9]])
    >>> labelled = Features([[1.0]] * 2, [[0.95, 0.05], [0.05, 0.95]])
    >>> select("direct", pool=pool, budget=2, labelled=labelled, classes=[0, 1], search=0).indices
    array([2, 1])
    """
    n, count, tick = len(query.pool), query.count, query.ticker(query.pool.K + 1)
    p, classes = query.pool.probabilities.astype(np.float64), labelled_classes(query)
    if query.labelled is not None:
        p = np.concatenate([p, query.labelled.probabilities.astype(np.float64)])
    margins = p - p.max(axis=1, keepdims=True)
    labels = np.bincount(classes, minlength=p.shape[1])
    wanted = sorted(np.flatnonzero(labels).tolist() or range(p.shape[1]), key=lambda k: (labels[k], k))
    rare = [k for k in wanted if labels[k] * len(wanted) < len(classes)] or wanted
    between: dict[int, Indices] = {}
    outward: dict[int, Indices] = {}
    for k in range(p.shape[1]):
        if k in wanted:
            order = np.lexsort((-round_off(p[:, k]), -round_off(margins[:, k])))
            signs = np.append(np.zeros(n, np.int64), np.where(classes == k, 1, -1))[order]
            first, last = undecided(signs)
            rows = order[first:last]
            rows = rows[rows < n]
            between[k] = rows[np.argsort(hash_ids(derive(query.seed, "direct", k), rows), kind="stable")]
            outward[k] = alternating(order, threshold(signs), n)
        tick(1)
    chosen: dict[int, int] = {}  # the class for which each row was picked
    _deal([(k, between[k]) for k in rare], round(search * count), chosen)
    _deal([(k, outward[k]) for k in wanted], count, chosen)
    tick(1)
    rows, for_class = np.array(list(chosen), np.int64), np.array(list(chosen.values()), np.int64)
    return Selection(rows, {"class": for_class.astype(np.float64), "behind": -margins[rows, for_class] + 0.0})


def labelled_classes(query: Query) -> NDArray[np.int64]:
    """The class of each labelled example: as given, or else as predicted."""
    if query.classes is not None:
        return query.classes
    if query.labelled is None:
        return np.empty(0, np.int64)
    return np.asarray(query.labelled.probabilities.argmax(axis=1), np.int64)


def threshold(signs: NDArray[np.int64]) -> int:
    """The j for which the sum before j minus the sum from j on is largest; of several the middle one.

    >>> threshold(np.array([1, 0, 0, 0, -1])), threshold(np.array([0, -1])), threshold(np.array([0, 1]))
    (3, 1, 2)
    """
    before = np.append(0, np.cumsum(signs))  # before j minus from j on: 2 * before - all
    best = np.flatnonzero(before == before.max())
    return int(best[len(best) // 2])


def undecided(signs: NDArray[np.int64]) -> tuple[int, int]:
    """The first and the last place, exclusive, between the leading labels of a class and the trailing ones of others.

    >>> undecided(np.array([1, 0, 0, -1, 0])), undecided(np.array([1, 0, -1, 1, 0, -1])), undecided(np.array([0, -1]))
    ((1, 3), (1, 5), (0, 1))
    """
    own, others = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
    leading = own[own < others[0]] if len(others) else own
    trailing = others[others > own[-1]] if len(own) else others
    return int(leading[-1] + 1) if len(leading) else 0, int(trailing[0]) if len(trailing) else len(signs)


def alternating(order: Indices, start: int, n: int) -> Indices:
    """Rows below n of an order, outward from position `start`: the one before it, the one at it, and so on.

    >>> alternating(np.array([4, 2, 9, 0, 1]), 2, 5)
    array([2, 0, 4, 1])
    """
    before, after = order[:start][::-1], order[start:]
    before, after = before[before < n], after[after < n]
    turn = np.argsort(np.append(2 * np.arange(len(before)), 2 * np.arange(len(after)) + 1), kind="stable")
    return np.concatenate([before, after])[turn]


def _deal(queues: Sequence[tuple[int, Indices]], total: int, chosen: dict[int, int]) -> None:
    """Add rows to `chosen` until it has `total`: the next of each queue in turn, those that are in it skipped."""
    waiting: list[tuple[int, Iterator[int]]] = [(k, iter(rows.tolist())) for k, rows in queues]
    while waiting and len(chosen) < total:
        for k, rows in list(waiting):
            row = next((row for row in rows if row not in chosen), None)
            if row is None:
                waiting.remove((k, rows))
            elif len(chosen) < total:
                chosen[row] = k


Inner = Annotated[str, Option("the strategy that picks among the examples most like the anchors")]
Anchors = Annotated[int, Option("labelled examples of each class that the pool is compared with", least=1)]
Subpool = Annotated[int, Option("examples that the inner strategy sees, or 20 per pick if that is more", least=1)]
A_PICK = 20


def anchoral(query: Query, *, inner: Inner = "badge", anchors: Anchors = 10, subpool: Subpool = 1000) -> Selection:
    """Lets another strategy pick from the examples that are most like the labelled ones of each class.

    Of each class with labels in this task, `anchors` labelled examples are drawn, others in every round. For each class
    the pool is sorted by its mean similarity to the anchors, the cosine; the first of each class in turn make up the
    subpool, so that a rare class has as large a part of it as a common one. Without labels, or if the pool is not
    larger than the subpool, the inner strategy sees all of it. Scores: those of the inner strategy.

    The classes of the labelled examples are the query's `classes`; without these, the model's predictions.

    Options: `inner`, the strategy, any but this one, with its usual options; `anchors` of each class; `subpool`, how
    many examples the inner strategy sees, at least 20 for each pick.

    Reference: Lesci and Vlachos, "AnchorAL: Computationally Efficient Active Learning for Large and Imbalanced
    Datasets", NAACL 2024, which retrieves the nearest examples of each anchor and ranks them by their mean similarity.

    Cost: a product of n rows with the anchors and a sort of n rows for each class, and the inner strategy on the
    subpool; 8 n (d + K) bytes.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1], [-1, 0]], [[0.9, 0.1]] * 4 + [[0.5, 0.5]])
    >>> labelled = Features([[1.0, 0], [0, 1]], [[0.9, 0.1], [0.1, 0.9]])
    >>> select("anchoral", pool=pool, budget=2, labelled=labelled, classes=[0, 1], inner="margin").indices
    array([4, 0])
    """
    if inner == "anchoral":
        raise InputError("inner is 'anchoral'; give another strategy, to pick among what is most like the anchors.")
    ask = get_strategy(inner)
    size, classes = max(subpool, A_PICK * query.count), labelled_classes(query)
    if query.labelled is None or not len(classes) or len(query.pool) <= size:
        return ask(query)
    rows = np.sort(_alike(query, classes, anchors)[:size])
    picked = ask(replace(query, pool=query.pool.rows(rows)))
    return Selection(rows[picked.indices], picked.scores)


def _alike(query: Query, classes: NDArray[np.int64], anchors: int) -> Indices:
    """The rows of the pool, most like the anchors first, in turn for each class."""
    assert query.labelled is not None
    x, known = unit(query.pool.embeddings), unit(query.labelled.embeddings)
    best_rank = np.full(len(x), len(x))  # the best rank of a row in the orders of the classes
    turn = np.zeros(len(x), np.int64)  # the class whose order that is
    for number, k in enumerate(np.unique(classes).tolist()):
        of_class = np.flatnonzero(classes == k)
        drawn = of_class[np.argsort(hash_ids(derive(query.seed, "anchors", k), of_class), kind="stable")[:anchors]]
        likeness = np.einsum("ij,j->i", x, known[np.sort(drawn)].mean(axis=0))  # each row by itself
        order = np.empty(len(x), np.int64)
        order[np.argsort(-round_off(likeness), kind="stable")] = np.arange(len(x))
        better = order < best_rank
        best_rank[better], turn[better] = order[better], number
    return np.lexsort((turn, best_rank))
