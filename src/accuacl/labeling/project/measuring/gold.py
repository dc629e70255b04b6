"""Gold items: a file of items whose answers are known, which people are asked among the others."""

from __future__ import annotations

from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.data import read_table
from accuacl.labeling.project.label_file import Finder, class_of, columns_of
from accuacl.labeling.project.project import Project
from accuacl.labeling.store import living


def add_gold(project: Project, file: Path) -> tuple[int, int]:
    """Make the items in a table gold: all of its rows, or none. How many, and how many are labelled.

    The table is one that `take_file` takes too.
    """
    table = read_table(file)
    item_column, class_column = columns_of(table, project.settings.kind, None)
    classes = {c.name: c.id for c in living(project.store.classes())}
    names, finder = list(classes), Finder(project.tasks)
    known: dict[int, int] = {}
    for row, value in enumerate(table.values(class_column)):
        try:
            items = finder.items(item_column, table, row)
            label = class_of(value, table, names, None)
        except InputError as error:
            raise InputError(f"{table.where(row)}: {error}.") from None
        known |= dict.fromkeys(items, classes[label])
    if not known:
        raise InputError(f"{file} has no rows; give items and their classes.")
    project.store.set_gold(known)
    return len(known), len(known.keys() & project.store.labels().keys())
