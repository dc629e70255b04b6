r"""A document as LaTeX to \input, with the packages that its first lines name, as Markdown, or as HTML.

The HTML is one self-contained file: no scripts, no fonts, nothing from the network.
"""

from __future__ import annotations

import base64
import html
import io
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from accuacl.experiments.report.document import (
    FAINT,
    INK,
    Code,
    Document,
    Figure,
    Heading,
    LineStyle,
    Panel,
    Picture,
    Points,
    Table,
    TableCell,
    Text,
)

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "/": r"/\allowbreak{}",  # lets lines break in long paths
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
} | {c: f"\\{c}" for c in "&%$#_"}


PREAMBLE = r"\usepackage{booktabs} \usepackage{longtable} \usepackage{graphicx} \usepackage[T1]{fontenc}"
HOW_TO_USE = rf"""% \input this into a document of yours. Paths of figures are relative to this file.
% Your preamble needs {PREAMBLE}."""
KNOWN = {chr(code) for code in (*range(32, 0x180), *range(0x2013, 0x2027))}  # what pdfTeX can set: letters, dashes
# Other characters are set by XeTeX and LuaTeX, if the font has them; pdfTeX sets their number.
OTHERS = r"\providecommand{\anychar}[2]{\ifdefined\Umathcode#1\else[U+#2]\fi}"
FITTING = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # shrinks a table that is too wide
LONG = 40  # tables with more rows may not fit on a page, and cells with more letters are broken into lines


def render_latex(report: Document, folder: Path) -> str:
    """Return the text of a file in `folder`."""
    blocks = [f"% {_one_line(report.title)}\n{HOW_TO_USE}"]
    for block in report.blocks:
        if isinstance(block, Heading):
            blocks.append(rf"\{'sub' * (block.level - 2)}section{{{latex_text(block.text)}}}")
        elif isinstance(block, Text):
            blocks.append(rf"\emph{{{latex_text(block.text)}}}" if block.notice else latex_text(block.text))
        elif isinstance(block, Points):
            items = "\n".join(rf"\item {latex_text(point)}" for point in block.texts)
            blocks.append(f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}")
        elif isinstance(block, Code):
            blocks.append("\n".join(f"% {_one_line(line)}" for line in (f"{block.title}:", *block.lines)))
        elif isinstance(block, Table):
            blocks.append(_latex_table(block))
        elif isinstance(block, Figure) and block.file:
            blocks.append(_latex_figure(block.caption, link(block.file, folder), r"\linewidth"))
        elif isinstance(block, Picture) and block.file:
            blocks.append(_latex_figure(block.title, link(block.file, folder), r"0.6\linewidth"))
    if any(r"\anychar" in part for part in blocks):
        blocks.insert(1, OTHERS)
    return "\n\n".join(blocks) + "\n"


def render_markdown(report: Document, folder: Path) -> str:
    """Return the text of a file in `folder`."""
    blocks = [f"# {markdown_text(report.title)}"]
    for block in report.blocks:
        if isinstance(block, Heading):
            blocks.append(f"{'#' * block.level} {markdown_text(block.text)}")
        elif isinstance(block, Text):
            blocks.append(f"> {markdown_text(block.text)}" if block.notice else markdown_text(block.text))
        elif isinstance(block, Points):
            blocks.append("\n".join(f"- {markdown_text(point)}" for point in block.texts))
        elif isinstance(block, Code):
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(block.lines)) or [""]))
            blocks.append(f"{markdown_text(block.title)}:\n\n{fence}sh\n" + "\n".join(block.lines) + f"\n{fence}")
        elif isinstance(block, Table):
            blocks.append(_markdown_table(block))
        elif isinstance(block, Figure) and block.file:
            alt = " ".join(panel.alt for panel in block.panels)
            blocks.append(_markdown_image(alt, block.caption, link(block.file, folder)))
        elif isinstance(block, Picture) and block.file:
            blocks.append(_markdown_image(block.alt, block.title, link(block.file, folder)))
    return "\n\n".join(blocks) + "\n"


def link(file: Path, folder: Path) -> str:
    """Return the file's path as seen from the folder."""
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def latex_text(plain: str) -> str:
    """Return plain text with all characters escaped that have a meaning in LaTeX.

    >>> latex_text("a_b & 5 % ^")
    'a\\\\_b \\\\& 5 \\\\% \\\\textasciicircum{}'
    """
    return "".join(
        SPECIAL.get(c) or (c if c in KNOWN else rf"\anychar{{{c}}}{{{ord(c):04X}}}") for c in _one_line(plain)
    )


def markdown_text(plain: str) -> str:
    """Return plain text with all characters escaped that have a meaning in Markdown.

    >>> markdown_text("a_b|<i>")
    'a\\\\_b\\\\|&lt;i&gt;'
    """
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", html.escape(_one_line(plain), quote=False))


def _one_line(plain: str) -> str:
    return " ".join(plain.split())


def _latex_table(table: Table) -> str:
    """Return a floating table, or one that page ends may break if it is long or has sentences in a column."""
    prose = any(len(cell.text) > LONG for group in table.groups for row in group.rows for cell in row.cells)
    words = r"p{0.6\linewidth}" if prose else "l"
    kinds = "l" * len(table.heads) + "".join(words if column.text else "r" for column in table.columns)
    caption = rf"\caption{{{latex_text(table.caption)}}}"
    note = [rf"\smallskip\footnotesize {latex_text(table.note)}"] if table.note else []
    head, body = _latex_head(table), [*_latex_body(table), r"\bottomrule"]
    if prose or sum(len(group.rows) for group in table.groups) > LONG:
        begin = [r"{\small", rf"\begin{{longtable}}{{{kinds}}}", rf"{caption}\\"]
        return "\n".join([*begin, *head, r"\endhead", *body, r"\end{longtable}", *note, "}"])
    begin = [r"\begin{table}", r"\centering\small", caption, FITTING, rf"\begin{{tabular}}{{{kinds}}}"]
    gap = [""] if note else []
    return "\n".join([*begin, *head, *body, r"\end{tabular}}", *gap, *note, r"\end{table}"])


def _latex_head(table: Table) -> list[str]:
    lines = [r"\toprule"]
    if any(column.shared for column in table.columns):
        spans, rules, at = [""] * len(table.heads), "", len(table.heads) + 1
        for shared, columns in table.headers():
            spans.append(rf"\multicolumn{{{len(columns)}}}{{c}}{{{latex_text(shared)}}}")
            rules += rf"\cmidrule(lr){{{at}-{at + len(columns) - 1}}}" if shared else ""
            at += len(columns)
        lines += [_latex_row(spans), rules]
    return [*lines, _latex_row([latex_text(name) for name in [*table.heads, *(c.name for c in table.columns)]])]


def _latex_body(table: Table) -> Iterator[str]:
    width = len(table.heads) + len(table.columns)
    for group in table.groups:
        yield r"\midrule"
        if group.title:
            yield _latex_row([rf"\multicolumn{{{width}}}{{l}}{{\emph{{{latex_text(group.title)}}}}}"])
        for row in group.rows:
            yield _latex_row([*map(latex_text, row.heads), *map(_latex_cell, row.cells)])


def _latex_figure(caption: str, path: str, width: str) -> str:
    shown = rf"\includegraphics[width={width}]{{{path}}}"
    return "\n".join([r"\begin{figure}", r"\centering", shown, rf"\caption{{{latex_text(caption)}}}", r"\end{figure}"])


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: TableCell) -> str:
    shown = latex_text(cell.text)
    command = {"best": r"\textbf", "second": r"\underline"}.get(cell.rank)
    shown = f"{command}{{{shown}}}" if command else shown
    return rf"{shown} {{\scriptsize {latex_text(cell.small)}}}" if cell.small else shown


def _markdown_table(table: Table) -> str:
    titled = any(group.title for group in table.groups)
    heads = [table.grouped_by] * titled + list(table.heads)
    names = [*heads, *(f"{column.shared} {column.name}".strip() for column in table.columns)]
    lines = [f"**{markdown_text(table.caption)}**", "", _markdown_row(map(markdown_text, names))]
    lines.append(_markdown_row(["---"] * len(heads) + ["---:"] * len(table.columns)))
    for group in table.groups:
        for row in group.rows:
            start = [group.title] * titled + list(row.heads)
            lines.append(_markdown_row([*map(markdown_text, start), *map(_markdown_cell, row.cells)]))
    return "\n".join(lines) + (f"\n\n{markdown_text(table.note)}" if table.note else "")


def _markdown_image(alt: str, caption: str, path: str) -> str:
    return f"![{markdown_text(alt)}]({quote(path)})\n\n*{markdown_text(caption)}*"


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: TableCell) -> str:
    shown = markdown_text(cell.text)
    shown = f"**{shown}**" if cell.rank == "best" else f"<ins>{shown}</ins>" if cell.rank == "second" else shown
    return f"{shown} {markdown_text(cell.small)}".strip()


def render_html(report: Document) -> str:
    """Return the page, from page.html.jinja; all text is escaped there but for the style sheet and our own SVG."""
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
    """Return the panel as an <svg> element, as wide as a column of the page; `prefix` makes its ids unique on the page.

    One that is wider than the page is not made smaller, but scrolls.
    """
    width, height = max(plot.size[0], PAGE / max(1, columns)), plot.size[1]

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        if plot.title:
            axes.set_title(wrapped(plot.title, width))
        plot.draw(axes)

    attributes = 'class="scrolls" ' if width > PAGE else ""
    attributes += f'role="img" aria-label="{html.escape(plot.alt)}"'
    return _svg(draw, (width, height), prefix, attributes, "constrained")


def wrapped(title: str, inches: float) -> str:
    """Return the title broken into lines that fit above a panel of this width."""
    return textwrap.fill(title, max(12, int(12 * inches)))


def swatch(style: LineStyle, prefix: str) -> str:
    """Return a short piece of a curve for a legend, as SVG."""

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
    """Return Matplotlib's SVG file as an element of a page."""
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
