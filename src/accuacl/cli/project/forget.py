"""`accuacl project forget`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from accuacl.cli.options import TextColumn, TrustCode
from accuacl.cli.project.options import Directory, open_project
from accuacl.cli.screen import console, drawn


def forget(
    directory: Directory,
    items: Annotated[list[str], typer.Argument(metavar="ITEM", help="Names of items, or their numbers.")],
    column: TextColumn = "text",
    trust_code: TrustCode = False,
) -> None:
    """Remove items, their labels and what was learned from them.

    For projects with --learner ridge. The model is then that of a project which never had the items. Of a task whose
    examples are erased (--keep statistics) an item is read again from where it came from, so that its share can be
    taken out of the sums. Your own files are not touched: delete them yourself.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        off = project.forget(items, column, draw)
        kept = project.settings.keep
    console.print(f"forgotten: {escape(', '.join(items))}")
    if kept == "examples":
        console.print(f"proof: the model differs from one fitted without them from scratch by {off:.0e}")
    else:
        console.print(f"proof: taken out of the sums and put back, they give the old sums up to {off:.0e}")
