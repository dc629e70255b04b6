"""A document's tables and sentences as LaTeX to \\input; needs booktabs, and graphicx for plots that are files."""

from __future__ import annotations

from pathlib import Path

from accuacl.report.formats.document import Code, Document, Figure, Heading, Picture, Points, Table, TableCell, Text
from accuacl.report.formats.markdown import link

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "±": r"$\pm$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
} | {c: f"\\{c}" for c in "&%$#_"}


def render(report: Document, folder: Path) -> str:
    """The text of a file in `folder`."""
    needs = r"\usepackage{booktabs} \usepackage{graphicx} \usepackage[T1]{fontenc}"
    parts = [f"% {_one_line(report.title)}\n% In the preamble: {needs}. Paths of figures are relative to this file."]
    for block in report.blocks:
        if isinstance(block, Heading):
            parts.append(rf"\{'sub' * (block.level - 2)}section{{{text(block.text)}}}")
        elif isinstance(block, Text):
            parts.append(rf"\emph{{{text(block.text)}}}" if block.notice else text(block.text))
        elif isinstance(block, Points):
            items = "\n".join(rf"\item {text(point)}" for point in block.texts)
            parts.append(f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}")
        elif isinstance(block, Code):
            parts.append("\n".join(f"% {_one_line(line)}" for line in (f"{block.title}:", *block.lines)))
        elif isinstance(block, Table):
            parts.append(_table(block))
        elif isinstance(block, Figure) and block.file:
            parts.append(_figure(block.caption, link(block.file, folder), r"\linewidth"))
        elif isinstance(block, Picture) and block.file:
            parts.append(_figure(block.title, link(block.file, folder), r"0.6\linewidth"))
    return "\n\n".join(parts) + "\n"


def text(plain: str) -> str:
    """Plain text with all characters escaped that mean something to LaTeX.

    >>> text("a_b & 5 % ^")
    'a\\\\_b \\\\& 5 \\\\% \\\\textasciicircum{}'
    """
    return "".join(SPECIAL.get(c, c) for c in _one_line(plain))


def _one_line(plain: str) -> str:
    return " ".join(plain.split())


def _table(table: Table) -> str:
    heads, width = len(table.heads), len(table.heads) + len(table.columns)
    lines = [r"\begin{table}", r"\centering\small", rf"\caption{{{text(table.caption)}}}"]
    lines += [rf"\begin{{tabular}}{{{'l' * heads}{'r' * len(table.columns)}}}", r"\toprule"]
    if any(column.shared for column in table.columns):
        spans, rules, at = [], [], heads + 1
        for shared, columns in table.headers():
            spans.append(rf"\multicolumn{{{len(columns)}}}{{c}}{{{text(shared)}}}")
            rules += [rf"\cmidrule(lr){{{at}-{at + len(columns) - 1}}}"] if shared else []
            at += len(columns)
        lines += [_row([""] * heads + spans), "".join(rules)]
    lines += [_row([text(name) for name in [*table.heads, *(column.name for column in table.columns)]])]
    for group in table.groups:
        lines.append(r"\midrule")
        if group.title:
            lines.append(_row([rf"\multicolumn{{{width}}}{{l}}{{\emph{{{text(group.title)}}}}}"]))
        for row in group.rows:
            lines.append(_row([text(head) for head in row.heads] + [_cell(cell) for cell in row.cells]))
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.note:
        lines += ["", rf"\smallskip\footnotesize {text(table.note)}"]
    return "\n".join([*lines, r"\end{table}"])


def _figure(caption: str, path: str, width: str) -> str:
    shown = rf"\includegraphics[width={width}]{{{path}}}"
    return "\n".join([r"\begin{figure}", r"\centering", shown, rf"\caption{{{text(caption)}}}", r"\end{figure}"])


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: TableCell) -> str:
    shown = text(cell.text)
    command = {"best": r"\textbf", "second": r"\underline"}.get(cell.rank)
    shown = f"{command}{{{shown}}}" if command else shown
    return rf"{shown} {{\scriptsize {text(cell.small)}}}" if cell.small else shown
