"""What journals hold, for tests."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

from accuacl.experiments import Step, read_steps


def key(step: Step) -> str:
    """A short name: 003/002/query (task, round, kind), 003/memory, data."""
    numbers = [f"{number:03}" for number in (step.task, step.round) if number is not None]
    return "/".join([*numbers, step.kind])


def records(journal: Path, like: str = "*") -> dict[str, Any]:
    """The results of the steps whose keys are like that (*: anything), by task and round."""
    found = {key(step): step.result for step in read_steps(journal)}
    return {name: result for name, result in found.items() if fnmatch.fnmatchcase(name, like)}
