"""The page of a project for its leads: rounds and tasks, what can be changed, what can be downloaded or forgotten."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, HTMLResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask

from accuacl.base.errors import InputError
from accuacl.base.progress import ignore
from accuacl.labeling.project import (
    LARGEST_UPLOAD,
    UPLOADED,
    Project,
    ProjectState,
    describe_budget,
    describe_sample,
    unreadable_images,
)
from accuacl.labeling.web import api
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Lead
from accuacl.labeling.web.site import Here, Number, View

router = APIRouter()


class PlanRequest(BaseModel):
    """overlap and holdout in percent; what is left out stays."""

    overlap: Annotated[float, Field(ge=0, le=100)] | None = None
    holdout: Annotated[float, Field(ge=0, lt=100)] | None = None
    budget: Annotated[int, Field(ge=1, le=2**31)] | None = None
    memory: Annotated[int, Field(ge=0, le=2**31)] | None = None


class ForgetRequest(BaseModel):
    items: Annotated[str, Field(min_length=1, max_length=20_000)]
    column: Annotated[str, Field(min_length=1, max_length=200)] = "text"


@router.get("/project", response_class=HTMLResponse)
def show(request: Request, site: Here, person: Lead) -> str:
    """The tasks, the round, and what can be done with them."""
    project, stamp = site.project, api.stamp(site)
    state, kind = project.state(), project.settings.kind
    return render(
        request,
        "project.html",
        person,
        here="project",
        stamp=stamp,
        tasks=_tasks(project, state),
        state=state,
        budget=describe_budget(project.settings, project.store, state.tasks),
        sample=describe_sample(project.journal),
        ended=not state.finished and project.store.has_ended(state.task),
        kind=kind,
        settings=project.settings,
        overlap=project.overlap,
        may_forget=project.settings.exact,
        places=bool(site.places),
        more=may_go_on(project, state),
        suffixes=", ".join(UPLOADED[kind]),
        largest=LARGEST_UPLOAD // 2**20,
    )


def may_go_on(project: Project, state: ProjectState) -> bool:
    """Whether the latest task may have one more round, as far as is known without reading its items."""
    latest = bool(state.tasks) and state.task == state.tasks - 1 and not project.store.has_ended(state.task)
    return latest and not project.settings.budget_total and project.settings.keep == "examples"


@router.get("/api/tasks")
def tasks(site: Here, person: Lead) -> View:
    """All tasks, the present one, counted from 0, and whether it is finished."""
    state = site.project.state()
    return {"tasks": _tasks(site.project, state), "present": state.task, "finished": state.finished}


def _tasks(project: Project, state: ProjectState) -> list[View]:
    tasks = []
    for task in project.tasks.all():
        broken = len(unreadable_images(project.tasks, task))
        row = {"number": task.index + 1, "examples": task.count - broken, "left_out": len(task.bad) + broken}
        tasks.append(row | {"labels": project.store.used(task.index), "stage": _stage(task.index, state)})
    return tasks


def _stage(task: int, state: ProjectState) -> str:
    if task > state.task:
        return "waiting"
    return "done" if task < state.task or state.finished else state.round_name


@router.post("/api/tasks/{task}/end")
def end_task(task: Number, site: Here, person: Lead) -> View:
    """End the present task, counted from 0, with the labels that it has; the next one begins."""
    site.project.end_task(person, task)
    site.trainer.poke()
    return {}


@router.post("/api/round/enough")
def enough(site: Here, person: Lead) -> View:
    """Close the open round with the answers that it has."""
    site.project.enough(person)
    site.trainer.poke()
    return {}


@router.post("/api/tasks/{task}/round")
def one_more_round(task: Number, site: Here, person: Lead) -> View:
    """Ask for one more round of the latest task, counted from 0, also if it is finished."""
    with site.trainer.paused():
        site.project.one_more_round(task)
    return {}


@router.post("/api/plan")
def plan(body: PlanRequest, site: Here, person: Lead) -> View:
    """Change settings for what comes: overlap of the next rounds, hold-out and memory of the next tasks, the budget."""
    overlap, holdout = ((None if each is None else each / 100) for each in (body.overlap, body.holdout))
    with site.trainer.paused():
        site.project.change(overlap=overlap, holdout=holdout, budget_total=body.budget, memory=body.memory)
    return {}


@router.post("/api/forget")
def forget(body: ForgetRequest, site: Here, person: Lead) -> View:
    """Remove items, their labels and what was learned from them; items: names or numbers, one per line."""
    items = [line.strip() for line in body.items.splitlines() if line.strip()]
    if not items:
        raise InputError("no item was given; write one name or number per line.")
    with site.trainer.paused():
        forgot = site.project.forget(items, body.column)
    return {"items": len(forgot.items), "sentences": list(forgot.sentences)}


@router.get("/backup")
def backup(site: Here, person: Lead) -> FileResponse:
    """The whole project as a ZIP file, which unpacked is a project itself."""

    def write(folder: Path) -> list[Path]:
        site.project.backup(folder)
        return [path for path in folder.rglob("*") if path.is_file()]

    return _zipped(f"{site.title}-backup", write)


@router.get("/export")
def download(
    site: Here, person: Lead, upload: Annotated[str, Query(pattern=r"^([0-9a-f]{32})?$")] = "", column: str = "text"
) -> FileResponse:
    """Labels, and the model with a file that loads it, as a ZIP file.

    upload: new data that were sent, for which predictions are written too. column: of texts, the one that has them.
    """
    from accuacl.labeling.project import export  # loads torch, for which people who label need not wait

    predict = site.uploads.sent(upload) if upload else None
    try:
        return _zipped(
            site.title, lambda folder: export(site.project, folder, predict, column, ignore, whole_places=False)
        )
    finally:
        if upload:
            site.uploads.discard(upload)


def _zipped(name: str, write: Callable[[Path], Iterable[Path]]) -> FileResponse:
    """The files that `write` makes in a folder, as a ZIP file; all of it is removed when it has been sent."""
    folder = Path(tempfile.mkdtemp(prefix="accuacl-export-"))
    zipped, files = folder / "export.zip", folder / "files"
    try:
        with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in write(files):
                archive.write(path, path.relative_to(files))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    over = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return FileResponse(zipped, media_type="application/zip", filename=f"{name}.zip", background=over)
