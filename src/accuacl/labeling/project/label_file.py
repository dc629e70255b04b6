"""A file of labels: which item each row is of, and which rows cannot be taken, with a sentence for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.experiments.data import DataTable, read_table
from accuacl.labeling.project import taught
from accuacl.labeling.project.erasing import erased_rows, forgotten_rows
from accuacl.labeling.project.exporting import plain
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.tasks import Tasks
from accuacl.labeling.store import clean_name, living, meant, near_names

ITEMS = ("name", "id", "file_name", "filename", "file", "path", "image", "item")  # columns that name an item
CLASSES = ("class", "label")


@dataclass(frozen=True)
class Taken:
    """labels: new ones; waiting: of tasks that have not begun; known: the same as before; refused: a sentence each."""

    labels: int = 0
    waiting: int = 0
    known: int = 0
    refused: tuple[str, ...] = ()


def take_file(project: Project, path: Path, by: str, new_classes: bool = False, label_column: str = "") -> Taken:
    """Take the labels in a table: CSV, TSV, JSON, JSON lines or Parquet. What cannot be taken is refused, row by row.

    by: whose labels they are, where no column `person` says it. The same file again changes nothing.
    """
    table = read_table(path)
    columns = columns_of(table, project.settings.kind, label_column)
    people = table.values("person") if "person" in table.names else [None] * len(table)
    by = clean_name(by, "a person")
    wait = taught.waiting(project.store, project.tasks)  # their classes are added when their task begins
    classes = [c.name for c in living(project.store.classes())]
    classes += dict.fromkeys(name for name, _ in wait.values() if name not in classes)
    answers = {answer.item: answer.class_id for answer in project.store.answers()}
    names = {c.id: c.name for c in project.store.classes()}
    found = Finder(project.tasks)
    labels: taught.GivenLabels = {}
    refused, known = [], 0
    for row, value in enumerate(table.values(columns[1])):
        try:
            items = found.items(columns[0], table, row)
            label = class_of(value, table, classes, new_classes)
            for item in items:
                old = answers.get(item)
                before = names[old] if old is not None else labels.get(item, (label,))[0]
                if before != label:
                    raise InputError(f"{found.name(item)!r} is labelled {before!r} and not {label!r}; correct it there")
                there = item in answers or wait.get(item, ("",))[0] == label
                known += there
                if not there:
                    labels[item] = (label, _spellings(people[row] or by, table)[0])
        except InputError as error:
            refused.append(f"{table.where(row)}: {error}.")
    return _kept(project, labels, known, refused)


def _kept(project: Project, labels: taught.GivenLabels, known: int, refused: list[str]) -> Taken:
    for who in {who for _, who in labels.values()}:
        project.store.person_named(who)  # refused before anything is written
    taught.keep(project.tasks, labels)
    taken = sum(taught.take_given(project.store, project.tasks, task.index) for task in project.tasks.all())
    answered = {answer.item for answer in project.store.answers()}
    return Taken(taken, len(labels.keys() - answered), known, tuple(refused))


def columns_of(table: DataTable, kind: str, label_column: str | None) -> tuple[str, str]:
    """The columns that name the item and its class. label_column None: there is no such option."""
    items = (*(["text"] if kind == "texts" else []), *ITEMS)
    wanted = (label_column,) if label_column else CLASSES
    columns = [next((name for name in each if name in table.names), "") for each in (items, wanted)]
    if not all(columns):
        has = f"has the columns {', '.join(table.names)}" if table.names else "is empty"
        option = "" if label_column is None else ", or name it with --label-column"
        raise InputError(
            f"{table.path} {has}; give `name` (or `id`, `item`, for texts `text`) and `class` (or `label`{option})."
        )
    return columns[0], columns[1]


def _spellings(value: Any, table: DataTable) -> list[str]:
    """What a cell may stand for, the likeliest first: an export's CSV has a ' before what looks like a formula."""
    if value is None:
        return []
    both = [plain(str(value)), str(value)]
    return both if table.delimited else both[::-1]


def class_of(value: Any, table: DataTable, known: list[str], new_classes: bool | None) -> str:
    """The class that a cell names; a new one joins those that are known. new_classes None: there is no such option."""
    spellings = _spellings(value, table)
    if not spellings:
        raise InputError("it has no class; give one or leave the row out")
    names = [clean_name(each, "a class") for each in spellings]
    name = next((each for each in names if each in known), names[0])
    if name not in known:
        alike = near_names(name, known)
        if new_classes and alike:
            raise InputError(f"there is no class {name!r}; did you mean {alike[0]}? Else add it on the page")
        if not new_classes:
            probably = meant(name, known)
            hint = f"did you mean {probably}? Else" if probably else "fix it, or"
            how = "add it on the page" if new_classes is None else "give --new-classes to add it"
            raise InputError(f"there is no class {name!r}; {hint} {how}")
        known.append(name)
    return name


def _cell(table: DataTable, column: str, row: int) -> Any:
    """A value; None if it or the column is missing."""
    value = table.columns.column(column)[row].as_py() if column in table.names else None
    return None if value == "" else value


class Finder:
    """Items by what a file calls them."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.by: dict[str, dict[str, list[int]]] = {key: defaultdict(list) for key in ("name", "text", "base")}
        self.numbers: set[int] = set()
        for task in tasks.all():
            columns, erased = tasks.table(task.index), erased_rows(tasks, task)
            gone = forgotten_rows(tasks, task)
            for row, name in enumerate(columns["name"]):
                if row in gone:
                    continue
                self.numbers.add(task.first + row)
                spelt = {"name": name, "base": name.rpartition("/")[2]}
                if "text" in columns and row not in erased:
                    spelt["text"] = columns["text"][row]
                for key, value in spelt.items():
                    self.by[key][value].append(task.first + row)

    def name(self, item: int) -> str:
        return self.tasks.item(item).name

    def items(self, column: str, table: DataTable, row: int) -> list[int]:
        """The item that a row is of; several where a text is there more than once.

        `task` and `item` tell those of one name apart, and `item` alone is enough where the name is missing.
        """
        spellings = _spellings(_cell(table, column, row), table) or [""]
        wanted, number = spellings[0], _cell(table, "item", row)
        if column == "item" or (not wanted and number is not None):
            return [self._number(wanted or str(number))]
        if column == "text":
            texts = (self.by["text"].get(each, []) for each in spellings)
            return self._one_kind(wanted, next((items for items in texts if items), []))
        found = next((items for items in self._called(spellings) if items), [])
        if len(found) > 1 and (task := _cell(table, "task", row)) is not None:
            found = [item for item in found if str(self.tasks.find(item).index + 1) == str(task)]
        if len(found) > 1 and number is not None:
            item = self._number(str(number))
            if item not in found:
                raise InputError(f"item {item} is called {self.name(item)!r}, not {wanted!r}; fix either")
            found = [item]
        if len(found) > 1:
            raise InputError(f"{len(found)} items are called {wanted!r}; say which with a column `task` or `item`")
        return self._one_kind(wanted, found)

    def _called(self, spellings: list[str]) -> Iterator[list[int]]:
        """As the project calls it, as a path into a task's folder, as a file's name."""
        for wanted in spellings:
            yield self.by["name"].get(wanted, [])
        for wanted in spellings:
            for task in self.tasks.all():
                if wanted.startswith(f"{task.place}/"):
                    yield self.by["name"].get(wanted.removeprefix(f"{task.place}/"), [])
            yield self.by["base"].get(wanted, [])

    def _one_kind(self, wanted: str, found: list[int]) -> list[int]:
        if not found:
            short = wanted if len(wanted) <= 60 else f"{wanted[:57]}..."
            raise InputError(f"there is no item {short!r} in this project; fix it or leave the row out")
        return found

    def _number(self, wanted: str) -> int:
        if not wanted.isdecimal() or int(wanted) not in self.numbers:
            raise InputError(f"there is no item {wanted!r} in this project; fix it or leave the row out")
        return int(wanted)


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
