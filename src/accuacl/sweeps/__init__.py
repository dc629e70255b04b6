"""Grids of runs: listing them, doing those that are missing, estimating their cost, and the paper's recipes.

from accuacl.sweeps import run_missing, runs_of
runs = runs_of({"benchmark": "split-digits", "strategy": ["uniform", "accuacl"], "seeds": [0, 1]})
run_missing(runs, Path("runs/a"), Path("runs/a/results.csv"), engines.get("local"))
"""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door

if TYPE_CHECKING:
    from accuacl.sweeps.efficiency import QueryCosts, has_query_times, measure_queries, read_query_times
    from accuacl.sweeps.grid import SCALES, SweepRun, run_name, runs_of, titles
    from accuacl.sweeps.outcome import ERROR_FILE, Outcome
    from accuacl.sweeps.paper import EFFICIENCY, RecipeCost, recipe_costs, recipe_runs, write_recipe_table
    from accuacl.sweeps.recipes import NAMES as RECIPES
    from accuacl.sweeps.recipes import read as read_recipe
    from accuacl.sweeps.running import run_missing

__all__ = [
    "EFFICIENCY",
    "ERROR_FILE",
    "RECIPES",
    "SCALES",
    "Outcome",
    "QueryCosts",
    "RecipeCost",
    "SweepRun",
    "has_query_times",
    "measure_queries",
    "read_query_times",
    "read_recipe",
    "recipe_costs",
    "recipe_runs",
    "run_missing",
    "run_name",
    "runs_of",
    "titles",
    "write_recipe_table",
]

__getattr__ = front_door(__name__)
