"""The calls that programs can make, behind the log-in: `/docs` for people, `/openapi.json` for programs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

import accuacl
from accuacl.labeling.web import api, class_pages, gallery, map_api, people, project_page, review
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Limited

router = APIRouter()


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request, person: Limited) -> dict[str, Any]:
    """All calls below /api, as OpenAPI."""
    modules = (api, class_pages, gallery, map_api, people, project_page, review)
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
