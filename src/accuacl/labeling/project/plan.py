"""What leads change while a project runs, in `plan.json`: the settings that may differ from those at the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pydantic
from pydantic import Field

from accuacl.base.errors import InputError, wrong_setting
from accuacl.base.files import reading, write_text
from accuacl.experiments import Journal
from accuacl.labeling.project.settings import STATISTICS, ProjectSettings
from accuacl.labeling.project.state import ProjectState

FILE = "plan.json"


class Plan(pydantic.BaseModel):
    """Settings that replace those of `config.json`; None: as there. more_rounds: added to a task, by its index."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    overlap: float | None = Field(default=None, ge=0, le=1)  # of the rounds that are opened from now on
    holdout: float | None = Field(default=None, ge=0, lt=1)  # of the tasks that begin from now on
    budget_total: int | None = Field(default=None, ge=1)
    memory: int | None = Field(default=None, ge=0)  # of the tasks that end from now on
    more_rounds: dict[int, int] = Field(default_factory=dict)

    def applied_to(self, settings: ProjectSettings) -> ProjectSettings:
        """The settings of a project as they are now."""
        given = {name: getattr(self, name) for name in ("overlap", "holdout", "budget_total", "memory")}
        changed = settings.model_copy(update={name: value for name, value in given.items() if value is not None})
        changed._more_rounds = self.more_rounds
        return changed


def read_plan(directory: Path) -> Plan:
    """The plan of a project; nothing is changed if there is none."""
    path = directory / FILE
    if not path.exists():
        return Plan()
    try:
        with reading(path):
            return Plan.model_validate_json(path.read_bytes())
    except pydantic.ValidationError:
        raise InputError(f"{path} is damaged; restore it from a copy, or remove it.") from None


def changed_plan(plan: Plan, settings: ProjectSettings, used: int, **given: float | None) -> Plan:
    """The plan with new values; InputError if they cannot be. used: labels of the whole project so far."""
    budget = given.get("budget_total")
    if budget is not None:
        if not settings.budget_total:
            raise InputError("this project has rounds for each task, not a budget for all; add rounds instead.")
        if budget < used:
            raise InputError(f"{used} labels are already used; give a budget of at least as many.")
    try:
        now = {name: value for name, value in given.items() if value is not None}
        return Plan.model_validate(plan.model_dump() | now)
    except pydantic.ValidationError as error:
        raise wrong_setting(error) from None


def write_plan(directory: Path, plan: Plan) -> None:
    write_text(directory / FILE, json.dumps(plan.model_dump(exclude_none=True), indent=1) + "\n")


def check_one_more(settings: ProjectSettings, state: ProjectState, task: int, ended: bool, left: int) -> None:
    """InputError: the last task cannot have one more round. ended: by a lead. left: items that nobody was asked for."""
    if settings.budget_total:
        raise InputError("the rounds of this project end with its budget; raise the budget instead.")
    if settings.keep == STATISTICS:
        raise InputError("the examples of finished tasks are erased (--keep statistics); add data as the next task.")
    if task != state.tasks - 1 or task != state.task:
        raise InputError("only the latest task can have one more round; add data as the next task.")
    if ended:
        raise InputError(f"a lead has ended task {task + 1}; add data as the next task.")
    if not left:
        raise InputError(f"every example of task {task + 1} has been asked for; add data as the next task.")


def reopen(journal: Journal, task: int) -> None:
    """Continue the last task, which is finished; the steps that end it are repeated after its next round."""

    def change(at: int | None, round: int | None, kind: str, result: Any) -> Any:
        ends = kind in ("memory", "evaluate") or (kind == "query" and "over" in result)
        return None if at == task and ends else result

    journal.rewrite(change)
