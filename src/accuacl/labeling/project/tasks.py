"""The tasks of a project: the lists of their items, on disk in the folder `tasks`.

Each task has a folder with `task.json`, written once, and `items.parquet`, the list of its items. Two files hold for
all tasks: `places.json` says where data have been moved to, and `forgotten.json` has salted hashes of items that the
project was asked to forget, so that they are not added again. The path of data inside of the project's directory is
kept relative to it.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import secrets
import shutil
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, make_folder, read_json, reading, replacing, write_bytes, write_text, writing
from accuacl.base.machine import sync_folder
from accuacl.base.progress import OnProgress, ignore
from accuacl.labeling.project.images import read_files, read_images
from accuacl.labeling.project.new_items import DEFAULT_OPTIONS, TASK, NewItems, TableOptions
from accuacl.labeling.project.tables import TableSchema, read_table, read_texts, read_vectors

ERASED = "erased.json"  # in a task's folder: its erased rows, and the hash of its list of items since then
PLACES = "places.json"  # {index of a task: where its data have been moved to}
FORGOTTEN = "forgotten.json"
KINDS = {"images": "image", "texts": "text", "vectors": "vector", "tables": "record", "files": "file"}
FOLDERS = ("images", "files")  # the kinds of data of which a task is a folder with a file for each item


class NothingNew(InputError):
    """The data have nothing to add: the project already has all of them, or none can be read."""


@dataclass(frozen=True)
class TaskInfo:
    """A task. Items are numbered over all tasks; those of this task begin at `first`.

    bad: the files that were left out, and why.
    """

    index: int
    kind: str
    place: str  # the folder or file that its items come from
    first: int
    count: int
    bad: dict[str, str]
    sha256: str  # the hash of `items.parquet` as it was first written
    columns: list[str] | None = None  # the columns of numbers that make up a vector; None: a column of lists has it

    @property
    def ids(self) -> NDArray[np.int64]:
        return np.arange(self.first, self.first + self.count)

    def __contains__(self, item: int) -> bool:
        return self.first <= item < self.first + self.count

    def source(self, whole: bool) -> str:
        """Return the folder or file that the items come from, as a whole path or by its name alone."""
        return self.place if whole else Path(self.place).name


@dataclass(frozen=True)
class Item:
    """An item to label. kind: image or file (at `path`), text, or vector or record, shown as its `fields`."""

    id: int
    task: int
    kind: str
    name: str
    path: Path | None = None
    text: str | None = None
    fields: tuple[tuple[str, Any], ...] = ()


class Tasks:
    """The project's folder `tasks`."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / "tasks"
        self._known: tuple[int, list[TaskInfo]] = (0, [])  # the time of `places.json`, and the tasks read with it

    def all(self) -> list[TaskInfo]:
        """Return all tasks so far."""
        stamp = _modified(self.folder / PLACES)
        tasks = list(self._known[1]) if self._known[0] == stamp else []
        while (path := self.folder_of(len(tasks)) / "task.json").exists():
            task = _read_task(path)
            place = moved_places(self.folder).get(task.index, task.place)
            inside = self.folder.parent.resolve() / place
            moved_with = not os.path.isabs(place) and inside.exists()
            tasks.append(replace(task, place=str(inside) if moved_with else place))
        self._known = (stamp, tasks)
        return tasks

    def folder_of(self, index: int) -> Path:
        """Return the folder of a task."""
        return self.folder / f"{index:03}"

    def add(self, items: NewItems) -> TaskInfo:
        """Add the items as the next task, completely or not at all; leave out images and texts of earlier tasks."""
        make_folder(self.folder)
        with Lock(self.folder / "lock", wait=True), writing(self.folder):  # one process adds at a time
            for leftover in self.folder.glob(".adding-*"):  # a process was killed while it added a task
                shutil.rmtree(leftover)
            before = self.all()
            if items.kind in FOLDERS and not items.names and not items.bad:
                raise NothingNew(items.none_to_label())
            items, forgotten = self._without_known(items)
            if items.kind in ("vectors", "tables") and before:
                items = self.as_first(items)
            if not items.names:
                left_out = f"; {len(items.bad)} could not be read" if items.bad else ""
                left_out += f"; {forgotten} were forgotten, and are not added again" if forgotten else ""
                raise NothingNew(f"{items.place} has nothing new to label{left_out}; give other data.")
            aside = self.folder / f".adding-{secrets.token_hex(4)}"
            aside.mkdir()
            try:
                place, root = Path(items.place).resolve(), self.folder.parent.resolve()
                if place.is_relative_to(root):  # a relative path stays right when the project is moved
                    items = replace(items, place=str(place.relative_to(root)))
                _write_task(aside, items, len(before), sum(task.count for task in before))
                os.rename(aside, self.folder_of(len(before)))
            finally:
                shutil.rmtree(aside, ignore_errors=True)
            sync_folder(self.folder)
        return self.all()[len(before)]

    def _without_known(self, items: NewItems) -> tuple[NewItems, int]:
        """The items without images and texts that were added or forgotten before, and how many were forgotten."""
        if items.kind not in (*FOLDERS, "texts"):
            return items, 0
        known: set[str] = set()
        for task in self.all():
            table = self.table(task.index)
            known.update(identities(task.kind, task.place, table["name"], table.get("text")))
        salted = read_json(self.folder / FORGOTTEN) or {"salt": "", "hashes": []}
        hashes = set(salted["hashes"])
        ours = identities(items.kind, items.place, items.names, items.texts)
        new = [row for row, item in enumerate(ours) if item not in known]
        kept = [row for row in new if not hashes or _hash(salted["salt"], ours[row]) not in hashes]
        forgotten = len(new) - len(kept)
        if forgotten and kept:
            warnings.warn(f"left out, since this project was asked to forget them: {forgotten}", stacklevel=3)
        return items.only(kept), forgotten

    def as_first(self, items: NewItems) -> NewItems:
        """Return the vectors or records with the columns of the first task, in the same order."""
        if items.kind == "tables":
            return self.schema().like(items)
        return items.like(self.all()[0].columns, self.width())

    def array(self, index: int, name: str) -> NDArray[Any]:
        """Open the array `vectors.npy` or `inputs.npy` of a task as a memory map, which reads only the rows in use."""
        path = self.folder_of(index) / name
        with reading(path):
            return np.load(path, mmap_mode="r", allow_pickle=False)

    def inputs(self, index: int) -> dict[str, Any] | None:
        """Return the record of a task's inputs: their shape and the bad rows; None before they are made."""
        made: dict[str, Any] | None = read_json(self.folder_of(index) / "inputs.json")
        return made

    def width(self) -> int:
        """Return how many numbers a vector of the project has."""
        return int(self.array(0, "vectors.npy").shape[1])

    @functools.lru_cache(maxsize=1)  # noqa: B019 - a process has one such object
    def schema(self) -> TableSchema:
        """Return the schema of the project's tables, which the first task has fixed."""
        return TableSchema.load(self.folder_of(0))

    def rows(self, index: int, part: slice) -> list[dict[str, Any]]:
        """Return rows of a task's table; {} where they have been erased."""
        return [json.loads(row) for row in self.table(index)["shown"][part]]

    def find(self, id: int) -> TaskInfo:
        """Return the task that an item belongs to."""
        if task := next((task for task in self.all() if id in task), None):
            return task
        raise InputError(f"there is no item {id}; give one of a task.")

    def item(self, id: int) -> Item:
        """Return an item with all that people are shown of it."""
        task = self.find(id)
        table, row = self.table(task.index), id - task.first
        name = table["name"][row]
        item = Item(id, task.index, KINDS[task.kind], name)
        if task.kind in FOLDERS:
            fields = (("file", name),) if task.kind == "files" else ()
            return replace(item, path=Path(task.place) / name, fields=fields)
        if task.kind == "texts":
            return replace(item, text=table["text"][row] or "(erased)")
        title = (self.schema().options.id or "row") if task.kind == "tables" else "id"
        return replace(item, fields=((title, name), *json.loads(table["shown"][row] or "{}").items()))

    def table(self, index: int) -> dict[str, list[Any]]:
        """Return the list of a task's items, as columns; read again when another process has erased some of them."""
        return self._read_table(index, _modified(self.folder_of(index) / ERASED))

    @functools.lru_cache(maxsize=256)  # noqa: B019 - a process has one such object
    def _read_table(self, index: int, erased_at: int) -> dict[str, list[Any]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        task = self.all()[index]
        path = self.folder_of(index) / "items.parquet"
        with reading(path):
            data = path.read_bytes()
        erased = read_json(self.folder_of(index) / ERASED) or {"sha256": task.sha256}
        if hashlib.sha256(data).hexdigest() not in (task.sha256, erased["sha256"]):
            raise InputError(f"{path} is damaged; restore it from a copy.")
        # pq.read_table is not used: its threads may outlive the call, and a process that ends meanwhile is aborted.
        return dict(pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pydict())


def _read_task(path: Path) -> TaskInfo:
    with reading(path):
        data = path.read_bytes()
    try:
        return pydantic.TypeAdapter(TaskInfo).validate_json(data, strict=True)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        why = ": ".join([*map(str, first["loc"]), first["msg"]])
        raise InputError(f"{path} is damaged ({why}); restore it from a copy.") from None


def _write_task(folder: Path, items: NewItems, index: int, first: int) -> None:
    columns: dict[str, list[Any]] = {"name": items.names}
    if items.texts is not None:
        columns["text"] = items.texts
    if items.kind in ("vectors", "tables"):
        columns["shown"] = [json.dumps(row, default=str) for row in items.shown or [{}] * len(items.names)]
    if items.labels is not None:
        columns["label"] = items.labels
    if items.kind == "tables" and index == 0:
        TableSchema.of(items).save(folder)
    if items.vectors is not None:
        with replacing(folder / "vectors.npy") as file:
            np.save(file, items.vectors)
    data = parquet_of(columns)
    write_bytes(folder / "items.parquet", data)
    digest = hashlib.sha256(data).hexdigest()
    task = TaskInfo(index, items.kind, items.place, first, len(items.names), items.bad, digest, items.columns)
    write_text(folder / "task.json", json.dumps(asdict(task), indent=1) + "\n")


def parquet_of(columns: dict[str, list[Any]]) -> bytes:
    """Return the list of a task's items as the bytes of `items.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def identities(kind: str, place: str, names: list[str], texts: list[str] | None) -> list[str]:
    """Return the keys by which items added again are recognised: paths of images, names and contents of texts."""
    if kind == "texts":
        return [json.dumps(pair) for pair in zip(names, texts or (), strict=True)]
    return [os.path.join(place, name) for name in names]


def read_like(
    tasks: Tasks | None,
    kind: str,
    path: Path,
    column: str,
    options: TableOptions = DEFAULT_OPTIONS,
    on_progress: OnProgress = ignore,
) -> NewItems:
    """Read the data of a kind at a path, with the columns of the first task; tasks None: they become the first task.

    column: the column of texts. options: what the other columns are for; of a later table only the column of tasks
    counts, because the first one has fixed the rest.
    """
    if kind == "images":
        return read_images(path, on_progress)
    if kind == "files":
        return read_files(path)
    if kind == "texts":
        return read_texts(path, column, options.task, options.label)
    if tasks is None:
        return read_table(path, options) if kind == "tables" else read_vectors(path, options.task, options.label)
    task = options.task
    if kind == "tables":
        usual = tasks.schema().options
        return tasks.as_first(read_table(path, usual if task is None else replace(usual, task=task), True))
    columns = tasks.all()[0].columns
    if task is None and TASK in (columns or ()):  # in the first task, this column is a feature
        task = ""
    return tasks.as_first(read_vectors(path, task, options.label, columns))


# Items that were forgotten


def never_add_again(folder: Path, items: Iterable[str]) -> None:
    """Record the hashes of forgotten items, given by their `identities`. folder: the project's folder `tasks`."""
    salted = read_json(folder / FORGOTTEN) or {"salt": secrets.token_hex(16), "hashes": []}
    hashes = sorted(set(salted["hashes"]) | {_hash(salted["salt"], item) for item in items})
    if hashes != salted["hashes"]:
        write_text(folder / FORGOTTEN, json.dumps(salted | {"hashes": hashes}) + "\n")


def _hash(salt: str, item: str) -> str:
    return hashlib.sha256(f"{salt}\0{item}".encode("utf-8", "surrogatepass")).hexdigest()


# Where data lie


@dataclass(frozen=True)
class Moved:
    """A task whose data have been moved, and the names of its files that are missing at the new place."""

    task: int
    place: str
    missing: list[str]


def relocate_data(tasks: Tasks, old: Path, new: Path) -> list[Moved]:
    """Record that the data at `old`, or below it, are now at `new`; return the tasks that this concerns.

    It is recorded for all of these tasks or, if the data of one are not there, for none.
    """
    before, after = old.resolve(), new.resolve()
    with Lock(tasks.folder / "lock", wait=True):
        moved = []
        for task in tasks.all():
            place = Path(task.place)
            if place == before or before in place.parents:
                moved.append(_moved(tasks, task, after / place.relative_to(before)))
        if not moved:
            places = ", ".join(dict.fromkeys(task.place for task in tasks.all())) or "no data"
            raise InputError(f"this project has no data at {before}; give one of its locations: {places}.")
        all_moved = moved_places(tasks.folder) | {task.task: task.place for task in moved}
        write_text(tasks.folder / PLACES, json.dumps(all_moved, ensure_ascii=False) + "\n")
    return moved


def _moved(tasks: Tasks, task: TaskInfo, place: Path) -> Moved:
    what, exists = ("folder", place.is_dir()) if task.kind in FOLDERS else ("file", place.is_file())
    if not exists:
        raise InputError(f"there is no {what} {place} for the {task.kind} of task {task.index + 1}; give its location.")
    names = tasks.table(task.index)["name"] if task.kind in FOLDERS else ()
    missing = [name for name in names if not (place / name).is_file()]
    if names and len(missing) == len(names):
        which = f"the {len(names)} {task.kind} of task {task.index + 1}, such as {names[0]}"
        raise InputError(f"{place} has none of {which}; give the folder that has them under the same names.")
    return Moved(task.index, str(place), missing)


def moved_places(folder: Path) -> dict[int, str]:
    """Return {index of a task: the place its data have been moved to}. folder: the project's folder `tasks`."""
    return {int(task): place for task, place in (read_json(folder / PLACES) or {}).items()}


def _modified(path: Path) -> int:
    """Return the time at which a file was last changed, in nanoseconds; 0 if there is no file."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
