"""Gold items: a file of items whose answers are known, which people are asked among the others."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import reading
from accuacl.labeling.project.items.finding import find_item, named, numbered
from accuacl.labeling.project.project import Project
from accuacl.labeling.store import living, meant


def add_gold(project: Project, file: Path) -> tuple[int, int]:
    """Make the items of a .csv file gold: `name` (or `item`) and `class`. How many, and how many are labelled."""
    classes = {c.name: c.id for c in living(project.store.classes())}
    known: dict[int, int] = {}
    with reading(file), file.open(newline="", encoding="utf-8-sig") as opened:
        rows = csv.DictReader(opened)
        try:
            columns = rows.fieldnames or ()
            if "class" not in columns or not {"name", "item"} & set(columns):
                raise InputError(
                    f"{file} needs the columns `name` (or `item`) and `class`; name them in its first row."
                )
            for row in rows:
                label = " ".join((row["class"] or "").split())
                if label not in classes:
                    probably = meant(label, classes)
                    hint = f"did you mean {probably}? Else add it" if probably else "add it first, or fix the file"
                    raise InputError(f"{file}, line {rows.line_num}: there is no class {label!r}; {hint}.")
                known[_item(project, row, f"{file}, line {rows.line_num}")] = classes[label]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{file} is not a readable .csv file ({error}); write it as UTF-8.") from None
    if not known:
        raise InputError(f"{file} has no rows; give items and their classes.")
    project.store.set_gold(known)
    return len(known), len(known.keys() & project.store.labels().keys())


def _item(project: Project, row: Mapping[str, str | None], where: str) -> int:
    """The item of a row: by its number in `item`, or its name in `name`; `task` tells those of one name apart."""
    number, name = row.get("item") or "", row.get("name") or ""
    try:
        if number.isdecimal():
            item = numbered(project.tasks, number)
            if name and project.item(item).name != name:
                raise InputError(f"item {number} is called {project.item(item).name!r}, not {name!r}; fix either.")
            return item
        found = named(project.tasks, name)
        if len(found) > 1 and row.get("task"):
            found = [item for item in found if str(project.tasks.find(item).index + 1) == row["task"]]
        if len(found) > 1:
            raise InputError(f"{len(found)} items are called {name!r}; say which with a column `task` or `item`.")
        return found[0] if found else find_item(project.tasks, name or number)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
