"""Query strategies: which examples should be labelled?

A strategy takes a `Query` and returns a `Selection`; its keyword arguments are its options. A set strategy is a plain
function that chooses a set, usually greedily. A row strategy ranks rows one by one: it is declared with `@row_strategy`
and then also works on pools that do not fit into memory. To add a strategy, write it in a file of its own and add it to
REGISTRY in registry.py, or `register` it from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.front import front_door
from accuacl.strategies.registry import NAMES, REGISTRY, defaults_of, load_plugins, options_of, register

if TYPE_CHECKING:
    from accuacl.strategies.lacking import WITHOUT_MEMORY, warn_without_memory
    from accuacl.strategies.limits import TooLarge, available, bytes_needed, needs
    from accuacl.strategies.parts import Part, PartsForm, PartsQuery, parts_form
    from accuacl.strategies.query import Query, Selection, whole_number
    from accuacl.strategies.ranking import Ranking, Rows
    from accuacl.strategies.rows import Context, Examples, InMemory, RowStrategy, row_strategy
    from accuacl.strategies.selecting import get, select
    from accuacl.strategies.smallest import among_smallest, made_exact, reach, round_off

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
    "defaults_of",
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

__getattr__ = front_door(__name__)
