"""One call for all strategies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, check_progress
from accuacl.base.threads import shared_out
from accuacl.features import Features
from accuacl.strategies.answers import check_answer
from accuacl.strategies.lacking import warn_without_memory
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.registry import NAMES, REGISTRY, options_of


def get(name: str, **options: Any) -> Callable[[Query], Selection]:
    """The strategy called `name` with its options set, ready to be given queries.

    >>> get("accuacl", lamda=0.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: accuacl has no option 'lamda'; its options are variant, ...
    """
    known = options_of(name)
    for option in options:
        if option not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise InputError(f"{name} has no option {option!r}; {has}.")
    return functools.partial(_ask, REGISTRY[name], options)


def _ask(strategy: Callable[..., Selection], options: dict[str, Any], query: Query) -> Selection:
    with shared_out():
        return strategy(query, **options)


def select(
    strategy: str,
    *,
    pool: Features,
    budget: int,
    labelled: Features | None = None,
    memory: Features | None = None,
    past: int | None = None,
    seed: int = 0,
    chunk: int = 0,
    progress: OnProgress | None = None,
    **options: Any,
) -> Selection:
    """Which `budget` examples of `pool` should be labelled next?

    pool: the examples that have no label yet. labelled: those labelled earlier in this task. memory: the replay buffer
    of past tasks. past: how many examples, labelled or not, all finished tasks had (AccuACL needs it, or lam, to weigh
    the memory). seed: for strategies that draw at random. chunk: rows processed at a time (0: chosen for you).
    progress: called with a `Progress` as the work proceeds. options: the strategy's own, by name.

    Picks do not depend on the number of threads, the chunk size or the type of the arrays. Large work is shared among
    as many threads as BLAS and torch may use; small work, which threads would slow down, is done by one.

    >>> import numpy as np
    >>> pool = Features(np.eye(4, 2), [[0.5, 0.5], [0.9, 0.1], [0.6, 0.4], [1.0, 0.0]])
    >>> picked = select("entropy", pool=pool, budget=2)
    >>> picked.indices
    array([0, 2])
    >>> picked.scores["entropy"].round(3)
    array([0.693, 0.673])
    """
    ask = get(strategy, **options)
    check_progress(progress)
    warn_without_memory(strategy, memory, past, options)
    query = Query(pool, budget, labelled, memory, past, seed, chunk, progress)
    with np.errstate(invalid="ignore"):  # some of OpenBLAS's kernels raise this flag for products of finite numbers
        picked = ask(query)
    return picked if strategy in NAMES else check_answer(strategy, REGISTRY[strategy], picked, query)
