"""The strategies by name, built in and registered. Each is imported when it is asked for: NumPy takes time to load."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accuacl.base.errors import InputError, check_new_name
from accuacl.base.lazy import Registry
from accuacl.base.userfile import REGISTERED, is_loaded, load_file, required_arguments, with_place

if TYPE_CHECKING:
    from accuacl.strategies.query import Selection

REGISTRY: Registry[Callable[..., Selection]] = Registry(  # by name: "file:function"
    "accuacl.strategies",
    {
        "uniform": "simple:uniform",
        "entropy": "simple:entropy",
        "least-confidence": "simple:least_confidence",
        "margin": "simple:margin",
        "kcenter": "kcenter:kcenter",
        "kcenter+memory": "kcenter:kcenter_memory",
        "badge": "badge:badge",
        "badge+memory": "badge:badge_memory",
        "bait": "bait:bait",
        "accuacl": "accuacl:accuacl",
        "accuacl-magnitude": "accuacl:accuacl_magnitude",
        "accuacl-distribution": "accuacl:accuacl_distribution",
        "accuacl-full": "accuacl:accuacl_full",
        "coverage": "coverage:coverage",
        "coverage+memory": "coverage:coverage_memory",
        "uncertain-coverage": "coverage:uncertain_coverage",
        "fisher-ratio": "fisher_ratio:fisher_ratio",
        "typiclust": "typiclust:typiclust",
        "direct": "direct:direct",
        "anchoral": "anchoral:anchoral",
        "accuacl+uniform": "accuacl:accuacl_uniform",
        "accuacl+coverage": "accuacl:accuacl_coverage",
    },
)
BUILT_IN = tuple(REGISTRY)


def strategy_names() -> tuple[str, ...]:
    """The names of all strategies, those that users have registered among them.

    >>> strategy_names()[:3]
    ('uniform', 'entropy', 'least-confidence')
    """
    return tuple(REGISTRY)


def register(name: str) -> Callable[[Callable[..., Selection]], Callable[..., Selection]]:
    """Register a strategy under a name: for `select`, for runs and sweeps, and on the command line.

    >>> import numpy as np
    >>> from accuacl.features import Features
    >>> from accuacl.strategies import Query, Selection, select
    >>> @register("first")
    ... def first(query: Query) -> Selection:
    ...     return Selection(np.arange(query.budget), {})
    >>> select("first", pool=Features(np.eye(4, 2), np.full((4, 2), 0.5)), budget=2).indices
    array([0, 1])
    >>> del REGISTRY["first"]
    """
    check_new_name("strategy", name, [*REGISTRY, "full"])

    def keep(strategy: Callable[..., Selection]) -> Callable[..., Selection]:
        check_signature(name, strategy)
        REGISTRY[name] = strategy
        REGISTERED.append(("strategy", name))
        return strategy

    return keep


def load_plugins(paths: Iterable[Path]) -> list[str]:
    """Import users' files, each once, which register their objects; returns the names of the new strategies."""
    known = set(REGISTRY)
    for path in paths:
        if not is_loaded(path):
            before = len(REGISTERED)
            load_file(path)
            if len(REGISTERED) == before:
                raise InputError(
                    f'{path} registers nothing; put @accuacl.register("name") above your strategy; for a learner, a '
                    "memory policy or a stream take the `register` of accuacl.experiments.learners, .memory or .data."
                )
    return [name for name in REGISTRY if name not in known]


def check_signature(name: str, strategy: Callable[..., Any]) -> None:
    """Refuse a strategy that cannot be called with a query alone."""
    if not callable(strategy):
        raise InputError(f"the strategy {name} is a {type(strategy).__name__}; register a function of a Query.")
    who = with_place(f"the strategy {name}", strategy)
    try:
        parameters = list(inspect.signature(strategy).parameters.values())
    except ValueError:  # of some that are written in C
        raise InputError(f"the strategy {name} is {strategy!r}; register a function of a Query.") from None
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InputError(f"{who} takes no query; give it one argument, the Query.")
    for argument in (each for each in required_arguments(strategy) if each != parameters[0].name):
        raise InputError(f"{who} has a required argument {argument}; give it a default.")
