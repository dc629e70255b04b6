"""The plan: settings that leads change while a project runs, in `plan.json`. They replace those at the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic
from pydantic import Field

from accuacl.base.errors import InputError, wrong_setting
from accuacl.base.files import reading, write_text
from accuacl.labeling.project.settings import STATISTICS, ProjectSettings

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

PLAN = "plan.json"  # the file's name in the project's directory


class Plan(pydantic.BaseModel):
    """Settings that replace those of `config.json`, unless they are None.

    more_rounds: how many rounds leads have added to each task, by its index.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    overlap: float | None = Field(default=None, ge=0, le=1)  # holds for rounds that are opened from now on
    holdout: float | None = Field(default=None, ge=0, lt=1)  # holds for tasks that begin from now on
    budget_total: int | None = Field(default=None, ge=1)
    memory: int | None = Field(default=None, ge=0)  # holds for tasks that end from now on
    more_rounds: dict[int, int] = Field(default_factory=dict)

    def applied_to(self, settings: ProjectSettings) -> ProjectSettings:
        """Return the settings with those replaced that the plan changes."""
        given = {name: getattr(self, name) for name in ("overlap", "holdout", "budget_total", "memory")}
        changed = settings.model_copy(update={name: value for name, value in given.items() if value is not None})
        changed._more_rounds = self.more_rounds
        return changed


def read_plan(directory: Path) -> Plan:
    """Return the plan of a project; without a file it is a plan that changes nothing."""
    path = directory / PLAN
    if not path.exists():
        return Plan()
    try:
        with reading(path):
            return Plan.model_validate_json(path.read_bytes())
    except pydantic.ValidationError:
        raise InputError(f"{path} is damaged; restore it from a copy, or remove it.") from None


def change_plan(project: Project, given: dict[str, float | None]) -> None:
    """Change the plan to the given values that are not None; raise InputError if one of them is not possible."""
    settings, budget, used = project.settings, given.get("budget_total"), project.store.used_in_all()
    if budget is not None and not settings.budget_total:
        raise InputError("this project has rounds for each task, not a budget for all; add rounds instead.")
    if budget is not None and budget < used:
        raise InputError(f"{used} labels are already used; give a budget of at least as many.")
    try:
        new = {name: value for name, value in given.items() if value is not None}
        plan = Plan.model_validate(read_plan(project.directory).model_dump() | new)
    except pydantic.ValidationError as error:
        raise wrong_setting(error) from None
    if budget is not None and project.state().finished and project.tasks.all():
        _reopen(project)
    _write_plan(project, plan)


def add_round(project: Project, task: int) -> None:
    """Add one round to the latest task in the plan; raise InputError if it cannot have one."""
    settings, state, store, plan = project.settings, project.state(), project.store, read_plan(project.directory)
    if settings.budget_total:
        raise InputError("the rounds of this project end with its budget; raise the budget instead.")
    if settings.keep == STATISTICS:
        raise InputError("the examples of finished tasks are erased (--keep statistics); add data as the next task.")
    if task != state.tasks - 1 or task != state.task:
        raise InputError("only the latest task can have one more round; add data as the next task.")
    if store.has_ended(task):
        raise InputError(f"a lead has ended task {task + 1}; add data as the next task.")
    if project.tasks.all()[task].count == sum(len(store.picks(task, r)) for r in range(store.rounds(task))):
        raise InputError(f"every example of task {task + 1} has been asked for; add data as the next task.")
    if state.finished:
        _reopen(project)
    more = plan.more_rounds | {task: plan.more_rounds.get(task, 0) + 1}
    _write_plan(project, plan.model_copy(update={"more_rounds": more}))


def _write_plan(project: Project, plan: Plan) -> None:
    write_text(project.directory / PLAN, json.dumps(plan.model_dump(exclude_none=True), indent=1) + "\n")


def _reopen(project: Project) -> None:
    """Continue the last task: remove the steps that ended it from the journal, to repeat them after its next round.

    If the process is killed before the plan is written, the task ends again with the same labels.
    """
    last = len(project.tasks.all()) - 1

    def change(task: int | None, round: int | None, kind: str, result: Any) -> Any:
        ends = kind in ("memory", "evaluate") or (kind == "query" and "over" in result)
        return None if task == last and ends else result

    with project.open_journal() as journal:
        journal.rewrite(change)
