"""A report's figures as files, for papers, slides and READMEs: each with its legend, on a white ground."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.files import making, write_bytes
from accuacl.experiments.report.document import FAINT, Block, Document, Figure, Heading, LineStyle, Picture
from accuacl.experiments.report.formats import STYLE, wrapped

TYPES = {  # {type: the metadata to leave out, so that the same plot gives the same bytes}
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
WHITE, LIGHT_GREY = "#ffffff", "#d5d9df"
FILE_STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",  # letters as outlines: the font may be missing where the file is shown
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "grid.color": LIGHT_GREY,
    "figure.facecolor": WHITE,
    "axes.facecolor": WHITE,
    "savefig.facecolor": WHITE,
}


def write(report: Document, folder: Path, type: str) -> Document:
    """Write all figures and pictures into `folder`; return the report with the file of each filled in."""
    if type not in TYPES:
        raise InputError(f"figure type is {type!r}; give one of {', '.join(TYPES)}.")
    blocks: list[Block] = []
    names: set[str] = set()
    section = ""
    with making(folder):
        for block in report.blocks:
            if isinstance(block, Heading):
                section = block.text
            elif isinstance(block, Figure):
                path = folder / f"{_name(section, block.caption, names)}.{type}"
                write_bytes(path, draw(block, type))
                block = replace(block, file=path)
            elif isinstance(block, Picture):
                path = folder / f"{_name(section, block.title, names)}.png"
                write_bytes(path, block.png)
                block = replace(block, file=path)
            blocks.append(block)
    return Document(report.title, blocks)


def draw(figure: Figure, type: str) -> bytes:
    """Return the figure with all its panels and its legend, as the bytes of a file."""
    import matplotlib
    from matplotlib.figure import Figure as Plot

    columns = max(1, min(figure.columns, len(figure.panels)))
    rows = -(-len(figure.panels) // columns)
    width, height = (max(panel.size[side] for panel in figure.panels) for side in (0, 1))
    with matplotlib.rc_context(STYLE | FILE_STYLE):
        plot = Plot(figsize=(columns * width, rows * height), layout="constrained")
        for panel, axes in zip(figure.panels, plot.subplots(rows, columns, squeeze=False).flat, strict=False):
            axes.set_title(wrapped(panel.title, width))
            panel.draw(axes)
        for axes in plot.axes[len(figure.panels) :]:
            axes.set_visible(False)
        if figure.legend:
            _add_legend(plot, figure.legend)
        _on_white(plot)
        file = io.BytesIO()
        plot.savefig(file, format=type, metadata=TYPES[type])
    return file.getvalue()


def _add_legend(plot: Any, styles: Mapping[str, LineStyle]) -> None:
    """Put the legend above the panels, in as few lines as the width allows; the plot grows by the legend's height."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=label, **style.arguments()) for label, style in styles.items()]
    renderer = FigureCanvasAgg(plot).get_renderer()  # type: ignore[no-untyped-call]
    width, height = plot.get_size_inches()
    for lines in range(1, len(handles) + 1):
        columns = -(-len(handles) // lines)
        legend = plot.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False)
        box = legend.get_window_extent(renderer)
        if box.width / plot.dpi <= width or columns == 1:
            plot.set_size_inches(max(width, box.width / plot.dpi), height + box.height / plot.dpi)
            return
        legend.remove()


def _on_white(plot: Any) -> None:
    """Replace the colours that stand for those of a page by the colours of a light page."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.spines import Spine

    colors = [(line, line.get_color()) for line in plot.findobj(Line2D)]
    colors += [(spine, spine.get_edgecolor()) for spine in plot.findobj(Spine)]
    for drawn, color in colors:
        if to_hex(color) == FAINT:
            drawn.set_color(LIGHT_GREY)


def _name(section: str, caption: str, taken: set[str]) -> str:
    """Return a file's name from the figure's section and caption; it is added to the names that are taken.

    >>> _name("split-cifar10, memory 100 (cpu scale)", "Forgetting after each task: split-cifar10.", set())
    'split-cifar10-memory-100-cpu-scale-forgetting-after-each-task'
    """
    parts = section[:80], re.split("[:;,.(]", caption)[0][:80]
    base = re.sub("[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-") or "figure"
    name = next(name for name in (base, *(f"{base}-{i}" for i in range(2, len(taken) + 3))) if name not in taken)
    taken.add(name)
    return name
