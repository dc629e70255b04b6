"""AnchorAL: any strategy, on the part of the pool that is most like what is labelled of each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import derive, hash_ids
from accuacl.strategies.api import get_strategy
from accuacl.strategies.direct import labelled_classes
from accuacl.strategies.facility import unit
from accuacl.strategies.options import Option
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import Indices, round_off

Inner = Annotated[str, Option("the strategy that picks from what is like the anchors")]
Anchors = Annotated[int, Option("labelled examples of each class that the pool is compared with", least=1)]
Subpool = Annotated[int, Option("examples of the pool that the inner strategy sees, or 20 a pick if more", least=1)]
A_PICK = 20


def anchoral(query: Query, *, inner: Inner = "badge", anchors: Anchors = 10, subpool: Subpool = 1000) -> Selection:
    """Lets another strategy pick from the examples that are most like the labelled ones of each class.

    Of each class with labels in this task, `anchors` labelled examples are drawn, others in every round. For each class
    the pool is sorted by its mean similarity to the anchors, the cosine; the first of each class in turn make up the
    subpool, so that a rare class has as large a part of it as a common one. Without labels, or if the pool is not
    larger than the subpool, the inner strategy sees all of it. Scores: those of the inner strategy.

    The classes of the labelled examples are the query's `classes`; without these, what the model takes them for.

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
        raise InputError("inner is 'anchoral'; give another strategy, which picks from what is like the anchors.")
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
    place = np.full(len(x), len(x))  # the best place of a row in the orders of the classes
    turn = np.zeros(len(x), np.int64)  # the class whose order that is
    for number, k in enumerate(np.unique(classes).tolist()):
        of_class = np.flatnonzero(classes == k)
        drawn = of_class[np.argsort(hash_ids(derive(query.seed, "anchors", k), of_class), kind="stable")[:anchors]]
        likeness = np.einsum("ij,j->i", x, known[np.sort(drawn)].mean(axis=0))  # each row on its own, to the bit
        order = np.empty(len(x), np.int64)
        order[np.argsort(-round_off(likeness), kind="stable")] = np.arange(len(x))
        better = order < place
        place[better], turn[better] = order[better], number
    return np.lexsort((turn, place))
