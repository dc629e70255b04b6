"""A document as one self-contained HTML file: no scripts, no fonts, nothing from the network."""

from __future__ import annotations

import base64
import html
import io
import re
import textwrap
from collections.abc import Callable
from importlib import resources
from typing import Any

from accuacl.experiments.report.document import FAINT, INK, Document, Heading, LineStyle, Panel


def render(report: Document) -> str:
    """The page, from page.html.jinja; all text is escaped there but for the style sheet and our own SVG."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("accuacl.experiments.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "panel": lambda panel, prefix, columns: Markup(svg_panel(panel, prefix, columns)),
        "swatch": lambda style, prefix: Markup(swatch(style, prefix)),
        "base64": lambda data: base64.b64encode(data).decode(),
    }
    return environment.get_template("page.html.jinja").render(
        title=report.title,
        style=Markup(resources.files("accuacl.experiments.report").joinpath("page.css").read_text(encoding="utf-8")),
        blocks=[(type(block).__name__, block) for block in report.blocks],
        sections=[(i, b.text) for i, b in enumerate(report.blocks) if isinstance(b, Heading) and b.level == 2],
    )


PAGE = 12.0  # inches: the width of the page that figures fill
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "accuacl",  # the same plot gives the same bytes
    "text.parse_math": False,  # names may contain dollar signs
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


def svg_panel(plot: Panel, prefix: str, columns: int = 4) -> str:
    """The panel as an <svg> element, as wide as a column of the page; `prefix` makes its ids unique on the page."""
    width, height = plot.size
    if plot.stretch:
        width = max(width, PAGE / max(1, columns))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        if plot.title:
            axes.set_title(wrapped(plot.title, width))
        plot.draw(axes)

    return _svg(draw, (width, height), prefix, f'role="img" aria-label="{html.escape(plot.alt)}"', "constrained")


def wrapped(title: str, inches: float) -> str:
    """The title in lines that fit above a panel of this width."""
    return textwrap.fill(title, max(12, int(12 * inches)))


def swatch(style: LineStyle, prefix: str) -> str:
    """A short piece of a curve, to stand beside its name in a legend."""

    def draw(figure: Any) -> None:
        from matplotlib.lines import Line2D

        figure.add_artist(Line2D([0.05, 0.5, 0.95], [0.5] * 3, markevery=[1], **style.arguments()))

    return _svg(draw, (0.42, 0.16), prefix, 'aria-hidden="true"', None)


def _svg(
    draw: Callable[[Any], None], size: tuple[float, float], prefix: str, attributes: str, layout: str | None
) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout=layout)  # type: ignore[arg-type]
        draw(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(text.getvalue(), prefix, attributes)


def _inline(text: str, prefix: str, attributes: str) -> str:
    """Matplotlib's SVG file as an element of a page."""
    body = text[text.index("<svg") :]
    opening, _, inside = body.partition(">")
    box = re.search(r'viewBox="[^"]*"', opening)
    inside = re.sub(r"<metadata>.*?</metadata>", "", inside, flags=re.DOTALL)
    inside = re.sub(r"<!--.*?-->", "", inside, flags=re.DOTALL)
    inside = re.sub(r'\bid="([^"]*)"', rf'id="{prefix}-\1"', inside)
    inside = inside.replace("url(#", f"url(#{prefix}-").replace('xlink:href="#', f'href="#{prefix}-')
    inside = inside.replace(INK, "currentColor").replace(FAINT, "var(--faint)")
    inside = inside.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    width = re.search(r'width="([\d.]+)pt"', opening)
    pixels = float(width.group(1)) * 96 / 72 if width else 400
    inside = re.sub(r"\s*\n\s*", "\n", inside)
    return f'<svg {box.group(0) if box else ""} style="width:{pixels:.0f}px" {attributes}>{inside}'.strip()
