"""mkdocstrings: examples (>>>) in docstrings become code blocks; Markdown would make quotes of them."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?m)^>>> .*(?:\n(?!\s*$).*)*")


class Fences(griffe.Extension):
    """Sets fences around the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with each example in a fence."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{found.group()}\n```", text)
