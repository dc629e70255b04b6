"""Coverage: a set of examples that represents the whole pool, or a random sample of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.progress import Tick
from accuacl.base.randomness import derive, hash_ids
from accuacl.features import Features
from accuacl.strategies.api import Query, Selection, Strategy, check_fits, embeddings_only, needs
from accuacl.strategies.facility import LIMIT, facility_location, squared_width, unit
from accuacl.strategies.ranking import Vector
from accuacl.strategies.registry import Option
from accuacl.strategies.simple import uncertainties

Sample = Annotated[
    int | None, Option("size of the random sample that represents a larger pool; 0: use the whole pool", least=0)
]
Cover = Callable[[Query], Selection]
NEIGHBOURHOODS = 200  # a pick represents at least 1/200 of the pool
SAMPLE, SAMPLED = 5000, 20  # default sample of the commands: 5,000 examples, or 20 per pick if that is more
SAMPLE_KEY = derive("a sample that stands for the pool")


def needed(n: int, d: int, K: int) -> int:
    """Bytes: three copies of the embeddings, the part of the kernel that is kept, a few numbers per row."""
    return 20 * n * d + min(5 * n * n, LIMIT) + 1024 * n


def by_sample(strategy: Strategy) -> Strategy:
    """Declare that a strategy has the option `sample`, and that its scores grow in proportion to the pool.

    Of a pool on disk only the sample is then read into memory.
    """
    strategy.by_sample = True  # type: ignore[attr-defined]
    return strategy


@by_sample
@embeddings_only
@needs(needed)
def coverage(query: Query, *, sample: Sample = None) -> Selection:
    """Picks, one by one, the examples that best represent the part of the pool that has no labelled example near it.

    Embeddings are scaled to length 1. An example at squared distance D from its nearest labelled or picked one is
    covered to the degree exp(-D / s^2); each pick is the example that adds most to the sum of these over the pool. The
    width s is about the radius within which an example has 1/L of the pool, where L is the number of labels that there
    will be, at most 200. Score: `gain`, how many examples of the pool the pick newly covers.

    Option: `sample`, the size of the random sample that represents a larger pool (default, and 0: no sample). The picks
    then come from the sample and cover it, and gains are estimates for the pool.

    Reference: Bae et al., "Generalized Coverage for More Robust Low-Budget Active Learning" (MaxHerding), ECCV 2024.

    Cost: one n x n product in float32 and few others, then exact sums where they decide; 20 n d bytes, and 5 n^2 but
    at most 2 GiB for what is kept of the product. With a sample n is its size.

    >>> from accuacl import Features, select
    >>> pool = Features([[1, 0.1], [1, 0.0], [1, -0.1], [0.1, 1], [0.0, 1]], [[1.0]] * 5)
    >>> picked = select("coverage", pool=pool, budget=2)
    >>> picked.indices, picked.scores["gain"].round(2)
    (array([1, 3]), array([2.56, 1.78]))
    """
    return _of_sample("coverage", query, sample, cover)


@by_sample
@embeddings_only
@needs(needed)
def coverage_memory(query: Query, *, sample: Sample = None) -> Selection:
    """Coverage in which the replay memory covers too: where a class comes back, what is remembered needs no new label.

    The memory's examples count as labelled ones do, but the width s is that of coverage. In a task whose classes are
    all new, the memory covers next to nothing, and the picks are those of coverage. Score: `gain`.

    Reference, option and cost: as coverage.

    >>> from accuacl import Features, select
    >>> pool = Features([[1, 0.1], [1, 0.0], [1, -0.1], [0.1, 1], [0.0, 1]], [[1.0]] * 5)
    >>> select("coverage+memory", pool=pool, budget=1, memory=Features([[1, 0.02]], [[1.0]]), past=9).indices
    array([3])
    """
    return _of_sample("coverage+memory", query, sample, _with_memory)


@by_sample
@needs(needed)
def uncertain_coverage(query: Query, *, sample: Sample = None) -> Selection:
    """Coverage in which an example has the weight 1 - margin: the less certain the model, the more it counts.

    If the model is certain of everything, all examples count alike. Score: `gain`, how much of that weight the pick
    newly covers.

    Reference: Bae et al., "Uncertainty Herding: One Active Learning Method for All Label Budgets", ICLR 2025.

    Option and cost: as coverage.

    >>> from accuacl import Features, select
    >>> pool = Features([[1, 0.1], [1, 0.0], [0.1, 1], [0.0, 1]], [[0.9, 0.1], [1, 0], [0.5, 0.5], [0.6, 0.4]])
    >>> select("uncertain-coverage", pool=pool, budget=2).indices
    array([2, 0])
    """
    return _of_sample("uncertain-coverage", query, sample, _uncertain)


def cover(
    query: Query,
    weights: Vector | None = None,
    first: Sequence[int] = (),
    tick: Tick | None = None,
    known: Sequence[Features] | None = None,
) -> Selection:
    """The picks of coverage, with weights; those in `first` come first, and the others cover what these do not.

    known: what covers from the start; by default the labelled examples.
    """
    n, d, labelled = len(query.pool), query.pool.d, query.labelled
    if known is None:
        known = [labelled] if labelled is not None else []
    check_fits("coverage", needed(n, d, query.pool.K), n, d)
    x = unit(query.pool.embeddings)
    share = 1 / min(max(len(labelled or ()) + query.count, 2), NEIGHBOURHOODS)
    indices, gains = facility_location(
        x,
        squared_width(x, share),
        query.count,
        weights=weights,
        start=np.concatenate([unit(features.embeddings) for features in known]) if known else None,
        first=first,
        rows=query.chunk,
        tick=tick or query.ticker(2 * query.count),
    )
    return Selection(indices, {"gain": gains})


def _with_memory(query: Query) -> Selection:
    return cover(query, known=[features for features in (query.labelled, query.memory) if features is not None])


def _uncertain(query: Query) -> Selection:
    weights = uncertainties(query.pool)
    return cover(query, weights if weights.any() else None)


def _of_sample(name: str, query: Query, sample: int | None, cover_pool: Cover) -> Selection:
    """The picks from a sample of the pool, if one is asked for that is smaller."""
    n, d = len(query.pool), query.pool.d
    size = sample_size(sample, query.budget, n)
    check_fits(name, needed(size, d, query.pool.K), size, d, ", or sample=, the size of a sample that represents it")
    if size == n:
        return cover_pool(query)
    hashes = sample_hashes(np.arange(n, dtype=np.uint64))
    rows = np.sort(np.argsort(hashes, kind="stable")[:size])
    picked = cover_pool(replace(query, pool=query.pool.rows(rows)))
    return Selection(rows[picked.indices], {"gain": picked.scores["gain"] * (n / size)})


def usual_sample(budget: int) -> int:
    """The default sample size of the commands `run` and `select` for a larger pool.

    >>> usual_sample(100), usual_sample(1000)
    (5000, 20000)
    """
    return max(SAMPLE, SAMPLED * budget)


def sample_size(sample: int | None, budget: int, n: int) -> int:
    """How many rows of n are in the sample: all, if no number or 0 is given."""
    if not sample or n <= sample:
        return n
    if sample < min(budget, n):
        raise InputError(
            f"sample is {sample}, but {min(budget, n)} are to be picked from it; give several times as many."
        )
    return sample


def in_sample_order(ids: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Ids by a hash of (seed, id): the sample of a run or a project has the first of them, in every round."""
    hashes = hash_ids(derive(seed, "sample of the pool"), ids.astype(np.uint64))
    return ids[np.argsort(hashes, kind="stable")]


def sample_hashes(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of each id: the sample has the rows with the smallest, from memory and from files in any order."""
    return hash_ids(SAMPLE_KEY, ids)
