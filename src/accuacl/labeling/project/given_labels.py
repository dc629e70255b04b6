"""Labels that are there before anybody is asked: in a column of the data, in files, and known answers of gold items.

Those given for a task are kept in its folder, in `given.json`, and taken into the store when the task begins. Rows of a
file that cannot be taken are refused, each with a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from accuacl.base.errors import InputError, counted, listed
from accuacl.base.files import Lock, read_json, write_text
from accuacl.experiments.data import DataTable, read_table
from accuacl.labeling.project.exported_tables import without_escape
from accuacl.labeling.project.finding import ItemFinder
from accuacl.labeling.project.tasks import Tasks
from accuacl.labeling.store import GivenLabel, Store, clean_name, living, meant, near_names

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

FILE = "given.json"
WITH_DATA = "given with the data"  # the name of the person to whom labels in a column of the data are credited
ITEMS = ("name", "id", "file_name", "filename", "file", "path", "image", "item")  # columns that may name an item
CLASSES = ("class", "label")

GivenLabels = dict[int, tuple[str, str]]  # {item: (its class, the person who gave it)}


def take_given(store: Store, tasks: Tasks, task: int) -> int:
    """Take the given labels of a task that has a round into the store; return how many are new."""
    labels = to_give(store, tasks, task)
    return store.give(task, labels) if labels else 0


def to_give(store: Store, tasks: Tasks, task: int) -> list[GivenLabel]:
    """Return the given labels of a task for the store, to which new classes and people are added first."""
    labels = given_labels(tasks, task)
    classes = {c.name: c.id for c in living(store.classes())}
    for name in dict.fromkeys(label for label, _ in labels.values()):
        if name not in classes:
            classes[name] = store.add_class(name).id
    people = {name: store.person_named(name) for name in dict.fromkeys(who for _, who in labels.values())}
    return [GivenLabel(item, classes[label], people[who]) for item, (label, who) in labels.items()]


def given_labels(tasks: Tasks, task: int) -> GivenLabels:
    """Return all given labels of a task's items; a label from a file replaces one from the data."""
    info = tasks.all()[task]
    column = tasks.table(task).get("label", [])
    with_data = {info.first + row: (name, WITH_DATA) for row, name in enumerate(column) if name is not None}
    return with_data | _from_files(tasks, task)


def waiting_labels(store: Store, tasks: Tasks) -> GivenLabels:
    """Return labels given for tasks that have not begun; they are taken when the tasks begin."""
    labels: GivenLabels = {}
    for task in tasks.all():
        if not store.rounds(task.index):
            labels |= given_labels(tasks, task.index)
    return labels


def describe_given(store: Store, tasks: Tasks, task: int) -> list[str]:
    """Return sentences on how many given labels of a task are used, and how many wait for their task to begin."""
    sentences = []
    if task >= 0 and (free := len(store.labels().keys() & set(store.unasked(task)))):
        more = counted(free, "more label")
        sentences.append(f"task {task + 1} has {more}, given before anybody was asked, which cost none of the budget.")
    if wait := len(waiting_labels(store, tasks)):
        more = counted(wait, "label")
        sentences.append(f"{more} given for tasks that have not begun will be taken when these begin.")
    return sentences


def _from_files(tasks: Tasks, task: int) -> GivenLabels:
    """Return the labels of a task that were imported from files."""
    content = read_json(tasks.folder_of(task) / FILE) or {}
    return {int(item): (label, who) for item, (label, who) in content.items()}


def drop_given(tasks: Tasks, items: set[int]) -> None:
    """Remove the labels of items from `given.json`."""
    for task in tasks.all():
        labels = _from_files(tasks, task.index)
        if not items.isdisjoint(labels):
            _write(tasks, task.index, {item: label for item, label in labels.items() if item not in items})


def _keep(tasks: Tasks, labels: GivenLabels) -> None:
    """Write labels to the `given.json` of each task; they replace earlier ones of the same items."""
    with Lock(tasks.folder / "lock", wait=True):
        for task in tasks.all():
            if own := {item: label for item, label in labels.items() if item in task}:
                _write(tasks, task.index, _from_files(tasks, task.index) | own)


def _write(tasks: Tasks, task: int, labels: GivenLabels) -> None:
    write_text(tasks.folder_of(task) / FILE, json.dumps(labels, ensure_ascii=False) + "\n")


# Files of labels


@dataclass(frozen=True)
class TakenLabels:
    """The outcome of an import.

    labels: how many are new. waiting: how many are for tasks that have not begun. known: how many were there already.
    refused: a sentence for each row that was refused.
    """

    labels: int = 0
    waiting: int = 0
    known: int = 0
    refused: tuple[str, ...] = ()


def take_label_file(
    project: Project, path: Path, by: str, new_classes: bool | None = False, label_column: str = ""
) -> TakenLabels:
    """Take the labels in a table: CSV, TSV, JSON, JSON lines or Parquet. What cannot be taken is refused, row by row.

    by: whose labels they are, where no column `person` says it. new_classes: add classes; None: no, and there
    is no such option. Importing the same file again changes nothing.
    """
    table = read_table(path)
    item_column, class_column = _columns(table, project.settings.kind, label_column)
    people = table.values("person") if "person" in table.names else [None] * len(table)
    by = clean_name(by, "a person")
    wait = waiting_labels(project.store, project.tasks)  # the classes of these are added when their task begins
    classes = [c.name for c in living(project.store.classes())]
    classes += dict.fromkeys(name for name, _ in wait.values() if name not in classes)
    answers = {answer.item: answer.class_id for answer in project.store.answers()}
    names = {c.id: c.name for c in project.store.classes()}
    finder = ItemFinder(project.tasks)
    labels: GivenLabels = {}
    refused, known = [], 0
    for row, value in enumerate(table.values(class_column)):
        try:
            items = _items_of(finder, item_column, table, row)
            label = _class_named(value, table, classes, new_classes)
            for item in items:
                old = answers.get(item)
                before = names[old] if old is not None else labels.get(item, (label,))[0]
                if before != label:
                    name = project.item(item).name
                    raise InputError(f"{name!r} is labelled {before!r} and not {label!r}; correct it there")
                if item in answers or wait.get(item, ("",))[0] == label:
                    known += 1
                else:
                    labels[item] = (label, _spellings(people[row] or by, table)[0])
        except InputError as error:
            refused.append(f"{table.where(row)}: {error}.")
    for who in {who for _, who in labels.values()}:
        project.store.person_named(who)  # a name that is not possible is refused before anything is written
    _keep(project.tasks, labels)
    taken = sum(take_given(project.store, project.tasks, task.index) for task in project.tasks.all())
    answered = {answer.item for answer in project.store.answers()}
    return TakenLabels(taken, len(labels.keys() - answered), known, tuple(refused))


def add_gold(project: Project, file: Path) -> tuple[int, int]:
    """Make the items in a table gold, either all of its rows or none; return how many, and how many are labelled.

    The table is one that `take_label_file` takes too.
    """
    table = read_table(file)
    item_column, class_column = _columns(table, project.settings.kind, None)
    classes = {c.name: c.id for c in living(project.store.classes())}
    names, finder = list(classes), ItemFinder(project.tasks)
    known: dict[int, int] = {}
    for row, value in enumerate(table.values(class_column)):
        try:
            items = _items_of(finder, item_column, table, row)
            known |= dict.fromkeys(items, classes[_class_named(value, table, names, None)])
        except InputError as error:
            raise InputError(f"{table.where(row)}: {error}.") from None
    if not known:
        raise InputError(f"{file} has no rows; give items and their classes.")
    project.store.set_gold(known)
    return len(known), len(known.keys() & project.store.labels().keys())


def _columns(table: DataTable, kind: str, label_column: str | None) -> tuple[str, str]:
    """Return the columns that name the item and its class.

    label_column None: the caller has no option for it, so that messages must not name one.
    """
    items = ("text", *ITEMS) if kind == "texts" else ITEMS
    item_column = next((name for name in items if name in table.names), "")
    class_column = next((name for name in ((label_column,) if label_column else CLASSES) if name in table.names), "")
    if item_column and class_column:
        return item_column, class_column
    has = f"has the columns {listed(table.names)}" if table.names else "is empty"
    option = "" if label_column is None else ", or name it with --label-column"
    raise InputError(
        f"{table.path} {has}; give `name` (or `id`, `item`, for texts `text`) and `class` (or `label`{option})."
    )


def _spellings(value: Any, table: DataTable) -> list[str]:
    """Return the texts that a cell may stand for, the likeliest first.

    An exported CSV file has a ' before what looks like a formula, so the cell is also tried without it.
    """
    if value is None:
        return []
    both = [without_escape(str(value)), str(value)]
    return both if table.delimited else both[::-1]


def _class_named(value: Any, table: DataTable, known: list[str], new_classes: bool | None) -> str:
    """Return the class that a cell names, and add it to `known` if it is new and that is allowed.

    new_classes None: the caller has no option to add classes, so that messages must not name one.
    """
    spellings = _spellings(value, table)
    if not spellings:
        raise InputError("it has no class; give one or leave the row out")
    names = [clean_name(each, "a class") for each in spellings]
    name = next((each for each in names if each in known), names[0])
    if name not in known:
        alike = next(iter(near_names(name, known)), None) if new_classes else meant(name, known)
        if alike or not new_classes:
            hint = f"did you mean {alike}? Else" if alike else "fix it, or"
            how = "give --new-classes to add it" if new_classes is False else "add it on the page"
            raise InputError(f"there is no class {name!r}; {hint} {how}")
        known.append(name)
    return name


def _cell(table: DataTable, column: str, row: int) -> Any:
    """Return the value of a cell; None if it is empty or the column is missing."""
    value = table.columns.column(column)[row].as_py() if column in table.names else None
    return None if value == "" else value


def _items_of(finder: ItemFinder, column: str, table: DataTable, row: int) -> list[int]:
    """Return the item that a row is about, or several if their texts are equal.

    Columns `task` and `item` tell items of one name apart; `item` alone is enough if the name is missing.
    """
    spellings = _spellings(_cell(table, column, row), table) or [""]
    wanted, number = spellings[0], _cell(table, "item", row)
    if column == "item" or (not wanted and number is not None):
        return [_numbered(finder, wanted or str(number))]
    if column == "text":
        items = next((finder.by_text[each] for each in spellings if each in finder.by_text), [])
    else:
        items = next((items for items in _called(finder, spellings) if items), [])
        if len(items) > 1 and (task := _cell(table, "task", row)) is not None:
            items = [item for item in items if str(finder.tasks.find(item).index + 1) == str(task)]
        if len(items) > 1 and number is not None:
            item = _numbered(finder, str(number))
            if item not in items:
                name = finder.tasks.item(item).name
                raise InputError(f"item {item} is called {name!r}, not {wanted!r}; fix one of them")
            items = [item]
        if len(items) > 1:
            raise InputError(f"{len(items)} items are called {wanted!r}; say which with a column `task` or `item`")
    return items or _no_item(wanted)


def _called(finder: ItemFinder, spellings: list[str]) -> Iterator[list[int]]:
    """Yield the items that a spelling may mean: as a name in the project, a path in a task's folder, or a file."""
    for wanted in spellings:
        yield finder.by_name.get(wanted, [])
    for wanted in spellings:
        for task in finder.tasks.all():
            if wanted.startswith(f"{task.place}/"):
                yield finder.by_name.get(wanted.removeprefix(f"{task.place}/"), [])
        yield finder.by_file_name.get(wanted, [])


def _numbered(finder: ItemFinder, wanted: str) -> int:
    known = wanted.isdecimal() and int(wanted) in finder.numbers
    return int(wanted) if known else _no_item(wanted)


def _no_item(wanted: str) -> NoReturn:
    short = wanted if len(wanted) <= 60 else f"{wanted[:57]}..."
    raise InputError(f"there is no item {short!r} in this project; fix it or leave the row out")
