"""`accuacl project forget`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from accuacl.cli.options import TextColumn, TrustCode
from accuacl.cli.project.options import Directory, open_project
from accuacl.cli.screen import console, drawn
from accuacl.labeling import project as projects

ITEM = "Names of items, their numbers, or, where these could mean several, '#NUMBER' (in quotes) or TASK:NAME."


def forget(
    directory: Directory,
    items: Annotated[list[str], typer.Argument(metavar="ITEM", help=ITEM)],
    column: TextColumn = "text",
    trust_code: TrustCode = False,
) -> None:
    """Remove items, their labels and what was learned from them.

    For projects with --learner ridge. The model is then that of a project which never had the items. Of a task whose
    examples are erased (--keep statistics) an item is read again from where it came from, so that its share can be
    taken out of the sums. Your own files are not touched: delete them yourself.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        forgot = project.forget(items, column, draw)
    for item in forgot.items:
        console.print(f"forgotten: item {item.id} ({escape(projects.describe_item(item))})", soft_wrap=True)
    for sentence in forgot.sentences:
        console.print(escape(sentence), soft_wrap=True)
