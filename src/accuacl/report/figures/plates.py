"""A report's plots as files of their own, for papers, slides and READMEs: each figure with its legend on white."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.base.files import write_bytes
from accuacl.report.figures.looks import FAINT, Look
from accuacl.report.figures.svg import STYLE
from accuacl.report.formats.document import Document, Figure, Heading, Picture

TYPES = {  # what would make the same plot another file
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
WHITE, LINES = "#ffffff", "#d5d9df"
PLATE: dict[Any, Any] = {
    "svg.fonttype": "path",  # the letters go along, since fonts may be missing where it is shown
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "grid.color": LINES,
    "figure.facecolor": WHITE,
    "axes.facecolor": WHITE,
    "savefig.facecolor": WHITE,
}


def write(report: Document, folder: Path, type: str) -> Document:
    """Write all plots and pictures into `folder`; the report, in which each of them knows its file."""
    if type not in TYPES:
        raise InputError(f"figure type is {type!r}; give one of {', '.join(TYPES)}.")
    folder.mkdir(parents=True, exist_ok=True)
    blocks = list(report.blocks)
    taken: set[str] = set()
    section = ""
    for i, block in enumerate(blocks):
        if isinstance(block, Heading):
            section = block.text
        elif isinstance(block, Figure):
            path = folder / f"{_name(section, block.caption, taken)}.{type}"
            write_bytes(path, draw(block, type))
            blocks[i] = replace(block, file=path)
        elif isinstance(block, Picture):
            path = folder / f"{_name(section, block.title, taken)}.png"
            write_bytes(path, block.png)
            blocks[i] = replace(block, file=path)
    return Document(report.title, blocks)


def draw(what: Figure, type: str) -> bytes:
    """The figure with all its panels and its legend, as the bytes of a file."""
    import matplotlib
    from matplotlib.figure import Figure as Plot

    columns = max(1, min(what.columns, len(what.panels)))
    rows = -(-len(what.panels) // columns)
    width, height = (max(panel.size[side] for panel in what.panels) for side in (0, 1))
    with matplotlib.rc_context(STYLE | PLATE):
        plot = Plot(figsize=(columns * width, rows * height), layout="constrained")
        for panel, axes in zip(what.panels, plot.subplots(rows, columns, squeeze=False).flat, strict=False):
            axes.set_title(panel.title)
            panel.draw(axes)
        for axes in plot.axes[len(what.panels) :]:
            axes.set_visible(False)
        if what.legend:
            _add_legend(plot, what.legend)
        _on_white(plot)
        file = io.BytesIO()
        plot.savefig(file, format=type, metadata=TYPES[type])
    return file.getvalue()


def _add_legend(plot: Any, looks: Mapping[str, Look]) -> None:
    """Above the panels, in as few lines as there is room for; the plot grows by its height."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=label, **look.line()) for label, look in looks.items()]
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
    """Lines that follow a page's colours have the light page's."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.spines import Spine

    for line in plot.findobj(Line2D):
        if to_hex(line.get_color()) == FAINT:
            line.set_color(LINES)
    for spine in plot.findobj(Spine):
        if to_hex(spine.get_edgecolor()) == FAINT:
            spine.set_color(LINES)


def _name(section: str, caption: str, taken: set[str]) -> str:
    """A file's name from what it shows and where it stands in the report.

    >>> _name("split-cifar10, memory 100 (cpu scale)", "Forgetting after each task: split-cifar10.", set())
    'split-cifar10-memory-100-cpu-scale-forgetting-after-each-task'
    """
    parts = section[:80], re.split("[:;,.(]", caption)[0][:80]
    name = base = re.sub("[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-") or "figure"
    for i in count(2):
        if name not in taken:
            break
        name = f"{base}-{i}"
    taken.add(name)
    return name
