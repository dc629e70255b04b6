"""Which item people mean: by its number, its name, its file's name or its text."""

from __future__ import annotations

from collections import defaultdict

from accuacl.base.errors import InputError
from accuacl.labeling.project.erasing import erased_rows, forgotten_rows
from accuacl.labeling.project.tasks import Item, Tasks

LONGEST = 60  # how many characters of a text are shown
MOST = 10  # the most items that an error message names


class ItemFinder:
    """The items of a project by what people call them, without those that were forgotten."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.numbers: set[int] = set()
        self.by_name, self.by_file_name, self.by_text = (defaultdict[str, list[int]](list) for _ in range(3))
        for task in tasks.all():
            columns, erased, gone = tasks.table(task.index), erased_rows(tasks, task), forgotten_rows(tasks, task)
            for row, name in enumerate(columns["name"]):
                if row in gone:
                    continue
                item = task.first + row
                self.numbers.add(item)
                self.by_name[name].append(item)
                self.by_file_name[name.rpartition("/")[2]].append(item)
                if "text" in columns and row not in erased:
                    self.by_text[columns["text"][row]].append(item)


def find_item(tasks: Tasks, given: str) -> int:
    """Return the item that people give as `#NUMBER`, `TASK:NAME`, a name, or a number.

    If several items have the name, or a number is also another item's name, raise InputError with the candidates.
    """
    finder, count = ItemFinder(tasks), sum(task.count for task in tasks.all())
    by_number = given.removeprefix("#").isdecimal()
    number = int(given.removeprefix("#")) if by_number else count
    candidates = {number} if number < count else set[int]()
    if not (given.startswith("#") and by_number):
        candidates |= set(finder.by_name.get(given, ()))
        task, _, name = given.partition(":")
        candidates |= {item for item in finder.by_name.get(name, ()) if task == str(tasks.find(item).index + 1)}
    if len(candidates) > 1:
        several = "; ".join(f"'#{item}' is {describe_item(tasks.item(item))}" for item in sorted(candidates)[:MOST])
        more = f"; and {len(candidates) - MOST} more" if len(candidates) > MOST else ""
        meant = len(candidates)
        raise InputError(f"{given!r} can mean {meant} items; give one with its #, in quotes: {several}{more}.")
    if candidates <= finder.numbers and candidates:
        return candidates.pop()
    if candidates:
        raise InputError(f"item {number} has already been forgotten; leave it out.")
    if by_number:
        raise InputError(f"there is no item '{number}'; items have the numbers 0 to {count - 1}.")
    raise InputError(f"there is no item {given!r}; give its name, TASK:NAME, or its number in the export's labels.csv.")


def describe_item(item: Item) -> str:
    """Return a description of an item for people: its task, its name, and its text or file.

    >>> describe_item(Item(99, 1, "text", "39", text="how do I pay?"))
    "task 2, '39': how do I pay?"
    """
    text = " ".join((item.text or "").split())
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    cells = ", ".join(f"{title} {value}" for title, value in item.fields[1:4])
    seen = shown or (str(item.path) if item.path else cells)
    return f"task {item.task + 1}, {item.name!r}" + (f": {seen}" if seen else "")
