"""Plots as SVG elements of a page: text stays text, colours follow the page, ids are unique on it."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import Any

from accuacl.report.formats.document import FAINT, INK, LineStyle, Panel

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


def panel(plot: Panel, prefix: str) -> str:
    """The panel as an <svg> element; `prefix` begins its ids, so that they are unique on the page."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        if plot.title:
            axes.set_title(plot.title)
        plot.draw(axes)

    return _svg(draw, plot.size, prefix, f'role="img" aria-label="{html.escape(plot.alt)}"', "constrained")


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
