"""mkdocs: short code within a sentence stays on one line; browsers would break --first-round after its hyphens."""

from __future__ import annotations

import re
from typing import Any

SHORT = re.compile(r"<code>([^<\n]{1,28})</code>")


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """The page with its short code marked."""
    return marked(html)


def marked(html: str) -> str:
    """Short code with the class that site.css keeps together.

    >>> marked("<p>Give <code>--lr 0.1</code>.</p>")
    '<p>Give <code class="short">--lr 0.1</code>.</p>'
    """
    return SHORT.sub(r'<code class="short">\1</code>', html)
