"""Grids of runs: listing them, doing those that are missing, estimating their cost, and the paper's recipes.

from accuacl.experiments.sweeps import run_missing, runs_of
runs = runs_of({"benchmark": "split-digits", "strategy": ["uniform", "accuacl"], "seeds": [0, 1]})
run_missing(runs, Path("runs/a"), Path("runs/a/results.csv"), engines.get("local"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.sweeps.efficiency import *
    from accuacl.experiments.sweeps.grid import *
    from accuacl.experiments.sweeps.paper import *
    from accuacl.experiments.sweeps.running import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    efficiency="QueryCosts has_query_times measure_queries read_query_times",
    grid="ERROR_FILE SCALES Outcome SweepRun run_name runs_of",
    paper="EFFICIENCY RECIPES read_recipe recipe_costs recipe_runs write_recipe_table",
    running="run_missing",
)
