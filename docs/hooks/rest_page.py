"""mkdocs: writes reference/http.md from the routes of the page's server, so that it cannot be out of date."""

from __future__ import annotations

from typing import Any

from accuacl.labeling.web.app import calls

PAGE = "reference/http.md"
TOP = """\
# HTTP calls

This page lists the calls that the server of `accuacl project serve` answers; it is written from the routes themselves.
In Python, [`accuacl.labeling.client.Client`](python.md#accuacl.labeling.client.Client) makes these calls;
[Projects](../projects.md#in-python-and-over-http) has an example. A server has the same list under `/docs`, behind
the log-in, and as OpenAPI under `/openapi.json`.

- Log in once: `POST /api/login` with the token of an invitation, which works once. Keep the cookie from the answer,
  and send it with every call.
- Bodies are JSON (`Content-Type: application/json`, up to 64 KiB), and so are answers. Only files are sent as they
  are (`application/octet-stream`).
- Calls that save something take a `request`: an id that you make up, such as a UUID. A call that is sent again with
  the same id counts once.
- Answers to `/api/next`, `/api/label`, `/api/skip` and `/api/undo` have the `state` of the round, the `classes`,
  and the next `pick`. `pick` is null while the model learns, while the rest of a round is being chosen and while
  others hold all examples: ask again after a second, until `state.phase` is `done`.
- A refusal has one sentence in `detail`. Status 401: log in; 403: only leads may do this; 409: the project cannot do
  this in its present state; 413: too long; 422: a field is missing or wrong; 429: too often, with the seconds to wait
  in `Retry-After`; 503: the disk is full or gone, send it again later.
- On a server with several projects, the calls of each are below its own address: `/p/NAME/api/...`.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the page to those of the site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """All calls and their fields, as Markdown."""
    lines = [TOP]
    for call in calls():
        lines += [f"## {call['method']} {call['path']}", "", call["text"], ""]
        if call["fields"]:
            lines += ["| field | |", "|---|---|"]
            lines += [
                f"| `{field['name']}` | {field['kind']}{'' if field['needed'] else '; may be left out'} |"
                for field in call["fields"]
            ]
            lines.append("")
    return "\n".join(lines)
