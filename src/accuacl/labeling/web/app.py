"""The application: guard, routes, error responses, static files, and the trainer, which starts and stops with it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
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
from accuacl.labeling.web import (
    api,
    class_pages,
    dashboard,
    gallery,
    images,
    incoming,
    pages,
    people,
    project_page,
    review,
    session,
)
from accuacl.labeling.web.guard import HEADERS, Guard, Hosts
from accuacl.labeling.web.images import Decoder
from accuacl.labeling.web.incoming import Places
from accuacl.labeling.web.session import Limited, ProxyLogin
from accuacl.labeling.web.site import Entrance, Site, View
from accuacl.labeling.web.trainer import Trainer

HERE = Path(__file__).parent
router = APIRouter()
# With calls that are documented.
MODULES = (api, gallery, class_pages, people, project_page, incoming, dashboard, review)
SHOWN = 3  # wrong fields that a refusal names
PARTS = ("body", "query", "path", "header", "cookie")  # of a request


def make_app(
    project: Project,
    hosts: Hosts | None = None,
    trainer: Trainer | None = None,
    places: Places | None = None,
    root: str = "",
    proxy: ProxyLogin | None = None,
) -> FastAPI:
    """The page of one project.

    places: folders that leads may add data from. root: the path below which it is. proxy: a proxy that names the user.
    """
    site = Site(
        directory=project.directory,
        store=project.store,
        hosts=hosts or Hosts("127.0.0.1"),
        places=places or Places(),
        proxy=proxy,
        title=project.directory.resolve().name,
        root=root,
        project=project,
        trainer=trainer or Trainer(project),
        decoder=Decoder(lambda item: project.image_bytes(item)[0], project.image_stamp),
        pool_map=PoolMap(project.tasks, project.settings),
        uploads=Uploads(project),
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        site.trainer.start()
        yield
        site.trainer.stop()

    # Not FastAPI's own documentation, which loads scripts from other sites; `docs` has ours.
    app = FastAPI(title="accuacl", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    for module in (*MODULES, images, pages):
        app.include_router(module.router)
    app.include_router(router)
    prepare(app, site)
    return app


def prepare(app: FastAPI, site: Entrance) -> None:
    """What a project's page and the index of several have in common: sessions, static files, error responses, guard."""
    app.state.site = site
    for router in (session.router, pages.entrance):
        app.include_router(router)
    app.mount("/static", _Static(directory=HERE / "static"))
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(InputError, _sentence(409))  # what the project or its store refuses
    app.add_exception_handler(StoreUnavailable, _sentence(503))  # the disk is full or gone; the page tries again
    app.add_exception_handler(Exception, _bug)
    app.add_middleware(Guard, hosts=site.hosts)


class _Static(StaticFiles):
    """Browsers must ask for the files again each time, so that after an update no old script meets a new server."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


# What is said when a request fails


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 401 and _wants_page(request):
        wanted = quote(request.url.path) + ("?" + request.url.query if request.url.query else "")
        login = f"{request.app.state.site.root}/login"
        return RedirectResponse(login if wanted == "/" else f"{login}?{urlencode({'next': wanted}, safe='/')}", 303)
    return _answer(request, error.status_code, str(error.detail), error.headers)


def _malformed(request: Request, error: Exception) -> Response:
    """What the request's fields should be."""
    assert isinstance(error, RequestValidationError)
    if _wants_page(request):
        return _answer(request, 404, "Not Found")
    return _answer(request, 422, describe_malformed(error.errors()))


def _sentence(status: int) -> Callable[[Request, Exception], Response]:
    """Answer with the sentence of the error."""
    return lambda request, error: _answer(request, status, request.app.state.site.describe(error))


def _bug(request: Request, error: Exception) -> Response:
    """Anything else. The server logs the traceback. This answer does not pass the guard, so it sets its headers."""
    detail = "Something went wrong on the server; its log has the details."
    return _answer(request, 500, detail, HEADERS | {"Cache-Control": "no-store"})


def _answer(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A page for people who have opened an address, JSON for scripts."""
    if _wants_page(request):
        return HTMLResponse(pages.trouble(request, status, detail), status, headers=headers)
    return JSONResponse({"detail": detail}, status, headers=headers)


def _wants_page(request: Request) -> bool:
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def describe_malformed(errors: Iterable[Mapping[str, Any]]) -> str:
    """A sentence of what pydantic found wrong. Of what was sent it has the type alone: it may be a token.

    >>> describe_malformed([{"loc": ("body", "request"), "type": "string_too_short", "input": "abc",
    ...                      "msg": "String should have at least 8 characters"}])
    'The request is not valid: request is text of 3 characters, and should have at least 8 characters.'
    """
    faults = list(dict.fromkeys(map(_fault, errors)))
    more = [f"and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
    return f"The request is not valid: {'; '.join([*faults[:SHOWN], *more])}."


def _fault(error: Mapping[str, Any]) -> str:
    """What is wrong with one field."""
    loc = [str(part)[:60] for part in error["loc"]]
    loc = loc[1:] if loc and loc[0] in PARTS else loc
    field = "/".join(loc) or "the body"
    if error["type"] == "missing":
        return f"{field} is missing" if loc else "it has no body; send JSON"
    if error["type"] == "json_invalid":
        return f"invalid JSON at character {loc[-1] if loc else 0}"
    wanted = str(error["msg"]).partition(" should ")[2]
    return f"{field} is {_kind(error.get('input'))}, and " + (f"should {wanted}" if wanted else "cannot be used")


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f"text of {len(value)} character{'s' * (len(value) != 1)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return "a whole number" if isinstance(value, int) else "a number with a fraction"
    return f"a list of {len(value)}" if isinstance(value, list | tuple) else "an object"


# The documentation of the calls


@router.get("/openapi.json", include_in_schema=False)
def openapi(person: Limited) -> View:
    return described_calls()


def described_calls() -> View:
    """All calls below /api, as OpenAPI."""
    every = [route for module in (session, *MODULES) for route in module.router.routes]
    return get_openapi(
        title="accuacl",
        version=accuacl.__version__,
        description="Label a project's examples. Log in once; the cookie says who you are.",
        routes=[route for route in every if isinstance(route, APIRoute) and route.path.startswith("/api/")],
    )


@router.get("/docs", include_in_schema=False, response_class=HTMLResponse)
def docs(request: Request, person: Limited) -> str:
    """A page that lists the calls; it loads nothing from elsewhere."""
    return pages.render(request, "api.html", person, calls=calls())


def calls() -> list[View]:
    """Method, path, meaning and fields of each call below /api."""
    schema, listed = described_calls(), []
    for path, methods in schema["paths"].items():
        for method, call in methods.items():
            fields = [_field(p["name"], p["schema"], p.get("required", False)) for p in call.get("parameters", ())]
            body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            model = schema["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
            needed = model.get("required", ())
            fields += [_field(name, value, name in needed) for name, value in model.get("properties", {}).items()]
            text = " ".join(call.get("description", "").split())
            listed.append({"method": method.upper(), "path": path, "text": text, "fields": fields})
    return listed


LIMITS = {  # of a field; the largest number that an integer may be is of no interest
    "minimum": "from {:g}",
    "minLength": "length at least {}",
    "maxLength": "length at most {}",
    "maxItems": "at most {} of them",
}


def _field(name: str, schema: View, needed: bool) -> View:
    kinds = [schema, *schema.get("anyOf", ())]
    kind = " or ".join(str(each["type"]) for each in kinds if each.get("type", "null") != "null") or "any"
    limits = [text.format(schema[limit]) for limit, text in LIMITS.items() if limit in schema]
    return {"name": name, "kind": ", ".join([kind, *limits]), "needed": needed}
