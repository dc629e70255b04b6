"""A document as Markdown with GitHub's tables, and those plots that are files."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from urllib.parse import quote

from accuacl.report.formats.document import Cell, Code, Document, Figure, Heading, Picture, Points, Table, Text


def render(report: Document, folder: Path) -> str:
    """The text of a file in `folder`."""
    parts = [f"# {text(report.title)}"]
    for block in report.blocks:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {text(block.text)}")
        elif isinstance(block, Text):
            parts.append(f"> {text(block.text)}" if block.notice else text(block.text))
        elif isinstance(block, Points):
            parts.append("\n".join(f"- {text(point)}" for point in block.texts))
        elif isinstance(block, Code):
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(block.lines)) or [""]))
            parts.append(f"{text(block.title)}:\n\n{fence}sh\n" + "\n".join(block.lines) + f"\n{fence}")
        elif isinstance(block, Table):
            parts.append(_table(block))
        elif isinstance(block, Figure) and block.file:
            alt = " ".join(panel.alt for panel in block.panels)
            parts.append(_image(alt, block.caption, link(block.file, folder)))
        elif isinstance(block, Picture) and block.file:
            parts.append(_image(block.alt, block.title, link(block.file, folder)))
    return "\n\n".join(parts) + "\n"


def link(file: Path, folder: Path) -> str:
    """The way from the folder to the file."""
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def text(plain: str) -> str:
    """Plain text with all that Markdown would take for its own set off.

    >>> text("a_b|<i>")
    'a\\\\_b\\\\|&lt;i&gt;'
    """
    one_line = " ".join(plain.split())
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escape(one_line, quote=False))


def _table(table: Table) -> str:
    blocks = any(block.title for block in table.blocks)
    heads = [table.by] * blocks + list(table.heads)
    names = [*heads, *(f"{column.over} {column.name}".strip() for column in table.columns)]
    lines = [f"**{text(table.caption)}**", ""]
    lines.append(_row([text(name) for name in names]))
    lines.append(_row(["---"] * len(heads) + ["---:"] * len(table.columns)))
    for block in table.blocks:
        for line in block.lines:
            start = [block.title] * blocks + list(line.heads)
            lines.append(_row([*(text(head) for head in start), *(_cell(cell) for cell in line.cells)]))
    return "\n".join(lines) + (f"\n\n{text(table.note)}" if table.note else "")


def _image(alt: str, caption: str, path: str) -> str:
    return f"![{text(alt)}]({quote(path)})\n\n*{text(caption)}*"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    shown = text(cell.text)
    shown = f"**{shown}**" if cell.mark == "best" else f"<ins>{shown}</ins>" if cell.mark == "second" else shown
    return f"{shown} {text(cell.small)}".strip()
