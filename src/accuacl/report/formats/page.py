"""A document as one self-contained HTML file: no scripts, no fonts, nothing from the network."""

from __future__ import annotations

import base64
from importlib import resources

from accuacl.report.formats import svg
from accuacl.report.formats.document import Document, Heading


def render(report: Document) -> str:
    """The page, from page.html.jinja; all text is escaped there but for the style sheet and our own SVG."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("accuacl.report", "formats"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "panel": lambda panel, prefix: Markup(svg.panel(panel, prefix)),
        "swatch": lambda style, prefix: Markup(svg.swatch(style, prefix)),
        "base64": lambda data: base64.b64encode(data).decode(),
    }
    return environment.get_template("page.html.jinja").render(
        title=report.title,
        style=Markup(resources.files("accuacl.report.formats").joinpath("page.css").read_text()),
        blocks=[(type(block).__name__, block) for block in report.blocks],
        sections=[(i, b.text) for i, b in enumerate(report.blocks) if isinstance(b, Heading) and b.level == 2],
    )
