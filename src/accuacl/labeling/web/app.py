"""The application: guard, routes, error responses, static files, and the trainer, which starts and stops with it."""

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

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project
from accuacl.labeling.store import StoreUnavailable
from accuacl.labeling.web import api, images, pages, session
from accuacl.labeling.web.guard import HEADERS, Guard, Hosts
from accuacl.labeling.web.pictures import THUMB, picture
from accuacl.labeling.web.trainer import Trainer, sentence

HERE = Path(__file__).parent


def make_app(project: Project, hosts: Hosts | None = None, trainer: Trainer | None = None) -> FastAPI:
    """The page of one project."""
    trainer = trainer or Trainer(project)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        trainer.start()
        yield
        trainer.stop()

    # No generated documentation: it would load scripts from other sites.
    app = FastAPI(title="accuacl", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.project, app.state.trainer = project, trainer
    app.state.counted = (-1, -1, 0)  # a task, a round, and how many labels the task had before that round
    app.state.picture = lambda item: picture(project.image_bytes(item)[0])
    # Thumbnails are cached (50 MB at most): decoding a dashboard's large images anew for every viewer is slow.
    app.state.thumb = lru_cache(maxsize=256)(lambda item: picture(project.image_bytes(item)[0], THUMB))
    app.state.cookie = session.cookie_name(project.directory)
    app.include_router(api.router)
    app.include_router(images.router)
    app.include_router(pages.router)
    app.mount("/static", _Static(directory=HERE / "static"))
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(InputError, _conflict)
    app.add_exception_handler(StoreUnavailable, _unavailable)
    app.add_exception_handler(Exception, _bug)
    app.add_middleware(Guard, hosts=hosts or Hosts("127.0.0.1"))
    return app


class _Static(StaticFiles):
    """Browsers must ask for the files again each time, so that after an update no old script meets a new server."""

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
    """Name the wrong fields, but do not repeat what was sent, as pydantic's message does: it may be a token."""
    assert isinstance(error, RequestValidationError)
    fields = sorted({str(wrong["loc"][-1]) for wrong in error.errors()})
    return JSONResponse({"detail": f"The request is not valid: {', '.join(fields)[:200]}."}, 422)


def _conflict(request: Request, error: Exception) -> Response:
    """What the project or its store refuses, with its sentence."""
    return JSONResponse({"detail": sentence(error)}, 409)


def _unavailable(request: Request, error: Exception) -> Response:
    """The disk is full or gone; the page sends the request again until it succeeds."""
    return JSONResponse({"detail": sentence(error)}, 503)


def _bug(request: Request, error: Exception) -> Response:
    """Anything else. The server logs the traceback. This answer does not pass the guard, so it sets its headers."""
    detail = "Something went wrong on the server; its log has the details."
    return JSONResponse({"detail": detail}, 500, headers=HEADERS | {"Cache-Control": "no-store"})
