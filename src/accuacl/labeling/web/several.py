"""Several projects on one server: an index, on which leads create new ones, and each project under its own path.

The index has people of its own, in `server.sqlite`: they lead every project of the folder. Everybody else is invited to
a project, as on a server that has one.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import anyio
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Receive, Scope, Send

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project, check_trusted, make
from accuacl.labeling.store import Store
from accuacl.labeling.web import session
from accuacl.labeling.web.app import make_app, prepare
from accuacl.labeling.web.guard import Hosts
from accuacl.labeling.web.incoming import Places
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Lead, Limited, ProxyLogin
from accuacl.labeling.web.site import Entrance, View, capital

router = APIRouter()
FILE = "server.sqlite"
BELOW = re.compile(r"/p/([^/]+)(/.*)?", re.DOTALL)
PROJECT_NAME = re.compile(r"[^\W_][\w -]{0,59}")  # that of a folder too
LONGEST = 20_000  # characters of all names of classes


class NewProjectRequest(BaseModel):
    """classes: names, one per line. What is left out is as in `accuacl project new`."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    kind: Literal["images", "texts", "tables"]
    classes: Annotated[str, Field(max_length=LONGEST)] = ""
    per_round: Annotated[int, Field(ge=1, le=100_000)] = 50
    rounds: Annotated[int, Field(ge=1, le=1000)] = 4


class ProjectIndex(Entrance):
    """The projects of a folder, and the people who lead all of them."""

    def __init__(
        self, directory: Path, hosts: Hosts, places: Places | None = None, proxy: ProxyLogin | None = None
    ) -> None:
        store = Store(directory / FILE)
        super().__init__(directory=directory, store=store, hosts=hosts, places=places or Places(), proxy=proxy)
        self.apps: dict[str, FastAPI] = {}  # of the projects that somebody has opened
        self._turn = threading.Lock()

    def names(self) -> list[str]:
        """All projects."""
        return sorted(path.name for path in projects_in(self.directory))

    def app_of(self, name: str) -> FastAPI | None:
        """The page of a project, which is opened when it is first asked for; None if there is none of that name."""
        with self._turn:
            app = self.apps.get(name)
            if app is None and name in self.names():
                project = Project.open(self.directory / name)
                check_trusted(project.settings)
                app = make_app(project, self.hosts, None, self.places, f"/p/{quote(name)}", self.proxy)
                app.state.site.trainer.start()
                self.apps[name] = app
            return app

    def stop(self, wait: float = 10.0) -> bool:
        """Stop training; whether all have stopped in time. Labels are on the disk."""
        sites = [app.state.site for app in self.apps.values()]
        done = [site.trainer.stop(wait) for site in sites]
        for site in sites:
            site.store.checkpoint()
        return all(done)


def projects_in(directory: Path) -> list[Path]:
    """The projects that a folder holds."""
    return [path for path in directory.iterdir() if not path.name.startswith(".") and (path / "config.json").is_file()]


def holds_projects(directory: Path) -> bool:
    """Whether a directory is a folder for projects: one that has some, or that is empty."""
    if not directory.is_dir() or (directory / "config.json").exists():
        return False
    empty = all(path.name == "lost+found" for path in directory.iterdir())  # which file systems have
    return empty or (directory / FILE).exists() or bool(projects_in(directory))


def make_index(index: ProjectIndex) -> ASGIApp:
    """The server of several projects."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await anyio.to_thread.run_sync(index.stop)

    app = FastAPI(title="accuacl", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.include_router(router)
    prepare(app, index)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        below = BELOW.fullmatch(scope["path"]) if scope["type"] == "http" else None
        inner = None
        if below:
            with contextlib.suppress(InputError):  # the index says what is wrong with it
                inner = await anyio.to_thread.run_sync(index.app_of, below[1])
        if below is None or inner is None:
            await app(scope, receive, send)
            return
        path = below[2] or "/"
        await inner({**scope, "path": path, "raw_path": quote(path).encode()}, receive, send)

    return serve


async def _here(request: Request) -> ProjectIndex:
    index: ProjectIndex = request.app.state.site
    return index


Here = Annotated[ProjectIndex, Depends(_here)]


@router.get("/", response_class=HTMLResponse)
def show(request: Request, index: Here, person: Limited) -> str:
    """The projects, and a form for new ones."""
    rows = [_row(index, name) for name in index.names()]
    return render(request, "projects.html", person, rows=rows)


@router.post("/api/projects")
def create(body: NewProjectRequest, request: Request, response: Response, index: Here, person: Lead) -> View:
    """Make a project without data, which the person leads; its page takes the data."""
    name = body.name.strip()
    if not PROJECT_NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot be a project's name; give letters and digits, with spaces, - and _ between.")
    classes = [line.strip() for line in body.classes.splitlines() if line.strip()]
    settings = make({"kind": body.kind, "per_round": body.per_round, "rounds": body.rounds})
    Project.begin(index.directory / name, settings, classes)
    return _enter(request, response, index, name, person.name)


@router.post("/api/projects/{name}/open")
def enter(name: str, request: Request, response: Response, index: Here, person: Lead) -> View:
    """Log in to a project as a lead."""
    return _enter(request, response, index, name, person.name)


def _enter(request: Request, response: Response, index: ProjectIndex, name: str, lead: str) -> View:
    app = index.app_of(name)
    if app is None:
        raise HTTPException(404, "There is no such project.")
    project: Project = app.state.site.project
    entered = project.store.enter(invitation(project.store, lead, lead=True))
    assert entered is not None  # nobody else knows the invitation
    session.set_cookie(request, response, entered, project.directory)
    return {"next": f"{app.state.site.root}/{'project' if not project.tasks.all() else ''}"}


def invitation(store: Store, name: str, lead: bool | None = None) -> str:
    """An invitation for somebody, also someone new. lead: make them one; None: if they are new and nobody else is."""
    known = next((person for person in store.people() if person.name == name and not person.revoked), None)
    if known is None:
        return store.add_person(name, lead)
    if lead and not known.lead:
        store.set_role(name, lead=True)
    return store.invite(name)


def _row(index: ProjectIndex, name: str) -> View:
    """What the list says of a project; of one that cannot be opened, what is wrong with it."""
    row = {"name": name, "kind": "", "tasks": "", "labels": ""}
    try:
        with Project.open(index.directory / name) as project:
            state, labels = project.state(), project.store.used_in_all()
            about = {"kind": project.settings.kind, "tasks": state.tasks, "labels": labels}
            return row | about | {"text": capital(state.text)}
    except InputError as error:
        return row | {"text": index.describe(error)}
