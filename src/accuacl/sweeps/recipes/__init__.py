"""The paper's tables and figures as short YAML files: sweeps, with a title and what they show."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

from accuacl.base.names import no_such

NAMES = (
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


def read(name: str) -> dict[str, Any]:
    """The recipe called `name`.

    >>> read("scores")["title"]
    'Effect of the two scores'
    """
    if name not in NAMES:
        raise no_such("recipe", name, NAMES)
    return yaml.safe_load(resources.files(__name__).joinpath(f"{name}.yaml").read_text())
