"""mkdocstrings: docstrings in the words of the source, as Markdown: arguments as a list, examples as code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?m)^>>> .*(?:\n(?!\s*$).*)*")
DIRECTIVE = re.compile(r" +# doctest: .*")


class AsMarkdown(griffe.Extension):
    """Lists the arguments and sets fences around the examples of every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            names = [each.name for each in getattr(obj, "parameters", ())] + list(obj.members)
            obj.docstring.value = fenced(listed(obj.docstring.value, names))


def fenced(text: str) -> str:
    """The text with each example in a fence; Markdown would make quotes of them."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{DIRECTIVE.sub('', found.group())}\n```", text)


def listed(text: str, names: Iterable[str]) -> str:
    """The text with a list for each paragraph that describes arguments, one sentence after the other.

    >>> print(listed("A sum.\\n\\na: the first. It counts. b: the\\nsecond: 2.", ["a", "b"]))
    A sum.
    <BLANKLINE>
    - `a`: the first. It counts.
    - `b`: the
      second: 2.
    """
    name = f"`?(?:{'|'.join(names) or '-'})`?"  # nothing is called "-"
    begins = f"{name}(?:, {name})*:\\s"
    paragraphs = text.split("\n\n")
    for place, paragraph in enumerate(paragraphs):
        if re.match(begins, paragraph):
            items = re.split(rf"(?<=[.)])\s+(?={begins})", paragraph)
            paragraphs[place] = "\n".join(_item(*re.split(r":\s", text, maxsplit=1)) for text in items)
    return "\n\n".join(paragraphs)


def _item(names: str, text: str) -> str:
    coded = re.sub(r"`?(\w+)`?", r"`\1`", names)
    return f"- {coded}: {text}".replace("\n", "\n  ")
