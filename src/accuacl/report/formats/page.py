"""A document as one HTML file that needs nothing else: no scripts, no fonts, no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib import resources
from itertools import groupby

from accuacl.report.figures import svg
from accuacl.report.formats.document import (
    Cell,
    Code,
    Column,
    Document,
    Figure,
    Heading,
    Line,
    Picture,
    Points,
    Table,
    Text,
)

LONG = 3  # more lines of code than this are folded
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render(report: Document) -> str:
    style = resources.files("accuacl.report.formats").joinpath("page.css").read_text()
    sections: list[str] = []
    contents: list[str] = []
    for i, block in enumerate(report.blocks):
        if isinstance(block, Heading):
            sections.append(f'<h{block.level} id="s{i}">{escape(block.text)}</h{block.level}>')
            if block.level == 2:
                contents.append(f'<li><a href="#s{i}">{escape(block.text)}</a></li>')
        else:
            sections.append(_block(block, f"b{i}"))
    nav = f'<nav aria-label="Contents"><ul>{"".join(contents)}</ul></nav>' if len(contents) > 2 else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(report.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(report.title)}</h1>\n{nav}\n" + "\n".join(sections) + "\n</main>\n</body>\n</html>\n"
    )


def _block(block: Text | Points | Code | Table | Figure | Picture, prefix: str) -> str:
    if isinstance(block, Text):
        return (
            f'<p class="notice" role="note">{escape(block.text)}</p>'
            if block.notice
            else f"<p>{escape(block.text)}</p>"
        )
    if isinstance(block, Points):
        return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in block.texts) + "</ul>"
    if isinstance(block, Code):
        lines = f'<pre tabindex="0"><code>{escape(chr(10).join(block.lines))}</code></pre>'
        title = escape(block.title)
        if len(block.lines) > LONG:
            return f"<details><summary>{title} ({len(block.lines)} commands)</summary>{lines}</details>"
        return f"<p>{title}:</p>{lines}"
    if isinstance(block, Picture):
        data = base64.b64encode(block.png).decode()
        image = f'<img alt="{escape(block.alt)}" src="data:image/png;base64,{data}">'
        return f'<figure class="picture">{image}<figcaption>{escape(block.title)}</figcaption></figure>'
    return _table(block) if isinstance(block, Table) else _figure(block, prefix)


def _figure(figure: Figure, prefix: str) -> str:
    panels = "".join(svg.panel(panel, f"{prefix}p{i}") for i, panel in enumerate(figure.panels))
    legend = "".join(
        f"<li>{svg.swatch(look, f'{prefix}l{i}')} {escape(label)}</li>"
        for i, (label, look) in enumerate(figure.legend.items())
    )
    listed = f'<ul class="legend">{legend}</ul>' if legend else ""
    beside = 2 if figure.columns == 4 else figure.columns  # on a printed page, large enough to read
    kind = 'class="panels"' if figure.columns > 1 else 'class="panels wide" tabindex="0"'
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    grid = f'<div {kind} style="--columns:{figure.columns};--print:{beside}">{panels}</div>'
    return f"<figure>{listed}{grid}{caption}</figure>"


def _table(table: Table) -> str:
    width = len(table.heads) + len(table.columns)
    bodies = []
    for block in table.blocks:
        title = f'<tr class="block"><th colspan="{width}" scope="rowgroup">{escape(block.title)}</th></tr>'
        lines = "".join(_line(line, table.columns) for line in block.lines)
        bodies.append(f"<tbody>{title if block.title else ''}{lines}</tbody>")
    note = f'<p class="small">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}"><table>'
        f"<caption>{escape(table.caption)}</caption><thead>{_head(table)}</thead>{''.join(bodies)}</table></div>{note}"
    )


def _head(table: Table) -> str:
    """One row of names, or two where columns share a name over theirs."""
    two = any(column.over for column in table.columns)
    span = ' rowspan="2"' if two else ""
    first = "".join(f'<th scope="col"{span} class="text">{escape(head)}</th>' for head in table.heads)
    second = ""
    for over, group in groupby(table.columns, key=lambda column: column.over):
        columns = list(group)
        if over:
            first += f'<th scope="colgroup" colspan="{len(columns)}" class="over">{escape(over)}</th>'
        names = "".join(
            f'<th scope="col"{"" if over else span}{_kind(column)}>{escape(column.name)}</th>' for column in columns
        )
        if over:
            second += names
        else:
            first += names
    return f"<tr>{first}</tr>" + (f"<tr>{second}</tr>" if second else "")


def _line(line: Line, columns: Sequence[Column]) -> str:
    heads = "".join(f'<th scope="row">{escape(head)}</th>' for head in line.heads)
    cells = "".join(f"<td{_kind(column)}>{_cell(cell)}</td>" for cell, column in zip(line.cells, columns, strict=True))
    return f'<tr class="apart">{heads}{cells}</tr>' if line.apart else f"<tr>{heads}{cells}</tr>"


def _kind(column: Column) -> str:
    kinds = " ".join(name for name, is_so in (("muted", column.muted), ("text", column.text)) if is_so)
    return f' class="{kinds}"' if kinds else ""


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    text = f"<b>{text}</b>" if cell.mark == "best" else f"<u>{text}</u>" if cell.mark == "second" else text
    return f"{text} <small>{escape(cell.small)}</small>" if cell.small else text
