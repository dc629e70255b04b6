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
    from accuacl.strategies.api import (
        WITHOUT_MEMORY as WITHOUT_MEMORY,
        Query as Query,
        Selection as Selection,
        TooLarge as TooLarge,
        bytes_needed as bytes_needed,
        get_strategy as get_strategy,
        needs as needs,
        select as select,
        warn_without_memory as warn_without_memory,
        whole_number as whole_number,
    )
    from accuacl.strategies.coverage import (
        in_sample_order as in_sample_order,
        sample_hashes as sample_hashes,
        sample_size as sample_size,
        takes_sample as takes_sample,
        usual_sample as usual_sample,
    )
    from accuacl.strategies.facility import (
        facility_location as facility_location,
        squared_width as squared_width,
        unit as unit,
    )
    from accuacl.strategies.ranking import (
        Context as Context,
        Examples as Examples,
        InMemory as InMemory,
        Ranking as Ranking,
        Rows as Rows,
        RowStrategy as RowStrategy,
        among_smallest as among_smallest,
        made_exact as made_exact,
        reach as reach,
        round_off as round_off,
        row_strategy as row_strategy,
    )
    from accuacl.strategies.registry import (
        BUILT_IN as BUILT_IN,
        REGISTRY as REGISTRY,
        Option as Option,
        check_options as check_options,
        load_plugins as load_plugins,
        options_help as options_help,
        options_of as options_of,
        read_options as read_options,
        register as register,
        split_options as split_options,
        strategy_names as strategy_names,
    )
    from accuacl.strategies.typiclust import clusters_of as clusters_of, mean_distance as mean_distance

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "api": (
            "Query",
            "Selection",
            "TooLarge",
            "WITHOUT_MEMORY",
            "bytes_needed",
            "get_strategy",
            "needs",
            "select",
            "warn_without_memory",
            "whole_number",
        ),
        "coverage": ("in_sample_order", "sample_hashes", "sample_size", "takes_sample", "usual_sample"),
        "facility": ("facility_location", "squared_width", "unit"),
        "registry": (
            "BUILT_IN",
            "Option",
            "REGISTRY",
            "check_options",
            "load_plugins",
            "options_help",
            "options_of",
            "read_options",
            "register",
            "split_options",
            "strategy_names",
        ),
        "ranking": (
            "among_smallest",
            "Context",
            "Examples",
            "InMemory",
            "made_exact",
            "Ranking",
            "reach",
            "round_off",
            "row_strategy",
            "Rows",
            "RowStrategy",
        ),
        "typiclust": ("clusters_of", "mean_distance"),
    },
)
