"""Gold items: a file of items whose answers are known, which people are asked among the others."""

from __future__ import annotations

import csv
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import reading
from accuacl.labeling.project.items.tasks import find_item
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
                name, label = row.get("name") or row.get("item") or "", " ".join((row["class"] or "").split())
                if label not in classes:
                    probably = meant(label, classes)
                    hint = f"did you mean {probably}? Else add it" if probably else "add it first, or fix the file"
                    raise InputError(f"{file}, line {rows.line_num}: there is no class {label!r}; {hint}.")
                known[find_item(project.tasks, name)] = classes[label]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{file} is not a readable .csv file ({error}); write it as UTF-8.") from None
    if not known:
        raise InputError(f"{file} has no rows; give items and their classes.")
    project.store.set_gold(known)
    return len(known), len(known.keys() & project.store.labels().keys())
