"""The application: guard, routes, error responses, static files, and the trainer, which starts and stops with it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import accuacl
from accuacl.base.errors import InputError
from accuacl.labeling.project import PoolMap, Project, Uploads
from accuacl.labeling.store import StoreUnavailable
from accuacl.labeling.web import api, class_pages, dashboard, gallery, images, pages, people, project_page, review
from accuacl.labeling.web.guard import HEADERS, Guard, Hosts
from accuacl.labeling.web.images import Decoder
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Limit, Limited, sentence
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
    app.state.pool_map, app.state.uploads = PoolMap(project.tasks, project.settings), Uploads(project)
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
    app.include_router(dashboard.router)
    app.include_router(pages.router)
    app.include_router(router)
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


router = APIRouter()


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request, person: Limited) -> dict[str, Any]:
    """All calls below /api, as OpenAPI."""
    modules = (api, class_pages, gallery, dashboard, people, project_page, review)
    every = [route for module in modules for route in module.router.routes]
    routes = [route for route in every if isinstance(route, APIRoute) and route.path.startswith("/api/")]
    return get_openapi(
        title="accuacl",
        version=accuacl.__version__,
        description="Label a project's examples. Log in once; the cookie says who you are.",
        routes=routes,
    )


@router.get("/docs", include_in_schema=False, response_class=HTMLResponse)
def docs(request: Request, person: Limited) -> str:
    """The same as a page; it loads nothing from elsewhere."""
    return render(request, "api.html", person, calls=_calls(openapi(request, person)))


def _calls(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Method, path, meaning and fields of each call."""
    calls = []
    for path, methods in schema["paths"].items():
        for method, call in methods.items():
            fields = [_field(p["name"], p["schema"], p.get("required", False)) for p in call.get("parameters", ())]
            body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            model = schema["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            needed = model.get("required", ())
            fields += [_field(name, value, name in needed) for name, value in model.get("properties", {}).items()]
            text = " ".join(call.get("description", "").split())
            calls.append({"method": method.upper(), "path": path, "text": text, "fields": fields})
    return calls


def _field(name: str, schema: dict[str, Any], needed: bool) -> dict[str, Any]:
    kinds = [schema, *schema.get("anyOf", ())]
    kind = " or ".join(str(each["type"]) for each in kinds if each.get("type", "null") != "null") or "any"
    limits = [text for least, most, unit in LIMITS if (text := _range(schema.get(least), schema.get(most), unit))]
    return {"name": name, "kind": ", ".join([kind, *limits]), "needed": needed}


LIMITS = [("minimum", "", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " of them")]


def _range(least: float | None, most: float | None, unit: str) -> str:
    """As a text; the largest number that an integer may be is of no interest.

    >>> _range(8, 100, " characters"), _range(None, 400, " characters"), _range(0, None, "")
    ('8 to 100 characters', 'up to 400 characters', 'from 0')
    """
    if most is None:
        return "" if least is None else f"from {least:g}{unit}"
    return f"{least:g} to {most:g}{unit}" if least else f"up to {most:g}{unit}"


SHOWN = 3  # wrong fields that are named
PLACES = ("body", "query", "path", "header", "cookie")


def why(errors: Iterable[Mapping[str, Any]]) -> str:
    """A sentence of what pydantic found wrong. What was sent is told by its type alone: it may be a token.

    >>> why([{"loc": ("body", "request"), "type": "string_too_short", "input": "abc",
    ...       "msg": "String should have at least 8 characters"}])
    'The request is not valid: request is text of 3 characters, and should have at least 8 characters.'
    """
    found = list(dict.fromkeys(map(_one, errors)))
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return f"The request is not valid: {'; '.join([*found[:SHOWN], *more])}."


def _one(error: Mapping[str, Any]) -> str:
    loc = [str(part)[:60] for part in error["loc"]]
    loc = loc[1:] if loc and loc[0] in PLACES else loc
    field = "/".join(loc) or "the body"
    if error["type"] == "missing":
        return f"{field} is missing" if loc else "it has no body; send JSON"
    if error["type"] == "json_invalid":
        return f"its body is no JSON from character {loc[-1] if loc else 0} on"
    wanted = str(error["msg"]).partition(" should ")[2]
    return f"{field} is {_kind(error.get('input'))}, and " + (f"should {wanted}" if wanted else "cannot be taken")


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f"text of {len(value)} character{'s' * (len(value) != 1)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return "a whole number" if isinstance(value, int) else "a number with a fraction"
    return f"a list of {len(value)}" if isinstance(value, list | tuple) else "an object"
