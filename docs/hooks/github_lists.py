"""mkdocs: lists as GitHub reads them, where Python-Markdown wants a blank line before and four blanks to nest."""

from __future__ import annotations

import re
from typing import Any

ITEM = re.compile(r"^( *)(?:[-*]|\d+\.) ")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with its lists made plain."""
    return spaced(markdown)


def spaced(markdown: str) -> str:
    """A blank line before each list that follows a paragraph, and four blanks before each item of an inner list.

    >>> print(spaced("They are\\n- one\\n  line\\n  - inner\\n- two"))
    They are
    <BLANKLINE>
    - one
      line
        - inner
    - two
    """
    lines: list[str] = []
    in_list = in_code = False
    for line in markdown.splitlines():
        item = ITEM.match(line)
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif in_code:
            pass
        elif item:
            if not in_list and lines and lines[-1].strip():
                lines.append("")
            if 2 <= len(item[1]) <= 3 and in_list:
                line = " " * (4 - len(item[1])) + line
            in_list = True
        elif line.strip() and not line.startswith(" ") and (not lines or not lines[-1].strip()):
            in_list = False  # a paragraph that begins at the margin after a blank line
        lines.append(line)
    return "\n".join(lines)
