"""Query strategies: which examples should be labelled?

A strategy takes a `Query` and returns a `Selection`; its keyword arguments are its options. A set strategy is a plain
function that chooses a set, usually greedily. A row strategy ranks rows one by one: it is declared with `@row_strategy`
and then also works on pools that do not fit into memory. To add a strategy, write it in a file of its own and add it to
REGISTRY below, or `register` it from anywhere.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.names import no_such
from accuacl.base.progress import OnProgress
from accuacl.base.threads import shared_out
from accuacl.base.userfile import REGISTERED, is_loaded, load_file
from accuacl.features import Features
from accuacl.strategies.accuacl import accuacl, accuacl_distribution, accuacl_full, accuacl_magnitude
from accuacl.strategies.answers import check_answer, check_signature
from accuacl.strategies.badge import badge, badge_memory
from accuacl.strategies.bait import bait
from accuacl.strategies.confidence import least_confidence
from accuacl.strategies.coverage import coverage, coverage_memory, uncertain_coverage
from accuacl.strategies.entropy import entropy
from accuacl.strategies.fisher_ratio import fisher_ratio
from accuacl.strategies.half_accuacl import accuacl_coverage, accuacl_uniform
from accuacl.strategies.kcenter import kcenter, kcenter_memory
from accuacl.strategies.lacking import WITHOUT_MEMORY, warn_without_memory
from accuacl.strategies.limits import TooLarge, available, bytes_needed, needs
from accuacl.strategies.margin import margin
from accuacl.strategies.parts import Part, PartsForm, PartsQuery, parts_form
from accuacl.strategies.query import Query, Selection, whole_number
from accuacl.strategies.ranking import Ranking, Rows
from accuacl.strategies.rows import Context, Examples, InMemory, RowStrategy, row_strategy
from accuacl.strategies.smallest import among_smallest, made_exact, reach, round_off
from accuacl.strategies.typiclust import typiclust
from accuacl.strategies.uniform import uniform

__all__ = [
    "NAMES",
    "REGISTRY",
    "WITHOUT_MEMORY",
    "Context",
    "Examples",
    "InMemory",
    "Part",
    "PartsForm",
    "PartsQuery",
    "Query",
    "Ranking",
    "RowStrategy",
    "Rows",
    "Selection",
    "TooLarge",
    "among_smallest",
    "available",
    "bytes_needed",
    "get",
    "load_plugins",
    "made_exact",
    "needs",
    "options_of",
    "parts_form",
    "reach",
    "register",
    "round_off",
    "row_strategy",
    "select",
    "warn_without_memory",
    "whole_number",
]

REGISTRY: dict[str, Callable[..., Selection]] = {
    "uniform": uniform,
    "entropy": entropy,
    "least-confidence": least_confidence,
    "margin": margin,
    "kcenter": kcenter,
    "kcenter+memory": kcenter_memory,
    "badge": badge,
    "badge+memory": badge_memory,
    "bait": bait,
    "accuacl": accuacl,
    "accuacl-magnitude": accuacl_magnitude,
    "accuacl-distribution": accuacl_distribution,
    "accuacl-full": accuacl_full,
    "coverage": coverage,
    "coverage+memory": coverage_memory,
    "uncertain-coverage": uncertain_coverage,
    "fisher-ratio": fisher_ratio,
    "typiclust": typiclust,
    "accuacl+uniform": accuacl_uniform,
    "accuacl+coverage": accuacl_coverage,
}
NAMES = tuple(REGISTRY)


def register(name: str) -> Callable[[Callable[..., Selection]], Callable[..., Selection]]:
    """Make a strategy known by its name, here and in runs and sweeps.

    >>> import numpy as np
    >>> @register("first")
    ... def first(query: Query) -> Selection:
    ...     return Selection(np.arange(query.budget), {})
    >>> select("first", pool=Features(np.eye(4, 2), np.full((4, 2), 0.5)), budget=2).indices
    array([0, 1])
    >>> del REGISTRY["first"]
    """
    if not name or name in REGISTRY or name == "full":
        raise InputError(f"a strategy cannot be called {name!r}; give it a name that is not taken.")

    def keep(strategy: Callable[..., Selection]) -> Callable[..., Selection]:
        check_signature(name, strategy)
        REGISTRY[name] = strategy
        REGISTERED.append(("strategy", name))
        return strategy

    return keep


def load_plugins(paths: Iterable[Path]) -> list[str]:
    """Import users' files, each once, which `register` what is theirs; returns the names of the new strategies."""
    known = set(REGISTRY)
    for path in paths:
        if not is_loaded(path):
            before = len(REGISTERED)
            load_file(path)
            if len(REGISTERED) == before:
                raise InputError(
                    f'{path} registers nothing; put @accuacl.strategies.register("name") above a strategy, or that of '
                    "accuacl.learners, accuacl.memory or accuacl.data above yours."
                )
    return [name for name in REGISTRY if name not in known]


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


def options_of(name: str) -> tuple[str, ...]:
    """The names of a strategy's options: the arguments that follow the query in its signature.

    The same name may mean different things: `lam` is the weight of the past for accuacl, a regularisation for bait.

    >>> options_of("accuacl-distribution")
    ('variant', 'keep', 'total_classes', 'lam')
    >>> options_of("uniform")
    ()
    """
    if not isinstance(name, str) or name not in REGISTRY:
        raise no_such("strategy", name, REGISTRY)
    return tuple(inspect.signature(REGISTRY[name]).parameters)[1:]


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
    warn_without_memory(strategy, memory, past, options)
    query = Query(pool, budget, labelled, memory, past, seed, chunk, progress)
    with np.errstate(invalid="ignore"):  # some of OpenBLAS's kernels raise this flag for products of finite numbers
        picked = ask(query)
    return picked if strategy in NAMES else check_answer(strategy, REGISTRY[strategy], picked, query)
