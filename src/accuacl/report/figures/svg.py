"""Plots as SVG that stands in a page: its text is text, its colours follow the page, its ids are its own."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import Any

from accuacl.report.figures.looks import FAINT, INK, Look
from accuacl.report.formats.document import Panel

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "accuacl",  # the same plot is the same text
    "text.parse_math": False,  # names may have dollar signs
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


def panel(what: Panel, prefix: str) -> str:
    """The panel as an <svg> element; `prefix` keeps its ids apart from those of others on the page."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        if what.title:
            axes.set_title(what.title)
        what.draw(axes)

    return _svg(draw, what.size, prefix, f'role="img" aria-label="{html.escape(what.alt)}"', "constrained")


def swatch(look: Look, prefix: str) -> str:
    """A bit of the line that stands for a label, for legends."""

    def draw(figure: Any) -> None:
        from matplotlib.lines import Line2D

        figure.add_artist(Line2D([0.05, 0.5, 0.95], [0.5] * 3, markevery=[1], **look.line()))

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
    """Matplotlib's file as an element of a page."""
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
