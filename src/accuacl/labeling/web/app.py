"""The application: guard, routes, errors in plain words, static files, and the trainer, which lives as long as it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from accuacl.labeling.project import Project
from accuacl.labeling.web import api, images, pages, session
from accuacl.labeling.web.guard import Guard, Hosts
from accuacl.labeling.web.pictures import THUMB, picture
from accuacl.labeling.web.trainer import Trainer

HERE = Path(__file__).parent


def make_app(project: Project, hosts: Hosts | None = None, trainer: Trainer | None = None) -> FastAPI:
    """The page of one project."""
    trainer = trainer or Trainer(project)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        trainer.start()
        yield
        trainer.stop()

    # No generated documentation: it would load scripts from elsewhere.
    app = FastAPI(title="accuacl", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.project, app.state.trainer = project, trainer
    app.state.counted = (-1, -1, 0)  # a task, a round, and how many labels the task had before it
    app.state.picture = lambda item: picture(project.image_bytes(item)[0])
    # Kept, 50 MB at most: else all of a contact sheet's large images would be decoded for each who looks at it.
    app.state.thumb = lru_cache(maxsize=256)(lambda item: picture(project.image_bytes(item)[0], THUMB))
    app.state.cookie = session.cookie_name(project.directory)
    app.include_router(api.router)
    app.include_router(images.router)
    app.include_router(pages.router)
    app.mount("/static", _Static(directory=HERE / "static"))
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(ValueError, _conflict)
    app.add_exception_handler(OSError, _unavailable)
    app.add_middleware(Guard, hosts=hosts or Hosts("127.0.0.1"))
    return app


class _Static(StaticFiles):
    """Asked for again each time: after an update no old script may meet a new server."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 401 and request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/login", 303)
    return JSONResponse({"detail": error.detail}, error.status_code, headers=error.headers)


def _malformed(request: Request, error: Exception) -> Response:
    """Without pydantic's account, which would repeat what was sent, a token perhaps."""
    assert isinstance(error, RequestValidationError)
    fields = sorted({str(one["loc"][-1]) for one in error.errors()})
    return JSONResponse({"detail": f"Wrong input: {', '.join(fields)[:200]}."}, 422)


def _conflict(request: Request, error: Exception) -> Response:
    """What the store refuses, it says why."""
    text = str(error)
    return JSONResponse({"detail": text[:1].upper() + text[1:]}, 409)


def _unavailable(request: Request, error: Exception) -> Response:
    """The disk is full or gone; the page sends the same again until it is kept."""
    return JSONResponse({"detail": str(error)}, 503)
