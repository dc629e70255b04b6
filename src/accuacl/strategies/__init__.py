"""Query strategies: which examples should be labelled?

A strategy takes a `Query` and returns a `Selection`; its keyword arguments are its options. A set strategy is a plain
function that chooses a set, usually greedily. A row strategy ranks rows one by one: it is declared with `@row_strategy`
and then also works on pools that do not fit into memory. To add a strategy, write it in a file of its own and add it to
REGISTRY in registry.py, or `register` it from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.strategies.api import *
    from accuacl.strategies.coverage import *
    from accuacl.strategies.facility import *
    from accuacl.strategies.ranking import *
    from accuacl.strategies.registry import *
    from accuacl.strategies.typiclust import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    api=(
        "WITHOUT_MEMORY BadAnswer Query Selection TooLarge bytes_needed get_strategy needs select warn_without_memory "
        "whole_number"
    ),
    coverage="in_sample_order sample_hashes sample_size usual_sample",
    facility="facility_location squared_width unit",
    ranking="Context Examples InMemory Ranking RowStrategy Rows among_smallest reach row_strategy",
    registry=(
        "BUILT_IN BY_LABEL REGISTRY Option check_options load_plugins options_help options_of read_options register "
        "split_options strategy_names takes_sample"
    ),
    typiclust="clusters_of mean_distance",
)
