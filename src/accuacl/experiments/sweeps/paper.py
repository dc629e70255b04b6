"""The paper's tables and figures as sweeps: their runs, their results, what they will cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from accuacl.base.errors import no_such
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.experiments import write_csv
from accuacl.experiments.sweeps.efficiency import SECONDS_EACH
from accuacl.experiments.sweeps.grid import SweepRun, rows_by_key, runs_of

RECIPES = (
    "main",
    "memory-baselines",
    "learning-accuracy",
    "scores",
    "task-order",
    "full-past",
    "tasks",
    "budget",
    "lambda",
    "rounds",
    "efficiency",
    "ingredients",
)
EFFICIENCY = "efficiency"  # the recipe that measures queries instead of doing runs


def read_recipe(name: str) -> dict[str, Any]:
    """The recipe called `name`.

    >>> read_recipe("scores")["title"]
    'Effect of the two scores'
    """
    if name not in RECIPES:
        raise no_such("recipe", name, RECIPES)
    recipe = resources.files("accuacl.experiments.sweeps").joinpath("recipes", f"{name}.yaml")
    return yaml.safe_load(recipe.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class RecipeCost:
    """How many runs a recipe has, how many of them are done, and how long the others will take."""

    recipe: str
    about: str
    count: int
    done: int
    seconds: float


def recipe_runs(
    recipe: dict[str, Any], scale: str, more: Sequence[str] = (), data_dir: Path | None = None
) -> list[SweepRun]:
    """The runs of a recipe, with `more` strategies beside its own."""
    usual = recipe["strategy"]
    strategies = [*(usual if isinstance(usual, list) else [usual]), *more]
    return runs_of(recipe | {"strategy": strategies}, {"scale": scale}, data_dir)


def write_recipe_table(runs: Sequence[SweepRun], table: Path, own_table: Path) -> set[tuple[str, ...]]:
    """Copy the rows of a recipe's runs from the shared table to its own; returns the keys of those found."""
    known = rows_by_key(table)
    keys = {run.key for run in runs if run.key in known}
    if keys:
        write_csv(own_table, [known[key] for key in keys])
    return keys


def recipe_costs(
    scale: str, table: Path, more: Sequence[str], workers: int, on_progress: OnProgress = ignore
) -> list[RecipeCost]:
    """What each recipe will cost on this machine, from the measured speed of its networks."""
    from accuacl.experiments.sweeps.cost import core_seconds  # loads torch

    known = rows_by_key(table)
    costs = []
    for index, name in enumerate(RECIPES):
        on_progress(Progress(index, len(RECIPES), f"measuring for {name}"))
        recipe = read_recipe(name)
        if name == EFFICIENCY:
            count, done = len(recipe["strategy"]) * len(recipe["classes"]), 0
            seconds = count * SECONDS_EACH
        else:
            runs = recipe_runs(recipe, scale, more)
            missing = [run for run in runs if run.key not in known]
            count, done = len(runs), len(runs) - len(missing)
            seconds = sum(core_seconds(run.config) for run in missing) / workers
        costs.append(RecipeCost(name, recipe["about"], count, done, seconds))
    return costs
