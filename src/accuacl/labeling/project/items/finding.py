"""Items by what people call them: a name, a number, or both where one alone could mean several."""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.project.items.erasing import forgotten_rows
from accuacl.labeling.project.items.tasks import Item, Tasks

LONGEST = 60  # characters of a text that are shown
MOST = 10  # items that a sentence names


def find_item(tasks: Tasks, given: str) -> int:
    """The one item that this can mean: `#NUMBER`, `TASK:NAME`, a name, or a number.

    What can mean several items is refused, with a sentence that shows them: a number that is another item's name too,
    or a name that several have.
    """
    if given.startswith("#") and given[1:].isdecimal():
        return numbered(tasks, given[1:])
    found = set(named(tasks, given))
    task, _, name = given.partition(":")
    if task.isdecimal() and name:
        found |= {item for item in named(tasks, name) if tasks.find(item).index + 1 == int(task)}
    if given.isdecimal() and int(given) < _count(tasks):
        if not found:
            return numbered(tasks, given)
        found.add(int(given))
    if len(found) > 1:
        several = "; ".join(f"'#{item}' is {said_of(tasks.item(item))}" for item in sorted(found)[:MOST])
        more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
        raise InputError(f"{given!r} can mean {len(found)} items; give one with its #, in quotes: {several}{more}.")
    if found:
        return found.pop()
    raise InputError(f"there is no item {given!r}; give its name, TASK:NAME, or its number in the export's labels.csv.")


def named(tasks: Tasks, name: str) -> list[int]:
    """All items of that name, but for those that were forgotten."""
    gone = _forgotten(tasks)
    rows = ((task.first, row, each) for task in tasks.all() for row, each in enumerate(tasks.table(task.index)["name"]))
    return [first + row for first, row, each in rows if each == name and first + row not in gone]


def numbered(tasks: Tasks, number: str) -> int:
    """The item of that number."""
    count = _count(tasks)
    if not number.isdecimal() or int(number) >= count:
        raise InputError(f"there is no item {number!r}; items have the numbers 0 to {count - 1}.")
    if int(number) in _forgotten(tasks):
        raise InputError(f"item {int(number)} has been forgotten already; leave it out.")
    return int(number)


def said_of(item: Item) -> str:
    """What people know an item by: its task, its name, and its text or file.

    >>> said_of(Item(99, 1, "text", "39", text="how do I pay?"))
    "task 2, '39': how do I pay?"
    """
    text = " ".join((item.text or "").split())
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    cells = ", ".join(f"{title} {value}" for title, value in item.fields[1:4])
    seen = shown or (str(item.path) if item.path else cells)
    return f"task {item.task + 1}, {item.name!r}" + (f": {seen}" if seen else "")


def _forgotten(tasks: Tasks) -> set[int]:
    return {task.first + row for task in tasks.all() for row in forgotten_rows(tasks, task)}


def _count(tasks: Tasks) -> int:
    return sum(task.count for task in tasks.all())
