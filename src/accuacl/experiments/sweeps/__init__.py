"""Grids of runs: listing them, doing those that are missing, estimating their cost, and the paper's recipes.

from accuacl.experiments.sweeps import run_missing, runs_of
runs = runs_of({"benchmark": "split-digits", "strategy": ["uniform", "accuacl"], "seeds": [0, 1]})
run_missing(runs, Path("runs/a"), Path("runs/a/results.csv"), engines.get("local"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.sweeps.efficiency import (
        QueryCosts as QueryCosts,
        has_query_times as has_query_times,
        measure_queries as measure_queries,
        read_query_times as read_query_times,
    )
    from accuacl.experiments.sweeps.grid import (
        ERROR_FILE as ERROR_FILE,
        SCALES as SCALES,
        Outcome as Outcome,
        SweepRun as SweepRun,
        run_name as run_name,
        runs_of as runs_of,
        titles as titles,
    )
    from accuacl.experiments.sweeps.paper import (
        EFFICIENCY as EFFICIENCY,
        RECIPES as RECIPES,
        read_recipe as read_recipe,
        recipe_costs as recipe_costs,
        recipe_runs as recipe_runs,
        write_recipe_table as write_recipe_table,
    )
    from accuacl.experiments.sweeps.running import run_missing as run_missing

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "efficiency": ("has_query_times", "measure_queries", "QueryCosts", "read_query_times"),
        "grid": ("ERROR_FILE", "SCALES", "Outcome", "run_name", "runs_of", "SweepRun", "titles"),
        "paper": (
            "EFFICIENCY",
            "RECIPES",
            "read_recipe",
            "recipe_costs",
            "recipe_runs",
            "write_recipe_table",
        ),
        "running": ("run_missing",),
    },
)
