"""The application: guard, routes, error responses, static files, and the trainer, which starts and stops with it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project
from accuacl.labeling.store import StoreUnavailable
from accuacl.labeling.web import (
    api,
    api_docs,
    class_pages,
    gallery,
    images,
    map_api,
    pages,
    people,
    project_page,
    review,
)
from accuacl.labeling.web.decoder import Decoder
from accuacl.labeling.web.guard import HEADERS, Guard, Hosts
from accuacl.labeling.web.limits import Limit
from accuacl.labeling.web.malformed import why
from accuacl.labeling.web.paths import sentence
from accuacl.labeling.web.trainer import Trainer, places

HERE = Path(__file__).parent


def make_app(project: Project, hosts: Hosts | None = None, trainer: Trainer | None = None) -> FastAPI:
    """The page of one project."""
    trainer, hosts = trainer or Trainer(project), hosts or Hosts("127.0.0.1")

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        trainer.start()
        yield
        trainer.stop()

    # Not FastAPI's own documentation, which loads scripts from other sites; `api_docs` has ours.
    app = FastAPI(title="accuacl", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.project, app.state.trainer = project, trainer
    app.state.counted = (-1, -1, 0)  # a task, a round, and how many labels the task had before that round
    app.state.trained = (-1, -1, None)  # a task, a round, and what the training before it has brought
    app.state.decoder = Decoder(lambda item: project.image_bytes(item)[0], project.image_stamp)
    app.state.pool_map, app.state.uploads = project.pool_map(), project.uploads()
    app.state.public_url, app.state.loopback_only = hosts.public_url, hosts.loopback_only
    app.state.requests = Limit(burst=200, each_second=40)  # what a person's page sends, and several times that
    app.state.image_requests = Limit(burst=2000, each_second=200)  # the images of many pages, and three pages a second
    app.state.class_changes = Limit(burst=20, each_second=0.5)
    app.state.doubts = (None, {})  # labels, and which of them are likely mistakes
    app.state.expected = {}  # person: the items that their page has been told of
    app.include_router(api.router)
    app.include_router(gallery.router)
    app.include_router(class_pages.router)
    app.include_router(people.router)
    app.include_router(project_page.router)
    app.include_router(images.router)
    app.include_router(map_api.router)
    app.include_router(pages.router)
    app.include_router(api_docs.router)
    app.include_router(review.router)
    app.mount("/static", _Static(directory=HERE / "static"))
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(InputError, _conflict)
    app.add_exception_handler(StoreUnavailable, _unavailable)
    app.add_exception_handler(Exception, _bug)
    app.add_middleware(Guard, hosts=hosts)
    return app


class _Static(StaticFiles):
    """Browsers must ask for the files again each time, so that after an update no old script meets a new server."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 401 and _wants_page(request):
        wanted = quote(request.url.path) + ("?" + request.url.query if request.url.query else "")
        return RedirectResponse("/login" if wanted == "/" else f"/login?{urlencode({'next': wanted}, safe='/')}", 303)
    return _say(request, error.status_code, str(error.detail), error.headers)


def _malformed(request: Request, error: Exception) -> Response:
    """What the request's fields should be."""
    assert isinstance(error, RequestValidationError)
    if _wants_page(request):
        return _say(request, 404, "Not Found")
    return _say(request, 422, why(error.errors()))


def _conflict(request: Request, error: Exception) -> Response:
    """What the project or its store refuses, with its sentence."""
    return _say(request, 409, sentence(error, places(request.app.state.project)))


def _unavailable(request: Request, error: Exception) -> Response:
    """The disk is full or gone; the page sends the request again until it succeeds."""
    return _say(request, 503, sentence(error, places(request.app.state.project)))


def _bug(request: Request, error: Exception) -> Response:
    """Anything else. The server logs the traceback. This answer does not pass the guard, so it sets its headers."""
    detail = "Something went wrong on the server; its log has the details."
    return _say(request, 500, detail, HEADERS | {"Cache-Control": "no-store"})


def _say(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A page for people who have opened an address, JSON for scripts."""
    if _wants_page(request):
        return HTMLResponse(pages.trouble(request, status, detail), status, headers=headers)
    return JSONResponse({"detail": detail}, status, headers=headers)


def _wants_page(request: Request) -> bool:
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")
