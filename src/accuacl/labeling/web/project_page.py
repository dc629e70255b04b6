"""The page of a project for its leads: add data by dropping files, end rounds and tasks, download what there is."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path as File
from typing import Annotated

import anyio
from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import FileResponse, HTMLResponse
from pydantic import BaseModel, Field
from starlette.background import BackgroundTask

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
from accuacl.labeling.web.api import Number
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Lead
from accuacl.labeling.web.site import Here, View

router = APIRouter()
UploadId = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


class FinishRequest(BaseModel):
    column: Annotated[str, Field(min_length=1, max_length=100)] = "text"


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
        suffixes=", ".join(UPLOADED[kind]),
        largest=LARGEST_UPLOAD // 2**20,
    )


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


@router.post("/api/uploads")
def begin(site: Here, person: Lead) -> View:
    """Begin an upload; the answer has the id under which its files are sent."""
    return {"upload": site.uploads.begin()}


@router.post("/api/uploads/{upload}/files")
async def take(
    upload: UploadId,
    request: Request,
    site: Here,
    person: Lead,
    name: Annotated[str, Query(min_length=1, max_length=300)],
) -> View:
    """Receive a file: the body of the request is the file itself."""
    async with site.receiving:
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > LARGEST_UPLOAD:
                raise HTTPException(413, f"The file is too large; the limit is {LARGEST_UPLOAD // 2**20} MB.")
        await anyio.to_thread.run_sync(site.uploads.take, upload, name, bytes(data))
    return {}


@router.post("/api/uploads/{upload}/finish")
def finish(upload: UploadId, body: FinishRequest, site: Here, person: Lead) -> View:
    """Make the next task of the files, or several tasks, if the file has a column that is called task."""
    added = site.uploads.finish(upload, body.column)
    site.trainer.poke()
    count, bad = sum(task.count for task in added), sum(len(task.bad) for task in added)
    return {"task": added[0].index + 1, "tasks": len(added), "count": count, "bad": bad}


@router.get("/export")
def download(site: Here, person: Lead) -> FileResponse:
    """Labels, and the model with a file that loads it, as a ZIP file."""
    from accuacl.labeling.project import export  # loads torch, which nobody shall wait for who wants to label

    project = site.project
    folder = File(tempfile.mkdtemp(prefix="accuacl-export-"))
    try:
        written = export(project, folder / "files", None, "text", ignore, whole_places=False)
        name = f"{project.directory.resolve().name}.zip"
        with zipfile.ZipFile(folder / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in written:
                archive.write(path, path.relative_to(folder / "files"))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    over = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return FileResponse(folder / "export.zip", media_type="application/zip", filename=name, background=over)
