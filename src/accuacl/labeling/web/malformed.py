"""Why a request is not valid: which field, what was sent for it and what is wanted, without repeating what was sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
