"""A document as Markdown with GitHub's tables, and those plots that are files."""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from urllib.parse import quote

from accuacl.report.formats.document import Code, Document, Figure, Heading, Picture, Points, Table, TableCell, Text


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
    """The file's path as seen from the folder."""
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def text(plain: str) -> str:
    """Plain text with all characters escaped that mean something to Markdown.

    >>> text("a_b|<i>")
    'a\\\\_b\\\\|&lt;i&gt;'
    """
    one_line = " ".join(plain.split())
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escape(one_line, quote=False))


def _table(table: Table) -> str:
    titled = any(group.title for group in table.groups)
    heads = [table.grouped_by] * titled + list(table.heads)
    names = [*heads, *(f"{column.shared} {column.name}".strip() for column in table.columns)]
    lines = [f"**{text(table.caption)}**", ""]
    lines.append(_row([text(name) for name in names]))
    lines.append(_row(["---"] * len(heads) + ["---:"] * len(table.columns)))
    for group in table.groups:
        for row in group.rows:
            start = [group.title] * titled + list(row.heads)
            lines.append(_row([*(text(head) for head in start), *(_cell(cell) for cell in row.cells)]))
    return "\n".join(lines) + (f"\n\n{text(table.note)}" if table.note else "")


def _image(alt: str, caption: str, path: str) -> str:
    return f"![{text(alt)}]({quote(path)})\n\n*{text(caption)}*"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: TableCell) -> str:
    shown = text(cell.text)
    shown = f"**{shown}**" if cell.rank == "best" else f"<ins>{shown}</ins>" if cell.rank == "second" else shown
    return f"{shown} {text(cell.small)}".strip()
